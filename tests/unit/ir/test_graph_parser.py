"""parse(print(g)) is g, and what is wrong in a text is said with its place."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from bwcompiler.ir.graph import cut
from bwcompiler.ir.op import Record, input_value, provenance
from bwcompiler.ir.semantics.content_hash import content_hash
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.source import Source
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ir.texts.graph_printer import graph_to_text
from bwcompiler.ir.texts.token_reader import ParseError
from bwcompiler.ir.types import C128, F32, F64, I64, tensor
from bwcompiler.ops.creation import full
from bwcompiler.ops.elementwise import add, less, maximum, multiply, negative, select, sin, subtract
from tests.unit.ir.region_graphs import ALL, constant_graph, small_graph

VECTOR = tensor(F64, (3,))


def assert_round_trip(graph):
    text = graph_to_text(graph)
    again = parse_graph(text)
    assert graph_to_text(again) == text
    verify(again)
    assert content_hash(again) == content_hash(graph)
    return again


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_round_trip(make):
    assert_round_trip(make())


@pytest.mark.parametrize("value, dtype", [
    (0.1, F64), (-0.0, F64), (float("nan"), F64), (float("inf"), F32), (-float("inf"), F64), (1e-300, F64), (1e22, F64),
    (-3, I64), (complex(-0.0, -1.0), C128), (complex(float("nan"), float("inf")), C128), (1.5, C128)])
def test_round_trip_of_constants(value, dtype):
    graph = assert_round_trip(constant_graph(value, dtype))
    expected = np.full((), value, dtype.numpy)
    assert interpret(graph, [])[0].tobytes() == expected.tobytes()


def test_round_trip_of_names_sources_and_forward_values():
    x, w = input_value(VECTOR, "x"), input_value(VECTOR, 'p["w"].0')
    with Record() as record:
        with provenance(Source("a b.py", 7)):
            out = x * w
        with provenance(Source("a b.py", 7), out):
            ct = out * 3.0
        with provenance(None, input_value(VECTOR, "elsewhere")):
            last = ct + out
    again = assert_round_trip(cut("<lambda>", [x, w], record.values, [last, x], captured=1))
    assert again.captured == 1 and again.name == "<lambda>"
    assert again.body[-1].forward.name == "elsewhere"
    assert next(value for value in again.body if value.op is multiply and value.forward).forward is again.body[0]


@st.composite
def small_graphs(draw):
    inputs = [input_value(VECTOR, draw(st.sampled_from(["x", "y", "x_1", "add"]))) for _ in range(2)]
    values = list(inputs)
    with Record() as record:
        for _ in range(draw(st.integers(0, 8))):
            op = draw(st.sampled_from([add, subtract, multiply, maximum, negative, sin, full, select]))
            pick = st.sampled_from(values)
            if op is full:
                made = full(value=draw(st.floats(width=64)), shape=(3,), dtype=F64)
            elif op is select:
                made = select(less(draw(pick), draw(pick)), draw(pick), draw(pick))
            else:
                made = op(*[draw(pick) for _ in range(1 if op in (negative, sin) else 2)])
            values.append(made)
    return cut("f", inputs, record.values, draw(st.lists(st.sampled_from(values), min_size=1, max_size=2)))


@hypothesis.given(small_graphs())
@hypothesis.settings(deadline=None, max_examples=60)
def test_round_trip_of_random_graphs(graph):
    again = assert_round_trip(graph)
    arguments = [np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.0, -3.0])]
    for a, b in zip(interpret(graph, arguments), interpret(again, arguments), strict=True):
        np.testing.assert_array_equal(a, b)


def test_comment_lines_and_free_spacing():
    text = "; a comment\ngraph f(%x: f64[3])->f64[3] { ; here\n\n ; and here\n %y:f64[3]=negative %x;m.py:3\nreturn %y }"
    graph = parse_graph(text)
    assert graph.body[0].source.line == 3 and graph_to_text(parse_graph(graph_to_text(graph))) == graph_to_text(graph)


STATEMENT = "graph f(%x: f64[3]) -> f64[3] {{\n  {}\n  return %y\n}}\n"


@pytest.mark.parametrize("statement, message", [
    ("%y: f64[4] = negative %x", "line 2, column 16: the type is written f64[4], but the shape rule of negative gives f64[3]"),
    ("%y: f64[3] = negativ %x", "line 2, column 16: unknown op 'negativ'"),
    ("%y: f64[3] = negative %z", "line 2, column 25: %z is not defined here"),
    ("%x: f64[3] = negative %x", "line 2, column 3: %x is defined twice"),
    ("%y: g64[3] = negative %x", "unknown dtype 'g64'"),
    ("%y: f64[i] = negative %x", "no loop index 'i' in scope"),
    ("%y: f64[3] = transpose %x", "transpose lacks the attribute axes"),
    ("%y: f64[3] = transpose %x {axis=[0]}", "transpose has no further attribute 'axis'; its attributes: axes"),
    ("%y: f64[3] = transpose %x {axes=<object>}", "cannot be read back"),
    ("%y: f64[3] = negative 1.0", "a literal needs an operand beside it"),
    ("%y: f64[3] = transpose %x {axes=[1]}", "the shape rule of transpose rejects this"),
    ("%y f64[3] = negative %x", "expected ':', found 'f64'"),
    ("%y: f64[3] = negative ?", "unexpected character '?'"),
    ("%y: i64[3] = cast %x {dtype=i64}", "the header says results (f64[3]), but the graph returns (i64[3])"),
])
def test_errors(statement, message):
    with pytest.raises(ParseError) as error:
        parse_graph(STATEMENT.format(statement))
    assert message in str(error.value) and error.value.line in (1, 2)


def test_text_that_ends_early():
    with pytest.raises(ParseError, match="found 'the end of the text'"):
        parse_graph(graph_to_text(small_graph()).rstrip()[:-1])
