"""`FunctionText`: a builder of LLVM functions with registers, nested loops and batches of matrices.

Indices are Python integers or i64 registers; arithmetic on integers is folded, so that the same code writes a loop or its
unrolled form (`each(..., unroll=True)` yields integers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

Index = int | str
_BYTES = {"half": 2, "float": 4, "double": 8, **{f"i{8 * size}": size for size in (1, 2, 4, 8)}}


class FunctionText:
    """One function under construction.  `fallible` functions return a status, and take the error record and their number last."""

    def __init__(self, name: str, parameters: Sequence[str], real: str, fallible: bool = False) -> None:
        self.name, self.ranged = name, False
        self.parameters = [*[f"ptr %{parameter}" for parameter in parameters], *(["ptr %record", "i64 %number"] if fallible else [])]
        self.head = f"define internal {'i32' if fallible else 'void'} @{name}({', '.join(self.parameters)}) #1 {{\nentry:"
        self.real = real
        self.fallible = fallible
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.declares: dict[str, None] = {}
        self.block = "start"
        self.count = 0
        self.failing = False

    def text(self, failure: Sequence[str] = ()) -> str:
        """The whole function; `failure` are the lines that run if a condition of `fail_if` holds."""
        lines = [self.head, *self.slots, "  br label %start", "start:", *self.lines, "  ret i32 0" if self.fallible else "  ret void"]
        if self.failing:
            lines += ["fail:", *failure]
        return "\n".join([*lines, "}", ""])

    def over_range(self) -> None:
        """Make it `name.range`, with parameters for the range of the outermost batch axis (`libraries/shared_calls.py`)."""
        self.ranged = True
        parameters = ", ".join([*self.parameters, "i64 %begin", "i64 %end"])
        self.head = f"define internal {'i32' if self.fallible else 'void'} @{self.name}.range({parameters}) #1 {{\nentry:"

    # ----- instructions
    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def let(self, instruction: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {instruction}")
        return f"%v{self.count}"

    def slot(self, type_: str) -> str:
        """Memory on the stack."""
        self.count += 1
        self.slots.append(f"  %m{self.count} = alloca {type_}")
        return f"%m{self.count}"

    def call(self, result: str, symbol: str, *arguments: str) -> str:
        """Call an external function."""
        self.declares[f"declare {result} @{symbol}({', '.join([argument.split()[0] for argument in arguments])})"] = None
        text = f"call {result} @{symbol}({', '.join(arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.let(text)

    def fresh(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def start(self, block: str) -> None:
        self.lines.append(f"{block}:")
        self.block = block

    def fail_if(self, condition: str) -> None:
        self.failing = True
        go = self.fresh()
        self.do(f"br i1 {condition}, label %fail, label %{go}")
        self.start(go)

    def when(self, condition: str) -> Iterator[None]:
        """`for _ in f.when(c):` emits code that runs if c holds."""
        inside, after = self.fresh(), self.fresh()
        self.do(f"br i1 {condition}, label %{inside}, label %{after}")
        self.start(inside)
        yield
        self.do(f"br label %{after}")
        self.start(after)

    def repeat(self, more: Callable[[], str]) -> Iterator[None]:
        """`for _ in f.repeat(more):` emits the body of a while loop; `more` emits its condition."""
        head, body, after = self.fresh(), self.fresh(), self.fresh()
        self.do(f"br label %{head}")
        self.start(head)
        self.do(f"br i1 {more()}, label %{body}, label %{after}")
        self.start(body)
        yield
        self.do(f"br label %{head}")
        self.start(after)

    def branches(self, condition: str) -> Iterator[bool]:
        """`for yes in f.branches(c):` emits the code for c true, then that for c false."""
        for yes in (True, False):
            if yes:
                inside, otherwise, after = self.fresh(), self.fresh(), self.fresh()
                self.do(f"br i1 {condition}, label %{inside}, label %{otherwise}")
            self.start(inside if yes else otherwise)
            yield yes
            self.do(f"br label %{after}")
        self.start(after)

    def each(self, start: Index, stop: Index, unroll: bool = False, down: bool = False) -> Iterator[Index]:
        """A loop over start ... stop - 1 (`down`: backwards); with `unroll` the body is emitted for each integer."""
        if isinstance(start, int) and isinstance(stop, int) and (unroll or stop - start <= 1):
            yield from reversed(range(start, stop)) if down else range(start, stop)
            return
        head, body, latch, after = (self.fresh() for _ in range(4))
        before = self.block
        self.do(f"br label %{head}")
        self.start(head)
        self.lines.append(f"  %{head}.i = phi i64 [ {start}, %{before} ], [ %{head}.next, %{latch} ]")
        more = self.let(f"icmp slt i64 %{head}.i, {stop}")
        self.do(f"br i1 {more}, label %{body}, label %{after}")
        self.start(body)
        yield self.minus(self.plus(stop, start), self.plus(f"%{head}.i", 1)) if down else f"%{head}.i"
        self.do(f"br label %{latch}")
        self.start(latch)
        self.lines.append(f"  %{head}.next = add nsw i64 %{head}.i, 1")
        self.do(f"br label %{head}")
        self.start(after)

    # ----- integers
    def plus(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        return y if x == 0 else x if y == 0 else self.let(f"add nsw i64 {x}, {y}")

    def minus(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x - y
        return x if y == 0 else self.let(f"sub nsw i64 {x}, {y}")

    def times(self, x: Index, factor: int) -> Index:
        if isinstance(x, int):
            return x * factor
        return x if factor == 1 else 0 if factor == 0 else self.let(f"mul nsw i64 {x}, {factor}")

    def compare(self, relation: str, x: Index, y: Index) -> str:
        return self.let(f"icmp {relation} i64 {x}, {y}")

    def product(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) or isinstance(y, int):
            return self.times(y, x) if isinstance(x, int) else self.times(x, int(y))
        return self.let(f"mul nsw i64 {x}, {y}")

    def quotient(self, x: Index, y: Index) -> str:
        return self.let(f"sdiv i64 {x}, {y}")

    def parts(self, x: Index, y: Index) -> str:
        """x / y rounded up."""
        return self.quotient(self.minus(self.plus(x, y), 1), y)

    def least(self, x: Index, y: Index) -> str:
        return self.pick(self.compare("slt", x, y), x, y)

    def most(self, x: Index, y: Index) -> str:
        return self.pick(self.compare("sgt", x, y), x, y)

    def pick(self, condition: str, x: Index, y: Index, type_: str = "i64") -> str:
        return self.let(f"select i1 {condition}, {type_} {x}, {type_} {y}")

    # ----- variables
    def variable(self, type_: str, start: Index) -> str:
        slot = self.slot(type_)
        self.do(f"store {type_} {start}, ptr {slot}")
        return slot

    def get(self, slot: str, type_: str = "i64") -> str:
        return self.let(f"load {type_}, ptr {slot}")

    def put(self, slot: str, value: Index, type_: str = "i64") -> None:
        self.do(f"store {type_} {value}, ptr {slot}")

    # ----- elements
    def at(self, pointer: str, *terms: tuple[Index, int], type_: str | None = None) -> str:
        """The address of the element sum(index * stride), in elements."""
        place: Index = 0
        for index, stride in terms:
            place = self.plus(place, self.times(index, stride))
        return pointer if place == 0 else self.let(f"getelementptr {type_ or self.real}, ptr {pointer}, i64 {place}")

    def load(self, address: str) -> str:
        return self.let(f"load {self.real}, ptr {address}")

    def store(self, value: str, address: str) -> None:
        self.do(f"store {self.real} {value}, ptr {address}")

    def arithmetic(self, operation: str, x: str, y: str) -> str:
        return self.let(f"{operation} {self.real} {x}, {y}")

    def subtract_product(self, target: str, factor: str, other: str) -> None:
        """The element at target -= factor * the element at other."""
        product = self.arithmetic("fmul", factor, self.load(other))
        self.store(self.arithmetic("fsub", self.load(target), product), target)

    def divide(self, target: str, divisor: str) -> None:
        """The element at target /= divisor."""
        self.store(self.arithmetic("fdiv", self.load(target), divisor), target)

    def row(self, columns: int) -> str:
        """The vector type of `columns` elements."""
        return self.real if columns == 1 else f"<{columns} x {self.real}>"

    def row_of(self, number: str, columns: int, type_: str | None = None) -> str:
        """A vector with the number in every lane."""
        if columns == 1:
            return number
        row = f"<{columns} x {type_ or self.real}>"
        first = self.let(f"insertelement {row} poison, {type_ or self.real} {number}, i64 0")
        return self.let(f"shufflevector {row} {first}, {row} poison, <{columns} x i32> zeroinitializer")

    def scaled_row(self, factor: str, address: str, columns: int) -> str:
        """factor times the `columns` elements at an address, as a vector."""
        type_ = self.row(columns)
        elements = self.let(f"load {type_}, ptr {address}, align {self.element_bytes}")
        return self.let(f"fmul {type_} {elements}, {self.row_of(factor, columns)}")

    @property
    def element_bytes(self) -> int:
        part = self.real.removeprefix("[2 x ").rstrip("]")              # the type of real parts, for complex numbers
        return _BYTES[part] * (1 if part == self.real else 2)

    def copy_elements(self, source: str, target: str, count: int) -> None:
        """Copy `count` contiguous elements."""
        size = count * self.element_bytes
        self.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {target}", f"ptr {source}", f"i64 {size}", "i1 false")

    def clear(self, target: str, count: Index) -> None:
        """Set `count` contiguous elements to zero."""
        size = self.times(count, self.element_bytes)
        self.call("void", "llvm.memset.p0.i64", f"ptr {target}", "i8 0", f"i64 {size}", "i1 false")

    def copy(self, shape: Sequence[int], source: str, source_strides: Sequence[int], target: str, strides: Sequence[int]) -> None:
        """target[...] = source[...]."""
        indices: list[Index] = []

        def level(axis: int) -> None:
            if axis == len(shape):
                value = self.load(self.at(source, *zip(indices, source_strides, strict=True)))
                self.store(value, self.at(target, *zip(indices, strides, strict=True)))
                return
            for index in self.each(0, shape[axis]):
                indices.append(index)
                level(axis + 1)
                indices.pop()

        level(0)

    def batch(self, shape: Sequence[int], arrays: Sequence[tuple[str, int, Sequence[int]]],
              type_: str | None = None) -> Iterator[list[str]]:
        """Loops over `shape` that yield the addresses of the matrices; arrays: (pointer, offset, strides), in elements."""
        axes = merged_axes(shape, [strides for _, _, strides in arrays])
        starts = [self.at(pointer, (offset, 1), type_=type_) for pointer, offset, _ in arrays]
        yield from self._batch(axes, starts, type_, self.ranged)

    def _batch(self, axes: Sequence[tuple[int, Sequence[int]]], pointers: list[str], type_: str | None,
               ranged: bool) -> Iterator[list[str]]:
        if not axes:
            yield pointers
            return
        extent, strides = axes[0]
        for index in self.each("%begin", "%end") if ranged else self.each(0, extent):
            inner = [self.at(pointer, (index, stride), type_=type_) for pointer, stride in zip(pointers, strides, strict=True)]
            yield from self._batch(axes[1:], inner, type_, False)


def merged_axes(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[tuple[int, tuple[int, ...]]]:
    """(extent, stride per array) of the axes, outermost first, with neighbours merged if they are contiguous in every array."""
    found: list[tuple[int, tuple[int, ...]]] = []
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        steps = tuple([one[axis] for one in strides])
        if found and all(outer == extent * inner for outer, inner in zip(found[-1][1], steps, strict=True)):
            found[-1] = (found[-1][0] * extent, steps)
        else:
            found.append((extent, steps))
    return found
