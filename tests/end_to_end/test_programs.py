"""Whole programs of many fields, as people write them with NumPy and SciPy (`tests/programs`): they run as they are.

Values are NumPy's, and so are derivatives, by central differences along one direction: values alone for one data set, values with
derivatives for another.  On other Pythons `test_value` alone runs (`.ci/versions`): what may be different there is the reading of a program.
"""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.whole_programs import PROGRAMS, loaded

STEPS = (1e-5, 1e-4, 1e-6, 1e-7)          # relative: some programs have kinks nearby, others iterate until they converge
TOLERANCE = 1e-5


@pytest.fixture
def program(request):
    with loaded(request.param) as module:
        yield module


def moved(args: Any, direction: Any, step: float) -> Any:
    return bw.tree.map(lambda x, d: x + step * d, args, direction)


def slope(loss: Any, args: Any, rest: Any, direction: Any, expected: float) -> float:
    """The derivative along a direction by differences of fourth order, of the first step that gives what is expected, or the nearest."""
    found = []
    for step in STEPS:
        near, far = ([loss(*moved(args, direction, sign * step), *rest) for sign in (1, -1)] for step in (step, 2 * step))
        found.append((8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * step))
        if abs(found[-1] - expected) <= TOLERANCE / 2 * abs(expected):
            break
    return min(found, key=lambda one: abs(one - expected))


@pytest.mark.parametrize("program", PROGRAMS, indirect=True)
def test_value(program: ModuleType) -> None:
    args, _ = program.make(1)
    expected = program.loss(*args)
    np.testing.assert_allclose(bw.jit(program.loss)(*args), expected, rtol=1e-9)


@pytest.mark.parametrize("program", PROGRAMS, indirect=True)
def test_gradient(program: ModuleType) -> None:
    args, count = program.make(0)
    active, rest = args[:count], args[count:]
    value, gradients = bw.value_and_grad(program.loss, argnums=tuple(range(count)))(*args)
    np.testing.assert_allclose(value, program.loss(*args), rtol=1e-9)
    random = np.random.default_rng(5)
    direction = bw.tree.map(lambda x: random.standard_normal(np.shape(x)) * (np.mean(np.abs(x)) or 0.1), active)
    along = sum(np.sum(g * d) for g, d in zip(bw.tree.leaves(gradients), bw.tree.leaves(direction), strict=True))
    np.testing.assert_allclose(along, slope(program.loss, active, rest, direction, along), rtol=TOLERANCE)
