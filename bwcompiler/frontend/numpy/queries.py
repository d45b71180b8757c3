"""NumPy functions whose result is known while tracing: shape, ndim, size, result_type, common_type, can_cast, shares_memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.numpy.axes import normalize_axes
from bwcompiler.frontend.tracing.indexing.index_handle import shape_as_numbers
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.storages.shapes import c_strides
from bwcompiler.frontend.tracing.storages.undecided_views import decide_views
from bwcompiler.frontend.tracing.storages.views import PickedView
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.graph import cut
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.types import I64

NOTHING = np._NoValue


# ----- what is known while tracing
@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return shape_as_numbers(as_tracer(a)._type.shape)


@implements(np.ndim)
def ndim(a: Any) -> int:
    return as_tracer(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    x = as_tracer(a)
    extents = shape(x)
    return math.prod(extents if axis is None else [extents[one] for one in normalize_axes(axis, x.ndim)])


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    return np.result_type(*[_promotion_sample(item) for item in arrays_and_dtypes])


def _promotion_sample(item: Any) -> Any:
    if isinstance(item, Tracer):
        return item._kind(0) if isinstance(item._kind, type) else item.dtype
    return item


@implements(np.can_cast)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return bool(np.can_cast(_promotion_sample(from_), to, casting))


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    return np.common_type(*[np.empty(0, item.dtype) if isinstance(item, Tracer) else item for item in arrays])


@implements(np.min_scalar_type)
def min_scalar_type(a: Any, /) -> np.dtype[Any]:
    if not a.ndim:
        raise UnsupportedError("np.min_scalar_type of a traced number: which dtype holds it depends on its value\n  hint: x.dtype")
    return a.dtype  # type: ignore[no-any-return]


@implements(np.shares_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    if not _of_one_storage(a, b):
        return False
    return bool(np.intersect1d(_elements(a), _elements(b)).size)


@implements(np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: Any = 0) -> bool:
    """Whether the memory ranges from first to last element overlap (NumPy's default)."""
    if max_work != 0:
        return shares_memory(a, b)
    if not _of_one_storage(a, b) or 0 in (a.size, b.size):
        return False
    shape = a._storage.type.shape
    strides = a._storage.layout.strides() or c_strides(shape)
    first, second = (sum(places * step for places, step in zip(np.unravel_index(_elements(x), shape), strides, strict=True)) + np.int64(0)
                     for x in (a, b))
    return bool(first.min() <= second.max() and second.min() <= first.max())


def _of_one_storage(a: Any, b: Any) -> bool:
    if not isinstance(a, Tracer) or not isinstance(b, Tracer):
        return False
    decide_views(a._storage)
    return a._storage is b._storage


def _elements(x: Tracer) -> np.ndarray[Any, Any]:
    """The positions in its storage of the elements of a view: the view of their list."""
    shape = x._storage.type.shape
    if any(isinstance(step, PickedView) for step in x._chain):
        raise UnsupportedError("whether arrays share memory depends on a traced index, which is not known while tracing")
    numbers = ops.reshape(ops.iota(shape=(math.prod(shape),), axis=0, dtype=I64), shape=shape)
    for step in x._chain:
        numbers = step.read(numbers)
    return np.asarray(interpret(cut("elements", (), open_region().record.values, (numbers,)), [])[0])
