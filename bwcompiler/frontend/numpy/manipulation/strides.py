"""`np.lib.stride_tricks.as_strided` and `x.strides`: views by steps in memory.

Memory is that of the array, or of the one that it is a slice of, which has to lie there without gaps: what a view reads before or behind
it is refused.  Windows that move along the axes of the array are windows of it; all else picks elements by their numbers.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError, at
from bwcompiler.frontend.numpy.manipulation.layout import viewed
from bwcompiler.frontend.tracing.operands import shadow_of
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.common_memory import Place, chain_of
from bwcompiler.frontend.tracing.storages.shapes import c_strides
from bwcompiler.frontend.tracing.storages.strided_views import StridedView
from bwcompiler.frontend.tracing.tracer import Tracer, handle

_HINT = "\n  hint: np.lib.stride_tricks.sliding_window_view(x, n)[::step], np.broadcast_to, or slices"


def strides(x: Tracer) -> tuple[int, ...]:
    """x.strides, in bytes."""
    if not x._type.is_fixed:
        raise UnsupportedError("x.strides of an array whose shape depends on a loop index: it is not known while tracing")
    return tuple([step * x.dtype.itemsize for step in shadow_of(x).strides])


HANDLERS["strides"] = strides


def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """In the place of NumPy's function, which takes any array for one of NumPy's."""
    if not isinstance(x, Tracer):
        return np.lib.stride_tricks.as_strided(x, shape, strides, subok, writeable)
    sizes, given = (_integers(x.shape if shape is None else shape), _integers(x.strides if strides is None else strides))
    if len(sizes) != len(given):
        raise ValueError(f"mismatch in length of strides and shape: {len(given)} and {len(sizes)}")
    itemsize = x.dtype.itemsize
    if any(step % itemsize for step in given):
        raise _refused(f"as_strided with strides {given}, of which some are no multiples of {itemsize} bytes: it reads parts of numbers"
                       "\n  hint: x.strides and x.itemsize are in bytes, x.itemsize to an element")
    if 0 in sizes:
        return np.reshape(np.ravel(x)[:0], sizes)
    steps = tuple([step // itemsize for step in given])
    whole, first = _whole(x)
    array = _without_gaps(whole)
    ends = [step * (size - 1) for size, step in zip(sizes, steps, strict=True)]
    if first + sum([min(end, 0) for end in ends]) < 0 or first + sum([max(end, 0) for end in ends]) >= math.prod(array.shape):
        raise _refused(f"as_strided of an array of shape {x.shape} to shape {sizes} with strides {given}: it reads memory outside of it"
                       f"{_HINT}")
    found = None if first else _windows(array, sizes, steps)
    if found is None:
        found = viewed(array, (*array._chain, *chain_of(Place(first, sizes, steps), array.shape)), sizes)
    return found if writeable else np.broadcast_to(found, sizes)


def _integers(x: Any) -> tuple[int, ...]:
    return tuple(map(operator.index, x)) if isinstance(x, tuple | list) else (operator.index(x),)


def _refused(text: str) -> UnsupportedError:
    return UnsupportedError(at(current_source(), text))


def _whole(x: Tracer) -> tuple[Any, int]:
    """The array that x is a slice of, and the number of x's first element in its memory; x itself where it is none."""
    cut = x._chain[0] if len(x._chain) == 1 else None
    if not isinstance(cut, StridedView) or not all(isinstance(item.start, int) for item in cut.slices):
        return x, 0
    whole = handle(x._storage, (), x._storage.type)
    return whole, sum([item.start * step for item, step in zip(cut.slices, whole.strides, strict=True)]) // x.dtype.itemsize


def _without_gaps(array: Tracer) -> Any:
    """The array with its axes in the order of memory: C order."""
    found = array.strides
    order = sorted(range(array.ndim), key=lambda axis: (-found[axis], array.shape[axis]))
    dense = c_strides(tuple([array.shape[axis] for axis in order]))
    if any(array.shape[axis] > 1 and found[axis] != step * array.dtype.itemsize for axis, step in zip(order, dense, strict=True)):
        raise _refused(f"as_strided of part of an array, which has gaps in memory or goes backwards{_HINT}; or of a copy, x.copy()")
    return np.transpose(array, order) if order != list(range(array.ndim)) else array


def _windows(array: Any, sizes: tuple[int, ...], steps: tuple[int, ...]) -> Any:
    """Windows that move by whole numbers of elements along the axes; None of all else."""
    rank, own = array.ndim, c_strides(array.shape)
    if len(sizes) != 2 * rank or steps[rank:] != own or any(size > extent for size, extent in zip(sizes[rank:], array.shape, strict=True)):
        return None
    moves = [step // unit for step, unit in zip(steps[:rank], own, strict=True)]
    ends = [move * (count - 1) + size for move, count, size in zip(moves, sizes[:rank], sizes[rank:], strict=True)]
    if any(move < 1 or step % unit or end > extent for move, step, unit, end, extent in zip(
            moves, steps[:rank], own, ends, array.shape, strict=True)):
        return None
    windows = np.lib.stride_tricks.sliding_window_view(array, sizes[rank:])
    return windows[tuple([slice(0, move * (count - 1) + 1, move) for move, count in zip(moves, sizes[:rank], strict=True)])]
