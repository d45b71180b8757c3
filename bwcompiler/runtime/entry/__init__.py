"""The native call: the one function through which all programs are called.  Begin with `python_entry.py`, which says in Python what
`native_entry.py` writes as LLVM text.

    table, words                             what to do for one form of call, as words; pieces of text that read them
    checks, numbers                          functions of the entry, in LLVM text: what guards ask of objects
    buffers, allocations, results            its other functions, in the order of a call
    externals                                what it uses of CPython, NumPy and the system
"""
