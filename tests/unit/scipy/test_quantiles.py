"""Quantiles of distributions that have no formula here: SciPy's values, and the derivative of the implicit function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import bwcompiler as bw
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

Q = np.array([0.1, 0.45, 0.8])
CONTINUOUS: dict[str, tuple[float, ...]] = {
    "betaprime": (2.0, 3.0), "exponnorm": (1.5,), "gennorm": (1.3,), "invgauss": (0.7,), "semicircular": (), "truncnorm": (-1.0, 2.0),
    "arcsine": (), "triang": (0.3,), "loguniform": (1.0, 5.0), "halfnorm": (), "moyal": (), "burr12": (2.0, 3.0), "f": (3.0, 4.0)}
DISCRETE: dict[str, tuple[float, ...]] = {
    "binom": (7.0, 0.4), "poisson": (3.5,), "geom": (0.3,), "randint": (2.0, 9.0), "nbinom": (3.0, 0.4), "bernoulli": (0.3,),
    "dlaplace": (0.8,), "planck": (0.6,)}


def pair(name: str) -> tuple[Any, Any]:
    return getattr(bw.scipy.stats, name), getattr(scipy.stats, name)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    (mine, theirs), shapes = pair(name), CONTINUOUS[name]
    for method in ("ppf", "isf"):
        found = run_traced(lambda q, method=method: getattr(mine, method)(q, *shapes, loc=1.5, scale=2.0), Q)[0]
        np.testing.assert_allclose(found, getattr(theirs, method)(Q, *shapes, loc=1.5, scale=2.0), rtol=1e-10)
        check_derivatives(lambda q, *shapes, method=method: getattr(mine, method)(q, *shapes), Q, *map(np.float64, shapes), order=1)
    np.testing.assert_allclose(mine.sf(theirs.ppf(Q, *shapes), *shapes), 1.0 - Q, rtol=1e-10)
    assert np.isnan(mine.ppf(1.5, *shapes)) and mine.isf(0.25, *shapes) == pytest.approx(theirs.isf(0.25, *shapes))


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name: str) -> None:
    (mine, theirs), shapes = pair(name), DISCRETE[name]
    for method in ("ppf", "isf"):
        np.testing.assert_array_equal(bw.jit(lambda q, method=method: getattr(mine, method)(q, *shapes, loc=3))(Q),
                                      getattr(theirs, method)(Q, *shapes, loc=3))
    assert bw.grad(lambda q: mine.ppf(q, *shapes) * q)(0.45) == theirs.ppf(0.45, *shapes)             # it has steps
    assert mine.median(*shapes) == theirs.median(*shapes)


def test_second_derivatives() -> None:
    check_derivatives(lambda q, mu: bw.scipy.stats.invgauss.ppf(q, mu), Q, np.float64(0.7))


def test_where_the_formula_of_the_distribution_has_no_slope() -> None:
    found = bw.grad(bw.scipy.stats.gennorm.cdf, (0, 1))(0.0, 1.3)
    np.testing.assert_allclose(found, (scipy.stats.gennorm.pdf(0.0, 1.3), 0.0))


@pytest.mark.parametrize(("name", "shapes"), [("halfnorm", ()), ("halflogistic", ()), ("expon", ()), ("norm", ()), ("logistic", ()), ("cauchy", ()),
                                              ("burr", (2.0, 1.5)), ("burr12", (2.0, 1.5)), ("exponweib", (1.5, 1.2)),
                                              ("kappa3", (1.5,))])
def test_far_tails(name: str, shapes: tuple[float, ...]) -> None:
    """From the complement itself: 1 - 1e-300 is 1."""
    mine, theirs = pair(name)
    q = np.array([1e-300, 1e-12, 0.3, 0.7, 0.999])
    np.testing.assert_allclose(bw.jit(lambda q: mine.isf(q, *shapes))(q), theirs.isf(q, *shapes), rtol=1e-10)
    check_derivatives(lambda q: mine.isf(q, *shapes), Q)
