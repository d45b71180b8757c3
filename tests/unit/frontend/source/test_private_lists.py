"""Which variables hold lists that nothing else can hold, by the source."""

import ast

import pytest

from bwcompiler.frontend.source.syntax.analysis.private import private_lists


@pytest.mark.parametrize("text", [
    "kept = []\nfor v in x:\n    kept.append(v)",
    "kept, n = [1.0], 0\nwhile kept and n < 3:\n    n = sum(kept) + kept[-1]",
    "kept = []\nif not kept or len(kept) > 2:\n    kept = [kept[0]]\nreturn kept",
    "kept = []\nkept += [1]\ny = [v for v in kept] + [2 in kept]\nz = np.array(kept)",
    "kept = []\nfor v in kept:\n    print(v)\nkept = [kept.pop()]"])
def test_private(text):
    assert "kept" in private_lists(ast.parse(text).body, ())


@pytest.mark.parametrize("text", [
    "kept = []\nother = kept", "kept = []\nother.append(kept)", "kept = []\nf(kept)", "kept = []\nkept = f(x)", "kept = other = []",
    "kept = []\nfor kept in x:\n    pass", "kept = []\nfor v in kept:\n    kept = [v]", "kept = []\ny = lambda: kept",
    "kept = []\ndef f():\n    nonlocal kept\n    kept = [1]", "kept = []\nstate = kept, 1", "kept = []\ny = kept or [1]",
    "kept = []\nx.kept = kept", "global kept\nkept = []", "kept = []\nkept = [*kept, 1]", "kept = []\ny = kept.__iter__", "kept, n = x, []",
    "kept = []\ny = zip(kept, x)", "kept = []\ndel kept"])
def test_not_private(text):
    assert "kept" not in private_lists(ast.parse(text).body, ())


def test_neither_are_parameters_and_variables_of_functions_around():
    assert private_lists(ast.parse("kept = []\nother = []").body, {"kept"}) == {"other"}
