"""Of `bw.scipy.ndimage`: linear filters, sums of shifted arrays, continued beyond their edges."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import TracerIndexError, UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import cast, is_traced, real_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import F64
from bwcompiler.scipy.ndimage.edges import Edges, array_of, axes_of, continued, finished, per_axis, taken

MOST_SHIFTED = 64                                                       # weights that are a sum of shifted arrays


def _shifted_sum(x: Any, weights: Any, axes: Sequence[int], modes: Sequence[str], cval: Any, origins: Sequence[int],
                 spares: bool) -> Any:
    """Σ weights[k] x[i + k - size // 2 - origin]; spares: what has the weight 0 is left out, and no infinity in it matters."""
    shape = x.shape
    for axis, size, mode, origin in zip(axes, weights.shape, modes, origins, strict=True):
        if not -(size // 2) <= origin <= (size - 1) // 2:
            raise ValueError("invalid origin; origin must satisfy -(weights.shape[k] // 2) <= origin[k] <= (weights.shape[k]-1) // 2")
        before = size // 2 + origin
        x = continued(x, axis, before, size - 1 - before, mode, cval)
    if weights.size > MOST_SHIFTED:
        windows = np.lib.stride_tricks.sliding_window_view(x, weights.shape, tuple(axes))
        return np.tensordot(windows, weights, len(axes))
    if weights.ndim == 1 and not spares and not is_traced(weights) and weights.size:
        before = (slice(None),) * axes[0]
        return _along_a_line([x[(*before, slice(k, k + shape[axes[0]]))] for k in range(weights.size)], weights)
    total: Any = 0.0
    for place in itertools.product(*[range(size) for size in weights.shape]):
        if spares and not is_traced(weights) and weights[place] == 0:
            continue
        part = [slice(None)] * x.ndim
        for axis, start in zip(axes, place, strict=True):
            part[axis] = slice(start, start + shape[axis])
        total = total + weights[place] * x[tuple(part)]
    return total if is_traced(total) else np.zeros_like(x[tuple([slice(0, n) for n in shape])], dtype=np.float64)


def _along_a_line(parts: Sequence[Any], weights: Any) -> Any:
    """Σ weights[k] parts[k] in SciPy's order, on which it depends whether integers are cut off below a whole number."""
    size = len(parts)
    middle = size // 2
    for sign in (1, -1):
        if size % 2 and (np.abs(weights - sign * weights[::-1])[:middle] <= np.finfo(np.float64).eps).all():
            pairs = [parts[k] + parts[-1 - k] if sign > 0 else parts[k] - parts[-1 - k] for k in range(middle)]
            return _summed(weights[middle] * parts[middle], weights, pairs)
    return _summed(weights[-1] * parts[-1], weights, parts[:-1])


def _summed(first: Any, weights: Any, parts: Sequence[Any]) -> Any:
    return functools.reduce(lambda x, y: x + y, [weights[k] * part for k, part in enumerate(parts)], first)


@graph_function
def _filtered(x: Any, weights: Any, cval: Any, axes: tuple[int, ...], modes: tuple[str, ...], origins: tuple[int, ...], flip: bool,
              output: Any, divisor: int = 1, spares: bool = False) -> Any:
    given = array_of(x)
    kernel = np.asarray(weights, np.float64) if not is_traced(weights) else fresh(cast(real_value(weights), F64))
    if flip:
        kernel = kernel[tuple([slice(None, None, -1)] * kernel.ndim)]
        origins = tuple([-origin - (size % 2 == 0) for origin, size in zip(origins, kernel.shape, strict=True)])
    found = _shifted_sum(given, kernel, axes, modes, cval, origins, spares) if given.size else given
    return finished(found if divisor == 1 else found / divisor, x, output)


def _filter(x: Any, weights: Any, output: Any, mode: Edges, cval: Any, origin: Any, axes: Any, flip: bool,
            spares: bool = False) -> Any:
    """spares: weights that are next to 0, or nan, are left out, as SciPy does where a filter is not along one axis."""
    chosen = axes_of(axes, np.ndim(x))
    kernel = weights if is_traced(weights) else np.asarray(weights)
    if spares and not is_traced(kernel):
        kernel = np.where(np.abs(kernel) > np.finfo(np.float64).eps, kernel, 0)
    if np.ndim(kernel) != len(chosen):
        raise RuntimeError(f"weights.ndim ({np.ndim(kernel)}) must match len(axes) ({len(chosen)})")
    modes = tuple(per_axis(mode, chosen, "mode"))
    origins = tuple([int(one) for one in per_axis(origin, chosen, "origin")])
    return _filtered(taken(x), kernel, cval, tuple(chosen), modes, origins, flip, output, 1, spares)


def correlate(input: Any, weights: Any, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0, origin: Any = 0, *,
              axes: Any = None) -> Any:
    """Σ weights[k] input[i + k - size // 2 - origin], continued beyond the edges by mode, as scipy.ndimage.correlate.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.correlate(np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.0, -1.0])).tolist()
    [-1.0, -3.0, -2.0]
    """
    return _filter(input, weights, output, mode, cval, origin, axes, False, True)


def convolve(input: Any, weights: Any, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0, origin: Any = 0, *,
             axes: Any = None) -> Any:
    """`correlate` with the weights in the opposite order, as scipy.ndimage.convolve.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.convolve(np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.0, -1.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    return _filter(input, weights, output, mode, cval, origin, axes, True, True)


def correlate1d(input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
                origin: int = 0) -> Any:
    """`correlate` along one axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.correlate1d(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0])).tolist()
    [2.0, 3.0, 6.0]
    """
    return _filter(input, weights, output, mode, cval, origin, axis, False)


def convolve1d(input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
               origin: int = 0) -> Any:
    """`convolve` along one axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.convolve1d(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0])).tolist()
    [3.0, 6.0, 8.0]
    """
    return _filter(input, weights, output, mode, cval, origin, axis, True)


def _gaussian(sigma: Any, order: int, radius: int) -> Any:
    """The Gaussian at -radius .. radius, normalised, times the polynomial of its derivative."""
    x = np.arange(-radius, radius + 1.0)
    weights = np.exp(-0.5 / (sigma * sigma) * x**2)
    weights = weights / weights.sum()
    coefficients: list[Any] = [1.0]
    for _ in range(order):                                            # q' - q x / σ²
        grown = [*coefficients, 0.0, 0.0]
        coefficients = [(k + 1) * grown[k + 1] - (grown[k - 1] / (sigma * sigma) if k else 0.0) for k in range(len(coefficients) + 1)]
    return functools.reduce(lambda x, y: x + y, [coefficient * x**k for k, coefficient in enumerate(coefficients)]) * weights


def _radius(sigma: Any, truncate: float) -> int:
    try:
        return int(np.floor(truncate * sigma + 0.5))
    except TracerIndexError:
        raise UnsupportedError("gaussian_filter of a sigma that is computed from data: how many weights there are depends on it\n"
                               "  hint: give radius=") from None


def gaussian_filter1d(input: Any, sigma: Any, axis: int = -1, order: int = 0, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
                      truncate: float = 4.0, *, radius: int | None = None) -> Any:
    """`correlate1d` with a Gaussian, or with its derivative of an order; a sigma that data decide needs radius=, the number of weights.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.gaussian_filter1d(np.array([0.0, 1.0, 0.0]), 0.5).round(3).tolist()
    [0.107, 0.787, 0.107]
    """
    size = _radius(sigma, truncate) if radius is None else radius
    if order < 0:
        raise ValueError("order must be non-negative")
    return correlate1d(input, _gaussian(sigma, order, size)[::-1], axis, output, mode, cval, 0)


def gaussian_filter(input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0,
                    truncate: float = 4.0, *,
                    radius: Any = None, axes: Any = None) -> Any:
    """`gaussian_filter1d` along all axes, or some; sigma, order, mode and radius may be one per axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.gaussian_filter(np.eye(2), 1.0).round(3).tolist()
    [[0.542, 0.458], [0.458, 0.542]]
    """
    chosen = axes_of(axes, np.ndim(input))
    found = input
    for axis, deviation, number, edges, size in zip(chosen, per_axis(sigma, chosen, "sigma"), per_axis(order, chosen, "order"),
                                                    per_axis(mode, chosen, "mode"), per_axis(radius, chosen, "radius"), strict=True):
        if is_traced(deviation):
            size = _radius(deviation, truncate) if size is None else size
        if (size != 0 or number != 0) if is_traced(deviation) else deviation > 1e-15:          # one weight, 1, leaves all as it is
            found = gaussian_filter1d(found, deviation, axis, number, output, edges, cval, truncate, radius=size)
    return found


def uniform_filter1d(input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
                     origin: int = 0) -> Any:
    """The mean of `size` neighbours along an axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.uniform_filter1d(np.array([1.0, 2.0, 6.0]), 3).round(4).tolist()
    [1.3333, 3.0, 4.6667]
    """
    if size < 1:
        raise RuntimeError("incorrect filter size")
    place = normalize_axis(axis, np.ndim(input))
    given = taken(input)                # the sum is divided: means of integers are exact
    return _filtered(given, np.ones(size), cval, (place,), (mode,), (origin,), False, output, size)


def uniform_filter(input: Any, size: Any = 3, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0, origin: Any = 0, *,
                   axes: Any = None) -> Any:
    """The mean of the neighbours in a box.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.uniform_filter(np.eye(2), 3).round(4).tolist()
    [[0.5556, 0.4444], [0.4444, 0.5556]]
    """
    chosen = axes_of(axes, np.ndim(input))
    found = input
    for axis, count, edges, place in zip(chosen, per_axis(size, chosen, "size"), per_axis(mode, chosen, "mode"),
                                         per_axis(origin, chosen, "origin"), strict=True):
        if count > 1:
            found = uniform_filter1d(found, int(count), axis, output, edges, cval, int(place))
    return found


def _edge_filter(input: Any, axis: int, output: Any, mode: Edges, cval: Any, smoothing: Sequence[float]) -> Any:
    place = normalize_axis(axis, np.ndim(input))
    modes = per_axis(mode, range(np.ndim(input)), "mode")
    found = correlate1d(input, np.array([-1.0, 0.0, 1.0]), place, output, modes[place], cval)
    for other in range(np.ndim(input)):
        if other != place:
            found = correlate1d(found, np.array(smoothing), other, output, modes[other], cval)
    return found


def sobel(input: Any, axis: int = -1, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0) -> Any:
    """Sobel's derivative along an axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.sobel(np.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    return _edge_filter(input, axis, output, mode, cval, (1.0, 2.0, 1.0))


def prewitt(input: Any, axis: int = -1, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0) -> Any:
    """Prewitt's derivative along an axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.prewitt(np.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    return _edge_filter(input, axis, output, mode, cval, (1.0, 1.0, 1.0))


def laplace(input: Any, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0, *, axes: Any = None) -> Any:
    """The sum of second differences along the axes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.laplace(np.array([1.0, 2.0, 4.0])).tolist()
    [1.0, 1.0, -2.0]
    """
    chosen = axes_of(axes, np.ndim(input))
    parts = [correlate1d(input, np.array([1.0, -2.0, 1.0]), axis, output, edges, cval)
             for axis, edges in zip(chosen, per_axis(mode, chosen, "mode"), strict=True)]
    return functools.reduce(lambda x, y: x + y, parts)


def _derivatives(input: Any, sigma: Any, order: int, output: Any, mode: Edges, cval: Any, axes: Any, options: dict[str,
                 Any]) -> list[Any]:
    """Gaussian filters with a derivative along each axis in turn, and with the edges of that axis everywhere, as SciPy has them."""
    chosen = axes_of(axes, np.ndim(input))
    orders = [[order if other == axis else 0 for other in chosen] for axis in chosen]
    return [gaussian_filter(input, sigma, one, output, edges, cval, axes=tuple(chosen), **options)
            for one, edges in zip(orders, per_axis(mode, chosen, "mode"), strict=True)]


def gaussian_laplace(input: Any, sigma: Any, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0, *,
                     axes: Any = None, **kwargs: Any) -> Any:
    """The sum of second derivatives of a Gaussian filter.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.gaussian_laplace(np.array([0.0, 1.0, 0.0]), 1.0).round(3).tolist()
    [0.164, -0.328, 0.164]
    """
    return functools.reduce(lambda x, y: x + y, _derivatives(input, sigma, 2, output, mode, cval, axes, kwargs))


def gaussian_gradient_magnitude(input: Any, sigma: Any, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0, *, axes: Any = None,
                                **kwargs: Any) -> Any:
    """The length of the gradient of a Gaussian filter.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.gaussian_gradient_magnitude(np.array([0.0, 1.0, 3.0]), 1.0).round(3).tolist()
    [0.457, 1.048, 0.591]
    """
    parts = [part * part for part in _derivatives(input, sigma, 1, output, mode, cval, axes, kwargs)]
    total = functools.reduce(lambda x, y: x + y, parts)
    found = np.where(total == 0, total, np.sqrt(total))                   # whose derivative at 0 is 0
    return found if found.dtype == parts[0].dtype else found.astype(parts[0].dtype)
