"""Linear algebra of the matrices in the last two axes.  Begin with `contraction.py`, their products, and `solves.py` (LU, solve, inv),
whose rules the others use: `cholesky.py`, `factorization.py` (QR, SVD, pinv), `eigen.py`, `determinants.py`.
"""
