"""Numbers that describe samples: means, moments, scores, spreads, entropies.

Arguments are SciPy's.  `axis` is an axis, several or None (all); nan_policy is "propagate": nan go where NumPy's functions take them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.scipy.stats.continuous import special
from bwcompiler.scipy.stats.distributions import real

Axis = int | tuple[int, ...] | None
NORMAL_QUARTILE = 0.6744897501960817                                    # the upper quartile of the normal distribution


class Sample:
    """Samples along the last axis of `lines`; `restored` puts results of them where SciPy has them."""

    def __init__(self, name: str, x: Any, axis: Axis, nan_policy: str = "propagate") -> None:
        if nan_policy not in ("propagate", "omit", "raise"):
            raise ValueError("nan_policy must be one of {'propagate', 'raise', 'omit'}")
        if nan_policy != "propagate":
            raise UnsupportedError(f"scipy.stats.{name} of traced values: nan_policy={nan_policy!r} is not supported\n"
                                   "  hint: np.nanmean, np.nanstd ... leave nan out; or remove them before")
        whole = real(x)
        self.shape = whole.shape
        given = range(whole.ndim) if axis is None else (axis,) if isinstance(axis, int | np.integer) else axis
        self.axes = sorted(normalize_axis(one, whole.ndim) for one in given)
        rest = [k for k in range(whole.ndim) if k not in self.axes]
        self.count = math.prod(self.shape[k] for k in self.axes)
        self.lines: Any = whole.transpose((*rest, *self.axes)).reshape((*[self.shape[k] for k in rest], self.count))

    def restored(self, found: Any, keepdims: bool) -> Any:
        """One number for each sample."""
        if not keepdims:
            return found
        return found.reshape(tuple([1 if k in self.axes else extent for k, extent in enumerate(self.shape)]))

    def weights(self, weights: Any) -> Any:
        """Weights in the order of the lines; None if there are none."""
        if weights is None:
            return None
        given = real(weights)
        if given.shape == self.shape:
            return Sample("", given, tuple(self.axes)).lines
        if given.ndim == 1 and given.shape[0] == self.count:
            return given
        raise ValueError("weights must have the shape of the sample, or one axis as long as it")


def _average(lines: Any, weights: Any) -> Any:
    return lines.mean(-1) if weights is None else (lines * weights).sum(-1) / (weights + 0 * lines).sum(-1)


def _as(x: Any, dtype: Any) -> Any:
    return x if dtype is None else real(x).astype(dtype)


def _either(condition: Any, inside: Any, other: Any) -> Any:
    """inside where the condition holds; also of a single number that is a condition of Python's."""
    return np.where(condition, inside, other)


# ----- means
@graph_function
def gmean(a: Any, axis: Axis = 0, dtype: Any = None, weights: Any = None, *, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """The geometric mean: exp of the (weighted) mean of logarithms.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.gmean(np.array([1.0, 4.0, 16.0])).round(12).tolist()
    4.0
    """
    sample = Sample("gmean", _as(a, dtype), axis, nan_policy)
    return sample.restored(np.exp(_average(np.log(sample.lines), sample.weights(weights))), keepdims)


@graph_function
def hmean(a: Any, axis: Axis = 0, dtype: Any = None, *, weights: Any = None, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """The harmonic mean: 1 over the (weighted) mean of reciprocals; nan where there are negative numbers.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.hmean(np.array([1.0, 2.0, 2.0])).tolist()
    1.5
    """
    sample = Sample("hmean", _as(a, dtype), axis, nan_policy)
    found = 1.0 / _average(1.0 / sample.lines, sample.weights(weights))
    return sample.restored(_either((sample.lines < 0).any(-1), math.nan, found), keepdims)


@graph_function
def pmean(a: Any, p: float, *, axis: Axis = 0, dtype: Any = None, weights: Any = None, nan_policy: str = "propagate",
          keepdims: bool = False) -> Any:
    """The power mean, (mean of aᵖ)^(1/p), the geometric one for p = 0; nan where there are negative numbers.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.pmean(np.array([3.0, 4.0, 5.0]), 2).round(4).tolist()
    4.0825
    """
    sample = Sample("pmean", _as(a, dtype), axis, nan_policy)
    weighting = sample.weights(weights)
    found = np.exp(_average(np.log(sample.lines), weighting)) if p == 0 else _average(sample.lines ** float(p), weighting) ** (1.0 / p)
    return sample.restored(_either((sample.lines < 0).any(-1), math.nan, found), keepdims)


@graph_function
def trim_mean(a: Any, proportiontocut: float, axis: Axis = 0, *, nan_policy: str = "propagate", keepdims: bool = False) -> Any:
    """The mean without a proportion of the smallest and of the largest numbers.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.trim_mean(np.array([1.0, 2.0, 3.0, 100.0]), 0.25).tolist()
    2.5
    """
    sample = Sample("trim_mean", a, axis, nan_policy)
    cut = int(proportiontocut * sample.count)
    if 2 * cut >= sample.count:
        raise ValueError("Proportion too big.")
    return sample.restored(np.sort(sample.lines, -1)[..., cut:sample.count - cut].mean(-1), keepdims)


# ----- moments
def centred(lines: Any) -> Any:
    return lines - lines.mean(-1, keepdims=True)


def _flat(lines: Any, square: Any) -> Any:
    """Whether all numbers of a sample are one, up to rounding."""
    return square <= (np.finfo(lines.dtype).eps * lines.mean(-1)) ** 2


@graph_function
def moment(a: Any, order: float | list[int] = 1, axis: Axis = 0, nan_policy: str = "propagate", *, center: Any = None,
           keepdims: bool = False) -> Any:
    """The mean of (a - center) ** order; center is the mean unless given.  Of several orders one moment each, along a new first axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.moment(np.array([1.0, 2.0, 3.0]), 2).round(4).tolist()
    0.6667
    """
    sample = Sample("moment", a, axis, nan_policy)
    orders = np.asarray(order)
    if (orders != np.round(orders)).any():
        raise ValueError("All elements of `order` must be integral.")
    about = sample.lines.mean(-1, keepdims=True) if center is None else np.expand_dims(real(center), -1)
    found = [((sample.lines - about) ** int(one)).mean(-1) if center is not None or one != 1 else 0 * sample.lines.mean(-1)
             for one in orders.ravel()]
    restored = [sample.restored(one, keepdims) for one in found]
    return np.stack(restored).reshape((*orders.shape, *restored[0].shape)) if orders.ndim else restored[0]


def skewness_of(lines: Any, bias: bool) -> Any:
    rest, count = centred(lines), lines.shape[-1]
    second, third = (rest ** 2).mean(-1), (rest ** 3).mean(-1)
    flat = _flat(lines, second)
    found = third / _either(flat, 1.0, second) ** 1.5
    if not bias and count > 2:
        found = found * math.sqrt((count - 1.0) * count) / (count - 2.0)
    return _either(flat, math.nan, found)


def kurtosis_of(lines: Any, fisher: bool, bias: bool) -> Any:
    rest, n = centred(lines), lines.shape[-1]
    second, fourth = (rest ** 2).mean(-1), (rest ** 4).mean(-1)
    flat = _flat(lines, second)
    found = fourth / _either(flat, 1.0, second) ** 2
    if not bias and n > 3:
        found = ((n ** 2 - 1.0) * found - 3.0 * (n - 1.0) ** 2) / ((n - 2) * (n - 3)) + 3.0
    return _either(flat, math.nan, found - 3.0 if fisher else found)


@graph_function
def skew(a: Any, axis: Axis = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The skewness m₃ / m₂^1.5 of central moments; not bias: of the population.  nan where all numbers are one.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.skew(np.array([2.0, 8.0, 0.0, 4.0, 1.0, 9.0, 9.0, 0.0])).round(3).tolist()
    0.265
    """
    sample = Sample("skew", a, axis, nan_policy)
    return sample.restored(skewness_of(sample.lines, bias), keepdims)


@graph_function
def kurtosis(a: Any, axis: Axis = 0, fisher: bool = True, bias: bool = True, nan_policy: str = "propagate", *,
             keepdims: bool = False) -> Any:
    """The kurtosis m₄ / m₂² of central moments, less 3 (fisher); not bias: of the population.  nan where all numbers are one.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.kurtosis(np.array([1.0, 2.0, 3.0, 4.0, 5.0])).round(4).tolist()
    -1.3
    """
    sample = Sample("kurtosis", a, axis, nan_policy)
    return sample.restored(kurtosis_of(sample.lines, fisher, bias), keepdims)


@graph_function
def variation(a: Any, axis: Axis = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False) -> Any:
    """The standard deviation over the mean.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.variation(np.array([1.0, 3.0])).tolist()
    0.5
    """
    sample = Sample("variation", a, axis, nan_policy)
    return sample.restored(sample.lines.std(-1, ddof=ddof) / sample.lines.mean(-1), keepdims)


@graph_function
def sem(a: Any, axis: Axis = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The standard error of the mean: the standard deviation over √n.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.sem(np.array([1.0, 3.0])).tolist()
    1.0
    """
    sample = Sample("sem", a, axis, nan_policy)
    return sample.restored(sample.lines.std(-1, ddof=ddof) / math.sqrt(sample.count), keepdims)


class DescribeResult(NamedTuple):
    """What `describe` returns."""

    nobs: Any
    minmax: Any
    mean: Any
    variance: Any
    skewness: Any
    kurtosis: Any


@graph_function
def describe(a: Any, axis: int | None = 0, ddof: int = 1, bias: bool = True, nan_policy: str = "propagate") -> Any:
    """The number of observations, (minimum, maximum), mean, variance, skewness and kurtosis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.describe(np.array([1.0, 3.0])).variance.tolist()
    2.0
    """
    sample = Sample("describe", a, axis, nan_policy)
    lines, given = sample.lines, as_tracer(a)
    ends = np.min(given, tuple(sample.axes)), np.max(given, tuple(sample.axes))             # integers, where these are
    return DescribeResult(sample.count, ends, lines.mean(-1), lines.var(-1, ddof=ddof), skewness_of(lines, bias),
                          kurtosis_of(lines, True, bias))


# ----- scores
@graph_function
def zmap(scores: Any, compare: Any, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """scores in standard deviations from the mean, those of `compare`; nan where all numbers of that are one.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.zmap(np.array([3.0]), np.array([0.0, 2.0])).tolist()
    [2.0]
    """
    sample, values = Sample("zmap", compare, axis, nan_policy), real(scores)
    first = sample.lines[..., :1]
    flat = (sample.lines == first).all(-1)
    deviation = _either(flat, math.nan, sample.lines.std(-1, ddof=ddof))
    return (values - sample.restored(sample.lines.mean(-1), True)) / sample.restored(deviation, True)


@graph_function
def zscore(a: Any, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """a in standard deviations from its mean; nan where all numbers are one.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.zscore(np.array([0.0, 2.0])).tolist()
    [-1.0, 1.0]
    """
    return zmap(a, a, axis, ddof, nan_policy)


@graph_function
def gzscore(a: Any, *, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """The scores of logarithms.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.gzscore(np.array([1.0, 4.0])).tolist()
    [-1.0, 1.0]
    """
    logarithms = np.log(real(a))
    return zmap(logarithms, logarithms, axis, ddof, nan_policy)


@graph_function
def gstd(a: Any, axis: Axis = 0, ddof: int = 1, *, keepdims: bool = False, nan_policy: str = "propagate") -> Any:
    """The geometric standard deviation: exp of that of the logarithms.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.gstd(np.array([1.0, 4.0]), ddof=0).round(6).tolist()
    2.0
    """
    sample = Sample("gstd", a, axis, nan_policy)
    return sample.restored(np.exp(np.log(sample.lines).std(-1, ddof=ddof)), keepdims)


# ----- spreads
def _in_units(found: Any, scale: Any, normal: float) -> Any:
    if isinstance(scale, str):
        if scale.lower() != "normal":
            raise ValueError(f"{scale} is not a valid scale name.")
        scale = normal
    return found / scale


@graph_function
def iqr(x: Any, axis: Axis = None, rng: tuple[float, float] = (25, 75), scale: Any = 1.0, nan_policy: str = "propagate",
        interpolation: str = "linear", keepdims: bool = False) -> Any:
    """The range between two percentiles, over a scale ("normal": the range of the normal distribution).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.iqr(np.array([1.0, 2.0, 3.0, 4.0, 5.0])).tolist()
    2.0
    """
    sample = Sample("iqr", x, axis, nan_policy)
    ends = np.percentile(sample.lines, sorted(rng), -1, method=interpolation)  # type: ignore[call-overload]
    return sample.restored(_in_units((ends[1] - ends[0]).astype(sample.lines.dtype), scale, 2 * NORMAL_QUARTILE), keepdims)


@graph_function
def median_abs_deviation(x: Any, axis: Axis = 0, center: Any = None, scale: Any = 1.0, nan_policy: str = "propagate", *,
                         keepdims: bool = False) -> Any:
    """The median of the distances from the median (or from what the function `center` gives), over a scale ("normal": its own one).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.median_abs_deviation(np.array([1.0, 2.0, 7.0])).tolist()
    1.0
    """
    sample = Sample("median_abs_deviation", x, axis, nan_policy)
    middle = np.median(sample.lines, -1) if center is None else center(sample.lines, axis=-1)
    return sample.restored(_in_units(np.median(abs(sample.lines - middle[..., None]), -1), scale, NORMAL_QUARTILE), keepdims)


# ----- on the circle
def _around(samples: Any, high: float, low: float, axis: Axis, nan_policy: str, name: str) -> tuple[Sample, Any, Any]:
    sample = Sample(name, samples, axis, nan_policy)
    angles = sample.lines * (2.0 * math.pi / (high - low))
    return sample, np.sin(angles).mean(-1), np.cos(angles).mean(-1)


@graph_function
def circmean(samples: Any, high: float = 2 * math.pi, low: float = 0, axis: Axis = None, nan_policy: str = "propagate", *,
             keepdims: bool = False) -> Any:
    """The mean of angles between low and high.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.circmean(np.array([350.0, 20.0]), 360.0).round(6).tolist()
    5.0
    """
    sample, sine, cosine = _around(samples, high, low, axis, nan_policy, "circmean")
    return sample.restored(np.mod(np.arctan2(sine, cosine) * ((high - low) / (2 * math.pi)) - low, high - low) + low, keepdims)


@graph_function
def circvar(samples: Any, high: float = 2 * math.pi, low: float = 0, axis: Axis = None, nan_policy: str = "propagate", *,
            keepdims: bool = False) -> Any:
    """1 less the length of the mean of the points on the circle.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.circvar(np.array([0.0, 180.0]), 360.0).round(6).tolist()
    1.0
    """
    sample, sine, cosine = _around(samples, high, low, axis, nan_policy, "circvar")
    return sample.restored(1.0 - np.hypot(sine, cosine), keepdims)


@graph_function
def circstd(samples: Any, high: float = 2 * math.pi, low: float = 0, axis: Axis = None, nan_policy: str = "propagate", *,
            normalize: bool = False, keepdims: bool = False) -> Any:
    """√(-2 log R), R being the length of the mean of the points on the circle; in the units of the samples unless normalize.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.circstd(np.array([0.1, 0.3])).round(4).tolist()
    0.1001
    """
    sample, sine, cosine = _around(samples, high, low, axis, nan_policy, "circstd")
    found = np.sqrt(-2.0 * np.log(np.hypot(sine, cosine)))
    return sample.restored(found if normalize else found * ((high - low) / (2 * math.pi)), keepdims)


# ----- entropies
@graph_function
def entropy(pk: Any, qk: Any = None, base: float | None = None, axis: Axis = 0, *, nan_policy: str = "propagate",
            keepdims: bool = False) -> Any:
    """The entropy of probabilities, which are divided by their sum; of two the relative entropy Σ p log(p / q).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.stats.entropy(np.array([1.0, 1.0]), base=2).tolist()
    1.0
    """
    if base is not None and base <= 0:
        raise ValueError("`base` must be a positive number or `None`.")
    if qk is None:
        sample = Sample("entropy", pk, axis, nan_policy)
        terms = special("entr", sample.lines / sample.lines.sum(-1, keepdims=True))
    else:
        one, other = np.broadcast_arrays(real(pk), real(qk))
        sample, against = Sample("entropy", one, axis, nan_policy), Sample("entropy", other, axis, nan_policy)
        terms = special("rel_entr", *[part.lines / part.lines.sum(-1, keepdims=True) for part in (sample, against)])
    found = terms.sum(-1)
    return sample.restored(found if base is None else found / math.log(base), keepdims)
