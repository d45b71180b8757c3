"""Functions of SciPy in captured code: the one of `bwcompiler.scipy` with the same name where an argument is traced."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from bwcompiler import lazy
from bwcompiler.frontend.tracing.operands import is_traced

bw = lazy.module("bwcompiler")          # what is above this layer: loaded when asked for


def scipy_twin(function: Any) -> Callable[..., Any] | None:
    """What is called in the place of a public function of SciPy's, or of a method of one of its distributions."""
    space = str(getattr(function, "__module__", "")).split(".")[1:2]
    if not space or space[0] not in bw.scipy.__all__:
        return None
    public, name = sys.modules.get(f"scipy.{space[0]}"), getattr(function, "__name__", "")
    mine = getattr(bw.scipy, space[0])
    owner = getattr(function, "__self__", None)
    if owner is None:
        twin = getattr(mine, name, None) if getattr(public, name, None) is function else None
    else:
        distribution = str(getattr(owner, "name", ""))
        twin = getattr(getattr(mine, distribution, None), name, None) if getattr(public, distribution, None) is owner else None
    if twin is None:
        return None

    def chosen(*args: Any, **kwargs: Any) -> Any:
        return (twin if any(map(_is_traced, (*args, *kwargs.values()))) else function)(*args, **kwargs)
    return chosen


def _is_traced(argument: Any) -> bool:
    """Whether an argument is traced, or a function that closes over what is."""
    if is_traced(argument):
        return True
    return isinstance(argument, types.FunctionType) and any(is_traced(value) for value in map(_content, argument.__closure__ or ()))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:                             # a variable without a value yet
        return None
