"""Native execution: LLVM text and a call signature in, a Python callable out.  Start reading at `executable.py`.

    jit, object_cache                      LLVM text to machine code, cached on disk
    program_parts, compiled_once           the modules of one program, compiled by several threads
    entry                                  the native call: from Python objects to buffers and back
    pool, threads                          the thread pool of programs, and the number of its threads
    memory_pool, memory                    the pool of large memory blocks, and its statistics for users
    addresses, blas_calls                  functions of NumPy's libraries; BLAS in the threads of the pool
    interrupts                             signals during long calls
    python_abi, machine, locks_and_clocks  interfaces of CPython and the machine, and LLVM text shared by these modules

Modules described as "in LLVM text" contain functions of the runtime that are written in LLVM IR.
"""
