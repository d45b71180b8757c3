"""Algebraic rules: RULES[op](type, *operands, **attributes) -> a replacement, or None.

A rule may only replace a value by one with the same bits (nan, inf and the sign of zero included); so `x + 0` stays for
floats, and `x * 0` always.  Each rule is named by its equation in the comment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, Section, add_extents, known_le, scale_extent
from bwcompiler.ir.op import REGISTRY, Op, Value, is_constant
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.indexing.distinct_indices import are_distinct
from bwcompiler.passes.rewriting.rewriter import Rule
from bwcompiler.passes.rewriting.update_chains import before_updates

RULES: dict[Op, Rule] = {}
_NOT_FOLDED = (ops.select, ops.cast, ops.stop_gradient)         # have rules of their own; no derivative passes the last


def rule(*of: Op) -> Callable[[Rule], Rule]:
    """Register a rule for these ops."""
    def register(function: Rule) -> Rule:
        for op in of:
            RULES[op] = function
        return function
    return register


def _is_filled_with(value: Value, number: Any) -> bool:
    """Whether all elements are the number, zeros of the same sign.  A real number stands for complex ones: 0 for both parts."""
    if not is_constant(value) or value.attrs["value"] != number:
        return False
    found, wanted = complex(value.attrs["value"]), complex(number)
    if isinstance(number, complex):                            # a value of the same dtype
        return _sign(found.real) == _sign(wanted.real) and _sign(found.imag) == _sign(wanted.imag)
    return number != 0 or (_sign(found.real) == _sign(number) and not (value.dtype.is_complex and _sign(found.imag) != _sign(number)))


def _sign(number: float) -> float:
    return math.copysign(1.0, number)


def _full(value: Any, type_: TensorType) -> Value:
    return ops.full(value=value, shape=type_.shape, dtype=type_.dtype)


def fold(type_: TensorType, op: Op, *operands: Value, **attrs: Any) -> Value | None:
    """An elementwise op of constants is a constant."""
    for operand in operands:
        if not is_constant(operand):
            return None
    if op in _NOT_FOLDED:
        return None
    scalars = [np.asarray(operand.attrs["value"], operand.dtype.numpy) for operand in operands]
    with np.errstate(all="ignore"):
        result = op.reference(*scalars, **attrs)
    return _full(np.asarray(result, type_.dtype.numpy).item(), type_)


def sink_reshape(type_: TensorType, op: Op, *operands: Value, **attrs: Any) -> Value | None:
    """f(reshape(x), reshape(y), 2) == reshape(f(x, y, 2)) where axes of extent 1 are put in or left out: so the reshapes before
    and after what is computed with keepdims=True meet, and cancel."""
    shape = None
    for operand in operands:
        if operand.op is ops.reshape:
            shape = operand.operands[0].shape
            break
    if shape is None or not _is_same_but_for_ones(shape, type_.shape):
        return None
    inner = []
    for operand in operands:
        if operand.op is ops.reshape and operand.operands[0].shape == shape:
            inner.append(operand.operands[0])
        elif is_constant(operand):
            inner.append(_full(operand.attrs["value"], operand.type.with_shape(shape)))
        else:
            return None
    return ops.reshape(op(*inner, **attrs), shape=type_.shape)


def _is_same_but_for_ones(shape: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return [extent for extent in shape if extent != 1] == [extent for extent in other if extent != 1]


def _elementwise(op: Op, inner: Rule | None) -> Rule:
    """The rules of all elementwise ops, and those of this one."""
    def apply(type_: TensorType, *operands: Value, **attrs: Any) -> Value | None:
        found = fold(type_, op, *operands, **attrs)
        if found is None and inner is not None:
            found = inner(type_, *operands, **attrs)
        return sink_reshape(type_, op, *operands, **attrs) if found is None else found
    return apply


@rule(ops.multiply)
def _multiply(type_: TensorType, x: Value, y: Value) -> Value | None:
    if type_.dtype.is_complex:                                 # (inf + iy)(1 + 0i) has a nan
        return None
    if _is_filled_with(x, 1):                                  # 1 * x == x
        return y
    if _is_filled_with(y, 1):                                  # x * 1 == x
        return x
    if _is_filled_with(y, -1):                                 # x * -1 == -x
        return ops.negative(x)
    if _is_filled_with(x, -1):
        return ops.negative(y)
    if type_.dtype.is_float and is_constant(y):
        return _scaled(type_, x, y.attrs["value"])
    return None


def _scaled(type_: TensorType, x: Value, factor: float) -> Value | None:
    """-x * c == x * -c; x * a * c == x * (a * c) for a = ±2, ±4, ..., which no rounding sees, and |c| >= 1, so that what overflows does."""
    if x.op is ops.negative:
        return ops.multiply(x.operands[0], _full(-factor, type_))
    if x.op is not ops.multiply or not is_constant(x.operands[1]) or not 1 <= abs(factor) < math.inf:
        return None
    inner = x.operands[1].attrs["value"]
    if not 2 <= abs(inner) < math.inf or abs(math.frexp(inner)[0]) != 0.5 or abs(inner * factor) > float(np.finfo(type_.dtype.numpy).max):
        return None
    return ops.multiply(x.operands[0], _full(inner * factor, type_))


@rule(ops.add)
def _add(type_: TensorType, x: Value, y: Value) -> Value | None:
    zero = -0.0 if type_.dtype.is_differentiable else 0        # x + -0.0 == x (x + 0.0 is not: -0.0 + 0.0 == 0.0)
    if _is_filled_with(y, zero):
        return x
    if x is y and type_.dtype.kind in "fiu":                   # x + x == 2 * x
        return ops.multiply(x, _full(2.0 if type_.dtype.kind == "f" else 2, type_))
    if _is_filled_with(x, zero):
        return y
    if y.op is ops.negative:                                   # x + -y == x - y
        return ops.subtract(x, y.operands[0])
    if x.op is ops.negative:
        return ops.subtract(y, x.operands[0])
    if x.op is y.op is ops.slice_update and x.attrs == y.attrs and x.operands[1] is y.operands[1] and _is_filled_with(x.operands[1], 0):
        return ops.slice_update(ops.add(x.operands[0], y.operands[0]), x.operands[1], **x.attrs)      # one part of both is cleared
    return None


@rule(ops.subtract)
def _subtract(type_: TensorType, x: Value, y: Value) -> Value | None:
    if _is_filled_with(y, 0):                                  # x - 0 == x
        return x
    return ops.add(x, y.operands[0]) if y.op is ops.negative else None        # x - -y == x + y


@rule(ops.divide)
def _divide(type_: TensorType, x: Value, y: Value) -> Value | None:
    if _is_filled_with(y, 1) and not type_.dtype.is_complex:   # x / 1 == x
        return x
    return None


@rule(ops.negative)
def _negative(type_: TensorType, x: Value) -> Value | None:
    return x.operands[0] if x.op is ops.negative else None  # -(-x) == x


@rule(ops.invert)
def _invert(type_: TensorType, x: Value) -> Value | None:
    return x.operands[0] if x.op is ops.invert else None    # ~~x == x


@rule(ops.select)
def _select(type_: TensorType, condition: Value, x: Value, y: Value) -> Value | None:
    if x is y:                                                 # select(c, x, x) == x
        return x
    if is_constant(condition):
        return x if condition.attrs["value"] else y
    if condition.op is ops.invert:                          # select(~c, x, y) == select(c, y, x)
        return ops.select(condition.operands[0], y, x)
    if x.op is ops.select and x.operands[0] is condition:   # select(c, select(c, x, _), y) == select(c, x, y)
        return ops.select(condition, x.operands[1], y)
    if y.op is ops.select and y.operands[0] is condition:
        return ops.select(condition, x, y.operands[2])
    chosen = _chosen_where(condition, x) if condition.op is ops.bitwise_and else None
    return None if chosen is None else ops.select(condition, chosen, y)


def _chosen_where(condition: Value, x: Value) -> Value | None:
    """What a selection is where a conjunction holds that decides it: select(c & d, select(c, x, _), y) == select(c & d, x, y)."""
    if x.op is ops.negative:
        chosen = _chosen_where(condition, x.operands[0])
        return None if chosen is None else ops.negative(chosen)
    if x.op is not ops.select:
        return None
    test, chosen, other = x.operands
    for part in condition.operands:
        if part is test:
            return chosen
        if part.op is ops.invert and part.operands[0] is test:
            return other
    return None


@rule(ops.bitwise_and, ops.bitwise_or)
def _twice(type_: TensorType, x: Value, y: Value) -> Value | None:
    return x if x is y else None                               # x & x == x


@rule(ops.cast)
def _cast(type_: TensorType, x: Value, *, dtype: Any) -> Value | None:
    if x.dtype is dtype:                                       # cast to the same dtype
        return x
    if is_constant(x):
        value = np.asarray(x.attrs["value"], x.dtype.numpy)
        with np.errstate(all="ignore"):
            return _full(ops.cast.reference(value, dtype=dtype).item(), type_)
    if x.op is ops.cast and x.dtype.is_float and dtype.is_float and x.dtype.bits > dtype.bits and x.operands[0].dtype is dtype:
        return x.operands[0]                                   # f32 -> f64 -> f32 is exact
    return None


@rule(ops.broadcast)
def _broadcast(type_: TensorType, x: Value, *, shape: Any, axes: Any) -> Value | None:
    if len(axes) == len(shape):                                # nothing is new
        return x
    if is_constant(x):
        return _full(x.attrs["value"], type_)
    if x.op is ops.broadcast:                               # broadcast(broadcast(x))
        inner = x.attrs["axes"]
        return ops.broadcast(x.operands[0], shape=shape, axes=tuple(axes[k] for k in inner))
    return None


@rule(ops.transpose)
def _transpose(type_: TensorType, x: Value, *, axes: Any) -> Value | None:
    if axes == tuple(range(len(axes))):                        # the identity permutation
        return x
    if is_constant(x):
        return _full(x.attrs["value"], type_)
    if x.op is ops.unset:
        return ops.unset(shape=type_.shape, dtype=type_.dtype)
    if x.op is ops.transpose:                               # (x^p)^q == x^(p[q])
        inner = x.attrs["axes"]
        return ops.transpose(x.operands[0], axes=tuple(inner[k] for k in axes))
    if x.op is ops.broadcast:                               # repeated along the axes where it is read
        places = tuple(axes.index(place) for place in x.attrs["axes"])
        return ops.broadcast(x.operands[0], shape=type_.shape, axes=places) if places == tuple(sorted(places)) else None
    if x.op.kind == "elementwise" and x.op.cheap and all(one.op is ops.broadcast or is_constant(one) for one in x.operands):
        return x.op(*[ops.transpose(one, axes=axes) for one in x.operands], **x.attrs)        # outer(x, y).T == outer(y, x)
    return None


@rule(ops.reshape)
def _reshape(type_: TensorType, x: Value, *, shape: Any) -> Value | None:
    if x.shape == shape:
        return x
    if is_constant(x):
        return _full(x.attrs["value"], type_)
    if x.op is ops.reshape:                                 # reshape(reshape(x)) == reshape(x)
        return ops.reshape(x.operands[0], shape=shape)
    return None


@rule(ops.slice)
def _slice(type_: TensorType, x: Value, *, starts: Any, sizes: Any, steps: Any) -> Value | None:
    if sizes == x.shape and all(step == 1 for step in steps):  # the whole array
        return x
    if is_constant(x):
        return _full(x.attrs["value"], type_)
    if x.op in ops.UPDATES:
        return _slice_of_update(x, starts, sizes, steps)
    return None


def _slice_of_update(x: Value, starts: Any, sizes: Any, steps: Any) -> Value | None:
    """Past updates of other elements; of exactly the sliced ones, what was stored there."""
    section = Section(starts, sizes, steps)
    base = before_updates(x, section)
    if base.op in ops.UPDATES and base.attrs["starts"] == starts and base.attrs["steps"] == steps and base.operands[1].shape == sizes:
        operand, v = base.operands
        if base.op is ops.slice_update:
            return v
        return ops.add(ops.slice(operand, starts=starts, sizes=sizes, steps=steps), v)
    return None if base is x else ops.slice(base, starts=starts, sizes=sizes, steps=steps)


@rule(ops.normalize_index)
def _normalize_index(type_: TensorType, index: Value, *, extent: Extent) -> Value | None:
    if index.op is not ops.index_value and not _is_number(index):                  # of a loop: it is known where it is
        return None
    place = index.attrs["extent" if index.op is ops.index_value else "value"]
    return index if known_le(0, place) and known_le(add_extents(place, 1), extent) else None


@rule(ops.gather)
def _gather(type_: TensorType, x: Value, *indices: Value, axes: tuple[int, ...]) -> Value | None:
    places = _places_of_indices(x, indices, axes)                                  # x[i]: a slice, where i is an index of a loop
    return None if places is None else ops.reshape(_slice_of_row(x, *places), shape=type_.shape)


def _places_of_indices(x: Value, indices: Sequence[Value], axes: tuple[int, ...]) -> tuple[tuple[Extent, ...], tuple[Extent, ...]] | None:
    """Where the part of x at indices of loops begins, and its sizes; None at others, or where it may lie outside."""
    if any(index.op is not ops.index_value and not _is_number(index) for index in indices) or all(map(_is_number, indices)):
        return None
    places = dict(zip(axes, [index.attrs["extent" if index.op is ops.index_value else "value"] for index in indices], strict=True))
    if not all(known_le(0, place) and known_le(add_extents(place, 1), x.shape[axis]) for axis, place in places.items()):
        return None
    starts = tuple([places.get(axis, 0) for axis in range(x.rank)])
    return starts, tuple([1 if axis in places else extent for axis, extent in enumerate(x.shape)])


def _is_number(index: Value) -> bool:
    return index.op is ops.full and not index.shape


def _slice_of_row(x: Value, starts: tuple[Extent, ...], sizes: tuple[Extent, ...]) -> Value:
    """A slice; of a row of an array, one of the array."""
    row = x.operands[0] if x.op is ops.reshape else x
    if x.rank != 1 or row.op is not ops.slice or sum([extent != 1 for extent in row.shape]) != 1:
        return ops.slice(x, starts=starts, sizes=sizes, steps=(1,) * x.rank)
    axis = next(axis for axis, extent in enumerate(row.shape) if extent != 1)
    first, steps = row.attrs["starts"], row.attrs["steps"]
    place = add_extents(first[axis], scale_extent(starts[0], steps[axis]))
    whole = tuple([sizes[0] if k == axis else 1 for k in range(row.rank)])
    found = ops.slice(row.operands[0], starts=(*first[:axis], place, *first[axis + 1:]), sizes=whole, steps=steps)
    return ops.reshape(found, shape=sizes)


@rule(ops.scatter_update)
def _scatter_update(type_: TensorType, x: Value, v: Value, *indices: Value, axes: tuple[int, ...]) -> Value | None:
    if v.op is ops.gather and v.operands == (x, *indices) and v.attrs["axes"] == axes:
        return x                                               # x[k] = x[k]
    return _update_of_element(ops.slice_update, x, v, indices, axes)


@rule(ops.scatter_add)
def _scatter_add(type_: TensorType, x: Value, v: Value, *indices: Value, axes: tuple[int, ...]) -> Value | None:
    if x.op is ops.scatter_update and x.operands[2:] == indices and x.attrs["axes"] == axes and are_distinct(indices):
        before, written = x.operands[:2]                       # x[k] = a; x[k] += b is x[k] = a + b
        return ops.scatter_update(before, v if _is_filled_with(written, 0) else ops.add(written, v), *indices, axes=axes)
    return _update_of_element(ops.slice_add, x, v, indices, axes)


def _update_of_element(update: Op, x: Value, v: Value, indices: Sequence[Value], axes: tuple[int, ...]) -> Value | None:
    """x[i] = v, or x[i] += v, where i is an index of a loop."""
    places = _places_of_indices(x, indices, axes)
    if places is None:
        return None
    starts, sizes = places
    return update(x, ops.reshape(v, shape=sizes), starts=starts, steps=(1,) * x.rank)


@rule(ops.flip)
def _flip(type_: TensorType, x: Value, *, axes: Any) -> Value | None:
    if not axes or is_constant(x):
        return x
    return x.operands[0] if x.op is ops.flip and x.attrs["axes"] == axes else None


@rule(ops.slice_add)
def _slice_add(type_: TensorType, x: Value, v: Value, *, starts: Any, steps: Any) -> Value | None:
    if x.op is ops.slice_update and x.attrs["starts"] == starts and x.attrs["steps"] == steps and x.operands[1].shape == v.shape:
        before, written = x.operands                           # x[5] = a; x[5] += b is x[5] = a + b
        return ops.slice_update(before, v if _is_filled_with(written, 0) else ops.add(written, v), starts=starts, steps=steps)
    placed = _placed_in_zeros(v)
    if placed is not None:                                     # what is 0 elsewhere is added where it is not
        inner, places = placed
        return ops.slice_add(x, inner, **_composed(places, starts, steps))
    turned = _turned_back(x, v, starts, steps)
    if turned is not None:
        return turned
    if not _is_filled_with(x, 0):                              # (0 + -0.0 is 0.0: cotangents alone are added so, and may keep -0.0)
        return None
    if v.shape == x.shape and all(step == 1 for step in steps):
        return v                                               # 0 + v over the whole array
    return ops.slice_update(x, v, starts=starts, steps=steps)


def _turned_back(x: Value, v: Value, starts: Any, steps: Any) -> Value | None:
    """The two parts of an array that change places (the adjoint of np.roll), added one after the other: added at once."""
    if x.op not in (ops.slice_add, ops.slice_update) or v.op is not ops.slice:
        return None
    before, w = x.operands
    if w.op is not ops.slice or w.operands[0] is not v.operands[0] or (x.op is ops.slice_update and not _is_filled_with(before, 0)):
        return None
    if any(step != 1 for step in (*steps, *x.attrs["steps"])):
        return None
    cut = [axis for axis in range(x.rank) if v.shape[axis] != x.shape[axis]]
    if len(cut) != 1 or any(w.shape[axis] != x.shape[axis] for axis in range(x.rank) if axis != cut[0]):
        return None
    axis, parts = cut[0], sorted(((starts, v), (x.attrs["starts"], w)), key=lambda part: bool(part[0] != (0,) * x.rank))
    (low, first), (high, second) = parts
    if any(low) or high[axis] != first.shape[axis] or add_extents(high[axis], second.shape[axis]) != x.shape[axis]:
        return None
    both = ops.concatenate(first, second, axis=axis)
    return both if _is_filled_with(before, 0) else ops.add(before, both)


def _placed_in_zeros(v: Value) -> tuple[Value, Mapping[str, Any]] | None:
    """(w, places) where v is zeros with w placed in them, up to the sign of zeros: also -v, and v times a finite number, and a vector as a
    row or column."""
    if v.op is ops.slice_update:
        zeros, inner = v.operands
        return (inner, v.attrs) if _is_filled_with(zeros, 0) else None
    if v.op is ops.reshape and v.operands[0].rank == 1 and sum([extent != 1 for extent in v.shape]) == 1:
        found = _placed_in_zeros(v.operands[0])
        return None if found is None else _as_row(*found, v.shape)
    if v.op is ops.negative:
        found = _placed_in_zeros(v.operands[0])
        return None if found is None else (ops.negative(found[0]), found[1])
    if v.op is ops.multiply and v.dtype.is_float:
        for x, y in (v.operands, v.operands[::-1]):
            found = _placed_in_zeros(y) if is_constant(x) and math.isfinite(x.attrs["value"]) else None
            if found is not None:
                return ops.multiply(_full(x.attrs["value"], found[0].type), found[0]), found[1]
    return None


def _as_row(w: Value, places: Mapping[str, Any], shape: tuple[Extent, ...]) -> tuple[Value, dict[str, Any]]:
    """A part of a vector, and its places, as those of a row or column of this shape."""
    long = next(axis for axis, extent in enumerate(shape) if extent != 1)
    return (ops.reshape(w, shape=tuple([w.shape[0] if axis == long else 1 for axis in range(len(shape))])),
            {name: tuple([places[name][0] if axis == long else neutral for axis in range(len(shape))])
             for name, neutral in (("starts", 0), ("steps", 1))})


def _composed(places: Mapping[str, Any], starts: Any, steps: Any) -> dict[str, Any]:
    """Where the elements of a slice of a slice lie."""
    return {"starts": tuple([add_extents(scale_extent(a, step), b) for a, b, step in zip(places["starts"], starts, steps, strict=True)]),
            "steps": tuple([a * b for a, b in zip(places["steps"], steps, strict=True)])}


def _update_of_part(x: Value, v: Value, starts: Any, steps: Any) -> Value | None:
    """x with an update of one of its parts in the place of that part: an update of x."""
    inner = v.operands[0] if v.op is ops.reshape else v
    if inner.op not in ops.UPDATES:
        return None
    base, more = inner.operands
    part = base.operands[0] if base.op is ops.reshape else base
    if part.op is not ops.slice or part.operands[0] is not x or (part.attrs["starts"], part.attrs["steps"]) != (starts, steps):
        return None
    if part.shape != v.shape:
        return None
    places: Mapping[str, Any] = inner.attrs
    if part is not base or inner is not v:                     # a row or column, seen as a vector
        if inner.rank != 1 or sum([extent != 1 for extent in part.shape]) != 1:
            return None
        more, places = _as_row(more, inner.attrs, part.shape)
    return inner.op(x, more, **_composed(places, starts, steps))


@rule(ops.slice_update)
def _slice_update(type_: TensorType, x: Value, v: Value, *, starts: Any, steps: Any) -> Value | None:
    if v.shape == x.shape and all(step == 1 for step in steps):
        return v
    if x.op in ops.UPDATES and x.attrs["starts"] == starts and x.attrs["steps"] == steps and x.operands[1].shape == v.shape:
        return ops.slice_update(x.operands[0], v, starts=starts, steps=steps)        # x[5] = a; x[5] = b is x[5] = b
    if v.op is ops.slice and v.operands[0] is x and v.attrs["starts"] == starts and v.attrs["steps"] == steps:
        return x                                               # x[5] = x[5]
    if v.op is ops.slice_update and is_constant(x) and _is_filled_with(v.operands[0], x.attrs["value"]):
        return ops.slice_update(x, v.operands[1], **_composed(v.attrs, starts, steps))     # zeros in zeros
    within = _update_of_part(x, v, starts, steps)
    if within is not None:
        return within
    if x.op is not ops.slice_update or not is_constant(v) or not is_constant(x.operands[1]):
        return None
    before, filled = x.operands
    if not _is_filled_with(filled, v.attrs["value"]):
        return None
    joined = Section(x.attrs["starts"], filled.shape, x.attrs["steps"]).joined(Section(starts, v.shape, steps))
    if joined is None:
        return None
    block = _full(v.attrs["value"], v.type.with_shape(joined.sizes))     # x[5] = 0; x[6] = 0 is x[5:7] = 0
    return ops.slice_update(before, block, starts=joined.starts, steps=joined.steps)


@rule(ops.sum)
def _sum(type_: TensorType, x: Value, *, axes: Any) -> Value | None:
    if any(x.shape[axis] != 1 for axis in axes):
        return None
    if type_.dtype.is_differentiable:                          # a sum of one element begins with 0, and 0 + -0.0 == 0.0
        x = ops.add(x, _full(0.0, x.type))
    return ops.reshape(x, shape=type_.shape)                   # sum over axes of extent 1 == x + 0


@rule(ops.max, ops.min, ops.prod, ops.any, ops.all)
def _reduce_nothing(type_: TensorType, x: Value, *, axes: Any) -> Value | None:
    return x if not axes else None


def _install_elementwise() -> None:
    for op in REGISTRY.values():
        if op.kind == "elementwise":
            RULES[op] = _elementwise(op, RULES.get(op))


_install_elementwise()
