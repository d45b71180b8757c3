"""Lists with gaps: lists whose elements exist or not, depending on data, after `if test: kept.append(x)` or in loops that are left early.

Such an element is a `Maybe`, at its position among the others.  Length, sum, extrema, truth, `in`, the last and first elements and loops
over the list ignore the elements that do not exist; for NumPy's functions the list is a selection (`x[mask]`).  `moved` counts and moves
elements, `taking` says which functions accept such lists; others refuse them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.source.effects.checks import check
from bwcompiler.frontend.source.library.builtin_functions import as_int, choose_number
from bwcompiler.frontend.source.variables import UNBOUND, is_bounded, is_number, open_policy, same
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.shared_arrays import origins, share
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, selection
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.operators import Operators

_HINT = ("of a list whose number of elements depends on data\n"
         "  hint: len, sum, min, max, sorted, items and slices, zip, enumerate, reversed, for loops and NumPy's functions of x[mask] take "
         "it; else write into an array of fixed size that is "
         "made before: kept = np.zeros(n); kept[count] = x; count += 1")

_WHY_NOT = (": data decides which element of a list it is\n"
            "  hint: lists of numbers, or an array whose rows are the elements, take such an assignment; or change a copy, x.copy()")


def _refuse(*_args: Any, **_options: Any) -> Any:
    return refuse("an element")


@dataclasses.dataclass(eq=False)
class Block:
    """What a loop has appended: `count` elements, whether each is there, and the values, as arrays with a leading axis.

    is_prefix  whether those that are there are the first ones.  kinds: of the leaves of an element, where they are Python's numbers.
    Lists, dictionaries and objects in the values are boxed (`array_backed.boxes`); `handed_out` makes doubles of them.
    """

    present: Any
    value: Any
    count: int = dataclasses.field(metadata={"static": True})
    is_prefix: bool = dataclasses.field(metadata={"static": True})
    kinds: tuple[Any, ...] = dataclasses.field(metadata={"static": True})

    def row(self, number: Any) -> Any:
        """The value of an element."""
        leaves = [call(as_tracer, array)[number] for array in tree.leaves(self.value)]
        for leaf, kind in zip(leaves, self.kinds, strict=True):
            if kind is not None:
                leaf._kind = kind
        return tree.unflatten(tree.structure(self.value), leaves)

    def where(self, test: Any) -> Block:
        """The same elements, which are there where the test holds as well."""
        return dataclasses.replace(self, present=np.logical_and(self.present, test))


@dataclasses.dataclass(eq=False)
class Maybe(Operators):
    """An element, boxed, and whether it is there; `_block` is the block that it is of, and its number in it."""

    present: Any
    value: Any
    _block: ClassVar[tuple[Block, int] | None] = None
    may_be_missing: ClassVar[bool] = True

    __array_ufunc__ = None
    __call__ = __iter__ = __len__ = __bool__ = __contains__ = __format__ = __getitem__ = __float__ = __int__ = __index__ = _refuse
    _operate = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in ("present", "value") or self._block is None:
            return refuse("an element")
        block, number = self._block                # when it is asked for, as few are; of a side of a branch not behind it
        found = block.present[number] if name == "present" else block.row(number)
        if isinstance(block.present, Tracer) and block.present._storage.region is open_region():
            setattr(self, name, found)
        return found


def of_block(block: Block, number: int) -> Maybe:
    """An element of a block."""
    maybe(False, None)                             # that there are such elements is noted
    found = object.__new__(Maybe)
    found._block = block, number  # type: ignore[misc]
    return found


def known_length(items: Any) -> int:
    """len(items), where that has to be known."""
    return refuse("len()") if has_gaps(items) else len(items)


HANDLERS["known_length"] = known_length


def refuse(what: str) -> NoReturn:
    """Something is asked of a list with gaps that cannot be had."""
    raise TracerError(at(current_source(), f"{what} {_HINT}"))


@functools.cache
def _register() -> None:
    tree.register_dataclass(Maybe)
    tree.register_dataclass(Block)


def maybe(present: Any, value: Any) -> Maybe:
    """An element that is there where `present` is true."""
    _register()
    policy = open_policy()
    assert policy is not None
    policy.gaps = True
    if type(value) is Maybe:
        return Maybe(np.logical_and(present, value.present), value.value)
    return Maybe(present, HANDLERS["boxed"](value))


def as_maybe(x: Any) -> Maybe:
    """An element that is there, or may be."""
    return x if type(x) is Maybe else maybe(True, x)


def becomes_maybe(loop: Any, name: str, start: Any, end: Any) -> bool:
    """Whether a variable of a loop, an element of a list before an iteration, is one that may not be there after it."""
    if type(end) is not Maybe or type(start) is Maybe or start is UNBOUND:
        return False
    loop.entry[name] = as_maybe(start)
    loop.kinds.pop(name, None)
    return True


def handed_out(value: Any) -> Any:
    """The value of a Maybe or a row of a Block, with lists, dictionaries and objects that nobody may change."""
    return HANDLERS["unboxed"](value)


class Items:
    """The iterator that map(), zip() and their like give over a list with gaps: its elements are taken at once."""

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    def taken(self) -> list[Any]:
        """All elements that have not been taken; there are none afterwards."""
        found, self._items = self._items, []
        return found

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if not self._items:
            raise StopIteration
        return refuse("next()")


def taken(x: Any) -> Any:
    """x; as a list, the elements of an iterator over a list with gaps, or of a container with room (`bounded`), or what may be None."""
    if type(x) is Items:
        return x.taken()
    return x.listed() if is_bounded(x) else HANDLERS["list_of_choice"](x)


def has_gaps(x: Any) -> bool:
    """Whether something is a list with elements that may not be there."""
    if type(x) is not list and type(x) is not tuple:
        return False
    policy = open_policy()
    return policy is not None and policy.gaps and any(type(one) is Maybe for one in x)


def _parts(items: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(one.present, handed_out(one.value)) if type(one) is Maybe else (True, one) for one in items]


def segments(items: Sequence[Any]) -> list[Block | list[Any]]:
    """Whole blocks, and what is between them."""
    found: list[Block | list[Any]] = []
    place = 0
    while place < len(items):
        block, number = getattr(items[place], "_block", None) or (None, 0) if type(items[place]) is Maybe else (None, 0)
        if block is not None and number == 0 and [one._block for one in items[place:place + block.count] if type(one) is Maybe] == [
                (block, k) for k in range(block.count)]:
            found.append(block)
            place += block.count
            continue
        if not found or isinstance(found[-1], Block):
            found.append([])
        found[-1].append(items[place])             # type: ignore[union-attr]
        place += 1
    return found


def packed(items: Sequence[Any]) -> list[Any]:
    """The elements, of which whole blocks are one."""
    return [one for part in segments(items) for one in ([part] if isinstance(part, Block) else part)]


def unpacked(items: Sequence[Any]) -> list[Any]:
    """The elements of a list again."""
    return [one for item in items for one in ([of_block(item, k) for k in range(item.count)] if isinstance(item, Block) else [item])]


def length(items: Sequence[Any]) -> Any:
    """len(items)."""
    found: Any = 0
    for part in segments(items):
        if isinstance(part, Block):
            found = found + np.sum(part.present)
            continue
        flags = [call(as_tracer, one.present) for one in part if type(one) is Maybe]
        found = found + (len(part) - len(flags)) + (np.sum(np.stack(flags)) if flags else 0)
    return as_int(found)


def total(items: Sequence[Any], start: Any = 0) -> Any:
    """sum(items, start)."""
    for part in segments(items):
        if isinstance(part, Block) and isinstance(part.value, Tracer):
            more = np.sum(np.where(_spread(part), part.value, 0), axis=0)
            more._kind = more._kind if part.kinds[0] is None else part.kinds[0]
            start = start + more
            continue
        for present, value in _each(part):
            more = start + value
            if present is True:
                start = more
                continue
            if np.ndim(start) < np.ndim(more):         # where none is there, zeros are 0
                start = np.broadcast_to(call(as_tracer, start), np.shape(more)).astype(more.dtype)
            start = chosen(present, more, start)
    return start


def _spread(block: Block) -> Any:
    """Which elements are there, along the leading axis of their values."""
    return block.present.reshape(block.count, *[1] * (block.value.ndim - 1))


def _each(part: Block | list[Any]) -> list[tuple[Any, Any]]:
    return [(part.present[k], handed_out(part.row(k))) for k in range(part.count)] if isinstance(part, Block) else _parts(part)


def extreme(items: list[Any], better: Callable[[Any, Any], Any], name: str) -> Any:
    """min or max."""
    there: Any = False
    found: Any = None
    for present, value in [pair for part in segments(items) for pair in _extremes(part, name)]:
        if not is_number(value):
            refuse(f"{name}() of arrays")
        if found is None:
            there, found = present, value
            continue
        test = better(value, found)
        if there is not True:
            test = np.logical_or(test, np.logical_not(there))
        if present is not True:
            test = np.logical_and(test, present)
        found = chosen(test, value, found)
        there = True if present is True or there is True else np.logical_or(there, present)
    require(there, f"{name}() arg is an empty sequence", ValueError)
    return found


def _extremes(part: Block | list[Any], name: str) -> list[tuple[Any, Any]]:
    """Elements among which an extreme one is."""
    if not isinstance(part, Block) or not isinstance(part.value, Tracer) or part.value.dtype.kind not in "iuf" or part.value.ndim > 1:
        return _each(part)
    if part.value.dtype.kind == "f":
        low, high = -np.inf, np.inf
    else:
        low, high = np.iinfo(part.value.dtype).min, np.iinfo(part.value.dtype).max
    best, other = (np.min, high) if name == "min" else (np.max, low)
    found = best(np.where(part.present, part.value, other))[()]
    found._kind = found._kind if part.kinds[0] is None else part.kinds[0]
    return [(np.any(part.present), found)]


def require(there: Any, text: str | Callable[[], Any], kind: type[Exception]) -> None:
    """Raise an error when the program runs and `there` is false; text: what makes it, where there are traced values in it."""
    if there is True:
        return

    def fail() -> None:
        raise kind(text() if callable(text) else text)
    check(np.logical_not(there), fail, kind("..." if callable(text) else text), current_source(open_region().outer))


def element(items: list[Any], index: Any) -> Any:
    """items[index], of the elements that are there."""
    if type(index) is not int:
        refuse("items at places of other kinds")
    known, found = _in_block(items, index)
    if known is not None:
        require(known, "list index out of range", IndexError)
        return handed_out(found)
    ordered = packed(items)[::-1] if index < 0 else packed(items)
    skip = -index - 1 if index < 0 else index
    sure = [place for place, one in enumerate(ordered) if not isinstance(one, Maybe | Block)]
    if len(sure) > skip:                           # behind that one nothing is asked for
        ordered = ordered[:sure[skip] + 1]
        if len(ordered) == 1:
            return ordered[0]
    passed: Any = 0
    picked: Any = None
    there: Any = False
    values = []
    for one in ordered:                            # the one that is there with `skip` that are there before it
        if isinstance(one, Block):
            value, count = _ranked(one, skip - passed, index < 0), np.sum(one.present)
            hit = np.logical_and(passed + count > skip, np.logical_not(there))
        else:
            present, value = (one.present, one.value) if type(one) is Maybe else (True, HANDLERS["boxed"](one))
            hit = np.logical_and(present, np.logical_and(passed == skip, np.logical_not(there)))
            count = 1 if present is True else np.where(present, 1, 0)
        picked = value if picked is None else chosen(hit, value, picked)
        there = np.logical_or(there, hit)
        passed = passed + count
        values.append(value)
    require(True if len(sure) > skip else there, "list index out of range", IndexError)
    return handed_out(_shared(picked, values))


def _ranked(block: Block, rank: Any, from_end: bool) -> Any:
    """The element with so many that are there before it, or behind it: some element where there is none."""
    if type(rank) is int and not rank:
        place = block.count - 1 - np.argmax(block.present[::-1]) if from_end else np.argmax(block.present)
    else:
        running = np.cumsum(block.present)
        place = np.minimum(np.sum(running <= (running[-1] - 1 - rank if from_end else rank)), block.count - 1)
    found = tree.map(lambda leaf: leaf.copy() if leaf.ndim else leaf, block.row(place))
    return _shared(found, [block.value])


def _in_block(items: Sequence[Any], index: int) -> tuple[Any, Any]:
    """Whether an element that has to be of a block is there, and it; None where it need not be of one."""
    parts = segments(items)
    last = parts[-1]
    if index < 0 and isinstance(last, Block):
        if index == -1:
            place = np.max(np.where(last.present, np.arange(last.count), -1))
        elif last.is_prefix and len(parts) == 1:
            place = np.sum(last.present) + index
        else:
            return None, None
        there, found = place >= 0, last.row(np.maximum(place, 0))
        before = parts[-2] if len(parts) == 2 else None
        if len(parts) == 1:
            return there, found
        if isinstance(before, list) and type(before[-1]) is not Maybe:
            other = HANDLERS["boxed"](before[-1])
            return True, _shared(chosen(there, found, other), [found, other])
    first = parts[0] if index >= 0 and len(parts) == 2 else []
    known = 0 if isinstance(first, Block) else len(first)
    if index >= known and isinstance(last, Block) and last.is_prefix and len(parts) == (2 if known else 1) and not (
            isinstance(first, Block) or any(type(one) is Maybe for one in first)):
        number = min(index - known, last.count - 1)
        return (np.sum(last.present) > index - known), last.row(number)
    return None, None


def _shared(found: Any, values: Sequence[Any]) -> Any:
    """What was chosen among elements, whose arrays are not to be written to: these would be copies."""
    if any(found is value for value in values):
        return found
    if any(tree.structure(value) != tree.structure(found) for value in values):       # one of several texts, say
        found, *values = HANDLERS["made_alike"]((found, *values))
    for leaf, *others in zip(*[tree.leaves(one) for one in (found, *values)], strict=True):
        share_copy(leaf, others)
    return found


def share_copy(copy: Any, leaves: Sequence[Any]) -> None:
    """Let an array that holds what elements of a list hold be read-only, and be read until one of these is written to."""
    if isinstance(copy, Tracer) and copy.ndim and not any(copy is leaf for leaf in leaves):
        share(copy, [source for leaf in leaves if isinstance(leaf, Tracer) for source in origins(leaf)], "an element of a list", _WHY_NOT)


def contains(items: list[Any], x: Any) -> Any:
    """x in items."""
    found: Any = False
    for part in segments(items):
        if isinstance(part, Block) and isinstance(part.value, Tracer) and part.value.ndim == 1 and is_number(x):
            found = np.logical_or(found, np.any(np.logical_and(part.present, part.value == x)))
            continue
        for present, value in _each(part):
            found = np.logical_or(found, np.logical_and(present, x == value))
    return found


def as_array(items: list[Any]) -> Selection:
    """The list as NumPy's functions see it: rows of an array, by a mask."""
    arrays: list[Any] = []
    masks: list[Any] = []
    for part in segments(items):
        if isinstance(part, Block) and isinstance(part.value, Tracer):
            arrays, masks = [*arrays, part.value], [*masks, part.present]
            continue
        pairs = _each(part)
        if any(type(value) in (list, tuple, dict) for _, value in pairs):
            refuse("an array of lists")
        arrays.append(np.stack([call(as_tracer, value) for _, value in pairs]))
        masks.append(np.stack([call(as_tracer, present) for present, _ in pairs]))
    rows, mask = (np.concatenate(arrays), np.concatenate(masks)) if len(arrays) > 1 else (arrays[0], masks[0])
    return call(selection, rows, mask)  # type: ignore[no-any-return]


def chosen(test: Any, x: Any, y: Any) -> Any:
    """x if test else y, of numbers and arrays in containers of one structure."""
    if not isinstance(test, Tracer):
        return x if test else y
    if same(x, y):
        return x
    if tree.structure(x) != tree.structure(y):
        found = HANDLERS["made_alike"]((x, y))
        x, y = refuse("one of elements of different kinds") if found is None else found
    return tree.unflatten(tree.structure(x), [call(choose_number, test, one, other) if not np.ndim(one) and not np.ndim(other)
                                              else _of_arrays(test, one, other) for one, other in zip(
                                                  tree.leaves(x), tree.leaves(y), strict=True)])


def _of_arrays(test: Any, x: Any, y: Any) -> Any:
    if np.shape(x) != np.shape(y):
        refuse("one of arrays of different shapes")
    return np.where(test, x, y)


# ----- what is appended in a side of a branch
class Tail:
    """What a side of a branch appends to the list `base` from outside of it: the elements of `target` behind the first `start`."""

    def __init__(self, base: list[Any], target: list[Any]) -> None:
        self.base = base
        self.target = target
        self.start = len(target)

    def taken(self) -> tuple[Any, ...]:
        """What the side has appended, packed; the list is as before."""
        found = tuple(packed(self.target[self.start:]))
        del self.target[self.start:]
        return found


def appended(test: Any, one: tuple[Any, ...], other: tuple[Any, ...]) -> list[Any]:
    """What a branch appends whose sides append these, of which only one has elements."""
    return [where_there(test, item) for item in one] + [where_there(np.logical_not(test), item) for item in other]


def where_there(test: Any, item: Any) -> Any:
    """An element, or a block of them, that is there where the test holds."""
    return item.where(test) if isinstance(item, Block) else maybe(test, item)
