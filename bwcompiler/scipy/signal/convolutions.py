"""Convolutions: windows and a product, or a product of Fourier transforms where the arrays are long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.linalg.linear import contract, pair, permuted
from bwcompiler.frontend.tracing.calls import call_function
from bwcompiler.frontend.tracing.operands import number_value, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.ops.complex_parts import conj
from bwcompiler.scipy.fft import next_fast_len

Axes = tuple[int, ...]
LONG = 128    # elements of the smaller array along the axes from which transforms are faster than sums


# ----- convolutions
def _axis_list(axes: Any, rank: int) -> list[int]:
    return [normalize_axis(axis, rank) for axis in ((axes,) if isinstance(axes, int | np.integer) else axes)]


def _padding(mode: str, size: int) -> tuple[int, int]:
    """Zeros before and after, so that windows of `size` elements are as many as the mode says."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"acceptable mode flags are 'valid', 'same', or 'full', got {mode!r}")
    if mode == "valid":
        return 0, 0
    return (size - 1, size - 1) if mode == "full" else (size - 1 - (size - 1) // 2, (size - 1) // 2)


def convolved(x: Value, y: Value, axes: tuple[list[int], list[int]], dots: tuple[list[int], list[int]], mode: str) -> Value:
    """Convolution along axes, sums of products along dots, products of all pairs along the rest: (rest of x, rest of y, places)."""
    rest = [[k for k in range(one.rank) if k not in axes[side] and k not in dots[side]] for side, one in enumerate((x, y))]
    count = len(axes[0])
    x = permuted(x, (*rest[0], *dots[0], *axes[0]))
    y = ops.flip(y, axes=tuple(sorted(axes[1]))) if count else y
    sizes = tuple([y.shape[k] for k in axes[1]])
    if count:
        margins = [_padding(mode, size) for size in sizes]
        for margin, size, extent in zip(margins, sizes, x.shape[x.rank - count:], strict=True):
            if extent + sum(margin) < size or not extent or not size:
                raise ShapeError(f"convolution: {size} elements do not fit into {extent} along an axis with mode {mode!r}")
        low, high = (tuple([margin[side] for margin in margins]) for side in (0, 1))
        x = ops.windows(x, sizes=sizes, strides=(1,) * count, low=low, high=high, dilations=(1,) * count)
    outer, inner = len(rest[0]), len(dots[0])
    summed = (*range(outer, outer + inner), *range(outer + inner + count, outer + inner + 2 * count))
    found = contract(x, y, summed, (*dots[1], *axes[1]))                               # (rest of x, places, rest of y)
    others = len(rest[1])
    return permuted(found, (*range(outer), *range(outer + count, outer + count + others), *range(outer, outer + count)))


def _larger_first(x: Value, y: Value, mode: str) -> tuple[Value, Value]:
    """For mode "valid", the one that the other fits into, as in SciPy; else the order changes nothing, and the smaller one slides."""
    if mode == "same":
        return x, y
    if mode == "valid":
        if all(a >= b for a, b in zip(x.shape, y.shape, strict=True)):
            return x, y
        if all(a <= b for a, b in zip(x.shape, y.shape, strict=True)):
            return y, x
        raise ValueError("For 'valid' mode, one must be at least as large as the other in every dimension")
    return (x, y) if x.type.size >= y.type.size else (y, x)


def _is_long(x: Value, y: Value, mode: str, axes: Sequence[int]) -> bool:
    """Whether transforms along the axes pay; where the arrays do not fit, the direct sums say so."""
    lengths = [(x.shape[k], y.shape[k]) for k in axes]
    if not axes or mode not in ("full", "same", "valid") or not all(isinstance(n, int) and n for both in lengths for n in both):
        return False
    if mode == "valid" and not (all(m >= n for m, n in lengths) or all(m <= n for m, n in lengths)):
        return False
    return all(math.prod(sizes) >= LONG for sizes in zip(*lengths, strict=True))


def _transformed(x: Value, y: Value, mode: str, axes: Sequence[int]) -> Any:
    """The convolution as the inverse transform of a product of transforms, and of it the places that the mode says."""
    full = [x.shape[k] + y.shape[k] - 1 for k in axes]
    complex_ = x.dtype.is_complex or y.dtype.is_complex
    sizes = [next_fast_len(n, not complex_) for n in full]
    there, back = (np.fft.fftn, np.fft.ifftn) if complex_ else (np.fft.rfftn, np.fft.irfftn)
    one, two = (there(fresh(value), s=sizes, axes=list(axes)) for value in (x, y))
    found = back(one * two, s=sizes, axes=list(axes))
    kept = {"full": full, "same": [x.shape[k] for k in axes], "valid": [abs(x.shape[k] - y.shape[k]) + 1 for k in axes]}[mode]
    places = [slice(None)] * x.rank
    for k, whole, size in zip(axes, full, kept, strict=True):
        first = (whole - size) // 2
        places[k] = slice(first, first + size)
    return found[tuple(places)]


def _everywhere(in1: Any, in2: Any, mode: str, method: str = "direct") -> Any:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"acceptable method flags are 'auto', 'direct', or 'fft', got {method!r}")
    x, y = pair(in1, in2)
    if x.rank != y.rank:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if not x.rank:
        return fresh(ops.multiply(x, y))
    x, y = _larger_first(x, y, mode)
    axes = list(range(x.rank))
    if method != "direct" and x.dtype.is_differentiable and _is_long(x, y, mode, axes):
        return _transformed(x, y, mode, axes)
    if x.rank == 1 and x.dtype.is_differentiable and mode in ("full", "same") and x.shape[0] >= y.shape[0] > 0 and method != "fft":
        return call_function(np.convolve, fresh(x), fresh(y), mode)
    return fresh(convolved(x, y, (axes, axes), ([], []), mode))


@graph_function
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto", axes: Sequence[Any] | None = None,
             dot_axes: Sequence[Any] | None = None) -> Any:
    """The convolution of arrays of equal rank; mode "full", "same" (as in1) or "valid".

    By transforms where both are long and of floats, as `fftconvolve` is, unless the method is "direct" or axes are given.

    axes = (axes of in1, axes of in2) are those to convolve along, dot_axes those to sum products over; along the others all pairs are
    formed, and the result is (others of in1, others of in2, places).  Raises ValueError or ShapeError if these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0])).tolist()
    [1.0, 3.0, 5.0, 3.0]
    """
    if axes is None and dot_axes is None:
        return _everywhere(in1, in2, mode, method)
    x, y = pair(in1, in2)
    chosen = (list(range(x.rank)), list(range(y.rank))) if axes is None else (_axis_list(axes[0], x.rank), _axis_list(axes[1], y.rank))
    dots = ([], []) if dot_axes is None else (_axis_list(dot_axes[0], x.rank), _axis_list(dot_axes[1], y.rank))
    if mode == "valid" and chosen[0] and all(x.shape[a] < y.shape[b] for a, b in zip(*chosen, strict=True)):
        found = convolved(y, x, (chosen[1], chosen[0]), (dots[1], dots[0]), mode)
        first, count = y.rank - len(chosen[1]) - len(dots[1]), len(chosen[0])
        return fresh(permuted(found, (*range(first, found.rank - count), *range(first), *range(found.rank - count, found.rank))))
    return fresh(convolved(x, y, chosen, dots, mode))


@graph_function
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The cross-correlation of arrays of equal rank: their convolution, in2 being reversed and conjugated.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.correlate(np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0]), mode="valid").tolist()
    [1.0, 2.0]
    """
    y = conj(value_as(in2))
    return _everywhere(in1, fresh(ops.flip(y, axes=tuple(range(y.rank))) if y.rank else y), mode, method)


@graph_function
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: int | Sequence[int] | None = None) -> Any:
    """`convolve`, of floats, along some axes (all by default); along the others the arrays broadcast.

    Short arrays are convolved directly; transforms spread a nan or inf over everything.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.fftconvolve(np.ones((2, 3)), np.ones((1, 2)), axes=1).tolist()
    [[1.0, 2.0, 2.0, 1.0], [1.0, 2.0, 2.0, 1.0]]
    """
    x, y = pair(fresh(number_value(in1)), fresh(number_value(in2)))
    if x.rank != y.rank:
        raise ValueError("in1 and in2 should have the same dimensionality")
    chosen = sorted(_axis_list(range(x.rank) if axes is None else axes, x.rank))
    if _is_long(x, y, mode, chosen):
        return _transformed(x, y, mode, chosen)
    if axes is None:
        return _everywhere(fresh(x), fresh(y), mode, "fft")
    if mode == "valid" and all(x.shape[k] <= y.shape[k] for k in chosen):
        x, y = y, x
    rest = [k for k in range(x.rank) if k not in chosen]
    order = (*rest, *chosen)
    count, lead = len(chosen), len(rest)
    left, right = permuted(x, order), ops.flip(permuted(y, order), axes=tuple(range(lead, x.rank)))
    sizes = right.shape[lead:]
    margins = [_padding(mode, size) for size in sizes]
    windows: Any = fresh(ops.windows(left, sizes=sizes, strides=(1,) * count, low=tuple([low for low, _ in margins]),
                                     high=tuple([high for _, high in margins]), dilations=(1,) * count))
    kernel: Any = np.reshape(fresh(right), (*right.shape[:lead], *[1] * count, *sizes))
    found = (windows * kernel).sum(tuple(range(lead + count, lead + 2 * count)))
    return np.transpose(found, np.argsort(order))


@graph_function
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: int | Sequence[int] | None = None) -> Any:
    """`fftconvolve`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.oaconvolve(np.ones(3), np.ones(2)).tolist()
    [1.0, 2.0, 2.0, 1.0]
    """
    return fftconvolve(in1, in2, mode, axes)


BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _two_dimensional(in1: Any, in2: Any, mode: str, boundary: str, fillvalue: float) -> Any:
    x, y = (fresh(one) for one in pair(in1, in2))
    if x.ndim != 2 or y.ndim != 2:
        raise ValueError("convolve2d inputs must both be 2-D arrays")
    if boundary not in BOUNDARIES:
        raise ValueError(f"acceptable boundary flags are {', '.join(BOUNDARIES)}, got {boundary!r}")
    if mode == "valid" or (boundary == "fill" and not fillvalue):
        return _everywhere(x, y, mode)
    margins = [_padding(mode, size) for size in y.shape]
    options: dict[str, Any] = {"constant_values": fillvalue} if boundary == "fill" else {}
    padded = np.pad(x, margins, mode=BOUNDARIES[boundary], **options)  # type: ignore[call-overload]
    return fresh(convolved(value_as(padded), value_as(y), ([0, 1], [0, 1]), ([], []), "valid"))


@graph_function
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """The convolution of matrices; what lies outside of in1 is fillvalue, or in1 again ("wrap") or mirrored ("symm").

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.convolve2d(np.eye(2), np.ones((1, 2)), mode="same", boundary="wrap").tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return _two_dimensional(in1, in2, mode, boundary, fillvalue)


@graph_function
def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """The cross-correlation of matrices; see `convolve2d`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.correlate2d(np.eye(2), np.eye(2), mode="valid").tolist()
    [[2.0]]
    """
    x, y = value_as(in1), conj(value_as(in2))
    turned = fresh(ops.flip(y, axes=(0, 1))) if y.rank == 2 else fresh(y)
    if mode == "same":                                # SciPy's centre is that of the reversed one
        full: Any = _two_dimensional(fresh(x), turned, "full", boundary, fillvalue)
        starts = [k // 2 for k in y.shape]
        return full[starts[0]:starts[0] + x.shape[0], starts[1]:starts[1] + x.shape[1]]
    return _two_dimensional(fresh(x), turned, mode, boundary, fillvalue)
