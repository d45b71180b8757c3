"""Tests whether samples are normal, by their skewness and kurtosis (D'Agostino and Pearson; Jarque and Bera)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.scipy.stats.continuous import special
from bwcompiler.scipy.stats.hypotheses import ALTERNATIVES, SignificanceResult, Test
from bwcompiler.scipy.stats.samples import Axis, Sample, kurtosis_of, skewness_of


class SkewtestResult(Test):
    """What `skewtest` returns."""


class KurtosistestResult(Test):
    """What `kurtosistest` returns."""


class NormaltestResult(Test):
    """What `normaltest` returns."""


def _of_normal(statistic: Any, alternative: str) -> Any:
    """The probability of such a standard normal statistic, or one that is further out."""
    if alternative not in ALTERNATIVES:
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    if alternative == "two-sided":
        return 2.0 * special("ndtr", -abs(statistic))
    return special("ndtr", statistic if alternative == "less" else -statistic)


def _skew_score(lines: Any, n: int) -> Any:
    """A transformed skewness that is nearly standard normal; nan of fewer than 8 numbers."""
    if n < 8:
        return lines.sum(-1) * math.nan
    y = skewness_of(lines, True) * math.sqrt((n + 1) * (n + 3) / (6.0 * (n - 2)))
    beta2 = 3.0 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2.0) * (n + 5) * (n + 7) * (n + 9))
    w2 = math.sqrt(2 * (beta2 - 1)) - 1
    return np.arcsinh(np.where(y == 0, 1.0, y) / math.sqrt(2.0 / (w2 - 1))) / math.sqrt(0.5 * math.log(w2))


def _kurtosis_score(lines: Any, n: int) -> Any:
    """The same of the kurtosis; nan of fewer than 5 numbers."""
    if n < 5:
        return lines.sum(-1) * math.nan
    variance = 24.0 * n * (n - 2) * (n - 3) / ((n + 1) * (n + 1.0) * (n + 3) * (n + 5))
    x = (kurtosis_of(lines, False, True) - 3.0 * (n - 1) / (n + 1)) / math.sqrt(variance)
    root = 6.0 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * math.sqrt(6.0 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    a = 6.0 + 8.0 / root * (2.0 / root + math.sqrt(1 + 4.0 / root**2))
    below = 1 + x * math.sqrt(2 / (a - 4.0))
    return (1 - 2 / (9.0 * a) - np.cbrt((1 - 2.0 / a) / np.where(below == 0, math.nan, below))) / math.sqrt(2 / (9.0 * a))


@graph_function
def _scored(name: str, a: Any, axis: Axis, nan_policy: str, alternative: str, keepdims: bool) -> Any:
    sample = Sample(name, a, axis, nan_policy)
    lines, n = sample.lines, sample.count
    if name in ("skewtest", "kurtosistest"):
        score = (_skew_score if name == "skewtest" else _kurtosis_score)(lines, n)
        chance = _of_normal(score, alternative)
    else:
        if name == "normaltest":
            score = _skew_score(lines, n) ** 2 + _kurtosis_score(lines, n) ** 2
        else:
            score = n / 6.0 * (skewness_of(lines, True) ** 2 + kurtosis_of(lines, True, True) ** 2 / 4)
        chance = np.exp(score * -0.5)                          # of chi-square with 2 degrees of freedom
    return sample.restored(score, keepdims), sample.restored(chance, keepdims)


def skewtest(a: Any, axis: Axis = 0, nan_policy: str = "propagate", alternative: str = "two-sided", *, keepdims: bool = False) -> Any:
    """(statistic, pvalue) of the test that the skewness is that of normal numbers.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.skewtest(np.array([1.0, 2, 3, 4, 5, 6, 7, 80])).statistic.round(4).tolist()
    3.5371
    """
    return SkewtestResult(*_scored("skewtest", a, axis, nan_policy, alternative, keepdims))


def kurtosistest(a: Any, axis: Axis = 0, nan_policy: str = "propagate", alternative: str = "two-sided", *, keepdims: bool = False) -> Any:
    """(statistic, pvalue) of the test that the kurtosis is that of normal numbers.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.kurtosistest(np.arange(20.0)).statistic.round(4).tolist()
    -1.7058
    """
    return KurtosistestResult(*_scored("kurtosistest", a, axis, nan_policy, alternative, keepdims))


def normaltest(a: Any, axis: Axis = 0, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """(statistic, pvalue) of the test by both, of D'Agostino and Pearson.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.normaltest(np.array([1.0, 2, 3, 4, 5, 6, 7, 80])).pvalue.round(6).tolist()
    1.3e-05
    """
    return NormaltestResult(*_scored("normaltest", a, axis, nan_policy, "greater", keepdims))


def jarque_bera(x: Any, *, axis: Axis = None, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """(statistic, pvalue) of the test of Jarque and Bera; over all numbers if no axis is given.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.jarque_bera(np.array([1.0, 2, 3, 4, 5, 6, 7, 80])).statistic.round(4).tolist()
    9.8695
    """
    return SignificanceResult(*_scored("jarque_bera", x, axis, nan_policy, "greater", keepdims))
