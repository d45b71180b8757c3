"""Placement of a kernel's instructions, and the values of registers.

A kernel is written as a stack of levels: the function, then each open loop (or copy of an unrolled loop body).  An instruction is
placed at the outermost level at which its operands are known, before the loops inside that level.  So loop invariants are hoisted,
and a register is reused (common subexpressions) as long as its level is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from bwcompiler.ir.types import DType
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, register_type, vector_type


class Register(NamedTuple):
    """A register or literal.

    width: 1, or that of the vector loop, with an element per iteration.
    level: the innermost level that it depends on; scope: the level within which it may be reused.  In a copy of a loop body for
    iteration 3, a load at a constant offset is placed before all loops (level 0), and its scope is that copy.
    """

    text: str
    width: int = 1
    level: int = 0
    scope: int = 0


class Level:
    """One open level.  before: the lines before the loop; None if the level is not a loop.

    conditional: whether the level may be skipped: a branch, or the guard of a loop that may have no iterations.
    """

    __slots__ = ("before", "conditional", "lines", "scope")

    def __init__(self, lines: list[str], before: list[str] | None = None, conditional: bool = False) -> None:
        self.lines = lines
        self.before = before
        self.conditional = conditional
        self.scope: dict[object, Register] = {}


class Registers:
    """The levels of the function that is being written."""

    def __init__(self, emit: ScalarEmitter) -> None:
        self.emit = emit
        self.levels = [Level(emit.lines)]

    @property
    def top(self) -> int:
        return len(self.levels) - 1

    # ----- levels
    @contextmanager
    def inside(self, conditional: bool = False) -> Iterator[int]:
        """A level that is not a loop: a copy of a body, or a branch."""
        self.levels.append(Level(self.emit.lines, conditional=conditional))
        yield self.top
        self.levels.pop()

    @contextmanager
    def counted(self, extent: str, empty: bool = False) -> Iterator[str]:
        """for index in 0..extent, where extent > 0 unless the loop may be empty."""
        emit = self.emit
        number = emit.count = emit.count + 1
        outer, level, before = emit.lines, Level([], []), len(self.levels)
        if empty:                                          # the lines before the loop are inside a branch, too
            self.levels.append(Level(outer, conditional=True))
        self.levels.append(level)
        emit.lines = level.lines
        index, after = f"%i{number}", f"%n{number}"
        yield index
        del self.levels[before:]
        emit.lines = outer
        if empty:
            outer += [f"  %e{number} = icmp sgt i64 {extent}, 0", f"  br i1 %e{number}, label %pre{number}, label %exit{number}"]
        else:
            outer += [*(level.before or ()), f"  br label %pre{number}"]
        outer += [f"pre{number}:", *((level.before or ()) if empty else ()), f"  br label %body{number}", f"body{number}:",
                  f"  {index} = phi i64 [ 0, %pre{number} ], [ {after}, %latch{number} ]", *level.lines,
                  f"  br label %latch{number}", f"latch{number}:", f"  {after} = add nuw nsw i64 {index}, 1",
                  f"  %c{number} = icmp slt i64 {after}, {extent}",
                  f"  br i1 %c{number}, label %body{number}, label %exit{number}", f"exit{number}:"]

    # ----- known registers
    def known(self, key: object) -> Register | None:
        for level in reversed(self.levels):
            found = level.scope.get(key)
            if found is not None:
                return found
        return None

    def remember(self, key: object, register: Register) -> Register:
        self.levels[register.scope].scope[key] = register
        return register

    # ----- instructions
    def place(self, level: int) -> tuple[list[str], int]:
        """The lines for instructions whose operands are known at a level, and the level that remembers the result."""
        kept = level
        for number in range(level + 1, len(self.levels)):
            above = self.levels[number]
            if above.before is not None:
                return above.before, kept
            if above.conditional:
                kept = number
        return self.emit.lines, kept

    def unconditional(self, level: int) -> int:
        """The outermost level, from `level` on, at which a load is safe: not outside of a branch that may be skipped."""
        for number in range(self.top, level, -1):
            if self.levels[number].conditional:
                return number
        return level

    def put(self, text: str, level: int, width: int = 1, scope: int = 0) -> Register:
        """One instruction."""
        lines, kept = self.place(level)
        emit = self.emit
        emit.count += 1
        lines.append(f"  %v{emit.count} = {text}")
        return Register(f"%v{emit.count}", width, kept, max(kept, scope))

    def apply(self, write: Callable[[list[str]], str], args: Sequence[Register], dtypes: Sequence[DType]) -> Register:
        """Emit an operation by `write`, with all operands widened to the widest of them."""
        emit = self.emit
        width, level, scope = 1, 0, 0
        for arg in args:
            width, level, scope = max(width, arg.width), max(level, arg.level), max(scope, arg.scope)
        texts = [self.wide(arg, dtype, width) for arg, dtype in zip(args, dtypes, strict=True)]
        lines, kept = self.place(level)
        saved = emit.lines, emit.width
        emit.lines, emit.width = lines, width
        text = write(texts)
        emit.lines, emit.width = saved
        return Register(text, width, kept, max(kept, scope))

    def operate(self, name: str, dtype: DType, *args: Register) -> Register:
        """A scalar operation on registers of one dtype."""
        return self.apply(lambda texts: self.emit.operation(name, dtype, texts), args, [dtype] * len(args))

    def combine(self, name: str, dtype: DType, *args: Register) -> Register:
        """The same for a reduction, whose elements may come in any order."""
        return self.apply(lambda texts: self.emit.operation(name, dtype, texts, in_any_order=True), args, [dtype] * len(args))

    def wide(self, register: Register, dtype: DType, width: int) -> str:
        """A register of this width: the number in every element, if it is one number."""
        return register.text if register.width == width else self.splat(register, register_type(dtype), width)

    def splat(self, register: Register, type_: str, width: int) -> str:
        if not register.text.startswith("%"):
            return f"splat ({type_} {register.text})"
        key = ("splat", register.text, width)
        found = self.known(key)
        if found is None:
            vector = vector_type(type_, width)
            first = self.put(f"insertelement {vector} poison, {type_} {register.text}, i64 0", register.level)
            made = self.put(f"shufflevector {vector} {first.text}, {vector} poison, <{width} x i32> zeroinitializer", first.level, width)
            found = self.remember(key, made)
        return found.text
