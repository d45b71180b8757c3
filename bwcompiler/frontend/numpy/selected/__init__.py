"""NumPy's functions on selections by a traced mask (`tracing/indexing/masked_selection.py`), on positions of a mask, and on grids.

Begin with `packing`, which all others use; then `elementwise`, `reducing`, `ordering`, `shapes`, `products`, `fitting`, `items`,
`accumulating`, `positions`, `sets`; `assumed`, where sizes are taken for what they are.
 Grids (`tracing/indexing/grids.py`), of which several axes have masks: begin with `grids`, then
`grid_items`, `grid_positions`, `grid_products`.
"""
