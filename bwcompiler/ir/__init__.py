"""The two languages of the compiler.  Begin with `types.py`, `op.py` (ops and values) and `graph.py`; `loop.py` and `scalar.py` are loops.

    graph_, loop_ printer, parser, verifier, interpreter     of either language; the interpreters define what programs mean
    declaration, routine, source           what an op states; what computes it in a library; where a value came from
    extent, access                         integers that move with loops; which element of an array an element is
    fusion, memory                         what passes hand to lowering
    call_signature, program_interface      what the runtime knows of a program
    reduction_tree                         in which order sums are added
    content_hash                           equal for graphs that compute the same
"""
