"""What is left of NumPy's protocols once the families are registered: ufunc.outer, ufunc.at, np.copyto."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.errors import TracerArrayError, UnsupportedError
from bwcompiler.frontend import (  # noqa: F401  (importing a family registers it)
    creation_functions,
    einsum,
    numpy_elementwise,
    numpy_formulas,
    numpy_indexing,
    numpy_joining,
    numpy_layout,
    numpy_linear,
    numpy_reductions,
)
from bwcompiler.frontend.numpy_elementwise import call_ufunc
from bwcompiler.frontend.numpy_indexing import getitem, scatter_add, setitem
from bwcompiler.frontend.numpy_layout import reshaped
from bwcompiler.frontend.operands import as_tracer, cast, materialise, value_as
from bwcompiler.frontend.promotion import require_cast
from bwcompiler.frontend.registry import HANDLERS, UFUNC_METHODS, implements
from bwcompiler.frontend.tracer import Tracer, assign, value_of
from bwcompiler.ir.types import BOOL
from bwcompiler.ops import elementwise as ops


def outer(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """ufunc.outer(a, b)."""
    a, b = (as_tracer(x) for x in inputs)
    return call_ufunc(ufunc, (reshaped(a, (*a.shape, *[1] * b.ndim)), b), kwargs)


def at(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """np.add.at(a, indices, b): unbuffered, repeated indices add up."""
    target, index, *rest = inputs
    name = ufunc.__name__
    if not isinstance(target, Tracer):
        raise TracerArrayError(f"np.{name}.at on a concrete array with traced operands\n  hint: make it with np.zeros_like(x)")
    if name == "subtract":
        rest = [-as_tracer(rest[0])]
    elif name != "add":
        if rest:
            raise UnsupportedError(f"np.{name}.at is not supported on traced arrays; supported: np.add.at, np.subtract.at")
        setitem(target, index, call_ufunc(ufunc, (getitem(target, index),), {}))
        return
    scatter_add(target, index, rest[0])


def refused(method: str) -> Any:
    """A ufunc method that is not supported."""
    def handler(ufunc: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise UnsupportedError(f"np.{ufunc.__name__}.{method} is not supported on traced arrays")
    return handler


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


UFUNC_METHODS.update(outer=outer, at=at, reduceat=refused("reduceat"))
HANDLERS["copyto"] = copyto
