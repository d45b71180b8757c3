"""A body cut in two: the part that runs forwards and returns the values that the adjoint needs, and the adjoint that starts from them.

A body (carried c, fixed v) -> c' is differentiated like any graph, and its joint graph is cut by `partition`:

    forward   c, v -> c', residuals
    adjoint   c̄', v̄, residuals, v -> c̄, v̄ + ...

A carried value costs its bytes if the adjoint reads it (it differs in every iteration), except for values known on the way back, such
as counters.  A fixed value is available anyway, and what depends only on fixed values is computed once, before the loop.  Carried arrays
that are updated in place may be restored instead (`undo_log`), if that keeps less.  Branches are bodies that carry nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.types import dtype_of, tensor
from bwcompiler.passes.adjoints.bodies.final_parts import Final, chosen, final_parts, read_finally
from bwcompiler.passes.adjoints.bodies.keep_cotangents import keep_cotangents
from bwcompiler.passes.adjoints.bodies.narrow_residuals import narrow_residuals
from bwcompiler.passes.adjoints.bodies.order_additions import add_large_parts_first
from bwcompiler.passes.adjoints.bodies.undo_log import Chains, Undone, chains, restored
from bwcompiler.passes.adjoints.unlink_regions import unlink_with_mapping
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, differentiate
from bwcompiler.passes.derivatives.partition import Partition, partition
from bwcompiler.passes.loops.branch_states import passed_through
from bwcompiler.passes.loops.region_bodies import Hoisted, copied, emit_values, hoist, replaced_inputs
from bwcompiler.passes.memory.delay_updates import delay_updates
from bwcompiler.passes.rewriting.simplify import simplify

ALL, SAFE, NOTHING = "all", "safe", "nothing"


class CutBody(NamedTuple):
    """A body cut in two.

    forward    inputs: what is carried, what is fixed.  Outputs: those of the body, then residuals.
    adjoint    inputs: cotangents of the outputs that are `seeded`, those so far of the fixed inputs that are active, the last versions of
               `undone`, residuals, then the fixed inputs whose numbers are `kept`, the last versions of `ended`, and the carried ones
               whose numbers are `counted`.
               Outputs: cotangents of the active inputs, then the first versions of `undone`.
    seeded     the numbers of the outputs that have cotangents.
    active     the numbers of the inputs that have: the carried ones and those `apart`, then the fixed ones.
    undone     the numbers of the carried arrays that are restored.
    ended      the numbers of those that are read as they are when the loop has ended.
    arrays     captured by rules: more fixed inputs, behind the body's own.
    whole      bytes of carried arrays that are kept as they are at some point of an iteration, and not in parts.
    inputs     the fixed inputs as the body has them; `before` is what is computed of them before the loop, and `hoisted` those of its
               values that are the last fixed inputs.
    masked     the numbers of the inputs of whose cotangents zeros may come of guards.
    """

    forward: Graph
    adjoint: Graph
    residuals: int
    seeded: tuple[int, ...]
    active: tuple[int, ...]
    undone: tuple[int, ...]
    ended: tuple[int, ...]
    kept: tuple[int, ...]
    counted: tuple[int, ...]
    arrays: tuple[Any, ...]
    whole: int
    inputs: tuple[Value, ...]
    before: tuple[Value, ...]
    hoisted: tuple[Value, ...]
    masked: frozenset[int]

    def stored(self) -> tuple[Value, ...]:
        """The residuals in the forward graph."""
        return self.forward.outputs[len(self.forward.outputs) - self.residuals:]

    def kept_bytes(self) -> int:
        """What is kept in an iteration."""
        return sum([value.type.nbytes for value in self.stored()])

    def fixed_operands(self, operands: Sequence[Value], arrays: Sequence[Any], record: Record) -> list[Value]:
        """The values for the fixed inputs, given those of the body's own operands and arrays; emits what is computed before the loop."""
        captured = [record.capture(array, tensor(dtype_of(array.dtype), array.shape)) for array in (*arrays, *self.arrays)]
        fixed = [*operands, *captured]
        mapping = dict(zip(self.inputs, fixed, strict=True))
        emit_values(self.before, mapping, record)
        return [*fixed, *[mapping[value] for value in self.hoisted]]


@dataclass(frozen=True)
class Cutting:
    """What a cut may do, and what is known of the place of the body.

    hoisting   what may be computed before the loop: ALL, where the body surely runs; SAFE, what cannot fail; or NOTHING.
    trips      how often the body runs at most, where carried arrays may be restored; step: from one index to the next.
    passed_on  the numbers of carried arrays that a loop around this one may restore: their last versions need not be kept.
    apart      the numbers of fixed inputs whose cotangents are not added to those so far.
    updated    the numbers of fixed inputs that are written over later: they cost their bytes, although they are kept where they are.
    restoring  whether carried arrays are restored where that is possible, even if it keeps more.
    masked     the numbers of the outputs of whose cotangents a choice may mask parts.
    known      the numbers of carried inputs that are known in each iteration on the way back, as counters are.
    sparing    whether more is computed again than pays if then nothing has to be kept; products: also products and the like.
    """

    hoisting: str
    trips: int = 0
    step: int = 1
    passed_on: Set[int] = frozenset()
    apart: Set[int] = frozenset()
    updated: Set[int] = frozenset()
    restoring: bool = False
    masked: Set[int] = frozenset()
    known: Set[int] = frozenset()
    sparing: bool = False
    products: bool = False


def cut_body(body: Graph, carried: int, flags: Sequence[bool], seeded: Sequence[int], how: Cutting) -> CutBody:
    """Differentiate a body with respect to the inputs that are flagged, and cut the result in two.

    seeded: the numbers of the outputs that get cotangents.
    """
    fixed = [k for k in range(carried, len(body.inputs)) if flags[k] and k not in how.apart]
    active = [*[k for k in range(len(body.inputs)) if flags[k] and (k < carried or k in how.apart)], *fixed]
    seeds = [INPUT_SEED if k in seeded else None for k in range(len(body.outputs))]
    linked = differentiate(body, active, seeds, started_from=fixed, masked=how.masked, inside=True)
    joint, unlinked = unlink_with_mapping(linked)
    numbers = [position for position in joint.seeds if position is not None] + list(joint.started)
    lifted = _lifted(joint.graph.replace(captured=0), {*numbers, *range(carried)}, how.hoisting)
    marked = _marked(lifted.graph, carried, how)
    inner = _inner_loops(linked.graph, [unlinked, lifted.mapping, marked.copies]) if how.trips else {}
    found = chains(marked.graph, marked.entries, inner) if how.trips else Chains({})
    final = final_parts(marked.graph, marked.entries, how.step, len(body.outputs), how.passed_on) if how.trips else {}
    cut = _Cut(marked.graph, numbers, len(body.outputs), found, inner, final, how.trips)
    parts = cut.keeping_nothing(how.products) if how.sparing else None
    parts = parts or cut.best(how.passed_on, how.restoring)
    whole = _whole(_sources(parts, marked, carried, how.known).stored, marked.graph, marked.entries)
    parts = _narrowed(parts) if how.trips else parts
    sources = _sources(parts, marked, carried, how.known)
    positions = iter(range(len(joint.cotangents)))
    cotangents = [None if position is None else parts.cotangents[next(positions)] for position in joint.cotangents]
    held = [parts.holders[value] for value in (*sources.stored, *sources.kept)]
    holders = [*held, *parts.finals, *[parts.holders[value] for value in sources.counted]]
    adjoint = _adjoint(parts.body, [*parts.seeds, *parts.ends, *holders], cotangents, [body.inputs[k] for k in active], parts.first, body)
    return CutBody(
        forward=_without_marks(parts.forward, marked.held, len(body.outputs), sources.stored), adjoint=adjoint,
        residuals=len(sources.stored), seeded=tuple(seeded), active=tuple(active), undone=parts.undone, ended=parts.ended,
        kept=tuple(sources.kept.values()), counted=tuple(sources.counted.values()), arrays=joint.captured,
        whole=whole,
        inputs=tuple([value for value in joint.graph.inputs[carried:] if value in sources.fixed]),
        before=lifted.values, hoisted=lifted.hoisted,
        masked=frozenset([k for k, zeros in zip(active, linked.masked, strict=True) if zeros]))


def _lifted(graph: Graph, taken: Set[int], hoisting: str) -> Hoisted:
    """What may be computed before the loop, of the inputs that do not change in it: all but those whose numbers are `taken`."""
    if hoisting == NOTHING:
        return Hoisted(graph)
    return hoist(graph, [value for k, value in enumerate(graph.inputs) if k not in taken], hoisting == ALL)


class _Marked(NamedTuple):
    """A joint graph in which marks stand for the inputs that cost their bytes if they are kept, which an argument does not.

    held     mark -> input; copies: value of the graph without marks -> what it is now; entries: what stands for what is carried.
    """

    graph: Graph
    held: dict[Value, Value]
    copies: dict[Value, Value]
    entries: list[Value]


def _marked(graph: Graph, carried: int, how: Cutting) -> _Marked:
    with Record() as record:
        marks = {value: _mark(value) for number, value in enumerate(graph.inputs)
                 if (number < carried and number not in how.known) or number in how.updated}
    copies = dict(marks)
    marked = replaced_inputs(graph, copies, graph.inputs, record.values)
    return _Marked(marked, {mark: value for value, mark in marks.items()}, copies,
                   [copies.get(value, value) for value in graph.inputs[:carried]])


def _mark(value: Value) -> Value:
    mark = ops.barrier(value)
    mark.name = value.label
    return mark


class _Sources(NamedTuple):
    """Where the adjoint has residuals from: stored by the forward graph; fixed inputs, or carried ones that are known, with their numbers.

    fixed   the numbers of all fixed inputs, and of what stands for them.
    """

    stored: list[Value]
    kept: dict[Value, int]
    counted: dict[Value, int]
    fixed: dict[Value, int]


def _sources(parts: _Parts, marked: _Marked, carried: int, known: Set[int]) -> _Sources:
    seeds = set(parts.seeds)
    fixed = {value: k for k, value in enumerate([one for one in marked.graph.inputs[carried:] if one not in seeds])}
    fixed |= {mark: fixed[value] for mark, value in marked.held.items() if value in fixed}
    counters = {value: k for k, value in enumerate(marked.graph.inputs[:carried]) if k in known}
    return _Sources([value for value in parts.residuals if value not in fixed and value not in counters],
                    {value: fixed[value] for value in parts.residuals if value in fixed},
                    {value: counters[value] for value in parts.residuals if value in counters}, fixed)


def _whole(residuals: Sequence[Value], graph: Graph, entries: Sequence[Value]) -> int:
    """The bytes of those residuals that are carried arrays at some point between updates and loops inside."""
    found: set[Value] = set()
    for number, entry in enumerate(entries):
        value: Value | None = graph.outputs[number]
        versions = {entry}
        while value is not None and value is not entry:
            versions.add(value)
            value = value.operands[0] if value.op in ops.UPDATES else passed_through(value) if value.op is ops.item else None
        if len(versions) > 1 and value is entry:
            found |= versions
    return _bytes([value for value in residuals if value in found])


def _inner_loops(linked: Graph, mappings: Sequence[Mapping[Value, Value]]) -> dict[Value, Undone]:
    """What inner loops with undo logs gave -> how it is undone, in terms of the last of the mappings."""
    def now(value: Value) -> Value:
        for mapping in mappings:
            value = mapping.get(value, value)
        return value

    found = {}
    for link in linked.body:
        if link.op is not ops.region_link:
            continue
        rule, given = link.attrs["rule"], link.attrs["given"]
        if rule.backwards is not None:
            for number, place in rule.undone():
                found[now(link.operands[given + number])] = Undone(now(link.operands[number]), now(rule.backwards), place)
    return found


class _Parts(NamedTuple):
    """One way to cut: values of the joint graph that are residuals, with the inputs that hold them in the adjoint, and the adjoint."""

    forward: Graph
    residuals: list[Value]
    holders: dict[Value, Value]
    seeds: list[Value]
    ends: list[Value]
    undone: tuple[int, ...]
    body: list[Value]
    cotangents: list[Value]
    first: list[Value]
    bytes: int
    ended: tuple[int, ...] = ()
    finals: Sequence[Value] = ()


class _Cut:
    """The ways to cut a joint graph: keeping all that is read, or restoring carried arrays."""

    def __init__(self, joint: Graph, seeds: Sequence[int], outputs: int, found: Chains, inner: Mapping[Value, Undone],
                 final: Mapping[Value, Final], trips: int) -> None:
        self.joint = joint
        self.seeds = seeds
        self.outputs = outputs
        self.chains = found
        self.inner = inner
        self.final = final
        self.trips = trips

    def best(self, passed_on: Set[int], restoring: bool) -> _Parts:
        """The one that keeps less, over all iterations; the last version of an array that is restored is kept once, or passed on."""
        kept = self._keeping()
        undone = self._restoring() if self.chains.of else None
        if undone is None or (restoring and passed_on >= set(undone.undone)):
            return undone or kept
        arrays = sum([end.type.nbytes for end, number in zip(undone.ends, undone.undone, strict=True) if number not in passed_on])
        return undone if self._whole_loop(undone) + arrays < self._whole_loop(kept) else kept

    def _whole_loop(self, parts: _Parts) -> int:
        """The bytes that all iterations keep, and arrays that are read when they have ended."""
        last: int = sum([value.type.nbytes for value in parts.finals])
        return self.trips * parts.bytes + last

    def keeping_nothing(self, products: bool) -> _Parts | None:
        """The one that computes again all that it reads; None where that is more than a function of what is there."""
        parts = self._keeping(True, products)
        return None if any(value.op.kind != "input" for value in parts.residuals) else parts

    def _keeping(self, sparing: bool = False, products: bool = False) -> _Parts:
        def divide(free: Set[Value]) -> Partition:
            return partition(self.joint, self.seeds, self.outputs, free=free, gathers=True, sparing=sparing, products=products)

        parts, final = self._divided(divide, set())
        holders = dict(zip(parts.residuals, parts.adjoint.inputs, strict=False))
        read = read_finally(parts.adjoint.body, {value: holders[value] for value in parts.residuals if value in final}, final,
                            self.joint.outputs)
        residuals = [value for value in parts.residuals if value not in final]
        return _Parts(parts.forward, residuals, holders, [self.joint.inputs[k] for k in self.seeds], [], (), read.body,
                      [read.mapping.get(value, value) for value in parts.adjoint.outputs], [], _bytes(residuals), read.numbers, read.inputs)

    def _divided(self, divide: Callable[[Set[Value]], Partition], free: Set[Value]) -> tuple[Partition, dict[Value, Final]]:
        """The joint graph divided where these values cost nothing, nor those that are read when the loop has ended; and the latter."""
        final = dict(self.final)
        while True:
            parts = divide(frozenset((*free, *final)))
            undone = self.chains.read([value for value in parts.residuals if value not in final]) if free else []
            left = {value: place for value, place in final.items() if place.number not in undone}
            left = chosen(parts.residuals, left, self.joint.outputs, self.trips)
            if len(left) == len(final):
                return parts, final
            final = left

    def _restoring(self) -> _Parts | None:
        olds = [old for chain in self.chains.of.values() for old in chain.stored()]
        first, last = self.joint.outputs[:self.outputs], self.joint.outputs[self.outputs:]
        joint = self.joint.replace(body=[*self.joint.body, *self.chains.values], outputs=[*first, *olds, *last])

        def divide(free: Set[Value]) -> Partition:
            return partition(joint, self.seeds, self.outputs + len(olds), free=free, gathers=True)

        parts, final = self._divided(divide, self.chains.free())
        undone = self.chains.read([value for value in parts.residuals if value not in final])
        if not undone:
            return None
        used = [self.chains.of[number] for number in undone]
        free = {value for chain in used for value in (*chain.versions, *chain.news)}
        holders = dict(zip(parts.residuals, parts.adjoint.inputs, strict=False))
        for old in [old for chain in used for old in chain.stored()]:
            if old not in holders:
                holders[old] = input_value(old.type, f"{old.label}.old")
        ends = [input_value(chain.versions[-1].type, chain.versions[0].label) for chain in used]
        copies = {value: copy for copy, value in parts.stands_for.items()}
        made = restored(parts.adjoint, list(zip(used, ends, strict=True)), holders, copies, self.inner)
        if made is None:
            return None
        read = read_finally(made.body, {value: holders[value] for value in holders if value in final}, final, self.joint.outputs)
        residuals = [value for value in holders if value not in free and value not in final]
        outputs, versions = [[read.mapping.get(value, value) for value in values] for values in (made.outputs, made.first)]
        return _Parts(parts.forward, residuals, holders, [joint.inputs[k] for k in self.seeds], ends, tuple(undone), read.body,
                      outputs, versions, _bytes(residuals), read.numbers, read.inputs)


def _narrowed(parts: _Parts) -> _Parts:
    """With sections of what is read in parts alone."""
    found = narrow_residuals(parts.body, parts.holders, [*parts.cotangents, *parts.first])
    if found is None:
        return parts
    forward = parts.forward.replace(body=[*parts.forward.body, *found.slices.values()])
    residuals = [found.slices.get(value, value) for value in parts.residuals]
    holders = {found.slices.get(value, value): found.held.get(value, holder) for value, holder in parts.holders.items()}
    copies = dict(zip(parts.body, found.body, strict=True))
    cotangents = [copies.get(value, value) for value in parts.cotangents]
    return parts._replace(forward=forward, residuals=residuals, holders=holders, body=found.body, cotangents=cotangents,
                          first=[copies.get(value, value) for value in parts.first], bytes=_bytes(residuals))


def _bytes(residuals: Sequence[Value]) -> int:
    return sum([value.type.nbytes for value in residuals if value.op.kind != "input"])


def _without_marks(graph: Graph, held: dict[Value, Value], outputs: int, stored: Sequence[Value]) -> Graph:
    """The forward graph with the carried inputs themselves, and the residuals that are stored as its last outputs."""
    mapping = dict(held)
    body = copied(graph.body, mapping)
    last = [mapping.get(output, output) for output in (*graph.outputs[:outputs], *stored)]
    return delay_updates(simplify(graph.replace(body=live_values(body, last), outputs=last)).graph)


def _adjoint(values: Sequence[Value], inputs: Sequence[Value], cotangents: Sequence[Value | None], active: Sequence[Value],
             first: Sequence[Value], body: Graph) -> Graph:
    """The adjoint graph, with zeros for cotangents that there are not."""
    with Record() as record:
        found = [constant(0.0, value.type) if ct is None else ct for ct, value in zip(cotangents, active, strict=True)]
    made = simplify(Graph(f"{body.name}.vjp", inputs, [*values, *record.values], [*found, *first], body.index)).graph
    return delay_updates(add_large_parts_first(keep_cotangents(made, len(found)), len(found)))
