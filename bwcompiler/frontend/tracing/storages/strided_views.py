"""`StridedView`: any composition of slices, integers, None, transposes and flips, as one step of a chain (`views.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.tracing.storages.shapes import Shape, known_shape
from bwcompiler.ir.extent import Extent, Index, substitute
from bwcompiler.ir.op import Value


class Slice:
    """`start, size, step` of one axis with everything in range; the step may be negative."""

    __slots__ = ("size", "start", "step")

    def __init__(self, start: Any, size: Any, step: int) -> None:
        self.start = start
        self.size = size
        self.step = step


def _is_single(size: Extent) -> bool:
    """Whether an axis of that extent surely has one element at most."""
    return isinstance(size, int) and size <= 1


# Attributes of the slice op, or None where whole axes are taken, then flipped; the order of a transpose, or None.
Plan: TypeAlias = tuple[dict[str, tuple[int, ...]] | None, tuple[int, ...], tuple[int, ...] | None]
BasicItem: TypeAlias = Extent | Slice | None    # what one axis (None: a new one) is indexed with, normalised


class StridedView:
    """slice or flip, then transpose, then drop and insert axes of extent 1.

    slices   one Slice per axis of the base.
    axes     for every axis of the view the axis of the base it walks along, None for an inserted one.
    """

    __slots__ = ("_known", "axes", "base_shape", "shape", "slices")

    writable = True

    def __init__(self, base_shape: Shape, slices: tuple[Slice, ...], axes: tuple[int | None, ...]) -> None:
        self.base_shape = base_shape
        self.slices = slices
        self.axes = axes
        self._known: Plan | None = None
        self.shape: Shape = tuple([1 if axis is None else slices[axis].size for axis in axes])

    def _plan(self) -> Plan:
        """How to read and write, worked out once: views of indices that recur are shared."""
        if self._known is None:
            sizes = tuple([item.size for item in self.slices])
            cut = None
            flips: tuple[int, ...] = ()
            if sizes == self.base_shape:
                flips = tuple([axis for axis, item in enumerate(self.slices) if item.step < 0 and not _is_single(item.size)])
            else:
                cut = {"starts": tuple([item.start if item.size else 0 for item in self.slices]), "sizes": sizes,
                       "steps": tuple([1 if _is_single(item.size) else item.step for item in self.slices])}
            kept = [axis for axis in self.axes if axis is not None]
            order = None
            if kept != sorted(kept):
                order = (*kept, *[axis for axis in range(len(sizes)) if axis not in kept])
            self._known = (cut, flips, order)
        return self._known

    @property
    def in_order(self) -> bool:
        """Whether elements lie in the order of the base, axis by axis."""
        return self._plan()[2] is None and all(item.step > 0 or _is_single(item.size) for item in self.slices)

    def read(self, value: Value) -> Value:
        cut, flips, order = self._plan()
        if cut is not None:
            value = ops.slice(value, **cut)
        elif flips:
            value = ops.flip(value, axes=flips)
        if order is not None:
            value = ops.transpose(value, axes=order)
        return value if value.shape == self.shape else ops.reshape(value, shape=self.shape)

    def write(self, base: Value, new: Value) -> Value:
        if 0 in self.shape:
            return base
        cut, flips, order = self._plan()
        places = range(len(self.slices)) if order is None else order
        inner = tuple([self.slices[axis].size for axis in places])
        if new.shape != inner:
            new = ops.reshape(new, shape=inner)
        if order is not None:
            new = ops.transpose(new, axes=tuple(sorted(range(len(order)), key=order.__getitem__)))
        if cut is None:
            return ops.flip(new, axes=flips) if flips else new
        return ops.slice_update(base, new, starts=cut["starts"], steps=cut["steps"])

    def shadow(self, base: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        strides = [0 if axis is None else base.strides[axis] * self.slices[axis].step for axis in self.axes]
        return np.lib.stride_tricks.as_strided(base, known_shape(self.shape), strides)

    @property
    def moves(self) -> bool:
        """Whether it depends on indices of loops where it begins."""
        return any(not isinstance(item.start, int) for item in self.slices)

    def at(self, environment: Mapping[Index, Extent]) -> StridedView:
        """The view where indices of loops are these."""
        slices = tuple([Slice(substitute(item.start, environment), item.size, item.step) for item in self.slices])
        return StridedView(self.base_shape, slices, self.axes)

    def indexed(self, items: Sequence[BasicItem]) -> StridedView | None:
        """This view indexed again; None where an inserted axis is cut to extent 0."""
        slices = list(self.slices)
        axes: list[int | None] = []
        position = 0
        for item in items:
            if item is None:
                axes.append(None)
                continue
            axis = self.axes[position]
            position += 1
            if axis is None:
                if isinstance(item, Slice):
                    if item.size != 1:
                        return None
                    axes.append(None)
                continue
            old = slices[axis]
            if isinstance(item, Slice):
                slices[axis] = Slice(old.start + item.start * old.step, item.size, old.step * item.step)
                axes.append(axis)
            else:
                slices[axis] = Slice(old.start + item * old.step, 1, 1)
        return StridedView(self.base_shape, tuple(slices), tuple(axes))

    def transposed(self, axes: Sequence[int]) -> StridedView:
        """This view with its axes permuted."""
        return StridedView(self.base_shape, self.slices, tuple([self.axes[axis] for axis in axes]))

    def same(self, other: object) -> bool:
        """Whether both take the same elements in the same order."""
        return (isinstance(other, StridedView) and self.axes == other.axes and self.base_shape == other.base_shape
                and all((a.start, a.size, a.step) == (b.start, b.size, b.step)
                        for a, b in zip(self.slices, other.slices, strict=True)))


def whole(shape: Shape) -> StridedView:
    """The view of everything."""
    return StridedView(shape, tuple([Slice(0, extent, 1) for extent in shape]), tuple(range(len(shape))))


def everything_of(shape: Shape) -> list[Slice]:
    """Basic items that take whole axes."""
    return [Slice(0, extent, 1) for extent in shape]
