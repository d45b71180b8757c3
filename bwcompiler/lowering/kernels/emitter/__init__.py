"""The object that writes a kernel.  Its class has layers, each of which uses those above it:

    Registers (registers.py)               levels of open loops; an instruction is placed at the outermost level that knows its operands
    Positions (positions.py)               loop indices and addresses; `kernel_pointers.py`: the elements that parameters point at
    Elements (elements.py)                 loads and stores of array elements
    KernelValues (kernel_values.py)        scalars
    Accumulators (accumulators.py)         reductions; `lanes.py`: in vectors of partial results
    Iterations (iterations.py)             the iterations of a loop: one, several in sequence, or side by side

The last layer is `loops_to_llvm._KernelEmitter`: statements, and the form of each loop.
"""
