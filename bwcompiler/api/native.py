"""What programs call outside of themselves: BLAS, callbacks into NumPy references; and what their status codes mean."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from typing import Any, cast

import numpy as np

from bwcompiler.errors import InternalError, at
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TensorType, TupleType
from bwcompiler.lowering.library_calls import CALLBACK_ERROR, INDEX_ERROR, BlasSymbols
from bwcompiler.lowering.program import ProgramText
from bwcompiler.runtime import blas

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
_raised = threading.local()


@functools.cache
def blas_symbols() -> tuple[BlasSymbols, dict[str, int]] | None:
    """NumPy's own BLAS: names for the program's text and their addresses, or None where none is mapped."""
    found = blas.find()
    if found is None:
        return None
    addresses = {"bw_sgemm": found.sgemm, "bw_dgemm": found.dgemm}
    return BlasSymbols({"f32": "bw_sgemm", "f64": "bw_dgemm"}, "i64" if found.integers_64 else "i32"), addresses


def _view(pointer: int | None, type_: TensorType) -> np.ndarray[Any, Any]:
    """The memory of a value as an array."""
    if not pointer or not type_.nbytes:
        return np.empty(cast(tuple[int, ...], type_.shape), type_.dtype.numpy)
    memory: Any = (ctypes.c_char * type_.nbytes).from_address(pointer)
    flat: np.ndarray[Any, Any] = np.frombuffer(memory, type_.dtype.numpy)
    return flat.reshape(type_.shape)


def make_callback(value: Value) -> tuple[int, object]:
    """Address of a C function that computes value by its op's NumPy reference, and the object that keeps it alive.

    It gets pointers to the operands and then the result; an exception is kept for `raise_status` and reported by code.
    """
    op, attrs = value.op, dict(value.attrs)
    operands = [operand.type for operand in value.operands]
    results = list(value.type.items) if isinstance(value.type, TupleType) else [value.type]

    def run(pointers: Any) -> int:
        try:
            arrays = [_view(pointers[k], type_).copy() for k, type_ in enumerate(operands)]
            with np.errstate(all="ignore"):
                computed = op.reference(*arrays, **attrs)
            if not isinstance(value.type, TupleType):
                computed = (computed,)
            for k, (type_, array) in enumerate(zip(results, computed, strict=True)):
                _view(pointers[len(operands) + k], type_)[...] = array
        except BaseException as error:  # anything at all has to cross native frames as a status code
            _raised.error = error
            return CALLBACK_ERROR
        return 0

    thunk = _PROTOTYPE(run)
    address = ctypes.cast(thunk, ctypes.c_void_p).value
    if address is None:
        raise InternalError("a callback has no address")
    return address, thunk


def raise_status(code: int, record: bytes, program: ProgramText) -> None:
    """Raise NumPy's exception for a status code, with the user's line."""
    if code == CALLBACK_ERROR:
        error = _raised.error
        _raised.error = None
        raise error
    if code == INDEX_ERROR:
        number, index, extent = struct.unpack_from("<3q", record)
        value = program.checked[number]
        raise IndexError(at(value.source, f"index {index} is out of bounds for axis with size {extent}"))
    raise InternalError(f"the program returned status {code}")
