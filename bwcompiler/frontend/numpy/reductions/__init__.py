"""Functions that combine elements.  Begin with `reductions.py` (sum, max, running sums); `nan.py` skips nan, `sorting.py` orders (also
quantiles), `searching.py` finds and counts, `comparisons.py` compares whole arrays.
"""
