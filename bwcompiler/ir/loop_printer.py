"""Loop IR -> text.  Start reading at `kernel_to_text`.

Buffer positions are linear offsets; they are shown as an index of the buffer's shape where the offset falls apart into one
(`x[i0, i1 + 1]`), and as the offset itself elsewhere (`x[+ 4*i0 + i1 + 2]`).  Names are hints, made unique by `_1` among
those in scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
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
)
from bwcompiler.ir.scalar import Scalar

# Infix operators with their binding strength (Python's).
_INFIX = {
    "equal": ("==", 1), "not_equal": ("!=", 1), "less": ("<", 1), "less_equal": ("<=", 1), "greater": (">", 1),
    "greater_equal": (">=", 1), "bitwise_or": ("|", 2), "bitwise_xor": ("^", 3), "bitwise_and": ("&", 4), "add": ("+", 5),
    "subtract": ("-", 5), "multiply": ("*", 6), "divide": ("/", 6),
}
_PREFIX = {"negative": "-", "invert": "~"}
Rounding = Callable[[int, int], int]
_CHOICE, _SUM, _UNARY, _ATOM = 0, 5, 7, 8


def kernel_to_text(kernel: Kernel) -> str:
    """The kernel as text, ending in a newline; equal for equal kernels."""
    return _Printer(kernel).text()


def linear_index(buffer: Buffer, offset: Offset, guarded: Set[Extent] = frozenset()) -> list[tuple[Extent, list[Scalar]]] | None:
    """Per axis of the buffer the affine and the data-dependent part of the index at `offset`; None where it has none.

    guarded: positions that guards keep in range.
    """
    parts = _affine_index(buffer.shape, offset.affine, guarded) if buffer.size else None
    if parts is None:
        return None
    found: list[tuple[Extent, list[Scalar]]] = [(part, []) for part in parts]
    strides = _strides(buffer.shape)
    for term, stride in offset.terms:
        axes = [axis for axis, extent in enumerate(buffer.shape) if strides[axis] == stride and extent != 1]
        if not axes:
            return None
        found[axes[0]][1].append(term)
    return found


def _strides(shape: tuple[int, ...]) -> list[int]:
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return strides[::-1]


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
    strides = _strides(shape)
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
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names: dict[object, str] = {}
        self.taken: set[str] = set()
        self.lines: list[str] = []
        self.guarded: set[Extent] = set()          # by the statement being printed

    def text(self) -> str:
        parameters = [f"{self.name(b, b.name)}: {b.role} {b.dtype}[{','.join(map(str, b.shape))}]" for b in self.kernel.buffers]
        self.lines.append(f"kernel {self.kernel.name}({', '.join(parameters)})")
        self.body(self.kernel.body, 1)
        return "\n".join(self.lines) + "\n"

    def name(self, key: object, hint: str) -> str:
        """The unique name of a buffer, index, let or accumulator."""
        found = self.names.get(key)
        if found is None:
            found, number = hint, 0
            while found in self.taken:
                number += 1
                found = f"{hint}_{number}"
            self.taken.add(found)
            self.names[key] = found
        return found

    def release(self, key: object) -> None:
        """Its scope ends here: the name is free again."""
        self.taken.discard(self.names.pop(key, ""))

    # ----- statements
    def body(self, body: list[Statement], depth: int) -> None:
        for statement in body:
            if isinstance(statement, Loop):
                kind = "" if statement.kind == "serial" else f" {statement.kind}"
                extent, name = self.extent(statement.extent), self.name(statement.index, statement.index.name)
                self.lines.append(f"{'  ' * depth}for {name} in 0..{extent}{kind}")
                self.body(statement.body, depth + 1)
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
            value = self.scalar(statement.value)       # first: what it reads is named before it
            return f"let {self.name(statement, statement.name)} = {value}"
        if isinstance(statement, Store):
            return f"store {self.place(statement.buffer, statement.offset)}, {self.scalar(statement.value)}"
        if isinstance(statement, Reduce):
            accumulator = statement.accumulator
            return f"reduce {self.accumulator(accumulator)}: {accumulator.dtype} = {accumulator.combine}"
        if isinstance(statement, Fill):
            return f"fill {self.name(statement.buffer, statement.buffer.name)}, {self.scalar(statement.value)}"
        target = statement.target
        shown = self.accumulator(target) if isinstance(target, Accumulator) else self.place(*target)
        position = "" if statement.position is None else f" at {self.scalar(statement.position)}"
        return f"{shown} {statement.combine}= {self.scalar(statement.value)}{position}"

    def accumulator(self, accumulator: Accumulator) -> str:
        return self.name(accumulator, accumulator.name)

    # ----- positions
    def place(self, buffer: Buffer, offset: Offset) -> str:
        name = self.name(buffer, buffer.name)
        index = linear_index(buffer, offset, self.guarded)
        if index is not None:
            return f"{name}[{', '.join(self.entry(affine, terms) for affine, terms in index)}]"
        parts = [self.term(scalar, stride) for scalar, stride in offset.terms]
        if offset.affine != 0 or not parts:
            parts.append(self.extent(offset.affine))
        return f"{name}[+ {' + '.join(parts)}]"

    def entry(self, affine: Extent, terms: list[Scalar]) -> str:
        parts = [self.term(scalar, 1) for scalar in terms]
        if affine != 0 or not parts:
            parts.append(self.extent(affine))
        return " + ".join(parts).replace("+ -", "- ")

    def term(self, scalar: Scalar, stride: int) -> str:
        return self.scalar(scalar) if stride == 1 else f"{stride}*{self.scalar(scalar, _UNARY)}"

    def extent(self, extent: Extent) -> str:
        if isinstance(extent, int):
            return str(extent)
        parts = [self.index_term(index, coefficient) for index, coefficient in extent.terms]
        if extent.constant:
            parts.append(str(extent.constant))
        parts.sort(key=lambda part: part.startswith("-"))    # 3 - i0, not -i0 + 3
        return " + ".join(parts).replace("+ -", "- ")

    def index_term(self, index: Index, coefficient: int) -> str:
        name = self.name(index, index.name)
        return name if coefficient == 1 else f"-{name}" if coefficient == -1 else f"{coefficient}*{name}"

    # ----- scalars
    def scalar(self, scalar: Scalar, strength: int = _CHOICE) -> str:
        """The expression, in parentheses where it binds less than `strength`."""
        text, own = self.expression(scalar)
        return f"({text})" if own < strength else text

    def expression(self, scalar: Scalar) -> tuple[str, int]:
        op, args = scalar.op, scalar.args
        infix = _INFIX.get(op)
        if infix is not None:
            symbol, strength = infix
            # The left operand of a comparison is not one itself; a - (b - c) keeps its parentheses.
            left = self.scalar(args[0], strength + (strength == 1))
            return f"{left} {symbol} {self.scalar(args[1], strength + 1)}", strength
        if op in _PREFIX:
            return f"{_PREFIX[op]}{self.scalar(args[0], _ATOM)}", _UNARY
        if op == "select" and scalar.data == "lazy":
            return f"{self.scalar(args[1], 1)} if {self.scalar(args[0], 1)} else {self.scalar(args[2])}", _CHOICE
        if op == "cast":
            return f"{scalar.dtype}({self.scalar(args[0])})", _ATOM
        if op == "const":
            return _literal(scalar.data), _ATOM
        if op == "index":
            extent: Extent = scalar.data
            if isinstance(extent, int) or extent == extent.terms[0][0].extent():
                return self.extent(extent), _ATOM
            return self.extent(extent), _SUM
        return self.leaf(scalar), _ATOM

    def leaf(self, scalar: Scalar) -> str:
        op, data = scalar.op, scalar.data
        if op == "load":
            return self.place(*data)
        if op == "local":
            return self.name(data, data.name)
        if op == "total":
            return self.accumulator(data)
        if op == "found":
            return f"position({self.accumulator(data)})"
        if op == "in_range":
            return f"in_range({', '.join(self.extent(extent) for extent in data)})"
        return f"{op}({', '.join(self.scalar(arg) for arg in scalar.args)})"


def _guarded_positions(scalar: Scalar) -> Iterator[Extent]:
    if scalar.op == "in_range":
        yield scalar.data[0]
    for arg in scalar.args:
        yield from _guarded_positions(arg)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value.item() if hasattr(value, "item") else value)
