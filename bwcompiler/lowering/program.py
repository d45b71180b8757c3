"""A fused graph and its memory plan -> one LLVM module: kernels, and `bw_program`, which runs them in order.

Kernels that are the same text are emitted once.  What has no native lowering becomes a callback: a call out of the
program into the op's NumPy reference (`Callback`, bound by the runtime).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bwcompiler.errors import CompileError
from bwcompiler.ir.access import root, transposed_matrix
from bwcompiler.ir.fusion import Call, FusedProgram
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop import OUTPUT, SCRATCH, UPDATED, Kernel
from bwcompiler.ir.memory import Location, MemoryPlan, StepUse
from bwcompiler.ir.op import Value
from bwcompiler.lowering.build_loops import build_kernel
from bwcompiler.lowering.call_kernels import build_call_kernel
from bwcompiler.lowering.library_calls import BlasSymbols, check_index_text, gemm_calls
from bwcompiler.lowering.llvm_scalars import ScalarEmitter
from bwcompiler.lowering.loops_to_llvm import kernel_to_llvm
from bwcompiler.lowering.math_functions import definitions, intrinsics

RECORD_BYTES = 64              # the error record at the start of the arena


class Callback(NamedTuple):
    """A value computed by its op's NumPy reference: the symbol the program calls, with pointers to operands and results."""

    symbol: str
    value: Value


@dataclass
class LoweredStep(StepUse):
    """One step of the program: a kernel with the owners of its parameters, or a library call, check or callback of one value."""

    kernel: Kernel | None = None
    owners: Sequence[Value | None] = ()
    value: Value | None = None


def lower_steps(fused: FusedProgram, blas: BlasSymbols | None) -> list[LoweredStep]:
    """Loop trees of all steps, and what each reads, writes and needs as scratch."""
    steps: list[LoweredStep] = []
    for number, step in enumerate(fused.steps):
        name = f"k{number}"
        if isinstance(step, Call):
            steps.append(_lower_call(name, step.value, blas))
            continue
        kernel, owners = build_kernel(name, step, fused.stored, fused.forced)
        if not kernel.buffers:                     # everything in it was computed where it is read
            continue
        lowered = LoweredStep([], [], kernel=kernel, owners=owners)
        for buffer, owner in zip(kernel.buffers, owners, strict=True):
            if owner is None:
                lowered.scratch.append(buffer.size * buffer.dtype.itemsize)
            else:
                (lowered.writes if buffer.role == OUTPUT else lowered.reads).append(owner)
        steps.append(lowered)
    return steps


def _lower_call(name: str, value: Value, blas: BlasSymbols | None) -> LoweredStep:
    if value.op.name == "matmul" and _uses_blas(value, blas):
        operands = [transposed_matrix(operand) or operand for operand in value.operands]
        return LoweredStep([root(operand) for operand in operands], [value], value=value)
    built = build_call_kernel(name, value)
    if built is None:
        return LoweredStep([root(operand) for operand in value.operands], [value], value=value)
    kernel, values = built
    sources = [root(operand) for operand in values[:-1]]
    lowered = LoweredStep(sources, [value], kernel=kernel, owners=[*sources, value], value=value)
    if kernel.buffers[-1].role == UPDATED:
        target = root(value.operands[0])
        lowered.reads = [*sources, target]
        if target not in sources:
            lowered.in_place = (target, value)
    return lowered


def _uses_blas(value: Value, blas: BlasSymbols | None) -> bool:
    return blas is not None and value.dtype.name in blas.gemm


class ProgramText(NamedTuple):
    """LLVM text of a program; what it calls outside; the values of its index checks; how many distinct kernels it has."""

    text: str
    callbacks: list[Callback]
    checked: list[Value]
    uses_blas: bool
    kernels: int


class ProgramEmitter:
    """Emits the module of one program."""

    def __init__(self, graph: Graph, steps: Sequence[LoweredStep], plan: MemoryPlan, blas: BlasSymbols | None,
                 attributes: str) -> None:
        self.graph = graph
        self.steps = steps
        self.plan = plan
        self.blas = blas
        self.attributes = attributes
        self.scalars = ScalarEmitter()
        self.functions: dict[str, str] = {}
        self.texts: list[str] = []
        self.calls: list[str] = []
        self.callbacks: list[Callback] = []
        self.declares: dict[str, None] = {}
        self.pointers: dict[tuple[str, int], str] = {}
        self.checked: list[Value] = []
        self.uses_blas = False
        self.checks = 0

    def emit(self) -> ProgramText:
        require_lowerable(self.graph)
        for position, step in enumerate(self.steps):
            if step.kernel is not None:
                self._kernel(position, step, step.kernel)
            elif step.value is not None:
                self._call(step.value)
        for value, number in self.plan.copies:
            self._copy(value, Location("result", number), value.type.nbytes)
        head = "define i32 @bw_program(ptr %buffers, ptr %arena) #0 {\nentry:\n"
        body = head + "\n".join(self.calls) + "\n  ret i32 0\n}\n"
        math = list(self.scalars.math)
        parts = [*self.texts, body]
        if math:
            parts.append(definitions(math))
            self.declares.update(dict.fromkeys(intrinsics(math)))
        self.declares.update(self.scalars.declares)
        parts += [*_distinct(self.declares), f"attributes #0 = {{ {self.attributes} }}", '!1 = distinct !{!1, !2}',
                  '!2 = !{!"llvm.loop.interleave.count", i32 2}', ""]
        return ProgramText("\n".join(parts), self.callbacks, self.checked, self.uses_blas, len(self.texts))

    # ----- pointers
    def pointer(self, value: Value) -> str:
        return self._at(*self.plan.locations[root(value)])

    def _at(self, kind: str, number: int) -> str:
        found = self.pointers.get((kind, number))
        if found is not None:
            return found
        name = f"%{kind}{number}"
        if kind == "arena":
            self.calls.append(f"  {name} = getelementptr i8, ptr %arena, i64 {RECORD_BYTES + number}")
        else:
            slot = number if kind == "argument" else len(self.graph.inputs) + number
            self.calls.append(f"  {name}.slot = getelementptr ptr, ptr %buffers, i64 {slot}")
            self.calls.append(f"  {name} = load ptr, ptr {name}.slot")
        self.pointers[kind, number] = name
        return name

    # ----- steps
    def _kernel(self, position: int, step: LoweredStep, kernel: Kernel) -> None:
        if kernel.buffers[-1].role == UPDATED and position not in self.plan.in_place and step.value is not None:
            self._copy(step.value.operands[0], self.plan.locations[step.value], step.value.type.nbytes)
        name = self._function(kernel)
        scratch = iter(self.plan.scratch[position])
        arguments = []
        for buffer, owner in zip(kernel.buffers, step.owners, strict=True):
            if buffer.role == SCRATCH:
                arguments.append(self._at("arena", next(scratch)))
            elif owner is not None:
                arguments.append(self.pointer(owner))
        self.calls.append(f"  call void @{name}({', '.join(f'ptr {argument}' for argument in arguments)})")

    def _function(self, kernel: Kernel) -> str:
        """The name of the function that is this kernel; equal kernels share one."""
        self.scalars.count = 0
        text = kernel_to_llvm(kernel, self.scalars)
        body = text[text.index("("):]
        name = self.functions.get(body)
        if name is None:
            name = self.functions[body] = kernel.name
            self.texts.append(text)
        return name

    def _copy(self, value: Value, target: Location, size: int) -> None:
        self.declares["declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"] = None
        source, destination = self.pointer(value), self._at(*target)
        self.calls.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {destination}, ptr {source}, i64 {size}, i1 false)")

    def _call(self, value: Value) -> None:
        name = value.op.name
        if name == "matmul" and self.blas is not None:
            self._gemm(value, self.blas)
        elif name == "normalize_index":
            self._check_index(value)
        else:
            self._callback(value)

    def _gemm(self, value: Value, blas: BlasSymbols) -> None:
        self.uses_blas = True
        operands = []
        for operand in value.operands:
            matrix = transposed_matrix(operand)
            operands.append((self.pointer(operand if matrix is None else matrix), matrix is not None))
        lines, declare = gemm_calls(value, operands, self.pointer(value), blas, f"g{len(self.calls)}")
        self.calls += lines
        if declare:
            self.declares[declare] = None

    def _check_index(self, value: Value) -> None:
        self.checks += 1
        name = f"check{self.checks}"
        self.texts.append(check_index_text(name, value, len(self.checked)))
        self.checked.append(value)
        source, target = self.pointer(value.operands[0]), self.pointer(value)
        code = f"%status{self.checks}"
        self.calls += [f"  {code} = call i32 @{name}(ptr {source}, ptr {target}, ptr %arena)", *self._leave(code, self.checks)]

    def _leave(self, code: str, number: int) -> list[str]:
        return [f"  {code}.bad = icmp ne i32 {code}, 0", f"  br i1 {code}.bad, label %leave{number}, label %go{number}",
                f"leave{number}:", f"  ret i32 {code}", f"go{number}:"]

    def _callback(self, value: Value) -> None:
        self.checks += 1
        symbol = f"bw_callback_{len(self.callbacks)}"
        self.callbacks.append(Callback(symbol, value))
        self.declares[f"declare i32 @{symbol}(ptr)"] = None
        pointers = [self.pointer(operand) for operand in value.operands] + [self.pointer(value)]
        block, code = f"%block{self.checks}", f"%status{self.checks}"
        self.calls.append(f"  {block} = alloca [{len(pointers)} x ptr]")
        for k, pointer in enumerate(pointers):
            self.calls += [f"  {block}.{k} = getelementptr ptr, ptr {block}, i64 {k}", f"  store ptr {pointer}, ptr {block}.{k}"]
        self.calls += [f"  {code} = call i32 @{symbol}(ptr {block})", *self._leave(code, self.checks)]


def _distinct(declares: dict[str, None]) -> list[str]:
    """Each function declared once, whatever the spelling of its parameters."""
    seen: dict[str, str] = {}
    for line in declares:
        seen.setdefault(line[line.index("@"):line.index("(")], line)
    return list(seen.values())


def require_lowerable(graph: Graph) -> None:
    """Raise where the graph has something no step can run."""
    for value in graph.body:
        if value.op.kind == "region":
            raise CompileError(f"{value.op.name} is not lowered to native code yet")
