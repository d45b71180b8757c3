"""`ProgramLike`: what `inspect` and `export`, which are below the api, read of its programs (`api/programs/program.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from bwcompiler.compiler.lowered import Lowered
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.passes.derivatives.autodiff import JointGraph
from bwcompiler.passes.derivatives.partition import Partition


class Halves(NamedTuple):
    """The forward and the adjoint half of a program, and the joint graph that was cut."""

    partition: Partition
    joint: JointGraph


class ProgramLike(Protocol):
    """A traced function, its default backward program, and the stages of that.

    argument_trees  the tree of each argument with leaf numbers in place of arrays; result_tree: likewise for outputs.
    default_wrt     the leaves that are differentiated.
    memory_limit    bytes that the halves may save, besides the arguments.
    graph, adjoint  the forward and the adjoint graph.
    lowered         the stages of the joint graph.
    forward_names   names of values of `graph` and of those of `adjoint` that stand for them; lowered_names: of `lowered().simplified`.
    """

    __name__: str
    fun: Callable[..., Any]
    traced: TraceResult
    argument_trees: tuple[Any, ...]
    result_tree: Any
    default_wrt: tuple[int, ...]
    memory_limit: int | None

    @property
    def graph(self) -> Graph: ...
    @property
    def adjoint(self) -> Graph: ...
    def halves(self) -> Halves: ...
    def lowered(self) -> Lowered: ...
    def forward_names(self) -> dict[Value, str]: ...
    def lowered_names(self) -> dict[Value, str]: ...
