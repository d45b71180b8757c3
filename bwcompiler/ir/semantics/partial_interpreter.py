"""What is known of a graph's values when some of its inputs are not: what depends on these is UNKNOWN, and the rest is computed.

A loop that fills an array with numbers of data, and another with the places where these go, makes known places: they are computed
iteration by iteration, beside numbers that stay UNKNOWN.

    rows = [];  values = []
    for i in range(n):
        rows.append(i // 2);  values.append(k[i])          rows: known;  values: UNKNOWN, as k is
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.graph_interpreter import Environment, concrete_attributes
from bwcompiler.ir.types import TupleType

_DATA = ("library", "input")


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise _UndecidedError


class _UndecidedError(Exception):
    """A branch or loop goes on by something UNKNOWN, or gives nothing else: so are all of its results."""


class _TooLongError(Exception):
    """There are too many operations."""


UNKNOWN: Final = _Unknown()


def known_outputs(graph: Graph, arguments: Sequence[Any], most: int, calls_libraries: bool = False) -> list[Any]:
    """The outputs of a graph as arrays, or UNKNOWN; so may arguments be.  All are UNKNOWN where more than `most` operations are needed.

    calls_libraries: what libraries compute is not UNKNOWN, as it is of numbers that are compiled in: roundings differ there.

    Of x and UNKNOWN, `lambda x, y: (x + x, x + y)` gives 2 x and UNKNOWN.
    """
    try:
        with np.errstate(all="ignore"):
            return _Run(most, calls_libraries).outputs(graph, arguments, {})
    except _TooLongError:
        return [UNKNOWN] * len(graph.outputs)


class _Run:
    def __init__(self, most: int, calls_libraries: bool) -> None:
        self.left = most
        self.data = ("input",) if calls_libraries else _DATA

    def outputs(self, graph: Graph, arguments: Sequence[Any], environment: Environment) -> list[Any]:
        found: dict[Value, Any] = dict(zip(graph.inputs, arguments, strict=True))
        for value in graph.body:
            self.left -= 1
            if self.left < 0:
                raise _TooLongError
            found[value] = self._computed(value, [found[operand] for operand in value.operands], environment)
        return [found[output] for output in graph.outputs]

    def _computed(self, value: Value, operands: Sequence[Any], environment: Environment) -> Any:
        if value.op.regions:
            return self._region_op(value, operands, environment)
        if value.op.kind in self.data or any(operand is UNKNOWN for operand in operands):
            return UNKNOWN
        try:
            attrs = concrete_attributes(value, environment)
        except KeyError:                           # of the index of a loop around
            return UNKNOWN
        result = value.op.reference(*operands, **attrs)
        if isinstance(value.type, TupleType):
            return tuple([_as_array(part) for part in result])
        return _as_array(result)

    def _region_op(self, value: Value, operands: Sequence[Any], environment: Environment) -> Any:
        regions = {name: self._region(value.attrs[name], environment) for name in value.op.regions}
        try:
            attrs = concrete_attributes(value, environment)
            return tuple(value.op.reference(*operands, **{**attrs, **regions}))
        except (_UndecidedError, KeyError):        # KeyError: a loop up to the index of one around
            return tuple([UNKNOWN for _ in value.type.items])

    def _region(self, graph: Graph, environment: Mapping[Index, int]) -> Callable[..., list[Any]]:
        def run(arguments: Sequence[Any], index: int | None = None) -> list[Any]:
            inner = environment if graph.index is None or index is None else {**environment, graph.index: index}
            found = self.outputs(graph, arguments, inner)
            if all(output is UNKNOWN for output in found):     # so are those of later iterations, most probably: they are not followed
                raise _UndecidedError
            return found
        return run


def _as_array(result: Any) -> Any:
    return result if result is UNKNOWN else np.asarray(result)
