"""Lookups of traced keys in dictionaries, sets and lists: `table[k]`, `table.get(k, 0.0)`, `k in {1, 2}`, `counts[k] += 1`.

All keys are compared with the traced one at once; the value is chosen by the number of the key that is equal.
"""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.source.effects.checks import raise_where, raised
from bwcompiler.frontend.source.effects.doubles import refuse_double
from bwcompiler.frontend.source.library.builtin_functions import choose_number
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, Options, chosen_of, is_known, is_one_of_known
from bwcompiler.frontend.source.undecided.lists.gaps import has_gaps
from bwcompiler.frontend.source.undecided.lists.ragged import are_ragged, one_of
from bwcompiler.frontend.source.variables import is_bounded, is_number, not_capturable, open_policy, parts_of, same
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.shared_arrays import share
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.refusals.demands import may_become_known
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.frontend.tracing.truths import are_pythons
from bwcompiler.ir.extent import lower, upper

_DICTIONARIES = (dict, collections.OrderedDict)
_PLAIN = (bool, int, float, complex)
_NOTHING = object()
MOST = 1000                    # keys
_WHY_NOT = ": it is one of several arrays that a dictionary holds\n  hint: write to a copy, table[k].copy()"


def is_traced_key(items: Any, key: Any) -> bool:
    """Whether a dictionary is asked by a key that is traced, or has parts that are traced or one of several things."""
    if type(items) not in _DICTIONARIES:
        return False
    return any(isinstance(part, Tracer) for part in parts_of(key)) or has_choices(key)


def has_choices(key: Any) -> bool:
    """Whether a key is one of several known things, or has parts that are."""
    return is_one_of_known(key) or (type(key) is tuple and any(type(part) is Choice and not part.has_value for part in key))


def may_miss(items: Any, key: Choice) -> bool:
    """Whether a dictionary has some of the keys that one may be, and not all."""
    has = [thing in items for thing in key.options.things] if type(items) in _DICTIONARIES and is_one_of_known(key) else []
    return any(has) and not all(has)


def look_up(items: Any, key: Any, default: Any = _NOTHING) -> Any:
    """items[key], or items.get(key, default)."""
    keys, which = _found(items, key)
    values = [items[one] for one in keys]
    if not keys and default is not _NOTHING:
        return default
    if default is not _NOTHING:
        found = which >= 0
        return _chosen([*values, default], np.where(found, which, len(values)))
    if not is_among(keys, key):
        _require(which, key, KeyError, f"{key}")
    return _chosen(values, np.maximum(which, 0))


def contains(items: Iterable[Any], key: Any) -> Any:
    """key in items, of a dictionary or a set."""
    keys, which = _found(items, key)
    return which >= 0 if keys else False


def _found(items: Iterable[Any], key: Any) -> tuple[list[Any], Any]:
    """The keys that a traced one may be equal to, and the number of the one that is, -1 where there is none."""
    if not has_choices(key):
        keys = _comparable(items, key)
        return keys, _place(keys, key) if keys else -1
    possible, which = _choices(key)
    keys = [one for one in possible if one in items]
    if len(keys) < len(possible):
        places = dict(zip(keys, range(len(keys)), strict=True))
        which = call(as_tracer, np.array([places.get(one, -1) for one in possible]))[which]
    return keys, which


def _choices(key: Any) -> tuple[list[Any], Any]:
    """All that a key may be some parts of which are one of several known things, and the number of the one that it is."""
    if type(key) is Choice:
        return list(key.options.things), key.which
    options: list[tuple[Any, ...]] = []
    which: Any = 0
    for part in key:
        is_choice = type(part) is Choice and not part.has_value
        if any(isinstance(inside, Tracer) for inside in parts_of(part)) or (type(part) is Choice and not is_choice):
            not_capturable("it asks a dictionary for keys of which some parts are traced and others one of several things")
        options.append(part.options.things if is_choice else (part,))
        which = which * len(options[-1]) + (part.which if is_choice else 0)
    if math.prod(map(len, options)) > MOST:
        not_capturable(f"it asks a dictionary for one of more than {MOST} keys")
    return list(itertools.product(*options)), which


def assign(items: Any, key: Any, value: Any, put: Any) -> None:
    """items[key] = value, where the key is one that the dictionary has; put(key, value) assigns."""
    if is_one_of_known(key):
        _assign_known(items, key, value, put)
        return
    keys = _comparable(items, key)
    refuse_double(items)
    which = _place(keys, key) if keys else -1
    if not keys or not is_among(keys, key):
        HANDLERS["want_bounded"](items, key, value)
        if not keys or parts_of(key) != [*(key if type(key) is tuple else (key,))]:
            _ask_for(key)
        _require(which, key, TracerError, f"{key} is a new key of a dictionary: compiled code assigns to keys that are there\n"
                 "  hint: give it all keys before, {k: 0.0 for k in keys}, or take an array")
    for place, one in enumerate(keys):
        put(one, _either(which == place, value, items[one]))


HANDLERS["assign_by_key"] = assign


def _ask_for(key: Any) -> None:
    """Trace again with the numbers known that a key consists of, where these are integer arguments."""
    for part in parts_of(key):
        if isinstance(part, Tracer) and may_become_known(part):
            int(part)


def _assign_known(items: Any, key: Any, value: Any, put: Any) -> None:
    """The same by a key that is one of several strings, or objects."""
    refuse_double(items)
    for place, one in enumerate(key.options.things):
        if one not in items:
            HANDLERS["want_bounded"](items, key, value)
            raise TracerError(at(current_source(), f"{one!r} may be a new key of a dictionary: compiled code assigns to keys that are "
                                 "there\n  hint: give it all keys before, {k: 0.0 for k in keys}"))
        put(one, _either(key.which == place, value, items[one]))


def _either(test: Any, value: Any, other: Any) -> Any:
    if is_number(value) and is_number(other):
        return call(choose_number, test, value, other)
    return HANDLERS["choose"](test, lambda: value, lambda: other)


def element(items: Any, index: Any) -> Any:
    """items[index] of a list or tuple, at a traced place."""
    return _chosen(list(items), _in_range(items, index))


_CHANGING = frozenset(("add", "append", "appendleft", "clear", "discard", "extend", "insert", "update"))
_OF_LISTS = ("a list is changed that is in a list whose number of elements depends on data\n  hint: the one that is changed in a variable "
             "of its own, which is put into the other one when it is complete: run.append(x); and where the next one begins, "
             "runs.append(run); run = []")
_MOST_CHANGED = 64             # containers of which data say which one is changed


def changing(items: Any, index: Any, name: str) -> Callable[..., None] | None:
    """A method that changes one of several containers, `buckets[k].append(x)`, where data say which one: each is changed in a branch.

    None of all else.
    """
    if type(items) not in (list, tuple, *_DICTIONARIES) or name not in _CHANGING or not 0 < len(items) <= _MOST_CHANGED:
        return None
    if has_gaps(items) and type(index) is int and any(type(one) is list for one in items) and has_gaps(
            items[:index + 1] if index >= 0 else items[index:]):
        raise TracerError(at(current_source(), _OF_LISTS))
    of_keys = type(items) in _DICTIONARIES
    if of_keys and is_one_of_known(index):
        things = index.options.things
        return _changing_one([items[one] for one in things], index.which, name) if all(one in items for one in things) else None
    if not (is_traced_key(items, index) if of_keys else isinstance(index, Tracer)) or any(
            extent_of(part) is not None for part in tree.leaves(index) if isinstance(part, Tracer)):
        return None
    keys = _comparable(items, index) if of_keys else range(len(items))
    containers = [items[key] for key in keys]
    if not _can_change(containers, name):
        return None
    if of_keys:
        which = _place(keys, index)
        if not is_among(keys, index):
            _require(which, index, KeyError, f"{index}")
    else:
        which = _in_range(items, index)
    return _changing_one(containers, which, name)


def _can_change(containers: Sequence[Any], name: str) -> bool:
    return bool(containers) and all(
        (type(one) in (list, set, collections.deque) or is_bounded(one)) and hasattr(one, name) for one in containers)


def _changing_one(containers: Sequence[Any], which: Any, name: str) -> Callable[..., None] | None:
    """The method of the container that a number says."""
    if not _can_change(containers, name):
        return None

    def change(*args: Any, **options: Any) -> None:
        def side(container: Any) -> Callable[[], None]:
            return lambda: HANDLERS["call_of"](getattr(container, name))(*args, **options)
        for number, container in enumerate(containers):
            HANDLERS["choose"](which == number, side(container), lambda: None)
    return change


def assign_element(items: Any, index: Any, value: Any, put: Any) -> None:
    """items[index] = value of a list, at a traced place; put(number, value) assigns."""
    refuse_double(items)
    which = _in_range(items, index)
    for place, other in enumerate(list(items)):
        put(place, _either(which == place, value, other))


HANDLERS["assign_element"] = assign_element


def _in_range(items: Any, index: Any) -> Any:
    """A traced index from the beginning, checked when the program runs."""
    if are_pythons(index):
        index = HANDLERS["call_of"](int)(index)
    if index._type.shape or not index._type.dtype.is_integer:
        raise TypeError(f"list indices must be integers or slices, not {index.dtype if index._type.shape == () else 'numpy.ndarray'}")
    count = len(items)
    if not 0 < count <= MOST:
        raise TracerError(at(current_source(), f"a {type(items).__name__} of {count} elements is asked for one at a traced place\n"
                             "  hint: take an array"))
    span = _span(index)
    if span is None or span.start < -count or span.stop > count:
        raise_where(np.logical_or(index < -count, index >= count), IndexError(f"{type(items).__name__} index out of range"))
    return index if span is not None and span.start >= 0 else np.where(index < 0, index + count, index)


def _comparable(items: Iterable[Any], key: Any) -> list[Any]:
    """The keys that a traced one may be equal to: numbers for a number, tuples of numbers for a tuple."""
    if any(isinstance(part, Tracer) and part._type.shape for part in parts_of(key)):
        raise TypeError("unhashable type: 'numpy.ndarray'")
    found = [one for one in items if _fits(key, one)]
    if len(found) > MOST:
        raise TracerError(at(current_source(), f"a dictionary of {len(found)} keys is asked by a traced one, of which there may be {MOST}\n"
                             "  hint: an array whose indices are the keys"))
    return found


def _fits(key: Any, one: Any) -> bool:
    if type(key) is tuple:
        return type(one) is tuple and len(one) == len(key) and all(map(_fits, key, one))
    return isinstance(one, (*_PLAIN, np.number, np.bool_)) if isinstance(key, Tracer) else bool(one == key)


def _place(keys: Sequence[Any], key: Any) -> Any:
    """The number of the key that is equal, -1 where there is none."""
    columns = zip(*map(parts_of, keys), strict=True)
    equal: Any = None
    for part, column in zip(parts_of(key), columns, strict=True):
        if not isinstance(part, Tracer):
            continue
        one = call(as_tracer, np.array(column)) == part
        equal = one if equal is None else np.logical_and(equal, one)
    return np.where(np.any(equal), np.argmax(equal), -1)


def is_among(keys: Sequence[Any], key: Any) -> bool:
    """Whether all values that a key can have are there, as is known of indices of loops and remainders."""
    if has_choices(key):
        return set(keys).issuperset(_choices(key)[0])
    parts = parts_of(key)
    spans = [_span(part) if isinstance(part, Tracer) else (part,) for part in parts]
    known = [span for span in spans if span is not None]
    if len(known) < len(spans) or math.prod(map(len, known)) > MOST:
        return False
    return {tuple(parts_of(one)) for one in keys if _fits(key, one)}.issuperset(itertools.product(*known))


def _span(key: Any) -> range | None:
    extent = extent_of(key)
    if extent is not None:
        return range(lower(extent), upper(extent) + 1)
    value = call(value_of, key)
    if value.op is ops.remainder and value.operands[1].op is ops.full and value.dtype.is_integer:
        parts = value.operands[1].attrs["value"]
        return range(parts) if parts > 0 else None
    return None


def _require(which: Any, key: Any, kind: type[Exception], text: str) -> None:
    """Record that there is such a key; a loop whose index is the key is unrolled, which shows whether there is."""
    policy = open_policy()
    is_by_index = any(isinstance(part, Tracer) and extent_of(part) is not None for part in parts_of(key))
    if policy is not None and policy.depth and (is_by_index or not isinstance(which, Tracer)):
        not_capturable(f"it asks a dictionary for {key}, which is not there for all of them")
    if not isinstance(which, Tracer):
        raise raised(kind(text))
    raise_where(which < 0, kind(text))


def _chosen(values: list[Any], which: Any) -> Any:
    """values[which], at a place that is there."""
    if all(same(one, values[0]) for one in values):
        return values[0]
    if all(map(is_number, values)):
        return _number(values, which)
    if all(map(is_known, values)):
        joined = Options(values)
        return chosen_of(joined, call(as_tracer, np.array([joined.place(one) for one in values]))[which])
    if all(isinstance(one, Tracer | np.ndarray) for one in values) and len({np.shape(one) for one in values}) == 1:
        found = np.stack([call(as_tracer, one) for one in values])[which]
        found = found * 1 if not isinstance(found, Tracer) else found.copy()
        share(found, [one._storage for one in values if isinstance(one, Tracer)], "what a dictionary holds", _WHY_NOT)
        return found
    if are_ragged(values):
        return one_of(values, which, _chosen)
    return _one_by_one(values, which, 0)


HANDLERS["one_of_values"] = _chosen


def _number(values: list[Any], which: Any) -> Any:
    kinds = {one._kind if isinstance(one, Tracer) else type(one) for one in values}
    found = np.stack([call(as_tracer, one) for one in values])[which]
    if kinds <= {int, float}:
        found._kind = float if float in kinds else int
    return found


def _one_by_one(values: list[Any], which: Any, place: int) -> Any:
    """What is neither numbers nor arrays alone: by branches."""
    if place == len(values) - 1:
        return values[place]
    return HANDLERS["choose"](which == place, lambda: values[place], lambda: _one_by_one(values, which, place + 1))


def get(items: Any) -> Any:
    """The method `get` of a dictionary."""
    def found(key: Any, default: Any = None, /) -> Any:
        return look_up(items, key, default) if open_policy() is not None and is_traced_key(items, key) else items.get(key, default)
    return found
