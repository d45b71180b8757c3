"""Elementwise functions.  Begin with `ufuncs.py`, the rule of each ufunc in terms of ops, and `ufunc_calls.py`, from an operator to a
value.  Functions of scipy.special are in `special.py` (composed of ops) and `special_by_loop.py` (SciPy's loops).
`truths.py`: sums of truth values, which are Python's or NumPy's.
"""
