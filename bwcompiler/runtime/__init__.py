"""Native execution: LLVM text and a call signature in, a Python callable out.  Start reading at `executable.py`.

    jit, object_cache                      text to machine code, kept on the disk
    entry                                  the native call: from Python objects to buffers and back
    pool, threads                          the threads that programs share, and how many they are
    memory_pool, memory                    large blocks of memory, and what users see of them
    addresses, blas_calls                  functions of NumPy's libraries; BLAS in the threads of the pool
    interrupts                             signals during long calls
    python_abi, machine, locks_and_clocks  interfaces of CPython and the machine, and LLVM text that all of these use

Modules that say "in LLVM text" write functions of the runtime itself.
"""
