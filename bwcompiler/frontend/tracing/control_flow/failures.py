"""Whether a traced body fails, and how: for ops that raise for some operands, a number computed by the program.

A body is recorded as if nothing in it failed.  `failures` computes what decides about failures, without ops that raise: where an op fails,
its operands are replaced by some for which no op fails.  The number of the first failure, 0 as long as there is none, is passed through
the body, and carried by its loops and branches; a loop whose end is data ends with the iteration in which something fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, cut, inline
from bwcompiler.ir.op import Op, Record, Value, constant, input_value
from bwcompiler.ir.types import BOOL, I64, TupleType, tensor
from bwcompiler.ops.linalg.solves import identity_like


class Failure(NamedTuple):
    """That something raises: where `where` holds, and nothing before it has failed.  checked: a `raise` of the user's does."""

    where: Value
    error: BaseException
    checked: bool


class UnknownFailureError(Exception):
    """Something fails where nobody can ask whether it does."""


def errors(values: Sequence[Value]) -> list[BaseException]:
    """What recorded values raise for some operands, as far as that can be found out without failing; those in loops and branches too."""
    found = []
    for value in values:
        error = error_of(value)
        if error is not None:
            found.append(error)
        else:
            for name in value.op.regions:
                found += errors(value.attrs[name].body)
    return found


def failing(values: Sequence[Value]) -> list[Value]:
    """Of recorded values those that fail for some operands by themselves."""
    return [value for value in values if error_of(value) is not None]


def results(values: Sequence[Value]) -> list[Value]:
    """Outputs of a body that keep all that fails in it."""
    return [ops.item(value, index=0) if isinstance(value.type, TupleType) else value for value in values if errors([value])]


def error_of(value: Value) -> BaseException | None:
    """What a value raises for some operands; None where it never does, or only in an iteration or branch inside."""
    if value.op in _FAILING:
        return np.linalg.LinAlgError(value.op.library.failure)  # type: ignore[union-attr]
    if value.op is ops.normalize_index and value.attrs["extent"] != 0:
        return IndexError("index out of range")
    return _checked_error(value)


def _checked_error(value: Value) -> BaseException | None:
    """What a `raise` of the user's raises in a side of a branch that does nothing else."""
    if value.op is not ops.cond:
        return None
    return next((one.attrs["host"].raises for one in value.attrs["then_branch"].body
                 if one.op is ops.callback and one.attrs["host"].raises is not None), None)


def failures(graph: Graph, operands: Sequence[Value]) -> list[Failure]:
    """What a body fails for, in the current record, in the order of its ops; raises UnknownFailureError.  Its outputs are what fails."""
    run = _Run(_number(0), [])
    run.inlined(graph, operands)
    return [Failure(ops.equal(run.first, _number(place + 1)), error, checked) for place, (error, checked) in enumerate(run.kinds)]


def _number(number: int) -> Value:
    return constant(number, tensor(I64))


class _Run:
    """A body that is recorded again, with the number of what fails first; kinds: what the numbers from 1 on stand for."""

    def __init__(self, first: Value, kinds: list[tuple[BaseException, bool]]) -> None:
        self.first = first
        self.kinds = kinds

    def inlined(self, graph: Graph, operands: Sequence[Value]) -> list[Value]:
        return inline(graph, operands, self._again)

    def _again(self, record: Record, value: Value, given: tuple[Value, ...]) -> Value:
        error = error_of(value)
        if error is None:
            return self._with_regions(value, given) if errors([value]) else record.emit(value.op, given, value.attrs, value.type)
        where, harmless = _FAILING.get(value.op, _of_index if value.op is ops.normalize_index else _of_check)(value, given[0])
        self.kinds.append((error, value.op is ops.cond))
        is_first = ops.bitwise_and(where, ops.equal(self.first, _number(0)))
        self.first = ops.select(is_first, _number(len(self.kinds)), self.first)
        shape = harmless.shape
        fails = where if not shape else ops.broadcast(where, shape=shape, axes=())
        return record.emit(value.op, (ops.select(fails, harmless, given[0]), *given[1:]), value.attrs, value.type)

    def _with_regions(self, value: Value, given: tuple[Value, ...]) -> Value:
        """A loop or branch that gives the number, too, behind all else that it gives."""
        if value.op is ops.cond:
            sides = [self._region(value.attrs[name], len(given) - 1) for name in value.op.regions]
            made = ops.cond(*given, self.first, then_branch=sides[0], else_branch=sides[1])
        elif value.op is ops.loop:
            carried, attrs = value.attrs["carried"], {name: value.attrs[name] for name in ("lo", "hi", "step")}
            made = ops.loop(*given[:carried], self.first, *given[carried:], **attrs, carried=carried + 1,
                            body=self._region(value.attrs["body"], carried))
        elif value.op is ops.while_loop and not errors(value.attrs["condition"].body):
            carried = value.attrs["carried"]
            made = ops.while_loop(*given[:carried], self.first, *given[carried:], carried=carried + 1,
                                  condition=self._region(value.attrs["condition"], carried, is_condition=True),
                                  body=self._region(value.attrs["body"], carried))
        else:
            raise UnknownFailureError
        self.first = ops.item(made, index=len(made.type.items) - 1)
        return made

    def _region(self, graph: Graph, place: int, is_condition: bool = False) -> Graph:
        """A region with the number as input `place` and as its last output; a condition that does not hold where something has failed."""
        first = input_value(tensor(I64))
        inside = _Run(first, self.kinds)
        inputs = [input_value(one.type, one.name) for one in graph.inputs]
        with Record() as record:
            outputs = inside.inlined(graph, inputs)
            if is_condition:
                outputs = [ops.bitwise_and(outputs[0], ops.equal(first, _number(0)))]
            else:
                outputs = [*outputs, inside.first]
        return cut(graph.name, [*inputs[:place], first, *inputs[place:]], record.values, outputs, index=graph.index)


def _not(x: Value) -> Value:
    return ops.equal(x, constant(False, x.type))


def _any(x: Value) -> Value:
    return ops.any(x, axes=tuple(range(x.rank))) if x.rank else x


def _element(x: Value, row: int, column: int) -> Value:
    """x[..., row, column]."""
    lead = x.shape[:-2]
    part = ops.slice(x, starts=(*(0 for _ in lead), row, column), sizes=(*lead, 1, 1), steps=(1,) * x.rank)
    return ops.reshape(part, shape=lead)


_Rule = Callable[[Value, Value], tuple[Value, Value]]           # an op and its first operand -> whether it fails, a harmless operand


def _indefinite(value: Value, a: Value) -> tuple[Value, Value]:
    """LAPACK's failure fills the upper triangle with nan, too; the only element of a matrix is nan as well where it was."""
    n = a.shape[-1]
    if not n:
        return constant(False, tensor(BOOL)), a
    fails = ops.isnan(_element(ops.cholesky_or_nan(a), 0, n - 1))
    if n == 1:
        fails = ops.bitwise_and(fails, _not(ops.isnan(_element(a, 0, 0))))
    return _any(fails), identity_like(a)


def _singular(value: Value, a: Value) -> tuple[Value, Value]:
    """Where elimination meets a pivot that is 0, the determinant is 0 and its logarithm -inf."""
    packed = ops.slogdet(a)
    sign = ops.slice(packed, starts=(0,) * packed.rank, sizes=(*packed.shape[:-1], 1), steps=(1,) * packed.rank)
    return _any(ops.equal(sign, ops.full(value=0.0, shape=sign.shape, dtype=sign.dtype))), identity_like(a)


def _zero_on_diagonal(value: Value, a: Value) -> tuple[Value, Value]:
    row, column = (ops.iota(shape=a.shape, axis=a.rank - k, dtype=I64) for k in (2, 1))
    zero = ops.equal(a, ops.full(value=0.0, shape=a.shape, dtype=a.dtype))
    return _any(ops.bitwise_and(ops.equal(row, column), zero)), identity_like(a)


def _of_index(value: Value, index: Value) -> tuple[Value, Value]:
    extent = value.attrs["extent"]
    if not isinstance(extent, int):
        raise UnknownFailureError
    first, last = (ops.full(value=bound, shape=index.shape, dtype=I64) for bound in (-extent, extent - 1))
    outside = ops.bitwise_or(ops.less(index, first), ops.greater(index, last))
    return _any(outside), ops.full(value=0, shape=index.shape, dtype=I64)


def _of_check(value: Value, test: Value) -> tuple[Value, Value]:
    return test, constant(False, tensor(BOOL))


_FAILING: dict[Op, _Rule] = {
    ops.cholesky: _indefinite, ops.solve: _singular, ops.inv: _singular, ops.triangular_solve: _zero_on_diagonal,
}
