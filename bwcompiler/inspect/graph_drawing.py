"""Graphs as pictures: `graph_svg` lays a graph out in layers and draws it; no program or library outside is needed.

The layout is that of Sugiyama, Tagawa and Toda (1981): layers by longest path, dummy nodes on long edges, barycentre sweeps against
crossings, then positions relaxed towards the neighbours.  It is a function of the graph alone, so equal graphs give equal pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from bwcompiler.export.graph_formats import GraphView, details, label_lines
from bwcompiler.ir.op import Value

CHARACTER, LINE = 6.7, 14.0                   # size of a letter at font size 11
GAP, LAYER_GAP, MARGIN = 18.0, 34.0, 12.0
SWEEPS, RELAXATIONS = 8, 12
LONGEST_CUT = 12                              # edges over more layers are drawn as one curve: dummies would be quadratic

STYLE = """\
text { font: 11px ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace; fill: #1d2733; }
.box { fill: #ffffff; stroke: #8294a8; } .input .box { fill: #f0f2f5; } .adjoint .box { fill: #e3f0fb; stroke: #5b8dbd; }
.output .box { stroke-width: 2.5; } .type { fill: #61707f; } .edge { fill: none; stroke: #9aa8b6; } .step { fill: #a35b00; }
@media (prefers-color-scheme: dark) {
text { fill: #dde5ee; } .box { fill: #1f2730; stroke: #74879b; } .input .box { fill: #2a323c; }
.adjoint .box { fill: #1c3650; stroke: #6fa8dc; } .type { fill: #9fb0c0; } .edge { stroke: #66788a; } .step { fill: #f0b35a; } }
"""


@dataclass(eq=False)
class Box:
    """A value, or a dummy on a long edge (value is None)."""

    value: Value | None
    lines: Sequence[str]
    layer: int
    above: list[Box] = field(default_factory=list)
    below: list[Box] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * CHARACTER + 14 if self.lines else 1.0

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 8


@dataclass
class Layout:
    layers: list[list[Box]]
    edges: list[list[Box]]                    # each from an operand through dummies to its reader
    width: float = 0.0
    height: float = 0.0


def layout(view: GraphView) -> Layout:
    """Positions of all boxes."""
    shown = [value for value in view.graph.values() if not view.is_literal(value)]
    levels = _levels(shown)
    boxes = {value: Box(value, label_lines(view, value), levels[value]) for value in shown}
    layers: list[list[Box]] = [[] for _ in range(max(levels.values(), default=0) + 1)]
    for value in shown:
        layers[levels[value]].append(boxes[value])
    found = Layout(layers, [])
    for value in shown:
        for operand in dict.fromkeys(value.operands):
            if operand in boxes:
                found.edges.append(_edge(boxes[operand], boxes[value], layers))
    _order(layers)
    _place(found)
    return found


def _levels(shown: Sequence[Value]) -> dict[Value, int]:
    """The longest path to each value; then values with at least as many readers as operands move down to their readers."""
    levels: dict[Value, int] = {}
    readers: dict[Value, list[Value]] = {value: [] for value in shown}
    for value in shown:
        operands = [operand for operand in dict.fromkeys(value.operands) if operand in readers]
        levels[value] = max((levels[operand] + 1 for operand in operands), default=0)
        for operand in operands:
            readers[operand].append(value)
    for value in reversed(shown):
        if len(set(value.operands)) <= len(readers[value]):
            levels[value] = min(levels[reader] for reader in readers[value]) - 1 if readers[value] else levels[value]
    return levels


def _edge(start: Box, end: Box, layers: list[list[Box]]) -> list[Box]:
    path = [start]
    if end.layer - start.layer <= LONGEST_CUT:
        for number in range(start.layer + 1, end.layer):
            dummy = Box(None, (), number)
            layers[number].append(dummy)
            path.append(dummy)
    path.append(end)
    for upper, lower in pairwise(path):
        upper.below.append(lower)
        lower.above.append(upper)
    return path


def _order(layers: list[list[Box]]) -> None:
    """Sort each layer by the mean position of the neighbours above, then below, and so on."""
    rank = {box: float(position) for layer in layers for position, box in enumerate(layer)}

    def sort(layer: list[Box], upwards: bool) -> None:
        def mean(box: Box) -> float:
            neighbours = box.above if upwards else box.below
            return sum(rank[other] for other in neighbours) / len(neighbours) if neighbours else rank[box]
        layer.sort(key=mean)
        rank.update((box, float(position)) for position, box in enumerate(layer))

    for _ in range(SWEEPS):
        for layer in layers[1:]:
            sort(layer, True)
        for layer in reversed(layers[:-1]):
            sort(layer, False)


def _place(found: Layout) -> None:
    y = MARGIN
    for layer in found.layers:
        height = max((box.height for box in layer), default=0.0)
        x = MARGIN
        for box in layer:
            box.x, box.y = x + box.width / 2, y + height / 2
            x += box.width + GAP
        y += height + LAYER_GAP
    for turn in range(RELAXATIONS):
        for layer in found.layers if turn % 2 == 0 else reversed(found.layers):
            _relax(layer)
    boxes = [box for layer in found.layers for box in layer]
    left = min((box.x - box.width / 2 for box in boxes), default=0.0)
    for box in boxes:
        box.x += MARGIN - left
    found.width = max((box.x + box.width / 2 for box in boxes), default=0.0) + MARGIN
    found.height = y - LAYER_GAP + MARGIN


def _relax(layer: Sequence[Box]) -> None:
    """Move boxes to the mean of their neighbours as far as their order and distances allow."""
    wanted = []
    for box in layer:
        neighbours = [*box.above, *box.below]
        wanted.append(sum(other.x for other in neighbours) / len(neighbours) if neighbours else box.x)
    apart = [(one.width + other.width) / 2 + GAP for one, other in pairwise(layer)]
    right, left = wanted[:], wanted[:]
    for k, distance in enumerate(apart):
        right[k + 1] = max(right[k + 1], right[k] + distance)
    for k in range(len(apart) - 1, -1, -1):
        left[k] = min(left[k], left[k + 1] - apart[k])
    for k, box in enumerate(layer):           # two passes keep the distances, so their mean does too
        box.x = (left[k] + right[k]) / 2


# ----- drawing
def graph_svg(view: GraphView, marks: Mapping[Value, str] | None = None, standalone: bool = True) -> str:
    """The picture; `marks` become `data-m` attributes, which the page uses to highlight what belongs together."""
    found = layout(view)
    size = f'width="{found.width:.0f}" height="{found.height:.0f}" viewBox="0 0 {found.width:.0f} {found.height:.0f}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">', f"<title>{escape(view.graph.name)}</title>"]
    if standalone:
        lines.append(f"<style>{STYLE}</style>")
    lines += [_path(edge) for edge in found.edges]
    for layer in found.layers:
        lines += [_drawn(view, box.value, box, (marks or {}).get(box.value, "")) for box in layer if box.value is not None]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _path(edge: Sequence[Box]) -> str:
    """A smooth curve through the dummies, upright at both ends."""
    start, end = edge[0], edge[-1]
    points = [(start.x, start.y + start.height / 2), *[(box.x, box.y) for box in edge[1:-1]], (end.x, end.y - end.height / 2)]
    bends = [(0.0, LAYER_GAP / 2), *[((x1 - x0) / 6, (y1 - y0) / 6) for (x0, y0), (x1, y1) in zip(points, points[2:], strict=False)],
             (0.0, LAYER_GAP / 2)]
    text = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for ((x0, y0), (dx0, dy0)), ((x1, y1), (dx1, dy1)) in pairwise(zip(points, bends, strict=True)):
        text += f" C{x0 + dx0:.1f},{y0 + dy0:.1f} {x1 - dx1:.1f},{y1 - dy1:.1f} {x1:.1f},{y1:.1f}"
    return f'<path class="edge" d="{text}"/>'


def _drawn(view: GraphView, value: Value, box: Box, marks: str) -> str:
    kinds = ["node"]
    kinds += ["input"] if value.op.kind == "input" else []
    kinds += ["adjoint"] if value.forward is not None else []
    kinds += ["output"] if value in view.graph.outputs else []
    left, top = box.x - box.width / 2, box.y - box.height / 2
    about = f' data-m="{escape(marks)}" tabindex="0"' if marks else ""
    parts = [f'<g class="{" ".join(kinds)}"{about}>',
             f'<rect class="box" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="4"/>']
    tooltip = details(view, value)
    if tooltip:
        parts.append(f"<title>{escape(tooltip)}</title>")
    for number, line in enumerate(box.lines):
        kind = ' class="type"' if number == len(box.lines) - 1 else ""
        parts.append(f'<text{kind} x="{left + 7:.1f}" y="{top + 3 + (number + 0.8) * LINE:.1f}">{escape(line)}</text>')
    if value in view.groups:
        parts.append(f'<text class="step" x="{left + box.width - 4:.1f}" y="{top - 2:.1f}" text-anchor="end">{view.groups[value]}</text>')
    return "".join([*parts, "</g>"])
