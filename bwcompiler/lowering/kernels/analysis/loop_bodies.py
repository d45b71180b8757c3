"""`Body`: what one iteration of a loop does, and what that says of the others.

It collects the elements that the iteration reads and writes, with their strides between iterations, and its operations; from these it
follows whether iterations depend on each other.  `vector_loops.py` decides by these facts which loops are vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, lower, scale_extent, substitute, upper
from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Let, Loop, Offset, Reduce, Statement, Store
from bwcompiler.ir.scalar import Scalar
from bwcompiler.ir.types import F64
from bwcompiler.locks import renewed_properties
from bwcompiler.lowering.math.functions import FUNCTIONS

LARGEST_STEP = 6              # largest stride of elements that are read in groups
IN_DOUBLES = ("cos", "hypot", "power", "sin", "tan")     # computed in f64 for f32, too
DIVISIONS = ("floor_divide", "remainder", "fmod")       # no CPU has vector instructions for these


class Access(NamedTuple):
    """One element that an iteration reads or writes."""

    buffer: Buffer
    offset: Offset
    writes: bool


@renewed_properties
class Body:
    """One iteration of a loop, including its inner loops.

    memory_of    maps arrays that share memory to one of them.
    accesses     the elements that it reads and writes; steps: how far each moves from one iteration to the next, None if data decides.
    grouped      the number of strided accesses that are read in groups (`group_start`); apart: of those that are accessed one by one.
    spread       memory that is written with a stride.
    sums         accesses that add to an element in memory: (write, read, inner loops around).
    feeds        accumulators from outside of the loop; opened: those from inside.
    operations   their number; expensive: whether they include mathematical functions; divides: or divisions without a vector instruction.
    sizes        bytes of the elements that it computes with.
    masked       the elements that are read only in those iterations in which a condition holds; conditions that are the same in all
                 iterations are branches, and mask nothing.
    inner        the indices of inner loops.
    """

    def __init__(self, loop: Loop, memory_of: Callable[[Buffer], Buffer]) -> None:
        self.loop = loop
        self.memory_of = memory_of
        self.accesses: list[Access] = []
        self.sums: list[tuple[Access, Access, tuple[Index, ...]]] = []
        self.around: tuple[Index, ...] = ()                                 # the inner loops around the current statement
        self.operations = 0
        self.expensive = self.divides = False
        self.masked: set[Access] = set()
        self.sizes = {1}
        self.feeds: list[Accumulator] = []
        self.opened: set[Accumulator] = set()
        self.lets: dict[Let, bool] = {}                     # whether they differ between iterations
        self.inner: set[Index] = set()
        self._varies: dict[int, bool] = {}
        self._under_masks: set[int] = set()                 # ids of scalars
        self._statements(loop.body)
        self.steps = [self.step(access.offset) for access in self.accesses]
        groups = [access for access, step in self.stepped()
                  if not access.writes and step is not None and self._in_group(access, step)]
        self.grouped = len(groups)
        self.spread = {memory_of(access.buffer) for access, step in self.stepped() if access.writes and step not in (None, 0, 1, -1)}
        self.apart = sum(step not in (0, 1, -1) for step in self.steps) - self.grouped

    # ----- collecting accesses and operations
    def _statements(self, body: Sequence[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                self.inner.add(statement.index)
                saved, self.around = self.around, (*self.around, statement.index)
                self._statements(statement.body)
                self.around = saved
            elif isinstance(statement, Reduce):
                self.opened.add(statement.accumulator)
                self.sizes.add(statement.accumulator.dtype.itemsize)
            elif isinstance(statement, Let):
                self._scalar(statement.value, False)
                self.lets[statement] = self.varies(statement.value)
            elif isinstance(statement, Store):
                self._scalar(statement.value, False)
                self._access(statement.buffer, statement.offset)
            elif isinstance(statement, Accumulate):
                self._accumulate(statement)
            else:
                self._scalar(statement.value, False)
                self._access(statement.buffer, Offset(0))

    def _accumulate(self, statement: Accumulate) -> None:
        self.operations += 1
        self._scalar(statement.value, False)
        if statement.position is not None:
            self._scalar(statement.position, False)
        if not isinstance(statement.target, Accumulator):
            self._access(*statement.target)
            self.accesses.append(Access(*statement.target, False))
            self.sums.append((self.accesses[-2], self.accesses[-1], self.around))
            return
        self.sizes.add(statement.target.dtype.itemsize)
        if statement.target not in self.opened and statement.target not in self.feeds:
            self.feeds.append(statement.target)

    def _access(self, buffer: Buffer, offset: Offset) -> None:
        self.sizes.add(buffer.dtype.itemsize)
        for term, _ in offset.terms:
            self._scalar(term, False)
        self.accesses.append(Access(buffer, offset, True))

    def _scalar(self, scalar: Scalar, masked: bool) -> None:
        known = id(scalar) in self._varies
        if known and (not masked or id(scalar) in self._under_masks):
            return
        if masked:
            self._under_masks.add(id(scalar))
            if scalar.op == "load":
                self.masked.add(Access(scalar.data[0], scalar.data[1], False))
        if not known:
            self._varies[id(scalar)] = False
            self._count(scalar)
        for number, arg in enumerate(scalar.args):
            guarded = scalar.op == "select" and scalar.data == "lazy" and number > 0 and self.varies(scalar.args[0])
            self._scalar(arg, masked or guarded)
        self._varies[id(scalar)] = self._differs(scalar)

    def _count(self, scalar: Scalar) -> None:
        if scalar.op == "load":
            buffer, offset = scalar.data
            self.sizes.add(buffer.dtype.itemsize)
            self.accesses.append(Access(buffer, offset, False))
        elif scalar.op not in ("const", "word", "local", "index", "total", "found"):
            self.operations += 1
            if scalar.op in FUNCTIONS and scalar.args[0].dtype.is_float:
                self.expensive = True
                if scalar.op in IN_DOUBLES:
                    self.sizes.add(F64.itemsize)
            self.divides |= scalar.op in DIVISIONS and shift_of(scalar) is None

    # ----- variation between iterations
    def varies(self, scalar: Scalar) -> bool:
        """Whether a scalar of the body may differ between iterations of the loop."""
        found = self._varies.get(id(scalar))
        return self._differs(scalar) if found is None else found

    def _differs(self, scalar: Scalar) -> bool:
        if scalar.op == "local":
            return self.lets.get(scalar.data, False)
        if scalar.op == "index":
            return self.step_of(scalar.data) != 0
        if scalar.op == "in_range":
            return any(self.step_of(extent) for extent in scalar.data)
        if scalar.op in ("total", "found"):
            return scalar.data in self.opened
        if scalar.op == "load" and self.step_of(scalar.data[1].affine):
            return True
        return any(self.varies(arg) for arg in scalar.args)

    def step_of(self, extent: Extent) -> int:
        """The step of an index expression between iterations."""
        return 0 if isinstance(extent, int) else next((step for index, step in extent.terms if index is self.loop.index), 0)

    def step(self, offset: Offset) -> int | None:
        return None if any(self.varies(term) for term, _ in offset.terms) else self.step_of(offset.affine)

    def stepped(self) -> Iterator[tuple[Access, int | None]]:
        """The accesses with their steps."""
        return zip(self.accesses, self.steps, strict=True)

    def _in_group(self, access: Access, step: int) -> bool:
        """Whether an access is read in groups in the first and in the last iteration of the inner loops."""
        if not 2 <= step <= LARGEST_STEP:
            return False
        places = [substitute(access.offset.affine, {index: getattr(index, end) for index in self.inner}) for end in ("lo", "hi")]
        return all(group_start(access.buffer, Offset(place, access.offset.terms), step) is not None for place in places)

    # ----- independence of iterations
    @functools.cached_property
    def in_order(self) -> set[Access]:
        """Sums in memory of expensive loops, to which all iterations add: the addends are computed as vectors, and added one by one.

        An iteration may add to an element at most once; otherwise the order of additions would change.
        """
        found: set[Access] = set()
        for write, read, around in self.sums:
            indices = [index for index, _ in _terms(write.offset.affine)]
            alone = sum(self.memory_of(access.buffer) is self.memory_of(write.buffer) for access in self.accesses) == 2
            once = len(around) <= 1 and all(index in indices for index in around)
            if self.expensive and alone and once and not write.offset.terms and not self.step_of(write.offset.affine):
                found |= {write, read}
        return found

    @functools.cached_property
    def independent(self) -> bool:
        """Whether no iteration reads or writes memory that another one writes."""
        written: dict[Buffer, list[tuple[Access, int | None]]] = {}
        for access, step in self.stepped():
            if access.writes and access not in self.in_order:
                written.setdefault(self.memory_of(access.buffer), []).append((access, step))
        if not written:
            return True
        for other, step in self.stepped():
            for access, own in written.get(self.memory_of(other.buffer), ()):
                if not self._apart(access, own, other, step):
                    return False
        return True

    def _apart(self, write: Access, step: int | None, other: Access, other_step: int | None) -> bool:
        """Whether the elements of two accesses differ in different iterations (an access with itself included)."""
        if step is None or other_step is None or not step:
            # stores to data-dependent places are made one after the other
            return write is other and step is None and all(access is write for access in self.accesses if access.buffer is write.buffer)
        if _data_of(write.offset) != _data_of(other.offset):
            return False
        place, others = write.offset.affine, other.offset.affine
        if place == others and not any(index in self.inner for index, _ in _terms(place)):
            return True
        distance = add_extents(place, scale_extent(others, -1))
        if step == other_step and isinstance(distance, int) and distance % step:
            return True
        inside: dict[Index, Extent] = {index: Index(index.lo, index.hi).extent() for index in self.inner}     # of another iteration
        if step != other_step:
            inside[self.loop.index] = Index(self.loop.index.lo, self.loop.index.hi).extent()
        least, most = ends(add_extents(place, scale_extent(substitute(others, inside), -1)))
        if step != other_step:
            return least > 0 or most < 0
        reach = upper(add_extents(self.loop.extent, -1)) * abs(step)
        return (-abs(step) < least and most < abs(step)) or least > reach or most < -reach

    @functools.cached_property
    def pure(self) -> bool:
        """Whether an iteration may run twice: it reads nothing that the loop writes."""
        read = {self.memory_of(access.buffer) for access in self.accesses if not access.writes}
        return not self.feeds and not any(access.writes and self.memory_of(access.buffer) in read for access in self.accesses)


def _terms(extent: int | Affine) -> Iterator[tuple[Index, int]]:
    return iter(() if isinstance(extent, int) else extent.terms)


def _data_of(offset: Offset) -> list[tuple[int, int]]:
    """The parts of an offset that data decide: which ones, and their strides."""
    return [(id(term), stride) for term, stride in offset.terms]


def shift_of(scalar: Scalar) -> int | None:
    """The exponent if an integer is divided by a power of two: then a shift gives the quotient, and a mask the remainder."""
    if scalar.op not in ("floor_divide", "remainder") or scalar.args[1].op != "const" or scalar.dtype.kind not in "iu":
        return None
    number = int(scalar.args[1].data)
    return number.bit_length() - 1 if number > 0 and number & (number - 1) == 0 else None


def ends(extent: Extent) -> tuple[int, int]:
    """The smallest and the largest value of an index expression."""
    if isinstance(extent, int):
        return extent, extent
    first = last = extent.constant
    for index, factor in extent.terms:
        low, high = index.lo, index.hi
        if not isinstance(low, int) or not isinstance(high, int):
            return lower(extent), upper(extent)
        first += factor * (low if factor > 0 else high)
        last += factor * (high if factor > 0 else low)
    return first, last


def group_start(buffer: Buffer, offset: Offset, step: int, spread: bool = False) -> int | None:
    """The distance of an element from the start of its group, for reads with stride `step`; None if they are not read in groups.

    Groups of `step` elements inside the array are read as one vector, from which each access selects its elements.  If the array
    consists of whole groups and the strides are multiples of `step`, aligned groups are inside, whatever the bounds of the indices.

    spread: whether the loop writes elements of the array with a stride.  Then a vector that begins before the element would read elements
    just written by earlier iterations, and the CPU would stall until these stores are in the cache.
    """
    if not 2 <= step <= LARGEST_STEP or offset.terms:
        return None
    first, last = ends(offset.affine)
    if spread and first >= 0 and last + step <= buffer.size:
        return 0
    aligned = (offset.affine if isinstance(offset.affine, int) else offset.affine.constant) % step
    if buffer.size % step == 0 and all(factor % step == 0 for _, factor in _terms(offset.affine)):
        return aligned
    return next((start for start in (aligned, *range(step)) if first >= start and last + step - start <= buffer.size), None)
