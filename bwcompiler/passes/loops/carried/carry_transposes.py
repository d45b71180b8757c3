"""Matrices that a loop carries, and reads or updates by columns, are carried transposed; so are arrays of more axes along whose last
axis a loop goes.

    loop k: a = a with more added at [:, k]          ->          t = a.T;  loop k: t = t with more added at [k];  a = t.T

The elements of a column are not contiguous: they are read and written one by one.  Where a loop goes through rows of a transpose
(`turn_columns`), its adjoint goes through columns and adds to them.  So do inner loops to which the matrix is passed.  Updates between
loops are also made transposed, so that transposes meet and cancel, or are of constants.  Every element is computed as before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, add_extents, element_count, scale_extent, upper
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value, input_value, is_constant
from bwcompiler.passes.loops.carried.turn_columns import LEAST_ROWS, is_matrix, turned_array, turned_back, turned_place
from bwcompiler.passes.loops.region_bodies import emit_values
from bwcompiler.passes.rewriting.rewriter import Rewriter, rebuilt
from bwcompiler.passes.rewriting.simplify_rules import RULES

TIMES = 1.5                    # the matrix, that at least goes through the columns: it is transposed twice
ONCE = 0.75                    # that of a matrix that is new, of which nothing is transposed before the loop
OFTEN = 2.5                    # that in the body of a loop around, where a transpose is also a second place for what that loop carries,
TALL = 512                     # but for columns of so many elements: more lines of memory than the first cache has
SHARE = 2                      # so much more than through the rows


def carry_transposes(graph: Graph, inside: bool = False) -> Graph:
    """The graph whose loops carry such transposes, loops around before those inside; the same graph where there are none.

    inside: it is the body of a loop or branch, which makes transposes each time.
    """
    if not any(value.op.regions for value in graph.body):
        return graph
    mapping: dict[Value, Value] = {}
    record = Rewriter(RULES)
    arrays = _Arrays(graph)
    for value in graph.body:
        if value in mapping:
            continue
        copy = value.with_operands(tuple([mapping.get(operand, operand) for operand in value.operands]))
        record.source, record.forward = value.source, value.forward
        if copy.op is ops.loop and (numbers := _numbers(copy, inside)):
            items = [one for one in graph.body if one.op is ops.item and one.operands[0] is value]
            with record:
                copy = _carrying(copy, numbers, arrays)
                for one in items:
                    mapping[one] = arrays.result(copy, one, numbers)
                    mapping[one].name = one.name
            continue
        with record:
            moved = arrays.moved(value, copy)
        if moved is not None:
            mapping[value] = moved
            continue
        copy = copy.with_regions(_in_body)
        arrays.there[copy] = value
        if copy is not value:
            mapping[value] = copy
        record.values.append(copy)
    return rebuilt(graph, record.values, mapping)


def _in_body(body: Graph) -> Graph:
    return carry_transposes(body, True)


class _Arrays:
    """Arrays around loops, and their transposes: updates of one are updates of the other, so that all of it is moved before, or after.

    users   how often a value is read; parts: by slices; backs: what a transpose gave back -> that transpose; there: values of the new
            graph -> of the old one.
    """

    def __init__(self, graph: Graph) -> None:
        self.users: dict[Value, int] = {}
        for value in (*[operand for one in graph.body for operand in one.operands], *graph.outputs):
            self.users[value] = self.users.get(value, 0) + 1
        self.parts: dict[Value, int] = {}
        for value in graph.body:
            if value.op is ops.slice:
                self.parts[value.operands[0]] = self.parts.get(value.operands[0], 0) + 1
        self.backs: dict[Value, Value] = {}
        self.there: dict[Value, Value] = {}

    def array(self, value: Value) -> Value:
        """The transpose of an array, in the current record."""
        updates = []
        while value.op in ops.UPDATES and self._once(value):
            updates.append(value)
            value = value.operands[0]
        turned = self.backs.get(value) or turned_array(value)
        for update in reversed(updates):
            turned = update.op(turned, turned_array(update.operands[1]), **turned_place(update))
        return turned

    def result(self, loop: Value, item: Value, numbers: Collection[int]) -> Value:
        """What a loop gives in the place of an item, in the current record."""
        made = ops.item(loop, index=item.attrs["index"])
        return self._back(item, made) if item.attrs["index"] in numbers else made

    def moved(self, value: Value, copy: Value) -> Value | None:
        """A part, or an update that nothing else than parts is read beside, of what a transpose gave back: of the transpose, in the
        current record; None where it is none."""
        turned = self.backs.get(copy.operands[0]) if copy.operands else None
        if turned is None:
            return None
        if copy.op is ops.slice:
            return turned_back(ops.slice(turned, **turned_place(copy)))
        if copy.op in ops.UPDATES and self.users[self.there[copy.operands[0]]] == self.parts.get(self.there[copy.operands[0]], 0) + 1:
            return self._back(value, copy.op(turned, turned_array(copy.operands[1]), **turned_place(copy)))
        return None

    def _back(self, value: Value, turned: Value) -> Value:
        back = turned_back(turned)
        self.backs[back] = turned
        self.there[back] = value
        return back

    def _once(self, value: Value) -> bool:
        """Whether one value alone reads it."""
        return self.users.get(self.there.get(value, value), 0) == 1


def _carrying(loop: Value, numbers: Collection[int], arrays: _Arrays) -> Value:
    """The loop that carries transposes, in the current record."""
    operands = [arrays.array(operand) if k in numbers else operand for k, operand in enumerate(loop.operands)]
    made = ops.loop(*operands, **{**loop.attrs, "body": _in_body(_turned(loop.attrs["body"], numbers))})
    made.name = loop.name
    return made


# ----- which matrices
class _Volume(NamedTuple):
    """How many elements of columns and of rows a loop goes through."""

    columns: int = 0
    rows: int = 0

    def with_part(self, shape: Sequence[Extent], runs: int) -> _Volume:
        rows, columns = element_count(shape[:-1]), upper(shape[-1])
        if columns > 1:
            return _Volume(self.columns, self.rows + runs * rows * columns)
        return _Volume(self.columns + runs * rows, self.rows) if rows >= LEAST_ROWS else self


def _numbers(loop: Value, inside: bool) -> list[int]:
    """The matrices that a loop should carry transposed."""
    body, found = loop.attrs["body"], []
    for number in range(loop.attrs["carried"]):
        matrix = body.inputs[number]
        if not is_matrix(matrix) or body.outputs[number] is matrix:
            continue
        volume = _volume(body, [number], number, 1)
        seldom = OFTEN if inside and element_count(matrix.shape[:-1]) < TALL else TIMES
        times = ONCE if _is_new(loop.operands[number]) else seldom
        if volume is not None and volume.columns >= max(times * element_count(matrix.shape), SHARE * volume.rows, 1):
            found.append(number)
    return found


def _is_new(array: Value) -> bool:
    """Whether it is one number, or nothing yet, but for parts that were written."""
    while array.op in ops.UPDATES:
        array = array.operands[0]
    return array.op is ops.unset or is_constant(array)


def _volume(body: Graph, numbers: Sequence[int], carried: int | None, around: int) -> _Volume | None:
    """What a body reads and updates of one matrix, which these inputs are; None where it does more with it than that.

    carried: the number under which it is handed to the next iteration; around: how often the loop runs.
    """
    index = body.index
    assert index is not None
    runs = around * max(upper(add_extents(index.hi, scale_extent(index.lo, -1))) + 1, 0)
    found, versions = _Volume(), {body.inputs[number] for number in numbers}
    for value in body.body:
        if value.op is ops.item:
            if _passes_on(value, versions):
                versions.add(value)
        elif versions.isdisjoint(value.operands):
            continue
        elif value.op is ops.slice:
            found = found.with_part(value.shape, runs)
        elif value.op in ops.UPDATES and value.operands[1] not in versions:
            found = found.with_part(value.operands[1].shape, 2 * runs if value.op is ops.slice_add else runs)
            versions.add(value)
        elif value.op is ops.loop:
            for number, operand in enumerate(value.operands):
                if operand in versions:
                    inside = _volume(value.attrs["body"], [number], number if number < value.attrs["carried"] else None, runs)
                    if inside is None:
                        return None
                    found = _Volume(found.columns + inside.columns, found.rows + inside.rows)
        else:
            return None
    outputs = [number for number, output in enumerate(body.outputs) if output in versions]
    return found if outputs == ([] if carried is None else [carried]) else None


def _passes_on(item: Value, versions: Collection[Value]) -> bool:
    """Whether it is what a loop made of a version of the matrix."""
    loop, number = item.operands[0], item.attrs["index"]
    return loop.op is ops.loop and loop.operands[number] in versions


# ----- transposed
def _turned(body: Graph, numbers: Collection[int]) -> Graph:
    """The body that is given transposes in the places of these inputs."""
    inputs = [input_value(one.type.with_shape((one.shape[-1], *one.shape[:-1])), one.name, one.source) if number in numbers else one
              for number, one in enumerate(body.inputs)]
    turned = {body.inputs[number]: inputs[number] for number in numbers}               # per version of a matrix its transpose
    loops: dict[Value, Value] = {}
    mapping: dict[Value, Value] = {}
    with Rewriter(RULES) as record:
        for value in body.body:
            first = value.operands[0] if value.operands else value
            record.source, record.forward = value.source, value.forward
            if value.op is ops.slice and first in turned:
                mapping[value] = turned_back(ops.slice(turned[first], **turned_place(value)))
            elif value.op in ops.UPDATES and first in turned:
                part = mapping.get(value.operands[1], value.operands[1])
                turned[value] = value.op(turned[first], turned_array(part), **turned_place(value))
            elif value.op is ops.loop and not turned.keys().isdisjoint(value.operands):
                inside = [number for number, operand in enumerate(value.operands) if operand in turned]
                operands = [turned.get(operand, mapping.get(operand, operand)) for operand in value.operands]
                loops[value] = ops.loop(*operands, **{**value.attrs, "body": _turned(value.attrs["body"], inside)})
            elif value.op is ops.item and first in loops:
                made = ops.item(loops[first], index=value.attrs["index"])
                (turned if first.operands[value.attrs["index"]] in turned else mapping)[value] = made
            else:
                emit_values([value], mapping, record)
    outputs = [turned.get(output, mapping.get(output, output)) for output in body.outputs]
    return body.replace(inputs=inputs, body=live_values(record.values, outputs), outputs=outputs)

