"""Functions to call inside traced functions: `loops.py` (scan, cond, while_loop ...), `checkpoints.py`, `callbacks.py` (Python functions
that programs call back); and `eager.py`, which lets the functions of `bw.nn`, `bw.random` and `bw.scipy` also run outside of a trace.
"""
