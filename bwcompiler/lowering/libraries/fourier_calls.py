"""Fourier transforms by NumPy's inner loops: along any axis, of operands in any layout, all lanes of a batch in few calls."""

from __future__ import annotations

from bwcompiler.ir.access import ArrayView, contiguous_strides
from bwcompiler.ir.op import Value
from bwcompiler.ir.routine import Fourier
from bwcompiler.ir.types import component_of
from bwcompiler.lowering.function_text import FunctionText, merged_axes
from bwcompiler.lowering.kernels.llvm_scalars import literal, memory_type
from bwcompiler.lowering.libraries.library_calls import CallText, Libraries, call_inner_loop, stored_words


def fourier_text(name: str, value: Value, view: ArrayView, libraries: Libraries) -> CallText | None:
    """`void name(x, out)`; None where this process has no address of the loop."""
    routine, x, axis = value.op.library, value.operands[0], value.attrs["axis"]
    assert isinstance(routine, Fourier)
    symbol = routine.symbol(routine.name(value.op.name, value.attrs, x.shape[axis]), x.dtype)
    if symbol not in libraries.symbols or not all(isinstance(extent, int) for extent in x.shape):
        return None
    function = FunctionText(name, ["p0", "out"], memory_type(x.dtype))
    real = component_of(x.dtype)
    factor = function.slot(memory_type(real))
    function.do(f"store {memory_type(real)} {literal(value.attrs['scale'], real)}, ptr {factor}")
    lanes = [k for k in range(x.rank) if k != axis]
    strides = ([step * x.dtype.itemsize for step in view.strides],
               [step * value.dtype.itemsize for step in contiguous_strides(value.shape)])
    axes = merged_axes([x.shape[k] for k in lanes], [[steps[k] for k in lanes] for steps in strides])
    *outer, (count, (step_in, step_out)) = axes or [(1, (0, 0))]
    words = stored_words(function, [count, x.shape[axis], value.shape[axis]])
    steps = stored_words(function, [step_in, 0, step_out, strides[0][axis], strides[1][axis]])
    block = function.slot("[3 x ptr]")
    data = f"{symbol}.data" if f"{symbol}.data" in libraries.symbols else None
    places = [(pointer, 0, [pair[number] for _, pair in outer]) for number, pointer in enumerate(("%p0", "%out"))]
    for source, target in function.batch([extent for extent, _ in outer], places, "i8"):
        call_inner_loop(function, symbol, block, [source, factor, target], (words, steps), f"@{data}" if data else "null")
    declares = [*function.declares]
    if data is not None:
        declares.append(f"@{data} = external global i8")
    return CallText(function.text(), declares, False)
