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

_Row = tuple[int, ...]         # the coefficients of the indices; with a constant it is the inequality  row . indices + constant >= 0


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
        if rest is None:                           # a negative number >= 0
            return False
        if len(rest) > MOST_INEQUALITIES:
            return True
        system = rest
    return True


def _serial(index: Index) -> int:
    return index.serial


def _add(system: dict[_Row, int], row: _Row, constant: int) -> bool:
    """Add an inequality; of those with the same coefficients the strongest is kept.  False where it is a number, and negative."""
    common = math.gcd(*row)
    if not common:
        return constant >= 0
    if common > 1:
        row, constant = tuple([factor // common for factor in row]), constant // common       # 2x >= 1 is x >= 1 for integers
    system[row] = min(constant, system.get(row, constant))
    return True


def _cheapest(system: dict[_Row, int]) -> int:
    """The place of the index whose elimination leaves the fewest inequalities: one for each pair of a lower and an upper bound of it,
    instead of these bounds."""
    costs = []
    for place in range(len(next(iter(system)))):
        signs = [row[place] for row in system if row[place]]
        upper = sum(factor < 0 for factor in signs)
        costs.append((upper * (len(signs) - upper) - len(signs) if signs else math.inf, place))
    return min(costs)[1]


def _without(place: int, system: dict[_Row, int]) -> dict[_Row, int] | None:
    """The inequalities that follow for the other indices; None where they cannot hold.

    From  p x + low >= 0  and  -q x + high >= 0,  with p, q > 0, follows  q low + p high >= 0.
    """
    found = {row: constant for row, constant in system.items() if not row[place]}
    lower = [(row, constant) for row, constant in system.items() if row[place] > 0]
    upper = [(row, constant) for row, constant in system.items() if row[place] < 0]
    for low, low_constant in lower:
        for high, high_constant in upper:
            p, q = low[place], -high[place]
            made = tuple([q * one + p * two for one, two in zip(low, high, strict=True)])
            if not _add(found, made, q * low_constant + p * high_constant):
                return None
    return found
