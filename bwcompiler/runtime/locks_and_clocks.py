"""Functions in LLVM text for several native modules of the runtime: a lock, and clocks."""

from __future__ import annotations

import time


def spin_lock(word: str) -> str:
    """`@lock()` and `@unlock()` of a spin lock in the i64 at `word`: 0 is free.  For short sections; a waiting thread yields the CPU."""
    return f"""
declare i32 @sched_yield()
define internal void @lock() nounwind {{
start:
  br label %try
try:
  %held = atomicrmw xchg ptr {word}, i64 1 acquire
  %free = icmp eq i64 %held, 0
  br i1 %free, label %done, label %wait
wait:
  %ignored = call i32 @sched_yield()
  br label %try
done:
  ret void
}}
define internal void @unlock() nounwind {{
  store atomic i64 0, ptr {word} release, align 8
  ret void
}}
"""


DECLARE_CLOCK = "declare i32 @clock_gettime(i32, ptr)\n"


def clock(name: str = "now", number: int = time.CLOCK_MONOTONIC) -> str:
    """`@name()`: the time of a clock of the system, in nanoseconds."""
    return f"""
define internal i64 @{name}() nounwind {{
  %time = alloca [2 x i64]
  %failed = call i32 @clock_gettime(i32 {number}, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}
"""
