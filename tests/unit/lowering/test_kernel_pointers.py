"""Where the pointers of kernels may point."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.ir.loop import Kernel
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.lowering.kernels.emitter.kernel_pointers import first_elements
from bwcompiler.lowering.kernels.loops_to_llvm import kernel_to_llvm
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from tests.support.kernels import NativeKernels, copies
from tests.support.targets import HOST

HEAD = "kernel k0(%x: in f64[8,5], %v: in i64[4], %y: out f64[8,5])\n"


def kernel_of(body: str) -> Kernel:
    kernel = parse_kernel(HEAD + body)
    verify_kernel(kernel)
    return kernel


@pytest.mark.parametrize("body, starts", [
    ("  for i in 0..5 vector\n    store %y[2, i], %x[7, i] + %x[6, i]\n", {"y": 10, "x": 30}),
    ("  for i in 0..5 vector\n    store %y[2, i], %x[7, i] + %x[0, i]\n", {"y": 10}),
    ("  for i in 0..5 vector\n    store %y[2, 4 - i], %x[1, 4 - i]\n", {"y": 14, "x": 9}),                  # pointers into the middle
    ("  fill %y, 0.0\n  for i in 0..5\n    store %y[2, i], 1.0\n", {}),                                      # fills begin at 0
    ("  for i in 0..5\n    %y[3, i] add= %x[%v[2] + 1, %v[3]]\n", {"y": 15, "x": 5, "v": 2}),                  # data in positions
    ("  reduce best: f64 = argmax\n  for i in 0..3\n    best argmax= %x[3, i + 1] at %v[i + 1]\n"
     "  for i in 0..5\n    store %y[%v[3] + 1, i], best\n", {"x": 16, "v": 1, "y": 5}),                      # positions of searches
    ("  for i in 0..5\n    let a = %x[2, i] if in_range(i - 2, 0, 3) else %x[3, i]\n    store %y[2, i], a\n", {"x": 10, "y": 10}),
], ids=["rows", "from the start", "backwards", "fill", "data", "search", "guard"])
def test_first_elements(body, starts):
    assert {buffer.name: start for buffer, start in first_elements(kernel_of(body)).items()} == starts


def test_buffers_of_one_memory_begin_at_one_element():
    """The one is read from element 11 on, the other is written from element 5 on."""
    kernel = kernel_of("  for i in 0..5 vector\n    store %y[1, i], 1.0\n  for i in 0..4 vector\n    store %y[2, i + 1], %x[2, i + 1]\n")
    x, _, y = kernel.buffers
    assert first_elements(kernel) == {x: 11, y: 5}
    assert first_elements(kernel, {x: y}) == {x: 5, y: 5}


def test_kernels_that_differ_in_their_rows_are_one_function():
    body = "  for i in 0..5 vector\n    store %y[{0}, i], %x[{0}, i] * %x[{1}, i]\n"
    texts = [kernel_to_llvm(kernel_of(body.format(k, k + 1)), ScalarEmitter(HOST)) for k in (0, 1, 4)]
    assert len({text.text for text in texts}) == 1
    assert [text.starts for text in texts] == [(0, 0, 0), (5, 0, 5), (20, 0, 20)]
    assert kernel_to_llvm(kernel_of(body.format(0, 2)), ScalarEmitter(HOST)).text != texts[0].text


def test_native_code_reads_and_writes_where_the_kernel_says():
    kernel = kernel_of("  for i in 0..5\n    %y[3, 4 - i] add= %x[%v[2] + 1, i]\n    store %y[%v[1] + 4, i], %x[7, 4 - i]\n")
    arrays = [np.arange(40.0).reshape(8, 5), np.array([9, 1, 3, 9]), np.zeros((8, 5))]
    expected, found = copies(arrays), copies(arrays)
    run_kernel(kernel, expected)
    NativeKernels([kernel]).run("k0", found)
    np.testing.assert_array_equal(found[2], expected[2])
    assert found[2][5].tolist() == [39.0, 38.0, 37.0, 36.0, 35.0]
