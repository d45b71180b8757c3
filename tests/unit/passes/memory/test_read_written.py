"""Values that were written to a part of an array are read from there, beside other parts; steps overwrite states that nothing reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.passes.memory.read_written import read_written

STEP = """graph g(%a: f64[900], %b: f64[900]) -> (f64[900], f64[898]) {
  %left:  f64[898] = slice %a {starts=[0], sizes=[898], steps=[1]}
  %right: f64[898] = slice %a {starts=[2], sizes=[898], steps=[1]}
  %v:     f64[898] = add %left, %right
  %c:     f64[900] = slice_update %b, %v {starts=[1], steps=[1]}
"""
BESIDE = STEP + """  %double: f64[898] = multiply %v, 2.0
  %next:   f64[898] = slice %c {starts=[0], sizes=[898], steps=[1]}
  %w:      f64[898] = subtract %double, %next
  return %c, %w
}
"""
ALONE = STEP + """  %w: f64[898] = multiply %v, 2.0
  return %c, %w
}
"""
AFTER_AN_UPDATE = BESIDE.replace("  %double", "  %d: f64[900] = slice_update %c, %left {starts=[1], steps=[1]}\n  %double").replace(
    "return %c", "return %d")


@pytest.mark.parametrize(("text", "is_read"), [(BESIDE, True), (ALONE, False), (AFTER_AN_UPDATE, False)], ids=["beside", "alone", "updated"])
def test_what_is_read(text: str, is_read: bool) -> None:
    graph = parse_graph(text)
    found = read_written(graph)
    verify(found)
    assert (found is not graph) == is_read
    assert any(value.op is ops.slice and value.operands[0].op is ops.slice_update and value.attrs["starts"] == (1,)
               for value in found.body) == is_read
    inputs = [np.arange(900.0) ** 1.5, np.arange(900.0)]
    for one, other in zip(interpret(graph, inputs), interpret(found, inputs), strict=True):
        np.testing.assert_array_equal(one, other)


ADDED = """graph g(%a: f64[900], %v: f64[898]) -> (f64[900], f64[898]) {
  %array: f64[900] = multiply %a, 0.5
  %added: f64[900] = slice_add %array, %v {starts=[1], steps=[1]}
  %part:  f64[898] = slice %array {starts=[1], sizes=[898], steps=[1]}
  %sum:   f64[898] = add %part, %v
  %w:     f64[898] = multiply %sum, 2.0
  return %added, %w
}
"""
READ_ELSEWHERE = ADDED.replace("  %w: ", "  %b: f64[900] = sqrt %array\n  %w: ").replace("return %added", "return %b")
OTHER_PART = ADDED.replace("%array {starts=[1]", "%array {starts=[2]")
SUBTRACTED = ADDED.replace("add %part", "subtract %part")


@pytest.mark.parametrize(("text", "is_read"), [(ADDED, True), (READ_ELSEWHERE, False), (OTHER_PART, False), (SUBTRACTED, False)],
                         ids=["added", "read_elsewhere", "other_part", "subtracted"])
def test_which_sums_are_read(text: str, is_read: bool) -> None:
    graph = parse_graph(text)
    found = read_written(graph)
    verify(found)
    assert (found is not graph) == is_read
    assert any(value.op is ops.slice and value.operands[0].op is ops.slice_add for value in found.body) == is_read
    assert not is_read or not any(value.op is ops.add for value in found.body)
    inputs = [np.arange(900.0) ** 1.5, np.arange(898.0)]
    for one, other in zip(interpret(graph, inputs), interpret(found, inputs), strict=True):
        np.testing.assert_array_equal(one, other)


def jacobi(a: Any, b: Any) -> Any:
    a, b = a.copy(), b.copy()
    for _ in range(30):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return np.sum(a * a) + b[1, 1]


def leapfrog(a: Any, b: Any) -> Any:
    """The state before is read by what overwrites it, at the same points."""
    old, now = a.copy(), b.copy()
    for _ in range(30):
        new = np.zeros_like(now)
        new[1:-1, 1:-1] = 1.9 * now[1:-1, 1:-1] - old[1:-1, 1:-1] + 0.1 * (now[2:, 1:-1] + now[1:-1, :-2])
        old, now = now, new
    return np.sum(now * now) + old[2, 2]


def staggered(a: Any, b: Any) -> Any:
    """Two fields that are updated by differences of each other, and a third that keeps the one before."""
    e, h, last = a.copy(), b.copy(), a * 0
    for _ in range(30):
        last[1:, :] = e[1:, :] * 0.5
        h[:-1, :] -= 0.4 * (e[1:, :] - e[:-1, :])
        e[1:, :] -= 0.4 * (h[1:, :] - h[:-1, :])
    return np.sum(e * e) + np.sum(last * h)


@pytest.mark.parametrize("program", [jacobi, leapfrog, staggered], ids=lambda program: program.__name__)
def test_steps(program: Any, rng: np.random.Generator) -> None:
    a, b = rng.random((40, 30)), rng.random((40, 30))
    before = a.copy(), b.copy()
    np.testing.assert_allclose(bw.jit(program)(a, b), program(a, b), rtol=1e-12)
    value, (of_a, of_b) = bw.value_and_grad(program, argnums=(0, 1))(a, b)
    np.testing.assert_allclose(value, program(a, b), rtol=1e-12)
    step_a, step_b = rng.random((40, 30)), rng.random((40, 30))
    difference = (program(a + 1e-6 * step_a, b + 1e-6 * step_b) - program(a - 1e-6 * step_a, b - 1e-6 * step_b)) / 2e-6
    np.testing.assert_allclose(np.sum(of_a * step_a) + np.sum(of_b * step_b), difference, rtol=1e-6)
    np.testing.assert_array_equal(a, before[0])
    np.testing.assert_array_equal(b, before[1])


def test_half_steps_of_jacobi_are_one_kernel_and_copy_nothing(rng: np.random.Generator) -> None:
    a = rng.random((80, 80))
    text = bw.jit(jacobi).lower(a, a).as_text("loops")
    kernels = [part for part in text.split("\n\n") if part.startswith("kernel b0b.")]
    assert len(kernels) == 1 and "inout" in kernels[0] and "scratch" not in kernels[0] and kernels[0].count("store") == 1
