"""Elements at places of a sorted axis, their positions, and partitions."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import REGISTRY, Record, input_value
from bwcompiler.ir.types import BOOL, F32, F64, I64, tensor
from bwcompiler.ops.ordering.order_statistics import argpartition_reference, known_places, numbers_of
from tests.support.opcases import case, op_tests

X = np.array([[0.4, -1.3, 2.2, 0.4], [np.nan, 1.7, -np.inf, 1.2]])
INTEGERS = np.array([[12, -8, 0, 5], [7, 3, 1, 7]])
DISTINCT = np.sin(np.arange(12.0)).reshape(3, 4)
PLACES = np.array([[0, 3], [2, 3]])
ALL = np.tile(np.arange(4), (2, 1))


def _at(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.take_along_axis(np.sort(x, -1), places, -1)


CASES = [
    *[case("order_statistics", x, PLACES).but(smooth=False).gives(_at(x, PLACES))
      for x in (X, X.astype(np.float32), INTEGERS, INTEGERS.astype(np.uint8))],
    case("order_statistics", DISTINCT, np.array([[0, 3], [2, 3], [1, 1]])),
    case("order_statistics", DISTINCT[0], np.array([2])),
    *[case("order_positions", x, np.sort(x, -1), ALL).gives(np.argsort(x, -1, kind="stable")) for x in (X, X.astype(np.float32), INTEGERS)],
    case("argpartition", X, _at(X, PLACES)).gives([[1, 0, 3, 2], [2, 3, 1, 0]]),
    case("argpartition", INTEGERS, np.array([[0], [7]])).gives([[1, 2, 0, 3], [1, 2, 0, 3]]),
]
test_op = op_tests(CASES)


def test_types() -> None:
    numbers, places = tensor(F64, (2, 5)), tensor(I64, (2, 1))
    for types in ((tensor(BOOL, (2, 5)), places), (numbers, tensor(F64, (2, 1)))):
        with pytest.raises(DTypeError):
            REGISTRY["order_statistics"].shape(*types)
    for types in ((numbers, tensor(I64, (3, 1))), (tensor(F64, (2, 0)), places), (tensor(F64), tensor(I64))):
        with pytest.raises(ShapeError):
            REGISTRY["order_statistics"].shape(*types)
    with pytest.raises(DTypeError):
        REGISTRY["argpartition"].shape(numbers, tensor(F32, (2, 1)))


def test_a_partition_has_what_is_equal_in_order_and_nan_above_all_numbers() -> None:
    x = np.array([3.0, np.nan, 1.0, 2.0, 1.0, 2.0, np.nan, 0.0])
    assert argpartition_reference(x, np.array([1.0])).tolist() == [7, 2, 4, 0, 1, 3, 5, 6]
    assert argpartition_reference(x, np.array([1.0, 1.0, 2.0])).tolist() == [7, 2, 4, 3, 5, 0, 1, 6]
    assert argpartition_reference(x, np.array([np.nan])).tolist() == [0, 2, 3, 4, 5, 7, 1, 6]


def test_known_places() -> None:
    given = input_value(tensor(I64, (2, 1)), "i")
    with Record() as record:
        made = [known_places(places, (2,)) for places in ([4], [1, 4, 7])]
    Graph("g", [given], record.values, made)
    assert [numbers_of(value) for value in (*made, given)] == [[4], [1, 4, 7], None]
    assert all(value.shape[0] == 2 for value in made)
