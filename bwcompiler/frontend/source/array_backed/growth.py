"""Lists that grow in captured loops: `kept.append(x)` in every iteration.

Each array that an iteration appends becomes a row of a buffer, an array that the loop assigns to; after the loop the list holds views of
the rows.  While the body is traced the list as a whole is unknown: its old elements are followed by the marker `POISON`.  Its last
elements can be read, `kept[-1]`; the loop carries them.  A list that grows in front, `path.insert(0, x)`, is one that grows at its end,
read from the other side.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.numpy.manipulation.indexing import basic_part
from bwcompiler.frontend.source.array_backed import invariant_lists
from bwcompiler.frontend.source.array_backed.appended import BLOCK, Element, Moved, Row, block_of
from bwcompiler.frontend.source.array_backed.boxes import Box, Text, boxed, unboxed
from bwcompiler.frontend.source.array_backed.histories import at_place, from_end, from_history, history_of
from bwcompiler.frontend.source.array_backed.schedules import schedule
from bwcompiler.frontend.source.containers.parts import containers
from bwcompiler.frontend.source.containers.queues import is_queue
from bwcompiler.frontend.source.effects.doubles import note_double
from bwcompiler.frontend.source.effects.places import Place, assign_place, note_change, scopes_around, short, taking_along
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes
from bwcompiler.frontend.source.undecided.kinds.unbound import narrowed
from bwcompiler.frontend.source.undecided.lists.gaps import Block, Maybe, Tail, packed, unpacked, where_there
from bwcompiler.frontend.source.variables import UNBOUND, Again, NotCapturable, not_capturable, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, extent_of, index_handle, index_like
from bwcompiler.frontend.tracing.indexing.index_parsing import cached_parse
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import Region, Storage
from bwcompiler.frontend.tracing.storages.strided_views import StridedView, everything_of
from bwcompiler.frontend.tracing.storages.views import index_chain
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.extent import Extent, add_extents, lower, scale_extent, substitute
from bwcompiler.ir.op import Value
from bwcompiler.operators import Operators

WINDOW = 4                     # of the last elements can be read
MOST_IN_SIDE = 64              # elements that a side of a branch adds
_KNOWN = (bool, int, float, complex, str, bytes, np.generic, type(None))
_TOLD_BY_VALUE = (str, bytes, enum.Enum, type(None), type(UNBOUND))     # options of choices that are the same in all iterations


class Unbounded(NotCapturable):
    """A list grows in a loop of nobody knows how many iterations."""


def _unbounded() -> Unbounded:
    return Unbounded("it appends to a list, which gets nobody knows how long (in `for k in range(n)` with a `break` it may; or write "
                     "into an array that is made before, kept[k] = x)", current_source())


class _Poison(Operators):
    """In the place of the elements of a list that grows."""

    is_poison = True

    def _refuse(self, *_args: Any, **_options: Any) -> Any:
        not_capturable("it reads a list that grows in it as a whole")

    __array__ = __array_ufunc__ = __array_function__ = _refuse
    __getattr__ = __getitem__ = __setitem__ = __call__ = __iter__ = __len__ = __bool__ = __contains__ = __format__ = __str__ = _refuse
    __hash__ = __float__ = __int__ = __index__ = _operate = _refuse


POISON = _Poison()


class Growth:
    """A list from outside of a loop that grows in it.

    front   whether it grows in front: then the others are in the order in which elements are added, too, the reverse of the list's.
    entry   what it held before; items: what the iteration that is being traced has appended.
    each    how many elements an iteration appends, as far as is known.
    has_gaps  whether data decides if elements are appended.
    is_guess  whether nothing was appended yet: a loop inside reads it at a place that moves.
    count   how many of the last elements an iteration reads; `last` are these, a variable of the body.
    """

    def __init__(self, base: list[Any], front: bool = False) -> None:
        self.base = base
        self.front = front
        self.entry = base[::-1] if front else list(base)
        self.items: list[Any] = []
        self.before: list[Any] = []                # items when the iteration was traced the last time
        self.each = 0
        self.has_gaps = False
        self.is_guess = False
        self.count = 0
        self.last: tuple[Any, ...] = ()
        self.name = ""

    @property
    def cell_contents(self) -> Any:
        return self.last

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self.last = value

    def begin(self) -> None:
        """Before an iteration."""
        self.before = self.items or self.before
        self.items = []
        self.base[:] = [POISON, *self.entry[::-1]] if self.front else [*self.entry, POISON]

    def end(self) -> None:
        """After an iteration: what the next one reads."""
        if self.count:
            self.last = (*self.last, *map(boxed, self.items))[-self.count:]

    def restore(self) -> None:
        """Give the list what it held."""
        self.base[:] = self.entry[::-1] if self.front else self.entry


# ----- in the body
def inserting(base: list[Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """base.insert of a list from outside: one that only grows in front in loops; `otherwise` of others."""
    def insert(place: Any, value: Any) -> Any:
        in_loops = all(scope.loop is not None and scope.loop.capacity is not None for scope in scopes_around(base))
        if type(place) is not int or place or is_queue(base) or not in_loops:
            return otherwise(place, value)
        return append(base, value, front=True)
    return insert


def append(base: list[Any], *values: Any, front: bool = False) -> None:
    """Append to a list, which may be from outside of the bodies that are being traced; or put something in front of it."""
    scopes = scopes_around(base)
    if not scopes and front:
        base[:0] = values[::-1]
        return
    if not scopes or is_queue(base):
        taking_along(base, base.extend)(values)
        return
    note_change(scopes)
    if len(values) > MOST_IN_SIDE and scopes[-1].tails is not None:       # each would be a result of the branch
        HANDLERS["wish_for_stack"](base, *values[:1])
        not_capturable(f"it adds {len(values)} elements to a list, or less, as data say", hint="kept[count:count + n] = ..., in an array "
                       "that is made before")
    loops = [scope.loop for scope in scopes if scope.loop is not None]
    if any(loop.capacity is None for loop in loops):
        raise _unbounded()
    if any(scope.loop is None and scope.tails is None for scope in scopes):
        not_capturable(f"it calls list.append(), which may change list {short(base)}")
    indexed = next((loop for loop in loops if id(base) in loop.indexed), None)
    if indexed is not None:                          # it was read at places that move before it grew
        indexed.indexed.pop(id(base)).restore()
        indexed.kept.add(id(base))
    target, values = base, tuple(map(narrowed, values))
    for loop in loops:
        if id(base) not in loop.growths:
            loop.found_growths.setdefault(id(base), Growth(base, front))
        growth = loop.growths.get(id(base)) or loop.found_growths[id(base)]
        if growth.front is not front:
            HANDLERS["only_queue"](base)
        growth.is_guess = False
        growth.has_gaps |= scopes[-1].tails is not None or any(type(value) is Maybe for value in values)
        target = growth.items
    if indexed is not None:
        raise Again(indexed)
    if scopes[-1].tails is not None:
        scopes[-1].tails.setdefault(id(base), Tail(base, target))
    if loops and id(base) in loops[0].histories:
        loops[0].histories[id(base)].append(length(base), values, len(_growths(base)))
    target.extend(values)


HANDLERS["append_to_list"] = append


def expect(base: list[Any]) -> None:
    """A list is read at a place that moves with a loop: that can be had if it grows with the loop."""
    scopes = scopes_around(base)
    if not scopes or is_queue(base) or is_growing(base) or any(
            scope.loop is None or not isinstance(scope.loop.count, int) for scope in scopes):
        return
    for scope in scopes:
        if id(base) not in scope.loop.found_growths:
            growth = scope.loop.found_growths[id(base)] = Growth(base)
            growth.is_guess = True
    raise Again(scopes[-1].loop)


def _growths(base: Any) -> list[tuple[Any, Growth]]:
    """The loops in which a list grows, outermost first."""
    if type(base) is not list:
        return []
    return [(scope.loop, scope.loop.growths[id(base)]) for scope in scopes_around(base)
            if scope.loop is not None and id(base) in scope.loop.growths]


def is_growing(base: Any) -> bool:
    """Whether a list grows in a loop that is being traced."""
    policy = open_policy()
    return policy is not None and bool(policy.depth) and bool(_growths(base))


def require_noted(base: Any) -> None:
    """A list is assigned to: a loop in which it was just found to grow is traced again, as one that knows."""
    for scope in scopes_around(base):
        if scope.loop is not None and id(base) in scope.loop.found_growths:
            raise Again(scope.loop)


def refuse_whole(base: Any) -> None:
    """Something needs all elements of a list."""
    if is_growing(base):
        not_capturable("it reads a list that grows in it as a whole")
    if HANDLERS["is_tabled"](base):
        not_capturable("it reads a dictionary that it fills as a whole")


def length(base: list[Any]) -> Any:
    """len of a list that grows."""
    growths = _growths(base)
    if all(loop.index is not None for loop, _ in growths):
        return call(index_handle, _length(growths))
    _refuse_gaps(growths)
    found: Any = len(growths[0][1].entry)
    for loop, growth in growths:
        number = loop.names[loop.counter] if loop.index is None else call(index_handle, loop.index.extent())
        found = found + number * growth.each + len(growth.items)
    return found


def _refuse_gaps(growths: Sequence[tuple[Any, Growth]]) -> None:
    if any(growth.has_gaps for _, growth in growths):
        HANDLERS["wish_for_stack"](growths[0][1].base, *[one for _, growth in growths for one in (*growth.before, *growth.items)])
        not_capturable("it reads a list to which it appends as data decides")


def _length(growths: Sequence[tuple[Any, Growth]]) -> Extent:
    _refuse_gaps(growths)
    found: Extent = len(growths[0][1].entry)
    for loop, growth in growths:
        found = add_extents(found, add_extents(scale_extent(loop.index.extent(), growth.each), len(growth.items)))
    return found


def numbers(base: list[Any], with_room: bool = False) -> Any:
    """The numbers that a list that grows in one loop holds now, as an array; None where they cannot be in one.

    with_room: with all that may follow.
    """
    growths = _growths(base)
    growth = growths[0][1]
    if growth.front and with_room:
        return None
    history = history_of(base, growth) if len(growths) == 1 and not growth.has_gaps else None
    found = None if history is None else history.numbers(None if with_room else length(base))
    return found[::-1] if found is not None and growth.front else found


def element(base: list[Any], index: Any) -> Any:
    """base[index] of a list that grows."""
    growths = _growths(base)
    _refuse_gaps(growths)
    if growths[0][1].front:
        if isinstance(index, slice) and index.start is None and index.step is None and type(index.stop) is int and index.stop > 0:
            return [_from_end(growths, place) for place in range(1, index.stop + 1)]
        index = _from_front(growths, index)
    if isinstance(index, slice) and type(index.start) is int and index.start < 0 and index.stop is None and index.step is None:
        return [_from_end(growths, place) for place in range(-index.start, 0, -1)]
    extent = None if isinstance(index, slice) else extent_of(index)
    if extent is None:
        found = at_place(base, growths[0][1], index, length(base)) if len(growths) == 1 else None
        return _refuse_place(growths) if found is None else found
    if isinstance(extent, int) and extent < 0:
        return _from_end(growths, -extent)
    if isinstance(extent, int) and extent < len(growths[0][1].entry):
        return growths[0][1].entry[extent]
    if lower(extent) >= 0 and invariant_lists.is_read(growths[0][1].entry, index):      # else from the end, which moves
        return invariant_lists.element(growths[0][1].entry, index, base)
    if any(loop.index is None for loop, _ in growths):
        return _refuse_place(growths)
    distance = add_extents(_length(growths), scale_extent(extent, -1))
    if isinstance(distance, int) and distance > 0:
        return _from_end(growths, distance)
    found = from_history(base, growths[0][1], extent, _length(growths)) if len(growths) == 1 else None
    return _refuse_place(growths) if found is None else found


def _from_front(growths: Sequence[tuple[Any, Growth]], index: Any) -> Any:
    """The place of an element in the order in which they were added, of a list that grows in front."""
    if isinstance(index, slice):
        return _refuse_place(growths, "from front to back")
    return -1 - index


def _refuse_place(growths: Sequence[tuple[Any, Growth]], place: str = "at places that are not known") -> NoReturn:
    if growths[-1][1].is_guess:                    # it was thought to grow, as this is where it is read
        not_capturable("it reads a list at places that move, whose elements are not alike, or change meanwhile")
    not_capturable(f"it reads a list that grows in it {place}")


def _from_end(growths: Sequence[tuple[Any, Growth]], place: int) -> Any:
    """The last element for place 1, the one before it for 2 ..."""
    loop, growth = growths[-1]
    if place <= len(growth.items):
        return growth.items[-place]
    place -= len(growth.items)
    if place > WINDOW or (1 < place > growth.count and len(growths) == 1 and len(growth.entry) < place):
        found = from_end(growth, place + len(growth.items), length(growth.base)) if len(growths) == 1 else None
        if found is None and place > WINDOW:
            _refuse_place(growths, f"more than {WINDOW} elements from its end")
        if found is not None:
            return found
    if place > growth.count:
        growth.count = place
        raise Again(loop)
    return unboxed(growth.last[-place], double=True)


def write(base: list[Any], index: Any, value: Any) -> None:
    """base[index] = value of a list that grows: of an element that this iteration has appended."""
    growths = _growths(base)
    _refuse_gaps(growths)
    _, growth = growths[-1]
    index = _from_front(growths, index) if growth.front else index
    extent = None if isinstance(index, slice) or any(loop.index is None for loop, _ in growths) else extent_of(index)
    place = -index if type(index) is int and index < 0 else None if extent is None else add_extents(
        _length(growths), scale_extent(extent, -1))
    if not isinstance(place, int) or not 0 < place <= len(growth.items):
        not_capturable("it assigns to an element of a list that grows in it, which it has not appended in the same iteration")
    growths[-1][0].scope.own[id(growth.items)] = growth.items
    assign_place(Place(growth.items, "item", len(growth.items) - place), value)
    history = growths[0][0].histories.get(id(base))
    if history is not None:
        history.append(length(base) - place, [value], len(growths))


def last_on_entry(loop: Any, growth: Growth) -> tuple[Any, ...]:
    """The last elements before the first iteration."""
    around = [(other, outer) for other, outer in _growths(growth.base) if other is not loop]
    if not around and len(growth.entry) < growth.count:
        raise NotCapturable(f"its first iteration reads {growth.count} elements of a list of {len(growth.entry)}", peel=True)
    return tuple([boxed(_from_end(around, place) if around else growth.entry[-place]) for place in range(growth.count, 0, -1)])


# ----- rows
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
            raise _unbounded()
        if not is_anew and not isinstance(tree.unflatten(one.structure, range(len(one.leaves))), Block) and not (
                one.present is not None and depends(one.present, inputs)):
            raise _unbounded()


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
