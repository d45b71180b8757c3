"""Functions of scipy.special that work on traced and on plain arrays."""

from bwcompiler.scipy.special_functions import (
    beta,
    betaln,
    digamma,
    entr,
    erf,
    erfc,
    erfinv,
    expit,
    gamma,
    gammaln,
    gammasgn,
    log_expit,
    log_softmax,
    logit,
    logsumexp,
    multigammaln,
    ndtr,
    polygamma,
    psi,
    rel_entr,
    rgamma,
    softmax,
    xlog1py,
    xlogy,
)

__all__ = [
    "beta", "betaln", "digamma", "entr", "erf", "erfc", "erfinv", "expit", "gamma", "gammaln", "gammasgn", "log_expit", "log_softmax",
    "logit", "logsumexp", "multigammaln", "ndtr", "polygamma", "psi", "rel_entr", "rgamma", "softmax", "xlog1py", "xlogy",
]
