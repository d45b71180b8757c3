"""NumPy's functions of selections by a traced mask (`tracing/indexing/masked_selection.py`), and of positions that a mask gives.

Begin with `packing`: what all others need; then `elementwise`, `reducing`, `ordering`, `products`, `fitting`, `items`, `accumulating`,
`positions`, `sets`.
"""
