"""Graphs for other programs: `graph_json` (networkx's node-link format) and `graph_dot` (graphviz).

Both show a `GraphView`: a graph with decisions of later stages about its values, such as the step that computes them.
The output follows the order of the graph, so equal graphs give equal texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bwcompiler.compiler.lowered import Lowered
from bwcompiler.ir.contracts.fusion import FusionGroup
from bwcompiler.ir.contracts.memory import Location
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.source import Source
from bwcompiler.ir.texts.graph_printer import Names, attributes_text, first_free, names_in_text, plain_name
from bwcompiler.ir.types import DType, TensorType, TupleType
from bwcompiler.locks import renewed_properties

SCHEMA = 1                         # version of the JSON format; increased by incompatible changes


@renewed_properties
@dataclass
class GraphView:
    """A graph with additional facts about its values.

    groups          number of the step that computes a value, once fusion has decided it.
    places          the location of a value, once memory is planned.
    forward_names   for an adjoint graph: the names of values in the text of its forward graph.
    """

    graph: Graph
    stage: str
    groups: Mapping[Value, int] = field(default_factory=dict)
    places: Mapping[Value, Location] = field(default_factory=dict)
    steps: tuple[dict[str, Any], ...] = ()
    forward_names: Names = field(default_factory=dict)

    @cached_property
    def texts(self) -> dict[Value, str]:
        """The text of values as operands: `%name`, or a literal."""
        return names_in_text(self.graph, self.forward_names)

    @cached_property
    def ids(self) -> dict[Value, str]:
        """A name for every value, literals included."""
        found = {value: plain_name(text) for value, text in self.texts.items() if text.startswith("%")}
        taken = set(found.values())
        for value in self.texts:
            if value not in found:
                found[value] = first_free(value.op.name, taken)
                taken.add(found[value])
        return found

    def name_of_forward(self, value: Value) -> str | None:
        """The name of the value that `value` differentiates, here or in the forward graph; None if it is in neither."""
        of = value.forward
        if of is None or of in self.ids:
            return None if of is None else self.ids[of]
        text = self.forward_names.get(of, "")
        return plain_name(text) if text.startswith("%") else None

    def is_literal(self, value: Value) -> bool:
        return not self.texts[value].startswith("%")


def view_of_lowered(lowered: Lowered, stage: str) -> GraphView:
    """The graph after all passes, with its steps (stage "fused") and places in memory (stage "plan")."""
    graph = lowered.simplified
    if stage == "simplified":
        return GraphView(graph, stage)
    groups = {value: step.position for value, step in lowered.fused.step_of.items()}
    view = GraphView(graph, stage, groups)
    view.steps = tuple(_step(step, view.ids) for step in lowered.fused.steps)
    if stage == "plan":
        view.places = lowered.plan.locations
    return view


def _step(step: Any, ids: dict[Value, str]) -> dict[str, Any]:
    if not isinstance(step, FusionGroup):
        return {"number": step.position, "kind": "call", "members": [ids[step.value]]}
    return {"number": step.position, "kind": "loops", "extents": list(step.extents), "inner": sorted(step.inner or ()),
            "members": [ids[member.value] for member in step.members]}


# ----- JSON
def graph_json(view: GraphView) -> str:
    """Node-link JSON: `networkx.node_link_graph(json.loads(text), edges="edges")` reads it.  A line per node and edge."""
    document = node_link(view)
    parts = []
    for key, content in document.items():
        if isinstance(content, list):
            rows = ",\n".join("  " + _compact(row) for row in content)
            parts.append(f' "{key}": [\n{rows}\n ]' if content else f' "{key}": []')
        else:
            parts.append(f' "{key}": {_compact(content)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def node_link(view: GraphView) -> dict[str, Any]:
    """The document as Python containers."""
    graph, ids = view.graph, view.ids
    about: dict[str, Any] = {
        "name": graph.name, "stage": view.stage, "inputs": [ids[value] for value in graph.inputs], "captured": graph.captured,
        "outputs": [ids[value] for value in graph.outputs]}
    if graph.index is not None:
        about["index"] = {"name": graph.index.name, "lo": _plain(graph.index.lo), "hi": _plain(graph.index.hi)}
    if view.steps:
        about["steps"] = list(view.steps)
    edges = [{"source": ids[operand], "target": ids[value], "key": position, "arg": position}
             for value in graph.body for position, operand in enumerate(value.operands)]
    return {"schema": SCHEMA, "directed": True, "multigraph": True, "graph": about,
            "nodes": [_node(view, value) for value in graph.values()], "edges": edges}


def _node(view: GraphView, value: Value) -> dict[str, Any]:
    type_ = value.type
    node: dict[str, Any] = {"id": view.ids[value], "op": value.op.name, "kind": value.op.kind, "type": str(type_)}
    if isinstance(type_, TensorType):
        node |= {"dtype": type_.dtype.name, "shape": _plain(type_.shape), "bytes": type_.nbytes}
    node["attrs"] = {name: _plain(attribute) for name, attribute in value.attrs.items()}
    forward = view.name_of_forward(value)
    if forward is not None:
        node["fwd"] = forward
    if value.source is not None:
        node["loc"] = _place(value.source)
    if value in view.groups:
        node["group"] = view.groups[value]
    if value in view.places:
        node["buffer"] = dict(view.places[value]._asdict())
    return node


def _place(source: Source) -> dict[str, Any]:
    stack = []
    caller = source.caller
    while caller is not None:
        stack.append(f"{caller.short} {caller.function}".strip())
        caller = caller.caller
    place = {"file": source.file, "line": source.line, "column": source.column, "function": source.function}
    return place | ({"stack": stack} if stack else {})


def _plain(attribute: Any) -> Any:
    """An attribute as JSON: numbers that JSON lacks, dtypes and extents are strings, regions are documents."""
    if isinstance(attribute, np.generic):
        attribute = attribute.item()
    if attribute is None or isinstance(attribute, bool | int | str):
        return attribute
    if isinstance(attribute, float):
        return attribute if math.isfinite(attribute) else str(attribute)
    if isinstance(attribute, tuple | list):
        return [_plain(element) for element in attribute]
    if isinstance(attribute, Graph):
        return node_link(GraphView(attribute, "region"))
    if isinstance(attribute, DType | TensorType | TupleType | complex) or hasattr(attribute, "terms"):
        return str(attribute)
    return f"<{type(attribute).__name__}>"


# ----- labels
def label_lines(view: GraphView, value: Value) -> list[str]:
    """Two or three lines for a box: the name with what computes it, and the type; literals stand in their readers."""
    name = view.texts[value]
    if value.op.kind == "input":
        return [name, str(value.type)]
    literals = [view.texts[operand] for operand in value.operands if view.is_literal(operand)]
    shown = value.op.name
    if literals:
        operands = [view.texts[operand] if view.is_literal(operand) else "·" for operand in value.operands]
        shown += f" {', '.join(operands)}"
    attributes = attributes_text(value)
    short = attributes if len(attributes) <= 40 else attributes[:38] + "…}"
    lines = [f"{name} = {shown}"] if name != f"%{value.op.name}" or literals else [name]
    return [*lines, *([short] if short else []), str(value.type)]


def details(view: GraphView, value: Value) -> str:
    """The source of a value, for tooltips."""
    parts = []
    forward = view.name_of_forward(value)
    if forward is not None:
        parts.append(f"vjp of %{forward}")
    if value.source is not None:
        parts.append(value.source.short)
    return ", ".join(parts)


# ----- DOT
def graph_dot(view: GraphView) -> str:
    """DOT text; steps of a fused program are clusters, adjoint values are blue."""
    lines = [f"digraph {_quoted(view.graph.name)} {{", "  rankdir=TB;",
             '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=monospace, fontsize=10];', "  edge [arrowsize=0.6];"]
    shown = [value for value in view.graph.values() if not view.is_literal(value)]
    clusters: dict[int, list[Value]] = {}
    for value in shown:
        if value in view.groups:
            clusters.setdefault(view.groups[value], []).append(value)
        else:
            lines.append(f"  {_dot_node(view, value)}")
    for number, members in sorted(clusters.items()):
        lines += [f"  subgraph cluster_{number} {{", f'    label="step {number}"; color=gray; fontname=monospace; fontsize=10;']
        lines += [*[f"    {_dot_node(view, value)}" for value in members], "  }"]
    lines += [f"  {_quoted(view.ids[operand])} -> {_quoted(view.ids[value])};"
              for value in shown for operand in value.operands if not view.is_literal(operand)]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_node(view: GraphView, value: Value) -> str:
    label = "\\n".join(_escaped(line) for line in label_lines(view, value))
    style = ""
    if value.op.kind == "input":
        style = ', shape=ellipse, fillcolor="#eeeeee"'
    elif value.forward is not None:
        style = ', fillcolor="#e3f0fb"'
    bold = ", penwidth=2" if value in view.graph.outputs else ""
    tooltip = details(view, value)
    return f'{_quoted(view.ids[value])} [label="{label}"{style}{bold}{f", tooltip={_quoted(tooltip)}" if tooltip else ""}];'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
