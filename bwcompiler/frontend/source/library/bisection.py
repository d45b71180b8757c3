"""`bisect` in lists of traced numbers: how many of them come before a number."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


def _bisected(function: Callable[..., int], side: str) -> Callable[..., Any]:
    def place(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> Any:
        items = list(a[lo:hi])
        keys = items if key is None else list(map(HANDLERS["call_of"](key), items))
        if not items or not any(isinstance(one, Tracer) for one in (x, *keys)):
            return function(a, x, lo, len(a) if hi is None else hi, key=key)
        return lo + np.searchsorted(np.stack([call(as_tracer, one) for one in keys]), x, side=side)  # type: ignore[call-overload]
    place.__name__ = function.__name__
    return place


BISECTION: dict[Any, Any] = {
    function: _bisected(function, side) for function, side in ((bisect.bisect_left, "left"), (bisect.bisect_right, "right"))}
