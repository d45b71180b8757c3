"""`sorted()` and `list.sort()` of what data decide: numbers, tuples with numbers first, and objects that their methods compare.

Keys that are tuples are compared lexicographically, as in Python, by columns of numbers.  Behind numbers there may be what has no order
(arrays, objects): the program raises then, as Python does, where two elements are alike up to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.source.concrete.contents import binary, user_method
from bwcompiler.frontend.source.library import plain
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


def less(x: Any, y: Any) -> Any:
    """x < y, of what may be undecided."""
    return binary("lt", x, y)


def greater(x: Any, y: Any) -> Any:
    """x > y, of what may be undecided."""
    return binary("gt", x, y)


def is_compared_by_user(x: Any) -> bool:
    """Whether it is an object that has methods for comparisons."""
    return any(user_method(type(x), name) is not None for name in ("__lt__", "__gt__"))


def in_order(iterable: Any, /, *, key: Any = None, reverse: bool = False) -> Any:
    """sorted(iterable, key=..., reverse=...)."""
    if isinstance(iterable, Selection):            # a list, of which * and + do not compute
        if key is None:
            return HANDLERS["call_of"](plain.listed)(np.sort(iterable)[::-1 if reverse else None])
        return HANDLERS["call_of"](plain.sorted_by)(iterable, key, reverse)
    items = list(iterable)
    keys = items if key is None else [key(item) for item in items]
    keys = _deciding(keys)
    if len(keys) > 1 and all(map(is_compared_by_user, keys)) and any(map(_holds_traced, keys)):
        keys, reverse = _places(keys, reverse), False
    columns = _columns(keys) if any(map(HANDLERS["is_undecided"], keys)) else None
    if columns is None:
        given = iter(keys)
        return sorted(items, key=lambda _: next(given), reverse=reverse)
    return _rearranged(items, columns.order(reverse))


def sort_list(items: list[Any], **options: Any) -> None:
    """items.sort(key=..., reverse=...)."""
    items[:] = in_order(items, **options)


# ----- keys
class _Columns(NamedTuple):
    """Numbers by which elements are compared, one column after the other; things: what has no order, but would be compared next."""

    numbers: list[Any]
    things: Sequence[Any] = ()

    def order(self, reverse: bool) -> Any:
        """The places of the elements in ascending or descending order."""
        lined = [column.astype(int) if column.dtype.kind in "bu" else column for column in self.numbers]
        lined = [-column if reverse else column for column in lined]
        order = np.argsort(lined[0], kind="stable") if len(lined) == 1 else np.lexsort(tuple(lined[::-1]))
        if self.things:
            alike = np.all(np.stack([column[order][1:] == column[order][:-1] for column in lined]), axis=0)
            HANDLERS["raise_where"](np.any(alike), self._refusal())
        return order

    def _refusal(self) -> Exception:
        """What Python raises that compares these things: of arrays, it asks for the truth of several comparisons."""
        kind = ValueError if all(isinstance(thing, Tracer | np.ndarray) for thing in self.things) else TypeError
        return kind(f"{without_order(self.things)}\n  hint: a key, sorted(items, key=lambda item: item[0])")


def without_order(things: Iterable[Any]) -> str:
    """That elements cannot be compared which are alike up to some things, or classes of these."""
    kinds = [thing if isinstance(thing, type) else np.ndarray if isinstance(thing, Tracer) else type(thing) for thing in things]
    names = " and ".join(dict.fromkeys([kind.__name__ for kind in kinds]))
    return f"'<' not supported between elements that are alike up to items that have no order ({names})"


def _columns(keys: list[Any]) -> _Columns | None:
    """What keys are compared by; None where these are no numbers, at least in the beginning."""
    numbers: list[Any] = []
    things: list[Any] = []

    def walk(parts: Sequence[Any]) -> bool:
        """Whether what comes next counts."""
        if all(isinstance(part, tuple) for part in parts) or all(isinstance(part, list) for part in parts):
            return len({len(part) for part in parts}) == 1 and all(map(walk, zip(*parts, strict=True)))
        found = _numbers(parts)
        if found is None:
            things.extend(parts)
            return False
        numbers.append(found)
        return True

    counts = walk(keys)
    if not numbers and any(isinstance(thing, Tracer) for thing in things):
        raise TypeError("sorted() compares numbers: use np.sort for arrays")
    return _Columns(numbers, things) if numbers and (counts or things) else None


def _numbers(parts: Sequence[Any]) -> Any:
    """One column: numbers, or those of texts in their order; None of what has no order."""
    if all(type(part) is str for part in parts):
        ranks = {text: rank for rank, text in enumerate(sorted(set(parts)))}
        return call(as_tracer, np.array([ranks[part] for part in parts]))
    if not all(isinstance(part, Tracer | int | float | np.number | np.bool_) and np.ndim(part) == 0 for part in parts):
        return None
    return np.stack([call(as_tracer, part) for part in parts])


def _deciding(keys: list[Any]) -> list[Any]:
    """The first parts of keys that are tuples, where these are known and no two of them equal: what follows does not count then."""
    if not keys or not all(isinstance(one, tuple) for one in keys):
        return keys
    known = itertools.takewhile(lambda column: not any(map(HANDLERS["is_undecided"], column)), zip(*keys, strict=False))
    heads = list(zip(*known, strict=True))
    ordered = sorted(heads)
    return heads if heads and all(one != other for one, other in itertools.pairwise(ordered)) else keys


def _holds_traced(x: Any) -> bool:
    return any(HANDLERS["is_undecided"](part) for part in getattr(x, "__dict__", {}).values())


def _places(keys: list[Any], reverse: bool) -> list[Any]:
    """How many keys, objects that their methods compare, stand before each one: those that are less, and those that are alike and first."""
    def is_before(one: int, other: int) -> Any:
        low, high = (keys[one], keys[other])[::-1 if reverse else 1]
        return HANDLERS["truth_of"](less(low, high))

    numbers = range(len(keys))
    before = {(one, other): is_before(one, other) for one in numbers for other in numbers if one != other}
    return [sum([np.where(before[one, place] if one > place else np.logical_not(before[place, one]), 1, 0)
                          for one in numbers if one != place]) for place in numbers]


# ----- elements
def _rearranged(items: list[Any], order: Any) -> list[Any]:
    boxes = [HANDLERS["boxed"](item) for item in items]          # what is chosen among lists and objects is a copy of them
    structures = [tree.structure(box) for box in boxes]
    if any(structure != structures[0] for structure in structures):
        boxes = HANDLERS["made_alike"](boxes) or call(_refuse_to_order, items, structures)
        structures = list(map(tree.structure, boxes))
    columns = [_in_order(column, order) for column in zip(*map(tree.leaves, boxes), strict=True)]
    return [HANDLERS["unboxed"](tree.unflatten(structures[0], [column[k] for column in columns])) for k in range(len(items))]


def _in_order(column: tuple[Any, ...], order: Any) -> Any:
    """Numbers or arrays in an order that is data; of texts and the like it says which one is where."""
    if HANDLERS["are_things"](*column):
        return HANDLERS["things_in_order"](column, order)
    return np.stack([call(as_tracer, leaf) for leaf in column])[order]


def _refuse_to_order(items: list[Any], structures: list[Any]) -> NoReturn:
    other = next(place for place, structure in enumerate(structures) if structure != structures[0])
    raise UnsupportedError("sorted() by traced keys: what comes where is data, so that all must be alike but for their numbers, and "
                           f"{items[0]!r} and {items[other]!r} are not\n  hint: pass what the keys are made of as a static argument "
                           "(a tuple, and static_argnums), or have numbers in the place of names and None")
