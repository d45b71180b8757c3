"""Reverse mode of loops, branches and checkpointed functions.  Begin with `expand_regions.py`, which makes each of them one that also
gives what its adjoint needs; the adjoints are in `loop_adjoint.py`, `while_adjoint.py`, `cond_adjoint.py`, `checkpoint_adjoint.py`.
"""
