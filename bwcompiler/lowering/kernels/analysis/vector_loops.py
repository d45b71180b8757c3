"""The vectoriser's decisions: which loops are vectorised, and with which width.

They follow from the facts about a loop's body (`loop_bodies.py`) and from the target.  `worthwhile` and `is_outer` say whether vectors pay
off, `vector_width` and `strip_width` how many iterations are one vector; `pieces` divides the iterations of a loop into vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bwcompiler.ir.extent import upper
from bwcompiler.ir.loop import Accumulate, Accumulator, Let, Loop, Statement, Store
from bwcompiler.ir.product_loop import PRODUCT
from bwcompiler.ir.scalar import Scalar
from bwcompiler.ir.semantics.reduction_tree import LANES
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body
from bwcompiler.lowering.math.functions import FUNCTIONS
from bwcompiler.target import Target

# (operations of a loop body, registers of one operation): mathematical functions are long chains of dependent operations, several of which
# should be in flight; short bodies have little other work to overlap.
EXPENSIVE_VECTORS = ((40, 4), (1 << 30, 2))
CHEAP_VECTORS = ((6, 4), (16, 2), (1 << 30, 1))
SMALL_BODY = 32               # most operations and accesses of a vector loop that is unrolled
WRITTEN_OUT = 48              # most operations of a loop, in all iterations, that is unrolled
LONG_INSIDE = 1 << 20         # inner iterations that count for a product, so that it is never vectorised
SHORT_INSIDE = 9              # an outer loop is vectorised if its inner loops have fewer iterations
MANY_PIECES = 3
LONGEST = 64                  # most elements of a vector
MANY_STRIDED = 3              # elements of one iteration that are read one by one, at a known distance
SHORTEST_GUARDED = 4           # iterations of a loop whose reads are guarded


# ----- whether and how wide
def native_width(body: Body, target: Target) -> int:
    """The number of iterations whose largest elements fill one register."""
    return min(target.lanes(8 * max(body.sizes)), LONGEST)


def vector_width(body: Body, target: Target) -> int:
    """The number of iterations of one vector of the loop."""
    copies = next(count for limit, count in (EXPENSIVE_VECTORS if body.expensive else CHEAP_VECTORS) if body.operations <= limit)
    if body.inner or body.grouped or body.apart:
        copies = min(copies, 2) if body.expensive else 1
    return min(copies * native_width(body, target), LONGEST)


def strip_width(body: Body, target: Target) -> int:
    """The same for a loop that reduces into lanes: all lanes at once, unless every element needs code of its own."""
    if body.expensive:
        return min(LANES, vector_width(body, target))
    strided = sum(step not in (0, 1, -1, None) for step in body.steps) - body.grouped
    return LANES if strided < MANY_STRIDED else min(LANES, native_width(body, target))


def can_mask(body: Body, target: Target) -> bool:
    """Whether the target loads and stores parts of vectors of all element sizes here."""
    return target.has_masks or (target.has_wide_masks and not any(access.buffer.dtype.itemsize < 4 for access in body.accesses))


def can_mask_any_number(body: Body, target: Target) -> bool:
    """Whether the remaining iterations can be a masked vector, if their number is unknown."""
    beside = all(step in (0, 1, -1) for step in body.steps) and not any(access.writes and not step for access, step in body.stepped())
    return can_mask(body, target) and beside and not body.grouped and not body.masked


def worthwhile(body: Body, target: Target) -> bool:
    """Whether vectors pay off: most elements are contiguous, or there is much to compute."""
    if body.divides and not body.expensive:
        return False
    if body.masked and not (can_mask(body, target) and _masks_are_simple(body, target)):
        return False
    if body.masked and isinstance(body.loop.extent, int) and body.loop.extent < SHORTEST_GUARDED:
        return False                               # a masked load stalls on narrower stores to its memory
    beside = sum(step in (1, -1) for step in body.steps)
    scattered = any(access.writes and step not in (1, -1) for access, step in body.stepped())
    return body.expensive or not scattered or body.apart < beside + body.grouped or body.operations >= 6 * body.apart


def is_outer(body: Body, target: Target, lane_sums: Collection[Accumulator]) -> bool:
    """Whether a loop is vectorised that is none of vectors itself: one around very short loops, which do not fill vectors, or around their
    unrolled iterations (`loops/split_guards.py`).

    Stores have to be contiguous along it, and reads contiguous or grouped, except beside mathematical functions: a vector of these takes as
    long as one call of the function for a number, and the elements of a vector are stored in a fraction of that.
    """
    lanes, around = native_width(body, target), _inner_iterations(body.loop.body) - 1
    if upper(body.loop.extent) < lanes or around + 1 > SHORT_INSIDE:
        return False
    if body.divides or body.masked or body.feeds or not body.opened.isdisjoint(lane_sums):
        return False
    if body.expensive and around <= lanes // 2:
        return True
    stores = all(step in (1, -1) or access in body.in_order for access, step in body.stepped() if access.writes)
    return bool(around) and stores and not body.apart


def _masks_are_simple(body: Body, target: Target) -> bool:
    """Whether all masked elements are contiguous, or can be read by a masked gather."""
    return all(step in (1, -1) or (step is None and target.has_masks) for access, step in body.stepped() if access in body.masked)


def _inner_iterations(body: Sequence[Statement]) -> int:
    """The number of iterations of all inner loops; 1 if there are none."""
    count = 1
    for statement in body:
        if isinstance(statement, Loop):
            if statement.kind == PRODUCT:
                return LONG_INSIDE
            count += (statement.extent if isinstance(statement.extent, int) else SHORT_INSIDE) * _inner_iterations(statement.body)
    return count


def statement_size(statement: Statement) -> int:
    """The number of operations of a statement, with loops unrolled; a loop of unknown length counts as long."""
    if isinstance(statement, Loop):
        return WRITTEN_OUT + 1
    if not isinstance(statement, Let | Store | Accumulate):
        return 1
    searching = isinstance(statement, Accumulate) and statement.position is not None
    return 1 + (8 if searching else 0) + _operations(statement.value, set())


def _operations(scalar: Scalar, seen: set[int]) -> int:
    if id(scalar) in seen or scalar.op in ("const", "word", "local", "index"):
        return 0
    seen.add(id(scalar))
    return (20 if scalar.op in FUNCTIONS else 1) + sum([_operations(arg, seen) for arg in scalar.args])


# ----- pieces
@dataclass(frozen=True)
class Piece:
    """`count` vectors of `width` iterations from iteration `first` on.

    active: the number of active elements of the last (only) vector; clamped: the last vector starts early enough to be whole.
    """

    first: int
    width: int
    count: int = 1
    active: int | None = None
    clamped: bool = False


def pieces(extent: int, unit: int, pure: bool, masks: bool, expensive: bool) -> list[Piece]:
    """Pieces that cover all iterations of a loop; iterations are repeated only if the body is `pure`."""
    if expensive:
        return _expensive_pieces(extent, unit, pure, masks)
    count, rest = divmod(extent, unit)
    found = [Piece(0, unit, count)] if count else []
    if not rest:
        return found
    first, width = count * unit, power_of_two(rest)
    if width == rest:
        return [*found, Piece(first, rest)]
    if pure and count:
        return [*found, Piece(extent - width, width)]
    exact = list(halves(first, rest))
    if pure:
        return [Piece(first, width, 1, rest)] if masks else [Piece(0, width // 2), Piece(extent - width // 2, width // 2)]
    # a load from memory that a masked store has just written stalls
    return [*found, Piece(first, width, 1, rest)] if masks and len(exact) > MANY_PIECES else [*found, *exact]


def _expensive_pieces(extent: int, unit: int, pure: bool, masks: bool) -> list[Piece]:
    """Pieces of one width, so that each math function is needed in one width only."""
    unit = min(unit, power_of_two(extent))
    count, rest = divmod(extent, unit)
    if not rest:
        return [Piece(0, unit, count)]
    if pure and count:
        return [Piece(0, unit, count + 1, None, True)]
    found = [Piece(0, unit, count)] if count else []
    if masks:
        return [*found, Piece(count * unit, unit, 1, rest)]
    return [*found, *halves(count * unit, rest)] if not pure else [Piece(0, unit // 2, 2, None, True)]


def halves(first: int, count: int) -> Iterator[Piece]:
    """Pieces whose sizes are powers of two."""
    width = LANES * 2
    while count:
        if width <= count:
            yield Piece(first, width)
            first, count = first + width, count - width
        else:
            width //= 2


def power_of_two(count: int) -> int:
    """The least power of two that is not below count."""
    return 1 << (count - 1).bit_length()
