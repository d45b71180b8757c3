"""Lists that one side of a branch appends to, and the other replaces by another list."""

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


@pytest.mark.parametrize("program", [both_names, another_name, after_an_append, cleared])
def test_as_python(program: Any, rng: np.random.Generator) -> None:
    function = bw.value_and_grad(program)
    for x in rng.normal(size=(5, 8)):
        value, gradient = function(x)
        direction = rng.normal(size=8)
        assert value == pytest.approx(program(x), rel=1e-12)
        near = program(x + 1e-6 * direction) - program(x - 1e-6 * direction)
        assert gradient @ direction == pytest.approx(near / 2e-6, rel=1e-5, abs=1e-7)


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


def exchanged(x: Any) -> Any:
    a, b = [], []
    for v in x:
        if v > 0:
            a.append(v)
        else:
            a, b = b, a
    return sum(a) - 2 * sum(b)


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


@pytest.mark.parametrize("program", [emptied, begun_anew, exchanged, in_a_tuple])
def test_refused_with_what_to_write(program: Any) -> None:
    with pytest.raises(TracerBoolError, match=r"appended to on one side(?s:.)*kept\.clear\(\)"):
        bw.jit(program)(np.array([0.3, -0.2, 1.1, 0.4, -0.7, -0.1, 0.9, 0.6]))
