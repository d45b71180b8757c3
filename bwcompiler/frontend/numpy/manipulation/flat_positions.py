"""Positions in flat arrays and along their axes: np.ix_, np.unravel_index, np.ravel_multi_index."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError
from bwcompiler.frontend.numpy.selected.packing import selected
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.operands import as_tracer, cast, constant, value_as
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64


def _in_range(index: Any, extent: int) -> Value:
    """Integers as i64; IndexError at run time for negative and too large ones."""
    value = value_as(index)
    if not value.dtype.is_integer:
        raise DTypeError(f"only int indices permitted, got {value.dtype.numpy}")
    value = cast(value, I64)
    return ops.normalize_index(ops.select(ops.less(value, constant(0, value)), constant(extent, value), value), extent=extent)


@implements(np.ix_)
@selected(np.ix_)
def ix_(*args: Any) -> Any:
    found = []
    for place, sequence in enumerate(args):
        x: Any = sequence if isinstance(sequence, Tracer | Selection) else np.asarray(sequence)
        if x.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if x.dtype == bool:
            x = np.flatnonzero(x)                           # for a traced mask a selection
        x = x.astype(np.intp) if isinstance(x, np.ndarray) and not x.size else x
        found.append(np.reshape(x, [-1 if k == place else 1 for k in range(len(args))]))
    return tuple(found)


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> Any:
    extents = (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(extent) for extent in shape)
    rest: Any = fresh(_in_range(indices, int(np.prod(extents, dtype=np.int64))))
    found = []
    for extent in extents[::-1] if order == "C" else extents:
        found.append(rest % max(extent, 1))
        rest = rest // max(extent, 1)
    return tuple(found[::-1] if order == "C" else found)


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    extents = (int(dims),) if isinstance(dims, int | np.integer) else tuple(int(extent) for extent in dims)
    if not isinstance(multi_index, tuple | list):
        rows = as_tracer(multi_index)
        multi_index = [rows[k] for k in range(rows.shape[0])]
    indices = list(multi_index)
    if len(indices) != len(extents):
        raise ValueError("parameter multi_index must be a sequence of length equal to that of dims")
    modes = (mode,) * len(extents) if isinstance(mode, str) else tuple(mode)
    found: Any = 0
    places = range(len(extents)) if order == "C" else range(len(extents) - 1, -1, -1)
    for k in places:
        found = found * extents[k] + _placed(indices[k], extents[k], modes[k])
    return found


def _placed(index: Any, extent: int, mode: str) -> Any:
    if mode == "raise":
        return fresh(_in_range(index, extent))
    value: Any = fresh(cast(value_as(index), I64))
    return np.clip(value, 0, extent - 1) if mode == "clip" else value % extent
