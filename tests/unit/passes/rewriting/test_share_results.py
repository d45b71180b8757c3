"""Eigenvalues, singular values and sorted elements are read out of what is computed too, and stay calls of their own elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import derive, split
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.passes.rewriting.share_results import share_results

LIBRARY = {"eigvalsh", "eigh", "eigvals", "eig", "svdvals", "svd"}
VALUES = {
    "eigvalsh": (lambda a: np.linalg.eigvalsh(a), lambda a: np.linalg.eigh(a)[1]),
    "upper triangle": (lambda a: np.linalg.eigvalsh(a, "U"), lambda a: np.linalg.eigh(a, "U")[1]),
    "eigvals": (lambda a: np.linalg.eigvals(a), lambda a: np.linalg.eig(a)[1]),
    "singular values": (lambda a: np.linalg.svd(a, compute_uv=False), lambda a: np.linalg.svd(a, full_matrices=False)[0]),
}


def calls(graph: Graph) -> Counter[str]:
    return Counter(value.op.name for value in graph.body if value.op.name in LIBRARY)


def matrices(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> np.ndarray:
    a = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype.startswith("c") else 0.0)
    return a.astype(dtype)


def shared(function: Callable[..., Any], *arguments: Any) -> Graph:
    graph = trace(function, arguments).graph
    result = share_results(graph)
    tolerance = 1e-4 if arguments[0].dtype.itemsize == 4 else 1e-11
    for found, expected in zip(interpret(result, arguments), interpret(graph, arguments), strict=True):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    return result


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("name", VALUES)
def test_values_are_read_out_of_factors(name: str, dtype: str, rng: np.random.Generator) -> None:
    values, vectors = VALUES[name]
    for shape in [(4, 4), (2, 3, 3), (0, 3, 3)] + [(4, 2), (2, 5)] * (name == "singular values"):
        a = matrices(shape, dtype, rng)
        assert calls(shared(lambda a: (values(a), vectors(a), values(a) * 2), a)).total() == 1
        assert calls(shared(lambda a: values(a), a)).total() == 1
        assert calls(shared(lambda a: (values(a), vectors(a * 2)), a)).total() == 2


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sorted_elements_are_gathered(axis: int, rng: np.random.Generator) -> None:
    x = np.round(rng.standard_normal((5, 7)), 1)

    def sorts(kind: str | None) -> Callable[..., Any]:
        return lambda x: (np.sort(x, axis), np.argsort(x, axis, kind=kind))

    assert [value.op.name for value in shared(sorts("stable"), x).body].count("sort") == 0
    assert [value.op.name for value in shared(sorts(None), x).body].count("sort") == 1          # positions of equal elements differ
    derivative = derive(trace(lambda x: np.sum(np.sort(x, axis) ** 2), (x,)).graph, (0,), [INPUT_SEED])
    names = [value.op.name for value in share_results(derivative.graph).body]
    assert (names.count("sort"), names.count("argsort")) == (0, 1)


def test_another_triangle_is_another_matrix(rng: np.random.Generator) -> None:
    a = matrices((3, 3), "f8", rng)
    assert calls(shared(lambda a: (np.linalg.eigvalsh(a), np.linalg.eigh(a, "U")[1]), a)) == {"eigvalsh": 1, "eigh": 1}


def test_values_of_values_stay_where_their_matrix_is_another_one(rng: np.random.Generator) -> None:
    def both(a):
        b = np.linalg.eigvalsh(a)[:, None] * a
        return np.linalg.eigvalsh(b), np.linalg.eigh(b)[1], np.linalg.eigh(a)[1]

    found = calls(shared(both, matrices((3, 3), "f8", rng)))
    assert found["eigh"] == 2 and found["eigvalsh"] <= 1


def test_inside_of_loops(rng: np.random.Generator) -> None:
    def powers(a):
        def step(k, b):
            return b / np.linalg.eigvalsh(b)[-1] + np.linalg.eigh(b)[1]
        return bw.fori_loop(0, 3, step, a)

    loop = next(value for value in shared(powers, matrices((3, 3), "f8", rng)).body if value.op.regions)
    assert calls(loop.attrs["body"]) == {"eigh": 1}


@pytest.mark.parametrize("name", VALUES)
def test_a_derivative_factors_once(name: str, rng: np.random.Generator) -> None:
    values, _ = VALUES[name]
    a = matrices((4, 4), "f8", rng) + np.diag([1.0, 2.0, 4.0, 8.0])

    def loss(a):
        return np.sum(np.abs(values(a)) ** 2)

    joint = derive(trace(loss, (a,)).graph, (0,), [INPUT_SEED])
    parts = split(joint.graph, [1], 1)
    assert calls(parts.forward).total() == 1 and not calls(parts.adjoint)
    bw.check_grads(loss, (a,), order=1)
