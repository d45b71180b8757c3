"""Loops over generators of the user's: the body of such a loop runs inside of the generator (`Generated`, `syntax/generators.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MethodType
from typing import Any

from bwcompiler.frontend.source.effects.places import Place, note_place, own_cells
from bwcompiler.frontend.source.syntax.generators import TAKE
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.variables import Names


class Generated:
    """A call of a generator function, which begins when something goes over it: as a generator, or by `run`.

    forms: functions that hand what it yields to another one, and end when it does; or as soon as the other one says so.
    """

    def __init__(self, function: Any, forms: tuple[FunctionType, FunctionType], /, *args: Any, **kwargs: Any) -> None:
        self.function = function
        self.forms = forms
        self.args = args
        self.kwargs = kwargs
        self.first: Any = None                     # of the numbers beside the values, where there are such

    def counted(self, start: Any = 0) -> Generated:
        """enumerate(self, start)."""
        found = Generated(self.function, self.forms, *self.args, **self.kwargs)
        found.first = start
        return found

    def __iter__(self) -> Iterator[Any]:
        values = self.function(*self.args, **self.kwargs)
        return iter(values if self.first is None else enumerate(values, self.first))

    def run(self, body: Callable[[Any], None], names: Variables, flag: str | None) -> None:
        """body(value) for each value, until the variable `flag` is true.

        What the body leaves for later iterations, or for what comes after the loop, are variables of the generator's loops too.
        """
        shared, count = Names(body), CellType(self.first)
        kept = {*names.carried, *names.results, *filter(None, (flag,))}
        places = [Place(cell, "variable", name) for name in names.stored if name in kept for cell in shared.cells((name,))]
        if self.first is not None:
            places.append(Place(count, "variable", "the number beside a value"))
        own_cells([place.base for place in places])

        def take(value: Any) -> Any:
            for place in places:
                note_place(place)
            if self.first is None:
                body(value)
            else:
                body((count.cell_contents, value))
                count.cell_contents = count.cell_contents + 1
            return flag is not None and shared[flag]

        function: Any = self.forms[flag is not None]
        if isinstance(self.function, MethodType):
            function = MethodType(function, self.function.__self__)
        function(*self.args, **self.kwargs, **{TAKE: take})
