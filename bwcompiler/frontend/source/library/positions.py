"""Methods of lists and tuples whose elements, or what is looked for, depend on data: `index` and `count`; and those that change a list at
a place that data decide, after which it has as many elements as in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.errors import TracerError
from bwcompiler.frontend.source.concrete.contents import binary
from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.source.library import plain
from bwcompiler.frontend.source.library.builtin_functions import as_int
from bwcompiler.frontend.source.variables import is_number
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer

_AT_PLACES: dict[str, tuple[Callable[..., Any], int]] = {            # with how many arguments
    "pop": (plain.popped_at, 1), "insert": (plain.inserted_at, 2), "remove": (plain.removed, 1)}


def at_places(owner: list[Any], function: Any) -> Callable[..., Any]:
    """What is called for owner.pop(place), owner.insert(place, x) or owner.remove(x), and for its other methods."""
    found, count = _AT_PLACES.get(function.__name__, (None, 0))
    if found is None:
        return function  # type: ignore[no-any-return]

    def changing(*args: Any) -> Any:
        if len(args) != count or not _is_traced(function, owner, args[0]):
            return function(*args)
        region = open_region()
        refusal = region.refusal
        try:
            return function(*args)                 # at a place that can be had
        except TracerError:
            region.refusal = refusal
            return HANDLERS["call_of"](found)(owner, *args)
    return changing


def _is_traced(function: Any, owner: list[Any], x: Any) -> bool:
    """Whether data may decide the place: x, or that of what is equal to it; not the index of a loop, which is unrolled."""
    if isinstance(x, Tracer) and (x.ndim or extent_of(x) is not None):
        return False
    return isinstance(x, Tracer) or (function.__name__ == "remove" and any(isinstance(one, Tracer) for one in owner))


def looking(owner: list[Any] | tuple[Any, ...], function: Any) -> Callable[..., Any]:
    """owner.index or owner.count."""
    def count(x: Any) -> Any:
        equal = _equal(owner, x)
        return function(x) if equal is None else as_int(np.sum(equal))

    def index(x: Any, start: Any = 0, stop: Any = sys.maxsize) -> Any:
        is_known = not any(isinstance(one, Tracer) for one in (start, stop))
        equal = _equal(owner[start:stop], x) if is_known else None
        if equal is None:
            return function(x, start, stop)
        kind = type(owner).__name__
        raise_where(np.logical_not(np.any(equal)), ValueError(f"{kind}.index(x): x not in {kind}"))
        return slice(start, stop).indices(len(owner))[0] + as_int(np.argmax(equal))

    return count if function.__name__ == "count" else index


def _equal(items: list[Any] | tuple[Any, ...], x: Any) -> Any:
    """Which of the items are equal to x, as an array; None where all of this is known."""
    if all(map(is_number, (*items, x))) and any(isinstance(one, Tracer) for one in (*items, x)):
        numbers = [call(as_tracer, one) for one in items]
        if len({one._type.dtype for one in numbers}) == 1:
            return np.stack(numbers) == x
    tests = [True if one is x else HANDLERS["truth_of"](binary("eq", one, x)) for one in items]
    if not any(isinstance(one, Tracer) for one in tests):
        return None
    return np.stack([call(as_tracer, one) for one in tests])
