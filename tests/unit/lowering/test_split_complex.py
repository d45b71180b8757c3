"""Kernels of complex numbers become kernels of their parts: valid, readable back, and with the graph's results.

`GRAPHS` has one graph per thing that is split: loads, stores, gathers, sums, other reductions, updates, scans, guards.
"""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.loop import INPUT, OUTPUT, SCRATCH, Buffer, Kernel, Loop, Offset, Store, load
from bwcompiler.ir.scalar import operation
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.ir.types import C128
from bwcompiler.lowering.loops.complex.split_complex import split_complex
from tests.support.graph_strategies import run_compiled
from tests.support.lowered_programs import assert_near, run_steps, steps_of

GRAPHS = {
    "elementwise": """
graph g(%z: c128[4,5], %w: c128[5]) -> (c128[4,5], f64[4,5]) {
  %wide: c128[4,5] = broadcast %w {shape=[4,5], axes=[1]}
  %product: c128[4,5] = multiply %z, %wide
  %shifted: c128[4,5] = add %product, (1.0-2.0j)
  %size: f64[4,5] = modulus %shifted
  return %shifted, %size
}""",
    "parts_alone": """
graph g(%x: f64[6], %y: f64[6]) -> f64[6] {
  %z: c128[6] = make_complex %x, %y
  %w: c128[6] = exp %z
  %size: f64[6] = imag %w
  return %size
}""",
    "sums": """
graph g(%z: c128[3,40]) -> (c128[3], c128[40], c128[]) {
  %square: c128[3,40] = multiply %z, %z
  %rows: c128[3] = sum %square {axes=[1]}
  %columns: c128[40] = sum %square {axes=[0]}
  %all: c128[] = sum %square {axes=[0,1]}
  return %rows, %columns, %all
}""",
    "reductions_that_mix_the_parts": """
graph g(%z: c64[3,40]) -> (c64[3], c64[40], c64[3], i64[3]) {
  %product: c64[3] = prod %z {axes=[1]}
  %down: c64[40] = prod %z {axes=[0]}
  %largest: c64[3] = max %z {axes=[1]}
  %place: i64[3] = argmin %z {axes=[1]}
  return %product, %down, %largest, %place
}""",
    "two_sweeps": """
graph g(%z: c128[5,40]) -> c128[5,40] {
  %e: c128[5,40] = exp %z
  %total: c128[5] = sum %e {axes=[1]}
  %wide: c128[5,40] = broadcast %total {shape=[5,40], axes=[0]}
  %ratio: c128[5,40] = divide %e, %wide
  return %ratio
}""",
    "gathers_and_scatters": """
graph g(%z: c128[6,3], %at: i64[4]) -> (c128[4,3], c128[6,3]) {
  %rows: c128[4,3] = gather %z, %at {axes=[0]}
  %square: c128[4,3] = multiply %rows, %rows
  %added: c128[6,3] = scatter_add %z, %square, %at {axes=[0]}
  return %square, %added
}""",
    "updates": """
graph g(%z: c128[6,3], %v: c128[2,3]) -> c128[6,3] {
  %square: c128[2,3] = multiply %v, %v
  %set: c128[6,3] = slice_update %z, %square {starts=[1,0], steps=[2,1]}
  %added: c128[6,3] = slice_add %set, %v {starts=[0,0], steps=[1,1]}
  return %added
}""",
    "scans": """
graph g(%z: c128[4,5]) -> (c128[4,5], c128[4,5], c128[4,5]) {
  %sums: c128[4,5] = cumsum %z {axis=1, reverse=false}
  %products: c128[4,5] = cumprod %z {axis=1, reverse=true}
  %down: c128[4,5] = cumprod %z {axis=0, reverse=false}
  return %sums, %products, %down
}""",
    "choices": """
graph g(%z: c128[7], %w: c128[7]) -> (c128[7], c128[11]) {
  %less: bool[7] = less %z, %w
  %chosen: c128[7] = select %less, %z, %w
  %padded: c128[11] = pad %chosen {low=[2], high=[2], value=1.0}
  return %chosen, %padded
}""",
    "rows_of_a_loop_that_is_cut": """
graph g(%z: c128[12,8], %w: c128[1,1]) -> (c128[12,8], c128[12], c128[], c128[12], i64[12]) {
  %added: c128[12,8] = slice_add %z, %w {starts=[1,1], steps=[1,1]}
  %rows: c128[12] = sum %z {axes=[1]}
  %all: c128[] = sum %z {axes=[0,1]}
  %largest: c128[12] = max %z {axes=[1]}
  %place: i64[12] = argmax %z {axes=[1]}
  return %added, %rows, %all, %largest, %place
}""",
    "matmul": """
graph g(%a: c128[3,4], %b: c128[4,5]) -> c128[3,5] {
  %product: c128[3,5] = matmul %a, %b
  return %product
}""",
}


def arguments(graph):
    rng = np.random.default_rng(4)
    made = []
    for value in graph.inputs:
        array = rng.normal(size=value.shape) + (1j * rng.normal(size=value.shape) if value.dtype.is_complex else 0)
        made.append(rng.permutation(6)[:value.type.size] if value.dtype.is_integer else array.astype(value.dtype.numpy))
    return made


@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_are_of_real_numbers(name):
    graph, steps = steps_of(GRAPHS[name])
    for step in steps:
        assert step.kernel is not None and not any(buffer.dtype.is_complex for buffer in step.kernel.buffers)
        assert len(step.owners) == len(step.kernel.buffers)
        assert len(step.scratch) == sum(buffer.role == SCRATCH for buffer in step.kernel.buffers)
    given = arguments(graph)
    for ours, compiled, meaning in zip(run_steps(graph, steps, given), run_compiled(graph, given), interpret(graph, given), strict=True):
        assert_near(np.asarray(ours), np.asarray(meaning), name)
        assert_near(np.asarray(compiled), np.asarray(meaning), name)


def test_text(golden):
    texts = [kernel_to_text(step.kernel) for name in ("elementwise", "sums", "reductions_that_mix_the_parts", "scans")
             for step in steps_of(GRAPHS[name])[1]]
    golden("\n".join(texts), "loops")


def _copy_loop(*, shift: int) -> Kernel:
    """out[i + shift] = z[i] * z[i]"""
    z, out = Buffer("z", C128, (4,), INPUT), Buffer("out", C128, (4,), OUTPUT)
    index = Index(0, 3, "i")
    element = load(z, Offset(index.extent()))
    target = Offset(index.extent() if shift == 0 else 0)
    return Kernel("k", [z, out], [Loop(index, 4, [Store(out, target, operation("multiply", element, element))], "vector")])


def test_both_parts_are_known_before_one_is_stored():
    """An element may be stored where it was read."""
    kernel = split_complex(_copy_loop(shift=0))
    [loop] = kernel.body
    assert isinstance(loop, Loop) and [type(statement).__name__ for statement in loop.body] == ["Let", "Let", "Store", "Store"]
    assert loop.kind == "vector"


def test_loops_that_store_into_one_place_are_serial():
    kernel = split_complex(_copy_loop(shift=1))
    assert isinstance(kernel.body[0], Loop) and kernel.body[0].kind == "serial"


def test_unknown_operation():
    z, out = Buffer("z", C128, (), INPUT), Buffer("out", C128, (), OUTPUT)
    with pytest.raises(InternalError, match="cbrt has no formula for complex numbers"):
        split_complex(Kernel("k", [z, out], [Store(out, Offset(0), operation("cbrt", load(z, Offset(0))))]))


def test_steps_of_an_unrolled_loop():
    """Steps share a kernel where only starts differ; constants that differ in the sign of a zero are not the same."""
    def function(z):
        rows = bw.numpy.zeros((6, 3), complex)
        for t in range(6):
            rows[t] = z[t] * complex(2.0, 0.0 if t % 2 else -0.0)
        return rows

    z = np.array([[1.0, 0.0, complex(-0.0, -1.0)]] * 6)
    found, expected = bw.jit(function)(z), np.stack([z[t] * complex(2.0, 0.0 if t % 2 else -0.0) for t in range(6)])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found.view(float)), np.signbit(expected.view(float)))
