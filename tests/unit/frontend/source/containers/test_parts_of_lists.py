"""Parts of lists that are assigned to in branches and loops: `order[i:j + 1] = order[i:j + 1][::-1]`."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.gradcheck import central_differences

X = np.array([0.9, 0.3, 1.4, 0.6, 1.1, 0.2])


def reversed_in_branches(x):
    order = list(range(6))
    for k in range(10):
        if x[k % 6] > 0.8:
            order[1:4] = order[1:4][::-1]
            x = x * 0.9
        else:
            order[::2] = [order[4], order[2], order[0]]
    return sum(x[o] * (i + 1) for i, o in enumerate(order))


def all_of_them(x):
    total = [0.0] * 6
    for k in range(10):
        if x[k % 6] > 0.8:
            total[:] = [a + b for a, b in zip(total, x, strict=True)]
        total[-2:] = x[0] * total[0], 0.1 * k
    return sum(total) + total[-1] * total[2]


def exchanges(x):
    x = x[:5]
    tour = list(range(len(x)))
    improved = True
    while improved:
        improved = False
        for i in range(1, len(x)):
            for j in range(i + 1, len(x)):
                a, b, c, d = tour[i - 1], tour[i], tour[j], tour[(j + 1) % len(x)]
                if abs(x[a] - x[c]) + abs(x[b] - x[d]) < abs(x[a] - x[b]) + abs(x[c] - x[d]) - 1e-12:
                    tour[i:j + 1] = tour[i:j + 1][::-1]
                    improved = True
    return sum(abs(x[tour[k - 1]] - x[tour[k]]) ** 1.5 for k in range(len(x)))


def longer(x):
    kept = [x[0], x[1]]
    for k in range(4):
        kept[1:] = [kept[-1] * x[k], x[k]] if k % 2 else [x[k + 1], kept[0], x[k]]
    return sum(kept)


@pytest.mark.parametrize("function", [reversed_in_branches, all_of_them, exchanges, longer])
def test_part_of_a_list(function):
    gradient = bw.value_and_grad(function)
    for x in (X, X[::-1].copy(), np.sin(3 * X)):
        value, slope = gradient(x)
        assert abs(value - function(x)) < 1e-12
        np.testing.assert_allclose(slope, central_differences(function, x), atol=1e-7)
