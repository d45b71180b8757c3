"""Rows of a few numbers (colours, coordinates): many rows are read as one vector, which columns and reductions over rows share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.targets import on_each

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "first column, two reductions": lambda x: (x[..., 0] * 2, x.max(axis=-1) - x.min(axis=-1)),
    "columns around": lambda x: (x[..., 0] + x[..., -1], x.sum(axis=-1) * x[..., 1], x.min(axis=-1) * x[..., 0]),
    "other order": lambda x: (x.max(axis=-1) * x.sum(axis=-1), x[..., 0] * 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_columns_beside_reductions(name: str, rng: np.random.Generator) -> None:
    program = PROGRAMS[name]
    arrays = [rng.random(shape) + 0.5 for shape in ((8, 3), (4, 4, 3), (19, 4))]
    expected = [result for x in arrays for result in program(x)]
    for found in on_each(lambda: [result for x in arrays for result in bw.jit(program)(x)]).values():
        for result, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(result, right, rtol=1e-13)
