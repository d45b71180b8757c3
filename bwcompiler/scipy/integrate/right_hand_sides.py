"""Right-hand sides of differential equations, compiled, and their Jacobians, for SciPy's integrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import lazy
from bwcompiler.api.programs.functions import jit
from bwcompiler.api.programs.kept import made_of
from bwcompiler.api.sparse.derivatives import sparse_jacobian
from bwcompiler.api.transforms.jacobians import jacobian
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.trace import call_user

scipy_integrate = lazy.module("scipy.integrate")

Function = Callable[..., Any]
STIFF = frozenset(("Radau", "BDF", "LSODA"))
LARGE = 1 << 16                # elements of a Jacobian from which a sparse one is looked for
SAVING = 8                     # how many times fewer products it must take


def right_hand_side(fun: Function) -> Function:
    """fun, compiled, once."""
    return made_of(fun, "right-hand side", lambda: jit(returning_array(fun), mutates=False))  # type: ignore[no-any-return]


def returning_array(fun: Function) -> Function:
    """fun, which may return a list of numbers."""
    def right_hand_side(t: Any, y: Any, *args: Any) -> Any:
        found = call_user(fun, (t, y, *args), {})
        return np.stack(found) if isinstance(found, list | tuple) else found
    return right_hand_side


def slopes(fun: Function, chosen: str | None, method: Any, start: float, y0: Any, args: tuple[Any, ...]) -> Any:
    """The Jacobian by y, for methods that use it."""
    name = method if isinstance(method, str) else getattr(method, "__name__", "")
    if name not in STIFF:
        return None
    slope = returning_array(fun)
    if chosen != "dense" and name != "LSODA" and (chosen == "sparse" or y0.size**2 >= LARGE):
        sparse = made_of(fun, "sparse Jacobian", lambda: sparse_jacobian(slope, 1))
        if chosen == "sparse" or _pays(sparse, start, y0, args):
            return sparse
    return made_of(fun, "Jacobian", lambda: jacobian(slope, 1))


def _pays(sparse: Any, start: float, y0: Any, args: tuple[Any, ...]) -> bool:
    try:
        return bool(sparse.products(start, y0, *args) * SAVING <= y0.size)
    except UnsupportedError:                       # the pattern is all but full
        return False


def lsoda(func: Function, y0: Any, t: Any, args: tuple[Any, ...], dfun: Any, options: dict[str, Any]) -> Any:
    """scipy.integrate.odeint of the compiled function, with its derivative by y."""
    places = (1, 0) if options.get("tfirst") else (0, 1)
    if dfun is None or dfun is True:
        slope = made_of(func, ("Jacobian", places[0]), lambda: jacobian(returning_array(func), places[0]))
        columns = options.get("col_deriv")
        dfun = (lambda *given: slope(*given).T) if columns else slope
    return scipy_integrate.odeint(right_hand_side(func), y0, t, args, dfun, **options)
