"""Parts of states that an iteration sets to a number at its end: what is left to the next iteration, and that values stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, is_constant
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.passes.memory.clear_late import clear_late
from tests.support.derivatives import check_derivatives

LOOP = """graph g(%a: f64[900], %b: f64[900]) -> (f64[900], f64[900]) {
  %start: f64[900] = full {value=NUMBER, shape=[900], dtype=f64}
  %loop: (f64[900], f64[900]) = loop %a, BEGIN {lo=0, hi=4, step=1, carried=2} body = (t in 0..4) graph body(%x: f64[900], %y: f64[900]) -> (f64[900], f64[900]) {
    %zeros: f64[898] = full {value=0.0, shape=[898], dtype=f64}
    %half:  f64[900] = multiply %x, 0.5
    %inner: f64[898] = slice %half {starts=[0], sizes=[898], steps=[1]}
    %z:     f64[900] = slice_add %y, %inner {starts=[0], steps=[1]}
    READ
    %w:     f64[900] = add %half, %z
    %next:  f64[900] = slice_update %z, %zeros {starts=[1], steps=[1]}
    return %w, %next
  }
  %p: f64[900] = item %loop {index=0}
  %q: f64[900] = item %loop {index=1}
  return %p, %q
}
"""
PART = "%part: f64[898] = slice %z {starts=[1], sizes=[898], steps=[1]}\n    %sum: f64[898] = add %part, %inner"


def made(number: str = "0.0", begin: str = "%start", read: str = "") -> Graph:
    return parse_graph(LOOP.replace("NUMBER", number).replace("BEGIN", begin).replace("READ", read))


def loop_of(graph: Graph) -> Value:
    return next(value for value in graph.body if value.op is ops.loop)


def is_cleared(value: Value) -> bool:
    return value.op is ops.slice_update and is_constant(value.operands[1])


def check_alike(graph: Graph, found: Graph) -> None:
    verify(found)
    inputs = [np.arange(900.0) ** 1.5, np.arange(900.0)]
    for one, other in zip(interpret(graph, inputs), interpret(found, inputs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_left_to_the_next_iteration() -> None:
    graph = made()
    found = clear_late(graph)
    body = loop_of(found).attrs["body"]
    assert body.outputs[1].op is ops.slice_add
    assert [value.operands[0] for value in body.body if is_cleared(value)] == [body.inputs[1]]
    assert is_cleared(found.outputs[1])
    assert not is_cleared(found.outputs[0])
    check_alike(graph, found)


@pytest.mark.parametrize(("number", "begin"), [("1.0", "%start"), ("-0.0", "%start"), ("0.0", "%b")], ids=["one", "minus_zero", "argument"])
def test_begins_with_something_else(number: str, begin: str) -> None:
    graph = made(number, begin)
    assert loop_of(clear_late(graph)).attrs["body"] is loop_of(graph).attrs["body"]


def test_begins_with_the_part_set() -> None:
    text = LOOP.replace("NUMBER", "1.0").replace("BEGIN", "%clear").replace("READ", "").replace(
        "  %loop", "  %z: f64[898] = full {value=0.0, shape=[898], dtype=f64}\n"
                   "  %clear: f64[900] = slice_update %b, %z {starts=[1], steps=[1]}\n  %loop", 1)
    graph = parse_graph(text)
    found = clear_late(graph)
    assert found is not graph
    check_alike(graph, found)


def test_small_parts_stay() -> None:
    graph = parse_graph(LOOP.replace("NUMBER", "0.0").replace("BEGIN", "%start").replace("READ", "").replace("898", "100"))
    assert clear_late(graph) is graph


def test_what_is_not_an_array_of_the_body_stays() -> None:
    graph = parse_graph(LOOP.replace("NUMBER", "0.0").replace("BEGIN", "%start").replace("READ", "").replace(
        "slice_update %z", "slice_update %y"))
    assert clear_late(graph) is graph


def test_a_sum_with_the_part_is_made_there() -> None:
    text = LOOP.replace("NUMBER", "0.0").replace("BEGIN", "%start").replace("READ", PART).replace(
        "add %half, %z", "slice_add %half, %sum {starts=[2], steps=[1]}")
    graph = parse_graph(text)
    found = clear_late(graph)
    carried = loop_of(found).attrs["body"].outputs[1]
    assert carried.op is ops.slice_add
    assert carried.operands[0].op is ops.slice_add
    check_alike(graph, found)


def test_a_sum_is_not_made_where_the_array_is_read() -> None:
    graph = made(read=PART)                                    # %w reads all of it
    carried = loop_of(clear_late(graph)).attrs["body"].outputs[1]
    assert carried.op is ops.slice_add
    assert carried.operands[0].op is not ops.slice_add


# ----- derivatives, which end their iterations like this
def jacobi(a: Any, b: Any) -> Any:
    a, b = a.copy(), b.copy()
    for _ in range(40):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return np.sum(a * a)


def staggered(e: Any, h: Any) -> Any:
    e, h = e.copy(), h.copy()
    for _ in range(40):
        h[:-1] = h[:-1] * 0.9 + 0.1 * np.sin(e[1:] - e[:-1])
        e[1:-1] = 0.3 * (h[1:-1] - h[:-2])
    return np.sum(e * h)


def twice(a: Any, b: Any) -> Any:
    """What is overwritten is read by an inner loop, which needs it as an array."""
    a, b = a.copy(), b.copy()
    for _ in range(4):
        b[1:-1] = 0.5 * (a[2:] - a[:-2]) * a[1:-1]
        for _ in range(3):
            a[1:-1] = 0.9 * a[1:-1] + 0.1 * b[:-2] * b[2:]
    return np.sum(a * a) + np.sum(b)


@pytest.mark.parametrize("fun", [jacobi, staggered, twice])
def test_derivatives(fun: Any) -> None:
    shape = (18, 20) if fun is jacobi else (300,)
    size = int(np.prod(shape))
    one, other = (np.sin(np.arange(float(size)) * k).reshape(shape) for k in (0.7, 1.3))
    np.testing.assert_allclose(bw.jit(fun)(one, other), fun(one, other), rtol=1e-12)
    check_derivatives(fun, one, other)


def test_jacobi_carries_no_zeros() -> None:
    """The adjoint has one kernel per half step: none sets zeros, or keeps what is added to the part of an array apart from it."""
    one, other = (np.sin(np.arange(3600.0) * k).reshape(60, 60) for k in (0.7, 1.3))
    loops = bw.grad(jacobi, argnums=(0, 1)).as_text("loops", one, other)
    assert len([line for line in loops.splitlines() if line.startswith("kernel") and "seed" in line]) == 2
