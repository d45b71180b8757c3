"""`without_unread`: values of a gap over lanes, which its loop passes on in registers, lie in panels only where a later loop reads them.

    for l in 0..64 vector                       for l in 0..64 vector
      let disc = b - c                            let disc = b - c
      store %disc.row[l], disc                    let sq = sqrt(disc)
      let sq = sqrt(disc)                 ->      store %sq.row[l], sq
      store %sq.row[l], sq
    for i2 in 0..3                              for i2 in 0..3
      for l in 0..64 vector                       for l in 0..64 vector
        ... %sq.row[l] ...                          ... %sq.row[l] ...

LLVM would not find this out: the panels are memory that the caller gives, and the passes that it runs remove no stores.  A condition would
cost most, as it is a mask in a register and a byte in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from bwcompiler.ir.loop import Buffer, Loop, Statement, Store
from bwcompiler.ir.semantics.loop_verifier import scalars, statements


def without_unread(body: list[Statement], after: Iterable[Statement], panels: Collection[Buffer]) -> tuple[list[Statement], set[Buffer]]:
    """The statements without stores into panels that neither they nor those after them read; and these panels."""
    unread = set(panels)
    for statement, _ in statements([*body, *after]) if unread else ():
        unread.difference_update([scalar.data[0] for scalar, _ in scalars(statement) if scalar.op == "load"])
    return (_without(body, unread), unread) if unread else (body, unread)


def _without(body: Sequence[Statement], unread: Collection[Buffer]) -> list[Statement]:
    found: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            found.append(Loop(statement.index, statement.extent, _without(statement.body, unread), statement.kind))
        elif not isinstance(statement, Store) or statement.buffer not in unread:
            found.append(statement)
    return found
