"""Which functions and list methods accept lists with gaps (`gaps`), and what is called instead of them."""

from __future__ import annotations

import builtins
import copy
import functools
import heapq
import itertools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.frontend.numpy.selected import ordering
from bwcompiler.frontend.source.library import plain
from bwcompiler.frontend.source.undecided.lists import keyed, moved
from bwcompiler.frontend.source.undecided.lists.compared import compared, have_gaps
from bwcompiler.frontend.source.undecided.lists.gaps import Items, Maybe, as_array, has_gaps, length, refuse, taken, total
from bwcompiler.frontend.source.variables import among, is_bounded
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.masked_selection import SELECTED
from bwcompiler.frontend.tracing.provenance.source import is_library
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

_KEEPING = frozenset(("append", "clear", "copy", "extend"))     # methods of lists that need not know of gaps


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function written in Python, captured."""
    return lambda *args, **kwargs: HANDLERS["call_of"](function)(*args, **kwargs)


_METHODS: dict[str, Callable[..., Any]] = {"pop": moved.popped, "reverse": moved.turn, "sort": keyed.put_in_order,
                                           "index": _plain(plain.place_of), "count": _plain(plain.number_of)}
def _repeated(items: list[Any], times: Any) -> Any:
    """items * times, where data or the index of a loop say how often."""
    if np.ndim(times) or times.dtype.kind not in "iu":
        return items * times                       # which says what is wrong
    return HANDLERS["call_of"](plain.repeated)(items, times)


HANDLERS.update(repeated=_repeated, have_gaps=have_gaps, compared_with_gaps=compared)


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    """One of NumPy's functions that join arrays, of those that are in a list."""
    return lambda items, *args, **kwargs: call(function, moved.array_of(items), *args, **kwargs)


_TAKING: dict[Any, Callable[..., Any]] = {
    len: length, isinstance: builtins.isinstance, sum: total, list: builtins.list, tuple: builtins.tuple,
    np.array: moved.array_of, np.asarray: moved.array_of,
    np.fromiter: lambda items, dtype: moved.array_of(items, dtype=dtype), math.fsum: lambda items: total(items, 0.0),
    np.stack: _joined(ordering.stacked_rows), np.concatenate: _joined(ordering.concatenated_rows), sorted: keyed.in_order,
    np.vstack: _joined(ordering.rows_below_rows), np.hstack: _joined(ordering.rows_beside_rows),
    np.column_stack: _joined(ordering.rows_as_columns),
    min: functools.partial(keyed.extreme, "min"), max: functools.partial(keyed.extreme, "max"), any: _plain(plain.any_of),
    all: _plain(plain.all_of), math.prod: _plain(plain.product), functools.reduce: _plain(plain.reduced),
    heapq.nsmallest: _plain(plain.smallest), heapq.nlargest: _plain(plain.largest),
}
_ITERATORS: dict[Any, Callable[..., Any]] = {
    iter: builtins.list, reversed: moved.turned, enumerate: moved.numbered, zip: moved.zipped,
    map: _plain(plain.mapped), filter: _plain(plain.filtered), itertools.filterfalse: _plain(plain.left_out),
    itertools.takewhile: _plain(plain.taken_while), itertools.dropwhile: _plain(plain.dropped_while),
    itertools.pairwise: _plain(plain.pairs), itertools.accumulate: _plain(plain.accumulated),
}
_BY_TEST = frozenset((filter, itertools.filterfalse, itertools.takewhile, itertools.dropwhile))
_OF_KINDS = frozenset((builtins.isinstance, builtins.len, builtins.type))
_COPYING = frozenset((builtins.dict, copy.copy, copy.deepcopy))
_OF_ANY_ORDER = frozenset((builtins.min, builtins.max, builtins.sorted))
_KEYWORDS: dict[Any, set[str]] = {
    sorted: {"key", "reverse"}, min: {"key", "default"}, max: {"key", "default"}, np.array: {"dtype"}, np.asarray: {"dtype"},
    math.prod: {"start"}, np.stack: {"axis"}, np.concatenate: {"axis"}}


def taking(function: Any, found: Callable[..., Any]) -> Callable[..., Any]:
    """What is called in the place of a function, `found`, where it may get a list with gaps."""
    owner = getattr(function, "__self__", None)
    if getattr(function, "__module__", "") == "_heapq":
        return found
    if has_gaps(owner) and function.__name__ not in _KEEPING:
        method = _METHODS.get(function.__name__) if type(owner) is builtins.list else None
        if method is None and function.__name__ == "insert":
            HANDLERS["wish_for_stack"](owner)
        return refuse(f"{function.__name__}()") if method is None else functools.partial(method, owner)
    init = getattr(function, "__init__", None) if isinstance(function, type) else None
    if isinstance(init, types.FunctionType) and not is_library(init.__code__):         # a class of the user's: captured
        return found
    if type(owner) is builtins.list or (is_bounded(owner) and function.__name__ in ("extend", "update")):
        return found

    def checked(*args: Any, **kwargs: Any) -> Any:
        if args and is_bounded(args[0]) and among(function, _OF_KINDS):
            return args[0].store.count if function is len else args[0].kind if function is type else isinstance(args[0].kind(), args[1])
        if args and is_bounded(args[0]) and among(function, _COPYING):
            return args[0].as_dictionary(kwargs) if function is builtins.dict else args[0].copy()
        if among(function, _OF_ANY_ORDER):
            args = tuple([one.in_any_order() if is_bounded(one) else taken(one) for one in args])
        elif function is len or not among(function, _OF_KINDS):
            args = tuple(map(taken, args))
        found_items = gone_over(function, args, kwargs)
        if found_items is not None:
            return Items(found_items) if has_gaps(found_items) else iter(found_items)
        if not any(map(has_gaps, (*args, *kwargs.values()))):
            return found(*args, **kwargs)
        handler = _TAKING[function] if among(function, _TAKING) else None
        if handler is not None and kwargs.keys() <= _KEYWORDS.get(function, set()):
            return handler(*args, **kwargs)
        if handler is None and (isinstance(function, np.ufunc) or among(function, SELECTED)):
            return function(*[as_array(arg) if has_gaps(arg) else arg for arg in args], **kwargs)
        return refuse(f"{getattr(function, '__name__', 'a function')}()")
    return checked


def by_test(function: Any, args: tuple[Any, ...]) -> Any:
    """filter(test, items) and its like, of items that are computed: data may say which of them there are.  None of all else."""
    if not among(function, _BY_TEST) or len(args) != 2 or not _are_computed(args[1]):
        return None
    found = _ITERATORS[function](*args)
    return Items(found) if has_gaps(found) else iter(found)


def _are_computed(items: Any) -> bool:
    """Whether it is an array or a list of what data may decide about; not what is known, of which Python asks."""
    if type(items) not in (builtins.list, builtins.tuple):
        return isinstance(items, Tracer) and bool(items.ndim)
    return not all(isinstance(one, bool | int | float | complex | str | None) for one in items)


def gone_over(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The elements of reversed(...), enumerate(...) or zip(...) of lists with gaps, as a list; None of all else."""
    if function is zip and any(type(arg) is Maybe for arg in args):        # zip(*items)
        return moved.columns(args)
    return _ITERATORS[function](*args, **kwargs) if among(function, _ITERATORS) and any(map(has_gaps, args)) else None
