"""Rows of a nest of loops run a few at a time: unroll-and-jam, of loops that are skewed if they have to be.

    for i: for j: a[i, j] = f(a[i - 1, j], a[i, j - 1])
                              ->
    for i, in blocks of four rows:
        row i gets its first 3 columns, row i + 1 its first 2, row i + 2 its first one
        for j: a[i, j + 3] = ...;  a[i + 1, j + 2] = ...;  a[i + 2, j + 1] = ...;  a[i + 3, j] = ...
        row i + 1 gets its last column, row i + 2 its last 2, row i + 3 its last 3

This pays where iterations wait: an element of a row waits for the one before it, for as long as its operations take (their latency), but
those of four rows do not wait for each other.  Gauss-Seidel's sweeps, dynamic programming and their derivatives are such loops.  And it
pays where rows read the same: the rows of a Cholesky factor, and of its derivative, each read the rows before.  `row_schedules` says which
columns run together, and whether everything is computed from the same elements as before, with additions to an element in their order; all
bits stay the same.

Source: Wolfe, "Loop skewing: the wavefront method revisited", 1986; Callahan, Carr and Kennedy, "Improving register allocation for
subscripted variables", 1990.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import section_of
from bwcompiler.ir.extent import Extent, Index, add_extents, element_count, substitute
from bwcompiler.ir.graph import Graph, live_values, readers_of
from bwcompiler.ir.op import Value, current_record, input_value
from bwcompiler.passes.loops.carried.write_parts_once import written_once
from bwcompiler.passes.loops.iterations.nests import ELEMENTWISE, Nest, nest_of, slope
from bwcompiler.passes.loops.iterations.row_schedules import Columns, RowSchedule, waits
from bwcompiler.passes.loops.region_bodies import emit_values
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewriter, Rewritten
from bwcompiler.passes.rewriting.simplify_rules import RULES

ROWS = 4                       # that run together
MOST_DELAY = 4                 # columns from one row to the next
LEAST_COLUMNS = 32             # of a row: of fewer most are begun and ended one row after the other
LEAST_ITERATIONS = 1 << 9     # of both loops: fewer do not pay for the code
LEAST_SHARED = 16              # elements that rows read alike
MOST_VALUES = 40               # of an iteration: more keep a core busy without other rows


def unroll_and_jam(graph: Graph) -> Graph:
    """The graph whose nests of loops run rows together; the same graph where there are none.  Nests in bodies stay as they are."""
    return with_regions_replaced(graph, lambda body: Rewritten(body, {}), _replacement).graph


def _replacement(value: Value) -> list[Value] | None:
    """The results of a loop over rows, which are computed by other loops in the current record; None where it stays."""
    nest = nest_of(value) if value.op is ops.loop and _is_counted(value) and _count(value) >= 2 * ROWS else None
    schedule = None if nest is None or not _pays(nest) else schedule_of(nest)
    return None if schedule is None else _Jammed(schedule).results()


def _is_counted(loop: Value) -> bool:
    """Whether a loop goes from one known number to another, one by one."""
    lo, hi, step = (loop.attrs[name] for name in ("lo", "hi", "step"))
    return isinstance(lo, int) and isinstance(hi, int) and abs(step) == 1


def _count(loop: Value) -> int:
    count: int = loop.attrs["hi"] - loop.attrs["lo"] + 1
    return count


def schedule_of(nest: Nest) -> RowSchedule | None:
    """How rows of a nest can run together, with the smallest delay; None if they cannot."""
    blocks, _ = _split(nest)
    columns = min(_lengths(nest))
    for delay in range(MOST_DELAY + 1):
        if delay and 4 * (ROWS - 1) * delay > columns:       # rows would run together for less than three quarters of their columns
            return None
        schedule = RowSchedule(nest, ROWS, delay)
        if schedule.fits(blocks) and schedule.keeps_order(blocks):
            return schedule
    return None


def _split(nest: Nest) -> tuple[Index, Index | None]:
    """The first rows of blocks, in steps of ROWS, and the rows that are left."""
    lo, hi, down = nest.outer.attrs["lo"], nest.outer.attrs["hi"], nest.outer.attrs["step"] < 0
    left = _count(nest.outer) % ROWS
    first, last = (lo + left + ROWS - 1, hi) if down else (lo, hi - left - ROWS + 1)
    rest = Index(lo, lo + left - 1, nest.rows.name) if down else Index(hi - left + 1, hi, nest.rows.name)
    return Index(first, last, nest.rows.name), rest if left else None


# ----- whether it pays
def _pays(nest: Nest) -> bool:
    """Whether iterations are a few operations that wait for those before them, or that read what other rows read."""
    lengths = _lengths(nest)
    if abs(nest.inner.attrs["step"]) != 1 or not all(value.op.pure for value in (*nest.inside.body, *nest.before, *nest.after)):
        return False
    if max(lengths) < LEAST_COLUMNS or sum(lengths) // 2 * _count(nest.outer) < LEAST_ITERATIONS:
        return False
    if sum(value.op.kind in ("elementwise", "reduction", "library") for value in nest.inside.body) > MOST_VALUES:
        return False
    if all(_is_element(value) for value in nest.inside.body):
        return waits(nest)
    return all(_is_swept(value) for value in nest.inside.body) and _reads_alike(nest)


def _lengths(nest: Nest) -> tuple[int, int]:
    """How many columns the first and the last row have."""
    found = []
    for row in (nest.outer.attrs["lo"], nest.outer.attrs["hi"]):
        lo, hi = [substitute(nest.inner.attrs[name], {nest.rows: row}) for name in ("lo", "hi")]
        assert isinstance(lo, int) and isinstance(hi, int)
        found.append(hi - lo + 1)
    return found[0], found[1]


def _is_element(value: Value) -> bool:
    if value.op in ops.UPDATES:
        return element_count(value.operands[1].shape) == 1
    return value.op.kind in ELEMENTWISE and value.type.is_fixed and bool(value.type.size == 1)


def _is_swept(value: Value) -> bool:
    """Whether a value is made along one axis."""
    if value.op in ops.PRODUCTS:                       # of vectors
        return all(_is_vector(one) for one in (value, *value.operands))
    return value.op in ops.UPDATES or (value.op.kind in (*ELEMENTWISE, "reduction") and _is_vector(value))


def _is_vector(value: Value) -> bool:
    return bool(sum([extent != 1 for extent in value.shape]) <= 1)


def _reads_alike(nest: Nest) -> bool:
    """Whether an iteration reads the elements that those of other rows read."""
    sections = [section_of(value) for value in nest.inside.body if value.op is ops.slice and element_count(value.shape) >= LEAST_SHARED]
    return any(not any(slope(end, nest.rows) for end in (*section.starts, *section.sizes)) for section in sections)


# ----- the loops
class _Jammed:
    """The loops that a nest becomes.  States are the arrays that the outer loop changes, in order; fixed: its other operands."""

    def __init__(self, schedule: RowSchedule) -> None:
        self.schedule = schedule
        self.nest = schedule.nest
        self.body: Graph = self.nest.outer.attrs["body"]

    def results(self) -> list[Value]:
        """The results of the outer loop: of the blocks of rows, and of the rows that are left."""
        outer = self.nest.outer
        carried, step = outer.attrs["carried"], outer.attrs["step"]
        states, fixed = list(outer.operands[:carried]), outer.operands[carried:]
        blocks, rest = _split(self.nest)
        states = self._loop(blocks, step * ROWS, states, fixed, self._block)
        return states if rest is None else self._loop(rest, step, states, fixed, self._single)

    def _loop(self, index: Index, step: int, states: Sequence[Value], fixed: Sequence[Value],
              build: Callable[[Extent, list[Value], Sequence[Value]], Sequence[Value]]) -> list[Value]:
        """The states after a loop, in the current record.  build: emits an iteration, and gives the states after it."""
        inputs = [input_value(value.type, value.name, value.source) for value in (*states, *fixed)]
        entries = inputs[:len(states)]
        record = Rewriter(RULES)
        record.source, record.forward = self.nest.outer.source, self.nest.outer.forward
        with record:
            outputs = build(index.extent(), list(entries), inputs[len(states):])
        changed = [k for k, value in enumerate(entries) if outputs[k] is not value]
        body = _regrouped(live_values(record.values, [outputs[k] for k in changed]))
        read = {operand for value in body for operand in value.operands}
        numbers = [*changed, *[k for k, value in enumerate(inputs) if k not in changed and value in read]]
        graph = Graph(self.body.name, [inputs[k] for k in numbers], body, [outputs[k] for k in changed], index)
        given = (*states, *fixed)
        loop = ops.loop(*[given[k] for k in numbers], lo=index.lo, hi=index.hi, step=step, carried=len(changed), body=graph)
        found = list(states)
        for place, k in enumerate(changed):
            found[k] = ops.item(loop, index=place)
        return found

    def _block(self, base: Extent, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
        """Rows that run together, the first of them at `base`."""
        schedule = self.schedule

        def begin(number: Extent, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
            row = schedule.row(base, number)
            return self._columns(schedule.first(base, number), [(row, 0)], self._before(row, states, fixed), fixed)

        def end(number: Extent, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
            row = schedule.row(base, number)
            return self._after(row, self._columns(schedule.last(base, number), [(row, 0)], states, fixed), fixed)

        for number in _numbers(schedule.without_first()):    # all rows, in order: an index of a loop, or a row without such columns
            states = self._loop(number, 1, states, fixed, begin) if isinstance(number, Index) else self._before(
                schedule.row(base, number), states, fixed)
        rows = [(schedule.row(base, number), schedule.behind(number)) for number in range(ROWS)]
        states = self._columns(schedule.shared(base), rows, states, fixed)
        for number in _numbers(schedule.without_last()):
            states = self._loop(number, 1, states, fixed, end) if isinstance(number, Index) else self._after(
                schedule.row(base, number), states, fixed)
        return states

    def _single(self, row: Extent, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
        """A row on its own."""
        states = self._before(row, states, fixed)
        return self._after(row, self._columns(self.schedule.all_of(row, 0), [(row, 0)], states, fixed), fixed)

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

    def _columns(self, columns: Columns, rows: Sequence[tuple[Extent, Extent]], states: list[Value],
                 fixed: Sequence[Value]) -> list[Value]:
        """The states after a loop over columns; rows: those that run together, each with the number of columns that it is behind."""
        nest, inside = self.nest, self.nest.inside
        read = [self._operands_of(row, fixed) for row, _ in rows]
        different = list(dict.fromkeys([value for one in read for value in one]))

        def together(column: Extent, states: list[Value], fixed: Sequence[Value]) -> list[Value]:
            record = current_record()
            assert record is not None
            inputs, entries = dict(zip(different, fixed, strict=True)), states
            for values, (row, behind) in zip(read, rows, strict=True):
                mapping = dict(zip(inside.inputs, (*states, *[inputs[value] for value in values]), strict=True))
                emit_values(inside.body, mapping, record, {nest.rows: row, nest.columns: add_extents(column, -behind)})
                states = [mapping[output] for output in inside.outputs]
            readers = readers_of(live_values(record.values, states), states)
            return [written_once(entry, last, readers) for entry, last in zip(entries, states, strict=True)]

        given = [states[number] for number in nest.carried]
        index = Index(columns.lo, columns.hi, nest.columns.name)
        found = self._loop(index, nest.inner.attrs["step"], given, different, together)
        result = list(states)
        for number, value in zip(nest.carried, found, strict=True):
            result[number] = value
        return result

    def _operands_of(self, row: Extent, fixed: Sequence[Value]) -> list[Value]:
        """What the columns of a row read that they do not change, computed again."""
        mapping = dict(zip(self.body.inputs[self.nest.outer.attrs["carried"]:], fixed, strict=True))
        self._emit((), mapping, row)
        return [mapping[operand] for operand in self.nest.inner.operands[len(self.nest.carried):]]


def _regrouped(body: Sequence[Value]) -> list[Value]:
    """The values of an iteration in another order: elements (0), what is made along an axis (1), updates of parts (2) and of elements (3);
    of these each as early as its operands allow.  So what runs along an axis is one loop, and arrays are read before they are written."""
    if any(value.op.regions for value in body) or all(_is_element(value) for value in body):
        return list(body)
    ranks: dict[Value, int] = {}
    for value in body:
        is_update = value.op in ops.UPDATES
        is_element = element_count((value.operands[1] if is_update else value).shape) == 1
        own = (3 if is_element else 2) if is_update else (0 if is_element else 1)
        ranks[value] = max([own, *[ranks.get(operand, 0) for operand in value.operands]])
    return sorted(body, key=ranks.__getitem__)         # which keeps the order of equal ones


def _numbers(without: int | None) -> Iterator[int | Index]:
    """The rows of a block, in order: those that have columns in a loop, the one without beside it; one by one if none has any."""
    if without is None:
        yield from range(ROWS)
    elif without:
        yield Index(0, ROWS - 2, "row")
        yield ROWS - 1
    else:
        yield 0
        yield Index(1, ROWS - 1, "row")
