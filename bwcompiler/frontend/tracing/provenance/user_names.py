"""The user's names of values: the variable that a line assigns the value to.

Traced values know only their line and column, so the names are taken from the source: of the values that come from the
right-hand side of `hidden = np.tanh(x @ w + b)`, the last one is `hidden`.  Graphs at every later stage, and all printed texts,
have these names.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator

from bwcompiler.frontend.tracing.provenance.parsed_files import parsed
from bwcompiler.ir.op import Value

_Places = dict[tuple[int, int], str]                   # line and column of a right-hand side -> the variable
_files: dict[str, tuple[list[str], _Places]] = {}      # with the lines they were found in: a file may change


def name_values(values: Iterable[Value]) -> None:
    """Name those values that the user assigned to a variable and that have no name yet; in the order they were traced in."""
    last: dict[tuple[str, int, int], Value] = {}
    line: tuple[str, int] | None = None
    for value in values:
        source = value.source
        if source is None or value.forward is not None or value.op.kind == "constant":
            continue
        if line != (source.file, source.line):
            _name(last)
            last, line = {}, (source.file, source.line)
        last[source.file, source.line, source.column] = value
    _name(last)


def _name(last: dict[tuple[str, int, int], Value]) -> None:
    for (file, line, column), value in last.items():
        name = _assignments(file).get((line, column))
        if name is not None and value.name is None:
            value.name = name


def _assignments(file: str) -> _Places:
    """Where the right-hand sides of assignments to one plain name start."""
    lines = linecache.getlines(file)
    known = _files.get(file)
    if known is not None and known[0] is lines:
        return known[1]
    found: _Places = {}
    for node in _statements(parsed(file, lines)):    # none of a file that is not Python (any more): its values keep their ops' names
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[node.value.lineno, node.value.col_offset] = node.targets[0].id
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            place = node.value if isinstance(node, ast.AnnAssign) else node
            found[place.lineno, place.col_offset] = node.target.id
    _files[file] = (lines, found)
    return found


def _statements(module: ast.Module) -> Iterator[ast.AST]:
    """Those of a module at all depths; not what is in their expressions, which are most of it."""
    pending: list[ast.AST] = [module]
    while pending:
        node = pending.pop()
        yield node
        pending += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)]
