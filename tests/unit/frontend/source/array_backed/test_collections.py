"""Lists of arrays that loops have filled, and that later loops go over or read at places that move."""

import numpy as np
import pytest

import bwcompiler as bw

X = np.random.default_rng(7).standard_normal((40, 5))          # one array that no test changes


def filled(x, first=True):
    """What it begins with is no row of the array that the loop fills."""
    kept = [x[0]] if first else []
    h = x[0]
    for t in range(1, 40):
        h = np.tanh(h * 0.5 + x[t])
        kept.append(h)
    return kept


def backwards(x):
    kept = filled(x)
    s, total = kept[-1], 0.0
    for t in reversed(range(39)):
        s = kept[t] + 0.3 * (s - kept[t + 1])
        total = total + np.sum(s ** 2)
    return total


def one_after_the_other(x):
    total, y = 0.0, np.zeros(5)
    for h in filled(x, first=False):
        y = np.sin(y) * h
        total = total + np.sum(y)
    return total


def two_at_once(x):
    kept = filled(x)
    total, y = 0.0, np.zeros(5)
    for h, other in zip(kept, reversed(kept), strict=True):
        y = np.sin(y) * h + other
        total = total + np.sum(y)
    return total


def of_a_tuple(x):
    kept, total = tuple(filled(x)), 0.0
    for t in range(38):
        total = total + np.sum(kept[t] * kept[t + 2])
    return total


def from_the_end(x):
    kept, total = filled(x), 0.0
    for t in range(1, 40):
        total = total + np.sum(kept[-t] * x[t])
    return total


def in_nested_loops(x):
    kept, total = filled(x), 0.0
    for i in range(30):
        for j in range(40):
            total = total + np.sum(kept[i] * kept[j])
    return total


def the_last_one_is_changed_later(x):
    kept = filled(x, first=False)
    last = kept[0]
    for t in range(39):
        last = kept[t] * 2
    last += 1.0
    return np.sum(last) + np.sum(kept[-1])


def elements_are_changed(x):
    kept, total = filled(x), 0.0
    kept[0] = kept[0] * 1.0
    for t in range(39):
        h = kept[t]
        h += 1.0
        total = total + np.sum(kept[t] * kept[t + 1])
    return total + sum([np.sum(h) for h in kept])


def rows_are_changed(x):
    kept, total = filled(x, first=False), 0.0
    for t in range(38):
        h = kept[t]
        h += 1.0
        total = total + np.sum(kept[t] * kept[t + 1])
    return total + sum([np.sum(h) for h in kept])


def the_list_grows_meanwhile(x):
    kept, total = filled(x), 0.0
    for t in range(40):
        kept.append(kept[t] * 2)
        total = total + np.sum(kept[t] * kept[-1])
    return total + np.sum(kept[60])


def an_element_is_bound_anew(x):
    kept, total = filled(x), 0.0
    for t in range(40):
        total = total + np.sum(kept[t])
        kept[20] = kept[20] * 1.1 + x[t]
    return total + np.sum(kept[20])


def the_first_is_assigned_to_after_it_was_read(x):
    u = x[0] * 2
    kept, total = [u, *filled(x)[1:]], 0.0
    for t in range(39, -1, -1):
        total = total + np.sum(kept[t])
        u[1] = u[1] * 0.9 + total * 0.01
    return total


LOOPS = [backwards, one_after_the_other, two_at_once, of_a_tuple, from_the_end, in_nested_loops, the_last_one_is_changed_later,
         rows_are_changed]
UNROLLED = [elements_are_changed, the_list_grows_meanwhile, an_element_is_bound_anew,
            the_first_is_assigned_to_after_it_was_read]


@pytest.mark.parametrize("program", [*LOOPS, *UNROLLED])
def test_values_and_gradients(program):
    np.testing.assert_allclose(bw.jit(program)(X), program(X.copy()), rtol=1e-12)
    bw.check_grads(program, (X,), order=1)


@pytest.mark.parametrize("program", LOOPS)
def test_they_stay_loops(program):
    assert "unrolled" not in bw.jit(program).explain(X)


@pytest.mark.parametrize("program", UNROLLED)
def test_what_changes_meanwhile_is_unrolled(program):
    assert "unrolled" in bw.jit(program).explain(X)


def test_what_is_joined_with_the_rows_is_joined_before_the_loop():
    """Once, not in every iteration: so its derivative is not one of all rows either."""
    joins = [line for line in bw.jit(backwards).as_text("forward", X).splitlines() if "= concatenate" in line]
    assert len(joins) == 1 and joins[0].startswith("  %")          # bodies of loops stand further to the right


def test_loops_that_end_as_data_say_are_told_apart_and_have_their_lines():
    def program(x, y):
        first, second = [], []
        while x < 20.0:
            x = x + 0.1 * y
            y += 1.5
            first.append(x)
        z = np.ones(3) * x
        while np.sum(z) > 1.0:
            z = z * 0.7 * (1 + 0.01 * y)
            second.append(z)
        return np.sum(np.array(first)) * len(second) + np.sum(np.array(second)) / len(first) + y

    np.testing.assert_allclose(bw.jit(program)(0.3, 0.4), program(0.3, 0.4), rtol=1e-12)
    line = program.__code__.co_firstlineno
    text = bw.jit(program).explain(0.3, 0.4)
    assert all(f"test_collections.py:{line + k} is one that ends" in text for k in (2, 7))
