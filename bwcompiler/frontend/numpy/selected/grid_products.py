"""Products and linear algebra of matrices of which data say how many rows and columns they have.

A square matrix has the rows and columns of the identity where there is nothing: these are apart from all others, so that solutions,
inverses, determinants and Cholesky factors are those of the elements there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected.grids import Parts, along, made, matched, parts_of, require_of_data, spread, square, with_line
from bwcompiler.frontend.numpy.selected.packing import aligned, fixed, selected
from bwcompiler.frontend.tracing.indexing.grids import Grid, Line
from bwcompiler.frontend.tracing.indexing.masked_selection import GRIDDED, Selection, SizedByData, refuse


def contracted(inputs: str, output: str, operands: tuple[Any, ...]) -> Any:
    """np.einsum(f"{inputs}->{output}", *operands) with several letters of which data say how many numbers they are for."""
    terms, given = inputs.split(","), [parts_of(x) for x in operands]
    lines: dict[int, Line] = {}
    for letter in dict.fromkeys(inputs.replace(",", "")):
        holders = [place for place, (term, one) in enumerate(zip(terms, given, strict=True)) if letter in term and one.lines.keys() & {
            axis for axis, name in enumerate(term) if name == letter}]
        if not holders:
            continue
        if any(term.count(letter) > 1 for term in terms):
            refuse("a product along a diagonal of it")
        given, line = matched(given, [term.index(letter) if letter in term else None for term in terms])
        if line is not None and letter in output:
            lines[output.index(letter)] = line
        elif line is not None:
            given = [Parts(_zeroed(one, term.index(letter)), one.lines) if place in holders else one
                     for place, (term, one) in enumerate(zip(terms, given, strict=True))]
    return made(np.einsum(f"{inputs}->{output}", *[one.array for one in given]), lines)


def _zeroed(parts: Parts, axis: int) -> Any:
    return np.where(spread(parts, (axis,)), parts.array, np.zeros((), parts.array.dtype)[()])


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
    require_of_data([line for x in (a, b) for line in parts_of(x).lines.values()])
    if isinstance(a, Selection):
        a = fixed(a, a.array.shape[1 - a.lead])
    if not isinstance(a, SizedByData):
        right = parts_of(b)
        first = 0 if np.ndim(right.array) == 1 else np.ndim(right.array) - 2
        if first not in right.lines:
            refuse("np.linalg.solve with several right sides of which data say how many they are")
        return np.linalg.solve(a, fixed(along(right, first), a.shape[-1])) if len(right.lines) == 1 else refuse("np.linalg.solve of it")
    matrix, line = _padded(a, "solve")
    right = parts_of(b)
    if np.ndim(right.array) not in (1, 2):
        refuse("np.linalg.solve with stacks of right sides")
    if 0 not in right.lines:                       # as many rows as an array has
        known = fixed(Selection(matrix, line.where, 0, line.count), right.array.shape[0])
        matrix = fixed(Selection(known, line.where, 1, line.count), right.array.shape[0])
        return made(np.linalg.solve(matrix, right.array), right.lines)
    rows, sides = aligned([Selection(matrix, line.where, 0, line.count), along(right, 0)])
    if rows.array is not matrix:                   # packed: the rows, and with them the columns
        columns = aligned([Selection(rows.array, line.where, 1, line.count), Selection(rows.where, rows.where, 0, rows.count)])[0]
        room = rows.where.shape[0]
        rows = Selection(columns.array[:room, :room], rows.where, 0, rows.count)
        whole = Parts(rows.array, _both(Line(rows.where, rows.count)))
        rows = Selection(np.where(spread(whole), rows.array, np.eye(room, dtype=rows.array.dtype)), rows.where, 0, rows.count)
    right = with_line(right, 0, sides)
    found = np.linalg.solve(rows.array, _zeroed(right, 0))
    return made(found, right.lines)


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


GRIDDED.update({np.linalg.solve: solve, np.linalg.inv: inv, np.linalg.cholesky: cholesky, np.linalg.det: det, np.linalg.slogdet: slogdet})
selected(np.linalg.solve)(solve)
