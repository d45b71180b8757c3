"""The entry: layouts of arrays, copies of those that are not contiguous, results that are written into arguments, and what overlaps."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bwcompiler.ir.contracts.call_signature import CallSignature, Leaf
from bwcompiler.ir.types import F64, tensor
from bwcompiler.runtime.executable import Executable
from tests.unit.runtime.programs import (
    VECTOR,
    X,
    Y,
    Z,
    copy_bytes,
    load,
    loop,
    native,
    program,
    raise_error,
    store,
    sum_of,
    takes_slow_path,
    vectors,
)

INTO = replace(vectors(3), result_into=(2,))
LAYOUTS = {
    "strided": np.arange(10.0)[::2],
    "reversed": np.arange(5.0)[::-1],
    "misaligned": np.zeros(41, np.uint8)[1:].view(np.float64),
    "repeated": np.broadcast_to(np.float64(2.5), 5),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_layout_is_taken(bind: Callable[..., Any], name: str) -> None:
    add, other = bind(sum_of(2), vectors(2)), LAYOUTS[name]
    np.testing.assert_array_equal(add(X, other), X + other)
    np.testing.assert_array_equal(add(other, other), 2 * other)
    strict = bind(sum_of(2), vectors(2, layouts=("C", "C")))
    assert takes_slow_path(strict, X, other) and not takes_slow_path(strict, X, X)


def test_layouts_that_are_asked_for(bind: Callable[..., Any]) -> None:
    type_ = tensor(F64, (2, 3))
    a = np.arange(6.0).reshape(2, 3)
    fortran, sliced = np.asfortranarray(a), np.arange(24.0).reshape(4, 6)[::2, ::2]
    copy = bind(copy_bytes([(0, 1, 48)], 2), vectors(1, type_, layouts=((8, 16),)))
    np.testing.assert_array_equal(copy(fortran), a)
    assert takes_slow_path(copy, a) and takes_slow_path(copy, sliced)
    backwards = bind(copy_bytes([(0, 1, 48)], 2), vectors(1, type_, layouts=((-24, 8),)))
    np.testing.assert_array_equal(backwards(a[::-1]), a[::-1])


def test_copies_are_released() -> None:
    add, strided = native(sum_of(2), vectors(2)), np.arange(10.0)[::2]
    references = sys.getrefcount(strided)
    tracemalloc.start()
    add(strided, strided)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        add(strided, strided)
    assert tracemalloc.get_traced_memory()[0] - before < 200 and sys.getrefcount(strided) == references
    tracemalloc.stop()


def test_result_into_an_argument(bind: Callable[..., Any]) -> None:
    add = bind(program(4, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(3, "%s"))), INTO)
    out = np.empty(5)
    assert add(X, Y, out) is out
    np.testing.assert_array_equal(out, X + Y)


def test_unusable_output_takes_the_slow_path() -> None:
    add = native(program(4, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(3, "%s"))), INTO)
    frozen = np.empty(5)
    frozen.flags.writeable = False
    memory = np.arange(12.0)
    assert takes_slow_path(add, X, Y, frozen) and takes_slow_path(add, X, Y, np.empty(10)[::2])
    assert takes_slow_path(add, X, Y, np.zeros(41, np.uint8)[1:].view(np.float64))
    for start, overlaps in ((0, True), (1, True), (4, True), (5, False), (6, False)):
        out = memory[start : start + 5]
        assert takes_slow_path(add, memory[:5], Y, out) == takes_slow_path(add, Y, memory[:5], out) == overlaps
    captured = native(sum_of(2).replace("%p2", "%p3"), replace(INTO, arguments=(Leaf(0), Leaf(1)), argument_types=(VECTOR,) * 2,
                      argument_kinds=("array",) * 2, captured_types=(VECTOR,), result_into=(1,)), [memory[:5]])  # fmt: skip
    assert takes_slow_path(captured, X, memory[4:9])


def windows(memory: np.ndarray) -> Iterator[np.ndarray]:
    """Views of five elements, forwards, backwards and in steps."""
    for start in range(0, 12, 2):
        yield from (memory[start:start + 5], memory[start:start + 5][::-1], memory[start:start + 10:2], memory[start:start + 15:3][::-1])


def test_arrays_in_steps_reach_as_far_as_they_do(bind: Callable[..., Any]) -> None:
    add = bind(program(4, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(3, "%s"))), INTO)
    memory, found = np.arange(28.0), set()
    for start in range(0, 24, 3):
        out = memory[start:start + 5]
        for other in windows(memory):
            overlaps = np.may_share_memory(out, other)
            assert takes_slow_path(add, other, Y, out) == takes_slow_path(add, Y, other, out) == overlaps
            found.add((other.strides, overlaps))
    assert len(found) == 8


def test_matrices_in_steps_reach_as_far_as_they_do(bind: Callable[..., Any]) -> None:
    matrix, memory = tensor(F64, (2, 3)), np.arange(40.0)
    signature = CallSignature(arguments=(Leaf(0), Leaf(1)), argument_types=(matrix, VECTOR), argument_kinds=("array",) * 2, result=Leaf(0),
                              result_types=(VECTOR,), result_kinds=("array",), result_into=(1,))
    copy = bind(copy_bytes([(0, 1, 40)], 2), signature)
    square = memory[8:32].reshape(4, 6)
    for part in (square[:2, :3], square[::2, ::2], square[::-2, ::-1][:, :3], square.T[::3, :3], square[2:, ::-2], square[1:3, 3:]):
        for start in range(0, 36, 2):
            out = memory[start:start + 5]
            assert takes_slow_path(copy, part, out) == np.may_share_memory(part, out), (part.strides, start)


def test_results_that_are_not_returned_are_written_all_the_same(bind: Callable[..., Any]) -> None:
    text = program(6, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(5, "%s")) + "")
    signature = CallSignature(
        arguments=(Leaf(0), Leaf(1), Leaf(2)), argument_types=(VECTOR,) * 3, argument_kinds=("array",) * 3, captured_types=(VECTOR,),
        result=Leaf(0), result_types=(VECTOR,) * 2, result_kinds=("array",) * 2, result_into=(None, 2))
    add, out = bind(text, signature, [Z]), np.empty(5)
    references = sys.getrefcount(out)
    assert add(X, Y, out) is not out
    np.testing.assert_array_equal(out, X + Y)
    assert sys.getrefcount(out) == references


def test_slow_run_converts_copies_and_handles_overlap() -> None:
    run = Executable(sum_of(2), vectors(2)).form(raise_error).run
    for other in (LAYOUTS["strided"], LAYOUTS["misaligned"], np.arange(5.0).astype(">f8"), np.arange(5), [0.0] * 5):
        np.testing.assert_array_equal(run([X, other]), X + np.asarray(other))
    text = program(4, loop(5, load(0) + load(1) + "  %s = fadd double %x0, %x1\n" + store(3, "%s")))
    memory = np.arange(12.0)
    out = memory[1:6]
    assert Executable(text, INTO).form(raise_error).run([memory[:5], X, out]) is out
    np.testing.assert_array_equal(out, 2 * X)
