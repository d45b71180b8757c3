"""`minimize` and `minimize_scalar` of SciPy, with gradients, Hessians and the derivatives of constraints taken from the functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import lazy, tree
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.api.transforms.reverse import grad, value_and_grad
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.scipy.packing import Derived, Packing, as_vector, is_traced_call, number_packing
from bwcompiler.scipy.results import as_result
from bwcompiler.scipy.solutions import COUNT, FLAG, called_back, differentiated_root, elementwise_root, handle, projected

scipy_optimize = lazy.module("scipy.optimize")
linear_operators = lazy.module("scipy.sparse.linalg")

WITHOUT_DERIVATIVES = frozenset(("nelder-mead", "powell", "cobyla", "cobyqa"))
WITH_HESSIANS = frozenset(("dogleg", "trust-exact"))
WITH_PRODUCTS = frozenset(("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"))


def as_arguments(args: Any) -> tuple[Any, ...]:
    """SciPy's `args`: a tuple, or one argument."""
    return args if isinstance(args, tuple) else (args,)


def minimize(fun: Callable[..., Any], x0: Any, args: Any = (), method: Any = None, jac: Any = None, hess: Any = None, hessp: Any = None,
             bounds: Any = None, constraints: Any = (), tol: float | None = None, callback: Any = None, options: Any = None) -> Any:
    """scipy.optimize.minimize of fun(x, *args), whose gradient, and Hessian or its products where the method uses them, come from fun.

    x0           an array of any shape, or a tree of arrays: fun gets such x, and `res.x` and `res.jac` are such.  A number or a list of
                 numbers is an array of one axis, as for SciPy.
    bounds       as for SciPy; for a tree a tree of pairs (lower, upper), or None, in the places of its arrays.
    constraints  dicts and NonlinearConstraints of functions of x, whose derivatives come from them too; LinearConstraints of the vector.
    jac, hess, hessp   given, they are used instead: functions of x, or what else SciPy takes.  Inside of a traced function they come
                 from fun all the same (with jac=True from the first of its results).

    The other arguments go to SciPy as they are.  fun is compiled once for each shape of x0 and args, however often it is minimised; value
    and gradient are one program.  Inside of a traced function the program calls SciPy back, and the derivative of x is that of the
    equation grad fun = 0 (at a bound: of x = bound); this needs an invertible Hessian, and constraints are refused with UnsupportedError.
    Raises DTypeError for complex x0, ShapeError for bounds unlike x0, and what differentiating fun raises.

    >>> import numpy as np, bwcompiler as bw
    >>> rosenbrock = lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    >>> res = bw.scipy.optimize.minimize(rosenbrock, np.zeros(5), method="trust-ncg")
    >>> res.success, res.x.round(4).tolist()
    (True, [1.0, 1.0, 1.0, 1.0, 1.0])
    """
    args = as_arguments(args)
    if is_traced_call():
        if not _is_nothing(constraints):
            raise UnsupportedError("minimize inside of a traced function takes no constraints\n"
                                   "  hint: bounds, or call it outside of traced functions")
        objective = first_result(fun) if jac is True else fun
        return _minimised_in_trace(objective, x0, args, method, bounds, {"tol": tol, "callback": callback, "options": options})
    packing, start = Packing.of(x0)
    derived = Derived.of(fun, packing)
    name = method.lower() if isinstance(method, str) else method
    objective, keywords = _objective(derived, packing, fun, name, jac)
    keywords |= _curvature(derived, packing, name, hess, hessp) if jac is None or hess is not None or hessp is not None else {}
    result = scipy_optimize.minimize(
        objective, start, args, method, bounds=vector_bounds(bounds, packing), tol=tol, callback=_callback(callback, packing),
        constraints=_constraints(constraints, packing, name), options=options, **keywords)
    return _restored(result, packing)


def first_result(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A traced function that returns its derivatives as well, without these."""
    return lambda *args: call_user(fun, args, {})[0]


def _is_nothing(constraints: Any) -> bool:
    return isinstance(constraints, list | tuple) and not constraints


def _objective(derived: Derived, packing: Packing, fun: Any, name: Any, jac: Any) -> tuple[Any, dict[str, Any]]:
    """What SciPy minimises, and its keyword jac."""
    if jac is None:
        return (derived.value, {}) if name in WITHOUT_DERIVATIVES else (derived.value_and_gradient, {"jac": True})
    if jac is True:                                # fun returns both
        def both(x: Any, *args: Any) -> tuple[Any, Any]:
            value, slope = fun(packing.restore(x), *args)
            return value, as_vector(slope)
        return both, {"jac": True}
    return derived.value, {"jac": restoring(jac, packing)}


def _curvature(derived: Derived, packing: Packing, name: Any, hess: Any, hessp: Any) -> dict[str, Any]:
    """SciPy's keywords hess and hessp."""
    if hess is not None or hessp is not None:
        product = hessp if hessp is None else lambda x, p, *args: as_vector(hessp(packing.restore(x), packing.restore(p), *args))
        matrix = (lambda x, *args: hess(packing.restore(x), *args)) if callable(hess) else hess
        return {"hess": matrix, "hessp": product}
    found = {}
    if name in WITH_HESSIANS or callable(name):
        found["hess"] = derived.hessian
    if name in WITH_PRODUCTS or callable(name):
        found["hessp"] = derived.product
    return found


def restoring(function: Any, packing: Packing) -> Any:
    """A function of the tree that returns a tree like it, as one of vectors; other things as they are."""
    if not callable(function):
        return function
    return lambda x, *args: as_vector(function(packing.restore(x), *args))


def _callback(callback: Any, packing: Packing) -> Any:
    """The callback, which gets x as the function does; SciPy tells the kinds of callbacks by their parameters."""
    if callback is None or packing.is_vector:
        return callback
    if set(inspect.signature(callback).parameters) == {"intermediate_result"}:
        def with_result(intermediate_result: Any) -> Any:
            return callback(intermediate_result=_restored(type(intermediate_result)(intermediate_result), packing))
        return with_result
    return lambda x, *more: callback(packing.restore(x), *more)


def _restored(result: Any, packing: Packing) -> Any:
    """SciPy's result with x and the gradient in the tree of x0."""
    if packing.is_vector:
        return result
    for name in ("x", "jac", "grad"):
        if isinstance(result.get(name), np.ndarray) and result[name].shape == (packing.size,):
            result[name] = packing.restore(result[name])
    return result


# ----- bounds
def vector_bounds(bounds: Any, packing: Packing) -> Any:
    """Bounds of the vector, as SciPy takes them."""
    if bounds is None or packing.is_vector or isinstance(bounds, scipy_optimize.Bounds):
        return bounds
    try:
        parts = packing.treedef.flatten_up_to(bounds)
    except ValueError as error:
        raise ShapeError(f"bounds: {error}\n  hint: a tree like x0 with (lower, upper) or None in the place of each array") from None
    lower: list[Any] = []
    upper: list[Any] = []
    for part, shape in zip(parts, packing.shapes, strict=True):
        pair = (None, None) if part is None else part
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ShapeError(f"bounds: {pair!r} is no pair (lower, upper)")
        for given, default, where in zip(pair, (-np.inf, np.inf), (lower, upper), strict=True):
            where.append(np.broadcast_to(np.asarray(default if given is None else given, np.float64), shape))
    return scipy_optimize.Bounds(as_vector(lower), as_vector(upper))


def lower_and_upper(bounds: Any, packing: Packing) -> tuple[Any, Any]:
    """Vectors of bounds."""
    found = vector_bounds(bounds, packing)
    if isinstance(found, scipy_optimize.Bounds):
        pairs = [(found.lb, found.ub)]
    else:
        pairs = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in found]
    low, high = (np.concatenate([np.atleast_1d(pair[k]) for pair in pairs]).astype(np.float64) for k in (0, 1))
    return np.broadcast_to(low, packing.size), np.broadcast_to(high, packing.size)


# ----- constraints
def _constraints(constraints: Any, packing: Packing, name: Any) -> Any:
    if isinstance(constraints, list | tuple):
        return [_constraint(one, packing, name) for one in constraints]
    return _constraint(constraints, packing, name)


def _constraint(constraint: Any, packing: Packing, name: Any) -> Any:
    """A constraint of the vector, with derivatives of its function."""
    if isinstance(constraint, dict):
        if not callable(constraint.get("fun")):
            return constraint                      # SciPy says what is wrong with it
        derived = Derived.of(constraint["fun"], packing)
        jac = constraint.get("jac")
        return {**constraint, "fun": derived.values, "jac": _matrix(jac, packing) if callable(jac) else derived.jacobian}
    if not isinstance(constraint, scipy_optimize.NonlinearConstraint):
        return constraint
    derived = Derived.of(constraint.fun, packing)
    jac = _matrix(constraint.jac, packing) if callable(constraint.jac) else derived.jacobian
    hess = constraint.hess
    if callable(hess):
        hess = lambda x, weights: constraint.hess(packing.restore(x), weights)
    elif name == "trust-constr" and type(hess) is scipy_optimize.BFGS:             # SciPy's default
        hess = _weighted_hessian(derived, packing.size)
    return scipy_optimize.NonlinearConstraint(derived.values, constraint.lb, constraint.ub, jac, hess, constraint.keep_feasible,
                                              constraint.finite_diff_rel_step, constraint.finite_diff_jac_sparsity)


def _matrix(jac: Any, packing: Packing) -> Any:
    return lambda x, *args: jac(packing.restore(x), *args)


def _weighted_hessian(derived: Derived, size: int) -> Callable[..., Any]:
    def operator(x: Any, weights: Any) -> Any:
        return linear_operators.LinearOperator((size, size), lambda p: derived.weighted_product(x, weights, p), dtype=float)
    return operator


# ----- inside of traced functions
def _minimised_in_trace(fun: Any, x0: Any, args: tuple[Any, ...], method: Any, bounds: Any, keywords: dict[str, Any]) -> Any:
    packing, start = Packing.of(x0)
    if any(isinstance(leaf, Tracer) for leaf in tree.leaves(bounds)):
        raise UnsupportedError("minimize inside of a traced function: bounds must be numbers that are known while tracing\n"
                               "  hint: minimise over t with x = lower + t (upper - lower)")

    def objective(x: Any) -> Any:
        found = call_user(fun, (packing.restore(x), *args), {})
        return np.reshape(found, ())

    def solve(function: Any, outside: tuple[Any, ...], start: Any) -> Any:
        result = minimize(function, start, outside, method, bounds=vector_bounds(bounds, packing), **keywords)
        return result.x, result.success, *(np.int64(result.get(name, 0)) for name in ("status", "nit", "nfev"))

    spec = (ShapeDtypeStruct((packing.size,), np.float64), FLAG, COUNT, COUNT, COUNT)
    start = handle(start)
    found, success, *counts = called_back(solve, objective, (start,), spec, start)
    gradient = grad(objective)
    equation = gradient if bounds is None else projected(gradient, *lower_and_upper(bounds, packing))
    x = differentiated_root(equation, found)
    value, slope = value_and_grad(objective)(x)
    return as_result(x=packing.restore(x), fun=value, jac=packing.restore(slope), success=success,
                   **dict(zip(("status", "nit", "nfev"), counts, strict=True)))


def minimize_scalar(fun: Callable[..., Any], bracket: Sequence[float] | None = None, bounds: Sequence[float] | None = None, args: Any = (),
                    method: Any = None, tol: float | None = None, options: Any = None) -> Any:
    """scipy.optimize.minimize_scalar of fun(x, *args) for a number x, compiled.  SciPy's methods use no derivative.

    Inside of a traced function the derivative of x is that of the equation fun'(x) = 0 (at a bound: x does not move).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.optimize.minimize_scalar(lambda x, a: (x - a) ** 2 + np.cos(x), args=(2.0,)).x.round(6).item()
    2.354243
    >>> bw.grad(lambda a: bw.scipy.optimize.minimize_scalar(lambda x: (x - a) ** 2 + np.cos(x)).x)(2.0).round(4).item()
    0.7392
    """
    args = as_arguments(args)
    keywords = {"bracket": bracket, "bounds": bounds, "method": method, "tol": tol, "options": options}
    if not is_traced_call():
        return scipy_optimize.minimize_scalar(Derived.of(fun, number_packing()).value, args=args, **keywords)

    def objective(x: Any) -> Any:
        return call_user(fun, (x, *args), {})

    def solve(function: Any, outside: tuple[Any, ...]) -> Any:
        result = minimize_scalar(function, args=outside, **keywords)
        return np.float64(result.x), np.bool_(result.success), np.int64(result.nit), np.int64(result.nfev)

    number = handle(0.0)
    found, success, iterations, calls = called_back(solve, objective, (number,), (ShapeDtypeStruct((), np.float64), FLAG, COUNT, COUNT))
    slope = grad(objective)
    x = elementwise_root(slope if bounds is None else projected(slope, *bounds), found)
    return as_result(x=x, fun=objective(x), success=success, nit=iterations, nfev=calls)
