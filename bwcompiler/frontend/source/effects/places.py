"""Changes by the bodies of loops and branches to anything besides variables: attributes of objects, items of dictionaries and lists, and
variables of enclosing functions (`nonlocal`).

A body is traced once, so its assignments to objects from outside would happen once.  Each such *place* (an object with the name of an
attribute, or a key) becomes a variable of the body, like the variables that have names: `changed` passes what is assigned to a
proxy, which records the place, and the body is traced again with it.  Lists that grow are in `growth`.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np

from bwcompiler.errors import BwError
from bwcompiler.frontend.source.concrete.makers import Part, changed_in_loop, maker_of
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.variables import (
    UNBOUND,
    Names,
    NotCapturable,
    held_in,
    is_bounded,
    not_capturable,
    open_policy,
    parts_of,
    put_into,
    same,
)
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.provenance.source import is_library
from bwcompiler.frontend.tracing.refusals.notes import RECURSION_NOTE
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer

_LISTS, _DICTIONARIES = (list,), (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
_IMMUTABLE = (bool, int, float, complex, str, bytes, tuple, frozenset, range, slice, np.generic, types.FunctionType, type(None))

_Found = TypeVar("_Found")
Key = tuple[int, str, Any]     # the id of an object, "attribute", "item" or "variable" (of a cell), and which


class Place:
    """An attribute, an item or a variable of another function, as a cell: a variable of bodies; or all items of a deque ("items")."""

    __slots__ = ("base", "key", "kind")

    def __init__(self, base: Any, kind: str, key: Any) -> None:
        self.base = base
        self.kind = kind
        self.key = key

    @property
    def cell_contents(self) -> Any:
        try:
            if self.kind == "variable":
                return self.base.cell_contents
            if self.kind == "items":
                return tuple(self.base)
            if self.kind == "item" and isinstance(self.base, dict) and self.key not in self.base:
                raise KeyError(self.key)           # of which a defaultdict would make one
            return getattr(self.base, self.key) if self.kind == "attribute" else self.base[self.key]
        except (AttributeError, KeyError, IndexError):
            raise ValueError("nothing is there") from None

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        if self.kind == "variable":
            self.base.cell_contents = value
        elif self.kind == "attribute":
            setattr(self.base, self.key, value)
        elif self.kind == "items":
            self.base.clear()
            self.base.extend(value)
        else:
            self.base[self.key] = value

    @cell_contents.deleter
    def cell_contents(self) -> None:
        if self.kind == "variable":
            del self.base.cell_contents
        elif self.kind == "attribute":
            delattr(self.base, self.key)
        else:
            del self.base[self.key]

    def __str__(self) -> str:
        if self.kind == "variable":
            return str(self.key)
        name = type(self.base).__name__
        if self.kind == "items":
            return name
        return f"{name}.{self.key}" if self.kind == "attribute" else f"{name}[{self.key!r}]"


_NO_NAMES, _NO_VARIABLES = Names(), Variables((), (), ())


class Scope:
    """A body that is being traced.

    own      containers and objects made in it: these may be changed there.
    places   of objects from outside, that are its variables: with the names of these.
    missing  places that were found to be assigned to in this attempt, with what they held.
    loop     the loop whose lists may grow in it (`array_backed/growth.py`); None in branches.
    cells, bound  the ids of the variables of functions around it that its code names, and of those that its own statements bind.
    changed  the variables, as cells, of which its statements assign to elements.
    test, side  of a branch: its test, and the number of the side that is being traced.
    tails    what the sides of a branch append to lists, by the ids of these (`gaps.Tail`); None elsewhere.
    reads_unsure  whether it has read a variable that may have no value.
    attempt  the `try` of which this body is a statement that is traced to see what it fails for; it is told of changes.
    """

    def __init__(self, names: Names = _NO_NAMES, variables: Variables = _NO_VARIABLES, loop: Any = None, is_branch: bool = False) -> None:
        self.cells = names.ids()
        self.bound = names.ids(variables.stored)
        self.changed = names.cells(variables.changed)
        self.tails: dict[int, Any] | None = {} if is_branch else None
        self.own: dict[int, Any] = {}
        self.places: dict[Key, tuple[Place, str]] = {}
        self.missing: dict[Key, tuple[Place, Any]] = {}
        self.loop = loop
        self.test: Any = None
        self.side = 0
        self.reads_unsure = False
        self.attempt: Any = None

    def owns(self, x: Any) -> bool:
        """Whether something was made in this body."""
        return x is not None and self.own.get(id(x)) is x

    def undo(self) -> None:
        """Give the missing places what they held, and take back what a side of a branch has appended."""
        for place, value in self.missing.values():
            put_into(place, value)
        for tail in (self.tails or {}).values():
            tail.taken()

    def forget_items(self, base: list[Any]) -> None:
        """What this attempt has assigned to elements of a list is undone: they are to be in arrays."""
        for key, (place, value) in list(self.missing.items()):
            if place.base is base:
                put_into(place, value)
                del self.missing[key]

    def with_elements(self, base: Any, held: Any) -> Any:
        """What a list held, with what was in elements that were assigned to in this attempt; all its items are one place from now on."""
        found = list(held)
        for key, (place, value) in list(self.missing.items()):
            if place.base is base and place.kind == "item" and type(place.key) is int and -len(found) <= place.key < len(found):
                found[place.key] = value
                del self.missing[key]
        return type(held)(found)

    def adopt(self, names: Names) -> dict[str, Any]:
        """Make variables of the missing places; their names, with what they held."""
        self.undo()
        held = {}
        for key, (place, value) in self.missing.items():
            name = str(place)
            while name in names:
                name += "'"
            names.add(name, place)
            self.places[key] = place, name
            held[name] = value
        self.missing.clear()
        return held

    def adopt_known(self, names: Names, keys: Iterable[Key], policy: Policy) -> dict[str, Any]:
        """Likewise of attributes and items that this body was found to assign to when it was traced before, as far as they are variables
        of bodies around it: so it need not be traced to find them again, which would be done anew in each attempt of all these."""
        around = {key: place for scope in policy.scopes for key, (place, _) in scope.places.items()}
        for key in keys:
            place = around.get(key)
            if place is not None and place.kind in ("attribute", "item") and id(place.base) not in self.bound:
                value = held_in(place)
                if value is not UNBOUND:
                    self.missing[key] = place, value
        return self.adopt(names)


def scopes_around(x: Any) -> list[Scope]:
    """The bodies for which x is from outside, outermost first."""
    policy = open_policy()
    scopes: list[Scope] = [] if policy is None else policy.scopes
    for number in range(len(scopes) - 1, -1, -1):
        if scopes[number].owns(x):
            return scopes[number + 1:]
    return scopes


def own_variables(function: types.FunctionType, names: Iterable[str]) -> None:
    """A function was defined that binds variables."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    own_cells([cells[name] for name in names])


def own_cells(cells: Iterable[types.CellType]) -> None:
    """Variables of a function are of the innermost body around it whose code cannot name them: they are made anew each time it runs."""
    policy = open_policy()
    scopes = [] if policy is None else policy.scopes
    for cell in cells:
        scope = next((scope for scope in reversed(scopes) if id(cell) not in scope.cells), None)
        if scope is not None:
            scope.own[id(cell)] = cell


def refuse_change(x: Any) -> None:
    """Something from outside is changed in a way that no variable stands for."""
    if scopes_around(x) and not isinstance(x, _IMMUTABLE):
        not_capturable(f"it changes {'a concrete array' if isinstance(x, np.ndarray) else type(x).__name__} {short(x)}")


def short(x: Any) -> str:
    text = repr(x)
    return text if len(text) < 40 else "..."


def assigned_to(x: Any) -> Any:
    """x, of which something is assigned to in a body; a proxy that notes the place where x is from outside."""
    if not scopes_around(x):
        return x
    if type(x) in _LISTS or type(x) in _DICTIONARIES or is_plain_object(x) or type(x) is types.FunctionType:
        return Shared(x)
    if type(x) is collections.deque or HANDLERS["is_queue"](x):
        return taking_along(x, lambda: x)()
    refuse_change(x)
    return x                                       # of which Python says why not


def is_plain_object(x: Any) -> bool:
    """Whether it is an object of a class that stores attributes as Python does."""
    kind: Any = type(x)
    return not isinstance(x, type | types.ModuleType) and kind.__setattr__ is object.__setattr__ and (
        kind.__getattribute__ is object.__getattribute__) and kind.__module__ != "builtins"


class Holder:
    """An object or container of which an attribute or item is combined with something in place."""

    __slots__ = ("_bw_shared",)

    def __init__(self, shared: Any) -> None:
        object.__setattr__(self, "_bw_shared", shared)

    def __getattr__(self, name: str) -> Any:
        return part_of(HANDLERS["attribute_of"](self._bw_shared, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._bw_shared, name, value)

    def __getitem__(self, key: Any) -> Any:
        return part_of(HANDLERS["item_of"](self._bw_shared, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if not _assigned_by_key(self._bw_shared, key, value, self):
            self._bw_shared[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._bw_shared[key]


def _assigned_by_key(items: Any, key: Any, value: Any, put: Any) -> bool:
    """Whether a dictionary or list was assigned to by a traced key."""
    if type(items) in _DICTIONARIES and (HANDLERS["is_one_of_known"](key) or any(
            isinstance(part, Tracer) for part in parts_of(key))):
        HANDLERS["assign_by_key"](items, key, value, put.__setitem__)
        return True
    if type(items) is list and isinstance(key, Tracer):
        HANDLERS["assign_element"](items, key, value, put.__setitem__)
        return True
    return False


class Shared(Holder):
    """One from outside of a body that is being traced: what is assigned to is noted."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if not is_plain_object(self._bw_shared):
            refuse_change(self._bw_shared)
        defined = getattr(type(self._bw_shared), name, None)
        if isinstance(defined, property) and isinstance(defined.fset, types.FunctionType) and not is_library(defined.fset.__code__):
            HANDLERS["call_of"](types.MethodType(defined.fset, self._bw_shared))(value)
            return
        if hasattr(type(defined), "__set__") and not isinstance(defined, types.MemberDescriptorType):
            not_capturable(f"it sets the property {type(self._bw_shared).__name__}.{name}")
        assign_place(Place(self._bw_shared, "attribute", name), value)

    def __setitem__(self, key: Any, value: Any) -> None:
        ways = () if HANDLERS["is_one_of_known"](key) else ("list", "table")
        if any(HANDLERS[f"assign_to_{what}"](self._bw_shared, key, value) for what in ways) or _assigned_by_key(
                self._bw_shared, key, value, self):
            return
        if type(self._bw_shared) in _LISTS:
            if type(key) is slice:
                self._assign_slice(key, value)
                return
            if type(key) is not int:
                refuse_change(self._bw_shared)
            self._bw_shared[key]                      # an error, where there is no such item
            key %= len(self._bw_shared)
        elif type(self._bw_shared) not in _DICTIONARIES or isinstance(key, Tracer):
            refuse_change(self._bw_shared)
        assign_place(Place(self._bw_shared, "item", key), value)

    def _assign_slice(self, part: slice, values: Any) -> None:
        """As many elements as there are in that part, which is known; a list that gets another length is none that a body can carry."""
        items = self._bw_shared
        if any(not isinstance(bound, int | None) for bound in (part.start, part.stop, part.step)):
            not_capturable(f"it assigns to a part of list {short(items)} that is not known", hint="an array, or items[k] = x in a loop")
        places = range(*part.indices(len(items)))
        values = HANDLERS["call_of"](list)(values)
        if len(places) != len(values):
            refuse_change(items)
        for place, value in zip(places, values, strict=True):
            self[place] = value

    def __delattr__(self, name: str) -> None:
        refuse_change(self._bw_shared)

    def __delitem__(self, key: Any) -> None:
        if type(self._bw_shared) in _DICTIONARIES:
            HANDLERS["wish_for_dictionary"](self._bw_shared)
        if type(self._bw_shared) not in _LISTS or isinstance(key, Tracer):
            refuse_change(self._bw_shared)
        HANDLERS["queue_of"](self._bw_shared, self._bw_shared.__delitem__)(key)


def part_of(found: Any) -> Any:
    """What an augmented assignment combines: an array made by the function may have to be a traced one."""
    policy = open_policy()
    if type(found) is np.ndarray:
        if policy is not None and policy.depth:
            changed_in_loop(found)
        return Part(found, found) if maker_of(found) is not None else found
    if type(found) is list and scopes_around(found):
        return Extended(found)
    if not isinstance(found, Tracer | Part) and not is_bounded(found):
        if is_plain_object(found) and not any(hasattr(type(found), f"__i{name}__") for name in _OPERATORS):
            return Combined(found)                 # x += y is x = x + y
        refuse_change(found)
    return found


_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor", "matmul")


class Combined:
    """An object of the user's that no operator changes, on the left of `+=` and its like."""

    __slots__ = ("base",)

    def __init__(self, base: Any) -> None:
        self.base = base


def _combined_by(name: str) -> Callable[[Combined, Any], Any]:
    return lambda self, value: HANDLERS["augmented"](f"i{name}", self.base, value)


for _name in _OPERATORS:
    setattr(Combined, f"__i{_name}__", _combined_by(_name))


class Extended:
    """A list from outside of a body, on the left of `+=`."""

    __slots__ = ("base",)

    def __init__(self, base: list[Any]) -> None:
        self.base = base

    def __iadd__(self, values: Any) -> list[Any]:
        HANDLERS["append_to_list"](self.base, *values)
        return self.base


def assign_place(place: Place, value: Any) -> None:
    """Assign to a place, which is noted where that changes it."""
    before = held_in(place)
    if before is not UNBOUND and same(before, value):
        return
    note_place(place)
    place.cell_contents = value


def note_place(place: Place) -> None:
    """A place is assigned to, or may be: it is to be a variable of the bodies for which it is from outside."""
    scopes = scopes_around(place.base)
    tails = [tail for scope in scopes if type(place.base) is list and (tail := _tail_of(place.base, scope)) is not None]
    if tails and type(place.key) is int and not 0 <= place.key < tails[0].start:
        place = Place(place.base, "items", None)   # of an element that a side has appended, or may have
    key = (id(place.base), place.kind, place.key)
    note_change(scopes)
    keys = {key, (id(place.base), "items", None)} if place.kind == "item" and type(place.base) is list else {key}
    scopes = [scope for scope in scopes if not any(one in scope.places or one in scope.missing for one in keys) and id(
        place.base) not in scope.bound]
    if not scopes:
        return
    held = held_in(place)
    parts = held if isinstance(held, tuple) and place.kind == "items" else (held,)
    if any(getattr(type(one), "is_poison", False) for one in parts):
        not_capturable(f"it changes a {type(place.base).__name__}, whose elements are in an array meanwhile, by another name")
    for number, scope in enumerate(scopes):
        before = _before_sides(place, held, scopes[number:])
        scope.missing[key] = place, scope.with_elements(place.base, before) if place.kind == "items" else before


def _before_sides(place: Place, held: Any, scopes: Sequence[Scope]) -> Any:
    """What a place held before bodies that are being traced: the items of a list without what sides of branches have appended."""
    tails = [_tail_of(place.base, scope) for scope in scopes] if place.kind == "items" else []
    starts = [tail.start for tail in tails if tail is not None]
    return held[:min(starts)] if starts else held


def _tail_of(base: Any, scope: Scope) -> Any:
    """What a side of a branch that is being traced has appended to a list, at its end; None where that is nothing."""
    tail = (scope.tails or {}).get(id(base))
    return tail if tail is not None and tail.target is base else None


def note_change(scopes: Iterable[Scope]) -> None:
    """Something from outside of these bodies is about to be changed."""
    for scope in scopes:
        if scope.attempt is not None:
            scope.attempt.note_change()


MOST_ITEMS = 64                # of a deque or list that a loop takes along


def taking_along(deque: Any, change: Callable[..., Any]) -> Callable[..., Any]:
    """A method that changes a deque, or a list like that, from outside of a body: its items are a variable of that."""
    def changed(*args: Any) -> Any:
        if not scopes_around(deque):
            return change(*args)
        if len(deque) > MOST_ITEMS:
            not_capturable(f"it changes a {type(deque).__name__} of {len(deque)} items (of up to {MOST_ITEMS} it could)")
        note_place(Place(deque, "items", None))
        return change(*args)
    return changed


def bound(names: Names, held: dict[str, Any]) -> None:
    """Places that a loop assigns to must be there before it; attributes that some iterations set become choices (`kinds.unbound`)."""
    for name, value in held.items():
        if value is UNBOUND and not names.is_attribute(name):
            new_in_loop(name)


def new_in_loop(name: str) -> NoReturn:
    """All iterations but the first have it."""
    not_capturable(f"{name} is new in the loop", peel=True)


def attempted(trace: Callable[[], _Found], policy: Policy, scope: Scope, keep: bool = False) -> _Found:
    """A traced body; any error of the user's code says that it cannot be captured, unless it is to be kept."""
    policy.depth += 1
    policy.scopes.append(scope)
    region = open_region()
    refusal = region.refusal
    try:
        return trace()
    except Exception as error:
        if keep:
            raise
        region.refusal = refusal
        raise NotCapturable(_first_line(error), getattr(error, "source", None)) from error
    finally:
        policy.depth -= 1
        policy.scopes.pop()


def _first_line(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return RECURSION_NOTE
    text = str(error).strip() or type(error).__name__
    return text if isinstance(error, BwError) else f"{type(error).__name__}: {text}"
