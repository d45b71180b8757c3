"""Colourings: columns (or rows) of a sparse matrix that one product with a vector tells apart.

Curtis, Powell and Reid (1974) for Jacobians; for symmetric matrices the restricted star colouring of Powell and Toint (1979), as in
Gebremedhin, Manne and Pothen, "What color is your Jacobian?" (2005).  Greedy, in the order of the columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def column_colours(pattern: Any) -> Any:
    """A colour per column of a csr pattern, such that no row has two columns of one colour."""
    columns = pattern.tocsc()
    starts, rows = columns.indptr.tolist(), columns.indices.tolist()
    taken = [0] * pattern.shape[0]                 # per row its colours, as bits
    colours = np.zeros(pattern.shape[1], np.int64)
    for column in range(pattern.shape[1]):
        mine = rows[starts[column]:starts[column + 1]]
        used = 0
        for row in mine:
            used |= taken[row]
        bit = ~used & (used + 1)                   # the lowest that is free
        for row in mine:
            taken[row] |= bit
        colours[column] = bit.bit_length() - 1
    return colours


def star_colours(pattern: Any) -> Any:
    """A colour per row of a symmetric csr pattern.

    Neighbours differ, and a colour that two neighbours of a row share is higher than its own.  Then every element (i, j) is the only one
    of its colour in row i, or in row j: for if row i has another neighbour k of j's colour, that is higher than i's, and row j has no
    second neighbour of i's colour, which would have to be higher than j's.
    """
    starts, columns = pattern.indptr.tolist(), pattern.indices.tolist()
    colours = [-1] * pattern.shape[0]
    for vertex in range(pattern.shape[0]):
        used = 0
        for middle in columns[starts[vertex]:starts[vertex + 1]]:
            if middle == vertex:
                continue
            limit = colours[middle]
            if limit >= 0:
                used |= 1 << limit
            for end in columns[starts[middle]:starts[middle + 1]]:
                if end != vertex and colours[end] >= 0 and (limit < 0 or colours[end] < limit) and end != middle:
                    used |= 1 << colours[end]
        bit = ~used & (used + 1)
        colours[vertex] = bit.bit_length() - 1
    return np.array(colours, np.int64)
