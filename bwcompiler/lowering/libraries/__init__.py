"""Steps that are calls: of NumPy's loops, of LAPACK, of the matrix products of `products`."""
