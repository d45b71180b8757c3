"""Continuous distributions of all real numbers, and of those on one side of a bound: the formulas of the standard ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.scipy.special.functions import polygamma
from bwcompiler.scipy.stats.continuous import EULER, LOG_ROOT_2_PI, condition, gammaln, positive, psi, special, weibull_var, xlogy
from bwcompiler.scipy.stats.distributions import Continuous, Formulas, size
from bwcompiler.scipy.stats.positive_numbers import LARGEST, expm1_ratio, log1p_ratio


# ----- extremes
def _log_of_minus_logcdf(y: Any, c: Any) -> Any:
    return -log1p_ratio(-c, y)


def _genextreme_ends(c: Any, high: bool) -> Any:
    bounded = c > 0 if high else c < 0
    return np.where(bounded, 1.0 / np.where(bounded, c, 1.0), LARGEST if high else -LARGEST)


def _genextreme_log_density(y: Any, c: Any) -> Any:
    end = c * y == 1
    y = np.where(end, 0.0, y)
    inside = -np.exp(_log_of_minus_logcdf(y, c)) + _log_of_minus_logcdf(y, c) - np.log1p(-c * y)
    return np.where(end, np.where(c == 1, 0.0, -np.inf), inside)


genextreme = Continuous("genextreme", ("c",), Formulas(
    log_density=_genextreme_log_density,
    cdf=lambda y, c: np.exp(-np.exp(_log_of_minus_logcdf(y, c))), sf=lambda y, c: -np.expm1(-np.exp(_log_of_minus_logcdf(y, c))),
    logcdf=lambda y, c: -np.exp(_log_of_minus_logcdf(y, c)), ppf=lambda q, c: expm1_ratio(-c, -np.log(-np.log(q))),
    isf=lambda q, c: expm1_ratio(-c, -np.log(-np.log1p(-q))), entropy=lambda c: EULER * (1.0 - c) + 1.0,
    valid=lambda c: condition(np.isfinite(c)), low=lambda c: _genextreme_ends(c, False), high=lambda c: _genextreme_ends(c, True),
    inside=lambda c: 0.0 * c,
), "The generalised extreme value distribution.", "bw.scipy.stats.genextreme.logcdf(np.array([0.0]), 0.5).tolist()\n[-1.0]")

weibull_max = Continuous("weibull_max", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) + xlogy(c - 1.0, -y) - (-y) ** c, cdf=lambda y, c: np.exp(-((-y) ** c)),
    sf=lambda y, c: -np.expm1(-((-y) ** c)), logcdf=lambda y, c: -((-y) ** c), ppf=lambda q, c: -((-np.log(q)) ** (1.0 / c)),
    entropy=lambda c: EULER * (1.0 - 1.0 / c) - np.log(c) + 1.0, mean=lambda c: -np.exp(gammaln(1.0 + 1.0 / c)), var=weibull_var,
    valid=positive, high=0, inside=lambda c: -1.0,
), "The Weibull distribution of maxima.", "bw.scipy.stats.weibull_max.logcdf(np.array([-1.0]), 2.0).tolist()\n[-1.0]")

moyal = Continuous("moyal", (), Formulas(
    log_density=lambda y: -0.5 * (y + np.exp(-y)) - LOG_ROOT_2_PI, cdf=lambda y: special("erfc", np.exp(-0.5 * y) * math.sqrt(0.5)),
    sf=lambda y: special("erf", np.exp(-0.5 * y) * math.sqrt(0.5)), ppf=lambda q: -np.log(2.0 * special("erfcinv", q) ** 2),
    mean=lambda: math.log(2.0) + EULER, var=lambda: math.pi**2 / 2,
), "The distribution of Moyal.", "bw.scipy.stats.moyal.pdf(np.array([0.0])).round(4).tolist()\n[0.242]")


# ----- logarithms and sums
loggamma = Continuous("loggamma", ("c",), Formulas(
    log_density=lambda y, c: c * y - np.exp(y) - gammaln(c), cdf=lambda y, c: special("gammainc", c, np.exp(y)),
    sf=lambda y, c: special("gammaincc", c, np.exp(y)), ppf=lambda q, c: np.log(special("gammaincinv", c, q)),
    isf=lambda q, c: np.log(special("gammainccinv", c, q)), mean=psi, var=lambda c: polygamma(1, c), valid=positive,
), "The logarithm of a gamma variable.", "bw.scipy.stats.loggamma.logpdf(np.array([0.0]), 1.0).tolist()\n[-1.0]")


def _skewnorm_mean(a: Any) -> Any:
    return math.sqrt(2 / math.pi) * a / np.sqrt(1.0 + a * a)


skewnorm = Continuous("skewnorm", ("a",), Formulas(
    log_density=lambda y, a: math.log(2.0) - LOG_ROOT_2_PI - y * y * 0.5 + special("log_ndtr", a * y), mean=_skewnorm_mean,
    var=lambda a: 1.0 - _skewnorm_mean(a) ** 2, valid=lambda a: condition(np.isfinite(a)),
), "The skewed normal distribution.", "bw.scipy.stats.skewnorm.pdf(np.array([0.0]), 3.0).round(4).tolist()\n[0.3989]")


def _tilted(y: Any, k: Any) -> Any:
    return (0.5 / k - y) / k + special("log_ndtr", y - 1.0 / k)


exponnorm = Continuous("exponnorm", ("K",), Formulas(
    log_density=lambda y, k: _tilted(y, k) - np.log(k), cdf=lambda y, k: special("ndtr", y) - np.exp(_tilted(y, k)),
    sf=lambda y, k: special("ndtr", -y) + np.exp(_tilted(y, k)), mean=lambda k: k, var=lambda k: 1.0 + k * k, valid=positive,
    low=-LARGEST,
), "The sum of a normal and an exponential variable.", "bw.scipy.stats.exponnorm.pdf(np.array([0.0]), 1.0).round(4).tolist()\n[0.2616]")

johnsonsu = Continuous("johnsonsu", ("a", "b"), Formulas(
    log_density=lambda y, a, b: np.log(b) - 0.5 * np.log1p(y * y) - (a + b * np.arcsinh(y)) ** 2 * 0.5 - LOG_ROOT_2_PI,
    cdf=lambda y, a, b: special("ndtr", a + b * np.arcsinh(y)), sf=lambda y, a, b: special("ndtr", -(a + b * np.arcsinh(y))),
    ppf=lambda q, a, b: np.sinh((special("ndtri", q) - a) / b), isf=lambda q, a, b: np.sinh((-special("ndtri", q) - a) / b),
    valid=lambda a, b: positive(b) & (a == a),
), "A normal variable without bounds, by Johnson.", "bw.scipy.stats.johnsonsu.cdf(np.array([0.0]), 0.0, 1.0).tolist()\n[0.5]")

genlogistic = Continuous("genlogistic", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) - size(y) - (c - 1.0) * np.where(y < 0, -y, 0.0) - (c + 1.0) * np.log1p(np.exp(-size(y))),
    cdf=lambda y, c: np.exp(c * special("log_expit", y)), sf=lambda y, c: -np.expm1(c * special("log_expit", y)),
    logcdf=lambda y, c: c * special("log_expit", y), ppf=lambda q, c: -np.log(np.expm1(-np.log(q) / c)), mean=lambda c: EULER + psi(c),
    var=lambda c: math.pi**2 / 6 + polygamma(1, c), valid=positive,
), "The generalised logistic distribution.", "bw.scipy.stats.genlogistic.cdf(np.array([0.0]), 1.0).round(4).tolist()\n[0.5]")

def _log_tangent(q: Any, rest: Any) -> Any:
    """log tan(π q / 2), from the smaller of q and rest = 1 - q."""
    near = q < 0.5
    found = np.log(np.tan(np.where(near, q, rest) * (math.pi / 2)))
    return np.where(near, found, -found)


hypsecant = Continuous("hypsecant", (), Formulas(
    log_density=lambda y: math.log(2 / math.pi) - size(y) - np.log1p(np.exp(-2.0 * size(y))),
    cdf=lambda y: np.arctan(np.exp(y)) * (2 / math.pi), sf=lambda y: np.arctan(np.exp(-y)) * (2 / math.pi),
    ppf=lambda q: _log_tangent(q, 1.0 - q), isf=lambda q: _log_tangent(1.0 - q, q),
    entropy=lambda: math.log(2 * math.pi), mean=lambda: 0.0, var=lambda: math.pi**2 / 4,
), "The hyperbolic secant distribution.", "bw.scipy.stats.hypsecant.pdf(np.array([0.0])).round(4).tolist()\n[0.3183]")
