"""Where functions of NumPy's libraries are in memory: BLAS and LAPACK, inner loops of universal functions, sorts."""
