"""What is called inside of traced functions: `loops.py` (scan, cond, while_loop ...), `checkpoints.py`, `callbacks.py` (Python functions
that programs call back); and `eager.py`, which makes the functions of `bw.nn`, `bw.random` and `bw.scipy` work outside of a trace too.
"""
