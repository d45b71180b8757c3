"""Continuous distributions of `bw.scipy.stats`: the formulas of the standard ones, as scipy.stats parametrises them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.elementwise.ufunc_calls import evaluate
from bwcompiler.frontend.numpy.elementwise.ufuncs import UFUNCS
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.special.functions import by_loop
from bwcompiler.scipy.stats.distributions import Continuous, Formulas, size

EULER = 0.5772156649015329
LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)


def special(name: str, *xs: Any) -> Any:
    """A function of scipy.special: a formula of ours, or SciPy's loop."""
    return fresh(evaluate(UFUNCS[name], xs)) if name in UFUNCS else by_loop(name, *xs)


def gammaln(x: Any) -> Any:
    return special("gammaln", x)


def psi(x: Any) -> Any:
    return special("psi", x)


def xlogy(x: Any, y: Any) -> Any:
    return special("xlogy", x, y)


def xlog1py(x: Any, y: Any) -> Any:
    return special("xlog1py", x, y)


def positive(*shapes: Any) -> Any:
    """Whether all are."""
    found: Any = True
    for shape in shapes:
        found = shape > 0 if found is True else (shape > 0) & found
    return np.asarray(found) if isinstance(found, bool) else found


def condition(found: Any) -> Any:
    """Whether parameters are in range: an array also of Python numbers."""
    return np.asarray(found) if isinstance(found, bool | np.bool_) else found


def log_one_minus_exp(x: Any) -> Any:
    """log(1 - exp(x)) for x <= 0, by the form that keeps the digits."""
    near = x > -math.log(2.0)
    return np.where(near, np.log(-np.expm1(np.where(near, x, -1.0))), np.log1p(-np.exp(np.where(near, -1.0, x))))


norm = Continuous("norm", (), Formulas(
    log_density=lambda y: y * y * -0.5 - LOG_ROOT_2_PI,
    cdf=lambda y: special("ndtr", y), sf=lambda y: special("ndtr", -y),
    logcdf=lambda y: special("log_ndtr", y), logsf=lambda y: special("log_ndtr", -y),
    ppf=lambda q: special("ndtri", q), isf=lambda q: -special("ndtri", q),
    entropy=lambda: 0.5 + LOG_ROOT_2_PI, mean=lambda: 0.0, var=lambda: 1.0,
), "The normal distribution.", "bw.scipy.stats.norm.logpdf(np.array([0.0, 1.0])).round(4).tolist()\n[-0.9189, -1.4189]")


def _t_density(y: Any, df: Any) -> Any:
    half = (df + 1.0) * 0.5
    return gammaln(half) - gammaln(df * 0.5) - 0.5 * np.log(df * math.pi) - half * np.log1p(y * y / df)


def _t_entropy(df: Any) -> Any:
    half = df * 0.5
    return (half + 0.5) * (psi(half + 0.5) - psi(half)) + 0.5 * np.log(df) + special("betaln", half, 0.5)


def _t_ppf(q: Any, df: Any) -> Any:
    return np.where(q == 0, -math.inf, special("stdtrit", df, q))


def above(bound: float, x: Any, rule: Any, below: Any = math.inf) -> Any:
    """A moment, which is finite for shapes above a bound only."""
    finite = x > bound
    return np.where(finite, rule(np.where(finite, x, bound + 1.0)), below)


t = Continuous("t", ("df",), Formulas(
    log_density=_t_density, cdf=lambda y, df: special("stdtr", df, y), sf=lambda y, df: special("stdtr", df, -y),
    ppf=_t_ppf, isf=lambda q, df: -_t_ppf(q, df), entropy=_t_entropy, mean=lambda df: above(1.0, df, lambda df: 0.0 * df),
    var=lambda df: above(2.0, df, lambda df: 1.0 / (1.0 - 2.0 / df), np.where(df > 1, math.inf, math.nan)), valid=positive,
), "Student's distribution.", "bw.scipy.stats.t.logpdf(np.array([0.0]), 3.0).round(4).tolist()\n[-1.0009]")

gamma = Continuous("gamma", ("a",), Formulas(
    log_density=lambda y, a: xlogy(a - 1.0, y) - y - gammaln(a),
    cdf=lambda y, a: special("gammainc", a, y), sf=lambda y, a: special("gammaincc", a, y),
    ppf=lambda q, a: special("gammaincinv", a, q), isf=lambda q, a: special("gammainccinv", a, q),
    entropy=lambda a: a + gammaln(a) + (1.0 - a) * psi(a), mean=lambda a: a, var=lambda a: a, valid=positive, low=0, inside=lambda a: 1.0,
), "The gamma distribution.", "bw.scipy.stats.gamma.logpdf(np.array([1.0]), 2.0).tolist()\n[-1.0]")

invgamma = Continuous("invgamma", ("a",), Formulas(
    log_density=lambda y, a: -(a + 1.0) * np.log(y) - gammaln(a) - 1.0 / y,
    cdf=lambda y, a: special("gammaincc", a, 1.0 / y), sf=lambda y, a: special("gammainc", a, 1.0 / y),
    ppf=lambda q, a: 1.0 / special("gammainccinv", a, q), isf=lambda q, a: 1.0 / special("gammaincinv", a, q),
    entropy=lambda a: a + gammaln(a) - (1.0 + a) * psi(a), mean=lambda a: above(1.0, a, lambda a: 1.0 / (a - 1.0)),
    var=lambda a: above(2.0, a, lambda a: 1.0 / (a - 1.0) ** 2 / (a - 2.0)), valid=positive, low=5e-324, inside=lambda a: 1.0,
), "The distribution of the reciprocal of a gamma variable.", "bw.scipy.stats.invgamma.logpdf(np.array([1.0]), 2.0).tolist()\n[-1.0]")


def _beta_entropy(a: Any, b: Any) -> Any:
    return special("betaln", a, b) - (a - 1.0) * psi(a) - (b - 1.0) * psi(b) + (a + b - 2.0) * psi(a + b)


beta = Continuous("beta", ("a", "b"), Formulas(
    log_density=lambda y, a, b: xlog1py(b - 1.0, -y) + xlogy(a - 1.0, y) - special("betaln", a, b),
    cdf=lambda y, a, b: special("betainc", a, b, y), sf=lambda y, a, b: special("betaincc", a, b, y),
    ppf=lambda q, a, b: special("betaincinv", a, b, q), isf=lambda q, a, b: special("betainccinv", a, b, q), entropy=_beta_entropy,
    mean=lambda a, b: a / (a + b), var=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1.0)), valid=positive, low=0, high=1,
    inside=lambda a, b: 0.5,
), "The beta distribution.", "bw.scipy.stats.beta.pdf(np.array([0.5]), 2.0, 2.0).round(4).tolist()\n[1.5]")

chi2 = Continuous("chi2", ("df",), Formulas(
    log_density=lambda y, df: xlogy(df * 0.5 - 1.0, y) - y * 0.5 - gammaln(df * 0.5) - df * (math.log(2.0) / 2),
    cdf=lambda y, df: special("chdtr", df, y), sf=lambda y, df: special("chdtrc", df, y),
    ppf=lambda q, df: special("gammaincinv", df * 0.5, q) * 2.0, isf=lambda q, df: special("gammainccinv", df * 0.5, q) * 2.0,
    entropy=lambda df: df * 0.5 + math.log(2.0) + gammaln(df * 0.5) + (1.0 - df * 0.5) * psi(df * 0.5),
    mean=lambda df: df, var=lambda df: df * 2.0, valid=positive, low=0, inside=lambda df: 1.0,
), "The chi-squared distribution.", "bw.scipy.stats.chi2.cdf(np.array([1.0]), 2.0).round(4).tolist()\n[0.3935]")


def _f_density(y: Any, dfn: Any, dfd: Any) -> Any:
    n, d = dfn * 0.5, dfd * 0.5
    return d * np.log(dfd) + n * np.log(dfn) + xlogy(n - 1.0, y) - (n + d) * np.log(dfd + dfn * y) - special("betaln", n, d)


def _f_var(n: Any, d: Any) -> Any:
    return above(4.0, d, lambda d: 2.0 * d * d * (n + d - 2.0) / (n * (d - 2.0) ** 2 * (d - 4.0)))


f = Continuous("f", ("dfn", "dfd"), Formulas(
    log_density=_f_density, cdf=lambda y, n, d: special("fdtr", n, d, y), sf=lambda y, n, d: special("fdtrc", n, d, y),
    ppf=lambda q, n, d: special("fdtri", n, d, q), mean=lambda n, d: above(2.0, d, lambda d: d / (d - 2.0)) + 0.0 * n, var=_f_var,
    valid=positive, low=0, inside=lambda n, d: 1.0,
), "Fisher's distribution of a ratio of variances.", "bw.scipy.stats.f.pdf(np.array([1.0]), 2.0, 2.0).round(4).tolist()\n[0.25]")

expon = Continuous("expon", (), Formulas(
    log_density=lambda y: -y, cdf=lambda y: -np.expm1(-y), sf=lambda y: np.exp(-y), logcdf=lambda y: log_one_minus_exp(-y),
    logsf=lambda y: -y, ppf=lambda q: -np.log1p(-q), isf=lambda q: -np.log(q), entropy=lambda: 1.0, mean=lambda: 1.0, var=lambda: 1.0,
    low=0, inside=lambda: 1.0,
), "The exponential distribution.", "bw.scipy.stats.expon.logpdf(np.array([1.0, -1.0])).tolist()\n[-1.0, -inf]")


def _laplace_cdf(y: Any) -> Any:
    tail = 0.5 * np.exp(-size(y))
    return np.where(y >= 0, 1.0 - tail, tail)


def _laplace_ppf(q: Any) -> Any:
    return np.where(q > 0.5, -np.log(2.0 * (1.0 - q)), np.log(2.0 * q))


laplace = Continuous("laplace", (), Formulas(
    log_density=lambda y: -np.abs(y) - math.log(2.0), cdf=_laplace_cdf, sf=lambda y: _laplace_cdf(-y),
    logcdf=lambda y: np.where(y >= 0, np.log1p(-0.5 * np.exp(-size(y))), np.minimum(y, 0.0) - math.log(2.0)),
    logsf=lambda y: np.where(y <= 0, np.log1p(-0.5 * np.exp(-size(-y))), -np.maximum(y, 0.0) - math.log(2.0)),
    ppf=_laplace_ppf, isf=lambda q: -_laplace_ppf(q), entropy=lambda: math.log(2.0) + 1.0, mean=lambda: 0.0, var=lambda: 2.0,
), "The Laplace (double exponential) distribution.", "bw.scipy.stats.laplace.pdf(np.array([0.0])).round(4).tolist()\n[0.5]")

logistic = Continuous("logistic", (), Formulas(
    log_density=lambda y: -size(y) - 2.0 * np.log1p(np.exp(-size(y))),
    cdf=lambda y: special("expit", y), sf=lambda y: special("expit", -y),
    logcdf=lambda y: special("log_expit", y), logsf=lambda y: special("log_expit", -y),
    ppf=lambda q: special("logit", q), isf=lambda q: -special("logit", q), entropy=lambda: 2.0, mean=lambda: 0.0,
    var=lambda: math.pi**2 / 3,
), "The logistic distribution.", "bw.scipy.stats.logistic.cdf(np.array([0.0])).tolist()\n[0.5]")

uniform = Continuous("uniform", (), Formulas(
    log_density=lambda y: y * 0.0, cdf=lambda y: y, sf=lambda y: 1.0 - y, ppf=lambda q: q, isf=lambda q: 1.0 - q, entropy=lambda: 0.0,
    mean=lambda: 0.5, var=lambda: 1.0 / 12, low=0, high=1, inside=lambda: 0.5,
), "The uniform distribution from loc to loc + scale.", "bw.scipy.stats.uniform.pdf(np.array([0.5, 2.0])).tolist()\n[1.0, 0.0]")


def _cauchy_cdf(y: Any) -> Any:
    return np.arctan2(np.ones_like(y), -y) * (1.0 / math.pi)                        # keeps the digits of both tails


def _cauchy_ppf(q: Any) -> Any:
    return np.where(q < 0.5, -1.0 / np.tan(math.pi * q), 1.0 / np.tan(math.pi * (1.0 - q)))


def softplus(z: Any) -> Any:
    """log(1 + exp(z))."""
    return -special("log_expit", -z)


def _log_one_plus_square(y: Any) -> Any:
    """log(1 + y**2), also where the square is out of range."""
    far = abs(y) > 1e10
    inside = np.where(far, 1.0, y)
    return np.where(far, 2.0 * np.log(np.where(far, abs(y), 1.0)), np.log1p(inside * inside))


cauchy = Continuous("cauchy", (), Formulas(
    log_density=lambda y: -math.log(math.pi) - _log_one_plus_square(y), cdf=_cauchy_cdf, sf=lambda y: _cauchy_cdf(-y),
    ppf=_cauchy_ppf, isf=lambda q: -_cauchy_ppf(q), entropy=lambda: math.log(4 * math.pi),
), "The Cauchy distribution.", "bw.scipy.stats.cauchy.cdf(np.array([0.0])).round(4).tolist()\n[0.5]")

lognorm = Continuous("lognorm", ("s",), Formulas(
    log_density=lambda y, s: (np.log(y) / s) ** 2 * -0.5 - np.log(s * y) - LOG_ROOT_2_PI,
    cdf=lambda y, s: special("ndtr", np.log(y) / s), sf=lambda y, s: special("ndtr", -np.log(y) / s),
    logcdf=lambda y, s: special("log_ndtr", np.log(y) / s), logsf=lambda y, s: special("log_ndtr", -np.log(y) / s),
    ppf=lambda q, s: np.exp(s * special("ndtri", q)), isf=lambda q, s: np.exp(-s * special("ndtri", q)),
    entropy=lambda s: 0.5 + LOG_ROOT_2_PI + np.log(s), mean=lambda s: np.exp(s * s * 0.5),
    var=lambda s: np.expm1(s * s) * np.exp(s * s), valid=positive, low=5e-324, inside=lambda s: 1.0,
), "The distribution of the exponential of a normal variable.", "bw.scipy.stats.lognorm.cdf(np.array([1.0]), 0.5).tolist()\n[0.5]")

gumbel_r = Continuous("gumbel_r", (), Formulas(
    log_density=lambda y: -y - np.exp(-y), cdf=lambda y: np.exp(-np.exp(-y)), sf=lambda y: -np.expm1(-np.exp(-y)),
    logcdf=lambda y: -np.exp(-y), logsf=lambda y: log_one_minus_exp(-np.exp(-y)), ppf=lambda q: -np.log(-np.log(q)),
    isf=lambda q: -np.log(-np.log1p(-q)), entropy=lambda: EULER + 1.0, mean=lambda: EULER, var=lambda: math.pi**2 / 6,
), "The right-skewed Gumbel distribution.", "bw.scipy.stats.gumbel_r.logcdf(np.array([0.0])).tolist()\n[-1.0]")

gumbel_l = Continuous("gumbel_l", (), Formulas(
    log_density=lambda y: y - np.exp(y), cdf=lambda y: -np.expm1(-np.exp(y)), sf=lambda y: np.exp(-np.exp(y)), logsf=lambda y: -np.exp(y),
    logcdf=lambda y: log_one_minus_exp(-np.exp(y)), ppf=lambda q: np.log(-np.log1p(-q)), isf=lambda q: np.log(-np.log(q)),
    entropy=lambda: EULER + 1.0, mean=lambda: -EULER, var=lambda: math.pi**2 / 6,
), "The left-skewed Gumbel distribution.", "bw.scipy.stats.gumbel_l.logsf(np.array([0.0])).tolist()\n[-1.0]")

def pareto_var(b: Any) -> Any:
    return above(2.0, b, lambda b: b / (b - 2.0) / (b - 1.0) ** 2)


pareto = Continuous("pareto", ("b",), Formulas(
    log_density=lambda y, b: np.log(b) - (b + 1.0) * np.log(y),
    cdf=lambda y, b: -np.expm1(-b * np.log(y)), sf=lambda y, b: np.exp(-b * np.log(y)),
    logsf=lambda y, b: -b * np.log(y), ppf=lambda q, b: np.exp(-np.log1p(-q) / b), isf=lambda q, b: np.exp(-np.log(q) / b),
    entropy=lambda b: 1.0 + 1.0 / b - np.log(b), mean=lambda b: above(1.0, b, lambda b: b / (b - 1.0)), var=pareto_var, valid=positive,
    low=1, inside=lambda b: 2.0,
), "The Pareto distribution.", "bw.scipy.stats.pareto.pdf(np.array([1.0]), 3.0).round(4).tolist()\n[3.0]")

def weibull_var(c: Any) -> Any:
    first, second = gammaln(1.0 + 1.0 / c), gammaln(1.0 + 2.0 / c)
    return np.exp(2.0 * first) * np.expm1(second - 2.0 * first)


weibull_min = Continuous("weibull_min", ("c",), Formulas(
    log_density=lambda y, c: np.log(c) + xlogy(c - 1.0, y) - y**c, cdf=lambda y, c: -np.expm1(-(y**c)), sf=lambda y, c: np.exp(-(y**c)),
    logsf=lambda y, c: -(y**c), ppf=lambda q, c: (-np.log1p(-q)) ** (1.0 / c), isf=lambda q, c: (-np.log(q)) ** (1.0 / c),
    entropy=lambda c: EULER * (1.0 - 1.0 / c) - np.log(c) + 1.0, mean=lambda c: np.exp(gammaln(1.0 + 1.0 / c)), var=weibull_var,
    valid=positive, low=0, inside=lambda c: 1.0,
), "The Weibull distribution of minima.", "bw.scipy.stats.weibull_min.sf(np.array([1.0]), 2.0).round(4).tolist()\n[0.3679]")

halfnorm = Continuous("halfnorm", (), Formulas(
    log_density=lambda y: y * y * -0.5 + 0.5 * math.log(2 / math.pi), cdf=lambda y: special("erf", y * math.sqrt(0.5)),
    sf=lambda y: special("erfc", y * math.sqrt(0.5)), ppf=lambda q: special("erfinv", q) * math.sqrt(2.0),
    isf=lambda q: special("erfcinv", q) * math.sqrt(2.0), entropy=lambda: 0.5 * math.log(math.pi / 2) + 0.5,
    mean=lambda: math.sqrt(2 / math.pi), var=lambda: 1 - 2 / math.pi, low=0, inside=lambda: 1.0,
), "The distribution of the size of a normal variable.", "bw.scipy.stats.halfnorm.cdf(np.array([0.0])).tolist()\n[0.0]")

rayleigh = Continuous("rayleigh", (), Formulas(
    log_density=lambda y: np.log(y) - 0.5 * y * y, cdf=lambda y: -np.expm1(-0.5 * y * y), sf=lambda y: np.exp(-0.5 * y * y),
    logsf=lambda y: -0.5 * y * y, ppf=lambda q: np.sqrt(-2.0 * np.log1p(-q)), isf=lambda q: np.sqrt(-2.0 * np.log(q)),
    entropy=lambda: EULER / 2 + 1 - 0.5 * math.log(2.0), mean=lambda: math.sqrt(math.pi / 2), var=lambda: 2 - math.pi / 2,
    low=0, high=1e308, inside=lambda: 1.0,
), "The Rayleigh distribution.", "bw.scipy.stats.rayleigh.sf(np.array([0.0])).tolist()\n[1.0]")

def _gennorm_sf(y: Any, beta: Any) -> Any:
    middle = y == 0                                                     # where the formula has no derivative, but the function
    z = np.where(middle, 1.0, y)
    tail = 0.5 * special("gammaincc", 1.0 / beta, np.abs(z) ** beta)
    straight = 0.5 - y * np.exp(np.log(beta / 2.0) - special("gammaln", 1.0 / beta))
    return np.where(middle, straight, np.where(z > 0, tail, 1.0 - tail))


gennorm = Continuous("gennorm", ("beta",), Formulas(
    log_density=lambda y, beta: np.log(0.5 * beta) - gammaln(1.0 / beta) - np.abs(y) ** beta,
    cdf=lambda y, beta: _gennorm_sf(-y, beta), sf=_gennorm_sf,
    entropy=lambda beta: 1.0 / beta - np.log(0.5 * beta) + gammaln(1.0 / beta), mean=lambda beta: 0.0 * beta,
    var=lambda beta: np.exp(gammaln(3.0 / beta) - gammaln(1.0 / beta)), valid=positive,
), "The generalised normal distribution.", "bw.scipy.stats.gennorm.pdf(np.array([0.0]), 1.0).round(4).tolist()\n[0.5]")

def _vonmises_entropy(kappa: Any) -> Any:
    scaled = special("i0e", kappa)
    return -kappa * special("i1e", kappa) / scaled + math.log(2 * math.pi) + np.log(scaled) + kappa


vonmises = Continuous("vonmises", ("kappa",), Formulas(
    log_density=lambda y, kappa: kappa * special("cosm1", y) - math.log(2 * math.pi) - np.log(special("i0e", kappa)),
    entropy=_vonmises_entropy, valid=lambda kappa: kappa >= 0,
), "The von Mises distribution on the circle.", "bw.scipy.stats.vonmises.pdf(np.array([0.0]), 0.0).round(4).tolist()\n[0.1592]")


def _log_mass_between(a: Any, b: Any) -> Any:
    """log(Φ(b) - Φ(a)), in the tail where both are."""
    right = a > 0
    low, high = np.where(right, -b, a), np.where(right, -a, b)
    log_low, log_high = special("log_ndtr", low), special("log_ndtr", high)
    return log_high + log_one_minus_exp(log_low - log_high)


def _log_normal_density(y: Any) -> Any:
    return y * y * -0.5 - LOG_ROOT_2_PI


truncnorm = Continuous("truncnorm", ("a", "b"), Formulas(
    log_density=lambda y, a, b: _log_normal_density(y) - _log_mass_between(a, b),
    cdf=lambda y, a, b: np.where(y <= a, 0.0, np.exp(_log_mass_between(a, np.where(y <= a, b, y)) - _log_mass_between(a, b))),
    sf=lambda y, a, b: np.where(y >= b, 0.0, np.exp(_log_mass_between(np.where(y >= b, a, y), b) - _log_mass_between(a, b))),
    valid=lambda a, b: np.asarray(a < b) if isinstance(a < b, bool) else a < b, low=lambda a, b: a, high=lambda a, b: b,
    inside=lambda a, b: np.where(np.isfinite(a), a, np.where(np.isfinite(b), b, 0.0)),
), "The normal distribution between a and b.", "bw.scipy.stats.truncnorm.cdf(np.array([0.0]), -1.0, 1.0).round(4).tolist()\n[0.5]")
