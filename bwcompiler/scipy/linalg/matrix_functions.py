"""Of `bw.scipy.linalg`: functions of matrices: the exponential, square roots, logarithms, powers, and what is made of them.

Their derivatives are those of Fréchet: of the exponential through its formula, of roots by a Sylvester equation, of the rest through these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.inside.loops import while_loop
from bwcompiler.api.transforms.reverse import custom_jvp
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import cast, number_value
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.linalg.batches import over_batches
from bwcompiler.scipy.linalg.matrix_equations import adjoint, matrices, sylvester

# Numerator coefficients of the Padé approximant of order 13 of exp, and the 1-norm up to which it is exact to rounding
# (N. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005).
PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0,
    670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)
PADE_LIMIT = 5.371920351148152


@graph_function
def expm(A: Any, max_squarings: int = 16) -> Any:
    """The matrix exponential, by a Padé approximant of order 13 of A / 2ˢ, squared s times.

    s is found from the norm; where it would exceed max_squarings (norms of 350,000 by default) the result is nan.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.expm(np.array([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    a: Any = fresh(number_value(A))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"expm: the last two axes of A of shape {a.shape} must be square")
    if not a.size:
        return a + 0.0
    norm = np.max(np.sum(np.abs(a), -2), -1)[..., None, None]
    times: Any = np.maximum(0.0, np.ceil(np.log2(np.where(norm > PADE_LIMIT, norm / PADE_LIMIT, 1.0))))
    times = fresh(ops.stop_gradient(value_of(times)))
    x = a * np.exp2(-times)
    identity = np.eye(a.shape[-1], dtype=a.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    b = PADE
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * identity)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * identity
    result: Any = np.linalg.solve(even - odd, even + odd)
    for k in range(max_squarings):
        result = np.where(k < times, result @ result, result)
    return np.where(times <= max_squarings, result, math.nan)


def _square_root(a: Any) -> Any:
    """The product form of the Denman-Beavers iteration with scaling by determinants (Higham, "Functions of Matrices", 2008, eq. 6.29)."""
    n = a.shape[-1]
    identity = np.eye(n, dtype=a.dtype)
    enough = n * float(np.finfo(a.dtype).eps)

    def go_on(state: Any) -> Any:
        _, m, count = state
        return (count < 40) & np.any(np.abs(m - identity) > enough)

    def step(state: Any) -> Any:
        x, m, count = state
        scale = np.exp(np.linalg.slogdet(m)[1] / (-2 * n))
        inverse = np.linalg.inv(m) / (scale * scale)
        return 0.5 * scale * (x + x @ inverse), 0.5 * (identity + 0.5 * (scale * scale * m + inverse)), count + 1

    return while_loop(go_on, step, (a, a, 0))[0]


@custom_jvp
def _root(a: Any) -> Any:
    return _square_root(a)


def _root_jvp(primals: Any, tangents: Any) -> Any:
    (a,), (change,) = primals, tangents
    found = _root(a)
    return found, sylvester(found, found, change)                          # X dX + dX X = dA


_root.defjvp(_root_jvp)


@over_batches(A=2)
def sqrtm(A: Any) -> Any:
    """The principal square root; of real matrices real, without eigenvalues on the negative real axis.

    By Newton's method; a ValueError if a real matrix has no such root (SciPy gives complex numbers then: make the matrix complex
    before).  The derivative needs a matrix without opposite eigenvalues of the root.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.sqrtm(np.array([[4.0, 0.0], [0.0, 9.0]])).round(8).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    a: Any = fresh(number_value(A))
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"sqrtm: A must be a square matrix, got shape {a.shape}")
    if not a.size:
        return a + 0.0
    turn = _turn(a)
    return _sure_root("sqrtm", a) if turn is None else _sure_root("sqrtm", a * np.exp(-1j * turn)) * np.exp(0.5j * turn)


def _sure_root(name: str, a: Any) -> Any:
    """The root, if Newton's method found one."""
    found = _root(a)
    enough = math.sqrt(np.finfo(a.dtype).eps) * a.shape[0] * np.max(np.abs(found)) ** 2
    _require_found(name, np.max(np.abs(found @ found - a)) <= enough, a)
    return found


def _require_found(name: str, found: Any, a: Any) -> None:
    """Raises at run time for a finite matrix of which there is no result of its dtype."""
    failing = np.isfinite(np.sum(np.abs(a))) & np.logical_not(found)
    HANDLERS["raise_where"](failing, ValueError(
        f"{name}: the matrix is singular, or has eigenvalues on the negative real axis, for which the result is complex\n"
        f"  hint: {name}(A.astype(complex)), if it is regular"))


# ----- logarithms and powers
# ‖A^(1/2^s) - I‖₁ up to which the Padé approximant of order 7 of log is exact to rounding (Al-Mohy and Higham, 2012, table 2.1).
LOGARITHM_LIMIT = 2.64e-1
MOST_ROOTS = 40


@over_batches(A=2)
def logm(A: Any) -> Any:
    """The principal logarithm of a regular matrix; of real matrices real, without eigenvalues on the negative real axis.

    By square roots until the matrix is near the identity, and a Padé approximant in partial fractions.  Where a real matrix has a complex
    logarithm, ValueError or LinAlgError (SciPy gives complex numbers then: make the matrix complex before).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.logm(np.array([[np.e, 0.0], [0.0, 1.0]])).round(9).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    a = _square("logm", A)
    return _principal_logarithm("logm", a) if a.size else a + 0.0


def _principal_logarithm(name: str, a: Any) -> Any:
    turn = _turn(a)
    if turn is None:
        return _logarithm(name, a)
    return _logarithm(name, a * np.exp(-1j * turn)) + 1j * turn * np.eye(a.shape[0], dtype=a.dtype)


def _turn(a: Any) -> Any:
    """The angle by which the eigenvalues of a complex matrix are turned away from the negative real axis, where roots and logarithms jump:
    the middle of their angles, among which -π counts as π; None for real matrices."""
    if a.dtype.kind != "c":
        return None
    finite = np.isfinite(np.sum(np.abs(a)))
    angles = np.angle(np.linalg.eigvals(np.where(finite, fresh(ops.stop_gradient(value_of(a))), np.eye(a.shape[0], dtype=a.dtype))))
    angles = np.where(angles < 1e3 * np.finfo(a.dtype).eps - math.pi, math.pi, angles).astype(angles.dtype)
    return 0.5 * (np.max(angles) + np.min(angles))


def _square(name: str, given: Any) -> Any:
    a: Any = fresh(number_value(given))
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"{name}: the matrix must be square, got shape {a.shape}")
    return a


def _logarithm(name: str, a: Any) -> Any:
    identity = np.eye(a.shape[0], dtype=a.dtype)

    def far(state: Any) -> Any:
        root, count = state
        return (count < MOST_ROOTS) & (np.max(np.sum(np.abs(root - identity), 0)) > LOGARITHM_LIMIT)

    root, count = while_loop(far, lambda state: (_root(state[0]), state[1] + 1), (_sure_root(name, a), 1))
    rest, total = root - identity, np.zeros_like(a)
    for point, weight in zip(*np.polynomial.legendre.leggauss(7), strict=True):          # ∫ (A - I) (I + t (A - I))⁻¹ dt over 0 .. 1
        total = total + 0.5 * float(weight) * np.linalg.solve(identity + 0.5 * float(1 + point) * rest, rest)
    _require_found(name, count < MOST_ROOTS, a)
    return total * np.exp2(fresh(cast(number_value(count), total.real._type.dtype)))


@over_batches(A=2)
def fractional_matrix_power(A: Any, t: Any) -> Any:
    """A to the power t, which may be traced: for integers known while tracing a product, else exp(t log A); see `logm`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.fractional_matrix_power(np.array([[4.0, 0.0], [0.0, 9.0]]), 0.5).round(9).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    a = _square("fractional_matrix_power", A)
    if isinstance(t, int):
        return np.linalg.matrix_power(a, t)
    return expm(fresh(number_value(t)) * _principal_logarithm("fractional_matrix_power", a)) if a.size else a + 0.0


@over_batches(A=2)
def signm(A: Any) -> Any:
    """The sign of a matrix without eigenvalues on the imaginary axis: A (A²)^(-1/2).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.signm(np.array([[2.0, 0.0], [0.0, -3.0]])).round(9).tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    a = _square("signm", A)
    return np.linalg.solve(_root(a @ a), a) if a.size else a + 0.0


# ----- what is made of the exponential
@over_batches(A=2, E=2)
def expm_frechet(A: Any, E: Any, method: str | None = None, compute_expm: bool = True, check_finite: bool = True) -> Any:
    """(exp(A), the derivative of exp at A in the direction E), or that derivative alone: from the exponential of [[A, E], [0, A]].

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.expm_frechet(np.zeros((1, 1)), np.ones((1, 1)), compute_expm=False).tolist()
    [[1.0]]
    """
    a, e = matrices("expm_frechet", A, E)
    if a.shape != e.shape or a.shape[0] != a.shape[1]:
        raise ShapeError(f"expm_frechet: shapes {a.shape} and {e.shape} must be one square shape")
    n = a.shape[0]
    both = expm(np.concatenate([np.concatenate([a, e], 1), np.concatenate([np.zeros_like(a), a], 1)]))
    return (both[:n, :n], both[:n, n:]) if compute_expm else both[:n, n:]


def _exponentials(name: str, A: Any, factor: complex) -> tuple[Any, Any, bool]:
    """exp(factor A), exp(-factor A), and whether A is real."""
    a: Any = fresh(number_value(A))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name}: the last two axes of A of shape {a.shape} must be square")
    turned = a * (factor.real if factor.imag == 0 else factor)
    return expm(turned), expm(-turned), a.dtype.kind != "c"


@graph_function
def cosm(A: Any) -> Any:
    """The cosine of a matrix: the real part of exp(iA) where A is real.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.cosm(np.zeros((2, 2))).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    plus, minus, real = _exponentials("cosm", A, 1j)
    return plus.real if real else 0.5 * (plus + minus)


@graph_function
def sinm(A: Any) -> Any:
    """The sine of a matrix: the imaginary part of exp(iA) where A is real.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.sinm(np.diag([0.0, np.pi / 2])).round(9).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    plus, minus, real = _exponentials("sinm", A, 1j)
    return plus.imag if real else -0.5j * (plus - minus)


@graph_function
def tanm(A: Any) -> Any:
    """The tangent of a matrix, cosm(A)⁻¹ sinm(A).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.tanm(np.diag([0.0, np.pi / 4])).round(9).tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    return np.linalg.solve(cosm(A), sinm(A))


@graph_function
def coshm(A: Any) -> Any:
    """The hyperbolic cosine of a matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.coshm(np.zeros((1, 1))).tolist()
    [[1.0]]
    """
    plus, minus, _ = _exponentials("coshm", A, 1.0 + 0j)
    return 0.5 * (plus + minus)


@graph_function
def sinhm(A: Any) -> Any:
    """The hyperbolic sine of a matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.sinhm(np.zeros((1, 1))).tolist()
    [[0.0]]
    """
    plus, minus, _ = _exponentials("sinhm", A, 1.0 + 0j)
    return 0.5 * (plus - minus)


@graph_function
def tanhm(A: Any) -> Any:
    """The hyperbolic tangent of a matrix, coshm(A)⁻¹ sinhm(A).

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.tanhm(np.zeros((1, 1))).tolist()
    [[0.0]]
    """
    return np.linalg.solve(coshm(A), sinhm(A))


# ----- polar
@custom_jvp
def _polar(a: Any) -> Any:
    u, s, v = np.linalg.svd(a, full_matrices=False)
    return u @ v, adjoint(v) @ (s[:, None] * v)


def _polar_jvp(primals: Any, tangents: Any) -> Any:
    # A = U P, Ω = Uᴴ dU is skew: Ω P + P Ω = Uᴴ dA - dAᴴ U;  dP = Uᴴ dA - Ω P, dU = U Ω + (I - U Uᴴ) dA P⁻¹
    (a,), (change,) = primals, tangents
    u, p = _polar(a)
    inner = adjoint(u) @ change
    turn = sylvester(p, p, inner - adjoint(inner))
    found = u @ turn
    if a.shape[0] > a.shape[1]:
        found = found + np.linalg.solve(p.T, (change - u @ inner).T).T
    return (u, p), (found, inner - turn @ p)


_polar.defjvp(_polar_jvp)


@over_batches(a=2)
def polar(a: Any, side: str = "right") -> Any:
    """(u, p) with a = u p, or with side="left" a = p u: u has orthonormal columns (or rows), p is positive semidefinite.

    The derivative needs a of full rank; of a matrix with fewer rows than columns on the right (fewer columns on the left) it is that of the
    singular vectors, which must be those of different singular values.

    >>> import numpy as np, bwcompiler as bw
    >>> [part.round(9).tolist() for part in bw.scipy.linalg.polar(np.array([[0.0, 2.0], [3.0, 0.0]]))]
    [[[0.0, 1.0], [1.0, 0.0]], [[3.0, 0.0], [0.0, 2.0]]]
    """
    if side not in ("right", "left"):
        raise ValueError("`side` must be either 'right' or 'left'")
    matrix: Any = fresh(number_value(a))
    if matrix.ndim != 2:
        raise ValueError("`a` must be a 2-D array.")
    m, n = matrix.shape
    if side == "right" and m >= n:
        return tuple(_polar(matrix))
    if side == "left" and m <= n:
        u, p = _polar(adjoint(matrix))
        return adjoint(u), p
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    return u @ v, adjoint(v) @ (s[:, None] * v) if side == "right" else (u * s) @ adjoint(u)
