"""`Executable`: the loaded code of a program and its entry; `bind` makes Python callables of it.

    executable = Executable(text, signature)
    function = executable.bind(slow_path, raise_error, captured)
    function(x, y)                       # guards, result arrays and program in one native call

`CompiledFunction` is the base class of what users hold: an object with attributes whose call is such a function.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bwcompiler.ir.plan import CallSignature
from bwcompiler.runtime import jit, object_cache, python_abi
from bwcompiler.runtime.entry import entry_text
from bwcompiler.runtime.entry_helpers import ARENA_SLOTS, external_symbols
from bwcompiler.runtime.entry_table import build_table
from bwcompiler.runtime.python_entry import Program, bind_python, captured_error

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
    """Loaded machine code of `text`, which defines `@bw_program`, with the table of its signature for the entry.

    `symbols` are addresses of what the program refers to (BLAS, thread pool); `keep_alive` are the owners of these
    addresses.  The code is unloaded when the executable and every function bound to it are gone.
    """

    def __init__(
        self,
        text: str,
        signature: CallSignature,
        *,
        symbols: Mapping[str, int] | None = None,
        keep_alive: tuple[object, ...] = (),
        name: str = "compiled",
        pipeline: jit.Pipeline = "full",
    ) -> None:
        self.text = text
        self.signature = signature
        self.native = python_abi.is_supported()
        self._keep_alive = keep_alive
        self._code = jit.load(object_cache.object_for(text, pipeline), symbols or {}, ("bw_program",))
        address = self._code.addresses["bw_program"]
        self.program = Program(address, signature)
        if self.native:
            self._arenas = (ctypes.c_void_p * ARENA_SLOTS)()
            self._table = build_table(signature, address, ctypes.addressof(self._arenas))
            function = _native_entry().addresses["bw_entry"]
            self._definition = _MethodDefinition(name.encode(), function, _FASTCALL_WITH_KEYWORDS, None)
            # Not at exit: other threads may still run, and the memory goes anyway.
            weakref.finalize(self, _free_arenas, self._arenas).atexit = False

    def bind(
        self,
        slow_path: SlowPath,
        raise_error: RaiseError,
        captured: Sequence[np.ndarray[Any, Any]] = (),
        statics: Sequence[object] = (),
    ) -> Callable[..., Any]:
        """A function over these captured arrays, which are kept alive and read at every call, and static values.

        `slow_path(*args, **kwargs)` takes every call that does not fit the signature.  `raise_error(code, record)` must
        raise; it is called when the program returns a code other than 0 without having set a Python exception.
        """
        problem = captured_error(self.signature, captured, statics)
        if problem:
            raise ValueError(problem)
        if not self.native:
            return bind_python(self, slow_path, raise_error, captured, statics)
        # The executable is last: machine code and PyMethodDef live as long as the function does.
        this = (slow_path, raise_error, self._table.content, *captured, *statics, self)
        return _new_builtin(ctypes.addressof(self._definition), this, None)  # type: ignore[no-any-return]

    def run(
        self, leaves: Sequence[object], raise_error: RaiseError, captured: Sequence[np.ndarray[Any, Any]] = ()
    ) -> Any:
        """Run on argument leaves of any layout, byte order and overlap, copying as needed: for slow paths."""
        return self.program.run(leaves, raise_error, captured)

    def call_buffers(self, buffers: Sequence[np.ndarray[Any, Any] | None]) -> tuple[int, bytes]:
        """Call `@bw_program` on exactly these buffers (arguments, captured, results); its code and error record."""
        return self.program.call(buffers)


@functools.cache
def _native_entry() -> jit.LoadedCode:
    """The entry of all programs, loaded once and for ever."""
    text = entry_text()
    known = python_abi.symbols()
    symbols = {name: known[name] for name in external_symbols(text)}
    return jit.load(object_cache.object_for(text), symbols, ("bw_entry",))


def _free_arenas(arenas: ctypes.Array[ctypes.c_void_p]) -> None:
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(python_abi.symbols()["c.free"])
    for arena in arenas:
        free(arena)


def _builtin_maker() -> Any:
    make = ctypes.pythonapi.PyCFunction_NewEx
    # A prototype of our own: the attributes of ctypes.pythonapi's functions are shared with other libraries.
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return prototype(ctypes.cast(make, ctypes.c_void_p).value or 0)


_new_builtin = _builtin_maker()


class CompiledFunction:
    """A callable object whose calls go straight to `_install`ed native code.

    Python looks `__call__` up in the class, so every instance has a class of its own.  A builtin in a class is no
    descriptor: it is called without `self`, as it should be.  Instances have attributes like any object.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> CompiledFunction:
        own = type(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__, "__slots__": ()})
        return object.__new__(own)

    def _install(self, function: Callable[..., Any]) -> None:
        """Make `function` (a builtin, or a plain function of the call's arguments) what a call of this object runs."""
        is_builtin = isinstance(function, type(len))
        type(self).__call__ = function if is_builtin else staticmethod(function)  # type: ignore[method-assign]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no code installed")
