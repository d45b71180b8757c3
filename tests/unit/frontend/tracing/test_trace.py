"""`trace` and `inline`: inputs, names, captured arrays, static arguments, nesting, mutation, provenance."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bwcompiler import numpy as bnp
from bwcompiler import tree
from bwcompiler.errors import TracerIndexError
from bwcompiler.frontend import trace
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.graph import inline
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.unit.frontend.comparing import assert_same, compare, run_traced

Point = namedtuple("Point", ["a", "b"])


@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    name: str = dataclasses.field(default="layer", metadata={"static": True})


class Spec:
    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)


# ----- arguments
def test_names_and_order_of_inputs() -> None:
    def fun(params: Any, x: Any, *rest: Any, scale: Any = 1.0) -> Any:
        return params["w"] @ x * scale + rest[0] + params["b"][1].a

    params = {"w": np.ones((2, 2)), "b": [None, Point(np.ones(2), 3.0)]}
    result = trace(fun, (params, np.ones(2), 1.0), {"scale": 2.0})
    assert result.input_names == ["params.b.1.a", "params.b.1.b", "params.w", "x", "rest_0", "scale"]
    assert [value.name for value in result.graph.inputs] == result.input_names
    assert [str(type_) for type_ in result.input_types] == ["f64[2]", "f64[]", "f64[2,2]", "f64[2]", "f64[]", "f64[]"]
    assert result.graph.captured == 0


def test_pytrees_in_and_out() -> None:
    def fun(layers: Any, point: Any) -> Any:
        out = {"sum": layers[0].w + layers[1].b, "point": Point(point.b, None), "layer": Layer(point.a, 1.5, "out")}
        return out, [np.float32(2), True, 3]

    layers = (Layer(np.ones(2), np.zeros(2)), Layer(2.0, np.arange(2.0)))
    actual, _, _ = run_traced(fun, layers, Point(np.ones(1), 4.0))
    (out, constants) = actual
    assert_same(out["sum"], [1.0, 2.0])
    assert isinstance(out["point"], Point) and out["point"].b is None
    assert isinstance(out["layer"], Layer) and out["layer"].name == "out"
    assert_same(out["layer"].b, 1.5)
    for one, other in zip(constants, (np.float32(2), True, 3), strict=True):
        assert_same(one, other)


def test_shapes_instead_of_arrays() -> None:
    result = trace(lambda x, n: x * n, (Spec((2, 3), "f4"), Spec((), int)))
    assert [str(type_) for type_ in result.input_types] == ["f32[2,3]", "i64[]"]
    assert str(result.outputs[0].type) == "f64[2,3]"


def test_static_arguments() -> None:
    def fun(x: Any, n: int, *, mode: str = "a", k: Any = 0) -> Any:
        return x * n if mode == "b" else x + k

    by_number = trace(fun, (np.ones(2), 3), {"mode": "b"}, static_argnums=1, static_argnames=("mode",))
    assert by_number.input_names == ["x"]
    by_name = trace(fun, (np.ones(2), 3), {"mode": "b", "k": 1.0}, static_argnames=("n", "mode"))
    assert by_name.input_names == ["x", "k"]
    assert by_name.arguments.with_leaves(["X", "K"]) == (("X", 3), {"mode": "b", "k": "K"})
    by_itself = trace(fun, (np.ones(2), 3), {"mode": "b"})
    assert by_itself.input_names == ["x", "n"] and by_itself.arguments.static_values == ["b"]
    by_keyword = trace(fun, (np.ones(2),), {"mode": "b", "n": 3})
    assert by_keyword.input_names == ["x", "n"] and by_keyword.arguments.parameters[:2] == ["x", "n"]


def test_integers_that_are_asked_for_become_static() -> None:
    def fun(x: Any, n: int, k: int, flag: bool) -> Any:
        for _ in range(n - 1):
            x = x * k
        return x if flag else -x

    result = trace(fun, (np.ones(2), 4, 5, True))
    assert result.input_names == ["x", "k"] and sorted(result.demanded) == [1, 3]
    assert [value.op.name for value in result.graph.body].count("multiply") == 3
    source = result.demanded[1]
    assert source is not None and "range(n - 1)" in Path(source.file).read_text().splitlines()[source.line - 1]


def test_a_demand_reaches_through_inner_traces() -> None:
    def inner(x: Any, n: int) -> Any:
        return sum(x ** k for k in range(n))

    def outer(x: Any, n: int) -> Any:
        return inline_call(lambda y: inner(y, n), x) + inline_call(inner, x, n + 1)

    def inline_call(fun: Any, *args: Any) -> Any:
        result = trace(fun, args)
        values = inline(result.graph, [*[value_of(leaf) for leaf in result.arguments.dynamic_leaves if isinstance(leaf, Tracer)],
                                       *result.hidden_operands()])
        return fresh(values[0])

    assert trace(outer, (np.ones(2), 3)).input_names == ["x"]


def test_who_asks_for_two_numbers_of_a_list_gets_all() -> None:
    runs: list[int] = []
    note = runs.append                             # of a name that nobody follows: a list would be as it was after an attempt

    def fun(x: Any, edges: Any, rest: Any) -> Any:
        note(1)
        return sum([x[i] for i, j in edges for _ in range(j)]) + rest[1]

    result = trace(fun, (np.ones(9), [(k, k + 1) for k in range(8)], [1, 0.5]))
    assert result.input_names == ["x", "rest.0", "rest.1"] and len(runs) == 3          # the list has 16 numbers


def test_values_that_depend_on_nothing_are_known() -> None:
    def fun(x: Any) -> Any:
        n = bnp.zeros(3, int).sum() + 2
        return x * (3 if n > 1 else 4) if int(n) == 2 else x

    assert trace(fun, (np.ones(2),)).graph.body[-1].operands[1].attrs["value"] == 3.0


def test_an_exception_for_a_demand_is_not_swallowed() -> None:
    def fun(x: Any, n: int) -> Any:
        try:
            return x * len(range(n))
        except Exception:
            return x

    assert trace(fun, (np.ones(2), 4)).input_names == ["x"]


def test_arrays_are_not_asked_for_their_numbers() -> None:
    with pytest.raises(TracerIndexError, match="as a size, axis, range"):
        trace(lambda x, n: range(n + x[0]), (np.ones(2, int), 3))


# ----- captured arrays
def test_captured_arrays_are_inputs_by_reference() -> None:
    table, other = np.arange(3.0), np.ones((2, 3))
    zero_d = np.array(5.0)

    def fun(x: Any) -> Any:
        return x * table + other + table + zero_d, other

    result = trace(fun, (np.ones(3),))
    assert result.graph.captured == 3
    assert result.captured[0] is table and result.captured[1] is other and result.captured[2] is zero_d
    assert result.outputs[1] is result.graph.inputs[2]
    table[:] = 7
    assert_same(interpret(result.graph, [np.ones(3), *result.captured])[0], np.full((2, 3), 20.0))


def test_constants_are_not_inputs() -> None:
    result = trace(lambda x: x * 2 + np.float64(3) + [1.0, 2.0, 4.0][2], (np.ones(3),))
    assert len(result.graph.inputs) == 1
    assert [value.attrs["value"] for value in result.graph.body if value.op.name == "full"] == [2.0, 3.0, 4.0]


# ----- mutation of arguments
def test_mutated_arguments_are_outputs() -> None:
    def fun(x: Any, state: Any) -> Any:
        state["n"] += 1
        state["v"][1:] = x[:-1]
        x[0] = x[0]
        return x.sum()

    state = {"n": np.zeros(()), "v": np.zeros(3)}
    result = trace(fun, (np.ones(3), state))
    assert sorted(result.mutated) == [0, 1, 2]
    assert result.graph.outputs[1:] == tuple(result.mutated.values())
    compare(fun, np.ones(3), state)


def test_unchanged_arguments_are_not_mutated() -> None:
    def fun(x: Any) -> Any:
        y = x.copy()
        y[0] = 1
        x[...] = x
        z = x.T
        z[1:1] = 5
        return y

    assert trace(fun, (np.ones(3),)).mutated == {}


def test_python_numbers_are_rebound() -> None:
    def fun(s: Any) -> Any:
        t = s
        t += 1
        t *= 2
        return s, t

    result = trace(fun, (1.0,))
    assert result.mutated == {}
    compare(fun, 1.0)


# ----- nesting
def apply_inner(fun: Any, *args: Any) -> tuple[Any, Any]:
    """What a transform does: trace fun in a region of its own, then inline its graph."""
    result = trace(fun, args)
    operands = [value_of(leaf) if isinstance(leaf, Tracer) else value_as(leaf) for leaf in tree.leaves(args)]
    values = inline(result.graph, [*operands, *result.hidden_operands()])
    return tree.unflatten(result.output_tree, [fresh(value) for value in values[:len(result.outputs)]]), result


def test_nested_traces_lift_what_they_read() -> None:
    table = np.arange(3.0)
    seen: list[Any] = []

    def fun(x: Any, y: Any) -> Any:
        z = x * 2

        def inner(a: Any) -> Any:
            def innermost(b: Any) -> Any:
                return b * z + table + y[1]
            value, result = apply_inner(innermost, a + 1)
            seen.append(result)
            return value + z[::-1]

        value, result = apply_inner(inner, y)
        seen.append(result)
        return value + z

    compare(lambda x, y: (y + 1) * (x * 2) + table + y[1] + (x * 2)[::-1] + x * 2, np.ones(3), np.arange(3.0))
    actual, _, outer = run_traced(fun, np.ones(3), np.arange(3.0))
    assert_same(actual, (np.arange(3.0) + 1) * 2 + table + 1.0 + 2 + 2)
    innermost, inner = seen
    assert len(innermost.lifted) == 2 and len(inner.lifted) == 2 and not outer.lifted
    assert [len(result.captured) for result in (innermost, inner, outer)] == [1, 1, 1]


def test_write_to_an_array_of_the_enclosing_trace() -> None:
    def fun(x: Any) -> Any:
        y = x * 1
        view = y[1:]
        before = y + 0

        def inner(a: Any) -> Any:
            view[0] += a[0]
            return y * 2

        result = trace(inner, (x,))
        assert [handle.shape for handle in result.lifted] == [(3,)]
        assert list(result.assigned) == [0]
        assert result.graph.outputs[-1] is result.assigned[0]
        after = y + 0
        values = inline(result.graph, [value_of(x), *result.hidden_operands()])
        return before, after, fresh(values[0]), fresh(values[1])

    (before, after, doubled, written), _, _ = run_traced(fun, np.arange(3.0))
    assert_same(before, [0.0, 1.0, 2.0])
    assert_same(after, [0.0, 1.0, 2.0])          # the enclosing trace keeps its own value
    assert_same(doubled, [0.0, 2.0, 4.0])
    assert_same(written, [0.0, 1.0, 2.0])


def test_inline_keeps_provenance() -> None:
    def fun(x: Any) -> Any:
        value, _ = apply_inner(lambda a: np.sin(a) * 2, x)
        return value

    result = trace(fun, (np.ones(3),))
    assert [value.op.name for value in result.graph.body] == ["sin", "full", "multiply"]
    for value in result.graph.body:
        assert value.source is not None and value.source.function.endswith("<lambda>")
        assert value.source.caller is not None and value.source.caller.function.endswith("apply_inner")


def test_the_region_is_left_when_the_function_raises() -> None:
    def fun(x: Any) -> Any:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        trace(fun, (np.ones(3),))
    assert active_region() is None


# ----- provenance
def helper(x: Any) -> Any:
    return np.linspace(x[0], x[1], 3) * 2


def test_sources_name_line_column_function_and_callers() -> None:
    def fun(x: Any) -> Any:
        return helper(x) + x.sum()

    graph = trace(fun, (np.ones(3),)).graph
    line = helper.__code__.co_firstlineno + 1
    product = next(value for value in graph.body if value.op.name == "multiply" and value.source and value.source.column == 11)
    assert product.source is not None
    assert (product.source.file, product.source.line, product.source.function) == (__file__, line, "helper")
    caller = product.source.caller
    assert caller is not None and caller.line == fun.__code__.co_firstlineno + 1 and caller.function.endswith("fun")
    assert caller.caller is None
    assert all(value.source is not None and value.source.file == __file__ for value in graph.body)


def test_dead_code_is_cut() -> None:
    def fun(x: Any) -> Any:
        np.sin(x)
        return x + 1

    assert [value.op.name for value in trace(fun, (np.ones(3),)).graph.body] == ["full", "add"]
