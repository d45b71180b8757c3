"""Fused groups -> loop trees, and what is done to loop trees before they become text.  Begin with `build_loops.py`.

    group_shapes                           groups that differ in numbers only are one kernel
    kernel_layout, loop_order, shared_memory     how the loops of a group stand, and what they keep where
    call_kernels                           loop trees of what is not fused
    split_guards                           interiors without guards
    complex/                               complex numbers as pairs of reals
    join_rows                              sums over several short axes are sums over one
    tiles, stage_columns                   transposed accesses, of elements alone and in loops over rows
    blocks, parallel                       long reductions, and cuts among threads
"""
