"""Products of a matrix and a vector, y[i] = sum of a[i, k] x[k], at the speed of memory: the matrix is read once and in order.

    vector.rows(m, k, a, a.row, x, x.step, y)             rows lie together: the lanes of a sum are numbers of one row, LANES of them on
                                                          all targets, and are added up in pairs at the end
    vector.columns(m, k, a, a.column, x, x.step, y)       columns do: sums are those of the tile (`tiles.py`), in the same order

Strides are in bytes.  The first says whether it did it: not where there is no memory for a copy of a vector that does not lie together.
"""

from __future__ import annotations

from bwcompiler.lowering.products.routine import BLOCK, GIVE, STACK_BYTES, TAKE, Routine, Tiling

LANES = 32                     # of a sum along a row; it decides the bits
_STRIP = 2048                  # elements of y that stay in the first cache while columns are added
_TOGETHER = 8                  # columns that are added while a vector of y is in a register
_AHEAD = 256                   # bytes of each that are asked for in advance: so many streams at a time are too many to be foreseen
_SUMS = 8                      # vectors of sums at a time, at least


def vector_texts(tiling: Tiling) -> list[Routine | str]:
    """The functions."""
    together = max(1, _SUMS * tiling.lanes // LANES)
    groups = [_rows(tiling, count) for count in dict.fromkeys((1, together))]
    return [*groups, _all_rows(tiling, together), _rows_by(tiling), _strip(tiling), _columns(tiling)]


# ----- rows
def _rows_by(tiling: Tiling) -> Routine:
    f = Routine(tiling, "vector.rows", ["i64 m", "i64 k", "ptr a", "i64 a.row", "ptr x", "i64 x.step", "ptr y"], "i1")
    beside = f.compare("eq", "%x.step", tiling.size)
    for _ in f.when(beside):
        f.do("call void @vector.rows.all(i64 %m, i64 %k, ptr %a, i64 %a.row, ptr %x, ptr %y)")
    f.leave_if(beside, "i1 true")
    needed = f.times("%k", tiling.size)
    stack = f.slot(f"[{STACK_BYTES} x i8], align 64")
    large = f.compare("sgt", needed, STACK_BYTES)
    memory = f.variable("ptr", stack)
    for _ in f.when(large):
        found = f.call("ptr", TAKE, f"i64 {needed}")
        f.leave_if(f.let(f"icmp eq ptr {found}, null"), "i1 false")
        f.put(memory, found, "ptr")
    copy = f.get(memory, "ptr")
    f.do(f"call void @pack.scattered(i64 %k, i64 1, ptr %x, i64 0, i64 %x.step, ptr {copy}, i64 {tiling.size})")
    f.do(f"call void @vector.rows.all(i64 %m, i64 %k, ptr %a, i64 %a.row, ptr {copy}, ptr %y)")
    for _ in f.when(large):
        f.call("void", GIVE, f"ptr {copy}")
    f.do("ret i1 true")
    return f


def _all_rows(tiling: Tiling, together: int) -> Routine:
    f = Routine(tiling, "vector.rows.all", ["i64 m", "i64 k", "ptr a", "i64 a.row", "ptr x", "ptr y"])
    done = f.times(f.quotient("%m", together), together)
    for count, first, end in dict.fromkeys(((together, "0", done), (1, done, "%m"))):
        for step in f.each(0, f.quotient(f.minus(end, 0 if first == "0" else first), count)):
            row = f.plus(0 if first == "0" else first, f.times(step, count))
            a, y = f.moved("%a", f.product("%a.row", row)), f.moved("%y", f.times(row, tiling.size))
            f.do(f"call void @vector.rows.{count}(i64 %k, ptr {a}, i64 %a.row, ptr %x, ptr {y})")
    return f


def _rows(tiling: Tiling, count: int) -> Routine:
    """So many rows at a time."""
    f = Routine(tiling, f"vector.rows.{count}", ["i64 k", "ptr a", "i64 a.row", "ptr x", "ptr y"])
    vector, wide, parts = tiling.vector, tiling.vector_bytes, LANES // tiling.lanes
    sums = [[f.variable(vector, "zeroinitializer") for _ in range(parts)] for _ in range(count)]
    rows = [f.moved("%a", f.times("%a.row", number)) for number in range(count)]
    whole = f.quotient("%k", LANES)
    for step in f.each(0, whole):
        place = f.times(step, LANES * tiling.size)
        others = [f.load_vector(f.moved(f.moved("%x", place), part * wide)) for part in range(parts)]
        for row, totals in zip(rows, sums, strict=True):
            _add(f, [f.load_vector(f.moved(f.moved(row, place), part * wide)) for part in range(parts)], others, totals)
    done = f.times(whole, LANES)
    rest, place = f.minus("%k", done), f.times(done, tiling.size)
    for _ in f.when(f.compare("sgt", rest, 0)):
        x = f.moved("%x", place)
        if tiling.masks:
            masks = [f.first(f.minus(rest, part * tiling.lanes)) for part in range(parts)]
            others = [f.load_vector(f.moved(x, part * wide), mask) for part, mask in enumerate(masks)]
            for row, totals in zip(rows, sums, strict=True):
                start = f.moved(row, place)
                _add(f, [f.load_vector(f.moved(start, part * wide), mask) for part, mask in enumerate(masks)], others, totals)
        else:
            for row, totals in zip(rows, sums, strict=True):
                left, right = [[f.load_vector(f.moved(padded, part * wide)) for part in range(parts)]
                               for padded in (_padded(f, f.moved(row, place), rest), _padded(f, x, rest))]
                _add(f, left, right, totals)
    for number, totals in enumerate(sums):
        f.store(_added_up(f, [f.get(total, vector) for total in totals]), f.moved("%y", number * tiling.size))
    return f


def _add(f: Routine, left: list[str], right: list[str], totals: list[str]) -> None:
    for x, y, total in zip(left, right, totals, strict=True):
        f.put(total, f.multiply_add(x, y, f.get(total, f.tiling.vector)), f.tiling.vector)


def _padded(f: Routine, source: str, count: int | str) -> str:
    """A copy of so many numbers with zeros behind them: LANES in all."""
    memory = f.slot(f"[{LANES} x {f.real}]")
    for k in range(0, LANES, f.tiling.lanes):
        f.store_vector("zeroinitializer", f.moved(memory, k * f.tiling.size))
    for number in f.each(0, count):
        f.store(f.load(f.at(source, (number, 1))), f.at(memory, (number, 1)))
    return memory


def _added_up(f: Routine, vectors: list[str]) -> str:
    """The sum of all lanes: number k and the one half of them further on, until one is left."""
    tiling = f.tiling
    while len(vectors) > 1:
        half = len(vectors) // 2
        vectors = [f.let(f"fadd {tiling.vector} {x}, {y}") for x, y in zip(vectors[:half], vectors[half:], strict=True)]
    (total,) = vectors
    lanes = tiling.lanes
    while lanes > 1:
        whole, lanes = f"<{lanes} x {f.real}>", lanes // 2
        low, high = [f.let(f"shufflevector {whole} {total}, {whole} poison, <{lanes} x i32> <"
                           f"{', '.join([f'i32 {k}' for k in range(first, first + lanes)])}>") for first in (0, lanes)]
        total = f.let(f"fadd <{lanes} x {f.real}> {low}, {high}")
    return f.let(f"extractelement <1 x {f.real}> {total}, i64 0")


# ----- columns
def _columns(tiling: Tiling) -> Routine:
    f = Routine(tiling, "vector.columns", ["i64 m", "i64 k", "ptr a", "i64 a.column", "ptr x", "i64 x.step", "ptr y"])
    memory = f.slot(f"[{_STRIP} x {tiling.real}]")
    for strip in f.each(0, f.parts("%m", _STRIP)):
        first = f.times(strip, _STRIP)
        count = f.least(f.minus("%m", first), _STRIP)
        place, length = f.times(first, tiling.size), f.times(count, tiling.size)
        f.call("void", "llvm.memset.p0.i64", f"ptr {f.moved('%y', place)}", "i8 0", f"i64 {length}", "i1 false")
        for block in f.each(0, f.parts("%k", BLOCK)):
            start = f.times(block, BLOCK)
            number = f.least(f.minus("%k", start), BLOCK)
            a = f.moved(f.moved("%a", place), f.product("%a.column", start))
            x = f.moved("%x", f.product("%x.step", start))
            f.do(f"call void @vector.strip(i64 {count}, i64 {number}, ptr {a}, i64 %a.column, ptr {x}, i64 %x.step, ptr {memory})")
            for i in f.each(0, count):                      # y = y + sums
                at = f.at(f.moved("%y", place), (i, 1))
                f.store(f.arithmetic("fadd", f.load(at), f.load(f.at(memory, (i, 1)))), at)
    return f


def _strip(tiling: Tiling) -> Routine:
    """sums = the products of so many columns, added one after the other."""
    f = Routine(tiling, "vector.strip", ["i64 m", "i64 k", "ptr a", "i64 a.column", "ptr x", "i64 x.step", "ptr sums"])
    f.call("void", "llvm.memset.p0.i64", "ptr %sums", "i8 0", f"i64 {f.times('%m', tiling.size)}", "i1 false")
    done = f.times(f.quotient("%k", _TOGETHER), _TOGETHER)
    whole = f.times(f.quotient("%m", tiling.lanes), tiling.lanes)
    mask = f.first(f.minus("%m", whole)) if tiling.masks else None
    for count, first, end in ((_TOGETHER, "0", done), (1, done, "%k")):
        for step in f.each(0, f.quotient(f.minus(end, 0 if first == "0" else first), count)):
            column = f.plus(0 if first == "0" else first, f.times(step, count))
            columns = [f.moved("%a", f.product("%a.column", f.plus(column, k))) for k in range(count)]
            factors = [f.load(f.moved("%x", f.product("%x.step", f.plus(column, k)))) for k in range(count)]
            vectors = [f.splat(factor) for factor in factors]
            for group in f.each(0, f.quotient(whole, tiling.lanes)):
                place = f.times(group, tiling.vector_bytes)
                _add_columns(f, columns, vectors, place)
            if mask is not None:
                for _ in f.when(f.compare("slt", whole, "%m")):
                    _add_columns(f, columns, vectors, f.times(whole, tiling.size), mask)
                continue
            for i in f.each(whole, "%m"):
                at = f.at("%sums", (i, 1))
                total = f.load(at)
                for pointer, factor in zip(columns, factors, strict=True):
                    total = f.multiply_add(f.load(f.at(pointer, (i, 1))), factor, total, scalar=True)
                f.store(total, at)
    return f


def _add_columns(f: Routine, columns: list[str], factors: list[str], place: int | str, mask: str | None = None) -> None:
    at = f.moved("%sums", place)
    total = f.load_vector(at, mask)
    for pointer, factor in zip(columns, factors, strict=True):
        if mask is None:
            f.prefetch(f.moved(f.moved(pointer, place), _AHEAD))
        total = f.multiply_add(f.load_vector(f.moved(pointer, place), mask), factor, total)
    f.store_vector(total, at, mask)
