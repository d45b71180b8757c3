"""The common base of the parsers of graphs and kernels: tokens made on demand, errors with positions, extents."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeVar

from bwcompiler.errors import BwError
from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent

Item = TypeVar("Item")

REAL = r"(?:inf|nan|\d+(?:\.\d+)?(?:e[+-]?\d+)?)"           # of a number without its sign
STRING = r'"(?:[^"\\\n]|\\.)*"'
_SPACE = re.compile(r"\s*")


class ParseError(BwError, ValueError):
    """Text that cannot be read; `line` and `column` (from 1) say where."""

    def __init__(self, message: str, text: str, position: int) -> None:
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        self.line = text.count("\n", 0, position) + 1
        self.column = position - start + 1
        shown = text[start:end if end >= 0 else len(text)]
        super().__init__(f"line {self.line}, column {self.column}: {message}\n  {shown}\n  {' ' * (self.column - 1)}^")


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class TokenReader:
    """A position in a text.  pattern: matches one token, its named groups are the kinds; `name`, `number` and `symbol` are
    among them.  scope: the loop indices by name."""

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self.text = text
        self.position = 0
        self.scope: dict[str, Index] = {}
        self._pattern = pattern
        self._peeked: Token | None = None
        self._peeked_at = 0

    # ----- tokens
    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise ParseError(message, self.text, self.peek().start if position is None else position)

    def peek(self) -> Token:
        if self._peeked is not None and self._peeked_at == self.position:
            return self._peeked
        space = _SPACE.match(self.text, self.position)
        start = space.end() if space else self.position
        if start == len(self.text):
            return Token("end", "the end of the text", start, start)
        found = self._pattern.match(self.text, start)
        if found is None:
            raise ParseError(f"unexpected character {self.text[start]!r}", self.text, start)
        self._peeked = token = Token(found.lastgroup or "", found[0], start, found.end())
        self._peeked_at = self.position
        return token

    def next(self) -> Token:
        token = self.peek()
        self.position = token.end
        return token

    def accept(self, text: str) -> bool:
        token = self.peek()
        if token.text != text or token.kind not in ("symbol", "name"):
            return False
        self.position = token.end
        return True

    def expect(self, kind: str, what: str) -> Token:
        token = self.peek()
        if token.kind != kind:
            self.fail(f"expected {what}, found {token.text!r}")
        self.position = token.end
        return token

    def require(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.peek().text!r}")

    def on_this_line(self) -> bool:
        """Whether the next token is on the line of the last one."""
        return "\n" not in self.text[self.position:self.peek().start]

    def listed(self, item: Callable[[], Item], end: str) -> list[Item]:
        """Items separated by commas, up to `end`."""
        found: list[Item] = []
        if self.accept(end):
            return found
        while True:
            found.append(item())
            if self.accept(end):
                return found
            if not self.accept(","):
                self.fail(f"expected ',' or {end!r}, found {self.peek().text!r}")

    # ----- extents
    def index_named(self, token: Token) -> Index:
        found = self.scope.get(token.text)
        if found is None:
            self.fail(f"no loop index {token.text!r} in scope here", token.start)
        return found

    def term(self) -> Extent:
        sign = -1 if self.accept("-") else 1
        token = self.next()
        if token.kind == "name":
            return scale_extent(self.index_named(token).extent(), sign)
        if token.kind != "number" or not token.text.isdigit():
            self.fail(f"expected an integer or a loop index, found {token.text!r}", token.start)
        count = sign * int(token.text)
        if self.accept("*"):
            return scale_extent(self.index_named(self.expect("name", "a loop index")).extent(), count)
        return count

    def extent(self) -> Extent:
        total = self.term()
        while self.peek().text in ("+", "-"):
            self.accept("+")                            # a minus sign belongs to the term
            total = add_extents(total, self.term())
        return total
