"""Reductions."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.types import BOOL, C64, F64, tensor
from tests.support.gradcheck import vjp
from tests.support.opcases import case, op_tests

A = np.array([0.4, -1.3, 2.2, 0.9, -0.5, 1.7, -2.1, 1.2, 0.6, -0.8, 1.5, -1.9]).reshape(2, 3, 2)
Z = A[0] + 1j * A[1]
ZEROS = A * (np.arange(12).reshape(A.shape) % 4 != 1)           # rows with one zero and rows with several
ODD = np.array([[1.0, np.nan, np.inf], [-np.inf, 2.0, 3.0], [-0.0, 0.0, -1.0]])
TIES = np.array([[2.0, 1.0, 2.0], [0.5, 0.5, 0.5]])
INTEGERS = np.array([[3, -1, 2], [2, 3, 3]])
BITS = np.array([[True, False], [True, True], [False, False]])
EMPTY = np.zeros((2, 0, 3))
NUMPY = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all}


def _cases(name, x, *all_axes, smooth=True):
    with np.errstate(invalid="ignore"):
        return [case(name, x, axes=axes).but(smooth=smooth).gives(NUMPY[name](x, axis=axes)) for axes in all_axes]


CASES = [
    *[row for name in ("sum", "prod", "max", "min") for row in (
        *_cases(name, A, (0,), (1,), (2,), (0, 2), (0, 1, 2), ()),
        *_cases(name, A[:1, :1], (0,), (0, 1)),
        *_cases(name, np.array(1.5), ()),
        *_cases(name, INTEGERS, (1,), (0, 1)),
        *_cases(name, ODD, (0,), (1,), smooth=False),
        case(name, A.astype(np.float32), axes=(1,)).but(smooth=False))],
    *[row for name in ("sum", "prod") for row in _cases(name, EMPTY, (1,), (0, 2), (0, 1, 2))],
    *[row for name in ("sum", "prod") for row in _cases(name, Z, (0,), (1,), (0, 1))],
    *_cases("max", EMPTY, (0,), (2,)),
    *_cases("prod", ZEROS, (0,), (1,), (2,), (0, 1), (0, 1, 2)),
    *_cases("prod", np.zeros((2, 3)), (0,), (1,)),
    *_cases("prod", A.reshape(12)[:7], (0,)),
    *_cases("max", TIES, (0,), (1,), smooth=False),
    *[row for name in ("any", "all") for row in (
        *_cases(name, BITS, (0,), (1,), (0, 1), ()), *_cases(name, np.zeros((2, 0), bool), (1,)))],
    *[case(name, x, axes=(axis,)).but(smooth=False).gives(getattr(np, name)(x, axis=axis))
      for name in ("argmax", "argmin") for x in (A, ODD, TIES, INTEGERS) for axis in range(x.ndim)],
]
test_op = op_tests(CASES)


@pytest.mark.parametrize("name", ["max", "min"])
def test_ties_share_the_gradient(name):
    sign = 1.0 if name == "max" else -1.0
    row = case(name, sign * TIES, axes=(1,))
    [bar] = vjp(row.program(), [0]).run(*row.arrays, np.array([3.0, 6.0]))
    np.testing.assert_array_equal(bar, [[1.5, 0, 1.5], [2, 2, 2]])


def test_nan_surfaces_in_the_gradient_of_max():
    row = case("max", ODD, axes=(1,))
    [bar] = vjp(row.program(), [0]).run(*row.arrays, np.ones(3))
    assert np.isnan(bar[0]).all() and np.isfinite(bar[1:]).all()


@pytest.mark.parametrize(("name", "shape", "axes"), [
    ("max", (0, 3), (0,)), ("min", (0,), (0,)), ("argmax", (0, 3), (0,)), ("argmin", (2, 3), (0, 1)),
    ("sum", (2,), (1,)),
    ("sum", (2, 3), (1, 0)), ("sum", (2, 3), (0, 0)), ("prod", (2,), (-1,)),
])
def test_shape_error(name, shape, axes):
    with pytest.raises(ShapeError):
        REGISTRY[name].shape(tensor(F64, shape), axes=axes)


@pytest.mark.parametrize(("name", "dtype"), [("sum", BOOL), ("any", F64), ("all", C64)])
def test_dtype_error(name, dtype):
    with pytest.raises(DTypeError):
        REGISTRY[name].shape(tensor(dtype, (2,)), axes=(0,))


def test_the_derivative_of_a_long_product_is_two_scans():
    """And not log2(n) passes over the array each way."""
    program = vjp(case("prod", np.ones((2, 1000)), axes=(1,)).program(), [0])
    names = [value.op.name for value in program.record.values]
    assert names.count("cumprod") == 2
    assert len(names) < 12
