"""The native call: the one function through which all programs are called.  Begin with `python_entry.py`, which implements in Python
what `native_entry.py` implements in LLVM text.

    table, words                             the operations for one call form, as a table of words; text that reads the table
    guards, checks, numbers                  functions of the entry, in LLVM text: the guards, which an interpreter of the table runs
    buffers, allocations, results            its other functions, in the order of a call
    externals                                the external symbols of CPython, NumPy and the system
"""
