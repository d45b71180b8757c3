"""Of `bw.scipy.interpolate`: B-splines, and those through given points, on traced and on plain arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import cast, is_traced, number_value, real_value
from bwcompiler.frontend.tracing.stand_ins import StandIn
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import F64
from bwcompiler.scipy.interpolate.piecewise import beside, placed, points_and_data, solve_rows


def basis(t: Any, k: int, count: int, at: Any) -> tuple[Any, list[Any]]:
    """Per point the number l of its interval, and the k + 1 B-splines l - k .. l of the knots that are not zero there (Cox and de Boor)."""
    interval = np.clip(np.searchsorted(t, at, "right") - 1, k, count - 1)
    found = [np.ones_like(at)]
    for degree in range(1, k + 1):
        carried, longer = np.zeros_like(at), []
        for r, one in enumerate(found):
            right, left = t[interval + (r + 1)], t[interval + (r + 1 - degree)]
            width = right - left
            share = np.where(width == 0, 0.0, one / np.where(width == 0, 1.0, width))
            longer.append(carried + (right - at) * share)
            carried = (at - left) * share
        found = [*longer, carried]
    return interval, found


def differentiated(t: Any, c: Any, k: int) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree of the derivative; of degree 0 it is zero."""
    if k == 0:
        return t, c * 0.0, 0
    n = t.shape[0] - k - 1
    width = t[k + 1:k + n] - t[1:n]
    slope = np.where(width == 0, 0.0, k / np.where(width == 0, 1.0, width))
    return t[1:-1], (c[1:n] - c[:n - 1]) * beside(slope, c), k - 1


def values(t: Any, c: Any, k: int, at: Any, nu: int = 0) -> Any:
    """The derivative nu of the spline at points, by the polynomials of the intervals."""
    c = c[:t.shape[0] - k - 1]
    for _ in range(nu):
        t, c, k = differentiated(t, c, k)
    interval, found = basis(t, k, t.shape[0] - k - 1, at)
    total: Any = 0.0
    for j, one in enumerate(found):
        total = total + beside(one, c[interval]) * c[interval - k + j]
    return total


@graph_function
def _evaluate(t: Any, c: Any, points: Any, k: int, nu: int, extrapolate: bool | str, axis: int) -> Any:
    t, c, at = fresh(real_value(t)), fresh(number_value(c)), fresh(cast(real_value(points), F64))
    low, high = t[k], t[t.shape[0] - k - 1]
    if extrapolate == "periodic":
        at = low + (at - low) % (high - low)
    found = values(t, c, k, at, nu)
    outside = np.isnan(at) if extrapolate else np.isnan(at) | (at < low) | (at > high)
    return placed(np.where(beside(outside, found), math.nan, found), at.ndim, axis)


class BSpline(StandIn):
    """Σ c[j] B_j(x; k, t), as scipy.interpolate.BSpline; knots, coefficients and points may be traced.

    t  knots, n + k + 1 of them, not descending; c  n coefficients along the first axis; extrapolate  True, False (nan) or "periodic".

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.interpolate.BSpline(np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0]), 1)(np.array([1.0, 1.5])).tolist()
    [1.0, 2.0]
    """

    def __init__(self, t: Any, c: Any, k: int, extrapolate: bool | str = True, axis: int = 0) -> None:
        super().__init__()
        if k < 0:
            raise ValueError("Spline order cannot be negative.")
        self.axis = axis + np.ndim(c) if axis < 0 else axis
        n = np.shape(t)[0] - k - 1
        if np.ndim(t) != 1 or n < k + 1:
            raise ValueError(f"Need at least {2 * k + 2} knots for degree {k}")
        if np.shape(c)[self.axis] < n:
            raise ValueError("Knots, coefficients and degree are inconsistent.")
        if not is_traced(t) and (np.any(np.diff(t) < 0) or not np.all(np.isfinite(t))):
            raise ValueError("Knots must be in a non-decreasing order.")
        self.t, self.k, self.extrapolate = t, k, extrapolate
        self.c: Any = np.moveaxis(c if is_traced(c) else np.asarray(c), self.axis, 0)

    def __call__(self, x: Any, nu: int = 0, extrapolate: bool | str | None = None) -> Any:
        """Values at x, or those of the derivative nu; the axes of x are at the place of the coefficients' axis."""
        return _evaluate(self.t, self.c, x, self.k, nu, self.extrapolate if extrapolate is None else extrapolate, self.axis)

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree.

        >>> import numpy as np, bwcompiler as bw
        >>> spline = bw.scipy.interpolate.make_interp_spline(np.arange(5.0), np.arange(5.0) ** 2)
        >>> [np.shape(part) for part in spline.tck]
        [(9,), (5,), ()]
        """
        return self.t, self.c, self.k

    def derivative(self, nu: int = 1) -> BSpline:
        """The spline that is the derivative nu.

        >>> import numpy as np, bwcompiler as bw
        >>> spline = bw.scipy.interpolate.make_interp_spline(np.arange(5.0), np.arange(5.0) ** 2)
        >>> float(spline.derivative()(1.5).round(4))
        3.0
        """
        t, c, k = self.t, self.c[:np.shape(self.t)[0] - self.k - 1], self.k
        for _ in range(nu):
            t, c, k = differentiated(t, c, k)
        return self._like(t, c, k, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """The spline whose derivative nu this is.

        >>> import numpy as np, bwcompiler as bw
        >>> spline = bw.scipy.interpolate.make_interp_spline(np.arange(5.0), np.arange(5.0) ** 2)
        >>> float(spline.antiderivative()(3.0).round(4))
        9.0
        """
        t, c, k = self.t, self.c[:np.shape(self.t)[0] - self.k - 1], self.k
        for _ in range(nu):
            width = beside((t[k + 1:] - t[:-k - 1]) / (k + 1), c)
            c = np.concatenate([np.zeros_like(c[:1]), np.cumsum(c * width, 0)])
            t, k = np.concatenate([t[:1], t, t[-1:]]), k + 1
        return self._like(t, c, k, False if self.extrapolate == "periodic" and nu else self.extrapolate)

    def integrate(self, a: Any, b: Any, extrapolate: bool | str | None = None) -> Any:
        """The integral from a to b; raises UnsupportedError for a periodic one.

        >>> import numpy as np, bwcompiler as bw
        >>> spline = bw.scipy.interpolate.make_interp_spline(np.arange(5.0), np.arange(5.0) ** 2)
        >>> float(spline.integrate(0.0, 3.0).round(4))
        9.0
        """
        chosen = self.extrapolate if extrapolate is None else extrapolate
        if chosen == "periodic":
            raise UnsupportedError("the integral of a periodic B-spline is not supported\n  hint: CubicSpline(..., bc_type='periodic')")
        whole = self.antiderivative()
        t, k = self.t, self.k
        low, high = t[k], t[np.shape(t)[0] - k - 1]
        if chosen is False:                                       # SciPy integrates over what lies inside
            a, b = (np.clip(one, low, high) for one in (a, b))
        return _evaluate(whole.t, whole.c, b, whole.k, 0, True, 0) - _evaluate(whole.t, whole.c, a, whole.k, 0, True, 0)

    def _like(self, t: Any, c: Any, k: int, extrapolate: bool | str) -> BSpline:
        made = BSpline(t, c, k, extrapolate)
        made.axis = self.axis
        return made


# ----- through points
def _knots(x: Any, k: int, conditions: bool) -> Any:
    """SciPy's: not-a-knot, or one knot at each point where there are conditions at the ends."""
    first, last = x[:1], x[-1:]
    if conditions:
        return np.concatenate([first] * k + [x] + [last] * k)
    inner, cut = (x, (k + 1) // 2) if k % 2 else ((x[1:] + x[:-1]) / 2, k // 2)
    return np.concatenate([first] * (k + 1) + [inner[cut:inner.shape[0] - cut]] + [last] * (k + 1))


@graph_function
def collocation(x: Any, t: Any, k: int, left: tuple[int, ...], right: tuple[int, ...]) -> Any:
    """The matrix of the spline's values at x, and of derivatives at its ends, as rows for `solve_rows`.

    The value at each end is the outermost row, and the derivatives there, the lowest outermost, are next: so no pivot is zero.
    """
    x, t = fresh(real_value(x)), fresh(real_value(t))
    count, wide = t.shape[0] - k - 1, 2 * k + 1
    interval, found = basis(t, k, count, x)
    points = x.shape[0]
    numbers = np.arange(points) + np.where(np.arange(points) == 0, 0, len(left)) + np.where(np.arange(points) == points - 1, len(right), 0)
    rows = np.zeros((points, wide))
    for j, one in enumerate(found):
        rows = rows + np.where(np.arange(wide) == (interval + j - numbers)[:, None], one[:, None], 0.0)

    def derivative(order: int, point: Any, number: int) -> Any:
        return np.pad(values(t, np.eye(count), k, point, order), k)[number:number + wide][None]

    return np.concatenate([
        rows[:1], *[derivative(order, x[0], 1 + number) for number, order in enumerate(left)], rows[1:-1],
        *[derivative(order, x[-1], count - 1 - len(right) + number) for number, order in enumerate(right)], rows[-1:]])


@graph_function
def _coefficients(x: Any, t: Any, y: Any, at_left: Any, at_right: Any, k: int, left: tuple[int, ...], right: tuple[int, ...]) -> Any:
    data = fresh(number_value(y))
    parts = (data[:1], at_left, data[1:-1], at_right, data[-1:])
    right_side = np.concatenate([fresh(number_value(one)) for one in parts if np.shape(one)[0]])
    found = solve_rows(collocation(x, t, k, left, right), right_side.reshape(right_side.shape[0], -1))
    return found.reshape(right_side.shape)


def _conditions(given: Any, shape: tuple[int, ...], outermost: int) -> tuple[tuple[int, ...], Any]:
    """Orders of derivatives at an end, the lowest at the outermost place (0 or -1), and what they are."""
    if given is None:
        return (), np.zeros((0, *shape))
    if isinstance(given, str):
        if given not in ("clamped", "natural"):
            raise ValueError(f"Unknown boundary condition : {given}")
        return (1 if given == "clamped" else 2,), np.zeros((1, *shape))
    orders, found = zip(*sorted(given, key=lambda one: int(one[0]), reverse=outermost != 0), strict=True)
    return tuple(int(order) for order in orders), np.stack([one if is_traced(one) else np.asarray(one, np.float64) for one in found])


def make_interp_spline(x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True) -> BSpline:
    """The B-spline of degree k through (x, y) along an axis, as scipy.interpolate.make_interp_spline; x, t, y may be traced.

    bc_type   None, "not-a-knot", "natural", "clamped", or (start, end) of these or of lists of (order, value of that derivative).

    Raises UnsupportedError for periodic conditions, ValueError if the conditions are too many or too few.

    >>> import numpy as np, bwcompiler as bw
    >>> spline = bw.scipy.interpolate.make_interp_spline(np.arange(5.0), np.arange(5.0) ** 2)
    >>> float(spline(2.5).round(9)), float(spline(2.5, 1).round(9))
    (6.25, 5.0)
    """
    if isinstance(bc_type, str) and bc_type == "periodic":
        raise UnsupportedError("make_interp_spline: periodic conditions are not supported\n  hint: CubicSpline(x, y, bc_type='periodic')")
    points, data, place = points_and_data(x, y, axis, 1)
    none = bc_type is None or (isinstance(bc_type, str) and bc_type == "not-a-knot")
    start, end = (None, None) if none else (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    shape = np.shape(data)[1:]
    (left, at_left), (right, at_right) = _conditions(start, shape, 0), _conditions(end, shape, -1)
    if k == 0 or (k == 1 and t is None):
        if left or right or t is not None:
            raise ValueError(f"Too much info for k={k}: bc_type can only be None.")
        parts = [points, points[-1:]] if k == 0 else [points[:1], points, points[-1:]]
        return _made(np.concatenate(parts), data, k, place)
    knots = _knots(points, k, bool(left or right)) if t is None else t if is_traced(t) else np.asarray(t, np.float64)
    count = np.shape(knots)[0] - k - 1
    if count < np.shape(points)[0]:
        raise ValueError(f"Got {np.shape(knots)[0]} knots, need at least {np.shape(points)[0] + k + 1}.")
    if count - np.shape(points)[0] != len(left) + len(right):
        raise ValueError(f"The number of derivatives at boundaries does not match: expected {count - np.shape(points)[0]}, "
                         f"got {len(left)}+{len(right)}")
    return _made(knots, _coefficients(points, knots, data, at_left, at_right, k, left, right), k, place)


@graph_function
def _fitted(x: Any, t: Any, y: Any, w: Any, k: int) -> Any:
    points, t, data = fresh(real_value(x)), fresh(real_value(t)), fresh(number_value(y))
    unit: Any = fresh(number_value(np.eye(t.shape[0] - k - 1)))
    matrix = values(t, unit, k, points)                                      # element i, j is B_j(x_i)
    rows = data.reshape(data.shape[0], -1)
    if w is not None:
        weight = fresh(real_value(w))[:, None]
        matrix, rows = weight * matrix, weight * rows
    return np.linalg.lstsq(matrix, rows)[0].reshape(-1, *data.shape[1:])


def make_lsq_spline(x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, check_finite: bool = True, *,
                    method: str = "qr") -> BSpline:
    """The B-spline of degree k with knots t that is nearest to (x, y) in the sense of least squares; all may be traced.

    w  a factor of each distance.  Raises ValueError as SciPy does, except that Schoenberg and Whitney's conditions are not checked.

    >>> import numpy as np, bwcompiler as bw
    >>> spline = bw.scipy.interpolate.make_lsq_spline(np.arange(5.0), np.array([0.0, 2.0, 1.0, 3.0, 4.0]), np.array([0.0, 0, 4, 4]), 1)
    >>> float(spline(2.0).round(9))
    2.0
    """
    points, data, place = points_and_data(x, y, axis, 1)
    knots = t if is_traced(t) else np.asarray(t, np.float64)
    if np.ndim(knots) != 1 or np.shape(knots)[0] < 2 * k + 2:
        raise ValueError(f"Need at least {2 * k + 2} knots for degree {k}")
    if w is not None and np.shape(w) != np.shape(points):
        raise ValueError(f"Shapes of weights and of points are not equal: {np.shape(w)}, {np.shape(points)}")
    return _made(knots, _fitted(points, knots, data, w, k), k, place)


def _made(t: Any, c: Any, k: int, axis: int) -> BSpline:
    made = BSpline(t, c, k)
    made.axis = axis
    return made


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Values of the spline (t, c, k), or BSpline, at x, or of its derivative; outside by ext: 0 as it goes on, 1 zero, 3 as at the border.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.interpolate.splev(1.5, (np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0]), 1)))
    2.0
    """
    t, c, k = tck.tck if isinstance(tck, BSpline) else tck
    if ext not in (0, 1, 3):
        raise UnsupportedError(f"splev: ext={ext} is not supported: a program cannot raise for the value of a point\n  hint: ext=0, 1 or 3")
    low, high = t[k], t[np.shape(t)[0] - k - 1]
    spline = BSpline(t, c, k)
    if ext == 0 or (ext == 3 and der):                        # FITPACK's derivatives go on outside
        return spline(x, der)
    found = spline(np.clip(x, low, high), der)
    return found if ext == 3 else np.where((x >= low) & (x <= high), found, 0.0)
