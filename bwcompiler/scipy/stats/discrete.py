"""Discrete distributions of `bw.scipy.stats`: the formulas of the standard ones, as scipy.stats parametrises them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.scipy.special.functions import zeta
from bwcompiler.scipy.stats.continuous import condition, gammaln, positive, special, xlog1py, xlogy
from bwcompiler.scipy.stats.distributions import Discrete, Formulas


def _probability(p: Any) -> Any:
    return np.asarray(0 <= p <= 1) if isinstance(p, int | float) else (p >= 0) & (p <= 1)


def _counted(n: Any) -> Any:
    return np.asarray(n >= 0 and n == math.floor(n)) if isinstance(n, int | float) else (n >= 0) & (n == np.floor(n))


bernoulli = Discrete("bernoulli", ("p",), Formulas(
    log_density=lambda k, p: xlogy(k, p) + xlog1py(1.0 - k, -p), cdf=lambda k, p: 1.0 - p + 0 * k, sf=lambda k, p: p + 0 * k,
    entropy=lambda p: special("entr", p) + special("entr", 1.0 - p), mean=lambda p: p, var=lambda p: p * (1.0 - p), valid=_probability,
    low=0, high=1,
), "1 with probability p, else 0.", "bw.scipy.stats.bernoulli.pmf(np.array([0, 1, 2]), 0.25).round(4).tolist()\n[0.75, 0.25, 0.0]")


def _binom_density(k: Any, n: Any, p: Any) -> Any:
    ways = gammaln(n + 1.0) - (gammaln(k + 1.0) + gammaln(n - k + 1.0))
    return ways + xlogy(k, p) + xlog1py(n - k, -p)


binom = Discrete("binom", ("n", "p"), Formulas(
    log_density=_binom_density,
    cdf=lambda k, n, p: special("betaincc", k + 1.0, n - k, p), sf=lambda k, n, p: special("betainc", k + 1.0, n - k, p),
    mean=lambda n, p: n * p, var=lambda n, p: n * p * (1.0 - p), valid=lambda n, p: _counted(n) & _probability(p), low=0,
    high=lambda n, p: n,
), "The number of successes in n trials.", "bw.scipy.stats.binom.pmf(np.array([1]), 2, 0.5).round(4).tolist()\n[0.5]")

poisson = Discrete("poisson", ("mu",), Formulas(
    log_density=lambda k, mu: xlogy(k, mu) - gammaln(k + 1.0) - mu,
    cdf=lambda k, mu: special("pdtr", k, mu), sf=lambda k, mu: special("pdtrc", k, mu),
    mean=lambda mu: mu, var=lambda mu: mu, valid=lambda mu: condition(mu >= 0) if isinstance(mu, int | float) else mu >= 0, low=0,
), "The Poisson distribution.", "bw.scipy.stats.poisson.pmf(np.array([0, -1]), 2.0).round(4).tolist()\n[0.1353, 0.0]")

geom = Discrete("geom", ("p",), Formulas(
    log_density=lambda k, p: xlog1py(k - 1.0, -p) + np.log(p),
    cdf=lambda k, p: -np.expm1(np.log1p(-p) * k), sf=lambda k, p: np.exp(np.log1p(-p) * k),
    logsf=lambda k, p: np.log1p(-p) * k, mean=lambda p: 1.0 / p, var=lambda p: (1.0 - p) / (p * p),
    valid=lambda p: _probability(p) & positive(p), low=1, inside=lambda p: 1.0,
), "The number of trials up to the first success.", "bw.scipy.stats.geom.pmf(np.array([1, 2]), 0.5).round(4).tolist()\n[0.5, 0.25]")

nbinom = Discrete("nbinom", ("n", "p"), Formulas(
    log_density=lambda k, n, p: gammaln(n + k) - gammaln(k + 1.0) - gammaln(n) + xlogy(n, p) + xlog1py(k, -p),
    cdf=lambda k, n, p: special("betainc", n, k + 1.0, p), sf=lambda k, n, p: special("betaincc", n, k + 1.0, p),
    mean=lambda n, p: n * (1.0 - p) / p, var=lambda n, p: n * (1.0 - p) / (p * p),
    valid=lambda n, p: positive(n, p) & _probability(p), low=0,
), "The number of failures before n successes.", "bw.scipy.stats.nbinom.pmf(np.array([0]), 2, 0.5).round(4).tolist()\n[0.25]")


def _betabinom_density(k: Any, n: Any, a: Any, b: Any) -> Any:
    ways = -np.log(n + 1.0) - special("betaln", n - k + 1.0, k + 1.0)
    return ways + special("betaln", k + a, n - k + b) - special("betaln", a, b)


betabinom = Discrete("betabinom", ("n", "a", "b"), Formulas(
    log_density=_betabinom_density, mean=lambda n, a, b: n * a / (a + b), valid=lambda n, a, b: _counted(n) & positive(a, b), low=0,
    high=lambda n, a, b: n,
), "The number of successes in n trials whose probability has a beta distribution.",
    "bw.scipy.stats.betabinom.pmf(np.array([1]), 2, 1.0, 1.0).round(4).tolist()\n[0.3333]")


# ----- draws without replacement, equal chances, and others
def betaln(a: Any, b: Any) -> Any:
    return special("betaln", a, b)


def _hypergeom_density(k: Any, M: Any, n: Any, N: Any) -> Any:
    bad = M - n
    ways = betaln(n + 1.0, 1.0) + betaln(bad + 1.0, 1.0) + betaln(M - N + 1.0, N + 1.0)
    return ways - betaln(k + 1.0, n - k + 1.0) - betaln(N - k + 1.0, bad - N + k + 1.0) - betaln(M + 1.0, 1.0)


hypergeom = Discrete("hypergeom", ("M", "n", "N"), Formulas(
    log_density=_hypergeom_density, mean=lambda M, n, N: N * (n / M),
    valid=lambda M, n, N: _counted(M) & _counted(n) & _counted(N) & condition((n <= M) & (N <= M)),
    low=lambda M, n, N: np.maximum(N - (M - n), 0), high=lambda M, n, N: np.minimum(n, N), inside=lambda M, n, N: np.minimum(n, N),
), "The good ones among N drawn of M things, n of which are good.",
    "bw.scipy.stats.hypergeom.pmf(np.array([1]), 2, 1, 1).round(4).tolist()\n[0.5]")

randint = Discrete("randint", ("low", "high"), Formulas(
    log_density=lambda k, low, high: -np.log(high - low + 0.0 * k), cdf=lambda k, low, high: (k - low + 1.0) / (high - low),
    entropy=lambda low, high: np.log(high - low), mean=lambda low, high: (high + low - 1.0) / 2,
    var=lambda low, high: ((high - low) ** 2 - 1.0) / 12, valid=lambda low, high: condition(high > low), low=lambda low, high: low,
    high=lambda low, high: high - 1, inside=lambda low, high: low,
), "Whole numbers from low to high - 1.", "bw.scipy.stats.randint.pmf(np.array([1]), 0, 4).tolist()\n[0.25]")

zipf = Discrete("zipf", ("a",), Formulas(
    log_density=lambda k, a: -a * np.log(k) - np.log(zeta(a)), valid=lambda a: condition(a > 1), low=1,
    inside=lambda a: 1.0,
), "The distribution of Zipf.", "bw.scipy.stats.zipf.pmf(np.array([1]), 2.0).round(4).tolist()\n[0.6079]")

logser = Discrete("logser", ("p",), Formulas(
    log_density=lambda k, p: k * np.log(p) - np.log(k) - np.log(-np.log1p(-p)), mean=lambda p: -p / ((1.0 - p) * np.log1p(-p)),
    valid=lambda p: condition((p > 0) & (p < 1)), low=1, inside=lambda p: 1.0,
), "The logarithmic series.", "bw.scipy.stats.logser.pmf(np.array([1]), 0.5).round(4).tolist()\n[0.7213]")

planck = Discrete("planck", ("lambda_",), Formulas(
    log_density=lambda k, rate: np.log(-np.expm1(-rate)) - rate * k, cdf=lambda k, rate: -np.expm1(-rate * (k + 1.0)),
    sf=lambda k, rate: np.exp(-rate * (k + 1.0)), logsf=lambda k, rate: -rate * (k + 1.0), mean=lambda rate: 1.0 / np.expm1(rate),
    var=lambda rate: np.exp(-rate) / np.expm1(-rate) ** 2, valid=positive, low=0,
), "The discrete exponential distribution.", "bw.scipy.stats.planck.logsf(np.array([0]), 2.0).tolist()\n[-2.0]")


def _dlaplace_cdf(k: Any, a: Any) -> Any:
    right = k >= 0
    return np.where(right, 1.0 - np.exp(-a * np.where(right, k, 0)) / (np.exp(a) + 1.0),
                    np.exp(a * (np.where(right, 0, k) + 1.0)) / (np.exp(a) + 1.0))


dlaplace = Discrete("dlaplace", ("a",), Formulas(
    log_density=lambda k, a: np.log(np.tanh(a * 0.5)) - a * np.abs(k), cdf=_dlaplace_cdf, sf=lambda k, a: _dlaplace_cdf(-k - 1.0, a),
    mean=lambda a: 0.0 * a, var=lambda a: 2.0 * np.exp(a) / np.expm1(a) ** 2, entropy=lambda a: a / np.sinh(a) - np.log(np.tanh(a * 0.5)),
    valid=positive,
), "The discrete Laplace distribution.", "bw.scipy.stats.dlaplace.cdf(np.array([-1]), 1.0).round(4).tolist()\n[0.2689]")


yulesimon = Discrete("yulesimon", ("alpha",), Formulas(
    log_density=lambda k, alpha: np.log(alpha) + betaln(k, alpha + 1.0),
    valid=positive, low=1, inside=lambda alpha: 1.0,
), "A geometric number whose probability is that of an exponential time.",
    "bw.scipy.stats.yulesimon.pmf(np.array([1]), 1.0).round(4).tolist()\n[0.5]")

betanbinom = Discrete("betanbinom", ("n", "a", "b"), Formulas(
    log_density=lambda k, n, a, b: betaln(a + n, b + k) - np.log(n + k) - betaln(n, k + 1.0) - betaln(a, b),
    valid=lambda n, a, b: positive(n, a, b) & _counted(n), low=0,
), "The number of failures before n successes, of a probability that is a beta variable.",
    "bw.scipy.stats.betanbinom.pmf(np.array([0]), 1, 1.0, 1.0).round(4).tolist()\n[0.5]")

skellam = Discrete("skellam", ("mu1", "mu2"), Formulas(
    log_density=lambda k, mu1, mu2: (np.log(special("ive", abs(k), 2.0 * np.sqrt(mu1 * mu2))) + k * 0.5 * (np.log(mu1) - np.log(mu2))
                                     - (np.sqrt(mu1) - np.sqrt(mu2)) ** 2),
    mean=lambda mu1, mu2: mu1 - mu2, var=lambda mu1, mu2: mu1 + mu2, valid=positive,
), "The difference of two Poisson variables.", "bw.scipy.stats.skellam.pmf(np.array([0]), 1.0, 1.0).round(4).tolist()\n[0.3085]")
