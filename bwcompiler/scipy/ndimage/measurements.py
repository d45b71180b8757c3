"""Of `bw.scipy.ndimage`: sums, means, extremes of the elements with a label; filters of Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.frontend.tracing.operands import is_traced, number_value, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.ndimage.edges import per_axis


# ----- of labels
def _members(input: Any, labels: Any, index: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """The elements in a row, one mask of them per label (None: all), and the shape of the result."""
    x: Any = fresh(value_as(input))
    if labels is None:
        if index is not None:
            raise ValueError("index without defined labels")
        return x.reshape(-1), np.ones((1, x.size), bool), ()
    marks: Any = np.broadcast_to(fresh(value_as(labels)), x.shape).reshape(-1)
    if index is None:
        return x.reshape(-1), (marks > 0)[None], ()
    wanted: Any = fresh(value_as(index))
    return x.reshape(-1), marks == wanted.reshape(-1)[:, None], wanted.shape


def _given(one: Any) -> Any:
    return one if one is None or is_traced(one) else np.asarray(one)


@graph_function
def _sums(input: Any, labels: Any, index: Any, what: str) -> Any:
    x, members, shape = _members(input, labels, index)
    if what == "sum" and index is None:
        return np.where(members, x, np.zeros((), x.dtype)).sum()
    if what == "sum" and not shape:                # of one label: integers, where these are, as SciPy's
        return np.where(members[0], x, np.zeros((), x.dtype)).sum()
    x = x.astype(np.promote_types(x.dtype, np.float64))
    total = np.where(members, x, 0.0).sum(-1)
    count = np.sum(members, -1)
    if what == "sum":
        found = total
    elif what == "mean":
        found = total / count
    else:
        centred = np.where(members, x - (total / count)[:, None], 0.0)
        found = (centred * np.conj(centred)).sum(-1) / count
        found = np.sqrt(found) if what == "standard_deviation" else found
    return found.reshape(shape)


def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The sum of the elements whose label is index, one for each number in it; of those with labels above 0, or of all.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.sum_labels(np.array([1.0, 2.0, 4.0]), np.array([1, 2, 1]), [1, 2]).tolist()
    [5.0, 2.0]
    """
    return _sums(_given(input), _given(labels), _given(index), "sum")


def sum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """`sum_labels`.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.ndimage.sum(np.array([1.0, 2.0])))
    3.0
    """
    return sum_labels(input, labels, index)


def mean(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The mean of the elements with a label; see `sum_labels`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.mean(np.array([1.0, 2.0, 4.0]), np.array([1, 2, 1]), [1, 2]).tolist()
    [2.5, 2.0]
    """
    return _sums(_given(input), _given(labels), _given(index), "mean")


def variance(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The variance of the elements with a label; see `sum_labels`.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.ndimage.variance(np.array([1.0, 3.0])))
    1.0
    """
    return _sums(_given(input), _given(labels), _given(index), "variance")


def standard_deviation(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The root of the `variance`.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.ndimage.standard_deviation(np.array([1.0, 3.0])))
    1.0
    """
    return _sums(_given(input), _given(labels), _given(index), "standard_deviation")


@graph_function
def _extremes(input: Any, labels: Any, index: Any, name: str) -> Any:
    x, members, shape = _members(input, labels, index)
    limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
    lowest = (-math.inf if limits is None else limits.min) if name == "max" else (math.inf if limits is None else limits.max)
    found = getattr(np, name)(np.where(members, x, np.asarray(lowest, x.dtype)), -1)
    return np.where(np.any(members, -1), found, np.zeros((), x.dtype)).reshape(shape)


def maximum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The largest element with a label, 0 if there is none; see `sum_labels`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.maximum(np.array([1.0, 2.0, 4.0]), np.array([1, 2, 1]), [1, 2]).tolist()
    [4.0, 2.0]
    """
    return _extremes(_given(input), _given(labels), _given(index), "max")


def minimum(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The smallest element with a label, 0 if there is none; see `sum_labels`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.minimum(np.array([1.0, 2.0, 4.0]), np.array([1, 2, 1]), [1, 2]).tolist()
    [1.0, 2.0]
    """
    return _extremes(_given(input), _given(labels), _given(index), "min")


# ----- of Fourier transforms
def _fourier(input: Any, factors: Any, complex_: bool) -> Any:
    """The transform times one factor per axis; as doubles, but of floats as they are."""
    x: Any = fresh(number_value(input))
    dtype = np.dtype(np.complex128) if complex_ else x.dtype
    if not x.size:
        return x.astype(dtype)
    for axis, factor in enumerate(factors):
        x = x * factor.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    return x.astype(dtype)


def _frequencies(n: int, extent: int, halved: bool) -> Any:
    """Cycles per element along an axis of a transform; n: the extent before the real transform, along its axis."""
    return np.arange(extent) / n if halved else np.fft.fftfreq(extent)


@graph_function
def _filtered_transform(input: Any, sizes: Any, n: int, axis: int, kind: str) -> Any:
    shape = np.shape(input)
    given = per_axis(sizes, range(len(shape)), "size")
    place = axis % len(shape)
    factors: list[Any] = []
    if 0 in shape:
        return _fourier(input, factors, kind == "shift")
    for k, (extent, size) in enumerate(zip(shape, given, strict=True)):
        halved = n >= 0 and k == place
        cycles = _frequencies(n, extent, halved)
        if kind == "gaussian":
            factors.append(np.exp(-0.5 * (2.0 * np.pi * size * cycles) ** 2))
        elif kind == "uniform":
            factors.append(np.sinc(size * cycles))
        else:
            factors.append(np.exp(-2j * np.pi * size * cycles))
    return _fourier(input, factors, kind == "shift")


def fourier_gaussian(input: Any, sigma: Any, n: int = -1, axis: int = -1) -> Any:
    """A Fourier transform times that of a Gaussian of width sigma; n: of a real transform along `axis` the extent before it.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.fourier_gaussian(np.ones(2), 1.0).round(4).tolist()
    [1.0, 0.0072]
    """
    return _filtered_transform(_given(input), sigma, n, axis, "gaussian")


def fourier_uniform(input: Any, size: Any, n: int = -1, axis: int = -1) -> Any:
    """A Fourier transform times that of a box of a size; see `fourier_gaussian`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.fourier_uniform(np.ones(2), 1.0).round(4).tolist()
    [1.0, 0.6366]
    """
    return _filtered_transform(_given(input), size, n, axis, "uniform")


def fourier_shift(input: Any, shift: Any, n: int = -1, axis: int = -1) -> Any:
    """The Fourier transform of an array that is moved by `shift`; see `fourier_gaussian`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.fourier_shift(np.ones(2), 1.0).real.round(4).tolist()
    [1.0, -1.0]
    """
    return _filtered_transform(_given(input), shift, n, axis, "shift")
