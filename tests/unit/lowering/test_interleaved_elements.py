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


def test_sums_beside_scattered_elements_stay_in_memory(rng: np.random.Generator) -> None:
    """The 64 maxima of a panel of short rows could be in registers, but then all 64 loads from each column would be unrolled."""
    def scaled(x: Any, y: Any) -> Any:
        product = x * y
        most = product.max(axis=1, keepdims=True)
        return product / most, np.log(most[:, 0])

    x, y = rng.random((512, 4)) + 0.5, rng.random((512, 4)) + 0.5
    program = bw.jit(scaled).lower(x, y)
    assert program.as_text("llvm").count("insertelement") < 60         # 152 with AVX-512, if they were in registers
    for one, other in zip(bw.jit(scaled)(x, y), scaled(x, y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
