"""Arrays whose shape changes equally in every iteration of a loop: `v = 0.5 * (v[1:] + v[:-1])`, `path = np.append(path, x)`.

The loop carries an array with room for the largest shape; each iteration reads its leading part, and writes its result there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.source.variables import Again, NotCapturable, not_capturable
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import Leaf, trace_body
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.indexing.index_handle import index_handle
from bwcompiler.frontend.tracing.operands import cast
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh_array
from bwcompiler.ir.extent import Extent, add_extents, scale_extent
from bwcompiler.ops.rules import zero_of


class Moving(NamedTuple):
    """first: the shape on entry.  change: what an iteration adds to it.  room: the largest sizes that there are."""

    first: tuple[int, ...]
    change: tuple[int, ...]
    room: tuple[int, ...]

    def after(self, iterations: Extent) -> tuple[Extent, ...]:
        """The shape after some iterations."""
        return tuple([add_extents(size, scale_extent(iterations, change)) for size, change in zip(self.first, self.change, strict=True)])

    def widened(self, leaf: Leaf) -> Leaf:
        """What is carried on entry."""
        dtype = leaf.value.dtype
        buffer = fresh_array(ops.full(value=zero_of(dtype), shape=self.room, dtype=dtype))
        assign(_part(buffer, self.first), leaf.value)
        return leaf._replace(value=value_of(buffer))

    def taken(self, buffer: Tracer, iterations: Extent) -> Tracer:
        """The array after some iterations, of what is carried."""
        return call(lambda: fresh_array(value_of(_part(buffer, self.after(iterations)))))  # type: ignore[no-any-return]

    def put(self, name: str, buffer: Tracer, value: Any, iterations: Extent) -> Tracer:
        """What is carried when an iteration, after which there have been so many, has made the array."""
        shape = self.after(iterations)
        if not isinstance(value, Tracer) or value._type.shape != shape:
            not_capturable(f"{name} has shape {self.first} before the first iteration, and then one that does not move alike")

        def made() -> Tracer:
            found = fresh_array(cast(value_of(buffer), value._type.dtype))
            assign(_part(found, shape), value_of(value))
            return found
        return call(made)  # type: ignore[no-any-return]


def _part(buffer: Tracer, shape: Sequence[Extent]) -> Tracer:
    return buffer[tuple([slice(None, index_handle(size)) for size in shape])]  # type: ignore[no-any-return]


def moving(first: Sequence[Any], second: Sequence[Any], iterations: Any) -> Moving | None:
    """The shapes of a variable before and after the first iteration as those of all; None where they are not."""
    known = all(isinstance(size, int) for size in (*first, *second, iterations))
    if not known or len(first) != len(second) or tuple(first) == tuple(second):
        return None
    change = tuple([after - before for before, after in zip(first, second, strict=True)])
    last = tuple([size + iterations * step for size, step in zip(first, change, strict=True)])
    return Moving(tuple(first), change, tuple(map(max, first, last))) if min(last) >= 0 else None


def find(loop: Any) -> dict[str, Moving]:
    """The variables of a loop whose shapes move, as its first iteration shows, traced on trial."""
    found: dict[str, Moving] = {}
    region = open_region()
    refusal = region.refusal

    def first() -> list[Any]:
        loop.first()
        for name in loop.variables.carried:
            start, end = loop.entry[name], loop.names[name]
            if isinstance(end, Tracer) and isinstance(start, Tracer | np.ndarray):
                made = moving(np.shape(start), end.shape, loop.count)
                found.update({} if made is None else {name: made})
        return []
    try:
        loop.names.restore(loop.entry)
        trace_body(first, "", "first")
    except (Exception, NotCapturable, Again):      # what the body itself gives says why
        region.refusal = refusal
        return {}
    finally:
        loop.scope.undo()
        loop.scope.missing.clear()
        loop.names.restore(loop.entry)
    return found
