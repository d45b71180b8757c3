"""Slices that are read after an update are copied before it: in loops, and in their derivatives, no whole array is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive, lower
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.lowering.steps import LoweredBody
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.passes.memory.save_slices import save_slices
from tests.support.loop_programs import check_gradients


def names(text: str, mutable: int = 1) -> list[str]:
    """The ops of a graph over a state %a and others, once its slices are saved; its results are as before."""
    graph = parse_graph("graph g(%a: f64[9], %b: f64[9]) -> (f64[9], f64[2]) {\n" + text + "\n}\n")
    found = save_slices(graph, graph.inputs[:mutable])
    verify(found)
    inputs = [np.arange(9.0), np.arange(9.0) ** 2]
    for one, other in zip(interpret(graph, inputs), interpret(found, inputs), strict=True):
        np.testing.assert_array_equal(one, other)
    return [value.op.name for value in found.body]


FIRST = "  %v: f64[2] = slice %a {starts=[1], sizes=[2], steps=[1]}\n"
UPDATE = "  %w: f64[2] = slice %b {starts=[0], sizes=[2], steps=[1]}\n  %c: f64[9] = slice_update %a, %w {starts=[0], steps=[1]}\n"
SECOND = "  %d: f64[9] = slice_add %c, %v {starts=[2], steps=[1]}\n"


def test_a_slice_that_is_written_after_an_update_is_copied_before() -> None:
    found = names(FIRST + UPDATE + SECOND + "  return %d, %w")
    assert found == ["slice", "slice", "barrier", "slice_update", "slice_add"]


APART = "  %v: f64[2] = slice %a {starts=[5], sizes=[2], steps=[1]}\n"


def test_a_slice_that_updates_leave_as_it_is_is_read_of_the_last_version() -> None:
    found = names(APART + UPDATE + SECOND + "  return %d, %w")
    assert found == ["slice", "slice_update", "slice", "slice_add"]


def test_a_slice_that_is_added_to_itself_is_copied_before() -> None:
    last = "  %d: f64[9] = slice_add %c, %v {starts=[6], steps=[1]}\n"
    found = names(APART + UPDATE + last + "  return %d, %w")
    assert found == ["slice", "slice", "barrier", "slice_update", "slice_add"]


def test_a_slice_of_which_one_reader_comes_too_late_is_copied_for_all() -> None:
    last = SECOND + "  %e: f64[9] = slice_add %d, %w {starts=[6], steps=[1]}\n  %f: f64[9] = slice_add %e, %v {starts=[0], steps=[1]}\n"
    found = names(APART + UPDATE + last + "  return %f, %w")
    assert found.count("barrier") == 1 and found.count("slice") == 2


def test_a_slice_that_is_taken_behind_the_update_is_taken_before() -> None:
    found = names(UPDATE + FIRST + SECOND + "  return %d, %w")
    assert found.index("barrier") < found.index("slice_update")


def test_a_slice_of_a_slice_is_read_from_the_copy() -> None:
    more = "  %u: f64[1] = slice %v {starts=[1], sizes=[1], steps=[1]}\n"
    last = "  %d: f64[9] = slice_add %c, %u {starts=[2], steps=[1]}\n"
    found = names(FIRST + more + UPDATE + last + "  return %d, %w")
    assert found == ["slice", "slice", "barrier", "slice_update", "slice", "slice_add"]


def test_what_does_not_depend_on_the_update_stands_in_front_of_it() -> None:
    read = "  %s: f64[2] = sin %v\n"
    assert names(FIRST + UPDATE + read + "  return %c, %s") == ["slice", "slice", "sin", "slice_update"]


@pytest.mark.parametrize(("text", "mutable"), [
    (FIRST + UPDATE + SECOND + "  return %d, %w", 0),                                                 # the array has to stay as it is
    (FIRST + "  %s: f64[2] = sin %v\n" + UPDATE + "  return %c, %s", 1),                               # everything is read before
    (UPDATE + "  %d: f64[9] = add %c, %a\n  return %d, %w", 1),                                        # the whole array is read later
    (FIRST + UPDATE + "  %d: f64[9] = slice_add %c, %v {starts=[2], steps=[1]}\n  %e: f64[9] = add %d, %a\n  return %e, %w", 1)])
def test_nothing_is_copied(text: str, mutable: int) -> None:
    assert "barrier" not in names(text, mutable)


# ----- whole loops
def lu(given: Any) -> Any:
    a = given.copy()
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, len(a)):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def rank_updates(given: Any) -> Any:
    """C += A Aᵀ in the lower triangle, column by column of A."""
    a = given.copy()
    for i in range(len(a)):
        for k in range(len(a)):
            a[i, :i + 1] += 0.5 * given[i, k] * given[:i + 1, k]
    return a


def triangular_product(given: Any) -> Any:
    b = given.copy()
    for i in range(len(b)):
        for j in range(len(b)):
            b[i, j] += np.dot(given[i + 1:, i], b[i + 1:, j])
    return b


def triangular_solve(given: Any) -> Any:
    x = given[0].copy()
    for i in range(len(x)):
        x[i] = (x[i] - given[i, :i] @ x[:i]) / given[i, i]
    return x


def sweep(given: Any) -> Any:
    a = given.copy()
    n = len(a)
    for i in range(1, n - 1):
        a[i, 1:-1] += a[i - 1, :-2] + a[i + 1, 2:]
        for j in range(1, n - 1):
            a[i, j] = (a[i, j] + a[i, j - 1]) / 3.0
    return a


def symmetric_rows(given: Any) -> Any:
    a = np.eye(given.shape[1])
    for i in range(given.shape[1] - 1):
        a[i + 1:, i] = a[i, i + 1:] = given[:, i] @ given[:, i + 1:]
    return a


def growing_reversal(given: Any) -> Any:
    y = given[0].copy()
    for k in range(1, len(y)):
        alpha = given[1, k] + np.dot(np.flip(given[0, :k]), y[:k])
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def swapped_rows(given: Any) -> Any:
    """Rows that data choose."""
    a = given.copy()
    for k in range(len(a) - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        row = a[k].copy()
        a[k] = a[p]
        a[p] = row
        a[k + 1:, k:] -= np.outer(a[k + 1:, k] / a[k, k], a[k, k:])
    return a


PROGRAMS = [lu, rank_updates, triangular_product, triangular_solve, sweep, symmetric_rows, growing_reversal, swapped_rows]


def matrix(n: int) -> Any:
    return np.random.default_rng(n).normal(size=(n, n)) / n + np.eye(n)


def bodies(steps: Any) -> Iterator[LoweredBody]:
    for step in steps:
        for body in step.bodies:
            yield body
            yield from bodies(body.steps)


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_array_is_copied_in_a_loop(program: Any) -> None:
    n = 12
    traced = trace(lambda given: np.sum(program(given) ** 2), (matrix(n),))
    for graph in (traced.graph, derive(traced.graph, [0], [INPUT_SEED]).graph):
        assert any(value.op is ops.loop for value in graph.body)
        for body in bodies(lower(graph).steps):
            copied = {found.operand for found in body.plan.copied.values()}.union([value for value, _ in body.plan.copies])
            copied.update([body.graph.inputs[number] for number in body.swapped])
            assert all(value.type.size <= 1 for value in copied), f"{copied} in {body.graph}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients(program: Any) -> None:
    check_gradients(lambda _, x: program(x), matrix(5), order=1)
