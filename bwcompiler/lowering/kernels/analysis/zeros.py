"""Recognises loops that set memory to zero: memset does this without reading the memory first."""

from __future__ import annotations

import numpy as np

from bwcompiler.ir.extent import Affine, Extent, add_extents, scale_extent
from bwcompiler.ir.loop import Buffer, Loop, Store

LEAST_ZEROED = 1 << 20        # bytes of memory that is set to zero by the C library; of more than the other limit Ctrl-C would wait
MOST_ZEROED = 1 << 28


def zeroed_by(loop: Loop) -> tuple[Buffer, Extent] | None:
    """The buffer that a loop sets to zero, and the start: if it does only that, on a large contiguous range."""
    *lets, store = loop.body
    if not isinstance(store, Store):
        return None
    value = store.value
    if value.op == "local" and lets == [value.data]:
        lets, value = [], value.data.value
    if lets or value.op != "const":
        return None
    dtype = store.buffer.dtype
    start = add_extents(store.offset.affine, scale_extent(loop.index.extent(), -1))
    moves = store.offset.terms or (isinstance(start, Affine) and loop.index in dict(start.terms))
    if moves or not LEAST_ZEROED <= store.buffer.size * dtype.itemsize <= MOST_ZEROED:
        return None
    if np.asarray(value.data, dtype.numpy).tobytes().strip(b"\0"):
        return None
    return store.buffer, start
