"""Objects, lists and dictionaries that a loop appends to a list, `kept.append({"t": t, "x": x})`: their contents are rows of arrays, and
each element of the list is assembled from its rows.

This is only possible for an element that the iteration has made and that nothing else refers to: only then can nobody tell that it was
assembled again.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.containers.parts import MOST, Alone, Form, containers, form_of, put_together
from bwcompiler.frontend.source.effects.doubles import note_double
from bwcompiler.frontend.source.effects.places import Scope, scopes_around
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, Options, is_unsure, joined
from bwcompiler.frontend.source.undecided.kinds.identities import is_kept
from bwcompiler.frontend.source.undecided.lists.gaps import Block, Maybe, has_gaps, packed, unpacked
from bwcompiler.frontend.source.variables import not_capturable
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

DEEPEST = 32                   # things in things


@dataclasses.dataclass(eq=False)
class Box:
    """The parts of something that can change; of a list with gaps whole blocks (`undecided.lists.gaps.Block`) are one."""

    parts: list[Any]
    form: Form = dataclasses.field(metadata={"static": True})


@dataclasses.dataclass(eq=False)
class Text:
    """A text, which is part of a structure."""

    text: str = dataclasses.field(metadata={"static": True})


@functools.cache
def _register() -> None:
    tree.register_dataclass(Box)
    tree.register_dataclass(Text)


class _Endless(Exception):
    """Objects lead to each other without an end, as a node does to its parent and back."""


def boxed(x: Any) -> Any:
    """x with a Box in the place of each list, dictionary and object; as it is where these lead to each other without an end."""
    try:
        return _boxed(x, 0)
    except _Endless:
        return x


def _boxed(x: Any, depth: int) -> Any:
    if isinstance(x, Tracer | np.ndarray | np.generic | int | float | complex | str | Block):
        return x
    if type(x) is Maybe:                           # one of a block that is not whole here
        return Maybe(x.present, x.value)
    if is_kept(x):
        return joined(np.int64(0), None, Options([x]), False)
    form = None if type(x) is Choice and any(map(is_kept, x.options.things)) else form_of(x)
    if form is None:
        return x
    if depth == DEEPEST:
        raise _Endless
    parts = [_boxed(part, depth + 1) for part in (packed(x) if type(x) is list and has_gaps(x) else form.parts(x))]
    if form.is_fixed:
        return form.whole(parts)
    _register()
    return Box(parts, form)


def unboxed(x: Any, double: bool = False) -> Any:
    """What was boxed; double: an iteration before this one had it, so that it is not to be changed."""
    if isinstance(x, tuple):
        return Form(type(x), ()).whole([unboxed(part, double) for part in x])
    if type(x) is Text:
        return x.text
    if type(x) is Choice:
        return x.options.things[0] if len(x.options.things) == 1 and not x.has_value and not is_unsure(x) else x
    if type(x) is not Box:
        return x
    parts = [unboxed(part, double) for part in x.parts]
    return put_together(x.form, unpacked(parts) if x.form.kind is list else parts, double)


def shared_box(x: Any) -> Any:
    """boxed(x), where x is there as well: it is not to be changed from now on."""
    found = boxed(x)
    if found is not x:
        note_double(*containers(x))
    return found


def boxed_in_side(x: Any, alone: Alone) -> Any:
    """boxed(x), which a side of a branch appends to a list; what other names have, too, is not to be changed from now on."""
    if type(x) is list and len(x) > MOST:
        not_capturable(f"it calls list.append() with a list of {len(x)} elements, or less, as data say",
                       hint="what is needed of it: its sum, its first and last element; or the place where it begins, starts.append(k)")
    for one in containers(x):
        if any(scope.loop is not None for scope in scopes_around(one)):
            kind = type(one).__name__
            not_capturable(f"it calls list.append() with a {kind} that was made before the loop around, which all iterations append",
                           hint="append a new one: copy.copy(x), or list(x)")
        if not alone(one):
            note_double(one)
    return _with_known(boxed(x))


def is_made(x: Any, scope: Scope) -> bool:
    """Whether a side of a branch has made something that can change, and all that can change in it."""
    return not isinstance(x, tuple) and form_of(x) is not None and bool(tree.leaves(boxed(x))) and all(map(scope.owns, containers(x)))


def boxed_as_value(x: Any, alone: Alone) -> Any:
    """boxed(x), of what a side of a branch gives a variable that is None on the other one; other names are not to change it then."""
    if type(x) is Choice:
        return x
    note_double(*[one for one in containers(x) if not alone(one)])
    return _with_known(boxed(x))


def _with_known(x: Any) -> Any:
    """Something boxed, with its texts as parts of its structure."""
    if isinstance(x, str):
        _register()
        return Text(x)
    if type(x) is Box:
        return Box([_with_known(part) for part in x.parts], x.form)
    return Form(type(x), ()).whole([_with_known(part) for part in x]) if isinstance(x, tuple) else x


def items_of(x: Any) -> Sequence[Any] | None:
    """The boxed items of a tuple or a boxed list; None of all else, and of lists with gaps."""
    if isinstance(x, tuple):
        return x
    return x.parts if type(x) is Box and x.form.kind is list and not any(isinstance(part, Maybe | Block) for part in x.parts) else None


HANDLERS.update(boxed=shared_box, unboxed=lambda x: unboxed(x, double=True), items_of_boxed=items_of)


def require_alone(scope: Scope, ends: Iterable[Any], items: Sequence[list[Any]]) -> None:
    """Refuse what the iteration has appended to lists and something else has, or that is from before the iteration.

    ends: what the variables hold at its end.
    """
    found = [one for appended in items for item in appended for one in containers(item)]
    if not found:
        return
    alone = Alone(scope, [*ends, *items])
    for one in found:
        if not alone(one):
            not_capturable(f"it calls list.append() with a {type(one).__name__} that has another name, too, or is made before")
