"""Capture of branches: both sides of an `if` whose test is traced are recorded, as the branches of a `cond`.

`merging.py` determines the values of variables after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import TracerBoolError, TracerError, UnsupportedError, at
from bwcompiler.frontend.source.array_backed.boxes import Box, boxed_as_value, boxed_in_side, is_made
from bwcompiler.frontend.source.array_backed.growth import Unbounded
from bwcompiler.frontend.source.bodies.merging import APART, APPENDED, CHECKED, RETURNED, Arrays, Before, Side, merge, negated
from bwcompiler.frontend.source.bounded.padded import padding
from bwcompiler.frontend.source.bounded.stacks import Stack, taken_over
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.containers.parts import Alone, Form, containers, form_of_side, held_once
from bwcompiler.frontend.source.effects.checks import check, error_source, is_raised, raises_when_taken, together
from bwcompiler.frontend.source.effects.places import Scope, attempted
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.source.undecided.fitting import Fitting
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.variables import UNBOUND, Names, NotCapturable, not_capturable, put_into
from bwcompiler.frontend.tracing.assumed import assumed_truth
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import trace_body
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.contents import owner_of
from bwcompiler.frontend.tracing.storages.region import Storage, open_region
from bwcompiler.frontend.tracing.tracer import Tracer

ATTEMPTS = 8                   # to find all that the sides assign to
MOST_GOING_ON = 4              # branches, each of which has what follows twice


def branch(test: Tracer, then: Callable[[], Any], orelse: Callable[[], Any], variables: Variables, names: Names,
           policy: Policy, has_returned: bool = False) -> Any:
    """Record `if test: then() else: orelse()`; what it returns is merged like a variable.

    has_returned: `orelse` does nothing, where the function has returned before.
    """
    entry = names.held(variables.stored)
    source = current_source(open_region().outer)
    policy.needed = True
    scope = Scope(names, variables, is_branch=True)
    once, mark = held_once(entry), policy.mark()
    values: set[str] = set()
    is_merging = False
    kept = {name for name in variables.private if type(entry.get(name)) in (list, Stack)}
    fitting = Fitting(policy, (then, orelse), padding, kept)
    scope.test = call(value_of, test)
    codes = tuple([getattr(run, "__code__", None) for run in (then, orelse)])
    known = scope.adopt_known(names, () if None in codes else policy.places.get(codes, ()), policy)
    entry |= known
    variables = variables._replace(results=(*variables.results, *known))
    try:
        for _ in range(ATTEMPTS):
            policy.forget(mark)
            found = _sides((then, orelse), names, entry, variables, policy, scope, once, values, fitting)
            held = scope.adopt(names)              # what else they assign to
            ends = found if isinstance(found, list) and len(found) == 2 else None
            more = set() if ends is None else _values_or_none(ends, scope) - values
            kept.update([name for place, name in scope.places.values() if place.kind == "items"])
            is_other = ends is not None and fitting.has_to_change((ends[0].ends, ends[1].ends), (ends[0].places, ends[1].places))
            if not (held or more or is_other) or isinstance(found, RaisingSide):
                break
            values |= more
            entry |= held
            variables = variables._replace(results=(*variables.results, *held))
        else:
            not_capturable("it assigns to other places each time that it is traced")
        policy.places[codes] = tuple(scope.places)
        if isinstance(found, list):
            is_merging = True
            if fitting.pads and source is not None:        # where the length has to be known, each side can go on by itself
                policy.unlike.setdefault((source.file, source.line), None)
            return merge(test, found, names, entry, variables, policy, scope, has_returned)
        names.restore(entry)
        check(test if found.run is then else negated(test), found.run, found.error, error_source(found.error) or source)
        names.restore(entry)
    except (NotCapturable, TracerError, UnsupportedError) as refused:
        scope.undo()
        names.restore(entry)
        if isinstance(refused, Unbounded):         # the loop around can be recorded in another way
            raise
        taken = assumed_truth(test)
        if taken is not None:
            policy.forget(mark)
            return (then if taken else orelse)()
        if not isinstance(refused, NotCapturable):
            raise
        told = refused.told("np.where(condition, a, b), bw.cond(condition, then, otherwise), or decide outside of the function")
        refusal = TracerBoolError(at(refused.source or source, f"a branch on a traced value, which cannot be recorded: {told}"))
        if is_merging and source is not None:
            policy.unlike.setdefault((source.file, source.line), refusal)
        raise refusal from None
    except BaseException:
        scope.undo()
        names.restore(entry)
        raise
    policy.forget(mark)
    return (orelse if found.run is then else then)()       # from here on that is what runs


def _going_on(policy: Policy) -> bool:
    """Whether branches that were refused are to go on to the end of their blocks from now on: what they leave is not alike."""
    others = sorted([site for site in policy.unlike if site not in policy.going_on], key=lambda site: policy.unlike[site] is None)
    new = others[:MOST_GOING_ON - len(policy.going_on)]
    if new:
        policy.refused = policy.refused or policy.unlike[new[0]]
        policy.carrying.clear()
    policy.going_on.update(new)
    return bool(new)


HANDLERS["with_branches_going_on"] = _going_on


class RaisingSide(NamedTuple):
    """A side that raises an exception: the user's, or NumPy's where shapes do not fit."""

    run: Callable[[], Any]
    error: Exception


def _sides(runs: Sequence[Callable[[], Any]], names: Names, entry: dict[str, Any], variables: Variables, policy: Policy,
           scope: Scope, once: Collection[int], values: Collection[str], fitting: Fitting) -> list[Side] | RaisingSide:
    """Both sides, traced; or one that raises."""
    found = []
    for number, run in enumerate(runs):
        try:
            found.append(_side(run, names, entry, variables, policy, scope, number, once, values, fitting))
        except Exception as error:
            if is_raised(error) or raises_when_taken(error, policy):
                return RaisingSide(run, error)
            if not scope.missing:
                raise
        finally:
            for place, value in scope.missing.values():
                put_into(place, value)
            for tail in (scope.tails or {}).values():
                tail.taken()
    return found


def _side(run: Callable[[], Any], names: Names, entry: dict[str, Any], variables: Variables, policy: Policy, scope: Scope, side: int,
          once: Collection[int], values: Collection[str], fitting: Fitting) -> Side:
    ends: dict[str, Any] = {}
    places: dict[str, list[int]] = {}
    arrays: dict[str, list[Arrays]] = {}
    forms: dict[str, tuple[Form, list[str]]] = {}
    made: set[str] = set()
    made_before = set(policy.made)
    scope.side = side

    def traced() -> Any:
        names.restore(entry)
        returned = run()
        ends.update(names.held(variables.results))
        ends[RETURNED] = returned
        for name in variables.private:             # it does not matter which of two lists it is that nobody else has
            if name in ends and taken_over(entry.get(name), ends[name]):
                ends[name] = entry[name]
            elif type(ends.get(name)) is Stack and type(entry.get(name)) not in (list, Stack):
                ends[name] = own(ends[name].listed())
        appended = {f"{APPENDED}{number}": tail.taken() for number, tail in enumerate((scope.tails or {}).values())}
        alone = Alone(scope, [*[ends[name] for name in (*variables.results, RETURNED)], *appended.values()], once)
        ends.update({name: boxed_as_value(ends[name], alone) for name in values})
        grown = {id(tail.base) for tail, items in zip((scope.tails or {}).values(), appended.values(), strict=True) if items}

        def fitted(name: str, end: Any) -> Any:
            if any(id(one) in grown for one in containers(end)):       # which is without what the side appends to it here
                return end
            is_alone = type(end) is list and alone(end)                # which is not to be changed by other names from now on
            found = fitting.of_list(name, end)
            made.update([name] if is_alone and found is not end else [])
            return found

        forms.update(_taken_apart(ends, fitted))
        made.update([name for name in forms if alone(ends[name])])
        fitting.apply(ends)
        checks = together()
        ends[CHECKED] = checks[0] if checks else UNBOUND
        for name, items in appended.items():
            ends[name] = tuple([boxed_in_side(item, alone) for item in items])
            made.update([name] if all(alone(one) for item in items for one in containers(item)) else ())
        return _leaves_at_end(ends, places, arrays, made_before, policy, side)

    return Side(attempted(lambda: trace_body(traced, "", "side"), policy, scope, keep=True), ends, places, arrays, forms, made)


def _leaves_at_end(ends: dict[str, Any], places: dict[str, list[int]], arrays: dict[str, list[Arrays]], made_before: Collection[int],
                   policy: Policy, side: int) -> list[Any]:
    """The leaves of what variables hold at the end of a side, and the data that say which arrays they are.

    Notes which of them a variable has in `places`, which arrays they may be in `arrays`, and variables for the data in `ends`.
    """
    found: list[Any] = []
    leaves_of = {name: tree.leaves(end) for name, end in ends.items()}
    storages = [leaf._storage for leaves in leaves_of.values() for leaf in leaves if isinstance(leaf, Tracer)]
    for name, end in ends.items():
        leaves = leaves_of[name]
        if end is UNBOUND or not leaves or not all(map(_is_value, leaves)):
            continue
        places[name] = list(range(len(found), len(found) + len(leaves)))
        found += leaves
        arrays[name] = [_arrays(leaf, storages, made_before, policy) for leaf in leaves]
    for wheres in [one for leaves in arrays.values() for one in leaves if one]:
        for number, (array, where) in enumerate(wheres):
            if isinstance(where, Tracer):
                name = f"{PREFIX}where {len(found)} of side {side}"
                ends[name], places[name], arrays[name] = where, [len(found)], [[]]
                found.append(where)
                wheres[number] = Before(array, name)
    return found


def _values_or_none(sides: Sequence[Side], scope: Scope) -> set[str]:
    """Variables that get a list, dictionary or object on one side, which made it, and None on the other one, or either."""
    one, other = (side.ends for side in sides)
    names = [name for name in one if name in other and not name.endswith(APART)]
    pairs = [(name, *pair) for name in names for pair in ((one[name], other[name]), (other[name], one[name]))]
    return {name for name, end, nothing in pairs if (nothing is None or _may_be_none(nothing)) and is_made(end, scope)}


def _may_be_none(x: Any) -> bool:
    return type(x) is Choice and type(x.value) is Box and any(thing is None for thing in x.options.things)


def _taken_apart(ends: dict[str, Any], fitted: Callable[[str, Any], Any]) -> dict[str, tuple[Form, list[str]]]:
    """How variables are taken apart, and what they hold; the parts are added to what variables hold at the end of a side.

    fitted: what becomes of a variable, or of a part of a tuple, before that.
    """
    forms: dict[str, tuple[Form, list[str]]] = {}
    pending = list(ends)
    may_be_fitted = set(pending)
    for whole in pending:
        if whole in may_be_fitted:
            ends[whole] = fitted(whole, ends[whole])
        form = None if type(ends[whole]) is Box else form_of_side(ends[whole])
        if form is None:
            continue
        names = [f"{form.name(whole, key)}{APART}" for key in form.keys]
        forms[whole] = form, names
        ends.update(zip(names, form.parts(ends[whole]), strict=True))
        pending += names
        may_be_fitted.update(names if form.kind is tuple else ())
    return forms


def _arrays(leaf: Any, storages: Sequence[Storage], made_before: Collection[int], policy: Policy) -> Arrays:
    """Which arrays a leaf at the end of a side may be."""
    if isinstance(leaf, np.ndarray):
        leaf = owner_of(leaf)
        return [] if policy.has_made(leaf) and id(leaf) not in made_before else [Before(leaf, "")]
    if not isinstance(leaf, Tracer) or not leaf._storage.writable:
        return []
    found: list[Before] = []
    if leaf._storage.region is not open_region():
        return [Before(leaf, "")]
    if leaf._chain or storages.count(leaf._storage) > 1 or not _follow(leaf._storage, None, frozenset(), found):
        return None
    if _is_another(leaf._storage, storages):
        return None
    return found


def _is_another(storage: Storage, storages: Sequence[Storage]) -> bool:
    """Whether data decide that it is an array that the side has made, and that it gives by another name, too.

    (What they may both be of the arrays from outside is found by these.)
    """
    others = [other for one in storage.links or () if not one.is_through_outside and (other := one.storage()) is not None]
    return any(other in storages and other.region is open_region() for other in others)


def _follow(storage: Storage, where: Any, seen: frozenset[Storage], found: list[Any]) -> bool:
    """Collect what a storage that the side made is the same as, and where; whether that is known.

    What is linked with the storage itself is not reached through others of these as well, as where twins are written to; what was made in
    a side that has been traced is nobody's any more.
    """
    pairs = [(one.where, *pair) for one in storage.links or () if (pair := one.handles(storage)) is not None
             and pair[1]._storage not in seen and not pair[1]._storage.region.closed and not one.where._storage.region.closed]
    seen = seen.union([storage], [twin._storage for _, _, twin in pairs])
    for also, mine, twin in pairs:
        both = also if where is None else np.logical_and(where, also)
        if mine._chain:
            return False
        if twin._storage.region is not open_region():
            found.append(Before(twin, both))
        elif twin._chain or not _follow(twin._storage, both, seen, found):
            return False
    return True


def _is_value(leaf: Any) -> bool:
    return isinstance(leaf, Tracer | bool | int | float | complex | np.generic | np.ndarray)
