"""What lists, dictionaries, objects and variables outside of a traced function held before it ran.

A function may store what it computes (`self.history.append(loss)`, `cache[k] = x`).  An attempt to trace it that is given up must leave
nothing of that: the next one, or Python, would find traced values of a trace that is over, or count twice.  After the last attempt they
stay where they are, and whoever uses them is told so (`EscapedTracerError`): Python, and other functions.  If the same function is traced
again, for other arguments or another derivative, it finds what was there before.  What a function computes of known things alone, and puts
where nothing was, stays: that is a cache.  (What other threads do to the same things while an attempt is traced that is given up is
undone with it.)
"""

from __future__ import annotations

import collections
import functools
import types
import weakref
from collections.abc import Iterable
from typing import Any

from bwcompiler.frontend.tracing.outside.kinds import has_own_attributes, own_slots
from bwcompiler.frontend.tracing.storages.region import Region
from bwcompiler.ir.contracts.call_signature import NOTHING, is_plain
from bwcompiler.ir.contracts.plain_objects import class_attribute
from bwcompiler.locks import RenewedLock

_OURS = "bwcompiler.frontend."     # of handles, and of what stands for objects of which data decide
_LEVELS = 4                        # of containers and objects in others


class Before:
    """What there was before an outermost trace, of all that is met in it; put back at its end, unless what was done `stays`."""

    def __init__(self, region: Region, fun: Any) -> None:
        self._region = region
        self._code = _code_of(fun)
        self._held: dict[Any, tuple[_Kind, Any, Any]] = {}
        self._stays = False

    def __enter__(self) -> Before:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._stays:
            for kind, owner, held in self._held.values():
                kind.undo(owner, held)
        self._held.clear()

    def note(self, owner: Any) -> None:
        """Something from outside that the function may change, before it is looked at."""
        kind: _Kind | None = next((kind for kind in (_LIST, _DICTIONARY, _SET) if isinstance(owner, kind.types)), None)
        if kind is None and has_own_attributes(owner):
            kind = _OBJECT
        if kind is not None:
            self._note(id(owner), kind, owner)

    def note_name(self, names: dict[str, Any], name: str) -> None:
        """A global name."""
        self._note((id(names), name), _Named(name), names)

    def note_cell(self, cell: types.CellType) -> None:
        """A variable of an enclosing function."""
        self._note(id(cell), _CELL, cell)

    def _note(self, key: Any, kind: _Kind, owner: Any) -> None:
        if key not in self._held:
            with _lock:
                lefts = [left for left in _left if left.code is self._code]
            for left in lefts:
                left.take_away(key)
            self._held[key] = kind, owner, kind.held(owner)

    def stays(self) -> None:
        """The trace is a good one: what the function has stored is left, until it is traced again."""
        self._stays = True
        places = {key: (kind, owner, held, kind.held(owner)) for key, (kind, owner, held) in self._held.items()
                  if kind.has_traced(owner, held)}
        if places and self._code is not None:
            self._region.left = left = Left(self._code, places)          # for as long as a traced value of it is somewhere
            with _lock:
                _left.add(left)


class Left:
    """Where a trace of a function has left traced values: how that is put back, what was there before, and what then."""

    def __init__(self, code: types.CodeType, places: dict[Any, tuple[_Kind, Any, Any, Any]]) -> None:
        self.code = code
        self._places = places

    def take_away(self, key: Any) -> None:
        kind, *held = self._places.pop(key, (None,))
        if kind is not None:
            kind.take_away(*held)


_left: weakref.WeakSet[Left] = weakref.WeakSet()
_lock = RenewedLock()


def _code_of(fun: Any) -> types.CodeType | None:
    """That of the user's function, which ours call."""
    while isinstance(fun, functools.partial | types.MethodType) or hasattr(fun, "__wrapped__"):
        fun = fun.func if isinstance(fun, functools.partial) else fun.__func__ if isinstance(fun, types.MethodType) else fun.__wrapped__
    found = fun if isinstance(fun, types.FunctionType) else class_attribute(type(fun), "__call__")
    return found.__code__ if isinstance(found, types.FunctionType) else None


class _Kind:
    """How things of one kind are looked at, and put back: by the entries that they have."""

    types: tuple[type, ...] = ()

    def held(self, owner: Any) -> dict[Any, Any]:
        raise NotImplementedError

    def put(self, owner: Any, key: Any, value: Any) -> None:
        """Give it an entry; NOTHING takes it away."""
        raise NotImplementedError

    def undo(self, owner: Any, held: Any) -> None:
        changed = list(_changed(held, self.held(owner)))
        if not all((before is NOTHING or before is None) and _is_cached(after) for _, before, after in changed):
            self.put_back(owner, held, changed)

    def put_back(self, owner: Any, held: Any, changed: Iterable[tuple[Any, Any, Any]]) -> None:
        for key, before, _ in changed:
            self.put(owner, key, before)

    def has_traced(self, owner: Any, held: Any) -> bool:
        return any(_is_traced(after) for _, _, after in _changed(held, self.held(owner)))

    def take_away(self, owner: Any, before: Any, after: Any) -> None:
        """Put back what was there before, in entries that have been what the trace has left there."""
        now = self.held(owner)
        for key, old, left in _changed(before, after):
            if now.get(key, NOTHING) is left and _is_traced(left):
                self.put(owner, key, old)


class _Dictionary(_Kind):
    types: tuple[type, ...] = (dict,)

    def held(self, owner: Any) -> dict[Any, Any]:
        return dict(owner)

    def put(self, owner: Any, key: Any, value: Any) -> None:
        if value is NOTHING:
            dict.pop(owner, key, None)
        else:
            dict.__setitem__(owner, key, value)

    def put_back(self, owner: Any, held: Any, changed: Iterable[tuple[Any, Any, Any]]) -> None:
        """As a whole, since keys have an order."""
        owner.clear()
        dict.update(owner, held) if type(owner) is not collections.OrderedDict else owner.update(held)


class _Object(_Kind):
    def held(self, owner: Any) -> dict[Any, Any]:
        slots = {name: getattr(owner, name) for name in own_slots(owner) if hasattr(owner, name)}
        return {**getattr(owner, "__dict__", {}), **slots}

    def put(self, owner: Any, key: Any, value: Any) -> None:
        if key in getattr(owner, "__dict__", {}):
            _DICTIONARY.put(owner.__dict__, key, value)
        elif value is NOTHING:
            object.__delattr__(owner, key)
        else:
            object.__setattr__(owner, key, value)


class _List(_Kind):
    types: tuple[type, ...] = (list, collections.deque)

    def held(self, owner: Any) -> Any:
        return list(owner)

    def undo(self, owner: Any, held: Any) -> None:
        if not _same(held, owner):
            self._fill(owner, held)

    def has_traced(self, owner: Any, held: Any) -> bool:
        before = set(map(id, held))
        return any(id(one) not in before and _is_traced(one) for one in owner)

    def take_away(self, owner: Any, before: Any, after: Any) -> None:
        """What was put in since stays, behind what was there before."""
        if _same(after, owner):
            self._fill(owner, before)
            return
        left = {id(one) for one in after if _is_traced(one)} - set(map(id, before))
        self._fill(owner, [one for one in owner if id(one) not in left])

    def _fill(self, owner: Any, items: Iterable[Any]) -> None:
        owner.clear()
        owner.extend(items)


class _Set(_List):
    types: tuple[type, ...] = (set,)

    def held(self, owner: Any) -> Any:
        return set(owner)

    def _fill(self, owner: Any, items: Iterable[Any]) -> None:
        owner.clear()
        owner.update(items)


class _Cell(_Kind):
    def held(self, owner: Any) -> dict[Any, Any]:
        try:
            return {"": owner.cell_contents}
        except ValueError:                         # not assigned yet
            return {}

    def put(self, owner: Any, key: Any, value: Any) -> None:
        if value is NOTHING:
            del owner.cell_contents
        else:
            owner.cell_contents = value


class _Named(_Kind):
    """One name among the global ones of a module."""

    def __init__(self, name: str) -> None:
        self.name = name

    def held(self, owner: Any) -> dict[Any, Any]:
        return {self.name: owner[self.name]} if self.name in owner else {}

    def put(self, owner: Any, key: Any, value: Any) -> None:
        _DICTIONARY.put(owner, key, value)


_LIST, _DICTIONARY, _SET, _OBJECT, _CELL = _List(), _Dictionary(), _Set(), _Object(), _Cell()


def _same(held: Any, owner: Any) -> bool:
    return len(held) == len(owner) and all(map(_are_one, held, owner))


def _are_one(one: Any, other: Any) -> bool:
    return one is other


def _changed(before: dict[Any, Any], after: dict[Any, Any]) -> Iterable[tuple[Any, Any, Any]]:
    """The entries that are not the same: key, what was there, and what is there now."""
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key, NOTHING), after.get(key, NOTHING)
        if one is not other:
            yield key, one, other


def _is_cached(value: Any) -> bool:
    """Whether it is worth keeping, and can be: no number, which may be a count, and nothing that is traced."""
    return value is not NOTHING and not is_plain(value) and not _is_traced(value)


def _is_traced(value: Any, levels: int = _LEVELS) -> bool:
    """Whether it is a handle, stands for something that data decide, or holds such things."""
    if is_plain(value):
        return False
    if type(value).__module__.startswith(_OURS):
        return True
    if not levels:
        return False
    parts: Iterable[Any] = ()
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list | tuple | set | frozenset | collections.deque):
        parts = value
    elif has_own_attributes(value):
        parts = _OBJECT.held(value).values()
    return any(_is_traced(part, levels - 1) for part in parts)
