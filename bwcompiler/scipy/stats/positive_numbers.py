"""Continuous distributions of positive numbers, and of numbers between bounds: the formulas of the standard ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.scipy.stats.continuous import (
    EULER,
    LOG_ROOT_2_PI,
    above,
    condition,
    gamma,
    gammaln,
    log_one_minus_exp,
    pareto_var,
    positive,
    softplus,
    special,
    xlog1py,
    xlogy,
)
from bwcompiler.scipy.stats.distributions import Continuous, Formulas

SMALLEST = 5e-324              # the lower end of a support without 0
LARGEST = 1e308                # the upper end of one without inf, where formulas have inf - inf


def one(*_: Any) -> float:
    return 1.0


def log1p_ratio(k: Any, x: Any) -> Any:
    """log(1 + k x) / k, x for k = 0: by its series where k x is small, which has the derivatives of the limit."""
    product = k * x
    near = abs(product) < 1e-3
    u = np.where(near, product, 0.0)
    series = x * (1 - u * (1 / 2 - u * (1 / 3 - u * (1 / 4 - u * (1 / 5 - u / 6)))))
    return np.where(near, series, np.log1p(np.where(near, 1.0, product)) / np.where(near, 1.0, k))


def expm1_ratio(k: Any, x: Any) -> Any:
    """(exp(k x) - 1) / k, x for k = 0: the inverse of `log1p_ratio`."""
    product = k * x
    near = abs(product) < 1e-3
    u = np.where(near, product, 0.0)
    series = x * (1 + u * (1 / 2 + u * (1 / 6 + u * (1 / 24 + u * (1 / 120 + u / 720)))))
    return np.where(near, series, np.expm1(np.where(near, 1.0, product)) / np.where(near, 1.0, k))


# ----- of squares and roots of gamma variables
def _chi_mean(df: Any) -> Any:
    return math.sqrt(2.0) * np.exp(gammaln(df * 0.5 + 0.5) - gammaln(df * 0.5))


chi = Continuous("chi", ("df",), Formulas(
    log_density=lambda y, df: math.log(2.0) * (1.0 - df * 0.5) - gammaln(df * 0.5) + xlogy(df - 1.0, y) - y * y * 0.5,
    cdf=lambda y, df: special("gammainc", df * 0.5, y * y * 0.5), sf=lambda y, df: special("gammaincc", df * 0.5, y * y * 0.5),
    ppf=lambda q, df: np.sqrt(2.0 * special("gammaincinv", df * 0.5, q)),
    isf=lambda q, df: np.sqrt(2.0 * special("gammainccinv", df * 0.5, q)), mean=_chi_mean, var=lambda df: df - _chi_mean(df) ** 2,
    valid=positive, low=0, inside=one,
), "The length of a vector of df normal variables.", "bw.scipy.stats.chi.cdf(np.array([1.0]), 2.0).round(4).tolist()\n[0.3935]")

maxwell = Continuous("maxwell", (), Formulas(
    log_density=lambda y: 2.0 * np.log(y) - y * y * 0.5 + 0.5 * math.log(2 / math.pi),
    cdf=lambda y: special("gammainc", 1.5, y * y * 0.5), sf=lambda y: special("gammaincc", 1.5, y * y * 0.5),
    ppf=lambda q: np.sqrt(2.0 * special("gammaincinv", 1.5, q)), isf=lambda q: np.sqrt(2.0 * special("gammainccinv", 1.5, q)),
    entropy=lambda: EULER + LOG_ROOT_2_PI - 0.5, mean=lambda: 2 * math.sqrt(2 / math.pi), var=lambda: 3 - 8 / math.pi, low=0, inside=one,
), "The distribution of Maxwell and Boltzmann.", "bw.scipy.stats.maxwell.pdf(np.array([1.0])).round(4).tolist()\n[0.4839]")

nakagami = Continuous("nakagami", ("nu",), Formulas(
    log_density=lambda y, nu: math.log(2.0) + xlogy(nu, nu) - gammaln(nu) + xlogy(2.0 * nu - 1.0, y) - nu * y * y,
    cdf=lambda y, nu: special("gammainc", nu, nu * y * y), sf=lambda y, nu: special("gammaincc", nu, nu * y * y),
    ppf=lambda q, nu: np.sqrt(special("gammaincinv", nu, q) / nu), isf=lambda q, nu: np.sqrt(special("gammainccinv", nu, q) / nu),
    valid=positive, low=0, inside=one,
), "The Nakagami distribution.", "bw.scipy.stats.nakagami.cdf(np.array([1.0]), 1.0).round(4).tolist()\n[0.6321]")

erlang = Continuous("erlang", ("a",), gamma.formulas, "The gamma distribution of a whole number a.",
                    "bw.scipy.stats.erlang.logpdf(np.array([1.0]), 2.0).tolist()\n[-1.0]")

betaprime = Continuous("betaprime", ("a", "b"), Formulas(
    log_density=lambda y, a, b: xlogy(a - 1.0, y) - xlog1py(a + b, y) - special("betaln", a, b),
    cdf=lambda y, a, b: special("betainc", a, b, y / (1.0 + y)), sf=lambda y, a, b: special("betainc", b, a, 1.0 / (1.0 + y)),
    valid=positive, low=0, high=LARGEST, inside=one,
), "The distribution of the odds of a beta variable.", "bw.scipy.stats.betaprime.pdf(np.array([1.0]), 1.0, 1.0).round(4).tolist()\n[0.25]")

rice = Continuous("rice", ("b",), Formulas(
    log_density=lambda y, b: np.log(y) - (y - b) ** 2 * 0.5 + np.log(special("i0e", y * b)),
    cdf=lambda y, b: special("chndtr", y * y, 2.0, b * b), sf=lambda y, b: 1.0 - special("chndtr", y * y, 2.0, b * b),
    valid=lambda b: condition(b >= 0), low=0, inside=one,
), "The length of a normal vector in the plane about a point at the distance b.",
    "bw.scipy.stats.rice.pdf(np.array([1.0]), 0.0).round(4).tolist()\n[0.6065]")


# ----- of times of first passage
def _before(y: Any, mu: Any) -> tuple[Any, Any]:
    root = 1.0 / np.sqrt(y)
    return root * (y / mu - 1.0), 2.0 / mu + special("log_ndtr", -root * (y / mu + 1.0))


def _invgauss_logcdf(y: Any, mu: Any) -> Any:
    place, second = _before(y, mu)
    return np.logaddexp(special("log_ndtr", place), second)


def _invgauss_logsf(y: Any, mu: Any) -> Any:
    place, second = _before(y, mu)
    first = special("log_ndtr", -place)
    return first + log_one_minus_exp(second - first)


_INVGAUSS = Formulas(
    log_density=lambda y, mu: -LOG_ROOT_2_PI - 1.5 * np.log(y) - ((y - mu) / mu) ** 2 / (2.0 * y),
    cdf=lambda y, mu: np.exp(_invgauss_logcdf(y, mu)), sf=lambda y, mu: np.exp(_invgauss_logsf(y, mu)), logcdf=_invgauss_logcdf,
    logsf=_invgauss_logsf, mean=lambda mu: mu, var=lambda mu: mu * mu * mu, valid=positive, low=SMALLEST, high=LARGEST,
    inside=one,
)
invgauss = Continuous("invgauss", ("mu",), _INVGAUSS, "The inverse Gaussian distribution.",
                      "bw.scipy.stats.invgauss.pdf(np.array([1.0]), 1.0).round(4).tolist()\n[0.3989]")
wald = Continuous("wald", (), Formulas(
    log_density=lambda y: _INVGAUSS.log_density(y, 1.0), cdf=lambda y: np.exp(_invgauss_logcdf(y, 1.0)),
    sf=lambda y: np.exp(_invgauss_logsf(y, 1.0)), logcdf=lambda y: _invgauss_logcdf(y, 1.0), logsf=lambda y: _invgauss_logsf(y, 1.0),
    mean=lambda: 1.0, var=lambda: 1.0, low=SMALLEST, high=LARGEST, inside=one,
), "The inverse Gaussian distribution of mean 1.", "bw.scipy.stats.wald.pdf(np.array([1.0])).round(4).tolist()\n[0.3989]")

levy = Continuous("levy", (), Formulas(
    log_density=lambda y: -LOG_ROOT_2_PI - 1.5 * np.log(y) - 0.5 / y, cdf=lambda y: special("erfc", np.sqrt(0.5 / y)),
    sf=lambda y: special("erf", np.sqrt(0.5 / y)), ppf=lambda q: special("ndtri", q * 0.5) ** -2.0,
    isf=lambda q: 0.5 / special("erfinv", q) ** 2, low=SMALLEST, inside=one,
), "The distribution of Lévy.", "bw.scipy.stats.levy.pdf(np.array([1.0])).round(4).tolist()\n[0.242]")

gompertz = Continuous("gompertz", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) + y - c * np.expm1(y), cdf=lambda y, c: -np.expm1(-c * np.expm1(y)),
    sf=lambda y, c: np.exp(-c * np.expm1(y)), logsf=lambda y, c: -c * np.expm1(y), ppf=lambda q, c: np.log1p(-np.log1p(-q) / c),
    isf=lambda q, c: np.log1p(-np.log(q) / c), valid=positive, low=0, inside=one,
), "The Gompertz distribution.", "bw.scipy.stats.gompertz.sf(np.array([0.0]), 2.0).tolist()\n[1.0]")

exponweib = Continuous("exponweib", ("a", "c"), Formulas(
    log_density=lambda y, a, c: np.log(a) + np.log(c) + xlogy(a - 1.0, -np.expm1(-(y**c))) - y**c + xlogy(c - 1.0, y),
    cdf=lambda y, a, c: (-np.expm1(-(y**c))) ** a, sf=lambda y, a, c: -np.expm1(a * log_one_minus_exp(-(y**c))),
    logcdf=lambda y, a, c: a * log_one_minus_exp(-(y**c)), ppf=lambda q, a, c: (-np.log1p(-(q ** (1.0 / a)))) ** (1.0 / c),
    isf=lambda q, a, c: (-np.log(-np.expm1(np.log1p(-q) / a))) ** (1.0 / c), valid=positive, low=0, inside=one,
), "A power of the Weibull distribution.", "bw.scipy.stats.exponweib.cdf(np.array([0.0]), 2.0, 1.0).tolist()\n[0.0]")


# ----- with heavy tails
def _genpareto_logsf(y: Any, c: Any) -> Any:
    return -log1p_ratio(c, y)


def _genpareto_high(c: Any) -> Any:
    return np.where(c < 0, -1.0 / np.where(c < 0, c, -1.0), LARGEST)


genpareto = Continuous("genpareto", ("c",), Formulas(
    log_density=lambda y, c: _genpareto_logsf(y, c) - np.log1p(c * y), cdf=lambda y, c: -np.expm1(_genpareto_logsf(y, c)),
    sf=lambda y, c: np.exp(_genpareto_logsf(y, c)), logsf=_genpareto_logsf, ppf=lambda q, c: expm1_ratio(c, -np.log1p(-q)),
    isf=lambda q, c: expm1_ratio(c, -np.log(q)), entropy=lambda c: 1.0 + c, valid=lambda c: condition(np.isfinite(c)), low=0,
    high=_genpareto_high, inside=lambda c: np.where(c < 0, -0.5 / np.where(c < 0, c, -1.0), 1.0),
), "The generalised Pareto distribution.", "bw.scipy.stats.genpareto.sf(np.array([1.0]), 1.0).round(4).tolist()\n[0.5]")

lomax = Continuous("lomax", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) - (c + 1.0) * np.log1p(y), cdf=lambda y, c: -np.expm1(-c * np.log1p(y)),
    sf=lambda y, c: np.exp(-c * np.log1p(y)), logsf=lambda y, c: -c * np.log1p(y), ppf=lambda q, c: np.expm1(-np.log1p(-q) / c),
    isf=lambda q, c: np.expm1(-np.log(q) / c), entropy=lambda c: 1.0 + 1.0 / c - np.log(c),
    mean=lambda c: above(1.0, c, lambda c: 1.0 / (c - 1.0)), var=pareto_var, valid=positive, low=0, inside=one,
), "The Pareto distribution from 0.", "bw.scipy.stats.lomax.sf(np.array([1.0]), 1.0).round(4).tolist()\n[0.5]")

fisk = Continuous("fisk", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) + xlogy(c - 1.0, y) - 2.0 * softplus(c * np.log(y)), cdf=lambda y, c: 1.0 - 1.0 / (1.0 + y**c),
    sf=lambda y, c: 1.0 / (1.0 + y**c), logsf=lambda y, c: -np.log1p(y**c), ppf=lambda q, c: (q / (1.0 - q)) ** (1.0 / c),
    isf=lambda q, c: ((1.0 - q) / q) ** (1.0 / c), entropy=lambda c: 2.0 - np.log(c), valid=positive, low=0, high=LARGEST,
    inside=one,
), "The log-logistic distribution.", "bw.scipy.stats.fisk.sf(np.array([1.0]), 2.0).tolist()\n[0.5]")

burr12 = Continuous("burr12", ("c", "d"), Formulas(
    log_density=lambda y, c, d: np.log(c) + np.log(d) + xlogy(c - 1.0, y) + xlog1py(-d - 1.0, y**c),
    cdf=lambda y, c, d: -np.expm1(-d * np.log1p(y**c)), sf=lambda y, c, d: np.exp(-d * np.log1p(y**c)),
    logsf=lambda y, c, d: -d * np.log1p(y**c), ppf=lambda q, c, d: np.expm1(-np.log1p(-q) / d) ** (1.0 / c),
    isf=lambda q, c, d: np.expm1(-np.log(q) / d) ** (1.0 / c), valid=positive, low=0, inside=one,
), "The distribution of Burr, of type XII.", "bw.scipy.stats.burr12.sf(np.array([1.0]), 2.0, 1.0).round(4).tolist()\n[0.5]")

invweibull = Continuous("invweibull", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) - (c + 1.0) * np.log(y) - y ** -c, cdf=lambda y, c: np.exp(-(y ** -c)),
    sf=lambda y, c: -np.expm1(-(y ** -c)), logcdf=lambda y, c: -(y ** -c), ppf=lambda q, c: (-np.log(q)) ** (-1.0 / c),
    isf=lambda q, c: (-np.log1p(-q)) ** (-1.0 / c), entropy=lambda c: 1 + EULER + EULER / c - np.log(c), valid=positive, low=SMALLEST,
    inside=one,
), "The distribution of Fréchet.", "bw.scipy.stats.invweibull.logcdf(np.array([1.0]), 2.0).tolist()\n[-1.0]")

def _half_turn(q: Any, rest: Any) -> Any:
    """tan(π q / 2), from the smaller of q and rest = 1 - q."""
    near = q < 0.5
    return np.where(near, np.tan(np.where(near, q, 0.0) * (math.pi / 2)), 1.0 / np.tan(np.where(near, 1.0, rest) * (math.pi / 2)))


halfcauchy = Continuous("halfcauchy", (), Formulas(
    log_density=lambda y: math.log(2 / math.pi) - np.log1p(y * y), cdf=lambda y: np.arctan(y) * (2 / math.pi),
    sf=lambda y: np.arctan2(np.ones_like(y), y) * (2 / math.pi), ppf=lambda q: _half_turn(q, 1.0 - q),
    isf=lambda q: _half_turn(1.0 - q, q), entropy=lambda: math.log(2 * math.pi), low=0, inside=one,
), "The distribution of the size of a Cauchy variable.", "bw.scipy.stats.halfcauchy.cdf(np.array([1.0])).round(4).tolist()\n[0.5]")

def _halflogistic_isf(q: Any) -> Any:
    small = q < 0.5
    return np.where(small, -special("logit", 0.5 * np.where(small, q, 0.5)), 2.0 * np.arctanh(np.where(small, 0.0, 1.0 - q)))


halflogistic = Continuous("halflogistic", (), Formulas(
    log_density=lambda y: math.log(2.0) - y - 2.0 * np.log1p(np.exp(-y)), cdf=lambda y: np.tanh(y * 0.5),
    sf=lambda y: 2.0 * special("expit", -y), ppf=lambda q: 2.0 * np.arctanh(q), isf=_halflogistic_isf,
    entropy=lambda: 2 - math.log(2.0), mean=lambda: 2 * math.log(2.0), var=lambda: math.pi**2 / 3 - 4 * math.log(2.0) ** 2, low=0,
    inside=one,
), "The distribution of the size of a logistic variable.", "bw.scipy.stats.halflogistic.cdf(np.array([0.0])).tolist()\n[0.0]")


# ----- between bounds
def _in_order(a: Any, b: Any) -> Any:
    return condition((a > 0) & (b > a))


loguniform = Continuous("loguniform", ("a", "b"), Formulas(
    log_density=lambda y, a, b: -np.log(y) - np.log(np.log(b) - np.log(a)),
    cdf=lambda y, a, b: (np.log(y) - np.log(a)) / (np.log(b) - np.log(a)),
    ppf=lambda q, a, b: np.exp(np.log(a) + q * (np.log(b) - np.log(a))),
    entropy=lambda a, b: 0.5 * (np.log(a) + np.log(b)) + np.log(np.log(b) - np.log(a)), mean=lambda a, b: (b - a) / np.log(b / a),
    valid=_in_order, low=lambda a, b: a, high=lambda a, b: b, inside=lambda a, b: a,
), "The distribution of exp of a uniform variable.", "bw.scipy.stats.loguniform.cdf(np.array([1.0]), 0.1, 10.0).round(4).tolist()\n[0.5]")
reciprocal = Continuous("reciprocal", ("a", "b"), loguniform.formulas, "The same as loguniform.",
                        "bw.scipy.stats.reciprocal.cdf(np.array([1.0]), 0.1, 10.0).round(4).tolist()\n[0.5]")

powerlaw = Continuous("powerlaw", ("a",), Formulas(
    log_density=lambda y, a: np.log(a) + xlogy(a - 1.0, y), cdf=lambda y, a: y**a, sf=lambda y, a: -np.expm1(a * np.log(y)),
    logcdf=lambda y, a: a * np.log(y), ppf=lambda q, a: q ** (1.0 / a), entropy=lambda a: 1.0 - 1.0 / a - np.log(a),
    mean=lambda a: a / (a + 1.0), var=lambda a: a / (a + 2.0) / (a + 1.0) ** 2, valid=positive, low=0, high=1, inside=lambda a: 0.5,
), "The power of a uniform variable.", "bw.scipy.stats.powerlaw.cdf(np.array([0.5]), 2.0).tolist()\n[0.25]")

truncexpon = Continuous("truncexpon", ("b",), Formulas(
    log_density=lambda y, b: -y - np.log(-np.expm1(-b)), cdf=lambda y, b: np.expm1(-y) / np.expm1(-b),
    sf=lambda y, b: (np.exp(-b) - np.exp(-y)) / np.expm1(-b), ppf=lambda q, b: -np.log1p(q * np.expm1(-b)), valid=positive, low=0,
    high=lambda b: b, inside=lambda b: b * 0.5,
), "The exponential distribution between 0 and b.", "bw.scipy.stats.truncexpon.cdf(np.array([2.0]), 2.0).tolist()\n[1.0]")


def _rising(y: Any, c: Any) -> tuple[Any, Any, Any]:
    """Whether y is left of the top, and c and 1 - c that are not 0 if they divide."""
    left = y < c
    return left, np.where(left, c, 1.0), np.where(left, 1.0, 1.0 - c)


def _triang_density(y: Any, c: Any) -> Any:
    left, low, high = _rising(y, c)
    ends = np.where(high == 0, 1.0, high)                                # c = 1 at y = 1
    return math.log(2.0) + np.where(left, np.log(y) - np.log(low), np.where(high == 0, 0.0, np.log(1.0 - y) - np.log(ends)))


def _triang_cdf(y: Any, c: Any) -> Any:
    left, low, high = _rising(y, c)
    ends = np.where(high == 0, 1.0, high)
    return np.where(left, y * y / low, np.where(high == 0, 1.0, 1.0 - (1.0 - y) ** 2 / ends))


triang = Continuous("triang", ("c",), Formulas(
    log_density=_triang_density, cdf=_triang_cdf,
    ppf=lambda q, c: np.where(q < c, np.sqrt(c * q), 1.0 - np.sqrt((1.0 - c) * (1.0 - q))), entropy=lambda c: 0.5 - math.log(2.0) + 0 * c,
    mean=lambda c: (c + 1.0) / 3, var=lambda c: (1.0 - c + c * c) / 18, valid=lambda c: condition((c >= 0) & (c <= 1)), low=0, high=1,
    inside=lambda c: 0.5,
), "The triangle with its top at c.", "bw.scipy.stats.triang.cdf(np.array([0.5]), 0.5).tolist()\n[0.5]")

arcsine = Continuous("arcsine", (), Formulas(
    log_density=lambda y: -math.log(math.pi) - 0.5 * np.log(y * (1.0 - y)), cdf=lambda y: np.arcsin(np.sqrt(y)) * (2 / math.pi),
    ppf=lambda q: np.sin(q * (math.pi / 2)) ** 2, entropy=lambda: -0.24156447527049044468, mean=lambda: 0.5, var=lambda: 0.125, low=0,
    high=1, inside=lambda: 0.5,
), "The arcsine distribution.", "bw.scipy.stats.arcsine.cdf(np.array([0.5])).round(4).tolist()\n[0.5]")

semicircular = Continuous("semicircular", (), Formulas(
    log_density=lambda y: math.log(2 / math.pi) + 0.5 * np.log1p(-y * y),
    cdf=lambda y: 0.5 + (y * np.sqrt(1.0 - y * y) + np.arcsin(y)) * (1 / math.pi), entropy=lambda: 0.64472988584940017414, mean=lambda: 0.0,
    var=lambda: 0.25, low=-1, high=1,
), "The semicircle of Wigner.", "bw.scipy.stats.semicircular.cdf(np.array([0.0])).tolist()\n[0.5]")

johnsonsb = Continuous("johnsonsb", ("a", "b"), Formulas(
    log_density=lambda y, a, b: np.log(b) - np.log(y) - np.log1p(-y) - (a + b * special("logit", y)) ** 2 * 0.5 - LOG_ROOT_2_PI,
    cdf=lambda y, a, b: special("ndtr", a + b * special("logit", y)), sf=lambda y, a, b: special("ndtr", -(a + b * special("logit", y))),
    ppf=lambda q, a, b: special("expit", (special("ndtri", q) - a) / b),
    isf=lambda q, a, b: special("expit", (-special("ndtri", q) - a) / b),
    valid=lambda a, b: positive(b) & (a == a), low=SMALLEST, high=1 - 2.0**-53, inside=lambda a, b: 0.5,
), "A normal variable between bounds, by Johnson.", "bw.scipy.stats.johnsonsb.cdf(np.array([0.5]), 0.0, 1.0).tolist()\n[0.5]")
