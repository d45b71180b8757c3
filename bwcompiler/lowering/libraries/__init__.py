"""Steps that are calls.  Begin with `library_calls.py` (NumPy's loops, index checks, copies) and `shared_calls.py` (how threads share a
batch); LAPACK is called in `factorization_calls.py`, Cholesky's factor and its derivatives are `cholesky_calls.py`, NumPy's sort functions
`sort_calls.py` and its FFT `fourier_calls.py`; the matrix products of `lowering/products` are called in `matrix_products.py`.
"""
