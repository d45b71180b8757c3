"""NumPy's functions on selections by a traced mask (`tracing/indexing/masked_selection.py`), and on positions of a mask.

Begin with `packing`, which all others use; then `elementwise`, `reducing`, `ordering`, `products`, `fitting`, `items`, `accumulating`,
`positions`, `sets`.
"""
