"""Reductions and searches in native code of every target against the loop interpreter: in numbers, lanes, registers and memory."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from tests.support.kernels import NativeKernels, native, text_of
from tests.support.targets import TARGETS, with_fma


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


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
@pytest.mark.parametrize("combine", ["argmax", "argmin"])
def test_searches_in_vectors(combine, target, rng):
    """Whatever the width, the first best element is found, and the first nan before all numbers."""
    kernels, arrays = [], []
    for columns, (dtype, numpy) in itertools.product((7, 16, 31, 37, 64, 100, 300), (("f64", "f8"), ("f32", "f4"), ("i8", "i1"), ("bool", "?"))):
        kernels.append(parse_kernel(f"""\
kernel k{len(kernels)}(%x: in {dtype}[12,{columns}], %y: out i64[12], %z: out {dtype}[12])
  for i in 0..12
    reduce best: {dtype} = {combine}
    for j in 0..{columns}
      best {combine}= %x[i, j] at j
    store %y[i], position(best)
    store %z[i], best
"""))
        x = rng.integers(0, 2 if dtype == "bool" else 5, (12, columns)).astype(numpy)
        if dtype[0] == "f":
            x[rng.random(x.shape) < 0.02] = np.nan
            x[0], x[1], x[2, 1:], x[3] = np.nan, -np.inf, np.inf, np.where(rng.random(columns) < 0.5, 0.0, -0.0)
        arrays.append([x, np.zeros(12, np.int64), np.zeros(12, numpy)])
    code = NativeKernels(kernels, target)
    for kernel, (x, y, z) in zip(kernels, arrays, strict=True):
        code.run(kernel.name, [x, y, z])
        places = getattr(np, combine)(x, axis=1)
        np.testing.assert_array_equal(y, places, kernel_to_text(kernel))
        np.testing.assert_array_equal(z.tobytes(), x[np.arange(12), places].tobytes())


def test_searches_that_are_not_side_by_side(rng):
    """Two loops for one best element; positions that fall."""
    text = """\
kernel k0(%x: in f64[40], %y: out i64[2])
  reduce best: f64 = argmax
  for j in 0..40
    best argmax= %x[j] at j
  for j in 0..40
    best argmax= %x[j] + 0.25 at j
  store %y[0], position(best)
  reduce last: f64 = argmax
  for j in 0..40
    last argmax= %x[j] at 39 - j
  store %y[1], position(last)
"""
    assert "x double" not in text_of(text)
    native(text, [rng.integers(0, 3, 40).astype(float), np.zeros(2, np.int64)])


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


@pytest.mark.parametrize("combine", ["argmax", "argmin"])
def test_searches_in_short_rows_are_side_by_side(combine, rng):
    text = f"""\
kernel k0(%x: in f32[90,4], %y: out i64[90])
  for i in 0..90
    reduce best: f32 = {combine}
    for j in 0..4
      best {combine}= %x[i, j] at j
    store %y[i], position(best)
"""
    assert "alloca <4 x float>" in text_of(text)              # as many as positions fill a register
    x = rng.integers(0, 3, (90, 4)).astype(np.float32)
    x[3, 1:] = np.nan
    np.testing.assert_array_equal(native(text, [x, np.zeros(90, np.int64)])[-1], getattr(np, combine)(x, axis=1))


@pytest.mark.parametrize("columns", [3, 40, 45, 300])
@pytest.mark.parametrize("dtype", ["f32", "i64", "bool"])
def test_sums_over_rows_in_registers(columns, dtype, rng):
    """Narrow panels are added up in registers, and are in memory before and after the loop over the rows."""
    combine = "bitwise_or" if dtype == "bool" else "add"
    text = f"""\
kernel k0(%x: in {dtype}[90,{columns}], %y: inout {dtype}[{columns}], %z: out {dtype}[{columns}])
  for i in 0..90
    for j in 0..{columns} vector
      %y[j] {combine}= %x[i, j]
  for j in 0..{columns} vector
    store %z[j], %y[j]
"""
    kernel = parse_kernel(text)
    in_registers = re.search(r"alloca <\d+ x", text_of(text)) is not None
    assert in_registers == (columns * kernel.buffers[0].dtype.itemsize <= 8 * 32)        # eight of 256 bits
    x = rng.integers(0, 2, (90, columns)).astype(kernel.buffers[0].dtype.numpy)
    native(kernel, [x, x[0].copy(), np.zeros_like(x[0])])


@pytest.mark.parametrize("columns", [33, 95, 2150])
def test_dear_sums(columns, rng):
    """Lanes of accumulators some registers at a time (a CPU without FMA has other bits)."""
    text = f"""\
kernel k0(%x: in f64[2,{columns}], %y: out f64[2], %z: out f64[2,{columns}])
  for i in 0..2
    reduce sum: f64 = add
    for j in 0..{columns} vector
      let a = sqrt(exp(%x[i, j]))
      store %z[i, j], a
      sum add= a
    store %y[i], sum
"""
    x = rng.standard_normal((2, columns))
    found = []
    for target in with_fma().values():
        arrays = [x, np.zeros(2), np.zeros_like(x)]
        NativeKernels([parse_kernel(text)], target).run("k0", arrays)
        np.testing.assert_allclose(arrays[2], np.sqrt(np.exp(x)), rtol=1e-14)
        summed = [arrays[2].copy(), np.zeros(2), np.zeros_like(x)]
        run_kernel(parse_kernel(text.replace("sqrt(exp(%x[i, j]))", "%x[i, j]")), summed)
        np.testing.assert_array_equal(arrays[1], summed[1], str(target))
        found.append(arrays[1])
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("target", with_fma().values(), ids=str)
def test_dear_sums_in_memory(target, rng):
    """Forces between bodies: around very short loops, what is dear is computed side by side, and added in order."""
    text = """\
kernel k0(%p: in f64[45,3], %f: inout f64[45,3], %e: out f64[45,45])
  for i in 0..45
    for j in 0..45
      reduce r: f64 = add
      for k in 0..3 vector
        let d = %p[i, k] - %p[j, k]
        r add= d * d
      let w = {}
      store %e[i, j], w
      for k in 0..3 vector
        %f[i, k] add= w * %p[j, k]
"""
    assert re.search(r"@bw\.exp\.f64x\d+\(", text_of(text.format("exp(r)"), target))
    p, f = rng.standard_normal((45, 3)), rng.standard_normal((45, 3))
    arrays = [p, f.copy(), np.zeros((45, 45))]
    NativeKernels([parse_kernel(text.format("exp(r)"))], target).run("k0", arrays)
    expected = f.copy()
    for i, j in itertools.product(range(45), repeat=2):
        expected[i] = expected[i] + arrays[2][i, j] * p[j]
    np.testing.assert_array_equal(arrays[1], expected)
    d = p[:, None] - p
    np.testing.assert_allclose(arrays[2], np.exp((d[:, :, 0] ** 2 + d[:, :, 1] ** 2) + d[:, :, 2] ** 2), rtol=1e-13)
