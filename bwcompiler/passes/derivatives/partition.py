"""Partition: a joint graph -> a forward graph that also returns residuals, and an adjoint graph that starts from them.

Adjoint values are those that depend on a seed.  The forward values that they read are saved, or recomputed from saved values.
The choice with the least cost is a minimum cut (`minimum_cut`).  Every forward value is an edge from `computed` to
`available`: cutting it means saving the value, at the cost of its bytes.  The edge from the source to `computed` costs the work of
recomputing the value; recomputing needs the operands available; what the adjoint reads flows into the sink:

    source --work(v)--> computed(v) --bytes(v)--> available(v) --infinite--> sink          where the adjoint reads v
                                     available(operand) --infinite--> computed(v)

Costs are bytes moved (`Costs`).  Values whose choice is obvious (`_settle`) never enter the network, and if the cut takes too
long, one walk chooses instead (`_greedy`).  Start reading at `partition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.errors import CompileError, at
from bwcompiler.ir.extent import upper
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value, input_value
from bwcompiler.ir.types import TupleType
from bwcompiler.passes.derivatives.minimum_cut import INFINITE, Network
from bwcompiler.passes.pass_manager import PassRun

CHAIN = 32                     # operations in a row that are computed again: more would not stay in the registers of one loop
SPARING = 1 << 30              # how often what is saved counts, where it is to be as little as can be
WORK = 12_000_000              # steps along edges that a cut may take, some seconds; beyond, `_greedy` chooses

# Why a value is saved, in words about it.
RULES = {
    "argument": "it is an argument, which is there anyway",
    "expensive": "computing it again costs more than keeping it",
    "never": "products, reductions, gathers and library calls are not computed again",
    "compared": "it is compared for equality, and a float that is computed again never is",
    "narrow": "keeping it costs less than keeping what it is made of, or than a longer chain of operations",
}


class Partition(NamedTuple):
    """forward: inputs -> outputs, then residuals.  adjoint: residuals, seeds, captured -> cotangents.

    residuals   the joint values that are saved.
    recomputed  joint values of the forward part that the adjoint computes again, constants included.
    stands_for  adjoint value -> the joint value that it holds (residuals) or is a copy of.
    why         residual -> the rule (of RULES) that saved it.
    passes      what the passes that led here did.
    """

    forward: Graph
    adjoint: Graph
    residuals: tuple[Value, ...]
    recomputed: tuple[Value, ...] = ()
    stands_for: Mapping[Value, Value] = {}
    why: Mapping[Value, str] = {}
    passes: Sequence[PassRun] = ()


def partition(joint: Graph, seeds: Sequence[int], outputs: int, memory_limit: int | None = None,
              free: Set[Value] = frozenset(), gathers: bool = False, sparing: bool = False, products: bool = False) -> Partition:
    """Split a joint graph whose inputs number `seeds` are seeds and whose first `outputs` outputs are the function's own.

    memory_limit   bytes that residuals other than arguments may take.  To keep to it, products, reductions and library calls
                   are computed again too.  CompileError where even that saves more.
    free           values that cost nothing to save.
    gathers        whether gathers may be computed again: where what is saved is copied, as in the body of a loop.
    sparing        whether as little as can be is saved, whatever computing the rest again costs; products: they may be, too, and
                   reductions and library calls.
    """
    explicit = len(joint.inputs) - joint.captured
    captured, seed_inputs = joint.inputs[explicit:], [joint.inputs[k] for k in seeds]
    behind = _behind(joint, seed_inputs)
    adjoint_body = [value for value in joint.body if value in behind]
    before = [value for value in joint.body if value not in behind]
    wanted = [value for value in _reads(adjoint_body, behind, joint.outputs[outputs:]) if value not in set(captured)]
    costs = Costs(joint, asked=products, free=free, gathers=gathers)
    saved = _choose(before, wanted, costs, SPARING if sparing else 1)
    if memory_limit is not None and _bytes_of(saved) > memory_limit:
        costs = Costs(joint, asked=True, free=free, gathers=gathers)
        saved = _within(memory_limit, before, wanted, costs)
    residuals = [value for value in (*joint.inputs[:explicit], *before) if value in saved]
    forward_outputs = [*joint.outputs[:outputs], *residuals]
    forward = Graph(joint.name, [value for value in joint.inputs if value not in set(seed_inputs)], live_values(before, forward_outputs),
                    forward_outputs, joint.index, joint.captured)
    mapping = {value: input_value(value.type, value.label, value.source) for value in residuals}
    held = tuple(mapping.values())
    body, recomputed = _adjoint_body(adjoint_body, joint.outputs[outputs:], behind, mapping)
    cotangents = [mapping.get(output, output) for output in joint.outputs[outputs:]]
    adjoint = Graph(f"{joint.name}.vjp", [*held, *seed_inputs, *captured], live_values(body, cotangents), cotangents, joint.index,
                    len(captured))
    return Partition(forward, adjoint, tuple(residuals), tuple(recomputed), {copy: value for value, copy in mapping.items()},
                     {value: costs.why_saved(value) for value in residuals})


def _behind(joint: Graph, seeds: Iterable[Value]) -> set[Value]:
    """What depends on a seed."""
    behind = set(seeds)
    for value in joint.body:
        if not behind.isdisjoint(value.operands):
            behind.add(value)
    return behind


def _reads(body: Sequence[Value], behind: set[Value], cotangents: Sequence[Value]) -> list[Value]:
    found = {operand: None for value in body for operand in value.operands if operand not in behind}
    found.update((value, None) for value in cotangents if value not in behind)
    return list(found)


def _adjoint_body(body: Sequence[Value], outputs: Sequence[Value], behind: set[Value],
                  mapping: dict[Value, Value]) -> tuple[list[Value], list[Value]]:
    """The adjoint's values, and those of the forward part among them, each right before what needs it first.

    `mapping` has what stands for residuals; what stands for values whose operands changed is added.
    """
    made: list[Value] = []
    again: dict[Value, None] = {}

    def make(value: Value) -> None:
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        if copy is not value:
            mapping[value] = copy
        made.append(copy)

    for value in (*body, *outputs):
        pending = [*value.operands] if value in behind else [value]
        while pending:
            needed = pending[-1]
            if needed in mapping or needed in again or needed in behind or needed.op.kind == "input":
                pending.pop()
                continue
            missing = [operand for operand in needed.operands
                       if operand not in mapping and operand not in again and operand.op.kind != "input"]
            if missing:
                pending += missing
                continue
            pending.pop()
            again[needed] = None
            make(needed)
        if value in behind and value.op.kind != "input" and value not in mapping and value not in again:
            again[value] = None
            make(value)
    return made, [value for value in again if value not in behind]


# ----- costs
_COMMON = (ops.exp, ops.expm1, ops.log, ops.log1p, ops.tanh, ops.sin, ops.cos)


class Costs:
    """What saving and computing again cost, in units of 1/64 byte moved.

    A saved array is written once and read once more than it would be.  An operation in a loop over data that is there is a
    small part of that; a transcendental function is a little more than that, but the common ones are less than writing and reading
    an array that no cache holds until it is read; moving elements about is next to nothing, because it happens in the loops that
    read them, unless it updates an array.

    asked    a limit of memory asks for computing again what is not otherwise: products, reductions, library calls.
    gathers  gathers are computed again too: they read what saving them would write and read.
    """

    UNIT = 64
    CHEAP, EXPENSIVE, MOVED = 4, 80, 1         # per byte of the result; saving costs UNIT per byte
    COMMON, LARGE = 36, 1 << 20                # per byte of a common function of an array that has so many
    FLOATING = 26                              # per floating-point operation of a matrix product: 0.4 bytes

    def __init__(self, joint: Graph, asked: bool, free: Set[Value] = frozenset(), gathers: bool = False) -> None:
        self.asked = asked
        self.free = free
        self.gathers = gathers
        self.compared: set[Value] = set()
        for value in joint.body:
            if value.op is ops.equal or value.op is ops.not_equal:
                self.compared.update(_moved_floats(value.operands))

    def save(self, value: Value) -> int:
        """Of a virtual value, which saving it makes an array: a quarter more."""
        if value in self.free:
            return 0
        size: int = self.UNIT * value.type.nbytes + 1
        return size + size // 4 if value.op.kind == "layout" and value.op not in ops.UPDATES else size

    def again(self, value: Value) -> int | None:
        """Of computing it again from its operands; None where that is not done."""
        kind = value.op.kind
        if value in self.compared or isinstance(value.type, TupleType) or not value.op.pure or value.op is ops.barrier:
            return None
        size: int = value.type.nbytes
        if kind == "constant":
            return 0
        if value.op in ops.UPDATES:
            return self.UNIT * size
        if kind == "layout":
            return self.MOVED * size
        if kind == "elementwise":
            expensive = self.COMMON if value.op in _COMMON and size >= self.LARGE else self.EXPENSIVE
            return (self.CHEAP if value.op.cheap else expensive) * size
        if kind == "index" and self.gathers:
            return self.UNIT * size // 2
        if not self.asked or kind not in ("reduction", "scan", "index", "library", "push"):
            return None
        moved: int = self.UNIT * (size + sum([operand.type.nbytes for operand in value.operands]))
        if kind != "library":
            return moved
        x = value.operands[0]
        arithmetic: int = (2 * size if value.op is ops.matmul else x.type.nbytes) * (upper(x.shape[-1]) if x.rank else 1)
        return moved + self.FLOATING * arithmetic // value.dtype.itemsize

    def why_saved(self, value: Value) -> str:
        """The rule that saves it."""
        if value.op.kind == "input":
            return "argument"
        if value in self.compared:
            return "compared"
        again = self.again(value)
        return "never" if again is None else "expensive" if again >= self.save(value) else "narrow"


def _moved_floats(operands: Sequence[Value]) -> Iterator[Value]:
    """The values whose elements are those of the operands, moved about."""
    pending = list(operands)
    while pending:
        value = pending.pop()
        if value.op.kind == "layout" and value.op not in ops.UPDATES:
            pending += value.operands
        elif value.op.kind != "constant" and value.dtype.kind in "fc":
            yield value


def _bytes_of(saved: Iterable[Value]) -> int:
    return sum([value.type.nbytes for value in saved if value.op.kind != "input"])


# ----- the choice
def _choose(before: Sequence[Value], wanted: Sequence[Value], costs: Costs, weight: int) -> set[Value]:
    """The values to save, inputs included, where saving counts `weight` times."""
    again, save = {}, {}
    for value in _relevant(before, wanted, costs):
        cost = costs.again(value)
        again[value] = INFINITE if cost is None else cost
        save[value] = costs.save(value) * weight
    reads = set(wanted)
    decided = _settle(again, save, reads, CHAIN if weight == 1 else float("inf"))
    rest = [value for value in again if value not in decided]
    found = _minimum_cut(rest, again, save, reads) if rest else set()
    if found is None:
        found = _greedy(rest, again, save, reads)
    found |= {value for value, is_saved in decided.items() if is_saved}
    return _used(wanted, found, again)


def _relevant(before: Sequence[Value], wanted: Sequence[Value], costs: Costs) -> list[Value]:
    """The values that are read, and those that they can be computed again from; without inputs, which are always there."""
    needed = set(wanted)
    for value in reversed(before):
        if value in needed and costs.again(value) is not None:
            needed.update(value.operands)
    return [value for value in before if value in needed]


def _settle(again: Mapping[Value, int], save: Mapping[Value, int], wanted: set[Value], longest: float) -> dict[Value, bool]:
    """Values with a plain choice -> whether they are saved: what is read and dearer to compute than to keep, what ends a chain of
    `longest` operations, and what is made of values that are there whatever is chosen for the others."""
    decided: dict[Value, bool] = {}
    chain: dict[Value, int] = {}                           # operations since values that are saved
    for value, work in again.items():
        chain[value] = (value.op.kind == "elementwise") + max([chain.get(operand, 0) for operand in value.operands], default=0)
        if not work:
            decided[value] = False
        elif value in wanted and (work >= save[value] or chain[value] >= longest):
            decided[value] = True
            chain[value] = 0
        elif work >= INFINITE:
            chain[value] = 0
        elif value in wanted and all(operand.op.kind == "input" or operand in decided for operand in value.operands):
            decided[value] = False
    return decided


def _minimum_cut(rest: Sequence[Value], again: Mapping[Value, int], save: Mapping[Value, int], wanted: set[Value]) -> set[Value] | None:
    """The values to save among `rest`; None where finding the cut takes too long."""
    number = {value: 2 + 2 * k for k, value in enumerate(rest)}
    network = Network(2 + 2 * len(rest))
    for value, computed in number.items():
        network.add(0, computed, again[value])
        network.add(computed, computed + 1, save[value])
        if value in wanted:
            network.add(computed + 1, 1, INFINITE)
        if again[value] < INFINITE:
            for operand in dict.fromkeys(value.operands):
                if operand in number:
                    network.add(number[operand] + 1, computed, INFINITE)
    side = network.source_side(0, 1, WORK)
    if side is None:
        return None
    return {value for value, computed in number.items() if side[computed] and not side[computed + 1]}


def _greedy(rest: Sequence[Value], again: Mapping[Value, int], save: Mapping[Value, int], wanted: set[Value]) -> set[Value]:
    """In order: save what costs less than computing it again from what is saved by then."""
    found: set[Value] = set()
    cost: dict[Value, int] = {}
    for value in rest:
        cost[value] = again[value] + sum([cost.get(operand, 0) for operand in dict.fromkeys(value.operands)])
        if cost[value] >= INFINITE or (value in wanted and cost[value] >= save[value]):
            found.add(value)
            cost[value] = 0
    return found


def _used(wanted: Sequence[Value], saved: set[Value], again: Mapping[Value, int]) -> set[Value]:
    """Of the values saved, and of inputs, those that are read or computed from; also what cannot be computed again."""
    found: set[Value] = set()
    seen: set[Value] = set()
    pending = list(wanted)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.op.kind == "input" or value in saved or again.get(value, INFINITE) >= INFINITE:
            found.add(value)
        else:
            pending += value.operands
    return found


# ----- a limit of memory
def _within(limit: int, before: Sequence[Value], wanted: Sequence[Value], costs: Costs) -> set[Value]:
    """What to save so that it takes at most `limit` bytes: saving is made dearer until it does, then the room left is filled."""
    weight = 1
    saved = _choose(before, wanted, costs, weight)
    while _bytes_of(saved) > limit:
        if weight > 1 << 40:
            kept = [value for value in before if value in saved]
            dearest = max(kept, key=lambda value: value.type.nbytes)
            raise CompileError(at(dearest.source, f"memory_limit={limit}: the least that can be saved for the derivative is "
                                                  f"{_bytes_of(saved)} bytes, {dearest.type.nbytes} of them made here"))
        weight *= 4
        saved = _choose(before, wanted, costs, weight)
    return _filled(limit, saved, before, wanted, costs)


def _filled(limit: int, saved: set[Value], before: Sequence[Value], wanted: Sequence[Value], costs: Costs) -> set[Value]:
    """Also save what is read and most worth its bytes, spread over the program: what lies between two of them is computed again
    when the adjoint gets there, and takes memory then only."""
    room = limit - _bytes_of(saved)
    worth: list[tuple[float, int, int, Value]] = []
    read = set(wanted)
    candidates = [value for value in before if value in read and value not in saved and costs.again(value)]
    bits = max(len(candidates).bit_length(), 1)
    for number, value in enumerate(candidates):
        size = value.type.nbytes
        if 0 < size <= room:
            spread = int(f"{number:0{bits}b}"[::-1], 2)
            worth.append((-(costs.again(value) or 0) / size, spread, number, value))
    for _, _, _, value in sorted(worth, key=lambda entry: entry[:3]):
        if value.type.nbytes <= room:
            saved = saved | {value}
            room -= value.type.nbytes
    return _used(wanted, saved, {value: cost for value in before if (cost := costs.again(value)) is not None})
