"""The native call: the one function through which all programs are called.  Begin with `python_entry.py`, which says in Python what
`native_entry.py` writes as LLVM text.

    table, words                           what to do for one form of call, as words; pieces of text that read them
    numbers, overlaps, results, helpers    functions of the entry, in LLVM text
"""
