"""Lists and tuples of what data select: list(x[x > 0]), x[x > 0].tolist(), pairs.extend((close + i).tolist())."""

import numpy as np
import pytest

from tests.unit.frontend.comparing import as_python

X = np.random.default_rng(0).uniform(0.0, 1.5, 15)


def a_list(x):
    kept = list(x[x > 0.5])
    return sum(kept) * max(kept) + len(kept)


def python_numbers(x):
    return sum(sorted((x[x > 0.4] ** 2).tolist())[:3])


def a_tuple(x):
    kept, squares, total = tuple(x[x > 0.5]), list(x[x > 0.5] ** 2), 0.0
    for k, (one, square) in enumerate(zip(kept, squares, strict=True)):
        total = total + one * square * (k + 1)
    return total + len(kept)


def changed(x):
    total = 0.0
    for k in range(10):
        kept = list(x[x > 0.1 * k])
        kept.append(x[k])
        total = total + sum(kept) * k + kept[-1] + kept[0]
    return total


def pairs(x):
    first, second = [], []
    for i in range(14):
        close = np.nonzero((x[i + 1:] - x[i]) ** 2 > 0.2)[0]
        first.extend([i] * len(close))
        second.extend((close + i + 1).tolist())
    first, second = np.array(first, dtype=int), np.array(second, dtype=int)
    return np.sum((x[second] - x[first]) ** 2)


@pytest.mark.parametrize("program", [a_list, python_numbers, a_tuple, changed, pairs], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, X[::-1].copy(), X * 0.8)
