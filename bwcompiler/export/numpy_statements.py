"""Graphs as Python statements: names for their values, one line per operation, `for`, `while` and `if` for regions.

Start reading at `StatementWriter.lines`.  What stands to the right of the `=`: `ops/numpy_text.py`.
"""

from __future__ import annotations

import builtins
import collections
import keyword
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError, at
from bwcompiler.export.numpy_helpers import reserved_names
from bwcompiler.export.numpy_in_place import written_in_place
from bwcompiler.ir.extent import Index, add_extents
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ops.numpy_text import Application, Statements, extent_text, new_axes, rule_of, scalar_literal

COMMENT_COLUMN = 72                # comments are aligned up to here
INDENT = "    "
RESERVED = {"np", "math", "itertools", "forward", "backward", "value_and_grad", "residuals", "out"}


# ----- names
class Names:
    """Python names of values and loop indices, unique in one function."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = {*RESERVED, *reserved_names(), *taken}
        self.of: dict[Value, str] = {}
        self.indices: dict[Index, str] = {}

    def fresh(self, hint: str) -> str:
        """An unused name like `hint`: `sum_` for a builtin, `tanh_1` for the second tanh."""
        plain = re.sub(r"\W+", "_", hint).strip("_") or "value"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        first = f"{plain}_" if keyword.iskeyword(plain) or hasattr(builtins, plain) else plain
        name, count = first, 0
        while name in self.taken:
            count += 1
            name = f"{plain}_{count}"
        self.taken.add(name)
        return name

    def add(self, value: Value, hint: str | None = None) -> str:
        self.of[value] = self.fresh(hint or value.name or value.op.name)
        return self.of[value]


# ----- literals
def literal_sites(graph: Graph) -> set[Value]:
    """Constants that are written where they are read: beside an operand of their type, or as the start of an update."""
    found = {value for value in graph.body if value.op is ops.full}
    found.difference_update(graph.outputs)
    for value in graph.body:
        for position, operand in enumerate(value.operands):
            if operand in found and not _takes_literal(value, position, operand):
                found.discard(operand)
    return found


def _takes_literal(reader: Value, position: int, literal: Value) -> bool:
    if reader.op in ops.WRITES:
        return position == 0 and reader.rank > 0 and literal not in reader.operands[1:]
    if reader.op.kind != "elementwise":
        return False
    return any(other.op is not ops.full and other.type == literal.type for other in reader.operands)


# ----- broadcasting
def implicit_broadcasts(graph: Graph, literals: set[Value]) -> set[Value]:
    """The broadcasts that need no statement: NumPy does each where it is read, beside an operand that has the other axes."""
    found = {value for value in graph.body if value.op is ops.broadcast}
    found.difference_update(graph.outputs)
    for value in graph.body:
        if not found.isdisjoint(value.operands) and not _broadcasts(value, found, literals):
            found.difference_update(value.operands)
    return found


def _broadcasts(reader: Value, implicit: set[Value], literals: set[Value]) -> bool:
    if reader.op.kind != "elementwise" or not all(type(extent) is int for extent in reader.shape):
        return False
    operands = [operand for operand in reader.operands if operand not in literals]
    shapes = [_unbroadcast_shape(operand) if operand in implicit else operand.shape for operand in operands]
    return np.broadcast_shapes(*shapes) == reader.shape


def _unbroadcast_shape(value: Value) -> tuple[int, ...]:
    extents = dict(zip(value.attrs["axes"], value.operands[0].shape, strict=True))
    return tuple([extents.get(axis, 1) for axis in range(value.rank)])


# ----- statements
class Line(NamedTuple):
    text: str
    comment: str = ""

    def indented(self) -> Line:
        return Line(INDENT + self.text, self.comment)


class StatementWriter:
    """Writes graphs into one function.

    forward_names   what the values that adjoint values differentiate are called in the forward function.
    hints           what some of the values should be called.
    """

    def __init__(self, names: Names, helpers: set[Callable[..., Any]], forward_names: dict[Value, str],
                 hints: dict[Value, str] | None = None) -> None:
        self.names = names
        self.helpers = helpers
        self.forward_names = forward_names
        self._hints = dict(hints or {})
        self._results: dict[Value, Sequence[str]] = {}            # the variables that hold the results of a region op
        self._uses: collections.Counter[Value] = collections.Counter()
        self._in_place: set[Value] = set()                        # the updates that are written into their first operand
        self._regions = {ops.loop: self._loop, ops.while_loop: self._while, ops.cond: self._cond}

    def lines(self, graph: Graph) -> list[str]:
        """One statement per operation, with comments aligned."""
        found = self._body(graph)
        column = max((len(text) for text, _ in found if len(text) <= COMMENT_COLUMN), default=0)
        return [f"{text:<{column}}  # {comment}" if comment else text for text, comment in found]

    def _body(self, graph: Graph) -> list[Line]:
        literals = literal_sites(graph)
        implicit = implicit_broadcasts(graph, literals)
        self._uses.update([*graph.outputs, *[operand for value in graph.body for operand in value.operands]])
        found: list[Line] = []
        for value in graph.body:
            if value in implicit:
                self.names.of[value] = self.names.of[value.operands[0]] + new_axes(value.rank, value.attrs["axes"])
            elif value not in literals:
                found += self._statements(value, literals)
        return found

    def _statements(self, value: Value, literals: set[Value]) -> list[Line]:
        region = self._regions.get(value.op)
        if region is not None:
            return region(value)
        if value.op is ops.item and value.operands[0] in self._results:
            self.names.of[value] = self._results[value.operands[0]][value.attrs["index"]]
            return []
        rule = rule_of(value.op)
        if rule is None:
            raise UnsupportedError(at(value.source, f"{value.op.name} cannot be written as NumPy source; the other formats "
                                                    "(text, json, dot) show it"))
        reads = [scalar_literal(operand.attrs["value"], operand.dtype) if operand in literals else self.names.of[operand]
                 for operand in value.operands]
        in_place = value in self._in_place
        if in_place:
            self.names.of[value] = reads[0]
        name = reads[0] if in_place else self.names.add(value, self._hints.get(value))
        text = rule(Application(value, name, reads, self.helpers, self.names.indices, in_place))
        comment = self._comment(value)
        return [Line(line, comment) for line in (text.lines if isinstance(text, Statements) else (f"{name} = {text}",))]

    def _comment(self, value: Value) -> str:
        place = "" if value.source is None else value.source.short
        if value.forward is None:
            return place
        named = self.forward_names.get(value.forward) or re.sub(r"\W+", "_", value.forward.name or value.forward.op.name)
        of = "the loop" if value.forward.op is ops.region_link else named
        return f"vjp of {of}, {place}" if place else f"vjp of {of}"

    # ----- regions
    def _loop(self, value: Value) -> list[Line]:
        attrs, body = value.attrs, value.attrs["body"]
        lo, hi, step = attrs["lo"], attrs["hi"], attrs["step"]
        start = self._carry(value, body, attrs["carried"])
        index = self.names.fresh(body.index.name.strip("_") or "i")
        bounds = [extent_text(lo, self.names.indices), extent_text(add_extents(hi, 1), self.names.indices), str(abs(step))]
        if bounds[2] == "1":
            bounds = bounds[1:2] if bounds[0] == "0" else bounds[:2]
        indices = f"range({', '.join(bounds)})"
        self.names.indices[body.index] = index
        lines = [*self._body(body), *self._carry_on(value, body)]
        head = f"for {index} in {indices if step > 0 else f'reversed({indices})'}:"
        return [*start, Line(head, self._comment(value)), *_block(lines)]

    def _while(self, value: Value) -> list[Line]:
        condition, body = value.attrs["condition"], value.attrs["body"]
        start = self._carry(value, body, value.attrs["carried"])
        self._share(condition, body)
        lines = self._body(condition)
        lines += [Line(f"if not {self.names.of[condition.outputs[0]]}:"), Line(f"{INDENT}break")]
        lines += [*self._body(body), *self._carry_on(value, body)]
        return [*start, Line("while True:", self._comment(value)), *_block(lines)]

    def _cond(self, value: Value) -> list[Line]:
        targets = [self.names.fresh(output.name or value.name or value.op.name) for output in value.attrs["then_branch"].outputs]
        self._results[value] = targets
        found = [Line(f"if {self.names.of[value.operands[0]]}:", self._comment(value))]
        for name in ("then_branch", "else_branch"):
            branch = value.attrs[name]
            for parameter, operand in zip(branch.inputs, value.operands[1:], strict=True):
                self.names.of[parameter] = self.names.of[operand]
            lines = self._body(branch)
            lines += self._assign(targets, [self.names.of[output] for output in branch.outputs])
            found += [*([Line("else:")] if name == "else_branch" else []), *_block(lines)]
        return found

    def _carry(self, value: Value, body: Graph, carried: int) -> list[Line]:
        """A variable for each carried operand; the body reads them, and the other operands as they are."""
        for parameter, operand in zip(body.inputs[carried:], value.operands[carried:], strict=True):
            self.names.of[parameter] = self.names.of[operand]
        variables = [self.names.add(parameter) for parameter in body.inputs[:carried]]
        self._results[value] = variables
        written = written_in_place(body, carried)
        self._in_place.update(update for updates in written.values() for update in updates)
        starts = [self.names.of[operand] for operand in value.operands[:carried]]
        for position in written:
            operand = value.operands[position]
            if operand.op not in (ops.full, ops.unset) or self._uses[operand] > 1:
                starts[position] += ".copy()"
        return self._assign(variables, starts)

    def _carry_on(self, value: Value, body: Graph) -> list[Line]:
        return self._assign(self._results[value], [self.names.of[output] for output in body.outputs])

    def _share(self, graph: Graph, other: Graph) -> None:
        for parameter, same in zip(graph.inputs, other.inputs, strict=True):
            self.names.of[parameter] = self.names.of[same]

    def _assign(self, targets: Sequence[str], values: Sequence[str]) -> list[Line]:
        """All at once, since a value may be the old content of another target."""
        pairs = [(target, value) for target, value in zip(targets, values, strict=True) if target != value]
        if not pairs:
            return []
        return [Line(f"{', '.join(target for target, _ in pairs)} = {', '.join(value for _, value in pairs)}")]


def _block(lines: Sequence[Line]) -> list[Line]:
    return [line.indented() for line in lines or [Line("pass")]]
