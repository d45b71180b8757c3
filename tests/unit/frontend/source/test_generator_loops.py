"""Loops over generators of the user's: the body runs inside of the generator, whose own loops are recorded."""

import itertools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from bwcompiler.frontend.source import loops

GIVEN = np.array([0.9, 0.2, 1.3, 0.7, 0.45, 2.2, 0.1, 0.8]), np.array([0.3, 1.2, 0.6, 0.77, 1.9, 0.05, 0.33, 0.2, 0.4, 0.61, 0.5001, 1.1])


def batches(n, size=2, *, skip=0):
    for start in range(skip, n - size + 1, size):
        yield slice(start, start + size)


def decayed(x):
    total = 0.0
    for part in batches(len(x)):
        total = total * 0.9 + np.sum(x[part] ** 2)
    return total


def pairs(x):
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            yield i, j, x[j] - x[i]


def energy(x):
    total = 0.0
    for i, _, distance in pairs(x):
        total += 1.0 / (distance * distance + 1.0 + i)
    return total


def halving(v):
    while True:
        yield v
        v = v * 0.5


def ended_by_the_body(x):
    total = 0.0
    for v in halving(x[0]):
        if v < 1e-3:
            break
        total += v * v
    return total


def returned_from_the_body(x):
    for v in halving(x[0]):
        if v < 1e-2:
            return v * 3 + x[1]
    return 0.0


def several(x):
    yield from range(3)
    for k in range(len(x)):
        if k % 2 == 0:
            continue
        yield x[k]
    yield 1.5
    return 7


def appended(x):
    found = []
    for v in several(x):
        found.append(v * 2.0)
    return sum(found)


def in_comprehensions(x):
    return sum([v ** 2 for v in several(x)]) + sum(v for v in several(x) if v < 1)


def beside_others(x):
    y = np.zeros(len(x))
    for k, v in enumerate(several(x)):
        if k < len(x):
            y[k] = v
    for part, v in zip(batches(len(x), 3, skip=1), several(x), strict=False):
        y[part] += x[part][::-1] * v
    return np.sum(y * np.arange(len(x)))


def numbered(x):
    y, total = np.zeros(len(x)), 0.0
    for k, part in enumerate(batches(len(x)), 1):
        y[k] = np.sum(x[part]) * k
    for k, v in enumerate(halving(x[0])):
        if v < 1e-2:
            total = total * k
            break
        total += v * k
    return np.sum(y * np.arange(len(x))) + total + sum([v * k for k, v in enumerate(several(x))])


class Table:
    def __init__(self, x):
        self.rows = x.reshape(-1, 2)
        self.count = 0

    def each(self):
        for row in self.rows:
            self.count += 1
            yield row

    @staticmethod
    def numbers(n):
        for k in range(n):
            yield k * k


def of_objects(x):
    table, total, last = Table(x), 0.0, None
    for row in table.each():
        total += np.sin(row[0]) * row[1]
        last = row
    for k in Table.numbers(9):
        total += k * x[0]
    return total * table.count + last[0]


def with_finally(x):
    try:
        for k in range(len(x)):
            yield x[k]
    finally:
        pass


def run_by_python(x):
    total = 0.0
    for v in with_finally(x):
        total = total * 0.5 + v
    return total


def of_generators(x):
    total = 0.0
    for part in batches(len(x), 4):
        for inner in batches(4):
            total = total + np.prod(x[part][inner])
    return total


def of_closures(x):
    scale, calls = x[0], 0

    def multiples(n):
        nonlocal calls
        k = 0
        while k < n:
            yield scale * k
            k += 1
            calls += 1
    total = 0.0
    for v in multiples(9):
        total += v ** 2
    return total * calls


def some(x):
    for k in range(len(x)):
        if x[k] > 0.5:
            yield x[k]


def mean_of_some(x):
    total, count = 0.0, 0
    for v in some(x):
        total += v
        count += 1
    return total / max(count, 1)


def up_to(x, most):
    for k in range(len(x)):
        if x[k] > most:
            return
        yield x[k] * k


def left_out(x):
    total = 0.0
    for v in up_to(x, 1.5):
        if v > 3:
            continue
        total += v
    else:
        total *= 2
    return total


def none_at_all(x):
    total = x[0]
    for _ in batches(3, 5):
        total = total * 0
    return total


def normalised(x):
    w = x.copy()
    for part in batches(len(x)):
        w[part] = w[part] * 2
        w = w / np.linalg.norm(w)
    return w[0] + np.sum(w ** 3)


def asked(x):
    numbers = several(x)
    return next(numbers) + 2 * next(numbers) + sum(itertools.islice(numbers, 4)) + max(several(x))


def answered(x):
    given = yield x[0]
    while given is not None:
        given = yield given * x[1]


def sent(x):
    numbers = answered(x)
    next(numbers)
    return numbers.send(x[2]) + numbers.send(3.0) + sum([v * v for v in answered(x)])


def kept_in_variables(x):
    halves, total = halving(x[0]), 0.0
    steps = pairs(x)
    total += x[1]
    for k, v in enumerate(halves):
        total = total + (k + 1) * v
        if v < 0.05:
            break
    for i, j, distance in steps:
        total = total + distance ** 2 * (j - i)
    for part in batches(len(x)):
        parts = pairs(x[part])
        for _, _, distance in parts:
            total = total * 0.9 + distance
    return total


def kept_and_used_otherwise(x):
    """By next(), by two loops, and in each iteration of a loop: Python's own generators."""
    one, other, third = batches(len(x)), batches(len(x)), batches(len(x))
    first, total = next(one), 0.0
    for part in one:
        total = total + np.sum(x[part] ** 2)
    for part in other:
        total = total * 0.5 + x[part][0]
    for _part in other:                            # nothing is left
        total = total * 100.0
    for k in range(3):
        for part in third:                         # in the first iteration alone
            total = total + x[part][0] * (k + 1)
    return total + np.sum(x[first])


def above(x, threshold):
    level = 0.0
    for v in x:
        level = level + v
        if level > threshold:
            yield level
            level = 0.0


def all_taken(x):
    """Of generators whose number of elements depends on data."""
    kept = list(above(x, 1.03))
    rows = sorted(Table(x).each(), key=lambda row: row[0])
    return sum(kept) + len(kept) + max(above(x, 1.47)) + rows[0][1] * rows[-1][0] + (sum(above(x, 0.83)) if x[1] > 0.5 else 0.0)


PROGRAMS = [all_taken, kept_in_variables, kept_and_used_otherwise, decayed, energy, ended_by_the_body, returned_from_the_body, appended, in_comprehensions, beside_others, numbered, of_objects,
            run_by_python, of_generators, of_closures, mean_of_some, left_out, none_at_all, normalised, asked, sent]


@pytest.mark.parametrize("x", GIVEN, ids=["8", "12"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values_and_gradients(program, x):
    value, gradient = bw.value_and_grad(program)(x)
    np.testing.assert_allclose(value, program(x), rtol=1e-12)
    np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-12)
    differences = [(program(x + step) - program(x - step)) / 2e-6 for step in 1e-6 * np.eye(len(x))]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("program, told", [
    (decayed, "is one of 50 iterations: it carries total"), (ended_by_the_body, "it carries v, total"),
    (of_closures, "is one of 9 iterations: it carries k, calls, total"), (mean_of_some, "is one of 100 iterations: it carries total, count"),
    (normalised, "is one of 50 iterations"), (numbered, "is one of 50 iterations: it carries the number beside a value, assigns to")])
def test_the_loop_of_the_generator_is_recorded(program, told):
    assert told in bw.grad(program).explain(np.linspace(0.1, 1.4, 100))


def test_second_derivatives():
    x = GIVEN[0]
    step = 1e-5 * np.linspace(1, 2, len(x))
    differences = (bw.grad(energy)(x + step) - bw.grad(energy)(x - step)) / 2
    np.testing.assert_allclose(bw.hvp(energy)(x, step), differences, rtol=1e-6)


def test_what_the_body_raises_does_not_pass_through_the_generator():
    """A `try` around `yield` sees nothing of the body."""
    def guarded(n):
        for k in range(n):
            try:
                yield k
            except ValueError:
                yield -1

    def raising(x):
        total = 0.0
        for k in guarded(3):
            if k == 2:
                raise ValueError("two")
            total += x * k
        return total

    with pytest.raises(ValueError, match="two"):
        bw.jit(raising)(1.0)


def test_the_body_and_the_generator_take_turns():
    """Both change one object: the order is that of Python."""
    def turns(state):
        for _ in range(20):
            state["v"] = state["v"] * 0.9 + 1
            yield state["v"]

    def program(x):
        state = {"v": x}
        seen = 0.0
        for v in turns(state):
            state["v"] = state["v"] - 0.3 * v * v
            seen += v
        return seen * state["v"]

    np.testing.assert_allclose(bw.jit(program)(0.4), program(0.4), rtol=1e-12)
    difference = (program(0.4 + 1e-6) - program(0.4 - 1e-6)) / 2e-6
    np.testing.assert_allclose(bw.grad(program)(0.4), difference, rtol=1e-6)


def test_variables_of_a_function_that_a_loop_calls() -> None:
    """They are made anew in each iteration: no variables of the loop."""
    def filled(x):
        found, last = [], 0.0
        for i, _, distance in pairs(x):
            found += [distance * i]
            last = distance
        return sum(found) + last

    def program(x):
        total = 0.0
        for k in range(9):
            total += filled(x * (1.0 + 0.1 * k))
            if total > 50.0:
                break
        return total

    for x in (GIVEN[0][:5], 3.0 * GIVEN[0][:5]):
        np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-12)
    assert "ends when its test says so: it carries total" in bw.jit(program).explain(GIVEN[0][:5])


def growing(x):
    while True:
        yield x
        x = x * 1.1


def read_before_the_loop(x):
    values = growing(x[0])
    total = next(values)
    for value in values:
        total = total + value
        if value > 10.0:
            break
    return total


def test_an_endless_iterator_that_data_end_is_refused(monkeypatch) -> None:
    """The generator is not captured, since it has been read before; its iterations are traced, but not without end."""
    monkeypatch.setattr(loops, "MOST_ENDLESS", 40)
    with pytest.raises(TracerError, match="the end of this loop depends on traced values, and it cannot be recorded: it goes over an iterator"):
        bw.jit(read_before_the_loop)(np.ones(2))
