"""Integrals of functions: `quad` and `dblquad` of SciPy, which are QUADPACK on the host, of compiled functions; `fixed_quad`.

Inside of a traced function the program calls SciPy back.  The derivative is Leibniz's rule: the integrand at the limits, and the integral
of its derivative by what else it depends on.  That is an integral again, by the same routine, so that it has derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import lazy, tree
from bwcompiler.api.inside.callbacks import pure_callback
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.api.programs.functions import jit
from bwcompiler.api.transforms.implicit import ClosedFunction
from bwcompiler.api.transforms.jacobians import jacobian
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.custom_rules import CustomBoth
from bwcompiler.frontend.tracing.operands import is_tracing
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.scipy.packing import Derived, is_traced_call, number_packing
from bwcompiler.scipy.solutions import handle

scipy_integrate = lazy.module("scipy.integrate")

Function = Callable[..., Any]
IN_TRACES = frozenset(("epsabs", "epsrel", "limit", "points", "limlst", "maxp1"))


def quad(func: Function, a: Any, b: Any, args: Any = (), **keywords: Any) -> Any:
    """scipy.integrate.quad of func(x, *args), compiled: (the integral from a to b, an estimate of its error).

    Inside of a traced function it is differentiated by the limits, by args and by what func reads from outside (Leibniz's rule); func gives
    one real number there, and of the keywords epsabs, epsrel, limit and points are taken.  Raises UnsupportedError for the others.

    >>> import numpy as np, bwcompiler as bw
    >>> round(bw.scipy.integrate.quad(lambda x, k: np.exp(-k * x * x), -np.inf, np.inf, args=(2.0,))[0], 8)
    1.25331414
    >>> bw.grad(lambda k: bw.scipy.integrate.quad(lambda x: np.exp(-k * x), 0.0, np.inf)[0])(2.0).round(8).item()
    -0.25
    """
    args = args if isinstance(args, tuple) else (args,)
    if not is_traced_call():
        return scipy_integrate.quad(Derived.of(func, number_packing()).value, a, b, args, **keywords)
    given = [name for name, value in keywords.items() if name not in IN_TRACES and value]
    if given:
        hints = {"weight": "multiply the integrand by the weight", "complex_func": "integrate real and imaginary part",
                 "full_output": "leave it out"}
        raise UnsupportedError(f"quad inside of a traced function: {given[0]}= is not supported\n  hint: "
                               f"{hints.get(given[0], 'leave it out')}, or call it outside of traced functions")

    def integrand(x: Any) -> Any:
        found = handle(call_user(func, (x, *args), {}))
        if found.size != 1:
            raise ShapeError(f"quad: the integrand gives an array of shape {found.shape}, one number is expected\n"
                             "  hint: bw.vmap over the elements, or bw.scipy.integrate.fixed_quad")
        return np.reshape(found, (1,))

    value, error = _integrals(integrand, a, b, keywords)
    return value[0], error[0]


def dblquad(func: Function, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), epsabs: float = 1.49e-8, epsrel: float = 1.49e-8) -> Any:
    """scipy.integrate.dblquad: the integral of func(y, x, *args) over x from a to b and y from gfun(x) to hfun(x), each also a number.

    As `quad` twice; so inside of traced functions it has derivatives, and the integrand calls itself back from compiled code.

    >>> import numpy as np, bwcompiler as bw
    >>> round(bw.scipy.integrate.dblquad(lambda y, x: x * y, 0.0, 1.0, 0.0, lambda x: 2.0 * x)[0], 8)
    0.5
    """
    options = {"epsabs": epsabs, "epsrel": epsrel}

    def line(x: Any) -> Any:
        low, high = [call_user(end, (x,), {}) if callable(end) else end for end in (gfun, hfun)]
        return quad(lambda y: call_user(func, (y, x, *args), {}), low, high, **options)[0]
    args = args if isinstance(args, tuple) else (args,)
    return quad(line, a, b, **options)


def _integrals(integrand: Function, a: Any, b: Any, keywords: dict[str, Any]) -> Any:
    """(the integrals of a vector of numbers, the estimated errors), with the derivative of the former."""
    closed = ClosedFunction(integrand, handle(0.0))
    places = [one._storage for one in closed.lifted]
    count, size = len(places), tree.leaves(closed.result.outputs)[0].shape[0]

    def at(outside: Sequence[Any], x: Any) -> Any:
        return closed(dict(zip(places, outside, strict=True)), x)

    numbers = jit(at, mutates=False)

    def host(a: Any, b: Any, *outside: Any) -> Any:
        return _on_host(lambda x: numbers(outside, x), size, a, b, keywords)

    def solution(*given: Any) -> Any:
        types = ShapeDtypeStruct((size,), np.float64)
        return pure_callback(host, (types, types), *given[count:], *given[:count])

    def push(primals: Any, tangents: Any) -> Any:
        outside, limits = primals[:count], primals[count:]
        found: Any = function(*primals)
        change = found[0] * 0.0
        for limit, tangent, sign in zip(limits, tangents[count:], (-1.0, 1.0), strict=True):
            for moved in tree.leaves(tangent):
                finite = np.isfinite(limit)
                change = change + np.where(finite, at(outside, np.where(finite, limit, 0.0)) * moved * sign, 0.0)
        for k, tangent in enumerate(tangents[:count]):
            for moved in tree.leaves(tangent):
                slopes = _integrals(_slopes(at, outside, k), limits[0], limits[1], keywords)[0]
                change = change + np.reshape(slopes, (size, -1)) @ np.reshape(moved, (-1,))
        return found, (change, found[1] * 0.0)

    function = CustomBoth(solution, None, None, push)
    return function(*closed.lifted, handle(a), handle(b))


def _slopes(at: Function, outside: Sequence[Any], k: int) -> Function:
    """The derivatives of the integrands by one of the values that they read."""
    def slopes(x: Any) -> Any:
        return np.reshape(jacobian(lambda one: at([*outside[:k], one, *outside[k + 1:]], x))(outside[k]), (-1,))
    return slopes


def _on_host(numbers: Function, size: int, a: Any, b: Any, keywords: dict[str, Any]) -> tuple[Any, Any]:
    """One after the other; they share their points, which are evaluated once."""
    known: dict[float, Any] = {}

    def element(x: float, k: int) -> Any:
        if x not in known:
            known[x] = numbers(x)
        return known[x][k]

    found = [scipy_integrate.quad(element, float(a), float(b), (k,), **keywords)[:2] for k in range(size)]
    value, error = np.reshape(np.array(found, np.float64), (size, 2)).T
    return value, error


def fixed_quad(func: Function, a: Any, b: Any, args: tuple[Any, ...] = (), n: int = 5) -> Any:
    """(the integral of func from a to b by Gauss's method with n points, None); func takes the points as an array.

    >>> import numpy as np, bwcompiler as bw
    >>> float(round(bw.scipy.integrate.fixed_quad(lambda x: x**2, 0.0, 3.0)[0], 8))
    9.0
    """
    points, weights = np.polynomial.legendre.leggauss(n)
    half = (b - a) / 2.0
    given = ((points + 1.0) * half + a, *args)
    return half * np.sum(weights * (call_user(func, given, {}) if is_tracing(given) else func(*given)), axis=-1), None
