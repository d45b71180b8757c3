"""Graph to graph passes, one per file; their order, with the reasons, is in `compiler/pipeline.py`.

    rewriting     value by value: the engine, simplification, legalisation
    derivatives   reverse and forward mode, custom rules, and what is kept between the forward and the adjoint graph
    adjoints      reverse mode of what owns graphs: loops, branches, checkpoints
    batching      a graph mapped over a new axis
    loops         loops as array code, written out, pruned; the elements that they carry
    memory        updates that are done in place, and where every value lives
    fusion        what is one loop tree

`pass_manager.py` runs them.  Begin with `rewriting/rewriter.py` and `derivatives/autodiff.py`.
"""
