"""Fused graph -> loop IR -> LLVM text.  Start reading at `program.py`.

A program is a sequence of steps (`steps.py`).  A kernel is a loop tree: `loops` builds and improves it, `kernels` writes it as LLVM text,
with vector functions from `math`.  `regions.py` writes loops and branches, `libraries` calls of LAPACK and of NumPy's inner loops, and
`products` matrix products.  Imports go downwards:

    program                                functions of the program (calls); loops and branches (regions); which steps there are (steps)
    libraries                              products are one of them
    products | kernels                     function_text writes the one, a loop tree is the other
    loops                                  what a tree costs (polls)
    llvm_scalars (half_casts)              scalar operations as instructions, of numbers and of vectors
    math
"""
