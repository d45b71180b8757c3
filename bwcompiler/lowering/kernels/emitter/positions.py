"""Loop indices, index expressions and the addresses of elements, in loops of numbers and of vectors.

Parts of an address that depend only on outer loops are computed there (`registers.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from bwcompiler.errors import CompileError
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, scale_extent
from bwcompiler.ir.loop import INPUT, Buffer, Kernel
from bwcompiler.lowering.kernels.emitter.kernel_pointers import first_elements, words_read
from bwcompiler.lowering.kernels.emitter.registers import Register, Registers
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, memory_type, vector_type


@dataclass(frozen=True)
class Abreast:
    """The iterations of one vector: `width` of them from `first` on, of which the first `active` are executed.

    active: a number, the register of one, or None for all of them.  spread: memory that they write with a stride.
    """

    index: Index
    first: str
    width: int
    active: int | str | None = None
    spread: Set[Buffer] = frozenset()


def _memory_in(merged: Mapping[Buffer, Buffer]) -> Callable[[Buffer], Buffer]:
    """Maps buffers with shared memory to the same buffer.  Not a method, as a bound method would keep the emitter alive in a cycle."""
    return lambda buffer: merged.get(buffer, buffer)


class Positions(Registers):
    """abreast: the iterations of the current vector; literals: indices with known values here."""

    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer]) -> None:
        super().__init__(emit)
        self.kernel = kernel
        self.merged = merged
        self.memory_of = _memory_in(merged)
        self.starts = first_elements(kernel, merged)
        self.words = words_read(kernel, self.starts) if kernel.words else []
        self.pointers: dict[Buffer, str] = {}
        self.indices: dict[Index, Register] = {}
        self.literals: dict[Index, Extent] = {}
        self.abreast: Abreast | None = None

    @property
    def width(self) -> int:
        return self.abreast.width if self.abreast else 1

    def is_constant(self, buffer: Buffer) -> bool:
        """Whether no statement of the kernel writes it."""
        return buffer.role == INPUT and buffer not in self.merged

    # ----- index expressions
    def affine(self, extent: Extent) -> str:
        """The register of an affine index expression: in the first iteration of a vector loop."""
        return self._affine(extent).text

    def _affine(self, extent: Extent) -> Register:
        if isinstance(extent, int):
            return Register(str(extent))
        found = self.known(extent)
        if found is not None:
            return found
        constant, total, scope = extent.constant, None, 0
        for index, coefficient in extent.terms:
            step = self.index(index)
            scope = max(scope, step.scope)
            if not step.text.startswith("%"):
                constant += int(step.text) * coefficient
                continue
            if coefficient != 1:
                step = self.put(f"mul nsw i64 {step.text}, {coefficient}", step.level)
            total = step if total is None else self.put(f"add nsw i64 {total.text}, {step.text}", max(total.level, step.level))
        if total is None:
            return Register(str(constant), 1, 0, scope)
        if constant:
            total = self.put(f"add nsw i64 {total.text}, {constant}", total.level)
        return self.remember(extent, total._replace(scope=max(scope, total.scope)))

    def index(self, index: Index) -> Register:
        found = self.indices.get(index)
        if found is None:
            raise CompileError(f"loop index {index} is read outside of its loop")
        return found

    def step(self, extent: Extent) -> int:
        """The step of an index expression between iterations of the vector loop."""
        if self.abreast is None or isinstance(extent, int):
            return 0
        return next((step for index, step in extent.terms if index is self.abreast.index), 0)

    def position(self, extent: Extent) -> Register:
        """An index expression as a number: of each iteration."""
        first, step = self._affine(extent), self.step(extent)
        return first if not step or self.abreast is None else self.stepped(first, step, self.abreast.width)

    def stepped(self, first: Register, step: int, width: int) -> Register:
        scope = max(first.scope, self._abreast_scope())
        vector = vector_type("i64", width)
        if not first.text.startswith("%"):
            return Register(f"<{', '.join([f'i64 {int(first.text) + step * k}' for k in range(width)])}>", width, 0, scope)
        steps = ", ".join([f"i64 {step * k}" for k in range(width)])
        return self.put(f"add nsw {vector} {self.splat(first, 'i64', width)}, <{steps}>", first.level, width, scope)

    def _abreast_scope(self) -> int:
        return self.indices[self.abreast.index].scope if self.abreast else 0

    # ----- addresses
    def pointer(self, buffer: Buffer, affine: Extent) -> Register:
        """The address of an element; its loop-invariant parts are computed in outer loops."""
        type_, scope = memory_type(buffer.dtype), 0
        start = self.starts.get(buffer)
        if start is not None:
            affine = add_extents(affine, scale_extent(start, -1))
        pointer, constant = Register(self.pointers[buffer]), affine if isinstance(affine, int) else affine.constant
        terms: list[tuple[int, Index, int, Register]] = []
        for index, coefficient in () if isinstance(affine, int) else affine.terms:
            at = self.index(index)
            scope = max(scope, at.scope)
            if at.text.startswith("%"):
                terms.append((at.level, index, coefficient, at))
            else:
                constant += int(at.text) * coefficient
        terms.sort(key=lambda term: (term[0], term[1].serial))
        key: tuple[object, ...] = (buffer,)
        for level, index, coefficient, at in terms:
            key = (*key, index, coefficient)
            found = self.known(key)
            if found is None:
                scaled = at if coefficient == 1 else self._affine(Affine(0, ((index, coefficient),)))
                level = max(pointer.level, level)
                found = self.remember(key, self.put(f"getelementptr {type_}, ptr {pointer.text}, i64 {scaled.text}", level))
            pointer = found
        pointer = self.moved(pointer, type_, constant) if constant else pointer
        return pointer._replace(scope=max(scope, pointer.scope))

    def moved(self, pointer: Register, type_: str, count: int) -> Register:
        key = ("moved", pointer.text, type_, count)
        found = self.known(key)
        if found is None:
            found = self.remember(key, self.put(f"getelementptr {type_}, ptr {pointer.text}, i64 {count}", pointer.level))
        return found
