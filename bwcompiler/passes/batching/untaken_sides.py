"""In a batch, an element's untaken work is computed with the others: the other side of its branch, and iterations after its last one.
If that may fail, it gets operands that cannot fail for the elements for which it does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bwcompiler import ops
from bwcompiler.ir.graph import Graph, cut, inline
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.types import BOOL, I64, TensorType, tensor
from bwcompiler.ops.rules import zero_of


def may_fail(graph: Graph) -> bool:
    """Whether something in a region raises for some operands."""
    return any(_failing_operand(value) is not None or any(may_fail(region) for region in _regions(value).values()) for value in graph.body)


def guarded(graph: Graph) -> Graph:
    """The region with one more input, the last: whether what it computes counts.  Where it does not, nothing in it raises."""
    inputs = [input_value(value.type, value.name, value.source) for value in graph.inputs]
    taken = input_value(tensor(BOOL), "taken")
    record = Record()
    with record:
        outputs = inline(graph, inputs, lambda _, value, operands: _kept_from_failing(value, operands, taken))
    return cut(graph.name, [*inputs, taken], record.values, outputs, index=graph.index)


def _kept_from_failing(value: Value, operands: tuple[Value, ...], taken: Value) -> Value:
    """The value, in the current record."""
    regions = _regions(value)
    made: Value
    if any(may_fail(region) for region in regions.values()):
        made = value.op(*operands, taken, **{**value.attrs, **{name: guarded(region) for name, region in regions.items()}})
        return made
    number = _failing_operand(value)
    if number is not None:
        given = operands[number]
        where = taken if given.rank == 0 else ops.broadcast(taken, shape=given.shape, axes=())
        kept = ops.select(where, given, _harmless(value, given))
        operands = (*operands[:number], kept, *operands[number + 1:])
    made = value.op(*operands, **value.attrs)
    return made


def _regions(value: Value) -> Mapping[str, Graph]:
    """The regions that take what `taken` is appended to.  The rule of a function with its own derivative is not known here."""
    if value.op not in (ops.loop, ops.while_loop, ops.cond, ops.checkpoint):
        return {}
    return {name: region for name, region in value.attrs.items() if isinstance(region, Graph)}


def _failing_operand(value: Value) -> int | None:
    """The operand that decides whether the op raises; None where it never does."""
    if value.op is ops.normalize_index:
        return None if value.attrs["extent"] == 0 else 0
    if value.op is ops.callback:
        return 0 if value.attrs["host"].raises is not None else None
    routine: Any = value.op.library
    if value.op.kind != "library" or routine is None:
        return None
    natural = getattr(routine, "natural", None)
    if natural is not None:
        return int(natural[0])
    return 0 if routine.failure is not None else None


def _harmless(value: Value, operand: Value) -> Value:
    """What an op does not fail for: unit matrices, False for checks, and 0."""
    type_ = operand.type
    assert isinstance(type_, TensorType)
    zero = ops.full(value=zero_of(type_.dtype), shape=type_.shape, dtype=type_.dtype)
    if value.op.kind != "library" or getattr(value.op.library, "failure", None) is None or type_.shape[-1] != type_.shape[-2]:
        return zero
    rows, columns = (ops.iota(shape=type_.shape[-2:], axis=axis, dtype=I64) for axis in (0, 1))
    diagonal = ops.broadcast(ops.equal(rows, columns), shape=type_.shape, axes=(operand.rank - 2, operand.rank - 1))
    one = ops.full(value=type_.dtype.numpy.type(1).item(), shape=type_.shape, dtype=type_.dtype)
    return ops.select(diagonal, one, zero)
