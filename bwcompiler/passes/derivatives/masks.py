"""Values for which a choice (`np.where`, or an assignment over them) may hide a nan, also across sums, slices, loops and branches: for
these, cotangents need guards (`autodiff`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value

COMPARISONS = (ops.equal, ops.not_equal, ops.less, ops.less_equal, ops.greater, ops.greater_equal)
TAME = (ops.add, ops.subtract, ops.multiply, ops.negative, ops.absolute, ops.sign, ops.maximum, ops.minimum, ops.sin, ops.cos, ops.tanh,
        ops.arctan, ops.cast)      # with finite operands: finite, as their derivatives are

OF_MASKS = (ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor, ops.invert, ops.any, ops.all)

NEAR = 3
ROWS, COLUMNS = 1, 2               # of matrices in the last two axes
MOST_WRITES = 64                   # to one array that are looked at

# Of graphs, by the outputs that are asked for, and whether it is a region: regions in regions are looked at from each of those around.
_masked: WeakKeyDictionary[Graph, dict[tuple[frozenset[int], bool], frozenset[Value]]] = WeakKeyDictionary()


def hides_nan(condition: Value, operand: Value) -> bool:
    """Whether a choice may be there to hide what a value is where it is not chosen: unless it is one by the value's own size (a ReLU), or
    leaves out one number (a function that has a limit there)."""
    while condition.op in (ops.invert, ops.broadcast):
        condition = condition.operands[0]
    if condition.op not in COMPARISONS:
        return True
    made_of = _near(operand) if condition.op in (ops.equal, ops.not_equal) else {operand}
    return made_of.isdisjoint([value for value in condition.operands if value.op.kind != "constant"])


def asks_for_nan(value: Value) -> bool:
    """Whether it says where something is nan."""
    return value.op in (ops.isnan, ops.isfinite) or (value.op in (ops.equal, ops.not_equal) and value.operands[0] is value.operands[1])


def hidden_lines(condition: Value) -> int:
    """Which lines a choice may leave out as wholes, ROWS and COLUMNS: its condition is one for each of them, or asks for nan, which
    products spread over them."""
    parts, seen, found = [condition], set(), 0
    while parts:
        part = parts.pop()
        if part in seen:
            continue
        seen.add(part)
        if part.rank < 2 or asks_for_nan(part):
            found |= ROWS | COLUMNS
        elif part.op is ops.broadcast:
            axes, rank = part.attrs["axes"], part.rank
            found |= (0 if rank - 1 in axes else ROWS) | (0 if rank - 2 in axes else COLUMNS)
        else:
            found |= (ROWS if part.shape[-1] == 1 else 0) | (COLUMNS if part.shape[-2] == 1 else 0)
        if part.rank > 1 and (part.op.kind == "layout" or part.op in OF_MASKS):
            parts += part.operands
    return found


def left_lines(value: Value) -> int:
    """Which lines there are of what is not picked: ROWS or COLUMNS, where these are picked as wholes."""
    picked, rank = value.attrs["axes"] if value.op is ops.gather else (), value.operands[0].rank
    return (ROWS if rank - 1 not in picked else 0) | (COLUMNS if rank - 2 not in picked else 0) if picked else 0


def _near(value: Value) -> set[Value]:
    """What the value is made of by a few operations on elements, and itself."""
    found, last = {value}, [value]
    for _ in range(NEAR):
        last = [operand for one in last if one.op.kind == "elementwise" for operand in one.operands]
        found.update(last)
    return found


def overwrites(value: Value, inside: bool) -> bool:
    """Whether a value sets elements of an array that were computed before, and perhaps to hide what they were (`y = 1 / x; y[0] = 0`).

    inside: of a region, where arrays that loops made are set again in many programs that hide nothing.
    """
    if value.op is not ops.slice_update and value.op is not ops.scatter_update:
        return False
    base = value.operands[0]
    for _ in range(MOST_WRITES):
        if base.op not in ops.UPDATES or value.op is ops.scatter_update or not section_of(value).is_apart(section_of(base)):
            return base.op.kind not in ("constant", "input") and not (inside and base.op is ops.item)
        base = base.operands[0]
    return False


def masked_values(graph: Graph, outputs: Iterable[int] = (), inside: bool = False) -> frozenset[Value]:
    """The values that a choice may hide parts of, as they are or after other operations; and those that these outputs are made of.
    inside: of a region.

    Their cotangents may have zeros that stand where a nan was not chosen.
    """
    key, known = (frozenset(outputs), inside), _masked.setdefault(graph, {})
    if key not in known:
        known[key] = frozenset(_masked_values(graph, *key))
    return known[key]


def _masked_values(graph: Graph, outputs: Iterable[int], inside: bool) -> set[Value]:
    found = {graph.outputs[k] for k in outputs}
    for value in reversed(graph.body):
        if value.op is ops.select:
            found.update([operand for operand in value.operands[1:] if value in found or hides_nan(value.operands[0], operand)])
        elif value.op.regions:
            results = range(len(value.type.items)) if value in found else ()
            found.update(_masked_operands(value, results))
        elif value in found and (value.op.kind in ("elementwise", "item") or value.op.keeps_zero):
            found.update(value.operands)
        elif overwrites(value, inside):
            found.add(value.operands[0])
    return found


def _masked_operands(value: Value, results: Iterable[int]) -> list[Value]:
    """The operands of a loop or branch of which its regions hide parts, and those that its hidden results are made of."""
    given = value.operands[len(value.operands) - len(value.attrs[value.op.regions[-1]].inputs):]
    found = []
    for name in value.op.regions:
        region = value.attrs[name]
        outputs = masked_outputs(region, value.attrs.get("carried", 0), results) if name != "condition" else ()
        hidden = masked_values(region, outputs, inside=True)
        found += [operand for operand, inside in zip(given, region.inputs, strict=True) if inside in hidden]
    return found


def overwritten_values(body: Iterable[Value], inside: bool) -> set[Value]:
    """What was computed, and what a region was given, before elements of it were set: by a value, or in a loop or branch.  Of what was
    there before the cotangent is 0, also where a slice reads, past that, what was not set.  inside: of a region.

    Not what loops made, or filled: that is set again in many programs that hide nothing.
    """
    found = set()
    for value in body:
        bases = [value.operands[0]] if value.op in (ops.slice_update, ops.scatter_update) else []
        for name in value.op.regions:
            region: Graph = value.attrs[name]
            given = value.operands[len(value.operands) - len(region.inputs):]
            hidden = overwritten_values(region.body, True)
            bases += [operand for operand, inside in zip(given, region.inputs, strict=True) if inside in hidden]
        for base in bases:
            first = base
            while first.op in ops.UPDATES:
                first = first.operands[0]
            is_made = first.op.kind not in ("constant", "input") and first.op is not ops.item
            if (inside and first.op.kind == "input") or (is_made and (value.op.regions or overwrites(value, inside))):
                found.add(first)
    return found


def masked_outputs(body: Graph, carried: int, results: Iterable[int]) -> frozenset[int]:
    """The outputs of a body of whose cotangents parts may be masked, given of which results of the op they are: what is carried is read
    in the next iteration, too."""
    found = frozenset(results)
    while True:
        hidden = masked_values(body, found, inside=True)
        more = found.union([k for k in range(carried) if body.inputs[k] in hidden])
        if more == found:
            return found
        found = more


def wild_values(graph: Graph, inside: bool) -> set[Value]:
    """The values that may be nan or inf where the graph's inputs are finite; of these nothing is known if `inside`."""
    found = set(graph.inputs) if inside else set()
    for value in graph.body:
        tame = value.op in TAME or value.op is ops.select or (value.op.kind != "elementwise" and value.op.keeps_zero) or is_multiple(value)
        if value.op.kind != "constant" and (not tame or not found.isdisjoint(value.operands)):
            found.add(value)
    return found


def is_made(value: Value) -> bool:
    """Whether elements are computed, and not those of an input."""
    while value.op.kind == "layout" and len(value.operands) == 1:
        [value] = value.operands
    return value.op.kind not in ("constant", "input")


def is_multiple(value: Value) -> bool:
    """Whether it is a known multiple of its first operand."""
    if value.op not in (ops.multiply, ops.divide) or value.operands[1].op is not ops.full:
        return False
    factor = abs(value.operands[1].attrs["value"])
    return math.isfinite(factor) and (factor > 0 or value.op is ops.multiply)
