"""Reading and iterating in captured code: items of containers and known arrays, at positions that may be traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.manipulation.creation import grid
from bwcompiler.frontend.numpy.manipulation.sequences import c_, r_
from bwcompiler.frontend.source.array_backed import invariant_lists
from bwcompiler.frontend.source.array_backed.dictionaries import is_new, table_of, tabled
from bwcompiler.frontend.source.array_backed.growth import element, expect, is_growing, note_read, refuse_whole
from bwcompiler.frontend.source.array_backed.indexed_lists import foresee, foresee_table, is_indexed, taken_from
from bwcompiler.frontend.source.array_backed.lookups import at_places, at_places_in_loop, lookup_in
from bwcompiler.frontend.source.array_backed.nested_lists import Row, note_row
from bwcompiler.frontend.source.bounded.dictionaries import Dictionary, is_asked, supplied, want
from bwcompiler.frontend.source.bounded.groups import Group, Groups
from bwcompiler.frontend.source.bounded.stacks import Heap, Stack
from bwcompiler.frontend.source.concrete.makers import noted, shown
from bwcompiler.frontend.source.concrete.texts import require_known
from bwcompiler.frontend.source.containers.parts import containers
from bwcompiler.frontend.source.effects.places import is_plain_object, scopes_around
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, picked, place_of, table
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes, each_way
from bwcompiler.frontend.source.undecided.lists.gaps import has_gaps, taken
from bwcompiler.frontend.source.undecided.lists.gaps import refuse as refuse_gaps
from bwcompiler.frontend.source.undecided.lists.moved import item as item_of_gaps
from bwcompiler.frontend.source.undecided.lookups import element as element_at
from bwcompiler.frontend.source.undecided.lookups import has_choices, is_among, is_traced_key, look_up, may_miss
from bwcompiler.frontend.source.variables import not_capturable, open_policy
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.indexing.masked_selection import SizedByData
from bwcompiler.frontend.tracing.operands import known_parts
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

BOUNDED = (Dictionary, Groups, Group, Stack, Heap, Row)


def indexed(array: Any, index: Any) -> Any:
    """array[index], where a concrete array, or np.r_ and np.c_, may get traced values."""
    if type(array) in BOUNDED:
        return array[index]
    if type(array) is not dict and is_asked(array, index):
        want(array, index, 0)
    if isinstance(array, dict):
        supplied(array, index)
    if type(array) is list:
        if is_growing(array):
            return element(array, index)
        note_read(array, index)
    if type(index) is Choice:
        return look_up(array, index) if may_miss(array, index) else table(array, index)
    if type(array) is TwoShapes or type(index) is TwoShapes:
        return each_way(indexed, array, index)
    if has_gaps(array):
        return item_of_gaps(array, index)
    if is_indexed(array):
        return taken_from(array, index)
    if type(array) is dict and (tabled(array) is not None or (
            is_traced_key(array, index) and not has_choices(index) and is_new(array, index))):
        found = table_of(array, index)
        if found is not None:
            return found.read(index)
    if is_traced_key(array, index):
        return look_up(array, index)
    if type(array) in (list, tuple, str) and isinstance(index, Tracer):
        return _moving(array, index)
    if array is np.r_ or array is np.c_:
        return (r_ if array is np.r_ else c_)[index]
    if array is np.mgrid or array is np.ogrid:
        found = grid(array, index)
        return noted(array[known_parts(index)]) if found is None else found
    if type(index) is tuple and isinstance(array, np.ndarray | Tracer) and any(type(part) is Choice for part in index):
        return indexed(array, place_of(index))
    if type(array) is np.ndarray and open_policy() is not None and _is_traced(index):
        if isinstance(index, Tracer) and not index.ndim and _holds_texts(array):
            return _moving(tuple(array.tolist()), index)
        return shown(array)[index]
    return array[index]


HANDLERS["item_of"] = indexed


def _moving(items: Any, index: Tracer) -> Any:
    """An item of a list, tuple or string at a place that is not known."""
    string = picked(items, index)
    if string is not None:
        return string
    numbers = lookup_in(items)
    if numbers is not None:
        return numbers(index)
    if invariant_lists.is_read(items, index):
        return invariant_lists.element(items, index)
    if type(items) is list and items and not isinstance(index, IndexTracer):
        foresee_table(items)
    if type(items) is list and isinstance(index, IndexTracer):
        foresee(items)
        found = invariant_lists.element_in_side(items, index)
        if found is None and is_among(range(len(items)), index) and _is_table(items):
            at = at_places(items, joins=False) or at_places_in_loop(items)
            found = None if at is None else note_row(at(index), items)
        if found is not None:
            return found
        expect(items)
    return element_at(items, index)


def _holds_texts(array: np.ndarray[Any, Any]) -> bool:
    """Whether it is a row of texts, among which there may be numbers and None: as in a tuple, one of them is a choice."""
    return array.ndim == 1 and (array.dtype.kind == "U" or (array.dtype.kind == "O" and any(isinstance(one, str) for one in array)))


def _is_table(items: list[Any]) -> bool:
    """Whether it is a table: `a, alpha, d = JOINTS[i]`, or `pipes[i].length`, of what nothing around changes."""
    if not all(type(one) in (tuple, list, dict) or is_plain_object(one) for one in items):
        return False
    policy = open_policy()
    changed = set() if policy is None else {key[0] for scope in policy.scopes for key in (*scope.places, *scope.missing)}
    return not changed or changed.isdisjoint([id(one) for item in items for one in containers(item)])


def _is_traced(index: Any) -> bool:
    if isinstance(index, tuple | list):
        return any(map(_is_traced, index))
    if isinstance(index, slice):
        return any(map(_is_traced, (index.start, index.stop, index.step)))
    return isinstance(index, Tracer | SizedByData)


def iterable(source: Any) -> Any:
    """What a loop goes over: in a body that is traced once, nothing that is used up and comes from outside of it."""
    policy = open_policy()
    if policy is not None and policy.depth:
        if hasattr(source, "__next__") and scopes_around(source):
            not_capturable("it takes elements from an iterator that was made outside of it")
        refuse_whole(source)
    if type(source) is str:
        require_known(source)
    source = taken(source)
    if has_gaps(source):
        refuse_gaps("a comprehension, or a loop that has to be unrolled,")
    return source
