"""Dictionaries and sets of which data say which known keys they have, and comprehensions that make some with traced tests or keys."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45])


def first_events(x):
    """The first time of each event, as a simulation notes them."""
    found, y, v, t = {}, x[0], x[1], 0.0
    events = {"ground": lambda y, v: y, "top": lambda y, v: v + 0.3, "far": lambda y, v: 40.0 - y}
    while t < 3.0:
        new, faster = y + 0.1 * v, v - 0.1 * y
        for name, event in events.items():
            a, b = event(y, v), event(new, faster)
            if name not in found and a > 0 >= b:
                found[name] = (t + 0.1 * a / (a - b), np.array([y, v]))
        if "ground" in found and "top" in found:
            break
        y, v, t = new, faster, t + 0.1
    score = y * v + len(found)
    if "ground" in found:
        when, state = found["ground"]
        score += when * state[1]
    if "top" in found:
        score -= found["top"][1][0] ** 2
    return score + (1.0 if "far" in found else x[2])


def kept_where(x):
    d = {"first": x[0]}
    if x[1] > 0:
        d["second"] = x[1] ** 2
    if x[2] > 1:
        d["third"] = x[2] ** 3
    total = sum(d.values()) + d.get("third", 1.5) * x[3]
    return total + (d["second"] * x[4] if "second" in d else x[5]) + len(d)


def best_of_each(x):
    best = {}
    for k, v in enumerate(x):
        name = "low" if k % 2 else "high"
        if v > 0.3 and (name not in best or v > best[name]):
            best[name] = v
    return sum(v ** 2 for v in best.values()) + best.get("low", 0.0)


def rows_that_pass(x):
    rows = [("a", x[0]), ("b", x[1]), ("c", x[2]), ("d", x[3])]
    kept = {name: v * x[5] for name, v in rows if v > 0.5}
    return sum(kept.values()) + (kept["a"] ** 2 if "a" in kept else x[4]) + len(kept)


def doses(x):
    """A table of doses by their times, of which both are numbers of the program."""
    events = [(0.0, x[0], x[1]), (0.5, x[2], x[3]), (1.0, x[4], -1.0), (1.5, x[7], x[5])]
    given = {start: amount for start, amount, kind in events if kind < 0}
    y, t = 1.0, 0.0
    while t < 2.0:
        if t in given:
            y += given[t]
        y = 0.9 * y + 0.1 * x[5] * y
        t += 0.25
    return y


def distinct(x):
    places = {int(v * 4) for v in x if v > 0}
    return len(places) * x[0] + (x[1] ** 2 if 2 in places else x[2])


def nested_and_known(x):
    table = {(i, j): x[i] * x[j] for i in range(3) for j in range(4) if i != j}
    squares = {k: {n: x[n] for n in range(k)} for k in (1, 2)}
    return sum(v for (i, j), v in table.items() if i < j) + squares[2][1] + len({i % 3 for i in range(7)}) * x[0]


@pytest.mark.parametrize("program", [first_events, kept_where, best_of_each, rows_that_pass, doses, distinct, nested_and_known])
def test_as_python(program):
    as_python(program, X, -X, np.roll(X, 3), 0.5 * X[::-1] + 0.1)


def test_times_that_are_arguments():
    """As `doses`, with the table as an argument: other numbers in it need no other program."""
    def program(x, events):
        given = {start: amount for start, amount, duration in events if duration == 0}
        return sum(given.values()) * x + (x ** 2 if 1.0 in given else 0.0)
    compiled = bw.value_and_grad(program)
    for events in ([(0.0, 3.0, 0.0), (1.0, 2.0, 1.0)], [(0.0, 3.0, 0.0), (1.0, 2.0, 0.0)], [(2.0, 3.0, 1.0), (1.0, 2.0, 4.0)]):
        given = {start: amount for start, amount, duration in events if duration == 0}
        value, slope = compiled(1.5, events)
        assert value == pytest.approx(program(1.5, events)) and slope == pytest.approx(sum(given.values()) + 3.0 * (1.0 in given))


def texts_and_arrays(x):
    d = {"name": "one"}
    if x[0] > 0:
        d["rows"] = np.ones(3) * x[0]
    return len(d) * x[2] + (d["rows"][1] * x[3] if "rows" in d else x[1])


def test_values_of_several_kinds():
    as_python(texts_and_arrays, X, -X)


def test_values_of_several_structures_are_refused():
    def program(x):
        d = {"pair": (x, 2.0)}
        if x > 0:
            d["rows"] = np.ones(3) * x
        return len(d) * x
    with pytest.raises(bw.errors.TracerBoolError, match="dict\\['rows'\\] is new, and assigned to on one side only: set it before"):
        bw.jit(program)(1.0)
