"""Parts of an array that an inner loop reads or fills are used directly in that array, without copies.

    loop i: r = loop j: r[j] = f(i, j), from zeros; s[i] = r          ->          loop i: loop j: s[i, j] = f(i, j)
    loop i: loop j: g(s[i][j])                                        ->          loop i: loop j: g(s[i, j])

The values that a nest of loops keeps for its derivative are stacked like this: the inner stack is a row of the outer one.  As a separate
array, each row would be cleared, filled and copied, and copied again before it is read.  The rows that are filled belong to an array of
zeros, one row per iteration, so that elements that an iteration leaves out are zero as before.  Or they belong to any array that was not
filled before (`unset`), if the row is such an array too, so that nothing reads what is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Extent, Index
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Op, Value, input_value
from bwcompiler.passes.loops.region_bodies import emit_values
from bwcompiler.passes.rewriting.rewriter import Rewriter, rebuilt
from bwcompiler.passes.rewriting.simplify_rules import RULES

Place = tuple[Extent, ...]                         # where a part begins, along the first axes, of which it has one element each


def share_parts(graph: Graph) -> Graph:
    """The graph whose loops hand on whole arrays in the places of parts; the same graph where there are none."""
    if not any(value.op.regions for value in graph.body):
        return graph
    mapping: dict[Value, Value] = {}
    values: list[Value] = []
    for value in graph.body:
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        copy = copy.with_regions(_inside_of(copy))
        if copy is not value:
            mapping[value] = copy
        values.append(copy)
    return rebuilt(graph, values, mapping)


def _inside_of(value: Value) -> Callable[[Graph], Graph]:
    """What is to be done with the regions of a value."""
    if value.op is not ops.loop:
        return share_parts
    carried = value.attrs["carried"]
    return lambda body: _shared(body, carried, _begins(value.operands[:carried]))


def _begins(operands: Sequence[Value]) -> dict[int, Op]:
    """The numbers of what a loop carries that begins with zeros, or with nothing in particular, and the op that says which."""
    return {number: value.op for number, value in enumerate(operands)
            if value.op is ops.unset or (value.op is ops.full and value.attrs["value"] == 0)}


class _Part(NamedTuple):
    """A part that operand `number` of a loop is: of `whole`, from `place` on.

    update: where it is filled, what puts it there; between: the result of the loop, and how that is reshaped.
    """

    number: int
    whole: Value
    place: Place
    update: Value | None = None
    between: tuple[Value, ...] = ()


def _shared(body: Graph, carried: int, begins: Mapping[int, Op]) -> Graph:
    """The body of a loop, with the bodies of the loops in it; begins: how what it carries begins (`_begins`)."""
    users = body.readers()
    wholes = {body.inputs[number]: op for number, op in begins.items()}
    parts = {value: found for value in body.body if value.op is ops.loop and (found := [
        *_filled(value, body, users, wholes), *_read(value, set(body.inputs[carried:]))])}
    if not parts:
        return share_parts(body)
    taken = {one.update: (loop, one) for loop, found in parts.items() for one in found if one.update is not None}
    between = {value for found in parts.values() for one in found for value in one.between}
    mapping: dict[Value, Value] = {}
    with Rewriter(RULES) as record:
        for value in body.body:
            record.source, record.forward = value.source, value.forward
            if value in between:
                continue
            if value in parts:
                mapping[value] = _with_wholes(value, parts[value], mapping)
            elif value in taken:
                loop, part = taken[value]
                mapping[value] = ops.item(mapping[loop], index=part.number)
            else:
                emit_values([value], mapping, record)
    outputs = [mapping.get(output, output) for output in body.outputs]
    return share_parts(body.replace(body=live_values(record.values, outputs), outputs=outputs))


# ----- which parts
def _filled(loop: Value, body: Graph, users: Mapping[Value, Sequence[Value | None]], wholes: Mapping[Value, Op]) -> list[_Part]:
    """What a loop fills, and what is a part of an array then that began as it did, or with zeros in the place of nothing in particular."""
    found = []
    items = {value.attrs["index"]: value for value in users.get(loop, ()) if value is not None and value.op is ops.item}
    for number, begun in _begins(loop.operands[:loop.attrs["carried"]]).items():
        value = items.get(number)
        if value is None or not _is_only_updated(loop.attrs["body"], number):
            continue
        between = [value]
        update = _only_user(value, users)
        if update is not None and update.op is ops.reshape:
            between.append(update)
            update = _only_user(update, users)
        if update is None or update.op is not ops.slice_update or wholes.get(update.operands[0]) not in (begun, ops.full):
            continue
        whole = update.operands[0]
        place = _place(update.attrs["starts"], update.operands[1].shape, update.attrs["steps"], whole, value)
        if place is not None and _moves(place, body.index) and users[whole] == [update] and users[update] == [None]:
            found.append(_Part(number, whole, place, update, tuple(between)))
    return found


def _moves(place: Place, index: Index | None) -> bool:
    return any(isinstance(start, Affine) and any(term is index for term, _ in start.terms) for start in place)


def _only_user(value: Value, users: Mapping[Value, Sequence[Value | None]]) -> Value | None:
    found = users.get(value, [])
    return found[0] if len(found) == 1 else None


def _is_only_updated(body: Graph, number: int) -> bool:
    """Whether nothing is read of what a body carries under this number, of which it updates parts."""
    version = body.inputs[number]
    users = body.readers()
    while version is not body.outputs[number]:
        update = _only_user(version, users)
        if update is None or update.op is not ops.slice_update or update.operands[0] is not version:
            return False
        version = update
    return version is not body.inputs[number] and users[version] == [None]


def _read(loop: Value, fixed: Set[Value]) -> list[_Part]:
    """The operands of a loop that are parts of arrays which do not change, and of which it reads parts."""
    found = []
    for number, operand in enumerate(loop.operands):
        if number < loop.attrs["carried"] or operand.op is not ops.reshape or operand.operands[0].op is not ops.slice:
            continue
        part = operand.operands[0]
        whole = part.operands[0]
        place = _place(part.attrs["starts"], part.shape, part.attrs["steps"], whole, operand)
        if place is None or whole not in fixed:
            continue
        body = loop.attrs["body"]
        users = body.readers().get(body.inputs[number], [])
        if users and all(user is not None and user.op is ops.slice for user in users):
            found.append(_Part(number, whole, place))
    return found


def _place(starts: Sequence[Extent], sizes: Sequence[Extent], steps: Sequence[int], whole: Value, part: Value) -> Place | None:
    """Where a part begins that is all of an array but for its first axes."""
    axes = whole.rank - part.rank
    if axes <= 0 or any(step != 1 for step in steps) or any(size != 1 for size in sizes[:axes]):
        return None
    rest = tuple(sizes[axes:]) == part.shape == whole.shape[axes:] and all(start == 0 for start in starts[axes:])
    return tuple(starts[:axes]) if rest else None


# ----- in their places
def _with_wholes(loop: Value, parts: Sequence[_Part], mapping: Mapping[Value, Value]) -> Value:
    """The loop that is given whole arrays, in the current record."""
    body: Graph = loop.attrs["body"]
    operands = [mapping.get(operand, operand) for operand in loop.operands]
    inputs = list(body.inputs)
    wholes: dict[Value, tuple[Value, Place]] = {}
    for part in parts:
        operands[part.number] = mapping.get(part.whole, part.whole)
        old = inputs[part.number]
        inputs[part.number] = input_value(part.whole.type, old.name, old.source)
        wholes[old] = inputs[part.number], part.place
    inside: dict[Value, Value] = {}
    with Rewriter(RULES) as record:
        for value in body.body:
            first = value.operands[0] if value.operands else value
            if first not in wholes or value.op not in (ops.slice, ops.slice_update):
                emit_values([value], inside, record)
                continue
            record.source, record.forward = value.source, value.forward
            whole, place = wholes[first]
            where = {"starts": (*place, *value.attrs["starts"]), "steps": (1,) * len(place) + value.attrs["steps"]}
            if value.op is ops.slice:
                read = ops.slice(whole, sizes=(1,) * len(place) + value.attrs["sizes"], **where)
                inside[value] = ops.reshape(read, shape=value.shape)
            else:
                more = inside.get(value.operands[1], value.operands[1])
                written = ops.slice_update(whole, ops.reshape(more, shape=(1,) * len(place) + more.shape), **where)
                wholes[value] = written, place
    outputs = [wholes[output][0] if output in wholes else inside.get(output, output) for output in body.outputs]
    made = body.replace(inputs=inputs, body=live_values(record.values, outputs), outputs=outputs)
    begins = _begins(loop.operands[:loop.attrs["carried"]])            # of a part as of its whole: it has the same op, or may have it
    return ops.loop(*operands, **{**loop.attrs, "body": _shared(made, loop.attrs["carried"], begins)})
