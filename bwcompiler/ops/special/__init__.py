"""Special functions.  `functions.py`: formulas composed of other ops, which are fused.  `loops.py`: any other function of scipy.special, by
SciPy's own loop; its partial derivatives are in `derivatives.py`, `elliptic_derivatives.py`, `hypergeometric_derivatives.py` and
`complex_derivatives.py`.
"""
