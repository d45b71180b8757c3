"""Values that are recomputed where they are read, because that costs less than storing and loading them.

There are three rules, each of which gives an attempt that reads the operands instead: a few cheap operations read at shifted indices
(`inlined`), a large array computed from much smaller ones (`expanded`), and elements picked from cheap values (`picked`).
"""

from __future__ import annotations

from collections.abc import Collection, Container

from bwcompiler import ops
from bwcompiler.ir.access import plain_axes, root
from bwcompiler.ir.contracts.fusion import FusionGroup
from bwcompiler.ir.op import Value, is_constant
from bwcompiler.ir.types import BOOL
from bwcompiler.passes.fusion.attempt import Attempt
from bwcompiler.passes.fusion.reads import Reads

MOST_SHIFTED = 4                               # operations in a row that a reader at shifted indices does again
MOST_INLINED = 3                               # values between one that is picked and what the loop has
LEAST_EXPANDED = 1 << 16                       # bytes of an array that is computed again rather than stored,
EXPANSION = 4                                  # if it has so many times the bytes of what it is made of
# Functions whose vector code takes 0.2 to 1 ns per element, and an array of so many bytes, which no cache near a core holds: to store an
# element and load it again takes longer (three times its bytes, with the line that is read before it is written).
VECTOR_FUNCTIONS = frozenset((ops.exp, ops.expm1, ops.log, ops.log1p, ops.tanh))
LEAST_BEYOND_CACHE = 1 << 23


class Recomputation:
    """made_of  what a cheap value reads where nothing is computed again.
    stored   the values that have memory, as they become known; waiting: the numbers without a place yet.
    written  arrays that are written to later: they may be other ones by then.
    """

    def __init__(self, stored: Collection[Value], waiting: Container[Value], written: Collection[Value],
                 reads: Reads) -> None:
        self.made_of: dict[Value, list[Value]] = {}
        self.stored = stored
        self.waiting = waiting
        self.written = written
        self.reads = reads

    def note(self, attempt: Attempt) -> None:
        """Remember what a value is made of, if it may be computed again."""
        value = attempt.value
        if (value.op.cheap or _is_masked(value) or _is_short_of_memory(value)) and not attempt.update:
            self.made_of[attempt.value] = [base for base, _ in attempt.reads]

    def picked(self, attempt: Attempt) -> Attempt | None:
        """The attempt to pick elements from what cheap values are made of, rather than from these.

        So the element z[i, label[i]] of z = x - max(x, axis=1) is picked in the loop that finds the maximum of row i.
        """
        if attempt.value.op is not ops.gather:
            return None
        picked, moved = attempt, frozenset[Value]()
        for _ in range(MOST_INLINED):
            shifted = [base for base, index in picked.reads if plain_axes(index) is None and root(base) not in self.stored]
            if not shifted:
                break
            if not all(self._is_cheap(base) for base in shifted):
                return None
            moved |= frozenset(shifted)
            picked = Attempt(attempt.value, self.reads, moved)
        return picked if moved else None

    def inlined(self, attempt: Attempt) -> Attempt:
        """The attempt with what it reads at shifted indices computed again where that is cheap, and reads nothing it writes."""
        if attempt.aligned:
            return attempt
        moved: frozenset[Value] = frozenset()
        for base, index in attempt.reads:
            if attempt.is_shifted(base, index):
                moved |= self._at_shifts(base)
        if not moved:
            return attempt
        inlined = Attempt(attempt.value, self.reads, moved, attempt.update)
        return attempt if inlined.update and inlined.reads_what_it_writes() else inlined

    def expanded(self, attempt: Attempt, group: FusionGroup | None) -> Attempt:
        """The attempt with what it would have to load, but is cheaply made of much smaller arrays, or of these and one stored array that
        is loaded in its place, computed again.

        So the differences x[:, None] - x[None, :] are never stored, however many loops read them, nor is x - mean(x, axis=0).
        """
        inside = {} if group is None else group.by_value
        again: frozenset[Value] = frozenset()
        for base, _ in attempt.reads:
            if base not in inside and (base.type.nbytes >= LEAST_EXPANDED or _is_masked(base)):
                again |= self._expansion(base)
            elif base not in inside and base.dtype is BOOL and group is not None:
                again |= self._test(base, attempt, group)
        return Attempt(attempt.value, self.reads, attempt.inlined | again, attempt.update) if again else attempt

    def _expansion(self, value: Value) -> frozenset[Value]:
        """What has to be computed to have the value again, none of it stored, from much smaller arrays and at most one like it that is;
        nothing if it is not so.  Of functions that are not cheap at most one."""
        found: dict[Value, None] = {}
        leaves: dict[Value, None] = {}
        likes: dict[Value, None] = {}
        pending = [value]
        while pending:
            array = pending.pop()
            again = self._is_cheap(array) or (self._is_known(array) and all(base.op.cheap for base in found))
            if not again or array in self.waiting:
                return frozenset()
            found[array] = None
            for base in self.made_of[array]:
                leaf = root(base)
                if leaf in self.written:
                    return frozenset()
                if leaf.type.nbytes * EXPANSION <= value.type.nbytes:
                    leaves[leaf] = None
                elif leaf in self.stored:
                    if base is not leaf or leaf not in array.operands or leaf.shape != value.shape:
                        return frozenset()
                    likes[leaf] = None
                elif base not in found:
                    pending.append(base)
            if len(found) + len(pending) > MOST_INLINED:
                return frozenset()
        small = sum([leaf.type.nbytes for leaf in leaves]) * EXPANSION <= value.type.nbytes
        return frozenset(found) if small and len(likes) <= 1 else frozenset()

    def _test(self, value: Value, attempt: Attempt, group: FusionGroup) -> frozenset[Value]:
        """What has to be computed to have a condition again, from nothing but what the loop of a group, or the attempt, has anyway.

        A condition in a register is a mask, one in memory is a byte: storing it and loading it again takes more than a comparison.
        """
        found: dict[Value, None] = {}
        pending = [value]
        there = {base for base, _ in attempt.reads if base.dtype is not BOOL}
        while pending:
            array = pending.pop()
            if len(found) == MOST_INLINED or not self._is_cheap(array) or any(root(base) in self.written for base in self.made_of[array]):
                return frozenset()
            found[array] = None
            missing = [base for base in self.made_of[array]
                       if base not in there and base not in group.by_value and base not in group.loads and base not in found]
            if any(base.dtype is not BOOL for base in missing):
                return frozenset()
            pending += missing
        return frozenset(found)

    def _at_shifts(self, value: Value) -> frozenset[Value]:
        """What a reader at shifted indices computes again instead of having value stored: a large one is a few cheap operations on two
        stored arrays, or on one array that is stored in its place; any other one operation."""
        if value.type.nbytes >= LEAST_EXPANDED and self._is_cheap(value):
            chain = self._chain(value, False) or self._chain(value, True)
            if chain:
                return chain
        return frozenset((value,)) if self._is_inlinable(value) else frozenset()

    def _chain(self, value: Value, unary: bool) -> frozenset[Value]:
        """The cheap operations from stored arrays to a value; unary: from one array, stored or not, to the value."""
        found: dict[Value, None] = {value: None}
        leaves: dict[Value, None] = {}
        pending = list(self.made_of[value])
        while pending:
            base = pending.pop()
            leaf = root(base)
            if leaf in self.written:
                return frozenset()
            if base in found:
                continue
            known = leaf in self.stored or leaf in self.waiting
            if not known and self._is_cheap(base) and len(found) < MOST_SHIFTED and (not unary or len(self.made_of[base]) == 1):
                found[base] = None
                pending += self.made_of[base]
            elif known or (unary and leaf.type.nbytes <= value.type.nbytes):
                leaves[leaf] = None
            else:
                return frozenset()
        return frozenset(found) if len(leaves) <= (1 if unary else 2) else frozenset()

    def _is_inlinable(self, value: Value) -> bool:
        """Whether a reader at shifted indices may compute value again instead of having it stored: one cheap operation."""
        if not self._is_cheap(value):
            return False
        found = [root(base) for base in self.made_of[value]]
        if any(base in self.written for base in found):
            return False
        if len(found) == 1 and found[0].type.nbytes <= value.type.nbytes:          # that is stored in its place
            return True
        return len(found) <= 2 and all(base in self.stored or base in self.waiting for base in found)

    def _is_cheap(self, value: Value) -> bool:
        return (value.op.cheap or _is_masked(value)) and self._is_known(value)

    def _is_known(self, value: Value) -> bool:
        return value in self.made_of and (value.op.kind == "elementwise" or _is_masked(value)) and value not in self.stored


def _is_masked(value: Value) -> bool:
    """Whether it is another array but for a part filled with a number: which elements these are, loops know from their indices."""
    return value.op is ops.slice_update and is_constant(value.operands[1])


def _is_short_of_memory(value: Value) -> bool:
    """Whether it takes longer to store the value and load it again than to compute it again, although that is a function."""
    return value.op in VECTOR_FUNCTIONS and value.dtype.kind == "f" and value.type.nbytes >= LEAST_BEYOND_CACHE
