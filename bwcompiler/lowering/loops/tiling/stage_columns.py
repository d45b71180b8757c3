"""`stage_columns`: buffers columns of transposed arrays in panels, so that loops over rows access memory in whole cache lines.

    for i in 0..n                          for b in 0..n / 8
      for j in 0..m vector                   for j in 0..m
        s add= %x[j, i]                        for l in 0..8 vector
      for j in 0..m vector        ->             store %panel[l, j], %x[j, 8*b + l]
        store %y[j, i], s                    for t in 0..8
                                               for j in 0..m vector
                                                 s add= %panel[t, j]
                                               ...

A row of such a loop touches one cache line per element, and the next row touches the same lines again, after they were evicted.
(`tiles.py` handles perfect elementwise nests.)  Here each line is touched once: lines that are read before the rows that read them, lines
that are written after these rows.  The computation of each row, and the order of rows, are unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent, substitute
from bwcompiler.ir.loop import INPUT, OUTPUT, SCRATCH, Buffer, Kernel, Loop, Offset, Statement, Store, load
from bwcompiler.ir.scalar import Scalar
from bwcompiler.ir.semantics.loop_verifier import scalars, statements, targets
from bwcompiler.ir.texts.graph_printer import first_free
from bwcompiler.lowering.loops.split_guards import Copy
from bwcompiler.lowering.loops.tiling.tiles import LINE_BYTES

MOST_BYTES = 1 << 19           # most bytes of the panels of a loop
FIRST_CACHE, SECOND_CACHE = 1 << 12, 1 << 16        # bytes of one way of the L1 and L2 caches,
WAYS = 8                       # and the number of ways that a column may occupy
SMALL_BYTES = 1 << 20          # an array up to this size stays in the L2 cache as a whole
MOST_STATEMENTS = 100          # most statements of a loop, which may be duplicated


def stage_columns(kernel: Kernel) -> Kernel:
    """The kernel with such loops in panels; the kernel itself if there are none."""
    made = _Kernel(kernel)
    body = made.statements(kernel.body)
    return Kernel(kernel.name, [*kernel.buffers, *made.scratch], body, kernel.words) if made.scratch else kernel


class _Column(NamedTuple):
    """A strided access in a loop over rows: element `inner` of row `outer` is at rest + outer + step * inner."""

    buffer: Buffer
    step: int
    rest: Extent
    length: int


class _Kernel:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.taken = {buffer.name for buffer in kernel.buffers}
        self.scratch: list[Buffer] = []

    def statements(self, body: Sequence[Statement]) -> list[Statement]:
        return [made for statement in body for made in (self._loop(statement) if isinstance(statement, Loop) else [statement])]

    def _loop(self, loop: Loop) -> list[Statement]:
        columns = self._columns(loop)
        if columns:
            return self._panels(loop, columns)
        body = self.statements(loop.body)
        same = len(body) == len(loop.body) and all(new is old for new, old in zip(body, loop.body, strict=True))
        return [loop if same else Loop(loop.index, loop.extent, body, loop.kind)]

    # ----- choice of columns
    def _columns(self, loop: Loop) -> dict[_Column, bool]:
        """The columns to buffer in panels -> whether they are written."""
        inside = list(statements(loop.body))
        if not isinstance(loop.extent, int) or loop.kind == "vector" or len(loop.body) < 2 or len(inside) > MOST_STATEMENTS:
            return {}
        found: dict[_Column, bool] = {}
        for statement, around in inside:
            if not around or around[-1].kind != "vector" or len(around) > 1:
                continue
            for buffer, offset, is_write in _accesses(statement):
                column = None if offset is None else column_of(buffer, offset, loop, around[-1])
                if column is not None:
                    found[column] = found.get(column, False) or is_write
        taken: dict[_Column, bool] = {}
        room = MOST_BYTES
        for column, is_write in found.items():
            if panel_bytes(column) <= room and _is_worth(column, loop.extent, is_write) and (
                    self._is_written_once(loop, column) if is_write else column.buffer.role == INPUT):
                taken[column] = is_write
                room -= panel_bytes(column)
        return taken

    def _is_written_once(self, loop: Loop, column: _Column) -> bool:
        """Whether only this loop touches the result, and stores each element before it reads it."""
        if column.buffer.role != OUTPUT:
            return False
        stored = False
        for statement, around in statements(self.kernel.body):
            for buffer, offset, is_write in _accesses(statement):
                if buffer is not column.buffer:
                    continue
                if loop not in around or offset is None or around[-2] is not loop or around[-1].kind != "vector" or (
                        column_of(buffer, offset, loop, around[-1]) != column) or (is_write and not isinstance(statement, Store)):
                    return False
                if not is_write and not stored:
                    return False
            stored = stored or (isinstance(statement, Store) and statement.buffer is column.buffer)
        return stored

    # ----- panels
    def _panels(self, loop: Loop, columns: Mapping[_Column, bool]) -> list[Statement]:
        assert isinstance(loop.extent, int)
        side = LINE_BYTES // max(column.buffer.dtype.itemsize for column in columns)
        whole, rest = divmod(loop.extent, side)
        block = Index(0, whole - 1, "b")
        body: list[Statement] = [Loop(block, whole, self._rows(loop, columns, scale_extent(block.extent(), side), side))]
        return [*body, *self._rows(loop, columns, whole * side, rest)] if rest else body

    def _rows(self, loop: Loop, columns: Mapping[_Column, bool], first: Extent, rows: int) -> list[Statement]:
        """Some rows from the first on, between what fills the panels and what empties them."""
        panels = {column: self._panel(column, rows) for column in columns}
        before = [_between(column, panel, first, rows, False) for column, panel in panels.items() if not columns[column]]
        after = [_between(column, panel, first, rows, True) for column, panel in panels.items() if columns[column]]
        row = Index(0, rows - 1, "t")
        copy = _Staged(loop, panels, row.extent(), add_extents(first, row.extent()))
        return [*before, Loop(row, rows, copy.statements(loop.body)), *after]

    def _panel(self, column: _Column, rows: int) -> Buffer:
        name = first_free(f"{column.buffer.name}.panel", self.taken)
        self.taken.add(name)
        panel = Buffer(name, column.buffer.dtype, (rows, pitch_of(column)), SCRATCH)
        self.scratch.append(panel)
        return panel


def _accesses(statement: Statement) -> list[tuple[Buffer, Offset | None, bool]]:
    """(buffer, where, whether it is written) of a statement itself; what is read under a guard may not exist, and has no place."""
    found: list[tuple[Buffer, Offset | None, bool]] = [(buffer, offset, True) for buffer, offset in targets(statement)]
    found += [(scalar.data[0], None if guarded else scalar.data[1], False) for scalar, guarded in scalars(statement) if scalar.op == "load"]
    return found


def column_of(buffer: Buffer, offset: Offset, outer: Loop, inner: Loop) -> _Column | None:
    """The column that an access in the inner loop goes along."""
    if offset.terms or isinstance(offset.affine, int) or not isinstance(inner.extent, int):
        return None
    steps = dict(offset.affine.terms)
    step = steps.get(inner.index, 0)
    if steps.get(outer.index) != 1 or abs(step) * buffer.dtype.itemsize < LINE_BYTES:
        return None
    return _Column(buffer, step, substitute(offset.affine, {outer.index: 0, inner.index: 0}), inner.extent)


def _is_worth(column: _Column, rows: int, is_write: bool) -> bool:
    """Whether there are lines enough, which do not stay in a cache by themselves until the next row.

    Where they stay in the second one, rows that read large arrays wait less if they wait by themselves: more lines are on their way.
    """
    size = column.buffer.dtype.itemsize
    if min(rows, column.length) < LINE_BYTES // size or _stays(column, FIRST_CACHE):
        return False
    return is_write or rows * column.length * size <= SMALL_BYTES or not _stays(column, SECOND_CACHE)


def _stays(column: _Column, cache: int) -> bool:
    """Whether the lines of a column fit into the sets that they map to, in a cache with `cache` bytes per way."""
    step = abs(column.step) * column.buffer.dtype.itemsize
    sets = min(cache // LINE_BYTES, cache // math.gcd(step, cache))
    return column.length <= sets * WAYS


def panel_bytes(column: _Column) -> int:
    """An upper bound of the bytes of a panel."""
    return LINE_BYTES * pitch_of(column)


def pitch_of(column: _Column) -> int:
    """The row stride of the panel: an odd number of lines, so that a column of it uses all sets of a cache."""
    side = LINE_BYTES // column.buffer.dtype.itemsize
    return (-(-column.length // side) | 1) * side


def _between(column: _Column, panel: Buffer, first: Extent, rows: int, back: bool) -> Loop:
    """Copy columns into a panel, line by line, or back."""
    place, lane = Index(0, column.length - 1, "j"), Index(0, rows - 1, "l")
    far = add_extents(add_extents(column.rest, scale_extent(place.extent(), column.step)), add_extents(first, lane.extent()))
    near = add_extents(scale_extent(lane.extent(), pitch_of(column)), place.extent())
    ends = (column.buffer, Offset(far)), (panel, Offset(near))
    source, target = reversed(ends) if back else ends
    return Loop(place, column.length, [Loop(lane, rows, [Store(*target, load(*source))], "vector")])


class _Staged(Copy):
    """A copy of the rows' body that accesses the panels.  row: index within a panel; position: among all rows."""

    def __init__(self, loop: Loop, panels: Mapping[_Column, Buffer], row: Extent, position: Extent) -> None:
        super().__init__({loop.index: position})
        self.outer, self.panels, self.row = loop, panels, row
        self.inner: Loop | None = None

    def loop(self, loop: Loop) -> Loop:
        outside, self.inner = self.inner, loop
        made = super().loop(loop)
        self.inner = outside
        return made

    def statement(self, statement: Statement) -> Statement:
        if isinstance(statement, Store):
            place = self._in_panel(statement.buffer, statement.offset)
            if place is not None:
                return Store(*place, self.scalar(statement.value))
        return super().statement(statement)

    def _scalar(self, scalar: Scalar) -> Scalar:
        if scalar.op == "load":
            place = self._in_panel(*scalar.data)
            if place is not None:
                return load(*place)
        return super()._scalar(scalar)

    def _in_panel(self, buffer: Buffer, offset: Offset) -> tuple[Buffer, Offset] | None:
        column = None if self.inner is None else column_of(buffer, offset, self.outer, self.inner)
        panel = None if column is None else self.panels.get(column)
        if column is None or panel is None or self.inner is None:
            return None
        place = substitute(self.inner.index.extent(), self.replace)
        return panel, Offset(add_extents(scale_extent(self.row, pitch_of(column)), place))
