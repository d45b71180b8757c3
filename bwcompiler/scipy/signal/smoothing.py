"""Smoothing: polynomials in windows, trends, medians, local statistics."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import is_traced, number_value, real_value, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy import ndimage
from bwcompiler.scipy.signal.convolutions import correlate


def savgol_coeffs(window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, pos: int | None = None, use: str = "conv") -> Any:
    """The weights by which a window gives the value (or derivative) at pos of the polynomial that fits it best; an ndarray.

    >>> import bwcompiler as bw
    >>> bw.scipy.signal.savgol_coeffs(5, 2).round(4).tolist()
    [-0.0857, 0.3429, 0.4857, 0.3429, -0.0857]
    """
    if polyorder >= window_length:
        raise ValueError("polyorder must be less than window_length.")
    half, rest = divmod(window_length, 2)
    place = (half if rest else half - 0.5) if pos is None else pos
    x = np.arange(-place, window_length - place, dtype=float)
    x = x[::-1] if use == "conv" else x
    if deriv > polyorder:
        return np.zeros(window_length)
    wanted = np.zeros(polyorder + 1)
    wanted[deriv] = math.factorial(deriv) / delta**deriv
    return np.linalg.lstsq(x ** np.arange(polyorder + 1)[:, None], wanted, rcond=None)[0]


SAVGOL_MODES = {"mirror": "reflect", "constant": "constant", "nearest": "edge", "wrap": "wrap"}


@graph_function
def savgol_filter(x: Any, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, axis: int = -1, mode: str = "interp",
                  cval: float = 0.0) -> Any:
    """x, or its derivative, from polynomials fitted to a window around every element along an axis.

    At the ends: mode "interp" (the polynomial of the first and last window), "mirror", "constant" (cval), "nearest" or "wrap".  Raises
    ValueError for other modes and windows that are too long.

    >>> import numpy as np, bwcompiler as bw
    >>> abs(bw.scipy.signal.savgol_filter(np.arange(7.0) ** 2, 5, 2).round(8)).tolist()
    [0.0, 1.0, 4.0, 9.0, 16.0, 25.0, 36.0]
    """
    signal: Any = fresh(real_value(x))
    place = normalize_axis(axis, signal.ndim)
    lines = np.moveaxis(signal, place, -1)
    count = lines.shape[-1]
    if mode not in ("interp", *SAVGOL_MODES):
        raise ValueError("mode must be 'mirror', 'constant', 'nearest' 'wrap' or 'interp'.")
    weights = savgol_coeffs(window_length, polyorder, deriv, delta, use="dot").astype(signal.dtype)
    if mode == "interp" and window_length > count:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    half = window_length // 2
    low, high = (half, window_length - 1 - half)
    if mode != "interp":
        options: dict[str, Any] = {"constant_values": cval} if mode == "constant" else {}
        padded = np.pad(lines, [*[(0, 0)] * (lines.ndim - 1), (low, high)], mode=SAVGOL_MODES[mode], **options)  # type: ignore[call-overload]
        return np.moveaxis(_slid(padded, weights), -1, place)
    places = [savgol_coeffs(window_length, polyorder, deriv, delta, pos=k, use="dot") for k in range(window_length)]
    rows = np.stack(places).astype(signal.dtype)
    first, last = lines[..., :window_length] @ rows[:low].T, lines[..., count - window_length:] @ rows[window_length - high:].T
    return np.moveaxis(np.concatenate([first, _slid(lines, weights), last], -1), -1, place)


def _slid(lines: Any, weights: Any) -> Any:
    windows = ops.windows(value_as(lines), sizes=(weights.shape[0],), strides=(1,), low=(0,), high=(0,), dilations=(1,))
    return fresh(windows) @ weights


@graph_function
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0) -> Any:
    """data without its mean (type "constant") or without the line that fits it best, along an axis; between breakpoints bp.

    >>> import numpy as np, bwcompiler as bw
    >>> abs(bw.scipy.signal.detrend(3.0 * np.arange(5.0) + 1.0).round(8)).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0]
    """
    signal: Any = fresh(number_value(data))
    place = normalize_axis(axis, signal.ndim)
    lines = np.moveaxis(signal, place, -1)
    count = lines.shape[-1]
    if type in ("constant", "c"):
        return signal - signal.mean(place, keepdims=True)
    if type not in ("linear", "l"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    ends = sorted({0, count, *np.atleast_1d(bp).tolist()})
    if any(end > count for end in ends):
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    projection = np.zeros((count, count))
    for start, end in itertools.pairwise(ends):
        basis = np.linalg.qr(np.stack([np.ones(end - start), np.arange(1.0, end - start + 1) / (end - start)], 1))[0]
        projection[start:end, start:end] = basis @ basis.T
    return np.moveaxis(lines - lines @ projection.astype(signal.dtype), -1, place)


# ----- medians and local statistics
def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """The median of the window around every element, of 3 elements along each axis unless given; zeros beyond the edges.

    Raises ValueError for even sizes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.medfilt(np.array([1.0, 9.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0, 2.0]
    """
    rank = np.ndim(volume)
    sizes = np.atleast_1d(3 if kernel_size is None else kernel_size).tolist()
    sizes = sizes * rank if len(sizes) == 1 else sizes
    if any(size % 2 != 1 for size in sizes):
        raise ValueError("Each element of kernel_size should be odd.")
    return ndimage.median_filter(volume, tuple(sizes), mode="constant", cval=0.0)


def medfilt2d(input: Any, kernel_size: Any = 3) -> Any:
    """`medfilt` of a matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.medfilt2d(np.ones((3, 3))).tolist()
    [[0.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if np.ndim(input) != 2:
        raise ValueError("input must be 2-D")
    return medfilt(input, kernel_size)


def order_filter(a: Any, domain: Any, rank: int) -> Any:
    """The element of a rank (0: the smallest) of those under the mask `domain` around every element; zeros beyond the edges.

    The mask has to be known while tracing.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.order_filter(np.array([1.0, 9.0, 2.0]), np.ones(3), 2).tolist()
    [9.0, 9.0, 9.0]
    """
    mask = np.asarray(domain)
    if any(size % 2 != 1 for size in mask.shape):
        raise ValueError("Each dimension of domain argument should have an odd number of elements.")
    return ndimage.rank_filter(a, rank, footprint=mask != 0, mode="constant", cval=0.0)


@graph_function
def wiener(im: Any, mysize: int | Sequence[int] | None = None, noise: Any = None) -> Any:
    """im with local noise removed, from means and variances of windows (of 3 elements along each axis unless given).

    noise   its power; the mean of the local variances unless given.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.signal.wiener(np.array([0.0, 3.0, 0.0])).round(4).tolist()
    [1.0, 1.0, 1.0]
    """
    image: Any = fresh(number_value(im))
    sizes = [3] * image.ndim if mysize is None else [mysize] * image.ndim if isinstance(mysize, int) else list(mysize)
    window, count = np.ones(sizes), float(math.prod(sizes))
    means = correlate(image, window, "same") / count
    variances = correlate(image ** 2, window, "same") / count - means ** 2
    power = variances.mean() if noise is None else fresh(number_value(noise)) if is_traced(noise) else noise
    return np.where(variances < power, means, (image - means) * (1 - power / variances) + means)
