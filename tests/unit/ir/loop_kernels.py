"""Small kernels, built by hand, that the tests of this folder share."""

from __future__ import annotations

from bwcompiler.ir.extent import Extent, Index
from bwcompiler.ir.loop import (
    INPUT,
    OUTPUT,
    Accumulate,
    Accumulator,
    Buffer,
    Kernel,
    Let,
    Loop,
    Offset,
    Reduce,
    Statement,
    Store,
    linear_offset,
    load,
)
from bwcompiler.ir.scalar import Scalar
from bwcompiler.ir.types import F64, DType


def buffer(name: str, *shape: int, role: str = INPUT, dtype: DType = F64) -> Buffer:
    return Buffer(name, dtype, shape, role)


def index(extent: int, name: str = "i") -> Index:
    return Index(0, extent - 1, name)


def loop(over: Index, *body: Statement, kind: str = "serial") -> Loop:
    return Loop(over, over.hi + 1, list(body), kind)


def at(buffer: Buffer, *entries: Extent | Index | Scalar) -> Offset:
    return linear_offset(buffer.shape, tuple(e.extent() if isinstance(e, Index) else e for e in entries))


def element(buffer: Buffer, *entries: Extent | Index | Scalar) -> Scalar:
    return load(buffer, at(buffer, *entries))


def kernel(buffers: list[Buffer], *body: Statement) -> Kernel:
    return Kernel("k0", buffers, list(body))


def row_sums(rows: int = 3, columns: int = 40) -> Kernel:
    """y[i] = sum of 2 * x[i, j] over j."""
    x, y = buffer("x", rows, columns), buffer("y", rows, role=OUTPUT)
    i, j = index(rows), index(columns, "j")
    total = Accumulator("total", "add", F64)
    twice = Let("twice", element(x, i, j) * 2.0)
    inner = loop(j, twice, Accumulate(total, "add", twice.ref()), kind="vector")
    return kernel([x, y], loop(i, Reduce(total), inner, Store(y, at(y, i), total.total())))
