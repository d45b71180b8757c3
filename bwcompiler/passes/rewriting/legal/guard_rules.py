"""Guards of cotangents as masks: where(ct != 0 | product == product, product, 0) -> where(ct != 0, product, 0).

A cotangent's guard suppresses only nan, as a zero may be the cotangent's true value and then has a derivative that is not zero
(`passes/derivatives/cotangents.py`).  When native code is made, all derivatives are there, and the value is all that counts:

    ct = 0  =>  ct * p = 0  or  ct * p = nan  (p infinite or nan),   both of which become 0 (of any sign)

So it is not asked whether each product is a nan.  One comparison of the cotangent is left for all its products, and a choice between a
product and 0 is part of the multiplication where vectors have masks.
"""

from __future__ import annotations

from collections.abc import Sequence

from bwcompiler import ops
from bwcompiler.ir.op import Value, constant, current_record, is_constant
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.elementwise import guard_of_nan

MOST_LOOKED_AT = 32            # values of one product
MOST_CASES = 8                 # of what may be known where a guard is false
DEEPEST = 6                    # parts of parts of conditions
LINEAR = (ops.negative, ops.divide)                # in their first operand

Guards = Sequence[Value]                           # all of them false


def guarded_product(type_: TensorType, condition: Value, x: Value, y: Value) -> Value | None:
    """The choice between x and 0 by a guard alone, if x is 0 or nan wherever that is false; in derivatives."""
    record = current_record()
    guard = guard_of_nan(condition, x)
    if guard is None or record is None or record.forward is None or not _is_zero(y):
        return None
    return ops.select(guard, x, y) if all(_Zeros().among(x, case) for case in _cases(guard)) else None


def size_is_zero(type_: TensorType, x: Value, y: Value) -> Value | None:
    """abs(x) <= 0, as cotangents ask: x == 0."""
    if x.op is not ops.absolute or not _is_zero(y) or not x.operands[0].dtype.is_float:
        return None
    return ops.equal(x.operands[0], y)


def number_is_equal(type_: TensorType, x: Value, y: Value) -> Value | None:
    """The comparison of what is broadcast, which has fewer elements before."""
    if x.op is not ops.broadcast or not is_constant(y):
        return None
    [inner] = x.operands
    return ops.broadcast(ops.equal(inner, constant(y.attrs["value"], inner.type)), **x.attrs)


def _cases(guard: Value, depth: int = DEEPEST) -> list[Guards]:
    """What may be false where a guard is: one part of a conjunction, all parts of a disjunction; at least the guard itself."""
    guard = _elements(guard)
    found: list[Guards] = [[guard]]
    if depth and guard.op in (ops.bitwise_and, ops.bitwise_or):
        first, second = [_cases(part, depth - 1) for part in guard.operands]
        found = [*first, *second] if guard.op is ops.bitwise_and else [[*one, *other] for one in first for other in second]
    return found if len(found) <= MOST_CASES else [[guard]]


class _Zeros:
    """Whether values are 0, or nan, where guards are false.  Only a few operations are looked at, as sums of sums have many."""

    def __init__(self) -> None:
        self.left = MOST_LOOKED_AT

    def among(self, x: Value, guards: Guards) -> bool:
        """Whether x is."""
        x = _elements(x)
        self.left -= 1
        if _is_zero(x) or any(_asks(guard, x) for guard in guards):
            return True
        if self.left < 0:
            return False
        if x.op is ops.select:
            return any(_is_zero(_chosen(x, guard)) for guard in guards) or all(self.among(side, guards) for side in x.operands[1:])
        if x.op is ops.multiply:
            return any(self.among(factor, guards) for factor in x.operands)
        if x.op in (ops.add, ops.subtract):
            return all(self.among(term, guards) for term in x.operands)
        return x.op in LINEAR and self.among(x.operands[0], guards)


def _asks(guard: Value, x: Value) -> bool:
    """Whether a guard is false exactly where x is 0."""
    test = _elements(guard.operands[0]) if guard.op is ops.invert else guard
    if test.op is ops.broadcast and x.op is ops.broadcast and test.attrs == x.attrs:
        test, x = _elements(test.operands[0]), _elements(x.operands[0])
    return guard.op is ops.invert and test.op is ops.equal and _elements(test.operands[0]) is x and _is_zero(test.operands[1])


def _chosen(choice: Value, guard: Value) -> Value | None:
    """What is chosen where the guard is false, if that decides it."""
    condition, x, y = map(_elements, choice.operands)
    if _needs(condition, guard):
        return y
    return x if guard.op is ops.invert and _elements(guard.operands[0]) is condition else None


def _needs(condition: Value, guard: Value, depth: int = DEEPEST) -> bool:
    """Whether a condition is false wherever the guard is."""
    condition = _elements(condition)
    is_both = depth and condition.op is ops.bitwise_and
    return condition is guard or bool(is_both and any(_needs(part, guard, depth - 1) for part in condition.operands))


def _elements(value: Value) -> Value:
    """The value whose elements these are, in the same order."""
    while value.op is ops.reshape:
        [value] = value.operands
    return value


def _is_zero(value: Value | None) -> bool:
    return value is not None and is_constant(value) and value.attrs["value"] == 0
