"""A fused graph and its memory plan -> one LLVM module: functions, and `bw_program`, which calls them in order.

Every step becomes a call of a function with pointers and words (scalar parameters); functions with equal text are emitted once.  The
body of a loop, or a branch, is a function of the same form (`calls.py`); another function iterates or branches and calls it
(`regions.py`).  Ops without native lowering become callbacks: calls out of the program into the op's NumPy reference (`Callback`,
bound by the runtime).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.errors import CompileError, at
from bwcompiler.ir.access import ArrayView, root
from bwcompiler.ir.contracts.memory import Location, MemoryPlan
from bwcompiler.ir.contracts.program_interface import CALLBACK_DONE, CALLBACK_ERROR, DECLARE_POLL, POLL
from bwcompiler.ir.extent import Affine, Extent, Index, element_count, scale_extent, substitute, upper
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop import Kernel
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TensorType
from bwcompiler.lowering.calls import RECORD, FunctionCall, Pointer, Slots, Told, body_text, parts_text, program_text, repeats
from bwcompiler.lowering.libraries.index_checks import DECLARE_LAST, check_index_text, check_range_text
from bwcompiler.lowering.libraries.library_calls import library_call_text
from bwcompiler.lowering.libraries.matrix_products import product_text
from bwcompiler.lowering.module import Callback, Module, merged_buffers
from bwcompiler.lowering.module_parts import consecutive_shares, symbols_in
from bwcompiler.lowering.polls import COPY_BYTES, POLL_WORK, product_work
from bwcompiler.lowering.regions import BodyFunction, RegionFunction, region_text
from bwcompiler.lowering.steps import LoweredBody, LoweredStep

PROGRAM = "bw_program"
_OWN = " = internal constant "  # data that a program defines itself
ELEMENT_BYTES = 16             # size of the largest element


class ProgramText(NamedTuple):
    """The LLVM text of a program, its external symbols, the values whose computation may fail, and the number of distinct kernels.

    symbols: all declared functions, of libraries, the thread pool and the runtime (`POLL`), including LLVM's intrinsics.
    """

    text: str
    callbacks: list[Callback]
    checked: list[Value]
    kernels: int
    symbols: frozenset[str]


def emit_llvm(graph: Graph, steps: Sequence[LoweredStep], plan: MemoryPlan, module: Module, into: Sequence[int | None] = ()) -> ProgramText:
    """The LLVM text of a program.  The module may have the functions of its loops and branches already (`region_function`)."""
    calls = _Calls(module, LoweredBody(graph, steps, plan, tuple(into)), ())
    calls.emit()
    distinct = len(module.texts)
    slots = Slots(len(graph.inputs), len(graph.outputs))
    is_table = repeats(calls.calls)                # which names each function once
    sizes = [0 if is_table else module.inlined.get(call.function, 0) for call in calls.calls]
    parts = consecutive_shares(calls.calls, sizes)
    names = [PROGRAM] if len(parts) == 1 else [f"{PROGRAM}.part{number}" for number in range(len(parts))]
    for name, part in zip(names, parts, strict=True):
        module.texts.append(program_text(name, slots, part, module.texts))
    if len(parts) > 1:
        module.texts.append(parts_text(PROGRAM, names))
    module.hand_over(is_end=True)
    symbols = frozenset([name for line in module.declared() if _OWN not in line for name in symbols_in(line)])
    return ProgramText(module.text(), module.callbacks, module.checked, distinct, symbols)


def region_function(module: Module, value: Value, bodies: Sequence[LoweredBody], indices: tuple[Index, ...]) -> RegionFunction:
    """The function of a loop or branch inside of the loops with these indices, which calls the functions of its bodies."""
    found = module.regions.get((value, indices))
    if found is None:
        functions = [_body_function(module, body, indices) for body in bodies]
        name = module.new_name(value.op.name)
        made = region_text(name, value, bodies, functions, indices)
        module.declares.update(dict.fromkeys(made.declares))
        found = module.regions[value, indices] = RegionFunction(module.function(made.text, name), made.carried, made.work)
        module.hand_over()
    return found


def _body_function(module: Module, body: LoweredBody, around: tuple[Index, ...]) -> BodyFunction:
    found = module.bodies.get((id(body), around))
    if found is None:
        graph = body.graph
        indices = around if graph.index is None else (*around, graph.index)
        inner = _Calls(module, body, indices)
        inner.emit()
        name = module.new_name("body")
        text = body_text(name, Slots(len(graph.inputs), len(graph.outputs), indices), inner.calls, module.texts)
        found = module.bodies[id(body), around] = BodyFunction(module.function(text, name), inner.total)
    return found


class _Calls:
    """The calls of one graph's steps: of the program, or of the body of a loop or branch inside of it.

    indices  those of the enclosing loops.
    total    operations of all calls.
    """

    def __init__(self, module: Module, lowered: LoweredBody, indices: tuple[Index, ...]) -> None:
        self.module = module
        self.lowered = lowered
        self.graph = lowered.graph
        self.steps = lowered.steps
        self.plan = lowered.plan
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
        for function in self.module.kernel(kernel, merged_buffers(self.lowered, step, kernel)):
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
        made = region_function(self.module, step.value, step.bodies, self.indices)
        results = [self.pointer(item) for item in step.items]
        operands = [self.pointer(operand) for operand in step.value.operands[made.carried:]]
        arguments = (Pointer(RECORD), memory, *results, *others, *operands)
        words = tuple([Told(index.extent()) for index in self.indices])
        self._append(FunctionCall(made.name, arguments, words, True), made.work)

    def _fill(self, value: Value, number: int | float) -> None:
        for function in self.module.kernel(self.module.fill(value.type, number), {}):
            arguments = tuple([self.pointer(value) for _ in function.buffers])
            self._append(FunctionCall(function.name, arguments, (), function.polls), function.work)

    def _append(self, call: FunctionCall, work: int) -> None:
        """Add a call that takes `work` operations, after a poll for signals if there were many since the last one."""
        self.work += work
        self.total += work
        if self.work > POLL_WORK and self.calls:
            self.calls.append(FunctionCall(POLL, (), (), True))
            self.declares[DECLARE_POLL] = None
            self.work = work
        self.calls.append(call)

    def _copy(self, value: Value, target: Pointer, size: int, source: Pointer | None = None) -> None:
        self.declares["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
        source = source or self.pointer(value)
        for start in range(0, size, COPY_BYTES):
            name, count = self.module.new_name("copy"), min(COPY_BYTES, size - start)
            places = (Pointer(source.location, source.bytes + start), Pointer(target.location, target.bytes + start))
            self._append(FunctionCall(self.module.function(_copy_text(name, count), name), places), count * POLL_WORK // COPY_BYTES)

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


def _copy_text(name: str, size: int) -> str:
    """`void name(source, target)`: copy `size` bytes; inlined for a single element."""
    return f"""define internal void @{name}(ptr %source, ptr %target) #{2 if size <= ELEMENT_BYTES else 1} {{
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 {size}, i1 false)
  ret void
}}
"""


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
