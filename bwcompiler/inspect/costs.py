"""Memory and arithmetic of a program.  `dump` has its stages as text, `explanation` describes it in words."""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.compiler.program_like import ProgramLike
from bwcompiler.ir.extent import element_count


def memory_of(program: ProgramLike) -> dict[str, int]:
    """Bytes, exact before running."""
    lowered = program.lowered()
    graph = lowered.graph
    return {
        "argument_bytes": sum(value.type.nbytes for value in graph.inputs),
        "output_bytes": sum(value.type.nbytes for value in graph.outputs),
        "temporary_bytes": lowered.plan.arena_bytes,
        "residual_bytes": sum(value.type.nbytes for value in program.adjoint.inputs),
    }


def cost_of(program: ProgramLike) -> dict[str, float]:
    """Floating-point operations (a multiply-add is two) and bytes moved by the kernels."""
    lowered = program.lowered()
    flops = 0
    for value in lowered.simplified.body:
        if value.op in ops.PRODUCTS:
            flops += 2 * value.type.size * value.operands[0].shape[-1]
        elif value.op.kind == "elementwise":
            flops += value.type.size
        elif value.op.kind == "reduction":
            flops += element_count(value.operands[0].shape)
    moved = sum(value.type.nbytes for step in lowered.steps for value in (*step.reads, *step.writes))
    return {"flops": float(flops), "bytes": float(moved), "kernels": float(lowered.program.kernels), "steps": float(len(lowered.steps))}
