"""Loop IR -> text.  Start reading at `kernel_to_text`.

Buffer positions are linear offsets; they are shown as an index of the buffer's shape where the offset falls apart into one
(`%x[i0, i1 + 1]`), and as the offset itself elsewhere (`%x[+ 4*i0 + i1 + 2]`).  Names are hints, made unique by `_1` among
those in scope; memory is written `%name`, as the arrays of graphs are.

What is printed can be read again (`loop_parser.py`): so literals say their dtype where nothing beside them does, and
scalars that could be taken for affine positions stand in parentheses or in `index(...)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

from bwcompiler.ir.extent import Extent, Index, add_extents, lower, scale_extent, upper
from bwcompiler.ir.loop import (
    Accumulate,
    Accumulator,
    Buffer,
    Fill,
    Kernel,
    Let,
    Loop,
    Offset,
    Reduce,
    Statement,
    Store,
    element_strides,
)
from bwcompiler.ir.scalar import PREDICATES, Scalar, Word
from bwcompiler.ir.texts.graph_printer import BARE_NAME, NO_NAMES, Names, TakenNames, first_free, plain_name, quoted
from bwcompiler.ir.types import BOOL, F64, I64, DType

# Infix operators with their binding strength (Python's).
INFIX = {
    "equal": ("==", 1), "not_equal": ("!=", 1), "less": ("<", 1), "less_equal": ("<=", 1), "greater": (">", 1),
    "greater_equal": (">=", 1), "bitwise_or": ("|", 2), "bitwise_xor": ("^", 3), "bitwise_and": ("&", 4), "add": ("+", 5),
    "subtract": ("-", 5), "multiply": ("*", 6), "divide": ("/", 6),
}
PREFIX = {"negative": "-", "invert": "~"}
RESERVED = frozenset("kernel for in let reduce store fill at if else vector true false inf nan".split())     # no names
Rounding = Callable[[int, int], int]
_CHOICE, _UNARY, _ATOM = 0, 7, 8


def kernel_to_text(kernel: Kernel, names: Names = NO_NAMES) -> str:
    """The kernel as text, ending in a newline; equal for equal kernels.

    names: what a text of the graph calls its values (`names_in_text`), for everything in the kernel that comes from one.
    """
    return _Printer(kernel, names).text()


def linear_index(buffer: Buffer, offset: Offset, guarded: Set[Extent] = frozenset()) -> list[tuple[Extent, list[Scalar]]] | None:
    """Per axis of the buffer the affine and the data-dependent part of the index at `offset`; None if it has none.

    guarded: positions that guards keep in range.
    """
    parts = _affine_index(buffer.shape, offset.affine, guarded) if buffer.size else None
    if parts is None:
        return None
    found: list[tuple[Extent, list[Scalar]]] = [(part, []) for part in parts]
    strides = element_strides(buffer.shape)
    for term, stride in offset.terms:
        axes = [axis for axis, extent in enumerate(buffer.shape) if strides[axis] == stride and extent != 1]
        if not axes:
            return None
        found[axes[0]][1].append(term)
    return found


def _affine_index(shape: tuple[int, ...], affine: Extent, guarded: Set[Extent]) -> list[Extent] | None:
    """An index of `shape` at linear position `affine`; of several the one that is least out of range (under guards it may be)."""
    best: list[Extent] | None = None
    least = 0
    for round_terms in (_down, _nearest):
        for round_constant in (_down, _nearest, _up):
            found = _split(shape, affine, round_terms, round_constant)
            if found is None:
                continue
            excess = sum(max(0, -lower(entry)) + max(0, upper(entry) - extent + 1)
                         for entry, extent in zip(found, shape, strict=True) if entry not in guarded)
            if best is None or excess < least:
                best, least = found, excess
    if best is None or not least or sum(extent > 1 for extent in shape) < 2:
        return best
    # An entry that runs over more than twice its axis is no index of it, guard or not.
    wide = any(upper(entry) - lower(entry) >= 2 * extent for entry, extent in zip(best, shape, strict=True))
    return None if wide else best


def _down(number: int, stride: int) -> int:
    return number // stride


def _nearest(number: int, stride: int) -> int:
    return (2 * number + stride) // (2 * stride)


def _up(number: int, stride: int) -> int:
    return -(-number // stride)


def _split(shape: tuple[int, ...], affine: Extent, round_terms: Rounding, round_constant: Rounding) -> list[Extent] | None:
    """Every coefficient divided by the strides, outermost axis first, and rounded."""
    terms = () if isinstance(affine, int) else affine.terms
    constant = affine if isinstance(affine, int) else affine.constant
    moving = {coefficient for index, coefficient in terms if index.lo != index.hi}
    found: list[Extent] = [0] * len(shape)
    strides = element_strides(shape)
    parts: list[tuple[Extent, int, Rounding, int]] = [(1, constant, round_constant, 0)]
    for index, coefficient in terms:
        # A loop of one iteration beside one that moves along the same axis is the single panel of the last axis.
        first = len(shape) - 1 if index.lo == index.hi and coefficient in moving else 0
        parts.append((index.extent(), coefficient, round_terms, first))
    for unit, rest, rounded, first in parts:
        for axis in range(first, len(shape)):
            stride = strides[axis]
            if shape[axis] <= 1:
                continue
            factor = rounded(rest, stride)
            rest -= factor * stride
            found[axis] = add_extents(found[axis], scale_extent(unit, factor))
        if rest:
            return None
    return found


class _Printer:
    def __init__(self, kernel: Kernel, given: Names) -> None:
        self.kernel = kernel
        self.given = given
        self.names: dict[object, str] = {}
        self.taken = set(RESERVED)
        self.arrays = TakenNames()
        self.lines: list[str] = []
        self.loops: list[Index] = []               # around the statement being printed
        self.guarded: set[Extent] = set()          # by the statement being printed

    def text(self) -> str:
        parameters = [f"{self.memory(b)}: {b.role} {b.dtype}[{','.join(map(str, b.shape))}]" for b in self.kernel.buffers]
        parameters += [self.word(word) for word in self.kernel.words]
        self.lines.append(f"kernel {self.kernel.name}({', '.join(parameters)})")
        self.body(self.kernel.body, 1)
        return "\n".join(self.lines) + "\n"

    def word(self, word: Index | Word) -> str:
        """`n in 0..7`, both inclusive, or `a: f64`."""
        name = self.name(word)
        return f"{name}: {word.dtype}" if isinstance(word, Word) else f"{name} in {self.extent(word.lo)}..{self.extent(word.hi)}"

    def memory(self, buffer: Buffer) -> str:
        """`%name`, unique."""
        found = self.names.get(buffer)
        if found is None:
            name = self.arrays.new(self.hint(buffer))
            found = self.names[buffer] = f"%{quoted(name)}"
        return found

    def name(self, key: Index | Word | Let | Accumulator) -> str:
        """The unique name, one word, of an index, word, let or accumulator."""
        found = self.names.get(key)
        if found is None:
            found = self.names[key] = first_free(_as_word(key.name if isinstance(key, Index | Word) else self.hint(key)), self.taken)
            self.taken.add(found)
        return found

    def hint(self, key: Buffer | Let | Accumulator) -> str:
        given = None if key.origin is None else self.given.get(key.origin)
        name = plain_name(given) if given is not None and given.startswith("%") else key.name       # not a literal
        return name if isinstance(key, Buffer) or not key.part else f"{name}.{key.part}"

    def release(self, key: object) -> None:
        """Its scope ends here: the name is free again."""
        self.taken.discard(self.names.pop(key, ""))

    # ----- statements
    def body(self, body: list[Statement], depth: int) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                kind = "" if statement.kind == "serial" else f" {statement.kind}"
                extent, name = self.extent(statement.extent), self.name(statement.index)
                self.lines.append(f"{'  ' * depth}for {name} in 0..{extent}{kind}")
                self.loops.append(statement.index)
                self.body(statement.body, depth + 1)
                self.loops.pop()
                self.release(statement.index)
            else:
                self.lines.append("  " * depth + self.statement(statement))
        for statement in body:
            if isinstance(statement, Let):
                self.release(statement)
            elif isinstance(statement, Reduce):
                self.release(statement.accumulator)

    def statement(self, statement: Let | Store | Reduce | Accumulate | Fill) -> str:
        self.guarded = set() if isinstance(statement, Reduce) else set(_guarded_positions(statement.value))
        if isinstance(statement, Let):
            value = self.scalar(statement.value, _CHOICE, None)       # first: what it reads is named before it
            return f"let {self.name(statement)} = {value}"
        if isinstance(statement, Store):
            shown = self.place(statement.buffer, statement.offset)
            return f"store {shown}, {self.scalar(statement.value, _CHOICE, statement.buffer.dtype)}"
        if isinstance(statement, Reduce):
            accumulator = statement.accumulator
            start = " from -0.0" if accumulator.combine == "add" and str(accumulator.start.real) == "-0.0" else ""
            return f"reduce {self.name(accumulator)}: {accumulator.dtype} = {accumulator.combine}{start}"
        if isinstance(statement, Fill):
            buffer = statement.buffer
            return f"fill {self.memory(buffer)}, {self.scalar(statement.value, _CHOICE, buffer.dtype)}"
        target = statement.target
        shown = self.name(target) if isinstance(target, Accumulator) else self.place(*target)
        dtype = target.dtype if isinstance(target, Accumulator) else target[0].dtype
        position = "" if statement.position is None else f" at {self.scalar(statement.position, _CHOICE, I64)}"
        return f"{shown} {statement.combine}= {self.scalar(statement.value, _CHOICE, dtype)}{position}"

    # ----- positions
    def place(self, buffer: Buffer, offset: Offset) -> str:
        name = self.memory(buffer)
        index = linear_index(buffer, offset, self.guarded)
        if index is not None and [term for _, terms in reversed(index) for term in terms] == [term for term, _ in offset.terms]:
            return f"{name}[{', '.join(self.entry(affine, [(term, 1) for term in terms]) for affine, terms in index)}]"
        return f"{name}[+ {self.entry(offset.affine, offset.terms)}]"

    def entry(self, affine: Extent, terms: Sequence[tuple[Scalar, int]]) -> str:
        parts = [self.term(scalar, factor) for scalar, factor in terms]
        if affine != 0 or not parts:
            parts.append(self.extent(affine))
        return _sum(parts)

    def term(self, scalar: Scalar, factor: int) -> str:
        """A data-dependent part of a position: never to be taken for an affine one."""
        text = self.scalar(scalar, _ATOM, I64)
        if scalar.op == "const" or (scalar.op == "index" and _is_plain(scalar.data)):
            text = f"({text})"
        return text if factor == 1 else f"-{text}" if factor == -1 else f"{factor}*{text}"

    def extent(self, extent: Extent) -> str:
        if isinstance(extent, int):
            return str(extent)
        depth = {index: number for number, index in enumerate(self.loops)}
        terms = sorted(extent.terms, key=lambda term: depth.get(term[0], len(depth)))
        parts = [self.index_term(index, coefficient) for index, coefficient in terms]
        if extent.constant:
            parts.append(str(extent.constant))
        return _sum(sorted(parts, key=lambda part: part.startswith("-")))       # 3 - i0, not -i0 + 3

    def index_term(self, index: Index, coefficient: int) -> str:
        name = self.name(index)
        return name if coefficient == 1 else f"-{name}" if coefficient == -1 else f"{coefficient}*{name}"

    # ----- scalars
    def scalar(self, scalar: Scalar, strength: int, expected: DType | None) -> str:
        """The expression, in parentheses where it binds less than `strength`; expected: the dtype of a literal in this place."""
        text, own = self.expression(scalar, expected)
        return f"({text})" if own < strength else text

    def expression(self, scalar: Scalar, expected: DType | None) -> tuple[str, int]:
        op, args = scalar.op, scalar.args
        if op == "const":
            return _literal(scalar, expected), _ATOM
        if op == "cast":
            return f"{scalar.dtype}({self.scalar(args[0], _CHOICE, None)})", _ATOM
        if op == "select":
            return self.select(scalar, expected)
        if op == "load" or not args:
            return self.leaf(scalar), _ATOM
        beside = _dtypes_beside(args, None if op in PREDICATES else expected)
        infix = INFIX.get(op)
        if infix is not None:
            symbol, strength = infix
            # The left operand of a comparison is not one itself; a - (b - c) keeps its parentheses.
            left = self.scalar(args[0], strength + (strength == 1), beside[0])
            return f"{left} {symbol} {self.scalar(args[1], strength + 1, beside[1])}", strength
        if op in PREFIX:
            operand = self.scalar(args[0], _ATOM, beside[0])
            return f"{PREFIX[op]}({operand})" if args[0].op == "const" else f"{PREFIX[op]}{operand}", _UNARY
        return f"{op}({', '.join(self.scalar(arg, _CHOICE, dtype) for arg, dtype in zip(args, beside, strict=True))})", _ATOM

    def select(self, scalar: Scalar, expected: DType | None) -> tuple[str, int]:
        condition, x, y = scalar.args
        first, second = _dtypes_beside((x, y), expected)
        if scalar.data == "lazy":
            guard = self.scalar(condition, 1, BOOL)
            return f"{self.scalar(x, 1, first)} if {guard} else {self.scalar(y, _CHOICE, second)}", _CHOICE
        shown = self.scalar(condition, _CHOICE, BOOL), self.scalar(x, _CHOICE, first), self.scalar(y, _CHOICE, second)
        return f"select({', '.join(shown)})", _ATOM

    def leaf(self, scalar: Scalar) -> str:
        op, data = scalar.op, scalar.data
        if op == "load":
            return self.place(*data)
        if op in ("local", "word"):
            return self.name(data)
        if op == "total":
            return self.name(data)
        if op == "found":
            return f"position({self.name(data)})"
        if op == "in_range":
            return f"in_range({', '.join(self.extent(extent) for extent in data)})"
        if op == "index":
            return self.extent(data) if _is_plain(data) else f"index({self.extent(data)})"
        return f"{op}()"


def _guarded_positions(scalar: Scalar) -> Iterator[Extent]:
    if scalar.op == "in_range":
        yield scalar.data[0]
    for arg in scalar.args:
        yield from _guarded_positions(arg)


def _as_word(name: str) -> str:
    if BARE_NAME.fullmatch(name):
        return name
    word = re.sub(r"\W", "_", name)
    return word if BARE_NAME.fullmatch(word) else f"_{word}"


def _is_plain(extent: Extent) -> bool:
    """Whether it is a loop index itself."""
    return not isinstance(extent, int) and extent == extent.terms[0][0].extent()


def _sum(parts: Sequence[str]) -> str:
    text = parts[0]
    for part in parts[1:]:
        text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return text


def _dtypes_beside(args: Sequence[Scalar], expected: DType | None) -> list[DType | None]:
    """The dtype of a literal at each operand position: that of the first operand that is not a literal; for that one, `expected`."""
    first = next((k for k, arg in enumerate(args) if arg.op != "const"), None)
    return [expected if first is None or k == first else args[first].dtype for k in range(len(args))]


def default_dtype(value: bool | int | float) -> DType:
    """The dtype of a literal without typed neighbours."""
    return BOOL if isinstance(value, bool) else I64 if isinstance(value, int) else F64


def _literal(scalar: Scalar, expected: DType | None) -> str:
    value: Any = scalar.data.item() if hasattr(scalar.data, "item") else scalar.data
    kind = scalar.dtype.kind
    value = bool(value) if kind == "b" else float(value) if kind == "f" else int(value) if kind in "iu" else value
    text = str(value).lower() if kind == "b" else repr(value)
    return text if scalar.dtype is (expected or default_dtype(value)) else f"{text}:{scalar.dtype}"
