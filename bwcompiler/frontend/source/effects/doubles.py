"""Doubles: objects and containers that capture creates in place of another object, or of one of several, with the same contents.

An object that a loop creates anew in every iteration is assembled from its parts, and so is the result of a branch on traced values.  This
is not noticeable as long as neither the double nor an object that it replaces is changed, or asked for its identity.  So both
are refused: in a body that is traced once by unrolling the loop, elsewhere with an error.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any, NoReturn

from bwcompiler.errors import UnsupportedError, at
from bwcompiler.frontend.source.variables import not_capturable, open_policy
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.policy import Policy, Recapture, Site
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.region import open_region

_CONTAINERS = (list, dict, tuple, collections.OrderedDict)


def note_double(*objects: Any, site: Site | None = None) -> None:
    """From now on these are not to be changed; site: of the loop that is unrolled where they are all the same."""
    policy = open_policy()
    assert policy is not None
    objects = tuple([x for x in objects if x is not None])       # which nobody can change, and everybody has
    policy.doubles.update({id(x): x for x in objects})
    if site is not None:
        policy.undone.update({id(x): site for x in objects})
    for held, loop in [policy.handed[id(x)][1:] for x in objects if is_handed_out(x, policy)]:
        note_double(*held, site=loop)              # it has a name for longer than an iteration: they are not changed meanwhile


def note_taken(*objects: Any) -> None:
    """Doubles that were taken out of a list that data fill, which has the parts of what was put in."""
    policy = open_policy()
    assert policy is not None
    policy.taken.update(map(id, objects))


def note_handed_out(objects: Iterable[Any], held: list[Any], site: Site) -> None:
    """Doubles that the loop at `site` is handed out by a list, each of which is one of what that holds, as an index says."""
    policy = open_policy()
    assert policy is not None
    for x in objects:
        policy.handed[id(x)] = x, held, site
        policy.handing.setdefault(type(x), {})[site] = None


def is_handed_out(x: Any, policy: Policy) -> bool:
    """Whether it is a double that a list has handed out."""
    return id(x) in policy.handed and policy.handed[id(x)][0] is x


def is_double(x: Any) -> bool:
    """Whether it is one, or something that has one."""
    policy = open_policy()
    return policy is not None and id(x) in policy.doubles and policy.doubles[id(x)] is x


def refuse_double(x: Any) -> None:
    """Something is changed: refused if it is a double.  (Selections see to that by themselves, `selections.stands_for`.)"""
    if is_double(x) and not isinstance(x, tuple | Selection):
        policy = open_policy()
        if policy is not None and id(x) in policy.taken:
            _refuse(f"{_called(x)} is changed, which was taken out of a list that data fill: what was put in may have other names",
                    "a copy of it, job = copy.copy(queue.pop(0)), which can be changed and put in again", x)
        chosen = "; one of several that data choose in the statement that changes it, buckets[k].append(x)" if isinstance(x, list) else ""
        _refuse(f"{_called(x)} is changed, which may be another name of one that a loop or branch before it has bound anew, or appended",
                f"make a new one instead, or change a copy: copy.copy(x){chosen}", x)


def refuse_identity(x: Any, y: Any) -> None:
    """It is asked whether two different objects are one: refused if one of them is a double, which may stand for the other."""
    if type(x) is type(y) and (is_double(x) or is_double(y)):
        _refuse(f"it is asked whether {_called(x)} is another one, which a loop or branch has bound anew", "compare what they hold", x, y)


def refuse_identity_of_arrays(x: Any, y: Any) -> None:
    """It is asked whether two arrays are one, of which data decide which arrays they are."""
    _refuse("it is asked whether an array is another one, which a loop or branch has bound anew",
            "compare what they hold, np.array_equal(x, y)", x, y)


def _called(x: Any) -> str:
    return f"a {type(x).__name__}" if isinstance(x, _CONTAINERS) else f"an object of {type(x).__name__}"


def _refuse(reason: str, hint: str, *objects: Any) -> NoReturn:
    policy = open_policy()
    assert policy is not None
    error = UnsupportedError(at(current_source(open_region().outer), f"{reason}\n  hint: {hint}"))
    sites = [site for site in _sites(objects, policy) if site not in policy.unrolled]
    if sites:
        raise Recapture(sites[0], error, sites[1:], why=reason)
    HANDLERS["tell_apart"](objects, policy, error)
    if policy.bounded:
        policy.refused = None                      # why they have room: this says more
    if policy.depth:
        not_capturable(reason, hint=hint)
    raise error


def _sites(objects: tuple[Any, ...], policy: Policy) -> list[Site]:
    """Of the loops without which something might be no double: that which made it one, or those that are handed out objects of its class.

    The latter where what changes it is in no loop, or in one that cannot be unrolled.
    """
    known = [policy.undone[id(x)] for x in objects if is_double(x) and id(x) in policy.undone]
    if known or (policy.depth and all(scope.loop is None or scope.loop.count is not None for scope in policy.scopes)):
        return known
    return list(dict.fromkeys([site for x in objects for site in policy.handing.get(type(x), ())]))
