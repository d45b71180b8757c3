"""Of `bw.scipy.ndimage`: arrays as splines, at places between their elements."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import lazy
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.transforms.vmap import vmap
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import cast, is_traced, real_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import F64
from bwcompiler.scipy.ndimage.edges import array_of, continued, finished, per_axis, taken
from bwcompiler.scipy.special.functions import by_loop

scipy_special = lazy.module("scipy.special")
PADDED = 12                       # elements that SciPy adds where a spline has no continuation of its own


def _weights(order: int, x: Any) -> list[Any]:
    """The B-splines of an order at x, x - 1 .. x - order, for x in 0 .. 1 (of even orders: shifted by a half)."""
    found = [np.ones_like(x) if is_traced(x) else np.ones(np.shape(x))]
    for degree in range(1, order + 1):
        longer = []
        for k in range(degree + 1):                               # N(x + k) of this degree, from 0 to degree + 1
            left = found[k] * (x + k) if k < degree else 0.0
            right = found[k - 1] * (degree + 1 - x - k) if k else 0.0
            longer.append((left + right) / degree)
        found = longer
    return found[::-1]


def _continuation(mode: str) -> str:
    """How a spline goes on beyond the edges."""
    return {"reflect": "symmetric", "grid-mirror": "symmetric", "nearest": "symmetric", "grid-wrap": "wrap"}.get(mode, "reflect")


@functools.cache
def _prefilter(n: int, order: int, mode: str) -> Any:
    """The matrix from values to coefficients: the inverse of what the spline with these coefficients has as values."""
    half = order // 2
    middle = _weights(order, np.array(0.5 if order % 2 == 0 else 0.0))
    places = np.pad(np.arange(n), (half + 1, half + 1), _continuation(mode)) if n > 1 else np.zeros(2 * half + 3, int)  # type: ignore[call-overload]
    matrix = np.zeros((n, n))
    for i in range(n):
        for k, weight in enumerate(middle):
            matrix[i, places[i + 1 + k]] += float(weight)
    return np.linalg.inv(matrix)


def _require_order(order: int) -> None:
    if not 0 <= order <= 5:
        raise RuntimeError("spline order not supported")


@graph_function
def _coefficients(x: Any, order: int, axes: tuple[int, ...], mode: str) -> Any:
    found = array_of(x)
    for axis in axes:
        if order > 1 and found.shape[axis] > 1:
            found = np.moveaxis(np.tensordot(_prefilter(found.shape[axis], order, mode), found, (1, axis)), 0, axis)
    return found


def spline_filter1d(input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror") -> Any:
    """The coefficients of the spline of an order through the elements along an axis, by a matrix that is inverted once per extent.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.spline_filter1d(np.array([1.0, 1.0, 1.0])).round(9).tolist()
    [1.0, 1.0, 1.0]
    """
    _require_order(order)
    return finished(_coefficients(input, order, (normalize_axis(axis, np.ndim(input)),), mode), input, output)


def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    """`spline_filter1d` along all axes.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.spline_filter(np.ones((2, 2))).round(9).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    if order < 2 or order > 5:
        raise RuntimeError("spline order not supported")
    return finished(_coefficients(input, order, tuple(range(np.ndim(input))), mode), input, output)


# ----- at places
def _folded(place: Any, n: int, mode: str, padded: int) -> tuple[Any, Any]:
    """A coordinate brought into the array (or what was added to it), and whether it is outside of what has values (None: none is)."""
    last = n - 1
    if mode == "constant":
        return place, (place < 0) | (place > last)
    if mode in ("nearest", "grid-constant"):
        return (np.clip(place, -padded, last + padded) if mode == "nearest" else place), None
    if n == 1:
        return place * 0.0, None
    if mode == "mirror":
        turned = np.abs(place) % (2 * last)
        return np.where(turned >= n, 2 * last - turned, turned), None
    if mode in ("reflect", "grid-mirror"):
        turned = (place + 0.5) % (2 * n)
        return np.where(turned >= n, 2 * n - turned, turned) - 0.5, None
    if mode == "wrap":
        turned = np.abs(place) - last * np.floor(np.abs(place) / last)       # what is whole turns before the array is its last element
        return np.where(place < 0, last - turned, np.where(place > last, turned, place)), None
    if mode == "grid-wrap":
        return place % n, None
    raise RuntimeError("boundary mode not supported")


def _neighbour(number: Any, n: int, mode: str) -> Any:
    """The numbers of elements, those outside as the spline goes on."""
    how = _continuation(mode)
    if n == 1:
        return number * 0
    if how == "wrap":
        return number % n
    if how == "symmetric":
        turned = number % (2 * n)
        return np.where(turned >= n, 2 * n - 1 - turned, turned)
    turned = number % (2 * (n - 1))
    return np.where(turned > n - 1, 2 * (n - 1) - turned, turned)


def _at_places(spline: Any, places: Sequence[Any], order: int, mode: str, cval: Any, padded: int) -> Any:
    """Σ weights times coefficients; places has one array of coordinates per axis."""
    parts, outside = [], None
    for place, n in zip(places, spline.shape, strict=True):
        inside, beyond = _folded(place, n - 2 * padded, mode, padded)
        inside = inside + padded
        outside = beyond if outside is None else outside if beyond is None else outside | beyond
        first = np.floor(inside if order % 2 else inside + 0.5)
        share = inside - first if order % 2 else inside - first + 0.5
        numbers = first.astype(np.int64) - order // 2
        line = []
        for k, weight in enumerate(_weights(order, share)):
            number = numbers + k
            if mode == "grid-constant":
                known = (number >= 0) & (number < n)
                line.append((np.clip(number, 0, n - 1), weight, known))
            else:
                line.append((_neighbour(number, n, mode), weight, None))
        parts.append(line)
    total: Any = 0.0
    for chosen in itertools.product(*parts):
        value = spline[tuple([number for number, _, _ in chosen])]
        known = [one for _, _, one in chosen if one is not None]
        if known:
            value = np.where(functools.reduce(lambda x, y: x & y, known), value, cval)
        total = total + functools.reduce(lambda x, y: x * y, [weight for _, weight, _ in chosen]) * value
    return total if outside is None else np.where(outside, cval, total)


@graph_function
def _mapped(x: Any, coordinates: Any, cval: Any, order: int, mode: str, prefilter: bool, output: Any) -> Any:
    given = array_of(x)
    padded = PADDED if prefilter and order > 1 and mode in ("nearest", "grid-constant") else 0
    spline = given
    for axis in range(given.ndim):
        spline = continued(spline, axis, padded, padded, mode, cval)
    if prefilter and order > 1:
        spline = _coefficients(spline, order, tuple(range(given.ndim)), mode)
    places: Any = fresh(cast(real_value(coordinates), F64))
    found = _at_places(spline, [places[k] for k in range(given.ndim)], order, mode, cval, padded)
    undefined = functools.reduce(lambda x, y: x | y, [np.isnan(places[k]) for k in range(given.ndim)])
    return finished(_rounded(np.where(undefined, math.nan, found), x, output), x, output)


def _rounded(found: Any, x: Any, output: Any) -> Any:
    """For integers the nearest one that there is, half away from zero; for truth values without the fraction (as filters do)."""
    if output is not None and (is_traced(output) or isinstance(output, np.ndarray)):
        return found                                            # which `finished` refuses
    dtype = np.dtype(x.dtype if output is None else output)
    if dtype.kind not in "iub":
        return found
    if dtype.kind == "b":
        return np.trunc(found)
    limits = np.iinfo(dtype)
    whole = np.trunc(np.where(found > 0, found + 0.5, found - 0.5))
    highest = float(limits.max) if limits.bits < 64 else np.nextafter(float(limits.max), 0.0)
    return np.clip(whole, float(limits.min), highest)


def map_coordinates(input: Any, coordinates: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
                    prefilter: bool = True) -> Any:
    """The spline through the elements at coordinates, one array of them per axis, as scipy.ndimage.map_coordinates.

    Input and coordinates may be traced.  Raises RuntimeError as SciPy does.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.map_coordinates(np.array([0.0, 1.0, 4.0, 9.0]), np.array([[0.5, 2.5]]), order=1).tolist()
    [0.5, 6.5]
    """
    _require_order(order)
    if np.ndim(input) < 1:
        raise RuntimeError("input and output rank must be > 0")
    if len(coordinates) != np.ndim(input):
        raise RuntimeError("invalid shape for coordinate array")
    points = taken(coordinates) if is_traced(coordinates) else np.asarray(coordinates, np.float64)
    return _mapped(taken(input), points, cval, order, mode, prefilter, output)


def _grid(shape: Sequence[int]) -> Any:
    return np.indices(shape).astype(np.float64)


def shift(input: Any, shift: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
          prefilter: bool = True) -> Any:
    """The array moved by so many elements along each axis; shift may be traced.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.shift(np.array([1.0, 2.0, 4.0]), 0.5, order=1).tolist()
    [0.0, 1.5, 3.0]
    """
    rank = np.ndim(input)
    distance = shift if is_traced(shift) else np.asarray(shift, np.float64)
    columns = [distance] * rank if np.ndim(distance) == 0 else [distance[k] for k in range(np.shape(distance)[0])]
    if len(columns) != rank:
        raise RuntimeError("sequence argument must have length equal to input rank")
    grid = _grid(np.shape(input))
    return map_coordinates(input, np.stack([grid[k] - columns[k] for k in range(rank)]), output, order, mode, cval, prefilter)


def zoom(input: Any, zoom: Any, output: Any = None, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True, *,
         grid_mode: bool = False) -> Any:
    """The array at more, or fewer, places along each axis; the factors are known while tracing.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.zoom(np.array([0.0, 2.0]), 2, order=1).round(4).tolist()
    [0.0, 0.6667, 1.3333, 2.0]
    """
    if is_traced(zoom):
        raise UnsupportedError("zoom by traced factors: the shape of the result depends on them\n  hint: map_coordinates")
    shape = np.shape(input)
    factors = per_axis(zoom, range(len(shape)), "zoom")
    found = tuple([round(n * float(factor)) for n, factor in zip(shape, factors, strict=True)])
    grid = _grid(found)
    places = []
    for k, (n, m) in enumerate(zip(shape, found, strict=True)):
        ratio = n / m if grid_mode and m else (n - 1) / (m - 1) if m > 1 else 1.0
        places.append((grid[k] + 0.5) * ratio - 0.5 if grid_mode else grid[k] * ratio)
    return map_coordinates(input, np.stack(places), output, order, mode, cval, prefilter)


def affine_transform(input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None, order: int = 3,
                     mode: str = "constant", cval: Any = 0.0, prefilter: bool = True) -> Any:
    """The array at matrix @ o + offset for each place o of the result; matrix and offset may be traced.

    matrix   (n, n), (n,) for a diagonal, or homogeneous, (n, n + 1) or (n + 1, n + 1).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.affine_transform(np.array([1.0, 2.0, 4.0]), np.array([[0.5]]), order=1).tolist()
    [1.0, 1.5, 2.0]
    """
    rank = np.ndim(input)
    given: Any = matrix if is_traced(matrix) else np.asarray(matrix, np.float64)
    moved: Any = offset
    if given.ndim == 2 and given.shape[1] == rank + 1:
        moved, given = given[:rank, rank], given[:rank, :rank]
    if given.shape not in ((rank,), (rank, rank)):
        raise RuntimeError("affine matrix has wrong number of rows or columns")
    places: Any = _grid(np.shape(input) if output_shape is None else output_shape)
    flat = places.reshape(rank, -1)
    found = given[:, None] * flat if given.ndim == 1 else given @ flat
    moved = moved if is_traced(moved) else np.asarray(moved, np.float64)
    found = found + (moved[:, None] if moved.ndim else moved)
    return map_coordinates(input, found.reshape(places.shape), output, order, mode, cval, prefilter)


def rotate(input: Any, angle: Any, axes: tuple[int, int] = (1, 0), reshape: bool = True, output: Any = None, order: int = 3,
           mode: str = "constant", cval: Any = 0.0, prefilter: bool = True) -> Any:
    """The array turned by an angle, in degrees, in the plane of two axes, as scipy.ndimage.rotate.

    Input and, with reshape=False, angle may be traced; else the shape depends on it, and UnsupportedError is raised.  Raises ValueError as
    SciPy does.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.rotate(np.array([[1.0, 2.0], [3.0, 4.0]]), 90, order=1).tolist()
    [[2.0, 4.0], [1.0, 3.0]]
    """
    rank = np.ndim(input)
    if rank < 2:
        raise ValueError("input array should be at least 2D")
    if len(axes) != 2:
        raise ValueError("axes should contain exactly two values")
    plane = sorted(axis + rank if axis < 0 else axis for axis in axes)
    if plane[0] < 0 or plane[1] >= rank or plane[0] == plane[1]:
        raise ValueError("invalid rotation plane specified")
    if reshape and is_traced(angle):
        raise UnsupportedError("rotate by a traced angle: the shape of the result depends on it\n  hint: reshape=False")
    cosine, sine = [by_loop(name, angle) if is_traced(angle) else getattr(scipy_special, name)(angle) for name in ("cosdg", "sindg")]
    turn = np.stack([np.stack([cosine, sine]), np.stack([-sine, cosine])])
    given: Any = taken(input)
    sizes = np.array([given.shape[axis] for axis in plane])
    if reshape:
        bounds = turn @ np.array([[0, 0, sizes[0], sizes[0]], [0, sizes[1], 0, sizes[1]]])
        found_shape = tuple((np.ptp(bounds, axis=1) + 0.5).astype(int).tolist())
    else:
        found_shape = tuple(sizes.tolist())
    offset = (sizes - 1) / 2 - turn @ ((np.array(found_shape) - 1) / 2)

    def turned(one: Any) -> Any:
        return affine_transform(one, turn, offset, found_shape, output, order, mode, cval, prefilter)
    if rank == 2:
        return turned(given)
    planes = np.moveaxis(given, plane, (-2, -1))
    found = vmap(turned)(planes.reshape(-1, *planes.shape[-2:]))
    return np.moveaxis(found.reshape(*planes.shape[:-2], *found_shape), (-2, -1), plane)
