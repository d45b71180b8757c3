"""Graph colouring: groups of columns (or rows) of a sparse matrix whose elements one product with a vector determines.

Curtis, Powell and Reid (1974) for Jacobians; for symmetric matrices the restricted star colouring of Powell and Toint (1979), as in
Gebremedhin, Manne and Pothen, "What color is your Jacobian?" (2005).  Greedy, in the order of the columns.  The largest number of columns
in a row is a lower bound of the number of colours.  If greedy needs more, two alternatives are tried: greedy in the smallest-last order
(Matula and Beck, "Smallest-last ordering", 1983), and for stencils on grids colours that are linear in the
position: (row + 2 column) mod 5 for five points, as in Goldfarb and Toint, "Optimal estimation of Jacobian and Hessian matrices that
arise in finite difference calculations" (1984).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

PAIRS = 400_000                # other orders are tried only with at most this many pairs of columns that share a row
DIAGONALS = 32                 # most diagonals of a stencil
SAMPLE = 2_000                 # rows on which linear colours are checked first
TRIES = 2_000                  # most linear colourings that are checked


def column_colours(pattern: Any) -> Any:
    """A colour per column of a csr pattern, such that no row has two columns of one colour."""
    colours = _greedy_columns(pattern, range(pattern.shape[1]))
    least = int(np.diff(pattern.indptr).max(initial=0))
    if _count(colours) > least:
        colours = _linear_colours(pattern, least, _count(colours), colours)
    if _count(colours) > least and _pairs(pattern) <= PAIRS:
        colours = min(colours, _greedy_columns(pattern, _smallest_last(pattern)), key=_count)
    return colours


def star_colours(pattern: Any) -> Any:
    """A colour per row of a symmetric csr pattern.

    Neighbours differ, and a colour that two neighbours of a row share is higher than its own.  Then every element (i, j) is the only one
    of its colour in row i, or in row j: if row i has another neighbour k of j's colour, then that colour is higher than i's, and row j has
    no second neighbour of i's colour, because then i's would be higher than j's.  (Colours that no row has twice satisfy this too.)
    """
    colours = _greedy_star(pattern, range(pattern.shape[0]))
    if _count(colours) <= 2:
        return colours
    colours = _linear_colours(pattern, int(np.diff(pattern.indptr).max(initial=0)), _count(colours), colours)
    return min(colours, _greedy_star(pattern, _smallest_last(pattern)), key=_count) if _pairs(pattern) <= PAIRS else colours


def _count(colours: Any) -> int:
    return int(colours.max()) + 1 if colours.size else 0


def _pairs(pattern: Any) -> int:
    """An upper bound of the number of pairs of columns that share a row."""
    return int(np.sum(np.diff(pattern.indptr).astype(np.int64) ** 2))


def _greedy_columns(pattern: Any, order: Sequence[int]) -> Any:
    columns = pattern.tocsc()
    starts, rows = columns.indptr.tolist(), columns.indices.tolist()
    taken = [0] * pattern.shape[0]                 # per row the set of its colours, as bits
    colours = np.zeros(pattern.shape[1], np.int64)
    for column in order:
        mine = rows[starts[column]:starts[column + 1]]
        used = 0
        for row in mine:
            used |= taken[row]
        bit = ~used & (used + 1)                   # the lowest free colour
        for row in mine:
            taken[row] |= bit
        colours[column] = bit.bit_length() - 1
    return colours


def _greedy_star(pattern: Any, order: Sequence[int]) -> Any:
    starts, columns = pattern.indptr.tolist(), pattern.indices.tolist()
    colours = [-1] * pattern.shape[0]
    for vertex in order:
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


def _smallest_last(pattern: Any) -> list[int]:
    """The smallest-last order: the last column shares rows with the fewest others, the one before it with the fewest of the rest, etc."""
    graph = (pattern.T.astype(np.int32) @ pattern.astype(np.int32)).tocsr()
    starts, ends = graph.indptr.tolist(), graph.indices.tolist()
    degrees = np.diff(graph.indptr).tolist()
    waiting = [(degree, column) for column, degree in enumerate(degrees)]
    heapq.heapify(waiting)
    placed = [False] * len(degrees)
    order: list[int] = []
    while waiting:
        degree, column = heapq.heappop(waiting)
        if placed[column] or degree != degrees[column]:
            continue
        placed[column] = True
        order.append(column)
        for other in ends[starts[column]:starts[column + 1]]:
            if not placed[other]:
                degrees[other] -= 1
                heapq.heappush(waiting, (degrees[other], other))
    return order[::-1]


def _linear_colours(pattern: Any, least: int, most: int, otherwise: Any) -> Any:
    """A colouring with fewer than `most` colours that is linear in the position on a grid, if the pattern is a stencil and there is one."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    offsets = np.unique(pattern.indices - rows)
    if not least or pattern.shape[0] != pattern.shape[1] or len(offsets) > DIAGONALS:
        return otherwise
    first = (pattern.shape[0] - min(SAMPLE, pattern.shape[0])) // 2
    sample = pattern[first:first + SAMPLE]
    candidates = _candidates(pattern.shape[1], range(least, most), [int(offset) for offset in offsets if offset > 2])
    for count, colours in itertools.islice(candidates, TRIES):
        if _tells_apart(sample, colours, count) and _tells_apart(pattern, colours, count):
            return colours
    return otherwise


def _candidates(size: int, counts: Sequence[int], offsets: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Linear colourings, those with the fewest colours first."""
    places = np.arange(size)
    for count in counts:
        for periods in _periods(offsets):
            for factors in itertools.product(range(count), repeat=len(periods)):
                colours = places.copy()
                for period, factor in zip(periods, factors, strict=True):
                    colours += factor * (places // period)
                yield count, colours % count


def _periods(offsets: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Possible strides of a grid: none (one axis), that of rows, or those of rows and planes."""
    yield ()
    for offset in offsets:
        yield (offset,)
    for one, two in itertools.combinations(offsets, 2):
        if two % one == 0 and two > 2 * one:
            yield one, two


def _tells_apart(pattern: Any, colours: Any, count: int) -> bool:
    """Whether no row has two columns of one colour."""
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    return bool(np.bincount(rows * count + colours[pattern.indices], minlength=1).max() <= 1)
