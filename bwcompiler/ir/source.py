"""`Source`: the place in the user's program that a value comes from."""

from __future__ import annotations


class Source:
    """A place in the user's program: file, line, column, function, and the place that called it."""

    __slots__ = ("caller", "column", "file", "function", "line")

    def __init__(self, file: str, line: int, column: int = 0, function: str = "", caller: Source | None = None) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.function = function
        self.caller = caller

    def __repr__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def short(self) -> str:
        """`file.py:line` without the folder."""
        return f"{self.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{self.line}"
