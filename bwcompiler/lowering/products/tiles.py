"""The tile: some rows by at most two vectors of columns of a result, in registers while the terms of a block are added.

    tile.HxV(k, a, a.row, a.column, b, b.row, c, c.row, old, old.row, columns)        H rows, V vectors; one function for each
        c = old + (sum of k products),  where the sum starts as 0 and takes one term after the other
    tile(k, a, a.row, a.column, b, b.row, c, c.row, add, height, columns)             any rows and columns; old is c, or 0
    tile.plain(the same)                                                              the same results, without vectors

Strides are in bytes.  A row of b is always V full vectors in memory; of c and old only `columns` columns are accessed.
Elements of a are read one by one with two free strides, so one function reads packed, plain and transposed matrices.
The tiles of the first kind are compiled when programs need them (`parts.py`): their addresses are in a table, and `tile.plain` replaces
one that is not loaded yet.
"""

from __future__ import annotations

from bwcompiler.lowering.function_text import Index
from bwcompiler.lowering.products.routine import LINE_BYTES, TABLE, Routine, Tiling, tile_name

_SPAN = 7                      # rows that can be addressed by a pointer and a scaled register


def tile_texts(tiling: Tiling) -> list[Routine | str]:
    """The function that chooses a tile, and its data."""
    return [f"@zeros = internal constant [{tiling.columns} x {tiling.real}] zeroinitializer\n", _choice(tiling)]


_KERNEL = ("i64 k", "ptr a", "i64 a.row", "i64 a.column", "ptr b", "i64 b.row", "ptr c", "i64 c.row", "ptr old", "i64 old.row",
           "i64 columns")


def tile_text(tiling: Tiling, height: int, vectors: int) -> Routine:
    """The function for `height` rows and `vectors` vectors."""
    f = Routine(tiling, tile_name(height, vectors), _KERNEL)
    vector, wide = tiling.vector, tiling.vector_bytes
    steps = _row_steps(f, min(height, _SPAN))
    last = f.times("%a.row", _SPAN) if height > _SPAN else 0
    line = "%c"
    for i in range(height):                          # prefetch the result, whose lines may be far from the first caches
        for place in range(0, vectors * wide, LINE_BYTES):
            f.prefetch(f.moved(line, place))
        line = f.moved(line, "%c.row") if i < height - 1 else line
    sums = [[f"%sum{i}.{k}" for k in range(vectors)] for i in range(height)]
    f.do("br label %head")
    f.start("head")
    phis = len(f.lines)
    f.do(f"br i1 {f.compare('slt', '%done', '%k')}, label %body, label %exit")
    f.start("body")
    row = [f.load_vector(f.moved("%b.at", k * wide)) for k in range(vectors)]
    spans = ["%a.at", f.moved("%a.at", last)]
    after = {"%done": ("i64", "0", f.plus("%done", 1)), "%a.at": ("ptr", "%a", f.moved("%a.at", "%a.column")),
             "%b.at": ("ptr", "%b", f.moved("%b.at", "%b.row"))}
    for i in range(height):
        factor = f.splat(f.load(f.moved(spans[i // _SPAN], steps[i % _SPAN])))
        for total, other in zip(sums[i], row, strict=True):
            after[total] = (vector, "zeroinitializer", f.multiply_add(factor, other, total))
    f.do("br label %head")
    f.lines[phis:phis] = [f"  {name} = phi {type_} [ {start}, %start ], [ {next_}, %body ]"
                          for name, (type_, start, next_) in after.items()]
    f.start("exit")
    mask = f.first(f.minus("%columns", (vectors - 1) * tiling.lanes)) if tiling.masks else None
    c, old = "%c", "%old"
    for i in range(height):
        for k, total in enumerate(sums[i]):
            part = mask if k == vectors - 1 else None
            before = f.load_vector(f.moved(old, k * wide), part)
            f.store_vector(f.let(f"fadd {vector} {before}, {total}"), f.moved(c, k * wide), part)
        if i < height - 1:
            c, old = f.moved(c, "%c.row"), f.moved(old, "%old.row")
    return f


def _row_steps(f: Routine, count: int) -> list[Index]:
    """Offsets of 0 ... count - 1 rows in bytes: three registers, shifted by 1 or 2, which x86-64 addressing modes do for free."""
    steps: list[Index] = [0, "%a.row"]
    for k in range(2, count):
        shift = {2: 1, 4: 2, 6: 1}.get(k)
        steps.append(f.times("%a.row", k) if shift is None else f.let(f"shl i64 {steps[k >> shift]}, {shift}"))
    return steps[:count]


_ANY_TILE = (*_KERNEL[:-3], "i1 add", "i64 height", "i64 columns")


def plain_tile_text(tiling: Tiling) -> Routine:
    """Each element separately: terms are added in the same order as in the other tiles."""
    f = Routine(tiling, "tile.plain", _ANY_TILE)
    total = f.variable(tiling.real, "0.0")
    for i in f.each(0, "%height"):
        for j in f.each(0, "%columns"):
            f.put(total, "0.0", tiling.real)
            left, right = f.moved("%a", f.product("%a.row", i)), f.moved("%b", f.times(j, tiling.size))
            for k in f.each(0, "%k"):
                x, y = [f.load(f.moved(at, f.product(step, k))) for at, step in ((left, "%a.column"), (right, "%b.row"))]
                f.put(total, f.multiply_add(x, y, f.get(total, tiling.real), scalar=True), tiling.real)
            place = f.moved(f.moved("%c", f.product("%c.row", i)), f.times(j, tiling.size))
            before = f.pick("%add", f.load(place), "0.0", tiling.real)
            f.store(f.arithmetic("fadd", before, f.get(total, tiling.real)), place)
    return f


def _choice(tiling: Tiling) -> Routine:
    f = Routine(tiling, "tile", _ANY_TILE)
    wide = f.compare("sgt", "%columns", tiling.lanes)
    number = f.plus(f.pick(wide, tiling.height, 0), f.minus("%height", 1))
    kernel = f.get(f.let(f"getelementptr ptr, ptr @{TABLE}, i64 {number}"), "ptr")
    missing = f.let(f"icmp eq ptr {kernel}, null")
    for _ in f.when(missing):
        f.do(f"call void @tile.plain({', '.join([argument.replace(' ', ' %') for argument in _ANY_TILE])})")
    f.leave_if(missing, "void")
    told = "i64 %k, ptr %a, i64 %a.row, i64 %a.column, ptr %b, i64 %b.row"

    def run(c: str, row: Index, old: str, old_row: Index) -> None:
        f.do(f"call void {kernel}({told}, ptr {c}, i64 {row}, ptr {old}, i64 {old_row}, i64 %columns)")

    def direct() -> None:
        run("%c", "%c.row", f.pick("%add", "%c", "@zeros", "ptr"), f.pick("%add", "%c.row", 0))

    if tiling.masks:
        direct()
        return f
    full = f.compare("eq", "%columns", f.pick(wide, tiling.columns, tiling.lanes))
    for is_full in f.branches(full):
        if is_full:
            direct()
            continue
        memory, row = f.slot(f"[{tiling.height * tiling.columns} x {tiling.real}]"), tiling.columns * tiling.size
        for _ in f.when("%add"):
            _copy_tile(f, "%c", "%c.row", memory, row)
        run(memory, row, f.pick("%add", memory, "@zeros", "ptr"), f.pick("%add", row, 0))
        _copy_tile(f, memory, row, "%c", "%c.row")
    return f


def _copy_tile(f: Routine, source: str, source_row: Index, target: str, target_row: Index) -> None:
    for i in f.each(0, "%height"):
        from_, to = f.moved(source, f.product(source_row, i)), f.moved(target, f.product(target_row, i))
        for j in f.each(0, "%columns"):
            f.store(f.load(f.at(from_, (j, 1))), f.at(to, (j, 1)))
