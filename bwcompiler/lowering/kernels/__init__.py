"""Loop trees -> LLVM text.  Begin with `loops_to_llvm.py`, which walks a tree.

    registers, kernel_values, elements     what is in which register; elements of arrays, from memory and to it
    positions, kernel_pointers             addresses
    merge_loops, vector_loops              which loops are one; which are vectors
    accumulators, lanes, searches          reductions
    parallel_calls                         kernels that are cut among threads
"""
