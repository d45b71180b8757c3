"""Functions of the user's that Python's own call: given as arguments (`map`, `key=`), or methods that they look for (`abs`, `sum`, `in`,
assignments)."""

import functools
import itertools
import math

import numpy as np
import pytest

from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


def _leaky(v):
    return v if v > 0 else -0.1 * v * v


class Length:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Length(self.value + (other.value if isinstance(other, Length) else other)) if self.value < 1.0 else Length(0.5 * self.value)

    __radd__ = __add__

    def __abs__(self):
        return math.hypot(self.value, 1.0) if self.value > 0.33 else math.sqrt(2.0)

    def __lt__(self, other):
        return self.value < other.value

    def __len__(self):
        return 3

    def __bool__(self):
        return bool(self.value > 0.5)

    def __contains__(self, y):
        return y < self.value


def maps(x):
    return sum(map(_leaky, x)) + np.sum(list(map(lambda a, b: math.atan2(a, b) if a > b else a, x, x[::-1])))


def reductions(x):
    return functools.reduce(lambda a, b: a * b if b > 0 else a + b, x) + list(itertools.accumulate(x, lambda a, b: a + b if b > 0.33 else a - b))[-1]


def keys(x):
    return max(x, key=lambda v: _leaky(v - 0.5)) + sorted(x, key=lambda v: -v if v > 0.4 else v)[0]


def pairs(x):
    return sum(itertools.starmap(lambda a, b: a if a > b else b * 2, zip(x, x[::-1], strict=True)))


def along_an_axis(x):
    return np.sum(np.apply_along_axis(lambda row: row.sum() if row[0] > 0.5 else row[0], 1, x.reshape(4, 3)))


def operators(x):
    return sum([Length(v) for v in x], Length(0.0)).value + sum(abs(Length(v)) for v in x) + len(Length(x[0]))


def the_largest_object(x):
    lengths = [Length(v) for v in x[:5]]
    return max(lengths).value + 2 * min(lengths, key=lambda one: _leaky(one.value - 0.3)).value


def truths(x):
    total = 0.0
    for k in range(12):
        total += x[k] if Length(x[k]) else 2 * x[k]
        total += 1.0 if x[0] in Length(x[k]) else x[k] ** 2
    return total


def in_a_loop(x):
    total = 0.0
    for k in range(12):
        total += sum(map(_leaky, (x[k], x[0]))) + functools.reduce(lambda a, b: a if a > b else b, [x[k], x[1], 0.3])
    return total


class Window:
    def __init__(self, values):
        self.values = values

    def __getitem__(self, k):
        return self.values[k]

    def __setitem__(self, k, value):
        self.values[k] = value if value > 0 else 0.5 * value

    def __delitem__(self, k):
        self.values[k] = 0.0


class Clipped:
    def __init__(self, value):
        self._value, self.changes = value, 0

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, value):
        self._value = value if value < 2.0 else 2.0 + 0.1 * value
        self.changes += 1


class Product:
    def __init__(self, value):
        self.value = value

    def __matmul__(self, other):
        return Product(self.value * other.value) if self.value > 0.5 else Product(self.value + other.value)


def of_libraries(x):
    """What others call is Python's or NumPy's own, which cannot take traced values by itself."""
    total, length = 0.0, functools.partial(np.asarray, dtype=float)
    for k in range(12):
        head, tail = map(np.asarray, [x[:3], x[k]])
        total += sum(map(math.sin, (x[k], x[0]))) * max((x[k], x[1]), key=float) + functools.reduce(math.hypot, map(float, x[:3]))
        total += np.sum(np.where(head == 0, 1, head) * np.array(list(map(np.array, (tail, tail + 1, 2)))) + length(list(map(abs, x[3:6]))))
    return total


def windows(x):
    data, total = [0.0] * 3, 0.0
    for k in range(12):
        window = Window(data)
        window[0] = data[0] + x[k]
        window[k % 3] += x[0] * k
        total += data[1]
    del window[2]
    return total + sum(data)


def grids(x):
    grid = Window(Window(np.zeros(12)))
    for k in range(1, 12):
        grid[k] = 0.5 * grid[k - 1] + np.cos(x[k])
    return np.sum(grid.values.values * x)


def setters(x):
    clipped = Clipped(x[0])
    for k in range(12):
        clipped.value = clipped.value * 1.1 + 0.3 * x[k]
        clipped.value += 0.21
    return clipped.value * clipped.changes


def products(x):
    p, m = Product(x[0]), Product(x[1])
    for _ in range(12):
        p = p @ m
        p.value = 0.6 * p.value
    return p.value


@pytest.mark.parametrize("program", [maps, reductions, keys, pairs, along_an_axis, operators, the_largest_object, truths, in_a_loop, of_libraries,
                                     windows, grids, setters, products],
                         ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X)


def test_loops_are_native() -> None:
    assert not trace(truths, (X,)).notes
    assert not trace(in_a_loop, (X,)).notes
    assert not [trace(program, (X,)).notes for program in (windows, grids, setters, products) if trace(program, (X,)).notes]
