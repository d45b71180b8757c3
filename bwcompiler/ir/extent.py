"""Extents: integers that may depend on the indices of enclosing loops.

An extent is `c0 + sum(ck * index_k)`.  A constant extent *is* a Python int, so graphs without loops pay nothing.
Shape rules use the helpers of this module (`known_le`, `element_count`, ...) instead of `<=` and `math.prod`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from bwcompiler.errors import UnsupportedError

_serial = itertools.count()


class Index:
    """The index of one loop: an integer symbol that runs over lo..hi (both inclusive)."""

    __slots__ = ("hi", "lo", "name", "serial")

    def __init__(self, lo: Extent, hi: Extent, name: str = "i") -> None:
        self.lo = lo
        self.hi = hi
        self.name = name
        self.serial = next(_serial)

    def __repr__(self) -> str:
        return self.name

    def extent(self) -> Affine:
        """The index itself as an extent."""
        return Affine(0, ((self, 1),))


class Affine:
    """`constant + sum(coefficient * index)` with at least one index; immutable."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int, terms: tuple[tuple[Index, int], ...]) -> None:
        self.constant = constant
        self.terms = terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Affine) and self.constant == other.constant and self.terms == other.terms

    def __hash__(self) -> int:
        return hash((self.constant, self.terms))

    def __repr__(self) -> str:
        parts = [f"{coefficient}*{index}" if coefficient != 1 else f"{index}" for index, coefficient in self.terms]
        if self.constant:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    def __add__(self, other: Extent) -> Extent:
        return add_extents(self, other)

    __radd__ = __add__

    def __neg__(self) -> Extent:
        return scale_extent(self, -1)

    def __sub__(self, other: Extent) -> Extent:
        return add_extents(self, scale_extent(other, -1))

    def __rsub__(self, other: Extent) -> Extent:
        return add_extents(other, scale_extent(self, -1))

    def __mul__(self, other: Extent) -> Extent:
        if isinstance(other, Affine):
            raise UnsupportedError(f"({self}) * ({other}) elements, of which both depend on indices of loops, along one axis are not "
                                   "supported\n  hint: keep the axes apart: sums and products take several, axis=(0, 1)")
        return scale_extent(self, other)

    __rmul__ = __mul__


Extent: TypeAlias = int | Affine


def _make(constant: int, terms: Mapping[Index, int]) -> Extent:
    kept = [term for term in terms.items() if term[1]]
    if len(kept) > 1:
        kept.sort(key=_serial_of)
    return Affine(constant, tuple(kept)) if kept else constant


def _serial_of(term: tuple[Index, int]) -> int:
    return term[0].serial


def add_extents(a: Extent, b: Extent) -> Extent:
    """a + b."""
    if isinstance(a, int):
        return a + b if isinstance(b, int) else Affine(a + b.constant, b.terms)
    if isinstance(b, int):
        return Affine(a.constant + b, a.terms)
    terms = dict(a.terms)
    for index, coefficient in b.terms:
        terms[index] = terms.get(index, 0) + coefficient
    return _make(a.constant + b.constant, terms)


def scale_extent(a: Extent, factor: int) -> Extent:
    """a * factor."""
    if isinstance(a, int):
        return a * factor
    return Affine(a.constant * factor, tuple([(index, coefficient * factor) for index, coefficient in a.terms])) if factor else 0


def divided(a: Extent, divisor: int) -> Extent | None:
    """a / divisor, rounded up; None if that is not affine: a coefficient is not a multiple of the divisor."""
    if isinstance(a, int):
        return -(-a // divisor)
    if any(coefficient % divisor for _, coefficient in a.terms):
        return None
    return _make(-(-a.constant // divisor), {index: coefficient // divisor for index, coefficient in a.terms})


def substitute(a: Extent, environment: Mapping[Index, Extent]) -> Extent:
    """a with indices replaced by other extents."""
    if isinstance(a, int):
        return a
    terms: dict[Index, int] = {}
    constant = a.constant
    for index, coefficient in a.terms:
        found = environment.get(index)
        if found is None:
            terms[index] = terms.get(index, 0) + coefficient
        elif isinstance(found, int):
            constant += coefficient * found
        else:
            constant += coefficient * found.constant
            for other, factor in found.terms:
                terms[other] = terms.get(other, 0) + coefficient * factor
    return _make(constant, terms)


def evaluate(a: Extent, environment: Mapping[Index, int]) -> int:
    """The value of a for given values of its indices."""
    if isinstance(a, int):
        return a
    total = a.constant
    for index, coefficient in a.terms:
        total += coefficient * environment[index]
    return total


def upper(a: Extent) -> int:
    """The largest value a can take."""
    while not isinstance(a, int):
        index, coefficient = a.terms[-1]
        a = _with_end(a, index.hi if coefficient > 0 else index.lo)
    return a


def lower(a: Extent) -> int:
    """The smallest value a can take."""
    while not isinstance(a, int):
        index, coefficient = a.terms[-1]
        a = _with_end(a, index.lo if coefficient > 0 else index.hi)
    return a


def _with_end(a: Affine, end: Extent) -> Extent:
    """a with its last index replaced."""
    *others, (index, coefficient) = a.terms
    if not isinstance(end, int):
        return substitute(a, {index: end})
    constant = a.constant + coefficient * end
    return Affine(constant, tuple(others)) if others else constant


def most(shape: Iterable[Extent]) -> tuple[int, ...]:
    """The largest extents that a shape can have, for which memory is allocated."""
    return tuple([extent if isinstance(extent, int) else upper(extent) for extent in shape])


def span(a: Extent, over: Container[Index]) -> tuple[Extent, Extent]:
    """The smallest and the largest value of a over all values of the indices `over`; both may depend on other indices."""
    low = high = a if isinstance(a, int) else Affine(a.constant, a.terms)
    while True:
        ends = []
        for end, sign in ((low, -1), (high, 1)):
            terms = () if isinstance(end, int) else end.terms
            found = next(((index, factor) for index, factor in reversed(terms) if index in over), None)
            if found is not None:
                index, factor = found
                end = substitute(end, {index: index.hi if factor * sign > 0 else index.lo})
            ends.append((end, found is not None))
        (low, more_low), (high, more_high) = ends
        if not more_low and not more_high:
            return low, high


def known_le(a: Extent, b: Extent) -> bool | None:
    """True or False if a <= b can be decided from the bounds of the indices, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    difference = add_extents(b, -a)
    if lower(difference) >= 0:
        return True
    return False if upper(difference) < 0 else None


def mentions_index(attributes: Mapping[str, object]) -> bool:
    """Whether an attribute, or an element of one, depends on a loop index."""
    return any(isinstance(x, Affine) or (type(x) is tuple and any(isinstance(part, Affine) for part in x)) for x in attributes.values())


def exact_count(shape: Iterable[Extent]) -> Extent:
    """The exact number of elements of a shape; raises UnsupportedError if it is a product of extents that depend on indices."""
    count: Extent = 1
    for extent in shape:
        count = extent * count if isinstance(count, int) else count * extent
    return count


def may_be_reshaped(old: Iterable[Extent], new: Iterable[Extent]) -> bool:
    """Whether a reshape is possible: the numbers of elements agree, and no element moves across an extent that depends on indices, as
    arrays are laid out for the largest extents."""
    return _counts(old) == _counts(new)


def _counts(shape: Iterable[Extent]) -> list[Extent]:
    """The extents that depend on indices, with the number of elements before, between and after them."""
    count, found = 1, list[Extent]()
    for extent in shape:
        if isinstance(extent, int):
            count *= extent
        else:
            found += [count, extent]
            count = 1
    return [*found, count]


def element_count(shape: Iterable[Extent]) -> int:
    """Number of elements of a shape (for symbolic extents: an upper bound)."""
    count = 1
    for extent in shape:
        count *= extent if isinstance(extent, int) else upper(extent)
    return count


class Section(NamedTuple):
    """Part of an array: along each axis `sizes` elements from `starts`, `steps` apart (not 0)."""

    starts: tuple[Extent, ...]
    sizes: tuple[Extent, ...]
    steps: tuple[int, ...]

    def is_apart(self, other: Section) -> bool:
        """Whether two sections of one array are disjoint, as far as this follows from a single axis."""
        for axis in range(len(self.starts)):
            low, high = self.bounds(axis)
            other_low, other_high = other.bounds(axis)
            if _is_less(high, other_low) or _is_less(other_high, low) or self._alternates(other, axis):
                return True
        return False

    def _alternates(self, other: Section, axis: int) -> bool:
        """Whether the elements of another section are between those of this one, like even and odd ones."""
        steps = [0 if part.sizes[axis] == 1 else part.steps[axis] for part in (self, other)]
        common = math.gcd(*steps)
        if common < 2:
            return False
        distance = add_extents(self.starts[axis], scale_extent(other.starts[axis], -1))
        if isinstance(distance, int):
            return distance % common != 0
        return distance.constant % common != 0 and all(factor % common == 0 for _, factor in distance.terms)

    def joined(self, other: Section) -> Section | None:
        """The union if it is a section again (neighbours along one axis that agree along the others); else None."""
        different = [axis for axis in range(len(self.starts))
                     if (self.starts[axis], self.sizes[axis]) != (other.starts[axis], other.sizes[axis])]
        if self.steps != other.steps or len(different) != 1 or self.steps[different[0]] != 1:
            return None
        axis = different[0]
        first, second = (self, other) if known_le(self.starts[axis], other.starts[axis]) else (other, self)
        if add_extents(first.starts[axis], first.sizes[axis]) != second.starts[axis]:
            return None
        size = add_extents(first.sizes[axis], second.sizes[axis])
        return Section(first.starts, (*first.sizes[:axis], size, *first.sizes[axis + 1:]), first.steps)

    def bounds(self, axis: int) -> tuple[Extent, Extent]:
        """The first and the last index along an axis."""
        start, size, step = self.starts[axis], self.sizes[axis], self.steps[axis]
        end: Extent
        if isinstance(start, int) and isinstance(size, int):               # most are: long chains of updates ask this for each
            end = start + (size - 1) * step
        else:
            end = add_extents(start, scale_extent(add_extents(size, -1), step))
        return (start, end) if step > 0 else (end, start)


def _is_less(a: Extent, b: Extent) -> bool:
    """Whether a < b for all values of the indices."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return known_le(add_extents(a, 1), b) is True
