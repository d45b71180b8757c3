"""Lists with gaps (`gaps`) whose elements are counted or moved: slices, `reversed`, `enumerate`, `zip`, `sorted`, items at traced
positions.

Slices and the like leave all elements where they are, and compute anew which of them exist, from their ranks among those that exist.  If
elements of several lists are combined, or one is read at a position that is data, the existing ones are moved to the front (`_in_front`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.numpy.selected.packing import packed
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.library.builtin_functions import as_int
from bwcompiler.frontend.source.undecided.lists.gaps import (
    Block,
    Maybe,
    as_array,
    element,
    handed_out,
    has_gaps,
    length,
    maybe,
    refuse,
    require,
    segments,
    share_copy,
    taken,
    unpacked,
)
from bwcompiler.frontend.source.variables import is_bounded
from bwcompiler.frontend.tracing.calls import call, call_within
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, same_value, selection
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

STACK = ("what it holds in an array of fixed size, and how many of its rows are in use: stack = np.zeros((200, 2)); count = 1; while "
          "count > 0: count -= 1; a, b = stack[count] for pop(), stack[count] = a, b; count += 1 for append()")
_KINDS = (bool, int, float, complex)               # of Python's numbers, the wider one last


# ----- where elements stay in their places
def _ranks(items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Each block, and each element that is not of one, with how many elements are there before it: for a block an array."""
    passed: Any = 0
    for part in segments(items):
        if isinstance(part, Block):
            running = np.cumsum(part.present)
            yield part, passed + running - 1       # of those that are not there, something
            passed = passed + running[-1]
            continue
        for one in part:
            yield one, passed
            passed = passed + (np.where(one.present, 1, 0) if type(one) is Maybe else 1)


def _where(items: Sequence[Any], test: Callable[[Any], Any], is_prefix: bool) -> list[Any]:
    """The elements whose ranks are as a test wants; is_prefix: these are the first ones."""
    found: list[Any] = []
    for one, rank in _ranks(items):
        hit = test(rank)
        if isinstance(one, Block):
            found += unpacked([dataclasses.replace(one.where(hit), is_prefix=one.is_prefix and is_prefix)])
        elif isinstance(hit, Tracer):
            found.append(maybe(hit, one))
        elif hit:
            found.append(one)
    return found


def turned(items: Sequence[Any]) -> list[Any]:
    """The elements in reverse order."""
    found: list[Any] = []
    for part in reversed(segments(items)):
        if isinstance(part, Block):
            value = tree.map(lambda leaf: call(as_tracer, leaf)[::-1], part.value)
            found += unpacked([Block(part.present[::-1], value, part.count, False, part.kinds)])
        else:
            found += part[::-1]
    return found


def _part(items: Any, index: slice) -> Any:
    """items[start:stop:step]."""
    step = 1 if index.step is None else index.step
    if type(step) is not int:
        refuse("a slice whose step is data")
    if not step:
        raise ValueError("slice step cannot be zero")
    found = list(items)
    if index.start is not None or index.stop is not None or abs(step) > 1:
        from_first = step == 1 and (index.start is None or (type(index.start) is int and index.start == 0))
        found = _where(items, _between(items, index.start, index.stop, step), from_first)
    return type(items)(turned(found) if step < 0 else found)


def _between(items: Sequence[Any], start: Any, stop: Any, step: int) -> Callable[[Any], Any]:
    """Whether ranks are in a slice, as Python cuts it."""
    is_forward = step > 0
    first = 0 if is_forward else length(items) - 1
    if start is not None:
        first = _bound(items, start, is_forward)
    last = None if stop is None else _bound(items, stop, is_forward)

    def test(rank: Any) -> Any:
        hit = rank >= first if is_forward else rank <= first
        if last is not None:
            hit = np.logical_and(hit, rank < last if is_forward else rank > last)
        return hit if abs(step) == 1 else np.logical_and(hit, (rank - first) % abs(step) == 0)
    return lambda rank: found if isinstance(found := test(rank), Tracer) else bool(found)


def _bound(items: Sequence[Any], place: Any, is_forward: bool) -> Any:
    """The rank that a bound of a slice names."""
    if isinstance(place, Tracer):
        found = np.where(place < 0, place + length(items), place)
        return np.maximum(found, 0 if is_forward else -1) if is_forward else np.minimum(np.maximum(found, -1), length(items) - 1)
    if place < 0:
        return np.maximum(length(items) + place, 0 if is_forward else -1)
    return place if is_forward else np.minimum(place, length(items) - 1)


def numbered(items: Sequence[Any], start: Any = 0) -> list[Any]:
    """list(enumerate(items, start))."""
    found: list[Any] = []
    for one, rank in _ranks(items):
        if isinstance(one, Block):
            found += unpacked([dataclasses.replace(one, value=(rank + start, one.value), kinds=(int, *one.kinds))])
        else:
            number = as_int(rank + start) if isinstance(rank, Tracer) else rank + start
            found.append(maybe(one.present, (number, one.value)) if type(one) is Maybe else (number, one))
    return found


# ----- where elements meet
def _in_front(items: Sequence[Any]) -> tuple[Block, Any]:
    """All elements as one block, those that are there first; and how many these are."""
    block = whole(items)
    if block.is_prefix:
        return block, np.sum(block.present)
    count = np.sum(block.present)
    value = tree.map(lambda leaf: copy_of_rows(call(_rows_in_front, leaf, block.present), [leaf]),
                     block.value)
    return dataclasses.replace(block, present=np.arange(block.count) < count, is_prefix=True, value=value), count


def _rows_in_front(leaf: Any, present: Any) -> Any:
    return packed(selection(as_tracer(leaf), present)).array


def copy_of_rows(array: Any, leaves: Sequence[Any]) -> Any:
    """An array whose rows are elements, which may be arrays."""
    if array.ndim > 1:
        share_copy(array, leaves)
    return array


def whole(items: Sequence[Any]) -> Block:
    """All elements as one block."""
    parts = [part if isinstance(part, Block) else _stacked(part) for part in segments(items)]
    if len(parts) == 1:
        return parts[0]
    values = _alike([part.value for part in parts], parts)
    structure = tree.structure(values[0])
    columns = list(zip(*[tree.leaves(value) for value in values], strict=True))
    if any(len({np.shape(leaf)[1:] for leaf in column}) > 1 for column in columns):
        refuse("arrays of different shapes")
    value = tree.unflatten(structure, [copy_of_rows(np.concatenate(column), column) for column in columns])
    kinds = tuple(map(_wider, zip(*[_kinds(part, value) for part, value in zip(parts, values, strict=True)], strict=True)))
    return Block(np.concatenate([part.present for part in parts]), value, sum(part.count for part in parts), False, kinds)


def _stacked(items: Sequence[Any]) -> Block:
    """Elements that are not of a block as one."""
    pairs = [(one.present, one.value) if type(one) is Maybe else (True, HANDLERS["boxed"](one)) for one in items]
    boxes = [value for _, value in pairs]
    values = _alike(boxes, boxes)
    structure = tree.structure(values[0])
    columns = list(zip(*map(tree.leaves, values), strict=True))
    if any(not isinstance(leaf, Tracer | np.ndarray | np.number | np.bool_ | bool | int | float | complex) for column in columns
           for leaf in column):
        refuse("elements that are no numbers")
    if any(len({np.shape(leaf) for leaf in column}) > 1 for column in columns):
        refuse("arrays of different shapes")
    arrays = [copy_of_rows(np.stack([call(as_tracer, leaf) for leaf in column]), column) for column in columns]
    present = np.stack([call(as_tracer, present) for present, _ in pairs])
    return Block(present, tree.unflatten(structure, arrays), len(pairs), all(present is True for present, _ in pairs),
                 tuple([_wider(map(_kind, column)) for column in columns]))


def _alike(values: Sequence[Any], items: Sequence[Any]) -> Sequence[Any]:
    """Values of one structure, of these items."""
    structure = tree.structure(values[0])
    if all(tree.structure(value) == structure for value in values):
        return values
    found = HANDLERS["made_alike"](items)
    return refuse("elements of different kinds") if found is None else found  # type: ignore[no-any-return]


def _kinds(block: Block, value: Any) -> Sequence[Any]:
    """Of the leaves of its value, which may be fitted to that of others."""
    known = {id(leaf): kind for leaf, kind in zip(tree.leaves(block.value), block.kinds, strict=True)}
    return [known.get(id(leaf)) for leaf in tree.leaves(value)]


def _kind(leaf: Any) -> Any:
    """The type of a number of Python's, None of all else."""
    found = leaf._kind if isinstance(leaf, Tracer) else type(leaf)
    return found if found in _KINDS else None


def _wider(kinds: Any) -> Any:
    """The kind that numbers have that are in one array."""
    places = [_KINDS.index(kind) if kind in _KINDS else None for kind in kinds]
    return None if None in places else _KINDS[max(place for place in places if place is not None)]


def _at(items: Sequence[Any], index: Any) -> Any:
    """items[index] at a place that is data."""
    block, count = _in_front(items)
    place = np.where(index < 0, index + count, index)
    require(np.logical_and(place >= 0, place < count), "list index out of range", IndexError)
    return handed_out(block.row(np.clip(place, 0, block.count - 1)))


def item(items: Any, index: Any) -> Any:
    """items[index], of the elements that are there."""
    if isinstance(index, slice):
        return _part(items, index)
    if isinstance(index, Tracer) and not index._type.shape and index._type.dtype.kind in "iu":
        return _at(items, index)
    return element(items, index)


def zipped(*sources: Any, strict: bool = False) -> list[Any]:
    """list(zip(*sources)), of which some are lists with gaps."""
    if all(map(has_gaps, sources)):
        together = _side_by_side([segments(source) for source in sources])
        if together is not None:
            return unpacked(together)
    if any(type(source) in (list, tuple, range) and not source for source in sources):
        if strict:
            _require_none(sources)
        return []
    found = [_in_front(source) if has_gaps(source) else _all_of(source) for source in sources]
    size = min(block.count for block, _ in found)
    count = found[0][1]
    for number, (_, other) in enumerate(found[1:], 2):
        if strict:
            require(other >= count, f"zip() argument {number} is shorter than argument 1", ValueError)
            require(other <= count, f"zip() argument {number} is longer than argument 1", ValueError)
        count = np.minimum(count, other)
    values = tuple([tree.map(lambda leaf: call(as_tracer, leaf)[:size], block.value) for block, _ in found])
    kinds = tuple([kind for block, _ in found for kind in block.kinds])
    return unpacked([Block(np.arange(size) < count, values, size, True, kinds)])


def _require_none(sources: Sequence[Any]) -> None:
    """zip(..., strict=True) of sources of which one has no elements."""
    is_first = len(sources[0]) == 0
    for number, source in enumerate(sources, 1):
        count = length(source) if has_gaps(source) else len(source)
        if is_first:
            require(count == 0, f"zip() argument {number} is longer than argument 1", ValueError)
        elif not has_gaps(source) and count == 0:
            require(length(sources[0]) == 0, f"zip() argument {number} is shorter than argument 1", ValueError)


def _side_by_side(lines: Sequence[Sequence[Any]]) -> list[Block] | None:
    """Blocks of the tuples of elements that are there together; None of lists that have grown apart."""
    if len({len(line) for line in lines}) > 1 or not all(isinstance(one, Block) for line in lines for one in line):
        return None
    found = []
    for first, *others in zip(*lines, strict=True):
        if any(one.count != first.count or not same_value(call(value_of, one.present), call(value_of, first.present)) for one in others):
            return None
        found.append(dataclasses.replace(first, value=(first.value, *[one.value for one in others]),
                                         kinds=tuple([kind for one in (first, *others) for kind in one.kinds])))
    return found


def _all_of(source: Any) -> tuple[Block, int]:
    """What has a known number of elements, as a block."""
    if isinstance(source, Selection):
        rows = call_within(packed, source)
        return Block(rows.where, rows.array, rows.where.shape[0], True, (None,)), rows.count
    if isinstance(source, Tracer | np.ndarray):
        return Block(np.ones(source.shape[0], bool), call(as_tracer, source), source.shape[0], True, (None,)), source.shape[0]
    if type(source) not in (list, tuple, range) or not len(source):
        refuse(f"zip() with a {type(source).__name__} that may be shorter, and one")
    return _stacked(source), len(source)


def columns(items: Sequence[Any]) -> list[Any]:
    """zip(*items), of tuples or lists: a tuple of all first elements, one of all second ones ..."""
    block = whole(items)
    values = HANDLERS["items_of_boxed"](block.value)
    if values is None:
        refuse("zip(*...)")
    require(np.any(block.present), f"not enough values to unpack (expected {len(values)}, got 0)", ValueError)
    kinds, found = iter(block.kinds), []
    for value in values:
        found.append(tuple(unpacked([dataclasses.replace(block, value=value, kinds=tuple([next(kinds) for _ in tree.leaves(value)]))])))
    return found


def are_numbers(items: Sequence[Any]) -> bool:
    """Whether all elements are numbers."""
    value = whole(items).value
    return isinstance(value, Tracer) and value.ndim == 1


def in_order(items: Any, reverse: bool = False) -> list[Any]:
    """sorted(items, reverse=...), of numbers."""
    block = whole(items)
    rows = call_within(_sorted_rows, as_array(items))
    found = unpacked([Block(rows.where, rows.array, block.count, True, block.kinds)])
    return turned(found) if reverse else found


def _sorted_rows(numbers: Any) -> Selection:
    found: Any = np.sort(numbers)
    return packed(found)


def array_of(items: Sequence[Any], dtype: Any = None) -> Any:
    """np.array(items, dtype), where these may be tuples or lists."""
    found = _array(items)
    found = found if dtype is None else found.astype(dtype)
    if isinstance(found, Selection):
        found.of_rows = found.ndim > 1
    return found


def positions(index: Any) -> Any:
    """What stands in brackets behind an array: lists that data have filled are arrays of positions, or masks."""
    if type(index) is tuple:
        return tuple(map(positions, index)) if any(map(_are_positions, index)) else index
    if not _are_positions(index):
        return index
    items = taken(index)
    return array_of(items) if has_gaps(items) else items


def _are_positions(index: Any) -> bool:
    return is_bounded(index) or (type(index) is list and has_gaps(index))


def _array(items: Any) -> Any:
    if not any(_is_nested(part.value) if isinstance(part, Block) else any(
            _is_nested(one.value) if type(one) is Maybe else isinstance(one, tuple | list) for one in part) for part in segments(items)):
        return as_array(items)
    block = whole(items)
    return call(selection, _side(block.value), block.present)


def _is_nested(value: Any) -> bool:
    return HANDLERS["items_of_boxed"](value) is not None


def _side(value: Any) -> Any:
    """The elements of tuples and lists along a second axis."""
    values = HANDLERS["items_of_boxed"](value)
    if values is None and not isinstance(value, Tracer | np.ndarray):
        refuse("an array of what are no numbers, tuples or lists")
    return call(as_tracer, value) if values is None else np.stack([_side(one) for one in values], axis=1)


# ----- methods that change a list
def own_list(items: list[Any], name: str) -> list[Any]:
    """A list that can be changed where it is: none of a loop or a branch around."""
    if scopes_around(items):
        HANDLERS["wish_for_stack"](items)
        raise TracerError(at(current_source(), f"{name}() in a loop or a branch of a list whose number of elements depends on data\n"
                             f"  hint: {STACK}"))
    return items


def popped(items: list[Any], index: Any = -1) -> Any:
    """items.pop(index)."""
    if type(index) is not int or index not in (0, -1):
        HANDLERS["wish_for_stack"](items)
        refuse("pop() of an element in the middle")
    found = item(items, index)
    own_list(items, "pop")[:] = _part(items, slice(None, -1) if index else slice(1, None))
    return found


def turn(items: list[Any]) -> None:
    """items.reverse()."""
    own_list(items, "reverse")[:] = turned(items)
