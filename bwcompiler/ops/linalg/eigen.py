"""Eigenvalues and eigenvectors of the matrices in the last two axes: eigh of symmetric (Hermitian) ones, eig of any.

As in `factorization`, values and vectors are one array, the values row 0.  Where eigenvalues coincide vectors have no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.ir.extent import add_extents
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.routine import InnerLoop
from bwcompiler.ir.types import DType, TensorType, complex_of, component_of
from bwcompiler.ops.broadcasting import LEADING_AXES
from bwcompiler.ops.complex_parts import conj, real_part
from bwcompiler.ops.elementwise import cast, full_like, select
from bwcompiler.ops.linalg.contraction import matmul, matrix_transpose
from bwcompiler.ops.linalg.factorization import (
    adjoint,
    against,
    as_row,
    column_products,
    diagonal,
    inverse_gaps,
    of_square_matrices,
    on_diagonal,
    per_column,
    per_row,
    row,
    rows,
    stacked,
    times,
    with_diagonal,
)
from bwcompiler.ops.linalg.solves import solve, triangle
from bwcompiler.ops.numpy_text import call


def _over_vectors(a: TensorType) -> TensorType:
    """Square matrices with one more row."""
    return a.with_shape((*a.shape[:-2], add_extents(a.shape[-1], 1), a.shape[-1]))


def _complex_dtype(a: TensorType) -> DType:
    return a.dtype if a.dtype.is_complex else complex_of(a.dtype)


# ----- eigh
def packed_eigh(a: Any, *, lower: bool) -> Any:
    """Eigenvalues over eigenvectors, of the lower or upper triangle."""
    values, vectors = np.linalg.eigh(a, "L" if lower else "U")
    return np.concatenate([values[..., None, :], vectors], -2)


def _mirrored(x: Value, lower: bool) -> Value:
    """The symmetric (Hermitian) matrix that has this triangle; imaginary parts on the diagonal are not read."""
    if x.dtype.is_complex:
        x = select(on_diagonal(x), real_part(x), x)
    kept = triangle(x, lower)
    return kept + adjoint(kept) - select(on_diagonal(x), x, full_like(x, 0.0))


def _eigh_vjp(ct: Value, out: Value, a: Value, *, lower: bool) -> Value:
    # The cotangent of the Hermitian matrix is G = conj(V) (diag(w̄) + F ∘ VᵀV̄) Vᵀ; an element of the triangle stands for two of it.
    n = a.shape[-1]
    vectors = rows(out, 1, n)
    inner = times(vectors, rows(ct, 1, n))
    inner = with_diagonal(inverse_gaps(row(out, 0), inner) * inner, real_part(row(ct, 0)))
    found = matmul(matmul(conj(vectors), inner), matrix_transpose(vectors))
    both = found + adjoint(found)
    return triangle(select(on_diagonal(found), real_part(found), both), lower)


def _eigh_jvp(tangents: Sequence[Value | None], out: Value, a: Value, *, lower: bool) -> Value | None:
    # dw = diag(Vᴴ dA V),  dV = V (F ∘ Vᴴ dA V)
    if tangents[0] is None:
        return None
    vectors = rows(out, 1, a.shape[-1])
    inner = matmul(against(vectors, _mirrored(tangents[0], lower)), vectors)
    return stacked(as_row(real_part(diagonal(inner))), matmul(vectors, inverse_gaps(row(out, 0), inner) * inner))


eigh: Op = define_op(
    "eigh", "library", core_rank=2,
    doc="Eigenvalues (row 0, ascending) and eigenvectors (the other rows, one per column) of the symmetric "
    "matrix of which a is read in one triangle; its cotangent is 0 in the other one.", attributes=("lower",),
    shape=of_square_matrices("eigh", lambda a: _over_vectors(a)),
    vjp=(_eigh_vjp,), jvp=_eigh_jvp, batch=LEADING_AXES, reference=packed_eigh, kinds="fc", cheap=False,
    library=InnerLoop(("eigh_lo", "eigh_up"), "{}->{r}{}", "(m,m)->(m),(m,m)", cleared=True,
                      results=lambda out, a, lower: (row(out, 0), rows(out, 1, a.shape[-1])),
                      failure="Eigenvalues did not converge", lapack="syevd",
                      choose=lambda lower: "eigh_lo" if lower else "eigh_up"),
)


def _eigvalsh_vjp(ct: Value, out: Value, a: Value, *, lower: bool) -> Value:
    # conj(V) diag(w̄) Vᵀ; an element of the triangle stands for two of it
    vectors = rows(eigh(a, lower=lower), 1, a.shape[-1])
    found = matmul(conj(vectors) * per_column(cast(ct, dtype=a.dtype), vectors), matrix_transpose(vectors))
    return triangle(select(on_diagonal(found), found, found * 2.0), lower)


def _eigvalsh_jvp(tangents: Sequence[Value | None], out: Value, a: Value, *, lower: bool) -> Value | None:
    if tangents[0] is None:
        return None
    vectors = rows(eigh(a, lower=lower), 1, a.shape[-1])
    return cast(column_products(conj(vectors), matmul(_mirrored(tangents[0], lower), vectors)), dtype=out.dtype)


eigvalsh: Op = define_op(
    "eigvalsh", "library", core_rank=2,
    doc="The eigenvalues, ascending, of the symmetric matrix of which a is read in one triangle; its cotangent is "
    "0 in the other one.", attributes=("lower",),
    shape=of_square_matrices("eigvalsh", lambda a: a.with_shape(a.shape[:-1]).with_dtype(component_of(a.dtype))),
    vjp=(_eigvalsh_vjp,), jvp=_eigvalsh_jvp, batch=LEADING_AXES,
    reference=lambda a, *, lower: np.linalg.eigvalsh(a, "L" if lower else "U"), kinds="fc", cheap=False,
    numpy=lambda a: call("np.linalg.eigvalsh", a.reads[0], repr("L" if a.attrs["lower"] else "U")),
    library=InnerLoop(("eigvalsh_lo", "eigvalsh_up"), "{}->{r}", "(m,m)->(m)",
                      failure="Eigenvalues did not converge", lapack="syevd",
                      choose=lambda lower: "eigvalsh_lo" if lower else "eigvalsh_up"),
)


# ----- eig: of matrices that need not be symmetric; results are complex
def packed_eig(a: Any) -> Any:
    """Eigenvalues over eigenvectors of length 1."""
    values, vectors = np.linalg.eig(a)
    return np.concatenate([values[..., None, :], vectors], -2).astype(np.result_type(a, np.complex64))


def eigenvalues(a: Any) -> Any:
    """The eigenvalues, complex also where all of them are real."""
    return np.linalg.eigvals(a).astype(np.result_type(a, np.complex64))


def _as_complex(a: Value) -> Value:
    return a if a.dtype.is_complex else cast(a, dtype=complex_of(a.dtype))


def _as_operand(cotangent: Value, a: Value) -> Value:
    """The cotangent of a: its real part, if a is real."""
    return cotangent if a.dtype.is_complex else cast(cotangent, dtype=a.dtype)


def _eig_vjp(ct: Value, out: Value, a: Value) -> Value:
    # The adjoint of `_eig_jvp`: V⁻ᵀ (diag(w̄) + F ∘ (VᵀV̄ - (VᴴV)ᵀ diag(Re diag(VᵀV̄)))) Vᵀ
    n = a.shape[-1]
    vectors = rows(out, 1, n)
    inner = times(vectors, rows(ct, 1, n))
    lengths = matrix_transpose(against(vectors, vectors)) * per_column(real_part(diagonal(inner)), inner)
    inner = with_diagonal(inverse_gaps(row(out, 0), inner) * (inner - lengths), row(ct, 0))
    turned = matrix_transpose(vectors)
    return _as_operand(solve(turned, matmul(inner, turned)), a)


def _eig_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    # With M = V⁻¹ dA V and E = F ∘ M: dw = diag(M), dV = V E - V diag(Re diag(VᴴV E)), so that lengths stay 1 and phases do not turn
    if tangents[0] is None:
        return None
    vectors = rows(out, 1, a.shape[-1])
    moved = solve(vectors, matmul(_as_complex(tangents[0]), vectors))
    change = matmul(vectors, inverse_gaps(row(out, 0), moved) * moved)
    longer = real_part(column_products(conj(vectors), change))
    return stacked(as_row(diagonal(moved)), change - vectors * per_column(longer, vectors))


eig: Op = define_op(
    "eig", "library", core_rank=2,
    doc="Eigenvalues (row 0, in LAPACK's order) and eigenvectors (the other rows, one of length 1 per column) of any "
    "square matrix, complex.  Phases of vectors have no derivative: only what does not depend on them has.", attributes=(),
    shape=of_square_matrices("eig", lambda a: _over_vectors(a).with_dtype(_complex_dtype(a))),
    vjp=(_eig_vjp,), jvp=_eig_jvp, batch=LEADING_AXES, reference=packed_eig, kinds="fc", cheap=False,
    library=InnerLoop(("eig",), "{}->{c}{c}", "(m,m)->(m),(m,m)", results=lambda out, a: (row(out, 0), rows(out, 1, a.shape[-1])),
                      failure="Eigenvalues did not converge", lapack="geev"),
)


def _eigvals_vjp(ct: Value, out: Value, a: Value) -> Value:
    # V⁻ᵀ diag(w̄) Vᵀ
    turned = matrix_transpose(rows(eig(a), 1, a.shape[-1]))
    return _as_operand(solve(turned, per_row(ct, turned) * turned), a)


def _eigvals_jvp(tangents: Sequence[Value | None], out: Value, a: Value) -> Value | None:
    if tangents[0] is None:
        return None
    vectors = rows(eig(a), 1, a.shape[-1])
    return diagonal(solve(vectors, matmul(_as_complex(tangents[0]), vectors)))


eigvals: Op = define_op(
    "eigvals", "library", core_rank=2,
    doc="The eigenvalues, complex, of any square matrix, in LAPACK's order.", attributes=(),
    shape=of_square_matrices("eigvals", lambda a: a.with_shape(a.shape[:-1]).with_dtype(_complex_dtype(a))),
    vjp=(_eigvals_vjp,), jvp=_eigvals_jvp, batch=LEADING_AXES, reference=eigenvalues, kinds="fc", cheap=False,
    library=InnerLoop(("eigvals",), "{}->{c}", "(m,m)->(m)", failure="Eigenvalues did not converge", lapack="geev"),
)
