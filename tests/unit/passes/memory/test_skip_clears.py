"""Parts that are cleared and then added to: set to what is added, unless something reads them in between; values stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.passes.memory.skip_clears import skip_clears
from tests.support.derivatives import check_derivatives

TEXT = """graph g(%a: f64[6], %b: f64[2]) -> (f64[6], f64[3]) {
  %there: f64[2] = slice %a {starts=[1], sizes=[2], steps=[1]}
  %zeros: f64[2] = full {value=NUMBER, shape=[2], dtype=f64}
  %clear: f64[6] = slice_update %a, %zeros {starts=[1], steps=[1]}
  %other: f64[6] = slice_add %clear, %b {starts=[PLACE], steps=[1]}
  %last:  f64[6] = slice_add %other, ADDED {starts=[1], steps=[1]}
  %three: f64[3] = slice VERSION {starts=[0], sizes=[3], steps=[1]}
  return %last, %three
}
"""
A, B = np.linspace(1.0, 2.0, 6), np.array([3.0, 4.0])


def made(number: str = "0.0", place: str = "3", added: str = "%b", version: str = "%last") -> tuple[Graph, Graph]:
    """The graph, and what the pass makes of it, with the same results."""
    graph = parse_graph(TEXT.replace("NUMBER", number).replace("PLACE", place).replace("ADDED", added).replace("VERSION", version))
    after = skip_clears(graph)
    verify(after)
    for found, expected in zip(interpret(after, [A, B]), interpret(graph, [A, B]), strict=True):
        np.testing.assert_array_equal(found, expected)
    return graph, after


def updates(graph: Graph) -> list[str]:
    return [value.op.name for value in graph.body if value.op in ops.UPDATES]


def test_a_part_is_set_to_what_is_added():
    assert updates(made()[1]) == ["slice_add", "slice_update"]


def test_a_part_that_gets_back_what_was_there_stays():
    assert updates(made(added="%there")[1]) == ["slice_add"]


@pytest.mark.parametrize("changed", [{"number": "1.0"}, {"place": "2"}, {"version": "%clear"}, {"version": "%other"}])
def test_other_clears_stay(changed):
    """Of another number; where something is added in between, or reads the array."""
    graph, after = made(**changed)
    assert after is graph


def test_factors_and_their_gradients():
    def lu(a):
        a = a.copy()
        for i in range(a.shape[0]):
            for j in range(i):
                a[i, j] = (a[i, j] - np.dot(a[i, :j], a[:j, j])) / a[j, j]
            for j in range(i, a.shape[0]):
                a[i, j] = a[i, j] - np.dot(a[i, :i], a[:i, j])
        return a

    check_derivatives(lu, np.random.default_rng(0).uniform(0.5, 1.5, (6, 6)) + 6.0 * np.eye(6))
