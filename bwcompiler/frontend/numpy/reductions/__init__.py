"""Functions that combine elements.  Begin with `reductions.py` (sum, max, running sums); `nan.py` skips nan, `sorting.py` orders,
`quantiles.py` picks by order, `searching.py` finds and counts, `comparisons.py` compares whole arrays.
"""
