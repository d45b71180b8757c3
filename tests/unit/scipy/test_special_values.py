"""All functions of bw.scipy.special at edge points, in native code: values and derivatives, float64 and float32.

The oracle is mpmath where a function has a finite value, and SciPy at poles, infinities and nan.
"""

from __future__ import annotations

import functools
import itertools

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import bwcompiler as bw
from bwcompiler.frontend.numpy.elementwise.special import COMPOSED
from bwcompiler.scipy.special.functions import OPS
from tests.support.derivatives import check_derivatives

special = bw.scipy.special
DTYPES = {"f64": np.float64, "f32": np.float32}
TOLERANCE = {"f64": 1e-13, "f32": 2e-6}


def edge_points(dtype):
    """0, -0, tiny and subnormal numbers, neighbours of zeros and poles, large ones, infinities, nan."""
    limits = np.finfo(dtype)
    positive = [limits.smallest_subnormal, limits.tiny, 1e-20, 1e-4, 0.25, 0.5, 1 - limits.epsneg, 1.0, 1 + limits.eps, 1.4616321449683622,
                2 - limits.eps, 2.0, 2 + 2 * limits.eps, 3.0, 5.5, 11.999, 12.5, 30.0, 90.0, 1e5, 1e20, limits.max, np.inf]
    negative = [-0.75, -1.5, -2.0 - 2 * limits.eps, -26.5, -700.25, -1e5 - 0.5]
    return np.array([0.0, -0.0, *positive, *[-x for x in positive], *negative, np.nan], dtype)


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def continued_erfcx(x):
    tail = mp.mpf(0)
    for k in range(80, 0, -1):
        tail = mp.mpf(k) / 2 / (x + tail)
    return 1 / mp.sqrt(mp.pi) / (x + tail)


def erfcx(x):
    return continued_erfcx(x) if x > 30 else mp.exp(x * x) * mp.erfc(x)


def erfcx_slope(x):
    if x > 1e6:
        return -1 / mp.sqrt(mp.pi) / x**2 * (1 - 3 / (2 * x**2))
    return 2 * x * erfcx(x) - 2 / mp.sqrt(mp.pi)


def gauss(x):
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


@functools.cache
def trigamma(x):
    return mp.psi(1, x) if x > 0 else (mp.pi / mp.sinpi(x)) ** 2 - mp.psi(1, 1 - x)


def gamma_sign(x):
    if x <= 0 and x == mp.floor(x):
        raise ValueError("a pole")
    return mp.mpf(1) if x > 0 or mp.floor(x) % 2 == 0 else mp.mpf(-1)


# name: (value, derivative) in mpmath
UNARY = {
    "erf": (mp.erf, gauss),
    "erfc": (mp.erfc, lambda x: -gauss(x)),
    "erfcx": (erfcx, erfcx_slope),
    "erfinv": (mp.erfinv, lambda x: mp.exp(mp.erfinv(x) ** 2) * mp.sqrt(mp.pi) / 2),
    "expit": (sigmoid, lambda x: sigmoid(x) * sigmoid(-x)),
    "logit": (lambda x: mp.log(x) - mp.log1p(-x), lambda x: 1 / (x * (1 - x))),
    "log_expit": (lambda x: -mp.log1p(mp.exp(-x)) if x > -1000 else x, lambda x: sigmoid(-x)),
    "gamma": (mp.gamma, lambda x: mp.gamma(x) * mp.psi(0, x)),
    "gammasgn": (gamma_sign, lambda x: mp.mpf(0)),
    "rgamma": (mp.rgamma, lambda x: -mp.rgamma(x) * mp.psi(0, x)),
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))) if x < 1e6 else mp.loggamma(x), lambda x: mp.psi(0, x)),
    "psi": (lambda x: mp.psi(0, x), trigamma),
    "digamma": (lambda x: mp.psi(0, x), trigamma),
    "ndtr": (mp.ncdf, mp.npdf),
    "entr": (lambda x: -x * mp.log(x), lambda x: -mp.log(x) - 1),
    "exp10": (lambda x: mp.power(10, x), lambda x: mp.log(10) * mp.power(10, x)),
}
# derivatives where the oracle has none: limits, and infinite slopes
LIMITS = {
    "erf": {np.inf: 0, -np.inf: 0}, "erfc": {np.inf: 0, -np.inf: 0}, "erfcx": {np.inf: 0, -np.inf: -np.inf},
    "erfinv": {1.0: np.inf, -1.0: np.inf}, "expit": {np.inf: 0, -np.inf: 0}, "logit": {0.0: np.inf, 1.0: np.inf},
    "log_expit": {np.inf: 0, -np.inf: 1}, "gamma": {np.inf: np.inf, 0.0: -np.inf, -1.0: np.nan}, "gammaln": {np.inf: np.inf, 0.0: -np.inf},
    "rgamma": {np.inf: 0, 0.0: 1, -1.0: -1, -2.0: 2, -3.0: -6}, "psi": {np.inf: 0, 0.0: np.inf, -1.0: np.inf},
    "digamma": {np.inf: 0, 0.0: np.inf}, "ndtr": {np.inf: 0, -np.inf: 0}, "entr": {0.0: np.inf}, "exp10": {-np.inf: 0, np.inf: np.inf},
    "gammasgn": {np.inf: 0},
}
OUTSIDE = {                  # where nothing is promised about the derivative (outside of the domain), or the value (C's lgamma is inf)
    "logit": lambda x: not 0 <= x <= 1, "gammaln": lambda x: x == -np.inf,
}
ABSOLUTE = {"expit": 1.0}    # 1 - expit(x) cancels in the derivative, which is small there: it is right to rounding beside 1


def exact(function, x):
    """The value in mpmath, or None where it has none that is finite."""
    if not np.isfinite(x) or x < -1e7:
        return None
    try:
        found = function(mp.mpf(float(x)))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return found if isinstance(found, mp.mpf) and mp.isfinite(found) and abs(found) < mp.mpf(10) ** 400 else None


def assert_equal(found, expected, dtype, what, absolute=0.0):
    """Equal to rounding; two subnormal steps are allowed where numbers are subnormal."""
    kind = DTYPES[dtype]
    expected = kind(float(expected))
    slack = absolute * 4 * np.finfo(kind).eps + (2 * np.finfo(kind).smallest_subnormal if abs(expected) < np.finfo(kind).tiny else 0.0)
    with np.errstate(all="ignore"):
        close = np.isclose(found, expected, rtol=TOLERANCE[dtype], atol=slack, equal_nan=True)
    assert close, f"{what}: {found!r}, expected {expected!r}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one_argument(dtype):
    x = edge_points(DTYPES[dtype])

    def values(x):
        return [getattr(special, name)(x) for name in UNARY]

    def gradients(x, seed):
        return [bw.vjp(getattr(special, name), x)[1](seed)[0] for name in UNARY]

    def by_name(x):                                       # NEP 13: SciPy's own ufuncs on traced arrays
        return [getattr(scipy.special, name)(x) for name in UNARY]

    found, slopes = bw.jit(values)(x), bw.jit(gradients)(x, np.ones_like(x))
    for ours, dispatched in zip(found, bw.jit(by_name)(x), strict=True):
        np.testing.assert_array_equal(ours, dispatched)
    with mp.workdps(40):
        for row, (name, (value, derivative)) in enumerate(UNARY.items()):
            with np.errstate(all="ignore"):
                by_scipy = getattr(scipy.special, name)(x)
            for k, point in enumerate(x):
                outside = OUTSIDE.get(name, lambda x: False)(point)
                expected, slope = exact(value, point), exact(derivative, point)
                if not (outside and name == "gammaln"):
                    assert_equal(found[row][k], by_scipy[k] if expected is None else expected, dtype, f"{name}({point!r})")
                if slope is None:
                    slope = None if np.signbit(point) and point == 0 else LIMITS[name].get(float(point))
                if slope is not None and not outside:
                    assert_equal(slopes[row][k], slope, dtype, f"derivative of {name} at {point!r}", ABSOLUTE.get(name, 0.0))


PAIRS = {
    "rel_entr": [(1, 5e-324), (5e-324, 1), (1e300, 1e-300), (np.inf, 1), (1, np.inf), (np.inf, np.inf), (0, 0), (0, 1), (1, 0), (-1, 1),
                 (1, 1), (1, 1 + 2.0**-52), (1 + 2.0**-40, 1), (np.nan, 1), (0, np.nan), (3, 2)],
    "beta": [(0, 0), (0, 1), (-1, 1), (-1, 2), (-0.5, 0.5), (-1, 0.5), (1e-320, 1), (np.inf, 1), (1e300, 2), (200, 200), (-3, 2), (-1, -2),
             (1e8, 1e-3), (np.nan, 1), (0.5, 30), (12, 40), (-1.5, 0.25), (1, 1), (1, -np.inf), (3, -np.inf), (-np.inf, 0.5), (-0.5, np.inf),
             (-1e-10, np.inf), (np.inf, -1.5), (0, np.inf)],
    "xlogy": [(0, 0), (0, -1), (0, np.inf), (0, np.nan), (0, 2), (1, 0), (2, 3), (-1, 5e-324), (np.inf, 1)],
    "xlog1py": [(0, -1), (0, -2), (0, np.inf), (0, np.nan), (0, 2), (1, -1), (2, 1e-20), (np.inf, 1)],
}
PAIRS["kl_div"] = [pair for pair in PAIRS["rel_entr"] if np.inf not in pair and 5e-324 not in pair and 1e300 not in pair]
PAIRS["huber"] = PAIRS["pseudo_huber"] = [(0, 0), (0, 1), (-1, 1), (1, 0), (1, 1), (1, -0.5), (1, -3), (2, 1e-9), (2, np.inf), (np.nan, 1), (1, np.nan)]
PAIRS["betaln"] = [pair for pair in PAIRS["beta"] if pair != (1e-320, 1)]           # where SciPy gives inf; log(1e320) is right


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_arguments(name):
    x, y = np.array(PAIRS[name], float).T
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(x, y)
    for ours in (bw.jit(getattr(special, name))(x, y), bw.jit(lambda x, y: getattr(scipy.special, name)(x, y))(x, y)):
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-320)


def test_nan_is_not_hidden_by_a_pole():
    for name in ("beta", "betaln"):
        assert np.isnan(getattr(special, name)(np.array([0.0, np.nan]), np.array([np.nan, 0.0]))).all()


def test_every_function_is_in_the_table():
    assert {*UNARY, *PAIRS} == {*OPS, *COMPOSED}


@pytest.mark.parametrize(("name", "point", "slopes"), [
    ("xlogy", (0.0, 2.0), (np.log(2.0), 0.0)), ("xlogy", (0.0, 0.0), (0.0, 0.0)), ("xlogy", (3.0, 2.0), (np.log(2.0), 1.5)),
    ("xlog1py", (0.0, 2.0), (np.log(3.0), 0.0)), ("rel_entr", (1.0, 5e-324), (745.4400719213812, -np.inf)),
    ("rel_entr", (1.0, 1 + 2.0**-52), (1.0, -1.0)), ("rel_entr", (3.0, 2.0), (np.log(1.5) + 1, -1.5)),
    ("beta", (12.0, 0.5), tuple(scipy.special.beta(12, 0.5) * (scipy.special.psi([12, 0.5]) - scipy.special.psi(12.5)))),
    ("kl_div", (3.0, 2.0), (np.log(1.5), -0.5)), ("kl_div", (0.0, 2.0), (0.0, 1.0)), ("huber", (1.0, 3.0), (2.0, 1.0)),
    ("huber", (4.0, 3.0), (0.0, 3.0)), ("pseudo_huber", (2.0, 1.5), (0.1, 1.2)),
    ("betaln", (1e8, 3.0), tuple(scipy.special.psi([1e8, 3.0]) - scipy.special.psi(1e8 + 3))),
])
def test_derivatives_of_two_arguments(name, point, slopes):
    found = bw.grad(lambda x, y: getattr(special, name)(x, y), argnums=(0, 1))(*point)
    np.testing.assert_allclose(found, slopes, rtol=1e-9, atol=1e-15)


def test_log_beta_is_smooth_where_its_arguments_are_equal():
    """Its formula depends on which is larger."""
    slope = bw.grad(lambda a, b: special.betaln(a, b))
    np.testing.assert_allclose(bw.grad(slope)(11.7, 11.7), scipy.special.polygamma(1, 11.7) - scipy.special.polygamma(1, 23.4), rtol=1e-12)


@pytest.mark.parametrize(("n", "x", "expected"), [
    (n, x, (-1) ** (n + 1) * np.inf) for n, x in itertools.product((1, 2, 3), (-1.0, -2.0, -10.0, 0.0))] + [(1, np.inf, 0.0)])
def test_polygamma_at_poles(n, x, expected):
    for found in (special.polygamma(n, np.array([x])), bw.jit(lambda x: special.polygamma(n, x))(np.array([x]))):
        np.testing.assert_array_equal(found, [expected])


@pytest.mark.parametrize("x", [[0, -40], [-40, 0, -50], [0, 0], [1000, 1000], [np.inf, 0], [-np.inf, -np.inf], [np.inf, -np.inf],
                               [np.nan, 0], [-np.inf, 3], [np.inf, np.inf], [1e-300, 1e-300]], ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sums_of_exponentials(x):
    x = np.array(x, float)
    for name in ("logsumexp", "log_softmax", "softmax"):
        expected = getattr(scipy.special, name)(x)
        if name == "log_softmax" and x.max() == 0:
            expected = x - scipy.special.logsumexp(x)
        if name == "softmax" and not np.isfinite(x.max()):
            continue
        np.testing.assert_allclose(bw.jit(getattr(special, name))(x), expected, rtol=1e-15, err_msg=name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_logsumexp_of_nothing():
    for shape, keywords in (((0,), {}), ((0,), {"keepdims": True}), ((0,), {"axis": 0})):
        for dtype in (np.float64, np.float32, np.complex128):
            x = np.zeros(shape, dtype)
            np.testing.assert_array_equal(special.logsumexp(x, **keywords), scipy.special.logsumexp(x, **keywords), strict=True)
    assert special.logsumexp(np.zeros((3, 0)), 1).tolist() == [-np.inf] * 3


def test_an_axis_of_a_number():
    for axis in (0, -1):
        for function in (lambda x, axis=axis: scipy.special.logsumexp(x, axis=axis), lambda x, axis=axis: scipy.special.log_softmax(x, axis=axis)):
            found = bw.jit(function)(np.float64(2.0))
            np.testing.assert_array_equal(found, function(np.float64(2.0)), strict=True)
    with pytest.raises(np.exceptions.AxisError):
        special.logsumexp(2.0, 1)
    for keywords in ({"axis": (0,)}, {"keepdims": True}, {"axis": 0, "b": 2.0}, {"return_sign": True}, {"axis": (-1,), "keepdims": True}):
        found, expected = bw.jit(lambda x, given=keywords: scipy.special.logsumexp(x, **given))(2.0), scipy.special.logsumexp(2.0, **keywords)
        np.testing.assert_allclose(found, expected, rtol=1e-15, strict=True)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_weights_of_complex_numbers(name):
    draw = np.random.default_rng(3)
    z = draw.normal(size=(3, 4)) + 1j * draw.normal(size=(3, 4))
    z[0, 0] = 800 + 2j
    function = getattr(scipy.special, name)
    for axis in (None, 0, -1, (0, 1)):
        np.testing.assert_allclose(bw.jit(lambda z, axis=axis: function(z, axis=axis))(z), function(z, axis=axis), rtol=1e-12, atol=1e-14)
    check_derivatives(lambda x: np.real((1 + 2j) * function(x + 1j * z.imag[1:], axis=1)), z.real[1:])


def test_the_multivariate_gamma_function_of_narrow_floats():
    x = np.array([2.5, 4.0], np.float32)
    np.testing.assert_allclose(bw.jit(lambda x: scipy.special.multigammaln(x, 3))(x), scipy.special.multigammaln(x, 3), rtol=1e-6, strict=True)


def test_logsumexp_has_all_its_derivatives():
    x = np.array([0.3, -1.2, 0.3, 0.1])
    p = scipy.special.softmax(x)
    np.testing.assert_allclose(bw.grad(special.logsumexp)(x), p, rtol=1e-14)
    hessian = [bw.grad(lambda x, k=k: bw.grad(special.logsumexp)(x)[k])(x) for k in range(4)]
    np.testing.assert_allclose(hessian, np.diag(p) - np.outer(p, p), rtol=1e-13)


@pytest.mark.parametrize("keywords", [{"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"axis": 0, "return_sign": True}, {"return_sign": True}])
@pytest.mark.parametrize("kinds", ["rr", "rc", "cr", "cc", "r", "c"])
def test_sums_that_are_negative_or_complex(kinds, keywords):
    real = np.random.default_rng(5).normal(size=(2, 3, 4))
    given = {"r": real, "c": real + 2j * real[:, ::-1]}
    a, *weights = (given[kind][k] for k, kind in enumerate(kinds))
    if not (kinds in ("rr", "r") and "return_sign" not in keywords):
        fun = lambda module: lambda a, *b: module.logsumexp(a, b=b[0] if b else None, **keywords)
        found, expected = (of(a, *weights) for of in (bw.jit(fun(special)), fun(scipy.special)))
        for one, other in zip(found, expected, strict=True) if "return_sign" in keywords else [(found, expected)]:
            np.testing.assert_allclose(one, other, rtol=1e-13)
            assert (one.dtype, one.shape) == (other.dtype, other.shape)


def test_derivatives_of_sums_that_are_negative():
    a, b = np.random.default_rng(6).normal(size=(2, 3))
    bw.check_grads(lambda a, b: special.logsumexp(a, b=b, return_sign=True)[0], (a, b), order=2)


def test_softplus_at_infinity():
    found = bw.vjp(bw.nn.softplus, np.array([np.inf, -np.inf, 800.0]))[1](np.ones(3))[0]
    np.testing.assert_array_equal(found, [1.0, 0.0, 1.0])


def test_weights_of_logsumexp_that_are_zero():
    """They leave elements out, however large these are; the derivative by a weight is there all the same."""
    for a, b in (([1000.0, 0.0], [0.0, 1.0]), ([np.inf, 0.0], [0, 1]), ([np.nan, 1.0], [0, 2.0]), ([1e4, 1.0, 2.0], [0.0, 1.0, -3.0]), ([1.0, 2.0], [0.0, 0.0]),
                 ([800.0, 0.0], [1.0, 1e300]), ([1.0 + 2j, 900.0], [1.0, 0.0])):
        for keywords in ({}, {"return_sign": True}, {"axis": 0, "keepdims": True}):
            x, weights = np.array(a), np.array(b)
            with np.errstate(all="ignore"):
                expected = scipy.special.logsumexp(x, b=weights, **keywords)
            found = bw.jit(lambda x, w, given=keywords: scipy.special.logsumexp(x, b=w, **given))(x, weights)
            for one, other in zip(bw.tree.leaves(found), bw.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-14)
    assert bw.grad(lambda x: scipy.special.logsumexp(x, b=[0.0, 1.0, 1.0]))(np.array([1e4, 2.0, 2.0])).tolist() == [0.0, 0.5, 0.5]
    a, b = np.array([[0.3, 1.2, -0.5], [2.0, 0.1, 0.4]]), np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.5]])
    bw.check_grads(lambda a, b: special.logsumexp(a, axis=1, b=b), (a, b), order=2)
    np.testing.assert_allclose(bw.grad(lambda b: special.logsumexp(a[0], b=b))(b[0]), np.exp(a[0]) / np.sum(b[0] * np.exp(a[0])), rtol=1e-14)


@pytest.mark.parametrize("weights", [np.arange(3.0), np.arange(3), np.float64(2.0), np.array(2.0), np.float32(2.0), 2.0, 2])
def test_dtypes_of_weights_of_logsumexp(weights):
    x = np.array([0.5, 1.0, -1.0], np.float32)
    for one in (x, x[1], np.arange(3)):
        found, expected = bw.jit(lambda x: scipy.special.logsumexp(x, b=weights))(one), scipy.special.logsumexp(one, b=weights)
        assert found.dtype == expected.dtype and np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
