"""`defaultdict`, `Counter` and `setdefault`, with keys that may depend on data; `itertools.count`, which counts as often as data say."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.source.bounded import sites
from bwcompiler.frontend.source.bounded.dictionaries import is_asked, made, want
from bwcompiler.frontend.source.bounded.stacks import made as stack_made
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.library.plain import counted
from bwcompiler.frontend.source.undecided.lists.gaps import Items, has_gaps, taken
from bwcompiler.frontend.source.variables import is_number, not_capturable, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


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


def set_default(method: Any, check: Callable[[], Any], key: Any, default: Any = None) -> Any:
    """method(key, default), which is `setdefault` of a dictionary; check: that it may be called where it is."""
    if is_asked(method.__self__, key):
        want(method.__self__, key, default)
    check()
    return method(key, default)


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
