"""What a loop was found to carry when it was traced before: another attempt to trace the function, or a loop around, comes to it again.

It is looked up by all that the body sees (`_Seen`): its variables, and those of functions that it calls, with their kinds and shapes and,
where they are known, their numbers.  With the same of all these the body finds the same again, so that it need not be traced to find it.
Names are known by the looks of the variables alone: where these are wrong the function is traced again without (`Misremembered`).
`loop` is a `capture.Traceable`.
"""

from __future__ import annotations

import types
from types import CellType
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.carried import first_writes, same_arrays
from bwcompiler.frontend.source.carried.carriable import can_be_carried
from bwcompiler.frontend.source.concrete.makers import maker_of
from bwcompiler.frontend.source.containers.progressions import Progression, parts_of
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.variables import UNBOUND, Names, attributes_of, held_in, is_number, same
from bwcompiler.frontend.tracing.policy import Misremembered, Policy
from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.contracts.plain_objects import HEAP_TYPE
from bwcompiler.ir.extent import Affine, Index

_LEVELS = 8                    # of containers, objects and functions that are looked into,
_MOST = 400                    # things in all of them: behind that nothing is said of kinds,
_SMALL = 64                    # and elements of arrays that are compared one by one


class Found(NamedTuple):
    """carried: variables of the function; starts: of those of the rewriting's own that had no value, what stands for that.

    added  what the loop carries besides: whether names have their arrays from before, and what first iterations leave in these.
    kinds  of all these; none where the body sees things that are not looked into.
    """

    carried: frozenset[str]
    starts: dict[str, Any]
    added: tuple[str, ...]
    kinds: dict[str, list[Kind]]


class Memory:
    """What one tracing of a loop remembers: by what it is known, and what was found then, if that is tried.

    Where the type of a traced value was asked for, nothing is: a loop may not begin with another one then than there is before it.
    """

    def __init__(self, loop: Any, policy: Policy) -> None:
        self.loop = loop
        self.policy = policy
        seen = _Seen(loop)
        modes = policy.loops, policy.as_data, policy.windows, policy.real_results, policy.one_kind
        shape = loop.index is None, isinstance(loop.count, int), loop.capacity is None, loop.runs, tuple(loop.variables)
        body = seen.of(loop.run), tuple([(name, seen.of(value)) for name, value in loop.names.held(loop.names).items()])
        self.key = loop.site, modes, shape, body
        self.sees_all = not seen.is_partial
        self.before = loop.variables.carried
        self.looks = {name: id(value) for name, value in loop.entry.items()}     # others count the references to what variables hold
        self.is_new = not loop.kinds and not loop.apart.forms and not loop.scope.places
        self.found: Found | None = policy.carrying.get(self.key) if self.is_new else None
        self.guess: list[str] = []
        self.refusal = open_region().refusal

    def begin(self) -> None:
        """The loop carries what was found before; else the arrays that its text says to be bound anew."""
        loop, found = self.loop, self.found
        if found is None or self.policy.types_asked:
            self.found = None
            if self.is_new and self.key not in self.policy.carrying:
                self._guess()
            return
        loop.entry.update(found.starts)
        self.policy.choices = self.policy.choices or any(type(start) is Choice for start in found.starts.values())
        loop.carried |= found.carried
        for name in found.added:
            start = _start_of(loop, name)
            loop.names.add(name, CellType(start))
            loop.add(name, start)
            loop.carried.add(name)
        loop.kinds.update({name: list(kinds) for name, kinds in found.kinds.items()})

    def _guess(self) -> None:
        loop = self.loop
        self.guess = [name for name in loop.variables.rebound if name not in loop.carried and isinstance(
            loop.entry[name], Tracer | np.ndarray) and can_be_carried(loop.entry[name])]
        loop.carried.update(self.guess)
        if not loop.runs:
            self.guess += same_arrays.missing_flags(loop, self.guess)

    def has_guessed(self) -> bool:
        return bool(self.guess)

    def has_guessed_wrong(self) -> bool:
        """Whether an iteration leaves one of these arrays as it was."""
        loop = self.loop
        return any(not is_number(loop.entry[name]) and same(loop.ends[name], loop.given[name]) for name in self.guess)

    def undo_guess(self) -> None:
        """The body is to be traced without."""
        loop, flags = self.loop, [name for name in self.guess if _is_added(name)]
        loop.carried.difference_update(self.guess)
        stored, carried, results = [tuple([name for name in names if name not in flags]) for names in loop.variables[:3]]
        loop.variables = loop.variables._replace(stored=stored, carried=carried, results=results)
        for name in self.guess:
            loop.kinds.pop(name, None)
        for name in flags:
            del loop.entry[name]
        loop.names.restore(loop.entry)
        open_region().refusal = self.refusal
        self.guess = []

    def forget(self) -> None:
        """The loop cannot be recorded as it was before: the function is traced again, and this one anew."""
        if self.found is not None:
            self.policy.carrying[self.key] = None
            raise Misremembered(self.loop.site)

    def note(self) -> None:
        """The body has given back what it got."""
        loop = self.loop
        if self.found is not None:
            if self.policy.types_asked or any(not is_number(loop.entry[name]) and same(loop.ends[name], loop.given[name])
                                                for name in self.found.carried if name in loop.given):
                self.forget()
            return
        if not self.is_new or self.key in self.policy.carrying or loop.exchange is not None or loop.moving or self.policy.types_asked:
            return
        starts = {name: loop.entry[name] for name in self.before if self.looks.get(name) != id(loop.entry[name])}
        if not all(name.startswith(PREFIX) and self.looks[name] == id(UNBOUND) and _is_constant(start) for name, start in starts.items()):
            return
        carried = frozenset(name for name in self.before if name in loop.carried)
        added = tuple([name for name in loop.variables.carried if name in loop.carried and _is_added(name)])
        kinds = {name: list(loop.kinds[name]) for name in (*carried, *added) if name in loop.kinds} if self.sees_all else {}
        self.policy.carrying[self.key] = Found(carried, starts, added, kinds)


def _is_constant(start: Any) -> bool:
    """Whether it is the same in each attempt: nothing that was traced, and of a choice nothing but None and the like."""
    things = start.options.things if type(start) is Choice else ()
    return not any(isinstance(leaf, Tracer) for leaf in tree.leaves(start)) and all(
        thing is None or thing is UNBOUND or isinstance(thing, str) for thing in things)


def _is_added(name: str) -> bool:
    return name.startswith((same_arrays.SAME, first_writes.KEPT)) or name == first_writes.LATER


def _start_of(loop: Any, name: str) -> Any:
    if name.startswith(first_writes.KEPT):
        return loop.entry[name.removeprefix(first_writes.KEPT)]
    return name != first_writes.LATER


class _Seen:
    """What a body sees, as something that can be compared; is_partial: there is more, of kinds that are not looked into."""

    def __init__(self, loop: Any) -> None:
        self.is_partial = False
        self.met: dict[int, int] = {id(loop): 0}   # things by their ids, in order: what is met again has been looked into,
        self.kept: list[Any] = []                  # and stays until the end, so that no other thing gets its id

    def of(self, x: Any, levels: int = _LEVELS) -> Any:
        if isinstance(x, Tracer):
            return _of_handle(x), self._number(x._storage)
        if x is None or isinstance(x, bool | int | float | complex | str | bytes | np.generic | Affine):
            return type(x), "" if isinstance(x, Affine) else repr(x)
        if isinstance(x, np.ndarray):
            return self._of_array(x)
        if x is UNBOUND or isinstance(x, _ALIKE):
            return type(x)
        if isinstance(x, _SELVES):
            return id(x)
        if id(x) in self.met:
            return self.met[id(x)]
        number = self._number(x)
        parts = _parts(x) if levels and number < _MOST else None
        if parts is None:
            self.is_partial = True
            return type(x)
        return type(x), tuple([self.of(part, levels - 1) for part in parts])

    def _number(self, x: Any) -> int:
        if id(x) not in self.met:
            self.kept.append(x)
        return self.met.setdefault(id(x), len(self.met))

    def _of_array(self, x: Any) -> Any:
        """A small one with its elements, on which it may depend what a body does; a large one from outside by where it lies."""
        looks = x.dtype, x.shape
        if not x.dtype.hasobject and x.size <= _SMALL:
            return *looks, x.tobytes()
        if x.dtype.hasobject or maker_of(x) is not None:
            self.is_partial = True
            return looks
        return *looks, x.strides, x.__array_interface__["data"]


_SELVES = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, np.ufunc)
_ALIKE = (Names, Policy, Index)


def _of_handle(x: Tracer) -> Any:
    shape = tuple([size if isinstance(size, int) else "moves" for size in x._type.shape])
    return type(x), x._kind, x._type.dtype, shape, x._storage.writable, bool(x._chain)


def _parts(x: Any) -> list[Any] | None:
    """What is looked into of a container, a function or an object; None of others."""
    if isinstance(x, list | tuple):
        return list(x)
    if isinstance(x, dict):
        return [*x, *x.values()]
    if type(x) in (range, Progression):            # the latter says that it is one of the former
        return parts_of(x)
    if isinstance(x, types.FunctionType):
        return [x.__code__, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values(), *map(held_in, x.__closure__ or ())]
    if isinstance(x, types.MethodType):
        return [x.__func__, x.__self__]
    return [attributes_of(x)] if _has_attributes_alone(type(x)) else None


def _has_attributes_alone(kind: Any) -> bool:
    """Whether objects of a class have nothing but what their dictionaries hold."""
    made_here = all(base is object or (base.__flags__ & HEAP_TYPE and "__slots__" not in base.__dict__) for base in kind.__mro__)
    return made_here and kind.__new__ is object.__new__ and bool(kind.__dictoffset__)
