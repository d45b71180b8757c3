"""Where the pointers of a kernel's parameters may point, so that kernels that differ in that alone are one function."""

from __future__ import annotations

from collections.abc import Iterator

from bwcompiler.ir.loop import Accumulate, Accumulator, Buffer, Fill, Kernel, Loop, Offset, Reduce, Statement, Store
from bwcompiler.ir.scalar import Scalar


def first_elements(kernel: Kernel) -> dict[Buffer, int]:
    """The constant that all offsets into a parameter share, where there is one."""
    starts: dict[Buffer, int] = {}
    for buffer, offset in _accesses(kernel.body, set()):
        constant = offset.affine if isinstance(offset.affine, int) else offset.affine.constant
        starts[buffer] = min(starts.get(buffer, constant), constant)
    return {buffer: start for buffer, start in starts.items() if start > 0}


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
