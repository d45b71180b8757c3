"""Steps that are calls.  Begin with `library_calls.py` (NumPy's loops, sorts, index checks, copies); LAPACK is called in
`factorization_calls.py`, NumPy's FFT in `fourier_calls.py`, the matrix products of `lowering/products` in `matrix_products.py`.
"""
