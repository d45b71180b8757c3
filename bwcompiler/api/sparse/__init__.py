"""Sparse derivatives by a few dense products.  `derivatives.py` has the public functions; it asks `sparsity.py` which elements may
differ from zero, and `colouring.py` which of them one product tells apart.
"""
