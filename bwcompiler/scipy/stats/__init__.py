"""Functions and distributions named as in scipy.stats that work on traced and on plain arrays."""

from typing import TYPE_CHECKING, Any

from bwcompiler.scipy.missing import says_instead
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
from bwcompiler.scipy.stats.discrete import (
    bernoulli,
    betabinom,
    betanbinom,
    binom,
    dlaplace,
    geom,
    hypergeom,
    logser,
    nbinom,
    planck,
    poisson,
    randint,
    skellam,
    yulesimon,
    zipf,
)
from bwcompiler.scipy.stats.distributions import Distribution, Frozen
from bwcompiler.scipy.stats.hypotheses import (
    chisquare,
    f_oneway,
    linregress,
    pearsonr,
    power_divergence,
    spearmanr,
    ttest_1samp,
    ttest_ind,
    ttest_rel,
)
from bwcompiler.scipy.stats.kernel_densities import gaussian_kde
from bwcompiler.scipy.stats.lifetimes import (
    alpha,
    burr,
    exponpow,
    fatiguelife,
    foldcauchy,
    foldnorm,
    gengamma,
    genhalflogistic,
    gibrat,
    halfgennorm,
    kappa3,
    loglaplace,
    mielke,
    powerlognorm,
    recipinvgauss,
    truncpareto,
    truncweibull_min,
)
from bwcompiler.scipy.stats.matrices import dirichlet_multinomial, invwishart, matrix_normal, wishart
from bwcompiler.scipy.stats.multivariate import Family, dirichlet, multinomial, multivariate_normal, multivariate_t
from bwcompiler.scipy.stats.normality import jarque_bera, kurtosistest, normaltest, skewtest
from bwcompiler.scipy.stats.positive_numbers import (
    arcsine,
    betaprime,
    burr12,
    chi,
    erlang,
    exponweib,
    fisk,
    genpareto,
    gompertz,
    halfcauchy,
    halflogistic,
    invgauss,
    invweibull,
    johnsonsb,
    levy,
    loguniform,
    lomax,
    maxwell,
    nakagami,
    powerlaw,
    reciprocal,
    rice,
    semicircular,
    triang,
    truncexpon,
    wald,
)
from bwcompiler.scipy.stats.ranks import energy_distance, rankdata, wasserstein_distance
from bwcompiler.scipy.stats.real_numbers import (
    exponnorm,
    genextreme,
    genlogistic,
    hypsecant,
    johnsonsu,
    loggamma,
    moyal,
    skewnorm,
    weibull_max,
)
from bwcompiler.scipy.stats.samples import (
    circmean,
    circstd,
    circvar,
    describe,
    entropy,
    gmean,
    gstd,
    gzscore,
    hmean,
    iqr,
    kurtosis,
    median_abs_deviation,
    moment,
    pmean,
    sem,
    skew,
    trim_mean,
    variation,
    zmap,
    zscore,
)
from bwcompiler.scipy.stats.transformations import boxcox, boxcox_llf, yeojohnson, yeojohnson_llf
from bwcompiler.scipy.stats.two_sides import (
    anglit,
    argus,
    bradford,
    cosine,
    crystalball,
    dgamma,
    dweibull,
    laplace_asymmetric,
    norminvgauss,
    powernorm,
    rdist,
    skewcauchy,
    wrapcauchy,
)


def converted(of: Any) -> Any:
    """A distribution of scipy.stats, or one with its parameters, as ours; None if there is none."""
    vectors = {"multivariate_normal_frozen": lambda: multivariate_normal(of.mean, of.cov),
               "multivariate_t_frozen": lambda: multivariate_t(of.loc, of.shape, of.df), "dirichlet_frozen": lambda: dirichlet(of.alpha),
               "wishart_frozen": lambda: wishart(of.df, of.scale), "invwishart_frozen": lambda: invwishart(of.df, of.scale)}
    if type(of).__name__ == "gaussian_kde":
        return gaussian_kde(of.dataset, of.factor, of.weights)
    if type(of).__name__ in vectors:
        return vectors[type(of).__name__]()
    parameters = hasattr(of, "dist") and hasattr(of, "kwds")
    name = getattr(of.dist if parameters else of, "name", None) or type(of).__name__.removesuffix("_gen")
    ours = globals().get(name)
    if not isinstance(ours, Distribution | Family):
        return None
    return Frozen(ours, of.args, of.kwds) if parameters else ours


__all__ = [
    "alpha", "anglit", "arcsine", "argus", "bernoulli", "beta", "betabinom", "betanbinom", "betaprime", "binom",
    "boxcox", "boxcox_llf", "bradford", "burr", "burr12", "cauchy", "chi", "chi2", "chisquare", "circmean", "circstd",
    "circvar", "cosine", "crystalball", "describe", "dgamma", "dirichlet", "dirichlet_multinomial", "dlaplace",
    "dweibull", "energy_distance", "entropy", "erlang", "expon", "exponnorm", "exponpow", "exponweib", "f", "f_oneway",
    "fatiguelife", "fisk", "foldcauchy", "foldnorm", "gamma", "gaussian_kde", "genextreme", "gengamma",
    "genhalflogistic", "genlogistic", "gennorm", "genpareto", "geom", "gibrat", "gmean", "gompertz", "gstd", "gumbel_l",
    "gumbel_r", "gzscore", "halfcauchy", "halfgennorm", "halflogistic", "halfnorm", "hmean", "hypergeom", "hypsecant",
    "invgamma", "invgauss", "invweibull", "invwishart", "iqr", "jarque_bera", "johnsonsb", "johnsonsu", "kappa3",
    "kurtosis", "kurtosistest", "laplace", "laplace_asymmetric", "levy", "linregress", "loggamma", "logistic",
    "loglaplace", "lognorm", "logser", "loguniform", "lomax", "matrix_normal", "maxwell", "median_abs_deviation",
    "mielke", "moment", "moyal", "multinomial", "multivariate_normal", "multivariate_t", "nakagami", "nbinom", "norm",
    "normaltest", "norminvgauss", "pareto", "pearsonr", "planck", "pmean", "poisson", "power_divergence", "powerlaw",
    "powerlognorm", "powernorm", "randint", "rankdata", "rayleigh", "rdist", "recipinvgauss", "reciprocal", "rice",
    "sem", "semicircular", "skellam", "skew", "skewcauchy", "skewnorm", "skewtest", "spearmanr", "t", "triang",
    "trim_mean", "truncexpon", "truncnorm", "truncpareto", "truncweibull_min", "ttest_1samp", "ttest_ind", "ttest_rel",
    "uniform", "variation", "vonmises", "wald", "wasserstein_distance", "weibull_max", "weibull_min", "wishart",
    "wrapcauchy", "yeojohnson", "yeojohnson_llf", "yulesimon", "zipf", "zmap", "zscore",
]

if not TYPE_CHECKING:
    __getattr__ = says_instead("stats", __all__)
