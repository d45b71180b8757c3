"""What runs ranges of iterations for compiled programs: `i32 bw_parallel(ptr fn, ptr block, i64 count, i64 grain)`.

It calls `i32 fn(ptr block, i64 begin, i64 end)` for ranges that make up 0..count, and gives the first status that is not 0.
Here that is one range, in the calling thread.
"""

from __future__ import annotations

import functools

from bwcompiler.runtime import jit
from bwcompiler.target import default_target

_TEXT = """
define i32 @bw_parallel(ptr %fn, ptr %block, i64 %count, i64 %grain) {
  %status = call i32 %fn(ptr %block, i64 0, i64 %count)
  ret i32 %status
}
"""


@functools.cache
def _code() -> jit.LoadedCode:
    return jit.load(jit.optimise(_TEXT, default_target()), {}, ("bw_parallel",))


def parallel_address() -> int:
    """The address of `bw_parallel`."""
    return _code().addresses["bw_parallel"]
