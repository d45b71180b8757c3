"""np.vectorize on traced arrays: one native loop over the elements, in which the function's own branches and loops are captured."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import UnsupportedError, at
from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.loops import scan
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer


def vectorized(function: Any, form: Callable[[Any], Any]) -> Callable[..., Any]:
    """What is called in the place of an object that np.vectorize made."""
    def run(*args: Any, **kwargs: Any) -> Any:
        if not any(map(is_traced, (*args, *kwargs.values()))) and not holds_traced(function.pyfunc):
            return function(*args, **kwargs)
        if function.signature is not None or not (args or kwargs):
            raise UnsupportedError(at(current_source(open_region().outer), "np.vectorize with signature=, of traced arguments, is not "
                                      "supported\n  hint: bw.vmap, or a function of the arguments that vary alone"))
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        held = {place: arg if place in function.excluded else np.asanyarray(arg, object)[()]
                for place, arg in given.items() if place in function.excluded or _is_one(arg)}
        varying = [place for place in given if place not in held]
        each = form(function.pyfunc)

        def element(*elements: Any) -> Any:
            found = held | dict(zip(varying, elements, strict=True))
            return each(*[found[place] for place in range(len(args))], **{name: found[name] for name in kwargs})
        return _mapped(function, element, [given[place] for place in varying])
    return run


def _is_one(x: Any) -> bool:
    """A number that is known, a text and the like: the function gets it as it is."""
    return not is_traced(x) and not isinstance(x, list | tuple) and np.ndim(x) == 0


def _mapped(function: Any, each: Callable[..., Any], args: list[Any]) -> Any:
    arrays = [call(as_tracer, arg) for arg in args]
    shape = np.broadcast_shapes(*[array.shape for array in arrays])
    count = math.prod(shape)
    if not count and function.otypes is None:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    policy = open_policy()
    flat = [np.broadcast_to(array, shape).reshape(count) for array in arrays]
    before = policy.one_kind if policy is not None else False
    try:
        if policy is not None:
            policy.one_kind = function.otypes is None and count != 1       # the first is all of them
        found = scan(lambda carry, elements: (carry, each(*elements)), None, tuple(flat))[1] if flat else _alone(each)
    finally:
        if policy is not None:
            policy.one_kind = before
    kinds = function.otypes or ""
    leaves = [leaf.reshape(shape) for leaf in tree.leaves(found)]
    leaves = [_of_type(leaf, np.dtype(kind)) for leaf, kind in zip(leaves, kinds, strict=True)] if kinds else leaves
    return tree.unflatten(tree.structure(found), leaves)


def _alone(each: Callable[..., Any]) -> Any:
    """What the function gives of arguments that are all known; the traced values are in its closure."""
    found = each()
    return tree.unflatten(tree.structure(found), [call(as_tracer, leaf) for leaf in tree.leaves(found)])


def _of_type(found: Any, dtype: np.dtype[Any]) -> Any:
    """Results in the type that `otypes` gives: of integers, which are made of Python's, those that do not fit are an error."""
    if dtype.kind in "iu" and found.dtype.kind in "iuf" and not np.can_cast(found.dtype, dtype):
        limits = np.iinfo(dtype)
        if found.dtype.kind == "f":
            fits: Any = (np.trunc(found) >= float(limits.min)) & (found < limits.max + 1.0)
        else:
            own = np.iinfo(found.dtype)
            fits = (found >= max(limits.min, own.min)) & (found <= min(limits.max, own.max))
        outside: Any = ~np.all(fits)
        raise_where(outside, OverflowError(f"np.vectorize: a result is no integer of otypes {dtype}, from {limits.min} to {limits.max}"))
    return found.astype(dtype)


def holds_traced(x: Any, depth: int = 4) -> bool:
    """Whether a function has traced values in its closure, its defaults or the object that it is a method of."""
    if isinstance(x, Tracer):
        return True
    if not depth:
        return False
    parts: list[Any] = []
    if isinstance(x, list | tuple):
        parts = list(x)
    elif isinstance(x, dict):
        parts = list(x.values())
    elif callable(x) and not isinstance(x, type):
        cells = getattr(x, "__closure__", None) or ()
        for cell in cells:
            try:
                parts.append(cell.cell_contents)
            except ValueError:
                continue
        parts += [getattr(x, name, None) for name in ("__defaults__", "__kwdefaults__", "func", "args", "keywords")]
        owner = getattr(x, "__self__", x)
        parts += list(getattr(owner, "__dict__", {}).values()) if not isinstance(owner, type) else []
    elif hasattr(x, "__dict__") and not isinstance(x, type) and type(x).__module__ not in ("builtins", "numpy"):
        parts = list(vars(x).values())
    return any(holds_traced(part, depth - 1) for part in parts)
