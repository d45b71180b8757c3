"""Copies of objects and containers: `copy.copy`, `copy.deepcopy`, `dataclasses.replace`, `x.copy()`.  The results belong to the body."""

from __future__ import annotations

import collections
import copy
import dataclasses
from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.containers.parts import containers, form_of
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.frontend.tracing.registry import HANDLERS


@dataclasses.dataclass
class _Example:
    x: int


_FIELD: Any = dataclasses.fields(_Example)[0]._field_type  # type: ignore[attr-defined]  # of fields that are neither InitVar nor ClassVar
_CONTAINERS = (list, dict, collections.OrderedDict)


def copying(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a function that copies; None where it does not."""
    if function is copy.copy:
        return lambda x: _noted(_shallow(_known(x)), False)
    if function is copy.deepcopy:
        return _deep
    if function is dataclasses.replace:
        return _replaced
    owner = getattr(function, "__self__", None)
    if type(owner) in _CONTAINERS and function.__name__ == "copy":
        return lambda: HANDLERS["dictionary_made"](_noted(function(), False))
    return None


def _known(x: Any) -> Any:
    HANDLERS["require_known_state"]((id(x),))
    return x


def _deep(x: Any, memo: dict[int, Any] | None = None) -> Any:
    reached: dict[int, Any] = {} if memo is None else memo       # by their ids
    found = copy.deepcopy(x, reached)
    HANDLERS["require_known_state"](reached)
    return _noted(found, True)


def _shallow(x: Any) -> Any:
    form = form_of(x)
    return copy.copy(x) if form is None or type(x) is tuple or hasattr(type(x), "__copy__") else form.whole(form.parts(x))


def _noted(found: Any, whole: bool) -> Any:
    """The copy, which this body has made; `whole`: all that is in it too."""
    policy = open_policy()
    for one in containers(found) if whole else [found]:
        if policy is not None and not isinstance(one, tuple):
            policy.own_object(one)
    return found


def _replaced(x: Any, /, **changes: Any) -> Any:
    """dataclasses.replace, with the `__post_init__` of the class captured."""
    fields = {} if isinstance(x, type) else getattr(x, "__dataclass_fields__", {})
    initial = {name for name, field in fields.items() if field.init and field._field_type is _FIELD}
    if not fields or not initial.issuperset(changes):              # what is an error, or asks for more
        replaced: Any = dataclasses.replace
        return replaced(x, **changes)
    return HANDLERS["call_of"](type(x))(**{name: getattr(x, name) for name in fields if name in initial} | changes)
