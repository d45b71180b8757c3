"""Whether affine inequalities of indices have a solution: Fourier-Motzkin elimination.

An index x is eliminated from inequalities by adding each lower bound of it to each upper one: from a + 2x >= 0 and b - 3x >= 0 follows
3a + 2b >= 0.  If numbers remain, one of which is negative, there was no solution.  Coefficients are divided by what they have in common,
and constants rounded down, because indices are integers (this finds most, but not all, systems that have solutions only among fractions).

Source: Banerjee, Dependence Analysis, 1997, chapters 3 and 4; Pugh, "The Omega test", 1991.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bwcompiler.ir.extent import Affine, Extent, Index

MOST_INEQUALITIES = 256        # at a time: more are said to have a solution

_Row = tuple[int, ...]         # the coefficients of the indices


def have_solution(inequalities: Iterable[Extent]) -> bool:
    """Whether there may be integers for the indices with which all the extents are >= 0; the bounds of indices do not count."""
    extents = list(inequalities)
    indices = sorted({index for extent in extents if isinstance(extent, Affine) for index, _ in extent.terms}, key=_serial)
    system: dict[_Row, int] = {}
    for extent in extents:
        terms = {} if isinstance(extent, int) else dict(extent.terms)
        constant = extent if isinstance(extent, int) else extent.constant
        if not _add(system, tuple([terms.get(index, 0) for index in indices]), constant):
            return False
    while any(any(row) for row in system):
        rest = _without(_cheapest(system), system)
        if rest is None:
            return False
        if len(rest) > MOST_INEQUALITIES:
            return True
        system = rest
    return True


def _serial(index: Index) -> int:
    return index.serial


def _add(system: dict[_Row, int], row: _Row, constant: int) -> bool:
    """Add an inequality, of which the strongest is kept; False where it cannot hold."""
    common = math.gcd(*row)
    if not common:
        return constant >= 0
    if common > 1:
        row, constant = tuple([factor // common for factor in row]), constant // common
    system[row] = min(constant, system.get(row, constant))
    return True


def _cheapest(system: dict[_Row, int]) -> int:
    """The place of the index whose elimination leaves the fewest inequalities."""
    costs = []
    for place in range(len(next(iter(system)))):
        signs = [row[place] for row in system if row[place]]
        upper = sum(factor < 0 for factor in signs)
        costs.append((upper * (len(signs) - upper) - len(signs) if signs else math.inf, place))
    return min(costs)[1]


def _without(place: int, system: dict[_Row, int]) -> dict[_Row, int] | None:
    """The inequalities that follow for the other indices; None where they cannot hold."""
    found: dict[_Row, int] = {}
    below = [(row, constant) for row, constant in system.items() if row[place] > 0]
    above = [(row, constant) for row, constant in system.items() if row[place] < 0]
    for row, constant in system.items():
        if not row[place]:
            found[row] = min(constant, found.get(row, constant))
    for row, constant in below:
        for other, more in above:
            first, second = -other[place], row[place]
            made = tuple([first * one + second * two for one, two in zip(row, other, strict=True)])
            if not _add(found, made, first * constant + second * more):
                return None
    return found
