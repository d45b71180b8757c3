"""LLVM text of kernels: three golden files, and native code against the loop interpreter for every kind of statement."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bwcompiler.ir.extent import Index
from bwcompiler.ir.loop import Accumulate, Accumulator, Kernel, Let, Loop, Reduce, Store, linear_offset, load
from bwcompiler.ir.loop_interpreter import run_kernel
from bwcompiler.ir.loop_parser import parse_kernel
from bwcompiler.ir.loop_verifier import verify_kernel
from bwcompiler.ir.types import F64
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from bwcompiler.lowering.loops_to_llvm import kernel_to_llvm
from bwcompiler.target import Target
from tests.support.kernels import Array, NativeKernels, copies
from tests.unit.ir.loop_kernels import buffer

TARGET = Target("generic", "", 256)                    # of texts that are looked at: the same on every machine

GOLDEN = {
    "elementwise": """\
kernel k0(%x: in f64[3,40], %mask: in bool[40], %y: out f64[3,40])
  for i in 0..3
    for j in 0..40 vector
      let a = %x[i, j] * 2.0
      store %y[i, j], a if %mask[j] else %x[i, j - 1] if in_range(j - 1, 0, 39) else 0.0
""",
    "row_reduction": """\
kernel k0(%x: in f32[3,2100], %y: out f32[3])
  for i in 0..3
    reduce sum: f32 = add
    for j in 0..2100 vector
      sum add= %x[i, j]
    store %y[i], sum
""",
    "scatter": """\
kernel k0(%updates: in f64[4,3], %rows: in i64[4], %y: inout f64[9,3])
  for i in 0..4
    for j in 0..3 vector
      %y[%rows[i], j] add= %updates[i, j]
""",
}


def native(text: str | Kernel, arrays: list[Array]) -> list[Array]:
    """What native code makes of the arrays; the interpreter makes the same."""
    kernel = text if isinstance(text, Kernel) else parse_kernel(text)
    verify_kernel(kernel)
    expected, found = copies(arrays), copies(arrays)
    run_kernel(kernel, expected)
    NativeKernels([kernel]).run(kernel.name, found)
    for made, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(made, wanted)
    return found


@pytest.mark.parametrize("name", GOLDEN)
def test_text(name, golden):
    golden(kernel_to_llvm(parse_kernel(GOLDEN[name]), ScalarEmitter(TARGET)).text, "ll")


@pytest.mark.parametrize("name", GOLDEN)
def test_text_depends_on_the_kernel_alone(name):
    kernel = parse_kernel(GOLDEN[name])
    again = parse_kernel(GOLDEN[name].replace("sum", "total").replace(" a ", " b ").replace(", a if", ", b if"))
    assert kernel_to_llvm(kernel, ScalarEmitter(TARGET)).text == kernel_to_llvm(again, ScalarEmitter(TARGET)).text


def test_results_of_the_golden_kernels(rng):
    x, mask = rng.standard_normal((3, 40)), rng.random(40) < 0.5
    y = native(GOLDEN["elementwise"], [x, mask, np.zeros((3, 40))])[-1]
    np.testing.assert_array_equal(y, np.where(mask, 2 * x, np.pad(x, ((0, 0), (1, 0)))[:, :-1]))
    x = rng.standard_normal((3, 2100)).astype(np.float32)
    np.testing.assert_allclose(native(GOLDEN["row_reduction"], [x, np.zeros(3, np.float32)])[-1], np.sum(x, axis=1), rtol=1e-5)
    updates, rows = rng.standard_normal((4, 3)), np.array([2, 8, 2, 0])
    expected = np.ones((9, 3))
    np.add.at(expected, rows, updates)
    np.testing.assert_array_equal(native(GOLDEN["scatter"], [updates, rows, np.ones((9, 3))])[-1], expected)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("columns", [1, 31, 32, 33, 2047, 2048, 2049, 4200])
def test_sums_have_the_bits_of_the_interpreter(columns, dtype, rng):
    name = {"f4": "f32", "f8": "f64"}[dtype]
    text = f"kernel k0(%x: in {name}[2,{columns}], %y: out {name}[2])\n" + """\
  for i in 0..2
    reduce sum: NAME = add
    for j in 0..COLUMNS vector
      sum add= %x[i, j]
    store %y[i], sum
""".replace("NAME", name).replace("COLUMNS", str(columns))
    x = (rng.standard_normal((2, columns)) * 10.0 ** rng.integers(-6, 6, (2, columns))).astype(dtype)
    native(text, [x, np.zeros(2, dtype)])


@pytest.mark.parametrize("combine, dtype", [
    ("multiply", "f64"), ("maximum", "f64"), ("minimum", "f32"), ("add", "i64"), ("maximum", "i8"), ("minimum", "u8"),
    ("bitwise_or", "bool"), ("bitwise_and", "bool"), ("bitwise_and", "i64"), ("multiply", "i32")])
def test_reductions_of_every_kind(combine, dtype, rng):
    text = f"kernel k0(%x: in {dtype}[3,70], %y: out {dtype}[3], %z: out {dtype}[2,70])\n" + """\
  fill %z, %x[1, 1]
  for i in 0..3
    reduce total: DTYPE = COMBINE
    for j in 0..70 vector
      total COMBINE= %x[i, j]
      %z[0, j] COMBINE= %x[i, j]
    for j in 0..5 vector
      total COMBINE= %x[i, j]
    store %y[i], total
""".replace("DTYPE", dtype).replace("COMBINE", combine)
    kernel = parse_kernel(text)
    numpy = kernel.buffers[0].dtype.numpy
    x = (rng.integers(1, 4, (3, 70)) if dtype != "bool" else rng.random((3, 70)) < 0.9).astype(numpy)
    if combine == "maximum" and dtype == "f64":
        x[1, 3] = np.nan
    native(kernel, [x, np.zeros(3, numpy), np.zeros((2, 70), numpy)])


@pytest.mark.parametrize("combine", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["f64", "i8", "bool"])
def test_searches(combine, dtype, rng):
    text = f"kernel k0(%x: in {dtype}[6,40], %y: out i64[6], %z: out {dtype}[6])\n" + f"""\
  for i in 0..6
    reduce best: {dtype} = {combine}
    for j in 0..40
      best {combine}= %x[i, j] at j
    store %y[i], position(best)
    store %z[i], best
"""
    kernel = parse_kernel(text)
    x = rng.integers(0, 2 if dtype == "bool" else 9, (6, 40)).astype(kernel.buffers[0].dtype.numpy)
    if dtype == "f64":
        x[0, 7] = x[0, 9] = np.nan
        x[1] = np.inf
        x[2] = -np.inf
    y = native(kernel, [x, np.zeros(6, np.int64), np.zeros(6, x.dtype)])[1]
    np.testing.assert_array_equal(y, getattr(np, combine)(x, axis=1))


def test_guards_do_not_read_beyond_the_ends():
    """The reads that a guard forbids are of pages that are not there."""
    text = """\
kernel k0(%x: in f64[4], %y: out f64[4])
  for i in 0..4
    store %y[i], %x[+ 1073741824*i - 1073741824] if in_range(i - 1, 0, 1) else 0.5
"""
    assert native(text, [np.arange(4.0) + 7, np.zeros(4)])[-1].tolist() == [0.5, 7.0, 0.5, 0.5]


def test_what_is_shared_is_read_again_after_a_write():
    """A scalar that two statements share is an expression, not a result."""
    x, y = buffer("x", 3), buffer("y", 3, role="inout")
    i = Index(0, 2, "i")
    here = linear_offset((3,), (i.extent(),))
    first, total = load(y, linear_offset((3,), (0,))), Accumulator("t", "add", F64)
    known = total.total()
    body = [Let("before", first + 0.0), Store(y, here, first * 2.0 + load(x, here)), Let("after", first + 0.0),
            Store(y, here, first + first * 10.0), Accumulate((y, here), "add", first)]
    running = [Accumulate(total, "add", first), Store(y, here, known), Accumulate(total, "add", known), Store(y, here, known + first)]
    native(Kernel("k0", [x, y], [Loop(i, 3, body), Let("last", first + 0.0), Reduce(total), Loop(i, 3, running), Reduce(total)]),
           [np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0])])


def test_inputs_are_read_once():
    text = """\
kernel k0(%x: in f64[4], %y: out f64[4])
  for i in 0..4
    let a = %x[i] * %x[i]
    store %y[i], a + %x[i]
"""
    assert kernel_to_llvm(parse_kernel(text), ScalarEmitter(TARGET)).text.count("load double") == 1


def test_empty_loops_and_buffers():
    text = """\
kernel k0(%x: in f64[0,3], %y: out f64[3], %z: out i64[0])
  fill %y, -1.5
  fill %z, 0
  for i in 0..0
    for j in 0..3 vector
      %y[j] add= %x[i, j]
"""
    assert native(text, [np.zeros((0, 3)), np.zeros(3), np.zeros(0, np.int64)])[1].tolist() == [-1.5] * 3


def test_triangular_loops(rng):
    """An extent that depends on an outer index."""
    text = """\
kernel k0(%x: in f64[5,5], %y: out f64[5,5])
  fill %y, 0.0
  for i in 0..5
    for j in 0..i + 1 vector
      store %y[i, j], %x[i, j]
"""
    x = rng.standard_normal((5, 5))
    np.testing.assert_array_equal(native(text, [x, np.zeros((5, 5))])[-1], np.tril(x))


@pytest.mark.parametrize("dtype, count", [("f64", 5), ("f64", 70), ("f32", 70), ("f32", 4200), ("i64", 70)])
@pytest.mark.parametrize("combine", ["add", "maximum"])
def test_reductions_over_triangles(rng, dtype, count, combine):
    """The tree is that of the longest row, in all rows: the interpreter says so, bit for bit."""
    rows = min(count, 9)
    extent = f"{count // rows}*i + {count - (rows - 1) * (count // rows)}"
    text = f"""\
kernel k0(%x: in {dtype}[{count}], %y: out {dtype}[{rows}])
  for i in 0..{rows}
    reduce total: {dtype} = {combine}
    for j in 0..{extent} vector
      total {combine}= %x[j]
    store %y[i], total
"""
    x = (rng.standard_normal(count) * 100).astype({"f64": np.float64, "f32": np.float32, "i64": np.int64}[dtype])
    native(text, [x, np.zeros(rows, x.dtype)])


def test_dear_loops_get_two_iterations_in_flight():
    text = "kernel k0(%x: in f64[40], %y: out f64[40])\n  for i in 0..40 vector\n    store %y[i], {}\n"
    hint = ", !llvm.loop !1"
    emit = ScalarEmitter(TARGET)
    assert hint in kernel_to_llvm(parse_kernel(text.format("exp(%x[i])")), emit).text
    assert emit.math == {("exp", "f64"): None}
    assert hint not in kernel_to_llvm(parse_kernel(text.format("%x[i] + 1.0")), ScalarEmitter(TARGET)).text
    assert hint not in kernel_to_llvm(parse_kernel(text.replace(" vector", "").format("exp(%x[i])")), ScalarEmitter(TARGET)).text


def test_parameters_and_linkage():
    text = kernel_to_llvm(parse_kernel(GOLDEN["scatter"]), ScalarEmitter(TARGET), "external").text
    assert re.match(r"define external void @k0\(ptr noalias readonly %p0, ptr noalias readonly %p1, ptr noalias %p2\) #1 \{", text)


def test_numbers_that_are_hard_to_write():
    """Literals keep their bits: denormal, inf, nan, -0.0, integers at the ends of their range."""
    body, values = "", [5e-324, -0.0, float("inf"), float("-inf"), float("nan"), 0.1, 1e308]
    for k, value in enumerate(values):
        body += f"  store %y[{k}], {value!r}\n  store %s[{k}], {value!r}\n"
    ends = {"i8": (-128, 127), "u8": (0, 255), "i64": (-(1 << 63), (1 << 63) - 1), "u32": (0, (1 << 32) - 1)}
    for dtype, pair in ends.items():
        body += "".join(f"  store %{dtype}_[{k}], {value}\n" for k, value in enumerate(pair))
    names = ", ".join(f"%{dtype}_: out {dtype}[2]" for dtype in ends)
    y, s, *rest = native(f"kernel k0(%y: out f64[7], %s: out f32[7], {names})\n{body}",
                         [np.zeros(7), np.zeros(7, np.float32), *[np.zeros(2, np.dtype(d[0] + str(int(d[1:]) // 8))) for d in ends]])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(s, np.array(values).astype(np.float32))
    assert y.tobytes() == np.array(values).tobytes()
    assert [tuple(x.tolist()) for x in rest] == list(ends.values())


def test_shifts_beyond_the_width():
    text = """\
kernel k0(%x: in i8[8], %n: in i8[8], %y: out i8[8], %z: out i8[8])
  for i in 0..8
    store %y[i], left_shift(%x[i], %n[i])
    store %z[i], right_shift(%x[i], %n[i])
"""
    native(text, [np.array([1, -1, 3, -128, 127, 5, -5, 0], np.int8), np.array([0, 1, 7, 8, 100, 2, 9, 3], np.int8),
                  np.zeros(8, np.int8), np.zeros(8, np.int8)])
