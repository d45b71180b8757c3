"""The graph verifier: `verify` raises InternalError on the first violation, showing the lines of the graph around it.

The invariants of every graph, and of the regions inside it:

    check_provenance     `source` is a Source, `forward` a Value, `name` a string, or they are None.
    check_inputs         inputs are `input` values without operands and attributes, distinct, of tensor type; `captured` of
                         them at most are captured.
    check_duplicates     no value is in the body twice, and none is both input and in the body.
    check_registered     the op of every body value is the one registered under its name, and is not `input`.
    check_regions        region attributes hold graphs, all others do not; each is valid in its scope; its loop index is new,
                         with bounds that are in scope.
    check_closed         no operand or output is a value of a region's graph: regions are left through results only.
    check_order          operands are inputs or stand earlier in the body.
    check_outputs        outputs are inputs or in the body, and of tensor type.
    check_attributes     the names of the attributes are those that the op declares.
    check_extents        loop indices in types and attributes are in scope; no extent of a type can be negative.
    check_types          the type of a value is what the op's shape rule gives (for region ops this includes that number and
                         types of the regions' inputs fit).
    check_adjacency      the networkx view, where it was built, has the graph's values as nodes, its operands as edges, and
                         every edge goes forward (so it has no cycle).

Every check is linear.  As graphs do not change, a region that was found valid is not looked at again with the next graph around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from bwcompiler.errors import BwError, InternalError
from bwcompiler.ir.extent import Affine, Extent, Index, lower
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import INPUT, REGISTRY, Value
from bwcompiler.ir.source import Source
from bwcompiler.ir.texts.graph_printer import graph_excerpt
from bwcompiler.ir.types import TensorType, TupleType

Scope = frozenset[Index]


def verify(graph: Graph, scope: Scope = frozenset()) -> None:
    """Raise InternalError unless every invariant holds; scope: the indices of the loops around a body."""
    _verify(graph, scope)


def _verify(graph: Graph, outer: Scope) -> None:
    scope = outer if graph.index is None else outer | {graph.index}
    check_provenance(graph)                                # first, as printing relies on it
    check_inputs(graph)
    check_duplicates(graph)
    check_registered(graph)
    check_regions(graph, outer, scope)
    check_closed(graph)
    check_order(graph)
    check_outputs(graph)
    check_attributes(graph)
    check_extents(graph, scope)
    check_types(graph)
    check_adjacency(graph)


def fail(graph: Graph, value: Value | None, message: str, sources: bool = True) -> NoReturn:
    """Raise InternalError with the graph around `value`."""
    raise InternalError(f"invalid graph {graph.name}: {message}\n{graph_excerpt(graph, value, sources=sources)}")


def check_provenance(graph: Graph) -> None:
    for value in (*graph.inputs, *graph.body):
        source, forward, name = value.source, value.forward, value.name
        if name is not None and not isinstance(name, str):
            raise InternalError(f"invalid graph {graph.name}: the name of a {value.op.name} is of type {type(name).__name__}")
        if source is not None and not isinstance(source, Source):
            fail(graph, value, f"{value}: its source is of type {type(source).__name__}", sources=False)
        if forward is not None and not isinstance(forward, Value):
            fail(graph, value, f"{value}: its forward value is of type {type(forward).__name__}", sources=False)


def check_inputs(graph: Graph) -> None:
    for value in graph.inputs:
        if value.op is not INPUT or value.operands or value.attrs:
            fail(graph, None, f"input {value} must be an input value without operands and attributes, it is {value.op}")
        if not isinstance(value.type, TensorType):
            fail(graph, None, f"input {value} is not of tensor type")
    if len(set(graph.inputs)) != len(graph.inputs):
        fail(graph, None, "an input is listed twice")
    if not 0 <= graph.captured <= len(graph.inputs):
        fail(graph, None, f"{graph.captured} of {len(graph.inputs)} inputs are said to be captured")


def check_duplicates(graph: Graph) -> None:
    seen = set(graph.inputs)
    seen.update(graph.body)
    if len(seen) == len(graph.inputs) + len(graph.body):
        return
    seen = set(graph.inputs)
    for value in graph.body:
        if value in seen:
            fail(graph, value, f"{value} is defined twice")
        seen.add(value)


def check_registered(graph: Graph) -> None:
    registered = REGISTRY.get
    for value in graph.body:
        op = value.op
        if registered(op.name) is not op:
            fail(graph, value, f"{value}: op {op.name} is not the registered one")
        if op is INPUT:
            fail(graph, value, f"{value} is an input value inside of the body")


def check_regions(graph: Graph, outer: Scope, scope: Scope) -> None:
    if graph.index is not None:
        if graph.index in outer:
            fail(graph, None, f"loop index {graph.index} is that of an enclosing loop")
        _require_scope(graph, None, (graph.index.lo, graph.index.hi), outer, "the bounds of loop index", graph.index)
    for value in graph.body:
        for name, attribute in value.attrs.items():
            if isinstance(attribute, Graph) != (name in value.op.regions):
                what = "is not a graph" if name in value.op.regions else "is a graph, but not declared as a region"
                fail(graph, value, f"{value}: attribute {name} {what}")
            if isinstance(attribute, Graph) and scope not in attribute.verified:
                _verify(attribute, scope)
                attribute.verified.add(scope)


def check_closed(graph: Graph) -> None:
    inner: set[Value] = set()
    for value in graph.body:
        for name in value.op.regions:
            inner.update(_all_values(value.attrs.get(name)))
    if not inner:
        return
    for value in (*graph.inputs, *graph.body):
        if value in inner:
            fail(graph, value, f"{value} is also a value of a region")
        for operand in value.operands:
            if operand in inner:
                fail(graph, value, f"operand {operand} of {value} is a value inside of a region")
    for value in graph.outputs:
        if value in inner:
            fail(graph, None, f"output {value} is a value inside of a region")


def _all_values(graph: Any) -> Iterator[Value]:
    if isinstance(graph, Graph):
        for value in graph.values():
            yield value
            for name in value.op.regions:
                yield from _all_values(value.attrs.get(name))


def check_order(graph: Graph) -> None:
    defined = set(graph.inputs)
    for value in graph.body:
        operands = value.operands
        if not defined.issuperset(operands):
            missing = next(operand for operand in operands if operand not in defined)
            where = "after it is used" if missing in set(graph.body) else "nowhere in the graph"
            fail(graph, value, f"operand {missing} of {value} is defined {where}")
        defined.add(value)


def check_outputs(graph: Graph) -> None:
    defined = {*graph.inputs, *graph.body}
    for value in graph.outputs:
        if value not in defined:
            fail(graph, None, f"output {value} is defined nowhere in the graph")
        if not isinstance(value.type, TensorType):
            fail(graph, value, f"output {value} is not of tensor type")


def check_attributes(graph: Graph) -> None:
    for value in graph.body:
        declared, attrs = value.op.attributes, value.attrs
        if len(attrs) != len(declared) or (declared and attrs.keys() != set(declared)):
            names = f"({', '.join(attrs)})", f"({', '.join(declared)})"
            fail(graph, value, f"{value}: its attributes are {names[0]}, but {value.op.name} declares {names[1]}")


def check_extents(graph: Graph, scope: Scope) -> None:
    checked: set[int] = set()                              # by id: types are shared, and the graph keeps them alive
    for value in (*graph.inputs, *graph.body):
        if id(value.type) not in checked:
            checked.add(id(value.type))
            for extent in _type_extents(value.type):
                _require_extent(graph, value, extent, scope)
        if value.attrs:
            _require_scope(graph, value, value.attrs.values(), scope, "an attribute of", value)


def _type_extents(type_: Any) -> Iterator[Any]:
    if isinstance(type_, TensorType):
        yield from type_.shape
    elif isinstance(type_, TupleType):
        for item in type_.items:
            yield from item.shape


def _require_extent(graph: Graph, value: Value, extent: Extent, scope: Scope) -> None:
    if type(extent) is not int and not isinstance(extent, Affine):
        fail(graph, value, f"{value}: an extent is of type {type(extent).__name__}")
    _require_scope(graph, value, (extent,), scope, "the type of", value)
    if (extent if isinstance(extent, int) else lower(extent)) < 0:
        fail(graph, value, f"{value}: the extent {extent} can be negative")


def _require_scope(graph: Graph, value: Value | None, found: Iterable[Any], scope: Scope, what: str, of: object) -> None:
    for part in found:
        kind = type(part)
        if kind is tuple:
            _require_scope(graph, value, part, scope, what, of)
        elif kind is Affine:
            for index, _ in part.terms:
                if index not in scope:
                    fail(graph, value, f"{what} {of} mentions loop index {index}, which is not in scope")


def check_types(graph: Graph) -> None:
    for value in graph.body:
        try:
            expected = value.op.shape(*[operand.type for operand in value.operands], **value.attrs)
        except (BwError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            fail(graph, value, f"the shape rule of {value.op.name} rejects {value}: {error}")
        if expected is not value.type and expected != value.type:
            fail(graph, value, f"{value}: the shape rule of {value.op.name} gives {expected}")


def check_adjacency(graph: Graph) -> None:
    if graph._adjacency is None:
        return
    nodes, successors, predecessors = graph._adjacency
    order = {value: position for position, value in enumerate(graph.values())}
    if nodes.keys() != order.keys() or successors.keys() != order.keys() or predecessors.keys() != order.keys():
        fail(graph, None, "the nodes of the networkx view are not the graph's values")
    edges = 0
    for value, position in order.items():
        mine = predecessors[value]
        if mine.keys() != set(value.operands):
            fail(graph, value, f"{value}: its predecessors in the networkx view are not its operands")
        edges += len(mine)
        for operand in mine:
            if order[operand] >= position:
                fail(graph, value, f"{value}: the edge from {operand} goes backwards")
            if value not in successors[operand]:
                fail(graph, value, f"{value} is not among the successors of {operand} in the networkx view")
    if edges != sum(map(len, successors.values())):
        fail(graph, None, "the networkx view has a successor that is not a predecessor")
