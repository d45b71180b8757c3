"""NumPy's sort and argsort functions of plain dtypes, by address: `int (data[, positions], count, array)`, nan last.

They are in the table of functions of a dtype that extension modules reach through NumPy's C API (PyArray_ArrFuncs in
numpy/ndarraytypes.h, PyDataType_GetArrFuncs; both stable since NumPy 2.0).  They need no GIL and, for numbers, no array.
A function is used only if it sorts a few test numbers.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from bwcompiler.lazy import imported

_MODULE = "numpy._core._multiarray_umath"
_GET_FUNCTIONS = 365           # place of PyDataType_GetArrFuncs in the C API
_SORT, _ARGSORT = 33, 36       # places of sort[3] and argsort[3] in the struct: after cast[21] and twelve functions
_SAMPLE = (3, 1, 2, 0, 1)


@functools.cache
def sort_function(dtype: np.dtype[Any], kind: int, positions: bool) -> int:
    """Address of the function of a dtype for an NPY_SORTKIND (0 quick, 1 heap, 2 stable); 0 if there is no working one."""
    table = _functions(dtype)
    if not table:
        return 0
    place = ctypes.sizeof(ctypes.c_void_p) * ((_ARGSORT if positions else _SORT) + kind)
    address = ctypes.c_void_p.from_address(table + place).value or 0
    return address if address and _sorts(address, dtype, positions) else 0


def _functions(dtype: np.dtype[Any]) -> int:
    try:  # a private module, as the header of NumPy's C API itself reads it
        capsule = imported(_MODULE)._ARRAY_API
    except (ImportError, AttributeError):
        return 0
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    api = pointer(capsule, None)
    function = ctypes.c_void_p.from_address(api + ctypes.sizeof(ctypes.c_void_p) * _GET_FUNCTIONS).value
    if not function:
        return 0
    return ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(function)(dtype) or 0


def _sorts(address: int, dtype: np.dtype[Any], positions: bool) -> bool:
    data = np.array(_SAMPLE).astype(dtype)
    order = np.arange(len(data))
    arrays = [array.ctypes.data for array in ((data, order) if positions else (data,))]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * len(arrays), ctypes.c_ssize_t, ctypes.c_void_p)
    status = prototype(address)(*arrays, len(data), None)
    return status == 0 and np.array_equal(data[order] if positions else data, np.sort(np.array(_SAMPLE).astype(dtype)))
