"""What one walk over a syntax tree notes on its nodes for a later one.  Copies of nodes have the same notes (`nodes.copied`)."""

from __future__ import annotations

import ast
from typing import Generic, TypeVar

T = TypeVar("T")


class Note(Generic[T]):
    """A kind of note, with what it is on nodes on which nothing was noted; without such a default it must have been noted before."""

    def __init__(self, name: str, *default: T) -> None:
        self.name = name
        self.default = default

    def put(self, node: ast.AST, value: T) -> None:
        node.__dict__[self.name] = value

    def of(self, node: ast.AST) -> T:
        if self.default:
            found: T = node.__dict__.get(self.name, self.default[0])
            return found
        noted: T = node.__dict__[self.name]
        return noted


# By `analysis.liveness.annotate`: the names that may be read after a loop, branch, `try` or `del`; those that an iteration of a loop may
# read from the one before it; those that may be read where a `try` has failed.
LIVE_OUT: Note[frozenset[str]] = Note("live_out")
LIVE_HEAD: Note[frozenset[str]] = Note("live_head")
LIVE_CAUGHT: Note[frozenset[str]] = Note("live_caught")

# By `statements.jumps`: that the function ends with a branch or `try`; the variable that says that a `for`, once left by jumps, has ended.
IS_TAIL: Note[bool] = Note("is_tail", False)
FLAG: Note[str | None] = Note("flag", None)

# Of expressions: `and` and `or` of which only the truth is asked; a list that is only summed; a call that may make a generator, which a
# loop alone goes over; a call of a method whose result is not used.
IS_TEST: Note[bool] = Note("is_test", False)
IS_SUMMED: Note[bool] = Note("is_summed", False)
IS_SOURCE: Note[bool] = Note("is_source", False)
IS_STATEMENT: Note[bool] = Note("is_statement", False)

# By `analysis.private`: the name of a list that is handed over there, as nothing reads the variable afterwards; whether to a variable of
# which this is also known.
HANDED_OVER: Note[bool | None] = Note("handed_over", None)

# By `definitions.assigned_globals`: that a call gives the variables of the module.
IS_GLOBALS: Note[bool] = Note("is_globals", False)
