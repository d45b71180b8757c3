"""External functions of programs: BLAS, LAPACK, NumPy's loops, callbacks into references; and the meaning of status codes."""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np

from bwcompiler.compiler.lowered import Lowered
from bwcompiler.errors import InternalError, bytes_text, located
from bwcompiler.ir.access import whole
from bwcompiler.ir.contracts.program_interface import (
    ARENA_ERROR,
    BLAS_ENTER,
    BLAS_LEAVE,
    CALLBACK_DONE,
    CALLBACK_ERROR,
    INDEX_ERROR,
    LINALG_ERROR,
    MEMORY_ERROR,
    NEGATIVE_ERROR,
    TAKE,
)
from bwcompiler.ir.graph import Graph, all_values
from bwcompiler.ir.op import REGISTRY, Value
from bwcompiler.ir.routine import FOURIER_LOOPS, SORT_KINDS, Fourier, InnerLoop, Native, sort_symbol
from bwcompiler.ir.types import BOOL, C64, C128, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, DType, TensorType, complex_of
from bwcompiler.lowering.libraries.call_texts import Libraries, Symbols, blas_symbol
from bwcompiler.lowering.libraries.factorization_calls import is_written_out
from bwcompiler.lowering.module import Callback
from bwcompiler.runtime import blas_calls, memory_pool
from bwcompiler.runtime.addresses import blas, gufuncs
from bwcompiler.runtime.addresses.sorting import sort_function

_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))


class _Raised(threading.local):
    error: BaseException | None = None
    callback = 0


_raised = _Raised()
_BLAS_ROUTINES = {F32: ("gemm", "trsm", "trsv", "getrf"), F64: ("gemm", "trsm", "trsv", "getrf"),
                  C64: ("gemm", "trsm", "trsv", "getrf"), C128: ("gemm", "trsm", "trsv", "getrf")}
_LOOP_DTYPES = (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64, C64, C128)


@functools.cache
def native_libraries() -> Libraries:
    """The external functions that programs may call: those of NumPy's BLAS, LAPACK, inner loops and sort functions that were found."""
    found = blas.find()
    wanted = {blas_symbol(routine, dtype) for dtype, routines in _BLAS_ROUTINES.items() for routine in routines}
    symbols = _Symbols(blas_calls.names() & (wanted | {BLAS_ENTER, BLAS_LEAVE}))
    return Libraries(symbols, "i64" if found is None or found.integers_64 else "i32")


def native_addresses(symbols: frozenset[str]) -> dict[str, int]:
    """The addresses of those of the symbols that belong to native libraries.

    The wrappers around BLAS are compiled for the first program that calls them.
    """
    known = {} if symbols.isdisjoint(blas_calls.names()) else blas_calls.symbols()
    if TAKE in symbols:
        known = {**known, **memory_pool.functions()}
    found = {symbol: known.get(symbol) or loop_address(symbol) for symbol in symbols}
    return {symbol: address for symbol, address in found.items() if address}


def calls_blas(value: Value) -> bool:
    """Whether a value is computed by routines that call BLAS, through wrappers of ours (`runtime/blas_calls.py`)."""
    routine = value.op.library
    return (isinstance(routine, Native) or (isinstance(routine, InnerLoop) and bool(routine.lapack))) and not is_written_out(value)


class _Symbols:
    """A set of symbols, extended by those of NumPy's loops (about 400), whose addresses are looked up on demand."""

    def __init__(self, symbols: frozenset[str]) -> None:
        self.symbols = symbols

    def __contains__(self, symbol: object) -> bool:
        return symbol in self.symbols or bool(loop_address(str(symbol)))

    def union(self, more: Iterable[str]) -> Symbols:
        """The set extended by more symbols."""
        return _Symbols(self.symbols.union(more))


@functools.cache
def loop_address(symbol: str) -> int:
    """The address of one of NumPy's inner loops or sort functions, or of a loop's data; 0 if there is none."""
    found = _finders().get(symbol.removesuffix(".data"))
    return 0 if found is None else found().get(symbol, 0)


@functools.cache
def _finders() -> dict[str, Callable[[], dict[str, int]]]:
    """Per symbol the function that finds its address and that of its data."""
    found: dict[str, Callable[[], dict[str, int]]] = {}
    for op in REGISTRY.values():
        if isinstance(op.library, InnerLoop):
            for name in op.library.names:
                for dtype in _LOOP_DTYPES:
                    found[op.library.symbol(dtype, name)] = functools.partial(inner_loop, op.library, name, dtype)
    for name, types in FOURIER_LOOPS.items():
        for dtype in (F32, F64):
            operand = complex_of(dtype) if types[0] == "D" else dtype
            own = types if dtype is F64 else types.replace("d", "f").replace("D", "F")
            found[Fourier().symbol(name, operand)] = functools.partial(_fourier_loop, Fourier().symbol(name, operand), name, own)
    for dtype in _LOOP_DTYPES:
        for positions in (False, True):
            for kind in set(SORT_KINDS.values()):
                symbol = sort_symbol(positions, dtype, kind)
                found[symbol] = functools.partial(_sort_function, symbol, dtype, kind, positions)
    return found


def _with_data(symbol: str, loop: gufuncs.InnerLoop | None) -> dict[str, int]:
    return {} if loop is None else {symbol: loop.function, f"{symbol}.data": loop.data}


def inner_loop(routine: InnerLoop, name: str, dtype: DType) -> dict[str, int]:
    """The addresses of a routine's loop of that name and dtype and of its data; empty if there is none of its core."""
    loop = gufuncs.loop_of_module(routine.module, name, routine.loop_types(dtype))
    fits = loop is not None and loop.signature.replace(" ", "") == routine.core
    return _with_data(routine.symbol(dtype, name), loop) if fits else {}


def _fourier_loop(symbol: str, name: str, types: str) -> dict[str, int]:
    return _with_data(symbol, gufuncs.fft_loop(name, types))


def _sort_function(symbol: str, dtype: DType, kind: int, positions: bool) -> dict[str, int]:
    return {symbol: sort_function(dtype.numpy, kind, positions)}


def loops_named_in(graph: Graph) -> dict[str, int]:
    """The addresses of the loops that values of a graph, or of its regions, name by attributes; only these are looked for."""
    addresses: dict[str, int] = {}
    for value in all_values(graph):
        routine = value.op.library
        if isinstance(routine, InnerLoop) and not routine.names:
            name, symbol = routine.name(value.attrs), routine.symbol_of(value)
            given = "".join([operand.dtype.numpy.char for operand in value.operands])
            loop = gufuncs.loop_of_module(routine.module, name, f"{given}->{value.dtype.numpy.char * value.attrs['results']}")
            addresses.update(_with_data(symbol, loop))
    return {symbol: address for symbol, address in addresses.items() if address}


def _view(pointer: int | None, type_: TensorType, strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Memory as an array; strides in elements."""
    shape = cast(tuple[int, ...], type_.shape)
    first = sum([(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True) if stride < 0])
    if not pointer or 0 in shape:
        return np.empty(shape, type_.dtype.numpy)
    last = sum([(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True) if stride > 0])
    size = type_.dtype.itemsize
    memory: Any = (ctypes.c_char * ((last - first + 1) * size)).from_address(pointer + first * size)
    flat: np.ndarray[Any, Any] = np.frombuffer(memory, type_.dtype.numpy)
    if len(shape) < 2 and strides in ((), (1,)):
        return flat.reshape(shape)                 # as below, which takes longer than many a function that is called back
    return np.lib.stride_tricks.as_strided(flat[-first:], shape, [stride * size for stride in strides])


def make_callback(number: int, callback: Callback) -> tuple[int, object]:
    """Address of a C function that computes a value by its op's NumPy reference, and the object that keeps it alive.

    It gets pointers to the operands and then the result; an exception is stored for `raise_status`, and the status code reports it.
    """
    value, strides = callback.value, callback.strides
    op, attrs = value.op, dict(value.attrs)
    types = [operand.type for operand in value.operands]
    result = whole(value)

    def run(pointers: Any) -> int:
        try:
            arrays = [_view(pointers[k], type_, steps).copy() for k, (type_, steps) in enumerate(zip(types, strides, strict=True))]
            with np.errstate(all="ignore"):
                computed = op.reference(*arrays, **attrs)
            _view(pointers[len(types)], value.type, result.strides)[...] = computed
        except BaseException as error:  # every exception has to cross native frames as a status code
            _raised.error, _raised.callback = error, number
            return CALLBACK_ERROR
        return CALLBACK_DONE

    thunk = _PROTOTYPE(run)
    address = ctypes.cast(thunk, ctypes.c_void_p).value
    if address is None:
        raise InternalError("a callback has no address")
    return address, thunk


def raise_status(code: int, record: bytes, lowered: Lowered) -> None:
    """Raise NumPy's exception for a status code, with the user's line."""
    program = lowered.program
    if code == ARENA_ERROR:
        raise _no_arena(lowered)
    if code == CALLBACK_ERROR:
        error, _raised.error = _raised.error, None
        if error is None:                # a signal handler raised before the callback's first line; ctypes has printed it
            raise KeyboardInterrupt
        source = program.callbacks[_raised.callback].value.source
        raise located(error, source) if isinstance(error, Exception) else error
    if code == INDEX_ERROR:
        number, index, extent = struct.unpack_from("<3q", record)
        value = program.checked[number]
        raise located(IndexError(f"index {index} is out of bounds for axis with size {extent}"), value.source)
    if code in (LINALG_ERROR, NEGATIVE_ERROR, MEMORY_ERROR):
        value = program.checked[struct.unpack_from("<q", record)[0]]
        raise located(_library_error(code, value), value.source)
    raise InternalError(f"the program returned status {code}")


def _no_arena(lowered: Lowered) -> MemoryError:
    """The message for a failed allocation of the arena."""
    plan = lowered.plan
    kept = [value for value, place in plan.locations.items() if place.kind == "arena"]
    largest = max(kept, key=lambda value: value.type.nbytes, default=None)
    what = "" if largest is None else (f", of which {bytes_text(largest.type.nbytes)} are an array of shape {largest.shape} and dtype "
                                       f"{largest.dtype.numpy}")
    return located(MemoryError(
        f"unable to allocate {bytes_text(plan.arena_bytes)} for the temporaries of {lowered.graph.name}{what}\n"
        "  hint: compute it in parts (bw.map over blocks of rows), in float32, or with bw.checkpoint if a derivative saves it"),
        None if largest is None else largest.source)


def _library_error(code: int, value: Value) -> Exception:
    routine = value.op.library
    if code == MEMORY_ERROR:
        return MemoryError(f"{value.op.name} found no memory to work in")
    if code == NEGATIVE_ERROR and isinstance(routine, InnerLoop) and routine.natural is not None:
        return ValueError(routine.natural[1])
    return np.linalg.LinAlgError((routine and routine.failure) or f"{value.op.name} failed")
