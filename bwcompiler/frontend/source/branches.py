"""Capture of branches: both sides of an `if` whose test is traced are recorded, as the branches of a `cond`.

A variable that only one side binds is unbound afterwards, unless the rewriting itself made it: nobody reads such a one before he
knows which side was taken.  An array that one side takes from outside is read-only afterwards: nobody knows which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import TracerBoolError, at
from bwcompiler.frontend.source.capture import attempted, is_in_c_order, zeros
from bwcompiler.frontend.source.checks import check, error_source, is_raised, note, together
from bwcompiler.frontend.source.jumps import PREFIX
from bwcompiler.frontend.source.makers import shown
from bwcompiler.frontend.source.places import Scope
from bwcompiler.frontend.source.rewriting import Variables
from bwcompiler.frontend.source.variables import UNBOUND, Names, NotCapturable, not_capturable, same
from bwcompiler.frontend.tracing.bodies import Outer, Traced, added, as_kind, joined, region_graph, trace_body
from bwcompiler.frontend.tracing.loops import as_truth
from bwcompiler.frontend.tracing.memory_order import unknown
from bwcompiler.frontend.tracing.promotion import Kind, strong
from bwcompiler.frontend.tracing.region import Policy, Storage, open_region
from bwcompiler.frontend.tracing.source import current_source
from bwcompiler.frontend.tracing.tracer import Tracer, call, fresh, fresh_array, value_of
from bwcompiler.frontend.tracing.twins import can_link, link
from bwcompiler.frontend.tracing.views import BroadcastView, Chain
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import DType

RETURNED = PREFIX + "result"   # stands for what a side of a branch returns
ATTEMPTS = 8                   # to find all that the sides assign to
CHECKED = PREFIX + "checked"   # for what its checks give


class Side(NamedTuple):
    """One traced side: what variables hold at its end, and where the leaves of those that hold values are among its outputs.

    arrays  per leaf of these the arrays from before the branch that it is, or may be.
    """

    traced: Traced
    ends: dict[str, Any]
    places: dict[str, list[int]]
    arrays: dict[str, list[Arrays]]


class Before(NamedTuple):
    """An array from before the branch, and what says where it is that one, later the name of that; "": wherever the side is taken."""

    array: Any
    where: Any


# Of a leaf at the end of a side: none where the side made it; None where that is not known.
Arrays: TypeAlias = list[Before] | None


def branch(test: Tracer, then: Callable[[], Any], orelse: Callable[[], Any], variables: Variables, names: Names,
           policy: Policy) -> Any:
    """Record `if test: then() else: orelse()`; what it returns is merged like a variable."""
    entry = names.held(variables.stored)
    source = current_source(open_region().outer)
    policy.needed = True
    scope = Scope()
    try:
        for _ in range(ATTEMPTS):
            found = _sides((then, orelse), names, entry, variables, policy, scope)
            held = scope.adopt(names)              # what else they assign to
            if not held or isinstance(found, Failure):
                break
            entry |= held
            variables = variables._replace(results=(*variables.results, *held))
        if isinstance(found, list):
            return _merge(test, found, names, entry, variables, policy, [name for _, name in scope.places.values()])
        names.restore(entry)
        check(test if found.run is then else _negated(test), found.run, found.error, error_source(found.error) or source)
        names.restore(entry)
    except NotCapturable as refused:
        scope.undo()
        names.restore(entry)
        raise TracerBoolError(at(refused.source or source, f"a branch on a traced value, which cannot be recorded: {refused.reason}\n"
                                 "  hint: np.where(condition, a, b), bw.cond(condition, then, otherwise), or decide outside of the function"
                                 )) from None
    except BaseException:
        scope.undo()
        names.restore(entry)
        raise
    return (orelse if found.run is then else then)()       # from here on that is what runs


class Failure(NamedTuple):
    """A side that raises an exception of the user's."""

    run: Callable[[], Any]
    error: Exception


def _sides(runs: Sequence[Callable[[], Any]], names: Names, entry: dict[str, Any], variables: Variables, policy: Policy,
           scope: Scope) -> list[Side] | Failure:
    """Both sides, traced; or one that raises."""
    found = []
    for number, run in enumerate(runs):
        try:
            found.append(_side(run, names, entry, variables, policy, scope, number))
        except Exception as error:
            if is_raised(error):
                return Failure(run, error)
            if not scope.missing:
                raise
        finally:
            for place, value in scope.missing.values():
                place.put(value)
    return found


def _negated(test: Any) -> Any:
    return np.logical_not(test)


def _side(run: Callable[[], Any], names: Names, entry: dict[str, Any], variables: Variables, policy: Policy, scope: Scope, side: int,
          ) -> Side:
    ends: dict[str, Any] = {}
    places: dict[str, list[int]] = {}
    arrays: dict[str, list[Arrays]] = {}
    made_before = set(policy.made)

    def traced() -> Any:
        names.restore(entry)
        returned = run()
        ends.update(names.held(variables.results))
        ends[RETURNED] = returned
        checks = together()
        ends[CHECKED] = checks[0] if checks else UNBOUND
        found: list[Any] = []
        storages = [leaf._storage for end in ends.values() for leaf in tree.leaves(end) if isinstance(leaf, Tracer)]
        for name, end in ends.items():
            leaves = tree.leaves(end)
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

    return Side(attempted(lambda: trace_body(traced, "", "side"), policy, scope, keep=True), ends, places, arrays)


def _arrays(leaf: Any, storages: Sequence[Storage], made_before: Collection[int], policy: Policy) -> Arrays:
    """Which arrays a leaf at the end of a side may be."""
    if isinstance(leaf, np.ndarray):
        while isinstance(leaf.base, np.ndarray):
            leaf = leaf.base
        return [] if policy.has_made(leaf) and id(leaf) not in made_before else [Before(leaf, "")]
    if not isinstance(leaf, Tracer) or not leaf._storage.writable:
        return []
    found: list[Before] = []
    if leaf._storage.region is not open_region():
        return [Before(leaf, "")]
    if leaf._chain or storages.count(leaf._storage) > 1 or not _follow(leaf._storage, None, [], found):
        return None
    return found


def _follow(storage: Storage, where: Any, seen: list[Storage], found: list[Any]) -> bool:
    """Collect what a storage that the side made is the same as, and where; whether that is known."""
    for one in storage.links or ():
        pair = one.handles(storage)
        if pair is None or pair[1]._storage in seen:
            continue
        mine, twin = pair
        both = one.where if where is None else np.logical_and(where, one.where)
        if mine._chain:
            return False
        if twin._storage.region is not open_region():
            found.append(Before(twin, both))
        elif twin._chain or not _follow(twin._storage, both, [*seen, storage], found):
            return False
    return True


def _is_value(leaf: Any) -> bool:
    return isinstance(leaf, Tracer | bool | int | float | complex | np.generic | np.ndarray)


def _merge(test: Tracer, sides: list[Side], names: Names, entry: dict[str, Any], variables: Variables, policy: Policy,
           places: Sequence[str]) -> Any:
    """Give the variables what they hold after the branch."""
    names.restore(entry)
    chosen: list[str] = []
    after: dict[str, Any] = {}
    for name in (*variables.results, RETURNED, CHECKED):
        one, other = (side.ends[name] for side in sides)
        start = entry.get(name)
        if same(one, start) and same(other, start):
            continue
        if not isinstance(one, Tracer) and same(one, other):
            after[name] = one
        elif name in sides[0].places and name in sides[1].places:
            if tree.structure(one) != tree.structure(other):
                not_capturable(f"{_called(name)} has another structure on one side than on the other")
            chosen.append(name)
        elif (one is None) != (other is None) and one is not UNBOUND and other is not UNBOUND:
            not_capturable(f"{_called(name)} is None on one side, and a value on the other: give it a value on both (np.nan, say)")
        elif one is not UNBOUND and other is not UNBOUND:
            not_capturable(f"{_called(name)} is no array or number on both sides")
        elif name.startswith(PREFIX) and (name in sides[0].places or name in sides[1].places):
            chosen.append(name)
        elif name in places:
            not_capturable(f"{name} is new, and assigned to on one side only: set it before")
        else:
            after[name] = UNBOUND
            policy.unbound[name] = "only one side of a branch on a traced value binds it: bind it on both, or before"
    wheres = [where for name in chosen for side in sides for arrays in side.arrays.get(name, ()) for _, where in arrays or () if where]
    chosen = [*dict.fromkeys(wheres), *chosen]
    truth = call(_truth, test)
    conditions: dict[str, Tracer] = {}
    items, kinds = call(_emit, truth, sides, chosen, policy)
    position = 0
    for name in chosen:
        given = next(side for side in sides if name in side.places)
        count = len(given.places[name])
        leaves = [_handle(items[position + k], kinds[position + k], sides, name, k, truth, conditions) for k in range(count)]
        if name in wheres:
            conditions[name] = leaves[0]
        else:
            after[name] = tree.unflatten(tree.structure(given.ends[name]), leaves)
        position += count
    returned, checked = after.pop(RETURNED, None), after.pop(CHECKED, UNBOUND)
    if isinstance(checked, Tracer):
        note(checked)
    names.restore(after)
    return returned


def _called(name: str) -> str:
    return "what is returned" if name.startswith(PREFIX) else name


# What is written to the result of a branch would be seen by another name of that array, or not.
_WHY_NOT = (": after the branch {0} is one of two arrays, which may have other names, too\n"
            "  hint: write to a copy made after the branch; or, in the branch, assign to elements of {0} instead of binding it anew")


def _handle(value: Value, kind: Kind, sides: Sequence[Side], name: str, number: int, truth: Tracer, conditions: dict[str, Tracer],
            ) -> Tracer:
    """The handle of a value after the branch, leaf `number` of a variable."""
    ends = [tree.leaves(side.ends[name])[number] for side in sides if name in side.places]
    if not value.shape and not any(isinstance(end, Tracer) and end._storage.writable for end in ends):
        return fresh(value, None if isinstance(kind, DType) else kind)
    found = fresh_array(value)
    if not all(is_in_c_order(end) for end in ends if isinstance(end, Tracer | np.ndarray)):
        found._storage.layout = unknown("the result of a branch")
    is_named = name == RETURNED or not name.startswith(PREFIX)      # what is kept of a `return` in a loop, nobody writes to before that
    for side, where in zip(sides, (truth, _negated(truth)), strict=True):
        for before in side.arrays[name][number] or () if name in side.places else ():
            if isinstance(before.array, np.ndarray):
                found._chain = found._chain or shown(before.array)._chain
            elif is_named and can_link(found, before.array) and not before.array._storage.region.closed:
                link(found, before.array, conditions[before.where] if before.where else where)
            else:
                found._chain = _read_only(value, name)
        if name in side.places and side.arrays[name][number] is None:
            found._chain = _read_only(value, name)
    return found


def _read_only(value: Value, name: str) -> Chain:
    return (BroadcastView(value.shape, _WHY_NOT.format("it" if name.startswith(PREFIX) else name)),)


def _truth(test: Tracer) -> Tracer:
    """The test as a truth value of its own, which nobody writes to."""
    return fresh(as_truth(value_of(test)))


def _emit(test: Tracer, sides: Sequence[Side], chosen: Sequence[str], policy: Policy) -> tuple[list[Value], list[Kind]]:
    """The cond op: the values of the chosen variables, and what promotion sees of them."""
    pairs: list[tuple[list[int] | None, list[int] | None]] = [(sides[0].places.get(name), sides[1].places.get(name)) for name in chosen]
    kinds: list[Kind] = []
    for name, (one, other) in zip(chosen, pairs, strict=True):
        for k in range(len(one or other or [])):
            found = [(side.traced.kinds[place[k]], side.traced.result.outputs[place[k]]) for side, place in zip(
                sides, (one, other), strict=True) if place is not None]
            if len(found) == 2 and found[0][1].shape != found[1][1].shape:
                not_capturable(f"{_called(name)} has shape {found[0][1].shape} on one side and {found[1][1].shape} on the other")
            if policy.one_kind and len(found) == 2 and strong(found[0][0]).kind != strong(found[1][0]).kind:
                not_capturable("np.vectorize takes the type of the first element for all, which may be one or another: give it otypes=")
            kinds.append(joined(found[0][0], found[-1][0]))
    outer = Outer([side.traced.result for side in sides])
    graphs = []
    for number, side in enumerate(sides):
        result = side.traced.result
        carried, final, read = outer.inputs(result)
        with added() as record:
            outputs = []
            for pair in pairs:
                own, others = pair[number], sides[1 - number].traced.result.outputs
                outputs += [zeros(others[place]) for place in pair[1 - number] or ()] if own is None else [result.outputs[k] for k in own]
            outputs = [*as_kind(outputs, kinds), *final]
        graphs.append(region_graph(result, [*carried, *read], record, outputs))
    decided = ops.cond(value_of(test), *outer.assigned_values(), *outer.read_values(), then_branch=graphs[0],
                       else_branch=graphs[1])
    items = [ops.item(decided, index=k) for k in range(len(kinds) + len(outer.assigned))]
    outer.assign(items[len(kinds):])
    return items[:len(kinds)], kinds
