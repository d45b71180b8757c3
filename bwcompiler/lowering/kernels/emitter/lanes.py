"""The lanes of an accumulator, as one vector: reset, added to block totals, combined into one number.

Vectors are only split into halves and single elements: other shuffles in LLVM are not trusted (`runtime/jit.py`).
"""

from __future__ import annotations

from bwcompiler.ir.semantics.reduction_tree import LANES
from bwcompiler.ir.types import DType
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, memory_type


def load_lanes(emit: ScalarEmitter, lanes: str, dtype: DType) -> str:
    return emit.put(f"load <{LANES} x {memory_type(dtype)}>, ptr {lanes}, align 64")


def store_lanes(emit: ScalarEmitter, lanes: str, dtype: DType, values: str) -> None:
    emit.lines.append(f"  store <{LANES} x {memory_type(dtype)}> {values}, ptr {lanes}, align 64")


def reset_lanes(emit: ScalarEmitter, lanes: str, dtype: DType, start: str) -> None:
    """Every lane becomes the literal `start`."""
    store_lanes(emit, lanes, dtype, f"splat ({memory_type(dtype)} {start})")


def add_to_totals(emit: ScalarEmitter, lanes: str, dtype: DType, totals: str, wide: DType) -> None:
    """Add the lanes to the totals, which may be of a wider dtype."""
    values = load_lanes(emit, lanes, dtype)
    with emit.wide(LANES):
        if wide is not dtype:
            values = emit.cast(values, dtype, wide)
        store_lanes(emit, totals, wide, emit.combine("add", wide, load_lanes(emit, totals, wide), values))


def combined(emit: ScalarEmitter, value: str, dtype: DType, combine: str, width: int = LANES) -> str:
    """The elements of a vector in one register, pairwise: element j with element j + half."""
    type_ = memory_type(dtype)
    while width > 1:
        half = width // 2
        low, high = [emit.put(f"shufflevector <{width} x {type_}> {value}, <{width} x {type_}> poison, <{half} x i32> "
                              f"<{', '.join(f'i32 {lane}' for lane in range(first, first + half))}>") for first in (0, half)]
        if half == 1:
            low, high = [emit.put(f"extractelement <1 x {type_}> {one}, i64 0") for one in (low, high)]
        with emit.wide(half):
            value, width = emit.combine(combine, dtype, low, high), half
    return value
