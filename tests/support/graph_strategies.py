"""Random well-typed graphs with arguments for them: `random_graph(seed)`.

Seeded NumPy rather than hypothesis: a failure is reproduced by one number.  `reduced` shrinks a failing graph.  What ops there are is in
`graph_makers`, which values an op may be applied to in `graph_builder`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.api.programs.executables import compile_graph
from bwcompiler.errors import InternalError
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value, input_value
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import F64, DType
from tests.support.graph_builder import GraphBuilder, RandomGraph
from tests.support.graph_makers import ALL, SMOOTH


def random_graph(seed: int, *, nodes: int = 12, smooth: bool = False, dtype: DType = F64) -> RandomGraph:
    """The graph of this number.  smooth: its derivatives (three of them) exist and are moderate near the arguments."""
    builder = GraphBuilder(np.random.default_rng([seed, nodes, smooth, dtype.bits]), smooth, dtype)
    with builder.record, np.errstate(all="ignore"):
        for _ in range(builder.rng.integers(1, 4)):
            builder.new_input(builder.random_shape())
        attempts = 0
        while len(builder.record.values) < nodes and attempts < 20 * nodes:
            attempts += 1
            maker = builder.choice(SMOOTH if smooth else ALL)
            maker(builder)
    return builder.finish(f"random_{seed}")


def run_compiled(graph: Graph, arguments: Sequence[Any]) -> list[Any]:
    """The outputs of a graph by native code."""
    count = len(graph.inputs) - graph.captured
    compiled = compile_graph(graph)
    captured = [np.ascontiguousarray(array) for array in arguments[count:]]
    return list(compiled.executable.run(arguments[:count], compiled.raise_error, captured))


def reduced(graph: Graph, arguments: Sequence[Any], fails: Callable[[Graph, Sequence[Any]], bool]) -> tuple[Graph, list[Any]]:
    """A small graph (one output, a suffix of the computation) that still fails: values become inputs, last ones first."""
    arguments = list(arguments)
    for value in graph.body:
        smaller = graph.replace(body=live_values(graph.body, [value]), outputs=[value])
        if fails(smaller, arguments):
            graph = smaller
            break
    progress = True
    while progress:
        progress = False
        for value in reversed(graph.body[:-1]):
            if value.op.kind == "constant" or value in graph.outputs:
                continue
            found = interpret(graph.replace(outputs=[value]), arguments)[0]
            smaller, given = _cut_at(graph, arguments, value, found)
            if len(smaller.body) < len(graph.body) and fails(smaller, given):
                graph, arguments, progress = smaller, given, True
                break
    return graph, arguments


def _cut_at(graph: Graph, arguments: Sequence[Any], value: Value, found: Any) -> tuple[Graph, list[Any]]:
    made = input_value(value.type, f"cut_{value.name or value.op.name}")
    mapping: dict[Value, Value] = {value: made}
    body = []
    for old in graph.body:
        if old is value:
            continue
        operands = tuple(mapping.get(operand, operand) for operand in old.operands)
        new = old if operands == old.operands else Value(old.op, operands, old.attrs, old.type, old.name)
        if new is not old:
            mapping[old] = new
        body.append(new)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    body = live_values(body, outputs)
    used = {operand for old in body for operand in old.operands} | set(outputs)
    kept = [k for k, old in enumerate(graph.inputs) if old in used]
    inputs = [*[graph.inputs[k] for k in kept], made]
    return Graph(graph.name, inputs, body, outputs), [*[arguments[k] for k in kept], np.array(found)]


def require_same_bits(found: Any, expected: Any, what: str) -> None:
    """Equal dtype, shape and elements (nan equals nan, 0.0 equals -0.0)."""
    found, expected = np.asarray(found), np.asarray(expected)
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        raise InternalError(f"{what}: {found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}")
    np.testing.assert_array_equal(found, expected, err_msg=what)


def require_close(found: Any, expected: Any, tolerance: float, what: str) -> None:
    """Equal dtype and shape; elements equal up to an absolute and relative tolerance."""
    found, expected = np.asarray(found), np.asarray(expected)
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        raise InternalError(f"{what}: {found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}")
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=what)
