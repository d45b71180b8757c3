"""Graph IR as text: `graph_to_text`, whose inverse is `bwcompiler.ir.texts.graph_parser`; the grammar is in docs/ir.md.

    graph loss(%x: f64[3]; captured %w: f64[3]) -> f64[] {
      %tanh:     f64[3] = tanh %x               ; model.py:4
      %multiply: f64[3] = multiply 2.0, %tanh   ; model.py:5
      %sum:      f64[]  = sum %multiply {axes=[0]} ; model.py:5
      return %sum
    }

Names are hints, made unique by `_1`, `_2`.  A constant that is only ever an operand next to one of its own type is
written where it is read (decided by `literal_values` and `sibling`, the rule by which the parser types literals).
Invalid graphs can be printed too: the verifier shows an excerpt with the error (`graph_excerpt`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.ir.extent import Affine, Extent, Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Attributes, Op, Value, is_constant
from bwcompiler.ir.types import DTYPES, DType, TensorType, TupleType

BARE_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
_INDEX_NAME = re.compile(r"[^\W\d]\w*")
RESERVED = frozenset(("true", "false", "none", "nan", "inf", *(dtype.name for dtype in DTYPES)))   # never names of indices

Names = Mapping[Value, str]                       # value -> `%name`
NO_NAMES: Names = {}

_TYPE_COLUMNS, _STATEMENT_COLUMNS = 32, 110       # columns are aligned up to these widths


def graph_to_text(graph: Graph, sources: bool = True, given: Names = NO_NAMES) -> str:
    """The text of a graph; `sources` adds where each value came from as trailing comments.

    given   names of values in the text of another graph.  These values have the same names here, and no other value of this
            graph gets one of these names.
    """
    printer = _Printer(sources, literals=True, given=given)
    return "\n".join(printer.graph_lines(graph)) + "\n"


def graph_excerpt(graph: Graph, value: Value | None, context: int = 5, sources: bool = True) -> str:
    """The printed lines around the definition of `value` (of the header, if it has none), which is marked with `>`."""
    printer = _Printer(sources, literals=False)
    lines = printer.graph_lines(graph)
    chosen = 0 if value is None else printer.lines_of.get(value, 0)
    first, last = max(chosen - context, 0), min(chosen + context + 1, len(lines))
    return "\n".join(("> " if k == chosen else "  ") + lines[k] for k in range(first, last))


def names_in_text(graph: Graph, given: Names = NO_NAMES) -> dict[Value, str]:
    """The name of each value in the text of a graph: `%name`, or the literal."""
    return _Printer(sources=False, literals=True).value_names(graph, literal_values(graph), given)


def attributes_text(value: Value) -> str:
    """The attributes of a value as its statement shows them, `{axes=[0]}`; empty if there are none."""
    return _Printer(sources=False, literals=True).attributes(value.op, value.attrs).strip() if value.attrs else ""


# ----- literals
def sibling(operands: Iterable[Value]) -> Value | None:
    """The operand that gives literals among `operands` their type: the last one that is not a constant."""
    found = None
    for operand in operands:
        if not is_constant(operand):
            found = operand
    return found


def literal_values(graph: Graph) -> set[Value]:
    """The constants that are written where they are read: each reader has a sibling operand of the same type."""
    constants = {value for value in graph.body if is_constant(value)}
    if not constants:
        return constants
    read: set[Value] = set()
    hidden = set(graph.outputs)
    for value in graph.body:
        operands = value.operands
        if constants.isdisjoint(operands):
            continue
        like = sibling(operands)
        for operand in operands:
            if operand in constants:
                read.add(operand)
                if like is None or like.type != operand.type:
                    hidden.add(operand)
    return read - hidden


# ----- atoms
def quoted(text: str) -> str:
    """`text`, in quotes unless it is a plain (possibly dotted) name."""
    return text if BARE_NAME.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def plain_name(text: str) -> str:
    """The name in `%name` or `%"p['w']"`."""
    return str(json.loads(text[1:])) if text.startswith('%"') else text[1:]


def scalar_text(value: Any) -> str | None:
    """A Python or NumPy scalar as text from which the parser reads the same bits; None if it is not a scalar."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, complex):
        imaginary = repr(value.imag)
        sign = "" if imaginary.startswith("-") else "+"
        return f"({value.real!r}{sign}{imaginary}j)"
    return None


def first_free(hint: str, taken: Any) -> str:
    """`hint`, or with the first of `_1`, `_2`, ... that is not taken."""
    name, count = hint, 0
    while name in taken:
        count += 1
        name = f"{hint}_{count}"
    return name


class TakenNames:
    """A set of used names: `new` returns the name that `first_free` would, without trying all before it."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._reached: dict[str, int] = {}

    def new(self, hint: str) -> str:
        count = self._reached.get(hint, 0)
        name = f"{hint}_{count}" if count else hint
        while name in self._taken:
            count += 1
            name = f"{hint}_{count}"
        self._reached[hint] = count
        self._taken.add(name)
        return name


class _Statement(NamedTuple):
    """One statement: its text (several lines if it has regions) and its comment."""

    value: Value
    lines: list[str]
    comment: str


class _Printer:
    """Prints one graph with its regions.  `lines_of` maps the values of the outermost graph to line numbers."""

    def __init__(self, sources: bool, literals: bool, given: Names = NO_NAMES) -> None:
        self.sources = sources
        self.literals = literals
        self.given = given
        self.indices: dict[Index, str] = {}            # those in scope, outermost first
        self.lines_of: dict[Value, int] = {}
        self._depth = 0
        self._types: dict[int, str] = {}               # by id: the graph keeps its types and sources alive
        self._places: dict[int, str] = {}

    # ----- types and attributes
    def extent(self, extent: Extent) -> str:
        if not isinstance(extent, Affine):
            return str(extent)
        order = list(self.indices)
        terms = sorted(extent.terms, key=lambda term: order.index(term[0]) if term[0] in self.indices else len(order))
        parts = []
        for index, coefficient in terms:
            name = self.indices.get(index, f"{index.name}!")
            parts.append(name if coefficient == 1 else f"{coefficient}*{name}")
        if extent.constant:
            parts.append(str(extent.constant))
        return " + ".join(parts).replace("+ -", "- ")

    def type(self, type_: Any) -> str:
        found = self._types.get(id(type_))
        if found is not None:
            return found
        if isinstance(type_, TupleType):
            return f"({', '.join(map(self.type, type_.items))})"
        if not isinstance(type_, TensorType):
            return f"<{type(type_).__name__}>"
        text = f"{type_.dtype}[{','.join(map(self.extent, type_.shape))}]"
        if Affine not in map(type, type_.shape):       # the name of an index depends on the scope
            self._types[id(type_)] = text
        return text

    def attribute(self, value: Any) -> str:
        kind = type(value)
        if kind is int:
            return str(value)
        if kind is tuple or kind is list:
            return f"[{','.join([self.attribute(element) for element in value])}]"
        if kind is DType:
            return value.name  # type: ignore[no-any-return]
        if kind is str:
            return json.dumps(value, ensure_ascii=False)
        if value is None:
            return "none"
        if kind is Affine:
            return self.extent(value)
        if kind is TensorType or kind is TupleType:
            return self.type(value)
        text = scalar_text(value)
        return f"<{kind.__name__}>" if text is None else text

    def attributes(self, op: Op, attrs: Attributes) -> str:
        ordered = [name for name in op.attributes if name in attrs]
        ordered += [name for name in attrs if name not in op.attributes]
        shown = [f"{name}={self.attribute(attrs[name])}" for name in ordered
                 if name not in op.regions or not isinstance(attrs[name], Graph)]
        return f" {{{', '.join(shown)}}}" if shown else ""

    # ----- names
    def value_names(self, graph: Graph, literals: set[Value], given: Names = NO_NAMES) -> dict[Value, str]:
        """The text of each value as an operand: `%name`, or the literal."""
        names: dict[Value, str] = {}
        taken = {plain_name(text): 0 for text in given.values() if text.startswith("%")}      # -> the last number tried
        for value in (*graph.inputs, *graph.body):
            if value in literals:
                names[value] = scalar_text(value.attrs["value"]) or "<value>"
                continue
            if given.get(value, "").startswith("%"):
                names[value] = given[value]
                continue
            hint = value.name or value.op.name
            name = hint
            if hint in taken:
                count = taken[hint]
                while name in taken:
                    count += 1
                    name = f"{hint}_{count}"
                taken[hint] = count
            taken[name] = 0
            names[value] = f"%{quoted(name)}"
        return names

    def read(self, names: dict[Value, str], operands: Sequence[Value]) -> str:
        try:
            return ", ".join([names[operand] for operand in operands])
        except KeyError:                               # not a valid graph
            return ", ".join(names.get(operand, f"%{operand.name or operand.op.name}!") for operand in operands)

    def forward_name(self, forward: Value, names: dict[Value, str]) -> str:
        """The name of a value in `vjp of`; empty if it has no unique name here or in the given text."""
        name = names.get(forward) or (self.given.get(forward, "") if self._depth == 1 else "")
        if not name and forward.op.kind == "input":    # an argument has the user's name, which may be taken here
            name = f"%{quoted(forward.name or forward.op.name)}"
            return "" if name in names.values() else name
        return name if name.startswith("%") else ""

    def comment(self, value: Value, names: dict[Value, str]) -> str:
        source, forward = value.source, value.forward
        text = ""
        if forward is not None:
            name = self.forward_name(forward, names)
            text = f"vjp of {name}" if name else ""
        if source is not None:
            place = self._places.get(id(source))
            if place is None:
                place = self._places[id(source)] = source.short
            text = f"{text} {place}" if text else place
        return text

    # ----- graphs
    def graph_lines(self, graph: Graph) -> list[str]:
        """The lines of a graph, its index in scope."""
        self._depth += 1
        prefix = ""
        if graph.index is not None:
            index = graph.index
            bounds = f"{self.extent(index.lo)}..{self.extent(index.hi)}"
            hint = index.name if _INDEX_NAME.fullmatch(index.name) else "i"
            name = first_free(hint, RESERVED.union(self.indices.values()))
            prefix = f"({name} in {bounds}) "
            self.indices[index] = name
        names = self.value_names(graph, literal_values(graph) if self.literals else set(),
                                 self.given if self._depth == 1 else NO_NAMES)
        statements = [self.statement(value, names) for value in graph.body if names[value][0] == "%"]
        lines = [f"{prefix}graph {quoted(graph.name)}({self.parameters(graph, names)}) -> {self.results(graph)} {{"]
        starts = _join(lines, statements)
        self._depth -= 1
        if self._depth == 0:
            self.lines_of = starts
        lines.append(f"  return {self.read(names, graph.outputs)}".rstrip())
        lines.append("}")
        if graph.index is not None:
            del self.indices[graph.index]
        return lines

    def parameters(self, graph: Graph, names: dict[Value, str]) -> str:
        shown = [f"{names[value]}: {self.type(value.type)}" for value in graph.inputs]
        first = len(shown) - graph.captured
        captured = f"; captured {', '.join(shown[first:])}" if graph.captured else ""
        return ", ".join(shown[:first]) + captured

    def results(self, graph: Graph) -> str:
        if len(graph.outputs) == 1 and isinstance(graph.outputs[0].type, TensorType):
            return self.type(graph.outputs[0].type)
        return f"({', '.join(self.type(value.type) for value in graph.outputs)})"

    def statement(self, value: Value, names: dict[Value, str]) -> _Statement:
        op = value.op
        text = f"{op.name} {self.read(names, value.operands)}" if value.operands else op.name
        lines: list[str] = []
        if value.attrs:
            text += self.attributes(op, value.attrs)
            for attribute in op.regions:
                region = value.attrs.get(attribute)
                if isinstance(region, Graph):
                    first, *rest, text_of_last = self.graph_lines(region)
                    lines.append(f"{text} {attribute} = {first}")
                    lines.extend(f"  {line}" for line in rest)
                    text = f"  {text_of_last}"
        lines.append(text)
        lines[0] = f"{names[value]}:\0{self.type(value.type)}\0= {lines[0]}"
        return _Statement(value, lines, self.comment(value, names) if self.sources else "")


def _join(lines: list[str], statements: list[_Statement]) -> dict[Value, int]:
    """Append the statements with aligned columns; returns the line number of each value."""
    parts = [statement.lines[0].split("\0", 2) for statement in statements]
    names = max([len(name) for name, _, _ in parts], default=0)
    types = max([len(type_) for _, type_, _ in parts if len(type_) <= _TYPE_COLUMNS], default=0)
    for statement, (name, type_, text) in zip(statements, parts, strict=True):
        statement.lines[0] = f"  {name:<{names}} {type_:<{types}} {text}"
    column = max([len(statement.lines[-1]) for statement in statements
                  if statement.comment and len(statement.lines[-1]) <= _STATEMENT_COLUMNS], default=0)
    starts: dict[Value, int] = {}
    for statement in statements:
        starts[statement.value] = len(lines)
        if statement.comment:
            statement.lines[-1] = f"{statement.lines[-1]:<{column}} ; {statement.comment}"
        lines.extend(statement.lines)
    return starts

