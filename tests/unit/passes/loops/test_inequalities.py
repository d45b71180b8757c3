"""Systems of inequalities of indices: those that have no solution are found, and no others are said to have none."""

from __future__ import annotations

import itertools

import numpy as np

from bwcompiler.ir.extent import Index, evaluate
from bwcompiler.passes.loops.inequalities import have_solution

FIRST, SECOND, THIRD = Index(0, 9, "i"), Index(0, 9, "j"), Index(0, 9, "k")
i, j, k = FIRST.extent(), SECOND.extent(), THIRD.extent()


def test_bounds_that_exclude_each_other():
    assert have_solution([i, 9 - i, j - i])
    assert not have_solution([i - 5, 4 - i])
    assert not have_solution([j - i - 1, k - j - 1, i - k])             # i < j < k <= i
    assert have_solution([j - i, k - j, i - k])                          # all equal
    assert have_solution([]) and have_solution([0]) and not have_solution([-1])


def test_fractions_are_no_solution():
    assert not have_solution([2 * i - 1, 1 - 2 * i])                     # i = 1/2
    assert not have_solution([2 * i + 4 * j - 3, 3 - 2 * i - 4 * j])     # an odd number
    assert have_solution([2 * i - 4, 4 - 2 * i])


def test_random_systems_with_solutions_are_never_excluded():
    """All that have one in a small box have one; most of the others are found to have none there."""
    rng = np.random.default_rng(0)
    box = [i, 3 - i, j, 3 - j, k, 3 - k]
    found = excluded = 0
    for _ in range(300):
        system = [*box]
        for _ in range(4):
            a, b, c, d = (int(number) for number in rng.integers(-3, 4, 4))
            system.append(a * i + b * j + c * k + d)
        solved = any(all(evaluate(one, {FIRST: x, SECOND: y, THIRD: z}) >= 0 for one in system)
                     for x, y, z in itertools.product(range(4), repeat=3))
        if solved:
            assert have_solution(system)
        else:
            excluded += 1
            found += not have_solution(system)
    assert excluded > 50 and found > 0.8 * excluded
