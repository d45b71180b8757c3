"""Moves common offsets of a kernel's accesses into its pointers, so that kernels that differ only in these offsets are one function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, scale_extent
from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Fill, Kernel, Loop, Offset, Reduce, Statement, Store
from bwcompiler.ir.scalar import Scalar, Word
from bwcompiler.ir.semantics.loop_verifier import roots, statements


def first_elements(kernel: Kernel, merged: Mapping[Buffer, Buffer] = MappingProxyType({})) -> dict[Buffer, Extent]:
    """Per parameter the common part of all offsets, if it is not 0: a constant, and multiples of the kernel's words.

    merged: buffers that share the memory and the start of another one.
    """
    words = {word for word in kernel.words if isinstance(word, Index)}
    constants: dict[Buffer, int] = {}
    shared: dict[Buffer, set[tuple[Index, int]]] = {}
    for accessed, offset in _accesses(kernel.body, set()):
        buffer = merged.get(accessed, accessed)
        constant, terms = (offset.affine, ()) if isinstance(offset.affine, int) else (offset.affine.constant, offset.affine.terms)
        constants[buffer] = min(constants.get(buffer, constant), constant)
        if words:
            told = {term for term in terms if term[0] in words}
            shared[buffer] = shared[buffer] & told if buffer in shared else told
    starts: dict[Buffer, Extent] = {}
    for buffer, constant in constants.items():
        terms = tuple(sorted(shared.get(buffer, ()), key=lambda term: term[0].serial))
        if terms:
            starts[buffer] = Affine(constant, terms)
        elif constant > 0:
            starts[buffer] = constant
    return starts | {source: starts[target] for source, target in merged.items() if target in starts}


def words_read(kernel: Kernel, starts: dict[Buffer, Extent]) -> list[Index | Word]:
    """The words that the kernel still reads if its pointers point to `starts`."""
    found = _read(kernel, starts)
    return [word for word in kernel.words if word in found]


def free_indices(kernel: Kernel) -> list[Index | Word]:
    """The indices that a kernel reads and that none of its loops runs over, oldest first."""
    own = {statement.index for statement, _ in statements(kernel.body) if isinstance(statement, Loop)}
    found = [index for index in _read(kernel, {}) if isinstance(index, Index) and index not in own]
    return [*sorted(found, key=lambda index: index.serial)]


def _read(kernel: Kernel, starts: dict[Buffer, Extent]) -> set[Index | Word]:
    found: set[Index | Word] = set()
    seen: set[int] = set()

    def read(extent: Extent) -> None:
        if isinstance(extent, Affine):
            found.update([index for index, _ in extent.terms])

    def scan(scalar: Scalar) -> None:
        if id(scalar) in seen:
            return
        seen.add(id(scalar))
        if scalar.op == "word":
            found.add(scalar.data)
        elif scalar.op == "index":
            read(scalar.data)
        elif scalar.op == "in_range":
            for extent in scalar.data:
                read(extent)
        for arg in scalar.args:
            scan(arg)

    for statement, _ in statements(kernel.body):
        if isinstance(statement, Loop):
            read(statement.extent)
        for scalar in roots(statement):
            scan(scalar)
    for buffer, offset in _accesses(kernel.body, set()):
        read(add_extents(offset.affine, scale_extent(starts.get(buffer, 0), -1)))
    return found


def _accesses(body: list[Statement], seen: set[int]) -> Iterator[tuple[Buffer, Offset]]:
    """Every load and store of the statements (a Fill starts at element 0)."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from _accesses(statement.body, seen)
            continue
        if isinstance(statement, Reduce):
            continue
        yield from _loads(statement.value, seen)
        if isinstance(statement, Fill):
            yield statement.buffer, Offset(0)
        elif isinstance(statement, Store):
            yield statement.buffer, statement.offset
            for term, _ in statement.offset.terms:
                yield from _loads(term, seen)
        elif isinstance(statement, Accumulate):
            if statement.position is not None:
                yield from _loads(statement.position, seen)
            if not isinstance(statement.target, Accumulator):
                yield statement.target
                for term, _ in statement.target[1].terms:
                    yield from _loads(term, seen)


def _loads(scalar: Scalar, seen: set[int]) -> Iterator[tuple[Buffer, Offset]]:
    if id(scalar) in seen:
        return
    seen.add(id(scalar))
    if scalar.op == "load":
        yield scalar.data
    for arg in scalar.args:
        yield from _loads(arg, seen)
