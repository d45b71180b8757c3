"""Order statistics without sorting all elements: see `ops/ordering/order_statistics.py`.

An element is searched for between two elements of a sorted random sample, which are a few standard deviations in front of and behind its
expected place (R. W. Floyd and R. L. Rivest, "Expected time bounds for selection", 1975).  One sweep counts the elements on both sides, and
keeps those in between, among which the search goes on; the last few hundred are sorted by NumPy.  The next place is looked up among these
first: neighbours are found together.  Elements equal to one of the two of the sample need no further search, however many there are.  If an
element is not where it is expected, another sample is drawn; after a few failures all elements are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from bwcompiler import ops
from bwcompiler.ir.access import ArrayView, contiguous_strides
from bwcompiler.ir.contracts.program_interface import GIVE, MEMORY_ERROR, TAKE
from bwcompiler.ir.op import Value
from bwcompiler.ir.routine import sort_symbol
from bwcompiler.ir.types import DType
from bwcompiler.lowering.function_text import FunctionText, Index
from bwcompiler.lowering.libraries.call_texts import CallText, Libraries, call_text, failure_lines
from bwcompiler.lowering.libraries.shared_calls import grain_of
from bwcompiler.lowering.llvm_scalars import literal, memory_type, vector_type

_FEW = 512                     # elements that are sorted
_SAMPLE = (128, 1024)         # fewest and most elements of a sample: a sixteenth of all
_DEVIATIONS = 3.5              # distance of the two elements from the expected place
_ROUNDS = 16                   # sweeps, after which the rest is sorted
_COLUMNS = 8                   # elements that are compared as one vector
_BLOCK = 512                   # elements that are counted, then moved
_STACK_BYTES = 1 << 15         # temporary memory on the stack
_MOST_UNROLLED = 4             # elements of a partition whose comparisons are written out


def selection_text(name: str, value: Value, views: Sequence[ArrayView], libraries: Libraries) -> CallText | None:
    """Every lane along the last axis; None if this process has no address of a sort function."""
    x = value.operands[0]
    symbol = sort_symbol(False, x.dtype, 0)
    if symbol not in libraries.symbols:
        return None
    operands = [f"p{number}" for number in range(len(value.operands))]
    function = FunctionText(name, [*operands, "out"], memory_type(x.dtype), fallible=True)
    lanes, count, places = math.prod(x.shape[:-1]), x.shape[-1], value.operands[-1].shape[-1]
    grain = grain_of(lanes, 100 + count * (1.0 + 0.5 * places))
    if grain is not None:
        function.over_range()
    arrays = [(f"%{pointer}", 0, [stride * one.dtype.itemsize for stride in contiguous_strides(one.shape)[:-1]])
              for pointer, one in zip((*operands, "out"), (*value.operands, value), strict=True)]
    order = _Order(function, x.dtype)
    if value.op is ops.order_statistics:
        search = _Search(order, count, symbol)
        for lane in function.batch(x.shape[:-1], arrays, "i8"):
            search.write(lane, places)
        search.finish()
    else:
        write = _write_positions if value.op is ops.order_positions else _write_partition
        for lane in function.batch(x.shape[:-1], arrays, "i8"):
            write(order, lane, count, places)
    return call_text(function, failure_lines(MEMORY_ERROR), [*function.declares], lanes, grain)


class _Order:
    """Elements of one dtype, and their order: nan is last."""

    def __init__(self, function: FunctionText, dtype: DType) -> None:
        self.function, self.dtype = function, dtype
        bits = 8 * dtype.itemsize
        if dtype.is_float:
            lowest, highest = -math.inf, math.inf
        else:
            lowest, highest = (0, (1 << bits) - 1) if dtype.kind == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        self.lowest, self.highest, self.nan = [literal(number, dtype) for number in (
            lowest, highest, math.nan if dtype.is_float else 0)]

    def element(self, lane: str, index: Index, columns: int = 1) -> str:
        function = self.function
        return function.let(f"load {function.row(columns)}, ptr {function.at(lane, (index, 1))}, align {self.dtype.itemsize}")

    def less(self, x: str, y: str, columns: int = 1) -> str:
        """Whether x is before y."""
        row = self.function.row(columns)
        if not self.dtype.is_float:
            return self.function.let(f"icmp {'ult' if self.dtype.kind == 'u' else 'slt'} {row} {x}, {y}")
        below = self.function.let(f"fcmp ult {row} {x}, {y}")
        number = self.function.let(f"fcmp ord {row} {x}, zeroinitializer" if columns > 1 else f"fcmp ord {row} {x}, {x}")
        return self.function.let(f"and {vector_type('i1', columns)} {below}, {number}")

    def is_nan(self, x: str) -> str:
        return self.function.let(f"fcmp uno {self.function.real} {x}, {x}") if self.dtype.is_float else "false"

    def is_equal(self, x: str, y: str) -> str:
        """Whether neither is before the other."""
        function = self.function
        return function.let(f"xor i1 {function.let(f'or i1 {self.less(x, y)}, {self.less(y, x)}')}, true")

    def counted(self, lane: str, start: Index, count: Index, conditions: Sequence[Callable[[str, int], str]]) -> list[str]:
        """Per condition the number of the `count` elements from `start` that fulfil it; condition(elements, columns) -> flags."""
        function = self.function
        totals: list[dict[int, str]] = [{} for _ in conditions]
        for columns in (_COLUMNS, 1):
            for total in totals:
                total[columns] = function.variable(_integers(columns), "zeroinitializer" if columns > 1 else 0)
        vectors = count // _COLUMNS if isinstance(count, int) else function.let(f"sdiv i64 {count}, {_COLUMNS}")
        whole = function.times(vectors, _COLUMNS)
        for block in function.each(0, vectors):
            self._count(lane, function.plus(start, function.times(block, _COLUMNS)), _COLUMNS, conditions, totals)
        for index in function.each(whole, count):
            self._count(lane, function.plus(start, index), 1, conditions, totals)
        row, found = _integers(_COLUMNS), []
        function.declares[f"declare i64 @llvm.vector.reduce.add.v{_COLUMNS}i64({row})"] = None
        for total in totals:
            vector = function.get(total[_COLUMNS], row)
            sums = function.let(f"call i64 @llvm.vector.reduce.add.v{_COLUMNS}i64({row} {vector})")
            found.append(function.let(f"add i64 {sums}, {function.get(total[1])}"))
        return found

    def _count(self, lane: str, index: Index, columns: int, conditions: Sequence[Callable[[str, int], str]],
               totals: Sequence[dict[int, str]]) -> None:
        function, type_ = self.function, _integers(columns)
        element = self.element(lane, index, columns)
        for condition, total in zip(conditions, totals, strict=True):
            flags = condition(element, columns)
            ones = function.let(f"zext {vector_type('i1', columns)} {flags} to {type_}")
            before = function.get(total[columns], type_)
            function.put(total[columns], function.let(f"add {type_} {before}, {ones}"), type_)

    def is_less_than(self, bound: str) -> Callable[[str, int], str]:
        return lambda x, columns: self.less(x, self.function.row_of(bound, columns), columns)

    def is_greater_than(self, bound: str) -> Callable[[str, int], str]:
        return lambda x, columns: self.less(self.function.row_of(bound, columns), x, columns)


def _integers(columns: int) -> str:
    return vector_type("i64", columns)


class _Search:
    """The elements at some places of a lane in sorted order.

    buffer          a copy of the elements among which a place is searched, and the sample behind it.
    first, last     the elements at the places first ... last - 1 are in the buffer, `step` apart: 1, or 0 if all of them are equal.
    state, failed   of the random numbers; whether NumPy's sort had no memory.
    """

    def __init__(self, order: _Order, count: int, sort: str) -> None:
        self.order, self.function, self.count, self.sort = order, order.function, count, sort
        function, size = order.function, order.dtype.itemsize
        self.buffer, self.taken = _memory(function, (count + min(_SAMPLE[1], count)) * size)
        self.sample = function.at(self.buffer, (count, 1))
        self.first, self.last, self.step, self.state, self.failed = [function.variable("i64", 0) for _ in range(5)]

    def finish(self) -> None:
        function = self.function
        if self.taken:
            function.call("void", GIVE, f"ptr {self.buffer}")
        function.fail_if(function.compare("ne", function.get(self.failed), 0))

    def write(self, lane: Sequence[str], places: int) -> None:
        """lane: of the elements, the places and the results."""
        function, (x, wanted, out) = self.function, lane
        for variable in (self.first, self.last, self.state):
            function.put(variable, 0)
        for number in function.each(0, places):
            given = function.let(f"load i64, ptr {function.at(wanted, (number, 1), type_='i64')}")
            place = function.most(function.least(given, self.count - 1), 0)
            for _ in function.when(function.let(f"xor i1 {self._is_within(place)}, true")):
                self._find(x, place)
            at = function.product(function.minus(place, function.get(self.first)), function.get(self.step))
            function.store(self.order.element(self.buffer, at), function.at(out, (number, 1)))

    def _is_within(self, place: str) -> str:
        function = self.function
        return _is_between(function, place, function.get(self.first), function.get(self.last))

    def _find(self, x: str, place: str) -> None:
        """Put the elements around a place into the buffer."""
        function = self.function
        source, count = function.variable("ptr", x), function.variable("i64", self.count)
        base, rounds = function.variable("i64", 0), function.variable("i64", 0)     # elements before those of the source; sweeps

        def more() -> str:
            many, again = function.compare("sgt", function.get(count), _FEW), function.compare("slt", function.get(rounds), _ROUNDS)
            return _both(function, many, again)

        for _ in function.repeat(more):
            function.put(rounds, function.plus(function.get(rounds), 1))
            self._narrow(x, place, source, count, base)
        rest = function.get(count)
        for _ in function.when(function.compare("sgt", rest, 0)):
            size, start = function.times(rest, self.order.dtype.itemsize), function.get(source, "ptr")
            function.call("void", "llvm.memmove.p0.p0.i64", f"ptr {self.buffer}", f"ptr {start}", f"i64 {size}", "i1 false")
            self._sort(self.buffer, rest)
            self._known(function.get(base), function.plus(function.get(base), rest), 1)

    def _sort(self, start: str, count: Index) -> None:
        function = self.function
        status = function.call("i32", self.sort, f"ptr {start}", f"i64 {count}", "ptr null")
        wide = function.let(f"sext i32 {status} to i64")
        function.put(self.failed, function.let(f"or i64 {function.get(self.failed)}, {wide}"))

    def _known(self, first: Index, last: Index, step: int) -> None:
        for variable, number in ((self.first, first), (self.last, last), (self.step, step)):
            self.function.put(variable, number)

    # ----- one sweep
    def _narrow(self, x: str, place: str, source: str, count: str, base: str) -> None:
        """Go on among the elements between two of a sample, or start again where the place is not there."""
        function, order = self.function, self.order
        all_, start, elements = function.get(count), function.get(base), function.get(source, "ptr")
        wanted = str(function.minus(place, start))
        low, high = self._bounds(elements, all_, wanted)
        below, up_to_low, up_to_high, kept = self._sweep(elements, all_, low, high)
        before_high = str(function.plus(up_to_low, kept))
        is_last = function.let(f"icmp eq i64 {up_to_high}, {all_}")
        if order.dtype.is_float:                       # behind infinity there is nan
            is_last = function.let(f"fcmp oeq {function.real} {high}, {order.highest}")
        # places of equal elements, and the element: of the lower of the two, of the higher, and of nan
        runs = ((below, up_to_low, low), (before_high, up_to_high, high), (up_to_high, function.pick(is_last, all_, up_to_high), order.nan))
        inside = _is_between(function, wanted, up_to_low, before_high)
        for is_inside in function.branches(inside):
            if is_inside:
                function.put(source, self.buffer, "ptr")
                function.put(count, kept)
                function.put(base, function.plus(start, up_to_low))
                continue
            function.put(source, x, "ptr")
            function.put(count, self.count)
            function.put(base, 0)
            for first, last, element in runs:
                for _ in function.when(_is_between(function, wanted, first, last)):
                    function.store(element, self.buffer)
                    self._known(function.plus(start, first), function.plus(start, last), 0)
                    function.put(count, 0)

    def _bounds(self, elements: str, count: str, wanted: str) -> tuple[str, str]:
        """Two elements, between which the wanted one is expected."""
        function, order = self.function, self.order
        size = function.least(function.most(function.let(f"lshr i64 {count}, 4"), _SAMPLE[0]), _SAMPLE[1])
        for index in function.each(0, size):
            function.store(order.element(elements, self._random(count)), function.at(self.sample, (index, 1)))
        self._sort(self.sample, size)
        rank = function.let(f"sdiv i64 {function.product(wanted, size)}, {count}")
        spread = self._spread(rank, size)
        below, above = function.minus(rank, spread), function.plus(function.plus(rank, spread), 1)
        last = function.minus(size, 1)
        low = order.element(self.sample, function.most(below, 0))
        high = order.element(self.sample, function.least(above, last))
        low = function.pick(function.compare("slt", below, 0), order.lowest, low, function.real)
        high = function.pick(function.compare("sgt", above, last), order.highest, high, function.real)
        return (function.pick(order.is_nan(low), order.highest, low, function.real),
                function.pick(order.is_nan(high), order.highest, high, function.real))

    def _random(self, count: str) -> str:
        """A position below `count`: D. Knuth's linear congruential generator (MMIX)."""
        function = self.function
        product = function.let(f"mul i64 {function.get(self.state)}, 6364136223846793005")
        state = function.let(f"add i64 {product}, 1442695040888963407")
        function.put(self.state, state)
        wide, factor = [function.let(f"zext i64 {number} to i128") for number in (state, count)]
        high = function.let(f"lshr i128 {function.let(f'mul i128 {wide}, {factor}')}, 64")
        return function.let(f"trunc i128 {high} to i64")

    def _spread(self, rank: str, size: str) -> str:
        """Deviations of the number of elements of a sample of `size` that are before one of which `rank` are expected to be."""
        function = self.function
        product = function.let(f"sitofp i64 {function.product(rank, function.minus(size, rank))} to double")
        variance = function.let(f"fdiv double {product}, {function.let(f'sitofp i64 {size} to double')}")
        deviation = function.call("double", "llvm.sqrt.f64", f"double {variance}")
        return str(function.plus(function.let(f"fptosi double {function.let(f'fmul double {deviation}, {_DEVIATIONS}')} to i64"), 3))

    def _sweep(self, elements: str, count: str, low: str, high: str) -> tuple[str, str, str, str]:
        """Move the elements between two to the buffer, which may be where they are; the numbers of elements below the first, of those up to
        it, of those up to the second, and of those between them."""
        function, order = self.function, self.order
        totals, kept = [function.variable("i64", 0) for _ in range(3)], function.variable("i64", 0)
        blocks = function.parts(count, _BLOCK)
        for block in function.each(0, blocks):
            start = function.times(block, _BLOCK)
            here = function.least(function.minus(count, start), _BLOCK)
            found = order.counted(elements, start, here, (
                order.is_less_than(low), order.is_greater_than(low), order.is_greater_than(high)))
            for total, number in zip(totals, found, strict=True):
                function.put(total, function.plus(function.get(total), number))
            for index in function.each(start, function.plus(start, here)):
                element = order.element(elements, index)
                place = function.get(kept)
                function.store(element, function.at(self.buffer, (place, 1)))
                inside = _both(function, order.less(low, element), order.less(element, high))
                function.put(kept, function.plus(place, function.let(f"zext i1 {inside} to i64")))
        below, above_low, above_high = [function.get(total) for total in totals]
        return below, str(function.minus(count, above_low)), str(function.minus(count, above_high)), function.get(kept)


def _memory(function: FunctionText, size: int) -> tuple[str, bool]:
    """Temporary memory, and whether it has to be given back."""
    if size <= _STACK_BYTES:
        return function.slot(f"[{size} x i8], align 64"), False
    found = function.call("ptr", TAKE, f"i64 {size}")
    function.fail_if(function.let(f"icmp eq ptr {found}, null"))
    return found, True


def _both(function: FunctionText, one: str, other: str) -> str:
    return function.let(f"and i1 {one}, {other}")


def _is_between(function: FunctionText, number: str, first: str, last: str) -> str:
    return _both(function, function.compare("sge", number, first), function.compare("slt", number, last))


# ----- positions
def _write_positions(order: _Order, lane: Sequence[str], count: int, places: int) -> None:
    """lane: of the elements, those whose positions are wanted, their places, and the results."""
    function, (x, known, wanted, out) = order.function, lane
    for number in function.each(0, places):
        element = order.element(known, number)
        given = function.let(f"load i64, ptr {function.at(wanted, (number, 1), type_='i64')}")
        place = function.most(function.least(given, count - 1), 0)
        [before] = order.counted(x, 0, count, [order.is_less_than(element)])
        rest, at = function.variable("i64", function.minus(place, before)), function.variable("i64", 0)     # equal ones to pass
        for _ in _blocks_before(order, x, count, element, rest, at):
            function.put(at, function.plus(function.get(at), _BLOCK))
        for index in _elements_before(order, x, count, element, rest, at):
            function.put(at, function.plus(index, 1))
        function.do(f"store i64 {function.get(at)}, ptr {function.at(out, (number, 1), type_='i64')}")


def _blocks_before(order: _Order, x: str, count: int, element: str, rest: str, at: str) -> Iterator[None]:
    """Blocks of elements that do not have the wanted one among those equal to it."""
    function, equal = order.function, order.function.variable("i64", 0)

    def more() -> str:
        start = function.get(at)
        here = function.most(function.least(function.minus(count, start), _BLOCK), 0)
        less, greater = order.counted(x, start, here, [order.is_less_than(element), order.is_greater_than(element)])
        function.put(equal, function.minus(function.minus(here, less), greater))
        is_before = function.compare("sle", function.get(equal), function.get(rest))
        return _both(function, function.compare("slt", start, count - _BLOCK), is_before)

    for _ in function.repeat(more):
        function.put(rest, function.minus(function.get(rest), function.get(equal)))
        yield


def _elements_before(order: _Order, x: str, count: int, element: str, rest: str, at: str) -> Iterator[str]:
    """Elements before the wanted one."""
    function, equal = order.function, order.function.variable("i1", "false")

    def more() -> str:
        start = function.get(at)
        function.put(equal, order.is_equal(order.element(x, start), element), "i1")
        is_it = _both(function, function.get(equal, "i1"), function.compare("sle", function.get(rest), 0))
        return _both(function, function.compare("slt", start, count - 1), function.let(f"xor i1 {is_it}, true"))

    for _ in function.repeat(more):
        function.put(rest, function.minus(function.get(rest), function.let(f"zext i1 {function.get(equal, 'i1')} to i64")))
        yield function.get(at)


# ----- partitions
def _write_partition(order: _Order, lane: Sequence[str], count: int, elements: int) -> None:
    """lane: of the elements, those around which they are partitioned, and the positions."""
    function, (x, around, out) = order.function, lane
    ends = function.slot(f"[{2 * elements + 1} x i64]")                  # per part the place of the next position
    function.do(f"store i64 0, ptr {ends}")
    for number in function.each(0, elements):
        element = order.element(around, number)
        below, above = order.counted(x, 0, count, [order.is_less_than(element), order.is_greater_than(element)])
        reached, passed = _reached(order, element, around, elements)
        for part, start in ((function.plus(reached, passed), below), (function.times(reached, 2), str(function.minus(count, above)))):
            function.do(f"store i64 {start}, ptr {function.at(ends, (part, 1), type_='i64')}")
    for index in function.each(0, count):
        reached, passed = _reached(order, order.element(x, index), around, elements)
        end = function.at(ends, (function.plus(reached, passed), 1), type_="i64")
        place = function.let(f"load i64, ptr {end}")
        function.do(f"store i64 {index}, ptr {function.at(out, (place, 1), type_='i64')}")
        function.do(f"store i64 {function.plus(place, 1)}, ptr {end}")


def _reached(order: _Order, element: str, around: str, elements: int) -> tuple[str, str]:
    """The numbers of elements of `around` that an element is not before, and that it is behind; their sum is the number of its part."""
    function = order.function
    reached, passed = function.variable("i64", 0), function.variable("i64", 0)
    for number in function.each(0, elements, unroll=elements <= _MOST_UNROLLED):
        other = order.element(around, number)
        is_reached = function.let(f"xor i1 {order.less(element, other)}, true")
        for total, flag in ((reached, is_reached), (passed, order.less(other, element))):
            function.put(total, function.plus(function.get(total), function.let(f"zext i1 {flag} to i64")))
    return function.get(reached), function.get(passed)
