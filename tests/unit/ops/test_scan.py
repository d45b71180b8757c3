"""Scans."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.gradcheck import jvp, vjp
from tests.support.opcases import case, op_tests
from tests.unit.ops.test_reduction import EMPTY, INTEGERS, ODD, TIES, ZEROS, A, Z

EXTREMA = {"cummax": np.maximum, "cummin": np.minimum}
CASES = [
    *[row for reverse in (False, True) for row in (
        *[case(name, x, axis=axis, reverse=reverse) for name in ("cumsum", "cumprod")
          for x in (A, ZEROS, Z, A[:, :1], EMPTY) for axis in range(x.ndim)],
        case("cumsum", INTEGERS, axis=1, reverse=reverse), case("cumprod", INTEGERS, axis=0, reverse=reverse),
        case("cumsum", ODD, axis=0, reverse=reverse).but(smooth=False),
        case("cumprod", ODD, axis=1, reverse=reverse).but(smooth=False),
        *[case(name, x, axis=axis, reverse=reverse).but(smooth=x is A) for name in EXTREMA
          for x in (A, TIES, ODD, INTEGERS, INTEGERS > 1, EMPTY, A[:, :1].astype(np.float32)) for axis in range(x.ndim)])],
    case("cumsum", INTEGERS, axis=1, reverse=True).gives([[4, 1, 2], [8, 6, 3]]),
    case("cumprod", A.reshape(12), axis=0, reverse=False).gives(np.cumprod(A)),
    case("cummax", INTEGERS, axis=1, reverse=False).gives([[3, 3, 3], [2, 3, 3]]),
    case("cummin", INTEGERS, axis=1, reverse=True).gives([[-1, -1, 2], [2, 3, 3]]),
]
test_op = op_tests(CASES)

PLATEAUS = np.array([1.0, 0.0, 1.0, 2.0, 2.0, 1.0, 2.0, 3.0])
SHARES = [                                    # of the running maximum, among the elements so far that attain it
    [1.0, 0, 0, 0, 0, 0, 0, 0], [1.0, 0, 0, 0, 0, 0, 0, 0], [0.5, 0, 0.5, 0, 0, 0, 0, 0], [0, 0, 0, 1.0, 0, 0, 0, 0],
    [0, 0, 0, 0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.5, 0.5, 0, 0, 0], [0, 0, 0, 1 / 3, 1 / 3, 0, 1 / 3, 0], [0, 0, 0, 0, 0, 0, 0, 1.0],
]


@pytest.mark.parametrize(("name", "reverse"), [*itertools.product(EXTREMA, (False, True))])
def test_ties_share_the_gradient_of_running_extrema(name, reverse):
    sign = 1.0 if name == "cummax" else -1.0
    x = sign * (PLATEAUS[::-1] if reverse else PLATEAUS)
    row = case(name, x, axis=0, reverse=reverse)
    shares = np.array(SHARES)[::-1, ::-1] if reverse else np.array(SHARES)
    for k, unit in enumerate(np.eye(8)):
        np.testing.assert_allclose(vjp(row.program(), [0]).run(x, unit)[0], shares[k], rtol=1e-15, atol=0)
        np.testing.assert_allclose(jvp(row.program(), [0]).run(x, unit)[0], shares[:, k], rtol=1e-15, atol=0)


def test_last_running_maximum_has_the_gradient_of_max():
    x = np.array([[2.0, 1.0, 2.0], [0.5, 0.5, 0.5]])
    [of_scan] = bw.vjp(lambda x: np.maximum.accumulate(x, 1)[:, -1], x)[1](np.array([3.0, 6.0]))
    [of_max] = bw.vjp(lambda x: np.max(x, 1), x)[1](np.array([3.0, 6.0]))
    np.testing.assert_array_equal(of_scan, of_max)


@pytest.mark.parametrize("ufunc", EXTREMA.values(), ids=lambda ufunc: ufunc.__name__)
def test_accumulate_is_numpys_in_native_code(ufunc, rng):
    wide = rng.normal(size=(3, 70, 5)).round(1)
    wide[1, 40:, 2] = np.nan
    arrays = [wide, wide.astype(np.float32), (10 * np.nan_to_num(wide)).astype(np.int16), wide > 0, wide[:, :0], wide[:, :1]]
    for x in arrays:
        def every_axis(x):
            return [ufunc.accumulate(x, axis) for axis in (0, 1, -1)]

        for found, expected in zip(bw.jit(every_axis)(x), every_axis(x), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_gradient_of_a_running_maximum_is_native():
    x = np.array([[0.3, -0.2, 0.9], [0.1, 0.4, 0.2]])
    weights = np.arange(1.0, 7.0).reshape(2, 3)
    found = bw.jit(bw.grad(lambda x: np.sum(weights * np.maximum.accumulate(x, axis=1))))(x)
    np.testing.assert_array_equal(found, [[3.0, 0.0, 3.0], [4.0, 11.0, 0.0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_running_sums_keep_the_sign_of_zero(dtype):
    """They start from the first element, not from 0.0."""
    for axis in (0, 1):
        for x in (np.full((2, 3), -0.0, dtype), -np.zeros((2, 3), dtype), np.array([[-0.0, -0.0, 0.0], [0.0, -0.0, -0.0]], dtype)):
            x = np.conj(x)
            found, expected = bw.jit(lambda x, axis=axis: np.cumsum(x, axis))(x), np.cumsum(x, axis)
            np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))
            np.testing.assert_array_equal(np.signbit(found.imag), np.signbit(expected.imag))
