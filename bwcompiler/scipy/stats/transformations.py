"""Transformations by powers that make samples normal, and the likelihoods of their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import is_traced
from bwcompiler.scipy.stats.continuous import special
from bwcompiler.scipy.stats.distributions import real
from bwcompiler.scipy.stats.samples import Axis, Sample, centred


def _known_power(name: str, power: Any) -> None:
    if power is None:
        raise UnsupportedError(f"scipy.stats.{name} of traced values: the best lmbda is searched for with the numbers, which are not "
                               f"known\n  hint: scipy.stats.{name}(x, lmbda), with lmbda from outside; scipy.stats.{name}_llf is what is "
                               "largest there")


@graph_function
def boxcox(x: Any, lmbda: Any = None, alpha: float | None = None, optimizer: None = None) -> Any:
    """(xᵖ - 1) / p with p = lmbda, log x for p = 0.  Without lmbda: UnsupportedError.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.boxcox(np.array([1.0, 3.0]), 2.0).round(6).tolist()
    [0.0, 4.0]
    """
    _known_power("boxcox", lmbda)
    return special("boxcox", real(x), lmbda)


def _log_variance(lines: Any, power: Any) -> Any:
    """Of (xᵖ - 1) / p, the variance divided by n."""
    moved = special("boxcox", lines, power)
    return np.log((centred(moved) ** 2).mean(-1))


@graph_function
def boxcox_llf(lmb: Any, data: Any, *, axis: Axis = 0, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """The log likelihood of the parameter of `boxcox`: (lmb - 1) Σ log x - n / 2 log of the variance of the transformed data.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.boxcox_llf(1.0, np.array([1.0, 3.0])).tolist()
    0.0
    """
    sample = Sample("boxcox_llf", data, axis, nan_policy)
    power = real(lmb) if is_traced(lmb) else lmb
    found = (power - 1) * np.log(sample.lines).sum(-1) - sample.count / 2 * _log_variance(sample.lines, power)
    return sample.restored(found, keepdims)


def _yeojohnson(x: Any, power: Any) -> Any:
    """boxcox of 1 + x for x >= 0, -boxcox of 1 - x with 2 - p for others."""
    above = x >= 0
    return np.where(above, special("boxcox1p", np.where(above, x, 0.0), power), -special("boxcox1p", np.where(above, 0.0, -x), 2 - power))


@graph_function
def yeojohnson(x: Any, lmbda: Any = None) -> Any:
    """The transformation of Yeo and Johnson, which takes numbers of both signs.  Without lmbda: UnsupportedError.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.yeojohnson(np.array([-1.0, 1.0]), 2.0).round(4).tolist()
    [-0.6931, 1.5]
    """
    _known_power("yeojohnson", lmbda)
    return _yeojohnson(real(x), real(lmbda) if is_traced(lmbda) else lmbda)


@graph_function
def yeojohnson_llf(lmb: Any, data: Any, *, axis: Axis = 0, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """The log likelihood of the parameter of `yeojohnson`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.yeojohnson_llf(1.0, np.array([1.0, 3.0])).tolist()
    0.0
    """
    sample = Sample("yeojohnson_llf", data, axis, nan_policy)
    power = real(lmb) if is_traced(lmb) else lmb
    moved = _yeojohnson(sample.lines, power)
    logarithms = (np.sign(sample.lines) * np.log1p(abs(sample.lines))).sum(-1)
    return sample.restored((power - 1) * logarithms - sample.count / 2 * np.log((centred(moved) ** 2).mean(-1)), keepdims)
