"""Choosing, replacing, inserting, deleting and padding; views: NumPy's value, dtype, shape and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend import trace
from tests.unit.frontend.comparing import compare

rng = np.random.default_rng(13)
X = rng.normal(size=(3, 4))
C = rng.normal(size=(2, 3, 4))
V = rng.normal(size=5)
EVEN = np.arange(12).reshape(3, 4) % 2 == 0


def written(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The array after `write` on a copy of it."""
    def function(x: Any) -> Any:
        y = x * 1
        return y, write(y), y
    return function


def _reads_later_writes(x: Any) -> Any:
    y = x * 1
    diagonal, other, flat, same = np.diagonal(y), np.diag(y, 1), y.flat, y.view()
    y[0, 0] = 7.0
    y[1, 2] = 8.0
    return diagonal, other, flat[5], same, np.diagonal(y.T[::-1], -1)


def _with_out(x: Any) -> Any:
    row, rows = x[0] * 0, x[:2] * 0
    np.take(x, 2, 0, out=row)
    np.compress([True, False, True], x, 0, rows)
    return row, rows, np.choose([0, 1, 2, 0], x, out=row * 1), row


def _doubles_ends(row: Any, widths: Any, axis: Any, keywords: Any) -> None:
    low, high = widths
    row[:low] = row[low] * keywords.get("factor", 2) + axis
    row[len(row) - high:] = -1.0


EXPRESSIONS: dict[str, tuple[Any, ...]] = {
    "views see later writes": (_reads_later_writes, X),
    "diagonals of stacks": (lambda c: (np.diagonal(c, 1, 0, 2), np.diagonal(c, -1, -1, 0)[..., 0], c.diagonal(axis1=1, axis2=2)), C),
    "fill_diagonal": (written(lambda y: np.fill_diagonal(y, y[0, 1])), X),
    "fill_diagonal repeats": (written(lambda y: np.fill_diagonal(y, [1, 2])), X),
    "through flat": (written(lambda y: y.flat.__setitem__(slice(2, 5), 0)), X),
    "put": (written(lambda y: np.put(y, [0, 5, -1], [1.0, 2.0])), X),
    "put wraps and clips": (written(lambda y: (y.put([13], 1.0, "wrap"), np.put(y, [99, -99], 2.0, "clip"))[:0]), X),
    "place": (written(lambda y: np.place(y, EVEN, [1.0, 2.0])), X),
    "putmask": (written(lambda y: np.putmask(y, y > 0, [1.0, 2.0, 3.0])), X),
    "True and False": (lambda x: (x[True], x[False], x[None, True], x[1, True], x[True, ..., 0]), X),
    "writes at True and False": (written(lambda y: (y.__setitem__(True, y * 2), y.__setitem__(False, 9.0))[:0]), X),
    "choose": (lambda x: (np.choose([0, 1, 2, 0], x), np.choose(np.array([0, 5, -7, 1]), x, mode="wrap"),
                          np.choose([[0], [1]], [x[0], 2.0]), np.choose([3, -1, 0, 1], x, mode="clip")), X),
    "compress": (lambda x: (np.compress([True, False, True], x, 0), x.compress([False, True], 1), np.compress(EVEN.ravel(), x)), X),
    "extract": (lambda x: np.extract(EVEN, x), X),
    "piecewise": (lambda x: (np.piecewise(x, [x < 0, x > 1], [lambda t: -t, 1.0]),
                             np.piecewise(x, [x < 0], [0.0, np.abs]), np.piecewise(x[0], x[0] < 0, [np.square, 2.0])), X),
    "out": (lambda x: _with_out(x), X),
    "axes of no axes": (lambda x: (np.take(x[0, 0], 0, axis=0), np.take(x[0, 0], [0, 0], -1), np.repeat(x[0, 0], 3, axis=-1),
                                   np.squeeze(x[0, 0], -1)), X),
    "insert": (lambda x: (np.insert(x, 1, 9.0, 0), np.insert(x, [1, 3], x[:, :2], 1), np.insert(x, 2, 7), np.insert(x, -1, x[:, 0], 1),
                          np.insert(x, slice(0, 2), 0.0, 0), np.insert(x, [0, 0, 2], [1, 2, 3])), X),
    "insert a block": (lambda x: (np.insert(x, 1, x[:2], 0), np.insert(x, [1], x[:2], 0), np.insert(x[:, :3], 1, x[:, :3], 1),
                                  np.insert(x, [1], x[:, :3], 1), np.insert(x[0], 1, x[:1, :1]), np.insert(x[0], [2], x[:1, :1])), X),
    "delete": (lambda x: (np.delete(x, 1, 0), np.delete(x, [0, -1], 1), np.delete(x, slice(1, None, 2)), np.delete(x, EVEN[0], 1)), X),
    "resize": (lambda x: (np.resize(x, (2, 3)), np.resize(x, (5, 4)), np.resize(x, 0)), X),
    "indices": (lambda x: (x[np.tril_indices_from(x)], x[np.triu_indices_from(x, 1)], x[:, :3][np.diag_indices_from(x[:, :3])]), X),
    "sliding windows": (lambda x: (np.lib.stride_tricks.sliding_window_view(x, 2, 1),
                                   np.lib.stride_tricks.sliding_window_view(x, (2, 3)),
                                   np.lib.stride_tricks.sliding_window_view(x, (2, 1), (1, 0))), X),
    "windows of windows": (lambda x: (np.lib.stride_tricks.sliding_window_view(x, (2, 3), (1, 1)),
                                      np.lib.stride_tricks.sliding_window_view(x, (2, 2, 2), (-1, 0, 1))), X),
    "along an axis": (lambda c: (np.apply_along_axis(np.sum, 1, c), np.apply_along_axis(lambda r: r[:, None] * r, -1, c),
                                 np.apply_over_axes(np.sum, c, (0, -1))), C),
    "ravel": (lambda x: tuple(np.ravel(y, order) for y in (x, x.T, x[:, ::-1]) for order in "CFAK"), X),
    "flatten": (lambda x: tuple(y.flatten(order) for y in (x, x.T) for order in "CFAK"), X),
    "shifts": (lambda x: (np.fft.fftshift(x), np.fft.ifftshift(x, 1), np.fft.fftshift(x[0])), X),
    "what real arrays are": (lambda x: (np.angle(x), np.angle(x, True), np.iscomplex(x), np.real_if_close(x), x.conj()), X),
    "pad of nothing": (lambda x: (np.pad(x, 0, "reflect"), np.pad(x, ((0, 1), (0, 0)), "mean"), np.pad(x[0], (3, 0), "wrap")), X),
    "pad with keywords": (lambda x: (np.pad(x, 2, "reflect", reflect_type="odd"), np.pad(x, 2, "mean", stat_length=2),
                                     np.pad(x, 1, "linear_ramp", end_values=((1, 2), (3, 4))), np.pad(x, 1, constant_values=2),
                                     np.pad(x, [(0, 0), (2, 0)], "symmetric", reflect_type="odd")), X),
    "pad with a function": (lambda x: (np.pad(x, ((1, 2), (0, 3)), _doubles_ends), np.pad(x, 2, _doubles_ends, factor=x[0, 1]),
                                       np.pad(x.astype(int), (1, 0), _doubles_ends)), X),
    "pad by reflections of reflections": (lambda x: [np.pad(y, width, mode, reflect_type="odd") for y in (x, np.floor(x * 9).astype(np.int8))
                                                     for width in (5, (0, 9), ((11, 1), (0, 3))) for mode in ("reflect", "symmetric")], X),
}
if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
    EXPRESSIONS["pad of some axes"] = (lambda x: np.pad(x, {1: (2, 0)}, "symmetric", reflect_type="odd"), X)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_as_numpy(name: str) -> None:
    function, *arrays = EXPRESSIONS[name]
    compare(function, *arrays)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum", "mean", "median"])
def test_pad_modes(mode: str) -> None:
    compare(lambda x: np.pad(x, ((1, 0), (2, 3)), mode), X)
    compare(lambda x: np.pad(x, 12, mode), V)
    if mode != "linear_ramp":
        compare(lambda x: np.pad(x, 2, mode), np.arange(7).reshape(1, 7))


def test_diagonals_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        compare(lambda x: np.diagonal(x * 1).__setitem__(0, 1.0), X)


def test_flat_of_a_strided_array() -> None:
    def written(x: Any) -> Any:
        part = x.T.flat[1:4]
        part[0] = 7.0                                   # a copy
        x.T.flat[2:5] = [1.0, 2.0, 3.0]
        x[:, ::2].flat[-1] = 8.0
        x.flat[::3] += 1.0
        return x.T.flat[1], part

    for x in (X, np.asfortranarray(X), X[::-1]):
        compare(written, x)

def test_flat_reads_copies_and_writes_through_any_strides() -> None:
    def function(x: Any) -> Any:
        taken = x.T.flat[1:3]
        x.T.flat[[0, 5]] = [-1.0, -2.0]
        x[::-1, ::2].flat = [7.0, 8.0, 9.0]
        taken[0] = 100.0
        np.put(x.T, [3, -1], [5.0])
        np.put_along_axis(x, np.array([7]), 6.0, None)
        return taken, x * 1, list(x.T.flat)[3], len(x.flat)

    compare(function, X)


def test_windows_see_later_writes() -> None:
    def function(x: Any) -> Any:
        windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2))
        columns = np.lib.stride_tricks.sliding_window_view(x[:, ::2], 2, 0)
        before = windows * 1
        x[1, 1:] = -7.0
        return before, windows * 1, windows[0, 1] * 1, columns.sum(-1), windows.reshape(-1, 4)

    compare(function, X)
    for index in (0, (0, 0, 0, 0), ...):
        with pytest.raises(ValueError, match="read-only"):
            compare(lambda x, index=index: np.lib.stride_tricks.sliding_window_view(x * 1, (2, 2)).__setitem__(index, 1.0), X)
    with pytest.raises(UnsupportedError, match="which the windows see"):
        trace(lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0, writeable=True), (X,))


@pytest.mark.parametrize(("shape", "indices"), [((1, 5), (5, 2)), ((5, 1), (1, 3)), ((1, 1), (4, 3)), ((4, 2, 1), (1, 3, 5))])
def test_along_an_axis_others_are_stretched(shape: tuple[int, ...], indices: tuple[int, ...]) -> None:
    x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    index = np.arange(np.prod(indices)).reshape(indices) % shape[1] - 1
    compare(lambda x: np.take_along_axis(x, index, 1), x)
    if len(shape) == len(indices) and all(m in (n, 1) for m, n in zip(indices, shape, strict=True)):
        compare(lambda x: np.put_along_axis(x, index, -5.0, 1), x)
    with pytest.raises(IndexError, match="must be an integer array"):
        compare(lambda x: np.take_along_axis(x, index * 1.0, 1), x)


def test_traced_conditions_are_refused() -> None:
    for function in (lambda x: np.trim_zeros(x[0]), lambda x: np.insert(x, x[0] > 0, 1.0)):
        with pytest.raises(UnsupportedError, match="traced|data decide"):
            bw.jit(function)(X)
