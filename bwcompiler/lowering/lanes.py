"""The lanes of an accumulator, as vectors: reset, added to block totals, combined into one number.

These are the only vectors that are written here rather than by LLVM, and they are whole registers and halves of registers.
"""

from __future__ import annotations

from bwcompiler.ir.reduction_tree import LANES
from bwcompiler.ir.types import DType
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, memory_type


def vector_width(emit: ScalarEmitter, dtype: DType) -> int:
    """Elements of the vectors that lanes are handled in."""
    return min(emit.target.lanes(8 * dtype.itemsize), LANES)


def _pointers(emit: ScalarEmitter, lanes: str, dtype: DType, width: int) -> list[str]:
    return [emit.put(f"getelementptr {memory_type(dtype)}, ptr {lanes}, i64 {lane}") if lane else lanes
            for lane in range(0, LANES, width)]


def load_lanes(emit: ScalarEmitter, lanes: str, dtype: DType, width: int) -> list[str]:
    """All lanes, in vectors of this width."""
    return [emit.put(f"load <{width} x {memory_type(dtype)}>, ptr {pointer}, align {dtype.itemsize}")
            for pointer in _pointers(emit, lanes, dtype, width)]


def store_lanes(emit: ScalarEmitter, lanes: str, dtype: DType, width: int, values: list[str]) -> None:
    for pointer, value in zip(_pointers(emit, lanes, dtype, width), values, strict=True):
        emit.lines.append(f"  store <{width} x {memory_type(dtype)}> {value}, ptr {pointer}, align {dtype.itemsize}")


def reset_lanes(emit: ScalarEmitter, lanes: str, dtype: DType, start: str) -> None:
    """Every lane becomes the literal `start`."""
    width = vector_width(emit, dtype)
    splat = ", ".join([f"{memory_type(dtype)} {start}"] * width)
    store_lanes(emit, lanes, dtype, width, [f"<{splat}>"] * (LANES // width))


def add_to_totals(emit: ScalarEmitter, lanes: str, dtype: DType, totals: str, wide: DType) -> None:
    """Add the lanes to the totals, which may be of a wider dtype."""
    width = vector_width(emit, wide)
    values = load_lanes(emit, lanes, dtype, width)
    if wide is not dtype:
        values = [emit.put(f"fpext <{width} x {memory_type(dtype)}> {value} to <{width} x {memory_type(wide)}>") for value in values]
    sums = [emit.combine_vectors("add", wide, width, total, value)
            for total, value in zip(load_lanes(emit, totals, wide, width), values, strict=True)]
    store_lanes(emit, totals, wide, width, sums)


def combined(emit: ScalarEmitter, lanes: str, dtype: DType, combine: str) -> str:
    """All lanes in one register, pairwise: lane j with lane j + half."""
    width, type_ = vector_width(emit, dtype), memory_type(dtype)
    vectors = load_lanes(emit, lanes, dtype, width)
    while len(vectors) > 1:
        half = len(vectors) // 2
        vectors = [emit.combine_vectors(combine, dtype, width, x, y) for x, y in zip(vectors[:half], vectors[half:], strict=True)]
    value = vectors[0]
    while width > 1:
        half = width // 2
        low, high = [emit.put(f"shufflevector <{width} x {type_}> {value}, <{width} x {type_}> poison, <{half} x i32> "
                              f"<{', '.join(f'i32 {lane}' for lane in range(first, first + half))}>") for first in (0, half)]
        value, width = emit.combine_vectors(combine, dtype, half, low, high), half
    return emit.put(f"extractelement <1 x {type_}> {value}, i64 0")
