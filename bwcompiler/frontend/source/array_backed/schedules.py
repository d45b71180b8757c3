"""In which iterations of a loop something happens, if this depends only on the iteration number: `if step % 10 == 0: history.append(x)`."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.ir.extent import Affine, Index
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TensorType

_OPS = frozenset((
    ops.absolute, ops.add, ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor, ops.cast, ops.divide, ops.equal, ops.floor_divide, ops.greater,
    ops.greater_equal, ops.invert, ops.less, ops.less_equal, ops.maximum, ops.minimum, ops.multiply, ops.negative, ops.not_equal,
    ops.remainder, ops.select, ops.subtract))


def schedule(test: Value, index: Index, count: int) -> np.ndarray[Any, Any] | None:
    """The test in each of the iterations 0 .. count - 1 of the loop with that index; None where it depends on anything else."""
    with np.errstate(all="ignore"):
        answer = Iterations({index: np.arange(count)}).of(test)
    return None if answer is None else np.broadcast_to(answer, (count,))


class Iterations:
    """What values are in all iterations, in which indices have known numbers; given: what the inputs of branches and bodies stand for."""

    def __init__(self, numbers: Mapping[Index, np.ndarray[Any, Any]]) -> None:
        policy = open_policy()
        self.numbers = numbers
        self.found: dict[Value, Any] = {}
        self.given: ChainMap[Value, Value] = ChainMap({}, {} if policy is None else policy.lifted)

    def of(self, value: Value) -> Any:
        """A number, or one for each iteration; None where it is not known."""
        value = self.given.get(value, value)
        if value not in self.found:
            self.found[value] = self._computed(value)
        return self.found[value]

    def _computed(self, value: Value) -> Any:
        if not isinstance(value.type, TensorType) or value.shape:
            return None
        if value.op is ops.index_value:
            return self._place(value.attrs["extent"])
        if value.op is ops.full:
            return value.op.reference(**value.attrs)
        if value.op is ops.item and value.operands[0].op is ops.cond:
            return self._chosen(value.operands[0], value.attrs["index"])
        if value.op not in _OPS:
            return None
        operands = [self.of(operand) for operand in value.operands]
        if any(operand is None for operand in operands):
            return None
        return np.asarray(value.op.reference(*operands, **value.attrs), value.dtype.numpy)

    def _place(self, extent: Any) -> Any:
        if not isinstance(extent, Affine) or any(one not in self.numbers for one, _ in extent.terms):
            return None
        return extent.constant + sum(factor * self.numbers[one] for one, factor in extent.terms)

    def _chosen(self, branch: Value, number: int) -> Any:
        """`a or b` is one."""
        sides = []
        for name in ("then_branch", "else_branch"):
            graph = branch.attrs[name]
            self.given.update({inner: self.given.get(outer, outer) for inner, outer in zip(graph.inputs, branch.operands[1:], strict=True)})
            sides.append(self.of(graph.outputs[number]))
        test = self.of(branch.operands[0])
        return None if test is None or any(side is None for side in sides) else np.where(test, *sides)


def happening(iterations: Iterations, tests: Iterable[tuple[Value, int]], count: int) -> tuple[np.ndarray[Any, Any], bool]:
    """At which of `count` times something in sides of branches happens, as far as their tests are known then; and whether all are."""
    happens, is_sure = np.ones(count, bool), True
    for test, side in tests:
        with np.errstate(all="ignore"):
            truth = iterations.of(test)
        if truth is None:
            is_sure = False
        else:
            happens &= np.broadcast_to(truth, (count,)) == (side == 0)
    return happens, is_sure
