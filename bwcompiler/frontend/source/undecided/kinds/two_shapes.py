"""Variables that are a number or an array, depending on data: `low = -np.inf`, in some iterations `low = beta[i].copy()`.

A `TwoShapes` consists of a number, an array, and a traced truth value that says which of them it is.  What is computed of it is a branch in
which it is one of the two; where another operand has at least the shape of the array, the result is an array in both cases, and is
computed once.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.source.concrete.contents import binary, unary
from bwcompiler.frontend.source.variables import UNBOUND, is_number, nothing_like, open_policy
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import kind_of
from bwcompiler.frontend.tracing.promotion import strong
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer, fresh_array
from bwcompiler.ir.types import DType
from bwcompiler.operators import COMPARISONS, Operation, Operators
from bwcompiler.ops.rules import zero_of

_NEVER_RAISING = COMPARISONS | {operator.add, operator.sub, operator.mul, operator.and_, operator.or_}


@dataclasses.dataclass(eq=False, slots=True)
class TwoShapes(Operators):
    """is_array: whether it is the array; the other one of the two may be anything."""

    is_array: Any
    number: Any
    array: Any

    __array_ufunc__ = None

    def __hash__(self) -> int:
        return id(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return attribute(self, name)

    def __getitem__(self, index: Any) -> Any:
        return each_way(HANDLERS["item_of"], self, index)

    def __iter__(self) -> Any:
        refuse(self, "it cannot be gone over")

    def __bool__(self) -> bool:
        return bool(truth(self))

    def __repr__(self) -> str:
        return f"<traced number, or array of shape {np.shape(self.array)}>"

    def _operate(self, operation: Operation, *operands: Any) -> Any:
        if len(operands) == 1:
            return both(lambda x: unary(operation.__name__, x), self)
        how = both if operation in _NEVER_RAISING else each_way
        return how(lambda x, y: binary(operation.__name__, x, y), *map(settled, operands, operands[::-1]))


@functools.cache
def _register() -> None:
    tree.register_dataclass(TwoShapes)


def _made(is_array: Any, number: Any, array: Any) -> TwoShapes:
    _register()
    policy = open_policy()
    assert policy is not None
    policy.choices = True
    return TwoShapes(is_array, number, array)


class Pattern(NamedTuple):
    """What stands in the place of the one that a variable is not: a number, and the shape and dtype of an array."""

    number: Any
    shape: tuple[int, ...]
    dtype: DType


# ----- what is computed of it
def has_two_shapes(args: Any) -> bool:
    """Whether one of these is a number or an array, also in a list or tuple."""
    return any(type(one) is TwoShapes or (type(one) in (list, tuple) and has_two_shapes(one)) for one in args)


def each_way(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs), as a branch in which the first of these that is a number or an array is one of the two."""
    one = _first([*args, *kwargs.values()])
    if one is None:
        return function(*args, **kwargs)

    def side(value: Any) -> Callable[[], Any]:
        given = [_replaced(arg, one, value) for arg in args]
        named = {key: _replaced(arg, one, value) for key, arg in kwargs.items()}
        return lambda: each_way(function, *given, **named)
    return HANDLERS["choose"](one.is_array, side(one.array), side(one.number))


def both(function: Callable[..., Any], *args: Any) -> Any:
    """The same of an operator or ufunc that raises nothing: computed of both, without a branch."""
    one = _first(args)
    if one is None:
        return function(*args)
    if isinstance(one.is_array, bool) or not all(arg is one or is_number(arg) for arg in args):
        return each_way(function, *args)
    number, array = [function(*[_replaced(arg, one, value) for arg in args]) for value in (one.number, one.array)]
    return _made(one.is_array, number, array)


def _first(args: Any) -> TwoShapes | None:
    for one in args:
        found = one if type(one) is TwoShapes else _first(one) if type(one) in (list, tuple) else None
        if found is not None:
            return found
    return None


def _replaced(x: Any, one: TwoShapes, value: Any) -> Any:
    if x is one:
        return value
    return type(x)([_replaced(part, one, value) for part in x]) if type(x) in (list, tuple) and has_two_shapes(x) else x


def settled(x: Any, other: Any) -> Any:
    """An array in the place of x, where the other operand of an operator has at least its shape, and the types leave no doubt."""
    if type(x) is not TwoShapes or not isinstance(other, Tracer | np.ndarray):
        return x
    kind, shape = kind_of(x.number), np.shape(x.array)
    is_weak = not isinstance(kind, DType) and strong(kind).kind <= x.array.dtype.kind
    if not (is_weak or kind is kind_of(x.array)) or not _covers(np.shape(other), shape):
        return x
    return np.where(x.is_array, x.array, x.number)


def _covers(shape: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether what is broadcast to the other shape leaves the first as it is."""
    return len(shape) >= len(other) > 0 and all(size in (1, whole) for size, whole in zip(other[::-1], shape[::-1], strict=False))


def attribute(x: TwoShapes, name: str) -> Any:
    """x.name; a method is called of the one that it is."""
    if callable(getattr(np.ndarray, name, None)):
        return lambda *args, **kwargs: each_way(lambda one, *more, **options: HANDLERS["call_of"](
            getattr(one, name))(*more, **options), x, *args, **kwargs)
    return each_way(lambda one: HANDLERS["attribute_of"](one, name), x)


def truth(x: TwoShapes) -> Any:
    """Whether it is true, as a test sees it."""
    if np.size(x.array) != 1 or isinstance(x.is_array, bool):
        return each_way(HANDLERS["truth_of"], x)
    return np.where(x.is_array, *[np.not_equal(np.reshape(one, ()), 0) for one in (x.array, x.number)])


def refuse(x: TwoShapes, what: str) -> NoReturn:
    """It is asked for more than can be had of a number or an array."""
    raise TracerError(at(current_source(), "it depends on traced values whether this is a number or an array of shape "
                         f"{np.shape(x.array)}: {what}\n  hint: make it an array in both cases: np.full({np.shape(x.array)}, number)"))


# ----- both sides of a branch, and what a loop carries
def pattern_of(x: Any, y: Any) -> Pattern | None:
    """What covers a number and an array, one of which may be undecided; None of anything else."""
    x, y = _unless_known(x), _unless_known(y)
    if type(x) is type(y) is TwoShapes:
        return None
    if type(x) is TwoShapes or type(y) is TwoShapes:
        both = x if type(x) is TwoShapes else y
        found = _pattern(both.number, both.array)
        return found if all(_fits(one, found) for one in (x, y)) else None
    if not (_is_value(x) and _is_value(y)) or (np.ndim(x) == 0) == (np.ndim(y) == 0):
        return None
    return _pattern(*((x, y) if np.ndim(x) == 0 else (y, x)))


def _unless_known(x: Any) -> Any:
    """x, where it is known what it is, as that: on entry to a loop."""
    return x if type(x) is not TwoShapes or not isinstance(x.is_array, bool) else x.array if x.is_array else x.number


def _pattern(number: Any, array: Any) -> Pattern | None:
    shape = np.shape(array)
    if not all(isinstance(size, int) for size in (array._type.shape if isinstance(array, Tracer) else shape)):
        return None
    return Pattern(nothing_like(number), shape, strong(kind_of(array)))


def _is_value(x: Any) -> bool:
    return isinstance(x, Tracer | int | float | complex | np.number | np.bool_) or (isinstance(x, np.ndarray) and x.dtype.kind in "biufc")


def _fits(x: Any, pattern: Pattern | None) -> bool:
    if pattern is None or x is UNBOUND:
        return False
    return np.shape(x.array) == pattern.shape if type(x) is TwoShapes else _is_value(x) and np.shape(x) in ((), pattern.shape)


def fitted(x: Any, pattern: Pattern, nothing: Any = None) -> Any:
    """A number or an array as one of the two; nothing: an array in the place of one."""
    x = _unless_known(x)
    if type(x) is TwoShapes or not _fits(x, pattern):
        return x
    if np.shape(x) == pattern.shape:
        return _made(True, pattern.number, x)
    return _made(False, x, call(_zeros, pattern) if nothing is None else nothing)


def _zeros(pattern: Pattern) -> Tracer:
    return fresh_array(ops.full(value=zero_of(pattern.dtype), shape=pattern.shape, dtype=pattern.dtype))


def becomes_two_shapes(loop: Any, name: str, start: Any, end: Any) -> bool:
    """Whether a variable of a loop, a number before it and perhaps an array after an iteration, is to be carried as one of the two.

    Where there surely is an iteration that makes an array of a number, it is an array in the others: the first one runs separately.
    """
    if type(start) is TwoShapes or start is UNBOUND or end is UNBOUND or (loop.runs and type(end) is not TwoShapes):
        return False
    pattern = pattern_of(start, end)
    if pattern is None or np.shape(_unless_known(start)):              # an array may have other names, which a carried one has not
        return False
    nothing = np.zeros(pattern.shape, pattern.dtype.numpy)             # of no region: the body is being traced
    loop.entry[name] = fitted(start, pattern, nothing)
    loop.kinds.pop(name, None)
    return True


def fitted_like(end: Any, start: Any) -> Any:
    """What an iteration gives the next one, of a variable that is one of the two."""
    pattern = pattern_of(start, end) if type(start) is TwoShapes else None
    return end if pattern is None else fitted(end, pattern)


