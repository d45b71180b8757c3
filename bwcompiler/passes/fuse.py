"""Fusion: group values into loop trees.

Values are taken in topological order.  A value joins the group of its latest operand when everything else it reads is
complete before that group runs, and when the group's loop structure can hold it (see `_Attempt`); otherwise it opens a
new group.  Because groups run in the order they were opened and a value only reads groups opened earlier, no cycle can
arise.  All decisions look at the value's neighbourhood only, so a periodic trace gives periodic groups.

Structure of a group: outer loops over axes O, and inside them passes over axes I.  Inner members run over O and I, outer
members over O.  A reduction over exactly I is available to later members (softmax, layer norm); one over outer axes is
finished only when the whole tree is, so its readers go elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import ArrayView, element, expand, is_alias, is_virtual, matrix_view, plain_axes, root, view_of, whole
from bwcompiler.ir.extent import Affine, Extent, Index, Region, add_extents, scale_extent, span, upper
from bwcompiler.ir.fusion import Call, FusedProgram, FusionGroup, Member, Refusal, starts_filled, update_region
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.routine import Fourier, InnerLoop, Native
from bwcompiler.ir.scalar import IndexExpression, Scalar, const
from bwcompiler.passes.find_updates import find_updates

MAX_MEMBERS = 64
MAX_LOADS = 24
# A reduction over a whole array is consumed in the same tree only below this size: above, a second sweep in a kernel of
# its own costs no more, and keeps the outer loops.
WHOLE_ARRAY_LIMIT = 4096

_FUSABLE = frozenset(("elementwise", "layout", "reduction", "constant", "index"))
_SEARCHES = ("argmax", "argmin")               # their groups hold nothing else
_NEVER_FUSED = frozenset(("normalize_index",))


def fuse(graph: Graph, reasons: bool = False, mutable: Sequence[Value] = ()) -> FusedProgram:
    """Decide which values are computed together; `reasons` also records why values did not join groups (`refusals`).

    mutable: inputs whose memory may be written to once they are not read any more.
    """
    return _Fusion(graph, [] if reasons else None, mutable).run()


def is_fusable(value: Value) -> bool:
    """Whether value has an element rule or is a reduction of one."""
    return value.op.kind in _FUSABLE and value.op.name not in _NEVER_FUSED


class _Fusion:
    def __init__(self, graph: Graph, refusals: list[Refusal] | None, mutable: Sequence[Value]) -> None:
        self.graph = graph
        self.refusals = refusals
        self.steps: list[FusionGroup | Call] = []
        self.step_of: dict[Value, FusionGroup | Call] = {}
        self.views = {value: _operand_views(value) for value in graph.body if not is_fusable(value) and value.op is not ops.item}
        self.forced = _forced(graph, self.views)
        self.stored: set[Value] = set(graph.inputs)
        self.last_reader: dict[Value, FusionGroup] = {}
        self.updates = find_updates(graph, mutable)
        self.read_until: dict[Value, int] = {}     # position of the last step that reads an array some update writes
        self.latest: FusionGroup | None = None

    def run(self) -> FusedProgram:
        for value in self.graph.body:
            if value in self.forced:
                self.stored.add(value)
            if is_alias(value):
                continue
            if value.op is ops.item:                       # written by the loop or choice that it is a result of
                self.step_of[value] = self.step_of[value.operands[0]]
                self.stored.add(value)
            elif not is_fusable(value):
                self._call(value)
            elif value in self.forced or not is_virtual(value):
                self._place(value)
        return FusedProgram(self.steps, self.stored, self.forced, self.step_of, self.refusals or [])

    def _call(self, value: Value) -> None:
        call = Call(len(self.steps), value, self.views[value])
        self.steps.append(call)
        self.stored.update([view.base for view in call.operands])
        for view in call.operands:
            self.read_until[view.base] = call.position
        self.step_of[value] = call
        self.stored.add(value)

    def _place(self, value: Value) -> None:
        attempt = _Attempt(value, self.is_leaf, update=value in self.updates.values)
        if attempt.update and attempt.reads_what_it_writes():
            attempt = _Attempt(value, self.is_leaf)
        attempt = self._inlined(attempt)
        for group in self._candidates(attempt):
            member = attempt.join(group)
            if member is not None:
                break
            self._refuse(attempt, group, *attempt.refusal)
        else:
            group = self.latest = FusionGroup(len(self.steps))
            self.steps.append(group)
            member = attempt.found(group)
        group.add(member)
        self.step_of[value] = group
        if attempt.update:
            self._record_update(value, attempt, group)
        for base, index in attempt.reads:
            if base not in group.by_value:
                group.loads.add(root(base))
                self.stored.add(root(base))
                self.last_reader[base] = group
                if root(base) in self.updates.arrays:
                    group.touched.setdefault(root(base), []).append(_region_read(base, index, attempt.number))
                    self.read_until[root(base)] = max(group.position, self.read_until.get(root(base), -1))

    def _inlined(self, attempt: _Attempt) -> _Attempt:
        """The attempt with what it reads at shifted indices computed again where that is cheap, and reads nothing it writes."""
        moved = frozenset(base for base, index in attempt.reads if plain_axes(index) is None and self._is_inlinable(base))
        if not moved:
            return attempt
        inlined = _Attempt(attempt.value, self.is_leaf, moved, attempt.update)
        return attempt if inlined.update and inlined.reads_what_it_writes() else inlined

    def _record_update(self, value: Value, attempt: _Attempt, group: FusionGroup) -> None:
        """The value has the memory of the array it updates, from here on."""
        array = root(value.operands[0])
        written = group.updated.setdefault(array, [])
        written.append(update_region(value))
        group.updated[value] = written
        group.touched[value] = group.touched.setdefault(array, [])
        self.stored.add(value)
        if array not in group.by_value:
            group.loads.add(array)
            self.stored.add(array)

    def is_leaf(self, value: Value) -> bool:
        """Whether reads of value stop at it: it is stored, computed, or an alias of stored memory."""
        return value in self.forced or not is_virtual(value)

    def _is_inlinable(self, value: Value) -> bool:
        """Whether a reader at shifted indices may compute value again instead of having it stored: one cheap operation."""
        if value.op.kind != "elementwise" or not value.op.cheap or value in self.stored:
            return False
        found = [root(base) for base, _ in _Attempt(value, self.is_leaf).reads]
        return len(found) <= 2 and all(base in self.stored for base in found)

    def _position(self, value: Value) -> int:
        step = self.step_of.get(root(value))
        return -1 if step is None else step.position

    def _candidates(self, attempt: _Attempt) -> list[FusionGroup]:
        earliest = -1
        found: dict[int, FusionGroup] = {}
        for base, _ in attempt.reads:
            step = self.step_of.get(base)
            if isinstance(step, FusionGroup):
                found[step.position] = step
            position = self._position(base)
            earliest = max(earliest, position)
            reader = self.last_reader.get(base)
            if reader is not None:
                found[reader.position] = reader
        if attempt.update:                                 # the array is complete, and what reads it has run or runs with it
            array = root(attempt.value.operands[0])
            earliest = max(earliest, self._position(array), self.read_until.get(array, -1))
        if self.latest is not None and attempt.reads:      # siblings over the same elements share loops and loads
            found.setdefault(self.latest.position, self.latest)
        allowed: list[FusionGroup] = []
        for position in sorted(found, reverse=True):
            if position < earliest and self.refusals is None:
                break
            group = found[position]
            # everything read from outside the group has to be complete before it starts
            if position < earliest or not all(base in group.by_value or self._position(base) < position for base, _ in attempt.reads):
                self._refuse_order(attempt, group)
            elif not self._respects_updates(attempt, group):
                self._refuse(attempt, group, "versions")
            else:
                allowed.append(group)
        return allowed

    def _refuse(self, attempt: _Attempt, group: FusionGroup, rule: str, about: tuple[Value, ...] = ()) -> None:
        if self.refusals is not None:
            self.refusals.append(Refusal(attempt.value, group.position, rule, about))

    def _refuse_order(self, attempt: _Attempt, group: FusionGroup) -> None:
        if self.refusals is not None:
            late = [base for base, _ in attempt.reads if base not in group.by_value and self._position(base) >= group.position]
            self._refuse(attempt, group, "order" if late else "versions", tuple(dict.fromkeys(late)))

    def _respects_updates(self, attempt: _Attempt, group: FusionGroup) -> bool:
        """Whether in this group no element is read and written that belongs to two versions of an array."""
        for base, index in attempt.reads:
            array = root(base)
            written = group.updated.get(array)
            if written is None:
                continue
            region = _region_read(base, index, attempt.number)
            if array in group.by_value or region is None or not all(region.is_apart(other) for other in written):
                return False
        if not attempt.update:
            return True
        array, mine = root(attempt.value.operands[0]), update_region(attempt.value)
        made_here = array in group.by_value
        if made_here != (array in group.updated):          # made by a fused value, or another update has its memory already
            return False
        if made_here and array not in self.updates.passed_on:
            return False
        regions = [*group.updated.get(array, []), *group.touched.get(array, [])]
        return all(region is not None and mine.is_apart(region) for region in regions)


class _Attempt:
    """One value to be placed: what it reads, at which of its own dimensions; can a group hold it?"""

    def __init__(self, value: Value, is_leaf: Callable[[Value], bool], inlined: frozenset[Value] = frozenset(),
                 update: bool = False) -> None:
        self.value = value
        self.inlined = inlined
        self.update = update
        self.reduced_dims: tuple[int, ...] = value.attrs["axes"] if value.op.kind == "reduction" else ()
        shape = value.operands[1].shape if update else value.operands[0].shape if value.op.kind == "reduction" else value.shape
        self.shape: tuple[int, ...] = shape
        self.indices = tuple(Index(0, extent - 1) for extent in shape)
        self.number = {index: k for k, index in enumerate(self.indices)}
        self.wide = [k for k, extent in enumerate(shape) if extent != 1]      # size-1 dimensions take part in no loop
        self.reads: list[tuple[Value, tuple[IndexExpression, ...]]] = []
        self.refusal: tuple[str, tuple[Value, ...]] = ("", ())       # why the last group asked cannot hold the value: rule, about
        self._collect(is_leaf)

    def _collect(self, is_leaf: Callable[[Value], bool]) -> None:
        at = tuple([0 if extent == 1 else index.extent() for index, extent in zip(self.indices, self.shape, strict=True)])
        operands = self.value.operands
        if (self.value.op.kind in ("elementwise", "reduction") and not self.inlined and not self.update
                and all(is_leaf(operand) for operand in operands)):            # most are: each is read where the value is computed
            self.reads = [(operand, at) for operand in dict.fromkeys(operands)]
            return
        seen: set[tuple[Value, tuple[object, ...]]] = set()

        def leaf(value: Value, index: tuple[IndexExpression, ...]) -> Scalar:
            if value in self.inlined:
                return element(value, index, leaf, is_leaf)
            key = (value, tuple(id(entry) if isinstance(entry, Scalar) else entry for entry in index))
            if key not in seen:
                seen.add(key)
                self.reads.append((value, index))
            return const(0, value.dtype)

        if self.value.op.kind == "reduction":
            expand(self.value.operands[0], at, leaf, is_leaf)
        elif self.update:
            expand(self.value.operands[1], at, leaf, is_leaf)
        else:
            element(self.value, at, leaf, is_leaf)

    def reads_what_it_writes(self) -> bool:
        """For an update: whether an iteration reads an element of the array that another one may have written."""
        array, region = root(self.value.operands[0]), update_region(self.value)
        own = tuple([add_extents(scale_extent(index.extent(), step) if extent != 1 else 0, start) for index, extent, start, step
                     in zip(self.indices, self.shape, region.starts, region.steps, strict=True)])
        for base, index in self.reads:
            if root(base) is array and (base is not array or index != own):
                read = _region_read(base, index, self.number)
                if read is None or not read.is_apart(region):
                    return True
        return False

    def found(self, group: FusionGroup) -> Member:
        """Open a group with this value."""
        group.extents = [self.shape[d] for d in self.wide]
        member = self._member({d: k for k, d in enumerate(self.wide)})
        if self.value.op.name in _SEARCHES and member.reduced:
            group.inner = frozenset(member.reduced)
            group.closed = True
        return member

    def _member(self, mapping: dict[int, int]) -> Member:
        domain = tuple(mapping.get(d, -1) for d in range(len(self.shape)))
        reduced = tuple(domain[d] for d in self.reduced_dims if domain[d] >= 0)
        axes = tuple(axis for d, axis in enumerate(domain) if d not in self.reduced_dims)
        return Member(self.value, domain, axes, reduced, self.inlined, self.update)

    def _refuse(self, rule: str, *about: Value) -> None:
        """Note why `join` is about to give None."""
        self.refusal = (rule, about)

    def join(self, group: FusionGroup) -> Member | None:
        """The member this value would be in group, or None (see `refusal`); updates the group's axes when it fits."""
        if group.closed or self.value.op.name in _SEARCHES:
            self._refuse("search")
            return None
        if len(group.members) >= MAX_MEMBERS:
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
        linked = any(base in group.by_value for base, _ in self.reads)
        if new_axes and not linked:
            self._refuse("unrelated")
            return None
        if new_axes:
            mapping, structure = self._with_new_axes(group, mapping, new_axes)
        else:
            structure = self._structure(group, mapping)
        if structure is None:
            return None
        if new_axes:
            group.add_axes([self.shape[d] for d in new_axes], in_front=mapping[new_axes[0]] == 0)
        group.inner = None if structure is _UNDECIDED else structure
        return self._member(mapping)

    def _map_reads(self, group: FusionGroup) -> dict[int, int] | None:
        """Dimension -> group axis, from the group's members this value reads; None where a read is not element by element."""
        mapping: dict[int, int] = {}
        for base, index in self.reads:
            member = group.by_value.get(base)
            if member is None:
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
        """Give dimensions that no read ties down a free axis of the same extent, last to first."""
        taken = set(mapping.values())
        free = [axis for axis in range(len(group.extents)) if axis not in taken]
        for dimension in reversed(self.wide):
            if dimension in mapping:
                continue
            for axis in reversed(free):
                if group.extents[axis] == self.shape[dimension]:
                    mapping[dimension] = axis
                    free.remove(axis)
                    break

    def _with_new_axes(self, group: FusionGroup, mapping: dict[int, int],
                       new_axes: Sequence[int]) -> tuple[dict[int, int], frozenset[int] | None]:
        """The mapping with axes for the new dimensions, inside the loops there are; all axes keep the order of the dimensions.

        A row spread over rows (dimension 0 is new) puts its new axis in front: loops run along memory.
        """
        count, more = len(group.extents), len(new_axes)
        consumed = self._consumed_reductions(group)
        if group.inner is not None or len(mapping) != count or not mapping or consumed:
            if consumed:
                self._refuse("reduction", *consumed)
            else:
                self._refuse("numbers" if group.inner is None else "settled")
            return mapping, None
        in_front = max(new_axes) < min(mapping)
        shift = more if in_front else 0
        first = 0 if in_front else count
        mapping = {dimension: axis + shift for dimension, axis in mapping.items()}
        mapping.update({dimension: first + k for k, dimension in enumerate(new_axes)})
        fresh, every = frozenset(range(first, first + more)), frozenset(range(count + more))
        return mapping, self._accept(group, fresh, every, every, shift)

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
        return self._accept(group, inner, every, mine)

    def _accept(self, group: FusionGroup, inner: frozenset[int], every: frozenset[int],
                mine: frozenset[int], shift: int = 0) -> frozenset[int] | None:
        """`inner` if every member (its axes shifted), and this value, fits a tree with these inner axes."""
        outer = every - inner
        if mine not in (every, outer):
            self._refuse("extents")
            return None
        columns = bool(every) and max(every) not in inner
        for member in group.members:
            domain = frozenset(axis + shift for axis in member.domain_axes)
            reduced = tuple(axis + shift for axis in member.reduced)
            if domain not in (every, outer) or not _reduction_fits(domain, reduced, inner, columns):
                self._refuse("reduction", *self._consumed_reductions(group))
                return None
        return inner

    def _consumed_reductions(self, group: FusionGroup) -> dict[Value, frozenset[int]]:
        """The reductions of the group that this value reads, with the axes they reduce."""
        found: dict[Value, frozenset[int]] = {}
        for base, _ in self.reads:
            member = group.by_value.get(base)
            if member is not None and member.reduced:
                found[base] = frozenset(member.reduced)
        return found


_UNDECIDED: frozenset[int] = frozenset((-1,))


def _size(group: FusionGroup, axes: frozenset[int]) -> int:
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


def _operand_views(value: Value) -> tuple[ArrayView, ...]:
    """How a call reads its operands: matrix products and factorisations through layout ops, others whole arrays."""
    routine = value.op.library
    if value.op.name == "matmul":
        return tuple([view_of(operand) or whole(operand) for operand in value.operands])
    if isinstance(routine, Native):
        return tuple([matrix_view(operand) or whole(operand) for operand in value.operands])
    if isinstance(routine, Fourier) or (isinstance(routine, InnerLoop) and routine.core and routine.operands is None):
        return tuple([view_of(operand) or whole(operand) for operand in value.operands])
    return tuple([whole(operand) for number, operand in enumerate(value.operands) if not starts_filled(value, number)])


def _forced(graph: Graph, views: dict[Value, tuple[ArrayView, ...]]) -> set[Value]:
    """Values that need memory of their own whatever fusion does: outputs, operands of calls and of merging reshapes."""
    forced = {root(value.operands[0]) for value in graph.body if is_alias(value)}
    for operands in views.values():
        forced.update([view.base for view in operands])
    forced.update(graph.outputs)
    forced.update([root(value) for value in graph.outputs])
    return forced


def _region_read(base: Value, index: Sequence[IndexExpression], own: Container[Index]) -> Region | None:
    """The part of an array that a member reads, over all its iterations (of the loops with its own indices); None where an index
    depends on data.
    """
    if root(base) is not base:
        return None
    starts: list[Extent] = []
    sizes: list[Extent] = []
    for entry in index:
        if isinstance(entry, Scalar):
            return None
        low, high = span(entry, own)
        starts.append(low)
        sizes.append(high - low + 1)
    return Region(tuple(starts), tuple(sizes), (1,) * len(starts))
