"""Names of adjoint graphs: a name of the forward graph's text means that value, whatever the passes rebuilt."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ir.texts.graph_printer import graph_to_text

X, Y = np.ones(3), np.full(3, 2.0)


def merged(x, y):
    return np.sum((x * y) * np.sin(x * y) / 4.0)


def mean(x, y):
    return np.mean(np.tanh(x * 1.0) * y / 2.0)


PROGRAMS = {
    "three products": lambda x, y: np.sum((x * y) * (x * 2.0)),
    "merged": merged,
    "rewritten": mean,
    "names as ops": lambda multiply, sum: np.sum(multiply * sum * multiply),
    "second order": lambda x, y: bw.grad(lambda x: np.sum(np.sin(x) ** 3 * y))(x),
}


def definitions(text):
    return dict(re.findall(r"^  (%\S+): +\S+ += (.*?)(?: +;.*)?$", text, re.MULTILINE))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_name_means_one_value_in_both_texts(name):
    program = bw.compile(PROGRAMS[name], X, Y)
    forward, adjoint = program.as_text("forward"), program.as_text("adjoint")
    names = set(definitions(forward)) | {f"%{value.name}" for value in program.graph.inputs}
    here = set(definitions(adjoint)) | set(re.findall(r"(%\S+): ", adjoint.splitlines()[0]))
    mentioned = set(re.findall(r"vjp of (%\S+)", adjoint))
    assert mentioned and mentioned <= names | here
    for shared in set(definitions(forward)) & set(definitions(adjoint)):
        assert program.forward_names()[value_called(program, shared)] == shared
    assert graph_to_text(parse_graph(adjoint)) == adjoint


def value_called(program, name):
    """The adjoint graph's value of that name, which stands for a forward value."""
    names = program.forward_names()
    found = [value for value in program.adjoint.values() if names.get(value) == name]
    assert len(found) == 1, f"{name} is a forward value's name, but the adjoint's {name} does not stand for it"
    return found[0]


def test_vjp_of_says_which():
    text = bw.compile(PROGRAMS["three products"], X, Y).as_text("adjoint")
    assert [line.partition("vjp of ")[2].split()[0] for line in text.splitlines() if "multiply %multiply_2.ct" in line] == [
        "%multiply_2", "%multiply_2"]
    assert re.search(r"%y.ct: .*; vjp of %multiply ", text)


def test_cotangents_are_named_after_what_the_user_sees():
    assert "%divide_1.ct: f64[]" in bw.compile(mean, X, Y).as_text("adjoint")


def test_a_forward_value_without_a_name_here_leaves_the_line():
    def cube(x):
        return np.sum(np.sin(x) ** 3)
    program = bw.compile(cube, X)
    text = graph_to_text(program.adjoint)                 # nobody says what the forward graph calls its values
    values = [value for value in program.adjoint.body if value.forward is not None]
    assert values and "vjp of" not in text.partition("%sin.ct")[0]
    assert text.count("test_autodiff_names.py:") == len(definitions(text))


def test_json_has_the_same_names():
    program = bw.compile(PROGRAMS["three products"], X, Y)
    forward, adjoint = (json.loads(program.as_text(stage, "json")) for stage in ("forward", "adjoint"))
    known = {node["id"] for node in forward["nodes"]}
    assert {node["fwd"] for node in adjoint["nodes"] if "fwd" in node} <= known
    assert "multiply_2" in {node["fwd"] for node in adjoint["nodes"] if "fwd" in node}


@bw.custom_vjp
def straight(x):
    return np.round(x)


straight.defvjp(lambda x: (straight(x), np.cos(x)), lambda residual, ct: (residual,))


def test_a_residual_that_a_rule_returns_is_not_renamed():
    def function(x):
        return np.sum(straight(np.exp(x)))
    names = {value.name for value in bw.compile(function, X).halves().joint.graph.body if value.op.name == "cos"}
    assert names == {None}
