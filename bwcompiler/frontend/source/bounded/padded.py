"""Lists and tuples of two lengths on the sides of a branch, `return [a, b]` and `return [a]`: one with gaps, as long as the longer.

Such a list stands for that of either side (`effects.doubles`): neither is changed from then on.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.boxes import Box, boxed
from bwcompiler.frontend.source.array_backed.growth import POISON
from bwcompiler.frontend.source.bounded import forms
from bwcompiler.frontend.source.bounded.forms import Form as FormOfElements
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.containers.parts import Form, containers
from bwcompiler.frontend.source.effects.doubles import note_double
from bwcompiler.frontend.source.undecided.fitting import Fit
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, joined
from bwcompiler.frontend.source.undecided.lists.gaps import Block, Maybe, maybe, packed, unpacked
from bwcompiler.frontend.source.variables import same

LONGEST = 64                   # elements: each becomes results of the branch


def padding(one: Any, other: Any) -> Padding | None:
    """The fit of what two sides of a branch give; None where they need none, or it is impossible."""
    lists = [_items(one), _items(other)]
    if tuple in (type(one), type(other)) and (type(one) is not type(other) or len(one) == len(other)):
        return None                                # of one length, they are merged element by element
    if same(one, other) or any(items is None or len(items) > LONGEST or any(item is POISON for item in items) for items in lists):
        return None
    first, second = [items for items in lists if items is not None]
    if tree.structure(_whole(first)) == tree.structure(_whole(second)):
        return None
    try:
        pattern = functools.reduce(forms.covering, [pattern for items in (first, second) for pattern in _patterns(items)])
        return Padding(max(len(first), len(second)), forms.form_of(pattern))
    except forms.NoElement:
        return None


def _items(x: Any) -> Sequence[Any] | None:
    """The items of a list or tuple, or of what is boxed of a list, which there may be or not; None of all else."""
    if type(x) in (list, tuple):
        return x  # type: ignore[no-any-return]
    if type(x) is Choice and x.has_value:
        return _items(x.value) if type(x.value) is Box else None
    return unpacked(x.parts) if type(x) is Box and x.form.kind is list else None


def _boxed(item: Any) -> Any:
    return item if type(item) in (Box, Maybe, Block) else boxed(item)


def _whole(items: Sequence[Any]) -> list[Any]:
    """Items, boxed, and blocks of them: nothing is computed, as the side that made them has been traced."""
    return list(map(_boxed, packed(items)))


def _patterns(items: Sequence[Any]) -> list[Any]:
    def pattern_of(one: Any) -> Any:
        block = one if type(one) is Block else one._block[0] if type(one) is Maybe and one._block is not None else None
        return forms.pattern_of(one.value if type(one) is Maybe else one) if block is None else forms.pattern_of_rows(block)
    return list(map(pattern_of, _whole(items)))


class Padding(Fit):
    """Makes lists of so many elements, which are there or not; form: of each."""

    of_lists = True

    def __init__(self, length: int, form: FormOfElements) -> None:
        self.length = length
        self.form = form

    def is_more_than(self, before: Fit | None) -> bool:
        return type(before) is not Padding or self.length > before.length or self.form != before.form

    def __call__(self, x: Any) -> Any:
        items, pattern = _items(x), forms.pattern(*self.form)
        if items is None or any(item is POISON for item in items) or not all(self._covers(one, pattern) for one in _patterns(items)):
            return x
        nothing = tree.unflatten(self.form[0], [np.zeros(shape, dtype)[()] for _, dtype, shape in self.form[1]])
        found = [*[self._element(one, pattern) for one in items], *[maybe(np.False_, nothing) for _ in range(self.length - len(items))]]
        if type(x) is list:
            note_double(*containers(x))
            return own(found)
        if type(x) is tuple:
            return tuple(found)
        box = Box(found, Form(list, tuple(range(len(found)))))
        return box if type(x) is Box else joined(x.which, box, x.options, True)

    def _covers(self, one: Any, pattern: Any) -> bool:
        try:
            return forms.form_of(forms.covering(pattern, one))[0] == self.form[0]
        except forms.NoElement:
            return False

    def _element(self, one: Any, pattern: Any) -> Any:
        present, value = (one.present, one.value) if type(one) is Maybe else (np.True_, _boxed(one))
        return maybe(present, forms.fitted(value, pattern))
