"""Recurrences in two directions run a few rows at a time, each row some columns behind the one before.

    for i: for j: a[i, j] = f(a[i - 1, j], a[i, j - 1])
                              ->
    for i, in blocks of four rows:
        row i gets its first 3 columns, row i + 1 its first 2, row i + 2 its first one
        for j: a[i, j + 3] = ...;  a[i + 1, j + 2] = ...;  a[i + 2, j + 1] = ...;  a[i + 3, j] = ...
        row i + 1 gets its last column, row i + 2 its last 2, row i + 3 its last 3

An element of a row waits for the one before, for as long as its operations take (their latency); those of four rows do not wait for each
other.  This is loop skewing, and unroll-and-jam of the skewed loop: Wolfe, "Loop skewing: the wavefront method revisited", 1986.
Gauss-Seidel's sweeps, dynamic programming and their derivatives are such loops.  Every element is computed from the same elements as
before, and additions to an element keep their order (`nests.py`), so all bits stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, Index, add_extents, scale_extent
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Value, current_record, input_value
from bwcompiler.passes.loops.iterations.nests import ELEMENTWISE, Nest, delay_of, nest_of, waits
from bwcompiler.passes.loops.region_bodies import emit_values
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewriter, Rewritten
from bwcompiler.passes.rewriting.simplify_rules import RULES

ROWS = 4                       # that run together
MOST_DELAY = 4                 # columns from one row to the next
LEAST_COLUMNS = 32             # of a row: of fewer most are begun and ended one row after the other
LEAST_ITERATIONS = 1 << 10     # of both loops: fewer do not pay for the code
MOST_VALUES = 40               # of an iteration: more keep a core busy without other rows


def skew_loops(graph: Graph) -> Graph:
    """The graph whose nests of loops run rows together; the same graph where there are none.  Nests in bodies stay as they are."""
    return with_regions_replaced(graph, lambda body: Rewritten(body, {}), _replacement).graph


def _replacement(value: Value) -> list[Value] | None:
    """The results of a loop over rows, which are computed by other loops in the current record; None where it stays."""
    if value.op is not ops.loop or not _is_long(value, 2 * ROWS):
        return None
    nest = nest_of(value)
    if nest is None or not _pays(nest):
        return None
    delay = delay_of(nest, ROWS)
    if delay is None or delay > MOST_DELAY or 4 * (ROWS - 1) * delay > _count(nest.inner):
        return None
    return _Skewed(nest, delay).results()


def _is_long(loop: Value, least: int) -> bool:
    """Whether a loop goes from one number to another, one by one, and far enough."""
    lo, hi, step = (loop.attrs[name] for name in ("lo", "hi", "step"))
    return isinstance(lo, int) and isinstance(hi, int) and abs(step) == 1 and _count(loop) >= least


def _count(loop: Value) -> int:
    count: int = loop.attrs["hi"] - loop.attrs["lo"] + 1
    return count


def _pays(nest: Nest) -> bool:
    """Whether iterations are a few operations on single elements which wait for those of the iteration before."""
    if not _is_long(nest.inner, LEAST_COLUMNS) or _count(nest.outer) * _count(nest.inner) < LEAST_ITERATIONS:
        return False
    inside: Graph = nest.inner.attrs["body"]
    if not all(_is_simple(value) for value in (*inside.body, *nest.before, *nest.after)):
        return False
    return sum(value.op.kind == "elementwise" for value in inside.body) <= MOST_VALUES and waits(nest)


def _is_simple(value: Value) -> bool:
    return value.op.pure and (value.op in ops.UPDATES or (value.op.kind in ELEMENTWISE and value.type.is_fixed and value.type.size == 1))


class _Skewed:
    """The loops that a nest becomes, `delay` columns from row to row.

    States are the arrays that the outer loop changes; they are given and returned in the order of its operands.
    fixed: its other operands.
    """

    def __init__(self, nest: Nest, delay: int) -> None:
        self.nest = nest
        self.delay = delay
        outer = nest.outer
        self.body: Graph = outer.attrs["body"]
        self.down = outer.attrs["step"] < 0
        self.back = nest.inner.attrs["step"] < 0

    def results(self) -> list[Value]:
        """The results of the outer loop: of the blocks of rows, and of the rows that are left."""
        outer = self.nest.outer
        lo, hi, carried = outer.attrs["lo"], outer.attrs["hi"], outer.attrs["carried"]
        left = _count(outer) % ROWS
        first, last = (lo + left, hi) if self.down else (lo, hi - left)
        states, fixed = list(outer.operands[:carried]), outer.operands[carried:]
        states = self._loop(self.nest.rows.name, first + (ROWS - 1) * self.down, last - (ROWS - 1) * (not self.down),
                            -ROWS if self.down else ROWS, states, fixed, self._block)
        if left:
            first, last = (lo, lo + left - 1) if self.down else (hi - left + 1, hi)
            states = self._loop(self.nest.rows.name, first, last, outer.attrs["step"], states, fixed, self._row)
        return states

    def _loop(self, name: str, lo: Extent, hi: Extent, step: int, states: Sequence[Value], fixed: Sequence[Value],
              build: Callable[[Index, list[Value], Sequence[Value]], Sequence[Value]]) -> list[Value]:
        """The states after a loop, in the current record.  build: emits an iteration, and gives the states after it."""
        index = Index(lo, hi, name)
        inputs = [input_value(value.type, value.name, value.source) for value in (*states, *fixed)]
        record = Rewriter(RULES)
        record.source, record.forward = self.nest.outer.source, self.nest.outer.forward
        entries = inputs[:len(states)]
        with record:
            outputs = build(index, list(entries), inputs[len(states):])
        changed = [k for k, value in enumerate(entries) if outputs[k] is not value]
        body = live_values(record.values, outputs)
        read = {operand for value in body for operand in value.operands}.union(outputs[k] for k in changed)
        numbers = [*changed, *[k for k, value in enumerate(inputs) if k not in changed and value in read]]
        graph = Graph(self.body.name, [inputs[k] for k in numbers], body, [outputs[k] for k in changed], index)
        given = (*states, *fixed)
        loop = ops.loop(*[given[k] for k in numbers], lo=lo, hi=hi, step=step, carried=len(changed), body=graph)
        found = list(states)
        for place, k in enumerate(changed):
            found[k] = ops.item(loop, index=place)
        return found

    # ----- rows
    def _block(self, index: Index, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
        """Rows that run together; index: of the first one."""
        lo, hi = self.nest.inner.attrs["lo"], self.nest.inner.attrs["hi"]
        longest = (ROWS - 1) * self.delay

        def begin(number: Index, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
            row = self._row_at(index, number.extent())
            states = self._before(row, states, fixed)
            columns = add_extents(longest, scale_extent(number.extent(), -self.delay))
            first, last = (add_extents(hi + 1, scale_extent(columns, -1)), hi) if self.back else (lo, add_extents(lo - 1, columns))
            return self._columns(first, last, [(row, 0)], states, fixed)

        def end(number: Index, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
            row = self._row_at(index, number.extent())
            columns = scale_extent(number.extent(), self.delay)
            first, last = (lo, add_extents(lo - 1, columns)) if self.back else (add_extents(hi + 1, scale_extent(columns, -1)), hi)
            return self._after(row, self._columns(first, last, [(row, 0)], states, fixed), fixed)

        if self.delay:
            states = self._loop("row", 0, ROWS - 2, 1, states, fixed, begin)
        rows = [self._row_at(index, number) for number in range(ROWS)]
        for row in rows[ROWS - 1:] if self.delay else rows:
            states = self._before(row, states, fixed)
        ahead = [(number if self.back else ROWS - 1 - number) * self.delay for number in range(ROWS)]
        states = self._columns(lo, hi - longest, list(zip(rows, ahead, strict=True)), states, fixed)
        for row in rows[:1] if self.delay else rows:
            states = self._after(row, states, fixed)
        return self._loop("row", 1, ROWS - 1, 1, states, fixed, end) if self.delay else states

    def _row_at(self, index: Index, number: Extent) -> Extent:
        return add_extents(index.extent(), scale_extent(number, -1 if self.down else 1))

    def _row(self, index: Index, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
        """A row on its own."""
        row, inner = index.extent(), self.nest.inner.attrs
        states = self._before(row, states, fixed)
        return self._after(row, self._columns(inner["lo"], inner["hi"], [(row, 0)], states, fixed), fixed)

    def _before(self, row: Extent, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
        """The states after what is done before the columns of a row."""
        mapping = dict(zip(self.body.inputs, (*states, *fixed), strict=True))
        self._emit(self.nest.before, mapping, row)
        return [mapping[value] for value in self.nest.latest]

    def _after(self, row: Extent, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
        """The states after what is done after the columns of a row."""
        nest, carried = self.nest, self.nest.outer.attrs["carried"]
        mapping = dict(zip((*nest.latest, *self.body.inputs[carried:]), (*states, *fixed), strict=True))
        for value in self.body.body:
            if value.op is ops.item and value.operands[0] is nest.inner:
                mapping[value] = states[nest.carried[value.attrs["index"]]]
        self._emit(nest.after, mapping, row)
        return [mapping[output] for output in self.body.outputs]

    def _emit(self, values: Sequence[Value], mapping: dict[Value, Value], row: Extent) -> None:
        record = current_record()
        assert record is not None
        emit_values([*self.nest.constants, *values], mapping, record, {self.nest.rows: row})

    def _columns(self, lo: Extent, hi: Extent, rows: Sequence[tuple[Extent, int]], states: list[Value],
                 fixed: Sequence[Value]) -> list[Value]:
        """The states after a loop over columns; rows: those that run together, each with the number of columns that it is ahead."""
        nest = self.nest
        inside: Graph = nest.inner.attrs["body"]
        read = [self._read(row, fixed) for row, _ in rows]
        different = list(dict.fromkeys([value for one in read for value in one]))

        def together(index: Index, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
            record = current_record()
            assert record is not None
            inputs = dict(zip(different, fixed, strict=True))
            for values, (row, ahead) in zip(read, rows, strict=True):
                mapping = dict(zip(inside.inputs, (*states, *[inputs[value] for value in values]), strict=True))
                emit_values(inside.body, mapping, record, {nest.rows: row, nest.columns: add_extents(index.extent(), ahead)})
                states = [mapping[output] for output in inside.outputs]
            return states

        given = [states[number] for number in nest.carried]
        found = self._loop(nest.columns.name, lo, hi, nest.inner.attrs["step"], given, different, together)
        result = list(states)
        for number, value in zip(nest.carried, found, strict=True):
            result[number] = value
        return result

    def _read(self, row: Extent, fixed: Sequence[Value]) -> list[Value]:
        """What the columns of a row read that they do not change, computed again."""
        mapping = dict(zip(self.body.inputs[self.nest.outer.attrs["carried"]:], fixed, strict=True))
        self._emit((), mapping, row)
        return [mapping[operand] for operand in self.nest.inner.operands[len(self.nest.carried):]]
