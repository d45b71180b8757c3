"""What the user calls a value: the variable that its line assigns it to.

Traced values know their line and column only, so the names are read off the source: of the values that come from the
right-hand side of `hidden = np.tanh(x @ w + b)`, the last is `hidden`.
"""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Iterable
from typing import NamedTuple

from bwcompiler.ir.op import Value


class _Place(NamedTuple):
    file: str
    line: int
    column: int


def user_names(values: Iterable[Value]) -> dict[Value, str]:
    """Names of those values that the user assigned to a variable; the values are in the order they were traced in."""
    targets: dict[str, dict[_Place, str]] = {}
    found: dict[Value, str] = {}
    for (file, _), line in itertools.groupby(filter(_is_users, values), _line_of):
        if file not in targets:
            targets[file] = _assignments(file)
        last = {_Place(file, value.source.line, value.source.column): value for value in line if value.source is not None}
        found.update((value, targets[file][place]) for place, value in last.items() if place in targets[file])
    return found


def _line_of(value: Value) -> tuple[str, int]:
    return ("", 0) if value.source is None else (value.source.file, value.source.line)


def _is_users(value: Value) -> bool:
    return value.source is not None and value.forward is None and value.op.kind not in ("input", "constant")


def _assignments(file: str) -> dict[_Place, str]:
    """Where the right-hand sides of assignments to one plain name start."""
    try:
        module = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):            # a file that is not Python (any more): its values keep their names
        return {}
    found: dict[_Place, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[_Place(file, node.value.lineno, node.value.col_offset)] = node.targets[0].id
    return found
