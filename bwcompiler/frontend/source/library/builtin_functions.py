"""Python's built-in functions, and those of `math`, for traced values; for known values they are Python's own.

`min`, `max` and `sum` take elements one after another, as Python does; only the rows of one array are added in NumPy's order.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import functools
import itertools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.numpy.manipulation.strides import as_strided
from bwcompiler.frontend.source.concrete.contents import binary, user_method
from bwcompiler.frontend.source.effects.checks import Suppressing
from bwcompiler.frontend.source.effects.complaints import ASKING
from bwcompiler.frontend.source.effects.number_errors import check_whole
from bwcompiler.frontend.source.library import iterators, plain, series
from bwcompiler.frontend.source.library.bisection import BISECTION
from bwcompiler.frontend.source.library.in_order import greater, in_order, is_compared_by_user, less
from bwcompiler.frontend.source.library.mathematics import MATHEMATICS, complex_of, converted
from bwcompiler.frontend.tracing.calls import call, call_function
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.data_windows import count_between
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, index_handle
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection, SizedByData
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.refusals.demands import ask_whose_truth, may_be_known
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.rows import are_rows, together
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import ArrayTracer, Tracer, type_stood_for
from bwcompiler.frontend.tracing.truths import is_pythons, pythons, whose
from bwcompiler.ir.types import BOOL, C128, F64, I64, DType

Kind = type[int] | type[float] | type[complex]


def _number(kind: Kind, dtype: DType, what: str) -> Callable[..., Any]:
    """float, int or complex: a traced number becomes a traced Python number."""
    def convert(*args: Any, **kwargs: Any) -> Any:
        if kind is complex and len(args) == 2 and any(isinstance(x, Tracer) for x in args):
            return complex_of(*args)
        x = args[0] if len(args) == 1 and not kwargs else None
        if not isinstance(x, Tracer) or (isinstance(x, IndexTracer) and kind is int):
            return x if isinstance(x, IndexTracer) and kind is int else kind(*args, **kwargs)
        known = _known(x, kind) if kind is int else None
        if known is not None:
            return known
        if x._type.size != 1:
            raise TypeError("only length-1 arrays can be converted to Python scalars")
        if kind is not complex and x._type.dtype.kind == "c":
            raise TypeError(f"can't convert complex to {what}")
        if kind is int:
            check_whole(x)
        return call(converted, x, dtype, kind)
    convert.__name__ = what
    return convert


def as_int(x: Any) -> Any:
    """A traced number as one of Python's integers."""
    return call(converted, x, I64, int)


def _known(x: Any, kind: Any) -> Any:
    """The number that can be had, or is asked for by tracing again; None where it depends on data."""
    if x._type.dtype.kind not in "iub":
        return None
    region = open_region()
    refusal = region.refusal
    try:
        return kind(x) if may_be_known(value_of(x)) else None
    except TracerError:
        region.refusal = refusal
        return None


def truth_of(x: Any) -> Any:
    """The truth of a test: a plain boolean where it can be known, else a traced one."""
    if not isinstance(x, Tracer):
        return x
    if x._type.size != 1 or not isinstance(x._type.size, int):
        return builtins.bool(x)                    # which says what is wrong
    known = _known(x, builtins.bool)
    if known is not None:
        return known
    truth = x if x._type.dtype is BOOL else x != 0
    return np.reshape(truth, ()) if x._type.shape else truth


def _bool(x: Any = False, /) -> Any:
    found = truth_of(x) if isinstance(x, Tracer) else builtins.bool(x)
    return pythons(found != False if found is x else found) if isinstance(found, Tracer) and not is_pythons(found) else found  # noqa: E712


def _len(x: Any) -> Any:
    if isinstance(x, ArrayTracer) and not isinstance(x._type.shape[0], int):
        return call(index_handle, x._type.shape[0])
    if isinstance(x, SizedByData):
        return x.shape[0]
    return builtins.len(x)


_NOTHING = object()


def _extreme(function: Any, better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """min or max: element by element, as Python does; of what is compared with `key`, numbers are chosen by their keys."""
    def extreme(*args: Any, key: Any = None, default: Any = _NOTHING) -> Any:
        if not args or (len(args) > 1 and default is not _NOTHING):
            return function(*args, key=key, default=default)
        if len(args) == 1 and isinstance(args[0], Selection) and key is None and default is _NOTHING:
            return args[0].min() if function is builtins.min else args[0].max()
        items = builtins.list(args[0] if len(args) == 1 else args)
        keys = items if key is None else [key(item) for item in items]
        if builtins.any(map(is_compared_by_user, keys)):
            return _extreme_object(items, keys, better)
        if builtins.any(not isinstance(one, Tracer) and HANDLERS["is_undecided"](one) for one in keys):
            return _extreme_undecided(items, keys, better)
        if not any(isinstance(one, Tracer) for one in keys):
            known, given = {} if default is _NOTHING else {"default": default}, iter(keys)
            return function(items, **known) if key is None else function(items, key=lambda _: next(given), **known)
        found, best = items[0], keys[0]
        for item, one in zip(items[1:], keys[1:], strict=True):
            test = better(one, best)
            if key is None:
                found = best = call(choose_number, test, item, found)
            else:
                found, best = _either(test, item, found), call(choose_number, test, one, best)
        return found
    extreme.__name__ = function.__name__
    return extreme


def _extreme_undecided(items: list[Any], keys: list[Any], better: Callable[[Any, Any], Any]) -> Any:
    """Of tuples, or things of which data decides which they are."""
    found, best = items[0], keys[0]
    for item, one in zip(items[1:], keys[1:], strict=True):
        test = HANDLERS["truth_of"](better(one, best))
        found, best = _any_of(test, item, found), _any_of(test, one, best)
    return found


def _any_of(test: Any, x: Any, y: Any) -> Any:
    """x if test else y, whatever they are."""
    if not isinstance(test, Tracer):
        return x if test else y
    plain = not builtins.any(isinstance(leaf, enum.Enum) for leaf in tree.leaves((x, y))) and tree.structure(x) == tree.structure(y)
    return _either(test, x, y) if plain else HANDLERS["choose"](test, lambda: x, lambda: y)


def _extreme_object(items: list[Any], keys: list[Any], better: Callable[[Any, Any], Any]) -> Any:
    """Of objects that have methods for comparisons: each is compared with all before it, as data decides which of these is the best."""
    which: Any = 0
    for number in range(1, len(items)):
        test: Any = False
        for place in range(number):
            one = HANDLERS["truth_of"](better(keys[number], keys[place]))
            test = choose_number(which == place, one, test)
        which = choose_number(test, number, which)
    return _at(items, which, 0)


def _at(items: list[Any], which: Any, place: int) -> Any:
    if place == len(items) - 1 or not isinstance(which, Tracer):
        return items[place] if isinstance(which, Tracer) else items[which]
    return HANDLERS["choose"](which == place, lambda: items[place], lambda: _at(items, which, place + 1))


def _either(test: Any, x: Any, y: Any) -> Any:
    """x if test else y, of numbers and arrays in containers of the same structure."""
    if not isinstance(test, Tracer):
        return x if test else y
    if HANDLERS["are_things"](x, y) or not builtins.all(
            isinstance(leaf, Tracer | np.ndarray | np.generic | int | float | complex) for leaf in tree.leaves((x, y))):
        return HANDLERS["choose"](test, lambda: x, lambda: y)
    x, y = HANDLERS["boxed"](x), HANDLERS["boxed"](y)               # of lists one is a copy, which nobody may change
    if tree.structure(x) != tree.structure(y):
        raise TypeError("min() and max() with a key choose among things of one structure, where the keys are traced")
    return HANDLERS["unboxed"](tree.unflatten(tree.structure(x), [
        call(choose_number, test, one, other) if not np.ndim(one) else np.where(test, one, other)
        for one, other in zip(tree.leaves(x), tree.leaves(y), strict=True)]))


def choose_number(test: Any, x: Any, y: Any) -> Any:
    """x if test else y, of numbers; a weak number stays one."""
    if not isinstance(test, Tracer):
        return x if test else y
    if any(np.shape(part) for part in (test, x, y)):
        raise TypeError("min() and max() compare numbers: use np.minimum and np.maximum for arrays")
    found = np.where(test, x, y)
    kinds = [part._kind if isinstance(part, Tracer) else type(part) for part in (x, y)]
    if builtins.all(kind in (int, float) for kind in kinds):
        found._kind = float if float in kinds else int
    found._storage.writable = False
    return found


def _sum(iterable: Any, /, start: Any = 0) -> Any:
    if isinstance(iterable, SizedByData):
        return np.sum(iterable, axis=0) + start
    items = builtins.list(iterable)
    if not any(user_method(builtins.type(one), name) is not None for one in (*items, start) for name in ("__add__", "__radd__")):
        return builtins.sum(_added(items), start)
    for item in items:
        start = binary("add", start, item)
    return start


def _added(items: list[Any]) -> list[Any]:
    """Items of the same sum: floats that are rows of an array, as a list has that grew in a loop, are added by one reduction."""
    if not are_rows(items) or not isinstance(items[-1], Tracer) or items[-1].dtype.kind not in "fc":
        return items
    return [call_function(np.sum, part, 0) if several else part for part, several in together(items)]


def _by_method(function: Any, name: str) -> Callable[..., Any]:
    """One of Python's functions that calls a method of an object, which may be the user's."""
    def called(*args: Any, **kwargs: Any) -> Any:
        method = user_method(builtins.type(args[0]), name) if args else None
        return function(*args, **kwargs) if method is None else HANDLERS["call_of"](types.MethodType(method, args[0]))(*args[1:], **kwargs)
    called.__name__ = function.__name__
    return called


def _truth(function: Any, joined: Any) -> Callable[[Any], Any]:
    def truth(x: Any, /) -> Any:
        if isinstance(x, ArrayTracer | Selection) and x.ndim == 1:
            return joined(x)
        traced = []
        for item in x:
            if isinstance(item, Tracer):
                traced.append(call(as_tracer, item) != 0)
            elif function([item]) is (function is builtins.any):
                return function([item])            # it decides, whatever the others are
        return joined(np.stack(traced)) if traced else function(())
    truth.__name__ = function.__name__
    return truth


def _isinstance(x: Any, kinds: Any, /) -> bool:
    if not isinstance(x, Tracer):
        kind = getattr(builtins.type(x), "stands_for", None)
        return builtins.isinstance(x, kinds) or (kind is not None and issubclass(kind, kinds))
    if issubclass(builtins.bool, kinds) != issubclass(np.bool_, kinds):
        ask_whose_truth(x)
        return builtins.isinstance(x, kinds) or issubclass(_kind_of_truth(x), kinds)
    return builtins.isinstance(x, kinds) or issubclass(type_stood_for(x), kinds)


def _kind_of_truth(x: Tracer) -> builtins.type[Any]:
    """What `type_stood_for` says, of a truth value bool or np.bool_; refused where nobody knows."""
    kind = type_stood_for(x)
    if kind not in (builtins.bool, np.bool_):
        return kind
    pythons = whose(x)
    if pythons is None:
        raise TracerError(at(current_source(), "the type of a truth value is asked for that is Python's or NumPy's, as data decide\n"
                             "  hint: isinstance(x, (bool, np.bool_)), or bool(x)"))
    return builtins.bool if pythons else np.bool_


def _fromiter(iter: Any, dtype: Any, count: int = -1, **options: Any) -> Any:
    items = builtins.list(iter) if count < 0 else builtins.list(itertools.islice(iter, count))
    if count > len(items):
        return np.fromiter([0] * len(items), dtype, count)     # which says so
    if options or not builtins.any(isinstance(item, Tracer) for item in items):
        return np.fromiter(items, dtype, count, **options)
    return HANDLERS["call_of"](np.array)(items, dtype)


def _hasattr(x: Any, name: str, /) -> Any:
    if isinstance(x, Tracer) and type(name) is str:                # what objects of its type have: a float has no shape
        return builtins.any(name in vars(kind) for kind in type_stood_for(x).__mro__)
    return HANDLERS["has_attribute"](type_stood_for(x) if isinstance(x, Tracer) else x, name)


def _type(x: Any, *more: Any, **options: Any) -> Any:
    if isinstance(x, Tracer) and not more:
        ask_whose_truth(x)
        return _kind_of_truth(x)
    if not more and not options and hasattr(builtins.type(x), "stands_for"):
        return builtins.type(x).stands_for
    return builtins.type(x, *more, **options)


def _scalar_type(kind: Any) -> Callable[..., Any]:
    """np.float64 and so on: a traced value in that dtype."""
    def convert(*args: Any) -> Any:
        return args[0].astype(kind) if len(args) == 1 and isinstance(args[0], Tracer) else kind(*args)
    convert.__name__ = kind.__name__
    return convert


def _is_scalar(element: Any) -> Any:
    return not issubclass(type_stood_for(element), np.ndarray) if isinstance(element, Tracer) else np.isscalar(element)


def _without_trailing_zeros(seq: Any) -> Any:
    """The coefficients of a traced polynomial all count, as in np.polymul."""
    return seq if isinstance(seq, Tracer) else np.polynomial.polyutils.trimseq(seq)


_METHODS = {
    abs: "__abs__", round: "__round__", divmod: "__divmod__", math.floor: "__floor__", math.ceil: "__ceil__", math.trunc: "__trunc__",
    reversed: "__reversed__", float: "__float__", int: "__int__", complex: "__complex__", bool: "__bool__", len: "__len__"}

def _range(*bounds: Any) -> Any:
    """range() of data, where it is known how many numbers it has, as a list of these: range(3 * i, 3 * i + 3)."""
    step = bounds[2] if len(bounds) == 3 else 1
    is_traced = any(isinstance(bound, Tracer) for bound in bounds[:2]) and 2 <= len(bounds) <= 3 and type(step) is int and step
    count = call(count_between, *bounds[:2], step) if is_traced else None
    return builtins.range(*bounds) if count is None else [bounds[0] + number * step for number in builtins.range(count)]


def _listing(kind: type) -> Callable[..., Any]:
    """list or tuple, also of as many elements as data select."""
    def listed(*args: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Selection):
            found = HANDLERS["call_of"](plain.listed)(args[0])
            return found if kind is builtins.list else builtins.tuple(found)
        return kind(*args)
    return listed


BUILTINS: dict[Any, Any] = {
    np.isscalar: _is_scalar, np.polynomial.polyutils.trimseq: _without_trailing_zeros, series.numpy_fit: series.fit,
    np.ndenumerate: iterators.ndenumerate, np.ndindex: iterators.Places, np.nditer: iterators.nditer, np.broadcast: iterators.broadcast,
    np.isfortran: iterators.isfortran, np.lib.stride_tricks.as_strided: as_strided, contextlib.suppress: Suppressing,
    float: _number(float, F64, "float"), int: _number(int, I64, "int"), complex: _number(complex, C128, "complex"), bool: _bool,
    len: _len, min: _extreme(builtins.min, less), max: _extreme(builtins.max, greater), sum: _sum,
    sorted: in_order, any: _truth(builtins.any, np.any), all: _truth(builtins.all, np.all), isinstance: _isinstance, type: _type,
    hasattr: _hasattr, range: _range, np.fromiter: _fromiter, list: _listing(builtins.list), tuple: _listing(builtins.tuple),
    **{kind: _scalar_type(kind) for kind in (np.float64, np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint16, np.uint32,
                                             np.uint64, np.complex128, np.complex64, np.bool_)},
    **MATHEMATICS,
    **BISECTION,
    **ASKING,
}
BUILTINS |= {function: _by_method(BUILTINS.get(function, function), name) for function, name in _METHODS.items()}

def _item(x: Tracer, *index: Any) -> Any:
    """x.item(): a traced Python number."""
    if index:
        place = index[0] if len(index) == 1 else index
        return _item(x[np.unravel_index(place, x.shape)] if isinstance(place, int) else x[place])
    if x._type.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[x._type.dtype.kind]
    return BUILTINS[kind](x.reshape(()) if x._type.shape else x)


def _tolist(x: Any) -> Any:
    """x.tolist(): traced Python numbers in lists."""
    return [_tolist(row) for row in x] if x._type.shape else _item(x)


NUMBERS: dict[str, Any] = {"item": _item, "tolist": _tolist}       # methods of handles

PURE = frozenset((abs, ascii, bin, callable, chr, complex, dict, divmod, enumerate, filter, format, getattr, hasattr, hash, hex, id,
                  issubclass, iter, list, map, oct, ord, pow, range, repr, reversed, round, set, slice, str, tuple, type, zip,
                  frozenset, bytes, super, object, itertools.chain, itertools.combinations, itertools.combinations_with_replacement,
                  itertools.count, itertools.cycle, itertools.islice, itertools.pairwise, itertools.permutations, itertools.product,
                  itertools.repeat, itertools.zip_longest, functools.reduce, itertools.accumulate, itertools.dropwhile,
                  itertools.filterfalse, itertools.groupby, itertools.starmap, itertools.takewhile))

CONSUMING = frozenset((list, tuple, set, frozenset, dict, sorted, sum, any, all, min, max, zip, map, filter, enumerate, iter,
                       itertools.chain, itertools.combinations, itertools.combinations_with_replacement, itertools.count, itertools.cycle,
                       itertools.islice, itertools.pairwise, itertools.permutations, itertools.product, itertools.repeat,
                       itertools.zip_longest, functools.reduce, itertools.accumulate, itertools.dropwhile, itertools.filterfalse,
                       itertools.groupby, itertools.starmap, itertools.takewhile))
