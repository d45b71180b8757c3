"""`any`, `all`, `next`, `math.prod` and their like of generator expressions over elements that data decide about."""

import itertools
import math

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.3, -1.2, 0.8, -0.4, 1.5, -2.0, 0.1, 0.9, -0.7, 0.6, -0.2, 0.45])
PLACES = (X, 0.7 * X - 0.3, np.roll(X, 5), -X)


def kept(x):
    return [v for v in x if v < 0.5]


def doubled(x):
    t, found = x[0] + 0.5, []
    while t < 5:
        found.append((len(found), t))
        t = 1.5 * t + 0.1
    return found


def some_or_all(x):
    total = np.sum(x)
    if any(v > 0.44 for v in kept(x)):
        total *= 2
    if all(v * v > 0.02 for v in kept(x)):
        total *= 3
    return total * 5 if any(w > 4.0 for k, w in doubled(x) if k > 1) or all(k < 3 for k, _ in doubled(x)) else total


def some_of_none(x):
    none = [v for v in x if v > 7.0]
    return x[0] if any(v > 0 for v in none) else 2 * x[1] if all(v > 0 for v in none) else 3 * x[2]


def in_a_loop(x):
    seen, total = [], 0.0
    for v in x:
        if v < 0.5:
            seen.append(v)
    for v in x:
        total += v * v if any(abs(v - other) < 0.3217 for other in seen if other > 0) else v
    return total


def first_of_a_list(x):
    found = next((3 * v for v in kept(x) if v > 0.0), -1.0)
    return found * x[0] + next((w for k, w in doubled(x) if k == 1), 0.0) ** 2 + next((v for v in kept(x)), 2.0)


def first_of_an_array(x):
    place = next(k for k, v in enumerate(x) if v > 0.5)
    return x[place] * next((v for v in x if v < -100.0), x[1]) + next(a * b for a, b in zip(x[:-1], x[1:], strict=True) if a > b)  # noqa: RUF007


def first_or_none(x):
    large = next((v for v in x if v > 1.13), None)
    return x[0] if large is None else large * x[1]


def known_first(x):
    """What is known stays known, and no more is evaluated than Python does."""
    count = next(k for k in itertools.count() if 2 ** k > x.size)
    tried = any(k == 2 or 1 / (2 - k) > 9 for k in range(5)) and not all(k != 1 and 1 / (1 - k) for k in range(5))
    waiting = iter([3, 4, 5])
    return np.sum(x[:count]) * next(k for k in waiting if k > 3) * next(waiting) * (2 if tried else 3)


def products(x):
    total = math.prod(v + 1.5 for v in kept(x)) + math.prod((v for v in kept(x) if v > 0), start=2.0)
    return total + math.fsum(v * v for v in kept(x)) + np.sum(np.fromiter((np.sin(v) for v in kept(x)), float))


def first_in_bodies(x):
    total, steps = 0.0, 0
    if x[0] > 0:
        total = next((v for v in x if v > 0.5), x[1])
    while steps < 6 and total < 3.0:
        steps += 1
        total += next((v * steps for v in x if v > 0.2 * steps), 0.1 if x[2] > 0 else 0.3)
        for k in range(3):
            if x[k] > 0.4:
                total -= next(v for v in (2.0, x[k]) if v < 1.7) * 0.1
    return total + steps * next(k for k in range(9) if k > 3)


PROGRAMS = [some_or_all, some_of_none, in_a_loop, first_of_a_list, first_of_an_array, first_or_none, known_first, products, first_in_bodies]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES[:2])
    as_python(program, *PLACES[2:])


def test_second_derivatives():
    v = np.cos(np.arange(12.0))
    for program in (first_of_a_list, products):
        _, tangent = bw.jvp(bw.grad(program), (X,), (v,))
        h = 1e-5
        np.testing.assert_allclose(tangent, (bw.grad(program)(X + h * v) - bw.grad(program)(X - h * v)) / (2 * h), rtol=1e-5, atol=1e-6)


def test_there_is_no_first_one():
    compiled = bw.jit(lambda x: next(v for v in kept(x) if v > 0.4))
    assert compiled(X) == 0.45
    with pytest.raises(StopIteration):
        compiled(-np.ones(12))


def test_an_iterator_of_which_elements_are_gone_is_refused():
    def program(x):
        waiting = iter(list(x))
        return next(v for v in waiting if v > 1.0) + next(waiting)
    with pytest.raises(bw.errors.TracerBoolError):
        bw.jit(program)(X)

    def branching(x):
        waiting = iter([1.0, 2.0, 3.0])
        return next(v for v in waiting if v > 1.5) * x[0] if x[1] > 0 else 0.0
    with pytest.raises(bw.errors.TracerBoolError, match=r"next\(\)"):
        bw.jit(branching)(X)
