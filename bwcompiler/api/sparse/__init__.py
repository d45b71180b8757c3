"""Sparse derivatives by a few dense products.  `derivatives.py` has the public functions; `sparsity.py` finds the sparsity pattern,
and `colouring.py` groups columns (or rows) so that one product with a vector determines all elements of a group.
"""
