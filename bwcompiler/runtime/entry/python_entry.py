"""The entry in Python: the same as `native_entry.py` in machine code, for slow paths and for unsupported interpreters.

`NativeProgram` calls `@bw_program` through ctypes; `NativeProgram.run` takes leaves of any memory layout.  `bind_python` is the
whole entry, guards included, and is the specification of the native one: the tests run both on the same calls.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import SignatureError
from bwcompiler.ir.contracts.call_signature import (
    CallSignature,
    Container,
    Fixed,
    Layout,
    Leaf,
    Static,
    Tree,
    is_expected,
    leaf_indices,
    names_in_dict,
    same_plain,
)
from bwcompiler.ir.contracts.plain_objects import has_dict
from bwcompiler.ir.contracts.program_interface import ARENA_ERROR, ERROR_RECORD_BYTES
from bwcompiler.ir.types import TensorType
from bwcompiler.runtime.entry.table import int_shape
from bwcompiler.runtime.interrupts import without_lock

Array = np.ndarray[Any, Any]

_EXACT_TYPES = {"float": float, "int": int, "bool": bool, "complex": complex}


class NativeProgram:
    """`@bw_program` at an address, called through ctypes."""

    def __init__(self, address: int, signature: CallSignature) -> None:
        self.signature = signature
        with_lock: Any = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        self._call: Any = without_lock(address) if signature.release_gil else with_lock(address)

    def call(self, buffers: Sequence[Array | None]) -> tuple[int, bytes]:
        """Run on exactly these buffers; returns the program's status code and its error record."""
        if len(buffers) != self.signature.buffer_count:
            raise SignatureError(f"{len(buffers)} buffers given, {self.signature.buffer_count} expected")
        pointers = [None if buffer is None else buffer.__array_interface__["data"][0] for buffer in buffers]
        try:
            arena = np.empty(2 * ERROR_RECORD_BYTES + self.signature.arena_bytes, np.uint8)
        except MemoryError:
            return ARENA_ERROR, bytes(ERROR_RECORD_BYTES)
        start = arena.__array_interface__["data"][0]
        skip = -start % ERROR_RECORD_BYTES  # NumPy aligns to 16 bytes only
        arena[skip : skip + ERROR_RECORD_BYTES] = 0
        status = self._call((ctypes.c_void_p * len(pointers))(*pointers), start + skip)
        return status, arena[skip : skip + ERROR_RECORD_BYTES].tobytes()

    def run(self, leaves: Sequence[Any], raise_error: Callable[[int, bytes], Any], captured: Sequence[Array]) -> Any:
        """The result tree for these argument leaves, which are converted and copied as needed."""
        signature = self.signature
        if len(leaves) != len(signature.argument_types):
            raise SignatureError(f"{len(leaves)} argument leaves given, {len(signature.argument_types)} expected")
        buffers: list[Array | None] = []
        for leaf, type_ in zip(leaves, signature.argument_types, strict=True):
            buffers.append(_as_buffer(leaf, type_))
        buffers += [_captured_buffer(array, type_) for array, type_ in zip(captured, signature.captured_types, strict=True)]
        results = [self._result_buffer(number, leaves, buffers) for number in range(len(signature.result_types))]
        status, record = self.call([*buffers, *results])
        if status != 0:
            raise_error(status, record)
            raise SystemError("native code failed, but raise_error() returned")
        finished = [self._finish(number, leaves, array) for number, array in enumerate(results)]
        return unflatten(signature.result, finished)

    def _result_buffer(self, number: int, leaves: Sequence[Any], buffers: list[Array | None]) -> Array:
        """The memory of a result.  For one that is written into the caller's array it is a copy, which is copied back at the end."""
        into, type_ = self.signature.result_into[number], self.signature.result_types[number]
        if into is None:
            return np.empty(int_shape(type_), type_.dtype.numpy)
        if not leaves[into].flags.writeable:
            raise ValueError("output array is read-only")
        buffers[into] = memory = np.array(leaves[into], type_.dtype.numpy, order="C")
        return memory

    def _finish(self, number: int, leaves: Sequence[Any], array: Array) -> Any:
        signature = self.signature
        into = signature.result_into[number]
        if into is not None:
            leaves[into][...] = array
            return leaves[into]
        return array[()] if signature.result_kinds[number] == "scalar" else array


def _as_buffer(leaf: Any, type_: TensorType) -> Array:
    """`leaf` as a C-contiguous, aligned, native array; itself if it is one."""
    try:
        array = np.require(np.asarray(leaf, type_.dtype.numpy), requirements=["C", "A"])
    except OverflowError:                                       # "too large to convert to C long"
        raise OverflowError(f"Python integer {leaf} out of bounds for {type_.dtype.numpy}\n  hint: pass a float") from None
    if array.shape != type_.shape:
        raise SignatureError(f"an argument has shape {array.shape}, expected {type_}")
    return array


def _captured_buffer(array: Array, type_: TensorType) -> Array:
    """A captured array that still has the shape it was traced with: `ndarray.resize` changes it in place."""
    if array.shape != type_.shape:
        raise SignatureError(f"an array that the function reads from outside has shape {array.shape} now, and had {type_.shape} when it "
                             "was traced\n  hint: make a new array in place of ndarray.resize(), or pass it as an argument")
    return _as_buffer(array, type_)


def unflatten(tree: Tree, leaves: Sequence[Any]) -> Any:
    """The Python object of `tree` over `leaves`."""
    if isinstance(tree, Leaf):
        return leaves[tree.index]
    if isinstance(tree, Fixed):
        return tree.value
    assert not isinstance(tree, Static)
    if tree.kind == "none":
        return None
    children = [unflatten(child, leaves) for child in tree.children]
    if tree.kind == "dict":
        return dict(zip(tree.keys, children, strict=True))
    if tree.kind == "instance":
        return _new_object(tree, children)
    if tree.cls is not None:
        return tree.cls(*children)
    return tuple(children) if tree.kind == "tuple" else children


def _new_object(tree: Container, children: Sequence[Any]) -> Any:
    """An object with these attributes, as `bw.tree` makes them: not by the constructor."""
    made: Any = object.__new__(tree.cls)           # type: ignore[arg-type]
    for name, child in zip(tree.keys, children, strict=True):
        object.__setattr__(made, str(name), child)
    return made


def _items(tree: Container, value: Any) -> Sequence[Any] | None:
    """What a container consists of, or None if it is not like the tree."""
    expected: type[Any] = tree.cls or {"tuple": tuple, "list": list, "dict": dict}[tree.kind]
    if type(value) is not expected:
        return None
    if tree.kind == "instance":
        return _attributes(tree, value)
    if len(value) != len(tree.children):
        return None
    if tree.kind != "dict":
        return value  # type: ignore[no-any-return]
    return list(value.values()) if all(map(same_plain, value, tree.keys)) else None


def _attributes(tree: Container, value: Any) -> Sequence[Any] | None:
    found = vars(value) if has_dict(type(value)) else {}
    wanted = names_in_dict(tree)
    if type(found) is not dict or found.keys() != set(wanted) or [name for name in found if name in tree.extra] != list(tree.extra):
        return None
    try:
        return [getattr(value, str(name)) for name in tree.keys]
    except AttributeError:                         # a slot that is not set
        return None


def flatten(tree: Tree, value: Any, statics: Sequence[object]) -> list[Any] | None:
    """The leaves of `value`, or None if its structure is not that of `tree` (exact types, as in the native guards)."""
    if isinstance(tree, Leaf):
        return [value]
    if isinstance(tree, Static):
        return [] if is_expected(value, statics[tree.index]) else None
    if isinstance(tree, Fixed):
        return [] if is_expected(value, tree.value) else None
    if tree.kind == "none":
        return [] if value is None else None
    items = _items(tree, value)
    if items is None:
        return None
    leaves: list[Any] = []
    for child, item in zip(tree.children, items, strict=True):
        inner = flatten(child, item, statics)
        if inner is None:
            return None
        leaves += inner
    return leaves


def fits(signature: CallSignature, leaves: Sequence[Any]) -> bool:
    """True if every leaf passes the guards."""
    for number, (leaf, kind, type_) in enumerate(zip(leaves, signature.argument_kinds, signature.argument_types, strict=True)):
        if kind == "array":
            layout = "C" if number in signature.result_into else signature.layouts[number]
            if not is_standard(leaf, type_, layout) or (number in signature.result_into and not leaf.flags.writeable):
                return False
        elif kind == "scalar":
            if type(leaf) is not type_.dtype.numpy.type:
                return False
        elif type(leaf) is not _EXACT_TYPES[kind] or not _number_fits(leaf, type_):
            return False
    return True


def _number_fits(number: Any, type_: TensorType) -> bool:
    if type(number) is not int:
        return True
    if type_.dtype.kind not in "iu":
        return -(2**63) <= number < 2**63
    bounds = np.iinfo(type_.dtype.numpy)
    return max(bounds.min, -(2**63)) <= number <= min(bounds.max, 2**63 - 1)


def is_standard(value: Any, type_: TensorType, layout: Layout = "C") -> bool:
    """True for an exact ndarray of this type in native byte order, and of this layout."""
    if not (
        type(value) is np.ndarray
        and value.dtype.num == type_.dtype.numpy.num
        and value.dtype.byteorder == type_.dtype.numpy.byteorder
        and value.shape == type_.shape
    ):
        return False
    if layout == "C":
        return value.flags.c_contiguous and value.flags.aligned
    return layout is None or value.strides == layout


def captured_error(signature: CallSignature, captured: Sequence[Any], statics: Sequence[object]) -> str:
    """The error in the captured arrays or statics of a call form; empty if there is none."""
    if len(captured) != len(signature.captured_types):
        return f"{len(captured)} captured arrays given, {len(signature.captured_types)} expected"
    for number, (array, type_) in enumerate(zip(captured, signature.captured_types, strict=True)):
        if not is_standard(array, type_, None):
            return f"captured array {number} is not an array of type {type_}"
    wanted = signature.static_count
    return f"{len(statics)} static values given, {wanted} expected" if len(statics) != wanted else ""


def overlapping(signature: CallSignature, leaves: Sequence[Any], captured: Sequence[Array]) -> bool:
    """Whether an argument that is written to may share memory with another argument or a captured array."""
    arrays = [*leaves, *captured]
    for number in signature.unshared:
        for other, array in enumerate(arrays):
            if other != number and isinstance(array, np.ndarray) and np.may_share_memory(leaves[number], array):
                return True
    return False


def bind_python(form: Any, slow_path: Callable[..., Any]) -> Callable[..., Any]:
    """The function of one call form, without the native entry (`form`: a `CallForm`)."""
    signature: CallSignature = form.signature

    def call(*args: Any, **kwargs: Any) -> Any:
        if tuple(kwargs) != signature.keywords or len(args) + len(kwargs) != len(signature.arguments):
            return slow_path(*args, **kwargs)
        if not all(read.holds() for read in form.reads if read.tree is None):
            return slow_path(*args, **kwargs)
        operands = [(read.tree, read.look()) for read in form.reads if read.tree is not None]
        leaves: list[Any] = []
        order: list[int] = []
        for tree, value in (*zip(signature.arguments, (*args, *kwargs.values()), strict=True), *operands):
            inner = flatten(tree, value, form.statics)
            if inner is None:
                return slow_path(*args, **kwargs)
            leaves += inner
            order += leaf_indices(tree)
        found = dict(zip(order, leaves, strict=True))
        leaves = [found[index] for index in range(len(found))]
        if not fits(signature, leaves) or overlapping(signature, leaves, form.captured):
            return slow_path(*args, **kwargs)
        return form.run(leaves)

    return call
