"""Lists that loops assign to at varying positions: `values[j] = 0.5 * (values[j] + values[j + 1])`, `xs[t + 1] = step(xs[t])`.

For the outermost loop that does so to a list from outside, the elements are copied to arrays, one for each leaf of an element, which the
loop assigns to; afterwards the list holds the rows of these.  While the body is traced it holds `POISON`, like a list that grows.

Elements of another form than those that are assigned, `[None] * n`, are no elements yet.  Each access is recorded (`key_order.Event`), and
an iteration that has been traced is replayed with numbers: nothing is read that is not there yet, and it is known what is there at the
end.  An array that is put in the list gets another name there, of which the list has a copy: nobody writes to either of them from then on
(`Storage.kept`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.element_forms import (
    Form,
    filled,
    form_of,
    handed_out,
    has_form,
    is_integer,
    keep_or_note,
    storages_of,
)
from bwcompiler.frontend.source.array_backed.grown_rows import row
from bwcompiler.frontend.source.array_backed.growth import POISON, is_growing, require_noted
from bwcompiler.frontend.source.array_backed.growth import write as write_in_growing
from bwcompiler.frontend.source.array_backed.key_order import Event, order_of_keys
from bwcompiler.frontend.source.array_backed.nested_lists import NestedList, base_of, made_for, shape_of
from bwcompiler.frontend.source.containers.queues import is_queue
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.variables import Again, is_number, not_capturable, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.shared_arrays import is_written, origins
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, extent_of
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.rows import together
from bwcompiler.frontend.tracing.storages.region import Region, Storage
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import add_extents, lower, upper

MOST_PARTS = 16                # arrays and groups of rows that a list holds before the loop


class IndexedList:
    """A list whose elements are in arrays while a loop is traced.

    entry    what it held before the loop, `there`: which of these are elements; held: the storages of the arrays among them.
    arrays   of the leaves of elements, which have the `kinds`.
    order    the places that hold elements after the loop, with whether anything may have been assigned to them.
    outside  arrays from outside of the loop that were assigned to elements.
    """

    def __init__(self, base: list[Any], loop: Any, form: Form) -> None:
        self.base = base
        self.loop = loop
        self.entry = list(base)
        self.held = storages_of(base)
        self.structure, self.kinds = form
        self.there = [has_form(one, form) for one in self.entry]
        self.arrays: list[Any] = []
        self.order: dict[tuple[int, ...], bool] = {}
        self.outside: set[Storage] = set()

    # ----- around the loop
    def prepare(self) -> None:
        """Before each attempt: the arrays, in the region around the loop."""
        lines = [tree.leaves(one) for one, there in zip(self.entry, self.there, strict=True) if there]
        places = [place for place, there in enumerate(self.there) if there]
        columns = zip(*lines, strict=True) if lines else [()] * len(self.kinds)
        self.arrays = [filled(kind, len(self.entry), places, list(column)) for kind, column in zip(self.kinds, columns, strict=True)]

    def elements(self) -> Sequence[Any]:
        """What the arrays were made of."""
        return [one for one, there in zip(self.entry, self.there, strict=True) if there]

    def begin(self) -> None:
        """Before an iteration."""
        self.base[:] = [POISON] * len(self.entry)

    def known_arrays(self) -> list[Any]:
        """Arrays that hold known numbers alone before the loop, which the loop need not be recorded for."""
        return [] if any(isinstance(leaf, Tracer) for one in self.entry for leaf in tree.leaves(one)) else self.arrays

    def end(self, region: Region) -> None:
        """After an iteration: whether all that it reads is there, and what is there after the loop."""
        if any(is_written(one, region) for one in (*self.held, *self.outside)):
            not_capturable("it assigns to arrays that a list holds, to which it assigns others at places that move")
        found = self._replayed()
        if found is None and not all(self.there):
            not_capturable("it reads elements of a list, or data decide about some, that may be none yet ([None] * n)")
        self.order = dict.fromkeys([(place,) for place in range(len(self.entry))], True) if found is None else found

    def _replayed(self) -> dict[tuple[int, ...], bool] | None:
        """The places that hold elements, with whether something may be assigned to them; None where that is not known."""
        policy = open_policy()
        assert policy is not None
        events = [event for event in policy.events if event.table is self]
        if any(None in (*event.key, *event.indices) for event in events):
            return None
        return order_of_keys(events, [(place,) for place, there in enumerate(self.there) if there])

    def restore(self) -> None:
        """Give the list what it held."""
        self.base[:] = self.entry

    def settle(self) -> None:
        """After the loop: the list holds the rows of the arrays, of which those that other names may have are not written to."""
        self.restore()
        if not self.arrays[0]._storage.written:
            return
        rows = [_rows(array, kind[0]) for array, kind in zip(self.arrays, self.kinds, strict=True)]
        for array, kind in zip(self.arrays, self.kinds, strict=True):
            array._storage.kept = kind[0] is None and self.loop.site
        held = storages_of([self.entry[place] for (place,), is_assigned in self.order.items() if is_assigned and self.there[place]])
        for one in (*self.outside, *held):         # elements may still be one of these
            one.kept = one.kept or (one.writable and self.loop.site)
        for (place,), is_assigned in self.order.items():
            if is_assigned:
                self.base[place] = tree.unflatten(self.structure, [row_of(place) for row_of in rows])

    # ----- in the body
    def read(self, index: Any) -> Any:
        """base[index]."""
        if isinstance(index, slice):
            not_capturable("it takes a slice of a list that it assigns to at places that move")
        place = self._noted(index, is_read=True)
        site, held = self.loop.site, self.held
        leaves = [handed_out(array[place], kind, site, held) for array, (kind, _) in zip(self.arrays, self.kinds, strict=True)]
        return tree.unflatten(self.structure, leaves)

    def write(self, index: Any, value: Any) -> None:
        """base[index] = value."""
        if isinstance(index, slice):
            not_capturable("it assigns to a slice of a list, of which it assigns to elements at places that move")
        if not has_form(value, (self.structure, self.kinds)):
            not_capturable("it assigns other things than a list holds (numbers, arrays of one shape, tuples of these), at places that move")
        place = self._noted(index, is_assignment=True)
        for array, leaf in zip(self.arrays, tree.leaves(value), strict=True):
            self._keep(leaf)
            array[place] = leaf

    def _keep(self, leaf: Any) -> None:
        """The list gets a copy of an array: one from outside of the loop, which may be refused, is marked after the loop."""
        outside = {one for one in origins(leaf) if one.writable and not self.loop.region.encloses(one.region)} if isinstance(
            leaf, Tracer) else set()
        self.outside |= outside
        if not outside:
            keep_or_note(leaf, self.loop.site)

    def _noted(self, index: Any, is_read: bool = False, is_assignment: bool = False) -> Any:
        """A place, which is read or assigned to, and for which there is an event."""
        policy, extent, scopes = open_policy(), extent_of(index), scopes_around(self.base)
        assert policy is not None
        place = None
        if extent is not None and (lower(extent) >= 0 or upper(extent) < 0):
            place = extent if lower(extent) >= 0 else add_extents(extent, len(self.entry))
        policy.events.append(Event(self, (place,), tuple([scope.loop.index for scope in scopes if scope.loop is not None]), tuple(
            [(scope.test, scope.side) for scope in scopes if scope.loop is None]), is_read, is_assignment))
        return index


def _rows(array: Any, kind: Any) -> Callable[[int], Any]:
    """What gives the elements after the loop: numbers, or views of the array."""
    element = array[0]
    if kind is None:
        return lambda place: array[place]
    element._chain = ()
    element._kind = kind
    return lambda place: row(array, place, element._storage, element)


# ----- which lists
def indexed_list(base: list[Any], value: Any = None) -> IndexedList | NestedList | None:
    """The list in arrays, if it is so in the body that is being traced, or shall be: then the loop is traced again.

    value   of an element that is assigned to it.
    """
    scopes = scopes_around(base)
    for scope in scopes:
        if scope.loop is not None and id(base) in scope.loop.indexed:
            found: IndexedList | NestedList = _fitting(scope.loop.indexed[id(base)], value)
            return found
    if not scopes or not base or is_queue(base):
        return None
    loop = scopes[0].loop
    if loop is None or id(base) in loop.kept or any(scope.loop is not None and id(base) in scope.loop.growths for scope in scopes):
        return None
    form = _form_of_list(base, value)
    nested = made_for(base, loop) if form is None and value is None else None
    if form is None and nested is None:
        return None
    loop.joined.pop(id(base), None)
    for scope in reversed(scopes):
        scope.forget_items(base)
    loop.indexed[id(base)] = IndexedList(base, loop, form) if form is not None else nested
    raise Again(loop)


def _fitting(found: Any, value: Any) -> Any:
    """The list; one of another form, where what it held before has another one than all that is assigned: [0.0] * n and then arrays."""
    if type(found) is NestedList:
        return found
    form = None if value is None or has_form(value, (found.structure, found.kinds)) else form_of(value)
    if form is None or not all(map(is_number, found.entry)) or not any(kind[1].shape for kind in form[1]):
        return found
    found.restore()
    found.loop.indexed[id(found.base)] = IndexedList(found.base, found.loop, form)
    raise Again(found.loop)


def _form_of_list(base: list[Any], value: Any) -> Form | None:
    """The form of the elements, if all have one but those that are none yet, and are few arrays, or rows of few."""
    known = [one for one in base if one is not None]
    example = value if value is not None else known[0] if known else None
    form = form_of(example)
    if form is None or (is_number(example) and all(map(is_integer, [*known, example]))):      # which have any number of digits
        return None
    there = [has_form(one, form) for one in base]
    if not all(one is None or is_number(one) for one, is_there in zip(base, there, strict=True) if not is_there):
        return None
    columns = zip(*[tree.leaves(one) for one, is_there in zip(base, there, strict=True) if is_there], strict=True)
    few = [not kind[1].shape or len(call(together, column)) <= MOST_PARTS for kind, column in zip(form[1], columns, strict=False)]
    return form if all(few) else None


def foresee(base: list[Any]) -> None:
    """A list is read at a place that moves: that can be had if it is one of numbers, or the statements of the loop assign to elements."""
    if all(map(is_number, base)) or _is_assigned_to(base):
        indexed_list(base)


def foresee_table(base: list[Any]) -> None:
    """A list is read at a place that is data: if it is a list of lists, that can be had if the statements of the loop assign to it."""
    if type(base[0]) is list and _is_assigned_to(base) and shape_of(base) is not None:
        indexed_list(base)


def assigned_row(x: list[Any]) -> None:
    """A list is assigned to, which a list of lists may have handed out: then that is to be in an array, in the next attempt."""
    base = base_of(x)
    if base is not None:
        indexed_list(base)


def _is_assigned_to(base: list[Any]) -> bool:
    """Whether the statements of a body around always assign to elements of a variable that has it."""
    return any(_holds(cell, base) for scope in scopes_around(base) for cell in scope.changed)


def _holds(cell: Any, base: Any) -> bool:
    """Whether a variable, which may have no value, holds something."""
    try:
        return cell.cell_contents is base
    except ValueError:
        return False


def taken_from(base: list[Any], index: Any) -> Any:
    """base[index], of a list whose elements are in arrays."""
    found = indexed_list(base)
    assert found is not None
    return found.read(index)


def assign(base: Any, index: Any, value: Any) -> bool:
    """base[index] = value, if the elements of base are in arrays, or shall be, or it is a list that grows."""
    require_noted(base)
    if is_growing(base):
        write_in_growing(base, index, value)
        return True
    indexed = indexed_list(base, value) if is_indexed(base) or (type(base) is list and isinstance(index, IndexTracer)) else None
    if indexed is not None:
        indexed.write(index, value)
    elif type(base) is list and isinstance(index, IndexTracer) and scopes_around(base) and not all(map(is_number, [*base, value])):
        not_capturable("it assigns to elements of a list, at places that move, what arrays do not hold (numbers, arrays of one shape)")
    return indexed is not None


HANDLERS.update(assign_to_list=assign, assigned_row=assigned_row)


def is_indexed(base: Any) -> bool:
    """Whether the elements of a list are in arrays in a loop that is being traced."""
    return type(base) is list and any(scope.loop is not None and id(base) in scope.loop.indexed for scope in scopes_around(base))
