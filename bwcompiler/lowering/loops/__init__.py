"""Fused groups -> loop trees, and transformations of loop trees.  Begin with `build_loops.py`.

    group_shapes                           one kernel for groups that differ only in numbers
    kernel_layout, loop_order, shared_memory     the order of a group's loops, its passes and buffers
    call_kernels                           loop trees of ops that are not fused
    split_guards                           interiors without guards
    complex/                               complex numbers as pairs of reals
    join_rows                              sums over several short axes become sums over one
    tiles, stage_columns                   transposed accesses: in elementwise loops, and in loops over rows
    sweeps, sweep_profit, sweep_kernel     several kernels in one loop: which may be joined, when it pays, what it gives
    stage_products                         matrices packed for products in loops
    blocks, parallel                       long reductions in blocks, and the division among threads
"""
