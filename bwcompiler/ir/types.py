"""Types of values: `DType` (an element) and `TensorType` (dtype and shape), both interned, and `TupleType`.

Shapes hold `Extent`s; a constant extent is a plain int.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.extent import Affine, Extent, element_count
from bwcompiler.locks import renewed_properties

renewed_properties(np.finfo)          # its attributes are computed on first access


class DType:
    """An element type.  `kind` is NumPy's: b(ool), i, u, f, c."""

    __slots__ = ("bits", "itemsize", "kind", "name", "numpy")

    def __init__(self, name: str, numpy_name: str) -> None:
        self.name = name
        self.numpy: np.dtype[Any] = np.dtype(numpy_name)
        self.kind: str = self.numpy.kind
        self.itemsize: int = self.numpy.itemsize
        self.bits = 8 * self.itemsize

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (dtype_named, (self.name,))

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_differentiable(self) -> bool:
        return self.kind in "fc"


BOOL = DType("bool", "bool")
I8, I16, I32, I64 = DType("i8", "int8"), DType("i16", "int16"), DType("i32", "int32"), DType("i64", "int64")
U8, U16, U32, U64 = DType("u8", "uint8"), DType("u16", "uint16"), DType("u32", "uint32"), DType("u64", "uint64")
F16, F32, F64 = DType("f16", "float16"), DType("f32", "float32"), DType("f64", "float64")
C64, C128 = DType("c64", "complex64"), DType("c128", "complex128")
DTYPES = (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64, C64, C128)

_BY_NAME = {dtype.name: dtype for dtype in DTYPES}
_BY_NUMPY: dict[Any, DType] = {dtype.numpy: dtype for dtype in DTYPES}


_INSTEAD = (                                   # hints, by the kind of a NumPy dtype
    ("O", "x.astype(float), if these are numbers"),
    ("US", "numbers, outside of the function: names, codes = np.unique(x, return_inverse=True)"),
    ("mM", "numbers: (t - t[0]) / np.timedelta64(1, 's')"),
    ("V", "a dict of its columns, {name: x[name] for name in x.dtype.names}"),
    ("f", "x.astype(np.float64)"),
    ("c", "x.astype(np.complex128)"),
)


def dtype_named(name: str) -> DType:
    """The dtype that is printed as `name`."""
    return _BY_NAME[name]


def dtype_of(dtype: Any) -> DType:
    """The DType of anything np.dtype takes; byte order is ignored; raises DTypeError for one that is not supported."""
    found = None if isinstance(dtype, list | dict) else _BY_NUMPY.get(dtype)                  # lists and dicts describe record dtypes
    if found is None:
        if isinstance(dtype, DType):
            return dtype
        numpy_dtype = np.dtype(dtype).newbyteorder("=")
        found = _BY_NUMPY.get(numpy_dtype)
        if found is None:
            hint = next((text for kinds, text in _INSTEAD if numpy_dtype.kind in kinds), "")
            raise DTypeError(f"dtype {numpy_dtype} is not supported; supported: {', '.join(str(d.numpy) for d in DTYPES)}"
                             + (f"\n  hint: {hint}" if hint else ""))
    return found


class TensorType:
    """dtype and shape of an array value.  Made by `tensor`, which interns it.

    is_fixed   no extent depends on a loop index.
    size       number of elements (an upper bound if extents are symbolic).
    """

    __slots__ = ("dtype", "is_fixed", "nbytes", "rank", "shape", "size")

    def __init__(self, dtype: DType, shape: tuple[Extent, ...]) -> None:
        self.dtype = dtype
        self.shape = shape
        self.rank = len(shape)
        self.is_fixed = Affine not in map(type, shape)
        self.size = element_count(shape)
        self.nbytes = self.size * dtype.itemsize

    def __repr__(self) -> str:
        return f"{self.dtype}[{','.join(str(extent) for extent in self.shape)}]"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, TensorType) and self.dtype is other.dtype and self.shape == other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype.name, self.shape))

    def __reduce__(self) -> tuple[Any, ...]:
        return (tensor, (self.dtype, self.shape))

    def with_shape(self, shape: Iterable[Extent]) -> TensorType:
        return tensor(self.dtype, tuple(shape))

    def with_dtype(self, dtype: DType) -> TensorType:
        return tensor(dtype, self.shape)


def component_of(dtype: DType) -> DType:
    """The dtype of the real and imaginary parts of a complex one; a real dtype itself."""
    return {C64: F32, C128: F64}.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex dtype that holds numbers with parts of a float dtype."""
    return C128 if dtype is F64 else C64


_INTERNED: dict[tuple[DType, tuple[Extent, ...]], TensorType] = {}
_INTERN_LIMIT = 100_000


def tensor(dtype: DType, shape: tuple[Extent, ...] = ()) -> TensorType:
    """The TensorType of dtype and shape."""
    key = (dtype, shape)
    found = _INTERNED.get(key)
    if found is None:
        if len(_INTERNED) > _INTERN_LIMIT:
            _INTERNED.clear()
        found = _INTERNED[key] = TensorType(dtype, shape)
    return found


class TupleType:
    """The type of a value with several results (a loop, a factorisation); `item` picks one."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[TensorType, ...]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.items))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TupleType) and self.items == other.items

    def __hash__(self) -> int:
        return hash(self.items)
