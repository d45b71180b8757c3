"""Replacements of library functions that captured code calls: Python's built-in functions (`builtin_functions`), `np.vectorize`
(`vectorized`), series of np.polynomial (`series`), SciPy's functions (`libraries`), seeds of random numbers (`seeds`), and
what generators draw with traced parameters (`draws`).
"""
