"""Sorting along the last axis by NumPy's sort functions.

A stable argsort is computed by sorting integers.  Each element is mapped to an integer with the same order; its leading bits and its
position are packed into one integer, and these are sorted by NumPy's vectorised integer sort: two to three times as fast as an argsort
that reads elements through positions.  So positions of equal elements are in ascending order.  The few elements that differ only in bits
that did not fit are adjacent afterwards, and are put in order by insertion sort.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

from bwcompiler.ir.access import ArrayView, contiguous_strides
from bwcompiler.ir.contracts.program_interface import MEMORY_ERROR
from bwcompiler.ir.op import Value
from bwcompiler.ir.routine import Sort, sort_symbol
from bwcompiler.ir.types import I64, DType
from bwcompiler.lowering.function_text import FunctionText, Index
from bwcompiler.lowering.libraries.call_texts import CallText, Libraries, call_text, failure_lines
from bwcompiler.lowering.libraries.shared_calls import grain_of
from bwcompiler.lowering.llvm_scalars import memory_type, vector_type

_COLUMNS = 8                   # elements that are converted as one vector
_USABLE_BITS = 63              # bits of a non-negative i64


def sort_text(name: str, value: Value, views: Sequence[ArrayView], libraries: Libraries) -> CallText | None:
    """Every lane along the last axis; None if this process has no address of a sort function."""
    routine, x = value.op.library, value.operands[0]
    assert isinstance(routine, Sort)
    symbol = routine.symbol(x.dtype, value.attrs["kind"])
    if symbol not in libraries.symbols or value.attrs["axis"] != x.rank - 1:
        return None
    function = FunctionText(name, ["p0", "out"], memory_type(x.dtype), fallible=True)
    count, integers = x.shape[-1], sort_symbol(False, I64, 0)
    stable = symbol == sort_symbol(True, x.dtype, 2)
    by_integers = stable and x.dtype.itemsize >= 4 and not x.dtype.is_complex and integers in libraries.symbols
    lanes = math.prod(x.shape[:-1])                  # contiguous, as operands are whole arrays
    grain = grain_of(lanes, 30 + 0.6 * count * max(count, 2).bit_length())
    if grain is not None:
        function.over_range()
    for source, lane in _lanes(function, x, value, contiguous_strides(x.shape)[:-1]):
        if by_integers:
            _Positions(function, x.dtype, count, source, lane).write(integers, symbol)
        elif routine.positions:
            _by_positions(function, symbol, count, source, lane)
        else:
            function.copy_elements(source, lane, count)
            _sort(function, symbol, count, f"ptr {lane}")
    return call_text(function, failure_lines(MEMORY_ERROR), [*function.declares], lanes, grain)


def _lanes(function: FunctionText, x: Value, value: Value, strides: Sequence[int]) -> Iterator[list[str]]:
    """The start of each lane, in the operand and in the result."""
    arrays = [(pointer, 0, [stride * size for stride in strides]) for pointer, size in (
        ("%p0", x.dtype.itemsize), ("%out", value.dtype.itemsize))]
    return function.batch(x.shape[:-1], arrays, "i8")


def _sort(function: FunctionText, symbol: str, count: int, *arguments: str) -> None:
    status = function.call("i32", symbol, *arguments, f"i64 {count}", "ptr null")
    function.fail_if(function.let(f"icmp ne i32 {status}, 0"))


def _by_positions(function: FunctionText, symbol: str, count: int, source: str, lane: str) -> None:
    """Sort by NumPy's argsort function."""
    for index in function.each(0, count):
        function.do(f"store i64 {index}, ptr {function.at(lane, (index, 1), type_='i64')}")
    _sort(function, symbol, count, f"ptr {source}", f"ptr {lane}")


class _Positions:
    """A stable argsort of the elements at `source`, written to `lane`."""

    def __init__(self, function: FunctionText, dtype: DType, count: int, source: str, lane: str) -> None:
        self.function, self.dtype, self.count, self.source, self.lane = function, dtype, count, source, lane
        self.place_bits = max(count - 1, 0).bit_length()

    def write(self, integers: str, by_positions: str) -> None:
        """integers, by_positions: NumPy's sort function of i64, and its stable argsort of the dtype."""
        low, lost = self._ordered_integers()
        self._pack(low, lost)
        _sort(self.function, integers, self.count, f"ptr {self.lane}")
        self._unpack()
        for _ in self.function.when(self.function.let(f"icmp ne i64 {lost}, 0")):
            self._insert(by_positions)

    def _rows(self) -> Iterator[tuple[Index, int]]:
        """(first element, count): whole vectors, then the remainder."""
        vectors = self.count // _COLUMNS
        for block in self.function.each(0, vectors):
            yield self.function.times(block, _COLUMNS), _COLUMNS
        for index in self.function.each(vectors * _COLUMNS, self.count):
            yield index, 1

    def _place(self, index: Index) -> str:
        return self.function.at(self.lane, (index, 1), type_="i64")

    # ----- an element as an integer of the same order
    def _ordered_integers(self) -> tuple[str, str]:
        """Write the integers to the lane; returns the least of them, and the number of low bits of the differences that do not fit."""
        function = self.function
        extremes = {(which, columns): function.slot(_integers(columns)) for which in ("smin", "smax") for columns in (1, _COLUMNS)}
        for (which, columns), slot in extremes.items():
            first = (1 << 63) - 1 if which == "smin" else -(1 << 63)
            function.do(f"store {_integers(columns)} {_constant(first, columns)}, ptr {slot}")
        for index, columns in self._rows():
            integer, type_ = self._ordered_integer(index, columns), _integers(columns)
            function.do(f"store {type_} {integer}, ptr {self._place(index)}, align 8")
            for which in ("smin", "smax"):
                slot = extremes[which, columns]
                before = function.let(f"load {type_}, ptr {slot}")
                function.do(f"store {type_} {self._extreme(which, columns, before, integer)}, ptr {slot}")
        low, high = [self._over_all(which, extremes) for which in ("smin", "smax")]
        distance = function.let(f"sub i64 {high}, {low}")
        leading = function.call("i64", "llvm.ctlz.i64", f"i64 {distance}", "i1 false")
        lost = function.let(f"sub i64 {64 - (_USABLE_BITS - self.place_bits)}, {leading}")
        return low, function.call("i64", "llvm.smax.i64", f"i64 {lost}", "i64 0")

    def _extreme(self, which: str, columns: int, x: str, y: str) -> str:
        type_, suffix = _integers(columns), "i64" if columns == 1 else f"v{columns}i64"
        self.function.declares[f"declare {type_} @llvm.{which}.{suffix}({type_}, {type_})"] = None
        return self.function.let(f"call {type_} @llvm.{which}.{suffix}({type_} {x}, {type_} {y})")

    def _over_all(self, which: str, extremes: dict[tuple[str, int], str]) -> str:
        function, row = self.function, _integers(_COLUMNS)
        vector = function.let(f"load {row}, ptr {extremes[which, _COLUMNS]}")
        function.declares[f"declare i64 @llvm.vector.reduce.{which}.v{_COLUMNS}i64({row})"] = None
        of_vectors = function.let(f"call i64 @llvm.vector.reduce.{which}.v{_COLUMNS}i64({row} {vector})")
        return self._extreme(which, 1, of_vectors, function.let(f"load i64, ptr {extremes[which, 1]}"))

    def _ordered_integer(self, index: Index, columns: int) -> str:
        function, dtype = self.function, self.dtype
        element = function.let(f"load {function.row(columns)}, ptr {function.at(self.source, (index, 1))}, align {dtype.itemsize}")
        if dtype.is_float:
            return self._of_floats(element, columns)
        type_, row = _integers(columns), function.row(columns)
        if dtype.itemsize == 4:
            return function.let(f"{'zext' if dtype.kind == 'u' else 'sext'} {row} {element} to {type_}")
        return function.let(f"xor {type_} {element}, {_constant(-(1 << 63), columns)}") if dtype.kind == "u" else element

    def _of_floats(self, x: str, columns: int) -> str:
        """Bits of positive floats are in order, those of negative ones reversed; -0.0 becomes 0.0, and nan is last."""
        function, row, bits = self.function, self.function.row(columns), self.dtype.itemsize * 8
        type_, flags = _integers(columns, bits), _integers(columns, 1)
        nan = function.let(f"fcmp uno {row} {x}, zeroinitializer")
        pattern = function.let(f"bitcast {row} {function.let(f'fadd {row} {x}, zeroinitializer')} to {type_}")
        last = _constant((1 << (bits - 1)) - 1, columns, bits)
        pattern = function.let(f"select {flags} {nan}, {type_} {last}, {type_} {pattern}")
        sign = function.let(f"ashr {type_} {pattern}, {_constant(bits - 1, columns, bits)}")
        turned = function.let(f"lshr {type_} {sign}, {_constant(1, columns, bits)}")
        found = function.let(f"xor {type_} {pattern}, {turned}")
        return found if bits == 64 else function.let(f"sext {type_} {found} to {_integers(columns)}")

    # ----- integers of an element and its position
    def _pack(self, low: str, lost: str) -> None:
        function = self.function
        for index, columns in self._rows():
            type_, place = _integers(columns), self._place(index)
            least, shift, first = [function.row_of(str(number), columns, "i64") for number in (low, lost, index)]
            distance = function.let(f"sub {type_} {function.let(f'load {type_}, ptr {place}, align 8')}, {least}")
            leading = function.let(f"lshr {type_} {distance}, {shift}")
            leading = function.let(f"shl {type_} {leading}, {_constant(self.place_bits, columns)}")
            steps = f"<{', '.join([f'i64 {k}' for k in range(columns)])}>" if columns > 1 else "0"
            position = function.let(f"add {type_} {first}, {steps}")
            function.do(f"store {type_} {function.let(f'or {type_} {leading}, {position}')}, ptr {place}, align 8")

    def _unpack(self) -> None:
        function = self.function
        for index, columns in self._rows():
            type_, place = _integers(columns), self._place(index)
            packed = function.let(f"load {type_}, ptr {place}, align 8")
            position = function.let(f"and {type_} {packed}, {_constant((1 << self.place_bits) - 1, columns)}")
            function.do(f"store {type_} {position}, ptr {place}, align 8")

    # ----- elements that differ in lost bits
    def _insert(self, by_positions: str) -> None:
        """Insertion sort of elements with equal leading bits; NumPy's argsort if that takes too many moves."""
        function, most = self.function, 2 * self.count + 64
        moves, gap = function.slot("i64"), function.slot("i64")
        function.do(f"store i64 0, ptr {moves}")
        for index in function.each(1, self.count):
            position = function.let(f"load i64, ptr {self._place(index)}")
            element = function.load(function.at(self.source, (position, 1)))
            function.do(f"store i64 {index}, ptr {gap}")
            for _ in function.repeat(functools.partial(self._moves_up, gap, moves, element, most)):
                at = function.let(f"load i64, ptr {gap}")
                before = function.minus(at, 1)
                function.do(f"store i64 {function.let(f'load i64, ptr {self._place(before)}')}, ptr {self._place(at)}")
                function.do(f"store i64 {before}, ptr {gap}")
                done = function.let(f"load i64, ptr {moves}")
                function.do(f"store i64 {function.plus(done, 1)}, ptr {moves}")
            function.do(f"store i64 {position}, ptr {self._place(function.let(f'load i64, ptr {gap}'))}")
        done = function.let(f"load i64, ptr {moves}")
        for _ in function.when(function.let(f"icmp sge i64 {done}, {most}")):
            _by_positions(function, by_positions, self.count, self.source, self.lane)

    def _moves_up(self, gap: str, moves: str, element: str, most: int) -> str:
        """Whether the element belongs before the one ahead of the gap."""
        function = self.function
        at = function.let(f"load i64, ptr {gap}")
        inside = function.let(f"icmp sgt i64 {at}, 0")
        before = function.let(f"select i1 {inside}, i64 {function.minus(at, 1)}, i64 0")
        position = function.let(f"load i64, ptr {self._place(before)}")
        other = function.load(function.at(self.source, (position, 1)))
        if self.dtype.is_float:                      # nan is last
            less = function.let(f"fcmp ult {function.real} {element}, {other}")
            number = function.let(f"fcmp ord {function.real} {element}, 0.0")
            less = function.let(f"and i1 {less}, {number}")
        else:
            less = function.let(f"icmp {'ult' if self.dtype.kind == 'u' else 'slt'} {function.real} {element}, {other}")
        few = function.let(f"icmp slt i64 {function.let(f'load i64, ptr {moves}')}, {most}")
        return function.let(f"and i1 {function.let(f'and i1 {inside}, {less}')}, {few}")


def _integers(columns: int, bits: int = 64) -> str:
    return vector_type(f"i{bits}", columns)


def _constant(number: int, columns: int, bits: int = 64) -> str:
    return str(number) if columns == 1 else f"splat (i{bits} {number})"
