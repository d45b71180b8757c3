"""Values that a traced function reads from outside of its arguments.  Begin with `reads.py`; `code_reads.py` finds the reads in bytecode,
`kinds.py` says which objects have items and attributes to read, `objects.py` keeps those whose attributes are read only by name,
`contents.py` the contents of arrays, `generators.py` finds generators that gave random numbers, `repeated.py` has the reads that calls
repeat.
"""
