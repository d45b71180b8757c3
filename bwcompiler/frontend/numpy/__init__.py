"""NumPy's functions on traced arrays, one file per subject, in folders like NumPy's manual; each folder uses only those before it.

    elementwise     ufuncs, and other functions that replace values element by element
    manipulation    making, moving, joining, indexing and choosing elements
    reductions      sums and the like, sorting, searching, comparisons of whole arrays
    linalg          products, solves, decompositions, einsum, triangles and diagonals

`dispatch.py` imports all of them, which registers them.  A function is added in the file of its subject, decorated with `implements`
(`tracing/registry.py`).  Begin with `manipulation/joining.py`, which is short.
"""
