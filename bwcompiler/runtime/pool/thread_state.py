"""The shared state of the pool's threads and their callers (`thread_pool.py`): the layout of `@state`, and LLVM text to access it."""

from __future__ import annotations

import platform
import sys
import time

from bwcompiler.runtime.locks_and_clocks import DECLARE_CLOCK, clock

MOST_THREADS = 256
CPU_BYTES = 128                    # of glibc's cpu_set_t: 1024 CPUs
OPEN, WAITING = 1 << 16, 1 << 17   # bits of the gate: a region is open; its caller sleeps until the last thread has left
_FUTEX = {"x86_64": 202, "aarch64": 98}
_PAUSE = {"x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
          "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)")}

# Below these bits, the gate holds the number of threads inside; from bit 32 on, the number of the region.
# Words of @state.  Words that threads wait for or modify have cache lines of their own.
_LINES = (("threads", "started", "cpu", "place_at", "has_room", "rest_until", "rest", "score", "time", "cpu_time", "regions",
           "rested"),
          ("busy",), ("ticket",), ("sleepers",), ("gate",), ("failed",), ("fn", "context", "count", "part", "team"))
STATE = {name: 16 * line + k for line, names in enumerate(_LINES) for k, name in enumerate(names)}
STATE_WORDS = 16 * len(_LINES)


def at(name: str) -> str:
    """The address of a word of the state, as a constant expression."""
    return f"getelementptr (i64, ptr @state, i64 {STATE[name]})"


def put(name: str, value: str) -> str:
    """An instruction that stores a word of the state."""
    return f"  store i64 {value}, ptr {at(name)}"


def get(name: str, register: str | None = None) -> str:
    """An instruction that loads a word of the state, as %<name> or %<register>."""
    return f"  %{register or name} = load i64, ptr {at(name)}"


def has_threads() -> bool:
    """Whether regions run in several threads on this system."""
    return sys.platform == "linux" and platform.machine() in _FUTEX


def for_this_machine(text: str) -> str:
    """`text` with the instructions that PAUSE and FUTEX stand for, and the declaration of the first."""
    declare, pause = _PAUSE[platform.machine()]
    return f"{declare}\n{text.replace('PAUSE', pause).replace('i64 FUTEX', f'i64 {_FUTEX[platform.machine()]}')}"

STATE_TEXT = f"""
@state = internal global [{STATE_WORDS} x i64] zeroinitializer, align 128
define ptr @bw_threads_state() nounwind {{
  ret ptr @state
}}
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""

DECLARATIONS = f"""
@ranges = internal global [{MOST_THREADS} x [16 x i64]] zeroinitializer, align 128
@handles = internal global [{MOST_THREADS} x i64] zeroinitializer
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.vector.reduce.or.v{CPU_BYTES // 8}i64(<{CPU_BYTES // 8} x i64>)
declare i64 @syscall(i64, ...)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
"""

NOW = DECLARE_CLOCK + clock() + clock("cpu_time", getattr(time, "CLOCK_THREAD_CPUTIME_ID", 3))
