"""Of `bw.scipy.linalg`: the exponential and square root of matrices, and linear equations in matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.eager import graph_function
from bwcompiler.api.loops import while_loop
from bwcompiler.api.transforms import custom_jvp
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.tracer import fresh, value_of
from bwcompiler.nn.activations import number_value

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
    return found, _sylvester(found, found, change)                          # X dX + dX X = dA


_root.defjvp(_root_jvp)


@graph_function
def sqrtm(A: Any) -> Any:
    """The square root of a matrix whose eigenvalues have positive real parts or are not on the negative real axis; of real matrices real.

    By Newton's method; nan where there is no principal root of that kind (SciPy gives complex numbers then).  The derivative needs a matrix
    without opposite eigenvalues of the root.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.sqrtm(np.array([[4.0, 0.0], [0.0, 9.0]])).round(8).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    a: Any = fresh(number_value(A))
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"sqrtm: A must be a square matrix, got shape {a.shape}")
    if not a.size:
        return a + 0.0
    found = _root(a)
    enough = math.sqrt(np.finfo(a.dtype).eps) * a.shape[0] * np.max(np.abs(found)) ** 2
    return np.where(np.max(np.abs(found @ found - a)) <= enough, found, math.nan)


def _sylvester(a: Any, b: Any, q: Any) -> Any:
    n, m = a.shape[-1], b.shape[-1]
    system = np.kron(a, np.eye(m, dtype=a.dtype)) + np.kron(np.eye(n, dtype=a.dtype), b.T)
    return np.linalg.solve(system, q.reshape(n * m)).reshape(n, m)


def _matrices(name: str, *given: Any) -> list[Any]:
    found: list[Any] = [fresh(number_value(one)) for one in given]
    if any(one.ndim != 2 for one in found) or any(one.shape[0] != one.shape[1] for one in found[:-1]):
        raise ShapeError(f"{name}: shapes {', '.join(str(one.shape) for one in found)} do not fit")
    return found


@graph_function
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """x with a x + x b = q, as one linear system of all elements of x (which is dense: n m unknowns).

    Raises ShapeError where these do not fit, LinAlgError where a and -b have a common eigenvalue.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_sylvester(np.eye(2), np.eye(2), np.full((2, 2), 4.0)).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    left, right, known = _matrices("solve_sylvester", a, b, q)
    if known.shape != (left.shape[0], right.shape[0]):
        raise ShapeError(f"solve_sylvester: shapes {left.shape}, {right.shape} and {known.shape} do not fit")
    return _sylvester(left, right, known)


@graph_function
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """x with a x + x aᴴ = q; see `solve_sylvester`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_continuous_lyapunov(np.eye(1), np.array([[4.0]])).tolist()
    [[2.0]]
    """
    left, known = _matrices("solve_continuous_lyapunov", a, q)
    return _sylvester(left, np.conj(left.T), known)


@graph_function
def solve_discrete_lyapunov(a: Any, q: Any) -> Any:
    """x with a x aᴴ - x + q = 0, as one linear system of all elements of x.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.linalg.solve_discrete_lyapunov(np.array([[0.5]]), np.array([[3.0]])).tolist()
    [[4.0]]
    """
    left, known = _matrices("solve_discrete_lyapunov", a, q)
    system = np.eye(left.shape[0] ** 2, dtype=left.dtype) - np.kron(left, np.conj(left))
    return np.linalg.solve(system, known.reshape(-1)).reshape(known.shape)
