"""Numbers of data that are taken to be what they are for the arguments of this call: how many elements x[mask] has, a size, a place.

Only where the function is refused otherwise (`Policy.assumes`).  Such a number is computed while tracing, from the arguments themselves;
the program computes it, too, and is interrupted where it differs.  Who calls the program compiles again then (`api/programs/functions`):
one program for each set of numbers, not for each content of an array.

    s = x[x > 0]; np.fft.fft(s)        3 elements for this x: np.fft.fft of an array of 3, after a check that there are 3
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.policy import Assumed
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import Region, Storage, open_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.extent import mentions_index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.semantics.partial_interpreter import UNKNOWN, known_outputs
from bwcompiler.ir.types import BOOL

MOST = 200                     # numbers that one trace may assume,
MOST_DECIDED = 2000            # and one that decides about all branches
OPERATIONS = 1_000_000         # that a loop may take that one of them is made by


class AssumedOtherwise(BaseException):
    """A program finds another number than it was compiled for.  Not an Exception, so that no handler of the user's catches it."""


def assumed_number(value: Value) -> Any:
    """The number that a value is for the arguments of this call, which the program checks from now on; None where nobody knows it.

    Never of floats: these may change smoothly, with a derivative.
    """
    region = open_region()
    policy = region.policy
    if policy is None or not policy.assumes:
        return None
    if len(policy.assumed) >= (MOST_DECIDED if policy.decides else MOST):     # of a loop that takes long, which is refused now
        policy.assumes = False
        return None
    if value.type.shape or value.dtype.kind not in "biu":
        return None
    found = _Evaluation(policy.evaluated).of(region, value)
    if found is None:
        return None
    number = found[()]
    policy.assumed.append(Assumed(number.item(), region.record.source or current_source(region.outer)))
    call(_check, value, number)
    return number


HANDLERS["assumed_number"] = assumed_number


def assumed_count(x: Tracer) -> int | None:
    """How many there are for the arguments of this call, likewise."""
    found = assumed_number(call(value_of, x))
    return None if found is None else int(found)


def assumed_truth(x: Tracer) -> bool | None:
    """Whether a test holds for the arguments of this call, likewise."""
    policy = open_region().policy
    if policy is None or not policy.assumes:
        return None
    found = assumed_number(call(lambda: ops.cast(value_of(x), dtype=BOOL)))
    return None if found is None else bool(found)


def _check(value: Value, number: Any) -> None:
    """Record that the program is interrupted where the value is another number."""
    HANDLERS["interrupt_where"](fresh(ops.not_equal(value, constant(number.item(), value.type))), interrupt)


def interrupt(fails: Any) -> Any:
    """Called by programs where a number may be another one."""
    if fails:                                      # mapped over a batch, both sides are computed
        raise AssumedOtherwise
    return np.float64(0.0)


class _Evaluation:
    """Values of the regions that are being traced, as arrays; found: those that were asked for before, None where nobody knows."""

    def __init__(self, found: dict[Value, Any]) -> None:
        self.found = found

    def of(self, region: Region, value: Value) -> Any:
        pending = [value]
        with np.errstate(all="ignore"):
            while pending:
                one = pending[-1]
                missing = [] if one in self.found else [operand for operand in one.operands if operand not in self.found]
                if missing:
                    pending += missing
                    continue
                pending.pop()
                if one not in self.found:
                    self.found[one] = self._computed(region, one)
        return self.found[value]

    def _computed(self, region: Region, value: Value) -> Any:
        if value.op.kind == "input":
            return self._given(region, value)
        operands = [self.found[operand] for operand in value.operands]
        if any(one is None for one in operands) or value.op is ops.callback or mentions_index(value.attrs):
            return None
        if value.op.regions:
            return _run(value, operands)
        if value.op is ops.item:
            return operands[0][value.attrs["index"]]
        try:
            result = value.op.reference(*operands, **value.attrs)
        except (ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError):       # which the program raises as well
            return None
        return tuple(map(np.asarray, result)) if isinstance(result, tuple) else np.asarray(result)

    def _given(self, region: Region, value: Value) -> Any:
        """What an input of a region is."""
        array = region.array_of(value)
        if array is not None:
            return array
        if value in region.lifted_inputs and region.parent is not None:
            storage = region.lifted[region.lifted_inputs.index(value)]
            return None if _may_be_carried(region, storage) else self._of_type(region.parent, region.parent.read(storage), value)
        place = next((place for place, one in enumerate(region.argument_inputs[:len(region.passed)]) if one is value), None)
        if place is None:
            return None
        passed = region.passed[place]
        if region.parent is None:
            found = np.asarray(passed)
            return found.astype(value.dtype.numpy) if found.shape == value.shape else None
        given = getattr(passed, "_storage", None)
        if given is None:
            return np.asarray(passed, value.dtype.numpy) if isinstance(passed, np.ndarray | np.generic | int | float) else None
        return self._of_type(given.region, given.value, value) if given.region is region.parent and not passed._chain else None

    def _of_type(self, region: Region, outside: Value, value: Value) -> Any:
        """A value of an enclosing region, where it is what an input is, and not one for each element of a batch."""
        return self.of(region, outside) if outside.type == value.type else None


def _may_be_carried(region: Region, storage: Storage) -> bool:
    """Whether a region is the body of a loop that may yet write to this."""
    return region.site is not None and storage.writable


def _run(value: Value, operands: Sequence[Any]) -> Any:
    """What a loop or a branch gives, None for what nobody knows, as after too many iterations."""
    inputs = [input_value(operand.type) for operand in value.operands]
    with Record() as record:
        again = record.emit(value.op, tuple(inputs), value.attrs, value.type)
        outputs = [ops.item(again, index=place) for place in range(len(value.type.items))]
    found = known_outputs(Graph("assumed", inputs, record.values, outputs), operands, OPERATIONS, calls_libraries=True)
    return tuple([None if one is UNKNOWN else one for one in found])

