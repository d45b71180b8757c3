"""Positions of sorted elements, and integer functions."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.types import F64, tensor
from tests.support.opcases import case, op_tests

X = np.array([[0.4, -1.3, 2.2, 0.4], [np.nan, 1.7, -np.inf, 1.2]])
INTEGERS = np.array([[12, -8, 0], [7, 3, 1]])
DISTINCT = np.sin(np.arange(12.0)).reshape(3, 4)
POSITIVE = np.array([[3, 4, 2], [0, 1, 5]])

CASES = [
    *[case("argsort", x, axis=axis, kind="stable").gives(np.argsort(x, axis, kind="stable"))
      for x in (X, X.astype(np.float32), INTEGERS, X > 0, np.zeros((2, 0))) for axis in (0, 1)],
    case("argsort", X[0], axis=0, kind=None),
    *[case("sort", x, axis=axis, kind=None).gives(np.sort(x, axis)) for x in (INTEGERS, X > 0, np.zeros((2, 0))) for axis in (0, 1)],
    *[case("sort", x, axis=axis, kind="stable").but(smooth=x is DISTINCT) for x in (X, X.astype(np.float32), DISTINCT) for axis in (0, 1)],
    *[case(name, INTEGERS, POSITIVE) for name in ("gcd", "lcm", "integer_power")],
    case("integer_power", INTEGERS.astype(np.uint8), POSITIVE.astype(np.uint8)),
    case("bitwise_count", INTEGERS).gives(np.bitwise_count(INTEGERS)),
    case("nextafter", X, X[::-1]).but(smooth=False), case("spacing", X).but(smooth=False),
    *[case("exponent", x).but(smooth=False).gives(np.frexp(x)[1]) for x in (X, X.astype(np.float32), np.array([0.0, 1e-310]))],
]
test_op = op_tests(CASES)


def test_types():
    with pytest.raises(ShapeError, match="axes"):
        REGISTRY["argsort"].shape(tensor(F64, (2,)), axis=1, kind=None)
    with pytest.raises(DTypeError, match="float64"):
        REGISTRY["gcd"].shape(tensor(F64, (2,)), tensor(F64, (2,)))
