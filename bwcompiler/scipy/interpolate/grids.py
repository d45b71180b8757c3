"""Of `bw.scipy.interpolate`: `interp1d` in all its kinds, data on regular grids, and what is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import as_tracer, cast, is_traced, number_value, real_value
from bwcompiler.frontend.tracing.stand_ins import StandIn
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import F64
from bwcompiler.scipy.interpolate.b_splines import basis, make_interp_spline, values
from bwcompiler.scipy.interpolate.piecewise import beside, placed
from bwcompiler.scipy.refusals import refused

_DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
_STEPS = ("nearest", "nearest-up", "previous", "next")


# ----- one axis
@graph_function
def _sorted(x: Any, y: Any, axis: int, is_sorted: bool) -> Any:
    points: Any = fresh(real_value(x))
    data: Any = fresh(number_value(y))
    data = np.moveaxis(data, axis, 0)
    if is_sorted:
        return points, data
    order = np.argsort(points, kind="stable")
    return points[order], data[order]


@graph_function
def _on_a_line(x: Any, y: Any, points: Any, kind: str) -> Any:
    """Values at points, whose axes come first, on straight lines or steps that go on outside."""
    x, y, at = fresh(real_value(x)), fresh(number_value(y)), fresh(real_value(points))
    count = x.shape[0]
    if kind == "linear":
        upper = np.clip(np.searchsorted(x, at), 1, count - 1)
        slope = (y[upper] - y[upper - 1]) / beside(x[upper] - x[upper - 1], y[upper])
        return slope * beside(at - x[upper - 1], slope) + y[upper - 1]
    if kind in ("nearest", "nearest-up"):
        middle = x[1:] / 2.0 + x[:-1] / 2.0
        place = np.clip(np.searchsorted(middle, at, "left" if kind == "nearest" else "right"), 0, count - 1)
    elif kind == "previous":
        place = np.clip(np.searchsorted(x, at, "right") - 1, 0, count - 1)
    else:
        place = np.clip(np.searchsorted(x, at, "left"), 0, count - 1)
    return y[place]


@graph_function
def _on_a_spline(t: Any, c: Any, points: Any, k: int) -> Any:
    at = fresh(cast(real_value(points), F64))
    found = values(fresh(real_value(t)), fresh(number_value(c)), k, at)
    return np.where(beside(np.isnan(at), found), math.nan, found)


@graph_function
def _bounded(found: Any, x: Any, points: Any, below: Any, above: Any, axis: int, fills: bool) -> Any:
    """Values outside of the points replaced, and the axes in their places."""
    found, x, at = fresh(number_value(found)), fresh(real_value(x)), fresh(real_value(points))
    if fills:
        rest = found.shape[at.ndim:]
        for outside, fill in ((at < x[0], below), (at > x[-1], above)):
            found = np.where(beside(outside, found), np.broadcast_to(fresh(number_value(fill)), rest), found)
    return placed(found, at.ndim, axis)


class interp1d(StandIn):
    """What scipy.interpolate.interp1d makes, of traced or plain x and y: call it with points.

    kind          linear, nearest, nearest-up, previous, next, zero, slinear, quadratic, cubic, or the degree of a spline.
    fill_value    outside: a number, an array, (below, above), or "extrapolate".
    bounds_error  plain points outside raise ValueError, as SciPy's; a program cannot: traced ones get fill_value, nan by default.

    >>> import numpy as np, bwcompiler as bw
    >>> line = bw.scipy.interpolate.interp1d(np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 4.0]))
    >>> line(np.array([0.5, 2.0])).tolist()
    [1.0, 3.0]
    """

    def __init__(self, x: Any, y: Any, kind: str | int = "linear", axis: int = -1, copy: bool = True, bounds_error: bool | None = None,
                 fill_value: Any = math.nan, assume_sorted: bool = False) -> None:
        super().__init__()
        if kind not in _DEGREES and not isinstance(kind, int) and kind not in ("linear", *_STEPS):
            raise NotImplementedError(f"{kind} is unsupported: Use fitpack routines for other types.")
        if np.ndim(x) != 1:
            raise ValueError("the x array must have exactly one dimension.")
        if np.ndim(y) == 0:
            raise ValueError("the y array must have at least one dimension.")
        self.axis = normalize_axis(axis, np.ndim(y))
        if np.shape(y)[self.axis] != np.shape(x)[0]:
            raise ValueError("x and y arrays must be equal in length along interpolation axis.")
        degree = kind if isinstance(kind, int) else _DEGREES.get(kind)
        least = 1 if degree is None else degree + 1
        if np.shape(x)[0] < least:
            raise ValueError(f"x and y arrays must have at least {least} entries")
        self.x, self._y = _sorted(x, y, self.axis, assume_sorted)
        self._kind = kind
        self._spline = None if degree is None else make_interp_spline(self.x, self._y, degree)
        self.extrapolate = isinstance(fill_value, str) and fill_value == "extrapolate"
        if self.extrapolate and bounds_error:
            raise ValueError("Cannot extrapolate and raise at the same time.")
        shape = np.shape(self._y)[1:]
        below, above = fill_value if isinstance(fill_value, tuple) and len(fill_value) == 2 else (fill_value, fill_value)
        if self.extrapolate:
            first, last = (np.broadcast_to(math.nan, shape), np.broadcast_to(math.nan, shape))
            below, above = (first, self._y[-1]) if kind == "previous" else (self._y[0], last) if kind == "next" else (first, last)
        self.below, self.above = below, above
        self.fills = not self.extrapolate or kind in ("previous", "next")
        unset = isinstance(fill_value, float) and math.isnan(fill_value)
        self.bounds_error = (unset if bounds_error is None else bool(bounds_error)) and not self.extrapolate

    def __call__(self, x: Any) -> Any:
        """Values at x; its axes are at the place of y's axis."""
        if self.bounds_error and not is_traced(x) and not is_traced(self.x):
            self._require_inside(np.asarray(x), np.asarray(self.x))
        if self._spline is None:
            found = _on_a_line(self.x, self._y, x, str(self._kind))
        else:
            found = _on_a_spline(self._spline.t, self._spline.c, x, self._spline.k)
        return _bounded(found, self.x, x, self.below, self.above, self.axis, self.fills)

    @staticmethod
    def _require_inside(points: Any, x: Any) -> None:
        for outside, side, border, name in ((points < x[0], "below", x[0], "minimum"), (points > x[-1], "above", x[-1], "maximum")):
            if np.any(outside):
                value = points[outside].flat[0]
                raise ValueError(f"A value ({value}) in x_new is {side} the interpolation range's {name} value ({border}).")


# ----- grids
_METHODS = {"linear": 1, "nearest": 1, "slinear": 1, "cubic": 3, "quintic": 5}              # the degrees of their splines


@graph_function
def _grid_spline(grid: Any, data: Any, k: int, axis: int) -> Any:
    """Coefficients of the splines along an axis: a product of B-splines has them along all axes."""
    spline = make_interp_spline(fresh(real_value(grid)), fresh(number_value(data)), k, axis=axis)
    return np.moveaxis(spline.c, 0, axis)


def _corners(grid: Any, at: Any, degree: int) -> tuple[Any, list[Any]]:
    """The number of the first coefficient, and the weights of it and those after it."""
    count = grid.shape[0]
    if degree > 1:
        spline = make_interp_spline(grid, np.zeros_like(grid), degree)
        interval, weights = basis(spline.t, degree, count, at)
        return interval - degree, weights
    lower = np.clip(np.searchsorted(grid, at, "right") - 1, 0, count - 2)
    share = (at - grid[lower]) / (grid[lower + 1] - grid[lower])
    return lower, [1.0 - share, share]


@graph_function
def _on_grid(data: Any, points: Any, grid: Any, fill: Any, sizes: tuple[int, ...], degree: int, nearest: bool, fills: bool) -> Any:
    """grid   the points along all axes, one after the other; sizes: how many there are along each."""
    data, at = fresh(number_value(data)), fresh(cast(real_value(points), F64))
    lines = np.split(fresh(cast(real_value(grid), F64)), np.cumsum(sizes)[:-1].tolist())
    found: Any = 0.0
    parts = [_corners(line, at[..., k], degree) for k, line in enumerate(lines)]
    if nearest:
        found = data[tuple([first + (weights[1] > 0.5) for first, weights in parts])]
    else:
        for chosen in itertools.product(*[range(len(weights)) for _, weights in parts]):
            weight: Any = 1.0
            for (_, weights), number in zip(parts, chosen, strict=True):
                weight = weight * weights[number]
            value = data[tuple([first + number for (first, _), number in zip(parts, chosen, strict=True)])]
            found = found + beside(weight, value) * value
    undefined = np.any(np.isnan(at), axis=-1)
    if fills:
        outside: Any = False
        for k, line in enumerate(lines):
            outside = outside | (at[..., k] < line[0]) | (at[..., k] > line[-1])
        found = np.where(beside(outside, found), fresh(number_value(fill)).astype(found.dtype), found)
    return np.where(beside(undefined, found), math.nan, found)


def _coordinates(xi: Any, rank: int) -> Any:
    """Points along the last axis, of an array or of a tuple of arrays that broadcast."""
    if isinstance(xi, tuple) or (isinstance(xi, list) and len(xi) == rank and any(map(is_traced, xi))):
        if len(xi) == 1 and np.ndim(xi[0]) > 1:
            return xi[0]
        return np.stack(np.broadcast_arrays(*xi), -1)
    points: Any = as_tracer(xi) if is_traced(xi) else np.asarray(xi)
    if points.ndim == 1:
        return points[:, None] if rank == 1 else points[None]
    return points


class RegularGridInterpolator(StandIn):
    """What scipy.interpolate.RegularGridInterpolator makes: values on the grid of points, which may be traced, at other points.

    method      linear, nearest, slinear, cubic or quintic (products of splines along the axes).  pchip is refused (UnsupportedError).
    fill_value  outside, where bounds_error is false; None goes on with the outermost pieces.  Plain points outside raise ValueError where
                bounds_error is true; a program cannot: traced ones give nan.

    >>> import numpy as np, bwcompiler as bw
    >>> table = bw.scipy.interpolate.RegularGridInterpolator((np.arange(3.0), np.arange(4.0)), np.arange(12.0).reshape(3, 4))
    >>> table(np.array([[0.5, 1.5], [2.0, 3.0]])).tolist()
    [3.5, 11.0]
    """

    def __init__(self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = math.nan, *,
                 solver: Any = None, solver_args: Any = None) -> None:
        super().__init__()
        if solver is not None or solver_args:
            raise UnsupportedError("RegularGridInterpolator: the systems of splines are solved directly; leave out solver=")
        self.grid = tuple([as_tracer(one) if is_traced(one) else np.asarray(one, np.float64) for one in points])
        self.values: Any = as_tracer(values) if is_traced(values) else np.asarray(values)
        if len(self.grid) > np.ndim(self.values):
            raise ValueError(f"There are {len(self.grid)} point arrays, but values has {np.ndim(self.values)} dimensions")
        for axis, one in enumerate(self.grid):
            if np.ndim(one) != 1 or np.shape(one)[0] != np.shape(self.values)[axis]:
                raise ValueError(f"There are {np.shape(one)[0]} points and {np.shape(self.values)[axis]} values on dimension {axis}")
            if not is_traced(one) and np.all(np.diff(one) < 0):
                self.grid = (*self.grid[:axis], one[::-1].copy(), *self.grid[axis + 1:])
                self.values = np.flip(self.values, axis)
            elif not is_traced(one) and not np.all(np.diff(one) > 0):
                raise ValueError(f"The points in dimension {axis} must be strictly ascending or descending")
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        self._coefficients: dict[int, Any] = {}
        self._degree(method)

    def _degree(self, method: str) -> int:
        if method == "pchip":
            raise UnsupportedError("RegularGridInterpolator: method 'pchip' is not supported\n  hint: 'cubic', or PchipInterpolator")
        if method not in _METHODS:
            raise ValueError(f"Method '{method}' is not defined")
        degree = _METHODS[method]
        for axis, one in enumerate(self.grid):
            if np.shape(one)[0] <= degree:
                raise ValueError(f"There are {np.shape(one)[0]} points in dimension {axis}, but method {method} requires at least "
                                 f"{degree + 1} points per dimension.")
        return degree

    def _spline(self, degree: int) -> Any:
        found: Any = self.values
        if degree > 1:
            for axis, line in enumerate(self.grid):
                found = _grid_spline(line, found, degree, axis)
        return found

    def __call__(self, xi: Any, method: str | None = None) -> Any:
        """Values at points (..., number of axes), or at a tuple of arrays, one per axis."""
        method = self.method if method is None else method
        degree = self._degree(method)
        at = _coordinates(xi, len(self.grid))
        if at.shape[-1] != len(self.grid):
            raise ValueError(f"The requested sample points xi have dimension {at.shape[-1]} but this RegularGridInterpolator has dimension "
                             f"{len(self.grid)}")
        if self.bounds_error and not is_traced(at):
            for axis, line in enumerate(self.grid):
                if not is_traced(line) and not np.all((at[..., axis] >= line[0]) & (at[..., axis] <= line[-1])):
                    raise ValueError(f"One of the requested xi is out of bounds in dimension {axis}")
        fills = self.bounds_error or self.fill_value is not None
        fill = math.nan if self.bounds_error else self.fill_value
        sizes = tuple([int(np.shape(line)[0]) for line in self.grid])
        return _on_grid(self._spline(degree), at, np.concatenate(self.grid), 0.0 if fill is None else fill, sizes, degree,
                        method == "nearest", fills)


def interpn(points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = math.nan) -> Any:
    """RegularGridInterpolator(points, values, ...)(xi), as scipy.interpolate.interpn; "splinef2d" is refused.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.interpolate.interpn((np.arange(3.0),), np.array([0.0, 1.0, 4.0]), np.array([0.5, 1.5])).tolist()
    [0.5, 2.5]
    """
    if method == "splinef2d":
        raise UnsupportedError("interpn: method 'splinef2d' is not supported\n  hint: method='cubic'")
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


# ----- refused
_ON_GRIDS = "RegularGridInterpolator for data on a grid; or bw.pure_callback, which has no derivative"
griddata = refused("interpolate.griddata", "which points are neighbours is found by a triangulation, which is not traced", _ON_GRIDS)
LinearNDInterpolator = refused("interpolate.LinearNDInterpolator", "its triangulation is not traced", _ON_GRIDS)
CloughTocher2DInterpolator = refused("interpolate.CloughTocher2DInterpolator", "its triangulation is not traced", _ON_GRIDS)
NearestNDInterpolator = refused("interpolate.NearestNDInterpolator", "its tree of neighbours is not traced",
                                 "values[np.argmin(bw.scipy.spatial.distance.cdist(points, data), 1)]")
make_smoothing_spline = refused("interpolate.make_smoothing_spline", "its penalty is chosen by an iteration", "make_interp_spline")
