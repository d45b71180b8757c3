"""`full_output=True` inside of traced functions: what solvers say of their way to a root, which is counted by SciPy itself.

Texts that data decide are not known while tracing: they refuse to be compared (`results.Untold`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import lazy
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.scipy.packing import Packing
from bwcompiler.scipy.results import Untold
from bwcompiler.scipy.solutions import COUNT, FLAG, NUMBER, called_back, differentiated_root, elementwise_root

scipy_optimize = lazy.module("scipy.optimize")

Function = Callable[..., Any]


def reported(name: str, equation: Function, solve: Function, disp: bool, *operands: Any) -> tuple[Any, Any]:
    """(root, how it was found) of an equation of one number; solve(function, outside, *operands) gives SciPy's two."""
    def host(function: Any, outside: tuple[Any, ...], *operands: Any) -> Any:
        found, told = solve(function, outside, *operands)
        return np.float64(found), np.bool_(told.converged), np.int64(told.iterations), np.int64(told.function_calls)

    found, converged, iterations, calls = called_back(host, equation, (operands[0],), (NUMBER, FLAG, COUNT, COUNT), *operands)
    root = elementwise_root(equation, found)
    return root, scipy_optimize.OptimizeResult(        # with disp, it has raised RuntimeError otherwise
        root=root, iterations=iterations, function_calls=calls, converged=True if disp else converged, method=name,
        flag="converged" if disp else Untold("flag", "result.converged"))


def reported_elementwise(equation: Function, solve: Function, shape: tuple[int, ...], *operands: Any) -> tuple[Any, Any, Any]:
    """(roots, which are, where the slope was zero), as `newton` gives for arrays."""
    def host(function: Any, outside: tuple[Any, ...], *operands: Any) -> Any:
        return tuple(map(np.asarray, solve(function, outside, *operands)))

    flags = ShapeDtypeStruct(shape, np.bool_)
    found, converged, flat = called_back(host, equation, (operands[0],), (ShapeDtypeStruct(shape, np.float64), flags, flags), *operands)
    return elementwise_root(equation, found), converged, flat


def reported_system(packing: Packing, equation: Function, solve: Function, start: Any) -> tuple[Any, dict[str, Any], Any, Any]:
    """(root, what is known of the way to it, whether one was found: 1, a text), as `fsolve` gives."""
    n = packing.size
    shapes = {"fvec": (n,), "fjac": (n, n), "r": (n * (n + 1) // 2,), "qtf": (n,)}

    def host(function: Any, outside: tuple[Any, ...], start: Any) -> Any:
        x, told, flag, _ = solve(function, outside, start)
        return x, np.int64(told["nfev"]), np.int64(flag), tuple([np.asarray(told[name], np.float64) for name in shapes])

    arrays = tuple([ShapeDtypeStruct(shape, np.float64) for shape in ((n,), *shapes.values())])
    found, calls, flag, parts = called_back(host, equation, (start,), (arrays[0], COUNT, COUNT, arrays[1:]), start)
    x = differentiated_root(equation, found)
    told = {"nfev": calls, **dict(zip(shapes, parts, strict=True)), "fvec": equation(x)}
    return packing.restore(x), told, flag, Untold("the message of fsolve", "ier == 1 says whether a root was found")
