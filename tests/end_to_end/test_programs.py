"""Whole programs of many fields, as people write them with NumPy and SciPy (`tests/programs`): they run as they are.

Each module has `loss` and `make(size)`: the arguments of `loss` for two data sets, and how many of them are differentiated.  Values are
NumPy's, and so are derivatives, by central differences along one direction.
"""

import importlib.util
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

FOLDER = Path(__file__).parent.parent / "programs"
PROGRAMS = sorted([path.stem for path in FOLDER.glob("*.py")])
STEPS = (1e-5, 1e-4, 1e-6, 1e-7)          # relative: some programs have kinks nearby, others iterate until they converge


@pytest.fixture
def program(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """A module of `tests/programs`, loaded anew."""
    spec = importlib.util.spec_from_file_location(f"programs_{request.param}", FOLDER / f"{request.param}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module                                    # where dataclasses look for their annotations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                                # of NumPy, for what the program does
        spec.loader.exec_module(module)
        yield module
    del sys.modules[spec.name]


def moved(args: Any, direction: Any, step: float) -> Any:
    return bw.tree.map(lambda x, d: x + step * d, args, direction)


def slope(loss: Any, args: Any, rest: Any, direction: Any, expected: float) -> float:
    """The derivative along a direction by differences of fourth order, of the step that is nearest to what is expected."""
    found = []
    for step in STEPS:
        near, far = ([loss(*moved(args, direction, sign * step), *rest) for sign in (1, -1)] for step in (step, 2 * step))
        found.append((8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * step))
    return min(found, key=lambda one: abs(one - expected))


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("program", PROGRAMS, indirect=True)
def test_value(program: ModuleType, size: int) -> None:
    args, _ = program.make(size)
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
    np.testing.assert_allclose(along, slope(program.loss, active, rest, direction, along), rtol=1e-5)
