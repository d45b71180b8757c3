"""Fused groups -> loop trees, and transformations of loop trees.  Begin with `building`.

    building                               the loop trees of fused groups, and of ops that are not fused
    split_guards                           interiors without guards
    complex                                complex numbers as pairs of reals
    tiling                                 transposed accesses, short rows, matrices packed for products
    sweeps                                 several kernels in one loop
    blocks, parallel                       long reductions in blocks, and the division among threads
"""
