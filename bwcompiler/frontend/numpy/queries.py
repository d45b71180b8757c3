"""NumPy functions whose answer is known while tracing: shape, ndim, size, result_type, can_cast, shares_memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.reductions import normalize_axis
from bwcompiler.frontend.tracing.operands import (
    as_tracer,
)
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.frontend.tracing.undecided_views import decide_views

NOTHING = np._NoValue


# ----- what is known while tracing
@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    return as_tracer(a).shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    return as_tracer(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    x = as_tracer(a)
    return x.size if axis is None else x.shape[normalize_axis(axis, x.ndim)]


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


@implements(np.shares_memory, np.may_share_memory)
def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    if not isinstance(a, Tracer) or not isinstance(b, Tracer):
        return False
    decide_views(a._storage)
    return a._storage is b._storage
