"""Types of values."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bwcompiler.errors import DTypeError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.types import BOOL, C64, DTYPES, F32, F64, I32, TupleType, dtype_named, dtype_of, tensor


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_by_name_and_by_numpy_dtype(dtype):
    assert dtype_named(dtype.name) is dtype and dtype_of(dtype.numpy) is dtype
    assert dtype.bits == 8 * dtype.numpy.itemsize
    assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_dtype_of_takes_what_numpy_takes():
    assert dtype_of(float) is F64 and dtype_of("float32") is F32 and dtype_of(np.dtype(">i4")) is I32 and dtype_of(bool) is BOOL
    with pytest.raises(DTypeError, match="datetime64 is not supported"):
        dtype_of(np.datetime64)


def test_kinds():
    assert F32.is_float and C64.is_complex and I32.is_integer and not I32.is_differentiable and C64.is_differentiable


def test_tensor_types_are_interned():
    type_ = tensor(F64, (3, 4))
    assert tensor(F64, (3, 4)) is type_ and type_.with_shape([3, 4]) is type_ and type_.with_dtype(F32).with_dtype(F64) is type_
    assert (type_.rank, type_.size, type_.nbytes, str(type_)) == (2, 12, 96, "f64[3,4]")
    assert pickle.loads(pickle.dumps(type_)) is type_


def test_symbolic_extents():
    index = Index(0, 4)
    type_ = tensor(F64, (index.extent() + 1, 8))
    assert str(type_) == "f64[i + 1,8]" and type_.size == 40
    assert type_ == tensor(F64, (index.extent() + 1, 8)) != tensor(F64, (Index(0, 4).extent() + 1, 8))


def test_tuple_types():
    pair = TupleType((tensor(F64, (3,)), tensor(F32)))
    assert str(pair) == "(f64[3], f32[])" and pair == TupleType(pair.items) and hash(pair) == hash(TupleType(pair.items))
