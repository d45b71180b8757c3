"""Helpers: a function run by NumPy and through its traced graph must give the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import tree
from bwcompiler.frontend import TraceResult, trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from tests.support.arrays import copies


def run_traced(fun: Callable[..., Any], *args: Any) -> tuple[Any, dict[int, Any], TraceResult]:
    """What fun returns when traced and interpreted, its mutated leaves, and the trace."""
    result = trace(fun, args)
    verify(result.graph)
    leaves = [np.asarray(leaf) for leaf in result.arguments.dynamic_leaves]      # without integers that became static
    found = interpret(result.graph, [*leaves, *result.captured])
    count = len(result.outputs)
    mutated = dict(zip([result.arguments.dynamic[number] for number in result.mutated], found[count:], strict=False))
    return tree.unflatten(result.output_tree, found[:count]), mutated, result


def assert_same(actual: Any, expected: Any) -> None:
    """Equal dtype, shape and (up to rounding) value."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype, f"dtype {actual.dtype}, NumPy gives {expected.dtype}"
    assert actual.shape == expected.shape, f"shape {actual.shape}, NumPy gives {expected.shape}"
    tolerance = 1e-5 if expected.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def compare(fun: Callable[..., Any], *args: Any) -> TraceResult:
    """fun(*args) by NumPy and by its graph: same results, same mutations of the arguments."""
    plain = copies(args)
    with np.errstate(all="ignore"):
        expected = fun(*plain)
        actual, mutated, result = run_traced(fun, *copies(args))
    expected_leaves, actual_leaves = _leaves(expected), tree.leaves(actual)
    assert len(expected_leaves) == len(actual_leaves)
    for one, other, kind in zip(actual_leaves, expected_leaves, result.result_kinds, strict=True):
        assert_same(one, other)
        if isinstance(other, np.ndarray | np.generic):
            assert kind == ("array" if isinstance(other, np.ndarray) else "scalar"), f"a {kind}, NumPy gives {type(other)}"
    for position, (leaf, before) in enumerate(zip(tree.leaves((plain, {})), tree.leaves((args, {})), strict=True)):
        if position in mutated:
            assert_same(mutated[position], leaf)
        else:
            np.testing.assert_array_equal(leaf, before)
    return result


def as_python(program: Callable[[Any], Any], x: Any, *others: Any) -> None:
    """Value and gradient of a program of an array of numbers, compiled: Python's, and central differences; at x and at other places."""
    compiled = bw.value_and_grad(program)
    for start in (x, *(others or (0.5 - x,))):
        found, gradient = compiled(start.copy())
        np.testing.assert_allclose(found, program(start.copy()), rtol=1e-12)
        direction, h = np.cos(np.arange(float(x.size))).reshape(x.shape), 1e-6
        difference = (program(start + h * direction) - program(start - h * direction)) / (2 * h)
        assert np.sum(gradient * direction) == pytest.approx(difference, rel=2e-5, abs=1e-7)


def _leaves(result: Any) -> list[Any]:
    return [np.array(leaf.tolist()) if isinstance(leaf, np.ndarray) and leaf.dtype == object else leaf
            for leaf in tree.leaves(result)]
