"""LLVM text of kernels: golden files, and native code of every target against the loop interpreter for every kind of statement and vector."""

from __future__ import annotations

import gc
import itertools
import re

import numpy as np
import pytest

from bwcompiler.ir.extent import Index
from bwcompiler.ir.loop import Accumulate, Accumulator, Kernel, Let, Loop, Reduce, Store, linear_offset, load
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.ir.types import F64
from bwcompiler.lowering.kernels.loops_to_llvm import kernel_to_llvm
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from bwcompiler.target import Target
from tests.support.kernels import TARGET, NativeKernels, copies, native, text_of
from tests.support.targets import TARGETS
from tests.unit.ir.loop_kernels import buffer

MASKS = Target("generic", "+avx512f,+avx512bw,+avx512vl", 512)

GOLDEN = {
    "elementwise": """\
kernel k0(%x: in f64[3,40], %mask: in bool[40], %y: out f64[3,40])
  for i in 0..3
    for j in 0..40 vector
      let a = %x[i, j] * 2.0
      store %y[i, j], select(%mask[j], a, 0.5)
""",
    "guards": """\
kernel k0(%x: in f64[40], %y: out f64[5])
  for i in 0..5 vector
    store %y[i], %x[i - 1] if in_range(i - 1, 0, 4) else 0.5
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


@pytest.mark.parametrize("name", GOLDEN)
def test_text(name, golden):
    golden(text_of(GOLDEN[name], MASKS if name == "guards" else TARGET), "ll")


@pytest.mark.parametrize("name", GOLDEN)
def test_text_depends_on_the_kernel_alone(name):
    kernel = parse_kernel(GOLDEN[name])
    again = parse_kernel(GOLDEN[name].replace("sum", "total").replace(" a ", " b ").replace(", a, 0.5", ", b, 0.5"))
    assert kernel_to_llvm(kernel, ScalarEmitter(TARGET)).text == kernel_to_llvm(again, ScalarEmitter(TARGET)).text


def test_results_of_the_golden_kernels(rng):
    x, mask = rng.standard_normal((3, 40)), rng.random(40) < 0.5
    y = native(GOLDEN["elementwise"], [x, mask, np.zeros((3, 40))])[-1]
    np.testing.assert_array_equal(y, np.where(mask, 2 * x, 0.5))
    assert native(GOLDEN["guards"], [np.arange(40.0), np.zeros(5)])[-1].tolist() == [0.5, 0, 1, 2, 3]
    x = rng.standard_normal((3, 2100)).astype(np.float32)
    np.testing.assert_allclose(native(GOLDEN["row_reduction"], [x, np.zeros(3, np.float32)])[-1], np.sum(x, axis=1), rtol=1e-5)
    updates, rows = rng.standard_normal((4, 3)), np.array([2, 8, 2, 0])
    expected = np.ones((9, 3))
    np.add.at(expected, rows, updates)
    np.testing.assert_array_equal(native(GOLDEN["scatter"], [updates, rows, np.ones((9, 3))])[-1], expected)


ZEROED = {
    "fill": ("kernel k0(%y: out f64[7,20000])\n  fill %y, 0.0\n", True),
    "loop": ("kernel k0(%y: out i32[3,100000])\n  for i in 0..99990 vector\n    store %y[1, i + 5], 0\n", True),
    "negative zero": ("kernel k0(%y: out f64[7,20000])\n  fill %y, -0.0\n", False),
    "small": ("kernel k0(%y: out f64[7,20])\n  fill %y, 0.0\n", False),
    "apart": ("kernel k0(%y: out f64[400000])\n  for i in 0..200000 vector\n    store %y[2*i], 0.0\n", False),
}


@pytest.mark.parametrize("name", ZEROED)
def test_large_zeros_are_set_by_the_c_library(name):
    text, by_library = ZEROED[name]
    kernel = parse_kernel(text)
    assert ("llvm.memset" in kernel_to_llvm(kernel, ScalarEmitter(TARGET)).text) is by_library
    if by_library:
        native(kernel, [np.ones(buffer.shape, buffer.dtype.numpy) for buffer in kernel.buffers])


def test_guards_do_not_read_beyond_the_ends():
    """The reads that a guard forbids are of pages that are not there: of one element, and of vectors."""
    text = """\
kernel k0(%x: in f64[4], %y: out f64[4])
  for i in 0..4
    store %y[i], %x[+ 1073741824*i - 1073741824] if in_range(i - 1, 0, 1) else 0.5
"""
    assert native(text, [np.arange(4.0) + 7, np.zeros(4)])[-1].tolist() == [0.5, 7.0, 0.5, 0.5]
    text = """\
kernel k0(%x: in f64[4096], %y: out f64[4096])
  for i in 0..4096 vector
    store %y[i], %x[i - 4000] if in_range(i - 4000, 0, 96) else 0.5 if in_range(i, 10, 4096) else %x[i + 4090] if in_range(i, 0, 6) else 1.5
"""
    assert "masked.load" in text_of(text, MASKS)
    x = np.arange(4096.0)
    expected = np.concatenate([x[4090:], [1.5] * 4, [0.5] * 3990, x[:96]])
    np.testing.assert_array_equal(native(text, [x, np.zeros(4096)])[-1], expected)


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
    native(Kernel("k0", [x, y], [Loop(i, 3, body), Let("last", first + 0.0), Reduce(total), Loop(i, 3, running)]),
           [np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0])])


def test_inputs_are_read_once():
    text = """\
kernel k0(%x: in f64[4], %y: out f64[4])
  let a = %x[2] * %x[2]
  store %y[2], a + %x[2]
"""
    assert text_of(text).count("load double") == 1


def test_what_a_loop_does_not_change_stands_before_it():
    text = text_of("""\
kernel k0(%x: in f64[300], %n: in i64[40], %y: out f64[40,300])
  for i in 0..40
    for j in 0..300 vector
      store %y[i, j], %x[j] * (%x[7] + 1.0) + f64(%n[i] * 2)
""")
    outside, inside = text.split("body1:")[0], text.split("body1:")[1]
    around, innermost = inside.split("\nbody")[:2]
    assert "fadd double" in outside and "mul i64" in around and "sitofp" in around
    assert "fadd double" not in around and "sitofp" not in innermost and innermost.count("load") == 1


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


def test_loops_of_which_nothing_is_needed():
    kernel = parse_kernel("kernel k0(%y: inout f64[3])\n  for i in 0..3\n    store %y[i], %y[i] + 1.0\n")
    outer = kernel.body[0]
    assert isinstance(outer, Loop)
    outer.body.insert(0, Loop(Index(0, 3, "j"), 4, [], "vector"))
    kernel.body.insert(0, Loop(Index(0, 8, "k"), 9, [], "serial"))
    assert native(kernel, [np.ones(3)])[0].tolist() == [2.0] * 3


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


def test_dear_loops_are_wide():
    """Four registers of 256 bits, and one function: the last vector overlaps the one before."""
    text = "kernel k0(%x: in f64[90], %y: out f64[90])\n  for i in 0..90 vector\n    store %y[i], {}\n"
    emit = ScalarEmitter(TARGET)
    made = kernel_to_llvm(parse_kernel(text.format("exp(%x[i])")), emit).text
    assert emit.math == {("exp", "f64", 16): None} and made.count("call <16 x double> @bw.exp.f64x16(<16 x double>") == 1
    assert "llvm.smin" in made
    order = "kernel k0(%y: inout f64[91])\n  for i in 0..90\n    store %y[i + 1], exp(%y[i])\n"
    assert "@bw.exp.f64(double" in text_of(order)                                   # each needs the one before


STEPS = """\
kernel k{number}(%x: in {dtype}[{size}], %y: out {dtype}[{count}], %z: out {dtype}[{size}])
  fill %z, {zero}
  for i in 0..{count} vector
    store %y[i], %x[{place}]
  for i in 0..{count} vector
    store %z[{place}], %x[{first}]
"""


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
@pytest.mark.parametrize("dtype", ["f64", "f32", "i8"])
def test_elements_some_steps_apart(dtype, target, rng):
    """Every form in which vectors are put together from memory: groups of up to six, backwards, one by one; and tails."""
    kernels, arrays = [], []
    for step, count in itertools.product((-2, -1, 1, 2, 3, 4, 5, 6, 7), (5, 29, 64)):
        size = abs(step) * count
        for start in {0, abs(step) - 1}:
            factor = "" if abs(step) == 1 else f"{abs(step)}*"
            place, first = (f"{factor}i + {start}", f"{factor}i") if step > 0 else (f"{size - 1 - start} - {factor}i", f"{size - 1} - {factor}i")
            text = STEPS.format(number=len(kernels), dtype=dtype, size=size, count=count, zero="0.0" if dtype[0] == "f" else "0",
                                place=place.replace(" + 0", ""), first=first)
            kernels.append(parse_kernel(text))
            numpy = kernels[0].buffers[0].dtype.numpy
            arrays.append([rng.integers(-100, 100, size).astype(numpy), np.zeros(count, numpy), np.zeros(size, numpy)])
    code = NativeKernels(kernels, target)
    for kernel, one in zip(kernels, arrays, strict=True):
        expected, found = copies(one), copies(one)
        run_kernel(kernel, expected)
        code.run(kernel.name, found)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y, kernel_to_text(kernel))


STRIDED_SUM = """\
kernel k{number}(%x: in f64[{size}], %y: in f32[{size}], %z: out f64[1])
  reduce sum: f64 = add
  for i in 0..{count} vector
    sum add= %x[9*i] * %x[9*i + 2] - f64(%y[9*i + 1]) / %x[9*i + 5]
  store %z[0], sum
"""


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_sums_over_elements_that_are_read_one_by_one(target, rng):
    """Narrow vectors, each of which works on a part of the lanes: in strips, in blocks of these and in what is left."""
    counts = (12, 31, 32, 41, 63, 100, 2048, 2100)
    kernels = [parse_kernel(STRIDED_SUM.format(number=k, size=9 * count, count=count)) for k, count in enumerate(counts)]
    code = NativeKernels(kernels, target)
    for kernel, count in zip(kernels, counts, strict=True):
        arrays = [rng.uniform(1, 2, 9 * count), rng.uniform(1, 2, 9 * count).astype(np.float32), np.zeros(1)]
        expected, found = copies(arrays), copies(arrays)
        run_kernel(kernel, expected)
        code.run(kernel.name, found)
        np.testing.assert_array_equal(found[2], expected[2], str(count))


def test_groups_that_reach_beyond_the_array_are_not_read(rng):
    """Elements 2, 5, ... of 24 are read as groups of three that start two before; for 0, 3, ... of 22 the last group would end outside."""
    text = "kernel k0(%x: in f64[24], %y: out f64[8])\n  for i in 0..8 vector\n    store %y[i], %x[3*i + 2]\n"
    assert "load <12 x double>" in text_of(text) and "insertelement" not in text_of(text)
    native(text, [rng.standard_normal(24), np.zeros(8)])
    text = text.replace(" + 2", "").replace("f64[24]", "f64[22]")
    assert "load <12 x double>" not in text_of(text) and "insertelement" in text_of(text)
    native(text, [rng.standard_normal(22), np.zeros(8)])


def test_gathers_and_scatters(rng):
    """Stores that meet are made in order."""
    text = """\
kernel k0(%x: in f64[50], %n: in i64[70], %y: out f64[70], %z: out f64[9])
  fill %z, 0.0
  for i in 0..70 vector
    store %y[i], %x[%n[i]] * 2.0 + %x[%n[i] + 2*i - 2*i] + 1.0
  for i in 0..70 vector
    store %z[%n[i]], %x[i - 20] if in_range(i - 20, 0, 50) else 0.25
  for i in 0..70 vector
    %z[%n[i]] add= 1.0
"""
    native(text.replace(" + 2*i - 2*i", ""), [rng.standard_normal(50), rng.integers(0, 9, 70), np.zeros(70), np.zeros(9)])


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_guarded_gathers(target, rng):
    """Where elements lie as data says, and are there only under a condition: the adjoint of a step of 2."""
    text = """\
kernel k0(%x: in f32[45], %y: out f32[90], %n: in i64[90], %z: out f32[90])
  for i in 0..90 vector
    store %y[i], %x[floor_divide(i, 2)] * 2.0:f32 if remainder(i, 2) == 0 else 0.5:f32
  for i in 0..90 vector
    store %z[i], %x[%n[i]] if %n[i] < 45 else %x[%n[i] - 45] if %n[i] < 60 else 0.0:f32
"""
    assert ("masked.gather" in text_of(text, target)) == target.has_masks
    kernel = parse_kernel(text)
    arrays = [rng.standard_normal(45).astype("f4"), np.zeros(90, "f4"), rng.permutation(90), np.zeros(90, "f4")]
    expected, found = copies(arrays), copies(arrays)
    run_kernel(kernel, expected)
    NativeKernels([kernel], target).run("k0", found)
    for made, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_functions_in_unrolled_iterations(target, rng):
    """Three colours of a picture, one after the other, beside a fourth that is something else: functions are vectors along the rows."""
    text = """\
kernel k0(%x: in f64[40,3], %z: in f64[40], %y: out f64[40,4], %w: out f64[40,2])
  for i in 0..40
    store %y[i, 0], exp(%x[i, 0])
    store %y[i, 1], exp(%x[i, 1])
    store %y[i, 2], exp(%x[i, 2]) * %z[i]
    store %y[i, 3], %z[i]
  for i in 0..40
    for j in 0..2 vector
      store %w[i, j], exp(%x[i, 2*j])
"""
    assert "@bw.exp.f64(double" not in text_of(text, MASKS)
    kernel = parse_kernel(text)
    arrays = [rng.standard_normal((40, 3)), rng.standard_normal(40), np.zeros((40, 4)), np.zeros((40, 2))]
    expected, found = copies(arrays), copies(arrays)
    run_kernel(kernel, expected)
    NativeKernels([kernel], target).run("k0", found)
    for made, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-15)


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_guards_of_whole_vectors(target, rng):
    """Rows that are there or not: a branch around the vectors, in which single elements and those some steps apart can be read too."""
    text = """\
kernel k0(%x: in f64[6,40], %s: in f64[6], %p: in f64[6,80], %y: out f64[9,40])
  for i in 0..9
    for j in 0..40 vector
      let a = %x[i - 2, j] * %s[i - 2] + %p[i - 2, 2*j] if in_range(i - 2, 0, 6) else 0.0
      store %y[i, j], exp(a) + %s[3]
"""
    made = text_of(text, MASKS)
    assert "masked" not in made and "@bw.exp.f64(double" not in made
    kernel = parse_kernel(text)
    arrays = [rng.standard_normal(shape) for shape in ((6, 40), 6, (6, 80), (9, 40))]
    expected, found = copies(arrays), copies(arrays)
    run_kernel(kernel, expected)
    NativeKernels([kernel], target).run("k0", found)
    np.testing.assert_allclose(found[-1], expected[-1], rtol=1e-15)


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_parts_of_loops(target, rng):
    """Kernels that are told where to begin and how far to go: merged, in groups, around short loops, and dear ones."""
    text = """\
kernel k0(%x: in f64[60,8], %a: out f64[60,8], %b: out f64[60,4], %c: out i64[60,2], %d: out f64[60,8], first in 0..59, number in 0..60)
  for i in 0..number
    for j in 0..8 vector
      store %a[first + i, j], %x[first + i, j] * 2.0
  for i in 0..number
    for j in 0..4 vector
      store %b[first + i, j], %x[first + i, 2*j] - %x[first + i, 2*j + 1]
  for i in 0..number
    for k in 0..2
      reduce best: f64 = argmax
      for j in 0..4
        best argmax= %x[first + i, 4*k + j] at j
      store %c[first + i, k], position(best)
  for i in 0..number
    for j in 0..8 vector
      store %d[first + i, j], exp(log(%x[first + i, j]))
"""
    kernel = parse_kernel(text)
    code = NativeKernels([kernel], target)
    x = rng.uniform(1, 2, (60, 8))
    for first, number in ((0, 60), (7, 13), (59, 1), (4, 0), (20, 33)):
        arrays = [x, np.zeros((60, 8)), np.zeros((60, 4)), np.zeros((60, 2), np.int64), np.zeros((60, 8))]
        code.run("k0", arrays, [first, number])
        inside = np.zeros((60, 1))
        inside[first:first + number] = 1
        np.testing.assert_array_equal(arrays[1], 2 * x * inside)
        np.testing.assert_array_equal(arrays[2], (x[:, ::2] - x[:, 1::2]) * inside)
        np.testing.assert_array_equal(arrays[3], np.argmax(x.reshape(60, 2, 4), axis=2) * inside)
        np.testing.assert_allclose(arrays[4], x * inside, rtol=1e-13)


def test_loops_that_read_what_they_wrote_run_in_order(rng):
    text = """\
kernel k0(%x: in f64[80], %y: out f64[80], %z: inout f64[90])
  store %y[0], %x[0]
  for i in 0..79 vector
    store %y[i + 1], %y[i] * 0.5 + %x[i + 1]
  for i in 0..80 vector
    store %z[i + 3], %z[i] + %x[i]
  for i in 0..80 vector
    %z[5] add= %x[i]
"""
    assert "x double" not in text_of(text)
    native(text, [rng.standard_normal(80), np.zeros(80), rng.standard_normal(90)])


def test_halves_of_one_array(rng):
    """Elements that never meet: the loop is a vector although it reads and writes one array."""
    text = """\
kernel k0(%z: inout f64[2,40])
  for i in 0..40 vector
    store %z[1, i], %z[0, i] * 2.0
  for i in 0..40 vector
    store %z[0, i], %z[0, i] + 1.0
"""
    assert "load double" not in text_of(text)
    native(text, [rng.standard_normal((2, 40))])


MOVING = """\
kernel k0(%x: in f64[40,200], %y: out f64[40], %z: inout f64[40,200])
  for i in 0..40
    reduce sum: f64 = add
    for j in 0..5*i + 2 vector
      let a = sqrt({value})
      store %z[i, j], a
      sum add= a
    for j in 0..3*i + 1 vector
      store %z[i, 3*i - j], a + {value}
    store %y[i], sum
""".replace("a + ", "")


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_extents_that_move(target, rng):
    """Vectors of which only a part is meant, as many as a register says."""
    x, z = rng.uniform(1, 2, (40, 200)), rng.standard_normal((40, 200))
    expected, found = [x, np.zeros(40), z.copy()], [x, np.zeros(40), z.copy()]
    kernel = parse_kernel(MOVING.format(value="%x[i, j]"))
    verify_kernel(kernel)
    run_kernel(kernel, expected)
    NativeKernels([kernel], target).run("k0", found)
    for made, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(made, wanted)
    dear = [x, np.zeros(40), z.copy()]
    NativeKernels([parse_kernel(MOVING.format(value="exp(log(%x[i, j]))"))], target).run("k0", dear)
    for made, wanted in zip(dear, expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-12)


@pytest.mark.parametrize("target", [TARGET, MASKS], ids=str)
def test_loops_without_iterations_read_nothing(target):
    """What is the same in all iterations may not be there if there are none: here, the element before the first one."""
    text = text_of("""\
kernel k0(%x: in f64[60], %y: out f64[60], %z: inout f64[9], first in 0..59, number in 0..60)
  for i in 0..number
    for j in 0..9 vector
      %z[j] add= %x[first - 1]
  for i in 0..number vector
    store %y[i], %x[i] * %x[first - 1]
  for i in 0..number vector
    store %y[i], exp(%x[i]) * %x[first - 1]
""", target)
    blocks = re.split(r"^(\w+):$", text, flags=re.MULTILINE)
    reading = {name for name, block in zip(blocks[1::2], blocks[2::2], strict=True) if "load" in block or "store" in block}
    assert reading and all(name.startswith("body") or f"label %{name}, label %exit" in text for name in reading)     # after it was asked
    once = {name for name, block in zip(blocks[1::2], blocks[2::2], strict=True) if name.startswith("pre") and "load" in block}
    assert len(once) >= 3                                                  # and what is the same in all iterations is read once


def test_extents_that_move_have_masks():
    assert "masked.store" in text_of(MOVING.format(value="%x[i, j]"), MASKS)
    assert "masked.store" not in text_of(MOVING.format(value="%x[i, j]"))


@pytest.mark.parametrize("dtype", ["i64", "u8", "i32"])
def test_divisions_by_powers_of_two_are_shifts(dtype, rng):
    text = f"""\
kernel k0(%x: in {dtype}[50], %y: out {dtype}[50], %z: out {dtype}[50])
  for i in 0..50 vector
    store %y[i], floor_divide(%x[i], 8)
    store %z[i], remainder(%x[i], 8)
"""
    assert "div" not in text_of(text)
    numpy = parse_kernel(text).buffers[0].dtype.numpy
    native(text, [rng.integers(0 if dtype[0] == "u" else -100, 100, 50).astype(numpy), np.zeros(50, numpy), np.zeros(50, numpy)])


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


def test_what_was_noted_of_a_kernel_goes_with_it():
    """A circle of objects would stay until the collector finds it: half of all that compiling a large program makes."""
    kernel = parse_kernel(GOLDEN["row_reduction"])
    gc.disable()
    gc.freeze()     # circles that other tests left are not this one's
    try:
        verify_kernel(kernel)
        kernel_to_llvm(kernel, ScalarEmitter(TARGET))
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [one for one in gc.garbage if type(one).__module__.startswith("bwcompiler")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()
    assert not left
