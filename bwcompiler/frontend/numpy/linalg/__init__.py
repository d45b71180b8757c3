"""numpy.linalg, products and what is about matrices.  Begin with `linear.py` (products, solve, inv, cholesky); then `decompositions.py`
(eigenvalues, SVD, norms), `einsum.py`, `diagonals.py` (triangles and diagonals).
"""
