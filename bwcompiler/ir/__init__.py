"""The two languages of the compiler.  Begin with `types.py`, `op.py` (ops and values) and `graph.py`; `loop.py` and `scalar.py` are loops.

    declaration, routine, source           what an op states; what computes it in a library; where a value came from
    extent, access                         integers that move with loops; which element of an array an element is
    texts                                  graphs and kernels printed and parsed
    semantics                              what they mean (interpreters), and which are valid (verifiers)
    contracts                              what a stage hands to the next one
"""
