"""np.packbits and np.unpackbits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.numpy.elementwise.ufuncs import truth
from bwcompiler.frontend.numpy.linalg.linear import moved_last, permuted
from bwcompiler.frontend.numpy.reductions.reductions import reduce_value
from bwcompiler.frontend.tracing.operands import cast, filled, reshape, value_as
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.storages.views import broadcast_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import U8


def _lines(a: Any, axis: Any, name: str) -> tuple[Value, int]:
    """The operand with the axis moved to the end, and that axis; None: flattened."""
    x = value_as(a)
    if x.dtype.kind not in "iub":
        raise TypeError(f"np.{name}: expected an array of integers or booleans, got {x.dtype.numpy}")
    if axis is None or not x.rank:
        return reshape(x, (exact_count(x.shape),)), 0
    place = normalize_axis(axis, x.rank)
    return moved_last(x, place), place


def _moved_back(x: Value, place: int) -> Any:
    last = x.rank - 1
    return fresh(permuted(x, (*range(place), last, *range(place, last))))


def _weights(bitorder: str, shape: tuple[Any, ...]) -> Value:
    """The value of each of the 8 bits of a byte, along the last axis."""
    if bitorder not in ("big", "little"):
        raise ValueError(f"'order' must be either 'little' or 'big', got {bitorder!r}")
    values = 1 << np.arange(8, dtype=np.uint8)
    return broadcast_value(value_as(values if bitorder == "little" else values[::-1].copy()), shape)


@implements(np.packbits)
def packbits(a: Any, /, axis: Any = None, bitorder: Any = "big") -> Any:
    x, place = _lines(a, axis, "packbits")
    bits = cast(truth(x), U8)
    missing = -bits.shape[-1] % 8
    if missing:
        bits = ops.concatenate(bits, filled(0, U8, (*bits.shape[:-1], missing)), axis=bits.rank - 1)
    grouped = reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    return _moved_back(reduce_value(ops.sum, ops.multiply(grouped, _weights(bitorder, grouped.shape)), (grouped.rank - 1,)), place)


@implements(np.unpackbits)
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Any:
    x, place = _lines(a, axis, "unpackbits")
    if x.dtype is not U8:
        raise TypeError(f"np.unpackbits: expected an array of uint8, got {x.dtype.numpy}")
    spread = ops.broadcast(x, shape=(*x.shape, 8), axes=tuple(range(x.rank)))
    found = cast(truth(ops.bitwise_and(spread, _weights(bitorder, spread.shape))), U8)
    bits = reshape(found, (*x.shape[:-1], 8 * x.shape[-1]))
    wanted = bits.shape[-1] if count is None else int(count)
    wanted = wanted if wanted >= 0 else bits.shape[-1] + wanted
    if wanted < 0:
        raise ValueError(f"np.unpackbits: count={count} removes more than the {bits.shape[-1]} bits there are")
    last = bits.rank - 1
    if wanted <= bits.shape[-1]:
        return _moved_back(ops.slice_axis(bits, last, 0, wanted), place)
    return _moved_back(ops.concatenate(bits, filled(0, U8, (*bits.shape[:-1], wanted - bits.shape[-1])), axis=last), place)
