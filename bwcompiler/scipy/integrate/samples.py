"""Of `bw.scipy.integrate`: integrals of samples, sums with the weights of a rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import is_traced, number_value, real_value, value_as
from bwcompiler.frontend.tracing.tracer import fresh


def _lines(y: Any, x: Any, axis: int, points_as: Any = real_value) -> tuple[Any, Any, int]:
    """y with the axis put last, the distances along it (or None), the axis.  points_as: real_value, or number_value for paths, too."""
    values: Any = fresh(number_value(y))
    place = normalize_axis(axis, values.ndim)
    lines = np.moveaxis(values, place, -1)
    if x is None:
        return lines, None, place
    points: Any = fresh(points_as(x))
    if points.ndim not in (1, values.ndim) or points.shape[-1 if points.ndim == 1 else place] != lines.shape[-1]:
        raise ShapeError(f"x of shape {points.shape} does not fit y of shape {values.shape} along axis {axis}")
    return lines, np.diff(points if points.ndim == 1 else np.moveaxis(points, place, -1), axis=-1), place


@graph_function
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """The integral of y along an axis by the trapezoidal rule, at points x or with steps dx.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.integrate.trapezoid(np.array([1.0, 2.0, 3.0])))
    4.0
    """
    kept = number_value if value_as(y).dtype.is_complex else real_value          # SciPy's integral has the dtype of y
    lines, steps, _ = _lines(y, x, axis, kept)
    return ((lines[..., 1:] + lines[..., :-1]) * (dx if steps is None else steps) / 2.0).sum(-1, dtype=lines.dtype)


@graph_function
def cumulative_trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1, initial: float | None = None) -> Any:
    """The integrals of y from the first element to each further one along an axis; with initial=0 also that to the first.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.integrate.cumulative_trapezoid(np.array([1.0, 2.0, 3.0]), initial=0).tolist()
    [0.0, 1.5, 4.0]
    """
    lines, steps, place = _lines(y, x, axis, number_value)
    found = np.cumsum((lines[..., 1:] + lines[..., :-1]) * (dx if steps is None else steps) / 2.0, -1)
    if initial is not None:
        if initial != 0:
            raise ValueError("`initial` must be `None` or `0`.")
        found = np.concatenate([np.zeros((*found.shape[:-1], 1), found.dtype), found], -1)
    return np.moveaxis(found, -1, place)


def _parabolas(lines: Any, steps: Any) -> Any:
    """The sum over pairs of intervals, of lengths h0 and h1, of the integrals of the parabolas through their ends."""
    h0, h1 = steps[..., 0::2], steps[..., 1::2]
    total, product, ratio = h0 + h1, h0 * h1, h0 / h1
    y0, y1, y2 = lines[..., :-2:2], lines[..., 1:-1:2], lines[..., 2::2]
    return (total / 6.0 * (y0 * (2.0 - 1.0 / ratio) + y1 * (total * (total / product)) + y2 * (2.0 - ratio))).sum(-1)


@graph_function
def simpson(y: Any, x: Any = None, *, dx: float = 1.0, axis: int = -1) -> Any:
    """The integral of y along an axis by Simpson's rule, at points x or with steps dx.

    For an even number of points the last interval is that of the parabola through the last three points (Cartwright, 2017).

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.integrate.simpson(np.array([0.0, 1.0, 4.0])).round(8))
    2.66666667
    """
    lines, steps, _ = _lines(y, x, axis)
    count = lines.shape[-1]
    if steps is None:
        steps = np.full(max(count - 1, 0), dx, lines.real.dtype)
    if count < 2:
        return (lines * 0.0).sum(-1)
    if count == 2:
        return 0.5 * steps[..., 0] * (lines[..., 0] + lines[..., 1])
    if count % 2:
        return _parabolas(lines, steps)
    a, b = steps[..., -2], steps[..., -1]
    last = (2 * b**2 + 3 * a * b) / (6 * (b + a)) * lines[..., -1] + (b**2 + 3 * a * b) / (6 * a) * lines[..., -2]
    last = last - b**3 / (6 * a * (a + b)) * lines[..., -3]
    return _parabolas(lines[..., :-1], steps[..., :-1]) + last


@graph_function
def cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    """The integrals of y from the first element to each further one along an axis, of parabolas through three neighbours.

    initial is added to them, and is the one to the first; dx may have one number for each line.  Of two points it is the trapezoidal rule.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.integrate.cumulative_simpson(np.array([0.0, 1.0, 4.0, 9.0]), initial=0).round(6).tolist()
    [0.0, 0.333333, 2.666667, 9.0]
    """
    lines, steps, place = _lines(y, x, axis)
    count = lines.shape[-1]
    if not count:
        raise ValueError("At least one point is required along `axis`.")
    if steps is None:
        width = np.moveaxis(dx, place, -1) if np.ndim(dx) else dx
        steps = np.broadcast_to(np.asarray(width, lines.real.dtype) if not is_traced(width) else width, (*lines.shape[:-1], count - 1))
    steps = np.broadcast_to(steps, (*lines.shape[:-1], count - 1))
    if count < 3:
        found = np.cumsum((lines[..., 1:] + lines[..., :-1]) * steps / 2.0, -1)
    else:
        lines = lines.astype(np.promote_types(lines.dtype, steps.dtype if x is not None else np.float64))
        forward, backward = _first_of_two(lines, steps), _first_of_two(lines[..., ::-1], steps[..., ::-1])[..., ::-1]
        even = np.arange(count - 2) % 2 == 0                                 # the first interval of a parabola, and the second one
        parts = np.where(even, forward, np.concatenate([backward[..., :1], backward[..., :-1]], -1))
        found = np.cumsum(np.concatenate([parts, backward[..., -1:]], -1), -1)
    if initial is not None:
        first: Any = np.broadcast_to(np.moveaxis(initial, place, -1) if np.ndim(initial) else initial, (*found.shape[:-1], 1))
        found = np.concatenate([first, found + first], -1).astype(found.dtype)
    return np.moveaxis(found, -1, place)


def _first_of_two(lines: Any, steps: Any) -> Any:
    """The integrals over the first of two intervals of the parabolas through three points."""
    h, k = steps[..., :-1], steps[..., 1:]
    share = h / (h + k)
    bend = share * (h / k)
    return h / 6 * ((3 - share) * lines[..., :-2] + (3 + bend + share) * lines[..., 1:-1] - bend * lines[..., 2:])


@graph_function
def romb(y: Any, dx: float = 1.0, axis: int = -1) -> Any:
    """The integral of 2**k + 1 equidistant samples by Romberg's method.  Raises ValueError for another number of them.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.integrate.romb(np.arange(5.0) ** 2))
    21.333333333333332
    """
    lines, _, _ = _lines(y, None, axis)
    intervals = lines.shape[-1] - 1
    if intervals < 1 or intervals & (intervals - 1):
        raise ValueError("Number of samples must be one plus a non-negative power of 2.")
    lines = lines.astype(np.promote_types(lines.dtype, np.float64))             # as SciPy's
    rows = [(lines[..., 0] + lines[..., -1]) * (intervals * dx / 2.0)]
    step = intervals
    while step > 1:
        middle = lines[..., step // 2::step].sum(-1) * (step * dx)
        row = [0.5 * (rows[0] + middle)]
        for k, before in enumerate(rows, 1):
            row.append(row[-1] + (row[-1] - before) / (4**k - 1))
        rows, step = row, step // 2
    return rows[-1]
