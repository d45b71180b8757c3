"""`Runners`: the compiled graphs of a program, one per kind of request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bwcompiler import tree
from bwcompiler.api.programs.backward.buffers import refuse_shared_buffers
from bwcompiler.api.programs.backward.forms import BackwardCall, regrouped
from bwcompiler.api.programs.backward.requests import BackwardGraph, Request, adjoint_backward, joint_backward
from bwcompiler.api.programs.bound_graph import BoundGraph
from bwcompiler.api.programs.executables import Compiled, compile_graph
from bwcompiler.api.programs.traced_program import TracedProgram
from bwcompiler.errors import CompileError


class AdjointRequest(NamedTuple):
    """A request that runs from residuals: its graph has none of the arguments as inputs."""

    request: Request


class Runner(NamedTuple):
    """A compiled request; `made` has its own graph, `bound.compiled` may be shared with an equal graph."""

    bound: BoundGraph
    made: BackwardGraph

    @property
    def compiled(self) -> Compiled:
        return self.bound.compiled


class Runners:
    """The compiled graphs of a program; each is compiled when it is first asked for."""

    def __init__(self, program: TracedProgram) -> None:
        self.program = program
        self._known: dict[Any, Runner] = {}

    def forward(self) -> Runner:
        """The function itself."""
        return self._runner("forward", lambda: BackwardGraph(self.program.forward_graph, self.program.into, (), {}))

    def joint(self, request: Request) -> Runner:
        """The joint graph of a request: forward and adjoint values together."""
        return self._runner(request, lambda: joint_backward(self.program.traced, request))

    def default(self) -> Runner:
        """The joint graph of the value and all gradients."""
        return self.joint(self.program.default_request(value=True))

    def forward_half(self) -> Runner:
        """The graph of the outputs, then the residuals."""
        def made() -> BackwardGraph:
            found = self.program.halves()
            return BackwardGraph(found.partition.forward, (), found.joint.captured, {})
        return self._runner("forward half", made)

    def adjoint_half(self, request: Request, residuals: Sequence[Any]) -> Runner:
        """The graph of the gradients, which captures the residuals."""
        program = self.program
        return self._runner(AdjointRequest(request), lambda: adjoint_backward(program.traced, program.halves(), request), residuals)

    def _runner(self, key: Any, make: Callable[[], BackwardGraph], residuals: Sequence[Any] = ()) -> Runner:
        found = self._known.get(key)
        if found is None:
            made, compiled = self._compiled(make)
            program = self.program
            captured = [*residuals, *program.traced.captured, *made.captured]
            layouts: list[Any] = [None] * len(compiled.signature.argument_types)
            alone: list[int] = []
            if not isinstance(key, AdjointRequest):
                layouts[:len(program.assumptions.layouts)] = program.assumptions.layouts
                alone = sorted(program.traced.written)
            found = self._known[key] = Runner(BoundGraph(compiled, captured, layouts, alone), made)
        return found

    def _compiled(self, make: Callable[[], BackwardGraph]) -> tuple[BackwardGraph, Compiled]:
        made = make()
        try:
            return made, compile_graph(made.graph, made.into, self.program.__name__)
        except CompileError as error:
            if self._known:                        # of a trace that has been compiled: another one would not fit the rest
                raise
            self.program.unroll(error)
        made = make()
        return made, compile_graph(made.graph, made.into, self.program.__name__)

    def run_backward(self, bound: BoundGraph, request: Request, leading: Sequence[Any], call: BackwardCall,
                     buffers: dict[int, Any]) -> Any:
        """The result of a backward call; leading: the inputs before scale and buffers."""
        refuse_shared_buffers(list(buffers.values()))
        scale = [] if call.scale is None else [float(call.scale)]
        results = bound.call([*leading, *scale, *buffers.values()])
        count = len(self.program.traced.outputs) if request.value else 0
        per_leaf = dict(zip(request.fresh, results[count:], strict=True)) | buffers
        gradients = tuple([regrouped(numbers, per_leaf) for numbers in self.program.argument_trees])
        return (tree.unflatten(self.program.traced.output_tree, results[:count]), gradients) if request.value else gradients
