"""Functions named as in scipy.linalg that work on traced and on plain arrays: real matrices, in the last two axes unless said otherwise."""

from bwcompiler.scipy.factors import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
    lu,
    lu_factor,
    lu_solve,
    norm,
    pinv,
    qr,
    solve,
    solve_triangular,
    svd,
    svdvals,
)
from bwcompiler.scipy.matrix_functions import (
    expm,
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
    solve_sylvester,
    sqrtm,
)
from bwcompiler.scipy.structured import block_diag, circulant, companion, hankel, solve_banded, solve_toeplitz, toeplitz

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "det", "eigh", "eigvalsh", "expm",
    "hankel", "inv", "lu", "lu_factor", "lu_solve", "norm", "pinv", "qr", "solve", "solve_banded",
    "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester", "solve_toeplitz", "solve_triangular",
    "sqrtm", "svd", "svdvals", "toeplitz",
]
