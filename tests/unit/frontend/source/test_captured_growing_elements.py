"""Lists that grow in a loop, of which the loop assigns to elements: those that the iteration has appended itself."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


def costs(x):
    wealth = [1.0]
    for k in range(12):
        wealth.append(wealth[-1] * (1 + 0.1 * x[k]))
        if abs(x[k]) > 0.5:
            wealth[-1] *= 0.99
    return np.max(np.array(wealth)) + wealth[-1]


def always(x):
    kept = [x[0]]
    for k in range(12):
        kept.append(kept[-1] * x[k] + 1)
        kept[-1] -= 0.5 * kept[-2]
        kept[-1] = np.sin(kept[-1])
    return sum(kept)


def by_index(x):
    kept = []
    for k in range(12):
        kept.append(x[k] ** 2)
        kept[k] = kept[k] + 1
    return np.sum(np.array(kept) ** 2)


def in_a_loop_inside(x):
    kept = [1.0]
    for k in range(12):
        kept.append(x[k])
        for j in range(12):
            kept[-1] = 0.9 * kept[-1] + 0.1 * x[j]
    return sum(kept)


def arrays(x):
    kept = [x]
    for k in range(12):
        kept.append(0.5 * kept[-1] + x)
        kept[-1][k] = 3.0 * x[k]
        if x[k] > 0:
            kept[-1] = kept[-1] * 2
    return np.sum(np.array(kept) ** 2)


def of_another_iteration(x):
    kept = [x[0]]
    for k in range(12):
        kept[-1] += 1.0                            # is unrolled: it was appended before
        kept.append(kept[-1] * x[k])
    return sum(kept)


RECORDED = [costs, always, by_index, in_a_loop_inside, arrays]


@pytest.mark.parametrize("program", [*RECORDED, of_another_iteration], ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X)


@pytest.mark.parametrize("program", RECORDED, ids=lambda program: program.__name__)
def test_stays_a_loop(program) -> None:
    assert "unrolled" not in bw.jit(program).explain(X)
