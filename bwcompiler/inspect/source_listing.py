"""The user's functions that a graph was traced from, as numbered lines: `source_lines`, `source_text`."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bwcompiler.ir.graph import Graph
from bwcompiler.ir.source import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef


class SourceLine(NamedTuple):
    """One line; `place` is what graph texts call it, `file.py:12`; traced: whether values come from it."""

    file: str
    number: int
    text: str
    place: str
    traced: bool


def source_lines(graph: Graph, fun: Callable[..., Any] | None = None) -> list[SourceLine]:
    """`fun` and the functions that values of the graph come from, files in the order of the graph."""
    traced: dict[str, dict[int, str]] = {}
    code = getattr(inspect.unwrap(fun), "__code__", None) if fun is not None else None
    first = {(code.co_filename, code.co_firstlineno)} if code is not None else set()
    traced.update((file, {}) for file, _ in first)
    for value in graph.body:
        source = value.source
        while source is not None:
            traced.setdefault(source.file, {})[source.line] = source.short
            source = source.caller
    found: list[SourceLine] = []
    for file, places in traced.items():
        short = Source(file, 0).short.rpartition(":")[0]
        for number in sorted(_with_functions(file, [*places, *[line for start, line in first if start == file]])):
            found.append(SourceLine(file, number, linecache.getline(file, number).rstrip("\n"), f"{short}:{number}", number in places))
    return found


def source_text(graph: Graph, fun: Callable[..., Any] | None = None) -> str:
    """The lines with their numbers, below the name of their file; those that values come from are marked."""
    lines: list[str] = []
    previous = None
    for line in source_lines(graph, fun):
        if previous is None or previous.file != line.file:
            lines += [*([""] if lines else []), f"# {line.place.rpartition(':')[0]}"]
        elif line.number != previous.number + 1:
            lines.append("")
        lines.append(f"{line.number:5} {'|' if line.traced else ' '} {line.text}".rstrip())
        previous = line
    return "\n".join(lines) + "\n" if lines else "# no line of the function computes anything\n"


def _with_functions(file: str, numbers: Iterable[int]) -> set[int]:
    """These lines and all lines of the innermost functions around them."""
    text = "".join(linecache.getlines(file))
    try:
        functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, Function)]
    except (SyntaxError, ValueError):                  # a notebook cell with magic, a file that has changed: just the lines
        functions = []
    found: set[int] = set()
    for number in numbers:
        around = sorted([_span(node) for node in functions if number in _span(node)], key=len)
        found.update(around[0] if around else [number])
    return found


def _span(node: Function) -> range:
    first = min([node.lineno, *[decorator.lineno for decorator in node.decorator_list]])
    return range(first, (node.end_lineno or node.lineno) + 1)
