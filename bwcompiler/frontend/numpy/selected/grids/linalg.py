"""Linear algebra of matrices of which data say how many rows and columns they have.

A square matrix has the rows and columns of the identity where there is nothing: these are apart from all others, so that solutions,
inverses, determinants and Cholesky factors are those of the elements there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.grids.shapes import extent_of, seen_as
from bwcompiler.frontend.numpy.selected.lines import (
    Parts,
    along,
    made,
    parts_of,
    require_of_data,
    spread,
    with_line,
    without_line,
    zeroed,
)
from bwcompiler.frontend.numpy.selected.packing import aligned, fixed, has_mask_of, packed, require, selected
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.masked_selection import GRIDDED, Selection, refuse


def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    if a.ndim != 2 or offset or {axis1 % 2, axis2 % 2} != {0, 1}:
        refuse("np.diagonal of more axes, or beside the diagonal,")
    rows, columns = square(a)
    return seen_as(a, Selection(np.diagonal(rows), columns.where, 0, columns.count))


def diag(v: Any, k: Any = 0) -> Any:
    return diagonal(v, k)


def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Any:
    return np.sum(diagonal(a, offset, axis1, axis2), dtype=dtype)


def square(a: Grid) -> tuple[Any, Line]:
    """All elements of a matrix that has as many rows as columns, with one line for both."""
    rows, columns = along(Parts(a.array, a.lines), 0), Selection(np.swapaxes(a.array, 0, 1), a.lines[1].where, 0, a.lines[1].count)
    if has_mask_of(rows, columns):
        return a.array, a.lines[0]
    require(extent_of(a.lines[0]) == extent_of(a.lines[1]), np.linalg.LinAlgError("Last 2 dimensions of the array must be square"))
    first = packed(rows)
    both = packed(Selection(first.array, a.lines[1].where, 1, a.lines[1].count))
    room = min(both.array.shape)
    return both.array[:room, :room], Line(both.where[:room], both.count)


def _padded(a: Any, name: str) -> tuple[Any, Line]:
    """A square matrix with rows and columns of the identity where it has none, and the line of both."""
    if not isinstance(a, Grid) or a.ndim != 2:
        refuse(f"np.linalg.{name} of more or fewer axes")
    array, line = square(a)
    whole = Parts(array, {0: line, 1: line})
    return np.where(spread(whole), array, np.eye(array.shape[0], dtype=array.dtype)), line


def _both(line: Line) -> dict[int, Line]:
    return {0: line, 1: line}


def solve(a: Any, b: Any) -> Any:
    """The rows of b that are there stand beside those of the matrix; the others are zero, and so is what is found for them."""
    require_of_data([line for x in (a, b) for line in parts_of(x).lines.values()])
    if not isinstance(a, Grid):
        return _solved_by_known(a, b)
    matrix, line = _padded(a, "solve")
    right = parts_of(b)
    if np.ndim(right.array) not in (1, 2):
        refuse("np.linalg.solve with stacks of right sides")
    if 0 not in right.lines:                       # as many rows as an array has
        size = right.array.shape[0]
        rows = fixed(Selection(matrix, line.where, 0, line.count), size)
        return made(np.linalg.solve(fixed(Selection(rows, line.where, 1, line.count), size), zeroed(right)), right.lines)
    rows, sides = aligned([Selection(matrix, line.where, 0, line.count), along(right, 0)])
    if rows.array is not matrix:                   # packed, both of them: the columns stand as the rows do
        matrix = _padded(Grid(rows.array, {0: Line(rows.where, rows.count), 1: line}), "solve")[0]
    right = with_line(right, 0, sides)
    return made(np.linalg.solve(matrix[:sides.where.shape[0], :sides.where.shape[0]], zeroed(right)), right.lines)


def _solved_by_known(a: Any, b: Any) -> Any:
    """np.linalg.solve with a matrix that has as many rows and columns as is known."""
    if isinstance(a, Selection):
        if a.ndim != 2:
            refuse("np.linalg.solve with stacks of matrices")
        a = fixed(a, a.array.shape[1 - a.lead])
    right = parts_of(b)
    place = 0 if np.ndim(right.array) == 1 else np.ndim(right.array) - 2
    if place in right.lines:
        right = without_line(right, place, fixed(along(right, place), np.shape(a)[-1]))
    if np.ndim(a) != 2 or np.ndim(right.array) > 2:
        refuse("np.linalg.solve with stacks of matrices or right sides")
    return made(np.linalg.solve(a, zeroed(right)), right.lines)


def inv(a: Any) -> Any:
    matrix, line = _padded(a, "inv")
    return made(np.linalg.inv(matrix), _both(line))


def cholesky(a: Any, /, *, upper: Any = False) -> Any:
    matrix, line = _padded(a, "cholesky")
    return made(np.linalg.cholesky(matrix, upper=upper), _both(line))


def det(a: Any) -> Any:
    return np.linalg.det(_padded(a, "det")[0])


def slogdet(a: Any) -> Any:
    return np.linalg.slogdet(_padded(a, "slogdet")[0])


GRIDDED.update({np.linalg.solve: solve, np.linalg.inv: inv, np.linalg.cholesky: cholesky, np.linalg.det: det, np.linalg.slogdet: slogdet,
                np.diagonal: diagonal, np.diag: diag, np.trace: trace})
selected(np.linalg.solve)(solve)
