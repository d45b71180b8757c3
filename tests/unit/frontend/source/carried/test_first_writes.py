"""Arrays that a loop assigns to and then binds anew: what the first iteration writes is seen by all names of the array from before it."""

import itertools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError, UnsupportedError
from bwcompiler.frontend.tracing.trace import trace

X = np.array([0.3, -0.2, 1.1, 0.8, -0.5])


def until(x):
    h, t = x.copy(), 0.0
    while t < 3.0:
        dt = min(0.2 / (np.abs(h).max() + 0.1), 0.5)
        h[1:-1] += dt * (h[2:] - h[1:-1])
        h = np.maximum(h, -0.1)
        t += dt
    return h.sum(), t


def counted(x):
    h = np.zeros(len(x))
    for _ in range(12):
        h[1:] += x[1:] * h[:-1]
        h[0] += x[0]
        h = np.tanh(h)
    return h


def seen_by_another_name(x):
    first = h = x * 1.0
    for k in range(12):
        h[0] += k + 1.0
        h = h * x
    return first, h


def seen_by_a_view(x):
    h = x * 1.0
    part = h[:2]
    for _ in range(12):
        h += 0.5
        h = np.sin(h)
    return part, h


def of_an_argument(x):
    for _ in range(12):
        x[1] *= 0.5
        x = x + 0.1
    return x


def of_an_argument_that_may_stay(x):
    n = 0
    while x.sum() < 0.0:
        x[1] *= 0.5
        x = x + 0.1
        n += 1
    return x, n


def left_early(x):
    h = x * 1.0
    for k in range(20):
        h[k % 5] += 1.0
        h = 0.9 * h
        if h.sum() > 3.0:
            break
    return h


def assigned_to_afterwards(x):
    first = h = x * 1.0
    while h.sum() > 100.0:
        h[0] -= 1.0
        h = h * 0.5
    h[1] = 7.0
    return first, h


def of_an_object(x):
    class Field:
        def __init__(self, u):
            self.u = u

        def step(self):
            self.u[1:-1] += 0.1 * (self.u[2:] - self.u[:-2])
            self.u = np.clip(self.u, -0.4, 0.9)

    field = Field(x.copy())
    first = field.u
    for _ in range(12):
        field.step()
    return field.u, first


def nested(x):
    first = h = x.copy()
    for _ in range(9):
        for k in range(10):
            h[0] += 0.1 * k
            h = np.sin(h)
        h = h * 0.9
    return h, first


def with_the_state_before(x):
    h, change = x.copy(), 1.0
    while change > 1e-3:
        before = h.copy()
        h[1:] += 0.2 * (h[:-1] - h[1:])
        h = h - 0.1 * h.mean()
        change = np.abs(h - before).max()
    return h


PROGRAMS = [until, counted, seen_by_another_name, seen_by_a_view, of_an_argument, of_an_argument_that_may_stay, left_early,
            assigned_to_afterwards, of_an_object, nested, with_the_state_before]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    x, y = X.copy(), X.copy()
    want, got = program(x), bw.jit(program)(y)
    for one, other in zip(want if type(want) is tuple else [want], got if type(got) is tuple else [got], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-14)
    np.testing.assert_array_equal(x, y)
    if "unrolled" not in bw.jit(program).explain(X.copy()):
        bw.check_grads(lambda x: sum(np.sum(part * 1.5) for part in arrays_of(program(x))), (X + 0.01,), order=1)


def arrays_of(found):
    return [part for part in (found if type(found) is tuple else (found,)) if np.ndim(part)]


@pytest.mark.parametrize("program", [until, counted, of_an_argument, left_early, with_the_state_before, nested])
def test_captured(program):
    assert "unrolled" not in bw.jit(program).explain(X.copy())


# What has another name as well when the next iteration assigns to it: Python changes both.
def kept_by_a_variable(x):
    h, last = x.copy(), 0.0 * x
    t = 0.0
    while t < 2.0 + 0 * x[0]:
        h[0] += 1.0 + last[0]
        h = h * 0.5
        last = h
        t += 0.2
    return h + last


def kept_by_a_list(x):
    h, kept = x.copy(), []
    for _ in range(12):
        h[0] += 1.0
        h = h * 0.5
        kept.append(h)
    return np.array(kept)


def kept_by_a_dictionary(x):
    h, state = x.copy(), {"last": x}
    for _ in range(12):
        h[0] += state["last"][0]
        h = h * 0.5
        state["last"] = h
    return h + state["last"]


def kept_by_a_tuple(x):
    h, pair = x.copy(), (x, 1.0)
    for _ in range(12):
        h[0] += pair[0][0]
        h = h * 0.5
        pair = (h, 2.0)
    return h + pair[0]


def bound_in_a_branch(x):
    h, t = x.copy(), 0.0
    first = h
    while t < 2.0 + 0 * x[0]:
        h[0] += 1.0
        if h[0] > 2.0:
            h = h * 0.5
        t += 0.2
    return h, first


def read_in_the_loop_by_another_name(x):
    first = h = x.copy()
    for _ in range(12):
        h[0] += 1.0
        h = h * 0.5 + first[0]
    return h


def read_in_the_test_by_another_name(x):
    first = h = x.copy()
    while h.sum() - first[0] < 2.0:
        h[0] += 1.0
        h = h * 0.9
    return h


def exchanged_with_a_new_one(x):
    g, h = x.copy(), 2.0 * x
    for _ in range(12):
        g[0] += h[1]
        g, h = h, np.sin(g)
    return g, h


def two_of_one(x):
    h = g = x.copy()
    for _ in range(12):
        h[0] += 1.0
        g[1] += 1.0
        h = h * 0.5
        g = g * 0.5
    return h, g


@pytest.mark.parametrize("program", [kept_by_a_variable, kept_by_a_list, kept_by_a_dictionary, kept_by_a_tuple, bound_in_a_branch,
                                     read_in_the_loop_by_another_name, read_in_the_test_by_another_name, exchanged_with_a_new_one,
                                     two_of_one])
def test_what_has_another_name_is_right_or_refused(program):
    want = program(X.copy())
    try:
        got = bw.jit(program)(X.copy())
    except (TracerError, UnsupportedError):
        return
    for one, other in zip(want if type(want) is tuple else [want], got if type(got) is tuple else [got], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13)


# An iteration makes an array only where data say so: until then all of them assign to the array from before the loop.
def inner_loops(x, ends):
    h = x * 1.0
    first, t = h, 0.0
    for i in range(len(ends)):
        h[0] += 1.0
        while t < ends[i]:
            h[1] += t
            h = 0.5 * h
            t += 1.0
        h[2] += 3.0
    h[0] += 100.0
    return h, first


def one_loop_after_another(x, ends):
    h = x * 1.0
    first, t = h, 0.0
    while t < ends[0]:
        h[1] += t + 1
        h = 0.5 * h
        t += 1.0
    while t < ends[1]:
        h[0] += 1.0
        h = h + 1.0
        t += 1.0
    h[0] += 100.0
    return h, first


def a_branch_in_an_inner_loop(x, ends):
    h = x * 1.0
    first, t = h, 0.0
    for i in range(9):
        while t < ends[i % 3]:
            h[2] -= 1
            if t > 2:
                h = 0.5 * h
            h[1] += 1
            t += 1.0
        h[0] += 1
    return h, first


def read_by_the_name_of_what_may_be_the_same(x, ends):
    h = x * 1.0
    first, t = h, 0.0
    while t < ends[0]:
        h[1] += t + 1
        h = 0.5 * h
        t += 1.0
    while t < ends[1]:
        h[0] += 1.0 + first[1]
        h = h + 1.0
        t += 1.0
    return h, first


def steps_of(y, n, h):
    for _ in range(n):
        y = y + h * np.sin(y)
    return y


def a_loop_in_a_branch(x, ends):
    """Doses between steps: the state is a new one only where time goes on, by a function that may give what it is given."""
    y = x * 1.0
    first, now = y, 0.0
    for i in range(9):
        t = ends[i % 3] + i // 3
        if t > now:
            n = max(1, int(np.ceil((t - now) / 0.7)))
            y = steps_of(y, n, (t - now) / n)
            now = t
        y[0] += 0.5
    return y, first


@pytest.mark.parametrize("program", [inner_loops, one_loop_after_another, a_branch_in_an_inner_loop, a_loop_in_a_branch,
                                     read_by_the_name_of_what_may_be_the_same])
def test_arrays_that_data_say_are_new(program):
    compiled = bw.jit(program)
    for ends in itertools.product((0.0, 1.0, 4.0), repeat=3):
        try:
            found = compiled(X[:3], np.array(ends))
        except TracerError:
            assert program is read_by_the_name_of_what_may_be_the_same
            return
        np.testing.assert_allclose(found, program(X[:3], np.array(ends)), rtol=1e-14)
    bw.check_grads(lambda x: np.sum(program(x, np.array([0.0, 1.0, 4.0]))[0] * np.arange(3.0)), (X[:3],), order=1)


def test_what_a_branch_made_has_no_other_name_afterwards():
    graph = trace(lambda x, ends: a_loop_in_a_branch(x, ends)[0].sum(), (X[:3], np.array([0.5, 1.0, 2.0]))).graph
    assert {value.op.name for value in graph.body} & {"loop", "while_loop"}
