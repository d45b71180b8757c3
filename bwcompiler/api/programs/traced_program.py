"""`TracedProgram`: the trace behind a `Program`, and the graphs derived from it; nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from bwcompiler import tree
from bwcompiler.api.programs.arguments.assignments import forward_graph
from bwcompiler.api.programs.arguments.assumptions import Assumptions
from bwcompiler.api.programs.arguments.fitting import fitting_leaves
from bwcompiler.api.programs.backward.requests import (
    Request,
    argument_positions,
    check_differentiable,
    check_has_arrays,
    every_seed,
    halves,
    numbered,
    stand_ins,
)
from bwcompiler.collector import collector_paused
from bwcompiler.compiler.program_like import Halves
from bwcompiler.errors import CompileError, GradientError, SignatureError
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, take_apart
from bwcompiler.frontend.tracing.refusals.tracebacks import cut_to_user_frames
from bwcompiler.frontend.tracing.trace import TraceOptions, trace_arguments
from bwcompiler.ir.graph import live_values


class BoundAnewError(Exception):
    """A name outside of a function was rebound to another kind of value after the program for it was chosen."""


class TracedProgram:
    """The trace of a program's function, which arguments are differentiated, and the two halves of its derivative.

    options         as given to `compile`: wrt, mutates, memory_limit, autoloop.
    traced          the trace; assumptions: the calls for which it holds.
    into            per result of `forward_graph`, the graph of a call, the leaf whose memory it is written to, or None.
    argument_trees  the tree of each argument with leaf numbers in place of arrays; `result_tree`: likewise for outputs.
    default_wrt     the leaves that are differentiated if a call does not choose them.
    """

    def __init__(self, fun: Callable[..., Any], arguments: Arguments, wrt: Sequence[int] | int | None = None, mutates: Any = True,
                 memory_limit: int | None = None, tracing: TraceOptions | None = None) -> None:
        self.fun = fun
        self.memory_limit = memory_limit
        self.__name__ = getattr(fun, "__name__", "program")
        self.arguments = arguments
        if arguments.kwargs:
            raise SignatureError(f"a program takes positional arguments only; {', '.join(arguments.kwargs)} cannot be one")
        tracing = tracing or TraceOptions()
        if wrt is not None:                        # otherwise all floats are differentiated, and one that is compiled in cannot be
            tracing = replace(tracing, floats=True)
        self.options = (wrt, mutates, memory_limit, tracing.autoloop)
        self._halves: dict[Request, Halves] = {}
        self._trace(tracing)
        self._tracing = replace(tracing, varying=())           # their values may be large

    def _trace(self, options: TraceOptions) -> None:
        wrt, mutates, _, _ = self.options
        try:
            with collector_paused():
                self.traced = trace_arguments(self.fun, self.arguments, options)
        except Exception as error:
            cut_to_user_frames(error)
            raise
        traced = self.traced
        self.forward_graph, self.into = forward_graph(traced, mutates)
        traced.graph = traced.graph.replace(body=live_values(traced.graph.body, traced.outputs), outputs=traced.outputs)
        self.assumptions = Assumptions(traced, self.arguments)
        self.operands = self.assumptions.operands
        self.arguments = traced.arguments = self.arguments.without_leaves()
        self.argument_trees = numbered(self.arguments)
        self.result_tree = tree.unflatten(traced.output_tree, range(len(traced.outputs)))
        self.default_wrt = self.wrt_leaves(wrt)

    def unroll(self, error: CompileError) -> None:
        """Trace again with all loops unrolled, because one has no native code (`error`); raises the error if there is nothing to unroll."""
        if not self.traced.may_unroll:
            raise error
        self.arguments = take_apart(self.fun, stand_ins(self.arguments, self.traced.argument_types))
        self._halves.clear()
        now = [outside._replace(read=outside.read._replace(expected=outside.read.look())) for outside in self.traced.outside.varying]
        self._trace(replace(self._tracing, varying=[*now, *self.traced.outside.live], unrolled=True))
        self.traced.unrolled_for = str(error)

    # ----- derivatives
    def default_request(self, value: bool = False) -> Request:
        """The request for all arguments that `compile` was to differentiate, with every output seeded."""
        return Request(self.default_wrt, every_seed(self.traced), value)

    def halves(self) -> Halves:
        """The default backward program, split where `vjp` splits it."""
        request = self.default_request()
        found = self._halves.get(request)
        if found is None:
            found = self._halves[request] = halves(self.traced, request, self.memory_limit)
        return found

    def wrt_leaves(self, wrt: Sequence[int] | int | None) -> tuple[int, ...]:
        """The leaf numbers of the arguments to differentiate; None: every float leaf."""
        if wrt is None:
            return tuple(k for k, argument in enumerate(self.traced.argument_types) if argument.type.dtype.is_differentiable)
        chosen: list[int] = []
        numbers = argument_positions(wrt, len(self.argument_trees), "wrt")
        check_has_arrays(self.arguments, numbers)
        for number in numbers:
            chosen += self.arguments.positions_of(number)
        if len(set(chosen)) != len(chosen):
            raise GradientError(f"wrt={wrt!r}: an argument is named twice")
        check_differentiable(self.traced, chosen)
        return tuple(sorted(chosen))

    # ----- arguments
    def leaves_of(self, args: Sequence[Any], named: Iterable[str] = ()) -> list[Any]:
        """The leaves of a call and the operands read from outside; SignatureError for arguments that do not fit or are passed by name."""
        if named:
            raise SignatureError(f"{self.__name__}: arguments of a program are passed by position, got {', '.join(named)} by name")
        operands = self.operands.now()
        if operands is None:
            raise BoundAnewError
        layouts = self.assumptions.layouts[:len(self.assumptions.layouts) - len(operands)]
        return [*fitting_leaves(self.__name__, self.arguments, self.traced, layouts, args), *operands]
