"""Kinds of objects outside of a function: containers whose items are read, objects whose attributes are read, and those that give
a different value in each call.
"""

from __future__ import annotations

import array
import collections
import ctypes
import sys
import types
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.frontend.tracing.provenance.source import is_library_file
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.contracts.call_signature import Read, is_plain
from bwcompiler.ir.contracts.plain_objects import HEAP_TYPE, class_attribute
from bwcompiler.ir.types import dtype_of

_NAMESPACES = frozenset(("types.SimpleNamespace", "argparse.Namespace"))          # whose attributes are the user's


def container_kind(value: Any) -> type | None:
    """dict or list, where value is one whose items are read as from one: an OrderedDict, a defaultdict, a class of the user's."""
    for kind in (dict, list):
        if isinstance(value, kind) and type(value).__getitem__ is kind.__getitem__:
            return kind
    return None


WRAPPERS = (collections.UserDict, collections.UserList, collections.ChainMap)
BUFFERS = (memoryview, ctypes.Array)
_COLLECTIONS = (dict, list, set, collections.deque, array.array, bytearray, types.MappingProxyType, *WRAPPERS)
_AMONG_BASES = frozenset(_COLLECTIONS)             # isinstance would ask the WRAPPERS in Python, as they are abstract base classes


def is_collection(value: Any) -> bool:
    """Whether it is a container that may change, other than an array of NumPy's; of the user's own classes those with Python's items."""
    if _AMONG_BASES.isdisjoint(type(value).__mro__):
        return False
    base = next(kind for kind in _COLLECTIONS if isinstance(value, kind))
    mine, theirs = [getattr(kind, "__getitem__", None) or kind.__iter__ for kind in (type(value), base)]
    return mine is theirs or type(value).__module__ == "collections"


def can_be_replaced(read: Read) -> bool:
    """Whether something else can be put in the place of what is read, for as long as a trace takes."""
    if read.kind == "attribute":
        base = read.owner
        return not isinstance(base, type) and (read.key in getattr(base, "__dict__", {}) or isinstance(
            class_attribute(type(base), read.key), types.MemberDescriptorType))
    return read.kind not in ("size", "keys", "items", "bytes")


def is_supported(dtype: Any) -> bool:
    """Whether arrays of this dtype can be operands."""
    try:
        return bool(dtype_of(dtype))
    except DTypeError:
        return False


def is_operand(value: Any) -> bool:
    """Whether what is found outside can be operands of a program: a number, an array, a container of these that the native entry takes."""
    if type(value) in (tuple, list) or is_named_tuple(value):
        return any(item is not None for item in value) and not is_plain(value) and all(item is None or is_operand(item) for item in value)
    if type(value) is dict:
        return bool(value) and all(type(key) is str for key in value) and all(map(is_operand, value.values()))
    if type(value) is np.ndarray:
        return value.dtype.isnative and is_supported(value.dtype)
    return type(value) in (int, float, complex) or (isinstance(value, np.number) and is_supported(value.dtype))


def is_named_tuple(value: Any) -> bool:
    """Whether it is a named tuple, made as its class makes them."""
    return isinstance(value, tuple) and hasattr(type(value), "_fields") and type(value).__new__ is not tuple.__new__


def containers_in(value: Any) -> list[Any]:
    """An operand and all that it consists of that is a container."""
    if type(value) not in (tuple, list, dict) and not is_named_tuple(value):
        return []
    items = value.values() if type(value) is dict else value
    return [value, *[inner for item in items for inner in containers_in(item)]]


def is_hidden_type(cls: type) -> bool:
    """Whether a class is not the user's own, and its attributes neither."""
    if f"{cls.__module__}.{cls.__qualname__}" in _NAMESPACES:
        return False
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if module is None or cls.__module__ == "__main__" or file is None:
        is_of_python = cls.__flags__ & HEAP_TYPE and not cls.__module__.startswith("_cython_")    # np.random.default_rng, scipy.fft.fft
        return not is_of_python or cls.__module__ in ("builtins", "types", "functools")
    return is_library_file(file)


def _own_name(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except LookupError:                            # of a class of the user's with a `__getattr__` that asks a dictionary
        return None


def gives_other_things(value: Any) -> bool:
    """Whether it is a function that may give something else in each call: a clock, or what reads a file; or an iterator of Python's."""
    if hasattr(type(value), "__next__"):
        return not isinstance(class_attribute(type(value), "__next__"), types.FunctionType)
    module, name = _own_name(value, "__module__"), _own_name(value, "__name__")
    if module == "numpy":
        return name in ("load", "loadtxt", "genfromtxt", "fromfile", "memmap")
    clock = (module == "time" and name != "sleep") or name in ("now", "utcnow", "today")
    return value is open or (clock and isinstance(value, types.BuiltinFunctionType))


_SPECIAL = ("__call__", "__iter__", "__next__", "__getitem__", "__len__", "__contains__", "__bool__", "__enter__")


def special_methods(value: Any) -> list[types.FunctionType]:
    """Methods of an object of the user's that Python calls where there is no name to see."""
    found = [class_attribute(type(value), name) for name in _SPECIAL]
    return [method for method in found if isinstance(method, types.FunctionType)]


_WITHOUT_OWN = (np.ndarray, np.generic, Tracer, type, tuple, types.ModuleType, types.FunctionType, types.MethodType)


def has_own_attributes(value: Any) -> bool:
    """Whether it is an object whose attributes are the user's."""
    return not (is_plain(value) or isinstance(value, _WITHOUT_OWN) or is_collection(value) or is_hidden_type(type(value)))


def own_slots(value: Any) -> list[str]:
    """Names of the attributes that an object has without a dictionary."""
    return [name for base in type(value).__mro__ for name in vars(base) if isinstance(vars(base)[name], types.MemberDescriptorType)]


def own_names(value: Any) -> list[str]:
    """Names of the attributes of an object, those of its classes that hold data included."""
    slots = own_slots(value)
    data = [name for base in type(value).__mro__ if not is_hidden_type(base) for name, held in vars(base).items()
            if is_operand(held) or is_collection(held)]
    return [name for name in dict.fromkeys([*getattr(value, "__dict__", ()), *slots, *data]) if not name.startswith("__")]


def is_plain_attribute(owner: Any, name: str) -> bool:
    """Whether reading an attribute runs nothing of the user's but a property or a method."""
    defined = class_attribute(type(owner), name)
    return (name in getattr(owner, "__dict__", {}) or not hasattr(type(defined), "__get__") or isinstance(
        defined, property | types.FunctionType | types.MemberDescriptorType))
