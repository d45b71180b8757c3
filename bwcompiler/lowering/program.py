"""A fused graph and its memory plan -> one LLVM module: functions, and `bw_program`, which calls them in order.

Every step becomes a call of a function with pointer parameters; functions of equal text are emitted once.  A short
program is a sequence of calls; a long one (an unrolled loop) is a table of calls that one loop walks, so that code size
and compile time depend on the distinct functions only.  What has no native lowering becomes a callback: a call out of the
program into the op's NumPy reference (`Callback`, bound by the runtime).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bwcompiler.errors import CompileError
from bwcompiler.ir.access import ArrayView, root
from bwcompiler.ir.extent import Extent, Index, evaluate
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop import Buffer, Kernel
from bwcompiler.ir.memory import Location, MemoryPlan
from bwcompiler.ir.op import Value
from bwcompiler.ir.plan import ERROR_RECORD_BYTES
from bwcompiler.ir.scalar import Word
from bwcompiler.ir.types import I64, DType, TensorType
from bwcompiler.lowering import vector_hints
from bwcompiler.lowering.factorization_calls import library_call_text
from bwcompiler.lowering.library_calls import CALLBACK_DONE, CALLBACK_ERROR, Libraries, check_index_text, copy_text
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, literal, register_type
from bwcompiler.lowering.loops_to_llvm import kernel_to_llvm
from bwcompiler.lowering.math.functions import definitions, intrinsics
from bwcompiler.lowering.matrix_products import product_text
from bwcompiler.lowering.polls import COPY_BYTES, DECLARE_POLL, POLL, POLL_WORK, product_work, statements_work
from bwcompiler.lowering.steps import LoweredStep
from bwcompiler.target import Target

TABLE_CALLS = 48               # programs with more calls than this walk a table


class Callback(NamedTuple):
    """A value computed by its op's NumPy reference: the symbol the program calls, with pointers to operands and results.

    operands   where the operands are in the arrays that the pointers are to.
    """

    symbol: str
    value: Value
    operands: tuple[ArrayView, ...]


class ProgramText(NamedTuple):
    """LLVM text of a program; what it calls outside; the values whose computation may fail; how many distinct functions it has.

    polls: whether it looks for signals, by calling `polls.POLL`.
    """

    text: str
    callbacks: list[Callback]
    checked: list[Value]
    kernels: int
    polls: bool


class Pointer(NamedTuple):
    """An address some bytes into the memory of a value."""

    location: Location
    bytes: int = 0


class FunctionCall(NamedTuple):
    """One call of the program: where its pointers point, the words that follow them, whether it returns a status."""

    function: str
    arguments: tuple[Pointer, ...]
    words: tuple[Constant, ...] = ()
    status: bool = False


class Constant(NamedTuple):
    """A number that a function is called with."""

    value: int | float
    dtype: DType = I64

    @property
    def text(self) -> str:
        return f"{register_type(self.dtype)} {literal(self.value, self.dtype)}"

    @property
    def bits(self) -> int:
        """As a row of a table has it: the bits of a float, an integer as it is."""
        if not self.dtype.is_float:
            return int(self.value)
        return int(np.asarray(self.value, self.dtype.numpy).view(f"i{self.dtype.itemsize}"))


class _KernelFunction(NamedTuple):
    """What a kernel has become: the function, and which of its buffers and words it gets.

    starts: per pointer the element it points at, in the kernel's words.
    """

    name: str
    buffers: tuple[Buffer, ...]
    starts: tuple[Extent, ...]
    words: tuple[Index | Word, ...]
    polls: bool
    work: int


_RECORD = Pointer(Location("record", 0))


class ProgramEmitter:
    """Emits the module of one program."""

    def __init__(self, graph: Graph, steps: Sequence[LoweredStep], plan: MemoryPlan, libraries: Libraries,
                 target: Target, into: Sequence[int | None] = ()) -> None:
        self.into = into
        self.graph = graph
        self.steps = steps
        self.plan = plan
        self.libraries = libraries
        self.target = target
        self.scalars = ScalarEmitter(target)
        self.functions: dict[str, str] = {}
        self.texts: list[str] = []
        self.calls: list[FunctionCall] = []
        self.callbacks: list[Callback] = []
        self.declares: dict[str, None] = {}
        self.checked: list[Value] = []
        self.kernels: dict[tuple[int, tuple[tuple[Buffer, Buffer], ...]], _KernelFunction] = {}
        self.work = 0                  # operations since the last look for signals

    def emit(self) -> ProgramText:
        require_lowerable(self.graph)
        for value, offset in self.plan.saved:
            self._copy(value, Pointer(Location("arena", offset)), value.type.nbytes)
        for position, step in enumerate(self.steps):
            if step.kernel is not None:
                self._kernel(position, step, step.kernel)
            elif step.value is not None:
                self._call(step.value, step.operands)
        saved = {value: Pointer(Location("arena", offset)) for value, offset in self.plan.saved}
        for value, number in self.plan.copies:
            self._copy(value, Pointer(Location("result", number)), value.type.nbytes, saved.get(value))
        distinct = len(self.texts)
        body = _table_program(self) if len(self.calls) > TABLE_CALLS else _straight_program(self)
        math = list(self.scalars.math)
        parts = [*self.texts, body]
        if math:
            parts.append(definitions(math, self.target.has_fma))
            self.declares.update(dict.fromkeys(intrinsics(math, self.target.has_fma)))
        self.declares.update(self.scalars.declares)
        attributes = self.target.function_attributes
        parts += [*_distinct(self.declares), f"attributes #0 = {{ {attributes} }}",
                  f"attributes #1 = {{ noinline {attributes} }}", vector_hints.METADATA, ""]
        return ProgramText("\n".join(parts), self.callbacks, self.checked, distinct, DECLARE_POLL in self.declares)

    def pointer(self, value: Value) -> Pointer:
        return Pointer(self.plan.locations[root(value)])

    def slot(self, pointer: Pointer) -> tuple[int, int]:
        """(position among buffers with the arena last, byte offset) of a pointer."""
        kind, number = pointer.location
        if kind == "argument":
            return number, pointer.bytes
        if kind == "result":
            return len(self.graph.inputs) + number, pointer.bytes
        return self.slots - 1, pointer.bytes if kind == "record" else ERROR_RECORD_BYTES + number + pointer.bytes

    @property
    def slots(self) -> int:
        return len(self.graph.inputs) + len(self.graph.outputs) + 1

    # ----- steps
    def _kernel(self, position: int, step: LoweredStep, kernel: Kernel) -> None:
        for operand, result, _ in step.updates:
            if result not in self.plan.in_place:
                self._copy(operand, self.pointer(result), result.type.nbytes)
        function = self._kernel_function(kernel, self._merged(step, kernel))
        told = dict(zip(kernel.words, step.words, strict=True))
        indices = {word: value for word, value in told.items() if isinstance(word, Index)}
        scratch = iter(self.plan.scratch[position])
        places = {buffer: Location("arena", next(scratch)) if owner is None else self.plan.locations[root(owner)]
                  for buffer, owner in zip(kernel.buffers, step.owners, strict=True)}
        arguments = [Pointer(places[buffer], evaluate(start, indices) * buffer.dtype.itemsize)
                     for buffer, start in zip(function.buffers, function.starts, strict=True)]
        words = [Constant(told[word]) if isinstance(word, Index) else Constant(told[word], word.dtype) for word in function.words]
        self._append(FunctionCall(function.name, tuple(arguments), tuple(words), function.polls), function.work)

    def _kernel_function(self, kernel: Kernel, merged: Mapping[Buffer, Buffer]) -> _KernelFunction:
        """The function of a kernel, emitted when it is asked for first."""
        key = (id(kernel), tuple(merged.items()))
        found = self.kernels.get(key)
        if found is None:
            self.scalars.count = 0
            name = kernel.name if (id(kernel), ()) not in self.kernels else f"{kernel.name}.{len(self.kernels)}"
            text, starts, words, polls = kernel_to_llvm(kernel, self.scalars, merged=merged, name=name)
            buffers = tuple([buffer for buffer in kernel.buffers if buffer not in merged])
            shown = tuple([start for buffer, start in zip(kernel.buffers, starts, strict=True) if buffer not in merged])
            work = 0 if polls else statements_work(kernel.body)
            found = self.kernels[key] = _KernelFunction(self._function(text, name), buffers, shown, words, polls, work)
        return found

    def _append(self, call: FunctionCall, work: int) -> None:
        """Add a call of so many operations, after a look for signals if there were many since the last one."""
        self.work += work
        if self.work > POLL_WORK and self.calls:
            self.calls.append(FunctionCall(POLL, (), (), True))
            self.declares[DECLARE_POLL] = None
            self.work = work
        self.calls.append(call)

    def _merged(self, step: LoweredStep, kernel: Kernel) -> dict[Buffer, Buffer]:
        """Inputs of the kernel that are the memory of one of its outputs."""
        buffer_of = {owner: buffer for owner, buffer in zip(step.owners, kernel.buffers, strict=True) if owner is not None}
        held = {self.graph.inputs[number]: result for result, number in enumerate(self.into) if number is not None}
        return {buffer_of[source]: buffer_of[target] for source, target in step.sharing
                if self.plan.locations[target] == Location("result", held[source])}

    def _function(self, text: str, name: str) -> str:
        """The name of the function with this text (which names it `name`); equal functions share one."""
        body = text.replace(f"@{name}(", "@(", 1)
        found = self.functions.get(body)
        if found is None:
            found = self.functions[body] = name
            self.texts.append(text)
        return found

    def _new_name(self, kind: str) -> str:
        return f"{kind}{len(self.texts)}"

    def _copy(self, value: Value, target: Pointer, size: int, source: Pointer | None = None) -> None:
        self.declares["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
        source = source or self.pointer(value)
        for start in range(0, size, COPY_BYTES):
            name, count = self._new_name("copy"), min(COPY_BYTES, size - start)
            places = (Pointer(source.location, source.bytes + start), Pointer(target.location, target.bytes + start))
            self._append(FunctionCall(self._function(copy_text(name, count), name), places), count * POLL_WORK // COPY_BYTES)

    def _call(self, value: Value, operands: Sequence[ArrayView]) -> None:
        if value.op.name == "matmul":
            self._gemm(value, operands)
        elif value.op.name == "normalize_index":
            name = self._new_name("check")
            self._checked(value, operands, check_index_text(name, value), name)
        else:
            self._library(value, operands)

    def _library(self, value: Value, operands: Sequence[ArrayView]) -> None:
        """A library op: by its routine, or by a callback."""
        if isinstance(value.type, TensorType) and not value.type.size:
            return
        name = self._new_name("call")
        made = library_call_text(name, value, operands, self.libraries)
        if made is None:
            self._callback(value, operands)
            return
        self.declares.update(dict.fromkeys(made.declares))
        if made.fallible:
            self._checked(value, operands, made.text, name)
            return
        arguments = (*[self.pointer(view.base) for view in operands], self.pointer(value))
        self._append(FunctionCall(self._function(made.text, name), arguments), _library_work(value))

    def _checked(self, value: Value, operands: Sequence[ArrayView], text: str, name: str) -> None:
        """A function that may fail: it gets the error record and the number of this check."""
        arguments = (*[self.pointer(view.base) for view in operands], self.pointer(value), _RECORD)
        number = Constant(len(self.checked))
        self._append(FunctionCall(self._function(text, name), arguments, (number,), True), _library_work(value))
        self.checked.append(value)

    def _gemm(self, value: Value, operands: Sequence[ArrayView]) -> None:
        name = self._new_name("gemm")
        text, declare = product_text(name, value, operands, self.libraries)
        if declare:
            self.declares[declare] = None
        arguments = (*[self.pointer(view.base) for view in operands], self.pointer(value))
        work = product_work(value.type.size, value.operands[0].shape[-1])
        self._append(FunctionCall(self._function(text, name), arguments), work)

    def _callback(self, value: Value, operands: Sequence[ArrayView]) -> None:
        symbol = f"bw_callback_{len(self.callbacks)}"
        self.callbacks.append(Callback(symbol, value, tuple(operands)))
        self.declares[f"declare i32 @{symbol}(ptr)"] = None
        arguments = (*[self.pointer(view.base) for view in operands], self.pointer(value))
        name = self._new_name("callback")
        lines = [f"define internal i32 @{name}({', '.join(f'ptr %p{k}' for k in range(len(arguments)))}) #1 {{",
                 f"  %block = alloca [{len(arguments)} x ptr]"]
        for k in range(len(arguments)):
            lines += [f"  %at{k} = getelementptr ptr, ptr %block, i64 {k}", f"  store ptr %p{k}, ptr %at{k}"]
        lines += [f"  %done = call i32 @{symbol}(ptr %block)", f"  %ok = icmp eq i32 %done, {CALLBACK_DONE}",
                  f"  %status = select i1 %ok, i32 0, i32 {CALLBACK_ERROR}", "  ret i32 %status", "}", ""]
        self.texts.append("\n".join(lines))
        self._append(FunctionCall(name, arguments, (), True), 0)


def _library_work(value: Value) -> int:
    """Operations of a library call, roughly: every element of the operands meets a row."""
    types = [operand.type for operand in value.operands]
    return sum(type_.size * (type_.shape[-1] if type_.shape else 1) for type_ in types)


def _straight_program(emitter: ProgramEmitter) -> str:
    """bw_program as a sequence of calls."""
    lines = ["define i32 @bw_program(ptr %buffers, ptr %arena) #0 {", "entry:"]
    registers: dict[Pointer, str] = {}

    def register(pointer: Pointer) -> str:
        found = registers.get(pointer)
        if found is None:
            kind, number = pointer.location
            slot, offset = emitter.slot(pointer)
            if slot == emitter.slots - 1:
                found = f"%{kind}{number}.{pointer.bytes}"
                lines.append(f"  {found} = getelementptr i8, ptr %arena, i64 {offset}")
            elif pointer.bytes:
                found = f"%{kind}{number}.{pointer.bytes}"
                lines.append(f"  {found} = getelementptr i8, ptr {register(Pointer(pointer.location))}, i64 {offset}")
            else:
                found = f"%{kind}{number}"
                lines.extend([f"  {found}.slot = getelementptr ptr, ptr %buffers, i64 {slot}", f"  {found} = load ptr, ptr {found}.slot"])
            registers[pointer] = found
        return found

    for number, call in enumerate(emitter.calls):
        arguments = [f"ptr {register(pointer)}" for pointer in call.arguments]
        arguments += [word.text for word in call.words]
        if not call.status:
            lines.append(f"  call void @{call.function}({', '.join(arguments)})")
            continue
        lines += [f"  %status{number} = call i32 @{call.function}({', '.join(arguments)})",
                  f"  %bad{number} = icmp ne i32 %status{number}, 0", f"  br i1 %bad{number}, label %leave{number}, label %go{number}",
                  f"leave{number}:", f"  ret i32 %status{number}", f"go{number}:"]
    return "\n".join([*lines, "  ret i32 0", "}", ""])


def _table_program(emitter: ProgramEmitter) -> str:
    """bw_program as a loop over rows {length of the row, function, (slot, offset) per pointer, words}."""
    wrappers: dict[str, int] = {}
    texts: list[str] = []
    words: list[int] = []
    for call in emitter.calls:
        if call.function not in wrappers:
            wrappers[call.function] = len(wrappers)
            texts.append(_wrapper(call))
        places = [word for pointer in call.arguments for word in emitter.slot(pointer)]
        told = [word.bits for word in call.words]
        words += [2 + len(places) + len(told), wrappers[call.function], *places, *told]
    slots = emitter.slots
    names = ", ".join(f"ptr @{name}.row" for name in wrappers)
    emitter.declares["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
    return "\n".join([*texts, f"@bw_functions = private constant [{len(wrappers)} x ptr] [{names}]",
                      f"@bw_table = private constant [{len(words)} x i64] [{', '.join(f'i64 {word}' for word in words)}]",
                      _WALK.format(slots=slots, bytes=8 * (slots - 1), last=slots - 1, words=len(words))])


def _wrapper(call: FunctionCall) -> str:
    """The function with its pointers read from a row of the table."""
    lines = [f"define internal i32 @{call.function}.row(ptr %bases, ptr %row) #1 {{"]
    arguments = []
    for k in range(len(call.arguments)):
        lines += [f"  %s{k}.at = getelementptr i64, ptr %row, i64 {2 + 2 * k}", f"  %s{k} = load i64, ptr %s{k}.at",
                  f"  %o{k}.at = getelementptr i64, ptr %row, i64 {3 + 2 * k}", f"  %o{k} = load i64, ptr %o{k}.at",
                  f"  %b{k}.at = getelementptr ptr, ptr %bases, i64 %s{k}", f"  %b{k} = load ptr, ptr %b{k}.at",
                  f"  %p{k} = getelementptr i8, ptr %b{k}, i64 %o{k}"]
        arguments.append(f"ptr %p{k}")
    for k, word in enumerate(call.words):
        type_ = register_type(word.dtype)                  # in memory in the low bytes of its 8
        place = 2 + 2 * len(call.arguments) + k
        lines += [f"  %w{k}.at = getelementptr i64, ptr %row, i64 {place}", f"  %w{k} = load {type_}, ptr %w{k}.at"]
        arguments.append(f"{type_} %w{k}")
    if call.status:
        lines += [f"  %status = call i32 @{call.function}({', '.join(arguments)})", "  ret i32 %status"]
    else:
        lines += [f"  call void @{call.function}({', '.join(arguments)})", "  ret i32 0"]
    return "\n".join([*lines, "}", ""])


_WALK = """define i32 @bw_program(ptr %buffers, ptr %arena) #0 {{
entry:
  %bases = alloca [{slots} x ptr]
  call void @llvm.memcpy.p0.p0.i64(ptr %bases, ptr %buffers, i64 {bytes}, i1 false)
  %last = getelementptr ptr, ptr %bases, i64 {last}
  store ptr %arena, ptr %last
  br label %head
head:
  %at = phi i64 [ 0, %entry ], [ %next, %go ]
  %more = icmp slt i64 %at, {words}
  br i1 %more, label %body, label %done
body:
  %row = getelementptr i64, ptr @bw_table, i64 %at
  %length = load i64, ptr %row
  %which.at = getelementptr i64, ptr %row, i64 1
  %which = load i64, ptr %which.at
  %function.at = getelementptr ptr, ptr @bw_functions, i64 %which
  %function = load ptr, ptr %function.at
  %status = call i32 %function(ptr %bases, ptr %row)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %leave, label %go
leave:
  ret i32 %status
go:
  %next = add i64 %at, %length
  br label %head
done:
  ret i32 0
}}
"""


def _distinct(declares: dict[str, None]) -> list[str]:
    """Each function and each outside datum declared once, whatever the spelling of its parameters."""
    seen: dict[str, str] = {}
    for line in declares:
        seen.setdefault(line[line.index("@"):].partition("(")[0].partition(" ")[0], line)
    return list(seen.values())


def require_lowerable(graph: Graph) -> None:
    """Raise where the graph has something no step can run."""
    for value in graph.body:
        if value.op.kind == "region":
            raise CompileError(f"{value.op.name} is not lowered to native code yet")
