"""Runs passes: verifies the result of each, times it, writes graphs, and leaves a file that reproduces the failure if one raises.

Start reading at `PassRunner`.  The passes themselves are listed in `bwcompiler.compiler.pipeline`.
"""

from __future__ import annotations

import itertools
import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from bwcompiler.errors import BwError, CompileError, InternalError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.texts.graph_printer import graph_to_text

log = logging.getLogger("bwcompiler.passes")
_number = itertools.count()            # of dumps in this process: files sort in the order they were written
P = ParamSpec("P")
R = TypeVar("R")

GRAPH_PASS = "graph -> graph"


@dataclass(frozen=True)
class Pass:
    """A function of the pipeline, with the name that dumps, timings and the command line use.

    kind    what it takes and gives.  A pass from graph to graph returns the same object where it changed nothing; one whose values are
            asked for afterwards returns it with what stands for them (`rewriter.Rewritten`).
    graphs  the graphs of its result, which are verified and written; none where it makes something else.
    check   verifies the rest of its result.
    """

    name: str
    run: Callable[..., Any]
    doc: str
    kind: str = GRAPH_PASS
    graphs: Callable[[Any], Sequence[Graph]] = lambda result: [result]
    check: Callable[[Any], None] = lambda result: None


class Before(NamedTuple):
    """The first pass must come before the second; documents the order, never changes it."""

    first: str
    second: str
    because: str


@dataclass(frozen=True)
class PassOptions:
    """What to do with the results of passes.

    verify   check them.
    dump     folder that gets the first graph, and every graph that a pass makes, as text.
    observe  called with the name of a pass ("input" first) and each of these graphs.
    """

    verify: bool = False
    dump: Path | None = None
    observe: Callable[[str, Graph], None] | None = None


@dataclass(frozen=True)
class PassRun:
    """What one pass did.  nodes: number of values before and after, of passes that make graphs of a graph."""

    name: str
    seconds: float
    nodes: tuple[int, int] | None = None
    changed: bool = True

    def __str__(self) -> str:
        effect = "unchanged, " if not self.changed else f"{self.nodes[0]} -> {self.nodes[1]} nodes, " if self.nodes else ""
        return f"{self.name}: {effect}{self.seconds * 1e3:.2f} ms"


@dataclass
class PassRunner:
    """Runs passes of a pipeline in the pipeline's order, each place of it once; which are run is up to the caller.

        run = PassRunner(PIPELINE, options)
        graph = run(legalize, graph)            # as legalize(graph)

    scope: the indices of the loops around the graph, outermost first.
    """

    pipeline: Sequence[Pass]
    options: PassOptions
    scope: Sequence[Index] = ()
    runs: list[PassRun] = field(default_factory=list)
    _done: int = -1

    def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of a pass."""
        places = [place for place, step in enumerate(self.pipeline) if step.run is function]
        if not places:
            raise InternalError(f"{function} is no pass of the pipeline")
        number = next((place for place in places if place > self._done), places[-1])
        step = self.pipeline[number]
        if number <= self._done:
            raise InternalError(f"pass {step.name} comes before {self.pipeline[self._done].name} in the pipeline")
        if not self.runs and isinstance(args[0], Graph):
            if self.options.verify:
                verify(args[0], frozenset(self.scope))
            _show(args[0], "input", self.options)
        result: R = _run(step, args, kwargs, self.options, self.scope, self.runs)
        self._done = number
        return result


def run_pass(step: Pass, graph: Graph, options: PassOptions) -> tuple[Graph, PassRun]:
    """One pass from graph to graph.  Where it raises, or gives an invalid graph, the exception names a file with the input."""
    runs: list[PassRun] = []
    result = _run(step, (graph,), {}, options, (), runs)
    return step.graphs(result)[0], runs[0]


def _run(step: Pass, args: Sequence[Any], kwargs: dict[str, Any], options: PassOptions, scope: Sequence[Index],
         runs: list[PassRun]) -> Any:
    subject = args[0]
    start = time.perf_counter()
    try:
        result = step.run(*args, **kwargs)
        seconds = time.perf_counter() - start
        made = [graph for graph in step.graphs(result) if graph is not subject]
        if options.verify:
            for graph in made:
                verify(graph, frozenset(scope))
            step.check(result)
    except Exception as error:
        users = isinstance(error, BwError) and not isinstance(error, CompileError | InternalError)
        if isinstance(subject, Graph) and not users:
            _add_reproducer(error, step, subject, options)
        raise
    changed = bool(made) or not step.graphs(result)
    nodes = (len(subject.body), sum(len(graph.body) for graph in made)) if made and isinstance(subject, Graph) else None
    run = PassRun(step.name, seconds, nodes, changed)
    runs.append(run)
    log.debug("%s", run)
    for graph in made:
        _show(graph, step.name, options)
    return result


def check_order(passes: Sequence[Pass], order: Sequence[Before]) -> None:
    """Raise InternalError unless names are distinct and the order keeps every constraint."""
    names = [step.name for step in passes]
    if len(set(names)) != len(names):
        raise InternalError(f"two passes have one name: {names}")
    for first, second, because in order:
        if names.index(first) >= names.index(second):
            raise InternalError(f"pass {first} must come before {second}: {because}")


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
    again = f"to see it fail again: bwc run-pass {step.name}" if step.kind == GRAPH_PASS else "its input is in"
    error.add_note(f"pass {step.name} failed; {again} {file}")


def _show(graph: Graph, name: str, options: PassOptions) -> None:
    if options.observe is not None:
        options.observe(name, graph)
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
