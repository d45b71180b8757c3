"""Nests that are merged compute the same, element by element; nests that must not be stay."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.ir.loop import Kernel, Loop
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.lowering.kernels.merge_loops import merge_loops

BUFFERS = "%x: in f64[4,6,5], %n: in i64[4,6], %y: out f64[4,6,5], %z: inout f64[120]"


def merged(text: str) -> Kernel:
    kernel = parse_kernel(f"kernel k({BUFFERS})\n{text}  store %y[3, 5, 4], 0.5\n  store %z[119], 0.5\n")      # both are written
    made = Kernel("k", kernel.buffers, merge_loops(kernel.body, lambda buffer: buffer))
    verify_kernel(made)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((4, 6, 5)), rng.integers(0, 5, (4, 6)), np.zeros((4, 6, 5)), rng.standard_normal(120)]
    expected, found = [array.copy() for array in arrays], [array.copy() for array in arrays]
    run_kernel(kernel, expected)
    run_kernel(made, found)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)
    return made


def nest(body: str, kind: str = " vector") -> str:
    return f"  for i in 0..4\n    for j in 0..6\n      for k in 0..5{kind}\n        {body}\n"


def test_all_elements_of_an_array():
    kernel = merged(nest("store %y[i, j, k], %x[i, j, k] * 2.0"))
    assert kernel_to_text(kernel).split("\n")[1:3] == ["  for k in 0..120 vector", "    store %y[+ k], %x[+ k] * 2.0"]


@pytest.mark.parametrize("body, extents", [
    ("store %y[i, j, k], %x[i, j, k] * f64(%n[i, j])", [4 * 6, 5]),            # what changes with j alone
    ("store %y[i, j, k], %x[0, j, k]", [4, 6 * 5]),
    ("store %y[i, j, k], %x[i, 5 - j, k]", [4, 6, 5]),
    ("store %y[i, j, k], f64(j)", [4, 6, 5]),
    ("store %y[i, j, k], %x[i, j, k] if in_range(k, 1, 4) else 0.0", [4 * 6, 5]),
    ("store %y[i, j, k], %x[i, j - 1, k] if in_range(j - 1, 0, 5) else 0.0", [4, 6 * 5]),      # a guard on whole rows
    ("store %y[i, j, k], %x[i, j - 1, k] if in_range(j + i - 1, 0, 5) & in_range(j, 1, 6) else 0.0", [4, 6 * 5]),
    ("store %y[i, j, k], %x[i - 1, j, k] if in_range(i - 1, 0, 3) else 0.0", [4, 6 * 5]),
    ("store %y[i, j, k], 0.5 if in_range(-1*j, -2, 1) else %x[i, j, k]", [4, 6, 5]),
    ("store %y[i, j, k], 0.5 if in_range(5*j + k, 7, 12) else %x[i, j, k]", [4, 6 * 5]),
    ("%y[0, 0, k] add= %x[i, j, k]", [4 * 6, 5]),
    ("%y[0, 0, 0] add= %x[i, j, k]", [4 * 6, 5]),                              # all of them in one place: no vector
    ("store %z[30*i + 5*j + k], %z[30*i + 5*j + k] + 1.0", [120]),
])
def test_extents(body, extents):
    loop = merged(nest(body)).body[0]
    found = []
    while isinstance(loop, Loop):
        found.append(loop.extent)
        loop = loop.body[0]
    assert found == extents


def test_vectors_stay_vectors():
    """A row that reads the one before can be a vector; the whole cannot."""
    made = merged("  for i in 0..3\n    for j in 0..30 vector\n      store %z[30*i + j + 30], %z[30*i + j] + 1.0\n")
    assert isinstance(made.body[0], Loop) and made.body[0].extent == 3
    serial = merged("  for i in 0..3\n    for j in 0..30\n      store %z[30*i + j + 30], %z[30*i + j] + 1.0\n")
    assert isinstance(serial.body[0], Loop) and serial.body[0].extent == 90


def test_reductions_keep_their_tree():
    text = "  reduce total: f64 = add\n" + nest("total add= %x[i, j, k]") + "  store %y[0, 0, 0], total\n"
    made = merged(text)
    assert isinstance(made.body[1], Loop) and made.body[1].extent == 4
    rows = "  for i in 0..4\n    for j in 0..6\n      reduce total: f64 = add\n      for k in 0..5 vector\n        total add= %x[i, j, k]\n" \
           "      store %y[0, 0, 0], total\n      store %z[6*i + j], total\n"
    assert isinstance(merged(rows.replace("      store %y[0, 0, 0], total\n", "")).body[0], Loop)
    loop = merged(rows.replace("      store %y[0, 0, 0], total\n", "")).body[0]
    assert isinstance(loop, Loop) and loop.extent == 24 and len(loop.body) == 3
