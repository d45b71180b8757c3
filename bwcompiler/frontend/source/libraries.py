"""Functions of SciPy in captured code: those of `bwcompiler.scipy` with their names, where arguments are or hold traced values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.vectorized import holds_traced
from bwcompiler.frontend.tracing.operands import is_traced
from bwcompiler.frontend.tracing.registry import LIBRARIES

_SPACES = frozenset(("fft", "integrate", "linalg", "signal", "special", "stats"))


def scipy_twin(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a public function of SciPy's, or of a method of one of its distributions."""
    space = str(getattr(function, "__module__", "")).split(".")[1:2]
    ours = LIBRARIES.get("scipy")
    if not space or space[0] not in _SPACES or ours is None:
        return None
    public, name = sys.modules.get(f"scipy.{space[0]}"), getattr(function, "__name__", "")
    mine = getattr(ours, space[0])
    owner = getattr(function, "__self__", None)
    if owner is None:
        twin = getattr(mine, name, None) if getattr(public, name, None) is function else None
    else:
        distribution = str(getattr(owner, "name", ""))
        twin = getattr(getattr(mine, distribution, None), name, None) if getattr(public, distribution, None) is owner else None
    if twin is None:
        return None

    def chosen(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        ours = any(map(is_traced, given)) or any(callable(arg) and holds_traced(arg) for arg in given)
        return (twin if ours else function)(*args, **kwargs)
    return chosen
