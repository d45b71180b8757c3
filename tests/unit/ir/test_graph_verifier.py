"""One bad graph per invariant; the message says what is wrong and shows where."""

from __future__ import annotations

import pytest

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import INPUT, NO_ATTRIBUTES, Op, Record, Value, input_value
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.types import F64, TupleType, tensor
from bwcompiler.ops.calls.region import index_value
from bwcompiler.ops.elementwise import negative, sin
from tests.unit.ir.region_graphs import ALL, cond_graph, small_graph, triangular_loop

VECTOR = tensor(F64, (3,))


def value(op=negative, operands=(), attrs=NO_ATTRIBUTES, type_=VECTOR, **rest):
    return Value(op, tuple(operands), attrs, type_, **rest)


def rejects(graph, message):
    with pytest.raises(InternalError) as error:
        verify(graph)
    assert message in str(error.value)
    return str(error.value)


@pytest.fixture
def x():
    return input_value(VECTOR, "x")


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_valid_graphs(make):
    graph = make()
    verify(graph)
    assert list(graph.predecessors(graph.body[0])) is not None      # builds the networkx view
    verify(graph)


def test_the_place_is_shown(x):
    good = value(operands=[x], name="good")
    text = rejects(Graph("f", [x], [good, value(sin, [good], type_=tensor(F64, (4,)), name="bad")], [good]), "shape rule of sin")
    assert ">   %bad:" in text and "    %good:" in text


def test_inputs(x):
    rejects(Graph("f", [value(operands=[x])], [], []), "must be an input value")
    rejects(Graph("f", [x, x], [], []), "an input is listed twice")
    rejects(Graph("f", [x], [], [], captured=2), "2 of 1 inputs are said to be captured")
    rejects(Graph("f", [value(INPUT, type_=TupleType((VECTOR,)))], [], []), "not of tensor type")


def test_duplicates(x):
    y = value(operands=[x])
    rejects(Graph("f", [x], [y, y], [y]), "is defined twice")


def test_registered(x):
    other = Op("negative", "elementwise", doc="", attributes=(), shape=negative.shape, vjp=(), jvp=None, batch=None,
               reference=negative.reference)
    rejects(Graph("f", [x], [value(other, [x])], []), "not the registered one")
    rejects(Graph("f", [], [x], []), "an input value inside of the body")


def test_regions():
    outer = triangular_loop()
    loop = outer.body[0]
    broken = value(loop.op, loop.operands, {**loop.attrs, "body": 3}, loop.type)
    rejects(outer.replace(body=[broken], outputs=[]), "attribute body is not a graph")
    misplaced = value(loop.op, loop.operands, {**loop.attrs, "lo": small_graph()}, loop.type)
    rejects(outer.replace(body=[misplaced], outputs=[]), "not declared as a region")
    body = loop.attrs["body"]
    invalid = value(loop.op, loop.operands, {**loop.attrs, "body": Graph("b", body.inputs, [], body.outputs, body.index)}, loop.type)
    rejects(outer.replace(body=[invalid], outputs=[]), "defined nowhere in the graph")
    rejects(Graph("f", outer.inputs, outer.body, outer.outputs, index=body.index), "is that of an enclosing loop")


def test_region_inputs_fit():
    graph = cond_graph()
    cond = graph.body[1]
    fewer = value(cond.op, cond.operands[:2], cond.attrs, cond.type)
    rejects(graph.replace(body=[graph.body[0], fewer], outputs=[]), "then_branch takes (f64[], f64[])")


def test_closed():
    graph = triangular_loop()
    inside = graph.body[0].attrs["body"].body[-1]
    rejects(graph.replace(body=[*graph.body, value(operands=[inside], type_=inside.type)]), "a value inside of a region")
    rejects(graph.replace(outputs=[inside]), "a value inside of a region")


def test_order(x):
    y = value(operands=[x], name="y")
    z = value(operands=[y], name="z")
    rejects(Graph("f", [x], [z, y], [z]), "operand %y: f64[3] of %z: f64[3] is defined after it is used")
    rejects(Graph("f", [x], [z], [z]), "is defined nowhere")


def test_outputs(x):
    rejects(Graph("f", [x], [], [value(operands=[x])]), "output %negative: f64[3] is defined nowhere")
    graph = triangular_loop()
    rejects(graph.replace(outputs=[graph.body[0]]), "not of tensor type")


def test_attributes(x):
    rejects(Graph("f", [x], [value(operands=[x], attrs={"axes": (0,)})], []), "its attributes are (axes), but negative declares ()")


def test_extents(x):
    index = Index(0, 3)
    rejects(Graph("f", [input_value(tensor(F64, (index.extent(),)), "x")], [], []), "mentions loop index i, which is not in scope")
    with Record() as record:
        index_value(extent=index.extent())
    rejects(Graph("f", [], record.values, []), "an attribute of %index_value: i64[] mentions loop index i")
    rejects(Graph("f", [input_value(tensor(F64, (-1,)))], [], []), "the extent -1 can be negative")
    negative_type = tensor(F64, (index.extent() - 1,))
    rejects(Graph("f", [input_value(negative_type)], [], [], index), "the extent i - 1 can be negative")
    rejects(Graph("f", [], [], [], Index(0, index.extent(), "j")), "the bounds of loop index j mentions loop index i")


def test_types(x):
    y = input_value(tensor(F64, (4,)), "y")
    rejects(Graph("f", [x], [value(operands=[x], type_=y.type)], []), "the shape rule of negative gives f64[3]")


def test_provenance(x):
    rejects(Graph("f", [x], [value(operands=[x], source="file.py")], []), "its source is of type str")
    rejects(Graph("f", [x], [value(operands=[x], forward=3)], []), "its forward value is of type int")
    rejects(Graph("f", [x], [value(operands=[x], name=3)], []), "the name of a negative is of type int")


def test_adjacency(x):
    y = value(operands=[x])
    graph = Graph("f", [x], [y], [y])
    graph._build()[2][y].clear()
    rejects(graph, "its predecessors in the networkx view are not its operands")
    graph = Graph("f", [x], [y], [y])
    graph._build()[1][x].clear()
    rejects(graph, "is not among the successors")
    graph = Graph("f", [x], [y], [y])
    graph._build()[0].pop(x)
    rejects(graph, "the nodes of the networkx view")
