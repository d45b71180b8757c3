"""Branches that go on to the end of the block that they are in, each side with statements of its own.

if p:                               if p:
    x = x * a            ->             x = x * a
return x.sum() * 2                      return x.sum() * 2
                                    else:
                                        return x.sum() * 2

So what the sides leave behind need not be alike (a number on one side and an array on the other), as long as what is made of it is.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from bwcompiler.frontend.source.syntax.nodes import copied

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_OWN_TEXT = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def continued(node: ast.FunctionDef, lines: Collection[int]) -> ast.FunctionDef | None:
    """The function, in which the branches whose tests are in some lines go on; None where there is nothing behind these."""
    made = copied(node)
    found = _Continued(lines)
    made.body = found.block(made.body)
    return made if found.count else None


class _Continued:
    def __init__(self, lines: Collection[int]) -> None:
        self.lines = lines
        self.count = 0

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """What stands in the place of a block."""
        for place, one in enumerate(statements):
            self._inside(one)
            rest = statements[place + 1:]
            if rest and isinstance(one, ast.If) and any(one.test.lineno <= line <= (one.test.end_lineno or 0) for line in self.lines):
                self.count += 1
                rest = self.block(rest)
                sides = one.body, one.orelse
                one.body, one.orelse = [[*side, *map(copied, rest)] if not side or not isinstance(side[-1], _LEAVING) else side
                                        for side in sides]
                return [*statements[:place], one]
        return statements

    def _inside(self, statement: ast.stmt) -> None:
        if isinstance(statement, _OWN_TEXT):
            return
        for name in ("body", "orelse", "finalbody"):
            part = getattr(statement, name, None)
            if isinstance(part, list):
                setattr(statement, name, self.block(part))
