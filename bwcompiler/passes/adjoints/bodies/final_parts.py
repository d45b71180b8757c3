"""Parts of arrays that a loop reads or writes, and that no later iteration writes again: they are read from the final arrays, not kept.

    forward   for i: v = y[i - 1] * x[i], y[i] = v            keeps neither y[i - 1] nor v
    adjoint   reads y[i - 1] and y[i] of the result of the loop

Which parts are written in an iteration and in later ones is proved from bounds of affine positions (`passes/loops/dependence.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Index, Section
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.passes.loops.array_parts import Part, read_parts, versions_of, written_parts
from bwcompiler.passes.loops.dependence import are_apart, are_apart_later
from bwcompiler.passes.loops.region_bodies import copied

SHARE = 4                      # an array is read where it lies if that keeps at least 1/SHARE of its bytes less


class Final(NamedTuple):
    """Where a value lies in the carried array of this number when the loop has ended; section None: only final parts are read of it."""

    number: int
    section: Section | None


class Read(NamedTuple):
    """An adjoint that reads arrays as they are when the loop has ended.

    numbers, inputs   the numbers of these arrays, and the inputs that hold them; mapping: what stands for values of the adjoint.
    """

    numbers: tuple[int, ...]
    inputs: list[Value]
    body: list[Value]
    mapping: Mapping[Value, Value]


def final_parts(graph: Graph, entries: Sequence[Value], step: int, outputs: int, excluded: Set[int]) -> dict[Value, Final]:
    """The values of a loop's joint graph that lie in what it carries when it has ended.

    entries   what stands for what is carried; outputs: how many of the outputs are those of the body, the others being cotangents.
    excluded  the numbers of arrays that are not asked about.
    """
    index = graph.index
    if index is None:
        return {}
    users: dict[Value, list[Value]] = {}
    for value in graph.body:
        for operand in dict.fromkeys(value.operands):
            users.setdefault(operand, []).append(value)
    found: dict[Value, Final] = {}
    for number, entry in enumerate(entries):
        versions = None if number in excluded else versions_of(graph.outputs[number], entry)
        if versions is None or len(versions) < 2:
            continue
        writes = [written_parts(after) for after in versions[1:]]
        if any(parts is None for parts in writes):
            continue
        array = _Array(number, versions, [parts for parts in writes if parts is not None], index, step)
        for value, final in array.final(users, set(graph.outputs[outputs:])):
            found.setdefault(value, final)
    return found


class _Array(NamedTuple):
    """A carried array: its versions in an iteration, and what is written from each to the next."""

    number: int
    versions: Sequence[Value]
    writes: Sequence[Sequence[Part]]
    over: Index
    step: int

    def final(self, users: Mapping[Value, Sequence[Value]], cotangents: Set[Value]) -> Iterator[tuple[Value, Final]]:
        """The versions of which only final parts are read, the final slices, and what is written and stays."""
        reads = [self._reads(place, users) for place in range(len(self.versions))]
        finally_read = self._finally_read(reads, cotangents)
        for version, readers in zip(self.versions, reads, strict=True):
            if version in finally_read:
                yield version, Final(self.number, None)
            for user, is_final in readers:
                if user.op is ops.slice and is_final:
                    yield user, Final(self.number, section_of(user))
        for place, (_, after) in enumerate(pairwise(self.versions), 1):
            if after.op is not ops.slice_update:
                continue
            new = after.operands[1]
            section = section_of(after)
            if not self._is_final(Part(section, frozenset()), place):
                continue
            while new.op.kind not in ("input", "constant"):
                yield new, Final(self.number, section)
                if new.op is not ops.reshape:
                    break
                new = new.operands[0]

    def _reads(self, place: int, users: Mapping[Value, Sequence[Value]]) -> list[tuple[Value, bool]]:
        """What reads a version, other than to make the following one, and whether it reads final parts of it."""
        version = self.versions[place]
        following = self.versions[place + 1] if place < len(self.writes) else None
        found = []
        for user in users.get(version, ()):
            if not _makes(user, following, version):
                parts = read_parts(user, version)
                found.append((user, parts is not None and all(self._is_final(part, place) for part in parts)))
        return found

    def _finally_read(self, reads: Sequence[Sequence[tuple[Value, bool]]], cotangents: Set[Value]) -> set[Value]:
        """The versions of which only final parts are read, and of those that may be computed again from them.  What is added, or written by
        a loop inside, is in the array when the loop has ended: it must not be written again."""
        found: set[Value] = set()
        is_read = False
        for version, readers in zip(self.versions[::-1], reads[::-1], strict=True):
            if version in cotangents or not all(is_final for _, is_final in readers):
                break
            found.add(version)
            is_read |= bool(readers)
            if is_read and version.op is not ops.slice_update:
                break
        return found

    def _is_final(self, part: Part, place: int) -> bool:
        """Whether what the version of this number has in a part is there when the loop has ended."""
        now = [write for parts in self.writes[place:] for write in parts]
        return (all(are_apart(part.section, write.section, part.inner, write.inner) for write in now)
                and all(are_apart_later(part.section, write.section, self.over, self.step, part.inner | write.inner)
                        for parts in self.writes for write in parts))


def _makes(user: Value, following: Value | None, version: Value) -> bool:
    """Whether a value makes the following version of a version, and reads nothing of it otherwise."""
    if following is None:
        return False
    if user is following:
        return user.operands.count(version) == 1
    return following.op is ops.item and user is following.operands[0] and user.operands.count(version) == 1


def chosen(residuals: Sequence[Value], final: Mapping[Value, Final], arrays: Sequence[Value], trips: int) -> dict[Value, Final]:
    """What of these lies in arrays of which so much is read that they stay where they are."""
    saved: dict[int, int] = {}
    for value in residuals:
        if value in final:
            saved[final[value].number] = saved.get(final[value].number, 0) + trips * value.type.nbytes
    worth = {number for number, size in saved.items() if SHARE * size >= arrays[number].type.nbytes}
    return {value: place for value, place in final.items() if place.number in worth}


def read_finally(body: Sequence[Value], holders: Mapping[Value, Value], final: Mapping[Value, Final], arrays: Sequence[Value]) -> Read:
    """An adjoint that reads values where they lie in the arrays when the loop has ended, in the places of inputs that hold them.

    holders: value -> the input of the adjoint that holds it, of all values that are to be read so.
    """
    numbers = tuple(dict.fromkeys([final[value].number for value in holders]))
    inputs = {number: input_value(arrays[number].type, arrays[number].label) for number in numbers}
    mapping: dict[Value, Value] = {}
    with Record() as record:
        for value, holder in holders.items():
            number, section = final[value]
            if section is None:
                mapping[holder] = inputs[number]
                continue
            record.source = value.source
            part = ops.slice(inputs[number], starts=section.starts, sizes=section.sizes, steps=section.steps)
            mapping[holder] = part if part.shape == value.shape else ops.reshape(part, shape=value.shape)
            mapping[holder].name = value.name
    made = [*record.values, *copied(body, mapping)]
    return Read(numbers, list(inputs.values()), made, mapping)
