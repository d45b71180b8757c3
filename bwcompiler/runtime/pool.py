"""TEMPORARY: serial, in three uneven ranges."""
from __future__ import annotations

import functools

from bwcompiler.runtime import jit
from bwcompiler.target import default_target

TEXT = """
define i32 @bw_parallel(ptr %fn, ptr %block, i64 %count, i64 %grain) {
entry:
  %a = sdiv i64 %count, 3
  %b = add i64 %a, 1
  %less = icmp slt i64 %b, %count
  %m = select i1 %less, i64 %b, i64 %count
  %s1 = call i32 %fn(ptr %block, i64 %a, i64 %m)
  %s2 = call i32 %fn(ptr %block, i64 %m, i64 %count)
  %s0 = call i32 %fn(ptr %block, i64 0, i64 %a)
  ret i32 0
}
"""
@functools.cache
def _code():
    return jit.load(jit.optimise(TEXT, default_target()), {}, ("bw_parallel",))
def parallel_address() -> int:
    return _code().addresses["bw_parallel"]
