"""What is known of a loop body."""

from __future__ import annotations

import pytest

from bwcompiler.ir.loop import Loop
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body, group_start
from tests.support.loop_bodies import body


def test_steps():
    made = body("let a = %x[i, j] + %z[3*j + i] - %z[64 - j] * %x[i, 5]\nstore %z[%n[j]], a * %x[%n[i], j]")
    assert sorted(map(str, made.steps)) == sorted(map(str, [1, 3, -1, 0, 1, 0, 1, None]))
    assert body("store %y[i, j], f64(j)").steps == [1]


@pytest.mark.parametrize("text, independent", [
    ("store %y[i, j], %x[i, j]", True),
    ("store %y[i, 3], %x[i, j]", False),                                     # all in one place
    ("%y[i, j] add= %x[i, j]", True),
    ("%y[i, 3] add= %x[i, j]", False),
    ("store %z[j], %z[j] * 2.0", True),
    ("store %z[j], %z[j + 1] * 2.0", False),
    ("store %z[j], %z[j + 63] * 2.0", False),
    ("store %z[j], %z[j + 64] * 2.0", True),                                 # beyond the end
    ("store %z[2*j], %z[2*j + 1]", True),                                    # in between
    ("store %z[2*j], %z[2*j + 4]", False),
    ("store %z[3*j], %z[2*j + 200]", True),
    ("store %z[3*j], %z[2*j + 100]", False),
    ("store %z[64*i + j], %z[64*i + j + 64]", True),
    ("store %z[64*i + j], %z[j]", False),
    ("store %z[%n[j]], 1.0", True),                                          # one after the other
    ("store %z[%n[j]], 1.0\nstore %z[%n[j]], 2.0", False),
    ("%z[%n[j]] add= 1.0", False),
    ("store %z[j], %z[%n[j]]", False),
    ("store %z[%n[i] * 1 + j], %z[j]", False),
])
def test_iterations_that_meet(text, independent):
    assert body(text.replace("%n[i] * 1 + j", "%n[i] + j")).independent == independent


def test_dear_loops_add_in_order():
    """All iterations add to one element: dear ones compute side by side what they add one after the other."""
    assert body("%y[i, 3] add= exp(%x[i, j])").independent
    assert not body("%y[i, 3] add= exp(%x[i, j])\nstore %z[j], %y[i, 3]").independent            # which is read in between
    assert not body("%y[i, 3] add= exp(%x[i, j])\n%y[i, 3] add= 1.0").independent                # by turns
    assert not body("%y[i, 3] add= sqrt(%x[i, j])").independent                                  # cheap


def test_merged_arrays_are_one():
    kernel = parse_kernel("kernel k(%x: in f64[80], %y: out f64[80])\n  for j in 0..60 vector\n    store %y[j], %x[j + 1]\n")
    loop = kernel.body[0]
    assert isinstance(loop, Loop)
    assert Body(loop, lambda buffer: buffer).independent
    x, y = kernel.buffers
    assert not Body(loop, lambda buffer: y if buffer is x else buffer).independent


def test_iterations_that_may_run_twice():
    assert body("store %y[i, j], %x[i, j]").pure
    assert not body("store %z[j], %z[j] * 2.0").pure
    assert not body("%y[i, j] add= %x[i, j]").pure


def test_groups():
    kernel = parse_kernel("kernel k(%x: in f64[30], %y: out f64[30])\n  for j in 0..10\n    store %y[j], %x[3*j + 1] + %x[3*j] + %x[2*j] + %x[7*j]\n"
                          .replace("7*j", "3*j + 2"))
    loop = kernel.body[0]
    assert isinstance(loop, Loop)
    made = Body(loop, lambda buffer: buffer)
    found = {access.offset.affine: group_start(access.buffer, access.offset, step or 0)
             for access, step in zip(made.accesses, made.steps, strict=True)}
    assert sorted(map(str, found.values())) == ["0", "0", "1", "2", "None"]            # the store has none
