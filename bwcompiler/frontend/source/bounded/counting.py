"""`defaultdict`, `Counter` and `setdefault`, with keys that may depend on data."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.bounded.dictionaries import is_asked, made, want
from bwcompiler.frontend.source.bounded.stacks import made as stack_made
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.library.plain import counted
from bwcompiler.frontend.source.undecided.gaps import Items, has_gaps, taken
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


def counting(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of `defaultdict`, `Counter` and `deque`; None for others."""
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
