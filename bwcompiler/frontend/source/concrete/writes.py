"""Which of its arguments a NumPy function writes to: outputs (`out=`), and the arrays of functions that only write, such as `np.copyto`.

`places_of` gives a function from the arguments of a call to these arrays, or None if the NumPy function writes to none.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from bwcompiler.frontend.tracing.tracer import Tracer

Places: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], Iterable[Any]]

CHANGING = frozenset((                             # methods of arrays
    "__setitem__", "byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "setflags", "sort"))
_FIRST = {np.copyto: "dst", np.put: "a", np.place: "arr", np.putmask: "a", np.fill_diagonal: "a", np.put_along_axis: "arr"}
_ARRAY_FUNCTION = type(np.copyto)
_NOWHERE = 1 << 30                                 # after all positional arguments
_UNTOLD = {"concatenate": 2, "dot": 2}
_OUTPUT_AT = {"reduce": 3, "accumulate": 3, "reduceat": 4, "outer": _NOWHERE}      # of ufuncs


def places_of(function: Any) -> Places | None:
    """Of what is called; of a method of an array, the array is none of the arguments."""
    owner = getattr(function, "__self__", None)
    if type(owner) is np.ndarray or isinstance(owner, Tracer):
        return _method(owner, function.__name__)
    if isinstance(owner, np.ufunc):
        name = function.__name__
        return _first("a") if name == "at" else _outputs(_OUTPUT_AT[name]) if name in _OUTPUT_AT else None
    if isinstance(function, np.ufunc):
        return _outputs(function.nin, function.nout)
    if not isinstance(function, types.FunctionType | types.BuiltinFunctionType | _ARRAY_FUNCTION):
        return None
    return _of_function(function) if str(function.__module__).startswith("numpy") else None


@functools.cache                                   # of NumPy's alone: others would be kept for ever, and lists by their `append`
def _of_function(function: Any) -> Places | None:
    if function in _FIRST:
        return _first(_FIRST[function])
    if function is np.nan_to_num:
        return lambda args, kwargs: () if kwargs.get("copy", args[1] if len(args) > 1 else True) else _first("x")(args, kwargs)
    position = _output_position(function)
    return None if position is None else _outputs(position)


def _output_position(function: Any) -> int | None:
    """Where `out` is among positional arguments; after all that there may be where it is a keyword only."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):                # functions in machine code, whose signatures not every NumPy tells
        return _UNTOLD.get(getattr(function, "__name__", ""), _NOWHERE)
    if "out" not in parameters:
        return None
    return _NOWHERE if parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY else list(parameters).index("out")


def _method(owner: Any, name: str) -> Places | None:
    if name in CHANGING:
        return lambda args, kwargs: (owner,)
    found = getattr(np, name, None)
    position = None if found is None else _output_position(found)
    return None if position is None else _outputs(position - 1)


def _outputs(position: int, count: int = 1) -> Places:
    """Of functions that have their outputs at that place."""
    def places(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[Any]:
        out = kwargs.get("out")
        return *args[position:position + count], *(out if isinstance(out, tuple) else (out,))
    return places


def _first(name: str) -> Places:
    return lambda args, kwargs: (*args[:1], *([kwargs[name]] if name in kwargs else []))
