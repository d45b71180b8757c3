"""Continuous distributions that are less in use: of numbers of both signs, of angles, and of numbers between bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.scipy.stats.continuous import LOG_ROOT_2_PI, condition, gammaln, positive, special, xlogy
from bwcompiler.scipy.stats.distributions import Continuous, Formulas, size
from bwcompiler.scipy.stats.positive_numbers import LARGEST


# ----- two sides of the same distribution
def _sides(y: Any, upper: Any) -> Any:
    """The distribution function of what is symmetric, from the share `upper` of each side beyond |y|."""
    return np.where(y > 0, 1.0 - 0.5 * upper, 0.5 * upper)


dgamma = Continuous("dgamma", ("a",), Formulas(
    log_density=lambda y, a: xlogy(a - 1.0, size(y)) - math.log(2.0) - gammaln(a) - size(y),
    cdf=lambda y, a: _sides(y, special("gammaincc", a, size(y))), sf=lambda y, a: _sides(-y, special("gammaincc", a, size(y))),
    ppf=lambda q, a: np.where(q > 0.5, special("gammainccinv", a, 2.0 * (1.0 - q)), -special("gammainccinv", a, 2.0 * q)),
    isf=lambda q, a: np.where(q > 0.5, -special("gammainccinv", a, 2.0 * (1.0 - q)), special("gammainccinv", a, 2.0 * q)),
    mean=lambda a: 0.0 * a, var=lambda a: a * (a + 1.0), valid=positive, inside=lambda a: 1.0,
), "A gamma variable of either sign.", "bw.scipy.stats.dgamma.cdf(np.array([0.0]), 2.0).tolist()\n[0.5]")


def _dweibull_end(q: Any, c: Any) -> Any:
    return (-np.log(2.0 * np.where(q > 0.5, 1.0 - q, q))) ** (1.0 / c)


dweibull = Continuous("dweibull", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) - math.log(2.0) + xlogy(c - 1.0, size(y)) - size(y) ** c,
    cdf=lambda y, c: _sides(y, np.exp(-(size(y) ** c))), sf=lambda y, c: _sides(-y, np.exp(-(size(y) ** c))),
    ppf=lambda q, c: np.where(q > 0.5, 1.0, -1.0) * _dweibull_end(q, c),
    isf=lambda q, c: np.where(q > 0.5, -1.0, 1.0) * _dweibull_end(q, c),
    mean=lambda c: 0.0 * c, valid=positive, inside=lambda c: 1.0,
), "A Weibull variable of either sign.", "bw.scipy.stats.dweibull.cdf(np.array([0.0]), 2.0).tolist()\n[0.5]")


def _asymmetric(y: Any, kappa: Any) -> tuple[Any, Any]:
    """The shares beyond y, above and below 0."""
    total = kappa + 1.0 / kappa
    return np.exp(-np.where(y > 0, y, 0.0) * kappa) / (kappa * total), np.exp(np.where(y > 0, 0.0, y) / kappa) * kappa / total


def _asymmetric_end(q: Any, kappa: Any) -> Any:
    total = kappa + 1.0 / kappa
    above = q >= kappa / total
    return np.where(above, -np.log(np.where(above, 1.0 - q, 1.0) * total * kappa) / kappa,
                    np.log(np.where(above, 1.0, q) * total / kappa) * kappa)


laplace_asymmetric = Continuous("laplace_asymmetric", ("kappa",), Formulas(
    log_density=lambda y, kappa: y * np.where(y >= 0, -kappa, 1.0 / kappa) - np.log(kappa + 1.0 / kappa),
    cdf=lambda y, kappa: np.where(y >= 0, 1.0 - _asymmetric(y, kappa)[0], _asymmetric(y, kappa)[1]),
    sf=lambda y, kappa: np.where(y >= 0, _asymmetric(y, kappa)[0], 1.0 - _asymmetric(y, kappa)[1]), ppf=_asymmetric_end,
    isf=lambda q, kappa: -_asymmetric_end(q, 1.0 / kappa), entropy=lambda kappa: 1.0 + np.log(kappa + 1.0 / kappa),
    mean=lambda kappa: 1.0 / kappa - kappa, var=lambda kappa: kappa ** -2.0 + kappa * kappa, valid=positive,
), "A Laplace variable of two slopes.", "bw.scipy.stats.laplace_asymmetric.cdf(np.array([0.0]), 1.0).tolist()\n[0.5]")


def _skewcauchy_cdf(y: Any, a: Any) -> Any:
    left = y <= 0
    side = np.where(left, 1.0 - a, 1.0 + a)
    beyond = side * (0.5 - np.arctan(size(y) / side) * (1 / math.pi))
    return np.where(left, beyond, 1.0 - beyond)


def _skewcauchy_end(q: Any, a: Any) -> Any:
    middle, end = (1.0 - a) * 0.5, (q == 0) | (q == 1)
    side = np.where(q < middle, 1.0 - a, 1.0 + a)
    found = np.tan(math.pi / side * (np.where(end, middle, q) - middle)) * side
    return np.where(end, np.where(q == 0, -np.inf, np.inf), found)


skewcauchy = Continuous("skewcauchy", ("a",), Formulas(
    log_density=lambda y, a: -np.log1p((y / np.where(y < 0, 1.0 - a, 1.0 + a)) ** 2) - math.log(math.pi),
    cdf=_skewcauchy_cdf, sf=lambda y, a: _skewcauchy_cdf(-y, -a), ppf=_skewcauchy_end, isf=lambda q, a: -_skewcauchy_end(q, -a),
    valid=lambda a: condition(abs(a) < 1),
), "A Cauchy variable of two widths.", "bw.scipy.stats.skewcauchy.cdf(np.array([0.0]), 0.0).tolist()\n[0.5]")

powernorm = Continuous("powernorm", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) - y * y * 0.5 - LOG_ROOT_2_PI + (c - 1.0) * special("log_ndtr", -y),
    logsf=lambda y, c: c * special("log_ndtr", -y), sf=lambda y, c: np.exp(c * special("log_ndtr", -y)),
    cdf=lambda y, c: -np.expm1(c * special("log_ndtr", -y)), ppf=lambda q, c: -special("ndtri", (1.0 - q) ** (1.0 / c)),
    isf=lambda q, c: -special("ndtri", q ** (1.0 / c)), valid=positive,
), "The least of c normal variables.", "bw.scipy.stats.powernorm.cdf(np.array([0.0]), 1.0).round(4).tolist()\n[0.5]")

norminvgauss = Continuous("norminvgauss", ("a", "b"), Formulas(
    log_density=lambda y, a, b: (np.log(a) - math.log(math.pi) + np.sqrt(a * a - b * b) + b * y - a * np.hypot(1.0, y)
                                 + np.log(special("k1e", a * np.hypot(1.0, y))) - np.log(np.hypot(1.0, y))),
    mean=lambda a, b: b / np.sqrt(a * a - b * b), var=lambda a, b: a * a / np.sqrt(a * a - b * b) ** 3,
    valid=lambda a, b: condition((a > 0) & (abs(b) < a)), low=-LARGEST, high=LARGEST,
), "The normal-inverse Gaussian distribution.", "bw.scipy.stats.norminvgauss.pdf(np.array([0.0]), 1.0, 0.0).round(4).tolist()\n[0.5208]")


def _crystal_parts(beta: Any, m: Any) -> tuple[Any, Any]:
    """The logarithm of what the density is divided by, and the mass of the tail up to -beta."""
    tail = m / beta / (m - 1.0) * np.exp(beta * beta * -0.5)
    return np.log(tail + math.sqrt(2 * math.pi) * special("ndtr", beta)), tail


def _crystal_density(y: Any, beta: Any, m: Any) -> Any:
    core = y > -beta
    far = np.where(core, 1.0, m / beta - beta - y)
    tail = m * np.log(m / beta) - beta * beta * 0.5 - m * np.log(far)
    return np.where(core, y * y * -0.5, tail) - _crystal_parts(beta, m)[0]


def _crystal_cdf(y: Any, beta: Any, m: Any) -> Any:
    scale, tail = _crystal_parts(beta, m)
    core = y > -beta
    far = np.where(core, 1.0, m / beta - beta - y)
    inside = tail + math.sqrt(2 * math.pi) * (special("ndtr", y) - special("ndtr", -beta))
    return np.where(core, inside, tail * (far * beta / m) ** (1.0 - m)) * np.exp(-scale)


def _crystal_sf(y: Any, beta: Any, m: Any) -> Any:
    rest = math.sqrt(2 * math.pi) * special("ndtr", -y) * np.exp(-_crystal_parts(beta, m)[0])
    return np.where(y > -beta, rest, 1.0 - _crystal_cdf(np.where(y > -beta, -beta, y), beta, m))


crystalball = Continuous("crystalball", ("beta", "m"), Formulas(
    log_density=_crystal_density, cdf=_crystal_cdf, sf=_crystal_sf, valid=lambda beta, m: condition((m > 1) & (beta > 0)),
), "A normal variable with a tail of powers below -beta.",
    "bw.scipy.stats.crystalball.pdf(np.array([0.0]), 2.0, 3.0).round(4).tolist()\n[0.392]")


# ----- angles
def _under_half_an_arch(y: Any) -> Any:
    """The probability of the cosine's arch below y, relatively exact in its tail: (t - sin t) / 2 π, t = π + y."""
    t = np.where(y < 0, math.pi + y, 1.0)
    series = t**3 / 6 * (1 - t**2 / 20 * (1 - t**2 / 42 * (1 - t**2 / 72 * (1 - t**2 / 110 * (1 - t**2 / 156)))))
    tail = np.where(t < 0.5, series, t - np.sin(t))
    return np.where(y < 0, tail, math.pi + y + np.sin(y)) * (0.5 / math.pi)


cosine = Continuous("cosine", (), Formulas(
    log_density=lambda y: np.log1p(np.cos(y)) - math.log(2 * math.pi), cdf=_under_half_an_arch,
    sf=lambda y: _under_half_an_arch(-y), entropy=lambda: math.log(4 * math.pi) - 1.0, mean=lambda: 0.0, var=lambda: math.pi**2 / 3 - 2.0,
    low=-math.pi, high=math.pi,
), "One arch of the cosine.", "bw.scipy.stats.cosine.cdf(np.array([0.0])).tolist()\n[0.5]")

anglit = Continuous("anglit", (), Formulas(
    log_density=lambda y: np.log(np.cos(2.0 * y)), cdf=lambda y: np.sin(y + math.pi / 4) ** 2, sf=lambda y: np.cos(y + math.pi / 4) ** 2,
    ppf=lambda q: np.arcsin(np.sqrt(q)) - math.pi / 4, entropy=lambda: 1.0 - math.log(2.0), mean=lambda: 0.0,
    var=lambda: math.pi**2 / 16 - 0.5, low=-math.pi / 4, high=math.pi / 4,
), "The upper half of the arch of the cosine.", "bw.scipy.stats.anglit.cdf(np.array([0.0])).round(4).tolist()\n[0.5]")


def _wrapped_cdf(y: Any, c: Any) -> Any:
    ratio = (1.0 + c) / (1.0 - c)
    first = y < math.pi
    part = np.arctan(ratio * np.tan(np.where(first, y, 2 * math.pi - y) * 0.5)) * (1 / math.pi)
    return np.where(first, part, 1.0 - part)


def _wrapped_end(q: Any, c: Any) -> Any:
    ratio, first = (1.0 - c) / (1.0 + c), q < 0.5
    part = 2.0 * np.arctan(ratio * np.tan(math.pi * np.where(first, q, 1.0 - q)))
    return np.where(first, part, 2 * math.pi - part)


wrapcauchy = Continuous("wrapcauchy", ("c",), Formulas(
    log_density=lambda y, c: np.log1p(-c * c) - math.log(2 * math.pi) - np.log1p(c * c - 2.0 * c * np.cos(y)), cdf=_wrapped_cdf,
    ppf=_wrapped_end, entropy=lambda c: np.log(2 * math.pi * (1.0 - c * c)), valid=lambda c: condition((c > 0) & (c < 1)), low=0,
    high=2 * math.pi, inside=lambda c: 1.0,
), "A Cauchy variable around the circle.", "bw.scipy.stats.wrapcauchy.cdf(np.array([np.pi]), 0.5).round(4).tolist()\n[0.5]")


# ----- between bounds
bradford = Continuous("bradford", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) - np.log(np.log1p(c)) - np.log1p(c * y), cdf=lambda y, c: np.log1p(c * y) / np.log1p(c),
    ppf=lambda q, c: np.expm1(q * np.log1p(c)) / c, entropy=lambda c: np.log1p(c) * 0.5 - np.log(c / np.log1p(c)), valid=positive, low=0,
    high=1, inside=lambda c: 0.5,
), "A density that falls as 1 / (1 + c x).", "bw.scipy.stats.bradford.cdf(np.array([1.0]), 2.0).tolist()\n[1.0]")

rdist = Continuous("rdist", ("c",), Formulas(
    log_density=lambda y, c: (c * 0.5 - 1.0) * (np.log1p(y) + np.log1p(-y) - 2 * math.log(2.0)) - math.log(2.0)
        - special("betaln", c * 0.5, c * 0.5),
    cdf=lambda y, c: special("betainc", c * 0.5, c * 0.5, (y + 1.0) * 0.5),
    sf=lambda y, c: special("betainc", c * 0.5, c * 0.5, (1.0 - y) * 0.5),
    ppf=lambda q, c: 2.0 * special("betaincinv", c * 0.5, c * 0.5, q) - 1.0, valid=positive, low=-1, high=1,
), "A coordinate of a point on a sphere in c + 1 dimensions.", "bw.scipy.stats.rdist.cdf(np.array([0.0]), 2.0).round(4).tolist()\n[0.5]")


def _argus_mass(chi: Any) -> Any:
    return special("gammainc", 1.5, chi * chi * 0.5) * 0.5


argus = Continuous("argus", ("chi",), Formulas(
    log_density=lambda y, chi: (3.0 * np.log(chi) - LOG_ROOT_2_PI - np.log(_argus_mass(chi)) + np.log(y) + 0.5 * np.log1p(-y * y)
                                - chi * chi * (1.0 - y * y) * 0.5),
    cdf=lambda y, chi: 1.0 - _argus_mass(chi * np.sqrt(1.0 - y * y)) / _argus_mass(chi),
    sf=lambda y, chi: _argus_mass(chi * np.sqrt(1.0 - y * y)) / _argus_mass(chi), valid=positive, low=0, high=1, inside=lambda chi: 0.5,
), "The distribution of masses of the ARGUS experiment.", "bw.scipy.stats.argus.cdf(np.array([1.0]), 1.0).tolist()\n[1.0]")
