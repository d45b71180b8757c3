"""Known sequences, and sequences made of rows, that loops iterate over or read at varying positions: element k is looked up.

Numbers are read from tables, rows from their array, and small arrays from one array that contains all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.boxes import boxed, unboxed
from bwcompiler.frontend.source.array_backed.invariant_lists import are_small, join
from bwcompiler.frontend.source.containers.parts import containers
from bwcompiler.frontend.source.effects.doubles import note_handed_out
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.undecided.kinds.choices import picked
from bwcompiler.frontend.source.variables import Again, not_capturable, open_policy, same
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.rows import together
from bwcompiler.frontend.tracing.tracer import Tracer

MOST_COLUMNS = 64              # leaves of an element, of which each is put together with those of the others


def are_rows(source: Iterable[Any]) -> bool:
    """Whether something holds parts of arrays that a loop has filled, in tuples and objects perhaps."""
    return any(_row_like(next(iter(source))))


def at_places(source: Iterable[Any], joins: bool = True) -> Callable[[Any], Any] | None:
    """The k-th of things that are made alike, in a list or dictionary: `for i, j in pairs`, `for name, v in d.items()`.

    What are rows of arrays in them is read from these, what are numbers from tables of them, and what are small arrays from one array in
    which they are put together.  Where some have None or a text in a place, each says which of these it has.  None of another list.

    joins   whether small arrays are put together: for what is asked once, before the loop, as each time they are other ones.
    """
    boxes: Any = [boxed(item) for item in source]
    lines = [tree.leaves(box) for box in boxes]
    structure = tree.structure(boxes[0])
    if any(tree.structure(box) != structure for box in boxes[1:]):
        boxes = HANDLERS["made_alike"](boxes) if joins else None
        if boxes is None:
            return None
        structure = tree.structure(boxes[0])
    columns = [_column(column, joins) for column in zip(*map(tree.leaves, boxes), strict=True)]
    if any(column is None for column in columns):
        return None

    def at(k: Any) -> Any:
        if any(scope.places or scope.missing for scope in getattr(open_policy(), "scopes", ())):
            _require_unchanged(source, lines)
        _require_together(columns)
        found = unboxed(tree.unflatten(structure, [column(k) for column in columns if column is not None]), double=True)
        _note_handed_out(found, source, k)
        return found
    return at


def at_places_in_loop(source: list[Any]) -> Callable[[Any], Any] | None:
    """The same of a list from outside of the loop that is being traced, which puts small arrays together once; None of another list."""
    around = scopes_around(source)
    loop = around[-1].loop if around else None
    if loop is None or len(tree.leaves(boxed(source[0]))) > MOST_COLUMNS:
        return None
    if id(source) not in loop.tables:
        loop.tables[id(source)] = source, at_places(source)
    return loop.tables[id(source)][1]  # type: ignore[no-any-return]


def has_things(source: Iterable[Any]) -> bool:
    """Whether there are texts, functions and the like in what is made alike: at a place that moves, one of several is chosen."""
    return any(not isinstance(leaf, int | float | complex | np.number | np.ndarray | Tracer)
               for item in source for leaf in tree.leaves(boxed(item)))


def _note_handed_out(found: Any, source: Iterable[Any], k: Any) -> None:
    """Something that stands for one of what a sequence holds, in the loop whose index says which."""
    policy, objects = open_policy(), containers(found)
    if policy is None or not objects or not isinstance(k, Tracer):
        return
    extent = extent_of(k)
    indices = {} if extent is None or isinstance(extent, int) else dict(extent.terms)
    loops = [scope.loop for scope in policy.scopes if scope.loop is not None]
    loop = next((one for one in reversed(loops) if one.index in indices), loops[-1] if loops else None)
    if loop is not None:
        note_handed_out(objects, [one for item in source for one in containers(item)], loop.site)


def _require_unchanged(source: Iterable[Any], lines: Sequence[Sequence[Any]]) -> None:
    """Refuse to read from tables what the loop assigns to: these hold what it was before."""
    now = [tree.leaves(boxed(item)) for item in source]
    sizes, leaves = [len(line) for line in now], itertools.chain.from_iterable(now)
    if sizes != [len(line) for line in lines] or any(x is not y for x, y in zip(leaves, itertools.chain.from_iterable(lines), strict=True)):
        not_capturable("it assigns to what it goes over")


def _row_like(item: Any) -> list[bool]:
    return [isinstance(leaf, Tracer) and bool(leaf._chain) for leaf in tree.leaves(boxed(item))]


def _column(leaves: Sequence[Any], joins: bool) -> Callable[[Any], Any] | None:
    """The k-th of some leaves, for any k; None where they are not rows, small arrays, numbers or texts of one type."""
    first = leaves[0]
    if all(same(leaf, first) for leaf in leaves):
        return lambda k: first
    if any(isinstance(leaf, Tracer | np.ndarray) for leaf in leaves):
        if any(type(leaf) is int for leaf in leaves):
            return None                            # the others will be asked for their numbers, too, as this one was
        return _rows(leaves) or (_Together(leaves) if joins and are_small(leaves) else None)
    if all(type(leaf) is int for leaf in leaves) and len({y - x for x, y in itertools.pairwise(leaves)}) == 1:
        return lambda k: first + k * (leaves[1] - first)
    return (lambda k: picked(leaves, k)) if all(type(leaf) is str for leaf in leaves) else lookup_in(leaves)


def _rows(leaves: Sequence[Any]) -> Callable[[Any], Any] | None:
    """The k-th of some rows of one array; None of others."""
    first = leaves[0]
    if any(not isinstance(leaf, Tracer) or leaf._kind is not first._kind or leaf._storage.writable is not first._storage.writable
           for leaf in leaves):
        return None
    rows = together(leaves)
    if len(rows) > 1:
        return None
    array = rows[0][0]

    def row(k: Any) -> Any:
        found = array[k]
        if not found._type.shape:
            found._kind = first._kind
        return found
    return row


class _Together:
    """The k-th of some small arrays or numbers of one type, which are put in one array before the loop."""

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.leaves = leaves

    def is_new(self) -> bool:
        """Whether the loop that is being traced has no such array yet, and is to be traced again with one."""
        loop = _loop()
        return loop is not None and join(loop, self.leaves)

    def __call__(self, k: Any) -> Any:
        loop = _loop()
        if loop is None:
            return self.leaves[k] if type(k) is int else not_capturable("it reads small arrays of a list outside of its own body")
        return loop.joined[id(self.leaves)].read(k)


def _loop() -> Any:
    policy = open_policy()
    return None if policy is None or not policy.scopes else policy.scopes[-1].loop


def _require_together(columns: Sequence[Any]) -> None:
    """Trace the loop again where arrays are to be put together first: all at once."""
    new = [column for column in columns if type(column) is _Together and column.is_new()]
    if new:
        raise Again(_loop())


def lookup_in(numbers: Sequence[Any]) -> Callable[[Any], Any] | None:
    """numbers[k] for any k, of numbers of one type, Python's or NumPy's, in a list or tuple; None where it holds something else."""
    kind = type(numbers[0]) if numbers else None
    if kind is None or not (kind in (float, int) or issubclass(kind, np.number)) or any(type(number) is not kind for number in numbers):
        return None

    def at(k: Any) -> Any:
        found = call(as_tracer, np.array(numbers))[k]
        if kind in (float, int):
            found._kind = kind
        return found
    return at
