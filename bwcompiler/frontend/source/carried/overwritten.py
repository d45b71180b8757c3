"""Attributes and items that each iteration binds before it reads them, to arrays of another shape than they hold before the loop: layers
that keep their last input, where the last of the batches before was a shorter one.

Such a place is not carried: during an iteration it holds a stand-in (`Unread`), which says so where it is read after all, and after the
loop it holds what the last iteration has bound.  `loop` is a `capture.Traceable`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from bwcompiler.frontend.source.variables import not_capturable
from bwcompiler.frontend.tracing.control_flow.bodies import Traced
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer
from bwcompiler.frontend.tracing.storages.views import is_known_at
from bwcompiler.frontend.tracing.tracer import Tracer


class _Refusing(type):
    @property
    def stands_for(cls) -> NoReturn:
        """What `isinstance` and `type` ask for: the class that an object has for the user."""
        not_capturable("an attribute or item that an iteration binds is asked for its type before that")


class Unread(metaclass=_Refusing):
    """What a place holds until an iteration binds it: whatever is done with it, the iteration has read the place, and is refused."""

    __slots__ = ("_why",)

    def __init__(self, why: str) -> None:
        object.__setattr__(self, "_why", why)

    def __getattribute__(self, name: str) -> Any:
        return type(self) if name == "__class__" else _refuse(self)


def _refuse(x: Unread, *args: Any, **kwargs: Any) -> NoReturn:
    not_capturable(object.__getattribute__(x, "_why"))


for _name in ("array__", "array_function__", "array_ufunc__", "bool__", "call__", "contains__", "eq__", "float__", "format__", "ge__",
              "getitem__", "gt__", "hash__", "index__", "int__", "iter__", "le__", "len__", "lt__", "ne__", "neg__", "repr__", "setattr__",
              "setitem__", "str__"):
    setattr(Unread, f"__{_name}", _refuse)         # which Python looks up in the class


def is_overwritten(loop: Any, name: str, place: int, found: Traced) -> bool:
    """Whether an iteration of a loop that surely runs binds a place, which is the output `place`, and uses nothing of what it held."""
    end = loop.ends[name]
    if not (loop.runs and loop.names.is_place(name) and isinstance(loop.entry[name], Tracer) and isinstance(end, Tracer)):
        return False
    if isinstance(end, IndexTracer) or not all(map(is_known_at, end._chain)):
        return False
    before = found.result.graph.inputs[place]
    return before not in found.result.outputs and not any(before in value.operands for value in found.result.graph.values())


def stand_in(loop: Any, name: str) -> Unread:
    """What a place holds at the start of an iteration."""
    return Unread(f"{name} has shape {loop.entry[name].shape} before the loop, and another one after an iteration, which reads it")


def require_bound(name: str, end: Any) -> None:
    """Refuse a loop of which an iteration leaves a place as it was, after all."""
    if type(end) is Unread:
        not_capturable(f"{name} is bound in some iterations only")
