"""Functions that assign to variables of their module, in loops and branches: counts of calls, what was seen last."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.63, -1.21, 0.84, -0.43, 1.52, 0.27, -0.9])
pytestmark = pytest.mark.filterwarnings("ignore::bwcompiler.errors.StaleValueWarning")
CALLS, SCALE, LATEST, SEEN = 0, 1.0, None, []


def counted(v):
    global CALLS
    CALLS += 1
    return v * v - 2.0


def of_a_root_finder(x):
    global CALLS
    CALLS = 0
    a, b = 1.0 + abs(x[0]), 2.5 + abs(x[1])
    fa, fb = counted(a), counted(b)
    for _ in range(20):
        if abs(fb) < 1e-10 or fa == fb:
            break
        a, b, fa = b, b - fb * (b - a) / (fb - fa), fb
        fb = counted(b)
    return b * x[2] + 0.01 * CALLS * x[3]


def scaled(v):
    global CALLS, SCALE
    if v > 0:
        CALLS = CALLS + 1
        SCALE = SCALE * v
    return v * SCALE


def in_branches(x):
    global CALLS, SCALE
    CALLS, SCALE = 0, 1.0
    total = 0.0
    for v in x:
        total += scaled(v)
    return total * CALLS + SCALE


def by_the_loop_itself(x):
    global CALLS
    CALLS = 0
    for v in x:
        if v > 0.2:
            CALLS += 1
        elif v < -1:
            CALLS += 10
    return CALLS * x[0] + sum(x)


def as_long_as_it_is_small(x):
    global CALLS, SCALE
    CALLS, SCALE = 0, abs(x[0]) + 0.1
    while 5.0 + x[1] > SCALE:
        CALLS += 1
        SCALE *= 1.5
    return CALLS * x[2] * SCALE


def largest(v):
    global LATEST
    if LATEST is None or v > LATEST:
        LATEST = v
    return LATEST


def from_none_on(x):
    global LATEST
    LATEST = None
    return sum(largest(v) for v in x)


def doubled():
    return CALLS * 2.0


def read_by_others(x):
    global CALLS
    CALLS = 0
    later, total = lambda: CALLS + 1.0, 0.0
    for v in x:
        if v > 0:
            CALLS += 1
        total += doubled() * v + later() * v * v
    return total


def as_targets(x):
    global CALLS, SCALE
    total = 0.0
    for CALLS, SCALE in enumerate(x):
        if SCALE > 0:
            total += CALLS * SCALE
    return total + CALLS * SCALE


def in_a_function_of_its_own(x):
    def note(v):
        global SCALE
        if v > SCALE:
            SCALE = v
    note(-9.0 * x[0] ** 2)
    for v in x:
        note(v)
    return SCALE


def bound_anew(x):
    global SCALE
    SCALE = -10.0
    return in_a_function_of_its_own(x) * x[1]


@pytest.mark.parametrize("program", [
    of_a_root_finder, in_branches, by_the_loop_itself, as_long_as_it_is_small, from_none_on, read_by_others, as_targets, bound_anew],
    ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, -X, np.roll(X, 3))


def by_a_definition(x):
    global helper

    def helper(v):
        return 2 * v
    return helper(x[0]) if x[0] > 0 else helper(x[1])


def test_definitions_are_no_assignments():
    for x in (X, -X):
        assert bw.jit(by_a_definition)(x) == pytest.approx(by_a_definition(x))


def _warns_once(x):
    total = 0.0
    for k in range(9):
        if x[k % 3] > 1.5:
            total += x[k % 3] ** 2
            if "_never_bound" not in globals():
                total += 1.0
        else:
            total -= globals()["_A_NUMBER"]
    return total


_A_NUMBER = 0.25


def test_globals_called_by_the_user():
    global _A_NUMBER
    compiled = bw.jit(_warns_once)
    for _ in range(2):
        for x in (np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 0.5])):
            np.testing.assert_allclose(compiled(x), _warns_once(x))
        _A_NUMBER = 0.5
    _A_NUMBER = 0.25
