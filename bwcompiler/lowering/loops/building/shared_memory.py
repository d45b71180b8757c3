"""Whether a kernel may write a result over one of its inputs: `buffer += gradient`, `x *= 2` without a temporary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bwcompiler.ir.extent import Affine
from bwcompiler.ir.loop import OUTPUT, Accumulate, Accumulator, Buffer, Fill, Kernel, Let, Loop, Offset, Statement, Store
from bwcompiler.ir.scalar import Scalar


def may_share(kernel: Kernel, source: Buffer, target: Buffer) -> bool:
    """Whether every element of source is read before that element of target is written, if both are one array.

    So it is where all reads of source are of the element that the iteration is about to write: at the same offset, in the
    body of the same loops, by a store to target or by a statement before it, and every iteration writes another element.
    """
    if target.role != OUTPUT or source.shape != target.shape or source.dtype is not target.dtype:
        return False
    writes = [(loops, body, at) for loops, body, at in _bodies(kernel.body, ()) if _writes(body[at], target)]
    reads = [(body, at, offset) for _, body, at in _bodies(kernel.body, ()) for offset in _reads(body[at], source)]
    stores = [(loops, body, at, store) for loops, body, at in writes if isinstance(store := body[at], Store)]
    if not stores or len(stores) < len(writes):
        return False
    # All elements are written, so with no more iterations than elements each is written once.
    counts = [count for loops, _, _, store in stores if (count := _iterations(loops, store.offset)) is not None]
    if len(counts) < len(stores) or sum(counts) != target.size:
        return False
    return all(any(where is body and at <= position and offset == store.offset for _, body, position, store in stores)
               for where, at, offset in reads)


def stores_behind_reads(kernel: Kernel, source: Buffer, target: Buffer) -> Kernel:
    """The kernel with stores to target moved behind the last read of the same element of source.  The kernel itself if that is impossible:
    the stored value has no name, loops are in between, or target is read as well."""
    body = _in_order(kernel.body, source, target)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _in_order(body: list[Statement], source: Buffer, target: Buffer) -> list[Statement]:
    found = [replace(one, body=inside) if isinstance(one, Loop) and (inside := _in_order(one.body, source, target)) is not one.body else one
             for one in body]
    stores = [one for one in found if _writes(one, target)]
    in_line = not any(isinstance(one, Loop) or any(True for _ in _reads(one, target)) for one in found)
    if stores and in_line and all(isinstance(one, Store) and _is_named(one) for one in stores):
        reads = [position for position, one in enumerate(found) if any(True for _ in _reads(one, source))]
        last = max(reads, default=0) + 1
        found = [*[one for one in found[:last] if one not in stores], *[one for one in found[:last] if one in stores], *found[last:]]
    return body if len(found) == len(body) and all(a is b for a, b in zip(found, body, strict=True)) else found


def _is_named(store: Store) -> bool:
    """Whether what it stores is a number that has been computed before, at a known place."""
    return store.value.op in ("local", "const", "word") and not store.offset.terms


def _iterations(loops: Sequence[Loop], offset: Offset) -> int | None:
    """The number of iterations; None if two of them could access the same element, or the trip count is data-dependent."""
    extents = [loop.extent for loop in loops]
    if offset.terms or not all(isinstance(extent, int) for extent in extents):
        return None
    moving = {loop.index for loop in loops if loop.extent != 1}
    used = {index for index, _ in offset.affine.terms} if isinstance(offset.affine, Affine) else set()
    return math.prod(extent for extent in extents if isinstance(extent, int)) if moving <= used else None


def _bodies(body: list[Statement], loops: tuple[Loop, ...]) -> Iterator[tuple[tuple[Loop, ...], list[Statement], int]]:
    """All statements except loops, each with its enclosing loops, its body and its position there."""
    for position, statement in enumerate(body):
        if isinstance(statement, Loop):
            yield from _bodies(statement.body, (*loops, statement))
        else:
            yield loops, body, position


def _writes(statement: Statement, target: Buffer) -> bool:
    if isinstance(statement, Store | Fill):
        return statement.buffer is target
    return isinstance(statement, Accumulate) and not isinstance(statement.target, Accumulator) and statement.target[0] is target


def _reads(statement: Statement, source: Buffer) -> Iterator[Offset]:
    """The offsets at which a statement itself reads the buffer; reads through a `Let` count at the `Let`."""
    scalars: list[Scalar] = []
    if isinstance(statement, Let | Store | Fill | Accumulate):
        scalars.append(statement.value)
    if isinstance(statement, Store):
        scalars += [term for term, _ in statement.offset.terms]
    if isinstance(statement, Accumulate):
        if statement.position is not None:
            scalars.append(statement.position)
        if not isinstance(statement.target, Accumulator):
            scalars += [term for term, _ in statement.target[1].terms]
    seen: set[int] = set()
    while scalars:
        scalar = scalars.pop()
        if id(scalar) in seen:
            continue
        seen.add(id(scalar))
        if scalar.op == "load" and scalar.data[0] is source:
            yield scalar.data[1]
        scalars += scalar.args
