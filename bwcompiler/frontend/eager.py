"""Functions of this package (`bw.nn`, `bw.scipy.special`) that work on traced and on plain arrays.

`graph_function` makes one: inside a trace it records; on plain arrays the function is traced and evaluated at once, by
`evaluator`, which the api replaces by the compiled path (`set_evaluator`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.region import active_region
from bwcompiler.frontend.trace import trace
from bwcompiler.frontend.tracer import call
from bwcompiler.ir.graph_interpreter import interpret

OPTIONS = frozenset(("axis", "stride", "padding", "dilation", "kernel_size", "output_padding", "normalized_shape", "dtype"))
Function = TypeVar("Function", bound=Callable[..., Any])
Evaluator = Callable[[Callable[..., Any], dict[str, Any], tuple[str, ...]], Any]


def evaluate_by_reference(fun: Callable[..., Any], arguments: dict[str, Any], static: tuple[str, ...]) -> Any:
    """fun(**arguments) by tracing it and running the NumPy references of its ops."""
    traced = trace(fun, (), arguments, static_argnames=static)
    dynamic = {name: value for name, value in arguments.items() if name not in static}
    leaves = [np.asarray(leaf) for leaf in tree.leaves(dynamic)]
    found = interpret(traced.graph, [*leaves, *traced.captured])
    results = [np.asarray(result)[()] for result in found[:len(traced.outputs)]]
    return tree.unflatten(traced.output_tree, results)


class _Hook:
    evaluator: Evaluator = staticmethod(evaluate_by_reference)


def set_evaluator(evaluator: Evaluator) -> None:
    """How functions on plain arrays are evaluated: evaluator(fun, arguments by name, names of static arguments)."""
    _Hook.evaluator = staticmethod(evaluator)


def graph_function(fun: Function) -> Function:
    """The decorated function records values inside a trace and is evaluated at once outside of any.

    Parameters annotated with anything but Any are options, hence static; so are those named in `OPTIONS`.
    """
    signature = inspect.signature(fun)
    options = OPTIONS.union([parameter.name for parameter in signature.parameters.values() if parameter.annotation != "Any"])

    @functools.wraps(fun)
    def function(*args: Any, **kwargs: Any) -> Any:
        if active_region() is not None:
            return call(fun, *args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        static = tuple([name for name, value in bound.arguments.items() if name in options or not is_array(value)])
        return _Hook.evaluator(function, bound.arguments, static)

    return function  # type: ignore[return-value]


def is_array(value: Any) -> bool:
    """Whether an argument is data, not an option."""
    return isinstance(value, np.ndarray | np.generic | float | list) or hasattr(value, "__array__")
