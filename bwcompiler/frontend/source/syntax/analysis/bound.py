"""Which variables a block has certainly bound where it breaks out of a loop: they have values after it, if it cannot end otherwise."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from bwcompiler.frontend.source.syntax.analysis.liveness import stores

Names = frozenset[str]
_PLAIN = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def bound_by_breaks(body: Sequence[ast.stmt]) -> list[str]:
    """What is bound wherever the body of a loop breaks out of it, but not in every iteration; in the order of the names."""
    walk = _Walk()
    after = walk.block(body, frozenset())
    if not walk.breaks:
        return []
    every = walk.continues + ([] if after is None else [after])
    return sorted(frozenset.intersection(*walk.breaks) - (frozenset.intersection(*every) if every else frozenset()))


class _Walk:
    def __init__(self) -> None:
        self.breaks: list[Names] = []              # what is bound at each
        self.continues: list[Names] = []

    def block(self, body: Sequence[ast.stmt], bound: Names) -> Names | None:
        """What is bound behind a block; None where control does not get there."""
        for node in body:
            found = self.statement(node, bound)
            if found is None:
                return None
            bound = found
        return bound

    def statement(self, node: ast.stmt, bound: Names) -> Names | None:
        if isinstance(node, ast.Break):
            self.breaks.append(bound)
        elif isinstance(node, ast.Continue):
            self.continues.append(bound)
        elif isinstance(node, _PLAIN):
            return bound | frozenset(stores([node]))
        elif isinstance(node, ast.If):
            return _both([self.block(node.body, bound), self.block(node.orelse, bound)])
        elif isinstance(node, ast.With):
            return self.block(node.body, bound)
        elif isinstance(node, ast.Try):
            return self._try(node, bound)
        if isinstance(node, ast.Break | ast.Continue | ast.Return | ast.Raise):
            return None
        return bound                               # a loop, which may have no iteration; its own jumps are not ours

    def _try(self, node: ast.Try, bound: Names) -> Names | None:
        inside = self.block(node.body, bound)
        ends = [None if inside is None else self.block(node.orelse, inside), *[self.block(one.body, bound) for one in node.handlers]]
        found = _both(ends)
        final = self.block(node.finalbody, bound)
        return None if found is None or final is None else found | final


def _both(ends: Sequence[Names | None]) -> Names | None:
    reached = [end for end in ends if end is not None]
    return frozenset.intersection(*reached) if reached else None
