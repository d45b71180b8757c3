"""`any`, `all` and `next` of generator expressions over elements that depend on data: whether they exist, and which is the first."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from bwcompiler.errors import TracerBoolError
from bwcompiler.frontend.source.library import plain
from bwcompiler.frontend.source.undecided.lists.gaps import has_gaps, taken
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region

_SEARCHES: dict[Any, Callable[..., Any]] = {builtins.any: plain.any_of, builtins.all: plain.all_of, builtins.next: plain.first_of}


def searched(function: Any, source: Callable[[], Any], as_written: Callable[[Any], Callable[[Any], Any]], elements: Callable[[Any], Any],
             *default: Callable[[], Any]) -> Any:
    """function((... for item in source()), default()): as it is written, or of the list of its elements."""
    policy, items = open_policy(), source()
    if policy is None or not any(function is one for one in _SEARCHES):
        return as_written(items)(HANDLERS["call_of"](function))
    if not policy.gaps or not has_gaps(taken(items)):
        if function is not builtins.next:
            return as_written(items)(HANDLERS["call_of"](function))
        region = open_region()
        refusal = region.refusal
        try:
            return as_written(items)(HANDLERS["call_of"](function) if _is_used_up(items) else function)
        except TracerBoolError:                    # data decide which one is the first
            if _is_used_up(items):
                raise
            region.refusal = refusal
    return HANDLERS["call_of"](_SEARCHES[function])(elements(items), *[one() for one in default])


def _is_used_up(items: Any) -> bool:
    """Whether some elements of what a search went through may be gone: it is an iterator that was made before."""
    return hasattr(items, "__next__") and type(items) not in (enumerate, zip, type(reversed([])), type(reversed(range(0))))
