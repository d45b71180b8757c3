"""Handles: what stands for an array while a function is traced.

A `Tracer` is a mutable view: a storage and a chain of view steps (`views`).  `ArrayTracer` has one axis or more;
`ScalarTracer` has none and deliberately lacks `__array__` and `__len__`, so that `np.array([y[1], -y[0]])` builds an
object array, which is stacked where it is used.  What the handles can do is looked up in `registry`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
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
from bwcompiler.frontend.tracing.promotion import OPERANDS, Kind, strong
from bwcompiler.frontend.tracing.refusals.conversions import array_advice, index_advice, method_advice, number_advice, truth_advice
from bwcompiler.frontend.tracing.refusals.demands import number_of, refuse
from bwcompiler.frontend.tracing.refusals.fixed_extents import require_fixed
from bwcompiler.frontend.tracing.refusals.foreign_attributes import attribute_error
from bwcompiler.frontend.tracing.registry import FUNCTIONS, HANDLERS, UFUNC_METHODS, Entry, call_entry, lookup
from bwcompiler.frontend.tracing.source import current_source
from bwcompiler.frontend.tracing.storages.memory_order import Memory, RepeatedCall, unknown
from bwcompiler.frontend.tracing.storages.region import Region, Storage, _state, follow, open_region, placed, storage_numbers
from bwcompiler.frontend.tracing.storages.undecided_views import decide_views, is_undecided
from bwcompiler.frontend.tracing.storages.views import Chain
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, TensorType


def call(handler: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a handler: its values and errors get the user's line."""
    region = _state.region or open_region(_some_storage(args))
    record = region.record
    if record.source is not None:       # called by another handler
        return handler(*args, **kwargs)
    record.source = source = current_source(region.outer, region.observer)
    try:
        return handler(*args, **kwargs)
    except (BwError, ValueError, TypeError, IndexError) as error:
        raise located(error, source) from None
    finally:
        record.source = None


def call_back(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function of the user's inside of a handler, as if it were called outside: what it calls is not part of the handler."""
    record = open_region().record
    source, record.source = record.source, None
    try:
        return function(*args, **kwargs)
    finally:
        record.source = source


def _some_storage(args: tuple[Any, ...]) -> Storage | None:
    flat = [item for arg in args for item in (arg if isinstance(arg, tuple | list) else (arg,))]
    return next((arg._storage for arg in flat if isinstance(arg, Tracer)), None)


def call_numpy(function: Any, operands: Sequence[Any], options: dict[str, Any], handler: Callable[..., Any], *args: Any,
               **kwargs: Any) -> Any:
    """Run a handler for `function(*operands, **options)`; the results lie in memory as those of the function itself."""
    region = _state.region
    if region is None or region.record.source is not None:
        return call(handler, *args, **kwargs)
    require_fixed(function, operands)
    start = next(storage_numbers)
    options = dict(options)                                 # handlers take keywords out of the dictionary
    result = call(handler, *args, **kwargs)
    found = _new_arrays(result, (), start)
    return lying_as(result, found, function, operands, options) if found else result


def lying_as(result: Any, found: Sequence[tuple[Tracer, tuple[int, ...]]], function: Any, operands: Sequence[Any],
             options: dict[str, Any]) -> Any:
    """The result, the new arrays `found` in it lying in memory as those of the function."""
    repeated = RepeatedCall(function, operands, options)
    for tracer, path in found:
        if not all(step.writable for step in tracer._chain):
            tracer._storage.layout = unknown(f"an operand of {getattr(function, '__name__', 'a function')}")
            continue
        _own_storage(tracer)
        tracer._storage.layout = repeated.layout(path, tracer.shape)
    return result


def _new_arrays(result: Any, path: tuple[int, ...], start: int) -> list[tuple[Tracer, tuple[int, ...]]]:
    """The handles of storages made since `start`, with their places in the result."""
    if isinstance(result, ArrayTracer):
        return [(result, path)] if result._storage.number > start else []
    if isinstance(result, tuple | list):
        return [pair for place, part in enumerate(result) for pair in _new_arrays(part, (*path, place), start)]
    return []


def _own_storage(tracer: Tracer) -> None:
    """A result that is a view of something its function made gets a storage that has its own shape."""
    if tracer._chain:
        value = value_of(tracer)
        tracer._storage, tracer._chain = Storage(tracer._storage.region, value), ()


def call_function(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Run what stands for a NumPy function."""
    return _call_entry(function, lookup(function), args, kwargs)


def _call_entry(function: Any, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if entry.states_layout:
        require_fixed(function, args)
        return call(call_entry, entry, args, kwargs)
    return call_numpy(function, args, kwargs, call_entry, entry, args, kwargs)


def _number(tracer: Tracer, kind: type[BwError], advice: Callable[[], str]) -> Any:
    """The number behind a handle, where that can be had; what to write instead is looked up where it cannot."""
    if _state.region is None:
        refuse(tracer, kind, advice())
    return number_of(tracer, value_of(tracer), kind, advice)


def _operator(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Tracer, other: Any) -> Any:
        if not isinstance(other, Tracer) and not isinstance(other, OPERANDS):
            return NotImplemented
        inputs = (other, self) if reflected else (self, other)
        if name == "matmul":
            return call_numpy(np.matmul, inputs, {}, HANDLERS["operator"], name, *inputs)
        return call(HANDLERS["operator"], name, *inputs)
    return method


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Tracer, other: Any) -> Any:
        return call(HANDLERS["in_place"], name, self, other)
    return method


def _unary(name: str) -> Callable[[Any], Any]:
    def method(self: Tracer) -> Any:
        return call(HANDLERS["operator"], name, self)
    return method


def _method(function: Any) -> Callable[..., Any]:
    """The ndarray method that is this NumPy function with the array as first argument."""
    original = getattr(np.ndarray, function.__name__)       # which may take its arguments differently: x.clip(0)

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return _call_entry(original, lookup(function), (self, *args), kwargs)
    return method


def _own_method(name: str, numpy: str) -> Callable[..., Any]:
    """The ndarray method `numpy` has the handler `name`."""
    function = getattr(np.ndarray, numpy)

    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return call_numpy(function, (self, *args), kwargs, HANDLERS[name], self, *args, **kwargs)
    return method


def _stated_method(name: str) -> Callable[..., Any]:
    """An ndarray method whose handler says itself how the result is laid out."""
    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        return call(HANDLERS[name], self, *args, **kwargs)
    return method


class Tracer:
    """A view of a storage; see the module.

    _kind    what promotion sees: a DType, or int/float for a Python number that is traced (weak).
    _value   the last value read, valid for `_version` of the storage in `_region`.
    """

    __slots__ = ("__weakref__", "_chain", "_kind", "_region", "_storage", "_type", "_value", "_version")

    __array_priority__ = 1000.0

    def __init__(self, storage: Storage, chain: Chain, type: TensorType, kind: Kind) -> None:
        self._storage = storage
        self._chain = chain
        self._type = type
        self._kind = kind
        self._value: Value | None = None
        self._version: float = -1
        self._region: Region | None = None

    # ----- what it is
    @property
    def shape(self) -> tuple[int, ...]:
        return self._type.shape  # type: ignore[return-value]

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
        return self._type.size

    @property
    def itemsize(self) -> int:
        return self._type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._type.nbytes

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
        return Memory(self.shape, self.dtype, storage.type.shape, storage.layout, self._chain,  # type: ignore[arg-type]
                      number=not self._type.shape and not storage.writable)

    @property
    def strides(self) -> NoReturn:
        refuse(self, UnsupportedError, "x.strides: the memory of a traced array is not known while tracing")

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
        if method == "__call__" and ufunc.signature is None:
            return call(UFUNC_METHODS[method], ufunc, inputs, kwargs)
        return call_numpy(getattr(ufunc, method), inputs, kwargs, UFUNC_METHODS[method], ufunc, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            entry = FUNCTIONS.get(function) or lookup(function)
        except UnsupportedError as error:
            raise located(error, current_source()) from None
        return _call_entry(function, entry, args, kwargs)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return lazy.stand_in("numpy")

    def __dlpack__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise BufferError(at(current_source(), "a traced array has no memory to export\n  hint: return it from the function first"))

    __dlpack_device__ = __dlpack__

    # ----- operators
    __add__, __radd__, __iadd__ = _operator("add"), _operator("add", True), _in_place("add")
    __sub__, __rsub__, __isub__ = _operator("subtract"), _operator("subtract", True), _in_place("subtract")
    __mul__, __rmul__, __imul__ = _operator("multiply"), _operator("multiply", True), _in_place("multiply")
    __truediv__, __rtruediv__, __itruediv__ = _operator("divide"), _operator("divide", True), _in_place("divide")
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _operator("floor_divide", True)
    __ifloordiv__ = _in_place("floor_divide")
    __mod__, __rmod__, __imod__ = _operator("remainder"), _operator("remainder", True), _in_place("remainder")
    __divmod__, __rdivmod__ = _operator("divmod"), _operator("divmod", True)
    __pow__, __rpow__, __ipow__ = _operator("power"), _operator("power", True), _in_place("power")
    __matmul__, __rmatmul__, __imatmul__ = _operator("matmul"), _operator("matmul", True), _in_place("matmul")
    __and__, __rand__, __iand__ = _operator("bitwise_and"), _operator("bitwise_and", True), _in_place("bitwise_and")
    __or__, __ror__, __ior__ = _operator("bitwise_or"), _operator("bitwise_or", True), _in_place("bitwise_or")
    __xor__, __rxor__, __ixor__ = _operator("bitwise_xor"), _operator("bitwise_xor", True), _in_place("bitwise_xor")
    __lshift__, __rlshift__, __ilshift__ = _operator("left_shift"), _operator("left_shift", True), _in_place("left_shift")
    __rshift__, __rrshift__ = _operator("right_shift"), _operator("right_shift", True)
    __irshift__ = _in_place("right_shift")
    __lt__, __le__, __gt__, __ge__ = (_operator(name) for name in ("less", "less_equal", "greater", "greater_equal"))
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")
    __neg__, __pos__, __abs__, __invert__ = (_unary(name) for name in ("negative", "positive", "absolute", "invert"))

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
    compress, choose = _own_method("compress_method", "compress"), _method(np.choose)
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
        return bool(_number(self, TracerBoolError, truth_advice))

    def __float__(self) -> NoReturn:
        refuse(self, TracerError, number_advice("float"))

    def __complex__(self) -> NoReturn:
        refuse(self, TracerError, number_advice("complex"))

    def __int__(self) -> int:
        return int(_number(self, TracerIndexError, lambda: "int() of a traced value: the number is not known while tracing\n"
                "  hint: use x.astype(int) or np.floor(x); an integer argument (f(x, 3)) is known while tracing"))

    def __index__(self) -> int:
        return operator.index(_number(self, TracerIndexError, index_advice))

    def __hash__(self) -> NoReturn:
        refuse(self, TracerError, "a traced value cannot be hashed (dict key, set member, lru_cache argument)\n"
                "  hint: make the argument static (static_argnums), or key by something that is known while tracing")


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
        return call_function(np.round, self, digits or 0)


def value_of(tracer: Tracer) -> Value:
    """What the handle holds now, in the thread's innermost region."""
    region = _state.region
    storage = tracer._storage
    if region is None:
        region = open_region(storage)
    base = storage.value if storage.region is region else region.read(storage)
    chain = tracer._chain
    if not chain:
        return base
    if tracer._version == storage.version and tracer._region is region:
        assert tracer._value is not None
        return tracer._value
    found = follow(storage, chain, base, region)
    tracer._value, tracer._version, tracer._region = found, storage.version, region
    return found


def assign(tracer: Tracer, value: Value) -> None:
    """Write a value of the handle's type through its views into the storage."""
    if tracer._storage.undecided is not None:
        decide_views(tracer._storage)
    storage = tracer._storage
    if not storage.writable:
        raise TypeError(f"'{tracer._type.dtype.numpy}' scalars are immutable: they do not support item assignment")
    region = open_region(storage)
    bases = [region.read(storage)]
    for step in tracer._chain[:-1]:
        bases.append(step.read(bases[-1]))
    new = value
    for step, base in zip(reversed(tracer._chain), reversed(bases), strict=False):
        new = step.write(base, new)
    region.write(storage, new)
    if storage.links:
        HANDLERS["write_twins"](storage)
    if tracer._chain:
        tracer._value, tracer._version, tracer._region = value, storage.version, region


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


def is_weak(tracer: Tracer) -> bool:
    """Whether it stands for a Python number."""
    return strong(tracer._kind) is not tracer._kind


_UNARY_METHODS = """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p
    sqrt cbrt square reciprocal floor ceil trunc rint fabs absolute sign deg2rad rad2deg radians degrees isnan isinf isfinite
    signbit negative positive logical_not"""
for _name in _UNARY_METHODS.split():
    setattr(ScalarTracer, _name, _unary(_name))        # NumPy calls these on the elements of object arrays
for _name in ("arctan2", "hypot", "logaddexp", "maximum", "minimum", "power", "fmod", "copysign"):
    setattr(ScalarTracer, _name, _operator(_name))
