"""np.matmul, vecdot, matvec and vecmat, the ufuncs of vectors and matrices, with their keywords: axes, dtype, out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import delivered
from bwcompiler.frontend.numpy.linalg.linear import conjugated_first, matmul_values, pair, vecdot
from bwcompiler.frontend.numpy.manipulation.layout import moveaxis
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer, operand, reshape
from bwcompiler.frontend.tracing.promotion import asked, requested, require_cast, strong
from bwcompiler.frontend.tracing.registry import HANDLERS, implements
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value

Product = Callable[[Value, Value], Value]
CORE = {"matmul": (2, 2, 2), "vecdot": (1, 1, 0), "matvec": (2, 1, 1), "vecmat": (1, 2, 1)}         # axes of vectors and matrices


def _generalised(name: str, product: Product) -> Callable[..., Any]:
    def function(x1: Any, x2: Any, /, out: Any = None, *, axes: Any = None, axis: Any = None, keepdims: Any = False, dtype: Any = None,
                 casting: Any = "same_kind", order: Any = "K", subok: Any = True, **others: Any) -> Any:
        for key, value in others.items():
            raise UnsupportedError(f"np.{name}: keyword {key}={value!r} is not supported on traced arrays")
        if dtype is not None:
            for kind in (operand(x1)[1], operand(x2)[1]):
                require_cast(strong(kind), asked(dtype), casting, f"np.{name}")
        x, y = pair(x1, x2, requested(dtype))
        if axes is None and axis is None and not keepdims:
            return delivered(name, product(x, y), out)
        counts = _core(name, x.rank, y.rank)
        if (axis is not None or keepdims) and CORE[name] != (1, 1, 0):
            raise TypeError(f"{name}: axis= and keepdims= can only be used with a single shared core dimension, not with {name}")
        first, second, last = _places(name, counts, axes if axis is None else [axis, axis, axis if keepdims else ()], keepdims)
        moved = [value_of(moveaxis(fresh(one), place, range(-len(place), 0))) for one, place in ((x, first), (y, second))]
        found: Any = fresh(product(*moved))
        found = np.expand_dims(found, last[0]) if keepdims else moveaxis(found, range(-len(last), 0), last)
        return delivered(name, value_of(as_tracer(found)), out, casting)
    return function


def _core(name: str, left: int, right: int) -> tuple[int, int, int]:
    """The numbers of core axes of the operands and of the result."""
    if name != "matmul":
        return CORE[name]
    first, second = min(left, 2), min(right, 2)
    return first, second, first + second - 2


def _places(name: str, counts: tuple[int, int, int], axes: Any, keepdims: Any) -> list[tuple[int, ...]]:
    """`axes=` as in NumPy: an entry for each operand and the result; that of the result may be omitted if it has no core axes."""
    counts = (*counts[:2], 1) if keepdims else counts
    if axes is None:
        return [tuple(range(-count, 0)) for count in counts]
    if not isinstance(axes, list):
        raise TypeError("axes should be a list.")
    places = [one if isinstance(one, tuple) else (one,) for one in axes]
    if len(places) == 2 and not CORE[name][2]:
        places.append((-1,) if keepdims else ())
    if len(places) != 3:
        raise ValueError("axes should be a list with an entry for all inputs and outputs; entries for outputs can only be omitted "
                         "if none of them has core axes.")
    for number, (place, count) in enumerate(zip(places, counts, strict=True)):
        if len(place) != count:
            raise np.exceptions.AxisError(f"{name}: operand {number} has {count} core dimensions, but {len(place)} are specified by axes")
    return places


def _with_vectors(name: str, left: bool, right: bool) -> Product:
    """Matrix products with a stack of vectors as an operand."""
    def product(x: Value, y: Value) -> Value:
        x, y = conjugated_first((x, y)) if left else (x, y)
        if x.rank < (1 if left else 2) or y.rank < (1 if right else 2):
            raise ShapeError(f"np.{name}: expected a matrix and a vector, got shapes {x.shape} and {y.shape}")
        x = reshape(x, (*x.shape[:-1], 1, x.shape[-1])) if left else x
        y = reshape(y, (*y.shape, 1)) if right else y
        found = matmul_values(x, y)
        return reshape(found, found.shape[:-1] if right else (*found.shape[:-2], found.shape[-1]))
    return product


matmul = implements(np.matmul)(_generalised("matmul", matmul_values))

HANDLERS.update(vecdot=_generalised("vecdot", lambda x, y: value_of(vecdot(fresh(x), fresh(y)))),
                matvec=_generalised("matvec", _with_vectors("matvec", False, True)),
                vecmat=_generalised("vecmat", _with_vectors("vecmat", True, False)))
