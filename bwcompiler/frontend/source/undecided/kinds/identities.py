"""Objects that are told apart: data decide which of several there already is, and it is changed.

Objects in lists with gaps, and all of dataclasses, are values first, which are chosen and carried field by field; such a result is none of
the objects.  Where one of them is then changed, the function is traced again, and choices among objects of this class say which it is.
"""

from __future__ import annotations

import enum
from typing import Any

from bwcompiler.errors import BwError
from bwcompiler.frontend.source.effects.places import is_plain_object, scopes_around
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.frontend.tracing.policy import SERIAL, Policy, Recapture, Site
from bwcompiler.frontend.tracing.registry import HANDLERS


def _site(kind: type) -> Site:
    return f"{kind.__module__}.{kind.__qualname__}", 0, SERIAL         # of a class that a function makes: each time it is traced


def are_told_apart(kind: type, policy: Policy | None) -> bool:
    """Whether choices among objects of a class say which it is, where they need not."""
    return policy is not None and bool(policy.bounded) and bool(policy.bounded.get(_site(kind), False))


def is_kept(x: Any) -> bool:
    """Whether lists of which data decide what is in them have an object itself: one that is there before all loops and branches."""
    policy = open_policy()
    return policy is not None and are_told_apart(type(x), policy) and is_plain_object(x) and len(scopes_around(x)) == len(policy.scopes)


def tell_apart(objects: Any, policy: Policy, refusal: BwError) -> None:
    """Objects are changed that may be others of their class: trace again where that has not been tried."""
    for one in objects:
        if is_plain_object(one) and not isinstance(one, enum.Enum) and _site(type(one)) not in policy.bounded:
            for plans in (policy.bounded, policy.wishes):         # of what containers hold: their elements are others then
                for site in [site for site, plan in plans.items() if hasattr(plan, "kinds")]:
                    del plans[site]
            policy.bounded[_site(type(one))] = True
            raise Recapture(_site(type(one)), refusal)


def without_identities(policy: Policy) -> bool:
    """The function is refused: whether objects were told apart, and are values again from now on."""
    found = [site for site, plan in policy.bounded.items() if site[2] == SERIAL and site[0] and plan is True]
    policy.bounded.update(dict.fromkeys(found, False))
    return bool(found)


HANDLERS.update(tell_apart=tell_apart, without_identities=without_identities)
