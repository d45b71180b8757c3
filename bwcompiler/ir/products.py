"""Properties of matrix products that passes and lowering share: the order of their sums, and which ones are unrolled."""

from __future__ import annotations

from bwcompiler.ir.op import Value

BLOCK = 256                    # terms of a block, added one after the other; block sums are added in order.  It determines the bits.


def is_written_out(value: Value) -> bool:
    """Whether a matrix product is small enough to be unrolled in the program."""
    rows, columns = value.shape[-2:]
    inner = value.operands[0].shape[-1]
    if value.dtype.kind != "f" or not inner or not all(isinstance(extent, int) for extent in (*value.shape, inner)):
        return False
    return bool(1 < columns <= 32 and (inner * columns <= 64 or (inner <= 32 and rows * inner * columns <= 4096)))
