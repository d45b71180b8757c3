"""A hash of the computation of a graph: equal for graphs that differ only in names, sources and object identities.

One pass writes a line per value, with operands as local numbers, and hashes the text.  Constants are written where they
are read, so duplicates and their positions do not matter.  Loop indices are named by their
nesting level.  The text holds no address and no `hash()`: it is the same in every process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Affine, Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, is_constant
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import DType, TensorType, TupleType


def content_hash(graph: Graph) -> str:
    """SHA-256 (hex) of the graph's ops, attributes, types, operand positions, outputs and regions.

    An attribute of any other class must have a string `content_key` that identifies its contents.
    """
    writer = _Writer()
    writer.graph(graph)
    return hashlib.sha256("\n".join(writer.lines).encode("utf-8", "surrogatepass")).hexdigest()


def body_hash(body: Graph, scope: Iterable[Index], has_line: Callable[[Value], bool]) -> str:
    """The hash of a loop's or branch's body, valid in one process: it includes the identities of enclosing loop indices, and the user's
    lines of values that an error may name (`has_line`)."""
    writer = _Writer(has_line)
    writer.levels.update((index, -1 - index.serial) for index in scope)
    writer.graph(body)
    return hashlib.sha256("\n".join(writer.lines).encode("utf-8", "surrogatepass")).hexdigest()


class BodyForm(NamedTuple):
    """hash: that of `body_hash` without the open constants; open: per open constant its reader, the operand position and the constant,
    in order."""

    hash: str
    open: list[tuple[Value, int, Value]]


def body_form(body: Graph, has_line: Callable[[Value], bool], is_open: Callable[[Value, Value], bool]) -> BodyForm:
    """The form shared by bodies that differ only in constants.  is_open(reader, constant): whether the constant may differ there."""
    writer = _FormWriter(has_line, is_open)
    writer.graph(body)
    return BodyForm(hashlib.sha256("\n".join(writer.lines).encode("utf-8", "surrogatepass")).hexdigest(), writer.open)


def _lines_of(source: Source | None) -> str:
    found = []
    while source is not None:
        found.append(f" {source.file}:{source.line}:{source.column}")
        source = source.caller
    return "".join(found)


class _Writer:
    """Writes a graph and its regions into `lines`; `levels` are the loop indices in scope.

    has_line   selects values whose user lines are written, too.
    """

    def __init__(self, has_line: Callable[[Value], bool] | None = None) -> None:
        self.has_line = has_line
        self.lines: list[str] = []
        self.levels: dict[Index, int] = {}
        self._types: dict[int, str] = {}                  # by id: the graph keeps its types alive

    def graph(self, graph: Graph) -> None:
        bounds = ""
        if graph.index is not None:
            bounds = f"{self.attribute(graph.index.lo)}..{self.attribute(graph.index.hi)}"
            self.levels[graph.index] = len(self.levels)
        inputs = ",".join([self.type(value.type) for value in graph.inputs])
        self.lines.append(f"graph {bounds} {inputs} {graph.captured}")
        names: dict[Value, str] = {value: str(number) for number, value in enumerate(graph.inputs)}
        lines, types, count = self.lines, self._types, len(names)
        for value in graph.body:
            op, attrs = value.op, value.attrs
            type_ = types.get(id(value.type)) or self.type(value.type)
            if op.name == "full":
                names[value] = f"{self.attribute(attrs['value'])}:{type_}"
                continue
            text = f"{op.name} {self.operands(value, names)} {type_}"
            if attrs:
                regions = op.regions
                text += "".join([f" {name}={self.attribute(attrs[name])}" for name in op.attributes if name not in regions])
            lines.append(text if self.has_line is None or not self.has_line(value) else text + _lines_of(value.source))
            for name in op.regions:
                self.graph(attrs[name])
            names[value] = str(count)
            count += 1
        lines.append(f"return {','.join([names[output] for output in graph.outputs])}")
        if graph.index is not None:
            del self.levels[graph.index]

    def operands(self, value: Value, names: dict[Value, str]) -> str:
        return ",".join([names[operand] for operand in value.operands])

    def type(self, type_: Any) -> str:
        if isinstance(type_, TupleType):
            return f"({','.join(map(self.type, type_.items))})"
        if not isinstance(type_, TensorType):
            raise InternalError(f"type {type_} has no content hash")
        text = f"{type_.dtype.name}[{','.join(map(self.attribute, type_.shape))}]"
        if Affine not in map(type, type_.shape):          # the level of an index depends on the scope
            self._types[id(type_)] = text
        return text

    def attribute(self, value: Any) -> str:
        """The text of an attribute; different for values that differ in kind (1, 1.0, True, 0.0, -0.0)."""
        kind = type(value)
        if kind is int:
            return str(value)
        if kind is tuple or kind is list:
            return f"[{','.join([self.attribute(element) for element in value])}]"
        if kind is float:
            return value.hex()  # type: ignore[no-any-return]
        if kind is DType:
            return value.name  # type: ignore[no-any-return]
        if kind is bool or value is None:
            return str(value)
        if kind is str:
            return f"{len(value)}'{value}'"
        if kind is Affine:
            return self.affine(value)
        if kind is complex:
            return f"{value.real.hex()}+{value.imag.hex()}j"
        if isinstance(value, np.generic):
            return self.attribute(value.item())
        if kind is TensorType or kind is TupleType:
            return self.type(value)
        key = getattr(value, "content_key", None)
        if not isinstance(key, str):
            raise InternalError(f"an attribute of type {kind.__name__} has no content_key, so the graph cannot be hashed")
        return f"{kind.__name__}{len(key)}'{key}'"

    def affine(self, extent: Affine) -> str:
        terms = []
        for index, coefficient in extent.terms:
            if index not in self.levels:
                raise InternalError(f"loop index {index} is not in scope")
            terms.append((self.levels[index], coefficient))
        return "+".join([str(extent.constant), *(f"{coefficient}@{level}" for level, coefficient in sorted(terms))])


class _FormWriter(_Writer):
    """Leaves open those constants that values of the outermost graph read.  Custom derivative rules that are still needed are hashed by
    identity."""

    def __init__(self, has_line: Callable[[Value], bool], is_open: Callable[[Value, Value], bool]) -> None:
        super().__init__(has_line)
        self.is_open = is_open
        self.open: list[tuple[Value, int, Value]] = []
        self.depth = 0

    def graph(self, graph: Graph) -> None:
        self.depth += 1
        super().graph(graph)
        self.depth -= 1

    def attribute(self, value: Any) -> str:
        return f"{id(value)}" if getattr(value, "content_key", None) == "" else super().attribute(value)

    def operands(self, value: Value, names: dict[Value, str]) -> str:
        if self.depth > 1:
            return super().operands(value, names)
        found = []
        for place, operand in enumerate(value.operands):
            is_open = is_constant(operand) and self.is_open(value, operand)
            if is_open:
                self.open.append((value, place, operand))
            found.append(f"?:{self.type(operand.type)}" if is_open else names[operand])
        return ",".join(found)
