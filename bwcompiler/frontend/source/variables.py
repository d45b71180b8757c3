"""The variables that a captured body shares with its function, and their values before and after it."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Container, Iterable, Iterator
from types import CellType
from typing import Any, NoReturn

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.tracing.policy import Policy, Site
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import active_region
from bwcompiler.frontend.tracing.storages.views import same_chain
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.contracts.call_signature import is_plain
from bwcompiler.ir.extent import Extent, Index
from bwcompiler.ir.source import Source


class _Unbound:
    def __repr__(self) -> str:
        return "nothing"


UNBOUND = _Unbound()           # in the place of the value of a variable that has none


class NotCapturable(BaseException):
    """A loop or branch cannot be recorded as one; not an Exception, so that `except` in the user's code does not swallow it.

    peel    perhaps it can after its first iteration, which is another one than the others, or after so many.
    repeat  it can if that many iterations are one: arrays that are assigned to change their names then are where they were.
    end     it can in two parts, of which that is the last iteration of the first.
    hint    what to write instead, where more is known than that it is a loop or a branch.
    fills   a list got longer in it, which perhaps it does until it has its length: then an iteration after that one is to be peeled, too.
    """

    def __init__(self, reason: str, source: Source | None = None, peel: int = False, repeat: int = 1, end: Extent | None = None,
                 fills: bool = False, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.source = source
        self.peel = peel
        self.repeat = repeat
        self.end = end
        self.fills = fills
        self.hint = hint

    def told(self, hint: str) -> str:
        """The reason, with what to write instead: `hint`, where nothing better is known."""
        return self.reason if "\n  hint: " in self.reason else f"{self.reason}\n  hint: {self.hint or hint}"


class Divided(BaseException):
    """What is in the body of the loop over `index` is affine in it if `parts` iterations are one."""

    def __init__(self, index: Index, parts: int) -> None:
        self.index = index
        self.parts = parts


class Again(BaseException):
    """The body of a loop has to be traced again, as more is known of what it carries; `loop` is the one whose body it is."""

    def __init__(self, loop: Any, carried: set[str] | None = None) -> None:
        self.loop = loop
        self.carried = carried or set()


def why_unbound(name: str, hint: str) -> str:
    """What is said where a variable is used that may have no value; a `return` in a loop makes one that the user does not know."""
    if name.startswith(PREFIX):
        return ("a loop that ends when data say so returns something that is no array or number (a text, an object)\n"
                "  hint: return a number, and choose by it outside: (\"none\", \"text\")[f(x)]")
    return f"{name} may have no value here, which is not known while tracing\n  hint: {hint}"


def not_capturable(reason: str, peel: int = False, hint: str = "") -> NoReturn:
    """Raise NotCapturable with the user's line."""
    region = active_region()
    raise NotCapturable(reason, current_source(region.outer if region is not None else None), peel, hint=hint)


# What has a number of items that data decide.
OF_LENGTHS = ("as many items on all ways through it (a deque that is full before, deque([0.0] * n, maxlen=n)); or an array of fixed size, "
              "and the number of those in use: kept = np.zeros(n); kept[count] = x; count += 1")


def held_in(cell: Any) -> Any:
    """What a cell, or what stands for one (`effects.places.Place`), holds now; or UNBOUND."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def put_into(cell: Any, value: Any) -> None:
    """Give a cell what it held."""
    if value is not UNBOUND:
        cell.cell_contents = value
    elif held_in(cell) is not UNBOUND:
        del cell.cell_contents


class Names:
    """Variables of a function by name, as its bodies see them: cells.

    once    the ids of objects that one of them held before, and nothing else did (`containers.parts.held_once`).
    """

    def __init__(self, *bodies: Callable[..., Any]) -> None:
        self.once: frozenset[int] = frozenset()
        self._cells: dict[str, Any] = {}
        for body in bodies:
            self._cells.update(zip(body.__code__.co_freevars, body.__closure__ or (), strict=True))

    def add(self, name: str, cell: Any) -> None:
        """One more variable, of nobody's function."""
        self._cells[name] = cell

    def cells(self, names: Iterable[str]) -> list[Any]:
        """The cells of some variables."""
        return [self._cells[name] for name in names if name in self._cells]

    def ids(self, names: Iterable[str] | None = None) -> frozenset[int]:
        """The ids of the cells of some variables, or of all."""
        return frozenset(map(id, self._cells.values() if names is None else self.cells(names)))

    def room(self, name: str, held: Any) -> int:
        """How many items more a variable gets than it held, if it stands for a deque, until that drops one for each; else 0."""
        cell = self._cells[name]
        most = getattr(cell.base, "maxlen", None) if self.is_queue(name) else None
        return 0 if most is None else int(most - len(held))

    def base_of(self, name: str) -> Any:
        """The list or deque for all items of which a variable stands."""
        return self._cells[name].base

    def is_queue(self, name: str) -> bool:
        """Whether a variable stands for all items of a deque or list."""
        return getattr(self._cells[name], "kind", "") == "items"

    def is_place(self, name: str) -> bool:
        """Whether it is something else than a variable of the function."""
        return type(self._cells[name]) is not CellType

    def is_attribute(self, name: str) -> bool:
        """Whether a variable stands for an attribute of an object."""
        return getattr(self._cells[name], "kind", "") == "attribute"

    def name_of(self, storage: Any) -> str | None:
        """A variable that holds an array of that storage."""
        for name in self._cells:
            held = self[name]
            if isinstance(held, Tracer) and held._storage is storage:
                return name
        return None

    def __contains__(self, name: str) -> bool:
        return name in self._cells

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __getitem__(self, name: str) -> Any:
        return held_in(self._cells[name])

    def __setitem__(self, name: str, value: Any) -> None:
        put_into(self._cells[name], value)

    def held(self, names: Iterable[str]) -> dict[str, Any]:
        """What variables hold now."""
        return {name: self[name] for name in names}

    def restore(self, held: dict[str, Any]) -> None:
        """Give them what they held."""
        for name, value in held.items():
            self[name] = value


def site_of(body: Callable[..., Any]) -> Site:
    """The statement that a body belongs to."""
    code = body.__code__
    return (code.co_filename, code.co_firstlineno, next((start for _, _, start, _ in code.co_positions() if start), 0))


def open_policy() -> Policy | None:
    """How control flow is captured here; None outside of any trace."""
    region = active_region()
    return None if region is None else region.policy


def same(x: Any, y: Any) -> bool:
    """Whether a variable holds what it held: the same object, another handle of the same elements, or an equal plain value."""
    if x is y:
        return True
    if isinstance(x, Tracer) and isinstance(y, Tracer):
        return x._storage is y._storage and same_chain(x._chain, y._chain)
    if isinstance(x, types.MethodType) and isinstance(y, types.MethodType):        # which are made anew each time they are asked for
        return x.__self__ is y.__self__ and x.__func__ is y.__func__
    return type(x) is type(y) and is_plain(x) and is_plain(y) and bool(x == y) and repr(x) == repr(y)


def among(function: Any, known: Container[Any]) -> bool:
    """Whether a function is one of these; objects that are called need not have a hash."""
    try:
        return function in known
    except TypeError:
        return False


def attributes_of(x: Any) -> dict[str, Any]:
    """The attributes that an object holds itself; what stands for something that must not be read refuses to be asked."""
    found: dict[str, Any] = object.__getattribute__(x, "__dict__") if type(x).__dictoffset__ else {}
    return found


def is_bounded(x: Any) -> bool:
    """Whether it is a container with room for what data put in it (`bounded.store.Bounded`)."""
    return getattr(type(x), "is_bounded", False)


def parts_of(key: Any) -> list[Any]:
    """What a key consists of: a tuple of what is in it, and in tuples in it."""
    return [part for inside in key for part in parts_of(inside)] if type(key) is tuple else [key]


def is_number(x: Any) -> bool:
    """Whether it is a number, traced or not, of which Python and NumPy have only values."""
    if isinstance(x, Tracer):
        return not x._type.shape and not x._storage.writable
    return isinstance(x, bool | int | float | complex | np.generic) and not isinstance(x, np.str_ | np.bytes_ | enum.Enum)


def nothing_like(x: Any) -> Any:
    """Zeros in the place of a value that nobody reads, because there is a flag for that."""
    def zero(leaf: Any) -> Any:
        if not isinstance(leaf, Tracer):
            return leaf
        if not leaf._type.is_fixed:
            not_capturable(f"a value of shape {leaf._type.shape} leaves the loop")
        if isinstance(leaf._kind, type):
            return leaf._kind(0)
        found = np.zeros(leaf.shape, leaf.dtype)
        return found if leaf._type.shape or leaf._storage.writable else found[()]
    return tree.map(zero, x)
