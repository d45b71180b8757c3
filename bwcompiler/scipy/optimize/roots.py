"""`root`, `fsolve`, `root_scalar`, `newton`, `brentq` ... of SciPy, with Jacobians and slopes taken from the functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import lazy
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.api.programs.functions import jit
from bwcompiler.api.programs.kept import made_of
from bwcompiler.api.transforms.forward import jvp
from bwcompiler.api.transforms.implicit import custom_root
from bwcompiler.api.transforms.reverse import value_and_grad
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.scipy.optimize.brackets import bisection, brent
from bwcompiler.scipy.optimize.minimizers import as_arguments, first_result
from bwcompiler.scipy.optimize.reports import reported, reported_elementwise, reported_system
from bwcompiler.scipy.packing import Derived, Packing, as_vector, is_traced_call, number_packing
from bwcompiler.scipy.results import as_result
from bwcompiler.scipy.solutions import COUNT, FLAG, NUMBER, called_back, differentiated_root, elementwise_root, handle

scipy_optimize = lazy.module("scipy.optimize")

Function = Callable[..., Any]
WITH_JACOBIANS = frozenset(("hybr", "lm"))


def root(fun: Function, x0: Any, args: Any = (), method: str = "hybr", jac: Any = None, tol: float | None = None, callback: Any = None,
         options: Any = None) -> Any:
    """scipy.optimize.root of fun(x, *args), an array or tree with as many elements as x, whose Jacobian comes from fun.

    x0 and `res.x` as for `minimize`; `res.fun` is a vector.  Methods other than "hybr" and "lm" use no Jacobian.  Inside of a traced
    function the program calls SciPy back, and the derivative of x is that of the equation; this needs an invertible Jacobian, which is
    fun's, also where jac is given.  Raises what differentiating fun raises.

    >>> import numpy as np, bwcompiler as bw
    >>> circle = lambda x, r: np.array([x[0] ** 2 + x[1] ** 2 - r ** 2, x[0] - x[1]])
    >>> bw.scipy.optimize.root(circle, [1.0, 2.0], args=(2.0,)).x.round(6).tolist()
    [1.414214, 1.414214]
    >>> bw.grad(lambda r: bw.scipy.optimize.root(circle, [1.0, 2.0], args=(r,)).x[0])(2.0).round(6).item()
    0.707107
    """
    args = as_arguments(args)
    packing, start = Packing.of(x0)
    keywords = {"tol": tol, "callback": callback, "options": options}
    if is_traced_call():
        return _root_in_trace(first_result(fun) if jac is True else fun, packing, start, args, method, keywords)
    derived = Derived.of(fun, packing)
    if jac is None and method in WITH_JACOBIANS:
        keywords["jac"] = derived.jacobian
    elif jac is not None:
        keywords["jac"] = (lambda x, *args: jac(packing.restore(x), *args)) if callable(jac) else jac
    if callback is not None and not packing.is_vector:
        keywords["callback"] = lambda x, f: callback(packing.restore(x), f)
    function = derived.values if jac is not True else lambda x, *args: fun(packing.restore(x), *args)
    result = scipy_optimize.root(function, start, args, method, **keywords)
    if not packing.is_vector:
        result.x = packing.restore(result.x)
    return result


def _root_in_trace(fun: Function, packing: Packing, start: Any, args: tuple[Any, ...], method: str, keywords: dict[str, Any]) -> Any:
    def equation(x: Any) -> Any:
        return as_vector(call_user(fun, (packing.restore(x), *args), {}))

    def solve(function: Any, outside: tuple[Any, ...], start: Any) -> Any:
        result = root(function, start, outside, method, **keywords)
        return result.x, np.bool_(result.success), np.int64(result.get("nfev", 0))

    start = handle(start)
    found, success, calls = called_back(solve, equation, (start,), (ShapeDtypeStruct((packing.size,), np.float64), FLAG, COUNT), start)
    x = differentiated_root(equation, found)
    return as_result(x=packing.restore(x), fun=equation(x), success=success, nfev=calls)


def fsolve(func: Function, x0: Any, args: Any = (), fprime: Any = None, full_output: bool = False, col_deriv: bool = False,
           **keywords: Any) -> Any:
    """scipy.optimize.fsolve of func(x, *args), as many values as x has elements, whose Jacobian comes from func: the root, or a tuple.

    x0 is an array, which func gets with one axis, or a tree, and so is the root.  Other keywords go to SciPy as they are.  Inside of a
    traced function the derivative of the root is that of the equation, which needs an invertible Jacobian, func's own; of full_output
    the text is not known there, and what fjac, r and qtf hold has no derivatives.  Raises what differentiating func raises.

    >>> import numpy as np, bwcompiler as bw
    >>> circle = lambda x, r: [x[0] ** 2 + x[1] ** 2 - r ** 2, x[0] - x[1]]
    >>> bw.scipy.optimize.fsolve(circle, [1.0, 2.0], args=(2.0,)).round(6).tolist()
    [1.414214, 1.414214]
    >>> bw.grad(lambda r: bw.scipy.optimize.fsolve(circle, [1.0, 2.0], args=(r,))[0])(2.0).round(6).item()
    0.707107
    """
    args = as_arguments(args)
    packing, start = Packing.of(np.ravel(x0) if isinstance(x0, np.ndarray | Tracer) else x0)
    if is_traced_call():
        keywords = {**keywords, "full_output": full_output, "fprime": fprime}
        return _fsolve_in_trace(func, packing, start, args, keywords)
    derived = Derived.of(func, packing)
    slopes = derived.jacobian if fprime is None else lambda x, *args: fprime(packing.restore(x), *args)
    found = scipy_optimize.fsolve(derived.values, start, args, slopes, full_output, col_deriv and fprime is not None, **keywords)
    x, *rest = found if full_output else (found,)
    return (packing.restore(x), *rest) if full_output else packing.restore(x)


def _fsolve_in_trace(func: Function, packing: Packing, start: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    def equation(x: Any) -> Any:
        return as_vector(call_user(func, (packing.restore(x), *args), {}))

    full_output, fprime = keywords.pop("full_output"), keywords.pop("fprime")

    def solve(function: Any, outside: tuple[Any, ...], start: Any) -> Any:
        if full_output and fprime is None:         # as many calls as without derivatives
            return scipy_optimize.fsolve(jit(function), start, outside, full_output=True, **keywords)
        return fsolve(function, start, outside, full_output=full_output, **keywords)

    start = handle(start)
    if full_output:
        return reported_system(packing, equation, solve, start)
    found = called_back(solve, equation, (start,), ShapeDtypeStruct((packing.size,), np.float64), start)
    return packing.restore(differentiated_root(equation, found))


def fixed_point(func: Function, x0: Any, args: Any = (), xtol: float = 1e-08, maxiter: int = 500, method: str = "del2") -> Any:
    """scipy.optimize.fixed_point of func(x, *args), a number or array: x with func(x) = x.

    Inside of a traced function the derivative is that of this equation, which needs an invertible Jacobian.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.optimize.fixed_point(lambda x, a: np.sqrt(a * x), 1.0, args=(4.0,)).round(6).item()
    4.0
    >>> bw.grad(lambda a: bw.scipy.optimize.fixed_point(lambda x: np.sqrt(a * x), 1.0))(4.0).round(6).item()
    1.0
    """
    args = as_arguments(args)
    if not is_traced_call():
        return scipy_optimize.fixed_point(jit(func, mutates=False), x0, args, xtol, maxiter, method)
    start = handle(x0)

    def moved(x: Any) -> Any:
        return call_user(func, (x, *args), {})

    def solve(function: Any, outside: tuple[Any, ...], start: Any) -> Any:
        return np.asarray(scipy_optimize.fixed_point(jit(function), start, outside, xtol, maxiter, method), np.float64)

    found = called_back(solve, moved, (start,), ShapeDtypeStruct(start.shape, np.float64), start)
    if not start.ndim:
        return elementwise_root(lambda x: moved(x) - x, found)
    return differentiated_root(lambda x: np.ravel(moved(np.reshape(x, start.shape))) - x, np.ravel(found)).reshape(start.shape)


# ----- of one number
def _slopes(f: Function) -> Function:
    """(f(x), its slope), compiled, made once for a function."""
    number = Derived.of(f, number_packing()).scalar_valued
    return made_of(f, "value and slope", lambda: value_and_grad(number))  # type: ignore[no-any-return]


def root_scalar(f: Function, args: Any = (), method: str | None = None, bracket: Sequence[float] | None = None, fprime: Any = None,
                fprime2: Any = None, x0: float | None = None, x1: float | None = None, xtol: float | None = None,
                rtol: float | None = None, maxiter: int | None = None, options: Any = None) -> Any:
    """scipy.optimize.root_scalar of f(x, *args); where the method uses the slope (from x0 alone, or method="newton"), it comes from f.

    method="halley" gets the second derivative as well.  Inside of a traced function the derivative of `root` is that of the equation, and
    the method's come from f, also where fprime and fprime2 are given.

    >>> import numpy as np, bwcompiler as bw
    >>> res = bw.scipy.optimize.root_scalar(lambda x, a: x**3 - a, args=(8.0,), x0=1.0)
    >>> res.method, float(res.root), bw.grad(lambda a: bw.scipy.optimize.root_scalar(lambda x: x**3 - a, x0=1.0).root)(8.0).round(6).item()
    ('newton', 2.0, 0.083333)
    """
    args = as_arguments(args)
    keywords: dict[str, Any] = {"method": method, "bracket": bracket, "x0": x0, "x1": x1, "xtol": xtol, "rtol": rtol, "maxiter": maxiter,
                                "options": options}
    if is_traced_call():
        if method is None and bracket is None and fprime:              # as SciPy chooses
            keywords["method"] = "halley" if fprime2 else "newton"
        return _root_scalar_in_trace(first_result(f) if fprime is True else f, args, keywords)
    function: Any = Derived.of(f, number_packing()).value
    name = method.lower() if method is not None else "newton" if x0 is not None and x1 is None and bracket is None else None
    if fprime is None and name in ("newton", "halley"):
        function, fprime, keywords["method"] = _slopes(f), True, name
        if name == "halley" and fprime2 is None:
            fprime2 = _second(f)
            fprime, function = _first(f), Derived.of(f, number_packing()).value
    elif fprime is True:                           # f returns both
        function = f
    return scipy_optimize.root_scalar(function, args, fprime=fprime, fprime2=fprime2, **keywords)


def _root_scalar_in_trace(f: Function, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    def equation(x: Any) -> Any:
        return call_user(f, (x, *args), {})

    places = {name: keywords.pop(name) for name in ("bracket", "x0", "x1")}
    given = {name: place for name, place in places.items() if place is not None}

    def solve(function: Any, outside: tuple[Any, ...], *places: Any) -> Any:
        moving: Any = {name: np.asarray(place).tolist() for name, place in zip(given, places, strict=True)}
        result = root_scalar(function, outside, **moving, **keywords)
        return np.float64(result.root), np.bool_(result.converged), np.int64(result.iterations), np.int64(result.function_calls)

    operands = [np.stack([handle(end) for end in place]) if name == "bracket" else handle(place) for name, place in given.items()]
    found, converged, iterations, calls = called_back(solve, equation, (handle(0.0),), (NUMBER, FLAG, COUNT, COUNT), *operands)
    return scipy_optimize.OptimizeResult(root=elementwise_root(equation, found), converged=converged, iterations=iterations,
                                         function_calls=calls)


def _without(name: str, **options: Any) -> None:
    for option, value in options.items():
        if value is not None and value is not False:
            raise UnsupportedError(f"{name} inside of a traced function: {option}= is not supported\n  hint: leave it out")


def _first(f: Function) -> Function:
    """f's derivative, element by element: the tangent along ones."""
    def first(x: Any, *args: Any) -> Any:
        return jvp(lambda x: call_user(f, (x, *args), {}), (x,), (np.ones_like(x),))[1]
    return made_of(f, "first derivative", lambda: jit(functools.update_wrapper(first, f, updated=()), mutates=False))  # type: ignore[no-any-return]


def _second(f: Function) -> Function:
    def second(x: Any, *args: Any) -> Any:
        slope = lambda x: jvp(lambda x: call_user(f, (x, *args), {}), (x,), (np.ones_like(x),))[1]
        return jvp(slope, (x,), (np.ones_like(x),))[1]
    return made_of(f, "second derivative", lambda: jit(functools.update_wrapper(second, f, updated=()), mutates=False))  # type: ignore[no-any-return]


def newton(func: Function, x0: Any, fprime: Any = None, args: Any = (), tol: float = 1.48e-08, maxiter: int = 50, fprime2: Any = None,
           x1: Any = None, rtol: float = 0.0, full_output: bool = False, disp: bool = True) -> Any:
    """scipy.optimize.newton of func(x, *args), whose slope comes from func; with x1 the secant method, with fprime2=True Halley's.

    x0 may be an array: each element is a problem by itself.  Inside of a traced function the derivative is that of the equation, and the
    method's come from func, also where fprime and fprime2 are given.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.optimize.newton(lambda x, a: x**2 - a, np.ones(3), args=(np.array([1.0, 4.0, 9.0]),)).tolist()
    [1.0, 2.0, 3.0]
    """
    args = as_arguments(args)
    keywords: dict[str, Any] = {"tol": tol, "maxiter": maxiter, "rtol": rtol, "disp": disp}
    if is_traced_call():
        _without("newton", x1=x1)
        keywords["fprime2"] = None if fprime2 is None else True
        return _newton_in_trace(func, x0, args, keywords, is_secant=fprime is None and full_output, full_output=full_output)
    if fprime is None and x1 is None:
        fprime = _first(func)
    if fprime2 is True:
        fprime2 = _second(func)
    start = np.asarray(x0, np.float64) if np.ndim(x0) else x0
    function = made_of(func, "elementwise", lambda: jit(func, mutates=False))
    return scipy_optimize.newton(function, start, fprime, args, fprime2=fprime2, x1=x1, full_output=full_output, **keywords)


def _newton_in_trace(func: Function, x0: Any, args: tuple[Any, ...], keywords: dict[str, Any], is_secant: bool, full_output: bool) -> Any:
    start = handle(x0)

    def equation(x: Any) -> Any:
        return call_user(func, (x, *args), {})

    def solve(function: Any, outside: tuple[Any, ...], start: Any) -> Any:
        place = start if start.ndim else float(start)
        if is_secant:                              # as many steps as without derivatives
            return scipy_optimize.newton(jit(function), place, args=outside, full_output=True, **keywords)
        return newton(function, place, args=outside, full_output=full_output, **keywords)

    if full_output:
        return reported_elementwise(equation, solve, start.shape, start) if start.ndim else reported(
            "newton" if not is_secant else "secant", equation, solve, keywords["disp"], start)
    found = called_back(lambda *given: np.asarray(solve(*given), np.float64), equation, (start,),
                        ShapeDtypeStruct(start.shape, np.float64), start)
    return elementwise_root(equation, found)


NATIVE = {"brentq": brent, "bisect": bisection}


def _tangent(g: Function, y: Any) -> Any:
    return y / g(np.ones(y.shape, y.dtype))


def _bracketing(name: str) -> Function:
    """A method that finds a root between two places, without derivatives."""
    def between(f: Function, a: Any, b: Any, args: Any = (), **keywords: Any) -> Any:
        args = as_arguments(args)
        if not is_traced_call():
            return getattr(scipy_optimize, name)(Derived.of(f, number_packing()).value, a, b, args, **keywords)
        full_output = keywords.pop("full_output", False)

        def equation(x: Any) -> Any:
            return call_user(f, (x, *args), {})

        if name in NATIVE and not full_output:
            solver = NATIVE[name]
            return custom_root(equation, handle(0.0), lambda equation, _: solver(equation, handle(a), handle(b), **keywords), _tangent)

        def solve(function: Any, outside: tuple[Any, ...], a: Any, b: Any) -> Any:
            return between(function, float(a), float(b), outside, full_output=full_output, **keywords)

        if full_output:
            return reported(name, equation, solve, keywords.get("disp", True), handle(a), handle(b))
        found = called_back(lambda *given: np.float64(solve(*given)), equation, (handle(a),), NUMBER, handle(a), handle(b))
        return elementwise_root(equation, found)

    between.__name__ = between.__qualname__ = name
    between.__doc__ = f"""scipy.optimize.{name} of f(x, *args), compiled: a root between a and b, where f has different signs.

    Keywords as SciPy's.  Inside of a traced function the derivative of the root is that of the equation f(x, *args) = 0.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.grad(lambda a: bw.scipy.optimize.{name}(lambda x: x**3 - a, 0.0, 10.0))(8.0).round(6).item()
    0.083333
    """
    return between


bisect, brenth, brentq, ridder, toms748 = map(_bracketing, ("bisect", "brenth", "brentq", "ridder", "toms748"))
