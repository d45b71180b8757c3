"""`bw.scipy.sparse.linalg`: linear systems with sparse matrices, by SciPy on the host: direct by LU factors, or iterative.

Derivatives do not go through the solver: they solve with the matrix again, or with its transpose, and have one number per element of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import lazy, tree
from bwcompiler.api.inside.callbacks import pure_callback
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct
from bwcompiler.api.transforms.reverse import stop_gradient
from bwcompiler.errors import ShapeError, TracerError, UnsupportedError
from bwcompiler.frontend.tracing.custom_rules import CustomBoth
from bwcompiler.frontend.tracing.operands import cast, is_traced, is_tracing, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.stand_ins import StandIn
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.types import F64
from bwcompiler.scipy.sparse.arrays import SparseArray, converted, product_at

scipy_sparse = lazy.module("scipy.sparse")
scipy_solvers = lazy.module("scipy.sparse.linalg")

ITERATIVE = ("bicg", "bicgstab", "cg", "cgs", "gcrotmk", "gmres", "lgmres", "minres", "qmr", "tfqmr")

__all__ = [*ITERATIVE, "factorized", "splu", "spsolve", "spsolve_triangular"]

Host = Callable[..., tuple[Any, Any]]       # (matrix, right-hand side, first guess or None, whether the matrix is transposed) -> x, info


def _system(host: Host, transposed: bool = False) -> Any:
    """(data, rows, columns, b, *first guess) -> x with A x = b, and what the host says of it, with derivatives in both modes."""
    def on_host(data: Any, rows: Any, columns: Any, b: Any, *guess: Any) -> Any:
        matrix = scipy_sparse.coo_array((data, (rows, columns)), shape=(b.shape[0], b.shape[0])).tocsc()
        x, info = host(matrix, b, guess[0] if guess else None, transposed)
        return np.asarray(x, b.dtype).reshape(b.shape), np.int64(info)

    def solution(data: Any, rows: Any, columns: Any, b: Any, *guess: Any) -> Any:
        types = ShapeDtypeStruct(b.shape, b.dtype), ShapeDtypeStruct((), np.int64)
        return pure_callback(on_host, types, data, rows, columns, b, *guess)

    def forward(data: Any, rows: Any, columns: Any, b: Any, *guess: Any) -> Any:
        found: Any = function(data, rows, columns, b, *guess)
        return found, (data, rows, columns, found[0], guess)

    def backward(saved: Any, ct: Any) -> Any:
        data, rows, columns, x, guess = saved
        y = _system(host, not transposed)(data, columns, rows, ct[0])[0]                        # Aᵀ y = ct
        terms = y[rows] * x[columns]
        return -(terms.sum(-1) if terms.ndim == 2 else terms), None, None, y, *[None for _ in guess]

    def push(primals: Any, tangents: Any) -> Any:
        data, rows, columns = primals[:3]
        found: Any = function(*primals)
        moved = product_at(tangents[0], rows, columns, found[0], found[0].shape[0])
        change: Any = function(data, rows, columns, tangents[3] - moved)
        return found, (change[0], None)

    function = CustomBoth(solution, forward, backward, push)
    return function


@graph_function
def _promoted(data: Any, b: Any) -> Any:
    values, right = value_as(data), value_as(b)
    dtype = common_dtype((values.dtype, right.dtype, F64))
    return fresh(cast(values, dtype)), fresh(cast(right, dtype))


def _matrix(name: str, A: Any, b: Any) -> SparseArray:
    """A as a square sparse array, whose elements may be traced, that fits b."""
    if isinstance(A, SparseArray):
        matrix: SparseArray | None = A
    elif np.ndim(A) == 2 and (is_traced(A) or isinstance(A, np.ndarray)):
        rows, columns = np.indices(np.shape(A)).reshape(2, -1)
        matrix = SparseArray(np.reshape(A, (-1,)), rows, columns, np.shape(A))
    else:
        matrix = converted(A)
    if matrix is None:
        if callable(getattr(A, "matvec", None)):
            raise UnsupportedError(f"{name} of traced values with a LinearOperator: SciPy calls it with plain arrays\n"
                                   "  hint: bw.custom_linear_solve(matvec, b, solve), or a sparse array")
        raise TypeError(f"{name}: a sparse array is expected, got {type(A).__name__}")
    if matrix.shape[0] != matrix.shape[1] or (b is not None and np.shape(b)[:1] != matrix.shape[:1]):
        raise ShapeError(f"{name}: shapes {matrix.shape} and {np.shape(b)} do not fit")
    return matrix


def _direct(matrix: Any, b: Any, guess: Any, transposed: bool) -> tuple[Any, Any]:
    try:
        return scipy_solvers.splu(matrix).solve(b), 0
    except RuntimeError as error:                                       # "Factor is exactly singular"
        raise np.linalg.LinAlgError(str(error)) from None


@graph_function
def _solved(data: Any, rows: Any, columns: Any, b: Any) -> Any:
    numbers, right = _promoted(data, b)
    return _system(_direct)(numbers, rows, columns, right)[0]


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """x with A x = b, for a sparse A (of SciPy's or of `bw.scipy.sparse`) and a vector or matrix b; A's data and b may be traced.

    The factors are made by SciPy on the host at each call; the derivative solves with the transposed matrix, and has one number per
    element of A.  Raises ShapeError if these do not fit, LinAlgError if A is singular.

    >>> import numpy as np, bwcompiler as bw
    >>> matrix = bw.scipy.sparse.coo_array((np.array([2.0, 4.0]), (np.array([0, 1]), np.array([0, 1]))))
    >>> bw.scipy.sparse.linalg.spsolve(matrix, np.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    return splu(_matrix("spsolve", A, b)).solve(b)


class SuperLU(StandIn):
    """What `splu` gives: solve(b, trans="N") for A x = b, with trans="T" for Aᵀ x = b."""

    def __init__(self, matrix: SparseArray) -> None:
        super().__init__()
        self.matrix = matrix

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """x for a vector or matrix on the right.  Raises ShapeError if it does not fit, LinAlgError if A is singular."""
        matrix = _matrix("splu", self.matrix, rhs)
        data = matrix.data
        if trans == "H" and np.dtype(matrix.dtype).kind == "c":
            data = np.conj(data)
        elif trans not in ("N", "T", "H"):
            raise ValueError("trans must be N, T, or H")
        rows, columns = (matrix.rows, matrix.columns) if trans == "N" else (matrix.columns, matrix.rows)
        return _solved(data, rows, columns, rhs)


class KnownFactors:
    """A SuperLU object of SciPy's, of a matrix that is known, whose `solve` takes traced right-hand sides."""

    def __init__(self, factors: Any) -> None:
        self.factors = factors
        self.shape = factors.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """x for a vector or matrix on the right; derivatives solve with the same factors.  Raises ShapeError if it does not fit."""
        if trans not in ("N", "T", "H"):
            raise ValueError("trans must be N, T, or H")
        if np.shape(rhs)[:1] != self.shape[:1]:
            raise ShapeError(f"solve: shapes {self.shape} and {np.shape(rhs)} do not fit")
        right = _promoted(np.zeros((), self.factors.L.dtype), rhs)[1]
        if trans == "H" and right.dtype.kind == "c":
            return np.conj(_by_factors(self.factors, "T")(np.conj(right)))
        return _by_factors(self.factors, "N" if trans == "N" else "T")(right)


def _by_factors(factors: Any, trans: str) -> Any:
    """b -> x by known factors, on the host; linear, with itself as derivative and the other `trans` as transpose."""
    def solution(b: Any) -> Any:
        return pure_callback(lambda b: np.asarray(factors.solve(b, trans=trans), b.dtype), ShapeDtypeStruct(b.shape, b.dtype), b)

    def forward(b: Any) -> Any:
        return solved(b), None

    def backward(_: Any, ct: Any) -> Any:
        return (_by_factors(factors, "T" if trans == "N" else "N")(ct),)

    def push(primals: Any, tangents: Any) -> Any:
        return solved(primals[0]), solved(tangents[0])

    solved: Any = CustomBoth(solution, forward, backward, push)
    return solved


def splu(A: Any, **options: Any) -> SuperLU:
    """The LU factors of a sparse A as scipy.sparse.linalg.splu, with solve(b, trans="N"); A's data and b may be traced.

    options are taken and not used: which order of columns SuperLU takes does not show.  Factors are made at each solve.

    >>> import numpy as np, bwcompiler as bw
    >>> matrix = bw.scipy.sparse.coo_array((np.array([2.0, 4.0]), (np.array([0, 1]), np.array([0, 1]))))
    >>> bw.scipy.sparse.linalg.splu(matrix).solve(np.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    return SuperLU(_matrix("splu", A, None))


def factorized(A: Any) -> Callable[[Any], Any]:
    """b -> x with A x = b, as scipy.sparse.linalg.factorized; A's data and b may be traced.

    >>> import numpy as np, bwcompiler as bw
    >>> matrix = bw.scipy.sparse.coo_array((np.array([2.0, 4.0]), (np.array([0, 1]), np.array([0, 1]))))
    >>> bw.scipy.sparse.linalg.factorized(matrix)(np.array([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    return splu(A).solve


def spsolve_triangular(A: Any, b: Any, lower: bool = True, overwrite_A: bool = False, overwrite_b: bool = False,
                       unit_diagonal: bool = False) -> Any:
    """x with A x = b, for a sparse triangular A, as scipy.sparse.linalg.spsolve_triangular; A's data and b may be traced.

    Elements on the other side of the diagonal are not read; with unit_diagonal those on it neither.

    >>> import numpy as np, bwcompiler as bw
    >>> matrix = bw.scipy.sparse.coo_array((np.array([2.0, 1.0, 4.0]), (np.array([0, 1, 1]), np.array([0, 0, 1]))))
    >>> bw.scipy.sparse.linalg.spsolve_triangular(matrix, np.array([2.0, 5.0])).tolist()
    [1.0, 1.0]
    """
    matrix = _matrix("spsolve_triangular", A, b)
    rows, columns, data = matrix.rows, matrix.columns, matrix.data
    side = rows >= columns if lower else rows <= columns
    kept = np.flatnonzero(side & (rows != columns) if unit_diagonal else side)
    rows, columns, data = rows[kept], columns[kept], data[kept]
    if unit_diagonal:
        diagonal = np.arange(matrix.shape[0])
        rows, columns = np.concatenate([rows, diagonal]), np.concatenate([columns, diagonal])
        data = np.concatenate([data, np.ones(matrix.shape[0], matrix.dtype)])
    return _solved(data, rows, columns, b)


# ----- iterative
def _plain(A: Any) -> Any:
    """For SciPy, when nothing is traced."""
    if not isinstance(A, SparseArray):
        return A
    return scipy_sparse.coo_array((A.data, (A.rows, A.columns)), shape=A.shape).tocsr()


def _iterative(name: str) -> Any:
    def function(A: Any, b: Any, x0: Any = None, **options: Any) -> Any:
        if not is_tracing((A.data if isinstance(A, SparseArray) else A, b, x0)):
            return getattr(scipy_solvers, name)(_plain(A), b, x0, **options)
        if any(isinstance(one, Tracer) for one in tree.leaves(options)):
            raise TracerError(f"{name}: of the arguments A, b and x0 may be traced; M, tolerances and others must be known\n"
                              "  hint: bw.custom_linear_solve, with a solver of your own")
        matrix = _matrix(name, A, b)

        def host(plain: Any, right: Any, guess: Any, transposed: bool) -> tuple[Any, Any]:
            given = dict(options)
            for key in ("M", "M1", "M2"):
                if transposed and given.get(key) is not None:
                    given[key] = given[key].T
            return getattr(scipy_solvers, name)(plain, right, guess, **given)  # type: ignore[no-any-return]

        data, right = _promoted(matrix.data, b)
        guess = () if x0 is None else (stop_gradient(fresh(cast(value_as(x0), value_as(right).dtype))),)
        return _system(host)(data, matrix.rows, matrix.columns, right, *guess)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""(x with A x = b, 0 if it was found), as scipy.sparse.linalg.{name}, with its keywords rtol, atol, maxiter ...

    A is sparse or dense; its data, b and the first guess x0 may be traced.  The derivative solves with the same routine again, to the same
    tolerances, in reverse mode with the transposed matrix (and preconditioner).  Raises ShapeError where A and b do not fit,
    UnsupportedError for a LinearOperator with traced values.

    >>> import numpy as np, bwcompiler as bw
    >>> matrix = bw.scipy.sparse.coo_array((np.array([2.0, 4.0]), (np.array([0, 1]), np.array([0, 1]))))
    >>> bw.scipy.sparse.linalg.{name}(matrix, np.array([2.0, 2.0]), rtol=1e-10)[0].round(6).tolist()
    [1.0, 0.5]
    """
    return function


bicg, bicgstab, cg, cgs, gcrotmk, gmres, lgmres, minres, qmr, tfqmr = (_iterative(_name) for _name in ITERATIVE)
