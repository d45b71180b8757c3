"""Special functions."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from bwcompiler.ir.op import REGISTRY
from tests.support.gradcheck import vjp
from tests.support.opcases import case, op_tests

X = np.array([[-3.3, -0.7, 0.3], [0.9, 2.4, 7.6]])
UNIT = np.array([-0.8, -0.3, 1e-3, 0.6])
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.0, -1.0, -3.0, 2.0])
NAMES = ("erf", "erfc", "erfcx", "erfinv", "sigmoid", "lgamma", "digamma", "trigamma")
CASES = [row for name in NAMES for row in (
    case(name, UNIT if name == "erfinv" else X), case(name, np.array(0.25)),
    case(name, np.zeros((2, 0))).but(smooth=False),
    case(name, ODD).but(smooth=False),
    case(name, X.astype(np.float32)).but(smooth=False),
)] + [case("polygamma", x, n=n) for n in (1, 2, 3) for x in (X, X[:0])] + [
    case("special_function", x, name=name, results=results) for name, results in (("j0", 1), ("fresnel", 2)) for x in (X, X[:0], np.array(0.25))
] + [case("special_function", X * 0 + 0.5, np.abs(X), name="owens_t", results=1), case("special_function", X, name="sici", results=2).but(smooth=False),
     case("special_function", X.astype(np.float32), name="dawsn", results=1).but(smooth=False)]
test_op = op_tests(CASES)

RNG = np.random.default_rng(1)
WIDE = np.concatenate([RNG.normal(size=60) * 5, RNG.uniform(-30, 60, 30), [1e-8, 1e5, -20.5, -20.0001, 1e-300]])
ORACLES = {
    "erf": (mpmath.erf, WIDE), "erfc": (mpmath.erfc, WIDE[WIDE < 26]),
    "erfinv": (mpmath.erfinv, np.concatenate([RNG.uniform(-1, 1, 60), [1e-300, 1e-160, 0.5, 1 - 1e-10, 1 - 2.0**-53]])),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), np.concatenate([WIDE[np.abs(WIDE) < 26], RNG.uniform(0, 300, 30)])),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), WIDE),
    "lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), WIDE),
    "digamma": (mpmath.digamma, WIDE), "trigamma": (lambda x: mpmath.polygamma(1, x), WIDE),
}


@pytest.mark.parametrize("name", NAMES)
def test_accuracy(name):
    oracle, x = ORACLES[name]
    with mpmath.workdps(40):
        expected = np.array([float(oracle(mpmath.mpf(value))) for value in x.tolist() if abs(value) > 1e-299])
    found = REGISTRY[name].reference(x[np.abs(x) > 1e-299])
    tolerance = 1e-13 if name in ("lgamma", "digamma") else 1e-14       # digits are lost near the zeros of these two
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-15)


def test_special_values():
    infinity, nan = math.inf, math.nan
    x = np.array([infinity, -infinity, nan, 0.0, -0.0, 1.0, -1.0, -2.0])
    expected = {
        "erf": [1, -1, nan, 0.0, -0.0, math.erf(1), -math.erf(1), math.erf(-2)],
        "erfinv": [nan, nan, nan, 0.0, -0.0, infinity, -infinity, nan],
        "lgamma": [infinity, infinity, nan, infinity, infinity, 0.0, infinity, infinity],
        "digamma": [infinity, nan, nan, -infinity, infinity, -0.5772156649015329, nan, nan],
        "trigamma": [0.0, nan, nan, infinity, infinity, math.pi**2 / 6, infinity, infinity],
        "sigmoid": [1.0, 0.0, nan, 0.5, 0.5, 1 / (1 + math.exp(-1)), 1 / (1 + math.e), 1 / (1 + math.exp(2))],
    }
    for name, values in expected.items():
        found = REGISTRY[name].reference(x)
        np.testing.assert_allclose(found, values, rtol=1e-14, err_msg=name)
        number = ~np.isnan(found)
        np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(np.array(values)[number]))


def test_first_derivatives_of_the_gamma_family():
    for name, derivative in (("lgamma", "digamma"), ("digamma", "trigamma")):
        row = case(name, X)
        [bar] = vjp(row.program(), [0]).run(X, np.ones_like(X))
        np.testing.assert_array_equal(bar, REGISTRY[derivative].reference(X))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_polygamma(n):
    x = WIDE[np.abs(WIDE) > 1e-2]
    with mpmath.workdps(60):
        expected = np.array([float(mpmath.polygamma(n, mpmath.mpf(value))) for value in x.tolist()])
    np.testing.assert_allclose(REGISTRY["polygamma"].reference(x, n=n), expected, rtol=1e-11, atol=1e-11)
