"""Calls over many lanes (matrices, rows to sort) that are divided among the threads of the pool.

A `FunctionText` writes `name.range(..., begin, end)`, which computes some of the lanes; the functions written here call it:

    name(...)                           called by programs
    name.part(arguments, begin, end)    called by threads; the arguments are in memory

Each lane is computed independently, so the bits do not depend on the division.
"""

from __future__ import annotations

from bwcompiler.ir.contracts.program_interface import PARALLEL
from bwcompiler.lowering.function_text import FunctionText

_LEAST_NANOSECONDS = 25_000    # least time of a call that is divided among threads,
_GRAIN_NANOSECONDS = 10_000    # and about the time of the lanes that one takes at a time


def grain_of(lanes: int, nanoseconds: float) -> int | None:
    """The number of lanes that a thread takes at a time, for a time per lane; None if the calling thread computes all."""
    if lanes < 2 or lanes * nanoseconds < _LEAST_NANOSECONDS:
        return None
    grain = max(1, round(_GRAIN_NANOSECONDS / max(nanoseconds, 0.01)))
    return grain if grain < lanes else None


def sharing_text(function: FunctionText, lanes: int, grain: int) -> str:
    """The two functions around `name.range`."""
    name, result = function.name, "i32" if function.fallible else "void"
    types = [parameter.split()[0] for parameter in function.parameters]
    names = [parameter.split()[1] for parameter in function.parameters]
    lines = [f"define internal {result} @{name}({', '.join(function.parameters)}) #1 {{", f"  %arguments = alloca [{len(types)} x i64]"]
    loads = []
    for number, (type_, argument) in enumerate(zip(types, names, strict=True)):
        place = f"getelementptr i64, ptr %arguments, i64 {number}"
        lines += [f"  %at{number} = {place}", f"  store {type_} {argument}, ptr %at{number}"]
        loads += [f"  %at{number} = {place}", f"  {argument} = load {type_}, ptr %at{number}"]
    call = f"call {result} @{name}.range({', '.join(function.parameters)}, i64 %begin, i64 %end)"
    lines += [f"  %status = call i32 @{PARALLEL}(ptr @{name}.part, ptr %arguments, i64 {lanes}, i64 {grain})",
              "  ret i32 %status" if function.fallible else "  ret void", "}",
              f"define internal i32 @{name}.part(ptr %arguments, i64 %begin, i64 %end) #1 {{", *loads]
    lines += [f"  %status = {call}", "  ret i32 %status", "}", ""] if function.fallible else [f"  {call}", "  ret i32 0", "}", ""]
    return "\n".join(lines)
