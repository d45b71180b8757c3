"""Split loops at the bounds of guards, so that the interior of a piecewise computation has none.

A guard `in_range(i + a, low, high)` is constant between breakpoints of its loop.  The loop is cut there: long segments get
a copy of the body with the guard decided; neighbouring short ones (borders) share a copy that still tests.  So an adjoint
stencil, a concatenation or a pad runs at full speed except at its edge.  Loops over panels (`64 p + l`) are cut around the panels in
which a guard changes: masked vector reads from memory far outside of an array are slow even if the mask is empty.
Loops over a few elements (`np.array([[c, -s], [s, c]])` and computations with it) are unrolled: each iteration is a piece.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence, Set

from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, known_le, lower, substitute, upper
from bwcompiler.ir.loop import SCRATCH, Accumulate, Accumulator, Buffer, Fill, Let, Loop, Offset, Reduce, Statement, Store, load
from bwcompiler.ir.scalar import Scalar, const, index_value
from bwcompiler.ir.semantics.loop_verifier import scalars, statements, targets
from bwcompiler.ir.types import BOOL

SHORT = 8                      # segments below this many iterations are borders
MAX_SEGMENTS = 6               # a loop is cut into at most this many pieces
FEW, MOST_STATEMENTS = 4, 200  # most iterations of loops that are unrolled, and most statements after that

Renewal = Callable[[Buffer], Buffer]


def split_guards(body: list[Statement], around: Sequence[Statement] = (), renewed: Renewal | None = None) -> list[Statement]:
    """The statements with every loop cut at its guards' bounds.

    renewed  makes a new scratch buffer like another: each piece of a loop gets its own, so that all can be divided among threads;
             except scratch that other statements of the body, or `around`, use.
    """
    result: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            own = None
            if renewed is not None:
                others = [one for one in (*around, *body) if one is not statement]
                own = _Own(renewed, _scratch([statement]) - _scratch(others))
            result += _split_loop(statement, own)
        else:
            result.append(statement)
    return result


def with_index(body: list[Statement], index: Index, position: Extent) -> list[Statement]:
    """A copy of the body of a loop with its index replaced."""
    return Copy({index: position}).statements(body)


def _scratch(body: Sequence[Statement]) -> set[Buffer]:
    found: set[Buffer] = set()
    for statement, _ in statements(list(body)):
        found.update(buffer for buffer, _ in targets(statement))
        found.update(scalar.data[0] for scalar, _ in scalars(statement) if scalar.op == "load")
    return {buffer for buffer in found if buffer.role == SCRATCH}


def _split_loop(loop: Loop, own: _Own | None = None) -> list[Statement]:
    if _is_written_out(loop):
        return _iterations(loop)
    segments = _segments(loop)
    if len(segments) == 1:
        return [Loop(loop.index, loop.extent, split_guards(loop.body), loop.kind)]
    pieces: list[Statement] = []
    for start, stop, long in segments:
        index = Index(0, stop - start - 1, loop.index.name)
        replace: dict[Index, Extent] = {loop.index: add_extents(index.extent(), start)}
        copy = Copy(replace) if own is None or not start else _OwnCopy(replace, own)
        body = copy.statements(loop.body)
        kind = loop.kind if long else "serial"
        pieces.append(Loop(index, stop - start, split_guards(body) if long else body, kind))
    return pieces


def _iterations(loop: Loop) -> list[Statement]:
    """A loop unrolled, with its inner loops."""
    assert isinstance(loop.extent, int)
    found: list[Statement] = []
    for position in range(loop.extent):
        for statement in with_index(loop.body, loop.index, position):
            found += _iterations(statement) if isinstance(statement, Loop) else [statement]
    return found


def _is_written_out(loop: Loop) -> bool:
    """Whether the loop nest is over a few elements, and unrolling it decides guards."""
    loops = [loop, *[statement for statement, _ in statements(loop.body) if isinstance(statement, Loop)]]
    if not all(isinstance(one.extent, int) and 1 <= one.extent <= FEW for one in loops) or _written_size(loop) > MOST_STATEMENTS:
        return False
    indices = {one.index for one in loops}
    return any(_decided_by(guard, indices) for guard in _guards(loop.body))


def _written_size(loop: Loop) -> int:
    """The number of statements of an unrolled loop."""
    assert isinstance(loop.extent, int)
    return loop.extent * sum([_written_size(statement) if isinstance(statement, Loop) else 1 for statement in loop.body])


def _decided_by(guard: Scalar, indices: Set[Index]) -> bool:
    """Whether a guard depends on at least one of these indices, and on no others."""
    position, low, high = guard.data
    return isinstance(position, Affine) and isinstance(low, int) and isinstance(high, int) and all(
        index in indices for index, _ in position.terms)


def _segments(loop: Loop) -> list[tuple[int, int, bool]]:
    """The pieces of a loop: (start, stop, whether guards are decided there)."""
    if not isinstance(loop.extent, int):
        return [(0, 0, True)]
    extent = loop.extent
    points = {0, extent}
    inner = {statement.index for statement, _ in statements(loop.body) if isinstance(statement, Loop)}
    for guard in _guards(loop.body):
        points.update(point for point in _bounds(guard, loop.index, inner) if 0 < point < extent)
    if len(points) == 2:
        return [(0, extent, True)]
    ordered = sorted(points)
    pieces: list[tuple[int, int, bool]] = []
    for start, stop in itertools.pairwise(ordered):
        long = stop - start >= SHORT
        if pieces and not long and not pieces[-1][2]:
            pieces[-1] = (pieces[-1][0], stop, False)
        else:
            pieces.append((start, stop, long))
    if len(pieces) > MAX_SEGMENTS or not any(long for _, _, long in pieces):
        return [(0, extent, True)]
    return pieces


def _bounds(guard: Scalar, index: Index, inner: Set[Index]) -> list[int]:
    """Iterations at which a guard on an index changes; for an index of panels (64 p + l), the range of panels in which it changes."""
    position, low, high = guard.data
    if not isinstance(position, Affine) or not isinstance(low, int) or not isinstance(high, int):
        return []
    factor = dict(position.terms).get(index, 0)
    rest = add_extents(position, Affine(0, ((index, -factor),))) if factor else 0
    if factor < 1 or (isinstance(rest, Affine) if factor == 1 else not _counts_panels(rest, factor, inner)):
        return []
    return [-((end - bound) // -factor) for bound in {lower(rest), upper(rest)} for end in (low, high)]


def _counts_panels(rest: Extent, factor: int, inner: Set[Index]) -> bool:
    """Whether the rest of a position runs over the `factor` elements of a panel, in inner loops."""
    return isinstance(rest, Affine) and all(index in inner for index, _ in rest.terms) and upper(rest) - lower(rest) < factor


def _guards(body: list[Statement]) -> Iterator[Scalar]:
    for statement in body:
        if isinstance(statement, Loop):
            yield from _guards(statement.body)
        elif isinstance(statement, Let | Store | Accumulate):
            yield from _guards_of(statement.value)


def _guards_of(scalar: Scalar) -> Iterator[Scalar]:
    if scalar.op == "in_range":
        yield scalar
    for arg in scalar.args:
        yield from _guards_of(arg)


class Copy:
    """A copy of statements with a loop index replaced; guards that the new bounds decide become constants.

    An accumulator that is opened in the statements is renewed, as a kernel opens each one once; with `in_place` the copy replaces the
    original and keeps it.
    """

    def __init__(self, replace: dict[Index, Extent], in_place: bool = False) -> None:
        self.replace = replace
        self.in_place = in_place
        self.accumulators: dict[Accumulator, Accumulator] = {}
        self.lets: dict[Let, Let] = {}
        self.scalars: dict[int, Scalar] = {}
        self.kept: list[Scalar] = []

    def statements(self, body: list[Statement]) -> list[Statement]:
        return [self.statement(statement) for statement in body]

    def statement(self, statement: Statement) -> Statement:
        if isinstance(statement, Let):
            made = self.lets[statement] = Let(statement.name, self.scalar(statement.value), statement.origin)
            return made
        if isinstance(statement, Store):
            return Store(*self.place(statement.buffer, statement.offset), self.scalar(statement.value))
        if isinstance(statement, Accumulate):
            target = statement.target
            target = self.place(*target) if isinstance(target, tuple) else self.accumulators.get(target, target)
            position = None if statement.position is None else self.scalar(statement.position)
            return Accumulate(target, statement.combine, self.scalar(statement.value), position)
        if isinstance(statement, Loop):
            return self.loop(statement)
        if isinstance(statement, Reduce):
            if self.in_place:
                return statement
            old = statement.accumulator
            self.accumulators[old] = Accumulator(old.name, old.combine, old.dtype, old.origin, old.part, old.start)
            return Reduce(self.accumulators[old])
        assert isinstance(statement, Fill)
        return self.fill(statement)

    def fill(self, statement: Fill) -> Fill:
        return statement

    def loop(self, loop: Loop) -> Loop:
        index = Index(loop.index.lo, substitute(loop.index.hi, self.replace), loop.index.name)
        extent = substitute(loop.extent, self.replace)
        self.replace[loop.index] = index.extent()
        self.scalars.clear()
        return Loop(index, extent, self.statements(loop.body), loop.kind)

    def place(self, buffer: Buffer, offset: Offset) -> tuple[Buffer, Offset]:
        """The buffer and offset of an element in the copy."""
        return buffer, self.offset(offset)

    def offset(self, offset: Offset) -> Offset:
        terms = tuple((self.scalar(term), stride) for term, stride in offset.terms)
        return Offset(substitute(offset.affine, self.replace), terms)

    def scalar(self, scalar: Scalar) -> Scalar:
        found = self.scalars.get(id(scalar))
        if found is None:
            found = self.scalars[id(scalar)] = self._scalar(scalar)
            self.kept.append(scalar)
        return found

    def _scalar(self, scalar: Scalar) -> Scalar:
        op = scalar.op
        if op == "local":
            let = self.lets.get(scalar.data)
            return scalar if let is None else let.ref()
        if op in ("total", "found"):
            accumulator = self.accumulators.get(scalar.data, scalar.data)
            return scalar if accumulator is scalar.data else Scalar(op, (), scalar.dtype, accumulator)
        if op == "load":
            return load(*self.place(*scalar.data))
        if op == "index":
            return index_value(substitute(scalar.data, self.replace))
        if op == "in_range":
            return self.guard(*scalar.data)
        if op == "select":
            condition = self.scalar(scalar.args[0])
            if condition.op == "const":
                return self.scalar(scalar.args[1] if condition.data else scalar.args[2])
        if not scalar.args:
            return scalar
        return Scalar(op, tuple(self.scalar(arg) for arg in scalar.args), scalar.dtype, scalar.data)

    def guard(self, position: Extent, low: Extent, high: Extent) -> Scalar:
        """The guard in the copy."""
        position, low, high = [substitute(extent, self.replace) for extent in (position, low, high)]
        above, below = known_le(low, position), known_le(add_extents(position, 1), high)
        if above is False or below is False:
            return const(False, BOOL)
        if above and below:
            return const(True, BOOL)
        return Scalar("in_range", (), BOOL, (position, low, high))


class _Own:
    """Scratch that only one loop uses, to be renewed for its pieces."""

    def __init__(self, renewed: Renewal, scratch: set[Buffer]) -> None:
        self.renewed = renewed
        self.scratch = scratch


class _OwnCopy(Copy):
    """A copy with scratch of its own."""

    def __init__(self, replace: dict[Index, Extent], own: _Own) -> None:
        super().__init__(replace)
        self.own = own
        self.made: dict[Buffer, Buffer] = {}

    def fill(self, statement: Fill) -> Fill:
        return Fill(self._buffer(statement.buffer), self.scalar(statement.value))

    def place(self, buffer: Buffer, offset: Offset) -> tuple[Buffer, Offset]:
        return self._buffer(buffer), self.offset(offset)

    def _buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self.own.scratch:
            return buffer
        if buffer not in self.made:
            self.made[buffer] = self.own.renewed(buffer)
        return self.made[buffer]
