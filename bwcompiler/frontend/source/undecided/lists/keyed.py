"""Elements of lists with gaps (`gaps`) by their keys: `max(rows, key=...)`, `min(pairs)`, `sorted(rows, key=..., reverse=True)`.

Keys are numbers, or tuples and lists of numbers, compared lexicographically.  They are stored as columns of numbers, one entry per element.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.library import plain
from bwcompiler.frontend.source.undecided.kinds.orders import Column, columns
from bwcompiler.frontend.source.undecided.lists import gaps, moved
from bwcompiler.frontend.source.undecided.lists.gaps import Block, chosen, handed_out, refuse, require, unpacked
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

_NOTHING = object()


def _with_keys(items: Sequence[Any], key: Callable[[Any], Any] | None, what: str) -> tuple[Block, list[Column]]:
    """All elements, and the columns of their keys."""
    block = moved.whole(items)
    keys = block if key is None else moved.whole(HANDLERS["call_of"](plain.mapped)(key, items))
    if keys.count != block.count:
        refuse(f"{what} with such a key")
    found = columns(tree.map(lambda leaf: call(as_tracer, leaf), keys.value))
    if found is None or any(column.numbers.ndim != 1 or column.numbers.dtype.kind not in "biuf" for column in found):
        refuse(f"{what} by what are no numbers")
    return block, [column._replace(numbers=column.numbers.astype(int)) if column.numbers.dtype.kind in "bu" else column for column in found]


def extreme(name: str, items: Any, key: Callable[[Any], Any] | None = None, default: Any = _NOTHING) -> Any:
    """min(items, key=..., default=...) or max: the first of those that are alike."""
    if key is None and default is _NOTHING and all(_is_number(part) for part in gaps.segments(items)):
        return gaps.extreme(items, (lambda x, y: x < y) if name == "min" else (lambda x, y: x > y), name)
    block, keys = _with_keys(items, key, f"{name}()")
    among = block.present
    for column in keys:
        best = _best(column.numbers if name == "max" else -column.numbers, among)
        column.require_alike(np.all(best == among), require)
        among = best
    there, found = np.any(block.present), block.row(np.argmax(among))
    if default is _NOTHING:
        require(there, f"{name}() arg is an empty sequence", ValueError)
        return handed_out(found)
    return handed_out(chosen(there, found, HANDLERS["boxed"](default)))


def _is_number(part: Any) -> bool:
    values = [part.value] if isinstance(part, Block) else [one.value if type(one) is gaps.Maybe else one for one in part]
    return all(isinstance(value, Tracer | np.ndarray | np.generic | int | float | complex) for value in values)


def _best(column: Any, among: Any) -> Any:
    """Which of some numbers are the largest; the first one where that is nan, as Python keeps it, and no other nan."""
    if column.dtype.kind == "i":
        return np.logical_and(among, column == np.max(np.where(among, column, np.iinfo(column.dtype).min)))
    is_first = np.arange(column.shape[0]) == np.argmax(among)
    known = np.logical_and(among, np.logical_not(np.isnan(column)))
    largest = np.logical_and(known, column == np.max(np.where(known, column, -np.inf)))
    return np.where(np.any(np.logical_and(is_first, np.isnan(column))), is_first, largest)


def in_order(items: Any, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> list[Any]:
    """sorted(items, key=..., reverse=...)."""
    if key is None and moved.are_numbers(items):
        return moved.in_order(items, reverse)
    block, keys = _with_keys(items, key, "sorted()")
    numbers = [-column.numbers if reverse else column.numbers for column in keys]
    order = np.lexsort((*numbers[::-1], np.logical_not(block.present).astype(int)))
    _require_order(keys, block.present, order)
    value = tree.map(lambda leaf: moved.copy_of_rows(call(as_tracer, leaf)[order], [leaf]), block.value)
    return unpacked([dataclasses.replace(block, present=block.present[order], value=value, is_prefix=True)])


def _require_order(keys: Sequence[Column], present: Any, order: Any) -> None:
    """Neighbours in an order that are alike up to what has no order are alike in that."""
    if not any(column.things for column in keys):
        return
    alike = present[order][1:]
    for column in keys:
        numbers = column.numbers[order]
        differ = np.logical_and(alike, numbers[1:] != numbers[:-1])
        column.require_alike(np.logical_not(np.any(differ)), require)
        alike = np.logical_and(alike, numbers[1:] == numbers[:-1])


def put_in_order(items: list[Any], key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
    """items.sort(key=..., reverse=...)."""
    moved.own_list(items, "sort")[:] = in_order(items, key, reverse)


def _require_so_many(count: Any, number: int) -> None:
    require(count >= number, f"not enough values to unpack (expected {number}, got fewer)", ValueError)
    require(count <= number, f"too many values to unpack (expected {number})", ValueError)


def all_of_selection(x: Any, number: int) -> tuple[Any, ...]:
    """a, b = x[mask]."""
    _require_so_many(x.shape[0], number)
    return tuple([x[place] for place in range(number)])


def taken_apart(items: Any, before: int, behind: int) -> Any:
    """a, b, c = items; behind: how many names stand behind one with a star, -1 where there is none."""
    count = gaps.length(items)
    if behind < 0:
        _require_so_many(count, before)
        return tuple([moved.item(items, place) for place in range(before)])
    require(count >= before + behind, f"not enough values to unpack (expected at least {before + behind}, got fewer)", ValueError)
    rest = list(moved.item(items, slice(before, -behind or None)))
    return (*[moved.item(items, place) for place in range(before)], *rest, *[moved.item(items, place) for place in range(-behind, 0)])
