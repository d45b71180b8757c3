"""Lists that several loops and branches fill as data decides: neighbour lists, logs of what happened; they stay arrays, and loops over them loops."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace

X = np.random.default_rng(3).random(14)


def pairs_of_neighbours(x):
    pairs = []
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if abs(x[i] - x[j]) < 0.2:
                pairs.append((i, j))
    energy, force = 0.0, np.zeros(len(x))
    for i, j in pairs:
        d = x[i] - x[j]
        energy += 0.5 * d ** 2 * (j - i)
        force[i] -= d
        force[j] += d
    return energy, force, len(pairs)


def neighbours_of_each(x):
    found = []
    for i in range(13):
        for j in range(len(x)):
            if j != i and x[i] * x[j] > 0.4:
                found.append((i, j, x[i] * x[j]))
    total = np.zeros(len(x))
    for i, j, product in found:
        total[j] += product * i
    return total, len(found)


def several_in_an_iteration(x):
    kept = []
    for v in x:
        if v > 0.8:
            kept.append(v)
        if v < 0.5:
            kept.append(-v)
        elif v < 0.6:
            kept.append(2 * v)
    return sum(kept), len(kept), max(kept), kept[-1], np.mean(kept)


def in_a_branch(x):
    kept = [0.5]
    if x[0] > 0.05:
        for v in x:
            if v > 0.6:
                kept.append(v)
    else:
        kept.append(7.0)
    total = 0.0
    for v in kept:
        total += v ** 2
    return total, len(kept), max(kept), kept[-1], np.mean(kept)


def left_early(x):
    kept = []
    for i in range(12):
        if x[i] > 0.95:
            break
        for v in x:
            if v > 0.7:
                kept.append(v * i)
    total = 0.0
    for v in kept:
        total += np.sin(v)
    return total, len(kept)


def until_something_is_ripe(x):
    state, log = {"stage": "seed", "mass": 0.1}, []
    for v in x:
        if state["stage"] == "seed" and state["mass"] > 0.5:
            state["stage"] = "leaf"
        elif state["stage"] == "leaf" and state["mass"] > 4.0:
            break
        if v < 0.1:
            continue
        if state["stage"] == "seed":
            state["mass"] += 0.2 * v
        else:
            state["mass"] *= 1.0 + 0.3 * v
        log.append(state["mass"])
    return max(log), len(log), state["mass"]


def places_in_it(x):
    kept = [0.5]
    for v in x:
        if v > 0.55:
            kept.append(v)
    for v in x:
        if v < 0.4:
            kept.append(-v)
    return kept[0], kept[1], kept[3], kept[-1], kept[-2], kept[-5] * kept[5], len(kept)


def places_of_tuples(x):
    kept = []
    for i in range(len(x)):
        if x[i] > 0.3:
            kept.append((i, x[i], x[:2] * i))
    i, first, pair = kept[0]
    j, other, _ = kept[-2]
    return i * first + j * other, kept[2][1] * pair, len(kept)


PROGRAMS = [places_in_it, places_of_tuples, pairs_of_neighbours, neighbours_of_each, several_in_an_iteration, in_a_branch, left_early, until_something_is_ripe]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program):
    compiled = bw.jit(program)
    for shift in (0.0, 0.2, -0.3):
        x = (X + shift) % 1.0
        for found, expected in zip(compiled(x), program(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    bw.check_grads(lambda x: sum(np.sum(part) for part in program(x)[:-1]), (X,), order=1)


@pytest.mark.parametrize("program", [pairs_of_neighbours, neighbours_of_each, left_early])
def test_no_loop_is_unrolled(program):
    assert "unrolled" not in bw.jit(program).explain(X)


@pytest.mark.parametrize("ask", [
    lambda kept: kept[0], lambda kept: kept[2], lambda kept: kept[-2], min, max, lambda kept: 3 in kept, lambda kept: 1000 in kept])
def test_what_is_asked_of_a_list_is_asked_of_it_whole(ask):
    """An element after the other would be a thousand selections."""
    def program(x):
        kept = []
        for i in range(len(x)):
            if x[i] > 0.3:
                kept.append(i)
        return ask(kept)
    sizes = []
    for repeats in (1, 20):
        x = np.tile(X, repeats)
        compiled = bw.jit(program)
        assert compiled(x) == program(x)
        sizes.append(len(trace(program, (x,)).graph))
    assert sizes[0] == sizes[1]


def test_elements_that_are_not_there_are_refused():
    def program(x):
        kept = []
        for v in x:
            if v > 0.5:
                kept.append(v)
        return kept[1] + kept[-3]
    compiled = bw.jit(program)
    assert compiled(X) == program(X)
    for count in (0, 1, 2):
        x = np.zeros(14)
        x[3:3 + count] = 1.0
        with pytest.raises(IndexError, match="list index out of range"):
            compiled(x)


def test_numbers_of_python_stay_weak():
    def program(x):
        kept = []
        for i in range(20):
            if x[i % 14] > 0.5:
                kept.append((i, 0.5 * i, float(x[0])))
        total = np.float32(1.0) * np.ones(2, np.float32)
        for i, half, first in kept:
            total = total * half * first + i
        return total

    assert bw.jit(program)(X).dtype == program(X).dtype == np.float32
    np.testing.assert_allclose(bw.jit(program)(X), program(X), rtol=1e-5)


def test_a_list_whose_length_is_known_stays_known():
    def program(x):
        pairs, even = [], []
        for i in range(9):
            for j in range(i + 1, 9):
                pairs.append((i, j))
                if (i + j) % 2 == 0:
                    even.append(x[i] * x[j])
        return np.zeros(len(pairs)), np.zeros(len(even)) + even[3]

    for found, expected in zip(bw.jit(program)(X), program(X), strict=True):
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("x", [np.linspace(1.0, 0.0, 20), np.linspace(0.0, 1.0, 20), np.zeros(20)])
def test_what_a_loop_binds_anew_is_that_of_the_last_element_there_is(x):
    def program(x):
        kept = []
        for v in x:
            if v > 0.3:
                kept.append(v * 2)
        last, number = 0.25, 0
        for v in kept:
            last = v * 3
        for v in kept:
            number = 1 + int(v > 1.0)
        return last + number

    assert bw.jit(program)(x) == pytest.approx(program(x), rel=1e-12)
