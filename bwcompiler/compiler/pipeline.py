"""From a graph to LLVM text: graph passes, fusion, loops, memory plan, text.  `lower` reads top to bottom."""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler.collector import collector_paused
from bwcompiler.compiler.lowered import Lowered
from bwcompiler.compiler.native import native_libraries
from bwcompiler.compiler.options import pass_options
from bwcompiler.ir.access import root
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.loop_verifier import verify_kernel
from bwcompiler.ir.op import Value
from bwcompiler.lowering.program import ProgramEmitter
from bwcompiler.lowering.steps import lower_steps
from bwcompiler.passes.fuse import fuse
from bwcompiler.passes.pass_manager import run_passes
from bwcompiler.passes.pipeline import PASSES
from bwcompiler.passes.plan_memory import plan_memory
from bwcompiler.runtime.jit import FUNCTION_ATTRIBUTES


def lower(graph: Graph, into: Sequence[int | None] = ()) -> Lowered:
    """All passes and lowering, to LLVM text; result k is written to the memory of input into[k], where that is a number."""
    with collector_paused():
        libraries, _ = native_libraries()
        options = pass_options()
        simplified, runs = run_passes(PASSES, graph, options)
        fused = fuse(simplified)
        steps = lower_steps(fused, libraries, _pairs(simplified, into))
        if options.verify:
            for step in steps:
                if step.kernel is not None:
                    verify_kernel(step.kernel)
        plan = plan_memory(simplified, steps, into)
        emitter = ProgramEmitter(simplified, steps, plan, libraries, FUNCTION_ATTRIBUTES, into)
        return Lowered(graph, simplified, fused, steps, plan, emitter.emit(), runs, tuple(into))


def _pairs(graph: Graph, into: Sequence[int | None]) -> dict[Value, Value]:
    """Results that are written to inputs, and these."""
    return {root(output): graph.inputs[number] for output, number in zip(graph.outputs, into, strict=False) if number is not None}
