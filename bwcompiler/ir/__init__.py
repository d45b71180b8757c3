"""The two intermediate languages, graph IR and loop IR.  Begin with `types.py`, `op.py` (ops and values) and `graph.py`; `loop.py` and
`scalar.py` define the loop IR.

    declaration, routine, source           the declaration of an op; library routines that compute ops; source positions of values
    extent, access                         integers that depend on loop indices; index maps from an element to the stored element it is
    texts                                  printers and parsers of graphs and kernels
    semantics                              their meaning (interpreters) and validity (verifiers)
    contracts                              the data that one stage passes to the next
"""
