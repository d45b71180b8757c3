"""`TraceResult`: what tracing a function gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bwcompiler import tree
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, ArgumentType
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead
from bwcompiler.frontend.tracing.policy import Assumed, Site
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.contracts.call_signature import ResultKind
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import TensorType


@dataclass(slots=True, eq=False)
class OutsideReads:
    """What an outermost function reads from outside of its arguments.

    fixed    what was compiled in: it is read again at every call, and has to be what it was.
    varying  inputs of the graph, after the leaves: numbers, arrays and containers of them that were bound anew.
    live     arrays whose contents the program reads, where else they would be read while tracing.
    """

    fixed: list[OutsideRead] = field(default_factory=list)
    varying: list[OutsideRead] = field(default_factory=list)
    live: list[OutsideRead] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class TraceResult:
    """A traced function.

    The graph.  Inputs: the leaves in order, then what was lifted, then what was captured (`graph.captured` of them); outputs: the output
    leaves, then the final values of mutated leaves, then those of assigned lifts.

    Its arguments
      arguments         of the call; its dynamic leaves are the graph's first inputs.
      argument_types    one per dynamic leaf; `input_types` and `input_names` likewise.
      demanded          positions, among all leaves, of those that are compile-time values because the function asked for them:
                        position -> where it did.
      mutated           leaf index -> final value.
      written           leaf indices that were ever assigned to: a call must not give them memory of another array.
      layout_dependent  leaves (of arguments, then of `outside.varying`) whose memory order decided something (whether a written array is a
                        view, the order of `ravel("K")`): the graph holds for arguments that have these leaves laid out like those it was
                        traced with, and all other leaves in any way.
    What it returned
      outputs           the values of its leaves; output_tree: their tree.
      result_kinds      per output leaf "array", or "scalar" where NumPy gives an immutable scalar.
      only_checks       it returned no array or number: the one output is there when its checks are done.
    What else it read
      captured          concrete arrays, by reference (copies of those that were written to while tracing).
      lifted            handles of arrays of enclosing traces.
      assigned          position in `lifted` -> final value, where the function wrote to it.
      outside           names, cells and attributes outside of the function.
    Its control flow; of the outermost trace
      notes             places of loops that were not captured, with the reasons.
      loops             likewise of those that were, with what they carry.
      may_unroll        control flow was captured, and the function can perhaps be traced without that as well.
      unrolled_for      the error for which all loops are unrolled.
      may_be_cut        there are slices of known sizes at places that are data of which it is not known that they fit (`data_windows`),
                        or eigenvalues of real matrices, which may be taken for real.
      assumed           numbers of data that are taken to be what they are for these arguments: programs raise AssumedOtherwise for others.
    """

    graph: Graph

    arguments: Arguments
    argument_types: list[ArgumentType]
    input_names: list[str]
    demanded: dict[int, Source | None]
    mutated: dict[int, Value]
    written: set[int]
    layout_dependent: frozenset[int]

    outputs: tuple[Value, ...]
    output_tree: tree.TreeDef
    result_kinds: tuple[ResultKind, ...]
    only_checks: bool

    captured: list[Any]
    lifted: list[Tracer]
    assigned: dict[int, Value]
    outside: OutsideReads = field(default_factory=OutsideReads)

    notes: list[tuple[Site, str]] = field(default_factory=list)
    loops: list[tuple[Site, str]] = field(default_factory=list)
    may_unroll: bool = False
    unrolled_for: str | None = None
    may_be_cut: bool = False
    assumed: tuple[Assumed, ...] = ()

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        return tuple([argument.type for argument in self.argument_types])

    def hidden_operands(self) -> list[Value]:
        """The values, in the current region, of the graph's inputs after the leaves."""
        region = open_region()
        return [value_of(handle) for handle in self.lifted] + [region.capture(array) for array in self.captured]
