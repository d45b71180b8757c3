"""What lists that grow in loops (`growth`) get: rows of arrays that the iterations fill, of which the list holds views after the loop."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.numpy.manipulation.indexing import basic_part
from bwcompiler.frontend.source.array_backed.appended import BLOCK, Element, Moved, Row, block_of
from bwcompiler.frontend.source.array_backed.boxes import Box, Text, boxed, unboxed
from bwcompiler.frontend.source.array_backed.growth import Growth, append, unbounded
from bwcompiler.frontend.source.array_backed.schedules import schedule
from bwcompiler.frontend.source.containers.parts import containers
from bwcompiler.frontend.source.effects.doubles import note_double
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes
from bwcompiler.frontend.source.undecided.lists.gaps import Block, Maybe, packed, unpacked, where_there
from bwcompiler.frontend.source.variables import UNBOUND, not_capturable, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, index_like
from bwcompiler.frontend.tracing.indexing.index_parsing import cached_parse
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import Region, Storage
from bwcompiler.frontend.tracing.storages.strided_views import StridedView, everything_of
from bwcompiler.frontend.tracing.storages.views import index_chain
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.extent import substitute
from bwcompiler.ir.op import Value

_KNOWN = (bool, int, float, complex, str, bytes, np.generic, type(None))
_TOLD_BY_VALUE = (str, bytes, enum.Enum, type(None), type(UNBOUND))     # options of choices that are the same in all iterations


def elements_of(growth: Growth, region: Region, capacity: Any) -> list[Element]:
    """What the iteration has appended; raises NotCapturable for what the rows of arrays cannot hold."""
    items = [boxed(item) for item in packed(growth.items)]
    if growth.has_gaps and not (isinstance(capacity, int) and capacity < BLOCK):
        items = _alike(items)
    is_read = bool(growth.count)
    return [Element(tree.structure(item), [_leaf(leaf, region, is_read) for leaf in _leaves(item)], call(value_of, item.present) if type(
        item) is Maybe and isinstance(item.present, Tracer) else None) for item in items]


def _alike(items: list[Any]) -> list[Any]:
    """Items of one structure, as rows of one array are, where they differ in texts; as they are where that cannot be."""
    if len({tree.structure(_value(item)) for item in items}) < 2 or any(isinstance(item, Block) for item in items):
        return items
    found = HANDLERS["made_alike"](list(map(_value, items)))
    return items if found is None else [
        Maybe(item.present, value) if type(item) is Maybe else value for item, value in zip(items, found, strict=True)]


def require_gaps(growth: Growth, elements: Sequence[Element], region: Region) -> None:
    """What a loop appends whose length moves with a loop around: elements of one kind, for they get flags.

    The list is made anew in that loop, or data decides about each element anyhow.  Else the loop around is unrolled: then the length of
    the list is known.
    """
    inputs = {*region.argument_inputs, *region.lifted_inputs, *region.capture_inputs}
    policy, loops = open_policy(), [scope.loop for scope in scopes_around(growth.base) if scope.loop is not None]
    is_anew = len(loops) == 1 and policy is not None and policy.summed is not growth.base
    for one in elements:
        if one.structure != elements[0].structure or any(
                isinstance(leaf, Moved) or (isinstance(leaf, Row) and leaf.leaf._chain) for leaf in one.leaves):
            raise unbounded()
        if not is_anew and not isinstance(tree.unflatten(one.structure, range(len(one.leaves))), Block) and not (
                one.present is not None and depends(one.present, inputs)):
            raise unbounded()


def depends(value: Value, inputs: set[Value]) -> bool:
    """Whether a value is made of any of some inputs."""
    pending, seen = [value], {value}
    while pending:
        one = pending.pop()
        if one in inputs:
            return True
        fresh = [operand for operand in one.operands if operand not in seen]
        seen.update(fresh)
        pending += fresh
    return False


def _value(item: Any) -> Any:
    return item.value if type(item) is Maybe else item


def _leaves(item: Any) -> list[Any]:
    """The leaves of numbers, arrays and tuples of these."""
    if isinstance(item, tuple):
        return [leaf for part in item for leaf in _leaves(part)]
    if type(item) in (Box, Text):
        return [] if type(item) is Text else [leaf for part in item.parts for leaf in _leaves(part)]
    if type(item) is Maybe:
        return [*_leaves(item.present), *_leaves(item.value)]
    if isinstance(item, Block):                    # views of the rows of a loop inside are no rows themselves
        return [np.copy(call(as_tracer, leaf)) for leaf in tree.leaves(item)]
    if type(item) is Choice and all(isinstance(thing, _TOLD_BY_VALUE) for thing in item.options.things):
        return [*_leaves(item.which), *(_leaves(item.value) if item.has_value else ())]
    if not isinstance(item, (Tracer, np.ndarray, *_KNOWN)):
        hint = " (a tuple would do)" if isinstance(item, list) else ""
        kind = "number or array, as data decide" if type(item) is TwoShapes else type(item).__name__
        not_capturable(f"it calls list.append() with a {kind}{hint}")
    return tree.leaves(item)


def _leaf(leaf: Any, region: Region, is_read: bool) -> Any:
    """is_read: the next iteration reads it."""
    if isinstance(leaf, np.ndarray):
        leaf = np.copy(call(as_tracer, leaf))
    if not isinstance(leaf, Tracer) or isinstance(leaf, IndexTracer):
        return leaf
    if any(not isinstance(extent, int) for one in (leaf._storage.type, *leaf._chain, leaf._type) for extent in one.shape):
        not_capturable("it collects arrays whose shape depends on the iteration")
    is_own = leaf._storage.region is region
    if not any(isinstance(step, StridedView) and step.moves for step in leaf._chain):
        return Row(leaf._storage, leaf) if is_own else leaf
    if not is_own and not is_read:
        return Moved(leaf)
    part: Any = np.copy(leaf)
    part._kind = leaf._kind
    return Row(part._storage, part, leaf._storage)


def store(buffer: Tracer, index: Any, storage: Storage, region: Region) -> None:
    """buffer[index] = what the storage holds now."""
    if not isinstance(index, IndexTracer | int):
        buffer[index] = handle(storage, (), storage.type)
        return
    call(lambda: assign(_row(buffer, index), region.read(storage)))


def _row(buffer: Tracer, index: Any) -> Tracer:
    shape: Any = buffer._type.shape
    return basic_part(buffer, cached_parse(index, shape))


def row(buffer: Tracer, number: int, storage: Storage, leaf: Tracer) -> Tracer:
    """The leaf as it was in an iteration."""
    shape: Any = buffer._type.shape                # of a view, also where nobody may write to the storage: numbers are rows of it
    chain = index_chain(buffer._chain, shape, [number, *everything_of(shape[1:])])
    made = handle(buffer._storage, (*chain, *leaf._chain), leaf._type)
    made._kind = leaf._kind
    if not storage.writable:
        made._storage.writable = False
    return made


def grow(growth: Growth, elements: Sequence[Element], loop: Any, iterations: Any) -> None:
    """After the loop: what all iterations have appended; of those that data decides about, `iterations` have run."""
    count, index, buffers = loop.capacity, loop.index, loop.buffers

    def leaf_of(leaf: Any, number: int) -> Any:
        if isinstance(leaf, Row):
            return row(buffers[leaf.storage], number, leaf.storage, leaf.leaf)
        if isinstance(leaf, Moved):
            return leaf.at({index: number})
        return call(index_like, leaf, substitute(leaf._extent, {index: number})) if isinstance(leaf, IndexTracer) else leaf

    growth.restore()
    schedules = [None if one.present is None or iterations is not None else schedule(one.present, index, count) for one in elements]
    if any(known is not None for known in schedules):
        _append_known(growth, elements, schedules, count, leaf_of, loop.site)
        return
    block = block_of(elements, count, index, buffers, iterations)
    if block is not None:
        if growth.front:
            not_capturable("data decide what is put in front of a list")
        append(growth.base, *unpacked([block]))
        return
    for number in range(count):
        made = [tree.unflatten(one.structure, [leaf_of(leaf, number) for leaf in one.leaves]) for one in elements]
        added = unpacked([unboxed(one) if iterations is None else where_there(iterations > number, one) for one in made])
        append(growth.base, *added, front=growth.front)


def _append_known(growth: Growth, elements: Sequence[Element], schedules: Sequence[Any], count: int,
                  leaf_of: Callable[[Any, int], Any], site: Site) -> None:
    """Give the list what was appended in iterations that are known; where that is changed later, the loop at `site` is unrolled."""
    for number in range(count):
        for one, known in zip(elements, schedules, strict=True):
            if known is None or known[number]:
                item = tree.unflatten(one.structure, [leaf_of(leaf, number) for leaf in one.leaves])
                if known is not None:
                    made = unboxed(_value(item), double=True)
                    note_double(*containers(made), site=site)
                    append(growth.base, made, front=growth.front)
                else:
                    append(growth.base, *unpacked([unboxed(item)]), front=growth.front)
