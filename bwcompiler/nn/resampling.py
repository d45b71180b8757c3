"""`bw.nn`: changes of spatial extents: padding, interpolation, sampling at points; x is (batch, channels, ...) unless said otherwise.

Interpolation is separable: every axis is a sum of a few elements (taps), each times a weight; both are known while tracing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced, real_value, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.nn.convolutions import Option, Sizes, sizes_of
from bwcompiler.nn.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


# ----- padding
PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@network_function
def pad(x: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    """x with elements before and after its last axes: pad = (before, after) of the last axis, then of the one before it, ...

    Negative numbers cut off.  mode: "constant" (value, 0 by default), "reflect", "replicate" or "circular".  Raises ShapeError for pads
    that do not fit x, ValueError for another mode.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.pad(np.array([[1.0, 2.0, 3.0]]), (1, -1), "replicate").tolist()
    [[1.0, 1.0, 2.0]]
    """
    found: Any = fresh(value_as(x))
    if len(pad) % 2 or len(pad) > 2 * found.ndim:
        raise ShapeError(f"pad={tuple(pad)} must have two numbers per axis and no more axes than x of shape {found.shape}")
    if mode != "constant" and mode not in PAD_MODES:
        raise ValueError(f"pad: mode must be 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}")
    widths = [(0, 0)] * (found.ndim - len(pad) // 2) + [(int(pad[k]), int(pad[k + 1])) for k in range(len(pad) - 2, -1, -2)]
    grown = [(max(low, 0), max(high, 0)) for low, high in widths]
    if mode == "circular":                            # what is cut off is not repeated; in other modes it may be
        found = found[tuple([slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(found.shape, widths, strict=True)])]
        widths = grown
    if mode == "constant":
        fill: Any = value if is_traced(value) else found.dtype.type(0 if value is None else value).item()
        result: Any = np.pad(found, grown, constant_values=fill)
    else:
        for extent, (low, high) in zip(found.shape, grown, strict=True):
            most = {"reflect": extent - 1, "circular": extent}.get(mode, math.inf if extent else 0)
            if (low or high) and max(low, high) > most:
                raise ShapeError(f"pad: {(low, high)} elements do not fit mode {mode!r} along an axis of extent {extent}")
        result = np.pad(found, grown, mode=PAD_MODES[mode])  # type: ignore[call-overload]
    return result[tuple([slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(result.shape, widths, strict=True)])]


# ----- interpolation
def _nearest(size: int, extent: int, scale: float, exact: bool) -> list[tuple[Any, Any]]:
    number = np.arange(size, dtype=np.float32) + np.float32(0.5 if exact else 0.0)             # PyTorch counts in float32
    return [(np.minimum(np.floor(number * np.float32(scale)).astype(np.int64), extent - 1), None)]


def _linear(place: Any, extent: int) -> list[tuple[Any, Any]]:
    place = np.maximum(place, 0.0)
    low = np.minimum(np.floor(place).astype(np.int64), extent - 1)
    fraction = np.minimum(np.maximum(place - low, 0.0), 1.0)
    return [(low, 1.0 - fraction), (np.minimum(low + 1, extent - 1), fraction)]


def cubic_weights(t: Any) -> list[Any]:
    """Weights of the elements at -1, 0, 1, 2 for a place t between 0 and 1 (R. Keys, 1981, with a = -0.75)."""
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0

    def far(x: Any) -> Any:
        return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a

    return [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]


def _cubic(place: Any, extent: int) -> list[tuple[Any, Any]]:
    low = np.floor(place).astype(np.int64)
    return [(np.clip(low + k, 0, extent - 1), weight) for k, weight in zip((-1, 0, 1, 2), cubic_weights(place - low), strict=True)]


def _taps(mode: str, extent: int, size: int, factor: float | None, align_corners: bool) -> list[tuple[Any, Any]]:
    """Positions along an axis and their weights (None: 1), for every element of the result."""
    scale = extent / size if factor is None else 1.0 / factor
    if mode.startswith("nearest"):
        return _nearest(size, extent, scale, mode == "nearest-exact")
    if align_corners:
        place = np.arange(size) * ((extent - 1) / (size - 1) if size > 1 else 0.0)
    else:
        place = (np.arange(size) + 0.5) * scale - 0.5
    return (_cubic if mode == "bicubic" else _linear)(place, extent)


def _resampled(x: Any, axis: int, taps: list[tuple[Any, Any]]) -> Any:
    total: Any = None
    for positions, weight in taps:
        part = np.take(x, positions, axis)
        if weight is not None:
            part = part * weight.astype(x.dtype).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        total = part if total is None else total + part
    return total


def _target(extents: Sizes, size: Option, factor: Any, recompute: bool | None) -> tuple[Sizes, tuple[float | None, ...]]:
    """The extents of the result, and the factors that say where its elements lie (None: the ratio of extents)."""
    rank = len(extents)
    if (size is None) == (factor is None):
        raise ValueError("interpolate: one of size and scale_factor must be given, not both")
    if size is not None:
        return sizes_of(size, rank, "size"), (None,) * rank
    factors = (float(factor),) * rank if isinstance(factor, int | float) else tuple(float(one) for one in factor)
    factors = factors * rank if len(factors) == 1 else factors
    if len(factors) != rank:
        raise ShapeError(f"scale_factor={factor!r} must be a number or {rank} of them")
    sizes = tuple([math.floor(extent * one) for extent, one in zip(extents, factors, strict=True)])
    return sizes, ((None,) * rank if recompute else factors)


@network_function
def interpolate(x: Any, size: Option = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False) -> Any:
    """x with other spatial extents: those of `size`, or scale_factor times its own; as torch.nn.functional.interpolate.

    mode: "nearest", "nearest-exact", "area" for any rank, "linear", "bilinear", "bicubic", "trilinear" for 1, 2, 2, 3 spatial axes.  With
    align_corners the centres of the corners keep their places.  Raises ValueError for other modes, ShapeError where x does not fit,
    UnsupportedError for antialias.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.interpolate(np.array([[[0.0, 1.0]]]), 4, mode="linear").tolist()
    [[[0.0, 0.25, 0.75, 1.0]]]
    """
    value: Any = fresh(value_as(x) if mode.startswith("nearest") else real_value(x))
    rank = value.ndim - 2
    if rank < 1 or RANKS.get(mode, rank) != rank:
        raise ShapeError(f"interpolate: mode {mode!r} does not take x of shape {value.shape}, which is to be (batch, channels, ...)")
    if mode not in (*RANKS, "nearest", "nearest-exact", "area"):
        raise ValueError(f"interpolate: unknown mode {mode!r}")
    if antialias:
        raise UnsupportedError("interpolate: antialias=True is not supported\n  hint: bw.nn.avg_pool2d first, or a convolution")
    if align_corners is not None and mode not in RANKS:
        raise ValueError(f"interpolate: align_corners has no meaning for mode {mode!r}")
    sizes, factors = _target(value.shape[2:], size, scale_factor, recompute_scale_factor)
    if mode == "area":
        if rank not in AREA:
            raise ShapeError(f"interpolate: mode 'area' takes 1 to 3 spatial axes, got x of shape {value.shape}")
        return AREA[rank](value, sizes)
    for k in range(rank):
        value = _resampled(value, 2 + k, _taps(mode, value.shape[2 + k], sizes[k], factors[k], bool(align_corners)))
    return value


@network_function
def upsample(x: Any, size: Option = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Any:
    """`interpolate`, under its older name.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.upsample(np.array([[[0.0, 1.0]]]), 4).tolist()
    [[[0.0, 0.0, 1.0, 1.0]]]
    """
    return interpolate(x, size, scale_factor, mode, align_corners)


@network_function
def upsample_nearest(x: Any, size: Option = None, scale_factor: float | Sequence[float] | None = None) -> Any:
    """`interpolate` with mode "nearest".

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.upsample_nearest(np.array([[[0.0, 1.0]]]), 4).tolist()
    [[[0.0, 0.0, 1.0, 1.0]]]
    """
    return interpolate(x, size, scale_factor)


@network_function
def upsample_bilinear(x: Any, size: Option = None, scale_factor: float | Sequence[float] | None = None) -> Any:
    """`interpolate` with mode "bilinear" and align_corners.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.upsample_bilinear(np.array([[[[0.0, 1.0]]]]), (1, 3)).tolist()
    [[[[0.0, 0.5, 1.0]]]]
    """
    return interpolate(x, size, scale_factor, "bilinear", True)


# ----- sampling at points
@network_function
def affine_grid(theta: Any, size: Sequence[int], align_corners: bool = False) -> Any:
    """Where `grid_sample` is to read for an affine map: theta is (batch, 2, 3) or (batch, 3, 4), size the shape of its result.

    Coordinates run from -1 to 1, x before y before z, between the centres of the corners, or (not align_corners) between the edges.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.affine_grid(np.eye(2, 3)[None], (1, 1, 1, 2)).tolist()
    [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    matrix: Any = fresh(real_value(theta))
    rank = len(size) - 2
    if matrix.shape[1:] != (rank, rank + 1):
        raise ShapeError(f"affine_grid: theta of shape {matrix.shape} must be (batch, {rank}, {rank + 1}) for size {tuple(size)}")
    lines = []
    for extent in size[2:]:
        line = np.linspace(-1.0, 1.0, extent) if extent > 1 else np.zeros(1)
        lines.append(line if align_corners else line * (extent - 1) / extent)
    axes = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*axes[::-1], np.ones(axes[0].shape)], -1).reshape(-1, rank + 1).astype(matrix.dtype)
    return (points @ matrix.transpose(0, 2, 1)).reshape(matrix.shape[0], *size[2:], rank)


def _reflected(place: Any, twice_low: int, twice_high: int) -> Any:
    """place mirrored at both bounds until it lies between them."""
    if twice_low == twice_high:
        return np.zeros_like(place)
    low, span = twice_low / 2, (twice_high - twice_low) / 2
    distance = np.abs(place - low)
    times: Any = np.floor(distance / span)
    rest = distance - times * span
    return np.where(times % 2 == 0, rest + low, span - rest + low)


def _bounded_place(place: Any, extent: int, padding_mode: str, align_corners: bool) -> Any:
    if padding_mode == "reflection":
        bounds = (0, 2 * (extent - 1)) if align_corners else (-1, 2 * extent - 1)
        place = _reflected(place, *bounds)
    return place if padding_mode == "zeros" else np.clip(place, 0, extent - 1)


def _read(x: Any, places: Sequence[Any], padding_mode: str, align_corners: bool) -> Any:
    """x[n, :, places...] as (batch, channels, points...); zeros (or what the mode says) where a place is outside."""
    inside: Any = True
    indices = []
    for place, extent in zip(places, x.shape[2:], strict=True):
        at = _bounded_place(place, extent, padding_mode, align_corners)
        inside = inside & (at >= 0) & (at <= extent - 1)
        indices.append(np.clip(at, 0, extent - 1).astype(np.int64))
    batch = np.arange(x.shape[0]).reshape(-1, *[1] * (indices[0].ndim - 1))
    found = np.moveaxis(x, 1, -1)[(batch, *indices)]
    return np.moveaxis(np.where(inside[..., None], found, 0.0), -1, 1)


@network_function
def grid_sample(x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Any:
    """x at the points of a grid (batch, points..., rank), whose coordinates run from -1 to 1, x before y before z.

    mode: "bilinear" (of 3 spatial axes: trilinear), "nearest", or "bicubic" for 2 spatial axes.  padding_mode: "zeros", "border" or
    "reflection".  The result is (batch, channels, points...).  Raises ValueError for other modes, ShapeError where shapes do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.grid_sample(np.array([[[[0.0, 1.0]]]]), np.zeros((1, 1, 1, 2))).tolist()
    [[[[0.5]]]]
    """
    value: Any = fresh(real_value(x))
    points: Any = as_tracer(grid)
    rank = value.ndim - 2
    if rank not in (2, 3) or points.ndim != value.ndim or points.shape[-1] != rank or points.shape[0] != value.shape[0]:
        raise ShapeError(f"grid_sample: x of shape {value.shape} and grid of shape {points.shape} do not fit; "
                         f"grid is (batch, points..., {rank})")
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank != 2):
        raise ValueError(f"grid_sample: unknown mode {mode!r} for {rank} spatial axes")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"grid_sample: unknown padding_mode {padding_mode!r}")
    aligned = bool(align_corners)
    places = []
    for k, extent in enumerate(value.shape[2:]):
        one = points[..., rank - 1 - k]
        places.append((one + 1) * ((extent - 1) / 2) if aligned else ((one + 1) * extent - 1) / 2)
    if mode == "bicubic":
        return _combined(value, places, lambda t: list(zip((-1, 0, 1, 2), cubic_weights(t), strict=True)), padding_mode, aligned)
    places = [_bounded_place(place, extent, padding_mode, aligned) for place, extent in zip(places, value.shape[2:], strict=True)]
    if mode == "nearest":
        return _read(value, [np.rint(place) for place in places], "zeros", aligned)
    return _combined(value, places, lambda fraction: [(0, 1.0 - fraction), (1, fraction)], "zeros", aligned)


def _combined(x: Any, places: Sequence[Any], taps: Callable[[Any], list[tuple[int, Any]]], padding_mode: str, aligned: bool) -> Any:
    """The sum over the neighbours of every point, each times the product of its weights along the axes."""
    lows = [np.floor(place) for place in places]
    weights = [taps(place - low) for place, low in zip(places, lows, strict=True)]
    total: Any = 0.0
    for choice in itertools.product(*weights):
        weight: Any = math.prod([part for _, part in choice], start=1.0)
        near = _read(x, [low + offset for low, (offset, _) in zip(lows, choice, strict=True)], padding_mode, aligned)
        total = total + near * weight[:, None]
    return total
