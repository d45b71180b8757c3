"""Rewriting: one forward walk that rebuilds a graph by rules and merges equal values.

Every value is rebuilt with its rewritten operands, offered to the rules of its op, and looked up among the existing values.
Values made by rules are treated in the same way, so one walk reaches the fixed point of rules that examine only operands.
`rewrite` walks a graph; a pass that builds a new graph can build it in a `Rewriter`, which simplifies it.  The graphs
that values own, bodies of loops and branches, are rewritten by the same rules, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Attributes, Op, Record, Value, is_constant

Rule = Callable[..., Value | None]                 # (type, *operands, **attributes) -> what stands for the value, or None
Rules = Mapping[Op, Rule]
NO_RULES: Rules = {}                               # equal values are merged


class Rewritten(NamedTuple):
    """What a pass makes of a graph whose values are asked for afterwards; the same graph where nothing changed.

    mapping   what stands in it for each value that was replaced.
    """

    graph: Graph
    mapping: Mapping[Value, Value]


def rewrite(graph: Graph, rules: Rules, regions: dict[Graph, Graph] | None = None) -> Rewritten:
    """The graph as the rules have it.

    regions   graphs owned by values that are rewritten already, and what they became.
    """
    if graph.is_settled(rules):
        return Rewritten(graph, {})
    rewriter = Rewriter(rules, regions)
    mapping: dict[Value, Value] = {}
    with rewriter:
        for value in graph.body:
            operands = value.operands
            for operand in operands:
                if operand in mapping:
                    operands = tuple([mapping.get(operand, operand) for operand in operands])
                    break
            rewriter.source, rewriter.forward = value.source, value.forward
            before = len(rewriter.values)
            replacement = rewriter.visit(value, operands)
            if replacement is not value:
                mapping[value] = replacement
                if value.name is not None:
                    _pass_on_name(value.name, replacement, rewriter.values[before:])
    found = rebuilt(graph, rewriter.values, mapping)
    if found is graph:
        graph.settled += [rules, NO_RULES]         # no two values are equal either
    return Rewritten(found, mapping)


def _pass_on_name(name: str, value: Value, made: list[Value]) -> None:
    """Name what stands for a value like it.  An older value keeps its name (it is also what it was); of a value in another shape,
    the one that is computed has the name."""
    inner = value.operands[0] if value.op is ops.reshape else value
    if inner.name is None and inner in made:
        inner.name = name
    elif value.name is None and value in made:
        value.name = name


def rebuilt(graph: Graph, values: list[Value], mapping: Mapping[Value, Value]) -> Graph:
    """The graph whose outputs are what stands for those of `graph`, computed by `values`; `graph` itself where it is the same."""
    if not mapping:
        body = live_values(graph.body, graph.outputs)
        return graph if len(body) == len(graph.body) else graph.replace(body=body)
    outputs = tuple([mapping.get(output, output) for output in graph.outputs])
    return graph.replace(body=live_values(values, outputs), outputs=outputs)


class Replacement(NamedTuple):
    """What a value is made of instead, and how; the operands are values of the graph that stand above it."""

    operands: tuple[Value, ...]
    make: Callable[..., Value]


def with_replaced(graph: Graph, rules: Rules, replacements: Mapping[Value, Replacement]) -> Graph:
    """The graph with some values made otherwise, simplified by rules on the way."""
    record = Rewriter(rules)
    mapping: dict[Value, Value] = {}
    with record:
        for value in graph.body:
            replacement = replacements.get(value)
            operands = tuple([mapping.get(operand, operand) for operand in (replacement or value).operands])
            record.source, record.forward = value.source, value.forward
            if replacement is None:
                found = record.visit(value, operands)
            else:
                found = replacement.make(*operands)
                found.name = found.name or value.name
            if found is not value:
                mapping[value] = found
    return rebuilt(graph, record.values, mapping)


class Rewriter(Record):
    """A record whose values are rewritten by rules, and merged, as they are made."""

    __slots__ = ("known", "regions", "rules")

    def __init__(self, rules: Rules, regions: dict[Graph, Graph] | None = None) -> None:
        super().__init__()
        self.rules = rules
        self.regions: dict[Graph, Graph] = {} if regions is None else regions
        self.known: dict[Any, Value] = {}

    def learn(self, values: Iterable[Value]) -> None:
        """Merge what is made from now on with these values, which are not rewritten."""
        for value in values:
            if value.op.pure:
                key, _ = _key(value.op, value.operands, value.attrs)
                self.known.setdefault(key, value)

    def visit(self, value: Value, operands: tuple[Value, ...]) -> Value:
        """What stands for the value, applied to operands that are rewritten already."""
        op = value.op
        if op.regions:
            value = value.with_regions(self._region)
        if not op.pure:
            kept = value.with_operands(operands)
            self.values.append(kept)
            return kept
        rule = self.rules.get(op)
        if rule is not None:
            replaced = rule(value.type, *operands, **value.attrs)
            if replaced is not None:
                return replaced
        key, operands = _key(op, operands, value.attrs)
        found = self.known.get(key)
        if found is not None:
            return found
        kept = self.known[key] = value.with_operands(operands)
        self.values.append(kept)
        return kept

    def _region(self, graph: Graph) -> Graph:
        found = self.regions.get(graph)
        if found is None:
            found = self.regions[graph] = rewrite(graph, self.rules, self.regions).graph
            self.regions[found] = found
        return found

    def emit(self, op: Op, operands: tuple[Value, ...], attrs: Attributes, type: Any) -> Value:
        """What stands for the value of op applied to operands."""
        return self.visit(Value(op, operands, attrs, type, None, self.source, self.forward), operands)


def _key(op: Op, operands: tuple[Value, ...], attrs: Attributes) -> tuple[Any, tuple[Value, ...]]:
    """What values are equal by; and the operands in their canonical order, constants last."""
    if op.commutative and is_constant(operands[0]) and not is_constant(operands[1]):
        operands = (operands[1], operands[0])
    return (op, operands, attribute_key(attrs) if attrs else None), operands


def attribute_key(attrs: Attributes) -> tuple[Any, ...]:
    """Attributes as a dictionary key: floats by their bits' spelling (0.0 is not -0.0), and 1 is not 1.0 is not True; with their names, as
    they may be given in any order."""
    return (*attrs, *[value if type(value) in _EXACT else _exact(value) for value in attrs.values()])


_EXACT = frozenset((tuple, int, str))


def _exact(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return ("float", value.hex())
    if kind is bool or kind is complex:
        return (kind.__name__, repr(value))
    return value
