"""numpy.linalg, products and other functions of matrices.  Begin with `linear.py` (products, solve, inv, cholesky); `decompositions.py`
(eigenvalues, SVD, norms), `einsum.py`, `diagonals.py` (triangles and diagonals).
"""
