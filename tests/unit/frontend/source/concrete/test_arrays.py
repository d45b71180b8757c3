"""Arrays that a captured function makes of what it knows, and writes traced values into: whatever expression has made them."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9])
GRID = np.linspace(0.0, 1.0, 6)


def of_operators(x):
    a, b = 2 * GRID, -GRID
    a[1:] = x[1:]
    b += x
    c = GRID > 0.5
    c[0] = x[0] > 0
    return np.sum(a * b) + np.sum(x[c])


def of_functions(x):
    v = np.maximum(GRID - 0.3, 0.0)
    w = np.sort(GRID)[::-1].astype(float)
    v[2] = x[2]
    w[:2] *= x[:2]
    m = np.linalg.inv(np.eye(3) + 0.1)
    m[0, 1] = x[0]
    return v @ w + np.sum(m ** 2)


def of_selections(x):
    a = GRID[[0, 2, 4]]
    b = GRID[GRID > 0.1]
    a[0] = x[0]
    b[-1] += x[1]
    return np.sum(a) * np.sum(b)


def reshaped(x):
    a = (GRID * 3).reshape(2, 3)
    b = a.T
    a[0, 1] = x[1]
    return np.sum(a * np.arange(6.0).reshape(2, 3)) + b[1, 0] ** 2


def views_of_what_is_made(x):
    a, b = np.linspace(0.0, 1.0, 6).reshape(2, 3), np.linspace(-1.0, 1.0, 6)[1:]
    c = np.linspace(0.0, 2.0, 6).reshape(3, 2).T
    for k in range(3):
        a -= 0.1 * x.reshape(2, 3)
        b += x[k]
        c[:, k] *= x[k]
    return np.sum(a ** 2) + np.sum(b ** 3) + np.sum(c * a)


class Layer:
    def __init__(self, weights):
        self.weights = weights


def in_containers(x):
    tables = {"a": GRID * 2, "b": np.exp(GRID)}
    named = {f"w{k}": GRID / k for k in (1, 2)}
    rows = [GRID + k for k in range(3)]
    rows.append(GRID - 1)
    for name in tables:
        tables[name] -= x
    named["w2"][1:] *= x[1:]
    for row in rows:
        row += x[0]
    layer, other = Layer(GRID * 3), {"bias": GRID + 1}
    for k in range(9):
        layer.weights -= 0.1 * x
        other["bias"][k % 6] = x[k % 6]
    return np.sum(tables["a"] * tables["b"] + named["w2"] * rows[3] * rows[0]) + layer.weights @ other["bias"]


def shared_by_two(x):
    table = GRID * 2
    tables = {"a": table, "b": table}
    tables["a"] += x
    return tables["b"] @ table


def scaled(values, by):
    return values * by


def started(n):
    return np.ones(n) / n, [1.0 * np.arange(n), np.exp(-np.arange(n))]


def of_own_functions(x):
    state, (f, g) = started(6)
    h = scaled(GRID, 2)
    for k in range(6):
        state[k] += x[k]
        f[k] = g[k] * x[k]
        h[k] -= x[k] ** 2
    return np.sum(state * f * h)


class Model:
    def __init__(self, n):
        self.u = 0.5 * np.arange(n)
        self.history = {"u": self.u ** 2}

    def step(self, x):
        self.u[1:] += 0.1 * x[1:] * self.u[:-1]
        self.history["u"][0] += x[0]


def of_objects(x):
    model = Model(6)
    for _ in range(12):
        model.step(x)
    return np.sum(model.u) + np.sum(model.history["u"])


def seen_through_views(x):
    a = 1.0 * GRID
    view, same = a[2:4], a
    a[2] = x[0]
    view[1] = x[1]
    return np.sum(same ** 2) + view[0]


PROGRAMS = [of_operators, of_functions, of_selections, reshaped, views_of_what_is_made,
            of_own_functions, of_objects, seen_through_views, in_containers, shared_by_two]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_take_traced_values(program):
    as_python(program, X, -X)


TABLE = {}


def table(n):
    if n not in TABLE:
        TABLE[n] = np.arange(n) * 1.0
    return TABLE[n]


def of_a_table(x):
    a = table(6)
    a[0] = x[0]
    return np.sum(a)


def of_a_view(x):
    a = table(6)[1:]
    a[0] = x[0]
    return np.sum(a)


def as_a_whole(x):
    a = table(6)
    a += x
    return np.sum(a)


def not_copied_by_astype(x):
    a = table(6).astype(float, copy=False)
    a += x
    return np.sum(a)


def not_copied_by_array(x):
    a = np.array(table(6), copy=None)
    a *= x
    return np.sum(a)


@pytest.mark.parametrize("program", [of_a_table, of_a_view, as_a_whole, not_copied_by_astype, not_copied_by_array], ids=lambda program: program.__name__)
def test_an_array_that_others_have_stays_what_it_is(program):
    """One that a table or a view has, too, is not the function's own: it cannot become a traced one."""
    table(6)
    with pytest.raises(TracerError, match="a.*x(.|\n)*write to a copy, made with a.copy"):
        bw.jit(program)(X)
    np.testing.assert_array_equal(table(6), np.arange(6.0))
