"""Methods of ufuncs, ufuncs under all their names, integer functions: NumPy's value, dtype and shape."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import compare, run_traced

rng = np.random.default_rng(14)
X = rng.uniform(0.2, 0.9, size=(3, 5))
C = rng.normal(size=(2, 3, 4))
I = rng.integers(1, 60, size=(3, 5))  # noqa: E741
B = rng.random((3, 5)) < 0.5

FLOAT = "add subtract multiply divide maximum minimum fmax fmin logaddexp logaddexp2 hypot copysign".split()
INTEGER = "bitwise_and bitwise_or bitwise_xor add multiply maximum logical_xor".split()


@pytest.mark.parametrize("name", FLOAT)
def test_folds_of_floats(name: str) -> None:
    ufunc = getattr(np, name)
    compare(lambda x: (ufunc.reduce(x), ufunc.reduce(x, 1, keepdims=True), ufunc.accumulate(x, -1), ufunc.accumulate(x)), X)
    compare(lambda x: (ufunc.reduceat(x, [0, 2, 1, 4], 1), ufunc.reduce(x[:, :1], 1)), X)


@pytest.mark.parametrize("name", INTEGER)
def test_folds_of_integers(name: str) -> None:
    ufunc = getattr(np, name)
    compare(lambda i: (ufunc.reduce(i), ufunc.reduce(i, axis=None), ufunc.accumulate(i, 1), ufunc.reduce(i, initial=3)
                       if name != "logical_xor" else ufunc.reduce(i, (0, 1))), I)


@pytest.mark.parametrize("name", ["power", "arctan2"])
def test_folds_of_one_after_the_other(name: str) -> None:
    """Compared with a loop: NumPy's own vectorised loops for these two fold in another order along the last axis."""
    ufunc = getattr(np, name)
    expected = functools.reduce(ufunc, X.T)
    np.testing.assert_allclose(run_traced(lambda x: ufunc.reduce(x, 1), X)[0], expected, rtol=1e-14)
    np.testing.assert_allclose(run_traced(lambda x: ufunc.accumulate(x, 1), X)[0][:, -1], expected, rtol=1e-14)


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_folds_that_need_an_element(name: str) -> None:
    ufunc = getattr(np, name)
    compare(lambda i: (ufunc.reduce(i), ufunc.reduce(i, 1), ufunc.accumulate(i, 1)), I)


def test_folds_of_nothing() -> None:
    compare(lambda x: (np.bitwise_or.reduce(x), np.logical_xor.reduce(x), np.add.accumulate(x)), np.zeros((0, 2), int))
    with pytest.raises(ValueError, match="no identity"):
        compare(np.fmax.reduce, np.zeros((0, 2)))
    with pytest.raises(ValueError, match="not reorderable"):
        compare(lambda x: np.subtract.reduce(x, (0, 1)), X)


def _at(x: Any) -> Any:
    made = []
    for ufunc in (np.add, np.subtract, np.multiply, np.maximum, np.power):
        y = x * 1
        ufunc.at(y, [0, 2, 0, 0], x[[1, 1, 2, 0], 0:1] * 2)
        made.append(y)
    z = x[0] * 1
    np.divide.at(z, np.array([True, False, True, False, True]), 2.0)
    np.negative.at(z, [1, 3])
    return made, z


def test_at_counts_repeated_indices() -> None:
    compare(_at, X)


def test_at_of_one_operand_counts_repeated_indices() -> None:
    def at(x: Any) -> Any:
        y = x * 1
        np.negative.at(y, [0, 1, 0])
        np.square.at(y[2], [4, 4, 1])
        return y
    compare(at, X)


def _at_places(x: Any, i: Any) -> Any:
    made = []
    for ufunc in (np.multiply, np.maximum, np.divide, np.power, np.hypot):
        y = x * 1
        ufunc.at(y, (slice(None), i), x[:, :1] + 0.5)
        ufunc.at(y[1:], (0, i), x[0, :4] * 3)
        made.append(y)
    np.negative.at(made[0], i % 3)
    np.maximum.at(z := np.zeros(5, np.int32), i, np.arange(4) * 3)
    np.minimum.at(made[1], i[:0], 0.0)
    return made, z


def test_at_with_traced_indices() -> None:
    compare(_at_places, X, np.array([1, 4, 1, -1]))
    with pytest.raises(IndexError, match="out of bounds"):
        compare(_at_places, X, np.array([1, 5, 1, 0]))


@pytest.mark.parametrize("name", ["add", "maximum", "subtract", "logical_or"])
def test_reduceat_with_traced_indices(name: str) -> None:
    ufunc, i = getattr(np, name), np.array([0, 2, 1, 4, 4])
    compare(lambda x, i: (ufunc.reduceat(x, i, 1), ufunc.reduceat(x[0], i), ufunc.reduceat(x.T, i[:0])), X, i)
    compare(lambda c, i: ufunc.reduceat(c, i % 3, axis=-2), C, i)
    for wrong in (i + 1, i - 1):
        with pytest.raises(IndexError, match="out.of.bounds"):
            compare(lambda x, i: ufunc.reduceat(x, i, 1), X, wrong)


def test_sums_of_segments_of_booleans_are_counts() -> None:
    compare(lambda b, i: (np.add.reduceat(b, i, 1), np.add.reduceat(b, i, 1, dtype=np.float32)), B, np.array([0, 3]))


def test_derivatives_of_places_and_segments_that_data_choose() -> None:
    def losses(x: Any, i: Any) -> Any:
        made, _ = _at_places(x, i)
        return np.stack([np.sum(np.sin(y)) for y in made]), np.multiply.reduceat(x, i + 1, 1)
    i = np.array([1, 3, 1, -1])
    weights = np.concatenate([[1.0, 2.0, 3.0, 0.1, -1.0], np.linspace(-1.0, 1.0, 12)])

    def loss(x: Any, i: Any) -> Any:
        return np.concatenate([np.ravel(part) for part in losses(x, i)]) @ weights
    for order, mode in ((2, "rev"), (1, "fwd")):
        bw.check_grads(lambda x: loss(x, i + np.argmax(0 * x)), (X,), order, (mode,))


def test_wrong_arguments_of_methods() -> None:
    for wrong in (lambda x: np.add.accumulate(x, axis=None), lambda x: np.add.accumulate(x, axis=(0, 1)), lambda x: np.add.reduceat(x, [[0]]),
                  lambda x: np.add.reduceat(x, np.argmax(x, 1)[None])):
        for run in (wrong, bw.jit(wrong)):
            with pytest.raises(ValueError):
                run(X)


EXPRESSIONS: dict[str, tuple[Any, ...]] = {
    "reductions without axes": (lambda x: tuple(f(x[0, 0], axis=axis) for axis in (0, -1) for f in (
        np.sum, np.prod, np.max, np.min, np.any, np.all, np.argmax, np.ptp, np.cumsum, np.cumprod, np.count_nonzero, np.nansum)), X),
    "more names": (lambda x: (np.acos(x), np.acosh(1 + x), np.asin(x), np.asinh(x), np.atan(x), np.atanh(x), np.atan2(x, 2)), X),
    "shifts": (lambda i: (np.bitwise_left_shift(i, 2), np.bitwise_right_shift(i, 1)), I),
    "neighbours": (lambda x: (np.nextafter(x, 2), np.nextafter(x, -x), np.spacing(x)), X),
    "frexp": (lambda x: np.frexp(x), np.array([0.0, -0.0, 1.0, -3.7, 1e300, 5e-324, np.inf, np.nan])),
    "ldexp far out": (lambda x: (np.ldexp(x, 1020), np.ldexp(x, -1040)), np.array([1e-300, 3.0, -1e-5])),
    "powers of integers": (lambda i: (i**2, i**5, i**0, np.power(i, i[0] % 5), np.power(2, i % 7), i.astype(np.uint8) ** 3), I),
    "counted bits": (lambda i: np.bitwise_count(i), I),
    "reciprocal of integers": (lambda i: np.reciprocal(i), I),
    "conjugate of booleans": (lambda b: (np.conjugate(b), b.conj()), B),
    "cumulative": (lambda x: (np.cumulative_sum(x[0]), np.cumulative_prod(x, axis=1, include_initial=True),
                              np.cumulative_sum(x, axis=-2, dtype=np.float32)), X),
    "moments of nan": (lambda x: (np.nanvar(x), np.nanstd(x, 1), np.nanvar(x, 0, ddof=1, keepdims=True), np.nanargmax(x, 1),
                                  np.nanargmin(x), np.nancumsum(x), np.nancumprod(x, 1), np.nanmean(x, 0)),
                       np.where(rng.random((4, 5)) < 0.3, np.nan, rng.normal(size=(4, 5)))),
    "moments of integers": (lambda i: (np.nanvar(i), np.nanstd(i, 0), np.nancumsum(i, 1), np.nanargmax(i)), I),
    "average": (lambda x: (np.average(x, returned=True), np.average(x, 1, x[0], returned=True), np.average(x, 0)), X),
    "covariance": (lambda x: (np.cov(x), np.cov(x[0], x[1]), np.cov(x, rowvar=False, bias=True), np.cov(x, aweights=x[0]),
                              np.corrcoef(x), np.corrcoef(x[0], x[1])), X),
    "equality": (lambda x: (np.array_equal(x, x), np.array_equal(x / 0 * 0, x / 0 * 0, equal_nan=True), np.array_equiv(x, x[None]),
                            np.array_equiv(x, x[:2])), X),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_as_numpy(name: str) -> None:
    function, *arrays = EXPRESSIONS[name]
    compare(function, *arrays)


CALCULUS: dict[str, tuple[Any, ...]] = {
    "gradient": (lambda x: (np.gradient(x), np.gradient(x, 0.5, axis=1), np.gradient(x, 2.0, [0.0, 1.0, 3.0, 4.0, 4.5]),
                            np.gradient(x, axis=(1, 0))), X),
    "gradient of second order": (lambda x: (np.gradient(x, edge_order=2), np.gradient(x[0], [0.0, 1.0, 3.0, 4.0, 4.5], edge_order=2)), X),
    "gradient of traced places": (lambda x: np.gradient(x[0], np.cumsum(x[1])), X),
    "gradient of float32": (lambda x: (np.gradient(x), np.gradient(x, np.array([0.0, 1.0, 3.0, 4.0, 4.5]), axis=1)), X.astype(np.float32)),
    "gradient of integers": (lambda i: np.gradient(i), I),
    "diff": (lambda x: (np.diff(x, 0), np.diff(x, 2, 0), np.diff(x, prepend=0, append=x[:, :1]), np.ediff1d(x, 1.0, [2.0, 3.0])), X),
    "trapezoid": (lambda x: (np.trapezoid(x), np.trapezoid(x, x * 2), np.trapezoid(x, [0, 1, 3], axis=0), np.trapezoid(x[:, :1])), X),
    "unwrap": (lambda x: (np.unwrap(x * 20), np.unwrap(x * 20, axis=0, period=3.0), np.unwrap(x * 20, discont=4.0)), X),
    "polynomials": (lambda x: (np.polyval(x[0], x), np.polyadd(x[0], x[1, :2]), np.polysub(x[0, :1], x[1]), np.polymul(x[0], x[1, :3]),
                               np.polyder(x[0]), np.polyder(x[0], 2), np.polyint(x[0]), np.polyint(x[0], 2, [1.0, 2.0])), X),
    "polynomials of booleans": (lambda b: (np.polyval(b[0], b), np.vander(b[0], 3)), B),
    "vander": (lambda x: (np.vander(x[0]), np.vander(x[0], 3, increasing=True), np.vander(x[0].astype(np.float32), 2)), X),
    "grids": (lambda x: (np.linspace(x[0], x[1], 5, axis=-1), np.linspace(x[0, 0], 2, 4, endpoint=False, retstep=True),
                         np.linspace(x[0], 9, 4, dtype=int), np.logspace(x[0, 0], x[0, 1], 4), np.geomspace(x[0], x[1], 4),
                         np.logspace(x[0], 2, 3, base=2), np.linspace(x[0, 0], 1, 1)), X),
    "convolve": (lambda x: tuple(f(x[0], x[1, :3], mode) for f in (np.convolve, np.correlate) for mode in ("full", "same", "valid")), X),
}


@pytest.mark.parametrize("name", CALCULUS)
def test_calculus_as_numpy(name: str) -> None:
    function, *arrays = CALCULUS[name]
    compare(function, *arrays)


@pytest.mark.parametrize("known", [[0, 1], [0], [0, 0], [3, 4, 0], [0, 0, 2.5], 5.0, [0.0, 0.0, -0.0]], ids=str)
def test_polynomials_with_leading_zeros(known: Any) -> None:
    """Left out where they are known; the coefficients of a traced polynomial all count."""
    compare(lambda x: (np.polymul(x, known), np.polymul(known, x)), np.array([2.0, 0.0, 1.5]))
    compare(lambda x: np.polymul(x, [x[0], 1.0]), np.array([2.0, 0.0, 1.5]))
    _, _, result = run_traced(lambda x: np.polymul(x, known), np.array([0.0, 0.0, 1.5]))
    assert result.outputs[0].shape == (np.polymul([1, 2, 3], known).size,)
