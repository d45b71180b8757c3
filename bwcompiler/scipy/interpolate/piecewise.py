"""Of `bw.scipy.interpolate`: piecewise polynomials, and the cubic ones through given points.

An object holds arrays, traced or plain; what is computed are graph functions.  Start at `PPoly`: the others find the slopes at the points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.inside.loops import scan
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import cast, is_traced, number_value, real_value
from bwcompiler.frontend.tracing.stand_ins import StandIn
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import C128, F64

MOST_DENSE = 128                 # unknowns of a band system up to which it is solved as a dense matrix


# ----- what all interpolators share
@graph_function
def prepared(x: Any, y: Any, axis: int) -> Any:
    """Points as doubles, and the data at them as doubles (or complex ones) with their axis first."""
    value = number_value(y)
    data: Any = fresh(cast(value, C128 if value.dtype.is_complex else F64))
    return fresh(cast(real_value(x), F64)), np.moveaxis(data, axis, 0)


def points_and_data(x: Any, y: Any, axis: int, least: int = 2) -> tuple[Any, Any, int]:
    """x, y with its axis first, and the axis, checked as SciPy does; what is traced has its shape checked."""
    place = normalize_axis(axis, np.ndim(y))
    if np.ndim(x) != 1:
        raise ValueError("`x` must be 1-dimensional.")
    if np.shape(x)[0] < least:
        raise ValueError(f"`x` must contain at least {least} elements.")
    if np.shape(x)[0] != np.shape(y)[place]:
        raise ValueError(f"The length of `y` along `axis`={axis} doesn't match the length of `x`")
    if not is_traced(x):
        if np.iscomplexobj(x) or not np.all(np.isfinite(x)):
            raise ValueError("`x` must contain only finite real values.")
        if np.any(np.diff(x) <= 0):
            raise ValueError("`x` must be strictly increasing sequence.")
    return (*prepared(x, y, place), place)


def placed(found: Any, points: int, axis: int) -> Any:
    """Results whose first axes are those of the points, with these axes at the place of the data's axis."""
    order = list(range(found.ndim))
    return found.transpose(order[points:points + axis] + order[:points] + order[points + axis:]) if axis else found


def beside(x: Any, like: Any) -> Any:
    """One number per element of the first axes of an array, in its rank."""
    return x.reshape(*x.shape, *[1] * (like.ndim - x.ndim))


def solve_rows(rows: Any, right: Any) -> Any:
    """z with a z = right, where rows[i, k + d] = a[i, i + d] for |d| <= k: by elimination without exchanges of rows where a is large.

    Matrices of splines need none: tridiagonal ones are dominated by their diagonals, collocation matrices of B-splines are totally positive
    (C. de Boor and A. Pinkus, 1977).
    """
    n, k = rows.shape[0], rows.shape[1] // 2
    if n <= MOST_DENSE:
        i, j = np.indices((n, n))
        near = np.abs(j - i) <= k
        return np.linalg.solve(np.where(near, rows[i, np.where(near, k + j - i, 0)], 0.0), right)
    width = right.shape[1]

    def eliminate(carry: Any, given: Any) -> Any:
        (upper, before), (row, found) = carry, given
        for d in range(k, 0, -1):                                          # with the row d before, whose first entry is 1
            factor = row[k - d]
            row = row - factor * np.pad(upper[k - d], (k - d, d))
            found = found - factor * before[k - d]
        line, found = row[k:] / row[k], found / row[k]
        return (np.concatenate([upper[1:], line[None]]), np.concatenate([before[1:], found[None]])), (line, found)

    def substitute(after: Any, given: Any) -> Any:
        line, found = given
        found = found - line[1:] @ after
        return np.concatenate([found[None], after[:-1]]), found

    start = (np.zeros((k, k + 1)), np.zeros((k, width), right.dtype))
    lines = scan(eliminate, start, (rows, right))[1]
    return scan(substitute, np.zeros((k, width), right.dtype), lines, reverse=True)[1]


# ----- evaluation
@graph_function
def _evaluate(c: Any, x: Any, points: Any, nu: int, extrapolate: bool | str, axis: int) -> Any:
    c, x, at = fresh(number_value(c)), fresh(real_value(x)), fresh(cast(real_value(points), F64))
    if extrapolate == "periodic":
        at = x[0] + (at - x[0]) % (x[-1] - x[0])
    place = np.clip(np.searchsorted(x, at, "right") - 1, 0, c.shape[1] - 1)
    order = c.shape[0] - 1
    pieces = c[:, place]
    distance = beside(at - x[place], pieces[0])
    found = np.zeros_like(pieces[0])
    for power in range(order, nu - 1, -1):
        found = found * distance + pieces[order - power] * float(math.perm(power, nu))
    outside = np.isnan(at) if extrapolate else np.isnan(at) | (at < x[0]) | (at > x[-1])
    return placed(np.where(beside(outside, found), math.nan, found), at.ndim, axis)


@graph_function
def _antiderivative(c: Any, x: Any) -> Any:
    c, x = fresh(number_value(c)), fresh(real_value(x))
    powers = np.arange(c.shape[0], 0, -1.0)
    raised = c / beside(powers, c)
    steps = beside(np.diff(x), c[0])
    over = np.zeros_like(c[0])
    for one in raised:
        over = (over + one) * steps
    before = np.concatenate([np.zeros_like(over[:1]), np.cumsum(over, 0)[:-1]])
    return np.concatenate([raised, before[None]])


@graph_function
def _integral(c: Any, x: Any, a: Any, b: Any, extrapolate: bool | str) -> Any:
    raised = _antiderivative(c, x)
    start, end = (cast(real_value(one), F64) for one in (a, b))
    if extrapolate != "periodic":
        return _evaluate(raised, x, fresh(end), 0, extrapolate, 0) - _evaluate(raised, x, fresh(start), 0, extrapolate, 0)
    knots = fresh(real_value(x))
    length = knots[-1] - knots[0]
    whole = _evaluate(raised, knots, knots[-1], 0, True, 0)

    def until(point: Any) -> Any:
        times = np.floor((point - knots[0]) / length)
        return whole * times + _evaluate(raised, knots, point - times * length, 0, True, 0)

    return until(fresh(end)) - until(fresh(start))


class PPoly(StandIn):
    """Σ c[m, i, ...] (t - x[i])**(k - m) for t in x[i] .. x[i + 1], as scipy.interpolate.PPoly; c, x and the points may be traced.

    c  coefficients (k + 1, intervals, ...); x  breakpoints, increasing; extrapolate  True, False (nan outside) or "periodic".

    >>> import numpy as np, bwcompiler as bw
    >>> square = bw.scipy.interpolate.PPoly(np.array([[1.0], [0.0], [0.0]]), np.array([0.0, 2.0]))
    >>> square(np.array([1.0, 1.5])).tolist(), float(square.integrate(0.0, 1.0).round(6))
    ([1.0, 2.25], 0.333333)
    """

    def __init__(self, c: Any, x: Any, extrapolate: bool | str | None = None, axis: int = 0) -> None:
        super().__init__()
        if np.ndim(c) < 2 or np.ndim(x) != 1 or np.shape(x)[0] != np.shape(c)[1] + 1:
            raise ValueError(f"number of coefficients {np.shape(c)} does not fit breakpoints {np.shape(x)}")
        self.c, self.x = c, x
        self.extrapolate: bool | str = True if extrapolate is None else extrapolate
        self.axis = axis

    def __call__(self, x: Any, nu: int = 0, extrapolate: bool | str | None = None) -> Any:
        """Values at x, or those of the derivative nu; the axes of x are at the place of the data's axis."""
        return _evaluate(self.c, self.x, x, nu, self.extrapolate if extrapolate is None else extrapolate, self.axis)

    def derivative(self, nu: int = 1) -> PPoly:
        """The piecewise polynomial that is its derivative nu.

        >>> import numpy as np, bwcompiler as bw
        >>> ramp = bw.scipy.interpolate.PPoly(np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([0.0, 1.0, 2.0]))
        >>> ramp.derivative()(np.array([0.5, 1.5])).tolist()
        [1.0, 1.0]
        """
        if nu < 0:
            return self.antiderivative(-nu)
        c: Any = self.c
        for _ in range(nu):
            degree = c.shape[0] - 1
            c = c[:-1] * np.arange(degree, 0, -1.0).reshape(degree, *[1] * (c.ndim - 1)) if degree else c * 0.0
        return PPoly(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The continuous piecewise polynomial whose derivative nu this is, zero at x[0].

        >>> import numpy as np, bwcompiler as bw
        >>> ramp = bw.scipy.interpolate.PPoly(np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([0.0, 1.0, 2.0]))
        >>> ramp.antiderivative()(np.array([1.0, 2.0])).tolist()
        [0.5, 2.0]
        """
        if nu < 0:
            return self.derivative(-nu)
        c = self.c
        for _ in range(nu):
            c = _antiderivative(c, self.x)
        return PPoly(c, self.x, False if self.extrapolate == "periodic" and nu else self.extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: bool | str | None = None) -> Any:
        """The integral from a to b.

        >>> import numpy as np, bwcompiler as bw
        >>> ramp = bw.scipy.interpolate.PPoly(np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([0.0, 1.0, 2.0]))
        >>> float(ramp.integrate(0.0, 2.0))
        2.0
        """
        return _integral(self.c, self.x, a, b, self.extrapolate if extrapolate is None else extrapolate)

    def roots(self, *_: Any, **__: Any) -> Any:
        """Refused: how many there are depends on the data.  Raises UnsupportedError."""
        raise UnsupportedError("roots of a piecewise polynomial: their number depends on the data\n"
                               "  hint: scipy.interpolate.PPoly(c, x).roots() of plain arrays")

    solve = roots


@graph_function
def _hermite(x: Any, y: Any, slopes: Any) -> Any:
    """Coefficients of the cubics with these values and slopes."""
    x, y, s = fresh(real_value(x)), fresh(number_value(y)), fresh(number_value(slopes))
    step = beside(np.diff(x), y)
    chord = np.diff(y, axis=0) / step
    rest = (s[:-1] + s[1:] - 2 * chord) / step
    return np.stack([rest / step, (chord - s[:-1]) / step - rest, s[:-1] + 0 * chord, y[:-1] + 0 * chord])


class CubicHermiteSpline(PPoly):
    """The piecewise cubic with values y and derivatives dydx at x, as scipy.interpolate.CubicHermiteSpline.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.interpolate.CubicHermiteSpline(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.0, 0.0]))(0.5))
    0.5
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: bool | str | None = None) -> None:
        if np.shape(y) != np.shape(dydx):
            raise ValueError("The shapes of `y` and `dydx` must be identical.")
        points, data, place = points_and_data(x, y, axis)
        super().__init__(_hermite(points, data, prepared(x, dydx, place)[1]), points, extrapolate, place)


# ----- slopes of splines
@graph_function
def _spline_slopes(x: Any, y: Any, first: Any, last: Any, kinds: tuple[Any, Any]) -> Any:
    """Slopes at the points so that second derivatives are continuous.

    kinds   of conditions at the two ends: "not-a-knot", "periodic", or the number of the derivative that has the value first or last.
    """
    x, y = fresh(real_value(x)), fresh(number_value(y))
    n, shape = x.shape[0], y.shape
    h, y = np.diff(x), y.reshape(n, -1)
    chord = np.diff(y, axis=0) / h[:, None]
    if n == 2:
        kinds = (1 if isinstance(kinds[0], str) else kinds[0], 1 if isinstance(kinds[1], str) else kinds[1])      # the straight line
    ends = [chord[place] if n == 2 and kind == 1 and given is None else np.zeros_like(y[0]) if given is None
            else fresh(number_value(given)).reshape(-1) for place, kind, given in ((0, kinds[0], first), (-1, kinds[1], last))]
    if n == 3 and kinds == ("not-a-knot", "not-a-knot"):                              # the parabola
        bend = (chord[1] - chord[0]) / (x[2] - x[0])
        middle = chord[0] + bend * h[0]
        return np.stack([middle - 2 * bend * h[0], middle, middle + 2 * bend * h[1]]).reshape(shape)
    if kinds[0] == "periodic":
        return _periodic_slopes(h, chord).reshape(shape)
    inner = np.stack([h[1:], 2 * (h[:-1] + h[1:]), h[:-1]], 1)
    right = 3 * (h[1:, None] * chord[:-1] + h[:-1, None] * chord[1:])
    start = _end_condition(kinds[0], h, chord, ends[0], 1.0)
    end = _end_condition(kinds[1], h[::-1], chord[::-1], ends[1], -1.0)
    rows = np.concatenate([np.stack([0 * h[0], *start[0]])[None], inner, np.stack([*end[0][::-1], 0 * h[0]])[None]])
    return solve_rows(rows, np.concatenate([start[1][None], right, end[1][None]])).reshape(shape)


def _end_condition(kind: Any, h: Any, chord: Any, value: Any, sign: float) -> tuple[tuple[Any, Any], Any]:
    """(the diagonal, the element beside it), the right side: of the row of an end, from which h and chord count."""
    if kind == 1:
        return (0 * h[0] + 1, 0 * h[0]), value
    if kind == 2:
        return (2 * h[0], h[0]), 3 * h[0] * chord[0] - sign * 0.5 * value * h[0] ** 2
    both = h[0] + h[1]
    return (h[1], both), ((h[0] + 2 * both) * h[1] * chord[0] + h[0] ** 2 * chord[1]) / both


def _periodic_slopes(h: Any, chord: Any) -> Any:
    """The cyclic system of the slopes at all points but the last, by that without its last unknown (Sherman and Morrison)."""
    n = chord.shape[0]
    before, after = np.roll(h, 1), h
    right = 3 * (after[:, None] * np.roll(chord, 1, 0) + before[:, None] * chord)
    if n == 2:
        slope = (chord / h[:, None]).sum(0) / (1.0 / h).sum()
        return np.stack([slope, slope, slope])
    rows = np.stack([after, 2 * (before + after), before], 1)[:-1]                     # of unknowns 0 .. n - 2
    rows = rows * np.where((np.arange(n - 1)[:, None] == 0) & (np.arange(3) == 0), 0.0, 1.0)
    rows = rows * np.where((np.arange(n - 1)[:, None] == n - 2) & (np.arange(3) == 2), 0.0, 1.0)
    column = np.concatenate([after[:1], np.zeros(n - 3), before[n - 2:n - 1]]) if n > 2 else after[:1]
    parts = solve_rows(rows, np.concatenate([right[:-1], -column[:, None].astype(right.dtype)], 1))
    free, moved = parts[:, :-1], parts[:, -1:]
    low, high = before[-1], after[-1]                                                # of the last row: unknowns 0 and n - 2
    last = (right[-1] - low * free[0] - high * free[-1]) / (2 * (low + high) + low * moved[0] + high * moved[-1])
    slopes = np.concatenate([free + moved * last, last[None]])
    return np.concatenate([slopes, slopes[:1]])


class CubicSpline(CubicHermiteSpline):
    """The cubic spline through (x, y) along an axis, as scipy.interpolate.CubicSpline; x, y, end values and points may be traced.

    bc_type   "not-a-knot", "natural", "clamped", "periodic", or (start, end) of these or of (1 or 2, the value of that derivative).
    Raises ValueError as SciPy does, of plain arrays for their values too.

    >>> import numpy as np, bwcompiler as bw
    >>> spline = bw.scipy.interpolate.CubicSpline(np.arange(5.0), np.arange(5.0) ** 3)
    >>> float(spline(2.5).round(9)), float(spline(2.5, 1).round(9)), float(spline.integrate(0.0, 2.0).round(9))
    (15.625, 18.75, 4.0)
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: bool | str | None = None) -> None:
        points, data, place = points_and_data(x, y, axis)
        (first, start), (last, end) = _conditions(bc_type, data)
        slopes = _spline_slopes(points, data, start, end, (first, last))
        if extrapolate is None and first == "periodic":
            extrapolate = "periodic"
        PPoly.__init__(self, _hermite(points, data, slopes), points, extrapolate, place)


def _conditions(bc_type: Any, data: Any) -> list[tuple[Any, Any]]:
    both = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    if len(both) != 2:
        raise ValueError("`bc_type` must contain 2 elements to specify start and end conditions.")
    names = [kind for kind in both if isinstance(kind, str)]
    if "periodic" in names and both != ("periodic", "periodic"):
        raise ValueError("'periodic' `bc_type` is defined for both curve ends and cannot be used with other boundary conditions.")
    if "periodic" in names and not is_traced(data) and not np.allclose(data[0], data[-1], rtol=1e-15, atol=1e-15):
        raise ValueError("The first and last `y` point must be identical (within machine precision) when bc_type='periodic'.")
    found: list[tuple[Any, Any]] = []
    for kind in both:
        if isinstance(kind, str):
            if kind not in ("not-a-knot", "periodic", "clamped", "natural"):
                raise ValueError(f"bc_type={kind} is not allowed.")
            number = {"clamped": 1, "natural": 2}.get(kind)
            found.append((kind, None) if number is None else (number, np.zeros(np.shape(data)[1:])))
            continue
        number, value = kind
        if number not in (1, 2):
            raise ValueError("The specified derivative order must be 1 or 2.")
        if np.shape(value) != np.shape(data)[1:]:
            raise ValueError(f"`deriv_value` shape {np.shape(value)} is not the expected one {np.shape(data)[1:]}.")
        found.append((number, value if is_traced(value) else np.asarray(value)))
    return found


# ----- slopes that follow the data
def _real_only(name: str, y: Any) -> None:
    if y.dtype.kind == "c":
        raise ValueError(f"`{name}` only works with real values for `y`. If you are trying to use the real components of the passed array, "
                         f"use `np.real` on the array before passing to `{name}`.")


@graph_function
def _monotone_slopes(x: Any, y: Any) -> Any:
    """Those of F. N. Fritsch and J. Butland (1984), with C. Moler's at the ends."""
    x, y = fresh(real_value(x)), fresh(real_value(y))
    h = beside(np.diff(x), y)
    m = np.diff(y, axis=0) / h
    if y.shape[0] == 2:
        return np.concatenate([m, m])
    flat = (np.sign(m[1:]) != np.sign(m[:-1])) | (m[1:] == 0) | (m[:-1] == 0)
    one, two = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    mean = (one / np.where(flat, 1.0, m[:-1]) + two / np.where(flat, 1.0, m[1:])) / (one + two)
    inner = np.where(flat, 0.0, 1.0 / np.where(flat, 1.0, mean))

    def end(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
        d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
        large = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3.0 * np.abs(m0))
        return np.where(np.sign(d) != np.sign(m0), 0.0, np.where(large, 3.0 * m0, d))[None]

    return np.concatenate([end(h[0], h[1], m[0], m[1]), inner, end(h[-1], h[-2], m[-1], m[-2])])


class PchipInterpolator(CubicHermiteSpline):
    """The cubic that keeps the data's monotonicity, as scipy.interpolate.PchipInterpolator.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.interpolate.PchipInterpolator(np.arange(4.0), np.array([0.0, 0.0, 1.0, 1.0]))(np.array([0.5, 1.5])).tolist()
    [0.0, 0.5]
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: bool | str | None = None) -> None:
        points, data, place = points_and_data(x, y, axis)
        _real_only("PchipInterpolator", data)
        PPoly.__init__(self, _hermite(points, data, _monotone_slopes(points, data)), points, extrapolate, place)


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """PchipInterpolator(xi, yi, axis)(x, der); of a list of orders a list.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.interpolate.pchip_interpolate(np.arange(3.0), np.arange(3.0), 1.5))
    1.5
    """
    found = PchipInterpolator(xi, yi, axis)
    return found(x, der) if isinstance(der, int) else [found(x, number) for number in der]


@graph_function
def _local_slopes(x: Any, y: Any, method: str) -> Any:
    """Those of H. Akima (1970), or of their modification that flat stretches do not overshoot."""
    x, y = fresh(real_value(x)), fresh(real_value(y))
    chord = np.diff(y, axis=0) / beside(np.diff(x), y)
    if y.shape[0] == 2:
        return np.concatenate([chord, chord])
    low = 2.0 * chord[0] - chord[1]
    high = 2.0 * chord[-1] - chord[-2]
    m = np.concatenate([(2.0 * low - chord[0])[None], low[None], chord, high[None], (2.0 * high - chord[-1])[None]])
    change = np.abs(np.diff(m, axis=0))
    after, before = change[2:], change[:-2]
    if method == "makima":
        size = np.abs(m[1:] + m[:-1])
        after, before = after + 0.5 * size[2:], before + 0.5 * size[:-2]
    both = after + before
    known = both > 1e-9 * np.max(both)                                   # else the slope is not defined
    weight = before / np.where(known, both, 1.0)
    return np.where(known, m[1:-2] + weight * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))


class Akima1DInterpolator(CubicHermiteSpline):
    """Akima's cubic, as scipy.interpolate.Akima1DInterpolator; method "akima" or "makima"; nan outside unless extrapolate is true.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.interpolate.Akima1DInterpolator(np.arange(4.0), np.arange(4.0) * 2)(1.25))
    2.5
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: bool | str | None = None) -> None:
        if method not in ("akima", "makima"):
            raise NotImplementedError(f"`method`={method} is unsupported.")
        points, data, place = points_and_data(x, y, axis)
        _real_only("Akima1DInterpolator", data)
        slopes = _local_slopes(points, data, method)
        PPoly.__init__(self, _hermite(points, data, slopes), points, False if extrapolate is None else extrapolate, place)
