"""Power series in the places of quotients that are 0/0 at 0: near it no digits are lost, and all derivatives are those of the limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bwcompiler.ir.op import Value
from bwcompiler.ops.elementwise import full_like, less, select


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Σ cₖ xᵏ."""
    found = full_like(x, 0.0)
    for coefficient in reversed(coefficients):
        found = found * x + coefficient
    return found


def with_series(x: Value, coefficients: Sequence[float], otherwise: Callable[[Value], Value], reach: float = 0.05) -> Value:
    """Σ cₖ xᵏ where |x| < reach, otherwise(x) elsewhere; near 0 that sees another number."""
    near = less(x * x, full_like(x, reach * reach))
    return select(near, polynomial(select(near, x, full_like(x, 0.0)), coefficients), otherwise(select(near, full_like(x, 0.5), x)))
