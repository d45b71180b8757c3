"""A fused graph and its memory plan -> one LLVM module: functions, and `bw_program`, which calls them in order.

Every step becomes a call of a function with pointers and words (scalar parameters); functions with equal text are emitted once.  The
body of a loop, or a branch, is a function of the same form (`calls.py`); another function iterates or branches and calls it
(`regions.py`).  Ops without native lowering become callbacks: calls out of the program into the op's NumPy reference (`Callback`,
bound by the runtime).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.errors import CompileError, at
from bwcompiler.ir.access import ArrayView, root
from bwcompiler.ir.contracts.memory import Location, MemoryPlan
from bwcompiler.ir.contracts.program_interface import CALLBACK_DONE, CALLBACK_ERROR, DECLARE_POLL, POLL
from bwcompiler.ir.extent import Affine, Extent, Index, element_count, scale_extent, substitute, upper
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop import OUTPUT, Buffer, Fill, Kernel
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import Word, const
from bwcompiler.ir.types import TensorType
from bwcompiler.lowering.calls import RECORD, FunctionCall, Pointer, Slots, Told, body_text, program_text
from bwcompiler.lowering.kernels.loops_to_llvm import kernel_to_llvm
from bwcompiler.lowering.kernels.parallel_calls import parallel_text
from bwcompiler.lowering.libraries.factorization_calls import library_call_text
from bwcompiler.lowering.libraries.library_calls import DECLARE_LAST, Libraries, check_index_text, check_range_text, copy_text
from bwcompiler.lowering.libraries.matrix_products import product_text
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from bwcompiler.lowering.loops.complex.split_complex import split_complex
from bwcompiler.lowering.loops.parallel import Piece, pieces
from bwcompiler.lowering.math.functions import math_text
from bwcompiler.lowering.polls import COPY_BYTES, POLL_WORK, product_work, statements_work
from bwcompiler.lowering.regions import BodyFunction, region_text
from bwcompiler.lowering.steps import LoweredBody, LoweredStep
from bwcompiler.target import Target

_SYMBOL = re.compile(r"@([\w.]+)")
_OWN = " = internal constant "  # data that a program defines itself
FEW_LINES = 200                # lines of a kernel that is inlined into its callers


class Callback(NamedTuple):
    """A value computed by its op's NumPy reference: the symbol the program calls, with pointers to operands and results.

    strides    of the operands, in elements.
    """

    symbol: str
    value: Value
    strides: tuple[tuple[int, ...], ...]


class ProgramText(NamedTuple):
    """The LLVM text of a program, its external symbols, the values whose computation may fail, and the number of distinct kernels.

    symbols: all declared functions, of libraries, the thread pool and the runtime (`POLL`), including LLVM's intrinsics.
    """

    text: str
    callbacks: list[Callback]
    checked: list[Value]
    kernels: int
    symbols: frozenset[str]


class _KernelFunction(NamedTuple):
    """The function emitted for a kernel (or a part of one), and the buffers and words that it takes.

    starts: per pointer the element that it points at, as an expression of the kernel's words.
    """

    name: str
    buffers: tuple[Buffer, ...]
    starts: tuple[Extent, ...]
    words: tuple[Index | Word, ...]
    polls: bool
    work: int


def emit_llvm(graph: Graph, steps: Sequence[LoweredStep], plan: MemoryPlan, libraries: Libraries, target: Target,
              into: Sequence[int | None] = ()) -> ProgramText:
    """The LLVM text of a program."""
    module = _Module(libraries, target)
    calls = _Calls(module, LoweredBody(graph, steps, plan, tuple(into)), ())
    calls.emit()
    distinct = len(module.texts)
    module.texts.append(program_text("bw_program", Slots(len(graph.inputs), len(graph.outputs)), calls.calls, module.texts))
    text = module.text()
    symbols = frozenset([name for line in module.declares if _OWN not in line for name in _SYMBOL.findall(line)])
    return ProgramText(text, module.callbacks, module.checked, distinct, symbols)


class _Module:
    """The LLVM module under construction: functions, declarations and caches that the functions of a program share."""

    def __init__(self, libraries: Libraries, target: Target) -> None:
        self.libraries = libraries
        self.target = target
        self.scalars = ScalarEmitter(target)
        self.functions: dict[str, str] = {}
        self.texts: list[str] = []
        self.declares: dict[str, None] = {}
        self.callbacks: list[Callback] = []
        self.checked: list[Value] = []
        self.kernels: dict[tuple[int, tuple[tuple[Buffer, Buffer], ...]], list[_KernelFunction]] = {}
        self.emitted: set[str] = set()             # names of kernels: variants with another order of stores have the same name
        self.bodies: dict[tuple[int, tuple[Index, ...]], BodyFunction] = {}        # by ids, and the indices of the enclosing loops
        self.fills: dict[tuple[TensorType, str], Kernel] = {}

    def new_name(self, kind: str) -> str:
        return f"{kind}{len(self.texts)}"

    def function(self, text: str, name: str) -> str:
        """The name of the function with this text (which names it `name`); equal functions share one."""
        body = text.replace(f"@{name}(", "@(", 1)
        found = self.functions.get(body)
        if found is None:
            found = self.functions[body] = name
            self.texts.append(text)
        return found

    def kernel(self, kernel: Kernel, merged: Mapping[Buffer, Buffer]) -> list[_KernelFunction]:
        """The functions of a kernel, to be called in this order; emitted on first use."""
        key = (id(kernel), tuple(merged.items()))
        found = self.kernels.get(key)
        if found is None:
            suffix = f".{len(self.kernels)}" if kernel.name in self.emitted else ""
            self.emitted.add(kernel.name)
            found = self.kernels[key] = [self._piece(piece, merged, f"{piece.kernel.name}{suffix}") for piece in pieces(kernel, merged)]
        return found

    def _piece(self, piece: Piece, merged: Mapping[Buffer, Buffer], name: str) -> _KernelFunction:
        kernel, cut = piece
        self.scalars.count = 0
        inner = name if cut is None else f"{name}.range"
        made = kernel_to_llvm(kernel, self.scalars, merged=merged, name=inner, may_poll=cut is None or cut.work > POLL_WORK)
        buffers = [buffer for buffer in kernel.buffers if buffer not in merged]
        if cut is None:
            work = 0 if made.polls else statements_work(kernel.body)
            shown = tuple([start for buffer, start in zip(kernel.buffers, made.starts, strict=True) if buffer not in merged])
            return _KernelFunction(self.function(_inlined(made.text), name), tuple(buffers), shown, made.words, made.polls, work)
        around = parallel_text(name, kernel, self.function(made.text, inner), made, buffers, cut)
        self.declares.update(dict.fromkeys(around.declares))
        self.texts.append(around.text)
        work = 0 if around.status else upper(cut.extent) * cut.work
        return _KernelFunction(name, around.buffers, around.starts, around.words, around.status, work)

    def fill(self, type_: TensorType, number: int | float) -> Kernel:
        """The kernel that fills an array with one number."""
        key = (type_, repr(number))
        found = self.fills.get(key)
        if found is None:
            buffer = Buffer("x", type_.dtype, type_.shape, OUTPUT)
            kernel = Kernel(f"fill{len(self.fills)}", [buffer], [Fill(buffer, const(number, type_.dtype))])
            found = self.fills[key] = split_complex(kernel)
        return found

    def text(self) -> str:
        parts = list(self.texts)
        if self.scalars.math:
            functions, intrinsics = math_text(self.scalars.math, self.texts, self.target)
            parts.append(functions)
            self.declares.update(dict.fromkeys(intrinsics))
        self.declares.update(self.scalars.declares)
        attributes = self.target.function_attributes
        parts += [*_distinct(self.declares), f"attributes #0 = {{ {attributes} }}", f"attributes #1 = {{ noinline {attributes} }}",
                  f"attributes #2 = {{ alwaysinline {attributes} }}", ""]
        return "\n".join(parts)


class _Calls:
    """The calls of one graph's steps: of the program, or of the body of a loop or branch inside of it.

    indices  those of the enclosing loops.
    total    operations of all calls.
    """

    def __init__(self, module: _Module, lowered: LoweredBody, indices: tuple[Index, ...]) -> None:
        self.module = module
        self.graph = lowered.graph
        self.steps = lowered.steps
        self.plan = lowered.plan
        self.into = lowered.into
        self.indices = indices
        self.libraries = module.libraries
        self.declares = module.declares
        self.calls: list[FunctionCall] = []
        self.total = 0
        self.work = 0                  # operations since the last poll for signals

    def emit(self) -> None:
        for value, offset in self.plan.saved:
            self._copy(value, Pointer(Location("arena", offset)), value.type.nbytes)
        for position, step in enumerate(self.steps):
            if step.kernel is not None:
                self._kernel(position, step, step.kernel)
            elif step.bodies:
                self._region(position, step)
            elif step.value is not None:
                self._call(step.value, step.operands)
        saved = {value: Pointer(Location("arena", offset)) for value, offset in self.plan.saved}
        for value, number in self.plan.copies:
            self._copy(value, Pointer(Location("result", number)), value.type.nbytes, saved.get(value))

    def pointer(self, value: Value) -> Pointer:
        return Pointer(self.plan.locations[root(value)])

    # ----- steps
    def _kernel(self, position: int, step: LoweredStep, kernel: Kernel) -> None:
        self._copy_updated(step)
        told = dict(zip(kernel.words, step.words, strict=True))
        indices = {word: value for word, value in told.items() if isinstance(word, Index) and isinstance(value, int | Affine)}
        scratch = iter(self.plan.scratch[position])
        places = {buffer: Location("arena", next(scratch)) if owner is None else self.plan.locations[root(owner)]
                  for buffer, owner in zip(kernel.buffers, step.owners, strict=True)}
        for function in self.module.kernel(kernel, self._merged(step, kernel)):
            arguments = [Pointer(places[buffer], substitute(start, indices) * buffer.dtype.itemsize)
                         for buffer, start in zip(function.buffers, function.starts, strict=True)]
            words = [Told(told[word]) if isinstance(word, Index) else Told(told[word], word.dtype) for word in function.words]
            self._append(FunctionCall(function.name, tuple(arguments), tuple(words), function.polls), function.work)

    def _copy_updated(self, step: LoweredStep) -> None:
        for operand, result, _ in step.updates:
            if result not in self.plan.in_place:
                self._copy(operand, self.pointer(result), result.type.nbytes)

    def _region(self, position: int, step: LoweredStep) -> None:
        """A loop or branch: its bodies become functions, called by a function that iterates or branches."""
        self._copy_updated(step)
        for item, number in step.fills:
            self._fill(item, number)
        assert step.value is not None
        memory, *others = [Pointer(Location("arena", offset)) for offset in self.plan.scratch[position]]
        bodies = [self._body(body) for body in step.bodies]
        name = self.module.new_name(step.value.op.name)
        made = region_text(name, step.value, step.bodies, bodies, self.indices)
        self.declares.update(dict.fromkeys(made.declares))
        results = [self.pointer(item) for item in step.items]
        operands = [self.pointer(operand) for operand in step.value.operands[made.carried:]]
        arguments = (Pointer(RECORD), memory, *results, *others, *operands)
        words = tuple([Told(index.extent()) for index in self.indices])
        self._append(FunctionCall(self.module.function(made.text, name), arguments, words, True), made.work)

    def _fill(self, value: Value, number: int | float) -> None:
        for function in self.module.kernel(self.module.fill(value.type, number), {}):
            arguments = tuple([self.pointer(value) for _ in function.buffers])
            self._append(FunctionCall(function.name, arguments, (), function.polls), function.work)

    def _body(self, body: LoweredBody) -> BodyFunction:
        found = self.module.bodies.get((id(body), self.indices))
        if found is None:
            graph = body.graph
            indices = self.indices if graph.index is None else (*self.indices, graph.index)
            inner = _Calls(self.module, body, indices)
            inner.emit()
            name = self.module.new_name("body")
            text = body_text(name, Slots(len(graph.inputs), len(graph.outputs), indices), inner.calls, self.module.texts)
            found = self.module.bodies[id(body), self.indices] = BodyFunction(self.module.function(text, name), inner.total)
        return found

    def _append(self, call: FunctionCall, work: int) -> None:
        """Add a call that takes `work` operations, after a poll for signals if there were many since the last one."""
        self.work += work
        self.total += work
        if self.work > POLL_WORK and self.calls:
            self.calls.append(FunctionCall(POLL, (), (), True))
            self.declares[DECLARE_POLL] = None
            self.work = work
        self.calls.append(call)

    def _merged(self, step: LoweredStep, kernel: Kernel) -> dict[Buffer, Buffer]:
        """Inputs of the kernel that share the memory of one of its outputs."""
        buffer_of = {owner: buffer for owner, buffer in zip(step.owners, kernel.buffers, strict=True) if owner is not None}
        held = {self.graph.inputs[number]: Location("result", result) for result, number in enumerate(self.into) if number is not None}
        places = self.plan.locations
        return {buffer_of[source]: buffer_of[target] for source, target in step.sharing
                if held.get(source, places[source]) == places[target]}

    def _copy(self, value: Value, target: Pointer, size: int, source: Pointer | None = None) -> None:
        self.declares["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
        source = source or self.pointer(value)
        for start in range(0, size, COPY_BYTES):
            name, count = self.module.new_name("copy"), min(COPY_BYTES, size - start)
            places = (Pointer(source.location, source.bytes + start), Pointer(target.location, target.bytes + start))
            self._append(FunctionCall(self.module.function(copy_text(name, count), name), places), count * POLL_WORK // COPY_BYTES)

    def _call(self, value: Value, operands: Sequence[ArrayView]) -> None:
        if value.op in ops.PRODUCTS:
            self._product(value, operands[:2])                     # the third operand of matmul_add is updated in place
        elif value.op is ops.normalize_index:
            name = self.module.new_name("check")
            self.declares[DECLARE_LAST] = None
            count, extent = Told(_element_count(value)), value.attrs["extent"]
            words = (count,) if isinstance(extent, int) else (count, Told(extent))
            self._checked(value, operands, check_index_text(name, value), name, words)
        elif value.op is ops.check_range:
            name = self.module.new_name("check")
            self._checked(value, operands, check_range_text(name, value.attrs["extent"]), name)
        else:
            self._library(value, operands)

    def _pointers(self, value: Value, operands: Sequence[ArrayView]) -> tuple[Pointer, ...]:
        """Pointers to the operands, then the result."""
        begins = [Pointer(self.plan.locations[view.base], view.offset * view.base.dtype.itemsize) for view in operands]
        return (*begins, self.pointer(value))

    def _library(self, value: Value, operands: Sequence[ArrayView]) -> None:
        """A library op: by its routine, or by a callback."""
        if isinstance(value.type, TensorType) and not value.type.size:
            return
        _require_fixed_shapes(value)
        name = self.module.new_name("call")
        made = library_call_text(name, value, operands, self.libraries)
        if made is None:
            self._callback(value, operands)
            return
        self.declares.update(dict.fromkeys(made.declares))
        if made.fallible:
            self._checked(value, operands, made.text, name)
            return
        self._append(FunctionCall(self.module.function(made.text, name), self._pointers(value, operands)), _library_work(value))

    def _checked(self, value: Value, operands: Sequence[ArrayView], text: str, name: str, words: tuple[Told, ...] = ()) -> None:
        """A function that may fail: it gets the error record and the number of this check."""
        arguments = (*self._pointers(value, operands), Pointer(RECORD))
        number = Told(len(self.module.checked))
        self._append(FunctionCall(self.module.function(text, name), arguments, (number, *words), True), _library_work(value))
        self.module.checked.append(value)

    def _product(self, value: Value, operands: Sequence[ArrayView]) -> None:
        name = self.module.new_name("gemm")
        text, declares, words, status = product_text(name, value, operands)
        self.declares.update(dict.fromkeys(declares))
        work = 0 if status else product_work(value.type.size, upper(value.operands[0].shape[-1]))
        told = tuple([Told(extent) for extent in words])
        self._append(FunctionCall(self.module.function(text, name), self._pointers(value, operands), told, status), work)

    def _callback(self, value: Value, operands: Sequence[ArrayView]) -> None:
        symbol = f"bw_callback_{len(self.module.callbacks)}"
        self.module.callbacks.append(Callback(symbol, value, tuple([view.strides for view in operands])))
        self.declares[f"declare i32 @{symbol}(ptr)"] = None
        arguments = self._pointers(value, operands)
        name = self.module.new_name("callback")
        lines = [f"define internal i32 @{name}({', '.join(f'ptr %p{k}' for k in range(len(arguments)))}) #1 {{",
                 f"  %block = alloca [{len(arguments)} x ptr]"]
        for k in range(len(arguments)):
            lines += [f"  %at{k} = getelementptr ptr, ptr %block, i64 {k}", f"  store ptr %p{k}, ptr %at{k}"]
        lines += [f"  %done = call i32 @{symbol}(ptr %block)", f"  %ok = icmp eq i32 %done, {CALLBACK_DONE}",
                  f"  %status = select i1 %ok, i32 0, i32 {CALLBACK_ERROR}", "  ret i32 %status", "}", ""]
        self.module.texts.append("\n".join(lines))
        self._append(FunctionCall(name, arguments, (), True), 0)


def _inlined(text: str) -> str:
    """The text of a kernel; a short one without loops is marked alwaysinline, so that values passed between the steps of a loop over
    elements stay in registers."""
    few = text.count("\n") <= FEW_LINES and "\nentry:" in text and " br " not in text
    return text.replace(") #1 {", ") #2 {", 1) if few else text


def _library_work(value: Value) -> int:
    """A rough number of operations of a library call: number of operand elements times the length of a row."""
    types = [operand.type for operand in value.operands]
    return sum(type_.size * (upper(type_.shape[-1]) if type_.shape else 1) for type_ in types)


def _element_count(value: Value) -> Extent:
    """The number of elements, which lie side by side."""
    _require_fixed_shapes(value, first=1)
    return scale_extent(value.shape[0], element_count(value.shape[1:])) if value.shape else 1


def _require_fixed_shapes(value: Value, first: int = 0) -> None:
    """Raise where a shape moves with the index of a loop, from axis `first` on."""
    for operand in (value, *value.operands):
        if isinstance(operand.type, TensorType) and not all(isinstance(extent, int) for extent in operand.shape[first:]):
            raise CompileError(at(value.source, f"{value.op.name} of {operand.type}, whose shape moves with the index of a loop, is not "
                                  "compiled yet\n  hint: give it one shape for all iterations and mask the rest, or unroll the loop "
                                  "(a Python loop over a range of known length)"))


def _distinct(declares: dict[str, None]) -> list[str]:
    """One declaration per external function or datum, even if parameters are spelled differently."""
    seen: dict[str, str] = {}
    for line in declares:
        seen.setdefault(line[line.index("@"):].partition("(")[0].partition(" ")[0], line)
    return list(seen.values())
