"""Loop trees -> LLVM text.  Begin with `loops_to_llvm.py`, which walks a tree.

    registers, kernel_values, elements     registers of values; loads and stores of array elements
    positions, kernel_pointers             addresses
    loop_bodies, vector_loops              what is known of a loop's body; which loops are therefore vectors, and how wide ones
    merge_loops                            nests that are merged into one loop
    iterations                             loops in sequence, unrolled or vectorised
    accumulators, lanes, searches          reductions; strips: loops that reduce into lanes; kept_sums: sums in memory, kept in registers
    product_calls                          matrix products inside of loops
    parallel_calls                         kernels that are divided among threads
"""
