"""What a slice of an array reads, before the updates that do not touch it: `before_updates`.

    a1 = a0 with v at r1,  a2 = a1 with w at r2,  ...        is a chain; a slice of its end looks back through it

for the last update that shares elements with the slice.  An unrolled loop reads at each of its steps, so looking back one by one would be
quadratic.  Every update knows a *jump*: a version of the array some updates earlier, and the cells that the updates in between write.  A
cell is one element of a small array, or several elements of a large one; a set of cells is stored as the bits of a number.  Slices and
updates without a common cell share no elements.  Jumps are as long as in a skew-binary list (Myers 1983, "An applicative random-access
stack"), where each update has one, made in constant time from older ones, and looking back through n takes O(log n) of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Extent, Section, most
from bwcompiler.ir.op import Value

CELLS = 4096                                       # bits per set, at most


class Link(NamedTuple):
    """An update in its chain.

    section  what it writes.
    jump     the version of the array before it and some more updates; depth and jump_depth: how many updates made it, and that.
    cells    what these write, the update itself included.
    """

    section: Section
    depth: int
    jump: Value
    jump_depth: int
    cells: int


_links: WeakKeyDictionary[Value, Link] = WeakKeyDictionary()


def before_updates(x: Value, section: Section) -> Value:
    """The version of x that is the last to write an element of the section, or that no update made."""
    for base in versions(x, section):
        found = base
    return found


def versions(x: Value, section: Section) -> Iterator[Value]:
    """The versions of x that are looked at for the last one to write an element of the section; it is the last of them."""
    cells = None
    while True:
        yield x
        if x.op not in ops.UPDATES:
            return
        link = _links.get(x) or _linked(x)
        if cells is not None and not link.cells & cells:
            x = link.jump
            continue
        if not section.is_apart(link.section):
            return
        if cells is None:                          # most slices are of what was written last: these need none
            cells = _cells_of(section, x.shape)
        x = x.operands[0] if link.cells & cells else link.jump


def _linked(x: Value) -> Link:
    """The link of an update; those of the updates before it are made first."""
    missing = []
    while x.op in ops.UPDATES and x not in _links:
        missing.append(x)
        x = x.operands[0]
    for value in reversed(missing):
        link = _links[value] = _make_link(value)
    return link


def _make_link(x: Value) -> Link:
    before = x.operands[0]
    section = section_of(x)
    cells = _cells_of(section, x.shape)
    last = _links.get(before)
    if last is None:
        return Link(section, 1, before, 0, cells)
    behind = _links.get(last.jump)
    if behind is None or last.depth - last.jump_depth != last.jump_depth - behind.jump_depth:
        return Link(section, last.depth + 1, before, last.depth, cells)
    return Link(section, last.depth + 1, behind.jump, behind.jump_depth, cells | last.cells | behind.cells)


@lru_cache(maxsize=256)
def _cells_of(section: Section, shape: tuple[Extent, ...]) -> int:
    """The cells of a section's box.  Element k of an axis is in row k modulo the axis's number of cells: neighbours differ, however
    large the array is."""
    extents = most(shape)
    grid = _grid(extents)
    cells, stride = 1, 1
    for axis in reversed(range(len(grid))):
        low, high = section.bounds(axis)
        count, length = grid[axis], high - low + 1 if isinstance(low, int) and isinstance(high, int) else extents[axis]
        first = low % count if isinstance(low, int) and length < count else 0       # what moves with a loop is anywhere
        length = min(length, count)
        wrapped = max(first + length - count, 0)
        cells = _repeated(cells, stride, length - wrapped) << first * stride | _repeated(cells, stride, wrapped)
        stride *= count
    return cells


def _repeated(bits: int, stride: int, count: int) -> int:
    """The bits, count times, each time `stride` further on."""
    if count <= 0:
        return 0
    done = 1
    while done < count:
        more = min(done, count - done)
        bits |= bits << more * stride
        done += more
    return bits


@lru_cache(maxsize=256)
def _grid(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many cells there are along each axis: short axes have one per element, long ones share what is left."""
    grid = [1] * len(shape)
    left, axes = CELLS, sorted(range(len(shape)), key=lambda axis: shape[axis])
    for number, axis in enumerate(axes):
        share = max(int(left ** (1 / (len(axes) - number)) + 1e-9), 1)
        grid[axis] = max(min(shape[axis], share), 1)
        left //= grid[axis]
    return tuple(grid)
