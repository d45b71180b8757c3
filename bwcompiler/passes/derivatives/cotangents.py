"""Cotangents with guards, which operations pass on: a zero that stands for an element that was not chosen never becomes nan.

A cotangent that came through `select` carries the condition as a guard: where it is false the cotangent is to be read as 0, whatever bits
later rules multiplied into it (0 * inf = nan).  Elementwise rules pass the guard on, and layout ops move it too.  It is settled,
`select(guard, ct, 0)`, before anything mixes elements, at accumulation, and at the outputs, unless every op since the select maps 0 to 0.
A settled cotangent is `masked`: its zeros may stand for elements that were not chosen, where a nan may be hidden.  Before a rule that does
not map 0 to 0 (that of an op before the sum, slice, loop or branch that it came through), it gets the guard `ct != 0`.  As such a zero may
also be the cotangent's true value (for a least-squares loss at its minimum), whose derivative is not zero, that guard suppresses only nan.

`masks.py` says for which values a choice may hide a nan.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.op import Op, Value, constant
from bwcompiler.ops.elementwise import without_nan
from bwcompiler.passes.derivatives.masks import COLUMNS, ROWS, TAME, hidden_lines, hides_nan, is_multiple

LINEAR_IN_BOTH = (ops.multiply, ops.divide)                       # what rules multiply a cotangent with is multiplied with it
MOVES = frozenset((ops.transpose, ops.reshape, ops.flip))         # what their rules do to a cotangent, they do to its guard
PICKS = frozenset((ops.gather, ops.order_statistics))             # some elements, and may leave out what is nan
PRODUCTS = frozenset((ops.matmul, ops.matmul_add))


class Cotangent(NamedTuple):
    """A cotangent; where `guard` (a boolean value of its shape) is false it reads as 0.

    dirty   0 may have become nan.
    hides   the guard may hide a nan, and not only what a value is by its own size.
    masked  zeros may come of such guards, which were settled.
    asked   the guard asks for zeros of a cotangent, which may be its own value: only a nan is read as 0.
    lines   ROWS, COLUMNS: zeros of guards may be all that is in these, of which factors of products may be nan (`factors_under_zeros`).
    """

    value: Value
    guard: Value | None = None
    dirty: bool = False
    hides: bool = False
    masked: bool = False
    asked: bool = False
    lines: int = 0

    @property
    def has_masked_zeros(self) -> bool:
        return self.masked or self.hides

    def settled(self) -> Value:
        """The cotangent without a guard: 0 where it is false."""
        if self.guard is None or not self.dirty:
            return self.value
        if self.asked:
            return _without_nan(self.value, self.guard)
        return ops.select(self.guard, self.value, constant(0.0, self.value.type))

    def total(self, value: Value, other: Cotangent) -> Cotangent:
        """`value`, the sum of this one and the other, both settled."""
        guard = None
        if self.guard is not None and other.guard is not None:
            guard = ops.bitwise_or(self.guard, other.guard)
        masked = self.has_masked_zeros and other.has_masked_zeros
        return Cotangent(value, guard, False, masked and guard is not None, masked and (guard is None or self.masked or other.masked),
                         self.asked or other.asked, self.lines | other.lines)

    def of_side(self, choice: Value, number: int) -> Cotangent:
        """That of operand `number` (1 or 2) of the `choice` whose cotangent this is."""
        condition, operand = choice.operands[0], choice.operands[number]
        guard = condition if number == 1 else ops.invert(condition)
        zero = constant(0.0, self.value.type)
        side = ops.select(condition, self.value, zero) if number == 1 else ops.select(condition, zero, self.value)
        if self.guard is not None:
            guard = ops.bitwise_and(guard, self.guard)
        return Cotangent(side, guard, self.dirty, self.hides or hides_nan(condition, operand), self.masked, self.asked,
                         self.lines | hidden_lines(condition))

    def before_rule_by_elements(self, value: Value, wild: Container[Value]) -> Cotangent:
        """The cotangent of `value` with what its op's rules, which do not mix elements, must not make a nan of."""
        if not self.masked or value.op.keeps_zero or is_multiple(value):
            return self
        if value.op in TAME and not any(operand in wild for operand in value.operands):
            return self
        alive = ops.invert(_is_zero(self.value))
        return Cotangent(self.value, alive if self.guard is None else ops.bitwise_and(self.guard, alive), self.dirty, True, asked=True,
                         lines=self.lines)

    def before_rule_that_mixes(self, op: Op) -> Cotangent:
        """What rules of `op` get that mix elements, and so take no guard."""
        return Cotangent(self.settled(), masked=self.has_masked_zeros and op.keeps_zero, lines=self.lines)

    def of_operand(self, value: Value, found: Value, guard: Value | None) -> Cotangent:
        """`found`, which a rule of the op of `value` made of this one for an operand; guard: this one's, moved as the elements are."""
        if guard is None:
            return Cotangent(found, masked=self.masked, lines=_moved(value, self.lines))
        keeps_zero = value.op.keeps_zero or is_multiple(value)
        return Cotangent(found, guard, self.dirty or not keeps_zero, self.hides, self.masked, self.asked,
                         _moved(value, self.lines))


def under_zeros(ct: Value, found: Value, axes: Sequence[int]) -> Value:
    """`found`, the cotangent of what was reduced along axes to what has the cotangent ct, with 0 instead of nan where ct is 0."""
    kept = tuple([k for k in range(found.rank) if k not in axes])
    return _without_nan(found, ops.broadcast(ops.invert(_is_zero(ct)), shape=found.shape, axes=kept))


def _moved(value: Value, lines: int) -> int:
    """Lines of the operand of a value: rows may be columns of what is transposed, or neither."""
    return ROWS | COLUMNS if lines and value.op in MOVES else lines


def factors_under_zeros(ct: Value, lines: int, x: Value, y: Value, wild: Container[Value]) -> tuple[Value, Value]:
    """The factors of `x @ y`, whose cotangent is ct, as its rules get them: with 0 instead of nan and inf in rows of x, and columns of y,
    for which there is nothing but zeros in ct."""
    kept, alive = tuple(range(x.rank - 2)), ops.invert(_is_zero(ct))
    if x in wild and lines & ROWS:
        rows = ops.any(alive, axes=(x.rank - 1,))
        x = _finite_in(x, ops.broadcast(rows, shape=x.shape, axes=(*kept, x.rank - 2)))
    if y in wild and lines & COLUMNS:
        columns = ops.any(alive, axes=(y.rank - 2,))
        y = _finite_in(y, ops.broadcast(columns, shape=y.shape, axes=(*kept, y.rank - 1)))
    return x, y


def _finite_in(x: Value, alive: Value) -> Value:
    """x with 0 instead of nan and inf where nothing is alive: what is finite stays, as in a second derivative it is what remains."""
    return ops.select(ops.bitwise_or(alive, ops.isfinite(x)), x, constant(0.0, x.type))


def _without_nan(value: Value, guard: Value) -> Value:
    """The value with 0 in the place of a nan where the guard is false; a negative one as the negative of that, which the other operand of a
    difference gets."""
    return -_without_nan(value.operands[0], guard) if value.op is ops.negative else without_nan(value, guard)


def asked_for_zeros(body: Sequence[Value]) -> set[Value]:
    """The cotangents in a graph that is differentiated again whose zeros are asked for, as they may be masked, and multiples of them."""
    tests = [value.operands[0] for value in body if value.op is ops.less_equal and value.operands[0].op is ops.absolute]
    found = {part.operands[0] if part.op in (ops.real, ops.imag) else part for part in (test.operands[0] for test in tests)}
    for value in body if found else ():
        if value.op in LINEAR_IN_BOTH and any(operand in found for operand in value.operands[:1 if value.op is ops.divide else 2]):
            found.add(value)
    return found


def _is_zero(x: Value) -> Value:
    """Whether x is 0, asked by size: not as a choice that leaves out one number (`masks.hides_nan`)."""
    if x.dtype.is_complex:
        return ops.bitwise_and(_is_zero(ops.real(x)), _is_zero(ops.imag(x)))
    return ops.less_equal(ops.absolute(x), constant(0.0, x.type))
