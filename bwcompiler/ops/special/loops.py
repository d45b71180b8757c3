"""`special_function`: any ufunc of scipy.special on floats and complex numbers, by its own inner loop, without Python.

Derivatives are in `derivatives`; where none is known, differentiating raises an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError, GradientError
from bwcompiler.ir.declaration import Joint
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.routine import InnerLoop
from bwcompiler.ir.types import F64, I64, TensorType, component_of
from bwcompiler.ops.broadcasting import LEADING_AXES, broadcast
from bwcompiler.ops.elementwise import bitwise_and, cast, equal, full_like, invert, isfinite, select
from bwcompiler.ops.layout import concatenate, reshape, slice_
from bwcompiler.ops.rules import require_same

MODULE = "scipy.special._ufuncs"          # where all of them are, those without a public name too


def scipy_special(*arrays: Any, name: str, results: int) -> Any:
    """The ufunc of that name; several results along a new last axis."""
    import scipy.special

    ufunc = getattr(scipy.special, name, None) or getattr(scipy.special._ufuncs, name)
    with np.errstate(all="ignore"):
        found = ufunc(*arrays)
    return np.stack(found, -1) if results > 1 else np.asarray(found)


def _shape(*types: TensorType, name: str, results: int) -> TensorType:
    *parameters, type_ = types
    if type_.dtype is F64:                                       # the degrees of polynomials may be integers
        parameters = [one.with_dtype(F64) if one.dtype is I64 else one for one in parameters]
    if type_.dtype.is_complex:                                   # parameters may be real
        parameters = [one.with_dtype(type_.dtype) if one.dtype is component_of(type_.dtype) else one for one in parameters]
    require_same(name, *parameters, type_)
    if type_.dtype.kind not in "fc" or component_of(type_.dtype).itemsize not in (4, 8):
        raise DTypeError(f"{name} does not take {type_.dtype.numpy}")
    return type_ if results == 1 else type_.with_shape((*type_.shape, results))


def part(x: Value, number: int, results: int) -> Value:
    """One of several results."""
    if results == 1:
        return x
    found = slice_(x, starts=(0,) * (x.rank - 1) + (number,), sizes=(*x.shape[:-1], 1), steps=(1,) * x.rank)
    return reshape(found, shape=x.shape[:-1])


def _loop_results(out: Value, *xs: Value, name: str, results: int) -> tuple[Value, ...]:
    return tuple([part(out, k, results) for k in range(results)])


Rule = Callable[..., Any]

# name -> one rule(out, *xs) per operand, which gives the partial derivative (a tuple of them, one per result), or None if it is not
# known; filled by `known`.
PARTIAL_DERIVATIVES: dict[str, tuple[Any, ...]] = {}
COMPLEX_DERIVATIVES: dict[str, tuple[Any, ...]] = {}             # the same of complex numbers, filled by `complex_derivatives`


def _partials(name: str, results: int, operand: int, out: Value, xs: Sequence[Value]) -> tuple[Value, ...]:
    complex_ = xs[-1].dtype.is_complex
    rules = (COMPLEX_DERIVATIVES if complex_ else PARTIAL_DERIVATIVES).get(name, ())
    rule = rules[operand] if operand < len(rules) else None
    if rule is None:
        known = [str(k) for k, one in enumerate(rules) if one is not None]
        where = f"; it is known by argument {' and '.join(known)} only" if known else ""
        of = " of complex numbers" if complex_ else ""
        raise GradientError(f"the derivative of scipy.special.{name}{of} by its argument {operand} is not known{where}\n"
                            "  hint: bw.stop_gradient of that argument, or a custom rule (bw.custom_jvp, bw.custom_vjp)")
    parts = out if results == 1 else [part(out, k, results) for k in range(results)]
    found = rule(parts, *xs)
    return (found,) if results == 1 else tuple(found)


def _without_unknown(ct: Value, partial: Value) -> Value:
    """ct times the partial derivative, but 0 for results that were not used and have none there: they do not spoil the others."""
    unused = bitwise_and(equal(ct, full_like(ct, 0.0)), invert(isfinite(partial)))
    return ct * select(unused, full_like(partial, 0.0), partial)


def _vjp(ct: Value, out: Value, xs: Sequence[Value], needs: Sequence[bool], *, name: str, results: int) -> tuple[Value | None, ...]:
    found: list[Value | None] = []
    for operand, needed in enumerate(needs):
        total = None
        for k, partial in enumerate(_partials(name, results, operand, out, xs) if needed else ()):
            term = _without_unknown(part(ct, k, results), partial) if results > 1 else ct * partial
            total = term if total is None else total + term
        found.append(total)
    return tuple(found)


def _jvp(tangents: Sequence[Value | None], out: Value, *xs: Value, name: str, results: int) -> Value | None:
    totals: list[Value | None] = [None] * results
    for operand, tangent in enumerate(tangents):
        if tangent is None:
            continue
        for k, partial in enumerate(_partials(name, results, operand, out, xs)):
            before = totals[k]
            term = partial * tangent
            totals[k] = term if before is None else before + term
    moved = [total for total in totals if total is not None]
    if not moved or results == 1:
        return moved[0] if moved else None
    rank = moved[0].rank
    columns = [broadcast(total, shape=(*total.shape, 1), axes=tuple(range(rank))) for total in moved]
    return concatenate(*columns, axis=rank)


special_function: Op = define_op(
    "special_function", "library", doc="The function of scipy.special of that name; several results lie along a new last axis.",
    attributes=("name", "results"), shape=_shape, vjp=Joint(_vjp, elementwise=True), jvp=_jvp, batch=LEADING_AXES,
    reference=scipy_special, kinds="ifc", cheap=False,
    library=InnerLoop((), "", module=MODULE, choose=lambda name, results: name, results=_loop_results),
)


def function(name: str) -> Callable[..., Value]:
    """A function of scipy.special with one result."""
    def apply(*xs: Value) -> Value:
        return special_function(*xs, name=name, results=1)
    return apply


def known(name: str, *rules: Rule | None, of_integers: bool = False) -> None:
    """Say the partial derivatives of a function, one rule for each operand; of_integers: the rules take integers as they are."""
    PARTIAL_DERIVATIVES[name] = rules if of_integers else tuple([None if rule is None else _of_floats(rule) for rule in rules])


def _of_floats(rule: Rule) -> Rule:
    return lambda out, *xs: rule(out, *[cast(x, dtype=F64) if x.dtype is I64 else x for x in xs])
