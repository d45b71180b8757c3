"""Functions of SciPy in captured code: those of `bwcompiler.scipy` with their names, where arguments are or hold traced values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from bwcompiler import lazy
from bwcompiler.frontend.source.vectorized import holds_traced
from bwcompiler.frontend.tracing.operands import is_traced

bw = lazy.module("bwcompiler")          # what is above this layer: loaded when asked for


def scipy_twin(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a public function or class of SciPy's, of one of its objects, or of a method of one."""
    space = str(getattr(function, "__module__", "")).split(".")[1:2]
    if not space or space[0] not in bw.scipy.__all__:
        return None
    public, mine = sys.modules.get(f"scipy.{space[0]}"), getattr(bw.scipy, space[0])
    name, owner = getattr(function, "__name__", None), getattr(function, "__self__", None)
    if name is None:
        find = _of_object(mine, function, None)
    elif owner is None:
        twin = getattr(mine, name, None) if getattr(public, name, None) is function else None
        find = None if twin is None else lambda: twin
    else:
        find = _of_distribution(public, mine, owner, name) or _of_object(mine, owner, name)
    if find is None:
        return None

    def chosen(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        ours = any(map(is_traced, given)) or any(callable(arg) and holds_traced(arg) for arg in given)
        return (find() if ours else function)(*args, **kwargs)
    return chosen


def _of_distribution(public: Any, mine: Any, owner: Any, name: str) -> Callable[[], Any] | None:
    """How to get the method of the distribution of ours."""
    distribution = str(getattr(owner, "name", ""))
    twin = getattr(getattr(mine, distribution, None), name, None) if getattr(public, distribution, None) is owner else None
    return None if twin is None else lambda: twin


def _of_object(mine: Any, owner: Any, method: str | None) -> Callable[[], Any] | None:
    """How to get the object of ours, or its method, for one of SciPy's that the module `mine` knows how to convert."""
    convert = getattr(mine, "converted", None)
    made = None if convert is None or isinstance(owner, type) else convert(owner)
    if made is None or (method is not None and not hasattr(made, method)):
        return None
    return lambda: made if method is None else getattr(made, method)
