"""Fourier transforms by NumPy's inner loops: along any axis, of operands in any layout, all lanes of a batch in few calls.

Many lanes are divided among the threads of the pool.  NumPy's loop computes several lanes together, in another order of operations than
the remaining ones.  So each thread gets whole blocks of lanes, and the last block the remainder: the bits do not depend on the threads.
"""

from __future__ import annotations

import math

from bwcompiler.ir.access import ArrayView, contiguous_strides
from bwcompiler.ir.contracts.program_interface import DECLARE_PARALLEL, PARALLEL
from bwcompiler.ir.op import Value
from bwcompiler.ir.routine import Fourier
from bwcompiler.ir.types import component_of
from bwcompiler.lowering.function_text import FunctionText, merged_axes
from bwcompiler.lowering.libraries.call_texts import CallText, Libraries
from bwcompiler.lowering.libraries.inner_loops import call_inner_loop, stored_words
from bwcompiler.lowering.llvm_scalars import literal, memory_type

_BLOCK = 16                    # lanes: a multiple of the number that the loop computes together
_WORK = 5                      # operations per element and stage
_LEAST_WORK = 1 << 18          # least operations for several threads: about 15 microseconds
_GRAIN_WORK = 1 << 17          # operations of a thread at a time: each call recomputes the roots of unity


def fourier_text(name: str, value: Value, view: ArrayView, libraries: Libraries) -> CallText | None:
    """`void name(x, out)`; None if this process has no address of the loop."""
    routine, x, axis = value.op.library, value.operands[0], value.attrs["axis"]
    assert isinstance(routine, Fourier)
    symbol = routine.symbol(routine.name(value.op.name, value.attrs, x.shape[axis]), x.dtype)
    if symbol not in libraries.symbols or not all(isinstance(extent, int) for extent in x.shape):
        return None
    shape = x.shape if x.shape[axis] > value.shape[axis] else value.shape
    work = _WORK * math.prod(shape) * max(shape[axis], 2).bit_length()
    real = component_of(x.dtype)
    lanes = [k for k in range(x.rank) if k != axis]
    strides = ([step * x.dtype.itemsize for step in view.strides],
               [step * value.dtype.itemsize for step in contiguous_strides(value.shape)])
    axes = merged_axes([x.shape[k] for k in lanes], [[steps[k] for k in lanes] for steps in strides])
    *outer, (count, (step_in, step_out)) = axes or [(1, (0, 0))]
    is_shared = work >= _LEAST_WORK and count >= 2 * _BLOCK
    function = FunctionText(f"{name}.lanes" if is_shared else name, ["p0", "out", *(["count"] if is_shared else [])], memory_type(x.dtype))
    factor = function.slot(memory_type(real))
    function.do(f"store {memory_type(real)} {literal(value.attrs['scale'], real)}, ptr {factor}")
    lanes_here = function.let("load i64, ptr %count") if is_shared else count
    words = stored_words(function, [lanes_here, x.shape[axis], value.shape[axis]])
    steps = stored_words(function, [step_in, 0, step_out, strides[0][axis], strides[1][axis]])
    block = function.slot("[3 x ptr]")
    data = f"{symbol}.data" if f"{symbol}.data" in libraries.symbols else None
    places = [(pointer, 0, [pair[number] for _, pair in outer]) for number, pointer in enumerate(("%p0", "%out"))]
    for source, target in function.batch([extent for extent, _ in outer], places, "i8"):
        call_inner_loop(function, symbol, block, [source, factor, target], (words, steps), f"@{data}" if data else "null")
    declares = [*function.declares]
    if data is not None:
        declares.append(f"@{data} = external global i8")
    if not is_shared:
        return CallText(function.text(), declares, False)
    blocks = count // _BLOCK
    grain = max(1, _GRAIN_WORK * blocks // work)
    return CallText(function.text() + _shared(name, blocks, grain, count, (step_in, step_out)), [*declares, DECLARE_PARALLEL], False)


def _shared(name: str, blocks: int, grain: int, count: int, steps: tuple[int, int]) -> str:
    """`void name(x, out)`, and the function that threads call for some of the blocks."""
    return f"""define internal void @{name}(ptr %p0, ptr %out) #1 {{
entry:
  %block = alloca [2 x ptr]
  store ptr %p0, ptr %block
  %second = getelementptr ptr, ptr %block, i64 1
  store ptr %out, ptr %second
  %done = call i32 @{PARALLEL}(ptr @{name}.part, ptr %block, i64 {blocks}, i64 {grain})
  ret void
}}
define internal i32 @{name}.part(ptr %block, i64 %begin, i64 %end) #1 {{
entry:
  %count = alloca i64
  %p0 = load ptr, ptr %block
  %second = getelementptr ptr, ptr %block, i64 1
  %out = load ptr, ptr %second
  %first = mul i64 %begin, {_BLOCK}
  %behind = mul i64 %end, {_BLOCK}
  %is.last = icmp eq i64 %end, {blocks}
  %stop = select i1 %is.last, i64 {count}, i64 %behind
  %lanes = sub i64 %stop, %first
  store i64 %lanes, ptr %count
  %from = mul i64 %first, {steps[0]}
  %to = mul i64 %first, {steps[1]}
  %source = getelementptr i8, ptr %p0, i64 %from
  %target = getelementptr i8, ptr %out, i64 %to
  call void @{name}.lanes(ptr %source, ptr %target, ptr %count)
  ret i32 0
}}
"""
