"""Methods of one of several objects, of which data say which it is: controllers by mode, laws by number, the state that a state gives next."""

import dataclasses

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

ARGS = (0.95, 0.9, 0.8)


class Law:
    limit = 0.9

    def __init__(self, gain):
        self.gain, self.calls, self.last = gain, 0, 0.0

    def raw(self, x):
        raise NotImplementedError

    def command(self, x):
        return min(self.raw(x), self.limit)


class Linear(Law):
    def raw(self, x):
        self.calls += 1
        return self.gain * x


class Filtered(Law):
    limit = 0.7

    def raw(self, x):
        self.last = 0.5 * self.last + x
        return self.gain * self.last if x > 0.2 else 0.1 * x


class Halved(Linear):
    def command(self, x):
        return 0.5 * super().command(x)


class Doubled(Halved):
    def raw(self, x):
        return 2.0 * self.gain * np.sin(x)


def mode_of(x, mode):
    return "low" if x < 0.3 else "high" if x > 0.8 else mode


def by_mode(x, g, k):
    """The inherited method calls one that they define themselves, which changes one of them."""
    laws, mode, total = {"high": Linear(g), "low": Filtered(k)}, "high", 0.0
    for _ in range(40):
        mode = mode_of(x, mode)
        x = x - 0.3 * laws[mode].command(x) + (0.5 if mode == "low" else 0.0)
        total += x**2
    return total + laws["high"].calls * k + laws["low"].last


def by_number(x, g, k):
    """Methods that call what their class's base does."""
    laws, j, total = [Halved(g), Doubled(k)], 0, 0.0
    while total < 6.0:
        x = x + 0.1 - 0.1 * laws[j].command(x)
        total += x**2
        j = 1 if x > 0.97 else 0
    return total


def by_test(x, g, k):
    first, second, total = Linear(g), Filtered(k), 0.0
    for _ in range(40):
        law = first if x < 0.5 else second
        x = x + 0.1 - 0.2 * law.command(x)
        total += x**2
    return total


@dataclasses.dataclass
class Spring:
    k: float

    def force(self, x):
        return -self.k * x


@dataclasses.dataclass
class Magnet:
    k: float
    near: float

    def force(self, x):
        return self.k / (self.near + x**2)


def of_dataclasses(x, g, k):
    laws, mode, total = {"high": Spring(g), "low": Magnet(k, 0.3)}, "high", 0.0
    for _ in range(40):
        mode = mode_of(x, mode)
        x = x + 0.1 * laws[mode].force(x)
        total += x**2
    return total


class Solver:
    def __init__(self, rate, other):
        self.rate, self.other = rate, other

    def euler(self, x):
        return x - 0.1 * self.rate * x

    def heun(self, x):
        return x - 0.05 * self.other * (x + self.euler(x))

    def run(self, x):
        step, total = self.euler, 0.0
        for _ in range(30):
            if x < 0.5:
                step = self.heun
            x = step(x)
            total += x**2
        return total


def of_bound_methods(x, g, k):
    return Solver(g, k).run(x)


class State:
    def __init__(self, machine):
        self.machine = machine


class Hot(State):
    def following(self, x):
        return self.machine["cold"] if x < 0.3 else self

    def rate(self, x):
        return -self.machine["g"] * x


class Cold(State):
    def following(self, x):
        return self.machine["hot"] if x > 1.0 else self

    def rate(self, x):
        return self.machine["k"] * np.exp(-x)


def of_states(x, g, k):
    machine = {"g": g, "k": k}
    machine["hot"], machine["cold"] = Hot(machine), Cold(machine)
    state, total = machine["hot"], 0.0
    for _ in range(60):
        x = x + 0.1 * state.rate(x)
        state = state.following(x)
        total += x**2
    return total


PROGRAMS = [by_mode, by_number, by_test, of_dataclasses, of_bound_methods, of_states]


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_derivatives(program) -> None:
    value, slopes = bw.value_and_grad(program, (0, 1, 2))(*ARGS)
    np.testing.assert_allclose(value, program(*ARGS), rtol=1e-12)
    for place, slope in enumerate(slopes):
        near, far = (program(*[arg + sign * 1e-6 * (k == place) for k, arg in enumerate(ARGS)]) for sign in (1, -1))
        np.testing.assert_allclose(slope, (near - far) / 2e-6, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("program", PROGRAMS)
def test_loops_stay_loops(program) -> None:
    assert any(value.op.name in ("loop", "while_loop") for value in trace(program, ARGS).graph.body)


class Named:
    def __init__(self, x):
        self.k, self.m, self.n = x[0], x[1], x[0] * x[1]

    def linear(self, v):
        return self.k * v

    def square(self, v):
        return self.m * v * v

    def rate(self, kind, v):
        return getattr(self, kind)(v)


def by_names(x):
    """Methods, attributes and NumPy's functions by names that data choose."""
    model, v = Named(x), 0.5
    for i in range(8):
        v = v + 0.1 * model.rate("linear" if v < 0.61 else "square", v)
        name = "k" if v > 0.7 else "n"
        setattr(model, name, 0.9 * getattr(model, name) + 0.01 * i)
        v = v + 0.1 * getattr(np, "sin" if model.n > 0.51 else "cos")(v)
    return v + model.k * model.n + getattr(model, "q" if v > 9.0 else "m", 0.0)


def test_attributes_by_names_that_data_choose():
    as_python(by_names, np.array([0.83, 0.67]), np.array([0.31, 1.4]))
