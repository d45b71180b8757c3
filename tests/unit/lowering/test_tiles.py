"""Nests that go along columns run in tiles, and compute the same; others stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.lowering.loops.tiling.tiles import in_tiles
from tests.support.kernel_changes import changed

HEAD = "kernel k0(%x: in f64[100,66], %z: inout f64[66,100], %s: inout f64[66])\n  fill %s, 0.0\n"
NEST = "  for i in 0..66\n    for j in 0..100 vector\n"


def tiled(body: str) -> str:
    """The statements in tiles, which compute the same."""
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(-1, 1, (100, 66)), rng.uniform(-1, 1, (66, 100)), np.zeros(66)]
    return changed(HEAD + body, in_tiles, arrays).removeprefix(HEAD)


@pytest.mark.parametrize("body", ["      store %z[i, j], %x[j, i] + 1.0\n", "      %z[i, j] add= %x[j, i]\n"])
def test_reads_along_columns(body: str) -> None:
    text = tiled(NEST + body)
    assert text.startswith("  for b in 0..8\n    for p in 0..12\n      for t in 0..8\n        for l in 0..8 vector\n")
    assert text.count("vector") == 4                       # and what is left of the rows, of the columns, and of both


def test_writes_along_columns() -> None:
    assert "for t in 0..8" in tiled("  for j in 0..100\n    for i in 0..66 vector\n      store %z[i, j], %x[j, i]\n")


@pytest.mark.parametrize("body", [
    "      store %z[i, j], %z[i, j] + 1.0\n",              # along rows
    "      store %z[i, j], %x[j, 5]\n",                    # one column: there is nothing to do in its lines later
    "      store %z[i, j], %x[j, i] + %z[i, 99 - j]\n",    # what other iterations write
    "      store %z[i, j], %x[j, i]\n      store %z[i, j], 0.0\n",
])
def test_what_stays(body: str) -> None:
    assert tiled(NEST + body) == NEST + body


@pytest.mark.parametrize(("rows", "is_tiled"), [(2, False), (16, True)])
def test_lines_that_loops_between_go_through(rows: int, is_tiled: bool) -> None:
    """Nine colours are few, but all rows lie between one and the next."""
    head = f"kernel k0(%x: in f64[9,{rows},30], %z: inout f64[{rows},30,9])\n"
    nest = f"  for c in 0..9\n    for i in 0..{rows}\n      for j in 0..30 vector\n        store %z[i, j, c], %x[c, i, j] * 2.0\n"
    arrays = [np.random.default_rng(0).uniform(-1, 1, (9, rows, 30)), np.zeros((rows, 30, 9))]
    assert ("for t in 0..8" in changed(head + nest, in_tiles, arrays)) == is_tiled


def test_sums_stay() -> None:
    body = "  for i in 0..66\n    reduce m: f64 = add\n    for j in 0..100 vector\n      m add= %x[j, i]\n    store %s[i], m\n"
    assert tiled(f"{NEST}      store %z[i, j], 0.0\n{body}").endswith(body)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "?", "c16", "f2"])
@pytest.mark.parametrize(("shape", "axes"), [((130, 131), (1, 0)), ((3, 70, 65, 2), (0, 3, 1, 2)), ((2, 9, 16, 130), (0, 2, 3, 1)), ((64, 2, 200), (2, 1, 0))])
def test_every_permutation_and_dtype(dtype: str, shape: tuple[int, ...], axes: tuple[int, ...], rng: np.random.Generator) -> None:
    x = (4 * rng.standard_normal(shape)).astype(dtype)
    y = (4 * rng.standard_normal(tuple([shape[axis] for axis in axes]))).astype(dtype)

    def both(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z = x.transpose(axes)
        return z | y if dtype == "?" else z - y, np.where(y > y.mean(dtype="f8"), z, y) if dtype != "c16" else z

    for found, expected in zip(bw.jit(both)(x, y), both(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_an_array_is_replaced_by_its_transpose(rng: np.random.Generator) -> None:
    def turned(a: np.ndarray) -> np.ndarray:
        a[...] = a.T * 2
        a += a.T
        return a

    a = rng.standard_normal((130, 130))
    np.testing.assert_array_equal(bw.jit(turned)(a.copy()), turned(a.copy()))
