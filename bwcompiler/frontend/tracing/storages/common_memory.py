"""Arguments that overlap in memory: handles that are views of one storage.

A `Place` says where the elements of an array are in a C-ordered array, its frame.  `chain_of` gives the steps from a storage
with the frame's shape to a handle of these elements: slices and transposes if these suffice, otherwise each element by its position.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.storages.shapes import Shape, c_strides
from bwcompiler.frontend.tracing.storages.strided_views import Slice, StridedView
from bwcompiler.frontend.tracing.storages.views import Chain, PickedView, ReshapeView, Step
from bwcompiler.ir.op import Value


class Place(NamedTuple):
    """The element at `offset` of the flattened frame, and from there steps of `strides` elements."""

    offset: int
    shape: Shape
    strides: tuple[int, ...]


class ElementsView(PickedView):
    """Elements of a flat array at numbers that are known: what no slices can say."""

    __slots__ = ("place", "repeated")

    in_order = False

    def __init__(self, size: int, place: Place) -> None:
        numbers = np.full(place.shape, place.offset)
        for axis, (extent, stride) in enumerate(zip(place.shape, place.strides, strict=True)):
            numbers += (stride * np.arange(extent)).reshape(-1, *[1] * (len(place.shape) - axis - 1))
        super().__init__((size,), (0,), (), lambda: [open_region().capture(numbers)])
        self.shape = place.shape
        self.place = place
        self.repeated = np.unique(numbers).size < numbers.size

    def write(self, base: Value, new: Value) -> Value:
        if self.repeated:
            raise UnsupportedError("an argument that shares memory with another one is assigned to, and has several elements in one place\n"
                                   "  hint: pass a copy of it")
        return ops.scatter_update(base, new, *self.positions(), axes=self.axes)

    def shadow(self, base: np.ndarray[tuple[int, ...], np.dtype[np.int8]]) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
        return np.lib.stride_tricks.as_strided(base, self.place.shape, self.place.strides)

    def same(self, other: Step) -> bool:
        return isinstance(other, ElementsView) and self.place == other.place


def chain_of(place: Place, frame: Shape) -> Chain:
    """The view of a storage with the frame's shape that has these elements."""
    cut = _cut(place, frame)
    if cut is not None:
        return (cut,)
    size = prod(frame)
    flat: Chain = () if len(frame) == 1 else (ReshapeView((size,)),)
    step = _even_step(place)
    if step is None:
        return (*flat, ElementsView(size, place))
    line = _cut(Place(place.offset, (prod(place.shape),), (step,)), (size,))
    assert line is not None
    return (*flat, line, ReshapeView(place.shape))


def _cut(place: Place, frame: Shape) -> StridedView | None:
    """As slices of the frame's axes, one for each axis that is walked along."""
    steps = c_strides(frame)
    lowest = place.offset + sum(min(0, stride * (extent - 1)) for extent, stride in zip(place.shape, place.strides, strict=True))
    slices = [Slice(int(start), 1, 1) for start in np.unravel_index(lowest, frame)]
    axes: list[int | None] = []
    for extent, stride in zip(place.shape, place.strides, strict=True):
        if extent == 1:
            axes.append(None)
            continue
        axis = next((axis for axis, step in enumerate(steps) if frame[axis] > 1 and step <= abs(stride)), None)
        if axis is None or axis in axes or stride % steps[axis]:
            return None
        step, start = stride // steps[axis], slices[axis].start
        last = start + abs(step) * (extent - 1)
        if last >= frame[axis]:
            return None
        slices[axis] = Slice(start if step > 0 else last, extent, step)
        axes.append(axis)
    return StridedView(frame, tuple(slices), tuple(axes))


def _even_step(place: Place) -> int | None:
    """The distance between one element and the next in C order, where it is the same everywhere."""
    walked = [(stride, unit) for extent, stride, unit in zip(place.shape, place.strides, c_strides(place.shape), strict=True) if extent > 1]
    found = {stride // unit for stride, unit in walked}
    return found.pop() if len(found) == 1 and 0 not in found and all(stride % unit == 0 for stride, unit in walked) else None
