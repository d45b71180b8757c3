"""Lists that one side of a branch appends to, and the other replaces by another list: of which nobody can tell, if nothing else holds them."""

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError


def both_names(x: Any) -> Any:
    kept = [1.0]
    other = kept
    if x[0] > 0:
        kept.append(x[0])
    else:
        kept = [x[1], 2.0]
    return sum(kept) + 10 * sum(other)


def another_name(x: Any) -> Any:
    kept = [1.0]
    if x[0] > 0:
        kept.append(x[0])
        found = kept
    else:
        found = [x[1]]
    return sum(kept) + 10 * sum(found)


def after_an_append(x: Any) -> Any:
    kept = [1.0]
    if x[0] > 0:
        kept.append(x[0])
    else:
        kept.append(x[1])
        kept = [*kept, x[2]]
    return sum(kept) * len(kept)


def cleared(x: Any) -> Any:
    runs, current = 0.0, []
    for v in x:
        if v > 0:
            current.append(v)
        else:
            runs += sum(current) ** 2
            current.clear()
    return runs + sum(current)


def emptied(x: Any) -> Any:
    runs, current = 0.0, []
    for v in x:
        if v > 0:
            current.append(v)
        else:
            runs += sum(current) ** 2
            current = []
    return runs


def begun_anew(x: Any) -> Any:
    runs, current = [], [x[0]]
    for v in x[1:]:
        if v < current[-1]:
            runs.append(len(current) * current[0])
            current = [v]
        else:
            current.append(v)
    return sum(runs)


def emptied_first(x: Any) -> Any:
    runs, current = 0.0, []
    for v in x:
        if v < 0:
            runs += sum(current) ** 2
            current = []
        current.append(v)
    return runs + sum(current)


def runs_of(x: Any) -> Any:
    runs, current = [], []
    for v in x:
        if v > 0:
            current.append(v)
        elif current:
            runs.append(sum(current) / len(current))
            current = []
    return sum(r * r for r in runs)


def batches(x: Any) -> Any:
    batch, means = [], []
    for v in x:
        batch.append(v)
        if sum(batch) > 0.5:
            means.append(np.mean(batch) * len(batch) ** 0.5)
            batch = []
    return sum(means) + len(batch) * x[0]


def begun_with_the_last(x: Any) -> Any:
    window, total = [0.0], 0.0
    for v in x:
        if abs(v - window[-1]) > 1:
            window = [window[-1], v]
        else:
            window.append(v)
        total += window[0] * window[-1] / len(window)
    return total


def two_lists(x: Any) -> Any:
    a, b = [], [1.0]
    for v in x:
        if v > 0:
            a = []
            b.append(v)
        else:
            a.append(v)
            b = [2.0]
    return sum(a) + 5 * sum(b)


def of_pairs(x: Any) -> Any:
    pairs = [(0.0, 1.0)]
    for v in x:
        if v > 0:
            pairs = [(v, 2.0)]
        else:
            pairs.append((v, v * v))
    return sum(p * q for p, q in pairs)


def on_the_way_down(x: Any) -> Any:
    path, lowest = [], 1e9
    for v in x:
        if v < lowest:
            lowest = v
            path = [v]
        elif v < lowest + 1:
            path.append(v)
    return sum(path) * lowest


def other_names(x: Any) -> Any:
    """What it was before has another name."""
    current, before = [], [1.0]
    for v in x[:2]:
        if v > 0:
            current.append(v)
        before = current
    if x[2] > 0:
        current = [x[3]]
    return sum(current) + 10 * sum(before)


def exchanged(x: Any) -> Any:
    a, b = [], []
    for v in x:
        if v > 0:
            a.append(v)
        else:
            a, b = b, a
    return sum(a) - 2 * sum(b)


@pytest.mark.parametrize("program", [
    both_names, another_name, after_an_append, cleared, emptied, emptied_first, begun_anew, runs_of, batches, begun_with_the_last, two_lists,
    of_pairs, on_the_way_down, other_names, exchanged])
def test_as_python(program: Any, rng: np.random.Generator) -> None:
    function = bw.value_and_grad(program)
    for x in rng.normal(size=(5, 8)):
        value, gradient = function(x)
        direction = rng.normal(size=8)
        assert value == pytest.approx(program(x), rel=1e-12)
        near = program(x + 1e-6 * direction) - program(x - 1e-6 * direction)
        assert gradient @ direction == pytest.approx(near / 2e-6, rel=1e-5, abs=1e-7)


def in_a_tuple(x: Any) -> Any:
    kept: list[Any] = []
    state = kept, 0.0
    for v in x:
        if v > 0:
            kept.append(v)
            state = kept, v
        else:
            state = [], v
    return sum(state[0]) + state[1]


class State:
    def __init__(self) -> None:
        self.kept: list[Any] = []


def of_an_object(x: Any) -> Any:
    state, total = State(), 0.0
    for v in x:
        if v > 0:
            state.kept.append(v)
        else:
            total += sum(state.kept) ** 2
            state.kept = []
    return total


@pytest.mark.parametrize("program", [in_a_tuple, of_an_object])
def test_refused_with_what_to_write(program: Any) -> None:
    with pytest.raises(TracerBoolError, match=r"appended to on one side(?s:.)*kept\.clear\(\)"):
        bw.jit(program)(np.array([0.3, -0.2, 1.1, 0.4, -0.7, -0.1, 0.9, 0.6]))
