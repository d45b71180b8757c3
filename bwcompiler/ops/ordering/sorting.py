"""Sorting, and functions of which NumPy's own inner loops are called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.declaration import Into, not_differentiable
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.routine import InnerLoop, Sort
from bwcompiler.ir.types import I32, I64, U8, DType, TensorType
from bwcompiler.ops import numpy_text
from bwcompiler.ops.broadcasting import LEADING_AXES
from bwcompiler.ops.creation import iota
from bwcompiler.ops.indexing.elements import gather, scatter_add
from bwcompiler.ops.rules import require_axes, require_same


def _argsort_shape(x: TensorType, *, axis: int, kind: str | None) -> TensorType:
    require_axes("argsort", (axis,), x.rank)
    return x.with_dtype(I64)


def _argsort_batch(operands: Sequence[Value], batched: Any, size: Extent, *, axis: int, kind: str | None) -> Value:
    return argsort(operands[0], axis=axis + 1, kind=kind)


argsort: Op = define_op(
    "argsort", "library", doc="The positions along an axis in the order that sorts the elements; nan comes last.",
    attributes=("axis", "kind"), shape=_argsort_shape, vjp=not_differentiable("a position has no derivative"),
    batch=_argsort_batch, reference=np.argsort, cheap=False, library=Sort(positions=True),
)


def _sort_shape(x: TensorType, *, axis: int, kind: str | None) -> TensorType:
    require_axes("sort", (axis,), x.rank)
    return x


def _sort_batch(operands: Sequence[Value], batched: Any, size: Extent, *, axis: int, kind: str | None) -> Value:
    return sort(operands[0], axis=axis + 1, kind=kind)


def _indices(x: Value, axis: int) -> list[Value]:
    """Index arrays, one per axis, of the elements in sorted order (a stable argsort)."""
    positions = argsort(x, axis=axis, kind="stable")
    return [positions if k == axis else iota(shape=x.shape, axis=k, dtype=I64) for k in range(x.rank)]


def sorted_by_positions(values: Value, x: Value, axis: int) -> Value:
    """The values at the places of the elements of x, in the order that sorts x."""
    return gather(values, *_indices(x, axis), axes=tuple(range(x.rank)))


def _sort_vjp(acc: Value, ct: Value, out: Value, x: Value, *, axis: int, kind: str | None) -> Value:
    return scatter_add(acc, ct, *_indices(x, axis), axes=tuple(range(x.rank)))


def _sort_jvp(tangents: Sequence[Value | None], out: Value, x: Value, *, axis: int, kind: str | None) -> Value | None:
    return None if tangents[0] is None else sorted_by_positions(tangents[0], x, axis)


sort: Op = define_op(
    "sort", "library", doc="The elements along an axis in ascending order; nan comes last.  Cotangents go back to where the elements came "
    "from, for equal ones in their order.", attributes=("axis", "kind"), shape=_sort_shape, vjp=(Into(_sort_vjp),), jvp=_sort_jvp,
    batch=_sort_batch, reference=np.sort, keeps_zero=True, cheap=False, library=Sort(positions=False),
)


def _one_type(name: str, kinds: str, result: DType | None) -> Callable[..., TensorType]:
    """The shape rule of functions of operands of one type."""
    def shape(*types: TensorType) -> TensorType:
        type_ = require_same(name, *types)
        if type_.dtype.kind not in kinds:
            raise DTypeError(f"{name} does not take {type_.dtype.numpy}")
        return type_ if result is None else type_.with_dtype(result)
    return shape


def _numpy_function(name: str, reference: Callable[..., Any], doc: str, library: InnerLoop, kinds: str = "iu",
                    result: DType | None = None, **options: Any) -> Op:
    return define_op(name, "library", doc=doc, attributes=(), shape=_one_type(name, kinds, result),
                     batch=LEADING_AXES, vjp=not_differentiable(f"{name} has no derivative"), reference=reference,
                     kinds=kinds, cheap=False, library=library, **options)


def _ufunc(name: str, types: str, **options: Any) -> InnerLoop:
    return InnerLoop((name,), types, module="numpy", **options)


gcd = _numpy_function("gcd", np.gcd, "The greatest common divisor.", _ufunc("gcd", "{}{}->{}"))
lcm = _numpy_function("lcm", np.lcm, "The least common multiple.", _ufunc("lcm", "{}{}->{}"))
bitwise_count = _numpy_function("bitwise_count", np.bitwise_count, "The number of one bits of |x|.", _ufunc("bitwise_count", "{}->B"),
                                result=U8)
integer_power = _numpy_function(
    "integer_power", np.power, "x to the power y; ValueError for a negative y.",
    _ufunc("power", "{}{}->{}", natural=(1, "Integers to negative integer powers are not allowed.")),
    ufuncs=(), numpy=numpy_text.infix("**"))
nextafter: Op = define_op(
    "nextafter", "library", doc="The next representable number after x in the direction of y; it moves with x.", attributes=(),
    shape=_one_type("nextafter", "f", None), vjp=(lambda ct, out, x, y: ct, not_differentiable("y only gives the direction")),
    jvp=lambda tangents, out, x, y: tangents[0], batch=LEADING_AXES, reference=np.nextafter, kinds="f", cheap=False,
    library=_ufunc("nextafter", "{}{}->{}"),
)
spacing = _numpy_function("spacing", np.spacing, "The distance from x to the next representable number.", _ufunc("spacing", "{}->{}"), "f")


def exponent_reference(x: Any) -> Any:
    """The exponents e of x = m 2**e with 0.5 <= |m| < 1."""
    return np.frexp(x)[1]


exponent = _numpy_function("exponent", exponent_reference, "The e of x = m 2**e with 0.5 <= |m| < 1; 0 for 0, inf and nan.",
                           _ufunc("frexp", "{}->{}i", results=lambda out, x: (None, out)), "f", I32, numpy="np.frexp({0})[1]")
