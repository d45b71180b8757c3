"""Steps that call library functions.  Begin with `library_calls.py` (NumPy's loops, index checks, copies) and `shared_calls.py` (division
of a batch among threads).  `factorization_calls.py` calls LAPACK, `cholesky_calls.py` has the Cholesky factorisation and its derivatives,
`sort_calls.py` and `fourier_calls.py` call NumPy's sort functions and FFT, `matrix_products.py` the products of `lowering/products`.
"""
