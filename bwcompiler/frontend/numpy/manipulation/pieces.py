"""np.piecewise: functions that are applied where conditions hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.numpy.elementwise.ufuncs import truth
from bwcompiler.frontend.numpy.manipulation.indexing import getitem, setitem, where
from bwcompiler.frontend.numpy.manipulation.layout import ordered
from bwcompiler.frontend.tracing.calls import call_back
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer, cast, reshape, value_as
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import ArrayTracer, ScalarTracer, Tracer, fresh, fresh_array
from bwcompiler.ir.graph import all_values, live_values
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TensorType

_OF_ELEMENTS = ("elementwise", "constant", "item")


@implements(np.piecewise, states_layout=True)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """NumPy applies each function to its elements alone.  Here one that computes element by element is applied to all of x, and the
    condition selects; any other one, `lambda t: t - t.mean()`, is applied to x[condition]."""
    whole = as_tracer(x)
    single = np.isscalar(condlist) or isinstance(condlist, ScalarTracer) or (
        whole.ndim != 0 and not isinstance(condlist[0], list | np.ndarray | ArrayTracer))
    masks = [_mask(one, whole) for one in ([condlist] if single else condlist)]
    functions = list(funclist)
    if len(functions) not in (len(masks), len(masks) + 1):
        raise ValueError(f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions are expected")
    if len(functions) > len(masks):
        masks.append(np.logical_not(np.any(np.stack(masks), axis=0)))
    result: Any = np.zeros_like(whole)
    for mask, function in zip(masks, functions, strict=True):
        before = len(open_region().record.values)
        found = call_back(function, whole, *args, **kw) if callable(function) else function
        if not callable(function) or not whole.ndim or _is_of_elements(found, whole, before):
            chosen = fresh(reshape(value_of(mask), mask.shape + (1,) * (whole.ndim - mask.ndim)))
            result = where(chosen, fresh(cast(value_as(found), whole._type.dtype)), result)
        else:
            is_any = np.any(mask)                  # NumPy does not call the function for no elements: here it gets all of them then
            given, made = np.logical_or(mask, np.logical_not(is_any)), fresh_array(value_as(result))
            setitem(made, given, call_back(function, getitem(whole, given), *args, **kw))
            result = where(is_any, made, result)
    return ordered(fresh_array(value_as(result)), whole, "K")


def _mask(condition: Any, x: Tracer) -> Any:
    """A condition as a boolean index of x: over its leading axes."""
    mask = truth(value_as(condition))
    if mask.shape != x.shape[:mask.rank]:
        raise IndexError(f"boolean index did not match indexed array: shapes {mask.shape} and {x.shape}")
    return fresh(mask)


def _is_of_elements(found: Any, x: Tracer, before: int) -> bool:
    """Whether each element of what a function gave depends on x by the same element alone, and the rest of it are numbers.

    before: how many values the region had recorded when the function was called.
    """
    result, given = value_as(found), value_of(x)
    depending = {given}
    for value in live_values(open_region().record.values[before:], (result,)):
        if value is given or depending.isdisjoint(value.operands):
            continue
        if not _computes_elements(value, given) or not all(one in depending or _is_number(one) for one in value.operands):
            return False
        depending.add(value)
    return result in depending or _is_number(result)


def _computes_elements(value: Value, given: Value) -> bool:
    """Whether an op computes its elements from those in the same places; a loop or branch, all in it."""
    if value.op.regions:
        return _are_alike(value.type.items, given) and all(
            _computes_elements(one, given) if one.operands else _is_number(one) for one in _values_in(value))
    if isinstance(value.type, TensorType) and not _are_alike([value.type], given):
        return False
    return value.op.kind in _OF_ELEMENTS or (value.op is ops.broadcast and not value.operands[0].shape)


def _values_in(value: Value) -> Iterable[Value]:
    """What the bodies of a loop or branch compute."""
    for name in value.op.regions:
        yield from all_values(value.attrs[name])


def _are_alike(types: Iterable[Any], given: Value) -> bool:
    return all(one.shape in ((), given.shape) for one in types)


def _is_number(value: Value) -> bool:
    """One number, also as an array."""
    return not isinstance(value.type, TensorType) or not value.shape or value.op is ops.full or (
        value.op is ops.broadcast and _is_number(value.operands[0]))
