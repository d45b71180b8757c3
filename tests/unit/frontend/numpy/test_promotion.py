"""dtypes: every pair of dtypes and Python numbers through several ufuncs, against NumPy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace

DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
NUMBERS = (True, 2, 2.5)
BINARY = ("add", "multiply", "subtract", "divide", "floor_divide", "power", "maximum", "less", "logical_and", "arctan2",
          "bitwise_or", "left_shift", "hypot", "copysign", "remainder", "equal")
SCALARS = ("add", "divide", "power", "bitwise_or")           # one of each kind of rule: NumPy scalars are arrays to all of them
UNARY = ("sin", "sqrt", "negative", "absolute", "square", "floor", "rint", "isnan", "sign", "invert", "logical_not", "positive")
REDUCTIONS = ("sum", "prod", "mean", "max", "argmax", "any", "std", "cumsum")


def numpy_dtype(fun: Any, *args: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            return np.asarray(fun(*args)).dtype
        except (TypeError, OverflowError) as error:
            return type(error).__mro__[-3 if isinstance(error, OverflowError) else 0] and TypeError


def traced_dtype(fun: Any, *args: Any) -> Any:
    try:
        return trace(fun, args).outputs[0].dtype.numpy
    except (TypeError, OverflowError):
        return TypeError


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_dtypes(name: str) -> None:
    ufunc = getattr(np, name)
    for a in DTYPES:
        x = np.ones(2, a)
        for b in DTYPES:
            y = np.ones(2, b)
            expected = numpy_dtype(ufunc, x, y)
            assert traced_dtype(ufunc, x, y) == expected, (a, b)
            if name in SCALARS:
                assert traced_dtype(lambda x, y=y: ufunc(x, y[0]), x) == expected, (a, b, "NumPy scalar")
        for number in NUMBERS:
            assert traced_dtype(lambda x, n=number: ufunc(x, n), x) == numpy_dtype(ufunc, x, number), (a, number)
            assert traced_dtype(lambda x, n=number: ufunc(n, x), x) == numpy_dtype(ufunc, number, x), (number, a)
            assert traced_dtype(ufunc, x, number) == numpy_dtype(ufunc, x, number), (a, number, "argument")


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    for a in DTYPES:
        x = np.ones(2, a)
        assert traced_dtype(getattr(np, name), x) == numpy_dtype(getattr(np, name), x), a


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str) -> None:
    for a in DTYPES:
        x = np.ones(2, a)
        assert traced_dtype(getattr(np, name), x) == numpy_dtype(getattr(np, name), x), a


def test_joins_and_choices() -> None:
    for a in DTYPES:
        for b in DTYPES:
            x, y = np.ones(2, a), np.ones(2, b)
            for fun in (lambda x, y: np.concatenate([x, y]), lambda x, y: np.where([True, False], x, y), lambda x, y: np.stack([x, y])):
                assert traced_dtype(fun, x, y) == numpy_dtype(fun, x, y), (a, b)


def test_matmul_promotes() -> None:
    for a in DTYPES[1:]:
        for b in DTYPES[1:]:
            x, y = np.ones((2, 2), a), np.ones((2, 2), b)
            assert traced_dtype(np.matmul, x, y) == numpy_dtype(np.matmul, x, y), (a, b)


def test_python_numbers_stay_weak_under_operators() -> None:
    """f32 * (s + 1) with a Python float s is f32, as it is outside of a trace; f32 * np.sin(s) is f64."""
    x = np.ones(2, np.float32)
    for fun in (lambda x, s: x * (s + 1), lambda x, s: x * (2 * s**2 - s), lambda x, s: x * np.sin(s), lambda x, s: x + -s,
                lambda x, s: x * (s > 1), lambda x, s: np.where(s > 1, x, s)):
        assert traced_dtype(fun, x, 2.5) == numpy_dtype(fun, x, 2.5)


@pytest.mark.parametrize("x", [np.array([0.5, 2.0]), np.array([0.5, 2.0], np.float32), np.array([1, 3]), 2.0])
def test_fractions_are_numbers(x: Any) -> None:
    """As floats of Python's; NumPy makes arrays of objects of them."""
    def fun(x: Any, half: Any, third: Any) -> Any:
        return half * x + third - x / half + (x + 1) ** half, np.multiply(x, third), np.maximum(half, x)

    found, expected = bw.jit(lambda x: fun(x, Fraction(1, 2), Fraction(1, 3)))(x), fun(x, 0.5, 1 / 3)
    for one, other in zip(found, expected, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other)
