"""Solvers inside of traced functions: the program calls SciPy back, and what it finds is differentiated by the equation that it solves.

A function that is given here may read traced values from outside.  It is traced once; the values that it reads become operands of the
callback, which compiles the function for itself, with these as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.inside.callbacks import pure_callback
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.api.transforms.implicit import ClosedFunction, custom_root
from bwcompiler.api.transforms.jacobians import jacobian
from bwcompiler.api.transforms.reverse import stop_gradient
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.tracer import Tracer

Function = Callable[..., Any]
NUMBER = ShapeDtypeStruct((), np.float64)
COUNT = ShapeDtypeStruct((), np.int64)
FLAG = ShapeDtypeStruct((), np.bool_)


def called_back(solve: Function, fun: Function, example: Sequence[Any], spec: Any, *operands: Any) -> Any:
    """solve(function, outside, *operands), called by the program, as the types in `spec`; it has no derivative.

    function(*example, *outside) is `fun`, with the traced values that it reads as arguments.
    """
    closed = ClosedFunction(fun, *example)
    places = [handle._storage for handle in closed.lifted]

    def function(*args: Any) -> Any:
        count = len(args) - len(places)
        return closed(dict(zip(places, args[count:], strict=True)), *args[:count])

    def host(operands: tuple[Any, ...], *outside: Any) -> Any:
        return solve(function, outside, *operands)

    return pure_callback(host, spec, *map(_constant, (operands, *closed.lifted)))


def _constant(container: Any) -> Any:
    """What is in it, without derivatives."""
    return tree.map(lambda leaf: stop_gradient(leaf) if isinstance(leaf, Tracer) and leaf.dtype.kind in "fc" else leaf, container)


def differentiated_root(equation: Function, found: Any) -> Any:
    """The root that was found of equation(vector) = 0, whose derivative is that of the equation."""
    return custom_root(equation, found, lambda _, x: x, lambda g, y: np.linalg.solve(jacobian(g)(y), y))


def elementwise_root(equation: Function, found: Any) -> Any:
    """The same of a function of each element by itself, or of one number."""
    return custom_root(equation, found, lambda _, x: x, lambda g, y: y / g(np.ones(y.shape, y.dtype)))


def projected(gradient: Function, lower: Any, upper: Any) -> Function:
    """An equation for a minimum between bounds: where it lies at one, x is that; elsewhere the gradient is zero."""
    def equation(x: Any) -> Any:
        return x - np.minimum(np.maximum(x - gradient(x), lower), upper)
    return equation


def handle(x: Any) -> Any:
    """A traced float of any number or array."""
    return call(as_tracer, x if isinstance(x, Tracer) else np.asarray(x, np.float64))
