"""The modules of the products of a dtype, and which of them a program needs.

    control     code that runs a few times per product: it is not optimised, which would take LLVM ten times as long
    rows        code that runs for each row of tiles, and packing
    cutting     products that may be divided among threads, and batches: not optimised, like control
    tile.HxV    one tile each
    vectors     matrix-vector products
    turning     packing by transposition
    runtime     the thread pool and polls for signals, which are not part of the products

The first two are for all products, in one library, which exports the table of addresses of the others (`Tiling.table`) and the functions
that these call (`SHARED`).  Each takes LLVM 5 to 30 ms, all of them together 150; most programs need two or three tiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bwcompiler.ir.types import DType
from bwcompiler.lowering.products.blocked import PACKED_PANELS, block_texts, blocked_text
from bwcompiler.lowering.products.call import HUGE, LARGE, LONG, MANY, TURNED, Named, Needs, call_texts, cutting_texts, symbol
from bwcompiler.lowering.products.packing import choosing_texts, packing_texts, scattered_text, turning_texts
from bwcompiler.lowering.products.routine import RUNTIME_FUNCTIONS, TABLE, TILE_VECTORS, VECTOR_FUNCTIONS, Routine, Tiling, tile_name
from bwcompiler.lowering.products.tiles import plain_tile_text, tile_text, tile_texts
from bwcompiler.lowering.products.vectors import vector_texts
from bwcompiler.target import Target

CONTROL, ROWS, CUTTING, VECTORS, TURNING, RUNTIME = "control", "rows", "cutting", "vectors", "turning", "runtime"
ALWAYS = (CONTROL, ROWS)
SHARED = (TABLE, "product.matrix", "pack.scattered")       # symbols that other modules refer to, besides those that programs call
_TILE = re.compile(r"tile\.(\d+)x(\d+)")
_SIZES = re.compile(r"(\d+)x(\d+)")


def parts_for(product: Named, target: Target) -> list[str]:
    """The modules for the product with this name, besides those that all products need."""
    return [*([] if product.alone else [CUTTING]), *_parts_for_needs(product.dtype, target, product.needs)]


def later_for(product: Named) -> tuple[str, ...]:
    """Those of them that may be missing in the first calls: the results are the same, but take somewhat longer."""
    late = {TURNING: MANY, RUNTIME: HUGE} if product.needs else {}
    return tuple([name for name, word in late.items() if word not in product.needs])


def _parts_for_needs(dtype: DType, target: Target, needs: Needs) -> list[str]:
    tiling = Tiling.of(dtype, target)
    if not needs:
        tiles = [tile_name(height, vectors) for height in tiling.heights for vectors in range(1, TILE_VECTORS + 1)]
        return [RUNTIME, VECTORS, TURNING, *tiles]
    found = [RUNTIME] if LARGE in needs else []
    sizes = _SIZES.fullmatch(needs[0])
    if sizes is None:
        return [*found, VECTORS]
    rows, columns = int(sizes[1]), int(sizes[2]) * tiling.parts
    if TURNED in needs or (LONG in needs and columns > (PACKED_PANELS - 1) * tiling.columns):
        found.append(TURNING)
    return [*found, *[tile_name(height, vectors) for height in sorted(tiling.heights_for(rows))
                      for vectors in sorted(tiling.vectors_for(columns))]]


def functions_of(dtype: DType, target: Target, part: str) -> tuple[str, ...]:
    """The functions of a module whose addresses are in the table."""
    if part in (*ALWAYS, CUTTING):
        return ()
    functions = {VECTORS: VECTOR_FUNCTIONS, TURNING: Tiling.of(dtype, target).turning, RUNTIME: RUNTIME_FUNCTIONS}
    return functions.get(part, (part,))


def exports_of(dtype: DType, part: str) -> tuple[str, ...]:
    """The other functions of a module that programs or other modules refer to."""
    return {CONTROL: (symbol(dtype, alone=True), *SHARED), CUTTING: (symbol(dtype),)}.get(part, ())


def part_text(dtype: DType, target: Target, part: str) -> str:
    """The module."""
    tiling = Tiling.of(dtype, target)
    table = f"[{len(tiling.table)} x ptr]"
    if part in ALWAYS:
        control = [*call_texts(tiling), blocked_text(tiling), *choosing_texts(tiling), plain_tile_text(tiling)]
        rows = [*tile_texts(tiling), *block_texts(tiling), *packing_texts(tiling)]
        if part == CONTROL:
            return _module([f"@{TABLE} = external global {table}", *control], rows, target)
        return _module([f"@{TABLE} = global {table} zeroinitializer", *rows], control, target)
    if part == CUTTING:
        return _module([f"@{TABLE} = external global {table}", *cutting_texts(tiling)], call_texts(tiling), target)
    if part in (TURNING, VECTORS):
        return _module([*(turning_texts(tiling) if part == TURNING else vector_texts(tiling))], [scattered_text(tiling)], target)
    found = _TILE.fullmatch(part)
    assert found is not None, part
    return _module([tile_text(tiling, int(found[1]), int(found[2]))], [], target)


def _module(made: list[Routine | str], others: Iterable[Routine | str], target: Target) -> str:
    """The module of functions that may call others."""
    text = "\n".join([one.text() if isinstance(one, Routine) else one for one in made])
    declares = dict.fromkeys([line for one in made if isinstance(one, Routine) for line in one.declares])
    called = [one.declaration for one in others if isinstance(one, Routine) and f"@{one.name}(" in text]
    return "\n".join([text, *declares, *called, f"attributes #1 = {{ noinline {target.function_attributes} }}", ""])
