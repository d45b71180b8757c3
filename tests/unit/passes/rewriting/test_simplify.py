"""Simplification: what stands for a value, and what that is called."""

from __future__ import annotations

import numpy as np

import bwcompiler as bw
from bwcompiler.ir.graph import cut
from bwcompiler.ir.op import REGISTRY, Record, constant, input_value
from bwcompiler.ir.texts.graph_printer import graph_to_text
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.rewriting.rewriter import rewrite
from bwcompiler.passes.rewriting.simplify import simplify

VECTOR = tensor(F64, (3,))


def test_an_older_value_keeps_its_name():
    graph = bw.compile(bw.grad(lambda x: np.sum(np.sin(x) ** 3)), np.ones(3)).graph
    text = graph_to_text(simplify(graph).graph)
    assert "%sin: " in text and "multiply.ct" not in text


def test_a_value_made_by_a_rule_takes_the_name():
    x = input_value(VECTOR, "x")
    with Record() as record:
        half = REGISTRY["multiply"](x, constant(-1.0, VECTOR))
        half.name = "half"
    result = simplify(cut("halved", (x,), record.values, (half,))).graph
    assert "%half: f64[3] = negative %x" in graph_to_text(result)


def test_mapping_says_what_stands_for_a_value():
    x = input_value(VECTOR, "x")
    with Record() as record:
        one, two = REGISTRY["sin"](x), REGISTRY["sin"](x)
        same = REGISTRY["multiply"](two, constant(1.0, VECTOR))
        total = one / same
    result, mapping = simplify(cut("merged", (x,), record.values, (total,)))
    assert mapping[two] is one and mapping[same] is one and one not in mapping
    assert mapping[total] is result.outputs[0] and result.outputs[0].operands == (one, one)


def test_a_simple_graph_is_returned_as_it_is():
    x = input_value(VECTOR, "x")
    with Record() as record:
        y = REGISTRY["sin"](x)
    graph = cut("sine", (x,), record.values, (y,))
    assert simplify(graph) == (graph, {})


def test_what_is_simple_is_not_looked_at_again():
    """Bodies of loops are seen by many passes, and with each graph around them."""
    asked = []
    rules = {REGISTRY["sin"]: lambda type_, x: asked.append(x)}
    x = input_value(VECTOR, "x")
    with Record() as record:
        y = REGISTRY["sin"](x)
    graph = cut("sine", (x,), record.values, (y,))
    assert rewrite(graph, rules).graph is graph and rewrite(graph, rules).graph is graph
    assert len(asked) == 1
    rewrite(graph, dict(rules))
    assert len(asked) == 2


def test_transposes_of_what_is_repeated_are_repeated_otherwise():
    """outer(x, y).T == outer(y, x): nothing is computed in an order in which it is not read."""
    x, y = input_value(VECTOR, "x"), input_value(tensor(F64, (4,)), "y")
    with Record() as record:
        rows, columns = [REGISTRY["broadcast"](one, shape=(3, 4), axes=axes) for one, axes in ((x, (0,)), (y, (1,)))]
        turned = REGISTRY["transpose"](REGISTRY["multiply"](rows, columns), axes=(1, 0))
    text = graph_to_text(simplify(cut("outer", (x, y), record.values, (turned,))).graph)
    assert "transpose" not in text and "broadcast %x {shape=[4,3], axes=[1]}" in text and "f64[4,3]" in text


def test_transposes_of_arrays_stay():
    x = input_value(tensor(F64, (3, 4)), "x")
    with Record() as record:
        turned = REGISTRY["transpose"](REGISTRY["multiply"](x, x), axes=(1, 0))
    graph = cut("turned", (x,), record.values, (turned,))
    assert simplify(graph) == (graph, {})


def test_attributes_in_another_order_are_not_others_of_the_same_values():
    """Two elements from the tenth, and ten from the second."""
    x = input_value(tensor(F64, (12,)), "x")
    with Record() as record:
        few = REGISTRY["slice"](x, sizes=(2,), starts=(10,), steps=(1,))
        many = REGISTRY["slice"](x, starts=(2,), sizes=(10,), steps=(1,))
        results = REGISTRY["sin"](few), REGISTRY["sin"](many)
    found = simplify(cut("slices", (x,), record.values, results)).graph
    assert [value.operands[0].shape for value in found.outputs] == [(2,), (10,)]
