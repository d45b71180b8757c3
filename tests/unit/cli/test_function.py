"""Targets of commands: what is imported, and which arguments a function is compiled for."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from bwcompiler.cli.function import ArgumentSpec, closest, example_arguments, load, parse_argument, parse_spec
from bwcompiler.cli.problems import UsageProblem, UserProblem

FILE = """
import numpy as np

def loss(x, w, scale=2.0, shift=None):
    return np.sum(x @ w) * scale

def other(p):
    return p

def keyword(x, *, n):
    return x

class Net:
    @staticmethod
    def forward(x):
        return x

constant = 3

def example_args():
    return np.ones((4, 3)), np.ones((3, 2), np.float32)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "user_file.py").write_text(FILE)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def seen(spec):
    """A spec as something that compares."""
    if isinstance(spec, dict):
        return {key: seen(value) for key, value in spec.items()}
    if isinstance(spec, tuple | list):
        return type(spec)(seen(value) for value in spec)
    return (str(spec.dtype), spec.shape) if isinstance(spec, ArgumentSpec | np.ndarray) else spec


# ----- types
@pytest.mark.parametrize(("text", "expected"), [
    ("f64[32,64]", ("float64", (32, 64))), ("f32[]", ("float32", ())), ("i8", ("int8", ())), ("float32[3]", ("float32", (3,))),
    (" bool [ 2 , 3 ] ", ("bool", (2, 3))), ("c128[0]", ("complex128", (0,))), ("3", 3), ("-0.5", -0.5), ("True", True), ("None", None), ("'sum'", "sum"),
    ("2j", 2j), ("{'w': f64[3], 'b': f64[]}", {"w": ("float64", (3,)), "b": ("float64", ())}),
    ("[f64[2], (i64, 1)]", [("float64", (2,)), (("int64", ()), 1)]), ("[]", []), ("(f64[],)", (("float64", ()),)),
])
def test_specs(text, expected):
    assert seen(parse_spec(text)) == expected


@pytest.mark.parametrize(("text", "message"), [
    ("f65[3]", "'f65[3]' is not a type; write for example f64[32,64]"), ("f64[n]", "'f64[n]' is not a type"),
    ("f64[1.5]", "is not a type"), ("f64[", "'f64[' is not a type"), ("{'w': g[3]}", r"'g[3]' in \"{'w': g[3]}\" is not a type"),
    ("{**x}", "is not a type"), ("__import__('os')", "is not a type"), ("b'text'", "is not a type"), ("f64[-1]", "is not a type"),
    ("f64[True]", "is not a type"),
])
def test_wrong_specs(text, message):
    with pytest.raises(UsageProblem) as problem:
        parse_spec(text)
    assert message.replace('\\"', '"') in str(problem.value)


@pytest.mark.parametrize("text", ["x", "=f64", "1=f64", "x y=f64"])
def test_arguments_have_a_name(text):
    with pytest.raises(UsageProblem, match="write NAME=TYPE"):
        parse_argument(text)


# ----- functions
def test_file_and_module_targets(folder):
    assert load("user_file.py:loss").fun.__name__ == "loss"
    assert load("user_file:other").fun.__name__ == "other"
    assert load("./user_file.py:Net.forward").name == "Net.forward"
    assert load("numpy.linalg:norm").fun is np.linalg.norm


@pytest.mark.parametrize(("target", "problem", "message"), [
    ("user_file.py", UsageProblem, "write FILE.py:FUNCTION or module:function, as in user_file.py:loss"),
    ("user_file.py:", UsageProblem, "does not name a function"), (":loss", UsageProblem, "does not name a function"),
    ("user_fil.py:loss", UserProblem, "there is no file user_fil.py; did you mean user_file.py?"),
    ("user_file.py:los", UserProblem, "user_file.py has no function los; did you mean loss?"),
    ("user_file.py:zzz", UserProblem, "there are: loss, other, keyword"),
    ("user_file.py:constant", UserProblem, "constant in user_file.py is not a function but a int"),
    ("user_file.py:Net", UserProblem, "Net in user_file.py is not a function but a class; there are: loss"),
    ("no_such_module_anywhere:f", UserProblem, "cannot import no_such_module_anywhere: ModuleNotFoundError"),
])
def test_wrong_targets(folder, target, problem, message):
    with pytest.raises(problem) as error:
        load(target)
    assert message in str(error.value)


@pytest.mark.parametrize(("text", "message"), [
    ("import no_such_module_anywhere", "broken.py:1: ModuleNotFoundError"), ("x = [\n", "broken.py:1: SyntaxError"),
    ("def f(): pass\n\n1 / 0\n", "broken.py:3: ZeroDivisionError: division by zero"),
])
def test_files_that_fail(folder, text, message):
    (folder / "broken.py").write_text(text)
    with pytest.raises(UserProblem) as error:
        load("broken.py:f")
    assert str(error.value).startswith("cannot import broken.py: ") and message in str(error.value)


# ----- arguments
def arguments(target, *given):
    return seen(example_arguments(load(target), given))


def test_examples_and_given_types_go_together(folder):
    x, w = ("float64", (4, 3)), ("float32", (3, 2))
    assert arguments("user_file.py:loss") == (x, w)
    assert arguments("user_file.py:loss", "w=f64[3,5]") == (x, ("float64", (3, 5)))
    assert arguments("user_file.py:loss", "scale=f64[]") == (x, w, ("float64", ()))
    assert arguments("user_file.py:loss", "shift=1") == (x, w, 2.0, 1)
    assert arguments("user_file.py:Net.forward", "x=f64[2]") == (("float64", (2,)),)


def test_examples_by_name(folder):
    (folder / "by_name.py").write_text("def f(x, y): return x\ndef g(y): return y\ndef example_args(): return {'x': 1.0, 'y': 2.0}\n")
    assert arguments("by_name.py:f") == (1.0, 2.0)
    assert arguments("by_name.py:g") == (2.0,)


@pytest.mark.parametrize(("target", "given", "message"), [
    ("user_file.py:loss", ["wieght=f64[3]"], "--arg wieght: loss has no parameter wieght; there are: x, w, scale, shift"),
    ("user_file.py:loss", ["scal=f64[3]"], "did you mean scale?"),
    ("user_file.py:other", [], "returned 2 arguments, other takes 1; return a dict by name, or give the types with --arg"),
    ("user_file.py:keyword", ["x=f64"], "keyword-only parameter n"), ("optional.py:f", ["n=3"], "keyword-only parameter n"),
    ("without.py:f", ["x=f64"], "f needs the types of y; write --arg y=f64[32,64] (dtype and shape), or define example_args() in without.py"),
    ("method.py:Net.loss", ["x=f64[3]"], "Net.loss takes an object, self: define example_args() in method.py, which returns it and the other"),
    ("failing.py:f", [], "example_args() of failing.py failed: "),
    ("none.py:f", [], "must return a tuple of arguments (or a dict by name), it returned NoneType"),
])
def test_wrong_arguments(folder, target, given, message):
    (folder / "without.py").write_text("def f(x, y): return x\n")
    (folder / "optional.py").write_text("def f(x, *, n=2): return x\n")
    (folder / "method.py").write_text("class Net:\n    def loss(self, x): return x\n")
    (folder / "failing.py").write_text("def f(x): return x\ndef example_args(): return 1 / 0\n")
    (folder / "none.py").write_text("def f(x): return x\ndef example_args(): pass\n")
    with pytest.raises(UserProblem) as error:
        arguments(target, *given)
    assert message in str(error.value)


def test_closest():
    assert closest("tahn", ["tanh", "sin"]) == "; did you mean tanh?"
    assert closest("q", []) == "; there are: none"
