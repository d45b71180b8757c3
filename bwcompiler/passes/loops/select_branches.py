"""Choices between a few numbers in a loop compute both sides, and select.

    if a[i] > 0: u[i] = f          ->          u[i] = f if a[i] > 0 else g
    else:        u[i] = g

Iterations without choices may become operations on arrays (`vectorize_loops`), and a recurrence does not wait for the predicate.  Both
sides have to be cheap and free of effects, and must not fail when their side would not have run: the elements that they read and write
certainly exist.  An array that one side updates is written in either case, with its old elements if that side is not taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Section, add_extents, known_le
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, current_record
from bwcompiler.ir.types import TensorType, TupleType
from bwcompiler.ops.rules import zero_of
from bwcompiler.passes.loops.branch_states import branch_states
from bwcompiler.passes.loops.region_bodies import emit_values
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten

MOST = 32                      # operations on numbers in both sides


def select_branches(graph: Graph) -> Rewritten:
    """The graph with selected numbers in the places of choices in loops; the same graph where there are none to replace."""
    return with_regions_replaced(graph, _inside, lambda value: None)


def _inside(graph: Graph) -> Rewritten:
    """The same for what is inside of a loop."""
    return with_regions_replaced(graph, _inside, lambda value: _selected(value) if value.op is ops.cond else None)


class _Side(NamedTuple):
    """One side of a choice; updates: per number of an array that the choice updates, the versions that the side makes of it."""

    graph: Graph
    updates: Mapping[int, list[Value]]


def _selected(cond: Value) -> list[Value] | None:
    """The results of a choice, in the current record; None where the sides have to stay apart."""
    states = branch_states(cond)
    branches = cond.attrs["then_branch"], cond.attrs["else_branch"]
    if any(not _is_number(type_) and number not in states for number, type_ in enumerate(cond.type.items)):
        return None
    sides = [_side(branch, states) for branch in branches]
    if None in sides or sum([_work(branch) for branch in branches]) > MOST:
        return None
    return _Selection(cond, states, [side for side in sides if side is not None]).results()


def _is_number(type_: TensorType | TupleType) -> bool:
    return isinstance(type_, TensorType) and type_.is_fixed and type_.size == 1


def _work(branch: Graph) -> int:
    return sum([value.op.kind == "elementwise" for value in branch.body])


def _side(branch: Graph, states: Mapping[int, int]) -> _Side | None:
    """A side of which everything may be computed in any case, else None."""
    updates: dict[int, list[Value]] = {number: [] for number in states}
    last = {branch.inputs[place]: number for number, place in states.items()}
    for value in branch.body:
        if value.op in ops.UPDATES and value.operands[0] in last:
            number = last.pop(value.operands[0])                      # versions that others follow are read no more
            if not _is_number(value.operands[1].type) or not _is_inside(value, value.operands[1].shape):
                return None
            last[value] = number
            updates[number].append(value)
        elif not _is_number(value.type) or not value.op.pure or value.op.regions or not value.op.cheap:
            return None
        elif value.op is ops.slice:
            if value.operands[0] in [before.operands[0] for made in updates.values() for before in made]:
                return None
            if not _is_inside(value, value.attrs["sizes"]):
                return None
        elif value.op.kind not in ("elementwise", "layout", "constant") and value.op is not ops.index_value:
            return None
    ends = {number: last.get(branch.outputs[number]) for number in states}
    return _Side(branch, updates) if all(number == end for number, end in ends.items()) else None


def _is_inside(value: Value, sizes: tuple[int, ...]) -> bool:
    """Whether a part is one of its array in every iteration, and not only in those that come to the side."""
    section = Section(value.attrs["starts"], sizes, value.attrs["steps"])
    array = value.operands[0].type
    return all(known_le(0, low) and known_le(add_extents(high, 1), extent)
               for (low, high), extent in zip([section.bounds(axis) for axis in range(array.rank)], array.shape, strict=True))


class _Selection:
    """The results of a choice, written in the current record: the first side, then the second one, as far as they count."""

    def __init__(self, cond: Value, states: Mapping[int, int], sides: list[_Side]) -> None:
        self.cond = cond
        self.states = states
        self.sides = sides
        self.predicate, *self.operands = cond.operands
        self.arrays = {number: self.operands[place] for number, place in states.items()}
        self.at_once = {number: self._update_at_once(number) for number in states}

    def _update_at_once(self, number: int) -> bool:
        """Whether both sides write one number to the same place, and do not read it again."""
        first, second = [side.updates[number] for side in self.sides]
        if len(first) != 1 or len(second) != 1 or any(value.op is not ops.slice_update for value in (*first, *second)):
            return False
        read = [operand for side in self.sides for value in side.graph.body for operand in value.operands]
        same = first[0].attrs == second[0].attrs and first[0].operands[1].type == second[0].operands[1].type
        return same and first[0] not in read and second[0] not in read

    def results(self) -> list[Value]:
        mappings = [self._emitted(side, number == 0) for number, side in enumerate(self.sides)]
        then, other = [[mapping.get(output, output) for output in side.graph.outputs]
                       for mapping, side in zip(mappings, self.sides, strict=True)]
        for number in self.arrays:
            if self.at_once[number]:
                update = self.sides[0].updates[number][0]
                parts = [mapping.get(part, part) for mapping, side in zip(mappings, self.sides, strict=True)
                         for part in [side.updates[number][0].operands[1]]]
                self.arrays[number] = ops.slice_update(self.arrays[number], self._either(*parts), **update.attrs)
        return [self.arrays[k] if k in self.states else self._either(x, y) for k, (x, y) in enumerate(zip(then, other, strict=True))]

    def _emitted(self, side: _Side, counts: bool) -> dict[Value, Value]:
        """What stands for the values of a side, which counts where the predicate is `counts`."""
        record = current_record()
        assert record is not None
        mapping = dict(zip(side.graph.inputs, self.operands, strict=True))
        for number, place in self.states.items():
            mapping[side.graph.inputs[place]] = self.arrays[number]
        numbers = {update: number for number, made in side.updates.items() for update in made}
        for value in side.graph.body:
            if value not in numbers:
                emit_values([value], mapping, record)
            elif not self.at_once[number := numbers[value]]:
                record.source, record.forward = value.source, value.forward
                self.arrays[number] = mapping[value] = self._update(value, self.arrays[number], mapping, counts)
        return mapping

    def _update(self, value: Value, array: Value, mapping: Mapping[Value, Value], counts: bool) -> Value:
        """The array with what the side makes of it, or as it is."""
        part = mapping.get(value.operands[1], value.operands[1])
        if value.op is ops.slice_add:
            nothing = -0.0 if part.dtype.is_float else zero_of(part.dtype)         # x + -0.0 is x, and -0.0 + 0.0 is not
            old = ops.full(value=nothing, shape=part.shape, dtype=part.dtype)
        else:
            old = ops.slice(array, starts=value.attrs["starts"], sizes=part.shape, steps=value.attrs["steps"])
        return value.op(array, self._either(part, old) if counts else self._either(old, part), **value.attrs)

    def _either(self, x: Value, y: Value) -> Value:
        """The one if the predicate holds, else the other."""
        if x is y:
            return x
        flag = self.predicate if not x.shape else ops.broadcast(self.predicate, shape=x.shape, axes=())
        return ops.select(flag, x, y)
