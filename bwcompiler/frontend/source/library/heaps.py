"""Heaps, `heapq`: with known keys as in Python.  With traced keys the positions of elements depend on data, which is refused."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from bwcompiler.errors import TracerBoolError, TracerError, at
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.library import plain
from bwcompiler.frontend.source.variables import among, is_bounded, not_capturable
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region

FUNCTIONS = frozenset((heapq.heappush, heapq.heappop, heapq.heapify, heapq.heappushpop, heapq.heapreplace))
_HINT = ("the keys in an array, and the smallest by np.argmin: key = np.full(n, np.inf); k = np.argmin(np.where(done, np.inf, key)); "
         "done[k] = True; and key[j] = min(key[j], new) for a push")


_IN_ORDER = {heapq.nsmallest: plain.smallest, heapq.nlargest: plain.largest}


def in_order(function: Any) -> Any:
    """What is called in the place of `heapq.nsmallest` and `nlargest`, which are parts of sorted lists; None for others."""
    return next((found for one, found in _IN_ORDER.items() if one is function), None)


def heap_function(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a function of `heapq`; None for others."""
    if not among(function, FUNCTIONS):
        return None

    def called(heap: Any, *args: Any) -> Any:
        if is_bounded(heap):
            return heap.by(function, *args)
        if scopes_around(heap):
            HANDLERS["wish_for_stack"](heap, *args)
            not_capturable(f"it calls heapq.{function.__name__}(), which changes a heap from outside of it",
                            hint=HANDLERS["hint_for_stack"]((*heap, *args), _HINT))
        refusal = open_region().refusal
        try:
            return function(heap, *args)
        except TracerBoolError:
            HANDLERS["wish_for_stack"](heap, *args)
            open_region().refusal = refusal
            raise TracerError(at(current_source(), f"heapq.{function.__name__}() compares traced numbers: where they lie in the heap is "
                                 f"not known while tracing\n  hint: {HANDLERS['hint_for_stack']((*heap, *args), _HINT)}")) from None
    return called
