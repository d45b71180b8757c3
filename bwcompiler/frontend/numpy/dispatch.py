"""Imports the families, which registers them; and np.copyto."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import TracerArrayError
from bwcompiler.frontend.numpy import (  # noqa: F401  (importing a family registers it)
    calculus,
    comparisons,
    complex_parts,
    creation,
    decompositions,
    diagonals,
    einsum,
    elementwise,
    indexing,
    joining,
    layout,
    linear,
    nan,
    padding,
    queries,
    reductions,
    rounding,
    selection,
    sorting,
    statistics,
    ufunc_methods,
)
from bwcompiler.frontend.tracing.operands import cast, materialise, value_as
from bwcompiler.frontend.tracing.promotion import require_cast
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.tracer import Tracer, assign, value_of
from bwcompiler.ir.types import BOOL


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, Tracer):
        raise TracerArrayError("a traced value is copied into a concrete array (np.copyto, np.full_like(A, x))\n"
                               "  hint: np.full_like(x, ...) or np.zeros_like(x) with a traced x, np.broadcast_to, "
                               "or bwcompiler.numpy.full")
    value = value_as(src)
    if not (isinstance(src, bool | int | float) or where is not True):
        require_cast(value.dtype, dst._type.dtype, casting, "np.copyto")
    value = materialise(cast(value, dst._type.dtype), dst._type.dtype, dst.shape)
    if where is not True:
        mask = materialise(value_as(where, BOOL), BOOL, dst.shape)
        value = ops.select(mask, value, value_of(dst))
    assign(dst, value)


HANDLERS["copyto"] = copyto
