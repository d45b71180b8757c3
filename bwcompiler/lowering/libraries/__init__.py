"""Steps that call library functions.  Begin with `library_calls.py`: which file writes the function of an op.

inner_loops                            NumPy's inner loops
sort_calls, fourier_calls              NumPy's sort functions and FFT
factorization_calls, cholesky_calls    LAPACK; the Cholesky factorisation and its derivatives (`cblas`: enumerations)
matrix_products                        the products of `lowering/products`
index_checks                           checks of indices that are data
call_texts, shared_calls               what calls have in common; the division of a batch among threads
"""
