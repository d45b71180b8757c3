"""Packing: copies rows (or columns) of a tile so that the numbers of one step of a sum are contiguous.

    pack(k, count, source, along, across, target, spacing)     target[step][number] = source[number][step]

for k steps with `count` numbers each; strides are in bytes: `along` between numbers and `across` between steps in the source, `spacing`
between steps in the target.  Padding between the numbers of one step and the next may get any value (`Tiling.slack` after the last).

    pack.scattered(the same)          called by `pack` for numbers with any strides,
    pack.copied(the same)             for contiguous numbers,
    pack.turned.N(the same)           and for contiguous steps: a transposition, N vectors of numbers at a time, if loaded (`Tiling.table`)
    pack.pairs(the same)              target[2 step], target[2 step + 1] = (re, im), (-im, re) of source[.][step], for complex numbers
    pack.parts(the same)              target[2 step], target[2 step + 1] = re, im
"""

from __future__ import annotations

from bwcompiler.lowering.function_text import Index
from bwcompiler.lowering.products.routine import TILE_VECTORS, Routine, Tiling

_PARAMETERS = ("i64 k", "i64 count", "ptr source", "i64 along", "i64 across", "ptr target", "i64 spacing")
_ARGUMENTS = "i64 %k, i64 %count, ptr %source, i64 %along, i64 %across, ptr %target, i64 %spacing"


def packing_texts(tiling: Tiling) -> list[Routine]:
    """The functions that copy without transposition."""
    return [scattered_text(tiling), _copied(tiling), *([_pairs(tiling)] if tiling.dtype.is_complex else [])]


def turning_texts(tiling: Tiling) -> list[Routine]:
    """The functions that transpose squares (`Tiling.turning`)."""
    return [_turn(tiling, name, groups + 1) for groups, name in enumerate(tiling.turning)]


def choosing_texts(tiling: Tiling) -> list[Routine]:
    """The functions that choose among these."""
    return [_pack(tiling), *([_parts(tiling)] if tiling.dtype.is_complex else [])]


def _pack(tiling: Tiling) -> Routine:
    f = Routine(tiling, "pack", _PARAMETERS)
    for beside in f.branches(f.compare("eq", "%along", tiling.size)):
        if beside:
            f.do(f"call void @pack.copied({_ARGUMENTS})")
            continue
        runs, is_there = f.compare("eq", "%across", tiling.size), f.let(f"icmp ne ptr {f.entry(tiling.turning[0])}, null")
        for turns in f.branches(f.let(f"and i1 {runs}, {is_there}")):
            if turns:
                _packed_by_turning(f)
            else:
                f.do(f"call void @pack.scattered({_ARGUMENTS})")
    return f


def _packed_by_turning(f: Routine) -> None:
    """Writes whole vectors: one vector of numbers at a time if the spacing is that of a vector, else all numbers of a step."""
    tiling = f.tiling
    groups = f.parts("%count", tiling.lanes)
    aligned = f.compare("eq", f.let(f"urem i64 %spacing, {tiling.vector_bytes}"), 0)
    for alone in f.branches(aligned):
        if alone:
            for group in f.each(0, groups):
                number = f.times(group, tiling.lanes)
                source = f.moved("%source", f.product("%along", number))
                target = f.moved("%target", f.times(group, tiling.vector_bytes))
                count = f.least(f.minus("%count", number), tiling.lanes)
                turn = f.entry(tiling.turning[0])
                f.do(f"call void {turn}(i64 %k, i64 {count}, ptr {source}, i64 %along, i64 %across, ptr {target}, i64 %spacing)")
            continue
        for number, name in enumerate(tiling.turning):
            for _ in f.when(f.compare("eq", groups, number + 1)):
                f.do(f"call void {f.entry(name)}({_ARGUMENTS})")


def scattered_text(tiling: Tiling) -> Routine:
    """Numbers with any strides."""
    f = Routine(tiling, "pack.scattered", _PARAMETERS)
    for step in f.each(0, "%k"):
        source, target = f.moved("%source", f.product("%across", step)), f.moved("%target", f.product("%spacing", step))
        for number in f.each(0, "%count"):
            f.store(f.load(f.moved(source, f.product("%along", number))), f.at(target, (number, 1)))
    return f


def _copied(tiling: Tiling) -> Routine:
    """Contiguous numbers."""
    f = Routine(tiling, "pack.copied", _PARAMETERS)
    if tiling.masks:
        _copied_whole(f)
    else:
        _copied_exactly(f)
    return f


def _copied_whole(f: Routine) -> None:
    """Writes whole vectors."""
    tiling = f.tiling
    vectors = f.parts("%count", tiling.lanes)
    for number in range(1, max(TILE_VECTORS, tiling.groups) + 1):
        for _ in f.when(f.compare("eq", vectors, number)):
            places = [tiling.vector_bytes * place for place in range(number)]
            mask = f.first(f.minus("%count", (number - 1) * tiling.lanes))
            for step in f.each(0, "%k"):
                source, target = f.moved("%source", f.product("%across", step)), f.moved("%target", f.product("%spacing", step))
                for place in places:
                    f.store_vector(f.load_vector(f.moved(source, place), mask if place == places[-1] else None), f.moved(target, place))


def _copied_exactly(f: Routine) -> None:
    tiling, wide = f.tiling, f.tiling.vector_bytes
    for full in f.branches(f.compare("eq", "%count", tiling.columns)):
        if full:
            for step in f.each(0, "%k"):
                source, target = f.moved("%source", f.product("%across", step)), f.moved("%target", f.product("%spacing", step))
                for k in range(TILE_VECTORS):
                    f.store_vector(f.load_vector(f.moved(source, k * wide)), f.moved(target, k * wide))
            continue
        whole = f.quotient("%count", tiling.lanes)
        done = f.times(whole, tiling.lanes)
        for step in f.each(0, "%k"):
            source, target = f.moved("%source", f.product("%across", step)), f.moved("%target", f.product("%spacing", step))
            for group in f.each(0, whole):
                place = f.times(group, wide)
                f.store_vector(f.load_vector(f.moved(source, place)), f.moved(target, place))
            for number in f.each(done, "%count"):
                f.store(f.load(f.at(source, (number, 1))), f.at(target, (number, 1)))


def _turn(tiling: Tiling, name: str, groups: int) -> Routine:
    """Contiguous steps: squares of numbers and steps are transposed in registers, `groups` of them at a time.

    The off-diagonal quarters of a square are exchanged, then those of each quarter, and so on.  Only four rows at a time are in registers,
    the others in memory between passes: LLVM compiles this in a tenth of the time of a whole square, whose shuffles it tries to combine.
    """
    f = Routine(tiling, name, _PARAMETERS)
    lanes, vector = tiling.lanes, tiling.vector
    last = f.minus("%count", 1)
    halves = [1 << bit for bit in reversed(range(lanes.bit_length() - 1))]
    passes = [halves[k:k + 2] for k in range(0, len(halves), 2)]
    between = f.slot(f"[{groups * lanes} x {vector}], align 64") if len(passes) > 1 else ""
    squares = f.quotient("%k", lanes)

    def place_between(group: int, row: Index) -> str:
        return f.let(f"getelementptr {vector}, ptr {between}, i64 {f.plus(row, group * lanes)}")

    for square in f.each(0, squares):
        source = f.moved("%source", f.times(square, lanes * tiling.size))
        target = f.moved("%target", f.product("%spacing", f.times(square, lanes)))
        for number, sides in enumerate(passes):
            is_first, is_last, near, count = number == 0, number == len(passes) - 1, sides[-1], 1 << len(sides)
            for unit in f.each(0, lanes // count):                         # blocks of rows that exchange parts
                rows = [f.plus(unit if is_first else f.times(unit, count), near * k) for k in range(count)]
                turned = []
                for group in range(groups):
                    at = [f.moved(source, f.product("%along", f.least(f.plus(row, group * lanes), last))) if is_first
                          else place_between(group, row) for row in rows]
                    turned.append(_exchanged(f, [f.load_vector(address) for address in at], sides))
                for k, row in enumerate(rows):
                    for group in range(groups):                            # in order, as a vector may reach into the next step
                        at_end = f.moved(f.moved(target, f.product("%spacing", row)), group * tiling.vector_bytes) if is_last else ""
                        f.store_vector(turned[group][k], at_end or place_between(group, row))
    done = f.times(squares, lanes)
    source, target = f.moved("%source", f.product("%across", done)), f.moved("%target", f.product("%spacing", done))
    f.do(f"call void @pack.scattered(i64 {f.minus('%k', done)}, i64 %count, ptr {source}, i64 %along, i64 %across, ptr {target}, "
         "i64 %spacing)")
    return f


def _exchanged(f: Routine, rows: list[str], sides: list[int]) -> list[str]:
    """Two or four rows after an exchange: rows `side` apart exchange parts of `side` numbers, for each side."""
    lanes, vector = f.tiling.lanes, f.tiling.vector
    for number, side in enumerate(sides):
        low = [k + lanes - side if k & side else k for k in range(lanes)]
        high = [k + lanes if k & side else k + side for k in range(lanes)]
        apart = len(rows) >> (number + 1)
        for i in [i for i in range(len(rows)) if not i & apart]:
            x, y = rows[i], rows[i + apart]
            for place, order in ((i, low), (i + apart, high)):
                steps = ", ".join([f"i32 {k}" for k in order])
                rows[place] = f.let(f"shufflevector {vector} {x}, {vector} {y}, <{lanes} x i32> <{steps}>")
    return rows


# ----- complex numbers
def _pairs(tiling: Tiling) -> Routine:
    f = Routine(tiling, "pack.pairs", _PARAMETERS)
    lanes, wide, vector = tiling.lanes, tiling.vector_bytes, tiling.vector
    together = f.compare("eq", "%along", 2 * tiling.size)
    vectors = f.pick(together, f.quotient(f.times("%count", 2), lanes), 0)
    done = f.quotient(f.times(vectors, lanes), 2)
    signs = ", ".join([f"{f.real} {'-1.0' if k % 2 == 0 else '1.0'}" for k in range(lanes)])
    swap = ", ".join([f"i32 {k ^ 1}" for k in range(lanes)])
    for step in f.each(0, "%k"):
        source, first = f.moved("%source", f.product("%across", step)), f.moved("%target", f.product("%spacing", f.times(step, 2)))
        second = f.moved(first, "%spacing")
        for group in f.each(0, vectors):
            place = f.times(group, wide)
            plain = f.load_vector(f.moved(source, place))
            swapped = f.let(f"shufflevector {vector} {plain}, {vector} poison, <{lanes} x i32> <{swap}>")
            f.store_vector(plain, f.moved(first, place))
            f.store_vector(f.let(f"fmul {vector} {swapped}, <{signs}>"), f.moved(second, place))
        for number in f.each(done, "%count"):
            at, place = f.moved(source, f.product("%along", number)), f.times(number, 2 * tiling.size)
            re, im = f.load(at), f.load(f.moved(at, tiling.size))
            for row, pair in ((first, (re, im)), (second, (f.let(f"fneg {f.real} {im}"), re))):
                for k, part in enumerate(pair):
                    f.store(part, f.moved(f.moved(row, place), k * tiling.size))
    return f


def _parts(tiling: Tiling) -> Routine:
    f = Routine(tiling, "pack.parts", _PARAMETERS)
    spacing = f.times("%spacing", 2)
    for part in range(2):
        source, target = f.moved("%source", part * tiling.size), f.moved("%target", f.times("%spacing", part))
        f.do(f"call void @pack(i64 %k, i64 %count, ptr {source}, i64 %along, i64 %across, ptr {target}, i64 {spacing})")
    return f
