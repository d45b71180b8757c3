"""The matrix product, alone and added to an array."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.types import F32, F64, tensor
from bwcompiler.ops.linalg.contraction import matmul, matmul_add
from tests.support.gradcheck import apply
from tests.support.opcases import case, op_tests

X, Y = np.cos(np.arange(12.0)).reshape(3, 4), np.sin(np.arange(8.0)).reshape(4, 2)
STACK = np.cos(np.arange(24.0)).reshape(2, 3, 4)
WRONG = np.array([[np.nan, 1.0], [np.inf, 2.0]])
CASES = [
    case(matmul, X, Y).gives(np.einsum("ik,kj->ij", X, Y)),
    case(matmul, STACK, STACK.swapaxes(1, 2)).gives(np.einsum("bik,bjk->bij", STACK, STACK)),
    case(matmul, STACK[:, None], np.stack([Y, 2 * Y])[:, None]),
    case(matmul, X[:1], Y[:, :1]),
    case(matmul, X[:1, :1], Y[:1, :1]),
    case(matmul, X[:0], Y),
    case(matmul, X[:, :0], Y[:0]).gives(np.zeros((3, 2))),
    case(matmul, STACK[:0], STACK[:0].swapaxes(1, 2)),
    case(matmul, X + 1j * X[::-1], Y * (1 - 2j)),
    case(matmul, X.astype(np.float32), Y.astype(np.float32)).but(smooth=False),
    case(matmul, np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2)),
    case(matmul, X > 0, Y > 0),
    case(matmul, WRONG, WRONG).but(smooth=False),
    case(matmul_add, X, Y, np.tan(np.arange(6.0)).reshape(3, 2)).gives(np.tan(np.arange(6.0)).reshape(3, 2) + np.einsum("ik,kj->ij", X, Y)),
    case(matmul_add, STACK, STACK.swapaxes(1, 2), np.cos(np.arange(18.0)).reshape(2, 3, 3)),
    case(matmul_add, X[:, :0], Y[:0], np.ones((3, 2))).gives(np.ones((3, 2))),
    case(matmul_add, X[:0], Y, np.ones((0, 2))),
    case(matmul_add, X + 1j * X[::-1], Y * (1 - 2j), np.ones((3, 2)) * 1j),
    case(matmul_add, np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2), np.ones((2, 2), np.int64)),
    case(matmul_add, WRONG, WRONG, WRONG).but(smooth=False),
]
test_op = op_tests(CASES)


@pytest.mark.parametrize(("x", "y"), [((2, 3), (2, 3)), ((3,), (3, 2)), ((2, 2, 3), (3, 2)), ((1, 2, 3), (2, 3, 2))])
def test_shape_error(x, y):
    with pytest.raises(ShapeError):
        matmul.shape(tensor(F64, x), tensor(F64, y))


def test_dtypes_are_not_promoted():
    with pytest.raises(DTypeError):
        matmul.shape(tensor(F64, (2, 2)), tensor(F32, (2, 2)))
    with pytest.raises(DTypeError):
        matmul_add.shape(tensor(F64, (2, 2)), tensor(F64, (2, 2)), tensor(F32, (2, 2)))


def test_a_product_is_added_to_what_has_its_shape():
    with pytest.raises(ShapeError):
        matmul_add.shape(tensor(F64, (2, 3)), tensor(F64, (3, 2)), tensor(F64, (2, 1)))


def test_samples_times_one_matrix_is_one_product():
    program = apply(lambda x, y: matmul.batch((x, y), (True, False), 2), [STACK, Y])
    products = [value for value in program.record.values if value.op is matmul]
    assert [value.shape for value in products] == [(6, 2)]
