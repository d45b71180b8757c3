"""One value and one group: can the group's loops compute the value, and at which depth (`Attempt`)?

Structure of a group: outer loops over axes O, and inside them passes over axes I.  Inner members run over O and I, outer
members over O.  A reduction over exactly I is available to later members (softmax, layer norm); one over outer axes is
finished only when the whole tree is.  Numbers are members of every group: they are computed before its loops or, if they
read sums that the loops compute, after them.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import element, plain_axes, root, section_of
from bwcompiler.ir.contracts.fusion import PANEL_COLUMNS, SHORT_ROW, SHORT_ROWS, FusionGroup, Member
from bwcompiler.ir.extent import Affine, Extent, Index, Section, add_extents, scale_extent, span, upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.scalar import IndexExpression, Scalar
from bwcompiler.passes.fusion.reads import Leaves, Read, Reads

# The operations of one loop.  In a long loop each array that it need not store and load again saves more than the longer chains of
# dependent operations cost, of which a short loop has few in flight.
MAX_MEMBERS = 96
MAX_IN_LONG = 320
LONG_LOOP = 1024                               # iterations
MAX_LOADS = 24
# A reduction over a whole array is consumed in the same tree only below this size: above, a second sweep in a kernel of
# its own costs no more, and keeps the outer loops.
WHOLE_ARRAY_LIMIT = 4096
# A group goes along columns only if a panel of them has at most so many elements; of an array that no cache near a core holds, fewer.
# The rows of a taller panel lie apart in memory, in as many pages, and are read at a fifth of the speed of whole rows; so sums over columns
# are kept in a row, and what reads them is a group of its own, over rows too.
TALL_PANEL_LIMIT, TALL_PANEL_BEYOND_CACHE = 1 << 17, 1 << 15
BEYOND_CACHE = 1 << 19                         # elements

LONG_ROW = 16                                  # elements that vectors run along, rather than across such rows

MANY_SCALARS = 3                               # operations around a short row that are worth vectors of their own
GROW: tuple[str, tuple[Value, ...]] = ("", ())         # no reason yet: the value is asked for again


class Attempt:
    """One value to be placed: what it reads, at which of its own dimensions; can a group hold it?"""

    def __init__(self, value: Value, reads: Reads, inlined: frozenset[Value] = frozenset(), update: bool = False) -> None:
        self.value = value
        self.inlined = inlined
        self.update = update
        self.reduced_dims: tuple[int, ...] = value.attrs["axes"] if value.op.kind == "reduction" else ()
        shape = value.operands[1].shape if update else value.operands[0].shape if value.op.kind == "reduction" else value.shape
        self.shape: tuple[int, ...] = shape
        self.indices, self.number, self.wide, self.at = reads.dimensions(shape)
        self.reads: list[Read] = []
        self.aligned = False                       # whether every read is of an array of this shape, element by element
        self.refusal: tuple[str, tuple[Value, ...]] = ("", ())       # why the last group asked cannot hold the value: rule, about
        self._collect(reads)

    def _collect(self, reads: Reads) -> None:
        value, at, is_leaf = self.value, self.at, reads.is_leaf
        kind = value.op.kind
        if self.update or kind in ("elementwise", "reduction"):    # operands of this shape, each read where the value is computed
            operands = value.operands[1:2] if self.update else value.operands[:1] if kind == "reduction" else value.operands
            if not self.inlined and all(map(is_leaf, operands)):
                self.reads = [(operand, at) for operand in dict.fromkeys(operands)]
                self.aligned = not self.update
                return
            found = [read for operand in operands for read in (((operand, at),) if is_leaf(operand) else reads.of(operand))]
            if not self.inlined:
                for read in found:
                    if read not in self.reads:
                        self.reads.append(read)
                return
            leaves = Leaves(self.inlined, is_leaf)
            for base, index in found:
                leaves(base, index)
        else:
            leaves = Leaves(self.inlined, is_leaf)
            element(value, at, leaves, is_leaf)
        self.reads = leaves.reads

    @property
    def is_number(self) -> bool:
        """Whether the value is one number, computed from what it reads alone."""
        return not self.wide and not self.update and self.value.op not in ops.SEARCHES

    def is_shifted(self, base: Value, index: Sequence[IndexExpression]) -> bool:
        """Whether a read is not element by element, so that no loop computes the value and what it reads together."""
        if index is self.at:
            return False
        entries = plain_axes(index)
        if entries is None:
            return True
        own = [(self._dimension(entry), extent) for entry, extent in zip(entries, base.shape, strict=True)
               if entry is not None and entry.terms[0][0] in self.number]
        return any(self.shape[dimension] != extent for dimension, extent in own)

    def as_number(self) -> Member:
        """The member this number is in any group."""
        return self._member({})

    def reads_what_it_writes(self, versions: Container[Value] = ()) -> bool:
        """For an update: whether an iteration reads an element of the array that another one may have written.

        versions: earlier ones of the array, that lie in its memory.
        """
        array, section, own = root(self.value.operands[0]), section_of(self.value), self.own_element()
        for base, index in self.reads:
            version = root(base)
            if (version is array or version in versions) and (base is not version or index != own):
                read = section_read(base, index, self.number)
                if read is None or not read.is_apart(section):
                    return True
        return False

    def own_element(self) -> tuple[Extent, ...]:
        """For an update: the index of the element that an iteration writes."""
        section = section_of(self.value)
        return tuple([add_extents(scale_extent(index.extent(), step) if extent != 1 else 0, start) for index, extent, start, step
                      in zip(self.indices, self.shape, section.starts, section.steps, strict=True)])

    def axes_in(self, group: FusionGroup) -> tuple[int, ...] | None:
        """Per dimension the axis of the group that it runs along, -1 for one of extent 1; None where the group's members do not say."""
        mapping = self._map_reads(group)
        if mapping is None or any(dimension not in mapping for dimension in self.wide):
            return None
        return tuple([mapping.get(dimension, -1) for dimension in range(len(self.shape))])

    def place(self, index: Sequence[IndexExpression], domain: Sequence[int]) -> tuple[object, ...] | None:
        """An index in terms of a group's axes, the dimensions running along `domain`; None where it depends on data."""
        found: list[object] = []
        for entry in index:
            if isinstance(entry, Scalar):
                return None
            terms = dict(entry.terms) if isinstance(entry, Affine) else {}
            own = {one: factor for one, factor in terms.items() if one in self.number}
            rest = entry
            for one, factor in own.items():
                rest = add_extents(rest, scale_extent(one.extent(), -factor))
            found.append((rest, frozenset([(domain[self.number[one]], factor) for one, factor in own.items()])))
        return tuple(found)

    def found(self, group: FusionGroup) -> Member:
        """Open a group with this value."""
        group.extents = [self.shape[d] for d in self.wide]
        member = self._member({d: k for k, d in enumerate(self.wide)})
        if self.value.op in ops.SEARCHES and member.reduced:
            group.inner = frozenset(member.reduced)
            group.closed = True
        return member

    def _member(self, mapping: dict[int, int]) -> Member:
        domain = tuple([mapping.get(d, -1) for d in range(len(self.shape))])
        if not self.reduced_dims:
            return Member(self.value, domain, domain, (), self.inlined, self.update)
        reduced = tuple([domain[d] for d in self.reduced_dims if domain[d] >= 0])
        axes = tuple([axis for d, axis in enumerate(domain) if d not in self.reduced_dims])
        return Member(self.value, domain, axes, reduced, self.inlined, self.update)

    def _refuse(self, rule: str, *about: Value) -> None:
        """Note why `join` is about to give None."""
        self.refusal = (rule, about)

    def join(self, group: FusionGroup, grow: bool = True) -> Member | None:
        """The member this value would be in group, or None (see `refusal`); updates the group's axes when it fits.

        grow  whether the group may get axes; where it would have to, the refusal is GROW.
        """
        if group.closed or self.value.op in ops.SEARCHES:
            self._refuse("search")
            return None
        if self.is_number and group.extents:
            return self._join_as_number(group)
        if len(group.members) >= MAX_MEMBERS and (len(group.members) >= MAX_IN_LONG or _size(group, range(len(group.extents))) < LONG_LOOP):
            self._refuse("members")
            return None
        if len(group.loads) + len(self.reads) > MAX_LOADS:
            self._refuse("loads")
            return None
        mapping = self._map_reads(group)
        if mapping is None:
            return None
        self._match_free_dimensions(group, mapping)
        new_axes = [d for d in self.wide if d not in mapping]
        if new_axes and not any(base in group.by_value for base, _ in self.reads):
            self._refuse("unrelated")
            return None
        if new_axes and not grow:
            self.refusal = GROW
            return None
        if new_axes:
            places = self._places(group, mapping, new_axes)
            structure = self._with_new_axes(group, mapping, places)
        else:
            structure = self._structure(group, mapping)
        if structure is None:
            return None
        if new_axes:
            mapping = {dimension: places[axis] for dimension, axis in mapping.items()}
            free = iter(axis for axis in range(len(self.wide)) if axis not in places)
            mapping.update(zip(new_axes, free, strict=True))
            group.add_axes(places, {mapping[d]: self.shape[d] for d in new_axes})
        group.inner = None if structure is _UNDECIDED else structure
        return self._member(mapping)

    def _join_as_number(self, group: FusionGroup) -> Member | None:
        """The member in a group of loops: it is computed after these, from numbers that they sum up."""
        inside = [member for member in [group.by_value.get(base) for base, _ in self.reads] if member is not None]
        if not inside:
            self._refuse("unrelated")
            return None
        moving = [member.value for member in inside if member.update or any(axis >= 0 for axis in member.axes)]
        if moving:
            self._refuse("shifted", *moving)
            return None
        return self.as_number()

    def _map_reads(self, group: FusionGroup) -> dict[int, int] | None:
        """Dimension -> group axis, from the group's members this value reads; None where a read is not element by element."""
        mapping: dict[int, int] = {}
        for base, index in self.reads:
            member = group.by_value.get(base)
            if member is None:
                continue
            if (self.aligned or index is self.at) and not member.update:
                axes = member.axes
                for dimension in self.wide:
                    if mapping.setdefault(dimension, axes[dimension]) != axes[dimension]:
                        self._refuse("axes", base)
                        return None
                continue
            entries = plain_axes(index)
            if entries is None or member.update:
                self._refuse("updated" if member.update else "shifted", base)
                return None
            for entry, axis, extent in zip(entries, member.axes, base.shape, strict=True):
                if extent == 1:
                    continue
                if entry is None or entry.terms[0][0] not in self.number:         # of a loop around: one element of the axis
                    self._refuse("shifted", base)
                    return None
                dimension = self._dimension(entry)
                if self.shape[dimension] != extent or mapping.setdefault(dimension, axis) != axis:
                    self._refuse("axes", base)
                    return None
        if len(set(mapping.values())) == len(mapping):
            return mapping
        self._refuse("axes", *[base for base, _ in self.reads if base in group.by_value])
        return None

    def _dimension(self, entry: Affine) -> int:
        return self.number[entry.terms[0][0]]

    def _match_free_dimensions(self, group: FusionGroup, mapping: dict[int, int]) -> None:
        """Give dimensions that no read ties down a free axis of the same extent, last to first, in the order that the axes have: an
        array that has to do with the group by chance alone would be walked across its rows.
        """
        if len(mapping) == len(self.wide):
            return
        taken = set(mapping.values())
        free = [axis for axis in range(len(group.extents)) if axis not in taken]
        for dimension in reversed(self.wide):
            if dimension in mapping:
                continue
            for axis in reversed(free):
                if group.extents[axis] == self.shape[dimension] and all((d < dimension) == (a < axis) for d, a in mapping.items()):
                    mapping[dimension] = axis
                    free.remove(axis)
                    break

    def _places(self, group: FusionGroup, mapping: dict[int, int], new_axes: Sequence[int]) -> Sequence[int]:
        """What number each of the group's axes gets, where this value adds axes: the new ones come behind the others, or all are in
        the order of the value's dimensions, where loops then run along memory: a row that is spread over rows, or rows long enough
        for vectors.
        """
        order = [mapping[d] for d in self.wide if d in mapping]
        last = self.wide[-1]
        spread = max(new_axes) < min(mapping, default=-1)
        is_long = isinstance(self.shape[last], int) and self.shape[last] >= LONG_ROW
        if order == list(range(len(group.extents))) and last in mapping and (spread or is_long):
            return [self.wide.index(dimension) for dimension in sorted(mapping)]
        return range(len(group.extents))

    def _with_new_axes(self, group: FusionGroup, mapping: dict[int, int], places: Sequence[int]) -> frozenset[int] | None:
        """The group's inner axes, which are the new ones; None where the value does not fit."""
        consumed = self._consumed_reductions(group)
        if group.inner is not None or len(mapping) != len(group.extents) or not mapping or consumed:
            if consumed:
                self._refuse("reduction", *consumed)
            else:
                self._refuse("unrelated" if group.inner is None else "settled")
            return None
        every = frozenset(range(len(self.wide)))
        inner = every - frozenset(places)
        if 0 in inner and len(places) > 1:         # its loops would go through memory once for each row of the others
            self._refuse("unrelated")
            return None
        if max(every) not in inner and is_tall([self.shape[dimension] for dimension in self.wide], inner, max(every)):
            self._refuse("far apart", *[base for base, _ in self.reads if base in group.by_value])
            return None
        if max(every) in inner:
            scalars = self._scalars(group, inner, places)
            if scalars:
                self._refuse("scalars", *scalars)
                return None
        return self._accept(group, inner, every, every, places)

    def _scalars(self, group: FusionGroup, inner: frozenset[int], places: Sequence[int]) -> list[Value]:
        """What the group's loops computed in vectors, and would compute one number at a time around new inner loops, at a loss: expensive
        functions, or more than the short inner loops do.
        """
        own = [member.value for member in group.members if member.value.op.kind == "elementwise" and not member.is_number]
        expensive = [value for value in own if not value.op.cheap]
        if expensive or len(own) < MANY_SCALARS or _size(group, frozenset(range(len(places)))) < LONG_ROW:
            return expensive
        count = 1
        for axis in inner:
            count *= upper(self.shape[self.wide[axis]])
        return own if count < LONG_ROW else []

    def _structure(self, group: FusionGroup, mapping: dict[int, int]) -> frozenset[int] | None:
        """The group's inner axes once this value is in it; None where it does not fit."""
        every = frozenset(range(len(group.extents)))
        mine = frozenset(mapping.values())
        inner = group.inner
        for base, reduced in self._consumed_reductions(group).items():
            if inner is None:
                if not every - reduced and _size(group, every) > WHOLE_ARRAY_LIMIT:
                    self._refuse("whole", base)
                    return None
                if max(every) not in reduced and is_tall(group.extents, reduced, len(every) - 1):
                    self._refuse("tall", base)
                    return None
                inner = reduced
            elif inner != reduced:
                self._refuse("reduction", base)
                return None
        own = frozenset(mapping[d] for d in self.reduced_dims if d in mapping)
        if inner is None:
            if mine == every:
                return _UNDECIDED
            self._refuse("extents")
            return None
        if not _reduction_fits(mine, tuple(own), inner, bool(every) and max(every) not in inner):
            self._refuse("columns")
            return None
        if mine != every and self._is_expensive_alone(group, inner):
            self._refuse("alone")
            return None
        return self._accept(group, inner, every, mine)

    def _is_expensive_alone(self, group: FusionGroup, inner: frozenset[int]) -> bool:
        """Whether the value is an expensive function of a number per row, where rows are short and cannot be handled side by side."""
        if self.value.op.cheap or self.value.op.kind != "elementwise" or not inner or max(inner) != len(group.extents) - 1:
            return False
        outer = [upper(extent) for axis, extent in enumerate(group.extents) if axis not in inner]
        size = _size(group, inner)
        beside = size <= SHORT_ROW and bool(outer) and outer[-1] >= SHORT_ROWS
        return size < SHORT_ROWS and not beside and math.prod(outer) >= SHORT_ROWS

    def _accept(self, group: FusionGroup, inner: frozenset[int], every: frozenset[int],
                mine: frozenset[int], places: Sequence[int] = ()) -> frozenset[int] | None:
        """`inner` if every member (axis k now places[k]), and this value, fits a tree with these inner axes."""
        outer = every - inner
        if mine not in (every, outer):
            self._refuse("extents")
            return None
        columns = bool(every) and max(every) not in inner
        for domain, reduced, update in {(member.domain, member.reduced, member.update) for member in group.members}:
            axes = frozenset([axis for axis in domain if axis >= 0])
            if not axes and not update:
                continue                           # a number
            if places:
                axes, reduced = frozenset([places[axis] for axis in axes]), tuple([places[axis] for axis in reduced])
            if axes not in (every, outer) or not _reduction_fits(axes, reduced, inner, columns):
                self._refuse("reduction", *self._consumed_reductions(group))
                return None
        return inner

    def _consumed_reductions(self, group: FusionGroup) -> dict[Value, frozenset[int]]:
        """The reductions of the group that this value reads, and numbers made of them, with the axes they reduce."""
        found: dict[Value, frozenset[int]] = {}
        for base, _ in self.reads:
            member = group.by_value.get(base)
            if member is not None and member.reduced:
                found[base] = frozenset(member.reduced)
            elif member is not None and member.is_number and group.extents:            # of what all loops sum up
                found[base] = frozenset(range(len(group.extents)))
        return found


_UNDECIDED: frozenset[int] = frozenset((-1,))


def is_tall(extents: Sequence[Extent], inner: Iterable[int], columns: int) -> bool:
    """Whether columns, which these inner axes go along, are too long for a panel of some of them."""
    count = upper(extents[columns])
    is_apart = count > PANEL_COLUMNS and math.prod(map(upper, extents)) > BEYOND_CACHE
    limit = TALL_PANEL_BEYOND_CACHE if is_apart else TALL_PANEL_LIMIT
    return math.prod([upper(extents[axis]) for axis in inner]) * min(PANEL_COLUMNS, count) > limit


def _size(group: FusionGroup, axes: Iterable[int]) -> int:
    count = 1
    for axis in axes:
        count *= upper(group.extents[axis])
    return count


def _reduction_fits(domain: frozenset[int], reduced: tuple[int, ...], inner: frozenset[int], columns: bool) -> bool:
    """A reduction of inner members covers all inner axes or none; in column order (see build_loops) all."""
    if not reduced or not inner & domain:
        return True
    overlap = inner & frozenset(reduced)
    return overlap == inner or not (columns or overlap)


def section_read(base: Value, index: Sequence[IndexExpression], own: Container[Index]) -> Section | None:
    """The part of an array that a member reads, over all its iterations (of the loops with its own indices); None where an index
    depends on data.
    """
    if root(base) is not base:
        return None
    starts: list[Extent] = []
    sizes: list[Extent] = []
    steps: list[int] = []
    for entry in index:
        if isinstance(entry, Scalar):
            return None
        low, high = span(entry, own)
        terms = [(one, factor) for one, factor in entry.terms if one in own] if isinstance(entry, Affine) else []
        step = abs(terms[0][1]) if len(terms) == 1 else 1
        starts.append(low)
        sizes.append(high - low + 1 if step == 1 else terms[0][0].hi - terms[0][0].lo + 1)
        steps.append(step)
    return Section(tuple(starts), tuple(sizes), tuple(steps))
