"""What variables, lists and arrays hold after a loop, when its op is recorded: the ends of what it carries, what its last iteration bound,
what all have appended.  `loop` is a `capture.Traceable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bwcompiler import tree
from bwcompiler.errors import at
from bwcompiler.frontend.source.array_backed.grown_rows import grow, row
from bwcompiler.frontend.source.bodies.capture import Traceable
from bwcompiler.frontend.source.carried import same_arrays
from bwcompiler.frontend.source.carried.copies import protect_rows
from bwcompiler.frontend.source.carried.first_writes import settle_first_writes
from bwcompiler.frontend.source.carried.kept import mark_after
from bwcompiler.frontend.source.carried.truths import note_carried
from bwcompiler.frontend.source.effects.checks import note
from bwcompiler.frontend.source.variables import is_number, same
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import Leaf
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, index_handle
from bwcompiler.frontend.tracing.policy import Recapture
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.memory_order import Layout, UnknownOrderError
from bwcompiler.frontend.tracing.storages.region import Storage
from bwcompiler.frontend.tracing.storages.views import chain_at, moves
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array, handle
from bwcompiler.ir.op import Value


def place(loop: Traceable, leaves: Sequence[Leaf], items: Sequence[Value], last: Callable[[IndexTracer], Any]) -> None:
    """Give the variables what they hold after the loop: values of the carry, then of the results' storages."""
    loop.restore()
    number = _place_carried(loop, leaves, items)
    _place_results(loop, items[number:], last)
    settle_first_writes(loop)
    loop.apart.settle()
    loop.last.settle()
    protect_rows(loop)
    _grow(loop)
    mark_after(loop)


def _place_carried(loop: Traceable, leaves: Sequence[Leaf], items: Sequence[Value]) -> int:
    """Give the carried variables what the op gives for them: so many values."""
    position = 0
    for name in loop.order():
        count = len(loop.kinds[name])
        handles = [leaf.handle(value) for leaf, value in zip(leaves[position:position + count], items[position:], strict=False)]
        if name in loop.moving and loop.count is not None:
            handles = [loop.moving[name].taken(one, loop.count) for one in handles]
        call(note_carried, leaves[position:position + count], handles)
        rows = [_last_row(loop, end, one) for end, one in zip(tree.leaves(loop.ends[name]), handles, strict=True)]
        loop.names[name] = tree.unflatten(tree.structure(loop.entry[name]), [
            one if row is None else row for row, one in zip(rows, handles, strict=True)])
        position += count
        if is_number(loop.entry[name]) and same(loop.ends[name], loop.given[name]):      # nothing was assigned to it: it stays known
            loop.names[name] = loop.entry[name]

    def unroll() -> Any:
        """Their memory order was asked for: only Python knows it."""
        raise Recapture(loop.site, UnknownOrderError(at(current_source(), "it depends on the memory order of what a loop carries")))
    for leaf, ordered in zip(loop.arrays(loop.names.held(loop.order())), loop.ordered, strict=True):
        if not ordered:
            leaf._storage.layout = Layout(unroll)
    return position


def _place_results(loop: Traceable, items: Sequence[Value], last: Callable[[IndexTracer], Any]) -> None:
    """Give the variables that are not carried what the last iteration bound to them."""
    storages = {storage: number for number, storage in enumerate(dict.fromkeys([
        result.storage for result in loop.results if result.storage is not None]))}
    if len(items) > len(storages):
        note(fresh(items[-1]))
    made = call(same_arrays.settle, loop)
    for result in loop.results:
        storage = result.storage
        if storage is None:
            loop.names[result.name] = last(result.end) if isinstance(result.end, IndexTracer) else _last_view(loop, result.end)
            continue
        appended = _last_row(loop, result.end, result.end)
        if appended is not None:
            loop.names[result.name] = appended
            continue
        if storage not in made:
            value = items[storages[storage]]
            made[storage] = fresh_array(value) if storage.writable else fresh(value)
            made[storage]._storage.layout = storage.layout
        loop.names[result.name] = _last_view(loop, result.end, made[storage]._storage)
    call(same_arrays.note_results, loop)


def _last_view(loop: Traceable, end: Any, storage: Storage | None = None) -> Any:
    """What the last iteration bound a variable to, as a view of `storage`; a view that moves with the iterations, where it was then."""
    if not isinstance(end, Tracer) or (storage is None and not any(map(moves, end._chain))):
        return end
    chain = end._chain if loop.index is None else chain_at(end._chain, {loop.index: loop.index.hi})
    found = handle(storage or end._storage, chain, end._type)
    found._kind = end._kind
    return found


def _grow(loop: Traceable) -> None:
    """Give the lists what the iterations have appended."""
    for indexed in loop.indexed.values():
        indexed.settle()
    iterations = None if loop.index is not None else loop.names[loop.counter] if loop.counter else None
    if loop.count is not None and not isinstance(loop.count, int):
        iterations = call(index_handle, loop.count)
    for growth, elements in loop.elements:
        assert loop.capacity is not None
        grow(growth, elements, loop, iterations)


def _last_row(loop: Traceable, end: Any, after: Tracer) -> Tracer | None:
    """What a variable holds that was appended to a list in the last iteration: the same array as the list."""
    rows = loop.buffers.get(end._storage) if isinstance(end, Tracer) else None
    if rows is None or not end._storage.writable or end._type != after._type or not isinstance(loop.count, int):
        return None
    return row(rows, loop.count - 1, end._storage, end)
