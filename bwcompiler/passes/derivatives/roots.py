"""Square roots at 0, where their derivative is infinite, in what is smooth there: `r = np.sqrt(x @ x)`, then `np.exp(-r ** 2)`.

The cotangent of r is a multiple of r then, and that of what the root was taken of is the cotangent divided by 2 r: 0 / 0, if it were
computed so.  Therefore the factor r is left out of the cotangent instead, and likewise out of tangents.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.op import Value, constant

DEPTH = 12             # of what is looked at
_PARTS = {ops.negative: (0,), ops.divide: (0,), ops.multiply: (0, 1), ops.add: (0, 1), ops.subtract: (0, 1), ops.select: (1, 2)}


def cotangent_under(root: Value, cotangent: Value) -> Value | None:
    """The cotangent of x, given that of root = sqrt(x); None where that has no such factor."""
    multiples = _Multiples(root)
    kind = NO if root.dtype.is_complex else multiples.kind(cotangent)
    if kind == NO or (kind == CHOSEN and cotangent.op is ops.select):      # whose guard does the same
        return None
    return ops.multiply(multiples.divided(cotangent), constant(0.5, root.type))


def tangent_of_terms(tangent: Value) -> Value:
    """A tangent, without a root that one of its factors is divided by and another one is a multiple of."""
    if tangent.op is not ops.multiply:
        return tangent
    for number in (0, 1):
        factor, other = tangent.operands[number], tangent.operands[1 - number]
        if factor.op is ops.add and any(_quotient(term) is not None for term in factor.operands):
            return ops.add(*[tangent_of_terms(ops.multiply(term, other)) for term in factor.operands])
        apart = _quotient(factor)
        if apart is not None:
            multiples = _Multiples(apart[1])
            if multiples.kind(other) == YES:
                return ops.multiply(apart[0], multiples.divided(other))
    return tangent


NO, CHOSEN, YES = range(3)


class _Multiples:
    """Values that are multiples of a root, as far as can be seen, and what they are multiples by."""

    def __init__(self, root: Value) -> None:
        self.root = root
        self.known: dict[Value, int] = {}

    def kind(self, value: Value, depth: int = DEPTH) -> int:
        """Whether the root is a factor of all terms of a value; CHOSEN: except for those in the place of which others are 0."""
        if value is self.root or _is_zero(value):
            return YES
        if value not in self.known:
            self.known[value] = self._kind(value, depth - 1) if depth else NO
        return self.known[value]

    def _kind(self, value: Value, depth: int) -> int:
        if value.op is ops.power:
            base, exponent = value.operands
            return YES if base is self.root and exponent.op is ops.full and exponent.attrs["value"] >= 1 else NO
        if value.op not in _PARTS:
            return NO
        parts = [value.operands[number] for number in _PARTS[value.op]]
        kinds = [self.kind(part, depth) for part in parts]
        if value.op is ops.select and any(map(_is_zero, parts)):
            return max(min(kinds), CHOSEN)
        return max(kinds) if value.op is ops.multiply else min(kinds)

    def divided(self, value: Value) -> Value:
        """value / root, made in the current record."""
        if value is self.root:
            return constant(1.0, value.type)
        if _is_zero(value):
            return value
        if self.kind(value) == NO:                 # it is chosen where the root is not 0
            return ops.divide(value, self.root)
        if value.op is ops.power:
            exponent = value.operands[1]
            return ops.power(self.root, constant(exponent.attrs["value"] - 1.0, exponent.type))
        operands, parts = list(value.operands), _PARTS[value.op]
        if value.op is ops.multiply:
            parts = (max(parts, key=lambda number: self.kind(operands[number])),)
        for number in parts:
            operands[number] = self.divided(operands[number])
        return value.op(*operands)


def _is_zero(value: Value) -> bool:
    return value.op is ops.full and bool(value.attrs["value"] == 0)


def _quotient(value: Value, depth: int = DEPTH) -> tuple[Value, Value] | None:
    """What is divided by a root, and the root, where the value is a multiple of such a quotient."""
    if not depth or value.op not in (ops.divide, ops.multiply, ops.negative):
        return None
    if value.op is ops.divide and value.operands[1].op is ops.sqrt:
        return value.operands[0], value.operands[1]
    for number, operand in enumerate(value.operands[:1] if value.op is ops.divide else value.operands):
        found = _quotient(operand, depth - 1)
        if found is not None:
            return value.op(*value.operands[:number], found[0], *value.operands[number + 1:]), found[1]
    return None
