"""Differences, integrals, polynomials, convolutions and grids: np.diff, gradient, trapezoid, polyval, convolve, linspace, ..."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError, ShapeError, UnsupportedError
from bwcompiler.frontend.numpy.axes import axes_in_order, normalize_axis
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import operator
from bwcompiler.frontend.numpy.linalg.linear import dot, pair
from bwcompiler.frontend.numpy.manipulation.joining import concatenate, stack
from bwcompiler.frontend.numpy.manipulation.layout import broadcast_to, everything, indexed, moveaxis, reshaped
from bwcompiler.frontend.numpy.reductions.reductions import cumsum, sum_
from bwcompiler.frontend.tracing.control_flow.branches import cond
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import (
    _holds_tracers,
    as_tracer,
    broadcast_shapes,
    cast,
    filled,
    kind_of,
    materialise,
    operand,
    reshape,
    value_as,
)
from bwcompiler.frontend.tracing.promotion import common_dtype, requested, require_cast, strong
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.storages.strided_views import BasicItem, Slice
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.ir.extent import known_le
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, F64, I64

NOTHING = np._NoValue
WIDE = 32      # from this kernel size on, testing for non-finite elements is cheaper than selecting the elements inside the array


# ----- differences and integrals
def part(x: Tracer, axis: int, start: int, size: int) -> Tracer:
    """A view of some elements along an axis."""
    items: list[BasicItem] = [everything(extent) for extent in x.shape]
    items[axis] = Slice(start, size, 1)
    return indexed(x, items)


def _along(x: Any, axis: int, rank: int) -> Any:
    """An array of one axis, shaped to broadcast along `axis` of one with `rank` axes."""
    line = as_tracer(x)
    return fresh(reshape(value_of(line), tuple([line.size if k == axis else 1 for k in range(rank)])))


@implements(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = NOTHING, append: Any = NOTHING) -> Any:
    x = as_tracer(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    if n == 0:
        return x
    if not x.ndim:
        raise ValueError("diff requires input that is at least one dimensional")
    place = normalize_axis(axis, x.ndim)
    parts = [_as_slab(one, x, place) for one in (prepend, x, append) if one is not NOTHING]
    if len(parts) > 1:
        x = concatenate(parts, place)
    for _ in range(n):
        extent = x.shape[place]
        name = "not_equal" if x._type.dtype is BOOL else "subtract"
        x = operator(name, part(x, place, 1, _one_less(extent)) if extent else x, part(x, place, 0, _one_less(extent)))
    return x


def _one_less(extent: Any) -> Any:
    """The number of pairs of neighbours among `extent` elements."""
    if isinstance(extent, int):
        return max(extent - 1, 0)
    if not known_le(1, extent):
        raise UnsupportedError(f"differences of {extent} elements: by the bounds of the loop, there may be none\n"
                               "  hint: choose the bounds of the loop so that there is at least one")
    return extent - 1


def _as_slab(one: Any, x: Tracer, axis: int) -> Any:
    made = as_tracer(one)
    return made if made.ndim else broadcast_to(made, (*x.shape[:axis], 1, *x.shape[axis + 1:]))


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    x = as_tracer(ary)
    line = reshaped(x, (x.size,))
    for one in (to_begin, to_end):
        if one is not None:
            require_cast(strong(kind_of(one)), x._type.dtype, "same_kind", "np.ediff1d: to_begin, to_end")
    if x._type.dtype is BOOL:
        raise DTypeError("np.ediff1d: booleans cannot be subtracted; convert them, x.astype(int)")
    parts = [fresh(cast(value_of(reshaped(as_tracer(one), (as_tracer(one).size,))), x._type.dtype)) if one is not inner else one
             for inner in (diff(line),) for one in (to_begin, inner, to_end) if one is not None]
    return parts[0] if len(parts) == 1 else concatenate(parts)


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    values = as_tracer(y)
    place = normalize_axis(axis, values.ndim)
    count = _one_less(values.shape[place])
    both = operator("add", part(values, place, values.shape[place] - count, count), part(values, place, 0, count))
    width: Any = dx
    if x is not None:
        width = as_tracer(diff(x, axis=0 if as_tracer(x).ndim == 1 else axis))
        width = _along(width, place, values.ndim) if width.ndim == 1 else width
    return sum_(operator("divide", operator("multiply", width, both), 2.0), axis)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    x = as_tracer(f)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    if not x._type.dtype.is_differentiable:
        if x._type.dtype is BOOL:
            raise TypeError("numpy boolean subtract, the `-` operator, is not supported, use the bitwise_xor, the `^` operator, or "
                            "the logical_xor function instead.")
        x = as_tracer(x.astype(np.float64))
    axes = tuple(range(x.ndim)) if axis is None else axes_in_order(axis, x.ndim)
    spacings = list(varargs) if len(varargs) > 1 or any(np.ndim(one) for one in varargs) else list(varargs or (1.0,)) * len(axes)
    if len(spacings) != len(axes):
        raise TypeError("invalid number of arguments")
    results = [as_tracer(_gradient_along(x, k, spacing, edge_order)).astype(x.dtype) for k, spacing in zip(axes, spacings, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


def _gradient_along(x: Tracer, axis: int, spacing: Any, edge_order: int) -> Any:
    count = x.shape[axis]
    if not known_le(edge_order + 1, count):
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements "
                         "are required.")
    if np.ndim(spacing):
        steps = _steps(spacing, count)
        known = isinstance(steps, np.ndarray)
        if not (known and (steps == steps[0]).all()):
            return _uneven(x, axis, steps, edge_order)
        spacing = steps[0]
    inner = bool(known_le(3, count))
    if not inner and not isinstance(count, int):
        raise UnsupportedError(f"np.gradient of {count} elements: by the bounds of the loop, there may be fewer than three")
    at = [part(x, axis, k, 1) for k in (0, 1, 2, count - 3, count - 2, count - 1) if inner or 0 <= k < count]
    if edge_order == 1:
        first = (at[1] - at[0]) / spacing
        last = (at[-1] - at[-2]) / spacing
    else:
        first = (at[0] * -1.5 + at[1] * 2.0 - at[2] * 0.5) / spacing
        last = (at[-3] * 0.5 - at[-2] * 2.0 + at[-1] * 1.5) / spacing
    middle = (part(x, axis, 2, count - 2) - part(x, axis, 0, count - 2)) / (spacing * 2.0) if inner else None
    return concatenate([first, middle, last] if middle is not None else [first, last], axis)


def _steps(coordinates: Any, count: int) -> Any:
    if np.ndim(coordinates) != 1:
        raise ValueError("distances must be either scalars or 1d")
    if np.shape(coordinates)[0] != count:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    return diff(coordinates) if isinstance(coordinates, Tracer) else np.diff(np.asarray(coordinates, np.float64))


def _uneven(x: Tracer, axis: int, steps: Any, edge_order: int) -> Any:
    """Second order in the interior, from the parabola through three neighbours; edges of the given order."""
    count: Any = x.shape[axis]

    def weighted(start: int, size: int, weights: list[Any]) -> Any:
        terms = [part(x, axis, start + k, size) * _along(weight, axis, x.ndim) for k, weight in enumerate(weights)]
        return sum(terms[1:], terms[0])

    h, k = steps[:-1], steps[1:]
    pieces = [weighted(0, count - 2, [-k / (h * (h + k)), (k - h) / (h * k), h / (k * (h + k))])] if known_le(3, count) else []
    if edge_order == 1:
        first, last = [(part(x, axis, n + 1, 1) - part(x, axis, n, 1)) / _along(steps[n:n + 1], axis, x.ndim) for n in (0, count - 2)]
    else:
        a, b = steps[:1], steps[1:2]
        first = weighted(0, 1, [-(2.0 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b))])
        a, b = steps[-2:-1], steps[-1:]
        last = weighted(count - 3, 1, [b / (a * (a + b)), -(b + a) / (a * b), (2.0 * b + a) / (b * (a + b))])
    return concatenate([first, *pieces, last], axis)


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * math.pi) -> Any:
    x = as_tracer(p)
    place = normalize_axis(axis, x.ndim)
    steps = as_tracer(diff(x, axis=place))
    dtype = common_dtype((steps._type.dtype, kind_of(period)))
    limit = period / 2 if discont is None else discont
    half, odd = divmod(period, 2) if dtype.is_integer else (period / 2, 0)
    moved: Any = np.mod(steps - -half, period) + -half                   # in the dtype of small integers, which wraps around as in NumPy
    if not odd:
        moved = np.where((moved == -half) & (steps > 0), half, moved).astype(moved.dtype)
    correction = as_tracer(np.where(np.abs(steps) < limit, 0, moved - steps))
    start = as_tracer(x.astype(dtype.numpy))
    if not x.shape[place]:
        return start
    rest = operator("add", part(x, place, 1, x.shape[place] - 1), cumsum(correction.astype((moved - steps).dtype), place))
    return concatenate([part(start, place, 0, 1), as_tracer(rest).astype(dtype.numpy)], place)


# ----- polynomials, the highest power first
def _one_axis(x: Any, name: str) -> Tracer:
    made = as_tracer(x)
    if made.ndim != 1:
        raise ShapeError(f"np.{name}: expected an array with one axis, got shape {made.shape}")
    return made


def _promoted(x: Any) -> Tracer:
    """Booleans as the integers that NumPy computes with."""
    made = as_tracer(x)
    return as_tracer(made.astype(np.int64)) if made._type.dtype is BOOL else made


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    result: Any = np.zeros_like(as_tracer(x))
    for coefficient in as_tracer(p):  # type: ignore[attr-defined]
        result = operator("add", operator("multiply", result, x), coefficient)
    return result


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: Any = False) -> Any:
    base = _one_axis(x, "vander")
    base = as_tracer(base.astype(np.promote_types(base.dtype, np.int64)))
    count = base.shape[0] if N is None else N
    powers = [operator("power", base, k) for k in range(count)]
    if not powers:
        return fresh(filled(0, base._type.dtype, (*base.shape, 0)))
    return stack(powers if increasing else powers[::-1], 1)


def _polynomial_sum(name: str) -> Any:
    def function(a1: Any, a2: Any) -> Any:
        x, y = (np.atleast_1d(as_tracer(one)) for one in (a1, a2))
        size = max(x.size, y.size)
        padded = [np.pad(one, (size - one.size, 0)) if one.size < size else one for one in (x, y)]
        return operator(name, *padded)
    return function


implements(np.polyadd)(_polynomial_sum("add"))
implements(np.polysub)(_polynomial_sum("subtract"))


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """NumPy removes leading coefficients that are zero.  For traced coefficients that is not known: all of them count."""
    return convolve(*[one if isinstance(one, Tracer) else _without_leading_zeros(one) for one in (a1, a2)])


def _without_leading_zeros(coefficients: Any) -> Any:
    if _holds_tracers([coefficients]):
        return coefficients
    found = np.atleast_1d(coefficients)
    return np.trim_zeros(found, "f") if found.any() else found[:1] * 0


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> NoReturn:
    raise UnsupportedError("np.polydiv: the number of coefficients of the remainder depends on data that is not known while tracing\n"
                           "  hint: its steps, q[k] = r[k] / v[0] and r[k:k + len(v)] -= q[k] * v for k in range(len(u) - len(v) + 1)")


@implements(np.polyder)
def polyder(p: Any, m: Any = 1) -> Any:
    x = _one_axis(p, "polyder")
    for _ in range(m):
        degree = x.size - 1
        x = operator("multiply", part(x, 0, 0, max(degree, 0)), np.arange(degree, 0, -1))
    return x


@implements(np.polyint)
def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    x = _one_axis(p, "polyint")
    constants = [0.0] * m if k is None else list(np.broadcast_to(np.asarray(k), (m,)))
    for constant_of in constants:
        x = concatenate([operator("divide", x, np.arange(x.size, 0, -1)), np.array([constant_of])])
    return x


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    points, heights = as_tracer(x) + 0.0, as_tracer(y) + 0.0
    if points.ndim != 1 or heights.ndim not in (1, 2) or heights.shape[0] != points.shape[0]:
        raise TypeError(f"np.polyfit: x and y of shapes {points.shape} and {heights.shape} do not fit")
    matrix = np.vander(points, int(deg) + 1)
    if w is not None:
        weights = as_tracer(w) + 0.0
        matrix = matrix * weights[:, None]
        heights = heights * (weights[:, None] if heights.ndim == 2 else weights)
    scale: Any = np.sqrt((matrix * matrix).sum(0))
    cutoff = points.shape[0] * float(np.finfo(points.dtype).eps) if rcond is None else float(rcond)
    if not full and not cov:
        found: Any = np.linalg.pinv(matrix / scale, rcond=cutoff) @ heights
        return found / (scale[:, None] if heights.ndim == 2 else scale)
    found, rest, rank, values = np.linalg.lstsq(matrix / scale, heights, cutoff)
    found = found / (scale[:, None] if heights.ndim == 2 else scale)
    if full:
        return found, rest, rank, values, cutoff
    order = matrix.shape[1]
    if cov != "unscaled" and points.shape[0] <= order:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    base: Any = np.linalg.inv((matrix / scale).T @ (matrix / scale)) / (scale[:, None] * scale)
    factor = 1.0 if cov == "unscaled" else rest / (points.shape[0] - order)
    return found, (base if heights.ndim == 1 else base[:, :, None]) * factor


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    roots: Any = np.atleast_1d(as_tracer(seq_of_zeros))
    found: Any
    if roots.ndim == 2 and roots.shape[0] == roots.shape[1] and roots.shape[0]:
        value = value_of(roots)
        value = value if value.dtype.is_differentiable else cast(value, F64)
        found = poly(fresh(ops.eigvals(value)))                            # the characteristic polynomial, real for a real matrix
        return found if value.dtype.is_complex else found.real
    if roots.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    dtype = np.dtype(np.mintypecode(roots.dtype.char))
    found, roots, nothing = np.ones(1, dtype), roots.astype(dtype), np.zeros(1, dtype)
    for k in range(roots.shape[0]):
        found = concatenate([found, nothing]) - concatenate([nothing, found * roots[k]])
    return as_tracer(found)


# ----- convolutions
@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    x, y = (_one_axis(np.atleast_1d(as_tracer(item)), "convolve") for item in (a, v))
    if not x.size or not y.size:
        raise ValueError(f"{'a' if not x.size else 'v'} cannot be empty")
    if y.size > x.size:
        x, y = y, x
    return _slid(x, indexed(y, [Slice(y.size - 1, y.size, -1)]), mode, y.size)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    x, y = (_one_axis(item, "correlate") for item in (a, v))
    y = as_tracer(np.conjugate(y)) if y._type.dtype.is_complex else y
    if y.size > x.size:
        flipped = _slid(y, x, mode, x.size)
        return indexed(flipped, [Slice(flipped.size - 1, flipped.size, -1)])
    return _slid(x, y, mode, y.size)


def _slid(x: Tracer, kernel: Tracer, mode: Any, width: int) -> Tracer:
    """Products of `kernel` with the windows of x."""
    modes = ("valid", "same", "full")
    mode = modes[mode] if isinstance(mode, int) and 0 <= mode < 3 else mode
    if mode not in modes:
        raise (TypeError if mode is None else ValueError)(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    low, high = {"valid": (0, 0), "full": (width - 1, width - 1), "same": (width // 2, (width - 1) // 2)}[mode]
    a, b = map(fresh, pair(x, kernel))
    if not low or not a._type.dtype.is_differentiable:
        return _products_of_padded(a, b, low, high)
    if width < WIDE:
        return _products_within(a, b, low, high)
    return cond(np.all(np.isfinite(b)), lambda a, b: _products_of_padded(a, b, low, high),  # type: ignore[no-any-return]
                lambda a, b: _products_within(a, b, low, high), a, b)


def _products_of_padded(a: Tracer, b: Tracer, low: int, high: int) -> Tracer:
    if b.size == 1 and a._type.dtype.is_differentiable:
        return a * b + 0  # type: ignore[no-any-return]       # NumPy's sum starts at 0: -0.0 becomes 0.0
    return dot(fresh(_windows(value_of(a), b.size, low, high)), b)  # type: ignore[no-any-return]


def _products_within(a: Tracer, b: Tracer, low: int, high: int) -> Tracer:
    """Restrict the ends to elements inside `a`: a kernel element nan or inf times padding would be nan."""
    x, width = value_of(a), b.size
    reached = np.add.outer(np.arange(width), np.arange(width - 1))      # the k-th element of the i-th window of an end
    first = (reached[:, :low] >= low, ops.slice_axis(x, 0, 0, width - 1), (low, 0))
    last = (reached[:, :high] < width - 1, ops.slice_axis(x, 0, a.size - width + 1, width - 1), (0, high))
    factors = np.reshape(b, (width, 1))
    ends = [np.sum(np.where(inside, factors, 0) * fresh(_windows(end, width, *padding)).T, axis=0)
            for inside, end, padding in (first, last)]
    return concatenate([ends[0], dot(fresh(_windows(x, width, 0, 0)), b), ends[1]])  # type: ignore[no-any-return]


def _windows(x: Value, width: int, low: int, high: int) -> Value:
    return ops.windows(x, sizes=(width,), strides=(1,), low=(low,), high=(high,), dilations=(1,))


# ----- grids
@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> Any:
    lines = [as_tracer(x) for x in xi]
    rank = len(lines)
    order = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    grid = tuple([lines[order.index(axis)].size for axis in range(rank)])
    results = []
    for line, axis in zip(lines, order, strict=True):
        placed = reshaped(line, tuple([line.size if k == axis else 1 for k in range(rank)]))
        view = placed if sparse else broadcast_to(placed, grid)
        results.append(fresh_array(value_of(view)) if copy else view)
    return tuple(results)


def _grid(start: Any, stop: Any, num: Any, endpoint: Any) -> tuple[Value, Any]:
    """The numbers along a new first axis, and the distance between them."""
    (first, kind_first), (last, kind_last) = operand(start), operand(stop)
    real = common_dtype((kind_first, kind_last, float))
    shape = broadcast_shapes([first.shape, last.shape])
    low, high = materialise(first, real, shape), materialise(last, real, shape)
    count = int(num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    whole = (count, *shape)
    gaps = count - 1 if endpoint else count
    distance = ops.subtract(high, low)
    step = ops.divide(distance, filled(max(gaps, 1), real, shape))
    line = ops.add(_multiples(step, distance, max(gaps, 1), whole), broadcast_value(low, whole))
    if endpoint and count > 1:                                         # exactly stop, not start + (stop - start)
        line = ops.concatenate(ops.slice_axis(line, 0, 0, count - 1), reshape(high, (1, *shape)), axis=0)
    return line, fresh(step) if gaps > 0 else math.nan


def _multiples(step: Value, distance: Value, gaps: int, whole: tuple[Any, ...]) -> Value:
    """0, step, 2 step, ... rounded as in NumPy: fractions of the distance if that is too small to be divided."""
    places = cast(ops.iota(shape=whole, axis=0, dtype=I64), step.dtype)
    if step.dtype.is_complex:
        return ops.multiply(places, broadcast_value(step, whole))
    parts = ops.multiply(ops.divide(places, filled(gaps, step.dtype, whole)), broadcast_value(distance, whole))
    vanishes = ops.equal(step, filled(0, step.dtype, step.shape))
    return ops.select(broadcast_value(vanishes, whole), parts, ops.multiply(places, broadcast_value(step, whole)))


@implements(np.linspace)
def linspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None,
             axis: Any = 0, *, device: Any = None) -> Any:
    line, step = _grid(start, stop, num, endpoint)
    target = requested(dtype)
    if target is not None and target.is_integer:
        line = ops.floor(line)
    made = moveaxis(fresh(cast(line, target or line.dtype)), 0, axis) if axis else fresh(cast(line, target or line.dtype))
    return (made, step) if retstep else made


@implements(np.logspace)
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None, axis: Any = 0) -> Any:
    if np.ndim(base):                                                  # base counts for the meaning of axis
        rank = max(np.ndim(one) for one in (start, stop, base))
        start, stop, base = (np.reshape(one, (1,) * (rank - np.ndim(one)) + np.shape(one)) for one in (start, stop, base))
        base = np.expand_dims(base, axis)
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    made = as_tracer(operator("power", base, exponents))
    return made if dtype is None else made.astype(dtype)


def _require_no_zero(*ends: Tracer) -> None:
    """Raises at run time if an end of np.geomspace is zero."""
    for end in ends:
        HANDLERS["raise_where"](np.any(end == 0), ValueError("Geometric sequence cannot include zero"))


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Any:
    real = common_dtype((as_tracer(start)._type.dtype, as_tracer(stop)._type.dtype, F64))
    low, high = (fresh(cast(value_as(one), real)) for one in (start, stop))
    _require_no_zero(low, high)
    sign = np.sign(low)                                                 # ends of different signs give nan between them
    first, last = low / sign, high / sign
    grid = as_tracer(np.power(10.0, linspace(np.log10(first), np.log10(last), num, endpoint)))
    if num > 0:                                                        # exact ends, without the rounding of logarithms
        ends = [np.broadcast_to(end, grid.shape[1:])[None] for end in ((first, last) if endpoint and num > 1 else (first,))]
        grid = concatenate([ends[0], part(grid, 0, 1, num - len(ends)), *ends[1:]])
    grid = grid * sign
    made = moveaxis(grid, 0, axis) if axis else grid
    return made if dtype is None else made.astype(dtype)
