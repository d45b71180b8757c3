"""Sorts of which few elements are read become selections; others stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import derive, lower
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph, all_values
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ops.ordering.order_statistics import LEAST_SELECTED
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.passes.rewriting.narrow_sorts import MOST, narrow_sorts
from bwcompiler.passes.rewriting.rewriter import NO_RULES, rewrite

N = LEAST_SELECTED
NAMES = ("sort", "argsort", "order_statistics", "order_positions", "argpartition")


def calls(graph: Graph) -> Counter[str]:
    return Counter(value.op.name for value in all_values(graph) if value.op.name in NAMES)


def narrowed(function: Callable[..., Any], *arguments: Any) -> Counter[str]:
    traced = trace(function, arguments)
    graph = rewrite(narrow_sorts(traced.graph).graph, NO_RULES).graph
    verify(graph)
    inputs = [*[np.asarray(argument) for argument in arguments], *traced.captured]
    for one, other in zip(interpret(graph, inputs), interpret(traced.graph, inputs), strict=True):
        np.testing.assert_array_equal(one, other)
    return calls(graph)


FEW: dict[str, Callable[[Any], Any]] = {
    "an element": lambda x: np.sort(x)[:, 7], "the ends": lambda x: (np.sort(x)[:, 0], np.sort(x)[1, -1]),
    "neighbours": lambda x: np.sort(x)[:, 20:40], "along another axis": lambda x: np.sort(x.T, 0)[9], "a part": lambda x: np.sort(x)[1:, 4:6],
    "median": lambda x: np.median(x, 1), "of all": lambda x: np.median(x), "quantiles": lambda x: np.quantile(x, [0.1, 0.5, 0.8], axis=1),
    "at an array": lambda x: np.sort(x)[:, np.array([3, 8, 1])],
    "along the middle": lambda x: np.sort(x.reshape(1, -1, 2), 1)[:, np.array([[3, 8], [0, 1]])], "in a loop": lambda x: bw.fori_loop(0, 3, lambda k, s: s + np.sort(x + s)[:, 5:6], x[:, :1] * 0),
}


@pytest.mark.parametrize("name", FEW)
def test_few_elements_are_selected(name: str, rng: np.random.Generator) -> None:
    found = narrowed(FEW[name], rng.standard_normal((2, N)))
    assert not found["sort"] and found["order_statistics"] == 1 + (name == "the ends"), found


def test_places_that_are_data(rng: np.random.Generator) -> None:
    x = np.where(rng.random((2, N)) < 0.1, np.nan, rng.standard_normal((2, N)))
    assert narrowed(lambda x: np.nanmedian(x, 1), x) == {"order_statistics": 1}
    assert narrowed(lambda x: np.nanquantile(x, 0.3, axis=1), x) == {"order_statistics": 1}
    assert narrowed(lambda x, q: np.quantile(x, q), x, np.array([0.2, 0.4])) == {"order_statistics": 1}
    assert narrowed(lambda x, k: np.sort(x)[:, k], x, np.array([2, N - 1])) == {"order_statistics": 1}
    assert narrowed(lambda x, k: np.take_along_axis(np.sort(x), k, 1), x, np.array([[2], [N - 1]])) == {"order_statistics": 1}


MANY: dict[str, Callable[[Any], Any]] = {
    "half": lambda x: np.sort(x)[:, N // 2:], "with a step": lambda x: np.sort(x)[:, 3:60:9], "all": lambda x: (lambda s: (s[:, 3], s * 2))(np.sort(x)), "none": lambda x: np.sort(x)[:, 5:5],
    "a result": lambda x: (lambda s: (s, s[:, 1]))(np.sort(x)), "small": lambda x: np.median(x[:, :N - 1], 1), "half precision": lambda x: np.sort(
        x.astype(np.float16))[:, 1], "complex": lambda x: np.sort(x + 1j)[:, 1], "truth": lambda x: np.sort(x > 0)[:, 1],
    "everywhere": lambda x: np.quantile(np.tile(x, 20), np.linspace(0, 1, MOST + 1), axis=1), "as an index": lambda x: np.sort((x * 9).astype(int) % 5)[
        np.sort(x > 0)[:, :1].astype(int) * 0, 2] + np.sum(np.sort(x), 1),
}


@pytest.mark.parametrize("name", MANY)
def test_others_are_sorted(name: str, rng: np.random.Generator) -> None:
    found = narrowed(MANY[name], rng.standard_normal((2, N)))
    assert found["sort"] and not (found["order_statistics"] and name != "as an index"), found


def test_a_graph_without_such_sorts_is_the_same(rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, N))
    for function in (np.sin, np.sort, lambda x: np.sort(x[:, :9])[:, 1], lambda x: np.partition(x, 9)):
        graph = trace(function, (x,)).graph
        assert narrow_sorts(graph).graph is graph


def test_partitions(rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, N))
    assert narrowed(lambda x: np.partition(x, (7, -1))[:, 7], x) == {"order_statistics": 1}
    assert narrowed(lambda x: np.partition(x, 7)[:, 8], x) == {"order_statistics": 1, "argpartition": 1}
    assert narrowed(lambda x: np.partition(x, 7)[:, :8], x) == {"order_statistics": 1, "argpartition": 1}
    assert narrowed(lambda x: np.partition(x, (1, 100, 200, 300, 400)), x) == {"sort": 1}


def test_derivatives_do_not_sort(rng: np.random.Generator) -> None:
    graph = trace(lambda x: np.sum(np.median(np.sin(x), 1) ** 2), (rng.standard_normal((2, N)),)).graph
    joint = derive(graph, (0,), [INPUT_SEED]).graph
    assert calls(joint) == {"order_statistics": 1, "order_positions": 1}
    assert calls(lower(graph).simplified) == {"order_statistics": 1}
