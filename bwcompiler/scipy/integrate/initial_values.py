"""`solve_ivp` of SciPy, for compiled functions, whose Jacobian comes from the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import lazy
from bwcompiler.errors import UnsupportedError
from bwcompiler.scipy.integrate.chosen_steps import ChosenSteps
from bwcompiler.scipy.integrate.ordinary_differential_equations import Control, solution_at
from bwcompiler.scipy.integrate.right_hand_sides import STIFF, returning_array, right_hand_side, slopes
from bwcompiler.scipy.integrate.stiff_equations import stiff_solution
from bwcompiler.scipy.packing import is_traced_call
from bwcompiler.scipy.results import as_result
from bwcompiler.scipy.solutions import handle

scipy_integrate = lazy.module("scipy.integrate")

Function = Callable[..., Any]
EXPLICIT = frozenset(("RK45", "RK23", "DOP853"))
MOST_STEPS = 100_000


def solve_ivp(fun: Function, t_span: Sequence[float], y0: Any, method: Any = "RK45", t_eval: Any = None, dense_output: bool = False,
              events: Any = None, vectorized: bool = False, args: tuple[Any, ...] | None = None, **options: Any) -> Any:
    """scipy.integrate.solve_ivp of fun(t, y, *args), compiled; the Jacobian of "Radau", "BDF" and "LSODA" comes from fun.

    jac   in the options: "sparse" or "dense"; left out: sparse where y0 has more than a few hundred elements and the sparse Jacobian takes
          an eighth of the products at most (`bw.sparse_jacobian`; not for LSODA); a matrix or a function as for SciPy, but for traced
          functions, inside of which it comes from fun.

    Everything else goes to SciPy as it is.  Inside of a traced function it is a native loop with derivatives: for "RK45", "RK23" and
    "DOP853" that of `bw.scipy.integrate.odeint`, for "Radau", "BDF" and "LSODA" an implicit method, both to rtol and atol, with
    first_step and max_step.  There the result has t, y (at t_eval; without it, of the steps only the first and the last: y[:, 0] and
    y[:, -1]), success, status, a message that can be shown and, with dense_output=True, sol(times), which solves again.  Raises
    UnsupportedError there for other steps, events and other options.

    >>> import numpy as np, bwcompiler as bw
    >>> stiff = lambda t, y, k: np.array([y[1], k * (1 - y[0] ** 2) * y[1] - y[0]])
    >>> res = bw.scipy.integrate.solve_ivp(stiff, (0.0, 100.0), [2.0, 0.0], "BDF", args=(100.0,))
    >>> res.success, bool(res.nfev < 1000)
    (True, True)
    """
    args = args or ()
    if is_traced_call():
        return _solved_in_trace(fun, t_span, y0, method, t_eval, dense_output, args, {"events": events, **options})
    y0 = np.asarray(y0)
    jac = options.pop("jac", None)
    if y0.dtype.kind != "c" and (jac is None or (isinstance(jac, str) and jac in ("sparse", "dense"))):
        jac = slopes(fun, jac, method, t_span[0], y0.astype(np.float64), args)
    if jac is not None:
        options["jac"] = jac
    return scipy_integrate.solve_ivp(right_hand_side(fun), t_span, y0, method, t_eval, dense_output, events, vectorized, args, **options)


def _solved_in_trace(fun: Function, t_span: Sequence[Any], y0: Any, method: Any, t_eval: Any, dense_output: bool, args: tuple[Any, ...],
                     options: dict[str, Any]) -> Any:
    control = Control(options.pop("rtol", 1e-3), options.pop("atol", 1e-6), MOST_STEPS, options.pop("max_step", np.inf),
                      options.pop("first_step", None))
    options.pop("jac", None)                       # it comes from fun
    _refuse(method, options)
    start, end = map(handle, t_span)
    function, y0 = returning_array(fun), handle(_stacked(y0))
    if y0.dtype.kind == "c":
        function, y0, whole = _in_parts(function, y0)
    else:
        whole = lambda found: found

    def at(times: Any) -> Any:
        times = np.concatenate([np.reshape(start, (1,)), times])
        if method in STIFF:
            return whole(stiff_solution(lambda t, y: function(t, y, *args), y0, times, control)[1:].T)
        return whole(solution_at(lambda y, t: function(t, y, *args), y0, times, control)[1:].T)

    def sol(t: Any) -> Any:
        times = np.reshape(handle(_stacked(t)), (-1,))
        order = np.argsort(np.where(end < start, -times, times))
        found = at(times[order])[:, np.argsort(order)]
        return found if np.ndim(t) else found[:, 0]

    times = np.reshape(end, (1,)) if t_eval is None else handle(_stacked(t_eval))
    found = at(times)
    success = np.all(np.isfinite(found))
    result = as_result(t=times, y=found, sol=sol if dense_output else None, t_events=None, y_events=None, status=np.where(success, 0, -1),
                       success=success)
    if t_eval is None:
        result.t, result.y = ChosenSteps(start, end), ChosenSteps(whole(y0), found[:, 0])
    return result


def _in_parts(function: Function, y0: Any) -> tuple[Function, Any, Callable[[Any], Any]]:
    """An equation of complex numbers as one of their real parts and then their imaginary parts, and the way back."""
    size = y0.shape[0]

    def whole(parts: Any) -> Any:
        return parts[:size] + 1j * parts[size:]

    def parts(t: Any, y: Any, *args: Any) -> Any:
        found = function(t, whole(y), *args)
        return np.concatenate([np.real(found), np.imag(found)])

    return parts, np.concatenate([y0.real, y0.imag]), whole


def _refuse(method: Any, options: dict[str, Any]) -> None:
    """What traced functions do not take."""
    hints = {"events": "the time of an event is a root, which has derivatives too: bw.scipy.optimize.brentq(lambda t: event(t, "
                       "solve_ivp(fun, (t0, t), y0).y[:, -1]), low, high)"}
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise UnsupportedError(f"solve_ivp inside of a traced function: {given[0]}= is not supported\n  hint: "
                               f"{hints.get(given[0], 'leave it out: the steps are controlled by rtol and atol')}")
    if not isinstance(method, str) or method not in EXPLICIT | STIFF:
        raise UnsupportedError(f"solve_ivp inside of a traced function: method={method!r} is not supported\n  hint: method='RK45', "
                               "method='BDF' for stiff equations, or call it outside of traced functions")


def _stacked(x: Any) -> Any:
    return np.stack(list(map(handle, x))) if isinstance(x, list | tuple) else x
