"""The undo log: arrays that a loop updates in place are restored on the way back, so that values read from them are not kept.

A carried array goes through versions A0 -> A1 -> ... -> An in an iteration.  Each is a slice update of the one before, or the result of an
inner loop that itself has an undo log for it.  The forward body keeps what every update overwrites; the adjoint body carries the array too,
beginning with the last version, and puts the old slices back in reverse order.  So every version exists when its adjoint is computed,
bit for bit, and slices of it need not be kept:

    forward   old = A0[s], A1 = A0 with v at s              keeps old
    adjoint   A0 = A1 with old at s

`chains` finds the versions; `restored` writes them into an adjoint body, each as late as possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value
from bwcompiler.passes.rewriting.rewriter import Rewriter
from bwcompiler.passes.rewriting.simplify_rules import RULES


class Undone(NamedTuple):
    """An inner loop that has an undo log: what it made of `before`, and the loop backwards, whose result `place` is `before` again."""

    before: Value
    backwards: Value
    place: int


class Chain(NamedTuple):
    """The versions of one carried array, the first to the last; per version but the first what its update overwrites (`olds`) and
    writes (`news`), None where an inner loop makes it, or where it adds."""

    versions: tuple[Value, ...]
    olds: tuple[Value | None, ...]
    news: tuple[Value | None, ...]

    def stored(self) -> list[Value]:
        return [old for old in self.olds if old is not None]


class Chains(NamedTuple):
    """Per number of a carried array its chain; values: slices that the chains keep and that the graph did not have."""

    of: Mapping[int, Chain]
    values: tuple[Value, ...] = ()

    def free(self) -> set[Value]:
        """What is there on the way back: versions, and what was written into them."""
        return {value for chain in self.of.values() for value in (*chain.versions, *chain.news) if value is not None}

    def read(self, residuals: Iterable[Value]) -> list[int]:
        """The numbers of arrays of which an adjoint that reads these values needs a version."""
        wanted = set(residuals)
        return [number for number, chain in self.of.items() if not wanted.isdisjoint((*chain.versions, *chain.news))]


def chains(graph: Graph, entries: Sequence[Value], inner: Mapping[Value, Undone]) -> Chains:
    """The chains of a body whose carried values on entry are `entries`; inner: what loops with undo logs gave."""
    rewriter = Rewriter(RULES)
    rewriter.learn(graph.body)
    found: dict[int, Chain] = {}
    with rewriter:
        for number, entry in enumerate(entries):
            versions = _versions(graph.outputs[number], entry, inner)
            if versions is not None and len(versions) > 1:
                olds = [_old(before, after) for before, after in pairwise(versions)]
                news = [after.operands[1] if after.op is ops.slice_update else None for after in versions[1:]]
                found[number] = Chain(tuple(versions), tuple(olds), tuple(news))
    kept = {old for chain in found.values() for old in chain.stored()}         # two elements that are swapped are old and new
    found = {number: chain._replace(news=tuple([None if new in kept else new for new in chain.news])) for number, chain in found.items()}
    return Chains(found, tuple(rewriter.values))


def _versions(last: Value, entry: Value, inner: Mapping[Value, Undone]) -> list[Value] | None:
    """From the entry to the last; None where something else than updates and inner loops is on the way."""
    versions = [last]
    while versions[-1] is not entry:
        value = versions[-1]
        if value.op in ops.UPDATES:
            versions.append(value.operands[0])
        elif value in inner:
            versions.append(inner[value].before)
        else:
            return None
    return versions[::-1]


def _old(before: Value, after: Value) -> Value | None:
    """What an update overwrites, in the current record."""
    if after.op not in ops.UPDATES:
        return None
    return ops.slice(before, starts=after.attrs["starts"], sizes=after.operands[1].shape, steps=after.attrs["steps"])


class Restored(NamedTuple):
    """The body and outputs of an adjoint that restores arrays, and their first versions."""

    body: list[Value]
    outputs: list[Value]
    first: list[Value]


def restored(adjoint: Graph, arrays: Sequence[tuple[Chain, Value]], holders: Mapping[Value, Value], copies: Mapping[Value, Value],
             inner: Mapping[Value, Undone]) -> Restored | None:
    """The adjoint with restored versions in the places of the inputs that hold them.

    arrays    per restored array its chain, and the input that holds its last version.
    holders   values of the joint graph -> the inputs of the adjoint that hold them; copies: -> what stands for them in the adjoint.
    None where a version is needed before the inner loop that restores it.
    """
    state = [_Array(chain, last, holders, copies, inner) for chain, last in arrays]
    places: dict[Value, tuple[_Array, int]] = {}
    for array in state:
        places |= {holders[new]: (array, -number) for number, new in enumerate(array.chain.news, 1) if new is not None and new in holders}
        places |= {holders[version]: (array, number) for number, version in enumerate(array.chain.versions) if version in holders}
    mapping: dict[Value, Value] = {}
    body: list[Value] = []

    def found(value: Value) -> Value | None:
        place = places.get(value)
        if place is None:
            return mapping.get(value, value)
        array, number = place
        return array.version(number, body, mapping) if number >= 0 else array.written(-number, body, mapping)

    for value in adjoint.body:
        operands = [found(operand) for operand in value.operands]
        if any(operand is None for operand in operands):
            return None
        copy = value.with_operands(tuple([operand for operand in operands if operand is not None]))
        if copy is not value:
            mapping[value] = copy
        body.append(copy)
    outputs = [found(output) for output in adjoint.outputs]
    first = [array.version(0, body, mapping) for array in state]
    if any(value is None for value in (*outputs, *first)):
        return None
    return Restored(body, [value for value in outputs if value is not None], [value for value in first if value is not None])


class _Array:
    """One array on its way back: the versions that are there."""

    def __init__(self, chain: Chain, last: Value, holders: Mapping[Value, Value], copies: Mapping[Value, Value],
                 inner: Mapping[Value, Undone]) -> None:
        self.chain = chain
        self.holders = holders
        self.copies = copies
        self.inner = inner
        self.there = {len(chain.versions) - 1: last}
        self.read: dict[int, Value] = {}

    def version(self, number: int, body: list[Value], mapping: Mapping[Value, Value]) -> Value | None:
        """A version; what restores it is added to the body.  None where an inner loop has not gone back yet."""
        while number not in self.there:
            lowest = min(self.there)
            made = self._undo(lowest, body, mapping)
            if made is None:
                return None
            self.there[lowest - 1] = made
        return self.there[number]

    def written(self, number: int, body: list[Value], mapping: Mapping[Value, Value]) -> Value | None:
        """What the update that made a version wrote: read from that version, before it is undone."""
        if number not in self.read:
            version, update, new = self.version(number, body, mapping), self.chain.versions[number], self.chain.news[number - 1]
            if version is None or new is None:
                return None
            with Record() as record:
                record.source = update.source
                self.read[number] = ops.slice(version, starts=update.attrs["starts"], sizes=new.shape, steps=update.attrs["steps"])
            self.read[number].name = new.name
            body.extend(record.values)
        return self.read[number]

    def _undo(self, number: int, body: list[Value], mapping: Mapping[Value, Value]) -> Value | None:
        """The version before `number`."""
        update, old = self.chain.versions[number], self.chain.olds[number - 1]
        if self.chain.news[number - 1] in self.holders:
            self.written(number, body, mapping)
        with Record() as record:
            record.source = update.source
            if old is not None:
                made = ops.slice_update(self.there[number], self.holders[old], starts=update.attrs["starts"], steps=update.attrs["steps"])
            else:
                undone = self.inner[update]
                copy = self.copies.get(undone.backwards, undone.backwards)
                backwards = mapping.get(copy, copy)
                if backwards not in body:
                    return None
                made = ops.item(backwards, index=undone.place)
        made.name = self.chain.versions[number - 1].name
        body.extend(record.values)
        return made
