"""Fused graph -> loop IR -> LLVM text.  Start reading at `program.py`.

A program is a sequence of steps (`steps.py`).  A kernel is a loop tree, built and improved in `loops`, written as LLVM text in
`kernels`, which calls functions of vectors from `math`.  `regions.py` writes loops and branches; `libraries` are calls of LAPACK and of
NumPy's loops, `products` the matrix products.
"""
