"""Ctrl-C and other signals during long native calls: `bw_poll`, which programs call periodically.

Signal handlers are Python functions of the main thread, so other threads return at once.  The main thread reads the clock
and, at most every LOOK_NANOSECONDS, takes the GIL and runs pending handlers.  If one raises, the exception stays set,
`bw_poll` returns INTERRUPTED, and so does the program; its entry releases the arena and drops the results.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

from bwcompiler.ir.contracts.program_interface import INTERRUPTED, POLL
from bwcompiler.locks import in_forked_child, once
from bwcompiler.runtime import jit, object_cache, python_abi
from bwcompiler.runtime.locks_and_clocks import DECLARE_CLOCK, clock
from bwcompiler.target import default_target

LOOK_NANOSECONDS = 20_000_000      # another thread that runs Python code releases the GIL after 5 ms, a quarter of this

# {identity of the main thread, time of the next look}: only the main thread reads and writes the second.
_state = (ctypes.c_int64 * 2)()
_FUNCTIONS = ("PyThread_get_thread_ident", "PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyEval_SaveThread",
              "PyEval_RestoreThread")


_WITHOUT_LOCK = """
define i32 @bw_without_lock(ptr %program, ptr %buffers, ptr %arena) nounwind {
  %thread = call ptr @py.PyEval_SaveThread()
  %status = call i32 %program(ptr %buffers, ptr %arena)
  call void @py.PyEval_RestoreThread(ptr %thread)
  ret i32 %status
}
"""


def _text() -> str:
    return f"""
@bw.state = external global [2 x i64]
declare i64 @py.PyThread_get_thread_ident()
declare i32 @py.PyGILState_Ensure()
declare void @py.PyGILState_Release(i32)
declare i32 @py.PyErr_CheckSignals()
declare ptr @py.PyEval_SaveThread()
declare void @py.PyEval_RestoreThread(ptr)
{DECLARE_CLOCK}{clock()}
define i32 @{POLL}() nounwind {{
  %main = load i64, ptr @bw.state
  %thread = call i64 @py.PyThread_get_thread_ident()
  %is.main = icmp eq i64 %thread, %main
  br i1 %is.main, label %clock, label %on
clock:
  %now = call i64 @now()
  %due.at = getelementptr i64, ptr @bw.state, i64 1
  %due = load i64, ptr %due.at
  %early = icmp slt i64 %now, %due
  br i1 %early, label %on, label %look
look:
  %next = add i64 %now, {LOOK_NANOSECONDS}
  store i64 %next, ptr %due.at
  %lock = call i32 @py.PyGILState_Ensure()
  %raised = call i32 @py.PyErr_CheckSignals()
  call void @py.PyGILState_Release(i32 %lock)
  %bad = icmp ne i32 %raised, 0
  br i1 %bad, label %interrupted, label %on
on:
  ret i32 0
interrupted:
  ret i32 {INTERRUPTED}
}}
{_WITHOUT_LOCK}"""


_NO_POLL = f"define i32 @{POLL}() {{ ret i32 0 }}"     # for interpreters that calls go to through ctypes


@once
def _code() -> jit.LoadedCode:
    if not python_abi.is_supported():
        return jit.load(object_cache.object_for(_NO_POLL, default_target()), {}, (POLL,))
    symbols = {f"py.{name}": ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS}
    symbols["bw.state"] = ctypes.addressof(_state)
    return jit.load(object_cache.object_for(_text(), default_target(), jit.PLAIN), symbols, (POLL, "bw_without_lock"))


def poll_address() -> int:
    """The address of `bw_poll`."""
    return _code().addresses[POLL]


def without_lock(program: int) -> Any:
    """A ctypes function that runs the program at an address without the interpreter's lock and lets what it raised through."""
    if not python_abi.is_supported():
        return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(program)
    prototype = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return functools.partial(prototype(_code().addresses["bw_without_lock"]), program)


def _find_main_thread() -> None:
    _state[0] = threading.main_thread().ident or 0


_find_main_thread()
in_forked_child(_find_main_thread)               # the thread that forked is the child's main thread
