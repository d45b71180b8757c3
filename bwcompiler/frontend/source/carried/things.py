"""Objects, lists and dictionaries that a loop appends to a list, `kept.append({"t": t, "x": x})`: what is in them are rows of arrays, and
each element of the list is put together of its rows.

Only what an iteration has made, and nothing else has, can be put together again without anybody knowing: it is the list's alone.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.carried.parts import Alone, Form, containers, form_of, put_together
from bwcompiler.frontend.source.effects.places import Scope
from bwcompiler.frontend.source.undecided.choices import picked
from bwcompiler.frontend.source.variables import not_capturable, same
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.rows import together
from bwcompiler.frontend.tracing.tracer import Tracer


@dataclasses.dataclass(eq=False)
class Thing:
    """The parts of something that can change."""

    parts: list[Any]
    form: Form = dataclasses.field(metadata={"static": True})


@functools.cache
def _register() -> None:
    tree.register_dataclass(Thing)


def boxed(x: Any) -> Any:
    """x with a Thing in the place of each list, dictionary and object."""
    if isinstance(x, Tracer | np.ndarray | np.generic | int | float | complex | str):
        return x
    form = form_of(x)
    if form is None:
        return x
    parts = [boxed(part) for part in form.parts(x)]
    if form.is_fixed:
        return form.whole(parts)
    _register()
    return Thing(parts, form)


def unboxed(x: Any, double: bool = False) -> Any:
    """What was boxed; double: an iteration before this one had it, so that it is not to be changed."""
    if isinstance(x, tuple):
        return Form(type(x), ()).whole([unboxed(part, double) for part in x])
    return put_together(x.form, [unboxed(part, double) for part in x.parts], double) if type(x) is Thing else x


def are_known(items: Sequence[Any]) -> bool:
    """Whether a list holds numbers and texts alone, in tuples and objects perhaps: `for i, j in pairs`, `for spring in springs`."""
    return not any(isinstance(leaf, Tracer) for leaf in tree.leaves(boxed(items[0])))


def at_places(items: Sequence[Any]) -> Callable[[Any], Any] | None:
    """items[k] for any k, of a list that a loop has filled, or of known numbers: what are rows of arrays in it is read from these, and
    what are numbers from tables of them; None of another one.
    """
    if not any(_row_like(items[0])) and not are_known(items):
        return None
    boxes = [boxed(item) for item in items]
    structure = tree.structure(boxes[0])
    if any(tree.structure(box) != structure for box in boxes[1:]):
        return None
    columns = [_column(column) for column in zip(*map(tree.leaves, boxes), strict=True)]
    if any(column is None for column in columns):
        return None
    return lambda k: unboxed(tree.unflatten(structure, [column(k) for column in columns if column is not None]), double=True)


def _row_like(item: Any) -> list[bool]:
    return [isinstance(leaf, Tracer) and bool(leaf._chain) for leaf in tree.leaves(boxed(item))]


def _column(leaves: Sequence[Any]) -> Callable[[Any], Any] | None:
    """The k-th of some leaves, for any k; None where they are neither rows nor numbers or texts of one type."""
    first = leaves[0]
    if isinstance(first, Tracer):
        rows = together(leaves)
        if len(rows) > 1 or any(leaf._kind is not first._kind or leaf._storage.writable is not first._storage.writable for leaf in leaves):
            return None
        array = rows[0][0]

        def row(k: Any) -> Any:
            found = array[k]
            if not found._type.shape:
                found._kind = first._kind
            return found
        return row
    if all(same(leaf, first) for leaf in leaves):
        return lambda k: first
    if all(type(leaf) is int for leaf in leaves) and len({y - x for x, y in itertools.pairwise(leaves)}) == 1:
        return lambda k: first + k * (leaves[1] - first)
    return (lambda k: picked(leaves, k)) if all(type(leaf) is str for leaf in leaves) else table(leaves)


def table(numbers: Sequence[Any]) -> Callable[[Any], Any] | None:
    """numbers[k] for any k, of Python numbers of one type in a list or tuple; None where it holds something else."""
    kind = type(numbers[0]) if numbers else None
    if kind not in (float, int) or any(type(number) is not kind for number in numbers):
        return None

    def at(k: Any) -> Any:
        found = call(as_tracer, np.array(numbers))[k]
        found._kind = kind
        return found
    return at


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
