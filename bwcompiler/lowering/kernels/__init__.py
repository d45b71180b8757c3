"""Loop trees -> LLVM text.  Begin with `loops_to_llvm.py`, which walks a tree.

    registers, kernel_values, elements     what is in which register; elements of arrays, from memory and to it
    positions, kernel_pointers             addresses
    merge_loops, vector_loops              which loops are one; which are vectors
    iterations                             one after the other, or side by side
    accumulators, lanes, searches          reductions; strips: loops that reduce into lanes; kept_sums: sums in memory, kept in registers
    parallel_calls                         kernels that are cut among threads
"""
