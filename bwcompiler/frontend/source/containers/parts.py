"""Objects and containers that a body creates and binds anew, `p = Particle(p.x + dt * p.v, p.v)`: split into their attributes and items.

These become ordinary variables of the body: numbers are carried, an object that is the same in all iterations stays the same, and nested
objects are split in turn.  Each iteration, and the code after the loop, has an object that is assembled from them: a double
(`effects.doubles`), which the program must not be able to tell from Python's object.  Lists, tuples, dictionaries, objects of the
user's classes and those in the place of SciPy's (splines, sparse arrays), and what data select (`selections`) can be split.
"""

from __future__ import annotations

import collections
import enum
import sys
from collections.abc import Collection, Iterable, Sequence
from types import CellType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bwcompiler.frontend.source.containers import selections
from bwcompiler.frontend.source.containers.progressions import Progression, parts_of
from bwcompiler.frontend.source.effects.doubles import is_double, note_double
from bwcompiler.frontend.source.effects.places import Scope
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, attribute
from bwcompiler.frontend.source.undecided.kinds.identities import is_kept
from bwcompiler.frontend.source.undecided.kinds.two_shapes import TwoShapes
from bwcompiler.frontend.source.undecided.lists.gaps import Block, Maybe, packed, unpacked
from bwcompiler.frontend.source.variables import Again, not_capturable, open_policy, same
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.outside.kinds import is_hidden_type
from bwcompiler.frontend.tracing.stand_ins import StandIn
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.contracts.plain_objects import HEAP_TYPE

MOST = 500                     # parts
_DICTIONARIES = (dict, collections.OrderedDict)
_LEAVES = (Tracer, TwoShapes, np.ndarray, np.generic, type, enum.Enum, BaseException)


class Form(NamedTuple):
    """What objects are that are taken apart into equal parts.  keys: names of attributes or fields, keys, or numbers of items.

    layout   of selections.
    """

    kind: type
    keys: tuple[Any, ...]
    layout: selections.Layout | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether such objects cannot change."""
        return issubclass(self.kind, tuple | Selection)

    def name(self, whole: str, key: Any) -> str:
        """What a part is called."""
        return f"{whole}[{key!r}]" if self.kind in (list, tuple, *_DICTIONARIES) else f"{whole}.{key}"

    def parts(self, x: Any) -> list[Any]:
        """The parts of x, which has this form."""
        if type(x) is Choice:
            return [attribute(x, key) for key in self.keys]
        if self.kind is Progression:
            return parts_of(x)
        if self.kind is Selection:
            return selections.parts_of(x)
        if isinstance(x, tuple | list):
            return packed(x) if _has_blocks(x) else list(x)
        return list(x.values()) if self.kind in _DICTIONARIES else [_held(x, key) for key in self.keys]

    def whole(self, parts: Sequence[Any]) -> Any:
        """An object of these parts."""
        if self.layout is not None:
            return selections.whole(self.layout, *parts)
        if self.kind in _DICTIONARIES:
            return self.kind(zip(self.keys, parts, strict=True))
        if issubclass(self.kind, tuple) and self.kind is not tuple:
            return self.kind._make(parts)  # type: ignore[attr-defined]
        if self.kind in (list, tuple):
            return self.kind(unpacked(parts) if any(type(part) is Block for part in parts) else parts)
        made: Any = object.__new__(self.kind)
        slots = _slots(self.kind)
        for key, part in zip(self.keys, parts, strict=True):
            if key in slots:
                object.__setattr__(made, key, part)
            else:
                made.__dict__[key] = part
        return made


def form_of(x: Any) -> Form | None:
    """How something is taken apart; None where it is not."""
    kind: Any = type(x)
    if kind is list or kind is tuple:
        found = Form(kind, tuple(range(len(packed(x) if _has_blocks(x) else x))))
    elif isinstance(x, tuple):
        if not hasattr(kind, "_fields"):
            return None
        found = Form(kind, kind._fields)
    elif kind in _DICTIONARIES:
        if any(isinstance(key, Tracer) for key in x):
            return None
        found = Form(kind, tuple(x))
    elif kind is Choice:
        forms = [form_of(thing) if _is_object(thing) else None for thing in x.options.things]
        return forms[0] if not x.has_value and all(form is not None and form == forms[0] for form in forms) else None
    elif _is_object(x):
        found = Form(kind, (*[name for name in _slots(kind) if hasattr(x, name)], *getattr(x, "__dict__", ())))
    else:
        return None
    return found if len(found.keys) <= MOST else None


def _has_blocks(items: Sequence[Any]) -> bool:
    """Whether some of the items were appended by a loop, and may be there or not."""
    return any(type(item) is Maybe for item in items)


def form_of_variable(x: Any) -> Form | None:
    """How what a variable holds is taken apart, which is bound anew: as elsewhere, and selections."""
    layout = selections.layout_of(x)
    return form_of(x) if layout is None else Form(Selection, selections.KEYS, layout)


def form_of_side(x: Any) -> Form | None:
    """How what a variable holds at the end of a side of a branch is taken apart: as elsewhere, and ranges; no objects that refer to
    each other.
    """
    if type(x) in (range, Progression):
        return Form(Progression, tuple(Progression.__slots__))
    return None if type(x) is Choice or (_is_object(x) and _leads_to_itself(x)) else form_of_variable(x)


def _leads_to_itself(x: Any) -> bool:
    """Whether something is a part of its own parts, like nodes that know their neighbours: such parts have no end."""
    pending = [x]
    followed: set[int] = set()
    while pending:
        one = pending.pop()
        form = form_of(one)
        parts = [] if form is None else form.parts(one)
        if any(part is x for part in parts):
            return True
        pending += [part for part in parts if id(part) not in followed]
        followed.update(map(id, parts))
    return False


def _is_object(x: Any) -> bool:
    """Whether it is an object of a class of the user's, or in the place of one of SciPy's, that has nothing but attributes."""
    kind: Any = type(x)
    return not isinstance(x, _LEAVES) and kind.__new__ is object.__new__ and kind.__getattribute__ is object.__getattribute__ and all(
        base is object or base.__flags__ & HEAP_TYPE for base in kind.__mro__) and kind is not Choice and (
        not is_hidden_type(kind) or issubclass(kind, StandIn))


def _slots(kind: type) -> dict[str, None]:
    """The names of the slots of a class."""
    found: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        names = base.__dict__.get("__slots__", ())
        found.update(dict.fromkeys([name for name in ((names,) if isinstance(names, str) else names) if name not in (
            "__dict__", "__weakref__")]))
    return found


def _held(x: Any, key: str) -> Any:
    found = getattr(x, "__dict__", {})
    return found[key] if key in found else object.__getattribute__(x, key)


def containers(x: Any) -> list[Any]:
    """All lists, dictionaries and objects in something that can change, as often as they are reached."""
    found: list[Any] = []
    pending, levels = [x], 0
    while pending and levels < 8:
        levels += 1
        following = []
        for one in pending:
            form = None if type(one) is Choice else form_of(one)
            if form is None or is_kept(one):
                found += [thing for thing in one.options.things if _is_object(thing) and not is_kept(thing)] if type(one) is Choice else ()
                continue
            found += [] if isinstance(one, tuple) else [one]
            following += form.parts(one)
        pending = following
    return found


def held_once(entry: dict[str, Any]) -> frozenset[int]:
    """The ids of objects and containers that a variable holds, of those in `entry`, and nothing else does."""
    policy, region = open_policy(), active_region()
    if policy is None or region is None or all(form_of(x) is None for x in entry.values()):
        return frozenset()
    registers = [policy.objects, policy.doubles, *[scope.own for scope in policy.scopes]]
    snapshots = [] if region.observer is None else region.observer.snapshots()
    once: list[int] = []

    def look(x: Any, references: int, expected: int) -> None:
        form = None if type(x) is Choice else form_of(x)
        if form is None or (isinstance(x, tuple) and not x):
            return
        noted = sum([register.get(id(x)) is x for register in registers]) + sum([
            value is x for snapshot in snapshots for value in snapshot.values()]) + (policy.containers.get(id(x), (None,))[0] is x)
        if references - noted > expected:
            return
        once.append(id(x))
        pending = form.parts(x)
        del x
        while pending:
            references = sys.getrefcount(pending[-1])
            look(pending[-1], references, _INSIDE)
            pending.pop()

    for name in entry:
        references = sys.getrefcount(entry[name])
        look(entry[name], references, _BOUND)
    return frozenset(once)


def _calibrated() -> tuple[int, int]:
    """How many references `held_once` sees of what one variable holds, and of what stands in that alone."""
    entry: dict[str, Any] = {"x": [[0]]}
    cell = CellType(entry["x"])
    pending = list(entry["x"])
    bound, inside = sys.getrefcount(entry["x"]), sys.getrefcount(pending[-1])
    del cell
    return bound, inside


_BOUND, _INSIDE = _calibrated()


class Alone:
    """Which objects one name alone has at the end of a body: those that it made, and `once`, that nothing else held before."""

    def __init__(self, scope: Scope, ends: Iterable[Any], once: Collection[int] = ()) -> None:
        self.scope = scope
        self.once = once
        self.reached = collections.Counter([id(one) for end in ends for one in containers(end)])

    def __call__(self, x: Any) -> bool:
        return isinstance(x, tuple) or ((self.scope.owns(x) or id(x) in self.once) and not is_double(x) and self.reached[id(x)] == 1)


def put_together(form: Form, parts: Sequence[Any], double: bool) -> Any:
    """An object of its parts, one of the body that is being traced."""
    policy, found = open_policy(), form.whole(parts)
    assert policy is not None
    policy.own_object(found)
    if double or isinstance(found, tuple):         # which nobody changes, but may compare
        note_double(found)
    return found


class Apart:
    """The variables of a loop that are taken apart, with the names of their parts; `loop` is a `capture.Traceable`.

    ends     what they hold at the end of an iteration; doubles: which of these other names may have, too.
    once     the ids of objects that one variable held before the loop, and nothing else did; shared: variables whose objects other names
             have later.  What neither is the case for is nobody else's, in no iteration: the body may change it.
    found    variables that are to be taken apart in the next attempt, and which of their parts (`_others`).
    """

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.forms: dict[str, tuple[Form, list[str]]] = {}
        self.ends: dict[str, Any] = {}
        self.doubles: set[str] = set()
        self.shared: set[str] = set()
        self.found: list[tuple[str, Others]] = []
        self.once = loop.names.once | held_once(loop.entry)

    def finds(self, name: str, start: Any, end: Any) -> bool:
        """Whether a variable, another object after an iteration than before it, is to be taken apart."""
        if name in self.loop.carried or not _are_alike(start, end):
            return False
        self.found.append((name, _others(start, end)))
        return True

    def add_found(self) -> None:
        """Between attempts, when everything is as it was before the loop: what was found is taken apart."""
        for name, others in self.found:
            self.add(name, others)
        self.found = []

    def add(self, name: str, others: Others | None = None) -> None:
        """Take a variable apart, and some of its parts."""
        loop, start = self.loop, self.loop.entry[name]
        form = form_of_variable(start)
        if form is None:
            return
        names = []
        for key, part in zip(form.keys, form.parts(start), strict=True):
            one = form.name(name, key)
            while one in loop.names:
                one += "'"
            loop.names.add(one, CellType(part))
            loop.entry[one] = part
            names.append(one)
        self.forms[name] = form, names
        variables = loop.variables
        loop.variables = variables._replace(stored=(*variables.stored, *names), carried=(*_but(variables.carried, name), *names),
                                            results=(*_but(variables.results, name), *names))
        for number, inner in (others or {}).items():
            self.add(names[number], inner)

    @property
    def parts(self) -> set[str]:
        """The names of all parts."""
        return {one for _, names in self.forms.values() for one in names}

    def begin(self) -> None:
        """Before an iteration, and before the test of one: the variables hold objects of what their parts are then."""
        for name, (form, names) in reversed(self.forms.items()):
            found = self.loop.names[name] = put_together(form, [self.loop.names[one] for one in names], self._may_be_shared(name))
            if form.layout is not None:
                selections.stands_for(found, self.loop.entry[name])

    def _may_be_shared(self, name: str) -> bool:
        return name in self.shared or id(self.loop.entry[name]) not in self.once

    def end(self) -> None:
        """After an iteration: the parts of what the variables hold then."""
        if not self.forms:
            return
        names, parts = self.loop.names, self.parts
        variables = self.loop.variables            # of the others nobody reads what they hold
        read = dict.fromkeys((*variables.carried, *variables.results, *self.forms))
        alone = Alone(self.loop.scope, [names[name] for name in read if name not in parts])
        for name, (form, names_of) in self.forms.items():
            end = self.ends[name] = names[name]
            if form_of_variable(end) != form:
                not_capturable(f"{name} does not keep its structure", peel=max(1, names.room(name, self.loop.entry[name])))
            for one, part in zip(names_of, form.parts(end), strict=True):
                names[one] = part
        self.doubles = {name for name, end in self.ends.items() if not alone(end)}
        found = {name for name in self.doubles if not self._may_be_shared(name) and not self.forms[name][0].is_fixed}
        if found:
            self.shared |= found
            raise Again(self.loop)
        assigned = self._assigned()
        for name, end in self.ends.items():        # of which the next iteration has a copy
            if not assigned.isdisjoint([id(one) for one in (self.loop.entry[name], *_things(end))]):
                not_capturable(f"it assigns to parts of {name}, which it also binds anew")

    def _assigned(self) -> set[int]:
        """The ids of objects from before the loop that the iteration has assigned to."""
        loop = self.loop
        return {key[0] for key in loop.scope.missing} | {
            key[0] for key, (_, name) in loop.scope.places.items() if not same(loop.names[name], loop.given.get(name, loop.entry[name]))}

    def settle(self) -> None:
        """After the loop: objects of what their parts are then."""
        for name, (form, names) in reversed(self.forms.items()):
            before = () if self.loop.runs or id(self.loop.entry[name]) in self.once else (self.loop.entry[name],)
            double = name in self.doubles or bool(before)
            found = self.loop.names[name] = put_together(form, [self.loop.names[one] for one in names], double)
            if form.layout is not None:
                selections.stands_for(found, self.ends[name], self.loop.entry[name])
            if double:
                note_double(*[one for one in (*_things(self.ends[name]), *before) if not isinstance(one, tuple)])


def _are_alike(start: Any, end: Any) -> bool:
    """Whether what a variable holds before and after an iteration is taken apart in the same way."""
    form = form_of_variable(start)
    return form is not None and form_of_variable(end) == form


Others: TypeAlias = "dict[int, Others]"


def _others(start: Any, end: Any) -> Others:
    """The parts, by number, that are tuples and other ones after an iteration than before it, with their parts: no reference is kept, as
    these are counted."""
    form = form_of_variable(start)
    assert form is not None
    pairs = enumerate(zip(form.parts(start), form.parts(end), strict=True))
    return {number: _others(one, other) for number, (one, other) in pairs
            if isinstance(one, tuple) and not same(one, other) and _are_alike(one, other)}


def _things(x: Any) -> Sequence[Any]:
    return x.options.things if type(x) is Choice else (x,)


def _but(names: Iterable[str], name: str) -> list[str]:
    return [one for one in names if one != name]
