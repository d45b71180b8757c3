"""Lists of lists of numbers that a loop assigns to, tables of dynamic programming: `cost[i][j] = min(cost[i - 1][j], cost[i][j - 1]) + d`.

While the loop is traced one array with an axis for each level holds the numbers, and `cost[i]` is a `Row`, which knows the table and the
index.  The lists themselves stay what they are: after the loop they hold the numbers of the array, whatever names they have.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from bwcompiler.frontend.source.array_backed.element_forms import is_integer
from bwcompiler.frontend.source.array_backed.growth import POISON
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.variables import Again, is_number, not_capturable, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer, stack_all
from bwcompiler.frontend.tracing.rows import together
from bwcompiler.frontend.tracing.storages.region import Region
from bwcompiler.frontend.tracing.storages.views import index_chain
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.types import tensor
from bwcompiler.operators import Operators

MOST = 1 << 16                 # numbers
MOST_LEVELS = 4


@dataclasses.dataclass
class Counted:
    """How many elements a row has, as of a list with room (`bounded.store`)."""

    count: int


class NestedList:
    """Such a list while `loop` is traced.

    shape   its length, and that of the lists of each level; rows: the innermost lists, in order, and `entry`, what they held.
    assigned  whether an iteration assigns integers, and others: they become floats, which is what they are beside floats.
    """

    def __init__(self, base: list[Any], loop: Any, shape: tuple[int, ...]) -> None:
        self.base = base
        self.loop = loop
        self.shape = shape
        self.rows = _innermost(base, len(shape))
        self.entry = [list(row) for row in self.rows]
        self.arrays: list[Tracer] = []
        self.assigned: set[bool] = set()

    # ----- around the loop
    def prepare(self) -> None:
        """Before each attempt: the array, in the region around the loop."""
        if self._is_known():
            made = call(as_tracer, np.array(self.entry, float).reshape(self.shape)).copy()
        else:
            lines = [call(_line, row) for row in self.entry]
            made = np.reshape(call(stack_all, lines), self.shape).copy()
        self.arrays = [made]

    def _is_known(self) -> bool:
        return not any(isinstance(number, Tracer) for row in self.entry for number in row)

    def elements(self) -> list[Any]:
        """What the array was made of that is an array."""
        return []

    def begin(self) -> None:
        """Before an iteration."""
        self.assigned = set()
        for row in self.rows:
            row[:] = [POISON] * len(row)

    def end(self, _region: Region) -> None:
        """After an iteration: the lists are those that they were, and nobody has changed one by another name."""
        rows = _innermost(self.base, len(self.shape))
        grown = {**self.loop.growths, **self.loop.found_growths}
        if [id(row) for row in rows] != list(map(id, self.rows)) or any(
                id(row) in grown or len(row) != self.shape[-1] or any(one is not POISON for one in row) for row in rows):
            self._give_up()
        if self.assigned == {True} and all(is_integer(number) for row in self.entry for number in row):
            self._give_up()                            # integers alone, which have any number of digits

    def known_arrays(self) -> list[Any]:
        """Arrays that hold known numbers alone before the loop, which the loop need not be recorded for."""
        return self.arrays if self._is_known() else []

    def restore(self) -> None:
        """Give the lists what they held."""
        for row, entry in zip(self.rows, self.entry, strict=True):
            row[:] = entry

    def settle(self) -> None:
        """After the loop: the lists hold the numbers of the array."""
        self.restore()
        array, = self.arrays
        if not array._storage.written:
            return
        places = itertools.product(*map(range, self.shape[:-1]))
        for row, place in zip(self.rows, places, strict=True):
            row[:] = [_number(array, (*place, k)) for k in range(self.shape[-1])]
        array._storage.writable = False                # numbers do not change

    # ----- in the body
    def read(self, index: Any) -> Row:
        """base[index]."""
        if isinstance(index, slice):
            not_capturable("it takes a slice of a list of lists to which it assigns at places that move")
        return Row(self, (index,))

    def write(self, _index: Any, _value: Any) -> NoReturn:
        """base[index] = value: another list."""
        self._give_up()

    def number(self, place: tuple[Any, ...]) -> Any:
        """An element."""
        found = self.arrays[0][place]
        found._kind = float
        return found

    def assign(self, place: tuple[Any, ...], value: Any) -> None:
        """base[i][j] = value."""
        if not _is_real(value):
            self._give_up()
        self.assigned.add(is_integer(value))
        self.arrays[0][place] = value

    def _give_up(self) -> NoReturn:
        """It is no table of real numbers: the loop is traced without."""
        for row in self.rows:
            self.loop.growths.pop(id(row), None)
            self.loop.found_growths.pop(id(row), None)
        self.restore()
        self.loop.indexed.pop(id(self.base), None)
        self.loop.kept.add(id(self.base))
        raise Again(self.loop)


class Row(Operators):
    """base[i], or base[i][j] of three levels: `place` are the indices until there."""

    is_bounded = True
    kind = list

    def __init__(self, table: NestedList, place: tuple[Any, ...]) -> None:
        self.table = table
        self.place = place

    def __len__(self) -> int:
        return self.table.shape[len(self.place)]

    @property
    def store(self) -> Counted:
        return Counted(len(self))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.listed()[index]
        place = (*self.place, index)
        return self.table.number(place) if len(place) == len(self.table.shape) else Row(self.table, place)

    def __setitem__(self, index: Any, value: Any) -> None:
        place = (*self.place, index)
        if isinstance(index, slice) or len(place) < len(self.table.shape):
            not_capturable("it assigns a list to a part of a list of lists, of which it assigns to elements at places that move")
        self.table.assign(place, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.listed())

    def listed(self) -> list[Any]:
        """Its elements, as they are now."""
        return [self[k] for k in range(len(self))]

    in_any_order = listed

    def _refuse(self, *_: Any) -> NoReturn:
        not_capturable("it changes or compares a list of a list of lists, of which it assigns to elements at places that move")

    made_as = elements = append = extend = insert = pop = remove = clear = sort = reverse = copy = index = count = _refuse
    __delitem__ = __contains__ = __array__ = __copy__ = __deepcopy__ = __reversed__ = _operate = _refuse


def shape_of(base: Any) -> tuple[int, ...] | None:
    """The lengths of a list of lists of real numbers that are as long as each other, each of them another list; None of others."""
    shape: list[int] = []
    level = [base]
    while level and all(type(one) is list and len(one) == len(level[0]) for one in level) and len(shape) < MOST_LEVELS:
        if not level[0] or len({id(one) for one in level}) < len(level):
            return None
        shape.append(len(level[0]))
        if math.prod(shape) > MOST:
            return None
        level = [part for one in level for part in one]
    return tuple(shape) if len(shape) > 1 and all(map(_is_real, level)) else None


def _is_real(x: Any) -> bool:
    """Whether an array of float64 can hold it, and give it back as what it is to all that computes with it."""
    if isinstance(x, Tracer | np.generic):
        return bool(is_number(x)) and x.dtype in (np.float64, np.int64)
    return type(x) in (float, int)


def note_row(found: Any, base: list[Any]) -> Any:
    """`found`, which stands for an element of a list at a place that moves; should somebody assign to it, that list is a table."""
    policy = open_policy()
    if policy is not None and type(found) is list:
        policy.table_rows[id(found)] = found, base_of(base) or base
    return found


def base_of(x: Any) -> Any:
    """The list of lists that has handed out a list."""
    policy = open_policy()
    noted = None if policy is None else policy.table_rows.get(id(x))
    return noted[1] if noted is not None and noted[0] is x else None


def made_for(base: list[Any], loop: Any) -> NestedList | None:
    """The table that a list is in a loop, in which its lists are no tables of their own; None of others."""
    shape = shape_of(base)
    if shape is None:
        return None
    scopes, rows = scopes_around(base), _innermost(base, len(shape))
    carried = {key[0] for scope in scopes for key in scope.places}
    for row in rows:
        if scopes_around(row) != scopes or id(row) in loop.growths or id(row) in carried:
            return None
    for row in rows:                                   # what they held before the iteration that is being traced
        for scope in reversed(scopes):
            scope.forget_items(row)
        if id(row) in loop.indexed:
            loop.indexed.pop(id(row)).restore()
    return NestedList(base, loop, shape)


def _innermost(base: list[Any], levels: int) -> list[list[Any]]:
    """The lists of the last level."""
    found = [base]
    for _ in range(levels - 1):
        found = [row for one in found for row in one]
    return found


def _line(row: list[Any]) -> Tracer:
    """The numbers of a list as an array; those that are a row of one array are that."""
    parts = together(row)
    found: Tracer = parts[0][0] if len(parts) == 1 and parts[0][1] else stack_all(row)
    return found if found.dtype == float else found.astype(float)


def _number(array: Tracer, place: tuple[int, ...]) -> Tracer:
    shape: Any = array._type.shape
    made = handle(array._storage, index_chain((), shape, list(place)), tensor(array._type.dtype, ()))
    made._kind = float
    return made
