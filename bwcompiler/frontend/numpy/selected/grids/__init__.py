"""Arrays of which data say how long several axes are: `shapes`, where to begin, `reducing`, `items`, `linalg`.  Elementwise functions and
products take them as they take selections (`selected.elementwise`, `selected.products`).
"""

from bwcompiler.frontend.numpy.selected.grids import items, linalg, reducing, shapes  # noqa: F401
