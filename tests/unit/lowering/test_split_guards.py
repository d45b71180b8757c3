"""Loops are cut where guards change, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.ir.loop import Buffer, Kernel
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.lowering.loops.split_guards import split_guards

HEAD = "kernel k0(%x: in f64[20,20], %v: in i64[20], %y: out f64[20,20], %z: out f64[20])\n  fill %y, 0.0\n  fill %z, 0.0\n"


def split(body: str) -> str:
    """The statements after splitting, which compute the same."""
    kernel = parse_kernel(HEAD + body)
    cut = Kernel(kernel.name, kernel.buffers, split_guards(kernel.body))
    verify_kernel(kernel)
    verify_kernel(cut)
    x, v = np.random.default_rng(0).uniform(-1, 1, (20, 20)), np.arange(20) % 7
    before, after = [[x, v, np.zeros((20, 20)), np.zeros(20)] for _ in range(2)]
    run_kernel(kernel, before)
    run_kernel(cut, after)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)
    return kernel_to_text(cut).removeprefix(HEAD)


def test_border_and_interior():
    assert split("""\
  for i in 0..20 vector
    store %z[i], %x[0, i - 2] if in_range(i - 2, 0, 18) else 0.5
""") == """\
  for i in 0..2
    store %z[i], 0.5
  for i in 0..18 vector
    store %z[i + 2], %x[0, i]
"""


def test_long_pieces_have_no_guard_on_either_side():
    assert split("""\
  for i in 0..20 vector
    store %z[i], %x[0, i] if in_range(i, 0, 10) else %x[1, i - 10]
""") == """\
  for i in 0..10 vector
    store %z[i], %x[0, i]
  for i in 0..10 vector
    store %z[i + 10], %x[1, i]
"""


def test_neighbouring_borders_share_a_copy_that_tests():
    assert split("""\
  for i in 0..20
    store %z[i], (%x[0, i - 1] if in_range(i - 1, 0, 19) else 0.0) + (%x[1, i - 2] if in_range(i - 2, 0, 18) else 0.0)
""") == """\
  for i in 0..2
    store %z[i], (%x[0, i - 1] if in_range(i - 1, 0, 19) else 0.0) + 0.0
  for i in 0..18
    store %z[i + 2], %x[0, i + 1] + %x[1, i]
"""


def test_outer_loops_are_cut_too_and_what_they_decide_is_decided_inside():
    assert split("""\
  for i in 0..20
    for j in 0..20 vector
      let a = %x[i - 9, j] if in_range(i - 9, 0, 11) else 1.0
      let b = %x[i, j - 10] if in_range(j - 10, 0, 10) else a
      store %y[i, j], a + b
""") == """\
  for i in 0..9
    for j in 0..10 vector
      let a = 1.0
      let b = a
      store %y[i, j], a + b
    for j in 0..10 vector
      let a = 1.0
      let b = %x[i, j]
      store %y[i, j + 10], a + b
  for i in 0..11
    for j in 0..10 vector
      let a = %x[i, j]
      let b = a
      store %y[i + 9, j], a + b
    for j in 0..10 vector
      let a = %x[i, j + 10]
      let b = %x[i + 9, j]
      store %y[i + 9, j + 10], a + b
"""


def test_what_is_opened_in_a_loop_is_opened_in_each_piece_anew():
    assert split("""\
  for i in 0..20
    reduce row: f64 = add
    for j in 0..20 vector
      row add= %x[i - 9, j] if in_range(i - 9, 0, 11) else 1.0
    store %z[i], row
""") == """\
  for i in 0..9
    reduce row: f64 = add
    for j in 0..20 vector
      row add= 1.0
    store %z[i], row
  for i in 0..11
    reduce row: f64 = add
    for j in 0..20 vector
      row add= %x[i, j]
    store %z[i + 9], row
"""


def test_everything_a_statement_says_is_moved():
    """Indices as values and in data-dependent positions, accumulators, positions of searches, memory, fills in the body."""
    assert split("""\
  reduce best: f64 = argmin
  for i in 0..20
    best argmin= %x[i, 0] if in_range(i, 0, 10) else %x[0, i] at i
    %z[%v[i]] add= f64(index(2*i + 1)) if in_range(i, 0, 10) else 0.0
  for i in 0..20
    reduce sum: f64 = add
    for j in 0..5 vector
      sum add= %x[i, j] if in_range(i, 0, 10) else %x[j, i]
    store %z[i], sum + f64(position(best))
""") == """\
  reduce best: f64 = argmin
  for i in 0..10
    best argmin= %x[i, 0] at i
    %z[%v[i]] add= f64(index(2*i + 1))
  for i in 0..10
    best argmin= %x[0, i + 10] at index(i + 10)
    %z[%v[i + 10]] add= 0.0
  for i in 0..10
    reduce sum: f64 = add
    for j in 0..5 vector
      sum add= %x[i, j]
    store %z[i], sum + f64(position(best))
  for i in 0..10
    reduce sum: f64 = add
    for j in 0..5 vector
      sum add= %x[j, i + 10]
    store %z[i + 10], sum + f64(position(best))
"""


def test_loops_over_a_few_elements_are_written_out():
    """So all guards are decided, those on numbers of elements too."""
    assert split("""\
  for p in 0..1
    for i in 0..2
      for j in 0..2 vector
        let a = %x[0, 0] if in_range(2*i + j, 0, 1) else %x[1, 2*i + j - 1] * 2.0
        store %y[i, 2*p + j], a
""") == """\
  let a = %x[0, 0]
  store %y[0, 0], a
  let a_1 = %x[1, 0] * 2.0
  store %y[0, 1], a_1
  let a_2 = %x[1, 1] * 2.0
  store %y[1, 0], a_2
  let a_3 = %x[1, 2] * 2.0
  store %y[1, 1], a_3
"""


def test_a_long_loop_around_stays():
    """What it says itself of guards is not decided by the loops inside."""
    assert split("""\
  for k in 0..20
    for i in 0..2
      reduce sum: f64 = add
      for j in 0..3
        sum add= %x[k, i] if in_range(j, 0, 1) else %x[k, j + 1] if in_range(2*k, 0, 6) else 1.0
      store %y[k, i], sum
""") == """\
  for k in 0..20
    reduce sum: f64 = add
    sum add= %x[k, 0]
    sum add= %x[k, 2] if in_range(2*k, 0, 6) else 1.0
    sum add= %x[k, 3] if in_range(2*k, 0, 6) else 1.0
    store %y[k, 0], sum
    reduce sum_1: f64 = add
    sum_1 add= %x[k, 1]
    sum_1 add= %x[k, 2] if in_range(2*k, 0, 6) else 1.0
    sum_1 add= %x[k, 3] if in_range(2*k, 0, 6) else 1.0
    store %y[k, 1], sum_1
"""


@pytest.mark.parametrize("body", [
    "  for i in 0..20\n    store %z[i], %x[0, i]\n",                                                    # no guard
    "  for i in 0..20\n    store %z[i], %x[0, i] if in_range(i, 0, 20) else 0.0\n",                     # always true: left alone
    "  for i in 0..7\n    store %z[i], %x[0, i - 3] if in_range(i - 3, 0, 20) else 0.0\n",              # no piece is long
    "  for i in 0..20\n    store %z[i], %x[0, 19 - i] if in_range(19 - i, 0, 10) else 0.0\n",           # runs backwards
    "  for i in 0..20\n    store %z[i], %x[0, 0] if in_range(2*i, 0, 10) else 0.0\n",                   # not by ones
    "  for i in 0..20\n    for j in 0..1\n      store %z[i], %x[0, i] if in_range(i + j, 0, 10) else 0.0\n",     # of two loops
], ids=["no guard", "always true", "short", "backwards", "strided", "two indices"])
def test_loops_that_are_not_cut(body):
    assert split(body) == body


def test_a_loop_of_many_pieces_is_not_cut():
    body = "  for i in 0..20\n"
    for k in range(8):
        body += f"    %z[i] add= %x[{k}, i] if in_range(i, {2 * k}, {2 * k + 9}) else 1.0\n"
    assert split(body) == body


def test_iterations_without_an_element_do_not_read():
    """A guard that is false in a whole piece takes the read with it."""
    assert "%x[" not in split("  for i in 0..20\n    store %z[i], %x[0, i] if in_range(i + 20, 0, 10) else 1.0\n").split("else")[-1]


def test_panels_that_no_guard_changes_in_have_none():
    assert split("""\
  for p in 0..10
    for l in 0..2 vector
      store %z[2*p + l], %x[1, 2*p + l] if in_range(2*p + l, 0, 1) else %x[0, 2*p + l]
""") == """\
  for p in 0..1
    for l in 0..2 vector
      store %z[2*p + l], %x[1, 2*p + l] if in_range(2*p + l, 0, 1) else %x[0, 2*p + l]
  for p in 0..9
    for l in 0..2 vector
      store %z[2*p + l + 2], %x[0, 2*p + l + 2]
"""


def test_pieces_of_loops_have_scratch_of_their_own_that_nothing_else_uses():
    kernel = parse_kernel("""\
kernel k0(%x: in f64[40], %y: out f64[40], %row: scratch f64[2], %all: scratch f64[2])
  fill %all, 0.0
  for p in 0..20
    for l in 0..2 vector
      store %row[l], %x[2*p + l] + %all[l]
    for l in 0..2 vector
      store %y[2*p + l], 1.0 if in_range(2*p + l, 0, 20) else %row[l]
""")
    buffers = list(kernel.buffers)

    def renewed(scratch):
        buffers.append(Buffer(f"{scratch.name}_1", scratch.dtype, scratch.shape, scratch.role))
        return buffers[-1]
    cut = Kernel(kernel.name, buffers, [kernel.body[0], *split_guards(kernel.body[1:], kernel.body[:1], renewed)])
    verify_kernel(cut)
    assert [buffer.name for buffer in buffers] == ["x", "y", "row", "all", "row_1"]
    assert kernel_to_text(cut).splitlines()[-5:] == [
        "  for p in 0..10", "    for l in 0..2 vector", "      store %row_1[l], %x[2*p + l + 20] + %all[l]", "    for l in 0..2 vector",
        "      store %y[2*p + l + 20], %row_1[l]"]
