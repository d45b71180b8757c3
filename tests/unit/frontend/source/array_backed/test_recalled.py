"""Lists that grow with a loop, read at places that move in it; lists that are made anew, with as many elements as the index says."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.8, 0.3])
N = len(X)


def catalan(x):
    c = [1.0]
    for k in range(1, N):
        c.append(sum(c[j] * c[k - 1 - j] * x[j] for j in range(k)) / (1 + k))
    return c[-1] + c[3]


def renewal(x):
    """The list begins with an integer and has several elements; both ends are counted."""
    c = [1, 0.5, x[0]]
    for k in range(N):
        c.append(0.3 * c[k] + 0.2 * c[-k - 1] * x[k] + 0.1 * sum([c[i] for i in range(k + 3)]))
    return c[-1] + len(c)


def two_in_each(x):
    c = [x[0]]
    for k in range(1, N):
        half = np.sin(c[2 * k - 2] * x[k])
        c.append(half)
        c.append(half * c[k])
    return sum(c)


def in_a_loop_inside(x):
    total = 0.0
    for i in range(9):
        c = [x[i]]
        for k in range(1, N):
            c.append(c[k // 2] * 0.5 + x[k] * c[0])
        total += c[-1] * i
    return total


def extremes(x):
    return sum(max(x[j] for j in range(k)) - min([x[j] * k for j in range(k)]) for k in range(1, N))


def sums_of_lists(x):
    total = 0.0
    for k in range(1, N):
        total += sum([x[j] * x[k - j] for j in range(k)]) / k
    return total


def means_of_lists(x):
    total = 0.0
    for k in range(1, N):
        total += np.sum([x[j] * k for j in range(k)]) / len([x[j] for j in range(k)])
    return total


def filled_by_hand(x):
    total = 0.0
    for k in range(1, N):
        parts = []
        for j in range(k):
            parts.append(np.sin(x[j] * k))
        total += max(parts) + parts[-1]
    return total


PROGRAMS = [catalan, renewal, extremes, sums_of_lists, means_of_lists, filled_by_hand]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python_and_one_loop(program) -> None:
    as_python(program, X, 1.1 - X)
    assert "is unrolled" not in bw.jit(program).explain(X)


@pytest.mark.parametrize("program", [in_a_loop_inside, two_in_each], ids=lambda program: program.__name__)
def test_others_as_python(program) -> None:
    as_python(program, X, 1.1 - X)


def test_what_is_not_there_is_an_error_as_in_python() -> None:
    def beyond(x):
        c = [x[0]]
        for k in range(1, N):
            c.append(c[k] * 2.0)
        return c[-1]

    def of_nothing(x):
        total = 0.0
        for k in range(N):
            total += max([x[j] for j in range(k)])
        return total

    with pytest.raises(IndexError, match="list index out of range"):
        bw.jit(beyond)(X)
    with pytest.raises(ValueError, match="empty"):
        bw.jit(of_nothing)(X)


def test_others_than_floats_are_unrolled_and_right() -> None:
    def integers(x):
        p = [1, 1]
        for k in range(2, N):
            p.append(p[k - 1] + p[k // 2])
        return p[-1] * x[0] + p[-1] // 2

    def arrays(x):
        kept = [x]
        for k in range(1, N):
            kept.append(kept[k // 2] * 0.5 + x)
        kept[3][0] = 7.0
        return kept[-1].sum() + kept[3].sum()

    def mixed(x):
        kept = [x[0]]
        for k in range(1, N):
            kept.append(kept[k // 2] * 0.5 if k != 7 else x[3] > 0)
        return kept[-1] * 1.0

    for program in (integers, arrays, mixed):
        assert bw.jit(program)(X) == pytest.approx(program(X), rel=1e-12)
