"""Rows of selections, which are views of them: `s = x[mask]`, `row = s[0]`, `row += 1`."""

from __future__ import annotations

from typing import Any

from bwcompiler import ops
from bwcompiler.frontend.numpy.selected.packing import needs_guard
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, spread
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.storages.shapes import Shape
from bwcompiler.frontend.tracing.storages.views import PickedView
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.op import Value, constant
from bwcompiler.ir.types import tensor


class RowView(PickedView):
    """The row of all elements that one of the selected ones is; where none are selected it reads zeros (`packing.guarded`)."""

    __slots__ = ("selected",)

    def __init__(self, base_shape: Shape, axis: int, place: Any, selected: Tracer | None) -> None:
        super().__init__(base_shape, (axis,), (place,), lambda: [value_of(place)])
        self.selected = selected

    def read(self, value: Value) -> Value:
        if self.selected is not None:
            value = ops.select(value_of(self.selected), value, constant(0.0, value.type))
        return super().read(value)


def row_of(x: Selection, place: Any) -> Any:
    """The row at a position among all of them, along the one axis of a mask."""
    if not needs_guard(x):
        return x.array[(*[slice(None)] * x.lead, place)]
    array = as_tracer(x.array)
    view = RowView(array.shape, x.lead, as_tracer(place).astype("int64"), spread(x))
    return handle(array._storage, (*array._chain, view), tensor(array._type.dtype, view.shape))
