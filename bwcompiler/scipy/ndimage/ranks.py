"""Of `bw.scipy.ndimage`: filters that choose among the elements of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.ndimage.edges import Edges, axes_of, continued, finished, per_axis, taken


@graph_function
def _chosen(x: Any, cval: Any, axes: tuple[int, ...], sizes: tuple[int, ...], modes: tuple[str, ...], origins: tuple[int, ...],
            footprint: tuple[int, ...], which: str, rank: int, output: Any) -> Any:
    """The largest, the smallest, or element `rank` in order, of the elements of each window that the footprint names."""
    found: Any = fresh(value_as(x))
    if not found.size:
        return finished(found, x, output)
    lanes = lanes_of(found, cval, axes, sizes, modes, origins, footprint)
    result = lanes.max(-1) if which == "max" else lanes.min(-1) if which == "min" else np.sort(lanes, -1)[..., rank]
    return finished(result, x, output)


def lanes_of(x: Any, cval: Any, axes: Sequence[int], sizes: tuple[int, ...], modes: Sequence[str], origins: Sequence[int],
             footprint: Sequence[int]) -> Any:
    """The elements of each window that the footprint names, along a last axis."""
    found = x
    for axis, size, mode, origin in zip(axes, sizes, modes, origins, strict=True):
        if not -(size // 2) <= origin <= (size - 1) // 2:
            raise ValueError("invalid origin")
        found = continued(found, axis, size // 2 + origin, size - 1 - size // 2 - origin, mode, cval)
    windows = np.lib.stride_tricks.sliding_window_view(found, sizes, tuple(axes))
    lanes = windows.reshape(*windows.shape[:found.ndim], -1)
    return lanes if len(footprint) == lanes.shape[-1] else lanes[..., list(footprint)]


def footprint_of(x: Any, size: Any, footprint: Any, origin: Any, chosen: Sequence[int],
                 turned: bool = False) -> tuple[Any, list[int], tuple[int, ...]]:
    """The footprint as a mask, the origins, and the places in windows that are looked at."""
    if np.iscomplexobj(x):
        raise TypeError("Complex type not supported")
    if footprint is None and size is None:
        raise RuntimeError("no footprint or filter size provided")
    mask = np.ones([int(one) for one in per_axis(size, chosen, "size")], bool) if footprint is None else np.asarray(footprint, bool)
    if mask.ndim != len(chosen):
        raise RuntimeError(f"footprint.ndim ({mask.ndim}) must match len(axes) ({len(chosen)})")
    origins = [int(one) for one in per_axis(origin, chosen, "origin")]
    if turned:                                                   # a dilation is by the reflected footprint
        mask = mask[tuple([slice(None, None, -1)] * mask.ndim)]
        origins = [-one - (extent % 2 == 0) for one, extent in zip(origins, mask.shape, strict=True)]
    places = tuple(np.flatnonzero(mask).tolist())
    if not places:
        raise ValueError("filter footprint array has no True values")
    return mask, origins, places


def _filter(x: Any, size: Any, footprint: Any, output: Any, mode: Edges, cval: Any, origin: Any, axes: Any, which: str, rank: Any = None,
            turned: bool = False) -> Any:
    chosen = axes_of(axes, np.ndim(x))
    mask, origins, places = footprint_of(x, size, footprint, origin, chosen, turned)
    modes = tuple(per_axis(mode, chosen, "mode"))
    return _chosen(taken(x), cval, tuple(chosen), mask.shape, modes, tuple(origins), places, which,
                   0 if rank is None else rank(len(places)), output)


def masked_extreme(x: Any, footprint: Any, border: Any, origins: tuple[int, ...], which: str) -> Any:
    """The largest or smallest element of each window of a mask, which ends with `border`; the windows of the largest are reflected."""
    return _filter(x, None, footprint, None, "constant", border, origins, None, which, turned=which == "max")


def maximum_filter(input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0,
                   origin: Any = 0, *, axes: Any = None) -> Any:
    """The largest element of each window.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.maximum_filter(np.array([1.0, 5.0, 2.0, 0.0]), 3).tolist()
    [5.0, 5.0, 5.0, 2.0]
    """
    return _filter(input, size, footprint, output, mode, cval, origin, axes, "max")


def minimum_filter(input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0,
                   origin: Any = 0, *, axes: Any = None) -> Any:
    """The smallest element of each window.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.minimum_filter(np.array([1.0, 5.0, 2.0, 0.0]), 3).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    return _filter(input, size, footprint, output, mode, cval, origin, axes, "min")


def maximum_filter1d(input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
                     origin: int = 0) -> Any:
    """`maximum_filter` along one axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.maximum_filter1d(np.array([1.0, 5.0, 2.0, 0.0]), 2).tolist()
    [1.0, 5.0, 5.0, 2.0]
    """
    return _filter(input, size, None, output, mode, cval, origin, normalize_axis(axis, np.ndim(input)), "max")


def minimum_filter1d(input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
                     origin: int = 0) -> Any:
    """`minimum_filter` along one axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.minimum_filter1d(np.array([1.0, 5.0, 2.0, 0.0]), 2).tolist()
    [1.0, 1.0, 2.0, 0.0]
    """
    return _filter(input, size, None, output, mode, cval, origin, normalize_axis(axis, np.ndim(input)), "min")


def grey_erosion(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None, mode: Edges = "reflect",
                 cval: Any = 0.0, origin: Any = 0, *, axes: Any = None) -> Any:
    """`minimum_filter`, which is the erosion by a flat structure; others are refused.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.grey_erosion(np.array([1.0, 5.0, 2.0, 0.0]), 3).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    _require_flat(structure)
    return _filter(input, size, footprint, output, mode, cval, origin, axes, "min")


def grey_dilation(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None, mode: Edges = "reflect",
                  cval: Any = 0.0, origin: Any = 0, *, axes: Any = None) -> Any:
    """`maximum_filter` of the reflected footprint, which is the dilation by a flat structure; others are refused.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.grey_dilation(np.array([1.0, 5.0, 2.0, 0.0]), 3).tolist()
    [5.0, 5.0, 5.0, 2.0]
    """
    _require_flat(structure)
    return _filter(input, size, footprint, output, mode, cval, origin, axes, "max", turned=True)


def _require_flat(structure: Any) -> None:
    if structure is not None:
        raise UnsupportedError("structure= of traced values is not supported\n  hint: footprint=, for a flat structure")


def _at(place: int) -> Any:
    def rank(count: int) -> int:
        found = place + count if place < 0 else place
        if not 0 <= found < count:
            raise RuntimeError("rank not within filter footprint size")
        return found
    return rank


def rank_filter(input: Any, rank: int, size: Any = None, footprint: Any = None, output: Any = None, mode: Edges = "reflect",
                cval: Any = 0.0,
                origin: Any = 0, *, axes: Any = None) -> Any:
    """The element number `rank`, in order, of each window.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.rank_filter(np.array([1.0, 5.0, 2.0, 0.0]), 1, 3).tolist()
    [1.0, 2.0, 2.0, 0.0]
    """
    return _filter(input, size, footprint, output, mode, cval, origin, axes, "rank", _at(int(rank)))


def median_filter(input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: Edges = "reflect", cval: Any = 0.0,
                  origin: Any = 0, *, axes: Any = None) -> Any:
    """The middle element of each window.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.median_filter(np.array([1.0, 5.0, 2.0, 0.0]), 3).tolist()
    [1.0, 2.0, 2.0, 0.0]
    """
    return _filter(input, size, footprint, output, mode, cval, origin, axes, "rank", lambda count: count // 2)


def percentile_filter(input: Any, percentile: float, size: Any = None, footprint: Any = None, output: Any = None, mode: Edges = "reflect",
                      cval: Any = 0.0, origin: Any = 0, *, axes: Any = None) -> Any:
    """The element of each window below which a percentage of them are.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.percentile_filter(np.array([1.0, 5.0, 2.0, 0.0]), 100, 3).tolist()
    [5.0, 5.0, 5.0, 2.0]
    """
    share = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= share <= 100:
        raise RuntimeError("invalid percentile")
    return _filter(input, size, footprint, output, mode, cval, origin, axes, "rank",
                   lambda count: count - 1 if share == 100 else int(count * share / 100.0))
