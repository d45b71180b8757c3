"""The objects that represent arrays while a function is traced: handles (`handles.py`) with an array's operators, methods and protocols.

`ArrayTracer` has one axis or more; `ScalarTracer` has none and deliberately lacks `__array__` and `__len__`, so that
`np.array([y[1], -y[0]])` builds an object array, which is stacked where it is used.  The operations of handles are looked up in
`registry`, and run by `calls.py`.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn
from weakref import ReferenceType

import numpy as np

from bwcompiler import lazy
from bwcompiler.errors import (
    BwError,
    TracerArrayError,
    TracerBoolError,
    TracerError,
    TracerIndexError,
    UnsupportedError,
    at,
    located,
)
from bwcompiler.frontend.tracing.calls import call, call_function, call_numpy, run_entry
from bwcompiler.frontend.tracing.handles import Handle, value_of
from bwcompiler.frontend.tracing.promotion import OPERANDS
from bwcompiler.frontend.tracing.provenance.source import asks_for_types, current_source
from bwcompiler.frontend.tracing.refusals.conversions import array_advice, index_advice, method_advice, number_advice, truth_advice
from bwcompiler.frontend.tracing.refusals.demands import may_become_known, number_of, refuse
from bwcompiler.frontend.tracing.refusals.foreign_attributes import attribute_error
from bwcompiler.frontend.tracing.registry import FUNCTIONS, HANDLERS, TAKING, UFUNC_METHODS, lookup, require_known
from bwcompiler.frontend.tracing.storages.memory_order import Memory
from bwcompiler.frontend.tracing.storages.region import Storage, _state, placed
from bwcompiler.frontend.tracing.storages.undecided_views import is_undecided
from bwcompiler.frontend.tracing.storages.views import Chain
from bwcompiler.ir.extent import exact_count
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, TensorType
from bwcompiler.operators import UFUNC_NAMES, Operation, UpdatingOperators


def _in_handler() -> bool:
    """Whether a handler runs, and not the user's code."""
    region = _state.region
    return region is not None and region.record.source is not None


def _number(tracer: Tracer, kind: type[BwError], advice: Callable[[], str]) -> Any:
    """The number behind a handle, where that can be had; what to write instead is looked up where it cannot."""
    if _state.region is None:
        refuse(tracer, kind, advice())
    return number_of(tracer, value_of(tracer), kind, advice)


def _computed(name: str, operands: tuple[Any, ...]) -> Any:
    """A ufunc that is an operator or a method of numbers; NotImplemented where another operand knows better."""
    for one in operands:
        if not isinstance(one, Tracer) and not isinstance(one, OPERANDS):
            return NotImplemented
    if name == "matmul":
        return call_numpy(np.matmul, operands, {}, HANDLERS["operator"], name, *operands)
    return call(HANDLERS["operator"], name, *operands)


def _method_of_numbers(name: str) -> Callable[..., Any]:
    return lambda self, *others: _computed(name, (self, *others))


def _method(function: Any) -> Callable[..., Any]:
    """The ndarray method that is this NumPy function with the array as first argument."""
    original = getattr(np.ndarray, function.__name__)       # which may take its arguments differently: x.clip(0)

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return run_entry(original, lookup(function), (self, *args), kwargs)
    method.__name__ = function.__name__            # by which is known what it writes into
    return method


def _own_method(name: str, numpy: str) -> Callable[..., Any]:
    """The ndarray method `numpy` has the handler `name`."""
    function = getattr(np.ndarray, numpy)

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return call_numpy(function, (self, *args), kwargs, HANDLERS[name], self, *args, **kwargs)
    method.__name__ = numpy
    return method


def _stated_method(name: str) -> Callable[..., Any]:
    """An ndarray method whose handler says itself how the result is laid out."""
    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return call(HANDLERS[name], self, *args, **kwargs)
    return method


class Tracer(Handle, UpdatingOperators):
    """A handle with what all arrays have."""

    __slots__ = ()

    __array_priority__ = 1000.0

    # ----- what it is
    @property  # type: ignore[misc]
    def __class__(self) -> type:                   # which isinstance and `match` ask for: in the user's code that of a number or an array
        return type_stood_for(self) if asks_for_types(sys._getframe(1).f_code) else type(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """In the user's code integers, which may be traced; in a handler (`calls.call`) extents."""
        type_ = self._type
        return type_.shape if type_.is_fixed or _in_handler() else HANDLERS["shape_as_numbers"](type_.shape)  # type: ignore[return-value]

    @shape.setter
    def shape(self, shape: Any) -> NoReturn:
        refuse(self, UnsupportedError, "assigning to x.shape is not supported\n  hint: x = x.reshape(...)")

    @property
    def ndim(self) -> int:
        return self._type.rank

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._type.dtype.numpy

    @property
    def size(self) -> int:
        type_ = self._type
        if type_.is_fixed:
            return type_.size
        return exact_count(type_.shape) if _in_handler() else math.prod(self.shape)  # type: ignore[return-value]

    @property
    def itemsize(self) -> int:
        return self._type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def T(self) -> Any:
        return call(HANDLERS["transpose"], self)

    @property
    def mT(self) -> Any:
        return call(HANDLERS["matrix_transpose"], self)

    @property
    def real(self) -> Any:
        return call(HANDLERS["real"], self)

    @real.setter
    def real(self, value: Any) -> None:
        call(HANDLERS["set_part"], self, "real", value)

    @property
    def imag(self) -> Any:
        if self._type.dtype.is_complex:
            return call(HANDLERS["part"], self, "imag")
        return call_numpy(np.imag, (self,), {}, HANDLERS["imag"], self)

    @imag.setter
    def imag(self, value: Any) -> None:
        call(HANDLERS["set_part"], self, "imag", value)

    @property
    def flat(self) -> Any:
        return call(HANDLERS["flat"], self)

    @flat.setter
    def flat(self, values: Any) -> None:
        call(HANDLERS["set_flat"], self, values)

    def _memory(self) -> Memory:
        """How it lies in memory, as it is now."""
        storage = self._storage
        return Memory(self._type.shape, self.dtype, storage.type.shape, storage.layout, self._chain,  # type: ignore[arg-type]
                      number=not self._type.shape and not storage.writable)

    @property
    def strides(self) -> Any:
        return call(HANDLERS["strides"], self)

    def __repr__(self) -> str:
        source = self._storage.value.source
        return f"<traced {self._type}{f' from {source.short}' if source is not None else ''}>"

    def __format__(self, specification: str) -> str:
        return placed(self, specification) or repr(self)

    def __str__(self) -> str:
        return placed(self, "") or repr(self)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(np.ndarray, name):
            refuse(self, UnsupportedError, f"ndarray.{name} is not supported on traced arrays{method_advice(name)}")
        raise attribute_error(self, name)

    # ----- NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(type(x) in TAKING for x in inputs):
            return NotImplemented
        if getattr(np, ufunc.__name__, None) is not ufunc:
            call(require_known, ufunc)
        if method == "__call__" and ufunc.signature is None:
            return call(UFUNC_METHODS[method], ufunc, inputs, kwargs)
        return call_numpy(getattr(ufunc, method), inputs, kwargs, UFUNC_METHODS[method], ufunc, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if any(kind in TAKING for kind in types):
            return NotImplemented
        try:
            entry = FUNCTIONS.get(function) or lookup(function)
        except UnsupportedError as error:
            raise located(error, current_source()) from None
        return run_entry(function, entry, args, kwargs)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return lazy.stand_in("numpy")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise BufferError(at(current_source(), "a traced array has no memory to export\n  hint: return it from the function first"))

    __dlpack_device__ = __dlpack__

    # ----- operators
    def _operate(self, operation: Operation, /, *operands: Any) -> Any:
        return _computed(UFUNC_NAMES[operation], operands)

    def _update(self, operation: Operation, other: Any, /) -> Any:
        return call(HANDLERS["in_place"], UFUNC_NAMES[operation], self, other)

    # ----- items
    __getitem__ = _stated_method("getitem")
    __setitem__ = _stated_method("setitem")

    # ----- ndarray methods
    sum, prod, mean, var, std = (_method(function) for function in (np.sum, np.prod, np.mean, np.var, np.std))
    max, min, argmax, argmin = (_method(function) for function in (np.max, np.min, np.argmax, np.argmin))
    any, all, cumsum, cumprod = (_method(function) for function in (np.any, np.all, np.cumsum, np.cumprod))
    ravel, squeeze, swapaxes = (_method(function) for function in (np.ravel, np.squeeze, np.swapaxes))
    dot, clip, round, take, repeat = (_method(function) for function in (np.dot, np.clip, np.round, np.take, np.repeat))
    trace, diagonal, argsort, argpartition = (_method(function) for function in (np.trace, np.diagonal, np.argsort, np.argpartition))
    searchsorted, put = _method(np.searchsorted), _method(np.put)
    sort, partition = _stated_method("sort_method"), _stated_method("partition_method")
    resize = _stated_method("resize_method")
    nonzero, compress, choose = _method(np.nonzero), _own_method("compress_method", "compress"), _method(np.choose)
    reshape, transpose, view = _own_method("reshape_method", "reshape"), _stated_method("transpose_method"), _stated_method("view")
    flatten = _own_method("flatten", "flatten")
    astype, copy, fill = _stated_method("astype"), _stated_method("copy"), _stated_method("fill")
    conj = conjugate = _own_method("conjugate_method", "conj")
    __copy__ = _stated_method("copy")

    def __deepcopy__(self, memory: Any) -> Any:
        return call(HANDLERS["copy"], self)

    def __reduce__(self) -> NoReturn:
        refuse(self, TracerError, "a traced value cannot be pickled\n  hint: return it from the function first")

    def item(self, *args: Any) -> NoReturn:
        refuse(self, TracerArrayError, "x.item() needs the number behind a traced value, which is not known while tracing\n"
                "  hint: use the value as it is (x[i]), or return it from the function")

    def tolist(self) -> NoReturn:
        refuse(self, TracerArrayError, "x.tolist() needs the numbers behind a traced array, which are not known while tracing\n"
                "  hint: iterate over x, or return it from the function")

    # ----- conversions that need a number
    def __bool__(self) -> bool:
        shape = self._type.shape
        has_several = 0 not in shape and any(isinstance(extent, int) and extent > 1 for extent in shape)
        return bool(_number(self, TracerBoolError, lambda: truth_advice(has_several)))

    def __float__(self) -> NoReturn:
        refuse(self, TracerError, number_advice("float"))

    def __complex__(self) -> NoReturn:
        refuse(self, TracerError, number_advice("complex"))

    def __int__(self) -> int:
        return int(_number(self, TracerIndexError, lambda: "int() of a traced value: the number is not known while tracing\n"
                "  hint: use x.astype(int) or np.floor(x); an integer argument (f(x, 3)) is known while tracing"))

    def __index__(self) -> int:
        return operator.index(_number(self, TracerIndexError, index_advice))

    def __hash__(self) -> int:
        if self._type.dtype.is_integer and may_become_known(self):
            return hash(operator.index(self))      # which is asked for
        refuse(self, TracerError, "a traced value cannot be hashed (dict key, set member, lru_cache argument)\n"
                "  hint: make the argument static (static_argnums), or key by something that is known while tracing;\n"
                "  instead of a growing set of numbers use a mask: seen = np.zeros(n, bool), and seen[k] = True for seen.add(k);\n"
                "  instead of a function with lru_cache the one behind it: f.__wrapped__(x)")


class ArrayTracer(Tracer):
    """A handle with at least one axis."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        refuse(self, TracerArrayError, array_advice(self._type.dtype is BOOL))

    def __len__(self) -> int:
        return self._type.shape[0]  # type: ignore[return-value]

    def __iter__(self) -> Iterator[Any]:
        return (self[position] for position in range(len(self)))       # each is read when it is asked for, as in NumPy

    def __contains__(self, item: Any) -> bool:
        refuse(self, TracerBoolError, "`in` on a traced array: the answer is not known while tracing\n"
                "  hint: use np.any(x == item)")


class ScalarTracer(Tracer):
    """A handle without axes: a NumPy scalar, or a 0-d array where its storage is writable."""

    __slots__ = ()

    __iter__ = None

    def __round__(self, digits: int | None = None) -> Any:
        found = call_function(np.round, self, digits or 0)
        if digits is not None or self._type.dtype.kind not in "iuf":
            return found
        return call(HANDLERS["whole_number"], found)


def handle(storage: Storage, chain: Chain, type: TensorType) -> Tracer:
    """A handle of the storage."""
    cls = ArrayTracer if type.shape else ScalarTracer
    made = cls(storage, chain, type, type.dtype)
    if storage.undecided is not None and any(map(is_undecided, chain)):
        storage.undecided.append(ReferenceType(made))
    return made


def fresh(value: Value, weak: type | None = None) -> Tracer:
    """A handle of a new storage that holds the value; as in NumPy it is immutable if it has no axes."""
    region = _state.region
    assert region is not None
    storage = Storage(region, value)
    type_ = value.type
    if type_.shape:
        return ArrayTracer(storage, (), type_, type_.dtype)
    storage.writable = False
    return ScalarTracer(storage, (), type_, weak or type_.dtype)


def fresh_array(value: Value) -> Tracer:
    """As `fresh`, but a 0-d result is an array that can be written to."""
    made = fresh(value)
    made._storage.writable = True
    return made


# NumPy calls these on the elements of object arrays.
_METHODS_OF_NUMBERS = """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p
    sqrt cbrt square reciprocal floor ceil trunc rint fabs absolute sign deg2rad rad2deg radians degrees isnan isinf isfinite
    signbit negative positive logical_not arctan2 hypot logaddexp maximum minimum power fmod copysign"""
for _name in _METHODS_OF_NUMBERS.split():
    setattr(ScalarTracer, _name, _method_of_numbers(_name))


def type_stood_for(x: Tracer) -> type:
    """What Python would have in the place of a handle."""
    region = _state.region
    if region is None:                             # it has escaped, and is looked at
        return type(x)
    if region.policy is not None:
        region.policy.types_asked = True
    if isinstance(x._kind, type):
        return x._kind
    if isinstance(x, ScalarTracer) and not x._storage.writable:
        return x.dtype.type
    return np.ndarray
