"""Sums over a slice between bounds that are data, inside a loop, go over the slice if it is short, and not over the whole array.

    loop i: y[i] = sum(select(start <= iota < stop, a * x[column], 0))
            ->  loop i: y[i] = few ? (k in start..stop: total += a[k] * x[column[k]]) : sum(select(...))        few: stop - start < n / 16

A slice whose length is data is represented by the whole array and a mask (`frontend/tracing/indexing/data_slices.py`).  In a loop over the
rows of a sparse matrix, each row would then go through all elements.  Visiting only a few one by one costs less; longer slices are summed
as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, cut, live_values
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.types import I64, tensor
from bwcompiler.ops.calls.region import Policy
from bwcompiler.passes.loops.region_bodies import copied, mentions
from bwcompiler.passes.rewriting.rewriter import Rewriter, Rewritten, rebuilt
from bwcompiler.passes.rewriting.simplify_rules import RULES

SUMMED = Policy()          # of the sum over the whole array: a derivative that kept its arrays would in iterations without it, too
FEWEST = 128                   # elements of an array of which a slice may be short
SHORT = 16                     # one by one, an element costs as much as so many in vectors
MOST = 1024                    # elements added one after the other

COUNT = tensor(I64)


def narrow_sums(graph: Graph) -> Rewritten:
    """The graph with such sums in its loops; the same graph where there are none."""
    if not any(value.op.regions for value in graph.body):
        return Rewritten(graph, {})
    mapping: dict[Value, Value] = {}
    values: list[Value] = []
    for value in graph.body:
        operands = tuple([mapping.get(operand, operand) for operand in value.operands])
        inside = _in_loop if value.op in ops.LOOPS else lambda body: narrow_sums(body).graph
        copy = value.with_operands(operands).with_regions(inside)
        if copy is not value:
            mapping[value] = copy
        values.append(copy)
    return Rewritten(rebuilt(graph, values, mapping), mapping)


def _in_loop(body: Graph) -> Graph:
    """What is inside of a loop."""
    if not any(value.op.regions or value.op is ops.sum for value in body.body):
        return body
    carried_or_moving = _moving(body)
    mapping: dict[Value, Value] = {}
    record = Rewriter(RULES)
    with record:
        for value in body.body:
            copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
            if value.attrs.get("policy") is not SUMMED:
                copy = copy.with_regions(_in_loop)
            found = _matched(value, carried_or_moving) if value.op is ops.sum else None
            if found is not None:
                record.source, record.forward = value.source, value.forward
                copy = _chosen(found, mapping)
            else:
                record.values.append(copy)
            if copy is not value:
                mapping[value] = copy
    return rebuilt(body, record.values, mapping)


def _moving(body: Graph) -> set[Value]:
    """The values of a body that are others in each iteration, but for its inputs."""
    found: set[Value] = set()
    inputs = set(body.inputs)
    for value in body.body:
        moves = not value.op.pure or any(operand in found or operand in inputs for operand in value.operands)
        if moves or (body.index is not None and mentions(value, body.index)):
            found.add(value)
    return found


class _Sum(NamedTuple):
    """A sum over what is in a range.

    value          the sum; term: its elements where they count.
    start, stop    the numbers between which that is.
    inside         the values that are made element by element for the sum, in order; leaves: what they are made of.
    """

    value: Value
    term: Value
    start: Value
    stop: Value
    inside: Sequence[Value]
    leaves: Sequence[Value]


def _matched(value: Value, moving: set[Value]) -> _Sum | None:
    """What is to be known of a sum over a slice, if it is one."""
    whole = value.operands[0]
    if value.attrs["axes"] != (0,) or whole.rank != 1 or not isinstance(whole.shape[0], int) or whole.shape[0] < FEWEST:
        return None
    if whole.op is not ops.select or not _is_zero(whole.operands[2]):
        return None
    mask, term, _ = whole.operands
    bounds = _bounds(mask)
    if bounds is None:
        return None
    inside: dict[Value, None] = {}
    leaves: dict[Value, None] = dict.fromkeys(bounds)
    if not _collect(whole, inside, leaves, moving):
        return None
    return _Sum(value, term, *bounds, list(inside), list(leaves))


def _is_zero(value: Value) -> bool:
    while value.op is ops.broadcast:
        value = value.operands[0]
    return value.op is ops.full and value.attrs["value"] == 0


def _bounds(mask: Value) -> tuple[Value, Value] | None:
    """Of start <= iota < stop: start and stop."""
    if mask.op is not ops.bitwise_and:
        return None
    found: dict[str, Value] = {}
    for side in mask.operands:
        if side.op in (ops.greater_equal, ops.less) and _is_count(side.operands[0]) and _is_spread(side.operands[1]):
            found["start" if side.op is ops.greater_equal else "stop"] = side.operands[1].operands[0]
    return (found["start"], found["stop"]) if len(found) == 2 else None


def _is_count(value: Value) -> bool:
    return value.op is ops.iota and value.rank == 1


def _is_spread(value: Value) -> bool:
    return value.op is ops.broadcast and value.operands[0].rank == 0


def _collect(value: Value, inside: dict[Value, None], leaves: dict[Value, None], moving: set[Value]) -> bool:
    """Whether a value is made element by element of arrays that are there, and of numbers; these are the leaves."""
    pending = [(value, False)]
    while pending:
        one, done = pending.pop()
        if done:
            inside.setdefault(one)
        elif one in inside or one in leaves:
            continue
        elif one.op.kind == "constant":
            inside.setdefault(one)
        elif _is_spread(one):
            leaves.setdefault(one.operands[0])
            inside.setdefault(one)
        elif _is_by_element(one):
            pending.append((one, True))
            tables = one.operands[:1] if one.op is ops.gather else ()
            if any(table in moving for table in tables):
                return False
            leaves.update(dict.fromkeys(tables))
            pending += [(operand, False) for operand in one.operands[len(tables):]]
        elif one.rank == 1 and one not in moving:
            leaves.setdefault(one)
        else:
            return False
    return True


def _is_by_element(value: Value) -> bool:
    if value.op is ops.gather:
        return value.operands[0].rank == len(value.operands) - 1 and value.operands[1].rank == 1
    return value.op is ops.normalize_index or (value.op.kind == "elementwise" and value.op.pure)


# ----- the two ways
def _chosen(found: _Sum, mapping: Mapping[Value, Value]) -> Value:
    """The sum over a few elements, or over all, in the current record."""
    start, stop = [mapping.get(bound, bound) for bound in (found.start, found.stop)]
    size = constant(min(found.term.shape[0] // SHORT, MOST), COUNT)
    given = [mapping.get(leaf, leaf) for leaf in found.leaves]
    chosen = ops.cond(ops.less(ops.subtract(stop, start), size), *given, then_branch=_few(found), else_branch=_all(found))
    return ops.item(chosen, index=0)


def _all(found: _Sum) -> Graph:
    """The sum as it was, of the leaves; what it is made of is computed again for a derivative."""
    inputs, given = _inputs(found.leaves), _inputs(found.leaves)
    mapping = dict(zip(found.leaves, inputs, strict=True))
    values = copied([*found.inside, found.value], mapping)
    outputs = [mapping[found.value]]
    body = Graph("whole", inputs, live_values(values, outputs), outputs)
    with Record() as record:
        record.source, record.forward = found.value.source, found.value.forward
        total = ops.item(ops.checkpoint(*given, body=body, policy=SUMMED), index=0)
    return Graph("all", given, record.values, [total])


def _inputs(leaves: Sequence[Value]) -> list[Value]:
    return [input_value(leaf.type, leaf.label, leaf.source) for leaf in leaves]


def _few(found: _Sum) -> Graph:
    """The sum element by element, of the leaves."""
    inputs = _inputs(found.leaves)
    place = {leaf: number for number, leaf in enumerate(found.leaves)}
    with Record() as record:
        record.source, record.forward = found.value.source, found.value.forward
        state = [inputs[place[found.start]], constant(0, found.value.type)]
        looped = ops.while_loop(*state, *inputs, carried=2, condition=_goes_on(found, place), body=_one_more(found))
        total = ops.item(looped, index=1)
    return cut("few", inputs, record.values, [total])


def _region_inputs(found: _Sum) -> list[Value]:
    """Inputs for what the loop over elements carries, and for the leaves."""
    return [input_value(COUNT, "k"), input_value(found.value.type, "total"), *_inputs(found.leaves)]


def _goes_on(found: _Sum, place: Mapping[Value, int]) -> Graph:
    inputs = _region_inputs(found)
    with Record() as record:
        test = ops.less(inputs[0], inputs[2 + place[found.stop]])
    return cut("below", inputs, record.values, [test])


def _one_more(found: _Sum) -> Graph:
    """(k, total) -> (k + 1, total with element k)."""
    inputs = _region_inputs(found)
    k, total = inputs[:2]
    given = dict(zip(found.leaves, inputs[2:], strict=True))
    element: dict[Value, Value] = {}
    mask = found.value.operands[0].operands[0]
    record = Rewriter(RULES)
    with record:
        for leaf, value in given.items():
            if leaf.rank == 1:
                element[leaf] = ops.gather(value, k, axes=(0,))
        for one in found.inside:
            record.source, record.forward = one.source, one.forward
            if one is mask:
                element[one] = constant(True, one.type.with_shape(()))
            elif _is_count(one):
                element[one] = k
            elif one.op is ops.full:
                element[one] = constant(one.attrs["value"], one.type.with_shape(()))
            elif _is_spread(one):
                element[one] = given[one.operands[0]]
            elif one.op is ops.gather:
                element[one] = ops.gather(given[one.operands[0]], *[element[index] for index in one.operands[1:]], axes=one.attrs["axes"])
            else:
                element[one] = one.op(*[element[operand] for operand in one.operands], **one.attrs)
        after = ops.add(total, element[found.term])
        following = ops.add(k, constant(1, COUNT))
    return cut("element", inputs, record.values, [following, after])
