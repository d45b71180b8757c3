"""Loop trees -> LLVM text.  Begin with `loops_to_llvm.py`, which walks a tree.

One object writes a kernel.  Its class has layers, each of which uses those above it:

    Registers (registers.py)               levels of open loops; an instruction is placed at the outermost level that knows its operands
    Positions (positions.py)               loop indices and addresses; `kernel_pointers.py`: the elements that parameters point at
    Elements (elements.py)                 loads and stores of array elements
    KernelValues (kernel_values.py)        scalars
    Accumulators (accumulators.py)         reductions; `lanes.py`: in vectors of partial results
    Iterations (iterations.py)             the iterations of a loop: one, several in sequence, or side by side
    _KernelEmitter (loops_to_llvm.py)      statements, and the form of each loop

Forms of loops with much text of their own are functions of that object: loops that reduce into lanes (`strips.py`), that search
(`searches.py`), that keep sums in registers (`kept_sums.py`), and matrix products (`product_calls.py`).

    merge_loops                            nests that are merged into one loop, before
    loop_bodies, vector_loops              what is known of a loop's body; which loops are therefore vectors, and how wide ones
    zeros                                  loops that set memory to zero
    parallel_calls                         kernels that are divided among threads
"""
