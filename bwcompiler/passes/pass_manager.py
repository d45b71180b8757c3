"""Runs graph passes: verifies after each, times it, writes what it made, and leaves a reproducer where one raises.

Start reading at `run_passes`.  The passes themselves are listed in `pipeline.py`.
"""

from __future__ import annotations

import itertools
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bwcompiler.errors import CompileError
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.graph_printer import graph_to_text
from bwcompiler.ir.graph_verifier import verify

log = logging.getLogger("bwcompiler.passes")
_number = itertools.count()            # of dumps in this process: files sort in the order they were written


@dataclass(frozen=True)
class Pass:
    """A named function from graph to graph; it returns the same object where it changed nothing."""

    name: str
    run: Callable[[Graph], Graph]
    doc: str


@dataclass(frozen=True)
class PassOptions:
    """verify: check the graph after every pass; dump: folder that gets the graph after every pass, as text."""

    verify: bool = False
    dump: Path | None = None


@dataclass(frozen=True)
class PassRun:
    """What one pass did.  nodes: number of values before and after."""

    name: str
    seconds: float
    nodes: tuple[int, int]
    changed: bool

    def __str__(self) -> str:
        before, after = self.nodes
        effect = f"{before} -> {after} nodes" if self.changed else "unchanged"
        return f"{self.name}: {effect}, {self.seconds * 1e3:.2f} ms"


def run_passes(passes: Sequence[Pass], graph: Graph, options: PassOptions) -> tuple[Graph, list[PassRun]]:
    """The graph after all passes, and what each did."""
    if options.verify:
        verify(graph)
    runs: list[PassRun] = []
    _dump(graph, "input", options)
    for step in passes:
        graph, run = run_pass(step, graph, options)
        runs.append(run)
    return graph, runs


def run_pass(step: Pass, graph: Graph, options: PassOptions) -> tuple[Graph, PassRun]:
    """One pass.  Where it raises, or gives an invalid graph, the exception names a file with the input graph."""
    start = time.perf_counter()
    try:
        result = step.run(graph)
        seconds = time.perf_counter() - start
        if options.verify and result is not graph:
            verify(result)
    except Exception as error:
        _add_reproducer(error, step, graph, options)
        raise
    run = PassRun(step.name, seconds, (len(graph.body), len(result.body)), result is not graph)
    log.debug("%s: %s", graph.name, run)
    if run.changed:
        _dump(result, step.name, options)
    return result, run


def pass_named(passes: Sequence[Pass], name: str) -> Pass:
    """The pass of that name."""
    for step in passes:
        if step.name == name:
            return step
    raise CompileError(f"there is no pass {name!r}; passes: {', '.join(step.name for step in passes)}")


def _add_reproducer(error: Exception, step: Pass, graph: Graph, options: PassOptions) -> None:
    folder = options.dump or Path(tempfile.gettempdir())
    try:
        file = _write(graph, folder, f"failed-{step.name}")
    except (OSError, ValueError) as failed:            # the reproducer must not hide the error
        error.add_note(f"pass {step.name} failed; its input could not be written: {failed}")
        return
    error.add_note(f"pass {step.name} failed; to see it fail again: bwc run-pass {step.name} {file}")


def _dump(graph: Graph, name: str, options: PassOptions) -> None:
    if options.dump is not None:
        _write(graph, options.dump, name)


def _write(graph: Graph, folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    label = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in graph.name)
    text = graph_to_text(graph)
    while True:
        file = folder / f"{next(_number):04}-{label}-{name}.graph"
        try:
            with open(file, "x", encoding="utf-8") as stream:
                stream.write(text)
        except FileExistsError:                        # another process's
            continue
        return file
