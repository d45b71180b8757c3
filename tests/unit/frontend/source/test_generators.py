"""Generator functions, and functions that ask for an object's variables: the statements in them are captured as in other functions."""

import itertools
from contextlib import contextmanager

import numpy as np
import pytest

import bwcompiler as bw


class Node:
    def __init__(self, w, *children):
        self.w, self.label, self.children = w, "node", children

    def parameters(self):
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                yield value
            elif isinstance(value, tuple):
                for child in value:
                    yield from child.parameters()


def of_objects(x):
    return sum(np.sum(w ** 2) for w in Node(x, Node(2 * x), Node(x + 1, Node(x * x))).parameters())


def states(x, steps):
    """Yields in a loop, in which other loops and branches depend on data; arrays that are made here are written to."""
    y = np.zeros(len(x))
    for _ in range(steps):
        for k in range(len(x)):
            y[k] = 0.5 * y[k] + x[k]
        if y[0] > 1.0:
            y = y / 2
        else:
            y = y + 1
        yield y


def of_states(x):
    total = 0.0
    for y in states(x, 4):
        total += np.sum(y ** 2)
    return total


def windows(x, size):
    start = 0
    while True:
        if start + size > len(x):
            return "end"
        if start == 2:
            start += 1
            continue
        part = x[start:start + size]
        yield start, np.max(part) if part[0] > part[1] else np.min(part)
        start += 1


def of_windows(x):
    total = 0.0
    for start, found in windows(x, 3):
        total = total + (start + 1) * found
        if start > 3:
            break
    return total


def ended(x):
    last = yield from windows(x, 2)
    yield float(len(last)) * x[0]


def of_ended(x):
    found = list(ended(x))
    return sum(v for _, v in found[:-1]) + found[-1]


def averaged():                                    # takes what is sent
    total, count, value = 0.0, 0, None
    while True:
        value = yield value
        if value is None:
            return
        total = total + (value if value > 0 else 0.1 * value)
        count += 1
        value = total / count


def of_sent(x):
    average = averaged()
    next(average)
    return np.array([average.send(x[0]), average.send(x[1]), average.send(x[2])])


def of_islice(x):
    def newton(guess):
        while True:
            guess = guess - (guess ** 2 - x) / (2 * guess)
            yield guess
    return sum(itertools.islice(newton(np.ones(2)), 5))


@contextmanager
def scaled(x, log):
    if np.sum(x) > 0:
        scale = np.max(np.abs(x))
    else:
        scale = np.sum(x ** 2)
    try:
        yield x / scale
    finally:
        log.append(scale)


def of_context(x):
    log = []
    with scaled(x, log) as y:
        z = np.cumsum(y)
    return z * log[0]


def both(x):
    def chosen():
        yield x if x[0] > 0 else 2 * x
        yield (np.sin(x) if x[1] > 0 else np.cos(x)) + np.array([x[0], x[1], x[2], 1.0])[0]
    a, b = chosen()
    return a * b


X = np.array([0.3, 1.2, -0.4, 0.8])


@pytest.mark.parametrize("x", [X, -X])
@pytest.mark.parametrize("function", [of_objects, of_states, of_ended, of_sent, of_context], ids=lambda one: one.__name__)
def test_generators(function, x):
    np.testing.assert_allclose(bw.jit(function)(x), function(x), rtol=1e-12)
    bw.check_grads(function, (x,), order=1)


def test_loops_over_generators():
    x = np.array([0.3, 1.2, -0.4, 0.8, 0.1, 2.0, -3.0, 0.7])
    for one in (x, -x):
        np.testing.assert_allclose(bw.jit(of_windows)(one), of_windows(one), rtol=1e-12)
        np.testing.assert_allclose(bw.jit(of_islice)(np.abs(one[:2])), of_islice(np.abs(one[:2])), rtol=1e-12)
        np.testing.assert_allclose(bw.jit(both)(one[:3]), both(one[:3]), rtol=1e-12)


def listed(x):
    return [name for name in dir(Node(x)) if isinstance(getattr(Node(x), name), np.ndarray)]


def test_variables_of_objects():
    """vars(x) and dir(x) do not ask for variables of the function, so that it is captured."""
    assert bw.jit(lambda x: (np.sum(x), listed(x)))(X)[1] == ["w"]


def own_variables(x):
    y = x * 2
    return sum(locals().values())


def test_variables_of_the_function():
    np.testing.assert_array_equal(bw.jit(own_variables)(X), 3 * X)
