"""Graph to graph passes, one per file; their order, with the reasons, is in `compiler/pipeline.py`.

    rewriting     value by value: the engine, simplification, legalisation
    derivatives   reverse and forward mode, custom rules, and the choice of values to keep between the forward and the adjoint graph
    adjoints      reverse mode of ops with bodies: loops, branches, checkpoints
    batching      mapping a graph over a new axis (vmap)
    loops         turning loops into array code, unrolling, removing unused parts, choosing what loops carry
    memory        in-place updates, and the memory of every value
    fusion        grouping values into loop trees

`pass_manager.py` runs them.  Begin with `rewriting/rewriter.py` and `derivatives/autodiff.py`.
"""
