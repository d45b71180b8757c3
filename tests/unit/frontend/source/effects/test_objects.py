"""Objects, dictionaries and lists that change in loops and branches: as Python changes them, in native loops."""

import copy
import functools
from collections import defaultdict, namedtuple
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError, TracerError
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


class Particle:
    def __init__(self, position, velocity):
        self.position = position
        self.velocity = velocity
        self.age = 0
        self.energy = 0.0

    def force(self):
        return -self.position * np.sum(self.position ** 2)

    def step(self, dt):
        self.velocity += dt * self.force()
        self.position = self.position + dt * self.velocity
        self.age += 1
        self.energy = 0.5 * np.sum(self.velocity ** 2)


def methods(x):
    p = Particle(x[:6].copy(), x[6:].copy())
    for _ in range(20):
        p.step(0.05)
    return np.sum(p.position) + p.age + p.energy


def two_objects(x):
    a, b = Particle(x[:6].copy(), x[6:].copy()), Particle(2 * x[:6], 3 * x[6:])
    for k in range(15):
        a.position += 0.1 * b.velocity
        b.velocity -= 0.1 * a.position
        a.velocity, b.position = b.position * 0.9, a.velocity * 0.8
        a.age, b.age = b.age + 1, a.age + k
    return np.sum(a.position * b.velocity) + np.sum(a.velocity - b.position) + a.age * 0.1 + b.age


@dataclass
class State:
    x: float
    v: float = 0.0
    log: dict = field(default_factory=dict)


def dataclass_fields(x):
    state = State(x[0], x[1])
    for k in range(10):
        state.x, state.v = state.x + 0.1 * state.v, state.v - 0.1 * state.x * x[k]
    return state.x + state.v


def replaced(x):
    state = State(x[0], x[1])
    for k in range(10):
        state = replace(state, x=state.x + 0.1 * state.v, v=state.v - 0.1 * x[k])
    return state.x * state.v


Pair = namedtuple("Pair", "x v")


def namedtuples(x):
    pair = Pair(x[:2], x[2])
    for k in range(10):
        pair = pair._replace(x=pair.x + pair.v * x[k], v=pair.v * 0.9)
    return np.sum(pair.x) + pair.v


def dictionary_items(x):
    state = {"h": np.zeros(3), "c": x[:3] * 1.0, "n": 0}
    for k in range(12):
        state["c"] = 0.9 * state["c"] + np.tanh(state["h"]) * x[k]
        state["h"] = np.tanh(state["c"])
        state["n"] += 1
    return np.sum(state["h"] * state["c"]) + state["n"]


def nested_containers(x):
    net = {"layers": [State(x[0], x[1]), State(x[2], x[3])], "bias": defaultdict(float, a=0.0)}
    for k in range(10):
        for layer in net["layers"]:
            layer.x += 0.1 * layer.v * x[k]
        net["bias"]["a"] += net["layers"][0].x
    return net["layers"][0].x + net["layers"][1].x * net["bias"]["a"]


def list_items(x):
    u = [x[0], x[1], 0.0]
    for k in range(10):
        u[0], u[1] = u[1] * 0.5, u[0] + x[k]
        u[-1] += u[0]
    return u[0] * u[1] + u[2]


def double_buffer(x):
    u, un = x.copy(), np.empty_like(x)
    for _ in range(13):
        un[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        un[0], un[-1] = u[0], 0.0
        u, un = un, u
    return np.sum(u ** 2) + un[3]


class Grid:
    def __init__(self, u):
        self.u = u
        self.un = np.empty_like(u)

    def sweep(self):
        for i in range(1, len(self.u) - 1):
            self.un[i] = 0.5 * (self.u[i - 1] + self.u[i + 1])
        self.un[0], self.un[-1] = self.u[0], self.u[-1]
        self.u, self.un = self.un, self.u


def swapped_attributes(x):
    grid = Grid(x.copy())
    for _ in range(9):
        grid.sweep()
    return np.sum(grid.u ** 2) - grid.un[4]


def relax(u, f, change):
    before = u.copy()
    u[1:-1] = 0.5 * (u[2:] + u[:-2] - f[1:-1])
    change["last"] = np.max(np.abs(u - before))
    return u


def helpers_that_assign(x):
    u, change, n = np.zeros(12), {"last": 1.0}, 0
    while change["last"] > 1e-3 and n < 500:
        relax(u, x, change)
        n += 1
    return np.sum(u ** 2) + n


def nested_function(x):
    y = np.zeros(12)
    total = State(0.0)

    def put(k, value):
        y[k] = value
        total.x += value

    for k in range(12):
        put(k, x[k] ** 2)
    return np.sum(y * x) + total.x


def in_branches(x):
    state = State(x[0])
    table = {"a": 0.0, "b": 1.0}
    for k in range(12):
        if x[k] > 0:
            state.x = state.x + x[k]
            table["a"] += state.x
        elif x[k] < -0.5:
            state.v -= 1.0
        else:
            table["b"] *= 1.5
    if state.x > 1:
        state.v = state.v * 2 + x[1]
    return state.x * table["a"] + state.v + table["b"]


def early_stop(x):
    state = State(x[0], 1.0)
    for k in range(12):
        state.x = state.x + abs(x[k])
        if state.x > 3:
            state.v = 0.5 * state.x
            break
    return state.x * state.v


def appended(x):
    kept, norms = [], []
    u = x.copy()
    for k in range(20):
        u = u + 0.1 * np.sin(u) * k
        kept.append(u)
        norms.append(float(np.sum(u ** 2)))
    kept, last = np.array(kept), kept[-1]
    return np.sum(kept[::3]) + np.sum(np.stack(norms) * np.arange(20)) + norms[3] + max(norms) + last[2]


def appended_in_nests(x):
    rows = []
    for i in range(9):
        row = []
        for j in range(10):
            row.append(x[i] * x[j])
            rows.append(x[i] - x[j])
        rows.extend([sum(row), row[-1]])
    return np.sum(np.array(rows) ** 2) + len(rows)


def appended_tuples(x):
    states = [(x[0], x[:2])]
    a, b = x[0], x[:2]
    for k in range(9):
        a, b = a + np.sum(b), b * 0.9 + k
        states.append((a, b))
    return sum(s[0] * np.sum(s[1]) for s in states)


def history(x):
    y = [x[0], x[1]]
    for k in range(2, 12):
        y.append(0.5 * y[-1] - 0.2 * y[k - 2] + x[k] + len(y) * y[0])
    return np.array(y) @ np.arange(12)


class Recorder:
    def __init__(self):
        self.values = []
        self.table = {"t": [], "x": []}

    def record(self, t, value):
        self.values += [value]
        self.table["t"].append(t)
        self.table["x"].append(2 * value)


def recorded(x):
    recorder = Recorder()
    v = x[0]
    for k in range(12):
        v = v * x[k] + 1.0
        recorder.record(0.1 * k, v)
    return np.sum(np.array(recorder.values) * np.array(recorder.table["t"])) + sum(recorder.table["x"])


def written_afterwards(x):
    kept = []
    u = x[:3] * 1.0
    for _ in range(10):
        u = u * 0.9
        kept.append(u)
    u[0] = 100.0
    kept[2][1] = 50.0
    return sum(np.sum(v) * k for k, v in enumerate(kept)) + u[1]


def written_before_the_end(x):
    kept = []
    for k in range(10):
        u = x[:3] * k
        kept.append(u)
        u += 1.0
    return sum(np.sum(v) * k for k, v in enumerate(kept))


def the_same_each_time(x):
    kept = []
    u = x[:3] * 1.0
    for k in range(10):
        u[k % 3] += x[k]
        kept.append(u)
    kept[0][0] = 7.0
    return sum(np.sum(v) for v in kept)


def first_iteration_differs(x):
    total, best, kept = 0, None, {}
    for k in range(12):
        total = total + x[:3] * x[k]
        best = x[k] if best is None else max(best, x[k])
        kept["last"] = total * 2
    return np.sum(total) + best + kept["last"][0]


def lists_as_arrays(x):
    values = [max(1.0 - 0.1 * j, 0.0) * x[0] for j in range(13)]
    counts = [0] * 12
    for i in range(11, -1, -1):
        for j in range(i + 1):
            values[j] = max(0.5 * values[j] + 0.5 * values[j + 1], x[i] * 0.1)
            if values[j] > 0.3:
                values[j + 1] *= 0.9
        values[-1] += x[i]
    return values[0] + sum(values) + max(counts) + len(values)


def time_steps(x):
    t, n, u = 0.0, 0, x * 1.0
    while t < 1.0:
        u = u + 0.03 * np.sin(u) * t
        t += 0.03
        n += 1
    return np.sum(u) * t + np.zeros(n).shape[0]


class Simulation:
    def __init__(self, x, dt):
        self.x, self.dt, self.t, self.steps, self.history = x, dt, 0.0, 0, [x]

    def run(self, end):
        while self.t < end and not self.steps > 100:
            self.x = self.x + self.dt * np.cos(self.x)
            self.t += self.dt
            self.steps += 1
            self.history.append(self.x)
        return np.array(self.history)


def class_with_time(x):
    simulation = Simulation(x[:3], 0.1)
    found = simulation.run(2.0)
    return np.sum(found ** 2) + simulation.t + len(simulation.history) + simulation.history[-1][0]


def index_by_while(x):
    i, total, y = 1, 0.0, np.zeros(len(x))
    while i < len(x) - 1:
        y[i] = x[i - 1] * x[i + 1] + np.sum(y[:i])
        if x[i] > 0:
            total += x[i]
        i += 1
    while i > 2:
        y[i] += y[i - 1] * total
        i -= 1
    return np.sum(y) + total + i


def float_table(x):
    weights = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    counts = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3)
    total = 0.0
    for w in weights:
        total = total * w + x[0]
    for k in range(10):
        total += weights[k] * x[k] * counts[k]
    return total


def generic_exit(x):
    state = State(x[0], 1.0)
    n = 0
    while state.x < 10:
        state.x = state.x * 1.5 + 1.0
        state.v += 1
        n += 1
    return state.x * state.v + n


def has_or_not(x):
    state = State(0.0)
    for k in range(10):
        if not hasattr(state, "extra"):
            state.extra = x[k]
        state.extra = state.extra * 0.5 + getattr(state, "more", 1.0)
        state.more = x[k]
    return state.extra


def double_buffer_until(x):
    u, un = x.copy(), np.zeros_like(x)
    change, n = 1.0, 0
    while change > 1e-2:
        un[1:-1] = 0.5 * (u[2:] + u[:-2])
        un[0], un[-1] = 0.2, -0.1
        change = np.max(np.abs(un - u))
        u, un = un, u
        n += 1
    return np.sum(u ** 2) + un[3] + n


def double_buffer_of_arguments(x):
    first, second = x, 2 * x
    u, un = first, second
    for k in range(40):
        un[:] = 0.5 * u + k * 0.01
        u, un = un, u
        if u[0] > 0.5:
            break
    return np.sum(first * 3 + second) + u[1] - un[2]


def three_buffers(x):
    a, b, c = x.copy(), 0.9 * x, np.zeros(12)
    for _ in range(17):
        c[1:-1] = 1.9 * b[1:-1] - a[1:-1] + 0.1 * (b[2:] - 2 * b[1:-1] + b[:-2])
        a, b, c = b, c, a
    while np.sum(np.abs(b)) > 1.0:
        c[:] = 0.5 * b + 0.1 * a
        a, b, c = b, c, a
    return np.sum(b ** 2) + a[3] - c[2]


NATIVE = [methods, two_objects, dataclass_fields, replaced, namedtuples, dictionary_items, nested_containers, list_items, double_buffer,
          swapped_attributes, helpers_that_assign, nested_function, in_branches, early_stop, appended, appended_in_nests,
          appended_tuples, history, recorded, written_afterwards, written_before_the_end, the_same_each_time, first_iteration_differs,
          float_table, lists_as_arrays, time_steps, class_with_time, index_by_while, generic_exit, has_or_not, double_buffer_until, double_buffer_of_arguments, three_buffers]


@pytest.mark.parametrize("program", NATIVE, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X)


@pytest.mark.parametrize("program", NATIVE, ids=lambda program: program.__name__)
def test_loops_are_native(program):
    assert not trace(program, (X,)).notes


def test_objects_are_left_as_after_the_loop():
    class Model:
        def __init__(self, w):
            self.w, self.steps = w, 0

        def run(self, x):
            w, steps = self.w, 0
            for k in range(10):
                w = w + x[k]
                steps += 1
            return w, steps

    model = Model(1.0)
    assert bw.jit(model.run)(X) == model.run(X)
    before = copy.copy(vars(model))
    assert vars(model) == before


def test_lists_that_grow_for_ever_raise():
    def until(x):
        kept, t = [], x[0]
        while t < 3.0:
            t = t + x[1]
            kept.append(t)
        return sum(kept)

    with pytest.raises(TracerError, match=r"while t < 3.0(?s:.)*more than 1000 elements"):
        bw.jit(until)(X)


def test_lists_that_one_side_makes_an_attribute_are_refused():
    def one_sided(x):
        state = State(0.0)
        if x > 0:
            state.extra = [x, x + 1.0]
        return state.x

    with pytest.raises(TracerBoolError, match="State.extra is new, and assigned to on one side only"):
        bw.jit(one_sided)(1.0)


def _damped(rate, x):
    for _ in range(40):
        x = x * rate if np.sum(x) > 1.0 else np.sin(x) + 1.0
    return np.sum(x)


class _Damped:
    rate = 0.5

    def __call__(self, x):
        for _ in range(40):
            x = x * self.rate if np.sum(x) > 1.0 else np.sin(x) + 1.0
        return np.sum(x)


@pytest.mark.parametrize("make", [
    lambda: functools.partial(_damped, 0.5), lambda: _Damped(), lambda: functools.partial(_Damped()), lambda: _Damped().__call__,
    lambda: functools.partial(functools.partial(_damped), 0.5), lambda: np.vectorize(lambda x: x * x if x > 0.5 else -x)],
    ids=["partial", "object", "partial of an object", "bound __call__", "partial of a partial", "vectorize"])
def test_whatever_is_compiled_is_captured(make) -> None:
    """Not plain functions alone: `bw.jit(functools.partial(f, parameters))` and `bw.grad(model)` branch on data too."""
    fun = make()
    x = np.linspace(0.15, 0.95, 5)
    np.testing.assert_allclose(bw.jit(fun)(x), fun(x), rtol=1e-14)
    slope = bw.grad(lambda x: np.sum(fun(x)))(x)
    shift = 1e-6 * np.eye(5)
    np.testing.assert_allclose(slope, [(np.sum(fun(x + s)) - np.sum(fun(x - s))) / 2e-6 for s in shift], rtol=1e-5, atol=1e-9)
