"""Discrete distributions of `bw.scipy.stats`: the formulas of the standard ones, as scipy.stats parametrises them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.scipy.stats.continuous import gammaln, positive, special, xlog1py, xlogy
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
    mean=lambda mu: mu, var=lambda mu: mu, valid=lambda mu: np.asarray(mu >= 0) if isinstance(mu, int | float) else mu >= 0, low=0,
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
