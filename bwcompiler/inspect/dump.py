"""Stages of programs in all formats, as strings and files.

`render` returns one stage of a program in one format, `write` writes it to a path, and `Compilation` writes the folder
of one compilation for `BW_DUMP`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from bwcompiler.compiler.lowered import Lowered
from bwcompiler.compiler.program_like import ProgramLike
from bwcompiler.errors import UnsupportedError
from bwcompiler.export.graph_formats import GraphView, graph_dot, graph_json, view_of_lowered
from bwcompiler.export.numpy_source import graph_source, program_source
from bwcompiler.inspect.graph_drawing import graph_svg
from bwcompiler.inspect.html_page import Pane, graph_panes, html_page, lowered_panes, source_pane
from bwcompiler.inspect.lowered_texts import LOWERED_STAGES, lowered_text, object_code
from bwcompiler.inspect.source_listing import source_text
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.texts.graph_printer import graph_to_text, names_in_text

STAGES = ("source", "forward", "adjoint", *LOWERED_STAGES)
GRAPH_STAGES = ("forward", "adjoint", "simplified", "fused", "plan")
FORMATS = {                        # format -> the stages that can be written in it
    "text": STAGES,
    "py": GRAPH_STAGES[:-1],
    "json": GRAPH_STAGES,
    "dot": GRAPH_STAGES,
    "svg": GRAPH_STAGES,
    "html": STAGES,
}
SUFFIXES = {".txt": "text", ".graph": "text", ".ll": "text", ".s": "text", **{f".{name}": name for name in FORMATS if name != "text"}}
KNOWN_SUFFIXES = ", ".join(sorted({*SUFFIXES, ".o"}))
STAGE_OF_SUFFIX = {".o": "object", ".ll": "llvm", ".s": "asm"}      # other suffixes default to the adjoint
_OTHER_WORDS = {"jaxpr": "forward", "backward": "adjoint", "grad": "adjoint", "gradient": "adjoint", "vjp": "adjoint", "hlo": "simplified",
                "stablehlo": "simplified", "assembly": "asm", "c": "llvm"}
FILE_SUFFIX = {"graph": "graph", "simplified": "graph", "forward": "graph", "adjoint": "graph", "llvm": "ll", "llvm-opt": "ll", "asm": "s"}


def suggestion(name: str, known: Sequence[str]) -> str:
    """` (did you mean ...?)`, or nothing if no known name is close."""
    close = [_OTHER_WORDS[name]] if _OTHER_WORDS.get(name) in known else difflib.get_close_matches(name, known, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check_stage(stage: str, format: str = "text") -> None:
    """Raise UnsupportedError unless the stage can be written in the format."""
    if format not in FORMATS:
        raise UnsupportedError(f"unknown format {format!r}{suggestion(format, list(FORMATS))}; formats: {', '.join(FORMATS)}")
    if stage not in STAGES:
        meant = f" ({stage!r} is a format: of the stages {', '.join(FORMATS[stage])})" if stage in FORMATS else suggestion(stage, STAGES)
        raise UnsupportedError(f"unknown stage {stage!r}{meant}; stages: {', '.join(STAGES)}")
    if stage not in FORMATS[format]:
        formats = ", ".join(name for name, stages in FORMATS.items() if stage in stages)
        raise UnsupportedError(f"stage {stage} cannot be written as {format}; its formats: {formats}")


def render(program: ProgramLike, stage: str = "adjoint", format: str = "text") -> str:
    """One stage of a program.  `html` shows all stages whatever the stage; `py` of forward or adjoint is the whole module."""
    check_stage(stage, format)
    if format == "html":
        return program_page(program)
    if format == "text":
        return _text(program, stage)
    if format == "py":
        if stage in ("forward", "adjoint"):
            return program_source(program)
        return graph_source(program.lowered().simplified)
    view = _view(program, stage)
    return {"json": graph_json, "dot": graph_dot, "svg": graph_svg}[format](view)


def _text(program: ProgramLike, stage: str) -> str:
    if stage == "source":
        return source_text(program.graph, program.fun)
    if stage == "forward":
        return graph_to_text(program.graph)
    if stage == "adjoint":
        return graph_to_text(program.adjoint, given=program.forward_names())
    return lowered_text(program.lowered(), stage)


def _view(program: ProgramLike, stage: str) -> GraphView:
    if stage == "forward":
        return GraphView(program.graph, stage)
    if stage == "adjoint":
        return GraphView(program.adjoint, stage, forward_names=program.forward_names())
    return view_of_lowered(program.lowered(), stage)


def program_page(program: ProgramLike) -> str:
    """The HTML page of a program."""
    names = program.forward_names()
    panes: list[Pane] = [source_pane(program.graph, program.fun), *graph_panes("forward", program.graph, names),
                         *graph_panes("adjoint", program.adjoint, names), *lowered_panes(program.lowered(), names)]
    return html_page(program.__name__, panes)


# ----- files
def write(program: ProgramLike, path: Path) -> list[Path]:
    """Write a file whose suffix names the format, or a folder with every stage as text and `index.html`; the files written.

    UnsupportedError for a suffix that names no format.
    """
    format = SUFFIXES.get(path.suffix)
    if format is not None:
        path.write_text(render(program, STAGE_OF_SUFFIX.get(path.suffix, "adjoint"), format), encoding="utf-8")
        return [path]
    if path.suffix == ".o":
        path.write_bytes(object_code(program.lowered()))
        return [path]
    if path.suffix and not path.is_dir():
        raise UnsupportedError(f"{path}: no format goes with {path.suffix}; the suffixes are {KNOWN_SUFFIXES}, and a name without one is "
                               "a folder with all stages")
    texts = {stage: _text(program, stage) for stage in STAGES if stage != "object"}
    return _write_folder(path, texts, program_page(program))


def _write_folder(folder: Path, texts: dict[str, str], page: str | None, first: int = 0) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    contents = {f"{number}-{stage}.{FILE_SUFFIX.get(stage, 'txt')}": text for number, (stage, text) in enumerate(texts.items(), first)}
    if page is not None:
        contents["index.html"] = page
    written = []
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    return written


class Compilation:
    """The folder `NNN-name` of one compilation; the graph is written first, so that it is there if the compilation fails."""

    def __init__(self, root: Path, name: str, graph: Graph) -> None:
        self.name = name
        self.graph = graph
        try:
            self.folder = _new_folder(root, name)
            _write_folder(self.folder, {"source": source_text(graph), "graph": graph_to_text(graph)}, None)
        except OSError as error:
            raise OSError(f"BW_DUMP={root}: cannot write the dump: {error}") from error

    def finish(self, lowered: Lowered) -> None:
        """Write all further stages and the page."""
        texts = {stage: lowered_text(lowered, stage) for stage in LOWERED_STAGES if stage != "object"}
        names = names_in_text(self.graph)
        panes = [source_pane(self.graph), *graph_panes("graph", self.graph, names), *lowered_panes(lowered, names)]
        _write_folder(self.folder, texts, html_page(self.name, panes), first=2)


def _new_folder(root: Path, name: str) -> Path:
    """A folder of its own, numbered in the order of compilation; other processes may write to the same root."""
    label = re.sub(r"[^\w.-]+", "_", name).strip("_") or "program"
    root.mkdir(parents=True, exist_ok=True)
    taken = [int(found[1]) for path in root.iterdir() if (found := re.match(r"(\d+)-", path.name))]
    number = max(taken, default=0)
    while True:
        number += 1
        folder = root / f"{number:03}-{label}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
