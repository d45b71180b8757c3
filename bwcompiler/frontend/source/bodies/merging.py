"""The values of variables after a branch, from their values at the ends of its sides (`branches.py`): the `cond` op and its results.

Begin with `merge`: it decides how each variable is merged, emits the op, and reads its results.  A variable that only one
side binds is unbound afterwards, except for variables made by the rewriting: these are only read where it is known which side was taken.
An array that one side takes from outside is read-only afterwards, and cannot be read once one of the arrays that it may be was assigned
to, since it is not known which one it is (`tracing/control_flow/shared_arrays.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.frontend.source.array_backed.boxes import unboxed
from bwcompiler.frontend.source.array_backed.growth import append
from bwcompiler.frontend.source.bodies.listed import Listed, relisted
from bwcompiler.frontend.source.bounded.dictionaries import wish as wish_for_key
from bwcompiler.frontend.source.bounded.sites import stand_for
from bwcompiler.frontend.source.bounded.stacks import hint as hint_for_stack
from bwcompiler.frontend.source.bounded.stacks import wish
from bwcompiler.frontend.source.concrete.makers import shown
from bwcompiler.frontend.source.containers.parts import Form, containers, put_together
from bwcompiler.frontend.source.containers.progressions import Progression
from bwcompiler.frontend.source.effects.checks import note
from bwcompiler.frontend.source.effects.doubles import note_double
from bwcompiler.frontend.source.effects.places import Place, Scope, is_plain_object
from bwcompiler.frontend.source.library.builtin_functions import choose_number
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.syntax.statements.jumps import ALONE, PREFIX
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, Options, covering, is_known, joined, number_in, parts, undefined
from bwcompiler.frontend.source.undecided.lists.gaps import appended, unpacked
from bwcompiler.frontend.source.variables import OF_LENGTHS, UNBOUND, Names, not_capturable, same, why_unbound
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import Outer, Traced, added, as_kind, region_graph, zeros
from bwcompiler.frontend.tracing.control_flow.bodies import joined as joined_kind
from bwcompiler.frontend.tracing.control_flow.loops import as_truth
from bwcompiler.frontend.tracing.control_flow.shared_arrays import origins, possible, share
from bwcompiler.frontend.tracing.control_flow.twins import can_link, link
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.operands import is_in_c_order
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.promotion import Kind, strong
from bwcompiler.frontend.tracing.storages.memory_order import unknown
from bwcompiler.frontend.tracing.tracer import Tracer, fresh, fresh_array
from bwcompiler.frontend.tracing.truths import note_truth, of_both
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import DType

RETURNED = PREFIX + "result"   # stands for what a side of a branch returns
CHECKED = PREFIX + "checked"   # for what its checks give
APPENDED = PREFIX + "appended_"                # and the number of a list, for what it appends
APART = "\0"                   # after the name of a part


class Side(NamedTuple):
    """One traced side: what variables hold at its end, and where the leaves of those that hold values are among its outputs.

    arrays  per leaf of these the arrays from before the branch that it is, or may be.
    forms   of variables that can be taken apart, with the names of their parts, which are among the ends; made: which of their objects
            this side has made, and no other name has.
    """

    traced: Traced
    ends: dict[str, Any]
    places: dict[str, list[int]]
    arrays: dict[str, list[Arrays]]
    forms: dict[str, tuple[Form, list[str]]]
    made: set[str]


class Before(NamedTuple):
    """An array from before the branch, and what says where it is that one, later the name of that; "": wherever the side is taken."""

    array: Any
    where: Any


# Of a leaf at the end of a side: none where the side made it; None where that is not known.
Arrays: TypeAlias = list[Before] | None


class Slot(NamedTuple):
    """Leaves of a variable that the op gives: their places among the outputs of each side, None on a side that has none."""

    name: str
    places: tuple[list[int] | None, list[int] | None]
    is_choice: bool = False


def negated(test: Any) -> Any:
    return np.logical_not(test)


def merge(test: Tracer, sides: list[Side], names: Names, entry: dict[str, Any], variables: Variables, policy: Policy,
           scope: Scope, has_returned: bool) -> Any:
    """Give the variables what they hold after the branch; has_returned: the function has before, where the second side is taken."""
    names.restore(entry)
    tails = {f"{APPENDED}{number}": tail for number, tail in enumerate((scope.tails or {}).values())}
    merged = _Merged(sides, scope, policy, has_returned, variables.private)
    for name in tails:
        merged.slots += _appended(name, sides)
    pending = [*variables.results, RETURNED, CHECKED]
    for name in pending:
        pending += merged.decide(name, entry.get(name))
    found = _given(call(_truth, test), sides, merged.slots, policy)
    for name, tail in tails.items():
        is_double = any(name not in side.made for side in sides)
        append(tail.base, *unpacked([unboxed(item, is_double) for item in _tail(test, name, sides, found.pop(name, []))]))
    after = merged.read_back(test, found)
    returned, checked = after.pop(RETURNED, None), after.pop(CHECKED, UNBOUND)
    if isinstance(checked, Tracer):
        note(checked)
    names.restore(after)
    return returned


class _Merged:
    """What variables are after a branch.

    slots    leaves that the op gives, of those that it decides about.
    private  variables with lists that nothing else can hold.
    choices  the variables that become choices, with their options; apart: those that are taken apart, before their parts.
    lists    those that are lists with other elements on one side than on the other, with their types.
    after    what the others hold, which is known.
    """

    def __init__(self, sides: list[Side], scope: Scope, policy: Policy, has_returned: bool, private: Sequence[str]) -> None:
        self.sides = sides
        self.private = private
        self.scope = scope
        self.policy = policy
        self.dead = [self._has_returned(0, ALONE), has_returned or self._has_returned(1, ALONE)]
        self.slots: list[Slot] = []
        self.choices: dict[str, Options] = {}
        self.apart: list[str] = []
        self.lists: dict[str, type] = {}
        self.after: dict[str, Any] = {}

    def decide(self, name: str, start: Any) -> Sequence[str]:
        """Say what becomes of a variable that held `start` before; the names of its parts, where it is taken apart."""
        one, other = (side.ends[name] for side in self.sides)
        slot = _slot(name, self.sides)
        if same(one, start) and same(other, start):
            return ()
        self._require_lengths(name, one, other)
        if not isinstance(one, Tracer) and same(one, other):
            self.after[name] = one
            return ()
        if type(one) is Listed and type(other) is Listed:
            self.lists[name] = one.kind
            for side in self.sides:
                side.ends[name] = side.ends[name].items
            self.slots += _appended(name, self.sides)
            return ()
        if self.dead[0] != self.dead[1] and self._is_from_before(name, other if self.dead[0] else one):
            self.after[name] = other if self.dead[0] else one
            return ()
        if name in self.private and type(one) is list and type(other) is list:
            appended = [item for side in self.sides for key, items in side.ends.items() if key.startswith(APPENDED) for item in items]
            wish(one, *one, *other, *appended)
            wish(other, *one, *other, *appended)
        self._require_without_tail(name, one, other)
        is_missing = one is UNBOUND or other is UNBOUND
        options = None if is_missing and not self._may_be_unsure(name, one) else _choice(one, other, slot, self.scope)
        form, others = (side.forms.get(name) for side in self.sides)
        if options is not None:
            self.choices[name] = options
            self.slots += _parts(slot, one, other)
        elif form is not None and form == others:
            self.apart.append(name)
            return form[1]
        elif all(slot.places):
            if tree.structure(one) != tree.structure(other):
                not_capturable(f"{_called(name)} has another structure on one side than on the other")
            if tree.key_orders(one) != tree.key_orders(other):
                not_capturable(f"{_called(name)} is a dict with its keys in another order on one side than on the other",
                               hint="make it with its keys in one order")
            self.slots.append(slot)
        else:
            self._on_one_side(slot, one, other)
        return ()

    def _place(self, name: str) -> Place | None:
        """What a variable stands for that is none of the user's function."""
        return next((place for place, known in self.scope.places.values() if known == name), None)

    def _is_from_before(self, name: str, end: Any) -> bool:
        """Whether a variable of the user's function has a list or dictionary that was there before the branch, or an object."""
        if name.startswith(PREFIX) or APART in name or self._place(name) is not None:
            return False
        return (type(end) in (list, dict) or is_plain_object(end)) and not isinstance(end, Tracer) and not self.scope.owns(end)

    def _may_be_unsure(self, name: str, one: Any) -> bool:
        """Whether a variable that one side does not bind is read with a check from now on: one of the user's function, or an attribute."""
        place = self._place(name)
        return not (name.startswith(PREFIX) or APART in name or (place is not None and place.kind != "attribute")
                    or self._has_returned(one is not UNBOUND))

    def _require_without_tail(self, name: str, *ends: Any) -> None:
        """A list that a side appends to is not what it was when it is chosen there, and another one on the other side."""
        for side, end in zip(self.sides, ends, strict=True):
            grown = {id(tail.base): side.ends[f"{APPENDED}{number}"] for number, tail in enumerate((self.scope.tails or {}).values())}
            if any(grown.get(id(container)) for container in containers(end)):
                not_capturable(f"{_called(name)} is a list that is appended to on one side, and another one on the other",
                               hint="keep one list: kept.clear() instead of kept = []")

    def _require_lengths(self, name: str, one: Any, other: Any) -> None:
        """The items of a deque, or of a list that is changed like one, are as many after both sides."""
        place = self._place(name)
        if place is not None and place.kind == "items" and len(one) != len(other):
            self._wish_for_room()
            not_capturable(f"a {type(place.base).__name__} has {len(one)} items after one side of it, and {len(other)} after the other",
                           hint=hint_for_stack((*one, *other), OF_LENGTHS))

    def _on_one_side(self, slot: Slot, one: Any, other: Any) -> None:
        """A variable that is a value at the end of one side at most."""
        name = slot.name
        if one is not UNBOUND and other is not UNBOUND:
            if isinstance(one, Selection) or isinstance(other, Selection):
                not_capturable(f"{_called(name)} is x[mask] on one side, of as many elements as data say, and something else on the other",
                               hint="choose the mask in the branch, keep = mask & (x > 0), and select behind it: x[keep]")
            own = "an object that was made there" if self.scope.owns(one) or self.scope.owns(other) else "no array or number"
            has_texts = any(isinstance(end, tuple) and any(isinstance(part, str) for part in end) for end in (one, other))
            not_capturable(f"{_called(name)} is {own} on one side, and something else on the other", hint=(
                "numbers in the place of the texts in a tuple, and -1 in that of None: event = (0, i, j)" if has_texts else ""))
        is_place = self._place(name) is not None   # of which others may ask behind a `return`
        if any(slot.places) and (name.startswith(PREFIX) or (not is_place and self._has_returned(one is not UNBOUND))):
            self.slots.append(slot)
        elif is_place:
            self._wish_for_room()
            not_capturable(f"{name} is new, and assigned to on one side only: set it before")
        else:
            self.after[name] = UNBOUND
            self.policy.unbound[name] = why_unbound(
                name, "only one side of a branch on a traced value binds it: bind it on both, or before")

    def _wish_for_room(self) -> None:
        """Data decide whether dictionaries have keys, and how many items lists have: of all that the sides change, as others would be
        refused next."""
        for place, name in self.scope.places.values():
            one, other = [side.ends.get(name, UNBOUND) for side in self.sides]
            if place.kind == "items" and UNBOUND not in (one, other) and len(one) != len(other):
                wish(place.base, *one, *other)
            elif place.kind == "item" and (one is UNBOUND) != (other is UNBOUND):
                wish_for_key(place.base, (place.key, one if other is UNBOUND else other))

    def _is_pythons_truth(self, side: Side, name: str) -> bool:
        """Whether a side gives a variable True or False of Python's, or nothing that is a number."""
        end, places = side.ends[name], side.places.get(name, [])
        if type(end) is Choice and places:
            end, places = end.value, places[1:]
        if not isinstance(end, Tracer) or len(places) != 1:
            return type(end) is bool or is_known(end)
        return side.traced.truths[places[0]] is True

    def _has_returned(self, number: int, flags: str = PREFIX + "returned_") -> bool:
        """Whether a side returns from the function, in a loop: nobody asks afterwards for what it has not bound."""
        return any(name.startswith(flags) and end is True for name, end in self.sides[number].ends.items())

    def read_back(self, test: Tracer, found: dict[str, list[Any]]) -> dict[str, Any]:
        """What all variables hold, given what the op gave for the slots of each."""
        after = self.after
        for name, options in self.choices.items():
            after[name] = _chosen(test, self.sides, name, options, found.pop(name, []))
            if after[name].has_value and all(self._is_pythons_truth(side, name) for side in self.sides):
                note_truth(after[name].value, True)
        for name, kind in self.lists.items():
            items = _tail(test, name, self.sides, found.pop(name, []))
            after[name] = relisted(items, kind, any(name not in side.made for side in self.sides))
        for name, made in found.items():
            given = next(side for side in self.sides if name in side.places)
            after[name] = tree.unflatten(tree.structure(given.ends[name]), made[0])
        for name in reversed(self.apart):
            after[name] = _whole(name, self.sides, after, name in self.private)
            if name in self.private:
                stand_for(after[name], *sorted([side.ends[name] for side in self.sides], key=self.scope.owns))
        return {name: value for name, value in after.items() if not name.endswith(APART)}


def _slot(name: str, sides: Sequence[Side]) -> Slot:
    return Slot(name, (sides[0].places.get(name), sides[1].places.get(name)))


def _given(truth: Tracer, sides: Sequence[Side], slots: Sequence[Slot], policy: Policy) -> dict[str, list[Any]]:
    """Emit the op: per variable, the leaves that it gives for each of its slots."""
    used = dict.fromkeys(slot.name for slot in slots)
    wheres = dict.fromkeys(where for name in used for side in sides for arrays in side.arrays.get(name, ()) for _, where in arrays or ()
                           if where)
    slots = [*[_slot(name, sides) for name in wheres], *slots]
    conditions: dict[str, Tracer] = {}
    items, kinds = call(_emit, truth, sides, slots, policy)
    position = 0
    found: dict[str, list[Any]] = {}
    for slot in slots:
        count = len(slot.places[0] or slot.places[1] or ())
        leaves = [_handle(items[position + k], kinds[position + k], sides, slot, k, truth, conditions) for k in range(count)]
        if slot.name in wheres:
            conditions[slot.name] = leaves[0]
        else:
            found.setdefault(slot.name, []).append(leaves)
        position += count
    return found


def _whole(name: str, sides: Sequence[Side], after: dict[str, Any], is_private: bool) -> Any:
    """A variable that was taken apart: an object of its parts, a double where it is not one that each side has made, or that is private."""
    form, names = sides[0].forms[name]
    if form.kind is Progression:
        return form.whole([after.get(one, sides[0].ends[one]) for one in names])
    is_double = not is_private and any(name not in side.made for side in sides)
    if is_double:
        note_double(*[side.ends[name] for side in sides if not isinstance(side.ends[name], tuple)])
    return put_together(form, [after.get(one, sides[0].ends[one]) for one in names], is_double)


def _appended(name: str, sides: Sequence[Side]) -> list[Slot]:
    """The leaves of what the sides append to a list; together, where these are of one structure."""
    for side in sides:
        for item in side.ends.setdefault(name, ()):
            if is_known(item) and not isinstance(item, str | None):
                not_capturable(f"it calls list.append() with a {type(item).__name__}: append numbers, arrays or tuples of them")
        if side.ends[name] and tree.leaves(side.ends[name]) and name not in side.places:
            not_capturable("it calls list.append() with something else than numbers and arrays")
    one, other = (side.places.get(name) for side in sides)
    if tree.structure(sides[0].ends[name]) == tree.structure(sides[1].ends[name]):
        return [Slot(name, (one, other))] if one else []
    return [slot for slot, place in ((Slot(name, (one, None)), one), (Slot(name, (None, other)), other)) if place]


def _tail(test: Tracer, name: str, sides: Sequence[Side], made: list[Any]) -> list[Any]:
    """What a branch appends to a list, of the leaves that the op gives."""
    structures = [tree.structure(side.ends[name]) for side in sides]
    if structures[0] == structures[1]:
        return list(tree.unflatten(structures[0], made[0] if made else ()))
    one, other = [tree.unflatten(structure, made.pop(0) if side.places.get(name) else ())
                  for structure, side in zip(structures, sides, strict=True)]
    return appended(test, one, other)


def _choice(one: Any, other: Any, slot: Slot, scope: Scope) -> Options | None:
    """The options of a choice that a variable becomes; None where it becomes none."""
    for end, place in zip((one, other), slot.places, strict=True):
        if scope.owns(end) or not (place or is_known(end) or type(end) is Choice):
            return None
    return covering(one, other)


def _parts(slot: Slot, *ends: Any) -> list[Slot]:
    """The leaves of a variable that becomes a choice: which thing it is, on sides where it is one already, and the value."""
    found: list[Slot] = []
    values: list[list[int] | None] = []
    for number, (end, given) in enumerate(zip(ends, slot.places, strict=True)):
        place = None if is_known(end) else given
        if type(end) is Choice and place:
            found.append(Slot(slot.name, (place[:1], None) if number == 0 else (None, place[:1])))
            place = place[1:]
        values.append(place or None)
    return [*found, Slot(slot.name, (values[0], values[1]), True)] if any(values) else found


def _chosen(test: Tracer, sides: Sequence[Side], name: str, options: Options, made: list[Any]) -> Choice:
    """A choice, of the leaves that the op gives."""
    ends = [side.ends[name] for side in sides]
    numbers = [number_in(end, options, made.pop(0)[0] if type(end) is Choice else None) for end in ends]
    values = [value for _, value, is_value in map(parts, ends) if is_value]
    which = numbers[0]
    if not same(which, numbers[1]):
        which = call(choose_number, np.reshape(test, ()) if test.shape else test, *numbers)
    return joined(which, tree.unflatten(tree.structure(values[0]), made[0]) if values else None, options, bool(values))


def _called(name: str) -> str:
    return "what is returned" if name.startswith(PREFIX) else name.replace(APART, "").rstrip("'")


# What is written to the result of a branch would be seen by another name of that array, or not.
_WHY_NOT = (": after the branch {0} is one of two arrays, which may have other names, too\n"
            "  hint: write to a copy made after the branch; or, in the branch, assign to elements of {0} instead of binding it anew")


def _handle(value: Value, kind: Kind, sides: Sequence[Side], slot: Slot, k: int, truth: Tracer, conditions: dict[str, Tracer]) -> Tracer:
    """The handle of a value after the branch, leaf k of a slot."""
    name = slot.name
    ends: list[Any] = []
    truths: list[bool | None] = []
    befores: list[Arrays] = []
    for side, place in zip(sides, slot.places, strict=True):
        number = None if place is None else side.places[name].index(place[k])
        ends += [] if number is None else [tree.leaves(side.ends[name])[number]]
        befores.append([] if number is None else side.arrays[name][number])
        truths += [] if place is None else [side.traced.truths[place[k]]]
    if not value.shape and not any(isinstance(end, Tracer) and end._storage.writable for end in ends):
        found = fresh(value, None if isinstance(kind, DType) else kind)
        call(note_truth, found, of_both(truths[0], truths[-1]))
        return found
    found = fresh_array(value)
    found._storage.kept = next((end._storage.kept for end in ends if isinstance(end, Tracer) and end._storage.kept), False)
    if not all(is_in_c_order(end) for end in ends if isinstance(end, Tracer | np.ndarray)):
        found._storage.layout = unknown("the result of a branch")
    # what is kept of a `return` in a loop, nobody writes to before that
    is_named = name.startswith(RETURNED) or not name.startswith(PREFIX) or name.startswith(APPENDED)
    for arrays, where in zip(befores, (truth, negated(truth)), strict=True):
        for before in arrays or ():
            if isinstance(before.array, np.ndarray):
                found._chain = found._chain or shown(before.array)._chain
            elif is_named and can_link(found, before.array) and not before.array._storage.region.closed:
                link(found, before.array, conditions[before.where] if before.where else where)
            else:
                share(found, [*origins(found)[1:], *origins(before.array)], _told(name), _WHY_NOT.format(_told(name)))
    if any(arrays is None for arrays in befores):
        maybe = [one for end in ends if isinstance(end, Tracer) for one in possible(end._storage)]
        share(found, [*origins(found)[1:], *maybe], _told(name), _WHY_NOT.format(_told(name)))
    return found


def _told(name: str) -> str:
    return "it" if name.startswith(PREFIX) else _called(name)


def _truth(test: Tracer) -> Tracer:
    """The test as a truth value of its own, which nobody writes to."""
    return fresh(as_truth(value_of(test)))


def _of_growing(one: Sequence[Any], other: Sequence[Any]) -> str:
    """What to write where the sides have arrays that differ along one axis, as np.append and np.hstack make."""
    is_one = len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 1
    return "append to a list, kept.append(y), and make the array behind the loop: np.array(kept)" if is_one else ""


def _emit(test: Tracer, sides: Sequence[Side], slots: Sequence[Slot], policy: Policy) -> tuple[list[Value], list[Kind]]:
    """The cond op: the values of the slots, and what promotion sees of them."""
    kinds: list[Kind] = []
    for name, (one, other), _ in slots:
        for k in range(len(one or other or [])):
            found = [(side.traced.kinds[place[k]], side.traced.result.outputs[place[k]]) for side, place in zip(
                sides, (one, other), strict=True) if place is not None]
            if len(found) == 2 and found[0][1].shape != found[1][1].shape:
                shapes = [type_.shape for _, type_ in found]
                not_capturable(f"{_called(name)} has shape {shapes[0]} on one side and {shapes[1]} on the other", hint=_of_growing(*shapes))
            if policy.one_kind and len(found) == 2 and strong(found[0][0]).kind != strong(found[1][0]).kind:
                not_capturable("np.vectorize takes the type of the first element for all, which may be one or another: give it otypes=")
            kinds.append(joined_kind(found[0][0], found[-1][0]))
    outer = Outer([side.traced.result for side in sides])
    graphs = []
    for number, side in enumerate(sides):
        result = side.traced.result
        carried, final, read = outer.inputs(result)
        with added() as record:
            outputs = []
            for _, pair, is_choice in slots:
                own, others = pair[number], sides[1 - number].traced.result.outputs
                nothing = undefined if is_choice else zeros
                outputs += [nothing(others[place]) for place in pair[1 - number] or ()] if own is None else [result.outputs[k] for k in own]
            outputs = [*as_kind(outputs, kinds), *final]
        graphs.append(region_graph(result, [*carried, *read], record, outputs))
    decided = ops.cond(value_of(test), *outer.assigned_values(), *outer.read_values(), then_branch=graphs[0],
                       else_branch=graphs[1])
    items = [ops.item(decided, index=k) for k in range(len(kinds) + len(outer.assigned))]
    outer.assign(items[len(kinds):])
    return items[:len(kinds)], kinds
