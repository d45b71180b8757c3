"""Simplification: canonical spelling, algebraic rules, constant folding and common subexpressions, in one forward walk.

Every value is rebuilt with its simplified operands, offered to the rules of its op (`simplify_rules`), and looked up
among the values already there.  What rules make goes the same way, so one walk reaches the fixed point of the rules
that look at operands only.  Returns the same graph where nothing changed.
"""

from __future__ import annotations

from typing import Any

from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Attributes, Op, Record, Value
from bwcompiler.passes.simplify_rules import RULES, is_constant


def simplify(graph: Graph) -> Graph:
    """The graph with equal values merged, constants folded and algebraic identities applied."""
    return simplify_with_mapping(graph)[0]


def simplify_with_mapping(graph: Graph) -> tuple[Graph, dict[Value, Value]]:
    """The simplified graph, and what stands in it for each value that was replaced."""
    walk = _Walk()
    mapping: dict[Value, Value] = {}
    with walk.record:
        for value in graph.body:
            operands = value.operands
            for operand in operands:
                if operand in mapping:
                    operands = tuple(mapping.get(operand, operand) for operand in operands)
                    break
            walk.record.source, walk.record.forward = value.source, value.forward
            before = len(walk.record.values)
            replacement = walk.visit(value, operands)
            if replacement is not value:
                mapping[value] = replacement
                # an older value keeps its name: it is also what it was
                if replacement.name is None and replacement in walk.record.values[before:]:
                    replacement.name = value.name
    if not mapping:
        body = live_values(graph.body, graph.outputs)
        return graph if len(body) == len(graph.body) else graph.replace(body=body), mapping
    outputs = tuple(mapping.get(output, output) for output in graph.outputs)
    return graph.replace(body=live_values(walk.record.values, outputs), outputs=outputs), mapping


def attribute_key(attrs: Attributes) -> tuple[Any, ...]:
    """Attributes as a dictionary key: floats by their bits' spelling (0.0 is not -0.0), and 1 is not 1.0 is not True."""
    return tuple([_exact(value) for value in attrs.values()])


def _exact(value: Any) -> Any:
    kind = type(value)
    if kind is tuple or kind is int or kind is str:
        return value
    if kind is float:
        return ("float", value.hex())
    if kind is bool or kind is complex:
        return (kind.__name__, repr(value))
    return value


class _Walk:
    def __init__(self) -> None:
        self.record = Record(self._intercept)
        self.known: dict[Any, Value] = {}

    def visit(self, value: Value, operands: tuple[Value, ...]) -> Value:
        op = value.op
        if not op.pure:
            kept = value if operands is value.operands else _rebuilt(value, operands)
            self.record.values.append(kept)
            return kept
        rule = RULES.get(op.name)
        if rule is not None:
            replaced = rule(value.type, *operands, **value.attrs)
            if replaced is not None:
                return replaced
        key, operands = self._key(op, operands, value.attrs, value.type)
        found = self.known.get(key)
        if found is not None:
            return found
        kept = value if operands == value.operands else _rebuilt(value, operands)
        self.known[key] = kept
        self.record.values.append(kept)
        return kept

    def _intercept(self, op: Op, operands: tuple[Value, ...], attrs: Attributes, type_: Any) -> Value:
        """Values made by rules: simplified and merged like the graph's own."""
        return self.visit(Value(op, operands, attrs, type_, None, self.record.source, self.record.forward), operands)

    def _key(self, op: Op, operands: tuple[Value, ...], attrs: Attributes, type_: Any) -> tuple[Any, tuple[Value, ...]]:
        if op.commutative and (is_constant(operands[0]) and not is_constant(operands[1])):
            operands = (operands[1], operands[0])
        return (op.name, operands, attribute_key(attrs) if attrs else None), operands


def _rebuilt(value: Value, operands: tuple[Value, ...]) -> Value:
    return Value(value.op, operands, value.attrs, value.type, value.name, value.source, value.forward)
