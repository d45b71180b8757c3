"""`defaultdict`, `Counter`, `setdefault` and `update`, with keys that may depend on data; `itertools.count`, which counts as data say."""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.source.array_backed.dictionaries import tabled
from bwcompiler.frontend.source.bounded import sites
from bwcompiler.frontend.source.bounded.dictionaries import is_asked, made, want, wish
from bwcompiler.frontend.source.bounded.stacks import made as stack_made
from bwcompiler.frontend.source.bounded.store import refused
from bwcompiler.frontend.source.changes import changed, own
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.library.plain import counted
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.undecided.lists.gaps import Items, has_gaps, refuse, taken
from bwcompiler.frontend.source.variables import is_bounded, is_number, not_capturable, open_policy, parts_of
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

_DICTIONARIES = (dict, collections.defaultdict, collections.OrderedDict, collections.Counter)
_CHANGING = frozenset(("clear", "pop", "popitem", "setdefault", "update"))


def counting(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of `defaultdict`, `Counter`, `deque` and `count`, and of `next` of that; None for others."""
    if function is next:
        return _next()
    if function is itertools.count:
        return lambda *args, **kwargs: _count(own(function(*args, **kwargs)), *args, **kwargs)
    if function is collections.deque:
        return lambda *args, **kwargs: stack_made(own(function(*[taken(arg) for arg in args], **kwargs)))
    if function is not collections.defaultdict and function is not collections.Counter:
        return None

    def called(*args: Any, **kwargs: Any) -> Any:
        if function is collections.defaultdict or not args:
            return made(own(function(*args, **kwargs)))
        items = args[0]
        items = taken(list(items) if hasattr(items, "__next__") and type(items) is not Items else items)
        if has_gaps(items) or isinstance(items, Tracer) or (type(items) is list and any(isinstance(one, Tracer) for one in items)):
            return HANDLERS["call_of"](counted)(made(own(function())), items)
        return made(own(function(items, *args[1:], **kwargs)))
    return called


def changing(items: Any, method: Any, check: Callable[[], Any]) -> Callable[..., Any] | None:
    """What is called in the place of a method of a dictionary that changes it; check: that it may be called where it is."""
    if type(items) not in _DICTIONARIES or (name := method.__name__) not in _CHANGING:
        return None
    if name == "setdefault":
        return functools.partial(_set_default, method, check)
    if name == "update" and type(items) is not collections.Counter and scopes_around(items):
        return functools.partial(_update, items)
    if scopes_around(items):
        wish(items)
    return None


def _set_default(method: Any, check: Callable[[], Any], key: Any, default: Any = None) -> Any:
    """method(key, default), which is `setdefault` of a dictionary."""
    items = method.__self__
    if is_asked(items, key):
        want(items, key, default)
    if tabled(items) is not None or any(isinstance(part, Tracer | Choice) for part in parts_of(key)):
        check()
        return method(key, default)
    if key not in items:
        changed(items)[key] = default
    return HANDLERS["item_of"](items, key)


def _update(items: Any, other: Any = (), **more: Any) -> None:
    """items.update(other, **more), of a dictionary from outside of a body."""
    if is_bounded(other):
        raise refused("a dictionary is updated with one that data fill\n  hint: a loop over its items, for k, v in more.items(): d[k] = v")
    pairs = taken(HANDLERS["call_of"](list)(other.items() if hasattr(other, "keys") else other))
    if has_gaps(pairs):
        refuse("update() of a dictionary")
    for key, value in (*pairs, *more.items()):
        changed(items)[key] = value


# ----- itertools.count
_COUNT = "count"               # in the place of the kinds of a plan


class Count:
    """An `itertools.count` whose next number is in an array."""

    def __init__(self, start: Any, step: Any) -> None:
        own(self)
        number = start + 0 * step
        self.kind = number._kind if isinstance(number, Tracer) else type(number)
        self.number = call(as_tracer, np.array([number])).copy()
        self.step = step

    def __iter__(self) -> Count:
        return self

    def __next__(self) -> Any:
        found = self.number[0]
        if self.kind in (int, float):
            found._kind = self.kind
        self.number[0] = found + self.step
        return found


def _count(made: Any, start: Any = 0, step: Any = 1) -> Any:
    """An `itertools.count` that was just made, or one with its number in an array."""
    can_be = all(is_number(one) and not np.iscomplexobj(one) for one in (start, step))
    return made if not can_be or sites.note(made) is None else Count(start, step)


def _next() -> Callable[..., Any] | None:
    """What is called in the place of `next`, if there are such counts; in loops they may be needed."""
    policy = open_policy()
    if policy is None:
        return None
    if policy.depth:
        for one, _, _ in list(policy.containers.values()):
            if type(one) is itertools.count:
                sites.wish(one, _COUNT)
    return _taken if any(plan.kinds == _COUNT for plan in policy.bounded.values()) else None


def _taken(x: Any, *default: Any) -> Any:
    """next(x, default)."""
    policy = open_policy()
    if type(x) is not Count and policy is not None and policy.depth:
        not_capturable("it calls next(), of which it is not known that it only computes")
    return next(x, *default)
