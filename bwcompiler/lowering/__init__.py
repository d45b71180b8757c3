"""Fused graph -> loop IR -> LLVM text.  Start reading at `program.py`.

A program is a sequence of steps (`steps.py`).  A kernel is a loop tree: `loops` builds and improves it, `kernels` writes it as LLVM text,
with vector functions from `math`.  Imports go downwards:

    program                         the functions of a program, and the order in which they are called
    module                          the LLVM module that they are written to
    join_sweeps, arrange_loops      several kernels in one loop; loops in rows, tiles, panels and blocks
    regions                         loops and branches
    steps                           which steps there are
    kernels                         loop trees as LLVM text
    loops                           loop trees
    libraries                       calls of LAPACK, of NumPy's inner loops, and of products
    products                        matrix products
    calls, polls                    a function that calls others; how much work there is between two looks for signals
    llvm_scalars, half_casts        scalar operations as instructions, of numbers and of vectors
    math                            elementary and special functions
    function_text, module_parts     a builder of functions; functions by their texts
"""
