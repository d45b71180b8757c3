"""Imports the families, which registers them; and np.copyto."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import TracerArrayError
from bwcompiler.frontend.numpy import bits, calculus, fourier, polynomials, queries, statistics, ufunc_methods  # noqa: F401
from bwcompiler.frontend.numpy.elementwise import complex_parts, rounding, special, special_by_loop, ufunc_calls, ufuncs  # noqa: F401
from bwcompiler.frontend.numpy.linalg import decompositions, diagonals, einsum, generalised  # noqa: F401
from bwcompiler.frontend.numpy.manipulation import (  # noqa: F401
    creation,
    flat_positions,
    indexing,
    insertion,
    joining,
    layout,
    padding,
    pieces,
    selection,
)
from bwcompiler.frontend.numpy.manipulation.indexing import fitted
from bwcompiler.frontend.numpy.reductions import comparisons, nan, quantiles, reductions, searching, sorting  # noqa: F401
from bwcompiler.frontend.numpy.selected import assumed, elementwise, fitting, grids, ordering, products, reducing, sets  # noqa: F401
from bwcompiler.frontend.numpy.selected.indexing import accumulating, items, positions  # noqa: F401
from bwcompiler.frontend.tracing.handles import assign, value_of
from bwcompiler.frontend.tracing.operands import mask_as, materialise, operand
from bwcompiler.frontend.tracing.promotion import require_cast, strong
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.types import BOOL


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, Tracer):
        raise TracerArrayError("a traced value cannot be copied into a concrete array (np.copyto, np.full_like(A, x))\n"
                               "  hint: np.full_like(x, ...) or np.zeros_like(x) with a traced x, np.broadcast_to, "
                               "or bwcompiler.numpy.full")
    payload, kind = operand(src)
    target = dst._type.dtype
    if not (kind is int and target is not BOOL):                            # Python integers only have to fit
        require_cast(strong(kind), target, casting, "np.copyto")
    value = fitted(payload, dst, dst.shape)
    if where is not True:
        value = ops.select(materialise(mask_as(where, "copyto"), BOOL, dst.shape), value, value_of(dst))
    assign(dst, value)


