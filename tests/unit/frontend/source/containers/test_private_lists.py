"""Which variables hold lists that nothing else can hold, by the source."""

import ast

import pytest

from bwcompiler.frontend.source.syntax.analysis.private import private_lists


@pytest.mark.parametrize("text", [
    "kept = []\nfor v in x:\n    kept.append(v)",
    "kept, n = [1.0], 0\nwhile kept and n < 3:\n    n = sum(kept) + kept[-1]",
    "kept = []\nif not kept or len(kept) > 2:\n    kept = [kept[0]]\nreturn kept",
    "kept = []\nkept += [1]\ny = [v for v in kept] + [2 in kept]\nz = np.array(kept)",
    "kept = []\nfor v in kept:\n    print(v)\nkept = [kept.pop()]", "kept = []\nkept = [*kept, 1]", "kept = []\nkept = kept + x",
    "kept = [v for v in x]\nkept = kept[1:]\nkept = kept.copy()", "kept = list(x)\nfor k, v in enumerate(kept):\n    print(k, v)",
    "kept = sorted(x)\nf(*kept)\nreturn kept is None"])
def test_private(text):
    assert "kept" in private_lists(ast.parse(text).body, ())


@pytest.mark.parametrize("text", [
    "kept = []\nfound.append(kept)\nkept = []\nkept.append(1)", "kept = []\nf(kept)", "kept = []\nstate = kept, 1",
    "kept = []\nx.kept = kept", "kept = []\nwhile x:\n    kept.append(1)\n    if f(x):\n        found.append((len(kept), kept))\n"
    "        kept = []\nreturn kept", "kept = []\ny = zip(kept, x)", "kept = []\nx, kept = kept, [1]\nkept.append(2)"])
def test_handed_over(text):
    """Nothing reads the variable behind that, before it is bound anew."""
    assert "kept" in private_lists(ast.parse(text).body, ())


@pytest.mark.parametrize("text", [
    "kept = []\nother = kept\nprint(len(kept), len(other))", "kept = []\nfor v in x:\n    other = kept\n    kept = [v]\nreturn other",
    "kept, other = [1], []\nkept, other = other, kept\nkept.append(2)", "kept = []\nother = kept\nlast = other\nreturn kept[0] + last[0]"])
def test_other_names(text):
    """No list is changed by one of them that the other one has, too."""
    assert {"kept", "other"} <= private_lists(ast.parse(text).body, ())


@pytest.mark.parametrize("text", [
    "kept = []\nother = kept\nkept.append(1)\nreturn other", "kept = []\nother = kept\nother[0] = 1\nreturn kept",
    "kept = []\nother = kept\nother += [1]\nreturn kept", "kept = []\nother = kept\nlast = other\nlast.append(1)\nreturn kept, other",
    "kept = []\nother = kept\nfound.append(other)\nreturn kept", "kept = []\nother.append(kept)\nreturn kept",
    "kept = []\nfor v in x:\n    found.append(kept)", "kept = []\nfor v in x:\n    found.append(kept)\n    if v:\n        kept = []",
    "kept = []\nf(kept, kept)", "kept = []\nf(kept, kept.append(1))", "kept = []\nfound.append(kept)\nreturn kept[0]",
    "kept = []\ny = [kept for v in x]", "kept = []\ntry:\n    found.append(kept)\nexcept ValueError:\n    print(kept)",
    "kept = []\nreturn kept is other", "kept = []\nyield kept", "kept = []\nkept = f(x)", "kept = other = []",
    "kept = []\nfor kept in x:\n    pass", "kept = []\nfor v in kept:\n    kept = [v]", "kept = []\ny = lambda: kept",
    "kept = []\ndef f():\n    nonlocal kept\n    kept = [1]", "kept = []\ny = kept or [1]", "global kept\nkept = []",
    "kept = []\ny = kept.__iter__", "kept, n = x, []", "kept = []\nfor k, v in enumerate(kept):\n    kept = [v]", "kept = []\ndel kept",
    "kept = x.copy()", "kept = x[1:]", "copy = []\ncopy.append(kept)\nkept = []\nother.append(kept)\nprint(kept)"])
def test_not_private(text):
    assert "kept" not in private_lists(ast.parse(text).body, ())


def test_neither_are_parameters_and_variables_of_functions_around():
    assert private_lists(ast.parse("kept = []\nother = []").body, {"kept"}) == {"other"}
