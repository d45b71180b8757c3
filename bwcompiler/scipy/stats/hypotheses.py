"""Correlations, regressions and tests of hypotheses: statistics and p-values, both with derivatives."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.scipy.stats.continuous import special
from bwcompiler.scipy.stats.distributions import real
from bwcompiler.scipy.stats.ranks import ranks
from bwcompiler.scipy.stats.samples import Axis, Sample

ALTERNATIVES = ("two-sided", "less", "greater")


class Test(NamedTuple):
    """What tests return."""

    statistic: Any
    pvalue: Any


class PearsonRResult(Test):
    """What `pearsonr` returns."""


class SignificanceResult(Test):
    """What `spearmanr` returns."""


class TtestResult(Test):
    """What tests of Student's return; `df` is the number of degrees of freedom."""

    df: Any = None


class F_onewayResult(Test):
    """What `f_oneway` returns."""


class Power_divergenceResult(Test):
    """What `chisquare` and `power_divergence` return."""


class _Line(NamedTuple):
    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any


class LinregressResult(_Line):
    """What `linregress` returns; `intercept_stderr` is the standard error of the intercept."""

    intercept_stderr: Any = None


def _require(alternative: str) -> None:
    if alternative not in ALTERNATIVES:
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")


def _of_student(statistic: Any, freedom: Any, alternative: str) -> Any:
    """The probability of such a statistic, or one that is further out."""
    _require(alternative)
    if alternative == "two-sided":
        return 2.0 * special("stdtr", freedom, -abs(statistic))
    return special("stdtr", freedom, statistic if alternative == "less" else -statistic)


def _refuse(name: str, **options: tuple[Any, Any]) -> None:
    for key, (value, default) in options.items():
        if value is not default and value != default:
            raise UnsupportedError(f"scipy.stats.{name} of traced values: {key}={value!r} is not supported\n"
                                   f"  hint: leave it out, or call scipy.stats.{name} outside of the function")


# ----- correlations
def _correlation(x: Any, y: Any) -> Any:
    """Of samples along the last axis, between -1 and 1."""
    one, other = (part - part.mean(-1, keepdims=True) for part in (x, y))
    sizes = [np.sqrt((part * part).sum(-1, keepdims=True)) for part in (one, other)]
    found = (one / sizes[0] * (other / sizes[1])).sum(-1)
    flat = (x == x[..., :1]).all(-1) | (y == y[..., :1]).all(-1)
    return np.where(flat, math.nan, np.clip(found, -1.0, 1.0))


def _pair(name: str, x: Any, y: Any, axis: Axis, nan_policy: str = "propagate") -> tuple[Sample, Sample]:
    one, other = real(x), real(y)
    if axis is not None and one.shape != other.shape:
        one, other = np.broadcast_arrays(one, other)
    samples = Sample(name, one, axis, nan_policy), Sample(name, other, axis, nan_policy)
    if samples[0].count != samples[1].count:
        raise ValueError("x and y must have the same length along axis.")
    return samples


@graph_function
def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: None = None, axis: int | None = 0) -> Any:
    """(statistic, pvalue): the correlation coefficient of Pearson, and how probable one like it is without correlation.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.pearsonr(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0])).statistic.round(4).tolist()
    0.866
    """
    _require(alternative)
    _refuse("pearsonr", method=(method, None))
    one, other = _pair("pearsonr", x, y, axis)
    if one.count < 2:
        raise ValueError("`x` and `y` must have length at least 2.")
    found = _correlation(one.lines, other.lines)
    if one.count == 2:
        found = np.round(found)
        return PearsonRResult(found, np.ones_like(found) + 0 * found)
    half = one.count / 2 - 1                                   # (1 + r) / 2 has the distribution beta(half, half)
    if alternative == "two-sided":
        chance = 2.0 * special("betainc", half, half, (1.0 - abs(found)) / 2)
    else:
        chance = special("betainc", half, half, (1.0 + (found if alternative == "less" else -found)) / 2)
    return PearsonRResult(found, chance)


@graph_function
def spearmanr(a: Any, b: Any = None, axis: int | None = 0, nan_policy: str = "propagate", alternative: str = "two-sided") -> Any:
    """(statistic, pvalue): the correlation of ranks.  The derivatives are 0, as those of ranks are.

    a, b   two samples with one axis; tables of several variables raise UnsupportedError.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.spearmanr(np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 6.0, 7.0, 6.5])).statistic.round(6).tolist()
    0.8
    """
    if b is None or (axis is not None and np.ndim(a) > 1):
        raise UnsupportedError("scipy.stats.spearmanr of traced values: two samples with one axis are supported\n"
                               "  hint: np.corrcoef of scipy.stats.rankdata(a, axis=0)")
    one, other = _pair("spearmanr", a, b, axis, nan_policy)
    found = _correlation(*[ranks(part.lines, "average") for part in (one, other)])
    freedom = one.count - 2
    statistic = found * np.sqrt(np.maximum(freedom / ((found + 1.0) * (1.0 - found)), 0.0))
    return SignificanceResult(found, _of_student(statistic, float(freedom), alternative))


# ----- regressions
def linregress(x: Any, y: Any, alternative: str = "two-sided", *, axis: int = 0, nan_policy: str = "propagate",
               keepdims: bool = False) -> Any:
    """The line that fits y(x) best: (slope, intercept, rvalue, pvalue, stderr), and the attribute intercept_stderr.

    x, y   with one axis, of equal length.

    >>> import numpy as np, bwcompiler as bw
    >>> fit = bw.scipy.stats.linregress(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))
    >>> fit.slope.round(6).tolist(), fit.intercept.round(6).tolist()
    (2.0, 1.0)
    """
    _refuse("linregress", axis=(axis, 0), keepdims=(keepdims, False), nan_policy=(nan_policy, "propagate"))
    *found, error = _linregress(x, y, alternative)
    result = LinregressResult(*found)
    result.intercept_stderr = error
    return result


@graph_function
def _linregress(x: Any, y: Any, alternative: str) -> Any:
    tiny = 1e-20
    one, other = real(x), real(y)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"linregress: x and y have one axis and equal lengths, not {one.shape} and {other.shape}")
    count = one.shape[0]
    if count < 2:
        raise ValueError("Inputs must not be empty.")
    mean_x, mean_y = one.mean(), other.mean()
    dx, dy = one - mean_x, other - mean_y
    xx, xy, yy = (dx * dx).mean(), (dx * dy).mean(), (dy * dy).mean()
    none = (xx == 0) | (yy == 0)
    correlation = np.where(none, 0.0, np.clip(xy / np.sqrt(np.where(none, 1.0, xx * yy)), -1.0, 1.0))
    slope = xy / xx
    intercept = mean_y - slope * mean_x
    if count == 2:
        _require(alternative)
        zero = 0 * slope
        return slope, intercept, correlation, np.where(other[0] == other[1], 1.0, 0.0) + zero, zero, zero
    freedom = count - 2.0
    statistic = correlation * np.sqrt(freedom / ((1.0 - correlation + tiny) * (1.0 + correlation + tiny)))
    error = np.sqrt((1 - correlation ** 2) * yy / xx / freedom)
    return slope, intercept, correlation, _of_student(statistic, freedom, alternative), error, error * np.sqrt(xx + mean_x ** 2)


# ----- tests of means
def _student(statistic: Any, chance: Any, freedom: Any) -> Any:
    result = TtestResult(statistic, chance)
    result.df = freedom
    return result


def ttest_1samp(a: Any, popmean: Any, axis: Axis = 0, nan_policy: str = "propagate", alternative: str = "two-sided", *,
                keepdims: bool = False) -> Any:
    """(statistic, pvalue) of Student's test that a sample has the mean popmean, and the attribute df.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.ttest_1samp(np.array([1.0, 2.0, 3.0]), 2.0).pvalue.round(6).tolist()
    1.0
    """
    return _student(*_one_sample(a, popmean, axis, nan_policy, alternative, keepdims))


@graph_function
def _one_sample(a: Any, popmean: Any, axis: Axis, nan_policy: str, alternative: str, keepdims: bool) -> Any:
    sample = Sample("ttest_1samp", a, axis, nan_policy)
    error = np.sqrt(sample.lines.var(-1, ddof=1) / sample.count)
    found = sample.restored(sample.lines.mean(-1), keepdims)
    statistic = (found - popmean) / sample.restored(error, keepdims)
    freedom = sample.count - 1.0
    return statistic, _of_student(statistic, freedom, alternative), freedom + 0 * statistic


def ttest_rel(a: Any, b: Any, axis: Axis = 0, nan_policy: str = "propagate", alternative: str = "two-sided", *,
              keepdims: bool = False) -> Any:
    """(statistic, pvalue) of Student's test that the differences of pairs have the mean 0, and the attribute df.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.ttest_rel(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 6.0])).statistic.round(6).tolist()
    -1.0
    """
    return _student(*_one_sample(_difference(a, b), 0.0, axis, nan_policy, alternative, keepdims))


@graph_function
def _difference(a: Any, b: Any) -> Any:
    one, other = real(a), real(b)
    if one.shape != other.shape:
        raise ValueError("unequal length arrays")
    return one - other


def ttest_ind(a: Any, b: Any, *, axis: Axis = 0, equal_var: bool = True, nan_policy: str = "propagate", alternative: str = "two-sided",
              trim: float = 0, method: None = None, keepdims: bool = False) -> Any:
    """(statistic, pvalue) of Student's test that two samples have one mean, or without equal_var Welch's, and the attribute df.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.ttest_ind(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])).pvalue.round(6).tolist()
    1.0
    """
    _refuse("ttest_ind", trim=(trim, 0), method=(method, None))
    return _student(*_two_samples(a, b, axis, equal_var, nan_policy, alternative, keepdims))


@graph_function
def _two_samples(a: Any, b: Any, axis: Axis, equal_var: bool, nan_policy: str, alternative: str, keepdims: bool) -> Any:
    samples = [Sample("ttest_ind", one, axis, nan_policy) for one in (a, b)]
    counts = [float(one.count) for one in samples]
    variances = [one.lines.var(-1, ddof=1) for one in samples]
    if equal_var:
        freedom: Any = counts[0] + counts[1] - 2
        pooled = sum((count - 1) * variance for count, variance in zip(counts, variances, strict=True)) / freedom
        error = np.sqrt(pooled * (1 / counts[0] + 1 / counts[1]))
    else:
        shares = [variance / count for count, variance in zip(counts, variances, strict=True)]
        total = shares[0] + shares[1]
        freedom = total ** 2 / sum(share ** 2 / (count - 1) for count, share in zip(counts, shares, strict=True))
        error = np.sqrt(total)
    statistic = (samples[0].lines.mean(-1) - samples[1].lines.mean(-1)) / error
    parts = statistic, _of_student(statistic, freedom, alternative), freedom + 0 * statistic
    return tuple([samples[0].restored(part, keepdims) for part in parts])


@graph_function
def _variances(samples: Any, axis: Axis) -> Any:
    groups = [Sample("f_oneway", one, axis) for one in samples]
    counts = [group.count for group in groups]
    total, number = sum(counts), len(groups)
    middle = sum(group.lines.sum(-1) for group in groups) / total
    between = sum(count * (group.lines.mean(-1) - middle) ** 2 for count, group in zip(counts, groups, strict=True))
    within = sum(((group.lines - group.lines.mean(-1, keepdims=True)) ** 2).sum(-1) for group in groups)
    statistic: Any = (between / (number - 1)) / (within / (total - number))
    return F_onewayResult(statistic, special("fdtrc", float(number - 1), float(total - number), statistic))


def f_oneway(*samples: Any, axis: Axis = 0, equal_var: bool = True, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """(statistic, pvalue) of the analysis of variance of several samples, that they have one mean.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.f_oneway(np.array([1.0, 2.0]), np.array([1.0, 2.0])).pvalue.round(6).tolist()
    1.0
    """
    _refuse("f_oneway", equal_var=(equal_var, True), nan_policy=(nan_policy, "propagate"), keepdims=(keepdims, False))
    if len(samples) < 2:
        raise TypeError("at least two inputs are required")
    return _variances(list(samples), axis)


# ----- tests of frequencies
POWERS = {"pearson": 1.0, "log-likelihood": 0.0, "freeman-tukey": -0.5, "mod-log-likelihood": -1.0, "neyman": -2.0, "cressie-read": 2 / 3}


@graph_function
def power_divergence(f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: int | None = 0, lambda_: float | str | None = None, *,
                     nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """(statistic, pvalue) of a divergence of observed and expected frequencies, which are equal ones unless given.

    lambda_   the power of Cressie and Read, or a name; 1 is Pearson's chi-squared.  The sums are not compared.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.power_divergence(np.array([10.0, 30.0]), lambda_="pearson").statistic.tolist()
    10.0
    """
    if isinstance(lambda_, str) and lambda_ not in POWERS:
        raise ValueError(f"invalid string for lambda_: {lambda_!r}. Valid strings are {sorted(POWERS)}")
    power = 1.0 if lambda_ is None else POWERS[lambda_] if isinstance(lambda_, str) else float(lambda_)
    if f_exp is not None:
        f_obs, f_exp = np.broadcast_arrays(real(f_obs), real(f_exp))
    sample = Sample("power_divergence", f_obs, axis, nan_policy)
    observed = sample.lines
    expected = observed.mean(-1, keepdims=True) if f_exp is None else Sample("", f_exp, axis).lines
    if power == 1:
        terms = (observed - expected) ** 2 / expected
    elif power == 0:
        terms = 2.0 * special("xlogy", observed, observed / expected)
    elif power == -1:
        terms = 2.0 * special("xlogy", expected, expected / observed)
    else:
        terms = observed * ((observed / expected) ** power - 1) / (0.5 * power * (power + 1))
    statistic = sample.restored(terms.sum(-1), keepdims)
    return Power_divergenceResult(statistic, special("chdtrc", sample.count - 1 - real(ddof), statistic))


@graph_function
def chisquare(f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: int | None = 0, *, sum_check: bool = True,
              nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """(statistic, pvalue) of the chi-squared test of observed and expected frequencies; see `power_divergence`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.chisquare(np.array([10.0, 30.0])).pvalue.round(4).tolist()
    0.0016
    """
    return power_divergence(f_obs, f_exp, ddof, axis, "pearson", nan_policy=nan_policy, keepdims=keepdims)
