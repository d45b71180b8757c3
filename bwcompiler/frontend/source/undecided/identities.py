"""Dataclasses whose objects are told apart, like those of other classes: data decide which of several there already is, and it is changed.

Objects of a dataclass are values first, which are chosen and carried field by field; such a result is none of the objects.  Where one of
them is then changed, the function is traced again, and choices among objects of this class say which it is.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from bwcompiler.errors import BwError
from bwcompiler.frontend.source.effects.places import is_plain_object
from bwcompiler.frontend.tracing.policy import SERIAL, Policy, Recapture, Site
from bwcompiler.frontend.tracing.registry import HANDLERS


def _site(kind: type) -> Site:
    return f"{kind.__module__}.{kind.__qualname__}", id(kind), SERIAL


def are_told_apart(kind: type, policy: Policy | None) -> bool:
    """Whether choices among objects of a dataclass say which it is."""
    return policy is not None and bool(policy.bounded.get(_site(kind), False))


def tell_apart(objects: Any, policy: Policy, refusal: BwError) -> None:
    """Objects are changed that may be others of their class: trace again where that has not been tried."""
    for one in objects:
        if dataclasses.is_dataclass(one) and is_plain_object(one) and _site(type(one)) not in policy.bounded:
            policy.bounded[_site(type(one))] = True
            raise Recapture(_site(type(one)), refusal)


def without_identities(policy: Policy) -> bool:
    """The function is refused: whether objects were told apart, and are values again from now on."""
    found = [site for site, plan in policy.bounded.items() if site[2] == SERIAL and site[0] and plan is True]
    policy.bounded.update(dict.fromkeys(found, False))
    return bool(found)


HANDLERS.update(tell_apart=tell_apart, without_identities=without_identities)
