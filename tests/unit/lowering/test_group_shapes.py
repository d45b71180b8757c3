"""Groups that differ in numbers only share a kernel, which is told the numbers."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.loop import Kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.lowering.kernels.loops_to_llvm import kernel_to_llvm
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from tests.support.graph_strategies import run_compiled
from tests.support.lowered_programs import assert_near, run_steps, steps_of
from tests.support.targets import HOST

HEAD = "graph g(%x: f64[9]) -> f64[9] {"


def shared(text: str) -> tuple[list[Kernel], list[list[object]]]:
    """The distinct kernels of a graph and the words of its steps, after a check of what they compute."""
    graph, steps = steps_of(text)
    arrays = [np.linspace(1, 2, value.type.size).reshape(value.shape) for value in graph.inputs]
    expected = run_steps(graph, steps, arrays)
    for found, right in zip(run_compiled(graph, arrays), expected, strict=True):
        assert_near(np.asarray(found), right, text)
    kernels = {id(step.kernel): step.kernel for step in steps if step.kernel is not None}
    return list(kernels.values()), [list(step.words) for step in steps if step.kernel is not None and step.value is None]


def normalised(*factors: str) -> str:
    """y = factor * x / sum(x * x), once per factor: one group each, of one shape."""
    lines, y = [HEAD], "%x"
    for k, factor in enumerate(factors):
        lines += [f"  %square{k}: f64[9] = multiply {y}, {y}", f"  %sorted{k}: f64[9] = cumsum %square{k} {{axis=0, reverse=false}}",
                  f"  %y{k}: f64[9] = multiply %sorted{k}, {factor}"]
        y = f"%y{k}"
    return "\n".join([*lines, f"  return {y}", "}"])


def test_constants_that_differ_are_words():
    kernels, words = shared(normalised("0.5", "0.25", "0.125", "0.125", "3.0"))
    told = [entry for entry in words if entry]
    assert told == [[0.5], [0.25], [0.125], [0.125]]           # the last group has no square of the next one
    assert len([kernel for kernel in kernels if kernel.words]) == 1
    assert any("c0: f64" in kernel_to_text(kernel) and "* c0" in kernel_to_text(kernel) for kernel in kernels)


def test_constants_that_are_the_same_stay_in_the_text():
    kernels, words = shared(normalised("0.5", "0.5", "0.5"))
    assert not any(words) and not any(kernel.words for kernel in kernels)


def test_zeros_of_both_signs_differ():
    _, words = shared(normalised("0.0", "-0.0", "0.0"))
    assert [str(entry[0]) for entry in words if entry] == ["0.0", "-0.0"]


def test_other_extents_are_another_kernel():
    text = """
graph g(%x: f64[9], %y: f64[8]) -> (f64[9], f64[8]) {
  %a: f64[9] = multiply %x, 2.0
  %b: f64[8] = multiply %y, 2.0
  return %a, %b
}"""
    assert len(shared(text)[0]) == 2


def reading(*starts: tuple[int, ...]) -> str:
    """y + slices of 3 elements at these starts, once per entry; summed up so that each is a group of its own."""
    lines, y = ["graph g(%x: f64[40], %z: f64[3]) -> f64[3] {"], "%z"
    for k, row in enumerate(starts):
        for n, start in enumerate(row):
            lines += [f"  %s{k}_{n}: f64[3] = slice %x {{starts=[{start}], sizes=[3], steps=[1]}}", f"  %t{k}_{n}: f64[3] = add {y}, %s{k}_{n}"]
            y = f"%t{k}_{n}"
        lines.append(f"  %y{k}: f64[3] = cumsum {y} {{axis=0, reverse=false}}")
        y = f"%y{k}"
    return "\n".join([*lines, f"  return {y}", "}"])


@pytest.mark.parametrize("starts, words", [
    (((0, 4), (1, 5), (7, 11)), [[0], [1], [7]]),                       # at one distance: one word
    (((0, 4), (1, 9), (7, 11)), [[0, 4], [1, 9], [7, 11]]),
    (((3, 4), (3, 9), (3, 11)), [[4], [9], [11]]),
    (((3, 4), (3, 4)), [[], []]),
], ids=["in step", "apart", "one moves", "none moves"])
def test_starts(starts, words):
    assert shared(reading(*starts))[1] == words


def test_starts_that_move_together_only_move_pointers():
    kernel = shared(reading((0, 4), (1, 5), (7, 11)))[0][0]
    text = kernel_to_text(kernel)
    assert "n0 in 0..7" in text and "%x[i0 + n0]" in text and "%x[i0 + n0 + 4]" in text
    function = kernel_to_llvm(kernel, ScalarEmitter(HOST))
    assert function.words == () and "i64 %w" not in function.text


def test_an_element_that_one_group_reads_twice_is_two_in_others(rng):
    """tanh(b[p, i]) * b[i, i]: where p == i, both members read one slice; elsewhere their starts differ by other numbers."""
    places = np.array([5, 0, 0, 0, 4, 3, 0])

    def steps(b, x):
        b = b * 0.5
        y = x.copy()
        for i in range(7):
            y[0] += 0.3 * (np.tanh(b[places[i], i]) * b[i, i])
            y[i - 2] = 0.4 * y[i - 2] + x[i]
        return y

    b, x = rng.standard_normal((7, 7)), rng.standard_normal(7)
    np.testing.assert_allclose(bw.jit(steps)(b, x), steps(b, x), rtol=1e-13)
