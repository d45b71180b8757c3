"""The definition of graphs: every value is its op's NumPy reference, applied to the arrays of its operands.

Slow and simple; everything else is tested against it.  References only ever see plain integers: extents in attributes are
evaluated first, with `environment` (loop index -> number).  An op that owns regions gets each as a callable

    body(arrays, index=None) -> list of arrays

where `index` is the number of the region's own loop index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import InternalError, at
from bwcompiler.ir.extent import Affine, Index, evaluate
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Attributes, Value
from bwcompiler.ir.types import TensorType, TupleType

Environment = Mapping[Index, int]
Region = Callable[..., list[Any]]


def interpret(graph: Graph, arguments: Sequence[Any], environment: Environment | None = None) -> list[Any]:
    """The outputs of a graph.  An output may share memory with an argument or with another output."""
    known = environment or {}
    if len(arguments) != len(graph.inputs):
        raise InternalError(f"{graph.name} takes {len(graph.inputs)} arguments, got {len(arguments)}")
    found: dict[Value, Any] = {}
    with np.errstate(all="ignore"):
        for value, argument in zip(graph.inputs, arguments, strict=True):
            found[value] = _checked(value, argument, value.type, known)
        for value in graph.body:
            attrs = concrete_attributes(value, known)
            result = value.op.reference(*[found[operand] for operand in value.operands], **attrs)
            found[value] = _checked(value, result, value.type, known)
    return [found[output] for output in graph.outputs]


def concrete_attributes(value: Value, environment: Environment) -> Attributes:
    """The attributes of a value with extents evaluated and regions made callable."""
    if not value.attrs:
        return value.attrs
    regions = value.op.regions
    return {name: _region(attribute, environment) if name in regions else _concrete(attribute, environment)
            for name, attribute in value.attrs.items()}


def _concrete(attribute: Any, environment: Environment) -> Any:
    if isinstance(attribute, Affine):
        return evaluate(attribute, environment)
    if type(attribute) is tuple:
        return tuple([_concrete(element, environment) for element in attribute])
    return attribute


def _region(graph: Graph, environment: Environment) -> Region:
    def run(arguments: Sequence[Any], index: int | None = None) -> list[Any]:
        if (index is None) != (graph.index is None):
            needed = "no loop index" if graph.index is None else f"the number of its loop index {graph.index}"
            raise InternalError(f"region {graph.name} takes {needed}")
        inner = environment if graph.index is None or index is None else {**environment, graph.index: index}
        return interpret(graph, arguments, inner)
    return run


def _checked(value: Value, result: Any, type_: Any, environment: Environment) -> Any:
    """`result` as an array (or a tuple of them) of exactly the declared type."""
    if isinstance(type_, TupleType):
        if len(result) != len(type_.items):
            raise InternalError(at(value.source, f"{value!r}: the reference gave {len(result)} results"))
        return tuple(_checked(value, part, item, environment) for part, item in zip(result, type_.items, strict=True))
    array = np.asarray(result)
    if array.dtype != type_.dtype.numpy or array.shape != _shape(type_, environment):
        source = "the argument" if not value.operands and value.op.kind == "input" else f"the reference of {value.op.name}"
        raise InternalError(at(value.source, f"{value!r}: {source} is {array.dtype}{list(array.shape)}"))
    return array


def _shape(type_: TensorType, environment: Environment) -> tuple[int, ...]:
    return tuple([evaluate(extent, environment) for extent in type_.shape])
