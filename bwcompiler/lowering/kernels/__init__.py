"""Loop trees -> LLVM text.  Begin with `loops_to_llvm.py`, which walks a tree.

    llvm_scalars, half_casts               scalar operations as instructions, of numbers and of vectors
    registers, kernel_values, elements     what is in which register; elements of arrays, from memory and to it
    positions, kernel_pointers             addresses
    vector_loops, lanes, searches          which loops are vectors; reductions in them
    parallel_calls                         kernels that are cut among threads
"""
