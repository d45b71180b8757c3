"""Replacements of library functions that captured code calls: Python's built-in functions (`builtin_functions`), `np.vectorize`
(`vectorized`), series of np.polynomial (`series`), and SciPy's functions (`libraries`).
"""
