"""What programs call outside of themselves: BLAS, callbacks into NumPy references; and what their status codes mean."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from typing import Any, cast

import numpy as np

from bwcompiler.errors import InternalError, at, located
from bwcompiler.ir.op import Op, Value
from bwcompiler.ir.types import TensorType, TupleType
from bwcompiler.lowering.library_calls import CALLBACK_ERROR, INDEX_ERROR, LINALG_ERROR, Libraries
from bwcompiler.lowering.program import ProgramText
from bwcompiler.runtime import blas, gufuncs

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
_raised = threading.local()


# Ops that NumPy's own inner loops compute: op -> (loop of numpy.linalg, types per dtype).
_LOOPS = {"cholesky": ("cholesky_lo", "{0}->{0}"), "inv": ("inv", "{0}->{0}"), "solve": ("solve", "{0}{0}->{0}")}
_LINALG_MESSAGES = {"cholesky": "Matrix is not positive definite", "inv": "Singular matrix", "solve": "Singular matrix"}


def computed_by(op: Op) -> str:
    """What computes a library op, in words."""
    if op.name == "matmul":
        return "BLAS, or loops"
    return "NumPy's own loop" if op.name in _LOOPS else "callback into NumPy"


@functools.cache
def native_libraries() -> tuple[Libraries, dict[str, int]]:
    """Library routines programs may call, and the addresses of their symbols: NumPy's BLAS and inner loops, where found."""
    gemm: dict[str, str] = {}
    gemv: dict[str, str] = {}
    addresses: dict[str, int] = {}
    loops: dict[tuple[str, str], str] = {}
    found = blas.find()
    if found is not None:
        gemm, gemv = {"f32": "bw_sgemm", "f64": "bw_dgemm"}, {"f32": "bw_sgemv", "f64": "bw_dgemv"}
        addresses.update({"bw_sgemm": found.sgemm, "bw_dgemm": found.dgemm, "bw_sgemv": found.sgemv, "bw_dgemv": found.dgemv})
    for op, (name, types) in _LOOPS.items():
        for dtype, letter in (("f32", "f"), ("f64", "d")):
            loop = gufuncs.linalg_loop(name, types.format(letter))
            if loop is not None and not loop.data:
                loops[op, dtype] = f"bw_{name}_{letter}"
                addresses[loops[op, dtype]] = loop.function
    return Libraries(gemm, gemv, "i64" if found is None or found.integers_64 else "i32", loops), addresses


def _view(pointer: int | None, type_: TensorType) -> np.ndarray[Any, Any]:
    """The memory of a value as an array."""
    if not pointer or not type_.nbytes:
        return np.empty(cast(tuple[int, ...], type_.shape), type_.dtype.numpy)
    memory: Any = (ctypes.c_char * type_.nbytes).from_address(pointer)
    flat: np.ndarray[Any, Any] = np.frombuffer(memory, type_.dtype.numpy)
    return flat.reshape(type_.shape)


def make_callback(number: int, value: Value) -> tuple[int, object]:
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
            _raised.error, _raised.callback = error, number
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
        source = program.callbacks[_raised.callback].value.source
        raise located(error, source) if isinstance(error, Exception) else error
    if code == INDEX_ERROR:
        number, index, extent = struct.unpack_from("<3q", record)
        value = program.checked[number]
        raise IndexError(at(value.source, f"index {index} is out of bounds for axis with size {extent}"))
    if code == LINALG_ERROR:
        value = program.checked[struct.unpack_from("<q", record)[0]]
        raise np.linalg.LinAlgError(at(value.source, _LINALG_MESSAGES[value.op.name]))
    raise InternalError(f"the program returned status {code}")
