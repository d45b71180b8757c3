"""Distributions named as in scipy.stats that work on traced and on plain arrays: densities, distribution functions, entropies."""

from bwcompiler.scipy.stats.continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    f,
    gamma,
    gennorm,
    gumbel_l,
    gumbel_r,
    halfnorm,
    invgamma,
    laplace,
    logistic,
    lognorm,
    norm,
    pareto,
    rayleigh,
    t,
    truncnorm,
    uniform,
    vonmises,
    weibull_min,
)
from bwcompiler.scipy.stats.discrete import bernoulli, betabinom, binom, geom, nbinom, poisson
from bwcompiler.scipy.stats.multivariate import dirichlet, multinomial, multivariate_normal

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "f", "gamma", "gennorm", "geom",
    "gumbel_l", "gumbel_r", "halfnorm", "invgamma", "laplace", "logistic", "lognorm", "multinomial", "multivariate_normal",
    "nbinom", "norm", "pareto", "poisson", "rayleigh", "t", "truncnorm", "uniform", "vonmises", "weibull_min",
]
