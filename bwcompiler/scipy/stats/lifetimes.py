"""Continuous distributions of positive numbers that are less in use: of lifetimes, incomes and sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.scipy.stats.continuous import (
    LOG_ROOT_2_PI,
    condition,
    gammaln,
    lognorm,
    positive,
    softplus,
    special,
    xlog1py,
    xlogy,
)
from bwcompiler.scipy.stats.distributions import Continuous, Formulas
from bwcompiler.scipy.stats.positive_numbers import LARGEST, SMALLEST, one


# ----- of normal and gamma variables
def _with_unit(rule: Any) -> Any:
    return None if rule is None else lambda *args: rule(*args, 1.0)


_LOGNORM = lognorm.formulas
gibrat = Continuous("gibrat", (), Formulas(
    log_density=_with_unit(_LOGNORM.log_density), cdf=_with_unit(_LOGNORM.cdf), sf=_with_unit(_LOGNORM.sf),
    logcdf=_with_unit(_LOGNORM.logcdf), logsf=_with_unit(_LOGNORM.logsf), ppf=_with_unit(_LOGNORM.ppf), isf=_with_unit(_LOGNORM.isf),
    entropy=lambda: 0.5 + LOG_ROOT_2_PI, mean=lambda: math.sqrt(math.e), var=lambda: math.expm1(1.0) * math.e, low=SMALLEST, inside=one,
), "The distribution of the exponential of a standard normal variable.", "bw.scipy.stats.gibrat.cdf(np.array([1.0])).tolist()\n[0.5]")

foldnorm = Continuous("foldnorm", ("c",), Formulas(
    log_density=lambda y, c: np.logaddexp((y - c) ** 2 * -0.5, (y + c) ** 2 * -0.5) - LOG_ROOT_2_PI,
    cdf=lambda y, c: special("ndtr", y - c) - special("ndtr", -y - c), sf=lambda y, c: special("ndtr", c - y) + special("ndtr", -y - c),
    valid=lambda c: condition(c >= 0), low=0, inside=one,
), "The size of a normal variable of mean c.", "bw.scipy.stats.foldnorm.cdf(np.array([1.0]), 0.0).round(4).tolist()\n[0.6827]")

foldcauchy = Continuous("foldcauchy", ("c",), Formulas(
    log_density=lambda y, c: np.log(1.0 / (1.0 + (y - c) ** 2) + 1.0 / (1.0 + (y + c) ** 2)) - math.log(math.pi),
    cdf=lambda y, c: (np.arctan(y - c) + np.arctan(y + c)) * (1 / math.pi),
    sf=lambda y, c: (np.arctan2(1.0, y - c) + np.arctan2(1.0, y + c)) * (1 / math.pi), valid=lambda c: condition(c >= 0), low=0, inside=one,
), "The size of a Cauchy variable about c.", "bw.scipy.stats.foldcauchy.cdf(np.array([1.0]), 0.0).round(4).tolist()\n[0.5]")


def _fatigue(c: Any, z: Any) -> Any:
    """y with (√y - 1/√y) / c = z."""
    step = c * z
    far = np.sqrt(step * step + 4.0) + abs(step)
    return np.where(step < 0, 2.0 / far, 0.5 * far) ** 2


def _worn(y: Any, c: Any) -> Any:
    return (np.sqrt(y) - 1.0 / np.sqrt(y)) / c


fatiguelife = Continuous("fatiguelife", ("c",), Formulas(
    log_density=lambda y, c: np.log1p(y) - (y - 1.0) ** 2 / (2.0 * y * c * c) - np.log(2.0 * c) - LOG_ROOT_2_PI - 1.5 * np.log(y),
    cdf=lambda y, c: special("ndtr", _worn(y, c)), sf=lambda y, c: special("ndtr", -_worn(y, c)),
    ppf=lambda q, c: _fatigue(c, special("ndtri", q)), isf=lambda q, c: _fatigue(c, -special("ndtri", q)),
    mean=lambda c: c * c * 0.5 + 1.0, var=lambda c: c * c * (1.25 * c * c + 1.0), valid=positive, low=SMALLEST, high=LARGEST,
    inside=one,
), "The distribution of lifetimes of Birnbaum and Saunders.", "bw.scipy.stats.fatiguelife.cdf(np.array([1.0]), 0.5).tolist()\n[0.5]")


def _first_part(y: Any, mu: Any) -> tuple[Any, Any]:
    root = 1.0 / np.sqrt(y)
    return root * (1.0 / mu - y), np.exp(2.0 / mu) * special("ndtr", -root * (1.0 / mu + y))


recipinvgauss = Continuous("recipinvgauss", ("mu",), Formulas(
    log_density=lambda y, mu: -((1.0 - mu * y) ** 2) / (2.0 * y * mu * mu) - 0.5 * np.log(y) - LOG_ROOT_2_PI,
    cdf=lambda y, mu: special("ndtr", -_first_part(y, mu)[0]) - _first_part(y, mu)[1],
    sf=lambda y, mu: special("ndtr", _first_part(y, mu)[0]) + _first_part(y, mu)[1], valid=positive, low=SMALLEST, high=LARGEST, inside=one,
), "The reciprocal of an inverse Gaussian variable.", "bw.scipy.stats.recipinvgauss.pdf(np.array([1.0]), 1.0).round(4).tolist()\n[0.3989]")

alpha = Continuous("alpha", ("a",), Formulas(
    log_density=lambda y, a: -2.0 * np.log(y) - (a - 1.0 / y) ** 2 * 0.5 - LOG_ROOT_2_PI - special("log_ndtr", a),
    cdf=lambda y, a: special("ndtr", a - 1.0 / y) / special("ndtr", a),
    ppf=lambda q, a: np.where(q == 1.0, np.inf, 1.0 / (a - special("ndtri", np.where(q == 1.0, 0.5, q) * special("ndtr", a)))),
    valid=positive, low=SMALLEST, inside=one,
), "The reciprocal of a normal variable that is positive.", "bw.scipy.stats.alpha.pdf(np.array([1.0]), 1.0).round(4).tolist()\n[0.4742]")

powerlognorm = Continuous("powerlognorm", ("c", "s"), Formulas(
    log_density=lambda y, c, s: (np.log(c) - np.log(s) - np.log(y) - (np.log(y) / s) ** 2 * 0.5 - LOG_ROOT_2_PI
                                 + (c - 1.0) * special("log_ndtr", -np.log(y) / s)),
    logsf=lambda y, c, s: c * special("log_ndtr", -np.log(y) / s), sf=lambda y, c, s: np.exp(c * special("log_ndtr", -np.log(y) / s)),
    cdf=lambda y, c, s: -np.expm1(c * special("log_ndtr", -np.log(y) / s)),
    ppf=lambda q, c, s: np.exp(-s * special("ndtri", (1.0 - q) ** (1.0 / c))),
    isf=lambda q, c, s: np.exp(-s * special("ndtri", q ** (1.0 / c))),
    valid=positive, low=SMALLEST, high=LARGEST, inside=one,
), "The least of c lognormal variables.", "bw.scipy.stats.powerlognorm.cdf(np.array([1.0]), 1.0, 0.5).round(4).tolist()\n[0.5]")


def _either(c: Any, positive: Any, negative: Any) -> Any:
    return np.where(c > 0, positive, negative)


gengamma = Continuous("gengamma", ("a", "c"), Formulas(
    log_density=lambda y, a, c: np.log(abs(c)) + xlogy(c * a - 1.0, y) - y**c - gammaln(a),
    cdf=lambda y, a, c: _either(c, special("gammainc", a, y**c), special("gammaincc", a, y**c)),
    sf=lambda y, a, c: _either(c, special("gammaincc", a, y**c), special("gammainc", a, y**c)),
    ppf=lambda q, a, c: _either(c, special("gammaincinv", a, q), special("gammainccinv", a, q)) ** (1.0 / c),
    isf=lambda q, a, c: _either(c, special("gammainccinv", a, q), special("gammaincinv", a, q)) ** (1.0 / c),
    valid=lambda a, c: condition((a > 0) & (c != 0)), low=0, inside=one,
), "A power of a gamma variable.", "bw.scipy.stats.gengamma.cdf(np.array([1.0]), 1.0, 2.0).round(4).tolist()\n[0.6321]")

halfgennorm = Continuous("halfgennorm", ("beta",), Formulas(
    log_density=lambda y, beta: np.log(beta) - gammaln(1.0 / beta) - y**beta,
    cdf=lambda y, beta: special("gammainc", 1.0 / beta, y**beta), sf=lambda y, beta: special("gammaincc", 1.0 / beta, y**beta),
    ppf=lambda q, beta: special("gammaincinv", 1.0 / beta, q) ** (1.0 / beta),
    isf=lambda q, beta: special("gammainccinv", 1.0 / beta, q) ** (1.0 / beta),
    entropy=lambda beta: 1.0 / beta - np.log(beta) + gammaln(1.0 / beta), valid=positive, low=0, inside=one,
), "The size of a generalized normal variable.", "bw.scipy.stats.halfgennorm.cdf(np.array([1.0]), 1.0).round(4).tolist()\n[0.6321]")


# ----- of exponentials and powers
exponpow = Continuous("exponpow", ("b",), Formulas(
    log_density=lambda y, b: 1.0 + np.log(b) + xlogy(b - 1.0, y) + y**b - np.exp(y**b), cdf=lambda y, b: -np.expm1(-np.expm1(y**b)),
    sf=lambda y, b: np.exp(-np.expm1(y**b)), logsf=lambda y, b: -np.expm1(y**b),
    ppf=lambda q, b: np.log1p(-np.log1p(-q)) ** (1.0 / b), isf=lambda q, b: np.log1p(-np.log(q)) ** (1.0 / b), valid=positive, low=0,
    high=LARGEST, inside=one,
), "The distribution of lifetimes of exponential powers.", "bw.scipy.stats.exponpow.cdf(np.array([1.0]), 1.0).round(4).tolist()\n[0.8206]")


def _rest(y: Any, c: Any) -> Any:
    """(1 - c y)^(1/c)."""
    return np.exp(np.log1p(-c * y) / c)


genhalflogistic = Continuous("genhalflogistic", ("c",), Formulas(
    log_density=lambda y, c: math.log(2.0) + xlog1py(1.0 / c - 1.0, -c * y) - 2.0 * np.log1p(_rest(y, c)),
    cdf=lambda y, c: (1.0 - _rest(y, c)) / (1.0 + _rest(y, c)), sf=lambda y, c: 2.0 * _rest(y, c) / (1.0 + _rest(y, c)),
    ppf=lambda q, c: (1.0 - ((1.0 - q) / (1.0 + q)) ** c) / c, valid=positive, low=0, high=lambda c: 1.0 / c, inside=lambda c: 0.5 / c,
), "The generalized half-logistic distribution.", "bw.scipy.stats.genhalflogistic.cdf(np.array([1.0]), 0.5).round(4).tolist()\n[0.6]")


def _loglaplace_sides(y: Any, c: Any) -> Any:
    return np.where(y < 1.0, c, -c)


loglaplace = Continuous("loglaplace", ("c",), Formulas(
    log_density=lambda y, c: np.log(0.5 * c) + xlogy(_loglaplace_sides(y, c) - 1.0, y),
    cdf=lambda y, c: np.where(y < 1.0, 0.5 * y**c, 1.0 - 0.5 * y ** -c), sf=lambda y, c: np.where(y < 1.0, 1.0 - 0.5 * y**c, 0.5 * y ** -c),
    ppf=lambda q, c: np.where(q < 0.5, (2.0 * q) ** (1.0 / c), (2.0 * (1.0 - q)) ** (-1.0 / c)),
    isf=lambda q, c: np.where(q > 0.5, (2.0 * (1.0 - q)) ** (1.0 / c), (2.0 * q) ** (-1.0 / c)),
    entropy=lambda c: np.log(2.0 / c) + 1.0, valid=positive, low=0, inside=one,
), "The exponential of a Laplace variable.", "bw.scipy.stats.loglaplace.cdf(np.array([1.0]), 2.0).tolist()\n[0.5]")

burr = Continuous("burr", ("c", "d"), Formulas(
    log_density=lambda y, c, d: np.log(c) + np.log(d) + (c * d - 1.0) * np.log(y) - (d + 1.0) * softplus(c * np.log(y)),
    cdf=lambda y, c, d: (1.0 + y ** -c) ** -d, isf=lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (-1.0 / c),
    logcdf=lambda y, c, d: -d * np.log1p(y ** -c), sf=lambda y, c, d: -np.expm1(-d * np.log1p(y ** -c)),
    ppf=lambda q, c, d: (q ** (-1.0 / d) - 1.0) ** (-1.0 / c), valid=positive, low=SMALLEST, high=LARGEST, inside=one,
), "Burr's distribution of type III.", "bw.scipy.stats.burr.cdf(np.array([1.0]), 2.0, 1.0).tolist()\n[0.5]")

mielke = Continuous("mielke", ("k", "s"), Formulas(
    log_density=lambda y, k, s: np.log(k) + xlogy(k - 1.0, y) - (1.0 + k / s) * np.log1p(y**s),
    cdf=lambda y, k, s: y**k / (1.0 + y**s) ** (k / s),
    ppf=lambda q, k, s: (q ** (s / k) / (1.0 - q ** (s / k))) ** (1.0 / s), valid=positive, low=0, high=LARGEST, inside=one,
), "The kappa distribution of Mielke.", "bw.scipy.stats.mielke.cdf(np.array([1.0]), 2.0, 2.0).round(4).tolist()\n[0.5]")

kappa3 = Continuous("kappa3", ("a",), Formulas(
    log_density=lambda y, a: np.log(a) - (1.0 / a + 1.0) * np.log(a + y**a), cdf=lambda y, a: y * (a + y**a) ** (-1.0 / a),
    sf=lambda y, a: -np.expm1(-np.log1p(a * y**-a) / a), isf=lambda q, a: (a / np.expm1(-a * np.log1p(-q))) ** (1.0 / a),
    ppf=lambda q, a: (a / (q ** -a - 1.0)) ** (1.0 / a), valid=positive, low=0, high=LARGEST, inside=one,
), "The kappa distribution of three parameters.", "bw.scipy.stats.kappa3.cdf(np.array([1.0]), 1.0).tolist()\n[0.5]")

truncpareto = Continuous("truncpareto", ("b", "c"), Formulas(
    log_density=lambda y, b, c: np.log(b) - (b + 1.0) * np.log(y) - np.log(-np.expm1(-b * np.log(c))),
    cdf=lambda y, b, c: np.expm1(-b * np.log(y)) / np.expm1(-b * np.log(c)),
    sf=lambda y, b, c: (c ** -b - y ** -b) / np.expm1(-b * np.log(c)),
    ppf=lambda q, b, c: np.exp(-np.log1p(q * np.expm1(-b * np.log(c))) / b),
    isf=lambda q, b, c: (c ** -b - q * np.expm1(-b * np.log(c))) ** (-1.0 / b),
    valid=lambda b, c: condition((b > 0) & (c > 1)), low=1, high=lambda b, c: c, inside=lambda b, c: 0.5 * (1.0 + c),
), "The Pareto distribution between 1 and c.", "bw.scipy.stats.truncpareto.cdf(np.array([2.0]), 1.0, 4.0).round(4).tolist()\n[0.6667]")


def _weibull_mass(a: Any, b: Any, c: Any) -> Any:
    return np.exp(-(a**c)) - np.exp(-(b**c))


truncweibull_min = Continuous("truncweibull_min", ("c", "a", "b"), Formulas(
    log_density=lambda y, c, a, b: np.log(c) + xlogy(c - 1.0, y) - y**c - np.log(_weibull_mass(a, b, c)),
    cdf=lambda y, c, a, b: _weibull_mass(a, y, c) / _weibull_mass(a, b, c),
    sf=lambda y, c, a, b: _weibull_mass(y, b, c) / _weibull_mass(a, b, c),
    ppf=lambda q, c, a, b: (-np.log((1.0 - q) * np.exp(-(a**c)) + q * np.exp(-(b**c)))) ** (1.0 / c),
    isf=lambda q, c, a, b: (-np.log(q * np.exp(-(a**c)) + (1.0 - q) * np.exp(-(b**c)))) ** (1.0 / c),
    valid=lambda c, a, b: condition((c > 0) & (a >= 0) & (b > a)), low=lambda c, a, b: a, high=lambda c, a, b: b,
    inside=lambda c, a, b: 0.5 * (a + b),
), "The Weibull distribution between a and b.", "bw.scipy.stats.truncweibull_min.cdf(np.array([2.0]), 1.0, 0.0, 2.0).tolist()\n[1.0]")
