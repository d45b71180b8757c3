"""Loop trees -> LLVM text.  Begin with `loops_to_llvm.py`, which walks a tree, then `emitter`.

    loops_to_llvm                          statements, and the form of each loop
    forms                                  those forms that have much text of their own
    emitter                                the object that writes a kernel: registers, addresses, elements, scalars, sums, iterations
    merge_loops                            nests that are merged into one loop, before
    analysis                               what is known of a loop's body, and which loops are therefore vectors
    parallel_calls                         kernels that are divided among threads
"""
