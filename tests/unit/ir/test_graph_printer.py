"""The text of graphs: names, literals, attributes, regions, comments."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler.ir.graph import cut
from bwcompiler.ir.op import Record, input_value, provenance
from bwcompiler.ir.source import Source
from bwcompiler.ir.texts.graph_printer import graph_excerpt, graph_to_text, scalar_text
from bwcompiler.ir.types import F64, tensor
from bwcompiler.ops.creation import full
from bwcompiler.ops.elementwise import less, select, tanh
from tests.unit.ir.region_graphs import cond_graph, small_graph, triangular_loop

VECTOR = tensor(F64, (3,))


def test_small_graph():
    assert graph_to_text(small_graph()) == """\
graph small(%x: f64[3], %y: f64[3]) -> f64[] {
  %tanh:     f64[3] = tanh %x
  %multiply: f64[3] = multiply %tanh, 2.0
  %add:      f64[3] = add %multiply, %y
  %sum:      f64[]  = sum %add {axes=[0]}
  return %sum
}
"""


def test_loop_with_types_that_depend_on_its_index():
    assert graph_to_text(triangular_loop()) == """\
graph triangular(%start: f64[], %y: f64[5]) -> f64[] {
  %loop: (f64[]) = loop %start, %y {lo=0, hi=4, step=1, carried=1} body = (i in 0..4) graph body(%total: f64[], %x: f64[5]) -> f64[] {
    %slice:       f64[i] = slice %x {starts=[0], sizes=[i], steps=[1]}
    %index_value: i64[]  = index_value {extent=i}
    %cast:        f64[]  = cast %index_value {dtype=f64}
    %sum:         f64[]  = sum %slice {axes=[0]}
    %multiply:    f64[]  = multiply %sum, %cast
    %add:         f64[]  = add %total, %multiply
    return %add
  }
  %item: f64[]   = item %loop {index=0}
  return %item
}
"""


def test_two_regions():
    text = graph_to_text(cond_graph())
    assert "cond %less, %x, %y then_branch = graph then(" in text
    assert "\n  } else_branch = graph else(" in text


def test_comments_and_forward_values():
    x = input_value(VECTOR, "x")
    with Record() as record:
        with provenance(Source("/home/user/model.py", 4)):
            out = tanh(x)
        with provenance(Source("/home/user/model.py", 4), out):
            ct = 1.0 - out * out
            ct.name = "tanh.ct"
    graph = cut("f", [x], record.values, [ct])
    assert graph_to_text(graph) == """\
graph f(%x: f64[3]) -> f64[3] {
  %tanh:     f64[3] = tanh %x                 ; model.py:4
  %multiply: f64[3] = multiply %tanh, %tanh   ; vjp of %tanh model.py:4
  %tanh.ct:  f64[3] = subtract 1.0, %multiply ; vjp of %tanh model.py:4
  return %tanh.ct
}
"""
    assert ";" not in graph_to_text(graph, sources=False)


def test_names_are_unique_and_quoted_where_needed():
    inputs = [input_value(VECTOR, name) for name in ("x", "x", "x_1", "p['w']")]
    graph = cut("<lambda>", inputs, [], inputs, captured=1)
    assert graph_to_text(graph) == (
        'graph "<lambda>"(%x: f64[3], %x_1: f64[3], %x_1_1: f64[3]; captured %"p[\'w\']": f64[3]) '
        "-> (f64[3], f64[3], f64[3], f64[3]) {\n  return %x, %x_1, %x_1_1, %\"p['w']\"\n}\n")


def test_literals_only_where_the_sibling_gives_their_type():
    x = input_value(VECTOR, "x")
    with Record() as record:
        zero, one = full(value=0.0, shape=(3,), dtype=F64), full(value=1.0, shape=(3,), dtype=F64)
        chosen = select(less(x, zero), zero, x)           # literals: the last operand that is no constant is f64[3]
        lost = select(less(x, one), one, zero)            # the last operand that is no constant is the condition
    text = graph_to_text(cut("f", [x], record.values, [chosen, lost]))
    assert "%full:     f64[3]  = full {value=0.0" in text and "%full_1:" in text
    with Record() as record:
        chosen = select(less(x, full(value=2.0, shape=(3,), dtype=F64)), full(value=0.0, shape=(3,), dtype=F64), x)
    text = graph_to_text(cut("f", [x], record.values, [chosen]))
    assert "less %x, 2.0" in text and "select %less, 0.0, %x" in text


@pytest.mark.parametrize("value, text", [
    (True, "true"), (3, "3"), (0.1, "0.1"), (-0.0, "-0.0"), (float("nan"), "nan"), (float("-inf"), "-inf"),
    (complex(-0.0, 1.0), "(-0.0+1.0j)"), (complex(1.0, float("-inf")), "(1.0-infj)"),
    (np.float32(0.5), "0.5"), (np.int64(7), "7"), ("text", None)])
def test_scalars(value, text):
    assert scalar_text(value) == text


def test_excerpt_marks_the_value():
    graph = small_graph()
    lines = graph_excerpt(graph, graph.body[-1], context=1).splitlines()
    assert [line[:2] for line in lines] == ["  ", "> ", "  "] and "%sum:" in lines[1]
