"""What is called in the place of functions of others: Python's own (`builtin_functions`), `np.vectorize` (`vectorized`), series of
np.polynomial (`series`), SciPy's (`libraries`), and what seeds random numbers (`seeds`).
"""
