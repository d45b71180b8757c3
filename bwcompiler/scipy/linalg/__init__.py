"""Functions named as in scipy.linalg that work on traced and on plain arrays: matrices, in the last two axes unless said otherwise.

Begin with `factors.py` (triangles, Cholesky, LU); `matrix_functions.py` has expm and the like.
"""

from typing import TYPE_CHECKING

from bwcompiler.scipy.linalg.decompositions import (  # noqa: F401  (the refused ones, which say what to write instead, are not offered)
    eig,
    eigh_tridiagonal,
    eigvals,
    eigvalsh_tridiagonal,
    hessenberg,
    ldl,
    lstsq,
    lu,
    null_space,
    orth,
    orthogonal_procrustes,
    pinvh,
    qz,
    rq,
    schur,
    subspace_angles,
)
from bwcompiler.scipy.linalg.factors import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
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
from bwcompiler.scipy.linalg.matrix_equations import (
    solve_continuous_are,
    solve_continuous_lyapunov,
    solve_discrete_are,
    solve_discrete_lyapunov,
    solve_lyapunov,
    solve_sylvester,
)
from bwcompiler.scipy.linalg.matrix_functions import (
    coshm,
    cosm,
    expm,
    expm_frechet,
    fractional_matrix_power,
    logm,
    polar,
    signm,
    sinhm,
    sinm,
    sqrtm,
    tanhm,
    tanm,
)
from bwcompiler.scipy.linalg.structured import (
    block_diag,
    cho_solve_banded,
    cholesky_banded,
    circulant,
    companion,
    convolution_matrix,
    eig_banded,
    eigvals_banded,
    fiedler,
    hankel,
    khatri_rao,
    kron,
    leslie,
    matmul_toeplitz,
    solve_banded,
    solve_circulant,
    solve_toeplitz,
    solveh_banded,
    toeplitz,
)
from bwcompiler.scipy.missing import says_instead

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cho_solve_banded", "cholesky", "cholesky_banded", "circulant", "companion",
    "convolution_matrix", "coshm", "cosm", "det", "eig", "eig_banded", "eigh", "eigh_tridiagonal", "eigvals",
    "eigvals_banded", "eigvalsh", "eigvalsh_tridiagonal", "expm", "expm_frechet", "fiedler", "fractional_matrix_power",
    "hankel", "hessenberg", "inv", "khatri_rao", "kron", "leslie", "logm", "lstsq", "lu", "lu_factor", "lu_solve",
    "matmul_toeplitz", "norm", "orthogonal_procrustes", "pinv", "pinvh", "polar", "qr", "rq", "signm", "sinhm", "sinm",
    "solve", "solve_banded", "solve_circulant", "solve_continuous_are", "solve_continuous_lyapunov", "solve_discrete_are",
    "solve_discrete_lyapunov", "solve_lyapunov", "solve_sylvester", "solve_toeplitz", "solve_triangular", "solveh_banded",
    "sqrtm", "subspace_angles", "svd", "svdvals", "tanhm", "tanm", "toeplitz",
]

if not TYPE_CHECKING:
    __getattr__ = says_instead("linalg", __all__)
