"""Functions of scipy.special that work on traced and on plain arrays."""

from bwcompiler.frontend.special_functions import (
    digamma,
    entr,
    erf,
    erfc,
    erfinv,
    expit,
    gammaln,
    log_expit,
    log_softmax,
    logit,
    logsumexp,
    ndtr,
    psi,
    rel_entr,
    softmax,
    xlog1py,
    xlogy,
)

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfinv", "expit", "gammaln", "log_expit", "log_softmax", "logit", "logsumexp", "ndtr",
    "psi", "rel_entr", "softmax", "xlog1py", "xlogy",
]
