"""Objects and containers that the last iteration of a loop has made, and that are read after it: put together of their parts there.

    for _ in range(100):                     after the loop, `trial` is an object of what the last iteration
        trial = Trial(step(x), x)      ->    left in the variables trial.point and trial.before
    return trial.point

Such an object is a double (`effects.doubles`): the loop is unrolled if it is changed, or asked for its identity.
"""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.containers.parts import Form, form_of, put_together
from bwcompiler.frontend.source.effects.doubles import note_double
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.undecided.lists import gaps
from bwcompiler.frontend.source.variables import UNBOUND
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.stand_ins import KnownPart
from bwcompiler.frontend.tracing.storages.views import moves
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import mentions_index

_KNOWN = (int, float, complex, str, type(None), np.generic, np.ndarray, type, FunctionType, KnownPart)


class Undecided:
    """A choice (`kinds.choices`) as something of parts."""

    def __init__(self, x: Choice) -> None:
        self.keys = tuple(range(len(tree.leaves(x))))
        self.structure = tree.structure(x)

    def name(self, whole: str, key: int) -> str:
        return f"{whole}[{key}]"

    def parts(self, x: Choice) -> list[Any]:
        return tree.leaves(x)

    def whole(self, parts: list[Any]) -> Any:
        return tree.unflatten(self.structure, parts)


def _form(x: Any) -> Form | Undecided | None:
    """How something is taken apart; of choices those of known things, which stay the same."""
    if type(x) is Choice:
        return Undecided(x) if all(isinstance(thing, _KNOWN) for thing in x.options.things) else None
    return None if isinstance(x, Tracer) or gaps.has_gaps(x) else form_of(x)


class LastObjects:
    """Of the variables of a loop that it does not carry, those that are taken apart; `loop` is a `capture.Traceable`."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.forms: dict[str, tuple[Form | Undecided, list[str]]] = {}

    def all_names(self) -> list[str]:
        """Those that are read after the loop, or of their parts: at the end of an iteration."""
        self.forms = {}
        return [found for name in self.loop.variables.results for found in self.names(name)]

    def names(self, name: str) -> list[str]:
        """The names of the parts of what a variable holds after an iteration; its own where that is one value, or stays as it is."""
        loop = self.loop
        end = loop.ends[name]
        if not loop.runs or name in loop.carried or loop.entry[name] is not UNBOUND or loop.names.is_place(name) or not self._is_new(end):
            return [name]
        form, names = _form(end), []
        assert form is not None
        for key, part in zip(form.keys, form.parts(end), strict=True):
            one = form.name(name, key)
            while one in loop.variables.stored:
                one += "'"
            loop.names.add(one, CellType(UNBOUND))
            loop.entry[one], loop.ends[one] = UNBOUND, part
            names.append(one)
        self.forms[name] = form, names
        return [found for one in names for found in self.names(one)]

    def _is_made(self, x: Any) -> bool:
        """Whether something is a tuple, a choice, or an object or container of the iteration's own."""
        return _form(x) is not None and (isinstance(x, tuple | Choice) or self.loop.scope.owns(x))

    def _is_new(self, x: Any) -> bool:
        """Whether the iteration has made something with traced values in it, all parts of which can be variables."""
        if not self._is_made(x):
            return False
        pending, reached, is_traced = [x], {id(x)}, False
        while pending:
            one = pending.pop()
            if isinstance(one, Tracer):
                is_traced = True
                if isinstance(one, IndexTracer) or any(map(moves, one._chain)) or mentions_index({"shape": one._type.shape}):
                    return False
                continue
            if not self._is_made(one):             # from before, if it is an object: it stays the same
                if not isinstance(one, _KNOWN) and _form(one) is None:
                    return False
                continue
            parts = _form(one).parts(one)  # type: ignore[union-attr]
            made = [id(part) for part in parts if self._is_made(part)]
            if len(set(made)) < len(made) or not reached.isdisjoint(made):
                return False                       # it leads to itself, or to something twice
            reached.update(made)
            pending += parts
        return is_traced

    def settle(self) -> None:
        """After the loop: objects of what their parts are then."""
        for name, (form, names) in reversed(self.forms.items()):
            parts = [self.loop.names[one] for one in names]
            if isinstance(form, Undecided):
                found = form.whole(parts)
            else:
                found = put_together(form, parts, double=True)
                note_double(found, self.loop.ends[name], site=self.loop.site)
            self.loop.names[name] = found
