"""Scalars of a kernel -> registers: numbers outside of vector loops, numbers or vectors inside.

Inside a vector loop a register holds one number that is the same in all iterations, or a vector with one number per iteration.  Scalars
that do not depend on the loop's index stay numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bwcompiler.errors import CompileError
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.loop import Accumulator, Buffer, Kernel, Offset
from bwcompiler.ir.scalar import Scalar
from bwcompiler.ir.types import BOOL, I64, DType
from bwcompiler.lowering.kernels.analysis.loop_bodies import shift_of
from bwcompiler.lowering.kernels.emitter.elements import Elements
from bwcompiler.lowering.kernels.emitter.registers import Level, Register
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, literal, memory_type, register_type, vector_type

_NOTHING: frozenset[Buffer | Accumulator] = frozenset()


class Cell(NamedTuple):
    """The stack slot of an accumulator: a number, or a vector with one number per iteration of the vector loop in which it was opened."""

    pointer: str
    width: int


class KernelValues(Elements):
    """cells: slots of accumulators; places: slots of the position of the best element so far in a search, -1 for none."""

    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer]) -> None:
        super().__init__(kernel, emit, merged)
        self.cells: dict[Accumulator, Cell] = {}
        self.places: dict[Accumulator, Cell] = {}
        self.memory: dict[int, frozenset[Buffer | Accumulator]] = {}
        # registers that a write to some memory invalidates, with their level
        self.perishable: dict[Buffer | Accumulator, list[tuple[Level, int]]] = {}

    # ----- invalidation
    def read_memory(self, scalar: Scalar) -> frozenset[Buffer | Accumulator]:
        """The mutable buffers and accumulators that a scalar reads."""
        if scalar.op in ("const", "word", "local", "index", "in_range"):
            return _NOTHING
        found = self.memory.get(id(scalar))
        if found is None:
            found = _NOTHING
            for arg in scalar.args:
                found |= self.read_memory(arg)
            if scalar.op in ("total", "found"):
                found |= {scalar.data}
            elif scalar.op == "load" and not self.is_constant(scalar.data[0]):
                found |= {self.memory_of(scalar.data[0])}
            self.memory[id(scalar)] = found
        return found

    def forget(self, written: Buffer | Accumulator | None) -> None:
        """Invalidate registers that were read from this memory (None: from any memory)."""
        for memory in list(self.perishable) if written is None else [written]:
            for level, number in self.perishable.pop(memory, ()):
                level.scope.pop(number, None)

    # ----- scalars
    def scalar(self, scalar: Scalar) -> Register:
        """The register (or literal) that holds a scalar."""
        op = scalar.op
        if op == "const":
            return Register(literal(scalar.data, scalar.dtype))
        if op in ("local", "word"):
            found = self.known(scalar.data)
            if found is None:
                raise CompileError(f"{scalar.data.name} is read outside of its loop")
            return found
        found = self.known(id(scalar))
        if found is not None:
            return found
        register = self.remember(id(scalar), self._scalar(scalar))
        for memory in self.read_memory(scalar):
            self.perishable.setdefault(memory, []).append((self.levels[register.scope], id(scalar)))
        return register

    def _scalar(self, scalar: Scalar) -> Register:
        op = scalar.op
        if op == "load":
            return self._element(*scalar.data)
        if op in ("total", "found"):
            return self._total(scalar)
        if op == "index":
            return self.position(scalar.data)
        if op == "in_range":
            return self._in_range(*scalar.data)
        if op == "select":
            return self._select(scalar)
        args = [self.scalar(arg) for arg in scalar.args]
        dtypes = [arg.dtype for arg in scalar.args]
        shift = shift_of(scalar)
        if shift is not None:
            return self._shifted(scalar, args[0], shift)
        if op == "cast":
            return self.apply(lambda texts: self.emit.cast(texts[0], dtypes[0], scalar.dtype), args, dtypes)
        return self.operate(op, dtypes[0], *args)

    def _shifted(self, scalar: Scalar, x: Register, shift: int) -> Register:
        """Floor division of an integer by a power of two, or its remainder."""
        if scalar.op == "floor_divide":
            return self.operate("right_shift", scalar.dtype, x, Register(str(shift)))
        return self.operate("bitwise_and", scalar.dtype, x, Register(str((1 << shift) - 1)))

    def _total(self, scalar: Scalar) -> Register:
        if scalar.op == "found":
            return self.load_cell(self.places[scalar.data], I64)
        return self.load_cell(self.cells[scalar.data], scalar.dtype)

    def load_cell(self, cell: Cell, dtype: DType) -> Register:
        type_ = vector_type(memory_type(dtype), cell.width)
        return self.as_register(self.put(f"load {type_}, ptr {cell.pointer}, align {dtype.itemsize}", self.top, cell.width), dtype)

    def _in_range(self, position: Extent, low: Extent, high: Extent) -> Register:
        at, first, last = [self.position(extent) for extent in (position, low, high)]
        return self.both(self.operate("greater_equal", I64, at, first), self.operate("less", I64, at, last))

    def _select(self, scalar: Scalar) -> Register:
        condition, x, y = scalar.args
        test = self.scalar(condition)
        if scalar.data != "lazy" or not (has_loads(x) or has_loads(y)):
            return self.chosen(scalar.dtype, test, self.scalar(x), self.scalar(y))
        # A guard of loads: elements outside of the range must not be read at all.
        if test.width > 1:
            return self.chosen(scalar.dtype, test, self._where(test, x, False), self._where(test, y, True))
        return self._branch(scalar, test)

    def chosen(self, dtype: DType, test: Register, x: Register, y: Register) -> Register:
        return self.apply(lambda texts: self.emit.select(dtype, *texts), [test, x, y], [BOOL, dtype, dtype])

    def _where(self, condition: Register, scalar: Scalar, opposite: bool) -> Register:
        """A scalar whose elements are read only in the iterations in which the condition holds (`opposite`: does not hold)."""
        if not has_loads(scalar):
            return self.scalar(scalar)
        saved = self.guard
        if opposite:
            condition = self.operate("invert", BOOL, condition)
        self.guard = condition if saved is None else self.both(saved, condition)
        with self.inside(conditional=True):
            found = self.scalar(scalar)
        self.guard = saved
        return found._replace(level=self.top, scope=self.top)

    def _branch(self, scalar: Scalar, test: Register) -> Register:
        emit = self.emit
        _, x, y = scalar.args
        emit.count += 1
        number, width = emit.count, self.width
        emit.lines += [f"  br i1 {test.text}, label %then{number}, label %else{number}", f"then{number}:"]
        with self.inside(conditional=True):
            first = self.wide(self.scalar(x), scalar.dtype, width)
        emit.lines += [f"  br label %left{number}", f"left{number}:", f"  br label %join{number}", f"else{number}:"]
        with self.inside(conditional=True):
            second = self.wide(self.scalar(y), scalar.dtype, width)
        emit.lines += [f"  br label %right{number}", f"right{number}:", f"  br label %join{number}", f"join{number}:"]
        type_ = vector_type(register_type(scalar.dtype), width)
        emit.count += 1
        emit.lines.append(f"  %v{emit.count} = phi {type_} [ {first}, %left{number} ], [ {second}, %right{number} ]")
        return Register(f"%v{emit.count}", width, self.top, self.top)

    # ----- elements
    def _element(self, buffer: Buffer, offset: Offset) -> Register:
        key = (buffer, offset.affine) if self.is_constant(buffer) and not offset.terms and self.guard is None else None
        if key is not None:
            found = self.known(key)
            if found is not None:
                return found
        register = self.as_register(self.loaded(buffer, self.locate(buffer, offset)), buffer.dtype)
        return register if key is None else self.remember(key, register)


def has_loads(scalar: Scalar) -> bool:
    return scalar.op == "load" or any(has_loads(arg) for arg in scalar.args)
