"""Loops, branches and checkpoints while tracing.  Begin with `bodies.py`: a body is traced in a region of its own, and what it reads from
outside becomes inputs.  Which arrays are one, where data decides that: `shared_arrays.py`, `twins.py`.
"""
