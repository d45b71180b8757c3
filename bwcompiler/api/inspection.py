"""What a program looks like at each stage: texts, memory, cost, explanations."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Protocol

from bwcompiler.api.compiler import Compiled
from bwcompiler.errors import UnsupportedError
from bwcompiler.ir.extent import element_count
from bwcompiler.ir.fusion import FusionGroup
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.graph_printer import graph_to_text
from bwcompiler.ir.loop_printer import kernel_to_text
from bwcompiler.runtime import jit

if TYPE_CHECKING:
    from collections.abc import Callable

STAGES = ("source", "forward", "adjoint", "simplified", "fused", "plan", "loops", "llvm", "llvm-opt", "asm")


class ProgramLike(Protocol):
    """What this module needs of a program."""

    fun: Callable[..., Any]
    default_wrt: tuple[int, ...]
    traced: Any

    @property
    def graph(self) -> Graph: ...
    @property
    def adjoint(self) -> Graph: ...
    def joint_compiled(self) -> Compiled: ...


def stage_text(program: ProgramLike, stage: str) -> str:
    """The program at one stage, as text."""
    if stage == "source":
        return inspect.getsource(program.fun)
    if stage == "forward":
        return graph_to_text(program.graph)
    if stage == "adjoint":
        return graph_to_text(program.adjoint)
    if stage not in STAGES:
        raise UnsupportedError(f"unknown stage {stage!r}; stages: {', '.join(STAGES)}")
    compiled = program.joint_compiled()
    if stage == "llvm-opt":
        return jit.optimised_ir(compiled.executable.text)
    if stage == "asm":
        return jit.assembly(compiled.executable.text)
    return compiled_text(compiled, stage)


def compiled_text(compiled: Compiled, stage: str) -> str:
    """A compiled graph at one of the stages after simplification."""
    lowered = compiled.lowered
    if stage == "simplified":
        return graph_to_text(lowered.simplified)
    if stage == "llvm":
        return lowered.program.text
    if stage == "fused":
        return "\n".join(_step_text(step) for step in lowered.fused.steps) + "\n"
    if stage == "plan":
        lines = [f"arena {lowered.plan.arena_bytes} B"]
        lines += [f"%{value.name or value.op.name}: {value.type} @ {place.kind} {place.number}"
                  for value, place in lowered.plan.locations.items()]
        return "\n".join(lines) + "\n"
    return "\n".join(kernel_to_text(step.kernel) for step in lowered.steps if step.kernel is not None)


def _step_text(step: Any) -> str:
    if not isinstance(step, FusionGroup):
        return f"step {step.position}: call {step.value.op.name} -> {step.value}"
    names = ", ".join(member.value.name or member.value.op.name for member in step.members)
    return f"step {step.position}: loops over {step.extents}, inner {sorted(step.inner or ())}: {names}"


def memory_of(program: ProgramLike) -> dict[str, int]:
    """Bytes, exact before running."""
    compiled = program.joint_compiled()
    graph = compiled.lowered.graph
    return {
        "argument_bytes": sum(value.type.nbytes for value in graph.inputs),
        "output_bytes": sum(value.type.nbytes for value in graph.outputs),
        "temporary_bytes": compiled.lowered.plan.arena_bytes,
        "residual_bytes": sum(value.type.nbytes for value in program.adjoint.inputs),
    }


def cost_of(program: ProgramLike) -> dict[str, float]:
    """Floating-point operations (a multiply-add is two) and bytes moved by the kernels."""
    lowered = program.joint_compiled().lowered
    flops = 0
    for value in lowered.simplified.body:
        if value.op.name == "matmul":
            flops += 2 * value.type.size * value.operands[0].shape[-1]
        elif value.op.kind == "elementwise":
            flops += value.type.size
        elif value.op.kind == "reduction":
            flops += element_count(value.operands[0].shape)
    moved = sum(value.type.nbytes for step in lowered.steps for value in (*step.reads, *step.writes))
    return {"flops": float(flops), "bytes": float(moved), "kernels": float(lowered.program.kernels), "steps": float(len(lowered.steps))}


def explain_program(program: ProgramLike) -> str:
    """The program in words."""
    lowered = program.joint_compiled().lowered
    lines = [f"{len(lowered.simplified.body)} operations in {len(lowered.steps)} steps ({lowered.program.kernels} distinct kernels), "
             f"arena {lowered.plan.arena_bytes} B"]
    lines += [_step_text(step) for step in lowered.fused.steps]
    lines += [f"callback into NumPy: {callback.value.op.name} ({callback.value.source})" for callback in lowered.program.callbacks]
    for number, argument in enumerate(program.traced.argument_types):
        name = program.traced.input_names[number]
        if not argument.type.dtype.is_differentiable:
            lines.append(f"gradient of {name} is None: its dtype is {argument.type.dtype.numpy}")
        elif number not in program.default_wrt:
            lines.append(f"gradient of {name} is None: it is not in wrt")
    return "\n".join(lines) + "\n"
