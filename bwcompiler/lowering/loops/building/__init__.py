"""Fused groups -> loop trees.  Begin with `build_loops.py`.

    kernel_layout, loop_order, shared_memory     the order of a group's loops, its passes and buffers
    group_shapes                                 one kernel for groups that differ only in numbers
    call_kernels                                 loop trees of ops that are not fused
"""
