"""Tuples with texts, functions or None in them, of which data choose one: their texts are choices in the places of the tuple."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


def signals(x):
    event, total = None, 0.0
    for k in range(12):
        if x[k] > 1.0:
            event = ("up", k, x[k])
        elif x[k] < -1.0:
            event = ("down", k, -x[k])
        if event is not None:
            kind, place, size = event
            total += size * place if kind == "up" else size ** 2
    return total


def phases(x):
    phase, total = None, 0.0
    for k in range(12):
        if phase is None:
            if x[k] > 0.0:
                phase = ("hold", k, None)
        elif phase[0] == "hold":
            if x[k] < 0.0:
                phase = ("sell", phase[1], x[k])
        else:
            total += phase[2] * phase[1]
            phase = None
    return total


def nested(x):
    event, total, k = None, 0.0, 0
    while k < 12 and total < 5.0:
        if x[k] > 1.0:
            event = ("up", (k, x[k]))
        if x[k] < -0.5:
            event = ("down", (k, -x[k]))
        if event is not None and event[0] == "down":
            total += event[1][1]
        k += 1
    return total


def returned(x):
    def found(k):
        if x[k] > 1.0:
            return "big", x[k]
        if x[k] > 0.0:
            return "small", x[k] * 2.0
        return None

    total = 0.0
    for k in range(12):
        one = found(k)
        if one is None:
            continue
        name, size = one
        total += size if name == "big" else size ** 2
    return total


def best_function(x):
    best = "none", None, np.inf
    for name, function in (("sin", np.sin), ("cos", np.cos), ("tanh", np.tanh)):
        value = np.sum(function(x))
        if value < best[2]:
            best = name, function, value
    return best[2] * (2.0 if best[0] == "sin" else 1.0) + best[1](x[0])


@pytest.mark.parametrize("function", [signals, phases, nested, returned, best_function], ids=lambda f: f.__name__)
def test_is_what_python_gives(function):
    as_python(function, X, X[::-1].copy())


@pytest.mark.parametrize("function", [signals, phases, nested, returned], ids=lambda f: f.__name__)
def test_are_recorded(function):
    assert not trace(function, (X,)).notes


def test_calling_none_raises():
    def chosen(x):
        function = None
        if x[0] > 0.0:
            function = np.sin
        return function(x[1])

    assert bw.jit(chosen)(X) == pytest.approx(np.sin(X[1]))
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        bw.jit(chosen)(-X)
