"""The lines that create lists, dictionaries and sets, and which of these objects need room for elements that depend on data."""

from __future__ import annotations

import math
import operator
import sys
from typing import Any, NamedTuple, NoReturn

from bwcompiler.errors import BwError
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.frontend.tracing.policy import INSTRUCTION, SERIAL, Policy, Recapture, Site
from bwcompiler.frontend.tracing.provenance.source import is_hidden
from bwcompiler.frontend.tracing.registry import HANDLERS

LEAST, MOST = 8, 4096          # rows
IN_WHILE = 1000                # that a loop may add of which nobody knows how often it runs
_SMALL = 64                    # elements of a container that may get room


class Plan(NamedTuple):
    """What a container is made as: with room for so many elements, of the kinds that are known."""

    room: int
    kinds: Any = None


class Added(NamedTuple):
    """Something was added to a container, in loops of so many iterations; as `key_order.Event` kept in `Policy.events`."""

    table: Any
    times: int


class Held(NamedTuple):
    """A container has held so many elements, or less, in the place of its own."""

    table: Any
    number: int


def note(container: Any, has_gaps: bool = False) -> tuple[Site, Plan] | None:
    """A container was made in a line of the user's: which line, and what it is to be made as, if it is to have room.

    has_gaps: it has elements that may not be there, which are put into it together.
    """
    policy = open_policy()
    if policy is None or not policy.converting or operator.length_hint(container) > (MOST if has_gaps else _SMALL):
        return None
    frame = sys._getframe(2)
    while is_hidden(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    site = frame.f_code.co_filename, frame.f_lineno, INSTRUCTION - frame.f_lasti
    policy.containers[id(container)] = container, site, operator.length_hint(container)
    return (site, policy.bounded[site]) if site in policy.bounded else None


def _noted(policy: Policy | None, container: Any) -> tuple[Site, int] | None:
    """Where a container was made, and with how many elements; None where that was not noted."""
    found = None if policy is None else policy.containers.get(id(container))
    return None if found is None or found[0] is not container else found[1:]


def stand_for(container: Any, *others: Any) -> None:
    """A container is what others became: it was made in the line of the first of which the line is known."""
    policy = open_policy()
    found = next((found for one in others if (found := _noted(policy, one)) is not None), None)
    if policy is not None and found is not None:
        policy.containers[id(container)] = container, *found


def want(container: Any, kinds: Any, refusal: BwError, may_hold: bool = False) -> None:
    """A container is asked for something that needs room: trace the function again, if that has not been done.

    may_hold: also where it was made with elements, which are of these kinds.
    """
    policy = open_policy()
    found = _noted(policy, container)
    if policy is None or found is None or found[0] in policy.bounded or (found[1] and not may_hold):
        return
    _again(policy, found[0], Plan(LEAST, kinds), refusal)


def wish(container: Any, kinds: Any, may_hold: bool = True, in_all: int | None = None) -> None:
    """A container is refused, perhaps for good, that could be had with room: then the function is traced again.

    in_all: the most elements that there can be; None where that is as many as loops add.
    """
    policy = open_policy()
    found = _noted(policy, container)
    if policy is not None and found is not None and (may_hold or not found[1]):
        counts = _counts(container)
        known = [count + 1 for count in counts if count is not None]           # a first iteration may be apart
        # Loops that run nobody knows how often add less than they could, mostly.
        room = min(found[1] + math.prod(known), MOST) if in_all is None and len(known) == len(counts) else LEAST
        before = policy.wishes.get(found[0])       # perhaps of an attempt in which loops around were recorded
        policy.wishes[found[0]] = Plan(max(LEAST, room, 0 if before is None else before.room), kinds)


def granted(policy: Policy) -> bool:
    """Whether containers that were refused are to be made with room from now on."""
    new = {site: plan for site, plan in policy.wishes.items() if site not in policy.bounded}
    policy.bounded.update(new)
    policy.needed = policy.needed or bool(new)
    return bool(new) or any(HANDLERS[name](policy) for name in ("without_streams", "without_identities", "with_branches_going_on"))


HANDLERS["granted"] = granted


def widen(site: Site, plan: Plan, refusal: BwError) -> NoReturn:
    """The function is traced again with more room, or other kinds."""
    policy = open_policy()
    assert policy is not None
    _again(policy, site, plan, refusal)


def _again(policy: Policy, site: Site, plan: Plan, refusal: BwError) -> NoReturn:
    policy.bounded[site] = plan
    policy.needed = True
    number = len([one for one in policy.unrolled if INSTRUCTION < one[2] < SERIAL])
    raise Recapture((site[0], site[1], SERIAL - 1 - number), refusal)


def times(container: Any) -> int:
    """How often what is being traced may run, since the container was made."""
    return min(math.prod([IN_WHILE if count is None else count for count in _counts(container)]), MOST)


def _counts(container: Any) -> list[int | None]:
    """How often the loops run at most that are being traced since the container was made; None where nobody knows."""
    capacities = [scope.loop.capacity for scope in scopes_around(container) if scope.loop is not None]
    return [capacity if isinstance(capacity, int) else None for capacity in capacities]


def added(container: Any, number: int = 1) -> int:
    """Note that so much is added, or less; how much there may be then."""
    return _noted_event(container, Added(container, number * times(container)))


def held(container: Any, number: int) -> int:
    """Note that its elements are others from now on, so many or less; how many there may be until the end."""
    return _noted_event(container, Held(container, number))


def _noted_event(container: Any, event: Added | Held) -> int:
    policy = open_policy()
    assert policy is not None
    policy.events.append(event)
    return bound(container)


def bound(container: Any) -> int:
    """How many elements there may be, by what was noted until now."""
    policy = open_policy()
    assert policy is not None
    events = [event for event in policy.events if event.table is container]
    total = sum([event.times for event in events if type(event) is Added])
    return min(total + max([event.number for event in events if type(event) is Held], default=0), MOST)
