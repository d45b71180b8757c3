"""Iterations that stand before their loop become iterations of it again.

    y0 = f(x0, a);  loop: y = f(y, a), from y0          ->          loop: y = f(y, a), from x0, once more

Capture lets the first iteration run separately if it differs for Python from the others (`error = 1.0; while error > tol:`), and
programs are also written so.  The results are the same, with half of the code to compile, in derivatives too.  A `while` is told that its
first test is true.

The initial state is found by comparing the values of the first iteration with those of the body, from the results to the operands: the
value found where the body reads a carried value is its initial value.  For a carried value that the body never reads, any initial value
will do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, known_le, substitute
from bwcompiler.ir.graph import Graph, all_values, cut
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.types import BOOL, TensorType, TupleType, tensor
from bwcompiler.ops.rules import zero_of
from bwcompiler.passes.loops.iterations.split_loops import copy_of
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten

FLAG = tensor(BOOL)
Indices = Mapping[Index, Extent]           # of loops -> what they are outside


def reroll_loops(graph: Graph) -> Rewritten:
    """The graph with such iterations in their loops; the same graph where there are none."""
    read = iter(_read_later(graph))

    def replacement(value: Value) -> list[Value] | None:
        later = next(read)
        return _rerolled(value, later) if value.op in ops.LOOPS else None

    return with_regions_replaced(graph, reroll_loops, replacement)


class _Read(NamedTuple):
    """Which operands and which results of an op are read behind it, by number."""

    operands: set[int]
    results: set[int]


def _read_later(graph: Graph) -> list[_Read]:
    """Per op with regions."""
    found: list[_Read] = []
    read = set(graph.outputs)
    results: dict[Value, set[int]] = {}
    for value in reversed(graph.body):
        if value.op is ops.item and value in read:
            results.setdefault(value.operands[0], set()).add(value.attrs["index"])
        if value.op.regions:
            found.append(_Read({k for k, operand in enumerate(value.operands) if operand in read}, results.get(value, set())))
        read.update(value.operands)
    return found[::-1]


def _rerolled(loop: Value, read: _Read) -> list[Value] | None:
    """The results of the loop with the iterations before it, in the current record; None where there are none."""
    attrs = loop.attrs
    if not all(_is_pure(attrs[region]) for region in loop.op.regions):
        return None
    if loop.op is ops.loop and (abs(attrs["step"]) != 1 or not known_le(attrs["lo"], add_extents(attrs["hi"], 1))):
        return None
    if loop.op is ops.while_loop:
        before = _state_before(loop, read)
        return None if before is None else _items(_tested(loop, before))[:-1]
    found = None
    while (before := _state_before(loop, read)) is not None:
        loop = _counted(loop, before)
        found = _items(loop)
    return found


def _items(loop: Value) -> list[Value]:
    return [ops.item(loop, index=k) for k in range(len(loop.type.items))]


def _is_pure(graph: Graph) -> bool:
    return all(value.op.pure for value in all_values(graph))


# ----- what was carried before
def _state_before(loop: Value, read: _Read) -> list[Value] | None:
    """What was carried before the iteration that made what the loop starts with; None where that is something else."""
    body, carried = loop.attrs["body"], loop.attrs["carried"]
    made, fixed = loop.operands[:carried], loop.operands[carried:]
    states, outputs = body.inputs[:carried], body.outputs
    wanted = range(carried) if loop.op is ops.loop else sorted(read.results | _numbers_read(loop))      # in all is what an index reaches
    indices: dict[Index, Extent] = {} if body.index is None else {body.index: _index_before(loop)}
    found = dict(zip(body.inputs[carried:], fixed, strict=True))
    if not _match([(outputs[k], made[k]) for k in wanted], set(states), found, indices):
        return None
    computed = [k for k in wanted if outputs[k].op.kind not in ("input", "constant")]
    if not computed or any(k in read.operands for k in computed):
        return None
    return [found[state] if state in found else _anything(state.type) for state in states]


def _numbers_read(loop: Value) -> set[int]:
    """The numbers of what is carried that an iteration or the test reads."""
    carried, found = loop.attrs["carried"], set()
    for name in loop.op.regions:
        region = loop.attrs[name]
        passed = [output for output, own in zip(region.outputs, region.inputs, strict=False) if output is not own or name != "body"]
        read = {operand for value in region.body for operand in value.operands}.union(passed)
        found |= {k for k in range(carried) if region.inputs[k] in read}
    return found


def _anything(type_: TensorType) -> Value:
    return ops.full(value=zero_of(type_.dtype), shape=type_.shape, dtype=type_.dtype)


def _index_before(loop: Value) -> Extent:
    """The index of the iteration before the first one."""
    step = loop.attrs["step"]
    return add_extents(loop.attrs["lo"] if step > 0 else loop.attrs["hi"], -step)


def _match(pairs: list[tuple[Value, Value]], states: set[Value], found: dict[Value, Value], indices: Indices) -> bool:
    """Whether values of a body are computed as those outside are, for some of what it carries, which is added to what was found."""
    while pairs:
        inside, outside = pairs.pop()
        if _is_same_constant(inside, outside, indices):
            continue
        known = found.get(inside)
        if known is not None:
            if known is not outside and not _is_same_constant(known, outside, {}):
                return False
            continue
        found[inside] = outside
        if inside in states:
            if inside.type != outside.type:
                return False
            continue
        if (counted := _counted_from(inside, outside, states)) is not None:
            pairs.append(counted)
            continue
        if inside.op.kind == "input" or not _is_same_op(inside, outside, indices):
            return False
        pairs += zip(inside.operands, outside.operands, strict=True)
    return True


def _counted_from(inside: Value, outside: Value, states: set[Value]) -> tuple[Value, Value] | None:
    """A counter that the body adds a number to, and what it was where outside only the sum is known."""
    if inside.op is not ops.add or outside.op is not ops.full or inside.type != outside.type or inside.type.dtype.kind != "i":
        return None
    for state, step in (inside.operands, inside.operands[::-1]):
        if state in states and step.op is ops.full:
            return state, constant(int(outside.attrs["value"]) - int(step.attrs["value"]), inside.type)
    return None


# ----- the same ops
def _is_same_constant(one: Value, other: Value, indices: Indices) -> bool:
    if other.op is not ops.full:
        return False
    if one.op is ops.index_value:
        return one.type == other.type and bool(substitute(one.attrs["extent"], indices) == other.attrs["value"])
    return one.op is ops.full and _is_same_op(one, other, indices)


def _is_same_op(one: Value, other: Value, indices: Indices) -> bool:
    """Whether two values are the same op of one type, whatever their operands are."""
    return (one.op is other.op and len(one.operands) == len(other.operands) and _is_same(one.type, other.type, indices)
            and all(_is_same(one.attrs[name], other.attrs[name], indices) for name in one.op.attributes))


def _is_same(one: Any, other: Any, indices: Indices) -> bool:
    if isinstance(one, Affine):
        return bool(substitute(one, indices) == other)
    if type(one) is not type(other):
        return False
    if isinstance(one, Graph):
        return _is_same_graph(one, other, indices)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(_is_same(first, second, indices) for first, second in zip(one, other, strict=True))
    if isinstance(one, TensorType):
        return one.dtype == other.dtype and _is_same(one.shape, other.shape, indices)
    if isinstance(one, TupleType):
        return _is_same(one.items, other.items, indices)
    return repr(one) == repr(other) if isinstance(one, float | complex) else bool(one == other)      # 0.0 and -0.0


def _is_same_graph(one: Graph, other: Graph, indices: Indices) -> bool:
    if len(one.inputs) != len(other.inputs) or len(one.body) != len(other.body) or (one.index is None) != (other.index is None):
        return False
    inside = dict(indices)
    if one.index is not None and other.index is not None:
        if not _is_same((one.index.lo, one.index.hi), (other.index.lo, other.index.hi), indices):
            return False
        inside[one.index] = other.index.extent()
    mapping = dict(zip(one.inputs, other.inputs, strict=True))
    if not all(_is_same(first.type, second.type, inside) for first, second in mapping.items()):
        return False
    for first, second in zip(one.body, other.body, strict=True):
        if not _is_same_op(first, second, inside) or [mapping[operand] for operand in first.operands] != list(second.operands):
            return False
        mapping[first] = second
    return [mapping[output] for output in one.outputs] == list(other.outputs)


# ----- the loops
def _counted(loop: Value, before: Sequence[Value]) -> Value:
    """The loop that begins an iteration earlier."""
    attrs, carried = loop.attrs, loop.attrs["carried"]
    lo, hi, step = attrs["lo"], attrs["hi"], attrs["step"]
    lo, hi = (add_extents(lo, -step), hi) if step > 0 else (lo, add_extents(hi, -step))
    body = copy_of(attrs["body"], Index(lo, hi, attrs["body"].index.name))
    return ops.loop(*before, *loop.operands[carried:], lo=lo, hi=hi, step=step, carried=carried, body=body)


def _tested(loop: Value, before: Sequence[Value]) -> Value:
    """The loop whose first test holds: it also carries whether it is in the first iteration."""
    carried = loop.attrs["carried"]
    condition, body = loop.attrs["condition"], loop.attrs["body"]
    first = input_value(FLAG, "first")
    with Record() as record:
        going = ops.bitwise_or(first, condition.outputs[0])
    inputs = [*condition.inputs[:carried], first, *condition.inputs[carried:]]
    tested = cut(condition.name, inputs, [*condition.body, *record.values], [going])
    first = input_value(FLAG, "first")
    with Record() as record:
        later = constant(False, FLAG)
    run = body.replace(inputs=[*body.inputs[:carried], first, *body.inputs[carried:]], body=[*body.body, *record.values],
                       outputs=[*body.outputs, later])
    return ops.while_loop(*before, constant(True, FLAG), *loop.operands[carried:], carried=carried + 1, condition=tested, body=run)
