"""The kernel of a sweep (`sweep.py`): a loop over blocks of iterations, in which the loops of the kernels are one after the other.

An array that only the loops of the sweep write and read, each iteration its own part, shrinks to the part of one block.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent, span
from bwcompiler.ir.loop import INPUT, OUTPUT, SCRATCH, UPDATED, Buffer, Fill, Kernel, Loop, Offset, Statement
from bwcompiler.ir.op import Value
from bwcompiler.ir.texts.graph_printer import TakenNames
from bwcompiler.lowering.loops.parallel import stays_apart
from bwcompiler.lowering.loops.split_guards import Copy
from bwcompiler.lowering.loops.sweeps.profit import iterations_together
from bwcompiler.lowering.loops.sweeps.sweep import AFTER, Sweep, step_of


def sweep_kernel(sweep: Sweep, inner: Collection[Value]) -> tuple[Kernel, list[Value | None]]:
    """The kernel, and per buffer its array; `inner` are those that nothing else reads."""
    made = _Joined(sweep, iterations_together(sweep), {array for array in inner if _is_inner(sweep, array)})
    return made.kernel(), made.arrays


def _roles(sweep: Sweep, array: Value) -> set[str]:
    """The roles of an array in the kernels."""
    return {buffer.role for part in sweep.parts for buffer, one in zip(part.of.kernel.buffers, part.arrays, strict=True) if one is array}


def _is_inner(sweep: Sweep, array: Value) -> bool:
    """Whether only the loops write and read the array, each iteration its own part; before them it may be filled with a number."""
    found = [part.accesses[array] for part in sweep.parts if array in part.accesses]
    roles, offsets = _roles(sweep, array), sweep.offsets.get(array, [])
    return (UPDATED not in roles and OUTPUT in roles and all(AFTER not in one.touched and one.is_only_filled for one in found)
            and stays_apart(offsets, sweep.index, sweep.own) and step_of(offsets, sweep.index) > 0)


class _Joined:
    """The kernel of a sweep, `count` iterations of each loop at a time; inner: the arrays that shrink."""

    def __init__(self, sweep: Sweep, count: int, inner: Set[Value]) -> None:
        self.sweep = sweep
        self.count = count
        self.inner = inner
        self.block = Index(0, sweep.extent // count - 1, "b")
        self.taken = TakenNames()
        self.buffers: list[Buffer] = []
        self.arrays: list[Value | None] = []
        self.of_array: dict[Value, Buffer] = {}
        self.starts: dict[Buffer, Extent] = {}               # for arrays that shrink: the start of the part in the array
        self.laid_over = sweep.laid_over()

    def kernel(self) -> Kernel:
        before: list[Statement] = []
        body: list[Statement] = []
        after: list[Statement] = []
        kernels = [part.of.kernel for part in self.sweep.parts]
        for part, kernel in zip(self.sweep.parts, kernels, strict=True):
            buffers = {buffer: self._buffer(buffer, array) for buffer, array in zip(kernel.buffers, part.arrays, strict=True)}
            copy = _PartCopy(buffers, self.starts)
            for statement in copy.statements(kernel.body[:part.of.place]):
                (body if isinstance(statement, Fill) and statement.buffer in self.starts else before).append(statement)
            body += self._iterations(part.of.loop, copy)
            after += copy.statements(kernel.body[part.of.place + 1:])
        words = dict.fromkeys(word for kernel in kernels for word in kernel.words)
        loop = Loop(self.block, self.sweep.extent // self.count, body)
        return Kernel(".".join([kernel.name for kernel in kernels]), self.buffers, [*before, loop, *after], list(words))

    def _iterations(self, loop: Loop, copy: Copy) -> list[Statement]:
        first = scale_extent(self.block.extent(), self.count)
        if self.count == 1 and loop.kind == "serial":
            copy.replace[loop.index] = first
            return copy.statements(loop.body)
        row = Index(0, self.count - 1, loop.index.name)
        copy.replace[loop.index] = add_extents(first, row.extent())
        return [Loop(row, self.count, copy.statements(loop.body), loop.kind)]

    def _buffer(self, buffer: Buffer, array: Value | None) -> Buffer:
        if array is None:
            return self._new(buffer.name, buffer, buffer.shape, SCRATCH, None)
        found = self.of_array.get(array)
        if found is None:
            found = self.of_array[array] = self._new_for(buffer, array)
        return found

    def _new_for(self, buffer: Buffer, array: Value) -> Buffer:
        if array in self.inner:
            offsets = self.sweep.offsets[array]
            step = step_of(offsets, self.sweep.index)
            starts = [span(add_extents(offset.affine, scale_extent(self.sweep.index.extent(), -step)), self.sweep.own)[0]
                      for offset in offsets if offset is not None]
            low = min([start for start in starts if isinstance(start, int)])
            begin = add_extents(scale_extent(self.block.extent(), step * self.count), low)
            before = self.of_array.get(self.laid_over[array]) if array in self.laid_over else None
            if before is not None and self.starts.get(before) == begin and before.shape == (step * self.count,):
                return before
            made = self._new(f"{buffer.name}.part", buffer, (step * self.count,), SCRATCH, None)
            self.starts[made] = begin
            return made
        roles = _roles(self.sweep, array)
        role = next(role for role in (UPDATED, OUTPUT, INPUT) if role in roles)
        return self._new(buffer.name, buffer, buffer.shape, role, array)

    def _new(self, name: str, like: Buffer, shape: Sequence[Extent], role: str, array: Value | None) -> Buffer:
        made = Buffer(self.taken.new(name), like.dtype, shape, role, like.origin if array is not None else None)
        self.buffers.append(made)
        self.arrays.append(array)
        return made


class _PartCopy(Copy):
    """A copy on the buffers of the whole sweep."""

    def __init__(self, buffers: Mapping[Buffer, Buffer], starts: Mapping[Buffer, Extent]) -> None:
        super().__init__({})
        self.buffers = buffers
        self.starts = starts

    def fill(self, statement: Fill) -> Fill:
        return Fill(self.buffers[statement.buffer], self.scalar(statement.value))

    def place(self, buffer: Buffer, offset: Offset) -> tuple[Buffer, Offset]:
        made, moved = self.buffers[buffer], self.offset(offset)
        start = self.starts.get(made)
        return made, moved if start is None else Offset(add_extents(moved.affine, scale_extent(start, -1)), moved.terms)
