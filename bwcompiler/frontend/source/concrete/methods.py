"""Methods of concrete arrays that are called with traced arguments, `weights.dot(x)`: those of traced arrays with the same elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.concrete.makers import noted
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.masked_selection import holds_selection
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced

MAKING = frozenset(("copy", "astype"))             # whose results nobody else has
_TAKING = frozenset((
    "all", "any", "choose", "compress", "dot", "max", "mean", "min", "prod", "repeat", "searchsorted", "std", "sum", "take", "var"))


def method_of_array(method: Any) -> Callable[..., Any] | None:
    """What is called for a method of a concrete array; None where that is the method itself."""
    name = method.__name__
    if name in MAKING:
        return lambda *args, **kwargs: _noted(method(*args, **kwargs), method.__self__)
    if name not in _TAKING:
        return None

    def called(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if not holds_selection(*given) and not any(is_traced(one) for one in given):
            return method(*args, **kwargs)
        return getattr(call(as_tracer, method.__self__), name)(*args, **kwargs)
    return called


def _noted(found: Any, owner: Any) -> Any:
    return found if found is owner else noted(found)       # astype(float, copy=False)
