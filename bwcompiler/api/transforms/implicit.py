"""Implicit differentiation: custom_linear_solve and custom_root, whose derivatives do not go through the iterations of a solver.

Their function arguments may read traced values from outside.  Each is traced once, and these values become operands of one custom
function, whose derivative rules use the traced graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.api.transforms.forward import jvp
from bwcompiler.api.transforms.reverse import stop_gradient, vjp
from bwcompiler.errors import GradientError, ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.custom_rules import CustomBoth
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import is_tracing, value_as
from bwcompiler.frontend.tracing.policy import MovesWithData
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.trace import call_user, trace
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import Affine, Index
from bwcompiler.ir.graph import Graph, all_values, inline
from bwcompiler.ir.types import TensorType


class ClosedFunction:
    """Closure conversion: a traced function whose reads of outer traced values (`lifted`) are explicit operands."""

    def __init__(self, fun: Callable[..., Any], *example: Any) -> None:
        self.result = trace(fun, example)
        self.lifted: list[Tracer] = self.result.lifted
        if self.result.assigned:
            raise UnsupportedError(f"{self.result.graph.name} assigns to an array from outside of it")
        _require_no_indices(self.result.graph)

    def __call__(self, outside: dict[Any, Any], *args: Any) -> Any:
        """The outputs, with the handles `outside` (by storage) in place of the outer values."""
        region = open_region()
        operands = [*tree.leaves(args), *[outside[handle._storage] for handle in self.lifted]]
        values = [value_of(one) if isinstance(one, Tracer) else value_as(one) for one in operands]
        found = inline(self.result.graph, [*values, *map(region.capture, self.result.captured)])
        return tree.unflatten(self.result.output_tree, [fresh(value) for value in found[:len(self.result.outputs)]])


def _require_no_indices(graph: Graph) -> None:
    """Indices of loops around are unknown where rules of derivatives and callbacks call a function: then they are data."""
    policy = open_region().policy
    if policy is None:
        return
    loops = [scope.loop for scope in policy.scopes if scope.loop is not None and scope.loop.index is not None]
    mentioned = _indices_of(graph) if loops else set()
    sites = [loop.site for loop in loops if loop.index in mentioned and loop.site not in policy.by_data]
    if sites:
        raise MovesWithData(sites)


def _indices_of(graph: Graph) -> set[Index]:
    """The indices that the places and sizes in a function mention."""
    found: set[Index] = set()
    pending: list[Any] = [[value.attrs, value.type.shape if isinstance(value.type, TensorType) else ()] for value in all_values(graph)]
    while pending:
        one = pending.pop()
        if isinstance(one, Affine):
            found.update([index for index, _ in one.terms])
        elif isinstance(one, list | tuple):
            pending += one
        elif isinstance(one, Mapping):
            pending += one.values()
    return found


def _outside(*closed: ClosedFunction | None) -> tuple[list[Tracer], Callable[[Sequence[Any]], dict[Any, Any]]]:
    """The handles that any of the functions reads, once each; and how arguments that begin with them are given to the functions."""
    found = {handle._storage: handle for one in closed if one is not None for handle in one.lifted}
    return list(found.values()), lambda args: dict(zip(found, args, strict=False))


def _require_like(found: Any, expected: Any, what: str) -> None:
    types = [[(np.shape(leaf), np.dtype(leaf.dtype)) for leaf in tree.leaves(part)] for part in (found, expected)]
    if tree.structure(found) != tree.structure(expected) or types[0] != types[1]:
        raise ShapeError(f"{what}; got {types[0]}, expected {types[1]}")


@shows_users_frames
def custom_linear_solve(matvec: Callable[[Any], Any], b: Any, solve: Callable[[Callable[..., Any], Any], Any],
                        transpose_solve: Callable[[Callable[..., Any], Any], Any] | None = None, symmetric: bool = False) -> Any:
    """The solution x of matvec(x) = b, computed by solve(matvec, b); derivatives solve linear equations too (jax.lax.custom_linear_solve).

    matvec           a linear function of a tree like b; it may read traced values from outside, which also get derivatives.
    solve            solve(matvec, b) -> x; any traced code, such as a loop with `bw.while_loop`.
    transpose_solve  transpose_solve(vecmat, ct) -> x, for reverse mode; symmetric=True: matvec is its own transpose, and solve is used.

    x has the tree, shapes and dtypes of b.  The rules: A dx = db - dA x, and Aᵀ u = ct for the cotangent of b (Giles, "Collected matrix
    derivative results", 2008).  Raises GradientError in reverse mode with neither transpose_solve nor symmetric=True, ShapeError if
    solve returns a tree or shapes unlike b.

    >>> import numpy as np, bwcompiler as bw
    >>> def x_of(d, b):
    ...     return bw.custom_linear_solve(lambda x: d * x, b, lambda matvec, b: b / d, symmetric=True)
    >>> bw.grad(lambda d: np.sum(x_of(d, np.ones(2))))(np.array([1.0, 2.0])).tolist()
    [-1.0, -0.25]
    """
    if not is_tracing(b):
        return solve(matvec, b)
    product = ClosedFunction(matvec, b)
    solver = ClosedFunction(lambda b: call_user(solve, (matvec, b), {}), b)
    transposed = solver if symmetric else None
    if transpose_solve is not None:
        transposed = ClosedFunction(lambda ct: call_user(transpose_solve, (lambda y: vjp(matvec, b)[1](y)[0], ct), {}), b)
    handles, at = _outside(product, solver, transposed)
    count = len(handles)

    def solution(*args: Any) -> Any:
        x = solver(at(args), args[count])
        _require_like(x, args[count], "custom_linear_solve: solve must return an x like b")
        return x

    def fwd(*args: Any) -> Any:
        x = function(*args)
        return x, (args[:count], x)

    def bwd(residuals: Any, ct: Any) -> Any:
        outside, x = residuals
        if transposed is None:
            raise GradientError("custom_linear_solve: reverse mode needs transpose_solve=, or symmetric=True where matvec is its own "
                                "transpose")
        u = transposed(at(outside), ct)
        pullback = vjp(lambda *outside: product(at(outside), x), *outside)[1]
        return *pullback(tree.map(lambda leaf: -leaf, u)), u

    def push(primals: Any, tangents: Any) -> Any:
        x = function(*primals)
        change = tangents[count]
        if any(tree.leaves(tangent) for tangent in tangents[:count]):
            moved = jvp(lambda *outside: product(at(outside), x), primals[:count], tangents[:count])[1]
            change = tree.map(lambda one, two: one - two, change, moved)
        return x, solver(at(primals), change)

    function = CustomBoth(solution, fwd, bwd, push)
    return function(*handles, b)


@shows_users_frames
def custom_root(f: Callable[[Any], Any], initial_guess: Any, solve: Callable[[Callable[..., Any], Any], Any],
                tangent_solve: Callable[[Callable[..., Any], Any], Any]) -> Any:
    """A root x of f, computed by solve(f, initial_guess); differentiated by the implicit function theorem (jax.lax.custom_root).

    f              may read traced values from outside, with respect to which x has derivatives; f(x) has the shapes and dtypes of x.
    solve          solve(f, initial_guess) -> x; any traced code.  Its derivative is never taken.
    tangent_solve  tangent_solve(g, y) -> v with g(v) = y for a linear g: `lambda g, y: y / g(1.0)` for numbers,
                   `lambda g, y: np.linalg.solve(bw.jacobian(g)(y), y)` for vectors.  Reverse mode transposes it: it is linear in y.

    The rule: J dx = -df, where J is the Jacobian of f at x.  Raises ShapeError if f(x) or x has another tree or shape than the initial
    guess.

    >>> import numpy as np, bwcompiler as bw
    >>> def root(a):
    ...     newton = lambda f, x: bw.fori_loop(0, 8, lambda k, x: x - f(x) / (2 * x), x)
    ...     return bw.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> bw.jit(root)(2.0).round(6).item(), bw.grad(root)(2.0).round(6).item()
    (1.414214, 0.353553)
    """
    if not is_tracing(initial_guess):
        return solve(f, initial_guess)
    guess = tree.map(lambda leaf: leaf if isinstance(leaf, Tracer) else fresh(value_as(leaf)), initial_guess)
    function_of = ClosedFunction(f, guess)
    solver = ClosedFunction(lambda guess: call_user(solve, (f, guess), {}), guess)
    handles, at = _outside(function_of, solver)
    count = len(handles)

    def solution(*args: Any) -> Any:
        x = solver(at(args), args[count])
        _require_like(x, args[count], "custom_root: solve must return an x like the initial guess")
        _require_like(function_of(at(args), x), x, "custom_root: f(x) must be like x")
        return x

    def push(primals: Any, tangents: Any) -> Any:
        x = function(*primals)
        if not any(tree.leaves(tangent) for tangent in tangents[:count]):
            return x, tree.map(lambda leaf: leaf * 0.0, x)
        moved = jvp(lambda *outside: function_of(at(outside), x), primals[:count], tangents[:count])[1]
        linear = lambda v: jvp(lambda x: function_of(at(primals), x), (x,), (v,))[1]
        return x, call_user(tangent_solve, (linear, tree.map(lambda leaf: -leaf, moved)), {})

    def fwd(*args: Any) -> Any:
        x = function(*args)
        return x, (args[:count], args[count], x)

    def bwd(residuals: Any, ct: Any) -> Any:
        """By the derivatives of what the user gave, which may be loops: they are not transposed after the fact, as `push` would be."""
        outside, guess, x = residuals
        linear = lambda v: jvp(lambda x: function_of(at(outside), x), (x,), (v,))[1]
        zeros = tree.map(lambda leaf: leaf * 0.0, x)
        u = vjp(lambda y: call_user(tangent_solve, (linear, y), {}), zeros)[1](ct)[0]
        pullback = vjp(lambda *outside: function_of(at(outside), x), *outside)[1]
        return *pullback(tree.map(lambda leaf: -leaf, u)), tree.map(lambda leaf: leaf * 0.0, guess)

    function = CustomBoth(solution, fwd, bwd, push)
    return function(*handles, stop_gradient(guess))
