"""The methods of ufuncs: np.add.reduce, accumulate, reduceat, outer, at.

Sums, products, extrema and truth values have ops of their own.  Other ufuncs of two operands are folded: associative ones
by halves (log2 n steps), all others one element after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError, TracerArrayError, UnsupportedError
from bwcompiler.frontend.numpy.axes import NOTHING, normalize_axes, reduction_axes
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import call_ufunc, evaluate
from bwcompiler.frontend.numpy.elementwise.ufuncs import COMPARISONS, UFUNCS, truth, ufunc_named
from bwcompiler.frontend.numpy.manipulation.indexing import getitem, scatter_add, setitem
from bwcompiler.frontend.numpy.manipulation.layout import flat_view, reshaped
from bwcompiler.frontend.numpy.reductions.reductions import all_, any_, finished, masked, max_, min_, prod, running, sum_, with_out
from bwcompiler.frontend.numpy.selected.indexing.accumulating import at as at_of_selections
from bwcompiler.frontend.tracing.control_flow.loops import fori_loop, while_loop
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_parsing import entries_of, is_mask, parse
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.operands import as_tracer, cast, materialise, operand, reshape, value_as
from bwcompiler.frontend.tracing.promotion import requested, resolve, resolve_reduction
from bwcompiler.frontend.tracing.registry import UFUNC_METHODS, refuse_options
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.op import REGISTRY, Value
from bwcompiler.ir.types import I64
from bwcompiler.ops.rules import zero_of

# not lcm: if it overflows, the order matters
ASSOCIATIVE = frozenset(("maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
                         "bitwise_xor", "logaddexp", "logaddexp2", "hypot", "gcd", "add", "multiply"))
SCANS = {op.combine: op for op in REGISTRY.values() if op.kind == "scan"}           # ufuncs with a scan op
_UNROLLED = 2_000           # most elements of an axis for a sequential fold


def outer(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.outer(a, b)."""
    a, b = (as_tracer(x) for x in inputs)
    return call_ufunc(ufunc, (reshaped(a, (*a.shape, *[1] * b.ndim)), b), kwargs)


def _one_axis(method: str, axis: Any, rank: int) -> int:
    """The axis of a method that takes a single axis."""
    if rank == 0:
        raise TypeError(f"cannot {method} on a scalar")
    axes = normalize_axes(axis, rank)
    if len(axes) != 1:
        raise ValueError(f"{method} does not allow multiple axes")
    return axes[0]


# ----- reduce
def reduce_(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.reduce(array, axis=0, dtype=None, out=None, keepdims=False, initial=, where=True)."""
    names = ("axis", "dtype", "out", "keepdims", "initial", "where")
    options = {**dict(zip(names, inputs[1:], strict=False)), **kwargs}
    options.setdefault("axis", 0)
    handlers: dict[str, Callable[..., Any]] = {
        "add": sum_, "multiply": prod, "maximum": max_, "minimum": min_, "logical_or": any_, "logical_and": all_}
    handler = handlers.get(ufunc.__name__)
    if handler is None:
        return _folded(ufunc, inputs[0], **options)
    if handler in (max_, min_, any_, all_):
        refuse_options(f"np.{ufunc.__name__}.reduce", dtype=(options.pop("dtype", None), None))
    if handler in (any_, all_):
        refuse_options(f"np.{ufunc.__name__}.reduce", initial=(options.pop("initial", NOTHING), NOTHING))
    return handler(inputs[0], **options)


NEUTRAL = {"logaddexp": -np.inf, "logaddexp2": -np.inf, "hypot": 0.0, "bitwise_or": 0, "bitwise_xor": 0}     # neutral elements
IDEMPOTENT = {"fmax", "fmin", "bitwise_and"}      # ufuncs for which the initial element may be combined repeatedly


def _folded(ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NOTHING,
            where: Any = True) -> Any:
    """The initial value, as in NumPy: `initial`, or the identity of a reorderable ufunc, or the first element."""
    name = ufunc.__name__
    x = _prepared(ufunc, array, dtype, out)
    if where is not True and where is not NOTHING:
        if name not in NEUTRAL and (initial is None or (initial is NOTHING and ufunc.identity is None)):
            raise ValueError(f"reduction operation '{name}' does not have an identity, so to use a where mask one has to specify 'initial'")
        if name not in NEUTRAL and name not in IDEMPOTENT:
            raise UnsupportedError(f"np.{name}.reduce: where= is not supported on traced arrays\n"
                                   "  hint: np.where(mask, x, ...) with neutral elements")
        x = masked(x, where, ~x.dtype.numpy.type(0) if name == "bitwise_and" else NEUTRAL.get(name, initial))
    axes = reduction_axes(axis, x.rank)
    if len(axes) > 1 and name not in ASSOCIATIVE:
        raise ValueError(f"reduction operation '{name}' is not reorderable, so at most one axis may be specified")
    line = _line_last(x, axes)
    first = _start(ufunc, line, initial)
    if first is None:
        result = _fold(ufunc, line)
    elif name in ASSOCIATIVE:
        result = _combined(ufunc, first, _fold(ufunc, line)) if line.shape[-1] else first
    else:
        result = _fold(ufunc, ops.concatenate(reshape(first, (*first.shape, 1)), line, axis=line.rank - 1))
    return finished(result, x, axes, keepdims, out, f"{name}.reduce", "same_kind")      # NumPy rounds the first element


def _start(ufunc: Any, line: Value, initial: Any) -> Value | None:
    """The initial value of a fold, per result; None: the first element."""
    if initial is None or (initial is NOTHING and (ufunc.identity is None or ufunc.__name__ not in ASSOCIATIVE)):
        if not line.shape[-1]:
            raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
        return None
    start = ufunc.identity if initial is NOTHING else initial
    if initial is NOTHING and start == -1:                                      # of bitwise_and: all bits
        start = np.array(-1).astype(line.dtype.numpy)
    return materialise(operand(start)[0], line.dtype, line.shape[:-1])


def _prepared(ufunc: Any, array: Any, dtype: Any, out: Any = None) -> Value:
    """The operand of a method, cast to the dtype of accumulation: that of the operand and of what the result is written to."""
    ufunc_named(ufunc.__name__)
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise ValueError("only supported for binary functions that return a single value")
    if ufunc.__name__ in COMPARISONS:
        raise UnsupportedError(f"np.{ufunc.__name__}.reduce and accumulate would compare booleans with elements; they are not "
                               "supported on traced arrays\n  hint: np.all, np.any of a comparison")
    x = value_as(array)
    target = requested(dtype)
    if target is None and (joint := with_out(x, out)) is not None:
        x = cast(x, joint)
    if target is not None and resolve(ufunc, (target, target)).outputs[0] is not target:
        raise DTypeError(f"np.{ufunc.__name__} of {target.numpy} does not return {target.numpy}, as dtype={target.numpy} requires")
    return cast(x, target or resolve_reduction(ufunc, x.dtype))


def _line_last(x: Value, axes: tuple[int, ...]) -> Value:
    """x with the given axes merged into one, put last."""
    rest = [k for k in range(x.rank) if k not in axes]
    order = (*rest, *axes)
    moved = x if order == tuple(range(x.rank)) else ops.transpose(x, axes=order)
    return reshape(moved, (*[x.shape[k] for k in rest], exact_count([x.shape[k] for k in axes])))


def _combined(ufunc: Any, x: Value, y: Value) -> Value:
    """The ufunc, in the dtype of its operands."""
    return cast(evaluate(UFUNCS[ufunc.__name__], (fresh(x), fresh(y))), x.dtype)


def _fold(ufunc: Any, x: Value) -> Value:
    """The last axis folded."""
    count = x.shape[-1]
    if ufunc.__name__ not in ASSOCIATIVE:
        _require_short(ufunc, count)
        result = ops.slice_axis(x, x.rank - 1, 0, 1)
        for k in range(1, count):
            result = _combined(ufunc, result, ops.slice_axis(x, x.rank - 1, k, 1))
        return reshape(result, x.shape[:-1])
    while count > 1:
        half = count // 2
        folded = _combined(ufunc, ops.slice_axis(x, x.rank - 1, 0, half), ops.slice_axis(x, x.rank - 1, half, half))
        x = folded if count % 2 == 0 else ops.concatenate(folded, ops.slice_axis(x, x.rank - 1, count - 1, 1), axis=x.rank - 1)
        count = x.shape[-1]
    return reshape(x, x.shape[:-1])


def _require_short(ufunc: Any, count: int) -> None:
    if count > _UNROLLED:
        raise UnsupportedError(f"np.{ufunc.__name__}.reduce over {count} elements on traced arrays is unrolled, up to {_UNROLLED}")


# ----- accumulate
def accumulate(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.accumulate(array, axis=0, dtype=None, out=None)."""
    options = {**dict(zip(("axis", "dtype", "out"), inputs[1:], strict=False)), **kwargs}
    place, out = _one_axis("accumulate", options.get("axis", 0), as_tracer(inputs[0]).ndim), options.get("out")
    scan = SCANS.get(ufunc.__name__)
    if scan is not None:
        return running(scan, ufunc, inputs[0], place, options.get("dtype"), out[0] if isinstance(out, tuple) else out)
    x = _prepared(ufunc, inputs[0], options.get("dtype"), out)
    line = _scan(ufunc, _line_last(x, (place,)))
    last = x.rank - 1
    order = (*range(place), last, *range(place, last))
    result = line if place == last else ops.transpose(line, axes=order)
    return finished(result, x, (), False, out, f"{ufunc.__name__}.accumulate", "same_kind")


def _scan(ufunc: Any, x: Value) -> Value:
    """Running results along the last axis."""
    count, last = x.shape[-1], x.rank - 1
    if ufunc.__name__ in ASSOCIATIVE:
        distance = 1
        while distance < count:
            rest = count - distance
            moved = _combined(ufunc, ops.slice_axis(x, x.rank - 1, 0, rest), ops.slice_axis(x, x.rank - 1, distance, rest))
            x = ops.concatenate(ops.slice_axis(x, x.rank - 1, 0, distance), moved, axis=last)
            distance *= 2
        return x
    _require_short(ufunc, count)
    found = [ops.slice_axis(x, x.rank - 1, 0, 1)] if count else []
    for k in range(1, count):
        found.append(_combined(ufunc, found[-1], ops.slice_axis(x, x.rank - 1, k, 1)))
    return ops.concatenate(*found, axis=last) if count > 1 else x


def reduceat(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.reduceat(array, indices, axis=0, dtype=None, out=None)."""
    options = {**dict(zip(("axis", "dtype", "out"), inputs[2:], strict=False)), **kwargs}
    x, indices = as_tracer(inputs[0]), inputs[1]
    place = _one_axis("reduceat", options.get("axis", 0), x.ndim)
    extent = x.shape[place]
    if np.ndim(indices) != 1:
        raise ValueError(f"{ufunc.__name__}.reduceat takes indices of one axis, they have {np.ndim(indices)}")
    dtype, wider = options.get("dtype"), with_out(value_of(x), options.get("out"))
    if dtype is None and wider is not None:
        dtype = wider.numpy
    if isinstance(indices, Tracer):
        folded = _reduceat_by_data(ufunc, _prepared(ufunc, x, dtype), indices, place)
        return finished(folded, folded, (), False, options.get("out"), f"{ufunc.__name__}.reduceat")
    starts = [int(k) for k in np.asarray(indices).ravel()]
    if any(not 0 <= k < extent for k in starts):
        raise IndexError(f"indices of {ufunc.__name__}.reduceat are out of bounds for axis {place} with size {extent}")
    pieces = []
    for first, following in itertools.pairwise([*starts, extent]):
        cut = slice(first, following if following > first else first + 1)
        piece = getitem(x, (*[slice(None)] * place, cut))
        given: dict[str, Any] = {"axis": place, "keepdims": True}
        if ufunc.__name__ not in ("maximum", "minimum", "logical_or", "logical_and"):
            given |= {"dtype": dtype, "initial": None}
        pieces.append(reduce_(ufunc, (piece,), given))
    if not pieces:
        pieces = [getitem(fresh(_prepared(ufunc, x, dtype)), (*[slice(None)] * place, slice(0, 0)))]
    joined = ops.concatenate(*[value_as(piece) for piece in pieces], axis=place) if len(pieces) > 1 else value_as(pieces[0])
    return finished(joined, joined, (), False, options.get("out"), f"{ufunc.__name__}.reduceat")


def _reduceat_by_data(ufunc: Any, x: Value, indices: Tracer, place: int) -> Value:
    """Data-dependent segments: a loop over them, and one over the elements of each."""
    logical = ufunc.__name__.startswith("logical_")
    array: Any = fresh(truth(x) if logical else x)
    rows: Any = np.moveaxis(array, place, 0)
    extent, count = rows.shape[0], indices.shape[0]
    starts = getitem(fresh(ops.iota(shape=(extent,), axis=0, dtype=I64)), np.where(indices < 0, extent, indices))   # checked
    ends = np.append(starts[1:], extent)
    dtype = value_of(rows).dtype
    result: Any = fresh_array(ops.full(value=zero_of(dtype), shape=(count, *rows.shape[1:]), dtype=dtype))

    def segment(i: Any, carry: None) -> None:
        first, end = starts[i], ends[i]
        _, folded = while_loop(lambda state: state[0] < end, lambda state: (state[0] + 1, fresh(
            _combined(ufunc, value_of(state[1]), value_of(rows[state[0]])))), (first + 1, rows[first]))
        result[i] = folded

    if count:
        fori_loop(0, count, segment, None)
    return value_of(np.moveaxis(result, 0, place))


# ----- at
def at(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """np.add.at(a, indices, b): unbuffered, so repeated indices accumulate."""
    target, index, *rest = inputs
    name = ufunc.__name__
    if not isinstance(target, Tracer):
        raise TracerArrayError(f"np.{name}.at on a concrete array with traced operands\n"
                               "  hint: make it with np.zeros_like(x), or with bwcompiler.numpy.zeros(n)")
    if any(isinstance(entry, Selection) or (isinstance(entry, Tracer) and is_mask(entry)) for entry in entries_of(index)):
        at_of_selections(ufunc, target, index, *rest)
        return
    if not rest:
        _apply(ufunc, target, index, ())
        return
    other = value_as(rest[0])                                     # no weak numbers here: 300 is an int64 even with an int8
    dtype = target._type.dtype
    exact = name in ("add", "subtract") and dtype.kind in "iufc"
    exact = exact and (dtype.is_differentiable or resolve(ufunc, (dtype, other.dtype)).outputs[0].is_integer)
    if exact:                                                     # the sums are the same, whether rounded once or at each step
        term = cast(other, dtype)
        scatter_add(target, index, fresh(ops.negative(term) if name == "subtract" else term))
    else:
        _apply(ufunc, target, index, (fresh(other),))


def _apply(ufunc: Any, target: Tracer, index: Any, operands: tuple[Tracer, ...]) -> None:
    """target[index] = ufunc(target[index], *operands), once for each occurrence of an index."""
    parsed = parse(tuple(entries_of(index)), target.shape)
    if not parsed.arrays:
        setitem(target, index, call_ufunc(ufunc, (getitem(target, index), *operands), {}))
    elif any(isinstance(array, Tracer) for _, array, _ in parsed.arrays):
        _apply_one_by_one(ufunc, target, index, operands)
    else:
        _apply_in_rounds(ufunc, target, index, operands)


def _apply_one_by_one(ufunc: Any, target: Tracer, index: Any, operands: tuple[Tracer, ...]) -> None:
    """Data-dependent elements: a loop over them."""
    numbers = reshape(ops.iota(shape=(target.size,), axis=0, dtype=I64), target.shape)
    places = getitem(fresh(numbers), index)
    if not places.size:
        return
    positions, whole = places.ravel(), flat_view(target)
    values = [np.ravel(np.broadcast_to(operand, places.shape)) for operand in operands]

    def step(k: Any, carry: None) -> None:
        place = positions[k]
        whole[place] = call_ufunc(ufunc, (whole[place], *[value[k] for value in values]), {})

    fori_loop(0, positions.size, step, None)


def _apply_in_rounds(ufunc: Any, target: Tracer, index: Any, operands: tuple[Tracer, ...]) -> None:
    """In rounds: an element that is indexed n times is updated in n rounds."""
    positions = np.arange(target.size).reshape(target.shape)[index]
    _, inverse, counts = np.unique(positions, return_inverse=True, return_counts=True)
    numbers = inverse.ravel()
    order = np.argsort(numbers, kind="stable")
    occurrence = np.empty(numbers.size, np.int64)                 # the number of earlier occurrences of the element, in C order
    occurrence[order] = np.arange(numbers.size) - np.repeat(np.cumsum(counts) - counts, counts)
    values = [np.ravel(np.broadcast_to(operand, positions.shape)) for operand in operands]
    whole = flat_view(target)
    for round_number in range(int(counts.max(initial=0))):
        chosen = np.flatnonzero(occurrence == round_number)
        places = positions.ravel()[chosen]
        setitem(whole, places, call_ufunc(ufunc, (getitem(whole, places), *[value[chosen] for value in values]), {}))


UFUNC_METHODS.update(outer=outer, at=at, reduce=reduce_, accumulate=accumulate, reduceat=reduceat)
