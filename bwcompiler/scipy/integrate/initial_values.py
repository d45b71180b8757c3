"""`solve_ivp` and `quad` of SciPy, for compiled functions, whose Jacobian comes from the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import lazy
from bwcompiler.errors import UnsupportedError
from bwcompiler.scipy.integrate.ordinary_differential_equations import solution_at
from bwcompiler.scipy.integrate.right_hand_sides import returning_array, right_hand_side, slopes
from bwcompiler.scipy.packing import Derived, is_traced_call, number_packing
from bwcompiler.scipy.solutions import handle

scipy_optimize = lazy.module("scipy.optimize")
scipy_integrate = lazy.module("scipy.integrate")

Function = Callable[..., Any]
MOST_STEPS = 100_000


def solve_ivp(fun: Function, t_span: Sequence[float], y0: Any, method: Any = "RK45", t_eval: Any = None, dense_output: bool = False,
              events: Any = None, vectorized: bool = False, args: tuple[Any, ...] | None = None, **options: Any) -> Any:
    """scipy.integrate.solve_ivp of fun(t, y, *args), compiled; the Jacobian of "Radau", "BDF" and "LSODA" comes from fun.

    jac   in the options: "sparse" or "dense"; left out: sparse where y0 has more than a few hundred elements and the sparse Jacobian takes
          an eighth of the products at most (`bw.sparse_jacobian`; not for LSODA); a matrix or a function as for SciPy.

    Everything else goes to SciPy as it is.  Inside of a traced function: method "RK45" with t_eval (or no t_eval: the solution at the end
    of t_span alone), the loop of `bw.scipy.integrate.odeint`, with its derivatives; events, dense_output and other methods are refused
    with UnsupportedError.

    >>> import numpy as np, bwcompiler as bw
    >>> stiff = lambda t, y, k: np.array([y[1], k * (1 - y[0] ** 2) * y[1] - y[0]])
    >>> res = bw.scipy.integrate.solve_ivp(stiff, (0.0, 100.0), [2.0, 0.0], "BDF", args=(100.0,))
    >>> res.success, bool(res.nfev < 1000)
    (True, True)
    """
    args = args or ()
    if is_traced_call():
        return _solved_in_trace(fun, t_span, y0, method, t_eval, args, {"dense_output": dense_output, "events": events, **options})
    y0 = np.asarray(y0)
    jac = options.pop("jac", None)
    if y0.dtype.kind != "c" and (jac is None or (isinstance(jac, str) and jac in ("sparse", "dense"))):
        jac = slopes(fun, jac, method, t_span[0], y0.astype(np.float64), args)
    if jac is not None:
        options["jac"] = jac
    return scipy_integrate.solve_ivp(right_hand_side(fun), t_span, y0, method, t_eval, dense_output, events, vectorized, args, **options)


def _solved_in_trace(fun: Function, t_span: Sequence[Any], y0: Any, method: Any, t_eval: Any, args: tuple[Any, ...],
                     options: dict[str, Any]) -> Any:
    rtol, atol = options.pop("rtol", 1e-3), options.pop("atol", 1e-6)
    given = [name for name, value in options.items() if value is not None and value is not False]
    if method != "RK45" or given:
        what = f"method={method!r}" if method != "RK45" else f"{given[0]}="
        raise UnsupportedError(f"solve_ivp inside of a traced function: {what} is not supported\n  hint: method='RK45' with t_eval, or "
                               "call it outside of traced functions")
    start, end = t_span
    times = [end] if t_eval is None else t_eval
    times = np.stack(list(map(handle, times))) if isinstance(times, list | tuple) else handle(times)
    function = returning_array(fun)
    times = np.concatenate([np.reshape(handle(start), (1,)), times])
    found = solution_at(lambda y, t: function(t, y, *args), handle(y0), times, rtol, atol, MOST_STEPS)
    return scipy_optimize.OptimizeResult(t=times[1:], y=found[1:].T)


def quad(func: Function, a: Any, b: Any, args: Any = (), **keywords: Any) -> Any:
    """scipy.integrate.quad of func(x, *args), compiled.

    Raises UnsupportedError inside of traced functions, where `fixed_quad` is the one to use.

    >>> import numpy as np, bwcompiler as bw
    >>> round(bw.scipy.integrate.quad(lambda x, k: np.exp(-k * x * x), -np.inf, np.inf, args=(2.0,))[0], 8)
    1.25331414
    """
    if is_traced_call():
        raise UnsupportedError("quad inside of a traced function: which points it takes depends on data\n"
                               "  hint: bw.scipy.integrate.fixed_quad(func, a, b, n=50)")
    args = args if isinstance(args, tuple) else (args,)
    return scipy_integrate.quad(Derived.of(func, number_packing()).value, a, b, args, **keywords)
