"""Operands of a program that are not arguments: their values while tracing, and where each call reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bwcompiler import tree
from bwcompiler.api.programs.arguments.forms import argument_kind, signature_tree
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead
from bwcompiler.ir.contracts.call_signature import ArgumentKind, Read, leaf_indices
from bwcompiler.runtime.entry.python_entry import flatten


class OutsideOperands:
    """Operands that are read from outside at every call.

    reads  where they are, with the numbers of their leaves among all leaves of a call (`Read.tree`).
    first  the leaves at the time of tracing; kinds: how the native entry reads them.
    """

    def __init__(self, varying: Sequence[OutsideRead], start: int) -> None:
        self.reads: list[Read] = []
        self.first: list[Any] = []
        for outside in varying:
            leaves, treedef = tree.flatten(outside.read.expected)
            number = start + len(self.first)
            places = signature_tree(tree.unflatten(treedef, range(number, number + len(leaves))))
            assert places is not None              # of containers that the native entry takes (`is_operand`)
            self.reads.append(outside.read._replace(tree=places, expected=None))
            self.first += leaves
        self._start = start
        self._kinds = [argument_kind(leaf) for leaf in self.first]
        self._types = list(map(_type, self.first))

    @property
    def kinds(self) -> tuple[ArgumentKind, ...]:
        return tuple([kind for kind in self._kinds if kind is not None])

    def now(self) -> list[Any] | None:
        """The present leaves; None if one is of another kind, shape or dtype than the traced one."""
        found: dict[int, Any] = {}
        for read in self.reads:
            leaves = self._leaves(read)
            if leaves is None:
                return None
            found.update(leaves)
        return [found[number] for number in sorted(found)]

    def fits(self, read: Read) -> bool:
        """Whether the present value is of the traced kind, shape and dtype."""
        return self._leaves(read) is not None

    def _leaves(self, read: Read) -> dict[int, Any] | None:
        assert read.tree is not None
        leaves = flatten(read.tree, read.look(), ())
        if leaves is None:
            return None
        found = dict(zip(leaf_indices(read.tree), leaves, strict=True))
        return found if all(self._is_like(leaf, number - self._start) for number, leaf in found.items()) else None

    def _is_like(self, leaf: Any, number: int) -> bool:
        return argument_kind(leaf) == self._kinds[number] and _type(leaf) == self._types[number]


def _type(leaf: Any) -> Any:
    """The type information in which two leaves of one kind must agree."""
    return (leaf.dtype, leaf.shape) if hasattr(leaf, "dtype") else type(leaf)
