"""Rows that go along columns do so by way of panels, and compute the same bits; others stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.lowering.loops.tiling.stage_columns import stage_columns
from tests.support.kernel_changes import changed

HEAD = "kernel k0(%x: in f64[100,128], %y: out f64[100,128], %z: inout f64[30,100], %s: inout f64[30]"


def staged(body: str) -> str:
    """The statements by way of panels, which compute the same."""
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, (100, 128)), np.zeros((100, 128)), rng.uniform(-1, 1, (30, 100)), np.zeros(30)]
    return changed(f"{HEAD})\n{body}  store %s[0], 0.5\n  store %z[0, 0], 0.5\n{'' if '%y' in body else '  fill %y, 0.0' + chr(10)}", stage_columns, arrays)


ROWS = """  for i in 0..30
    reduce m: f64 = add
    for j in 0..100 vector
      m add= {}
    for j in 0..100 vector
      {}
    store %s[i], m
"""


def test_reads_and_writes() -> None:
    text = staged(ROWS.format("%x[j, i]", "store %y[j, i], %x[j, i] - m"))
    assert text.startswith(HEAD + ", %x.panel: scratch f64[8,104], %y.panel: scratch f64[8,104], %x.panel_1: scratch f64[6,104],")
    assert """  for b in 0..3
    for j in 0..100
      for l in 0..8 vector
        store %x.panel[l, j], %x[j, 8*b + l]
    for t in 0..8
      reduce m: f64 = add
      for j in 0..100 vector
        m add= %x.panel[t, j]
      for j in 0..100 vector
        store %y.panel[t, j], %x.panel[t, j] - m
      store %s[8*b + t], m
    for j in 0..100
      for l in 0..8 vector
        store %y[j, 8*b + l], %y.panel[l, j]
""" in text


@pytest.mark.parametrize("first, then", [
    ("%x[j, i]", "store %z[i, j], %x[j, i] - m"),                                 # reads alone
    ("%z[i, j]", "store %y[j, i], %z[i, j] - m"),                                 # writes alone
    ("%x[j, i] + %x[i, i]", "store %z[i, j], m"),                                 # others of the same array
    ("%x[99 - j, i]", "store %z[i, j], %x[j, i]"),                                # two columns
])
def test_what_is_staged(first: str, then: str) -> None:
    assert ".panel" in staged(ROWS.format(first, then))


@pytest.mark.parametrize("first, then", [
    ("%z[i, j]", "store %z[i, j], %z[i, j] - m"),                                 # along rows
    ("%x[j, 5]", "store %z[i, j], m"),                                            # one column
    ("%x[j, i] if in_range(j + i, 1, 4) else 0.0", "store %z[i, j], m"),          # that may not be there
    ("%z[i, j]", "%y[j, i] add= m"),                                              # added to what was there
    ("%z[i, j]", "store %y[j, 29 - i], m"),
])
def test_what_stays(first: str, then: str) -> None:
    fill = "  fill %y, 0.0\n" if "%y[j, i] add" in then else ""
    assert ".panel" not in staged(fill + ROWS.format(first, then))


def test_results_that_another_loop_writes_stay() -> None:
    assert ".panel" not in staged("  fill %y, 0.0\n" + ROWS.format("%z[i, j]", "store %y[j, i], m"))
    again = "  for j in 0..100\n    for i in 0..30 vector\n      store %z[i, j], %y[j, i]\n"
    assert ".panel" not in staged(ROWS.format("%z[i, j]", "store %y[j, i], m") + again)


def test_columns_that_stay_in_the_cache_stay() -> None:
    for columns, rows, is_staged in ((128, 100, True), (100, 100, False), (32, 100, False), (128, 30, False)):
        kernel = parse_kernel(f"kernel k0(%x: in f64[{rows},{columns}], %s: out f64[{columns}])\n" + ROWS.replace(
            "0..30", f"0..{columns}").replace("0..100", f"0..{rows}").format("%x[j, i]", "m add= %x[j, i]"))
        assert (stage_columns(kernel) is not kernel) == is_staged
    large = "kernel k0(%x: in f64[3000,{0}], %s: out f64[{0}])\n  for i in 0..{0}\n    reduce m: f64 = add\n    for j in 0..3000 vector\n" \
            "      m add= %x[j, i]\n    store %s[i], m\n"
    for columns, is_staged in ((2000, False), (2048, True)):               # in the second cache
        kernel = parse_kernel(large.format(columns))
        assert (stage_columns(kernel) is not kernel) == is_staged


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("shape", [(130, 128), (256, 64), (75, 333), (64, 250)], ids=str)
def test_functions_of_rows_and_columns(dtype: str, shape: tuple[int, int], rng: np.random.Generator) -> None:
    """The contrastive loss of pairs, and what is made of an array and of its transpose by rows."""
    s = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype == "c16" else 0)).astype(dtype)

    def shares(s: Any) -> Any:
        e = np.exp(s - np.max(abs(s), 1, keepdims=True))
        return e / np.sum(e, 1, keepdims=True)

    def both(s: Any) -> Any:
        return shares(s), shares(s.T), (shares(s.T) * 2).T

    def loss(s: Any) -> Any:
        return np.sum(abs(shares(s)) ** 2) + np.sum(abs(shares(s.T)) ** 3)

    before, found = bw.get_num_threads(), []
    for count in (1, 3):
        bw.set_num_threads(count)
        found.append((*bw.jit(both)(s), bw.jit(bw.grad(loss))(s)))
    bw.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, expected in zip(found[0], both(s), strict=False):
        np.testing.assert_allclose(one, expected, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-7 if dtype == "f4" else 1e-14)
    np.testing.assert_allclose(found[0][-1], bw.grad(loss)(s.astype("c16" if dtype == "c16" else "f8")),
                               rtol=1e-3 if dtype == "f4" else 1e-9, atol=1e-6 if dtype == "f4" else 1e-12)
