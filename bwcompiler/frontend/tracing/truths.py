"""Whether a traced truth value is Python's, of which `True + True` is 2, or NumPy's, of which it is True.

Handles do not tell them apart: they are looked at where arithmetic is done with them alone, or where it is asked `x is True`.  Bodies of
loops and branches say whose the truth values are that they give (`control_flow.bodies`); loops assume that an iteration gives what it got
(`source.carried.truths`).
"""

from __future__ import annotations

from typing import Any

from bwcompiler import ops
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import Region, active_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.op import Value

_OF_TRUTHS = (ops.bitwise_and, ops.bitwise_or, ops.bitwise_xor, ops.invert)


def note_truth(x: Any, is_pythons: bool | None) -> None:
    """A truth value is Python's, as that of a comparison of Python's numbers; None: nobody knows."""
    region = active_region()
    if region is not None and region.policy is not None:
        region.policy.truths[value_of(x)] = is_pythons


def pythons(x: Any) -> Any:
    """A truth value that NumPy's function gives as Python's, as np.allclose does."""
    if isinstance(x, Tracer):
        note_truth(x, True)
    return x


def is_pythons(x: Any) -> bool:
    """Whether something is known to be Python's True or False, which data may decide."""
    return whose(x) is True


def are_pythons(*things: Any) -> bool:
    """Whether things that are computed with are truth values of Python's, of which one is traced at least; refused where nobody knows."""
    if not all(map(_is_truth, things)):
        return False
    found = [whose(one) for one in things]
    region = active_region()
    if region is not None and region.policy is not None:
        region.policy.truths_asked = True
    if False in found:
        return False
    if None in found:
        raise TracerError(at(current_source(), "truth values alone are computed with, which data decide: where two are True, their sum is "
                             "2 of Python's, and True of NumPy's\n  hint: int(a) + int(b), or a or b"))
    return True


def whose(x: Any) -> bool | None:
    """True: a truth value of Python's; False: of NumPy's, or something else; None: nobody knows."""
    if not isinstance(x, Tracer) or not _is_truth(x):
        return type(x) is bool
    return _whose(active_region() or x._storage.region, value_of(x))


def of_both(one: bool | None, other: bool | None) -> bool | None:
    """Whose a truth value is that is one or the other."""
    return one if one is other else None


def _is_truth(x: Any) -> bool:
    if isinstance(x, Tracer):
        return x._type.dtype.kind == "b" and not x._type.shape and not x._storage.writable
    return type(x) is bool


def _whose(region: Region, value: Value) -> bool | None:
    """True: Python's; False: NumPy's; None: nobody knows."""
    found: set[bool | None] = set()
    noted = {} if region.policy is None else region.policy.truths
    pending, seen = [value], {value}
    while pending:
        one = pending.pop()
        inner = one.operands if one.op in _OF_TRUTHS else one.operands[1:] if one.op is ops.select else ()
        if one in noted:
            inner = ()
        pending += [operand for operand in inner if operand not in seen]
        seen.update(inner)
        if not inner:
            found.add(_of_leaf(region, one))
    return found.pop() if len(found) == 1 else None


def _of_leaf(region: Region, value: Value) -> bool | None:
    truths = {} if region.policy is None else region.policy.truths
    if value in truths:
        return truths[value]
    if value.op.kind == "input":
        if value in region.lifted_inputs and region.parent is not None:
            return _whose(region.parent, region.parent.read(region.lifted[region.lifted_inputs.index(value)]))
        return False if region.parent is None else None
    return None if value.op is ops.item else False
