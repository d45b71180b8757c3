"""Whether iterations of a loop touch the same elements of an array, as far as bounds of affine positions show."""

from __future__ import annotations

from collections.abc import Set

from bwcompiler.ir.extent import Extent, Index, Section, add_extents, known_le, span, substitute


def are_apart(first: Section, second: Section, inner: Set[Index], other_inner: Set[Index]) -> bool:
    """Whether two parts have nothing in common in an iteration, wherever the indices of loops inside are, those of each part its own."""
    for axis in range(len(first.starts)):
        low, high = reach(first, axis, inner)
        other_low, other_high = reach(second, axis, other_inner)
        if known_le(add_extents(high, 1), other_low) or known_le(add_extents(other_high, 1), low):
            return True
    return False


def are_apart_later(first: Section, second: Section, index: Index, step: int, inner: Set[Index]) -> bool:
    """Whether a part in one iteration of the loop over `index` has nothing in common with another part in any later iteration.

    inner: the indices of loops inside, of which the two parts may be at any value.
    """
    here = index.extent()
    later = Index(add_extents(here, 1), index.hi) if step > 0 else Index(index.lo, add_extents(here, -1))
    for axis in range(len(first.starts)):
        low, high = reach(first, axis, inner)
        other_low, other_high = [substitute(end, {index: later.extent()}) for end in reach(second, axis, inner)]
        if known_le(add_extents(high, 1), other_low) or known_le(add_extents(other_high, 1), low):
            return True
    return False


def reach(section: Section, axis: int, indices: Set[Index]) -> tuple[Extent, Extent]:
    """The first and the last place along an axis over all values of some indices."""
    first, last = section.bounds(axis)
    return span(first, indices)[0], span(last, indices)[1]
