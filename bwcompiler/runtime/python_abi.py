"""The memory layout of CPython's and NumPy's objects, and the addresses of their functions.

Sources: CPython's Include/cpython/{object,tupleobject,listobject,floatobject,complexobject}.h and NumPy's
numpy/ndarraytypes.h (struct tagPyArrayObject_fields, unchanged from 1.7 to 2.4, and _PyArray_Descr up to `type_num`).
`is_supported` checks all of it once against real objects; if it is false (PyPy, a free-threaded build, another
layout), calls go through Python and ctypes instead (`entry/python_entry.py`).
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types
from typing import Any

import numpy as np

from bwcompiler.ir.contracts.call_signature import FUNCTION_PARTS

_umath = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]  # 2.x, 1.x

HEADER = object.__basicsize__  # reference count and type
TYPE = HEADER - 8

ARRAY_DATA, ARRAY_RANK, ARRAY_SHAPE, ARRAY_STRIDES = HEADER, HEADER + 8, HEADER + 16, HEADER + 24
ARRAY_DESCR, ARRAY_FLAGS = HEADER + 40, HEADER + 48
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400  # bits of ARRAY_FLAGS

DESCR_BYTEORDER, DESCR_NUMBER = HEADER + 10, HEADER + 12

CONTAINER_SIZE = HEADER  # ob_size of tuples and lists, ma_used of dicts
TUPLE_ITEMS = tuple.__basicsize__  # a hash comes before the items from CPython 3.14 on
LIST_ITEMS = HEADER + 8  # a pointer to the items
BYTES_DATA = bytes.__basicsize__ - 1  # which counts the final null
CELL_CONTENTS = HEADER  # a pointer, null while the variable is not set
NUMBER_VALUE = HEADER  # of Python floats and complexes and of NumPy's scalars

# Slots of NumPy's C-API table (numpy/__multiarray_api.h); the numbers are part of its ABI.
_SLOT_SCALAR, _SLOT_NEW_COPY, _SLOT_NEW_FROM_DESCR = 60, 85, 94
_SLOT_SET_HANDLER, _SLOT_DEFAULT_HANDLER = 304, 306

_PYTHON_FUNCTIONS = (
    "PyObject_Vectorcall PyObject_RichCompareBool PyTuple_New PyList_New PyDict_New PyDict_SetItem"
    " PyDict_GetItemWithError PyDict_Next PyObject_GetAttr PyObject_HasAttr PyObject_GenericGetDict PyObject_GenericSetAttr"
    " PyGC_Disable PyGC_Enable PyErr_Clear PyErr_Occurred"
    " PyEval_SaveThread PyEval_RestoreThread Py_IncRef Py_DecRef PyLong_AsLongLongAndOverflow PyLong_FromLong"
    " PyBytes_FromStringAndSize PyType_GenericAlloc"
).split()
_TYPES = {"PyTuple_Type": tuple, "PyList_Type": list, "PyDict_Type": dict, "PyFloat_Type": float, "PyLong_Type": int}
_TYPES |= {"PyComplex_Type": complex, "PyUnicode_Type": str}
_CONSTANTS = {"_Py_NoneStruct": None, "_Py_TrueStruct": True, "_Py_FalseStruct": False, "empty_tuple": ()}
_TYPE_NEW = 65  # Py_tp_new of typeslots.h, which is part of the stable ABI


def _function_address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _numpy_slot(number: int) -> int:
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get_pointer(_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return table[number] or 0


def new_capsule(address: int, name: bytes) -> Any:
    """A PyCapsule with this name; the bytes of the name are never freed, as the capsule points to them."""
    kept = ctypes.create_string_buffer(name)
    make_immortal(kept)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return make(_function_address(ctypes.pythonapi.PyCapsule_New))(address, ctypes.addressof(kept), None)


def make_immortal(*objects: object) -> None:
    """Keep objects alive beyond the end of the interpreter, when modules are cleared but others still point to them."""
    take = ctypes.PYFUNCTYPE(None, ctypes.py_object)(_function_address(ctypes.pythonapi.Py_IncRef))
    for item in objects:
        take(item)


_NUMERIC = tuple(np.dtype(code) for code in "?bhilqBHILQefdFD")


def _object_new() -> int:
    """The function behind object.__new__."""
    get_slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(_function_address(ctypes.pythonapi.PyType_GetSlot))
    return get_slot(object, _TYPE_NEW) or 0


@functools.cache
def symbols() -> dict[str, int]:
    """The addresses of all symbols that an entry may refer to.  The names contain a dot, so they never clash with a program's."""
    found = {f"py.{name}": _function_address(getattr(ctypes.pythonapi, name)) for name in _PYTHON_FUNCTIONS}
    found |= {f"py.{name}": id(type_) for name, type_ in _TYPES.items()}
    found |= {f"py.{name}": id(constant) for name, constant in _CONSTANTS.items()}
    found["py.object_new"] = _object_new()
    found["np.ndarray"] = id(np.ndarray)
    found["np.PyArray_Scalar"] = _numpy_slot(_SLOT_SCALAR)
    found["np.PyArray_NewCopy"] = _numpy_slot(_SLOT_NEW_COPY)
    found["np.PyArray_NewFromDescr"] = _numpy_slot(_SLOT_NEW_FROM_DESCR)
    found["np.PyDataMem_SetHandler"] = _numpy_slot(_SLOT_SET_HANDLER)
    found["np.PyDataMem_DefaultHandler"] = _read(_numpy_slot(_SLOT_DEFAULT_HANDLER), ctypes.c_void_p) or 0
    process = ctypes.CDLL(None)
    found["c.aligned_alloc"] = _function_address(process.aligned_alloc)
    found["c.free"] = _function_address(process.free)
    found["c.memcmp"] = _function_address(process.memcmp)
    return found


def native_singletons() -> bool:
    """True if np.dtype(t) of a numeric type is a singleton, so that addresses can be compared."""
    return all(np.dtype(dtype.type) is np.zeros(1, dtype.type).dtype for dtype in _NUMERIC)


def _read(address: int, ctype: Any) -> Any:
    return ctype.from_address(address).value


@functools.cache
def function_slots() -> dict[str, int]:
    """The offsets of the code and the defaults in a function object: found by search, as they differ between versions."""
    def probe(x: float = 0.5, *, y: float = 1.5) -> None: ...

    words = list((ctypes.c_size_t * (types.FunctionType.__basicsize__ // 8)).from_address(id(probe)))
    parts = {name: id(getattr(probe, name)) for name in FUNCTION_PARTS}
    return {name: 8 * words.index(part) for name, part in parts.items() if words.count(part) == 1}


def _array_layout_holds() -> bool:
    probe = np.zeros((5, 7), np.float32)[1:4, ::3]
    at = id(probe)
    rank = _read(at + ARRAY_RANK, ctypes.c_int)
    if _read(at + TYPE, ctypes.c_void_p) != id(np.ndarray) or rank != 2:
        return False
    shape = tuple((ctypes.c_ssize_t * rank).from_address(_read(at + ARRAY_SHAPE, ctypes.c_void_p)))
    strides = tuple((ctypes.c_ssize_t * rank).from_address(_read(at + ARRAY_STRIDES, ctypes.c_void_p)))
    return (
        _read(at + ARRAY_DATA, ctypes.c_void_p) == probe.__array_interface__["data"][0]
        and (shape, strides) == (probe.shape, probe.strides)
        and _read(at + ARRAY_DESCR, ctypes.c_void_p) == id(probe.dtype)
        and _flags_hold(probe)
        and _flags_hold(np.zeros(3))
    )


def _flags_hold(probe: np.ndarray[Any, Any]) -> bool:
    bits, flags = _read(id(probe) + ARRAY_FLAGS, ctypes.c_int), probe.flags
    expected = ((C_CONTIGUOUS, flags.c_contiguous), (ALIGNED, flags.aligned), (WRITEABLE, flags.writeable))
    return all(bool(bits & bit) == value for bit, value in expected)


def _descr_layout_holds() -> bool:
    return all(
        _read(id(dtype) + DESCR_NUMBER, ctypes.c_int) == dtype.num
        and _read(id(dtype) + DESCR_BYTEORDER, ctypes.c_char) == dtype.byteorder.encode()
        for dtype in (*_NUMERIC, np.dtype("f8").newbyteorder("S"))
    )


def _container_layout_holds() -> bool:
    items = (object(), object())
    as_list, as_dict = list(items), dict(enumerate(items))
    pair = ctypes.c_void_p * 2
    if ctypes.string_at(id(b"bytes") + BYTES_DATA, 5) != b"bytes":
        return False
    cell = types.CellType(items)
    return (
        _read(id(cell) + CELL_CONTENTS, ctypes.c_void_p) == id(items)
        and all(_read(id(container) + CONTAINER_SIZE, ctypes.c_ssize_t) == 2 for container in (items, as_list, as_dict))
        and list(pair.from_address(id(items) + TUPLE_ITEMS)) == list(map(id, items))
        and list(pair.from_address(_read(id(as_list) + LIST_ITEMS, ctypes.c_void_p))) == list(map(id, items))
    )


def _number_layout_holds() -> bool:
    numbers = (1.25, complex(1.25, 2.5), *(dtype.type(1.25) for dtype in _NUMERIC))
    for number in numbers:
        expected = np.asarray(number).tobytes()
        if ctypes.string_at(id(number) + NUMBER_VALUE, len(expected)) != expected:
            return False
    return True


@functools.cache
def is_supported() -> bool:
    """True if the offsets and addresses above are right for this interpreter and this NumPy."""
    if sys.implementation.name != "cpython" or "free-threading" in sys.version:
        return False  # without a GIL, borrowed references and plain reads of containers are races
    try:
        return (
            ctypes.sizeof(ctypes.c_void_p) == 8
            and all(symbols().values())
            and native_singletons()
            and _array_layout_holds()
            and _descr_layout_holds()
            and _container_layout_holds()
            and _number_layout_holds()
        )
    except (AttributeError, TypeError, ValueError):
        return False
