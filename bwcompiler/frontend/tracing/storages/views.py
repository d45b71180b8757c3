"""Views: the positions of the elements of a handle in its storage.

A handle has a chain of steps from the storage to itself.  A `StridedView` (`strided_views.py`) is any composition of slices, integers,
None, transposes and flips, as one step; `ReshapeView`, `BroadcastView`, `DiagonalView`, `WindowView`,
`PartView`, `PickedView` and `ConcreteView` are further kinds of steps.
`read` maps the value of the base to that of the view, `write` maps a new value of the view back into the base.
`shadow` is a strided NumPy array over one dummy element, never read; NumPy itself says of it what is a view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.tracing.storages.shapes import DUMMY, Shape, c_strides, diagonal_length, known_shape, reshaped_shadow
from bwcompiler.frontend.tracing.storages.strided_views import BasicItem, Slice, StridedView, everything_of, whole
from bwcompiler.ir.extent import Affine, Extent, Index
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64

ReshapeRule: TypeAlias = Literal["possible", "contiguous", "always"]


class ReshapeView:
    """The elements in C order under another shape.

    rule    when NumPy gives a view: "possible" (reshape: where strides can express it), "contiguous" (ravel), or "always" (x.flat).
    choice  what the handles get if NumPy gives a copy, as long as nobody needed to know (`undecided_views.Choice`).
    """

    __slots__ = ("choice", "rule", "shape")

    in_order = True
    writable = True

    def __init__(self, shape: Shape, rule: ReshapeRule = "possible", choice: Any = None) -> None:
        self.shape = shape
        self.rule = rule
        self.choice = choice

    def read(self, value: Value) -> Value:
        return value if value.shape == self.shape else ops.reshape(value, shape=self.shape)

    def write(self, base: Value, new: Value) -> Value:
        return new if new.shape == base.shape else ops.reshape(new, shape=base.shape)

    def viewed(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """The shadow of the view; None where NumPy copies."""
        if self.rule == "always" or (self.rule == "contiguous" and not base.flags.c_contiguous):
            return None
        return reshaped_shadow(base, self.shape)

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        found = self.viewed(base)
        return shadow(self.shape, None, ()) if found is None else found

    def same(self, other: Step) -> bool:
        return isinstance(other, ReshapeView) and self.shape == other.shape


class BroadcastView:
    """np.broadcast_to: read-only, as in NumPy.  why: what else there is to say to who writes to it."""

    __slots__ = ("shape", "why")

    in_order = False
    writable = False

    def __init__(self, shape: Shape, why: str = "") -> None:
        self.shape = shape
        self.why = why

    def read(self, value: Value) -> Value:
        return broadcast_value(value, self.shape)

    def write(self, base: Value, new: Value) -> Value:
        raise ValueError(f"assignment destination is read-only{self.why}")

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.broadcast_to(base, known_shape(self.shape))

    def same(self, other: Step) -> bool:
        return isinstance(other, BroadcastView) and self.shape == other.shape


class ConcreteView:
    """All of a concrete array, of which a handle is needed; `written` says what happens if somebody writes to it: it raises."""

    __slots__ = ("array", "shape", "written")

    in_order = True
    writable = True

    def __init__(self, array: np.ndarray[Any, Any], written: Callable[[], NoReturn]) -> None:
        self.array = array
        self.shape: Shape = array.shape
        self.written = written

    def read(self, value: Value) -> Value:
        return value

    def write(self, base: Value, new: Value) -> Value:
        self.written()

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.lib.stride_tricks.as_strided(base, self.shape, [step // max(self.array.itemsize, 1) for step in self.array.strides])

    def same(self, other: Step) -> bool:
        return isinstance(other, ConcreteView) and self.array is other.array


class DiagonalView:
    """The diagonal `offset` columns right of the main one, over two axes, put last.  np.diagonal gives it read-only."""

    __slots__ = ("axes", "base_shape", "offset", "shape", "writable")

    in_order = False

    def __init__(self, base_shape: Shape, offset: int, axes: tuple[int, int], writable: bool) -> None:
        rows, columns = base_shape[axes[0]], base_shape[axes[1]]
        count = diagonal_length(rows + min(offset, 0), columns - max(offset, 0))
        self.base_shape = base_shape
        self.offset = offset
        self.axes = axes
        self.writable = writable
        self.shape: Shape = (*[extent for axis, extent in enumerate(base_shape) if axis not in axes], count)

    def _order(self) -> tuple[int, ...]:
        return (*[axis for axis in range(len(self.base_shape)) if axis not in self.axes], *self.axes)

    def _place(self) -> dict[str, tuple[int, ...]]:
        """Where the diagonal starts in the flattened matrices, and its step there."""
        lead, columns = len(self.shape) - 1, self.base_shape[self.axes[1]]
        start = self.offset if self.offset >= 0 else -self.offset * columns
        return {"starts": (0,) * lead + (start if self.shape[-1] else 0,), "steps": (1,) * lead + (columns + 1,)}

    def _flat(self, value: Value) -> Value:
        """Matrices last, flattened."""
        order = self._order()
        if order != tuple(range(len(order))):
            value = ops.transpose(value, axes=order)
        rows, columns = value.shape[-2:]
        return ops.reshape(value, shape=(*value.shape[:-2], rows * columns))

    def read(self, value: Value) -> Value:
        moves = any(isinstance(self.base_shape[axis], Affine) for axis in self.axes)               # axes that do not merge into one
        return self._gathered(value) if moves else ops.slice(self._flat(value), sizes=self.shape, **self._place())

    def _gathered(self, value: Value) -> Value:
        """The elements one by one."""
        counted = ops.iota(shape=self.shape[-1:], axis=0, dtype=I64)
        firsts = [ops.full(value=max(sign * self.offset, 0), shape=counted.shape, dtype=I64) for sign in (-1, 1)]
        places = sorted(zip(self.axes, [ops.add(counted, first) for first in firsts], strict=True), key=lambda place: place[0])
        found = ops.gather(value, *[place for _, place in places], axes=tuple([axis for axis, _ in places]))
        return ops.transpose(found, axes=(*range(1, found.rank), 0)) if found.rank > 1 else found

    def write(self, base: Value, new: Value) -> Value:
        if not self.writable:
            raise ValueError("assignment destination is read-only")
        if 0 in self.shape:
            return base
        order = self._order()
        made = ops.slice_update(self._flat(base), new, **self._place())
        made = ops.reshape(made, shape=tuple([self.base_shape[axis] for axis in order]))
        return ops.transpose(made, axes=tuple(sorted(range(len(order)), key=order.__getitem__)))

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        kept = [base.strides[axis] for axis in self._order()[:-2]]
        return np.lib.stride_tricks.as_strided(base, known_shape(self.shape), (*kept, sum(base.strides[axis] for axis in self.axes)))

    def same(self, other: Step) -> bool:
        return (isinstance(other, DiagonalView) and self.base_shape == other.base_shape
                and (self.offset, self.axes) == (other.offset, other.axes))


class WindowView:
    """sliding_window_view: windows of `sizes` elements along `axes`, their own axes put last.  Read-only, as in NumPy."""

    __slots__ = ("axes", "base_shape", "shape", "sizes")

    in_order = False
    writable = False

    def __init__(self, base_shape: Shape, sizes: tuple[int, ...], axes: tuple[int, ...]) -> None:
        self.base_shape = base_shape
        self.sizes = sizes
        self.axes = axes
        places = list(base_shape)
        for axis, size in zip(axes, sizes, strict=True):
            places[axis] -= size - 1
        self.shape: Shape = (*places, *sizes)

    def read(self, value: Value) -> Value:
        rank, count = len(self.base_shape), len(self.axes)
        order = (*[axis for axis in range(rank) if axis not in self.axes], *self.axes)
        if order != tuple(range(rank)):
            value = ops.transpose(value, axes=order)
        none, ones = (0,) * count, (1,) * count
        found = ops.windows(value, sizes=self.sizes, strides=ones, low=none, high=none, dilations=ones)
        back = (*[order.index(axis) for axis in range(rank)], *range(rank, rank + count))
        return found if back == tuple(range(rank + count)) else ops.transpose(found, axes=back)

    def write(self, base: Value, new: Value) -> Value:
        raise ValueError("assignment destination is read-only")

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.lib.stride_tricks.as_strided(base, self.shape, (*base.strides, *[base.strides[axis] for axis in self.axes]))

    def same(self, other: Step) -> bool:
        return isinstance(other, WindowView) and (self.base_shape, self.sizes, self.axes) == (other.base_shape, other.sizes, other.axes)


class PartView:
    """x.real or x.imag of a complex array: every other number in its memory."""

    __slots__ = ("part", "shape")

    in_order = True
    writable = True

    def __init__(self, shape: Shape, part: Literal["real", "imag"]) -> None:
        self.shape = shape
        self.part = part

    def read(self, value: Value) -> Value:
        return ops.real(value) if self.part == "real" else ops.imag(value)

    def write(self, base: Value, new: Value) -> Value:
        return ops.make_complex(new, ops.imag(base)) if self.part == "real" else ops.make_complex(ops.real(base), new)

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.lib.stride_tricks.as_strided(base, self.shape, [2 * step for step in base.strides])

    def same(self, other: Step) -> bool:
        return isinstance(other, PartView) and self.part == other.part


class NumbersView:
    """z.view(float): the parts of complex numbers, one after the other along the last axis; x.view(complex): the numbers of such parts."""

    __slots__ = ("complex", "shape")

    in_order = True
    writable = True

    def __init__(self, shape: Shape, complex: bool) -> None:
        self.shape = shape
        self.complex = complex

    def read(self, value: Value) -> Value:
        return _of_parts(value) if self.complex else _in_parts(value)

    def write(self, base: Value, new: Value) -> Value:
        return _in_parts(new) if self.complex else _of_parts(new)

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        steps = [step // 2 if self.complex else step * 2 for step in base.strides[:-1]]
        return np.lib.stride_tricks.as_strided(base, self.shape, (*steps, 1))

    def same(self, other: Step) -> bool:
        return isinstance(other, NumbersView) and self.complex == other.complex


def _in_parts(value: Value) -> Value:
    *lead, size = value.shape
    parts = [ops.reshape(part, shape=(*value.shape, 1)) for part in (ops.real(value), ops.imag(value))]
    return ops.reshape(ops.concatenate(*parts, axis=value.rank), shape=(*lead, 2 * size))


def _of_parts(value: Value) -> Value:
    items = everything_of(value.shape)
    every_other = [whole(value.shape).indexed([*items[:-1], Slice(first, value.shape[-1] // 2, 2)]) for first in (0, 1)]
    return ops.make_complex(*[step.read(value) for step in every_other if step is not None])


class PickedView:
    """x[k, :, j] at integers that only the run knows: `axes` of x, which the view does not have.

    indices    the handles of the integers, as the user gave them.
    positions  what gives their values, in range, in the region that is open.
    """

    __slots__ = ("axes", "base_shape", "indices", "positions", "shape")

    in_order = True
    writable = True

    def __init__(self, base_shape: Shape, axes: tuple[int, ...], indices: tuple[Any, ...], positions: Callable[[], list[Value]]) -> None:
        self.base_shape = base_shape
        self.axes = axes
        self.indices = indices
        self.positions = positions
        self.shape: Shape = tuple([extent for axis, extent in enumerate(base_shape) if axis not in axes])

    def read(self, value: Value) -> Value:
        return ops.gather(value, *self.positions(), axes=self.axes)

    def write(self, base: Value, new: Value) -> Value:
        return ops.scatter_update(base, new, *self.positions(), axes=self.axes)

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        kept = [step for axis, step in enumerate(base.strides) if axis not in self.axes]
        return np.lib.stride_tricks.as_strided(base, known_shape(self.shape), kept)

    def same(self, other: Step) -> bool:
        return (isinstance(other, PickedView) and (self.base_shape, self.axes) == (other.base_shape, other.axes)
                and all(a is b for a, b in zip(self.indices, other.indices, strict=True)))


Step: TypeAlias = StridedView | ReshapeView | BroadcastView | ConcreteView | DiagonalView | WindowView | PartView | NumbersView | PickedView
Chain: TypeAlias = tuple[Step, ...]


def index_chain(chain: Chain, shape: Shape, items: Sequence[BasicItem]) -> Chain:
    """The chain of a handle of that shape, indexed."""
    if chain and isinstance(chain[-1], StridedView):
        composed = chain[-1].indexed(items)
        if composed is not None:
            return (*chain[:-1], composed)
    step = whole(shape).indexed(items)
    assert step is not None
    return (*chain, step)


def transpose_chain(chain: Chain, shape: Shape, axes: Sequence[int]) -> Chain:
    """The chain of a handle of that shape, transposed."""
    if chain and isinstance(chain[-1], StridedView):
        return (*chain[:-1], chain[-1].transposed(axes))
    return (*chain, whole(shape).transposed(axes))


def moves(step: Step) -> bool:
    """Whether the view depends on the index of a loop, or on other integers that only the run knows."""
    if isinstance(step, StridedView):
        return any(isinstance(part, Affine) for cut in step.slices for part in (cut.start, cut.size))
    return isinstance(step, PickedView) or any(isinstance(part, Affine) for part in step.shape)


def is_known_at(step: Step) -> bool:
    """Whether a view depends on indices of loops alone, and that only where it begins."""
    return not moves(step) or (isinstance(step, StridedView) and all(isinstance(size, int) for size in (*step.base_shape, *step.shape)))


def chain_at(chain: Chain, environment: Mapping[Index, Extent]) -> Chain:
    """The view where indices of loops are these; of steps that are known there (`is_known_at`)."""
    return tuple([step.at(environment) if moves(step) and isinstance(step, StridedView) else step for step in chain])


def same_chain(a: Chain, b: Chain) -> bool:
    """Whether two handles of one storage are the same elements in the same order."""
    return a is b or (len(a) == len(b) and all(x.same(y) for x, y in zip(a, b, strict=True)))


def shadow(shape: Shape, strides: tuple[int, ...] | None, chain: Chain) -> np.ndarray[Any, Any]:
    """The strided stand-in of a handle; its elements must never be read."""
    shape = known_shape(shape)
    found = np.lib.stride_tricks.as_strided(DUMMY, shape, c_strides(shape) if strides is None else strides)
    for step in chain:
        found = step.shadow(found)
    return found


def broadcast_value(value: Value, shape: Shape) -> Value:
    """value stretched to `shape` as NumPy does: missing leading axes and axes of extent 1 are repeated."""
    own = value.shape
    if own == shape:
        return value
    offset = len(shape) - len(own)
    kept = [axis for axis, extent in enumerate(own) if extent == shape[axis + offset]]
    if len(kept) != len(own):
        value = ops.reshape(value, shape=tuple([own[axis] for axis in kept]))
    return ops.broadcast(value, shape=shape, axes=tuple([axis + offset for axis in kept]))
