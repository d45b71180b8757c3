"""Addresses of functions in NumPy's libraries: BLAS and LAPACK, inner loops of universal functions, sorts."""
