"""Replacements of library functions that captured code calls.  Begin with `builtin_functions.py`.

builtin_functions, plain, positions     Python's own, for numbers, and for lists whose length or elements depend on data
in_order                                sorted() and list.sort()
mathematics                             `math` and `cmath`
heaps, bisection                        `heapq` and `bisect`
wrappers                                functions that stand around one of the user's, such as `functools.lru_cache`
vectorized, iterators, series           np.vectorize; np.nditer and its like; np.polynomial
libraries, masked                       SciPy's functions; masked arrays, np.ma
"""
