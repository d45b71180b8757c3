"""Lists that a body changes in other ways than appending, `queue.pop(0)`, `del window[0]`, `stack.insert(0, x)`: queues and moving windows.

Their items become a variable of the body, like those of deques (`effects/places.py`); there must be as many after an iteration as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.effects.places import Place, note_place, scopes_around, taking_along
from bwcompiler.frontend.source.variables import OF_LENGTHS, Again, Names, NotCapturable
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS

CHANGING_LISTS = frozenset(("clear", "insert", "pop", "remove", "reverse"))


def is_queue(base: Any) -> bool:
    """Whether it is a list of which a body that is being traced takes the items along."""
    if type(base) is not list:
        return False
    key = id(base), "items", None
    return any(key in scope.places or key in scope.missing for scope in scopes_around(base))


def require_lengths(names: Names, name: str, start: Any, end: Any) -> None:
    """The items of a deque or list that a loop takes along are as many after an iteration as before it; until then it may be filled."""
    if names.is_queue(name) and len(start) != len(end):
        HANDLERS["wish_for_stack"](names.base_of(name), *start, *end)
        raise NotCapturable(f"{name} does not keep its structure: it has {len(start)} items before an iteration and {len(end)} after it",
                            current_source(), peel=max(1, names.room(name, start)), fills=len(end) > len(start), hint=OF_LENGTHS)


HANDLERS["is_queue"] = is_queue


def queue_of(base: list[Any], change: Callable[..., Any]) -> Callable[..., Any]:
    """A method that changes a list from outside of a body: its items are a variable of that from now on."""
    def changed(*args: Any) -> Any:
        _only_queue(base)
        return taking_along(base, change)(*args)
    return changed


HANDLERS["queue_of"] = queue_of


def _only_queue(base: list[Any]) -> None:
    """A list is a queue, and none that grows, or whose numbers are in an array: a loop that knew it as such is traced again."""
    loops = [scope.loop for scope in scopes_around(base) if scope.loop is not None]
    known = [found for loop in reversed(loops) for one in (loop.indexed, loop.growths, loop.found_growths) if (
        found := one.pop(id(base), None)) is not None]
    for one in known:
        one.restore()
    if known:
        for loop in loops:
            loop.histories.pop(id(base), None)
        note_place(Place(base, "items", None))
        raise Again(loops[0])


HANDLERS["only_queue"] = _only_queue
