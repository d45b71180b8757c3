"""Of `bw.scipy.linalg`: linear equations in matrices, and the algebraic Riccati equations.

`sylvester` is what all of them, and the derivatives of matrix functions, are solved by.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from bwcompiler import lazy
from bwcompiler.api.inside.callbacks import pure_callback
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.api.transforms.reverse import custom_jvp, custom_vjp
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.operands import as_tracer, cast, number_value
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.linalg.batches import over_batches

scipy_linalg = lazy.module("scipy.linalg")

MOST_UNKNOWNS = 64                     # of an equation that is solved as one linear system; larger ones by Schur forms, through SciPy


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return np.conj(np.swapaxes(x, -1, -2))


def _solved(a: Any, b: Any, q: Any) -> Any:
    n, m = q.shape
    if n * m <= MOST_UNKNOWNS or importlib.util.find_spec("scipy") is None:
        system = np.kron(a, np.eye(m, dtype=a.dtype)) + np.kron(np.eye(n, dtype=a.dtype), b.T)
        return np.linalg.solve(system, q.reshape(n * m)).reshape(n, m)
    return pure_callback(_by_schur, ShapeDtypeStruct((n, m), q.dtype), a, b, q)


def _by_schur(a: Any, b: Any, q: Any) -> Any:
    """Bartels and Stewart (1972)."""
    found = scipy_linalg.solve_sylvester(a, b, q)
    if not np.all(np.isfinite(found)):
        raise np.linalg.LinAlgError("Matrices a and -b have common or close eigenvalues.")
    return found.astype(q.dtype, copy=False)


@custom_vjp
def sylvester(a: Any, b: Any, q: Any) -> Any:
    """x with a x + x b = q, of matrices of one dtype."""
    return _solved(a, b, q)


def _sylvester_backward(saved: Any, ct: Any) -> Any:
    a, b, x = saved
    y = sylvester(a.T, b.T, ct)                                          # aᵀ y + y bᵀ = ct
    return -(y @ x.T), -(x.T @ y), y


def _sylvester_forward(a: Any, b: Any, q: Any) -> Any:
    x = sylvester(a, b, q)
    return x, (a, b, x)


sylvester.defvjp(_sylvester_forward, _sylvester_backward)


def matrices(name: str, *given: Any) -> list[Any]:
    """Arguments of two axes, as float or complex arrays of one dtype."""
    values = [number_value(one) for one in given]
    dtype = common_dtype(tuple([one.dtype for one in values]))
    found: list[Any] = [fresh(cast(one, dtype)) for one in values]
    if any(one.ndim != 2 for one in found):
        raise ShapeError(f"{name}: shapes {', '.join(str(one.shape) for one in found)}; needs matrices")
    return found


def _require(fits: bool, name: str, *given: Any) -> None:
    if not fits:
        raise ShapeError(f"{name}: shapes {', '.join(str(one.shape) for one in given)} do not fit")


@over_batches(a=2, b=2, q=2)
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """x with a x + x b = q.

    Of up to 64 unknowns it is one linear system, of more LAPACK's Schur forms through SciPy (dense where there is none).  The derivative
    solves the transposed equation.  Raises ShapeError if these do not fit, LinAlgError if a and -b have a common eigenvalue.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_sylvester(np.eye(2), np.eye(2), np.full((2, 2), 4.0)).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    left, right, known = matrices("solve_sylvester", a, b, q)
    square = left.shape[0] == left.shape[1] and right.shape[0] == right.shape[1]
    _require(square and known.shape == (left.shape[0], right.shape[0]), "solve_sylvester", left, right, known)
    return sylvester(left, right, known) if known.size else known + 0.0


@over_batches(a=2, q=2)
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """x with a x + x aᴴ = q; see `solve_sylvester`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_continuous_lyapunov(np.eye(1), np.array([[4.0]])).tolist()
    [[2.0]]
    """
    left, known = matrices("solve_continuous_lyapunov", a, q)
    _require(left.shape == known.shape and left.shape[0] == left.shape[1], "solve_continuous_lyapunov", left, known)
    return sylvester(left, adjoint(left), known)


def solve_lyapunov(a: Any, q: Any) -> Any:
    """`solve_continuous_lyapunov`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_lyapunov(np.eye(1), np.array([[4.0]])).tolist()
    [[2.0]]
    """
    return solve_continuous_lyapunov(a, q)


@over_batches(a=2, q=2)
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Any:
    """x with a x aᴴ - x + q = 0: as one linear system ("direct", of up to 64 unknowns), or by a bilinear transformation.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_discrete_lyapunov(np.array([[0.5]]), np.array([[3.0]])).tolist()
    [[4.0]]
    """
    left, known = matrices("solve_discrete_lyapunov", a, q)
    _require(left.shape == known.shape and left.shape[0] == left.shape[1], "solve_discrete_lyapunov", left, known)
    if method not in (None, "direct", "bilinear"):
        raise ValueError(f"Unknown solver {method}")
    n = left.shape[0]
    if method == "direct" or (method is None and n * n <= MOST_UNKNOWNS):
        system = np.eye(n * n, dtype=left.dtype) - np.kron(left, np.conj(left))
        return np.linalg.solve(system, known.reshape(n * n)).reshape(n, n)
    one, turned = np.eye(n, dtype=left.dtype), adjoint(left)
    inverse = np.linalg.inv(turned + one)
    moved = (turned - one) @ inverse                                       # the equation moved x + x movedᴴ turned over
    return sylvester(adjoint(moved), moved, -2.0 * np.linalg.solve(left + one, known) @ inverse)


# ----- Riccati equations: SciPy's solution, and the implicit derivative at it
def _refuse_generalised(name: str, e: Any, s: Any, balanced: bool) -> None:
    if e is not None or s is not None or not balanced:
        raise UnsupportedError(f"{name} of traced matrices: e=, s= and balanced=False are not supported\n"
                               "  hint: bring the equation to its standard form first")


def _by_scipy(name: str, a: Any, b: Any, q: Any, r: Any) -> Any:
    def solve(a: Any, b: Any, q: Any, r: Any) -> Any:
        return getattr(scipy_linalg, name)(a, b, q, r).astype(q.dtype, copy=False)

    return pure_callback(solve, ShapeDtypeStruct(q.shape, q.dtype), a, b, q, r)


@custom_jvp
def _continuous(a: Any, b: Any, q: Any, r: Any) -> Any:
    return _by_scipy("solve_continuous_are", a, b, q, r)


def _continuous_jvp(primals: Any, tangents: Any) -> Any:
    # With K = R⁻¹ Bᴴ X and C = A - B K the equation is Cᴴ X + X C + Kᴴ R K + Q = 0, stationary in K: Cᴴ dX + dX C + its change = 0
    (a, b, q, r), (da, db, dq, dr) = primals, tangents
    x = _continuous(a, b, q, r)
    gain = np.linalg.solve(r, adjoint(b) @ x)
    closed, change = a - b @ gain, da - db @ gain
    moved = adjoint(change) @ x + x @ change + adjoint(gain) @ dr @ gain + dq
    return x, sylvester(adjoint(closed), closed, -moved)


_continuous.defjvp(_continuous_jvp)


@custom_jvp
def _discrete(a: Any, b: Any, q: Any, r: Any) -> Any:
    return _by_scipy("solve_discrete_are", a, b, q, r)


def _discrete_jvp(primals: Any, tangents: Any) -> Any:
    # With K = (R + Bᴴ X B)⁻¹ Bᴴ X A and C = A - B K it is X = Cᴴ X C + Kᴴ R K + Q, stationary in K: dX - Cᴴ dX C = its change
    (a, b, q, r), (da, db, dq, dr) = primals, tangents
    x = _discrete(a, b, q, r)
    gain = np.linalg.solve(r + adjoint(b) @ x @ b, adjoint(b) @ x @ a)
    closed, change = a - b @ gain, da - db @ gain
    moved = adjoint(change) @ x @ closed + adjoint(closed) @ x @ change + adjoint(gain) @ dr @ gain + dq
    return x, solve_discrete_lyapunov(adjoint(closed), moved)


_discrete.defjvp(_discrete_jvp)


@over_batches(a=2, b=2, q=2, r=2, e=2, s=2)
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    """x with aᴴ x + x a - x b r⁻¹ bᴴ x + q = 0, the stabilising one, by SciPy; q and r are symmetric (Hermitian).

    The derivative is implicit: one Lyapunov equation of the closed loop.  Raises LinAlgError if there is no such x, UnsupportedError for
    the generalised equation (e=, s=).

    >>> import numpy as np, bwcompiler as bw
    >>> one = np.array([[1.0]])
    >>> float(bw.scipy.linalg.solve_continuous_are(0 * one, one, one, one)[0, 0].round(9))
    1.0
    """
    _refuse_generalised("solve_continuous_are", e, s, balanced)
    return _continuous(*_of_system("solve_continuous_are", a, b, q, r))


@over_batches(a=2, b=2, q=2, r=2, e=2, s=2)
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    """x with aᴴ x a - x - aᴴ x b (r + bᴴ x b)⁻¹ bᴴ x a + q = 0, the stabilising one; see `solve_continuous_are`.

    >>> import numpy as np, bwcompiler as bw
    >>> one = np.array([[1.0]])
    >>> float(bw.scipy.linalg.solve_discrete_are(one, one, one, one)[0, 0].round(6))
    1.618034
    """
    _refuse_generalised("solve_discrete_are", e, s, balanced)
    return _discrete(*_of_system("solve_discrete_are", a, b, q, r))


def _of_system(name: str, a: Any, b: Any, q: Any, r: Any) -> list[Any]:
    found = matrices(name, *[np.atleast_2d(as_tracer(one)) for one in (a, b, q, r)])
    (n, m), given = found[1].shape, found
    _require(given[0].shape == (n, n) and given[2].shape == (n, n) and given[3].shape == (m, m), name, *given)
    return found
