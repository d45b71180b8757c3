"""One program as one HTML file: all stages side by side, with related lines highlighted together.

Every line of every pane, and every box of the pictures, has marks: the user's line (`s:loss.py:3`), the forward value it
computes or differentiates (`v:tanh`), the kernel it is part of (`k:k1`).  Pointing at a line highlights those with the same value
or kernel, and more faintly those with the same user line.  The file needs no network and no other file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from bwcompiler.compiler.lowered import Lowered
from bwcompiler.export.graph_formats import GraphView
from bwcompiler.inspect.graph_drawing import STYLE as DRAWING_STYLE
from bwcompiler.inspect.graph_drawing import graph_svg
from bwcompiler.inspect.lowered_texts import lowered_text, step_text
from bwcompiler.inspect.source_listing import source_lines
from bwcompiler.ir.contracts.fusion import FusionGroup
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.texts.graph_printer import NO_NAMES, Names, graph_to_text, names_in_text

DRAWN = 400                        # graphs of more values are not drawn: nobody could read the picture


class MarkedLine(NamedTuple):
    text: str
    marks: str = ""


class Pane(NamedTuple):
    """A titled column: lines, or a picture (SVG text)."""

    title: str
    lines: Sequence[MarkedLine] = ()
    picture: str = ""
    open: bool = True


# ----- marks
_DEFINED = re.compile(r'^  (%(?:"(?:[^"\\]|\\.)*"|[\w.]+)):')


def value_mark(value: Value, names: Names) -> str:
    """The forward value it computes or differentiates, and its line; `names` are those of the forward graph's text."""
    of = value if value.forward is None else value.forward
    name = names.get(of) or f"%{of.name or of.op.name}"
    marks = [_mark("v", name[1:])] if name.startswith("%") else []
    return " ".join([*marks, *([_mark("s", value.source.short)] if value.source is not None else [])])


def _mark(kind: str, name: str) -> str:
    """A mark without spaces, as spaces separate marks."""
    return f"{kind}:{name.replace(' ', '_')}"


def graph_lines(graph: Graph, forward_names: Names, given: Names = NO_NAMES) -> list[MarkedLine]:
    """The text of a graph (with `given` as in `graph_to_text`); a line that defines a value has its marks."""
    names = names_in_text(graph, given)
    values = {name: value for value, name in names.items()}
    known = {**names, **forward_names}
    found = []
    for text in graph_to_text(graph, given=given).splitlines():
        defined = _DEFINED.match(text)
        value = values.get(defined[1]) if defined else None
        found.append(MarkedLine(text, "" if value is None else value_mark(value, known)))
    return found


def _kernel_marks(lowered: Lowered) -> dict[str, str]:
    """Per kernel the marks of its values and lines."""
    found = {}
    for step in lowered.fused.steps:
        values = [member.value for member in step.members] if isinstance(step, FusionGroup) else [step.value]
        places = dict.fromkeys(_mark("s", value.source.short) for value in values if value.source is not None)
        found[f"k{step.position}"] = " ".join([f"k:k{step.position}", *places])
    return found


def _code_lines(text: str, opening: re.Pattern[str], closing: re.Pattern[str], marks: dict[str, str]) -> list[MarkedLine]:
    """Lines of code; those from a line that opens a kernel (`k3`, a part `k3.1`, or a sweep `k3.k4`) up to the one that closes it carry
    its marks."""
    current, found = "", []
    for line in text.splitlines():
        opened = opening.match(line)
        if opened:
            current = " ".join([marks[name] for name in opened[1].split(".") if name in marks])
        found.append(MarkedLine(line, current))
        if closing.match(line):
            current = ""
    return found


# ----- panes
def source_pane(graph: Graph, fun: Callable[..., Any] | None = None) -> Pane:
    lines = [MarkedLine(f"{line.place:>14}  {line.text}", _mark("s", line.place)) for line in source_lines(graph, fun)]
    return Pane("source", lines)


def graph_panes(title: str, graph: Graph, forward_names: Names) -> list[Pane]:
    """The text and the picture of a graph, which calls values as the forward graph does."""
    panes = [Pane(title, graph_lines(graph, forward_names, forward_names))]
    if len(graph) <= DRAWN:
        view = GraphView(graph, title, forward_names=forward_names)
        marks = {value: value_mark(value, {**view.texts, **forward_names}) for value in graph.values()}
        panes.append(Pane(f"{title}, drawn", picture=graph_svg(view, marks, standalone=False)))
    return panes


def lowered_panes(lowered: Lowered, forward_names: Names) -> list[Pane]:
    """Everything after the passes."""
    marks = _kernel_marks(lowered)
    names = names_in_text(lowered.simplified)
    fused = [MarkedLine(step_text(step, names), marks[f"k{step.position}"]) for step in lowered.fused.steps]
    loops = _code_lines(lowered_text(lowered, "loops"), re.compile(r"kernel ([\w.]+)\("), re.compile(r"^$"), marks)
    opening, closing = re.compile(r"define .*?@([\w.]+)\("), re.compile(r"^\}")
    panes = [Pane("simplified", graph_lines(lowered.simplified, forward_names)), Pane("fused", fused),
             Pane("plan", [MarkedLine(line) for line in lowered_text(lowered, "plan").splitlines()]), Pane("loops", loops)]
    panes += [Pane(stage, _code_lines(lowered_text(lowered, stage), opening, closing, marks), open=False)
              for stage in ("llvm", "llvm-opt")]
    assembler = _code_lines(lowered_text(lowered, "asm"), re.compile(r"([\w.]+):"), re.compile(r"\.Lfunc_end"), marks)
    return [*panes, Pane("asm", assembler, open=False)]


# ----- the page
_PAGE_STYLE = """\
:root { color-scheme: light dark; --back: #fbfcfd; --front: #1d2733; --pane: #ffffff; --rim: #d5dce3; --strong: #ffe08a; --weak: #eef3d8; }
@media (prefers-color-scheme: dark) { :root { --back: #14191f; --front: #dde5ee; --pane: #1a2129; --rim: #36424e; --strong: #6b5300;
--weak: #2c3720; } }
body { margin: 0; background: var(--back); color: var(--front); font: 13px system-ui, sans-serif; }
header { display: flex; gap: 1em; align-items: baseline; padding: 8px 12px; position: sticky; top: 0; background: var(--back);
border-bottom: 1px solid var(--rim); z-index: 1; } h1 { font-size: 15px; margin: 0; } header span { opacity: 0.75; }
main { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 10px; padding: 10px; }
details { background: var(--pane); border: 1px solid var(--rim); border-radius: 6px; max-width: 100%; }
summary { padding: 4px 10px; font-weight: 600; cursor: pointer; } .lines, .picture { overflow: auto; max-height: 75vh; max-width: 95vw; }
.lines { font: 12px/1.45 ui-monospace, Menlo, Consolas, monospace; padding: 0 0 6px; } .lines div { white-space: pre; padding: 0 10px 0 0; }
.lines div::before { content: "  "; } .strong::before { content: "▸ " !important; } .weak::before { content: "· " !important; }
.strong { background: var(--strong); } .weak { background: var(--weak); } .found { outline: 1px solid #d9480f; }
g.strong .box { fill: var(--strong); } g.weak .box { fill: var(--weak); } .hidden { display: none; }
"""
_SCRIPT = """\
const all = [...document.querySelectorAll("[data-m]")];
const marks = new Map(all.map(e => [e, e.dataset.m.split(" ").filter(Boolean)]));
let pinned = null;
function show(chosen) {
  const mine = chosen ? new Set(marks.get(chosen)) : new Set();
  for (const e of all) {
    const shared = marks.get(e).filter(m => mine.has(m));
    const strong = e === chosen || shared.some(m => m[0] !== "s");
    e.classList.toggle("strong", chosen !== null && strong);
    e.classList.toggle("weak", chosen !== null && !strong && shared.length > 0);
  }
}
for (const e of all) {
  e.addEventListener("mouseenter", () => { if (!pinned) show(e); });
  e.addEventListener("mouseleave", () => { if (!pinned) show(null); });
  e.addEventListener("focus", () => show(e));
  e.addEventListener("click", () => { pinned = pinned === e ? null : e; show(pinned); });
}
document.addEventListener("keydown", k => { if (k.key === "Escape") { pinned = null; show(null); } });
document.getElementById("search").addEventListener("input", event => {
  const text = event.target.value.toLowerCase();
  for (const e of document.querySelectorAll(".lines div, g.node"))
    e.classList.toggle("found", text !== "" && e.textContent.toLowerCase().includes(text));
});
"""
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"


def html_page(title: str, panes: Iterable[Pane]) -> str:
    """The whole file."""
    head = ['<!DOCTYPE html>', '<html lang="en">', "<head>", '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">', f"<title>{escape(title)}</title>",
            f"<style>{_PAGE_STYLE}{DRAWING_STYLE}</style>", "</head>", "<body>",
            f"<header><h1>{escape(title)}</h1><input id=\"search\" type=\"search\" placeholder=\"search\" aria-label=\"search\">"
            "<span>point at a line to see what it became; click to pin, Escape to let go</span></header>", "<main>"]
    return "\n".join([*head, *map(_pane, panes), "</main>", f"<script>{_SCRIPT}</script>", "</body>", "</html>"]) + "\n"


def _pane(pane: Pane) -> str:
    body = f'<div class="picture">{pane.picture}</div>' if pane.picture else "\n".join(
        ['<div class="lines">', *[_line(line) for line in pane.lines], "</div>"])
    return f"<details{' open' if pane.open else ''}><summary>{escape(pane.title)}</summary>\n{body}\n</details>"


def _line(line: MarkedLine) -> str:
    about = f' data-m="{escape(line.marks)}" tabindex="0"' if line.marks else ""
    return f"<div{about}>{escape(line.text) or ' '}</div>"
