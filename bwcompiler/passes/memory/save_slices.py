"""Slices that are read after their array was updated are copied before the update, or read from the updated array if the
update leaves them unchanged.  Then the update can be done in place.

    v = A[s]                            v = A[s], kept = a copy of v
    B = A with w at t          ->       B = A with w at t
    f(v)                                f(kept)

Otherwise the update would begin with a copy of all of A.  In the derivative of `A[i, j] -= ...`, which reads the cotangent of an element,
sets it to zero and adds to others, that copy would cost more than everything else.  Loops that carry an array update it, too.  Arrays that
are read as a whole afterwards, or that must not be changed (`mutable` are the inputs that may change), are copied anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler import ops
from bwcompiler.ir.access import is_virtual, section_of
from bwcompiler.ir.extent import Section
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value
from bwcompiler.passes.loops.branch_states import branch_states
from bwcompiler.passes.memory.find_updates import find_updates, is_small_slice


def save_slices(graph: Graph, mutable: Sequence[Value] = ()) -> Graph:
    """The graph with copies of slices, readers in front of updates where they can be; the same graph where nothing is to be done."""
    first = _first_updates(graph, mutable)
    if mutable and any(_readers_behind(graph, first).values()):
        graph = _readers_in_front(graph, first)
        first = _first_updates(graph, mutable)
    latest = _latest_reads(graph, first) if first else graph
    if latest is not graph:
        graph, first = latest, _first_updates(latest, mutable)
    late = _late_reads(graph, first) if first else {}
    return _copied(graph, first, late) if late else graph


def _first_updates(graph: Graph, mutable: Sequence[Value]) -> dict[Value, int]:
    """Per array that may be updated in place, the position of the first value that does."""
    fixed = {*graph.inputs, *graph.outputs}.difference(mutable)
    updates = find_updates(graph, mutable).values
    first: dict[Value, int] = {}
    for position, value in enumerate(graph.body):
        if value in updates or value.op in ops.SCATTERS:
            arrays: Sequence[Value] = value.operands[:1]
        elif value.op in ops.LOOPS:
            arrays = value.operands[:value.attrs["carried"]]
        elif value.op is ops.cond:
            arrays = [value.operands[place + 1] for place in branch_states(value).values()]
        else:
            continue
        for array in arrays:
            if array not in fixed and not is_virtual(array):
                first.setdefault(array, position)
    return first


def _readers_behind(graph: Graph, first: dict[Value, int]) -> dict[Value, list[Value]]:
    """Per first update what reads one of its arrays, or a view of it, and stands behind it."""
    found: dict[Value, list[Value]] = {graph.body[position]: [] for position in first.values()}
    for position, value in enumerate(graph.body):
        if not is_virtual(value):
            for array in dict.fromkeys([_slice_of(operand, first)[0] for operand in value.operands]):
                if array in first and first[array] < position:
                    found[graph.body[first[array]]].append(value)
    return found


def _readers_in_front(graph: Graph, first: dict[Value, int]) -> Graph:
    """The graph in which what reads an array stands in front of its first update, unless it depends on that."""
    readers = _readers_behind(graph, first)
    placed: set[Value] = set(graph.inputs)
    begun: set[Value] = set()
    body: list[Value] = []

    def may_move(value: Value) -> bool:
        """Whether nothing that it still needs waits for it, has effects, or updates what others have to read before."""
        pending, seen = [value], {value}
        while pending:
            found = pending.pop()
            if found in begun or not found.op.pure or not placed.issuperset(readers.get(found, ())):
                return False
            more = [operand for operand in found.operands if operand not in placed and operand not in seen]
            seen.update(more)
            pending += more
        return True

    def place(value: Value) -> None:
        if value in placed or value in begun:
            return
        begun.add(value)
        for operand in value.operands:
            place(operand)
        for reader in readers.get(value, ()):
            if reader not in placed and may_move(reader):
                place(reader)
        begun.discard(value)
        placed.add(value)
        body.append(value)

    for value in graph.body:
        place(value)
    return graph.replace(body=body)


def _latest_reads(graph: Graph, first: dict[Value, int]) -> Graph:
    """The graph in which slices are read of the last version of an array, where updates have left them as they are for all that reads
    them."""
    versions: dict[tuple[Value, int], Value] = {}              # slice, position of what reads it
    copied = {path[-2] for output in graph.outputs if len(path := _path(output, first)) > 1}
    for position, value in enumerate(graph.body):
        for operand in () if is_virtual(value) else value.operands:
            path = _path(operand, first)
            if len(path) > 1 and first[path[-1]] < position:
                version = _latest(path[-2], graph, first, position)
                if version is None:
                    copied.add(path[-2])
                else:
                    versions[path[-2], position] = version
    if all(part in copied for part, _ in versions):
        return graph
    views: dict[tuple[Value, Value], Value] = {}
    body: list[Value] = []
    mapping: dict[Value, Value] = {}

    def read(value: Value, position: int) -> Value:
        """What a value at this position reads in the place of an operand."""
        path = _path(value, first)
        version = versions.get((path[-2], position)) if len(path) > 1 and path[-2] not in copied else None
        if version is None:
            return mapping.get(value, value)
        now = mapping.get(version, version)
        for view in reversed(path[:-1]):
            key = view, version
            if key not in views:
                views[key] = view.with_operands((now,))
                body.append(views[key])
            now = views[key]
        return now

    for position, value in enumerate(graph.body):
        copy = value.with_operands(tuple([mapping.get(operand, operand) if is_virtual(value) else read(operand, position)
                                          for operand in value.operands]))
        if copy is not value:
            mapping[value] = copy
        body.append(copy)
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return graph.replace(body=live_values(body, outputs), outputs=outputs)


def _path(value: Value, first: dict[Value, int]) -> list[Value]:
    """The views from a value to an array, the last of them a slice, and the array; nothing where it is no such view."""
    path = [value]
    while path[-1] not in first and is_virtual(path[-1]) and len(path[-1].operands) == 1:
        path.append(path[-1].operands[0])
    return path if len(path) > 1 and path[-1] in first and path[-2].op is ops.slice else []


def _latest(part: Value, graph: Graph, first: dict[Value, int], position: int) -> Value | None:
    """The version of an array before a position; None where updates since, or the one there, do not leave a slice as it is."""
    [version] = part.operands
    section = section_of(part)
    while first.get(version, position) < position:
        update = graph.body[first[version]]
        if not _leaves(update, version, section):
            return None
        version = update
    reader = graph.body[position]
    return version if version not in reader.operands[:1] or _leaves(reader, version, section) else None


def _leaves(update: Value, array: Value, section: Section) -> bool:
    """Whether a value is an update of an array that leaves a section as it is."""
    return update.op in ops.UPDATES and update.operands[0] is array and section.is_apart(section_of(update))


def _late_reads(graph: Graph, first: dict[Value, int]) -> dict[Value, dict[Value, None]]:
    """Per array the slices of it that something reads after its first update, if that is all that is read then."""
    found: dict[Value, dict[Value, None]] = {array: {} for array in first}
    for position, value in enumerate(graph.body):
        if not is_virtual(value):
            for operand in value.operands:
                array, part = _slice_of(operand, first)
                if array in found and position > first[array]:
                    _note(found, array, part)
    for output in graph.outputs:
        array, part = _slice_of(output, first)
        if array in found:
            _note(found, array, part)
    return {array: parts for array, parts in found.items() if parts}


def _note(found: dict[Value, dict[Value, None]], array: Value, part: Value | None) -> None:
    if part is None:
        del found[array]
    else:
        found[array][part] = None


def _slice_of(value: Value, first: dict[Value, int]) -> tuple[Value, Value | None]:
    """The array that is read where a value is read, and the small slice of it on the way that is nearest to it."""
    part = None
    while value not in first and is_virtual(value) and value.operands:
        source = value.operands[0]
        if value.op is ops.slice and is_small_slice(value, source):
            part = value
        value = source
    return value, part


def _copied(graph: Graph, first: dict[Value, int], late: dict[Value, dict[Value, None]]) -> Graph:
    due: dict[int, list[Value]] = {}
    for array, found in late.items():
        due.setdefault(first[array], []).extend(found)
    made = _Body()
    saved: set[Value] = set()
    for position, value in enumerate(graph.body):
        if value in made.placed:
            continue
        parts = [part for part in due.get(position, ()) if part not in saved]
        for part in parts:
            made.save(part)
        saved.update(parts)
        made.place(value)
    outputs = [made.now(output) for output in graph.outputs]
    return graph.replace(body=live_values(made.body, outputs), outputs=outputs)


class _Body:
    """The values of the graph with copies, in order as they are placed.

    views    of a value, those that are in the body.
    mapping  what is read in the place of a value by what is placed from now on.
    """

    def __init__(self) -> None:
        self.body: list[Value] = []
        self.placed: set[Value] = set()
        self.views: dict[Value, list[Value]] = {}
        self.mapping: dict[Value, Value] = {}

    def now(self, value: Value) -> Value:
        """What is to be read in the place of a value."""
        if value not in self.mapping and value in self.placed and is_virtual(value):
            self.place(value)
        return self.mapping.get(value, value)

    def place(self, value: Value) -> None:
        """A value, or a view again of which the array is read elsewhere now."""
        copy = value.with_operands(tuple([self.now(operand) for operand in value.operands]))
        if copy is not value:
            self.mapping[value] = copy
        if copy is not value or value not in self.placed:
            self.body.append(copy)
        if is_virtual(value) and value not in self.placed:
            for operand in value.operands:
                self.views.setdefault(operand, []).append(value)
        self.placed.add(value)

    def place_view(self, value: Value) -> None:
        """A view of an array, before the rest of the graph reaches it."""
        if value not in self.placed and is_virtual(value):
            for operand in value.operands:
                self.place_view(operand)
            self.place(value)

    def save(self, part: Value) -> None:
        """Make a copy of a slice, which is read from now on."""
        self.place_view(part)
        with Record() as record:
            record.source, record.forward = part.source, part.forward
            copy = ops.barrier(self.now(part))
        self.body.extend(record.values)
        outdated = [part]
        while outdated:
            value = outdated.pop()
            self.mapping.pop(value, None)
            outdated += self.views.get(value, ())
        self.mapping[part] = copy
