"""NumPy's functions over every dtype, over arrays without axes, without elements and of one element, and with odd arguments.

A row of `CALLS` is run on each array of `ARRAYS`.  Where NumPy gives a result, tracing gives the same (value, dtype, shape,
array or scalar); where NumPy raises, tracing raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from bwcompiler.errors import BwError, DTypeError, UnsupportedError
from bwcompiler.frontend import trace
from tests.unit.frontend.comparing import compare

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
SHAPES = [(), (0,), (1,), (3,), (2, 3), (1, 3), (0, 3), (2, 1, 2)]


def array_of(dtype: str, shape: tuple[int, ...]) -> Any:
    """Small numbers, the limits of an integer dtype, negative numbers where there are any."""
    kind = np.dtype(dtype)
    numbers: list[Any] = [3, 1, 0, 2, 5, 1]
    if kind.kind in "iu":
        numbers[2:4] = [np.iinfo(kind).max, np.iinfo(kind).min]
    if kind.kind in "if":
        numbers[4:] = [-3, -1]
    if kind.kind == "f":
        numbers[1] = 0.25
    return np.resize(np.array(numbers, kind), shape)


ARRAYS = {f"{dtype}{list(shape)}": array_of(dtype, shape) for dtype in DTYPES for shape in SHAPES}


def _changed(function: Callable[..., Any], x: Any, *args: Any, **options: Any) -> Any:
    x = np.copy(x)
    function(x, *args, **options)
    return x


def _assigned(x: Any, index: Any, value: Any) -> Any:
    x = np.copy(x)
    x[index] = value
    return x


def _flat_assigned(x: Any, value: Any) -> Any:
    x = np.copy(x)
    x.T.flat = value
    return x


CALLS: dict[str, Callable[[Any], Any]] = {
    "where": lambda x: (np.where(x > 0, x, 1), np.where(x, 2.5, x), np.where(True, x, 7)),
    "select": lambda x: np.select([x > 2, x < 1], [x, x * 1], 1),
    "select of floats": lambda x: np.select([x > 2], [x], 0.5),
    "choose": lambda x: np.choose([1, 0, 1], [x, 300], mode="clip") if np.ndim(x) == 1 and np.size(x) == 3 else None,
    "copy": lambda x: (np.copy(x), x.copy(), np.positive(x) if x.dtype != bool else x, x[...]),
    "isin, roll": lambda x: (np.isin(x, [1, 3]), np.roll(x, 1)),
    "piecewise": lambda x: (np.piecewise(x, [x > 1], [1, 2]), np.piecewise(x, x > 1, [lambda t: t])),
    "average": lambda x: np.average(x, weights=np.ones(np.shape(x), np.int8)) if np.size(x) else None,
    "average along": lambda x: np.average(x, axis=-1, weights=np.arange(1, x.shape[-1] + 1, dtype=np.int8), returned=True)
    if np.ndim(x) and np.size(x) else None,
    "reciprocal": lambda x: np.reciprocal(x),
    "clip": lambda x: (np.clip(x, -1, 5), np.clip(x, None, 300), np.clip(x, -(2**70), 2**70)),
    "clip by floats": lambda x: np.clip(x, 0.5, 2),
    "signbit, isnan": lambda x: (np.signbit(x), np.isnan(x), np.isfinite(x)),
    "subtract.at": lambda x: [_changed(np.subtract.at, x, [0, 0], np.uint8(200)), _changed(np.add.at, x, [0, -1, 0], 300),
                              _changed(np.add.at, x, 0, 2.75), _changed(np.add.at, x, [0, 0], [0.75, 0.75])],
    "multiply.at": lambda x: [_changed(np.multiply.at, x, [0, 0], 3), _changed(np.maximum.at, x, [0], np.int8(4))],
    "copyto": lambda x: _changed(np.copyto, x, 7),
    "copyto of numbers": lambda x: (_changed(np.copyto, x, np.uint8(200), casting="unsafe"), _changed(np.copyto, x, True)),
    "copyto of floats": lambda x: _changed(np.copyto, x, 2.5),
    "copyto too many axes": lambda x: _changed(np.copyto, x, np.ones((1, 1, 1, 1))),
    "put": lambda x: (_changed(np.put, x, [], 1), _changed(np.put, x, [], []), _changed(np.put, x, [0, -1], [1, 2, 3]),
                      _changed(np.put, x, [True, False], np.uint8(200)), _changed(np.put, x, 9, 2, "wrap")),
    "put of a number": lambda x: _changed(np.put, x, [0], -1),
    "putmask": lambda x: (_changed(np.putmask, x, np.ones(np.shape(x), bool), True), _changed(np.putmask, x, x > 0, [])),
    "putmask of floats": lambda x: _changed(np.putmask, x, x > 0, np.array([1.5])),
    "place": lambda x: _changed(np.place, x, np.ones(np.shape(x), bool), [True, False]),
    "masked assignment": lambda x: (_assigned(x, np.zeros(np.shape(x), bool), np.uint8(200)),
                                    _assigned(x, np.ones(np.shape(x), bool), np.uint8(200)), _assigned(x, x > 1, np.uint8(200))),
    "assignment": lambda x: (_assigned(x, ..., 1), _assigned(x, [0, -1], np.uint8(200))),
    "assignment of a scalar": lambda x: _assigned(x, ..., np.uint8(200)),
    "flat": lambda x: (_flat_assigned(x, 1), _flat_assigned(x, [1, 0, 1]), x.flat[:2]),
    "fill_diagonal": lambda x: (_changed(np.fill_diagonal, x, 1), _changed(np.fill_diagonal, x, [0, 1], wrap=True)),
    "take": lambda x: (np.take(x, [0, -1]), np.take(x, [[7]], mode="clip"), np.take(x, 9, 0, mode="wrap")),
    "take at floats": lambda x: np.take(x, np.array([0.0]), mode="clip"),
    "sums as": lambda x: (np.sum(x, dtype=bool), np.prod(x, -1, dtype=bool), np.cumsum(x, dtype=bool), np.sum(x, dtype=np.float32)),
    "truth with an initial": lambda x: (np.sum(x, dtype=bool, initial=1.5), np.prod(x, 0, dtype=bool, initial=0), np.add.reduce(x, 0, bool, initial=2),
                                        np.sum(x, dtype=bool, where=False, initial=0.5), np.sum(x, dtype=bool, initial=0, keepdims=True)),
    "means as integers": lambda x: np.mean(x, dtype=int),
    "means as bytes": lambda x: np.mean(x, 0, dtype=np.uint8),
    "argmax": lambda x: (np.argmax(x), np.argmin(x, -1), np.argmax(x, 0, keepdims=True)),
    "argmax over axes": lambda x: np.argmax(x, (0,)),
    "folds": lambda x: (np.fmax.reduce(x, -1), np.hypot.reduce(x, ()), np.logical_xor.reduce(x, None)),
    "folds with an initial": lambda x: (np.fmin.reduce(x, -1, initial=1), np.subtract.reduce(x, 0, initial=1)),
    "folds of integers": lambda x: (np.gcd.reduce(x, -1, initial=2), np.bitwise_or.reduce(x, initial=1), np.lcm.accumulate(x // 2)),
    "folds that overflow": lambda x: (np.lcm.reduce(x, -1), np.lcm.accumulate(x, 0), np.multiply.accumulate(x, -1)),
    "folds as integers": lambda x: np.divide.reduce(x, -1, dtype=int),
    "median": lambda x: (np.median(x), np.nanmedian(x), np.nanmedian(x, -1, keepdims=True)) if np.size(x) else None,
    "quantile": lambda x: (np.quantile(x, 0), np.quantile(x, [1, 0], 0), np.nanquantile(x, 1), np.quantile(x, np.float32(0.25)))
    if np.size(x) and x.dtype != bool else None,
    "unwrap": lambda x: (np.unwrap(x), np.unwrap(x, axis=0, period=4), np.unwrap(x, discont=3)),
    "histogram": lambda x: (np.histogram(x, 3, (0, 6)), np.histogram(x, [0, 2, 8])) if x.dtype != bool else None,
    "tensordot": lambda x: np.tensordot(x, x, ([0], [0])),
    "diff": lambda x: (np.diff(x), np.ediff1d(x), np.ediff1d(x, 1, 2)),
    "expand_dims": lambda x: (np.expand_dims(x, 0), np.expand_dims(x, (0, -1)), np.reshape(x, -1, order="A")),
    "expand_dims of no axis": lambda x: np.expand_dims(x, None),
    "joins": lambda x: (np.concatenate([x, x], -1), np.vsplit(x, [1])),
    "polynomials": lambda x: (np.polyder(x), np.vander(x, 2), np.convolve(x, [1, 2])),
    "insert": lambda x: np.insert(x, 1.0, x, 0),
    "windows": lambda x: (sliding_window_view(x, 2, -1), sliding_window_view(x, np.shape(x))) if np.size(x) else None,
}

def outcome(function: Callable[[Any], Any], x: Any) -> Exception | None:
    """What NumPy raises."""
    try:
        with np.errstate(all="ignore"):
            function(x.copy())
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_as_numpy(name: str) -> None:
    function = CALLS[name]
    for label, x in ARRAYS.items():
        expected = outcome(function, x)
        if expected is not None:
            with pytest.raises((BwError, ValueError, TypeError, IndexError, OverflowError)):
                trace(function, (x,))
            continue
        try:
            compare(function, x)
        except (DTypeError, UnsupportedError) as error:
            assert "float16" in str(error), f"{label}: {error}"
        except AssertionError as error:
            raise AssertionError(f"{name} of {label}: {error}") from None
