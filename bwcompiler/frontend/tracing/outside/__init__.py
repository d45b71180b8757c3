"""What a traced function reads from outside of its arguments.  Begin with `reads.py`; `code_reads.py` finds what bytecode reads, `kinds.py`
says what has items and attributes to be read, `objects.py` has those whose attributes are read by name alone, `contents.py` what arrays
held, `generators.py` which generators gave random numbers, `repeated.py` the reads that calls repeat.
"""
