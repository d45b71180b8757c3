"""`Lowered`: every stage of one program, from the graph to LLVM text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bwcompiler.ir.contracts.fusion import FusedProgram
from bwcompiler.ir.contracts.memory import MemoryPlan
from bwcompiler.ir.graph import Graph
from bwcompiler.lowering.program import ProgramText
from bwcompiler.lowering.steps import LoweredStep
from bwcompiler.passes.pass_manager import PassRun
from bwcompiler.target import Target


@dataclass
class Lowered:
    """The result of each stage for one graph, for execution and inspection.

    simplified  the graph after all passes.
    into        per result: the input whose memory it is written to.
    target      the CPU that the text of the program is for; nothing before it depends on that.
    """

    graph: Graph
    simplified: Graph
    fused: FusedProgram
    steps: Sequence[LoweredStep]
    plan: MemoryPlan
    program: ProgramText
    target: Target
    passes: Sequence[PassRun] = ()
    into: tuple[int | None, ...] = ()
