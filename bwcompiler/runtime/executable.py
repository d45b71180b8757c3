"""`Executable`: the loaded code of a program; `CallForm`: one way of calling it; `chain`: a Python callable of several forms.

    executable = Executable(text, signature)
    function = chain([executable.form(raise_error, captured)], slow_path)
    function(x, y)                       # guards, result arrays and program in one native call

`CompiledFunction` is the base class of the callables that users hold: its instances have attributes, and calls go to such a function.
"""

from __future__ import annotations

import copy
import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, Self, TypeVar

import numpy as np

from bwcompiler.ir.contracts.call_signature import CallSignature, Read
from bwcompiler.locks import once
from bwcompiler.runtime import jit, memory_pool, object_cache, python_abi
from bwcompiler.runtime.entry.allocations import ARENA_SLOTS
from bwcompiler.runtime.entry.externals import external_symbols
from bwcompiler.runtime.entry.native_entry import entry_text
from bwcompiler.runtime.entry.python_entry import NativeProgram, bind_python, captured_error
from bwcompiler.runtime.entry.table import Table, build_table
from bwcompiler.runtime.program_parts import ProgramParts
from bwcompiler.target import Target, current_target, default_target

P = ParamSpec("P")
R = TypeVar("R")

SlowPath = Callable[..., Any]
RaiseError = Callable[[int, bytes], Any]

_FASTCALL_WITH_KEYWORDS = 0x0080 | 0x0002  # METH_FASTCALL | METH_KEYWORDS


class _MethodDefinition(ctypes.Structure):
    """PyMethodDef of CPython's Include/methodobject.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


class Executable:
    """Loaded machine code of `text`, which defines `@bw_program`.

    `symbols()` returns the addresses of external functions (BLAS, thread pool); it is called after compiling, since some of them are
    compiled in parallel with the program.  `keep_alive` are the owners of these addresses; `target` is the CPU to compile for, by default
    the current one; `parts` are modules equivalent to the text, which are being compiled.  The code is unloaded when the executable and
    every function bound to it are gone.
    """

    def __init__(
        self,
        text: str,
        signature: CallSignature,
        *,
        symbols: Callable[[], Mapping[str, int]] = dict,
        keep_alive: tuple[object, ...] = (),
        target: Target | None = None,
        parts: ProgramParts | None = None,
    ) -> None:
        self.text = text
        self.signature = signature
        self.native = python_abi.is_supported()
        self._keep_alive = keep_alive
        code = [object_cache.object_for(text, target or current_target())] if parts is None else parts.codes()
        self._code = jit.load(code, symbols(), ("bw_program",))
        self.address = self._code.addresses["bw_program"]
        if self.native:
            self.arenas = (ctypes.c_void_p * ARENA_SLOTS)()
            # Not at exit: other threads may still run, and the process frees the memory anyway.
            weakref.finalize(self, _free_arenas, self.arenas).atexit = False

    def form(
        self,
        raise_error: RaiseError,
        captured: Sequence[np.ndarray[Any, Any]] = (),
        statics: Sequence[object] = (),
        reads: Sequence[Read] = (),
        signature: CallSignature | None = None,
    ) -> CallForm:
        """A call form of the program with these captured arrays, which are kept alive and read at every call.

        `raise_error(code, record)` is called when the program returns a code other than 0 without a Python exception; if it returns,
        the next form is tried.  `signature`: replaces that of the executable.
        """
        return CallForm(self, signature or self.signature, raise_error, tuple(captured), tuple(statics), tuple(reads))

    def run(
        self,
        leaves: Sequence[Any],
        raise_error: RaiseError,
        captured: Sequence[np.ndarray[Any, Any]] = (),
        signature: CallSignature | None = None,
    ) -> Any:
        """The result for argument leaves with any layout, byte order and overlap, copied as needed: for slow paths."""
        return NativeProgram(self.address, signature or self.signature).run(leaves, raise_error, captured)

    def bind(
        self,
        slow_path: SlowPath,
        raise_error: RaiseError,
        captured: Sequence[np.ndarray[Any, Any]] = (),
        statics: Sequence[object] = (),
        reads: Sequence[Read] = (),
    ) -> Callable[..., Any]:
        """A function with only this form; `slow_path(*args, **kwargs)` takes every call that does not fit it."""
        return chain([self.form(raise_error, captured, statics, reads)], slow_path)


class CallForm:
    """One call form of a program: its signature, and all data that are constant between calls.

    Raises ValueError for captured arrays or statics that do not fit the signature.
    """

    __slots__ = ("captured", "executable", "raise_error", "reads", "signature", "statics", "strided", "table")

    def __init__(self, executable: Executable, signature: CallSignature, raise_error: RaiseError, captured: tuple[Any, ...],
                 statics: tuple[object, ...], reads: tuple[Read, ...]) -> None:
        problem = captured_error(signature, captured, statics)
        if problem:
            raise ValueError(problem)
        self.executable = executable
        self.signature = signature
        self.raise_error = raise_error
        self.captured = captured
        self.statics = statics
        self.reads = reads
        self.strided = _strided(captured)
        self.table: Table | None = None
        if executable.native:
            self.table = build_table(signature, executable.address, ctypes.addressof(executable.arenas), statics, reads, self.strided)

    def run(self, leaves: Sequence[Any]) -> Any:
        """`Executable.run` with this form's captured arrays and result."""
        return self.executable.run(leaves, self.raise_error, self.captured, self.signature)

    def over(self, captured: Sequence[Any]) -> CallForm:
        """The same form with other captured arrays of the same types."""
        if _strided(captured) != self.strided:
            return CallForm(self.executable, self.signature, self.raise_error, tuple(captured), self.statics, self.reads)
        other = copy.copy(self)
        other.captured = tuple(captured)
        return other

    def record(self, following: Any) -> tuple[Any, ...]:
        """The record for the native entry; `following` is the next record, or the slow path.

        The owners come last: they keep the machine code and all objects of the table alive as long as the record.
        """
        assert self.table is not None
        return (following, self.raise_error, self.table.content, *self.captured, (self.executable, self.table))


def _strided(captured: Sequence[np.ndarray[Any, Any]]) -> list[int]:
    """The arrays that programs cannot read where they lie."""
    return [number for number, array in enumerate(captured) if not (array.flags.c_contiguous and array.flags.aligned)]


def chain(forms: Sequence[CallForm], slow_path: SlowPath, name: str = "compiled") -> Callable[..., Any]:
    """A function that uses the first form that fits a call, or the slow path if none does."""
    if not forms:
        return slow_path
    if not all(form.executable.native for form in forms):
        following = slow_path
        for form in reversed(forms):
            following = bind_python(form, following)
        return following
    record: Any = slow_path
    for form in reversed(forms):
        record = form.record(record)
    definition = _definition(name)
    return _new_builtin(ctypes.addressof(definition), record, None)  # type: ignore[no-any-return]


@once
def _definition(name: str) -> _MethodDefinition:
    """The method definition of functions with this name.  It is never freed, as functions point to it, even after this module is gone at
    the end of the interpreter."""
    made = _MethodDefinition(name.encode(), _native_entry().addresses["bw_entry"], _FASTCALL_WITH_KEYWORDS, None)
    python_abi.make_immortal(made)
    return made


@once
def _native_entry() -> jit.LoadedCode:
    """The entry of all programs, loaded once and never unloaded."""
    text = entry_text()
    known = python_abi.symbols() | memory_pool.pool().symbols()
    symbols = {name: known[name] for name in external_symbols(text)}
    return jit.load(object_cache.object_for(text, default_target()), symbols, ("bw_entry",))


def _free_arenas(arenas: ctypes.Array[ctypes.c_void_p]) -> None:
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(python_abi.symbols()["c.free"])
    for arena in arenas:
        free(arena)


def _builtin_maker() -> Any:
    make = ctypes.pythonapi.PyCFunction_NewEx
    # a separate prototype: attributes of ctypes.pythonapi's functions are shared with other libraries
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return prototype(ctypes.cast(make, ctypes.c_void_p).value or 0)


_new_builtin = _builtin_maker()


class CompiledFunction(Generic[P, R]):
    """A callable object whose calls go straight to `_install`ed native code.

    Python looks `__call__` up in the class, so every instance has a class of its own.  A builtin in a class is no
    descriptor: it is called without `self`, as it should be.  Instances have attributes like any object.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        own = type(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__, "__slots__": ()})
        return object.__new__(own)

    def _install(self, function: Callable[..., Any]) -> None:
        """Make `function` (a builtin, or a plain function of the call's arguments) what a call of this object runs."""
        is_builtin = isinstance(function, type(len))
        type(self).__call__ = function if is_builtin else staticmethod(function)  # type: ignore[method-assign]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise NotImplementedError(f"{type(self).__name__} has no code installed")
