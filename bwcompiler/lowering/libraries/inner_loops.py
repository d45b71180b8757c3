"""Calls of NumPy's inner loops: those of universal functions, over batches of any layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bwcompiler.errors import InternalError
from bwcompiler.ir.access import ArrayView, view_of, whole
from bwcompiler.ir.contracts.program_interface import BLAS_ENTER, BLAS_LEAVE, LEAST_BLAS_THREADS, LINALG_ERROR, NEGATIVE_ERROR
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.routine import InnerLoop
from bwcompiler.lowering.function_text import FunctionText, Index, merged_axes
from bwcompiler.lowering.libraries.call_texts import CallText, Libraries, call_text, failure_lines
from bwcompiler.lowering.libraries.shared_calls import grain_of
from bwcompiler.lowering.llvm_scalars import memory_type


def inner_loop_text(name: str, value: Value, views: Sequence[ArrayView], libraries: Libraries) -> CallText | None:
    """A batch through one of NumPy's inner loops; None if this process has no address of it."""
    routine = value.op.library
    assert isinstance(routine, InnerLoop)
    symbol = routine.symbol_of(value)
    if symbol not in libraries.symbols:
        return None
    signed = routine.natural is not None and value.operands[routine.natural[0]].dtype.kind == "i"
    fallible = routine.failure is not None or signed
    function = FunctionText(name, [*[f"p{k}" for k in range(len(views))], "out"], memory_type(value.dtype), fallible)
    arrays = _loop_arrays(function, routine, value, views)
    dimensions, cores = _core_dimensions(routine.core, arrays)
    lead = next(array.shape[:len(array.shape) - len(core)] for array, core in zip(arrays, cores, strict=True) if array.shape is not None)
    axes = merged_axes(lead, [array.strides[:len(lead)] for array in arrays]) or [(1, (0,) * len(arrays))]
    grain = None
    if routine.natural is not None and signed:
        _refuse_negative(function, value, routine.natural[0])
    elif routine.cleared and value.dtype.is_complex:
        function.clear("%out", value.type.size)
    elif not (routine.overwrites or routine.may_call_python):          # only lanes
        grain = grain_of(axes[0][0], math.prod([extent for extent, _ in axes[1:]]) * _lane_nanoseconds(routine, dimensions))
    if grain is not None:
        function.over_range()
    data = f"@{symbol}.data" if f"{symbol}.data" in libraries.symbols else "null"
    is_alone = BLAS_ENTER in libraries.symbols and bool(routine.lapack) and (grain is not None or _work(dimensions) < LEAST_BLAS_THREADS)
    _watched(function, routine, is_alone, lambda: _call_for_lanes(function, symbol, data, arrays, axes, (dimensions, len(lead))))
    failure = failure_lines(LINALG_ERROR if routine.failure is not None else NEGATIVE_ERROR)
    if routine.failure is not None:
        failure.insert(0, "  %cleared = call i32 @feclearexcept(i32 1)")
    declares = [*function.declares, *([f"{data} = external global i8"] if data != "null" else [])]
    return call_text(function, failure, declares, axes[0][0], grain)


def _watched(function: FunctionText, routine: InnerLoop, is_alone: bool, call: Callable[[], None]) -> None:
    """The calls of a loop; a failure shows in a flag of floating-point numbers.  is_alone: they have one thread of the library."""
    if routine.failure is not None:
        function.call("i32", "feclearexcept", "i32 1")
    if is_alone:
        function.call("void", BLAS_ENTER)
    call()
    if is_alone:
        function.call("void", BLAS_LEAVE)
    if routine.failure is not None:                  # FE_INVALID is 1 on x86 and Arm; NumPy itself reads it
        raised = function.call("i32", "fetestexcept", "i32 1")
        function.fail_if(function.let(f"icmp ne i32 {raised}, 0"))


def _lane_nanoseconds(routine: InnerLoop, dimensions: Sequence[int]) -> float:
    """The estimated time of one lane: a call of LAPACK, or a function of an element."""
    return 400 + 2.0 * _work(dimensions) if routine.core else 30


def _work(dimensions: Sequence[int]) -> int:
    """The estimated operations of a factorisation: n³."""
    return math.prod(sorted(dimensions)[-2:]) * max(dimensions, default=0)


def _call_for_lanes(function: FunctionText, symbol: str, data: str, arrays: Sequence[_Array], axes: Sequence[tuple[int, Sequence[int]]],
                    core: tuple[Sequence[int], int]) -> None:
    """Call the loop for the lanes along the innermost axis, for all others; `core` has its dimensions and the number of axes before."""
    *outer, (count, steps) = axes
    dimensions, before = core
    is_innermost_shared = function.ranged and not outer
    lanes = function.minus("%end", "%begin") if is_innermost_shared else count
    strides = [step * array.size for step, array in zip(steps, arrays, strict=True)]
    inside = [step * array.size for array in arrays for step in array.strides[before:]]
    places = stored_words(function, [lanes, *dimensions]), stored_words(function, [*strides, *inside])
    block = function.slot(f"[{len(arrays)} x ptr]")
    starts = [(array.pointer, array.offset * array.size, [steps_of[k] * array.size for _, steps_of in outer])
              for k, array in enumerate(arrays)]
    for pointers in function.batch([extent for extent, _ in outer], starts, "i8"):
        if is_innermost_shared:
            pointers = [function.at(pointer, ("%begin", stride), type_="i8") for pointer, stride in zip(pointers, strides, strict=True)]
        call_inner_loop(function, symbol, block, pointers, places, data)


class _Array(NamedTuple):
    """One operand or result of the loop; `size` of an element in bytes, strides in elements."""

    pointer: str
    size: int
    offset: int
    shape: tuple[int, ...] | None
    strides: tuple[int, ...]


def _loop_arrays(function: FunctionText, routine: InnerLoop, value: Value, views: Sequence[ArrayView]) -> list[_Array]:
    operands = [_Array(f"%p{k}", operand.dtype.itemsize, 0, operand.shape, view.strides)
                for k, (operand, view) in enumerate(zip(value.operands, views, strict=True))]
    if routine.operands is not None:
        packed = input_value(value.operands[0].type)
        operands = [_Array("%p0", packed.dtype.itemsize, _fixed(view.offset), part.shape, view.strides)
                    for view, part in _views(packed, routine.operands, value, packed) if part is not None]
    results: list[_Array] = []
    for view, part in result_views(routine, value):
        if part is None:                             # an unused result: one buffer for all lanes
            results.append(_Array(function.slot("[16 x i8]"), 0, 0, None, (0,) * value.rank))
        else:
            results.append(_Array("%out", value.dtype.itemsize, _fixed(view.offset), part.shape, view.strides))
    if routine.overwrites:
        source, target = operands[0], results.pop(0)
        assert target.shape is not None
        function.copy(target.shape, function.at(source.pointer, (source.offset, 1)), source.strides,
                      function.at(target.pointer, (target.offset, 1)), target.strides)
        operands[0] = target
    return [*operands, *results]


def _fixed(offset: Extent) -> int:
    assert isinstance(offset, int)                   # the parts of an array do not move with loop indices
    return offset


def result_views(routine: InnerLoop, value: Value) -> list[tuple[ArrayView, Value | None]]:
    """The views of the op's result that hold the results of the loop."""
    if routine.results is None:
        return [(whole(value), value)]
    return _views(value, routine.results, value, *value.operands, **value.attrs)


def _views(base: Value, rule: Callable[..., tuple[Any, ...]], *values: Value, **attrs: Any) -> list[tuple[ArrayView, Value | None]]:
    """The parts of an array as views; the rule describes them by layout ops."""
    with Record():
        parts = rule(*values, **attrs)
    found: list[tuple[ArrayView, Value | None]] = []
    for part in parts:
        view = whole(base) if part is None else view_of(part)
        if view is None or view.base is not base:
            raise InternalError(f"{part} is not a view of {base}")
        found.append((view, part))
    return found


def _core_dimensions(core: str, arrays: Sequence[_Array]) -> tuple[list[int], list[list[str]]]:
    """The extents of the letters of a signature such as "(m,n)->(m,p),(p),(p,n)", and the letters of each array."""
    if not core:
        return [], [[] for _ in arrays]
    groups = core.replace("->", ",")[1:-1].split("),(")
    cores = [group.split(",") if group else [] for group in groups]
    extents: dict[str, int] = {}
    for array, letters in zip(arrays, cores, strict=True):
        assert array.shape is not None
        for letter, extent in zip(letters, array.shape[len(array.shape) - len(letters):], strict=True):
            extents.setdefault(letter, extent)
    return list(extents.values()), cores


def stored_words(function: FunctionText, words: Sequence[Index]) -> str:
    """Integers in memory."""
    block = function.slot(f"[{len(words)} x i64]")
    for k, word in enumerate(words):
        function.do(f"store i64 {word}, ptr {function.at(block, (k, 1), type_='i64')}")
    return block


def call_inner_loop(function: FunctionText, symbol: str, block: str, pointers: Sequence[str], places: tuple[str, str], data: str) -> None:
    """Call an inner loop; block: memory for its pointers; places: addresses of its dimensions and steps."""
    for k, pointer in enumerate(pointers):           # stored before every call, as the loop changes them
        function.do(f"store ptr {pointer}, ptr {function.at(block, (k, 1), type_='ptr')}")
    function.call("void", symbol, f"ptr {block}", f"ptr {places[0]}", f"ptr {places[1]}", f"ptr {data}")


def _refuse_negative(function: FunctionText, value: Value, operand: int) -> None:
    """The operands of elementwise functions are whole arrays."""
    lowest = function.slot(function.real)
    function.store("0", lowest)
    for index in function.each(0, value.operands[operand].type.size):
        element = function.load(function.at(f"%p{operand}", (index, 1)))
        least = function.load(lowest)
        below = function.let(f"icmp slt {function.real} {element}, {least}")
        function.store(function.let(f"select i1 {below}, {function.real} {element}, {function.real} {least}"), lowest)
    least = function.load(lowest)
    function.fail_if(function.let(f"icmp slt {function.real} {least}, 0"))
