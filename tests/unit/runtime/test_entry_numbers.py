"""The entry: Python numbers and NumPy scalars as arguments and results."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bwcompiler.ir.contracts.call_signature import CallSignature, Container, Leaf, Read
from bwcompiler.ir.types import BOOL, C64, C128, DTYPES, F32, F64, I8, I64, U8, U64, DType, tensor
from tests.unit.runtime.programs import (
    SCALAR,
    VECTOR,
    X,
    copy_bytes,
    load,
    loop,
    native,
    program,
    store,
    takes_slow_path,
    vectors,
)


class Config:
    rate = 1.5


def test_numbers_read_from_outside(bind: Callable[..., Any]) -> None:
    names, config = {"rate": 0.5}, Config()
    signature = CallSignature(
        arguments=(Leaf(0),), argument_types=(VECTOR, SCALAR, SCALAR), argument_kinds=("array", "float", "float"),
        result=Leaf(0), result_types=(VECTOR,), result_kinds=("array",))
    text = program(4, loop(5, load(0) + load(1, "0") + load(2, "0") + "  %a = fmul double %x0, %x1\n  %s = fadd double %a, %x2\n"
                           + store(3, "%s")))
    scale = bind(text, signature, reads=[Read("global", names, "rate", tree=Leaf(1)), Read("attribute", config, "rate", tree=Leaf(2))])
    np.testing.assert_array_equal(scale(X), X * 0.5 + 1.5)
    names["rate"], config.rate = 2.0, 7.25
    np.testing.assert_array_equal(scale(X), X * 2.0 + 7.25)
    names["rate"] = 2                          # type: ignore[assignment]
    assert takes_slow_path(scale, X)


def test_arrays_and_containers_read_from_outside(bind: Callable[..., Any]) -> None:
    names: dict[str, Any] = {"w": np.arange(5.0), "rest": [{"v": np.ones(5)}, 2.0]}
    rest = Container("list", (Container("dict", (Leaf(2),), ("v",)), Leaf(3)))
    signature = CallSignature(
        arguments=(Leaf(0),), argument_types=(VECTOR, VECTOR, VECTOR, SCALAR), argument_kinds=("array", "array", "array", "float"),
        result=Leaf(0), result_types=(VECTOR,), result_kinds=("array",))
    text = program(5, loop(5, load(0) + load(1) + load(2) + load(3, "0") + "  %a = fmul double %x0, %x1\n  %b = fadd double %a, %x2\n"
                           "  %s = fmul double %b, %x3\n" + store(4, "%s")))
    fused = bind(text, signature, reads=[Read("global", names, "w", tree=Leaf(1)), Read("global", names, "rest", tree=rest)])
    np.testing.assert_array_equal(fused(X), (X * names["w"] + 1.0) * 2.0)
    names["w"], names["rest"] = np.arange(10.0)[::2], [{"v": np.arange(5.0)}, 3.0]
    np.testing.assert_array_equal(fused(X), (X * names["w"] + np.arange(5.0)) * 3.0)
    held = [sys.getrefcount(part) for part in (names["w"], names["rest"], names["rest"][0]["v"], names["rest"][1])]
    fused(X)
    assert held == [sys.getrefcount(part) for part in (names["w"], names["rest"], names["rest"][0]["v"], names["rest"][1])]
    good = names["rest"]
    for wrong in ([{"v": np.ones(5)}], ({"v": np.ones(5)}, 2.0), [{"u": np.ones(5)}, 2.0], [{"v": np.ones(4)}, 2.0], [{"v": np.ones(5)}, 2], None):
        names["rest"] = wrong
        assert takes_slow_path(fused, X)
    names["rest"] = good
    for wrong in (np.ones(4), np.float32(np.ones(5)), 1.0, np.ones((5, 1))):
        names["w"] = wrong
        assert takes_slow_path(fused, X)
    del names["w"]
    assert takes_slow_path(fused, X)


def test_a_number_made_by_a_property_takes_the_slow_path() -> None:
    class Lazy:
        @property
        def rate(self) -> float:
            return sys.getrefcount(self) * 1e300

    copy = native(copy_bytes([(0, 1, 40)], 2), vectors(1), reads=[Read("attribute", Lazy(), "rate", 1e300)])
    assert takes_slow_path(copy, X)


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_numpy_scalars(bind: Callable[..., Any], dtype: DType) -> None:
    type_ = tensor(dtype, ())
    signature = replace(vectors(1, type_), argument_kinds=("scalar",), result_kinds=("scalar",))
    copy = bind(copy_bytes([(0, 1, type_.nbytes)], 2), signature)
    for number in (dtype.numpy.type(1), dtype.numpy.type(0), dtype.numpy.type(100)):
        result = copy(number)
        assert type(result) is dtype.numpy.type and result == number
    assert takes_slow_path(copy, 1) and takes_slow_path(copy, np.ones((), dtype.numpy))

NUMBERS: list[tuple[Any, Any, DType, Any]] = [
    ("float", 1.1, F64, 1.1),
    ("float", 1.1, F32, np.float32(1.1)),
    ("float", 1.1, C128, 1.1),
    ("float", 1.1, C64, np.complex64(1.1)),
    ("int", -7, I64, -7),
    ("int", 2**63 - 1, I64, 2**63 - 1),
    ("int", -128, I8, -128),
    ("int", 255, U8, 255),
    ("int", 2**40, U64, 2**40),
    ("int", 3, F64, 3.0),
    ("int", 3, F32, 3.0),
    ("int", 3, C128, 3.0),
    ("int", -3, C64, -3.0),
    ("bool", True, BOOL, True),
    ("bool", False, BOOL, False),
    ("bool", True, F64, 1.0),
    ("bool", True, I64, 1),
    ("bool", True, C64, 1.0),
    ("complex", 1.1 + 2j, C128, 1.1 + 2j),
    ("complex", 1.1 - 2j, C64, np.complex64(1.1 - 2j)),
]


@pytest.mark.parametrize(("kind", "number", "dtype", "expected"), NUMBERS, ids=str)
def test_python_numbers(bind: Callable[..., Any], kind: Any, number: Any, dtype: DType, expected: Any) -> None:
    type_ = tensor(dtype, ())
    copy = bind(copy_bytes([(0, 1, type_.nbytes)], 2), replace(vectors(1, type_), argument_kinds=(kind,)))
    result = copy(number)
    assert (result.dtype, result.shape) == (dtype.numpy, ()) and result[()] == expected
    for other in (True, 1, 1.0, 1j, np.float64(1.0), np.int64(1), np.ones(()), "1", None):
        assert takes_slow_path(copy, other) == (type(other).__name__ != kind)


@pytest.mark.parametrize(("dtype", "number"), [(I8, 128), (I8, -129), (U8, -1), (U8, 256), (U64, -1), (I64, 2**63)])
def test_integers_that_do_not_fit_take_the_slow_path(bind: Callable[..., Any], dtype: DType, number: int) -> None:
    type_ = tensor(dtype, ())
    copy = bind(copy_bytes([(0, 1, type_.nbytes)], 2), replace(vectors(1, type_), argument_kinds=("int",)))
    assert takes_slow_path(copy, number)


def test_impossible_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a Python float cannot be passed as i64\[\]"):
        native("define i32 @bw_program(ptr %b, ptr %a) { ret i32 0 }", replace(vectors(1, tensor(I64)), argument_kinds=("float",)))
