"""Special functions.  `functions.py`: formulas composed of other ops, which are fused.  `loops.py`: any other function of scipy.special, by
SciPy's own loop.  Its partial derivatives are in `derivatives.py`; families of functions have a file each beside it.
"""
