"""Products of a matrix and a vector, y[i] = sum of a[i, k] x[k], at the speed of memory: the matrix is read once and in order.

    vector.rows(m, k, a, a.row, x, x.step, y)             contiguous rows: the lanes of a sum are numbers of one row, LANES of them on
                                                          all targets, and are added pairwise at the end
    vector.columns(m, k, a, a.column, x, x.step, y)       contiguous columns: sums have the order of the tile (`tiles.py`)

Strides are in bytes, m and k count elements.  For complex numbers, rows are multiplied by two real vectors, (re, -im) and (im, re) of x;
columns are multiplied by re, and with exchanged parts by (-im, im).  `vector.rows` returns whether it succeeded: it fails if there is no
memory for a copy of the vector.
"""

from __future__ import annotations

from bwcompiler.ir.contracts.program_interface import GIVE, TAKE
from bwcompiler.ir.products import BLOCK
from bwcompiler.lowering.products.routine import STACK_BYTES, Routine, Tiling

LANES = 32                     # lanes of a sum along a row; they determine the bits of the result
_STRIP = 2048                  # elements of y that stay in the L1 cache while columns are added
_TOGETHER = 8                  # columns that are added while a vector of y is in a register
_AHEAD = 256                   # bytes of each to prefetch ahead: the hardware prefetcher does not follow that many streams
_SUMS = 8                      # least vectors of sums at a time


def vector_texts(tiling: Tiling) -> list[Routine | str]:
    """The functions."""
    together = max(1, _SUMS * tiling.lanes // LANES)
    groups = [_rows(tiling, count) for count in dict.fromkeys((1, together))]
    turned = [_turned_vector(tiling)] if tiling.dtype.is_complex else []
    return [*groups, _all_rows(tiling, together), *turned, _rows_by(tiling), _strip(tiling), _columns(tiling)]


# ----- rows
def _rows_by(tiling: Tiling) -> Routine:
    f = Routine(tiling, "vector.rows", ["i64 m", "i64 k", "ptr a", "i64 a.row", "ptr x", "i64 x.step", "ptr y"], "i1")
    is_complex = tiling.dtype.is_complex
    if not is_complex:
        beside = f.compare("eq", "%x.step", tiling.size)
        for _ in f.when(beside):
            f.do("call void @vector.rows.all(i64 %m, i64 %k, ptr %a, i64 %a.row, ptr %x, ptr %y)")
        f.leave_if(beside, "i1 true")
    needed = f.times("%k", tiling.parts * tiling.dtype.itemsize)
    stack = f.slot(f"[{STACK_BYTES} x i8], align 64")
    large = f.compare("sgt", needed, STACK_BYTES)
    memory = f.variable("ptr", stack)
    for _ in f.when(large):
        found = f.call("ptr", TAKE, f"i64 {needed}")
        f.leave_if(f.let(f"icmp eq ptr {found}, null"), "i1 false")
        f.put(memory, found, "ptr")
    copy = f.get(memory, "ptr")
    if is_complex:
        f.do(f"call void @vector.turned(i64 %k, ptr %x, i64 %x.step, ptr {copy})")
    else:
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
            a, y = f.moved("%a", f.product("%a.row", row)), f.moved("%y", f.times(row, tiling.dtype.itemsize))
            reals = f.times("%k", tiling.parts)
            for part in range(tiling.parts):
                x = f.moved("%x", f.times(reals, part * tiling.size))
                f.do(f"call void @vector.rows.{count}(i64 {reals}, ptr {a}, i64 %a.row, ptr {x}, ptr {f.moved(y, part * tiling.size)})")
    return f


def _turned_vector(tiling: Tiling) -> Routine:
    """(re, -im) of all elements, and then (im, re)."""
    f = Routine(tiling, "vector.turned", ["i64 k", "ptr x", "i64 x.step", "ptr copy"])
    size = tiling.size
    second = f.moved("%copy", f.times("%k", 2 * size))
    for k in f.each(0, "%k"):
        at, place = f.moved("%x", f.product("%x.step", k)), f.times(k, 2 * size)
        re, im = f.load(at), f.load(f.moved(at, size))
        for copy, pair in (("%copy", (re, f.let(f"fneg {f.real} {im}"))), (second, (im, re))):
            for part, number in enumerate(pair):
                f.store(number, f.moved(f.moved(copy, place), part * size))
    return f


def _rows(tiling: Tiling, count: int) -> Routine:
    """`count` rows at a time."""
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
        f.store(_added_up(f, [f.get(total, vector) for total in totals]), f.moved("%y", number * tiling.dtype.itemsize))
    return f


def _add(f: Routine, left: list[str], right: list[str], totals: list[str]) -> None:
    for x, y, total in zip(left, right, totals, strict=True):
        f.put(total, f.multiply_add(x, y, f.get(total, f.tiling.vector)), f.tiling.vector)


def _padded(f: Routine, source: str, count: int | str) -> str:
    """A copy of `count` numbers, padded with zeros to LANES."""
    memory = f.slot(f"[{LANES} x {f.real}]")
    for k in range(0, LANES, f.tiling.lanes):
        f.store_vector("zeroinitializer", f.moved(memory, k * f.tiling.size))
    for number in f.each(0, count):
        f.store(f.load(f.at(source, (number, 1))), f.at(memory, (number, 1)))
    return memory


def _added_up(f: Routine, vectors: list[str]) -> str:
    """The sum of all lanes, pairwise: number k plus the one half of the lanes further on, until one is left."""
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
    memory, reals = f.slot(f"[{_STRIP} x {tiling.real}]"), f.times("%m", tiling.parts)
    for strip in f.each(0, f.parts(reals, _STRIP)):
        first = f.times(strip, _STRIP)
        count = f.least(f.minus(reals, first), _STRIP)
        place, length = f.times(first, tiling.size), f.times(count, tiling.size)
        f.call("void", "llvm.memset.p0.i64", f"ptr {f.moved('%y', place)}", "i8 0", f"i64 {length}", "i1 false")
        for block in f.each(0, f.parts("%k", BLOCK // tiling.parts)):
            start = f.times(block, BLOCK // tiling.parts)
            number = f.least(f.minus("%k", start), BLOCK // tiling.parts)
            a = f.moved(f.moved("%a", place), f.product("%a.column", start))
            x = f.moved("%x", f.product("%x.step", start))
            f.do(f"call void @vector.strip(i64 {count}, i64 {number}, ptr {a}, i64 %a.column, ptr {x}, i64 %x.step, ptr {memory})")
            for i in f.each(0, count):                      # y = y + sums
                at = f.at(f.moved("%y", place), (i, 1))
                f.store(f.arithmetic("fadd", f.load(at), f.load(f.at(memory, (i, 1)))), at)
    return f


def _strip(tiling: Tiling) -> Routine:
    """sums = the products of some columns, added one after the other; m counts real numbers."""
    f = Routine(tiling, "vector.strip", ["i64 m", "i64 k", "ptr a", "i64 a.column", "ptr x", "i64 x.step", "ptr sums"])
    f.call("void", "llvm.memset.p0.i64", "ptr %sums", "i8 0", f"i64 {f.times('%m', tiling.size)}", "i1 false")
    together = _TOGETHER // tiling.parts
    done = f.times(f.quotient("%k", together), together)
    whole = f.times(f.quotient("%m", tiling.lanes), tiling.lanes)
    mask = f.first(f.minus("%m", whole)) if tiling.masks else None
    for count, first, end in ((together, "0", done), (1, done, "%k")):
        for step in f.each(0, f.quotient(f.minus(end, 0 if first == "0" else first), count)):
            column = f.plus(0 if first == "0" else first, f.times(step, count))
            columns = [f.moved("%a", f.product("%a.column", f.plus(column, k))) for k in range(count)]
            places = [f.moved("%x", f.product("%x.step", f.plus(column, k))) for k in range(count)]
            factors = [[f.load(f.moved(place, part * tiling.size)) for part in range(tiling.parts)] for place in places]
            vectors = [_spread(f, factor) for factor in factors]
            for group in f.each(0, f.quotient(whole, tiling.lanes)):
                _add_columns(f, columns, vectors, f.times(group, tiling.vector_bytes))
            if mask is not None:
                for _ in f.when(f.compare("slt", whole, "%m")):
                    _add_columns(f, columns, vectors, f.times(whole, tiling.size), mask)
                continue
            for element in f.each(f.quotient(whole, tiling.parts), f.quotient("%m", tiling.parts)):
                _add_elements(f, columns, factors, f.times(element, tiling.dtype.itemsize))
    return f


def _spread(f: Routine, factor: list[str]) -> list[str]:
    """A factor in all lanes; for a complex one re, and (-im, im)."""
    vectors = [f.splat(part) for part in factor]
    if len(factor) > 1:
        signs = ", ".join([f"{f.real} {'-1.0' if k % 2 == 0 else '1.0'}" for k in range(f.tiling.lanes)])
        vectors[1] = f.let(f"fmul {f.tiling.vector} {vectors[1]}, <{signs}>")
    return vectors


def _add_columns(f: Routine, columns: list[str], factors: list[list[str]], place: int | str, mask: str | None = None) -> None:
    at, vector = f.moved("%sums", place), f.tiling.vector
    swap = ", ".join([f"i32 {k ^ 1}" for k in range(f.tiling.lanes)])
    total = f.load_vector(at, mask)
    for pointer, parts in zip(columns, factors, strict=True):
        if mask is None:
            f.prefetch(f.moved(f.moved(pointer, place), _AHEAD))
        column = f.load_vector(f.moved(pointer, place), mask)
        total = f.multiply_add(column, parts[0], total)
        if len(parts) > 1:
            swapped = f.let(f"shufflevector {vector} {column}, {vector} poison, <{f.tiling.lanes} x i32> <{swap}>")
            total = f.multiply_add(swapped, parts[1], total)
    f.store_vector(total, at, mask)


def _add_elements(f: Routine, columns: list[str], factors: list[list[str]], place: int | str) -> None:
    """The remainder after whole vectors, in the same order."""
    size, count = f.tiling.size, f.tiling.parts
    targets = [f.moved(f.moved("%sums", place), part * size) for part in range(count)]
    totals = [f.load(target) for target in targets]
    for pointer, factor in zip(columns, factors, strict=True):
        parts = [f.load(f.moved(f.moved(pointer, place), part * size)) for part in range(count)]
        totals = [f.multiply_add(part, factor[0], total, scalar=True) for part, total in zip(parts, totals, strict=True)]
        if count > 1:
            crossed = [f.let(f"fneg {f.real} {factor[1]}"), factor[1]]
            totals = [f.multiply_add(part, other, total, scalar=True)
                      for part, other, total in zip(reversed(parts), crossed, totals, strict=True)]
    for total, target in zip(totals, targets, strict=True):
        f.store(total, target)
