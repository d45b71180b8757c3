"""Kernels of pushes, scans, window adjoints and matrix products: their text, and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.lowering.loops.building.call_kernels import has_call_kernel
from tests.support.kernels import Array, NativeKernels, copies
from tests.support.lowered_programs import run_steps, steps_of

SCATTER_ROWS = """
graph g(%x: f64[6,3], %u: f64[2,3], %i: i64[2]) -> f64[6,3] {
  %out: f64[6,3] = scatter_add %x, %u, %i {axes=[0]}
  return %out
}"""
SCATTER_COLUMNS = """
graph g(%x: f64[3,6], %u: f64[2,3], %i: i64[2]) -> f64[3,6] {
  %out: f64[3,6] = scatter_update %x, %u, %i {axes=[1]}
  return %out
}"""
SCATTER_ELEMENTS = """
graph g(%x: f64[4,5], %u: f64[3,2], %i: i64[3,2], %j: i64[3,2]) -> f64[4,5] {
  %out: f64[4,5] = scatter_add %x, %u, %i, %j {axes=[0,1]}
  return %out
}"""
WINDOWS_ADD = """
graph g(%ct: f64[2,3,4,2,2]) -> f64[2,7,5] {
  %out: f64[2,7,5] = windows_add %ct {shape=[2,7,5], sizes=[2,2], strides=[2,1], low=[0,0], high=[0,0], dilations=[1,1]}
  return %out
}"""
WINDOWS_ADD_OF_A_VIEW = """
graph g(%x: f64[2,2,2,3,9]) -> f64[2,7,5] {
  %part: f64[2,2,2,3,4] = slice %x {starts=[0,0,0,0,3], sizes=[2,2,2,3,4], steps=[1,1,1,1,1]}
  %ct: f64[2,3,4,2,2] = transpose %part {axes=[0,3,4,2,1]}
  %out: f64[2,7,5] = windows_add %ct {shape=[2,7,5], sizes=[2,2], strides=[2,1], low=[0,0], high=[0,0], dilations=[1,1]}
  return %out
}"""
WINDOWS_ADD_OF_COLUMNS = """
graph g(%x: f64[2,2,2,4,3]) -> f64[2,7,5] {
  %ct: f64[2,3,4,2,2] = transpose %x {axes=[0,4,3,2,1]}
  %out: f64[2,7,5] = windows_add %ct {shape=[2,7,5], sizes=[2,2], strides=[2,1], low=[0,0], high=[0,0], dilations=[1,1]}
  return %out
}"""
CUMSUM_ROW = """
graph g(%x: f64[2,4]) -> f64[2,4] {
  %out: f64[2,4] = cumsum %x {axis=1, reverse=false}
  return %out
}"""
CUMSUM_ROW_REVERSE = CUMSUM_ROW.replace("false", "true")
CUMPROD_COLUMN = """
graph g(%x: f64[4,3]) -> f64[4,3] {
  %out: f64[4,3] = cumprod %x {axis=0, reverse=false}
  return %out
}"""
CUMSUM_COLUMN_REVERSE = """
graph g(%x: i64[2,4,3]) -> i64[2,4,3] {
  %out: i64[2,4,3] = cumsum %x {axis=1, reverse=true}
  return %out
}"""
PRODUCT = """
graph g(%x: i64[2,3], %y: i64[3,4]) -> i64[2,4] {
  %out: i64[2,4] = matmul %x, %y
  return %out
}"""
PRODUCT_OF_VIEWS = """
graph g(%x: i64[5,3,2], %y: i64[2,3,40]) -> i64[3,5,40] {
  %a: i64[3,5,2] = transpose %x {axes=[1,0,2]}
  %b: i64[3,2,40] = transpose %y {axes=[1,0,2]}
  %out: i64[3,5,40] = matmul %a, %b
  return %out
}"""
BOOLEAN_PRODUCT = PRODUCT.replace("i64", "bool")

TEXTS = {
    SCATTER_ROWS: """\
kernel k0(%u: in f64[2,3], %i: in i64[2], %out: inout f64[6,3])
  for i0 in 0..2
    for i1 in 0..3 vector
      %out[%i[i0], i1] add= %u[i0, i1]
""",
    SCATTER_COLUMNS: """\
kernel k0(%u: in f64[2,3], %i: in i64[2], %out: inout f64[3,6])
  for i0 in 0..2
    for i1 in 0..3
      store %out[i1, %i[i0]], %u[i0, i1]
""",
    SCATTER_ELEMENTS: """\
kernel k0(%u: in f64[3,2], %i: in i64[3,2], %j: in i64[3,2], %out: inout f64[4,5])
  for i0 in 0..3
    for i1 in 0..2
      %out[%i[i0, i1], %j[i0, i1]] add= %u[i0, i1]
""",
    WINDOWS_ADD: """\
kernel k0(%ct: in f64[2,3,4,2,2], %out: out f64[2,7,5])
  fill %out, 0.0
  for i0 in 0..2
    for i3 in 0..2
      for i4 in 0..2
        for i1 in 0..3
          for i2 in 0..4 vector
            %out[i0, i3 + 2*i1, i4 + i2] add= %ct[i0, i1, i2, i3, i4]
""",
    WINDOWS_ADD_OF_A_VIEW: """\
kernel k0(%x: in f64[2,2,2,3,9], %out: out f64[2,7,5])
  fill %out, 0.0
  for i0 in 0..2
    for i3 in 0..2
      for i4 in 0..2
        for i1 in 0..3
          for i2 in 0..4 vector
            %out[i0, i3 + 2*i1, i4 + i2] add= %x[i0, i4, i3, i1, i2 + 3]
""",
    CUMSUM_ROW: """\
kernel k0(%x: in f64[2,4], %out: out f64[2,4])
  for i0 in 0..2
    reduce running: f64 = add from -0.0
    for i1 in 0..4
      running add= %x[i0, i1]
      store %out[i0, i1], running
""",
    CUMSUM_ROW_REVERSE: """\
kernel k0(%x: in f64[2,4], %out: out f64[2,4])
  for i0 in 0..2
    reduce running: f64 = add from -0.0
    for i1 in 0..4
      running add= %x[i0, 3 - i1]
      store %out[i0, 3 - i1], running
""",
    CUMPROD_COLUMN: """\
kernel k0(%x: in f64[4,3], %out: out f64[4,3])
  for i1 in 0..3 vector
    store %out[0, i1], %x[0, i1]
  for i0 in 0..3
    for i1 in 0..3 vector
      store %out[i0 + 1, i1], %out[i0, i1] * %x[i0 + 1, i1]
""",
    CUMSUM_COLUMN_REVERSE: """\
kernel k0(%x: in i64[2,4,3], %out: out i64[2,4,3])
  for i0 in 0..2
    for i2 in 0..3 vector
      store %out[i0, 3, i2], %x[i0, 3, i2]
    for i1 in 0..3
      for i2 in 0..3 vector
        store %out[i0, 2 - i1, i2], %out[i0, 3 - i1, i2] + %x[i0, 2 - i1, i2]
""",
    PRODUCT: """\
kernel k0(%x: in i64[2,3], %y: in i64[3,4], %out: out i64[2,4])
  fill %out, 0
  for i0 in 0..2
    for k in 0..3
      for i1 in 0..4 vector
        %out[i0, i1] add= %x[i0, k] * %y[k, i1]
""",
    PRODUCT_OF_VIEWS: """\
kernel k0(%x: in i64[5,3,2], %y: in i64[2,3,40], %out: out i64[3,5,40])
  fill %out, 0
  for i0 in 0..3
    for i1 in 0..5
      for k in 0..2
        for i2 in 0..40 vector
          %out[i0, i1, i2] add= %x[i1, i0, k] * %y[k, i0, i2]
""",
    BOOLEAN_PRODUCT: """\
kernel k0(%x: in bool[2,3], %y: in bool[3,4], %out: out bool[2,4])
  fill %out, false
  for i0 in 0..2
    for k in 0..3
      for i1 in 0..4 vector
        %out[i0, i1] bitwise_or= %x[i0, k] & %y[k, i1]
""",
}
NAMES = {text: name for name, text in vars().items() if isinstance(text, str) and text.startswith("\ngraph")}


def argument(value: Value, rng: np.random.Generator) -> Array:
    """Indices are small and repeat."""
    if value.dtype.name == "i64" and value.name in ("i", "j"):
        return rng.integers(0, 2, value.shape) * 3
    if value.dtype.kind == "b":
        return np.asarray(rng.random(value.shape) < 0.4)
    return np.asarray(np.rint(rng.uniform(-8, 8, value.shape)) / 4, value.dtype.numpy)


@pytest.mark.parametrize("text", TEXTS, ids=NAMES.get)
def test_kernel(text, rng):
    graph, steps = steps_of(text)
    assert [kernel_to_text(step.kernel) for step in steps] == [TEXTS[text]]
    arguments = [argument(value, rng) for value in graph.inputs]
    expected = interpret(graph, arguments)[0]
    np.testing.assert_array_equal(run_steps(graph, steps, arguments)[0], expected)
    arrays = [np.zeros(buffer.shape, buffer.dtype.numpy) if buffer.role == "out" else
              arguments[[value.name for value in graph.inputs].index(buffer.name)] if buffer.role == "in" else arguments[0]
              for buffer in steps[0].kernel.buffers]
    found = copies(arrays)
    NativeKernels([steps[0].kernel]).run("k0", found)
    np.testing.assert_array_equal(found[-1].reshape(expected.shape), expected)


@pytest.mark.parametrize("text", [WINDOWS_ADD_OF_COLUMNS, *[text.replace("f64", "c128") for text in (WINDOWS_ADD_OF_COLUMNS, WINDOWS_ADD_OF_A_VIEW)]])
def test_windows_whose_rows_lie_apart_are_copied_first(text, rng):
    graph, steps = steps_of(text)
    assert len(steps) == 1 + ("[2,2,2,4,3]" in text)
    arguments = [argument(value, rng) for value in graph.inputs]
    np.testing.assert_array_equal(run_steps(graph, steps, arguments)[0], interpret(graph, arguments)[0])


@pytest.mark.parametrize("text", [
    CUMSUM_ROW.replace("2,4", "0,4"), CUMSUM_ROW.replace("2,4", "2,0"), CUMPROD_COLUMN.replace("4,3", "0,3"),
    CUMPROD_COLUMN.replace("4,3", "1,3"), CUMPROD_COLUMN.replace("4,3", "4,0"), PRODUCT.replace("3,4", "0,4").replace("2,3", "2,0"),
    PRODUCT.replace("2,", "0,"), SCATTER_ROWS.replace("f64[2,3]", "f64[0,3]").replace("i64[2]", "i64[0]"),
    SCATTER_ROWS.replace(",3]", ",0]"), WINDOWS_ADD.replace("2,3,4,2,2", "0,3,4,2,2").replace("2,7,5", "0,7,5"),
], ids=str)
def test_empty_and_single(text, rng):
    graph, steps = steps_of(text)
    arguments = [argument(value, rng) for value in graph.inputs]
    np.testing.assert_array_equal(run_steps(graph, steps, arguments)[0], interpret(graph, arguments)[0])


def test_one_array_read_twice_has_two_parameters():
    graph, steps = steps_of("""
graph g(%x: i64[3,3]) -> i64[3,3] {
  %out: i64[3,3] = matmul %x, %x
  return %out
}""")
    assert kernel_to_text(steps[0].kernel).startswith("kernel k0(%x: in i64[3,3], %x_1: in i64[3,3], %out: out i64[3,3])")
    x = np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(run_steps(graph, steps, [x])[0], x @ x)


def test_other_ops_have_no_kernel_of_their_own():
    graph, _ = steps_of(CUMSUM_ROW.replace("cumsum %x {axis=1, reverse=false}", "multiply %x, %x"))
    assert not has_call_kernel(graph.body[0])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_calls_that_compute_the_same_share_a_kernel(dtype: Any) -> None:
    """Whatever they read and update; a long program of scatters has the kernels of one."""
    def fun(x: Any, places: Any) -> Any:
        y, z = x.copy(), np.zeros_like(x)
        for k in [*range(12)]:
            y[places[k]] = 0.5 * y[:2]
            z = np.cumsum(y) + z
        z[places[0]] = z[:2]
        return y, z

    places = np.array([[k % 5, (k + 2) % 5] for k in range(12)])
    x = np.arange(1.0, 6.0).astype(dtype)
    program = bw.compile(fun, x, places)
    for found, expected in zip(program(x, places), fun(x, places), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    steps = program.runners.forward().compiled.lowered.steps
    kernels = {id(step.kernel) for step in steps if step.value is not None and step.value.op in (ops.scatter_update, ops.cumsum)}
    assert len(kernels) == 2
