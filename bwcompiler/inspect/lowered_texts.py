"""A lowered graph as text, at each stage from the graph after all passes to machine code: `lowered_text`.

Nothing here is compiled for running: machine code is generated again from the LLVM text for display.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler.compiler.lowered import Lowered
from bwcompiler.errors import UnsupportedError
from bwcompiler.ir.contracts.fusion import Call, FusionGroup
from bwcompiler.ir.loop import Kernel
from bwcompiler.ir.op import Value
from bwcompiler.ir.texts.graph_printer import graph_to_text, names_in_text
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.lowering.steps import LoweredStep
from bwcompiler.runtime import jit, object_cache

LOWERED_STAGES = ("simplified", "fused", "plan", "loops", "llvm", "llvm-opt", "asm", "object")


def lowered_text(lowered: Lowered, stage: str) -> str:
    """The text of one of LOWERED_STAGES."""
    match stage:
        case "simplified":
            return graph_to_text(lowered.simplified)
        case "fused":
            names = names_in_text(lowered.simplified)
            return "".join(f"{step_text(step, names)}\n" for step in lowered.fused.steps)
        case "plan":
            return "\n".join(plan_lines(lowered)) + "\n"
        case "loops":
            names = names_in_text(lowered.simplified)
            return "\n".join(kernel_to_text(kernel, names) for kernel, _ in distinct_kernels(lowered.steps))
        case "llvm":
            return _with_names(lowered)
        case "llvm-opt":
            return jit.optimised_ir(lowered.program.text, lowered.target)
        case "asm":
            return jit.assembly(lowered.program.text, lowered.target)
        case "object":
            code = object_code(lowered)
            lines = [f"{name}: {size} B{' of machine code' if is_code else ''}"
                     for name, size, is_code in jit.object_sections(code) if size and name]
            return "\n".join([f"object file of {len(code)} B", *lines]) + "\n"
    raise UnsupportedError(f"a lowered graph has no stage {stage!r}; stages: {', '.join(LOWERED_STAGES)}")


def distinct_kernels(steps: Sequence[LoweredStep]) -> list[tuple[Kernel, LoweredStep]]:
    """Every kernel, those of loops and branches too, with the first step that runs it."""
    first: dict[int, tuple[Kernel, LoweredStep]] = {}

    def visit(steps: Sequence[LoweredStep]) -> None:
        for step in steps:
            for body in step.bodies:
                visit(body.steps)
            if step.kernel is not None:
                first.setdefault(id(step.kernel), (step.kernel, step))

    visit(steps)
    return list(first.values())


def _with_names(lowered: Lowered) -> str:
    """The LLVM text, with comments that say which values a kernel computes and which arrays its pointers are."""
    names = names_in_text(lowered.simplified)
    heads = {f"define internal void @{kernel.name}(": _kernel_comments(kernel, step, names)
             for kernel, step in distinct_kernels(lowered.steps)}
    lines: list[str] = []
    for line in lowered.program.text.split("\n"):
        lines += heads.get(line[:line.find("(") + 1], [])
        lines.append(line)
    return "\n".join(lines)


def _kernel_comments(kernel: Kernel, step: LoweredStep, names: dict[Value, str]) -> list[str]:
    lines = [f"; {kernel.name}({', '.join(f'%p{k}' for k in range(len(kernel.buffers)))})"]
    for number, (buffer, owner) in enumerate(zip(kernel.buffers, step.owners, strict=True)):
        place = "" if owner is None or owner.source is None else f"  {owner.source.short}"
        name = f"scratch {buffer.name}" if owner is None else names.get(owner, owner.label)
        lines.append(f";   %p{number} {buffer.role:<7} {name}: {buffer.dtype}[{','.join(map(str, buffer.shape))}]{place}")
    return lines


def object_code(lowered: Lowered) -> bytes:
    """The object file."""
    return object_cache.object_for(lowered.program.text, lowered.target)


def step_text(step: FusionGroup | Call, names: dict[Any, str]) -> str:
    """One step of the fused program; `names` are those of the graph's text."""
    if isinstance(step, Call):
        return f"step {step.position}: call {step.value.op.name} -> {names[step.value]}: {step.value.type}"
    inner = f", inner {sorted(step.inner)}" if step.inner else ""
    members = ", ".join(names[member.value] for member in step.members)
    return f"step {step.position}: loops over {step.extents}{inner}: {members}"


def plan_lines(lowered: Lowered) -> list[str]:
    """The location of every stored value, as text."""
    names = names_in_text(lowered.simplified)
    lines = [f"arena {lowered.plan.arena_bytes} B"]
    lines += [f"{names.get(value, value.label)}: {value.type} @ {place.kind} {place.number}"
              for value, place in lowered.plan.locations.items()]
    return lines
