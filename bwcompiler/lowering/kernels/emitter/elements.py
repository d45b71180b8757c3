"""Loads and stores of array elements: one, or one per iteration of a vector loop.

Contiguous elements are one vector access.  Elements up to LARGEST_STEP apart are read as vectors together with those between them; all
others are accessed one by one (gather instructions are slower, if the target has them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bwcompiler.errors import CompileError
from bwcompiler.ir.extent import substitute
from bwcompiler.ir.loop import Buffer, Kernel, Offset
from bwcompiler.ir.scalar import Scalar
from bwcompiler.ir.types import BOOL, I64, DType
from bwcompiler.lowering.kernels.analysis.loop_bodies import group_start
from bwcompiler.lowering.kernels.emitter.positions import Positions
from bwcompiler.lowering.kernels.emitter.registers import Register
from bwcompiler.lowering.llvm_scalars import ScalarEmitter, memory_type, vector_type


class Place(NamedTuple):
    """Elements in memory: a pointer to the one of the first iteration and the step to the next, or one offset per iteration.

    group: how many elements before it a group of `step` elements starts, if it is read with its neighbours.
    """

    pointer: Register
    step: int = 0
    offsets: Register | None = None
    group: int | None = None


class Elements(Positions):
    """guard: the condition per iteration under which elements are read, None for always."""

    def __init__(self, kernel: Kernel, emit: ScalarEmitter, merged: Mapping[Buffer, Buffer]) -> None:
        super().__init__(kernel, emit, merged)
        self.guard: Register | None = None

    def scalar(self, scalar: Scalar) -> Register:
        """The register that holds a scalar."""
        raise NotImplementedError

    def both(self, x: Register, y: Register) -> Register:
        """The register of the conjunction of two conditions."""
        return self.operate("bitwise_and", BOOL, x, y)

    # ----- from memory
    def as_register(self, loaded: Register, dtype: DType) -> Register:
        return self.apply(lambda texts: self.emit.from_memory(texts[0], dtype), [loaded], [dtype]) if dtype is BOOL else loaded

    def locate(self, buffer: Buffer, offset: Offset) -> Place:
        """The place of an element, and of those of the other iterations of the vector loop."""
        pointer, offsets = self.pointer(buffer, offset.affine), None
        for term, stride in offset.terms:
            at = self.scalar(term)
            if stride != 1:
                at = self.operate("multiply", I64, at, Register(str(stride)))
            if at.width > 1:
                offsets = at if offsets is None else self.operate("add", I64, offsets, at)
            else:
                pointer = self.put(f"getelementptr {memory_type(buffer.dtype)}, ptr {pointer.text}, i64 {at.text}",
                                   max(pointer.level, at.level), 1, max(pointer.scope, at.scope))
        step = self.step(offset.affine)
        if offsets is not None and step:
            offsets = self.operate("add", I64, offsets, self.stepped(Register("0"), step, self.width))
        group = None
        if step > 1:
            spread = self.abreast is not None and self.memory_of(buffer) in self.abreast.spread
            group = group_start(buffer, Offset(substitute(offset.affine, self.literals), offset.terms), step, spread)
        return Place(pointer, step, offsets, group)

    def loaded(self, buffer: Buffer, place: Place) -> Register:
        """The loaded elements, in their memory type."""
        dtype, type_, scope = buffer.dtype, memory_type(buffer.dtype), place.pointer.scope
        level = self.unconditional(place.pointer.level) if self.is_constant(buffer) and self.guard is None else self.top
        if place.offsets is None and not place.step:
            if self.guard is not None:
                raise CompileError(f"{buffer}: one element cannot be read under a condition per iteration")
            return self.put(f"load {type_}, ptr {place.pointer.text}, align {dtype.itemsize}", level, 1, scope)
        assert self.abreast is not None
        if place.offsets is not None or place.step not in (1, -1):
            if place.group is not None and self._groups_fit(dtype):
                return self._of_group(dtype, place, place.group, level)
            offsets = place.offsets or place.pointer
            return self._gathered(dtype, place, max(level, offsets.level))._replace(scope=max(scope, offsets.scope, level))
        pointer, vector = self._lowest(place, type_), vector_type(type_, self.width)
        mask = self._mask(place.step < 0)
        level = max(level, pointer.level)
        if mask is None:
            loaded = self.put(f"load {vector}, ptr {pointer.text}, align {dtype.itemsize}", level, self.width, scope)
        else:
            loaded = self._masked_load(dtype, pointer, mask, self.width, level, scope)
        return loaded if place.step > 0 else self._reversed(loaded, vector)

    def _groups_fit(self, dtype: DType) -> bool:
        """Whether the groups of all iterations can be read at once."""
        target = self.emit.target
        active = self.abreast.active if self.abreast else None
        part = isinstance(active, int) and (target.has_masks or (target.has_wide_masks and dtype.itemsize >= 4))
        return self.guard is None and (active is None or part)

    def _of_group(self, dtype: DType, place: Place, start: int, level: int) -> Register:
        """One element of each group: all groups are read as one vector, which other elements of them share."""
        assert self.abreast is not None
        count, type_ = place.step * self.width, memory_type(dtype)
        pointer, vector = self.moved(place.pointer, type_, -start) if start else place.pointer, vector_type(type_, count)
        key, scope = ("group", pointer.text, count, level), place.pointer.scope
        whole = self.known(key)
        if whole is None:
            level = max(level, pointer.level)
            if not isinstance(self.abreast.active, int):
                whole = self.put(f"load {vector}, ptr {pointer.text}, align {dtype.itemsize}", level, count, scope)
            else:
                flags = ", ".join([f"i1 {'true' if k < place.step * self.abreast.active else 'false'}" for k in range(count)])
                whole = self._masked_load(dtype, pointer, f"<{flags}>", count, level, scope)
            if level < self.top:
                self.remember(key, whole)
        found = self.picked(whole, vector, [start + place.step * k for k in range(self.width)])
        return found._replace(scope=max(found.scope, scope))       # the position in each group is known only inside the iteration

    def _mask_of_number(self, active: str, backwards: bool) -> str:
        """The same if the number of active iterations is in a register, and may exceed the width."""
        numbers = vector_type("i64", self.width)
        steps = ", ".join([f"i64 {k}" for k in (range(self.width)[::-1] if backwards else range(self.width))])
        return self.emit.put(f"icmp slt {numbers} <{steps}>, {self.splat(Register(active, 1, self.top, self.top), 'i64', self.width)}")

    def picked(self, register: Register, vector: str, order: Sequence[int]) -> Register:
        """A vector of selected elements (a shuffle)."""
        steps = ", ".join([f"i32 {k}" for k in order])
        return self.put(f"shufflevector {vector} {register.text}, {vector} poison, <{len(order)} x i32> <{steps}>",
                        register.level, len(order), register.scope)

    def _masked_load(self, dtype: DType, pointer: Register, mask: str, count: int, level: int, scope: int) -> Register:
        vector, flags = vector_type(memory_type(dtype), count), vector_type("i1", count)
        name = f"llvm.masked.load.{_suffix(dtype, count)}.p0"
        self.emit.declares[f"declare {vector} @{name}(ptr, i32, {flags}, {vector})"] = None
        return self.put(f"call {vector} @{name}(ptr {pointer.text}, i32 {dtype.itemsize}, {flags} {mask}, {vector} zeroinitializer)",
                        level, count, scope)

    def _lowest(self, place: Place, type_: str) -> Register:
        """The pointer to the element that comes first in memory."""
        return place.pointer if place.step > 0 else self.moved(place.pointer, type_, 1 - self.width)

    def _mask(self, backwards: bool) -> str | None:
        """The mask of iterations that load and store, in memory order; None for all."""
        assert self.abreast is not None
        if self.abreast.active is None and self.guard is None:
            return None
        if self.guard is None:
            return self.active_mask(backwards)
        guard = self.guard
        if self.abreast.active is not None:
            guard = self.both(guard, Register(str(self.active_mask()), self.width))
        return self._reversed(guard, vector_type("i1", self.width)).text if backwards else guard.text

    def active_mask(self, backwards: bool = False) -> str | None:
        """The literal mask of active iterations; None for all."""
        if self.abreast is None or self.abreast.active is None:
            return None
        if isinstance(self.abreast.active, str):
            return self._mask_of_number(self.abreast.active, backwards)
        flags = [f"i1 {'true' if k < self.abreast.active else 'false'}" for k in range(self.width)]
        return f"<{', '.join(flags[::-1] if backwards else flags)}>"

    def _reversed(self, register: Register, vector: str) -> Register:
        return self.picked(register, vector, range(self.width)[::-1])

    def _each(self, dtype: DType, place: Place, level: int) -> Iterator[tuple[int, Register]]:
        """The address of the element of each iteration."""
        assert self.abreast is not None
        type_ = memory_type(dtype)
        assert not isinstance(self.abreast.active, str)
        for k in range(self.width if self.abreast.active is None else self.abreast.active):
            if place.offsets is None:
                yield k, self.moved(place.pointer, type_, k * place.step) if k else place.pointer
                continue
            at = self.put(f"extractelement <{self.width} x i64> {place.offsets.text}, i64 {k}", level)
            yield k, self.put(f"getelementptr {type_}, ptr {place.pointer.text}, i64 {at.text}", level)

    def _gathered(self, dtype: DType, place: Place, level: int) -> Register:
        assert self.abreast is not None
        type_, vector = memory_type(dtype), vector_type(memory_type(dtype), self.width)
        if self.guard is not None:
            return self._masked_gather(dtype, place)
        found = Register("poison" if self.abreast.active is None else "zeroinitializer", self.width, level)
        for k, pointer in self._each(dtype, place, level):
            element = self.put(f"load {type_}, ptr {pointer.text}, align {dtype.itemsize}", level)
            found = self.put(f"insertelement {vector} {found.text}, {type_} {element.text}, i64 {k}", level, self.width)
        return found

    def _masked_gather(self, dtype: DType, place: Place) -> Register:
        """The elements of the iterations in which the guard allows reading them."""
        if place.offsets is None:
            raise CompileError("elements some steps apart cannot be read under a condition per iteration")
        vector, pointers = vector_type(memory_type(dtype), self.width), vector_type("ptr", self.width)
        numbers = vector_type("i64", self.width)
        at = self.put(f"getelementptr {memory_type(dtype)}, ptr {place.pointer.text}, {numbers} {place.offsets.text}", self.top, self.width)
        flags, name = vector_type("i1", self.width), f"llvm.masked.gather.{_suffix(dtype, self.width)}.v{self.width}p0"
        self.emit.declares[f"declare {vector} @{name}({pointers}, i32, {flags}, {vector})"] = None
        return self.put(f"call {vector} @{name}({pointers} {at.text}, i32 {dtype.itemsize}, {flags} {self._mask(False)}, "
                        f"{vector} zeroinitializer)", self.top, self.width)

    def write(self, buffer: Buffer, offset: Offset, register: Register) -> None:
        """Store an element, or those of the iterations of the vector loop."""
        self.write_at(buffer.dtype, self.locate(buffer, offset), register)

    def write_at(self, dtype: DType, place: Place, register: Register) -> None:
        emit, type_ = self.emit, memory_type(dtype)
        single = self.abreast is None or (place.offsets is None and not place.step)
        text = self.wide(register, dtype, 1 if single else self.width)
        with emit.wide(1 if single else self.width):
            text = emit.to_memory(text, dtype)
        if single:
            emit.lines.append(f"  store {type_} {text}, ptr {place.pointer.text}, align {dtype.itemsize}")
            return
        vector, made = vector_type(type_, self.width), Register(text, self.width, self.top, self.top)
        if place.offsets is not None or place.step not in (1, -1):
            for k, pointer in self._each(dtype, place, self.top):
                element = self.put(f"extractelement {vector} {text}, i64 {k}", self.top)
                emit.lines.append(f"  store {type_} {element.text}, ptr {pointer.text}, align {dtype.itemsize}")
            return
        pointer, mask = self._lowest(place, type_), self._mask(place.step < 0)
        if place.step < 0:
            made = self._reversed(made, vector)
        if mask is None:
            emit.lines.append(f"  store {vector} {made.text}, ptr {pointer.text}, align {dtype.itemsize}")
            return
        flags = vector_type("i1", self.width)
        emit.intrinsic(f"llvm.masked.store.{_suffix(dtype, self.width)}.p0", "void", (vector, made.text), ("ptr", pointer.text),
                       ("i32", str(dtype.itemsize)), (flags, mask))


def _suffix(dtype: DType, count: int) -> str:
    """The suffix of LLVM's intrinsics for vector memory accesses."""
    return f"v{count}{'f' if dtype.is_float else 'i'}{8 * dtype.itemsize}"
