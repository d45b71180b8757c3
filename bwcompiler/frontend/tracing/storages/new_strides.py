"""The strides, in elements, of the results and copies that NumPy makes, found by asking NumPy itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.frontend.tracing.storages.shapes import Shape, c_strides, fortran_strides, known_shape


def result_strides(shape: Shape, operands: Sequence[np.ndarray[Any, Any]], order: Any = "K") -> tuple[int, ...] | None:
    """Strides in elements that NumPy gives a new array computed from operands laid out so, by order "K" or "A"; None for C order."""
    if len(shape) < 2 or 0 in shape:
        return None
    shape = known_shape(shape)
    if order == "A":
        return fortran_strides(shape) if all(operand.flags.f_contiguous for operand in operands) else None
    views = [_small(operand, shape) for operand in operands]
    flags: Any = [["readonly"]] * len(views) + [["writeonly", "allocate"]]
    return _ordered_like(np.nditer([*views, None], [], flags, [np.dtype(np.int8)] * len(flags), "K").operands[-1], shape)


def copied_strides(shape: Shape, operand: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """As `result_strides`, of a copy in the order of the operand: not the same where axes are broadcast."""
    return None if len(shape) < 2 or 0 in shape else _ordered_like(np.empty_like(_small(operand, shape)), shape)


def _small(operand: np.ndarray[Any, Any], shape: Shape) -> np.ndarray[Any, Any]:
    """The operand broadcast to `shape`, with at most two elements along each axis, so that nothing large is allocated."""
    strides = (0,) * (len(shape) - operand.ndim) + tuple([step if extent > 1 else 0 for step, extent in zip(
        operand.strides, operand.shape, strict=True)])
    return np.lib.stride_tricks.as_strided(np.zeros((), np.int8), [min(extent, 2) for extent in shape], strides)


def _ordered_like(made: np.ndarray[Any, Any], shape: Shape) -> tuple[int, ...] | None:
    """Strides of a dense array of that shape, its axes in the order of `made`; None for C order."""
    order = sorted(range(len(shape)), key=lambda axis: (-made.strides[axis], axis))
    strides_by_axis = dict(zip(order, c_strides(tuple([shape[axis] for axis in order])), strict=True))
    found = tuple([strides_by_axis[axis] for axis in range(len(shape))])
    return None if found == c_strides(shape) else found
