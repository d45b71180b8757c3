"""Capture of branches: both sides of an `if` whose test is traced are recorded, as the branches of a `cond`.

A variable that only one side binds is unbound afterwards, unless the rewriting itself made it: nobody reads such a one before he
knows which side was taken.  An array that one side takes from outside is read-only afterwards: nobody knows which one it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import TracerBoolError, at
from bwcompiler.frontend.source.capture import attempted, is_in_c_order, zeros
from bwcompiler.frontend.source.checks import check, error_source, is_raised, note, together
from bwcompiler.frontend.source.jumps import PREFIX
from bwcompiler.frontend.source.places import Scope
from bwcompiler.frontend.source.rewriting import Variables
from bwcompiler.frontend.source.variables import UNBOUND, Names, NotCapturable, not_capturable, same
from bwcompiler.frontend.tracing.bodies import Outer, Traced, added, as_kind, joined, region_graph, trace_body
from bwcompiler.frontend.tracing.loops import as_truth
from bwcompiler.frontend.tracing.memory_order import unknown
from bwcompiler.frontend.tracing.promotion import Kind, strong
from bwcompiler.frontend.tracing.region import Policy, open_region
from bwcompiler.frontend.tracing.source import current_source
from bwcompiler.frontend.tracing.tracer import Tracer, call, fresh, fresh_array, value_of
from bwcompiler.frontend.tracing.twins import can_link, link
from bwcompiler.frontend.tracing.views import BroadcastView
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import DType

RETURNED = PREFIX + "result"   # stands for what a side of a branch returns
ATTEMPTS = 8                   # to find all that the sides assign to
CHECKED = PREFIX + "checked"   # for what its checks give


class Side(NamedTuple):
    """One traced side: what variables hold at its end, and where the leaves of those that hold values are among its outputs."""

    traced: Traced
    ends: dict[str, Any]
    places: dict[str, list[int]]
    is_own: dict[str, bool]


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
    for run in runs:
        try:
            found.append(_side(run, names, entry, variables, policy, scope))
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


def _side(run: Callable[[], Any], names: Names, entry: dict[str, Any], variables: Variables, policy: Policy, scope: Scope) -> Side:
    ends: dict[str, Any] = {}
    places: dict[str, list[int]] = {}
    is_own: dict[str, bool] = {}

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
            is_own[name] = all(not isinstance(leaf, Tracer) or not leaf._storage.writable or (
                leaf._storage.region is open_region() and not leaf._chain and not leaf._storage.links and storages.count(leaf._storage) == 1
                and is_in_c_order(leaf)) for leaf in leaves)
        return found

    return Side(attempted(lambda: trace_body(traced, "", "side"), policy, scope, keep=True), ends, places, is_own)


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
    truth = call(_truth, test)
    items, kinds = call(_emit, truth, sides, chosen, policy)
    position = 0
    for name in chosen:
        given = next(side for side in sides if name in side.places)
        count = len(given.places[name])
        leaves = [_handle(items[position + k], kinds[position + k], sides, name, k, truth) for k in range(count)]
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


def _handle(value: Value, kind: Kind, sides: Sequence[Side], name: str, number: int, truth: Tracer) -> Tracer:
    """The handle of a value after the branch, leaf `number` of a variable."""
    ends = [tree.leaves(side.ends[name])[number] if name in side.places else None for side in sides]
    if not value.shape and not any(isinstance(end, Tracer) and end._storage.writable for end in ends):
        return fresh(value, None if isinstance(kind, DType) else kind)
    found = fresh_array(value)
    if all(side.is_own.get(name, True) for side in sides):
        return found
    found._storage.layout = unknown("the result of a branch")
    outside = [end for side, end in zip(sides, ends, strict=True) if not side.is_own.get(name, True)]
    if all(isinstance(end, Tracer) and not end._storage.region.closed and can_link(found, end) for end in outside):
        for end, where in zip(ends, (truth, _negated(truth)), strict=True):
            if isinstance(end, Tracer) and any(end is one for one in outside):
                link(found, end, where)
    else:
        found._chain = (BroadcastView(value.shape, _WHY_NOT.format("it" if name.startswith(PREFIX) else name)),)
    return found


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
