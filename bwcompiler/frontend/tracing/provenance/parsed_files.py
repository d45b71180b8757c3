"""The user's files as syntax trees, each parsed once as long as it does not change."""

from __future__ import annotations

import ast

_files: dict[str, tuple[list[str], ast.Module]] = {}   # with the lines they were parsed from


def parsed(file: str, lines: list[str]) -> ast.Module:
    """The tree of a file with these lines, to be read only; an empty one of what is not Python (any more)."""
    known = _files.get(file)
    if known is None or (known[0] is not lines and known[0] != lines):
        try:
            module = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            module = ast.Module([], [])
        known = _files[file] = (lines, module)
    return known[1]
