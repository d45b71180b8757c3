"""What every pass on loops must keep, the bits that programs give; and how many loops it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.rewriting.rewriter import Rewritten
from tests.support.graph_strategies import run_compiled


def rewritten(change: Callable[[Graph], Graph | Rewritten], fun: Callable[..., Any], *args: Any) -> tuple[Graph, Graph]:
    """The graph of a function, and what a pass makes of it: a valid graph with the same results, NumPy's, compiled too."""
    traced = trace(fun, args)
    made = change(traced.graph)
    graph = made.graph if isinstance(made, Rewritten) else made
    verify(graph)
    inputs = [*args, *traced.captured]
    expected = interpret(traced.graph, inputs)
    np.testing.assert_array_equal(expected[0], fun(*[np.array(argument) for argument in args]))
    for found in (interpret(graph, inputs), run_compiled(traced.graph, inputs)):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
            if np.asarray(one).dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(one), np.signbit(other))
    return traced.graph, graph


def loops_in(graph: Graph) -> int:
    """How many counted loops there are, those in loops included."""
    return sum(1 + loops_in(value.attrs["body"]) for value in graph.body if value.op is ops.loop)
