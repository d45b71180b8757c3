"""Sorts of which few elements are read become selections of these elements: `narrow_sorts`.

    s = sort(x);  m = (s[k - 1] + s[k]) / 2          ->          s = order_statistics(x, [k - 1, k]);  m = (s[0] + s[1]) / 2

A selection sweeps over the elements once or twice (`lowering/libraries/selection_calls.py`).  Medians, quantiles and the user's own
`np.sort(x)[k]` are such reads, also at places that are data (`gather`).  An array that is partitioned around some places has what it was
partitioned around at these.

This is done before differentiation, since the cotangent of a selection goes to few elements.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, all_values
from bwcompiler.ir.op import Value
from bwcompiler.ops.ordering.order_statistics import is_selected, known_places, numbers_of, swap_with_last
from bwcompiler.passes.rewriting.rewriter import NO_RULES, Rewriter, Rewritten, rebuilt

MOST = 8                       # places that are searched for; neighbours are found together,
NEIGHBOURS = 128               # up to about so many
SHARE = 16                     # at most one of so many elements is selected

Makes = Callable[[Mapping[Value, Value]], Value]          # what stands for a value, of what stands for others


def narrow_sorts(graph: Graph) -> Rewritten:
    """The graph with selections in the places of such sorts; the same graph where there are none."""
    if not any(value.op is ops.sort or value.op is ops.argpartition for value in all_values(graph)):
        return Rewritten(graph, {})
    makes = _selections(graph)
    mapping: dict[Value, Value] = {}
    record = Rewriter(NO_RULES)
    with record:
        for value in graph.body:
            record.source, record.forward = value.source, value.forward
            make = makes.get(value)
            if make is not None:
                mapping[value] = copy = make(mapping)
                copy.name = copy.name or value.name
                continue
            copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
            copy = copy.with_regions(lambda region: narrow_sorts(region).graph)
            record.values.append(copy)
            if copy is not value:
                mapping[value] = copy
    return Rewritten(rebuilt(graph, record.values, mapping), mapping)


def _selections(graph: Graph) -> dict[Value, Makes]:
    """How the values that read sorted elements are made of selections."""
    found: dict[Value, Makes] = {}
    readers = graph.readers()
    for value in graph.body:
        if value.op is ops.sort and is_selected(value.type, value.attrs["axis"]):
            found.update(_selected(value, readers.get(value, ())))
        elif value.op is ops.slice:
            found.update(_of_partition(value))
    return found


class _Read(NamedTuple):
    """Places along their axis at which sorted elements are read: known ones, or an array `at` of so many places in each row."""

    known: range | None
    at: Value | None = None
    places: int = 0


def _selected(sort: Value, readers: Sequence[Value | None]) -> dict[Value, Makes]:
    """The readers of a sorted array; none if some of them read too much."""
    axis = sort.attrs["axis"]
    reads: dict[Value, _Read] = {}
    for reader in readers:
        read = None if reader is None else _read(reader, sort)
        if reader is None or read is None:
            return {}
        reads[reader] = read
    known = sorted({place for read in reads.values() for place in read.known or ()})
    searches = bool(known) + len(known) // NEIGHBOURS + sum([low + NEIGHBOURS < high for low, high in itertools.pairwise(known)])
    if searches + sum([read.places for read in reads.values()]) > MOST or SHARE * len(known) > sort.shape[axis]:
        return {}
    return {reader: functools.partial(_at_known if read.at is None else _at_index, reader, sort, known, read)
            for reader, read in reads.items()}


def _read(reader: Value, sort: Value) -> _Read | None:
    axis, rank = sort.attrs["axis"], sort.rank
    if reader.op is ops.slice:
        start, size, step = [reader.attrs[name][axis] for name in ("starts", "sizes", "steps")]
        is_run = isinstance(start, int) and isinstance(size, int) and size > 0 and (size == 1 or step == 1)
        return _Read(range(start, start + size)) if is_run else None
    if reader.op is not ops.gather or reader.operands[0] is not sort:
        return None
    axes, indices = reader.attrs["axes"], reader.operands[1:]
    shape = indices[-1].shape
    if not all(isinstance(extent, int) for extent in shape):
        return None
    if axes == (axis,):
        return _Read(None, indices[0], indices[0].type.size)
    is_in_lanes = axes == tuple(range(rank)) and axis == rank - 1 and len(shape) == rank and shape[:-1] == sort.shape[:-1]
    counts = is_in_lanes and all(index.op is ops.iota and index.attrs["axis"] == k for k, index in enumerate(indices[:-1]))
    return _Read(None, indices[-1], shape[-1]) if counts else None


def _at_known(reader: Value, sort: Value, known: Sequence[int], read: _Read, mapping: Mapping[Value, Value]) -> Value:
    """A slice of the elements at all the known places."""
    axis, starts = sort.attrs["axis"], list(reader.attrs["starts"])
    starts[axis] = known.index(read.known[0]) if read.known else 0
    x = swap_with_last(_now(sort.operands[0], mapping), axis)
    found = swap_with_last(ops.order_statistics(x, known_places(known, x.shape[:-1])), axis)
    return ops.slice(found, starts=tuple(starts), sizes=reader.attrs["sizes"], steps=reader.attrs["steps"])


def _at_index(reader: Value, sort: Value, known: Sequence[int], read: _Read, mapping: Mapping[Value, Value]) -> Value:
    """The elements at places that are data: at others in each lane, or at the same, whose axes then come first."""
    axis, x, index = sort.attrs["axis"], _now(sort.operands[0], mapping), _now(reader.operands[-1], mapping)
    if len(reader.operands) > 2 or x.rank == index.rank == 1:
        return ops.order_statistics(x, index)
    x = ops.transpose(x, axes=(*[k for k in range(x.rank) if k != axis], axis))
    places = ops.broadcast(ops.reshape(index, shape=(read.places,)), shape=(*x.shape[:-1], read.places), axes=(x.rank - 1,))
    found = ops.order_statistics(x, places)
    return ops.reshape(ops.transpose(found, axes=(x.rank - 1, *range(x.rank - 1))), shape=reader.shape)


def _now(value: Value, mapping: Mapping[Value, Value]) -> Value:
    return mapping.get(value, value)


# ----- partitions
def _of_partition(reader: Value) -> dict[Value, Makes]:
    """A slice of a partitioned array at one of the places around which it is partitioned."""
    gather = reader.operands[0]
    if gather.op is not ops.gather or gather.operands[-1].op is not ops.argpartition:
        return {}
    x, elements = gather.operands[-1].operands
    if gather.operands[0] is not x or elements.op is not ops.order_statistics or elements.operands[0] is not x:
        return {}
    places, start = numbers_of(elements.operands[1]), reader.attrs["starts"][-1]
    if places is None or start not in places or reader.attrs["sizes"][-1] != 1:
        return {}
    starts = (*reader.attrs["starts"][:-1], places.index(start))
    attrs = {**reader.attrs, "starts": starts}
    return {reader: lambda mapping: ops.slice(_now(elements, mapping), **attrs)}
