"""Lists that have other elements after one side of a branch than after the other: `found = []` or `found = [x, y]`, as data say.

Each side gives the elements, boxed, as what it appends to a list is given (`array_backed.boxes`); after the branch there is one list with
gaps (`undecided.lists.gaps`) of the elements of both, which are there where that side was taken.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.boxes import boxed, boxed_in_side, unboxed
from bwcompiler.frontend.source.containers.parts import Alone, Form, put_together
from bwcompiler.frontend.source.effects.doubles import note_double
from bwcompiler.frontend.source.effects.places import Scope, scopes_around
from bwcompiler.frontend.source.undecided.lists.gaps import Block, Maybe, packed, unpacked
from bwcompiler.frontend.source.variables import is_bounded
from bwcompiler.frontend.tracing.policy import Policy

MOST = 16                      # elements and blocks of a list: each is a result of the branch
_KINDS = (list, tuple)


@dataclasses.dataclass(eq=False)
class Listed:
    """The boxed elements of a list at the end of a side, whole blocks as one."""

    items: tuple[Any, ...]
    kind: type = dataclasses.field(metadata={"static": True})


@functools.cache
def _register() -> None:
    tree.register_dataclass(Listed)


class Lists:
    """The variables of a branch that hold lists, or tuples, with other elements at the end of one side than of the other.

    Which these are the first tracing of the sides shows.  It is remembered, by the text of the branch, as what is fitted
    (`undecided.fitting`).
    """

    def __init__(self, policy: Policy, *sides: Callable[[], Any]) -> None:
        codes = tuple([getattr(side, "__code__", None) for side in sides])
        self.memory: set[str] = policy.fitting.setdefault((*codes, "lists"), set()) if None not in codes else set()
        self.remembered = set(self.memory)
        self.names = set(self.memory)

    def has_to_change(self, one: Mapping[str, Any], other: Mapping[str, Any], private: Collection[str], scope: Scope,
                      is_value: Callable[[Any], bool]) -> bool:
        """Whether the sides have to be traced again; private: variables with lists that may be lists with room instead."""
        unneeded = {name for name in self.remembered if not _is_needed(one.get(name), other.get(name))}
        self.remembered -= unneeded
        changed = {name for place, name in scope.places.values() if place.kind == "items"}
        found = {name for name in one if name not in self.names and name not in private and name not in changed and _differ(
            one[name], other.get(name)) and all(_may_be_listed(x, scope, is_value) for x in (one[name], other[name]))}
        self.names = self.names - unneeded | found
        self.memory |= found
        return bool(unneeded or found)


def _is_needed(one: Any, other: Any) -> bool:
    return type(one) is type(other) is Listed and (
        any(isinstance(item, Block) for item in one.items) or tree.structure(one) != tree.structure(other))


def _differ(one: Any, other: Any) -> bool:
    if type(one) is not type(other) or type(one) not in _KINDS:
        return False
    if len(one) != len(other):
        return True
    return any(type(x) is Maybe and x._block is not None for x, y in zip((*one, *other), (*other, *one), strict=True) if x is not y)


def _may_be_listed(x: Sequence[Any], scope: Scope, is_value: Callable[[Any], bool]) -> bool:
    """Whether it holds numbers and arrays, or what consists of these, and nothing changes it meanwhile: neither the branch nor a loop."""
    return len(packed(x)) <= MOST and id(x) not in (scope.tails or {}) and not any(is_bounded(item) for item in x) and all(
        is_value(leaf) for item in packed(x) for leaf in tree.leaves(boxed(item))) and (
        scope.owns(x) or all(one.loop is None for one in scopes_around(x)))


def listed(x: Sequence[Any], alone: Alone) -> Listed:
    """The elements of a list at the end of a side; other names of it are not to change it from now on."""
    _register()
    if not alone(x):
        note_double(x)
    return Listed(tuple([boxed_in_side(item, alone) for item in packed(x)]), type(x))


def relisted(items: Sequence[Any], kind: type, is_double: bool) -> Any:
    """A list of elements that a branch gives; is_double: another name may have what it stands for."""
    found = [unboxed(item, is_double) for item in unpacked(items)]
    return put_together(Form(kind, tuple(range(len(found)))), found, is_double)
