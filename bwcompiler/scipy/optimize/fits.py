"""`least_squares` and `curve_fit` of SciPy, with Jacobians, dense or sparse, taken from the functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bwcompiler import lazy, tree
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.api.programs.functions import jit
from bwcompiler.api.programs.kept import made_of
from bwcompiler.api.transforms.jacobians import jacobian
from bwcompiler.api.transforms.reverse import grad
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.boundary.arguments import parameter_names
from bwcompiler.frontend.tracing.trace import call_user
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.scipy.optimize.minimizers import as_arguments, lower_and_upper
from bwcompiler.scipy.packing import Derived, Packing, as_vector, is_traced_call
from bwcompiler.scipy.results import as_result
from bwcompiler.scipy.solutions import COUNT, FLAG, called_back, differentiated_root, handle, projected

scipy_optimize = lazy.module("scipy.optimize")

Function = Callable[..., Any]
LARGE = 1 << 20                # elements of a Jacobian from which a sparse one is looked for
SAVING = 8                     # how many times fewer products it must take

LOSSES: dict[str, Function] = {                    # of z = (residual / f_scale)², as SciPy's
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
    "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.where(z <= 1, 1.0, z)) - 1),
    "cauchy": lambda z: np.log1p(z),
    "arctan": lambda z: np.arctan(z),
}


def least_squares(fun: Function, x0: Any, jac: Any = None, bounds: Any = (-np.inf, np.inf), method: str = "trf", *, args: Any = (),
                  kwargs: Mapping[str, Any] | None = None, loss: Any = "linear", f_scale: float = 1.0, **keywords: Any) -> Any:
    """scipy.optimize.least_squares of fun(x, *args, **kwargs), an array or tree of residuals, whose Jacobian comes from fun.

    x0      and `res.x` as for `minimize`.
    jac     "sparse" or "dense"; None: sparse where the dense one has a million elements or more and the sparse one takes an eighth of its
            products at most (`bw.sparse_jacobian`); methods "trf" and "dogbox" take it.  A function or "2-point" ... as for SciPy,
            but for traced functions, inside of which it comes from fun.
    bounds  (lower, upper), numbers or trees like x0; or scipy.optimize.Bounds.

    Other keywords go to SciPy as they are.  Inside of a traced function the program calls SciPy back, and the derivative of x is that of
    the condition for a minimum, with every loss that has a name.  Raises what differentiating fun raises.

    >>> import numpy as np, bwcompiler as bw
    >>> t = np.linspace(0.0, 1.0, 9)
    >>> decay = lambda p, y: p["scale"] * np.exp(-p["rate"] * t) - y
    >>> res = bw.scipy.optimize.least_squares(decay, {"scale": 1.0, "rate": 1.0}, args=(3.0 * np.exp(-0.5 * t),))
    >>> {name: float(value.round(6)) for name, value in res.x.items()}
    {'scale': 3.0, 'rate': 0.5}
    """
    args = as_arguments(args)
    packing, start = Packing.of(x0)
    function = fun
    if kwargs:
        function, args = made_of(fun, "with keywords", lambda: _with_keywords(fun)), (*args, dict(kwargs))
    places = bounds if isinstance(bounds, scipy_optimize.Bounds) else tuple(
        [packing.broadcast(end, "bounds") if _is_tree(end, packing) else end for end in bounds])
    options = {"method": method, "loss": loss, "f_scale": f_scale, **keywords}
    if is_traced_call():
        return _fitted_in_trace(function, packing, start, args, places, jac, options)
    derived = Derived.of(function, packing)
    if jac is None or jac in ("sparse", "dense"):
        jac = _jacobian(derived, jac, start, args, method)
    elif callable(jac):
        own = jac
        slopes = _with_keywords(own) if kwargs else own
        jac = lambda x, *args: slopes(packing.restore(x), *args)
    result = scipy_optimize.least_squares(derived.values, start, jac, places, args=args, **options)
    if not packing.is_vector:
        result.x = packing.restore(result.x)
    return result


def _is_tree(end: Any, packing: Packing) -> bool:
    return not packing.is_vector and not np.isscalar(end)


def _with_keywords(fun: Function) -> Function:
    """fun, whose keyword arguments are a dict behind the others."""
    def function(*args: Any) -> Any:
        *rest, given = args
        return call_user(fun, rest, given) if is_traced_call() else fun(*rest, **given)
    return function


def _jacobian(derived: Derived, chosen: str | None, start: Any, args: tuple[Any, ...], method: str) -> Any:
    """The Jacobian that SciPy gets."""
    if chosen == "sparse":
        return derived.sparse_jacobian
    if chosen is None and method != "lm" and start.size * start.size >= LARGE // SAVING:
        values = derived.values(start, *args)
        if values.size * start.size >= LARGE and _pays(derived.sparse_jacobian, start, args, values.size):
            return derived.sparse_jacobian
    return derived.jacobian


def _pays(jacobian: Any, start: Any, args: tuple[Any, ...], rows: int) -> bool:
    try:
        return bool(jacobian.products(start, *args) * SAVING <= min(rows, start.size))
    except UnsupportedError:                       # the pattern is all but full
        return False


def _fitted_in_trace(fun: Function, packing: Packing, start: Any, args: tuple[Any, ...], bounds: Any, jac: Any,
                     options: dict[str, Any]) -> Any:
    loss, f_scale = options["loss"], options["f_scale"]
    if callable(loss):
        raise UnsupportedError("least_squares inside of a traced function takes no function for loss\n"
                               f"  hint: the losses {', '.join(LOSSES)} have derivatives")
    own = None if callable(jac) or jac not in ("sparse", "dense") else jac                     # others come from fun as well

    def residuals(x: Any) -> Any:
        return as_vector(call_user(fun, (packing.restore(x), *args), {}))

    def cost(x: Any) -> Any:
        return 0.5 * np.sum(f_scale**2 * LOSSES[loss]((residuals(x) / f_scale) ** 2))

    def solve(function: Any, outside: tuple[Any, ...], start: Any) -> Any:
        result = least_squares(function, start, own, bounds, args=outside, **options)
        return result.x, np.bool_(result.success), np.int64(result.status), np.int64(result.nfev)

    start = handle(start)
    spec = (ShapeDtypeStruct((packing.size,), np.float64), FLAG, COUNT, COUNT)
    found, success, status, calls = called_back(solve, residuals, (start,), spec, start)
    pair = bounds if isinstance(bounds, scipy_optimize.Bounds) else scipy_optimize.Bounds(*bounds)
    bounded = bool(np.isfinite(pair.lb).any() or np.isfinite(pair.ub).any())
    gradient = grad(cost)
    x = differentiated_root(projected(gradient, *lower_and_upper(pair, packing)) if bounded else gradient, found)
    return as_result(x=packing.restore(x), cost=cost(x), fun=residuals(x), success=success, status=status, nfev=calls)


def curve_fit(f: Function, xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, absolute_sigma: bool = False,
              check_finite: bool | None = None, bounds: Any = (-np.inf, np.inf), method: str | None = None, jac: Any = None,
              **keywords: Any) -> Any:
    """scipy.optimize.curve_fit of f(xdata, *parameters), whose Jacobian comes from f: (parameters, their covariance).

    Arguments and keywords as SciPy's.  Inside of a traced function parameters and covariance have derivatives with respect to xdata,
    ydata, sigma (one axis) and what f reads from outside, those of the condition for a minimum; of the keywords maxfev alone is taken
    there, others are refused with UnsupportedError.

    >>> import numpy as np, bwcompiler as bw
    >>> x = np.linspace(0.0, 1.0, 9)
    >>> found, covariance = bw.scipy.optimize.curve_fit(lambda x, a, b: a * np.exp(-b * x), x, 3.0 * np.exp(-0.5 * x))
    >>> found.round(6).tolist(), covariance.shape
    ([3.0, 0.5], (2, 2))
    """
    count = len(parameter_names(f)) - 1 if p0 is None else np.size(p0)
    if is_traced_call():
        if keywords.keys() - {"maxfev"}:
            raise UnsupportedError(f"curve_fit inside of a traced function: {', '.join(keywords)} cannot be given\n"
                                   "  hint: least_squares, which takes more keywords")
        ends = (bounds.lb, bounds.ub) if isinstance(bounds, scipy_optimize.Bounds) else bounds
        pair = scipy_optimize.Bounds(*[np.broadcast_to(end, count) for end in ends])
        start = _inside(pair) if p0 is None else p0
        return _curve_in_trace(f, xdata, ydata, start, sigma, absolute_sigma, pair, keywords.get("maxfev"))
    if jac is None:
        jac = made_of(f, ("curve_fit", count), lambda: _by_parameters(f, count))
    compiled = made_of(f, "compiled", lambda: jit(f, mutates=False))
    return scipy_optimize.curve_fit(compiled, xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds, method, jac,
                                    **keywords)


def _inside(bounds: Any) -> Any:
    """Where SciPy begins: 1, between two bounds in the middle, else 1 from the one that there is."""
    low, high = bounds.lb, bounds.ub
    below, above = np.isfinite(low), np.isfinite(high)
    start = np.where(below, low + 1.0, np.where(above, high - 1.0, 1.0))
    return np.where(below & above, 0.5 * (np.where(below, low, 0.0) + np.where(above, high, 0.0)), start)


def _by_parameters(f: Function, count: int) -> Function:
    """(xdata, *parameters) -> the Jacobian by the parameters, a column for each."""
    def of(parameters: Any, xdata: Any) -> Any:
        return np.ravel(call_user(f, (xdata, *[parameters[k] for k in range(count)]), {}))

    compiled = jacobian(of)
    return lambda xdata, *parameters: compiled(np.array(parameters, np.float64), xdata)


def _curve_in_trace(f: Function, xdata: Any, ydata: Any, p0: Any, sigma: Any, absolute_sigma: bool, bounds: Any, calls: Any) -> Any:
    if sigma is not None and np.ndim(sigma) > 1:
        raise UnsupportedError("curve_fit inside of a traced function: sigma must have one axis\n  hint: least_squares of L⁻¹ (f - y), "
                               "with the Cholesky factor L of the covariance")
    count = int(np.size(p0))

    def residuals(parameters: Any) -> Any:
        found = np.ravel(call_user(f, (xdata, *[parameters[k] for k in range(count)]), {})) - np.ravel(ydata)
        return found if sigma is None else found / sigma

    start = p0 if isinstance(p0, Tracer) else np.asarray(p0, np.float64)
    free = bool(np.isinf(bounds.lb).all() and np.isinf(bounds.ub).all())
    result = least_squares(residuals, start, bounds=bounds, method="lm" if free and np.size(ydata) >= count else "trf", max_nfev=calls)
    slopes = jacobian(residuals)(result.x)
    covariance = np.linalg.inv(slopes.T @ slopes)
    if not absolute_sigma:
        rows = tree.leaves(result.fun)[0].shape[0]
        covariance = covariance * (2 * result.cost / (rows - count)) if rows > count else np.full((count, count), np.inf)
    return result.x, covariance
