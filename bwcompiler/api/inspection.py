"""What a program costs and why it is as it is: memory, arithmetic, explanations.  Its stages as text: `dump`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from bwcompiler.api.compiler import Compiled
from bwcompiler.api.lowered_texts import step_text
from bwcompiler.ir.extent import element_count
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.graph_printer import names_in_text

if TYPE_CHECKING:
    from collections.abc import Callable


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
    names = names_in_text(lowered.simplified)
    lines += [step_text(step, names) for step in lowered.fused.steps]
    lines += [f"callback into NumPy: {callback.value.op.name} ({callback.value.source})" for callback in lowered.program.callbacks]
    for number, argument in enumerate(program.traced.argument_types):
        name = program.traced.input_names[number]
        if not argument.type.dtype.is_differentiable:
            lines.append(f"gradient of {name} is None: its dtype is {argument.type.dtype.numpy}")
        elif number not in program.default_wrt:
            lines.append(f"gradient of {name} is None: it is not in wrt")
    return "\n".join(lines) + "\n"
