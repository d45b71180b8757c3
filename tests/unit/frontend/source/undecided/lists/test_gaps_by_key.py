"""Python's functions of lists whose length data decides: `max(rows, key=...)`, `sorted`, `map`, `itertools.accumulate`, and unpacking them."""

import functools
import heapq
import itertools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.unit.frontend.comparing import as_python

X = np.array([0.3, -1.2, 0.8, -0.4, 1.5, -2.0, 0.1, 0.9, -0.7, 0.6, -0.2, 0.45])
PLACES = (X, 0.7 * X - 0.3, np.roll(X, 5), -X)


def pairs(x):
    found, t = [], 0.0
    for y in x:
        t += 0.1
        if y < 0.5:
            found.append((t, y * y))
    return found


def rows(x):
    return [[t, v] for t, v in pairs(x)]


def kept(x):
    return [v for v in x if v < 0.5]


def largest_by_key(x):
    t, v = max(pairs(x), key=lambda pair: pair[1])
    row = min(rows(x), key=lambda row: abs(row[0] - 0.55))
    return t * v + row[0] * row[1]


def first_of_those_that_are_alike(x):
    alike = [(k % 3, v) for k, v in enumerate(x) if v < 0.5]
    return max(alike, key=lambda pair: pair[0])[1] + 10 * min(alike, key=lambda pair: pair[0])[1]


def largest_pair(x):
    return max(pairs(x))[1] + min([(v, t) for t, v in rows(x)])[1] + max(rows(x))[1]


def largest_or_default(x):
    t, v = max(pairs(x + 1.8), key=lambda pair: pair[1], default=(0.5, 2.0))
    return t * v * x[0] + max([v for _, v in pairs(x + 2.8)], default=0.0) + min(kept(x), default=1.0)


def by_two_keys(x):
    found = sorted([(k % 3, v, k) for k, v in enumerate(x) if v < 0.5], key=lambda one: (one[0], -one[1]))
    return sum(place * one[1] * one[2] for place, one in enumerate(found))


def in_order(x):
    found = sorted(rows(x), key=lambda row: row[1])
    backward = sorted(rows(x), key=lambda row: row[1], reverse=True)
    alike = sorted([(k % 2, v) for k, v in enumerate(x) if v < 0.5], key=lambda pair: pair[0], reverse=True)
    return sum(k * t * v for k, (t, v) in enumerate(found)) + backward[0][0] * backward[-1][1] + found[0][0] + alike[0][1] * alike[-1][1]


def put_in_order(x):
    found = rows(x)
    found.sort(key=lambda row: -row[1])
    found2 = sorted((v, t) for t, v in pairs(x))
    return found[0][0] * found[-1][1] + len(found) + found2[0][1] * found2[1][0]


def unpacked(x):
    first, *others = kept(x)
    (t, v), *more, last = pairs(x)
    *most, end = kept(x)
    total = first * sum(others) + len(others) + t * v + last[1] + len(more) + end * len(most)
    two = kept(x)[:2]
    a, b = two
    return total + a * b


def accumulated(x):
    running = list(itertools.accumulate(kept(x)))
    smooth = list(itertools.accumulate(kept(x), lambda a, b: 0.5 * a + np.tanh(b), initial=1.0))
    peaks = list(itertools.accumulate(kept(x), max))
    return sum(running) + running[-1] + smooth[-1] + len(smooth) + peaks[-1] * peaks[1] + functools.reduce(lambda a, b: 0.5 * a + b, kept(x))


def accumulated_of_all(x):
    return sum(itertools.accumulate(x, max)) + functools.reduce(min, x) + sum(itertools.accumulate(list(x), lambda a, b: a + b if b > 0 else a))


def mapped(x):
    total = sum(map(lambda row: row[0] * row[1], rows(x))) + sum(filter(lambda v: v < 0.213, kept(x)))  # noqa: C417
    for (s, a), (t, b) in itertools.pairwise(pairs(x)):
        total += (t - s) * (a + b) / 2
    large = [v > 1.0 for _, v in rows(x)]
    if any(large) and not all(large):
        total *= 2
    return total + (x[0] if all([v > 0.02 for _, v in rows(x)]) else x[1])  # noqa: C419


def side_by_side(x):
    doubled = [2 * v for v in kept(x)]
    return sum([a * b for a, b in zip(kept(x), doubled, strict=True)])


class Ball:
    def __init__(self, t, v):
        self.t, self.v = t, v


def of_all(x):
    lists = sorted([[v * v, 0.1 * k] for k, v in enumerate(x)])
    balls = [Ball(0.1 * k, v) for k, v in enumerate(x)]
    best, ordered = max(balls, key=lambda ball: ball.v), sorted(balls, key=lambda ball: -ball.v)
    others = [[v, k] for k, v in enumerate(x)]
    others.sort(key=lambda row: row[0])
    return lists[0][1] * lists[3][0] + best.t * best.v + ordered[1].v * ordered[2].t + others[2][0] * others[3][1]


def some_of_the_largest(x):
    total = sum(k * v for k, v in enumerate(heapq.nlargest(3, x))) + heapq.nsmallest(2, list(x), key=abs)[1]
    return total + sum(heapq.nlargest(3, kept(x))) * heapq.nsmallest(1, kept(x))[0] + sum(heapq.nlargest(-1, x))


PROGRAMS = [of_all, some_of_the_largest, largest_by_key, first_of_those_that_are_alike, largest_pair, largest_or_default, by_two_keys, in_order, put_in_order, unpacked,
            accumulated, accumulated_of_all, mapped, side_by_side]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES[:2])
    as_python(program, *PLACES[2:])


def two(x):
    a, b = kept(x)
    return a * b


def one_and_others(x):
    a, b, *others = kept(x)
    return a * b + len(others)


def as_many(x):
    return sum([a * b for a, b in zip(kept(x), [1.0, 2.0], strict=True)])


def first_of_none(x):
    return max(pairs(x), key=lambda pair: pair[1])[0]


def reduced_of_none(x):
    return functools.reduce(lambda a, b: a + b, kept(x))


@pytest.mark.parametrize("program", [two, one_and_others, as_many, first_of_none, reduced_of_none], ids=lambda program: program.__name__)
def test_errors_of_python(program):
    """Of no elements, one, two and three: values as in Python, and errors of the same types."""
    compiled, places = bw.jit(program), 1.0 + np.arange(12.0)
    for number in range(4):
        x = np.where(np.arange(12) % 4 == 1, np.where(np.arange(12) < 4 * number, -places, places), places)
        try:
            expected = program(x)
        except (TypeError, ValueError) as error:
            with pytest.raises(ValueError if isinstance(error, ValueError) else (TypeError, IndexError)):
                compiled(x)
        else:
            assert compiled(x) == pytest.approx(expected, rel=1e-12)


def test_keys_with_nan_are_as_in_python():
    def program(x):
        found = [(k, v) for k, v in enumerate(x) if not v < -1.0]
        return max(found, key=lambda pair: pair[1])[0], min(found, key=lambda pair: pair[1])[0]
    for nan in ([0], [3], [0, 4], [2, 3]):
        x = np.array([0.5, 2.0, -3.0, 1.0, 0.25, 3.0])
        x[nan] = np.nan
        assert bw.jit(program)(x) == program(x)


def test_an_iterator_is_used_up():
    def program(x):
        squares = map(lambda v: v * v, kept(x))  # noqa: C417
        return sum(squares), sum(squares)
    np.testing.assert_allclose(bw.jit(program)(X), program(X))


def _sorted_and_changed(x):
    found = [[v, v * v] for v in x]
    sorted(found, key=lambda row: row[1])[0][1] = 5.0
    return sum(row[1] for row in found)


def _largest_changed(x):
    found = [[v, v * v] for v in x]
    best = max(found, key=lambda row: row[1])
    best[1] = 5.0
    return sum(row[1] for row in found)


@pytest.mark.parametrize("program", [_sorted_and_changed, _largest_changed], ids=lambda program: program.__name__)
def test_what_was_chosen_among_lists_is_not_changed(program):
    with pytest.raises(UnsupportedError, match=r"test_gaps_by_key.py:\d+.*\n.*a list is changed"):
        bw.jit(program)(X)


def test_stacks_of_a_depth_that_data_decides_are_as_those_written_with_arrays():
    def program(x):
        stack, total = [(0.0, 4.0)], 0.0
        while stack:
            a, b = stack.pop()
            m = (a + b) / 2
            if abs(np.sin(x[0] * a) - np.sin(x[0] * b)) * (b - a) > 0.3:
                stack.append((a, m))
                stack.append((m, b))
            else:
                total += (b - a) * np.sin(x[0] * m)
        return total

    def with_arrays(x):
        stack, count, total = np.zeros((200, 2)), 1, 0.0
        stack[0] = 0.0, 4.0
        while count > 0:
            count -= 1
            a, b = stack[count]
            m = (a + b) / 2
            if abs(np.sin(x[0] * a) - np.sin(x[0] * b)) * (b - a) > 0.3:
                stack[count] = a, m
                count += 1
                stack[count] = m, b
                count += 1
            else:
                total += (b - a) * np.sin(x[0] * m)
        return total

    assert bw.jit(program)(X) == pytest.approx(program(X), rel=1e-12)
    assert bw.jit(with_arrays)(X) == pytest.approx(program(X), rel=1e-12)
    np.testing.assert_allclose(bw.grad(program)(X), bw.grad(with_arrays)(X), rtol=1e-12)
