"""Short rows that lie side by side are summed as one, to the same numbers; others stay as they are."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.lowering.loops.tiling.join_rows import join_rows
from tests.support.kernel_changes import changed

HEAD = "kernel k0(%x: in f64[3,4,5], %w: in f64[3,4], %z: inout f64[3,4,5], %s: inout f64[3])\n"


def joined(body: str) -> str:
    """The statements with rows joined, which compute the same up to the order of sums."""
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, shape) for shape in ((3, 4, 5), (3, 4), (3, 4, 5), (3,))]
    text = changed(f"{HEAD}{body}  store %s[0], 0.5\n  store %z[0, 0, 0], 0.5\n", join_rows, arrays,
                   functools.partial(np.testing.assert_allclose, rtol=1e-14, atol=1e-15)).removeprefix(HEAD)
    return text[:text.index("  store %s[0]")]


def test_one_sum_over_two_axes() -> None:
    assert joined("""  for i in 0..3
    reduce m: f64 = add
    for j in 0..4
      for k in 0..5 vector
        m add= %x[i, j, k]
        store %z[i, j, k], %x[i, j, k] * 2.0
    store %s[i], m
""") == """  for i in 0..3
    reduce m: f64 = add
    for k in 0..20 vector
      m add= %x[+ 20*i + k]
      store %z[+ 20*i + k], %x[+ 20*i + k] * 2.0
    store %s[i], m
"""


def test_rows_under_a_guard() -> None:
    assert joined("""  for i in 0..3
    reduce m: f64 = add
    for j in 0..4
      for k in 0..5 vector
        m add= %x[i, j - 1, k] if in_range(j - 1, 0, 2) else 1.0
    store %s[i], m
""") == """  for i in 0..3
    reduce m: f64 = add
    for k in 0..20 vector
      m add= %x[+ 20*i + k - 5] if in_range(k - 5, 0, 10) else 1.0
    store %s[i], m
"""


@pytest.mark.parametrize("total", ["%s[i]", "%s[2]"])
def test_rows_whose_sums_are_added_to_one_total_have_one_sum(total: str) -> None:
    text = joined(f"""  for i in 0..3
    for j in 0..4
      reduce a: f64 = add
      reduce b: f64 = maximum
      for k in 0..5 vector
        a add= %x[i, j, k]
        b maximum= %x[i, j, k]
      {total} add= a
      %z[i, 0, 0] maximum= b
""")
    assert text == f"""  for i in 0..3
    reduce a: f64 = add
    reduce b: f64 = maximum
    for k in 0..20 vector
      a add= %x[+ 20*i + k]
      b maximum= %x[+ 20*i + k]
    {total} add= a
    %z[i, 0, 0] maximum= b
"""


def test_all_axes() -> None:
    text = joined("""  reduce m: f64 = add
  for i in 0..3
    for j in 0..4
      reduce a: f64 = add
      for k in 0..5 vector
        a add= %x[i, j, k]
      m add= a
  store %s[1], m
""")
    assert text.startswith("  reduce m: f64 = add\n  reduce a: f64 = add\n  for k in 0..60 vector\n")


ROW = "  for i in 0..3\n    for j in 0..4\n      reduce a: f64 = add\n      for k in 0..5 vector\n        {}\n      {}\n"
NEST = "  for i in 0..3\n    reduce m: f64 = add\n    for j in 0..4\n      for k in 0..5{}\n        {}\n    store %s[i], m\n"


@pytest.mark.parametrize("body", [
    ROW.format("a add= %x[i, j, k]", "store %z[i, j, 0], a"),                     # each row's own
    ROW.format("a add= %x[i, j, k]", "%z[i, j, 0] add= a"),
    ROW.format("a add= %x[i, j, k]", "%s[i] maximum= a"),                         # of sums
    ROW.format("a add= %x[i, j, k]", "%s[i] add= a * 2.0"),
    ROW.format("a add= %x[i, 3 - j, k]", "%s[i] add= a"),                         # the rows are not in order,
    ROW.format("a add= %x[i, j, 4 - k]", "%s[i] add= a"),
    NEST.format(" vector", "m add= %x[i, j, k] * %w[i, j]"),                      # or something changes from row to row
    NEST.format(" vector", "m add= %x[0, 0, k]"),
    NEST.format("", "m add= %x[i, j, k]"),                                        # in order
])
def test_what_stays(body: str) -> None:
    assert joined(body) == body


def test_long_rows_stay() -> None:
    text = "kernel k0(%x: in f64[4,256], %s: out f64[])\n  reduce m: f64 = add\n  for i in 0..4\n    for k in 0..256 vector\n" \
           "      m add= %x[i, k]\n  store %s[], m\n"
    kernel = parse_kernel(text)
    assert join_rows(kernel) is kernel


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4"])
@pytest.mark.parametrize("shape", [(6, 5, 7, 7), (3, 2, 16, 16), (40, 3), (2, 3, 300)], ids=str)
def test_sums_of_channels_are_those_of_numpy_for_every_number_of_threads(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    """Batch norm's: over all axes but the second; and over all."""
    x = (rng.standard_normal(shape) * 10).astype(dtype)
    axes = (0, *range(2, len(shape)))

    def statistics(x: Any) -> Any:
        centred = x - x.mean(axes, keepdims=True)
        return x.sum(axes), np.prod(x / 9, axes), (centred * centred).mean(axes), np.sum(x * x), np.max(abs(x), axes), np.any(x > 30)

    before, found = bw.get_num_threads(), []
    for count in (1, 3):
        bw.set_num_threads(count)
        found.append(bw.jit(statistics)(x))
    bw.set_num_threads(before)
    for one, other, expected in zip(*found, statistics(x), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, expected, rtol=2e-4 if dtype == "f4" else 1e-11, atol=1e-3 if dtype == "f4" else 1e-10)
