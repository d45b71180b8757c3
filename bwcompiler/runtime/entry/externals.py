"""External symbols of the native entry: CPython, NumPy, libc, the memory pool."""

from __future__ import annotations

import re

# Result type and parameters of the functions below; every other external symbol is data.
_FUNCTIONS = {
    "py.PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)",
    "py.PyObject_RichCompareBool": "i32 (ptr, ptr, i32)",
    "py.PyTuple_New": "ptr (i64)",
    "py.PyList_New": "ptr (i64)",
    "py.PyDict_New": "ptr ()",
    "py.PyDict_SetItem": "i32 (ptr, ptr, ptr)",
    "py.PyDict_GetItemWithError": "ptr (ptr, ptr)",
    "py.PyDict_Next": "i32 (ptr, ptr, ptr, ptr)",
    "py.PyObject_GetAttr": "ptr (ptr, ptr)",
    "py.PyObject_HasAttr": "i32 (ptr, ptr)",
    "py.PyObject_GenericGetDict": "ptr (ptr, ptr)",
    "py.PyObject_GenericSetAttr": "i32 (ptr, ptr, ptr)",
    "py.object_new": "ptr (ptr, ptr, ptr)",
    "py.PyGC_Disable": "i32 ()",
    "py.PyGC_Enable": "i32 ()",
    "py.PyErr_Clear": "void ()",
    "py.PyErr_Occurred": "ptr ()",
    "py.PyEval_SaveThread": "ptr ()",
    "py.PyEval_RestoreThread": "void (ptr)",
    "py.Py_IncRef": "void (ptr)",
    "py.Py_DecRef": "void (ptr)",
    "py.PyLong_AsLongLongAndOverflow": "i64 (ptr, ptr)",
    "py.PyLong_FromLong": "ptr (i64)",
    "py.PyBytes_FromStringAndSize": "ptr (ptr, i64)",
    "py.PyType_GenericAlloc": "ptr (ptr, i64)",
    "np.PyArray_Scalar": "ptr (ptr, ptr, ptr)",
    "np.PyArray_NewCopy": "ptr (ptr, i32)",
    "np.PyArray_NewFromDescr": "ptr (ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)",
    "np.PyDataMem_SetHandler": "ptr (ptr)",
    "mem.take": "ptr (i64)",
    "mem.give": "void (ptr)",
    "c.aligned_alloc": "ptr (i64, i64)",
    "c.free": "void (ptr)",
    "c.memcmp": "i32 (ptr, ptr, i64)",
}

_EXTERNAL = re.compile(r'@"?((?:py|np|mem|c)\.[\w.]+)')


def external_symbols(text: str) -> list[str]:
    """The symbols in `text` that the runtime binds at load, in order of name."""
    return sorted(set(_EXTERNAL.findall(text)))


def declarations(text: str) -> str:
    """Declarations of the external symbols that `text` uses."""
    lines = []
    for name in external_symbols(text):
        if name in _FUNCTIONS:
            result, parameters = _FUNCTIONS[name].split(" ", 1)
            lines.append(f"declare {result} @{name}{parameters} nounwind")
        else:
            lines.append(f"@{name} = external global i8")
    return "\n".join(lines) + "\n"
