"""normalize_index, gather and scatter."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.types import F32, F64, I32, I64, tensor
from bwcompiler.ops.indexing.elements import gather, scatter_add, scatter_update
from bwcompiler.ops.indexing.indices import check_range, index_from_start, normalize_index, wrap_index
from tests.support.gradcheck import vjp
from tests.support.opcases import case, op_tests

A = np.cos(np.arange(24.0)).reshape(2, 3, 4)
ROW = A[0, 0]
ODD = np.array([np.nan, np.inf, -0.0, 1.0])
ROWS, COLUMNS = np.array([[1, 0, 2], [2, 2, 1]]), np.array([[3, 0, 1], [1, 1, 0]])      # (2, 1) three times
ONE, NONE = np.array(1), np.zeros(0, int)
UNIQUE = np.array([3, 0, 2])


def _numbers(*shape):
    return np.sin(np.arange(float(np.prod(shape)))).reshape(shape)


SCATTERS = [
    (ROW, _numbers(3), (UNIQUE,), (0,)),
    (ROW, _numbers(5), (np.array([1, 3, 1, 1, 0]),), (0,)),
    (ROW, _numbers(), (ONE,), (0,)),
    (ROW, _numbers(0), (NONE,), (0,)),
    (A, _numbers(2, 3, 2), (ROWS, COLUMNS), (1, 2)),
    (A, _numbers(2, 3, 3), (ROWS % 2, COLUMNS), (0, 2)),
    (A, _numbers(3, 2, 4), (UNIQUE % 3,), (1,)),
    (A, _numbers(3, 4), (ONE,), (0,)),
    (A, _numbers(2, 3), (ROWS % 2, ROWS, COLUMNS), (0, 1, 2)),
    (A[:, :0], _numbers(2, 0, 4), (np.array([1, 0]),), (0,)),
    (np.arange(4), np.array([5, 6, 7]), (np.array([1, 1, 0]),), (0,)),
    (A[0] + 1j, _numbers(3, 4) * 1j, (np.array([1, 1, 0]),), (0,)),
]
CASES = [
    case(normalize_index, np.array([-5, -1, 0, 4]), extent=5).gives([0, 4, 0, 4]),
    case(normalize_index, np.array(-2), extent=2).gives(0),
    case(normalize_index, NONE, extent=0),
    case(index_from_start, np.array([-5, -1, 0, 4]), extent=5).gives(np.array([0, 4, 0, 4], np.uint64)),
    case(index_from_start, np.array([5, -6]), extent=5).gives(np.array([5, 2**64 - 1], np.uint64)),
    case(index_from_start, NONE, extent=3),
    case(wrap_index, np.array([-5, -1, 0, 4, 5, -6, 1 << 62]), extent=5).gives([0, 4, 0, 4, 4, 4, 4]),
    case(wrap_index, np.array(-2), extent=2).gives(0),
    case(check_range, np.array(4, np.uint64), extent=5).gives(True),
    case(gather, ROW, UNIQUE, axes=(0,)).gives(ROW[UNIQUE]),
    case(gather, A, ROWS, COLUMNS, axes=(1, 2)).gives(np.moveaxis(A[:, ROWS, COLUMNS], 0, -1)),
    case(gather, A, ROWS % 2, COLUMNS, axes=(0, 2)).gives(A[ROWS % 2, :, COLUMNS]),
    case(gather, A, ROWS % 2, ROWS, COLUMNS, axes=(0, 1, 2)).gives(A[ROWS % 2, ROWS, COLUMNS]),
    case(gather, A, UNIQUE, axes=(2,)).gives(np.moveaxis(A[..., UNIQUE], -1, 0)),
    case(gather, A, ONE, axes=(1,)).gives(A[:, 1]),
    case(gather, A, NONE, axes=(0,)).gives(A[NONE]),
    case(gather, ODD, np.array([0, 1, 1]), axes=(0,)).but(smooth=False),
    case(gather, A > 0, UNIQUE % 2, axes=(0,)),
    case(gather, A[0] * 1j, UNIQUE % 3, axes=(0,)),
    *[case(op, x, updates, *indices, axes=axes) for op in (scatter_add, scatter_update)
      for x, updates, indices, axes in SCATTERS],
    case(scatter_add, ODD, ODD[::-1], np.array([0, 0, 1, 3]), axes=(0,)).but(smooth=False),
    case(scatter_update, ODD, ODD[::-1], np.array([0, 0, 1, 3]), axes=(0,)).but(smooth=False),
    case(scatter_add, np.zeros(3), np.ones(4), np.array([2, 0, 2, 2]), axes=(0,)).gives([1.0, 0.0, 3.0]),
    case(scatter_update, np.zeros(3), np.arange(4.0), np.array([2, 0, 2, 2]), axes=(0,)).gives([1.0, 0.0, 3.0]),
]
test_op = op_tests(CASES)


@pytest.mark.parametrize("wrong", [5, -6, 7])
def test_index_out_of_range(wrong):
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis with size 5"):
        normalize_index.reference(np.array([0, wrong, 99]), extent=5)


@pytest.mark.parametrize("wrong", [5, -6, 7])
def test_index_out_of_range_counted_from_the_start(wrong):
    largest = np.max(index_from_start.reference(np.array([0, wrong, -5]), extent=5))
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis with size 5"):
        check_range.reference(largest, extent=5)


def test_only_the_last_writer_gets_the_cotangent():
    row = case(scatter_update, np.zeros(3), np.zeros(5), np.array([2, 0, 2, 0, 1]), axes=(0,))
    x, updates = vjp(row.program(), [0, 1]).run(*row.arrays, np.array([3.0, 5.0, 7.0]))
    np.testing.assert_array_equal(x, [0, 0, 0])
    np.testing.assert_array_equal(updates, [0, 0, 7, 3, 5])


def test_gathers_accumulate_into_one_cotangent():
    program = case(gather, ROW, UNIQUE, axes=(0,)).program()
    vjp(program, [0])
    assert [value.op.name for value in program.record.values] == ["gather", "full", "scatter_add"]


X, INDEX = tensor(F64, (4, 3)), tensor(I64, (2,))


@pytest.mark.parametrize(("name", "types", "axes"), [
    ("gather", (X, INDEX), (2,)), ("gather", (X, INDEX), (0, 1)), ("gather", (X,), ()),
    ("gather", (X, INDEX, INDEX), (1, 0)), ("gather", (X, INDEX, tensor(I64, (3,))), (0, 1)),
    ("scatter_add", (X, tensor(F64, (2, 4)), INDEX), (0,)),
])
def test_shape_error(name, types, axes):
    with pytest.raises(ShapeError):
        REGISTRY[name].shape(*types, axes=axes)


@pytest.mark.parametrize(("name", "types"), [
    ("gather", (X, tensor(I32, (2,)))), ("scatter_add", (X, tensor(F32, (2, 3)), INDEX)),
])
def test_dtype_error(name, types):
    with pytest.raises(DTypeError):
        REGISTRY[name].shape(*types, axes=(0,))
