"""Capture of loops whose end depends on data: `while` with a traced test, `for` over a traced number of elements, and loops with early
exits.

Such a loop may have no iterations.  So a variable that it binds and that is read afterwards is carried if it had a value before; otherwise
it is unbound afterwards, except for variables made by the rewriting.  A test with side effects (`while step(state) > 0.1`) is part of the
body: each iteration ends with the test of the next one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import CellType
from typing import Any

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import TracerBoolError, TracerError, at
from bwcompiler.frontend.numpy.selected.counted import largest
from bwcompiler.frontend.source.array_backed.growth import WINDOW, Unbounded
from bwcompiler.frontend.source.bodies.after_loops import place
from bwcompiler.frontend.source.bodies.capture import Traceable
from bwcompiler.frontend.source.bodies.iteration import ENDLESS, Elements
from bwcompiler.frontend.source.bodies.notes import note_captured
from bwcompiler.frontend.source.carried.carriable import can_be_carried
from bwcompiler.frontend.source.carried.exchanges import Exchange
from bwcompiler.frontend.source.carried.first_writes import seen_by
from bwcompiler.frontend.source.containers.parts import form_of, held_once
from bwcompiler.frontend.source.effects.checks import raise_where
from bwcompiler.frontend.source.effects.places import Scope, attempted
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.source.undecided.kinds.choices import is_known
from bwcompiler.frontend.source.variables import UNBOUND, Again, Names, NotCapturable, is_bounded, not_capturable, site_of, why_unbound
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import Leaf, Outer, Traced, added, as_kind, region_graph, trace_body, zeros
from bwcompiler.frontend.tracing.control_flow.loops import as_truth
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of, index_handle
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.storages.memory_order import unknown
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.storages.views import BroadcastView
from bwcompiler.frontend.tracing.tracer import Tracer, fresh_array
from bwcompiler.ir.extent import lower
from bwcompiler.ir.op import Value, input_value

APPENDED = 1000                # iterations in which a list grows, where the test of the loop does not say how many there may be
COUNTER = PREFIX + "counter"
_NO_ROOM = "a list got more than {0} elements in this loop: compiled code has room for {0}\n  hint: {1}"
GOING = PREFIX + "going"
PHASE = PREFIX + "phase"       # the number of the iteration, where arrays exchange their names: modulo their period


class _ChangingTest(NotCapturable):
    """The test of a loop changes something."""


def while_loop(going: Tracer, test: Callable[[], Any], body: Callable[[], None], variables: Variables, policy: Policy,
               bound: Any = None) -> None:
    """Record `while test(): body()`; going: what the test has given before the first iteration.

    bound: how long a list may get, as the test says; not every iteration need append to it.
    """
    names = Names(test, body)
    source = current_source(open_region().outer)
    entry = names.held(variables.stored)
    names.once = held_once(entry)
    try:
        try:
            _record_while(names, variables, going, test, body, body, policy)
        except Unbounded:
            names.restore(entry)
            _record_bounded(names, variables, going, test, body, policy, max(APPENDED, 2 * bound if type(bound) is int else 0))
    except NotCapturable as refused:
        names.restore(entry)
        told = refused.told("a loop of a fixed number of iterations with np.where, or bw.while_loop")
        head = at(source, "the end of this loop depends on traced values, and it cannot be recorded: ")
        raise TracerBoolError(told if head in told else head + told) from None             # not once for each call of a recursion
    except BaseException:
        names.restore(entry)
        raise
    policy.needed = True


def _record_while(names: Names, variables: Variables, going: Tracer, test: Callable[[], Any], run: Callable[[], None],
                  body: Callable[[], None], policy: Policy, capacity: int | None = None) -> None:
    """run: an iteration, which is the user's `body` and perhaps more."""
    try:
        _record(names, variables, test, run, body, policy, capacity=capacity)
    except _ChangingTest:
        _record_with_test(names, variables, going, test, run, body, policy, capacity)


def _record_bounded(names: Names, variables: Variables, going: Tracer, test: Callable[[], Any], body: Callable[[], None], policy: Policy,
                    capacity: int) -> None:
    """A loop in which lists grow: it ends after `capacity` iterations at last, with an exception if it was to go on."""
    names.add(COUNTER, CellType(0))

    def run() -> None:
        body()
        names[COUNTER] = names[COUNTER] + 1

    def bounded() -> Any:
        return np.logical_and(HANDLERS["truth_of"](test()), names[COUNTER] < capacity)

    more = variables._replace(stored=(*variables.stored, COUNTER), carried=(*variables.carried, COUNTER))
    _record_while(names, more, going, bounded, run, body, policy, capacity)
    text = _NO_ROOM.format(
        capacity, f"another bound, `while ... and len(kept) < {10 * capacity}`; or `for _ in range({10 * capacity})` with `break`")
    further = names[COUNTER] >= capacity if GOING in names else HANDLERS["truth_of"](test())     # not one that changes things
    raise_where(np.logical_and(further, True), TracerError(text))


def _record_with_test(names: Names, variables: Variables, going: Tracer, test: Callable[[], Any], run: Callable[[], None],
                      body: Callable[[], None], policy: Policy, capacity: int | None = None) -> None:
    """A loop of which each iteration ends with the test of the next one."""
    names.add(GOING, CellType(_one_truth(going)))

    def run_and_test() -> None:
        run()
        names[GOING] = _one_truth(HANDLERS["truth_of"](test()))

    more = variables._replace(stored=(*variables.stored, GOING), carried=(*variables.carried, GOING))
    _record(names, more, lambda: names[GOING], run_and_test, body, policy, capacity=capacity)


def _one_truth(x: Any) -> Any:
    return np.logical_and(np.reshape(x, ()), True) if isinstance(x, Tracer) else bool(x)


def for_loop(elements: Elements, body: Callable[[Any], None], variables: Variables, flag: str | None, policy: Policy) -> None:
    """Record a loop over elements, of a number that is data or until a flag is set; raises NotCapturable."""
    names = Names(body)
    names.add(COUNTER, CellType(0))
    more = variables._replace(stored=(*variables.stored, COUNTER), carried=(*variables.carried, COUNTER))
    if flag is not None and flag not in more.carried:
        more = more._replace(carried=(*more.carried, flag))
    count = elements.count
    end = call(index_handle, count) if extent_of(count) is not None else count

    def test() -> Any:
        going = names[COUNTER] < end
        return going if flag is None else np.logical_and(going, np.logical_not(names[flag]))

    def run() -> None:
        counter = names[COUNTER]
        body(elements.at(counter))
        names[COUNTER] = counter + 1

    entry = names.held(variables.stored)
    names.once = held_once(entry)
    capacity = count if isinstance(count, int) and count < ENDLESS else None
    try:
        try:
            _record(names, more, test, run, body, policy, runs=extent_of(count) is not None and lower(count) >= 1, capacity=capacity)
        except Unbounded:
            if policy.summed is not None or not isinstance(count, Tracer) or extent_of(count) is not None:      # a sum needs no list
                raise
            names.restore({**entry, COUNTER: 0})
            most = largest(count)
            end = np.minimum(count, APPENDED) if most is None else count
            _record(names, more, test, run, body, policy, capacity=APPENDED if most is None else most)
            if most is None:
                raise_where(count > APPENDED, TracerError(_NO_ROOM.format(APPENDED, f"`for _ in range({10 * APPENDED})` with `break`")))
    except BaseException:
        names.restore(entry)
        raise
    policy.needed = True


def _record(names: Names, variables: Variables, test: Callable[[], Any], run: Callable[[], None], body: Callable[..., Any],
            policy: Policy, runs: bool = False, capacity: int | None = None) -> None:
    """runs: there is at least one iteration; capacity: how many there may be."""
    entry = names.held(variables.stored)
    more = [name for name in variables.results if name not in variables.carried and entry[name] is not UNBOUND
            and (can_be_carried(entry[name]) or is_known(entry[name]) or form_of(entry[name]) is not None)]
    bound = variables._replace(stored=(*variables.stored, PHASE), carried=(*variables.carried, *more, PHASE))
    names.add(PHASE, CellType(0))

    def counted() -> None:
        run()
        if traceable.exchange is not None:
            names[PHASE] = (names[PHASE] + 1) % traceable.exchange.period

    traceable = Traceable(names, bound, counted, site_of(body), capacity=capacity, counter="" if capacity is None else COUNTER)
    traceable.runs = runs
    try:
        _record_traced(traceable, test, body, policy, runs)
    except BaseException:
        traceable.restore()
        raise


def _record_traced(traceable: Traceable, test: Callable[[], Any], body: Callable[..., Any], policy: Policy, runs: bool) -> None:
    names = traceable.names
    leaves, traced, tested = _traced_with_test(traceable, test, body, policy)
    kept = []
    for result in traceable.results:
        if traceable.entry[result.name] is not UNBOUND and result.name not in traceable.carried:
            not_capturable(f"{result.name} is rebound, and is no array or number")
        if runs or result.name.startswith(PREFIX):
            kept.append(result)
    assigned = {traced.result.lifted[number]._storage for number in traced.result.assigned}
    if seen_by(traceable, [one._storage for one in tested.result.lifted]) or seen_by(traceable, traceable.read_by_test) or (
            assigned & traceable.read_by_test):
        not_capturable("its test reads by another name an array that the loop assigns to")
    items = call(_emit, leaves, traced, tested)
    note_captured(traceable, traced, "one that ends when its test says so", policy)
    unbound = [result.name for result in traceable.results if result not in kept]
    place(traceable, leaves, items, lambda extent: not_capturable("an index of a loop that is left early is used after it"))
    if traceable.exchange is not None:
        _exchanged(traceable, traceable.exchange)
    for name in unbound:
        names[name] = UNBOUND
        policy.unbound[name] = why_unbound(name, "the loop that binds it may have no iterations: bind it before the loop")


def _traced_with_test(traceable: Traceable, test: Callable[[], Any], body: Callable[..., Any],
                      policy: Policy) -> tuple[list[Leaf], Traced, Traced]:
    """The body, and the test, which may read the last elements of lists that grow in it: these are carried, as the body has to know."""
    for _ in range(WINDOW + 1):
        leaves, traced = attempted(lambda: traceable.traced(body.__name__), policy, traceable.scope)
        scope = Scope(loop=traceable)
        held = [growth.items for growth in traceable.growths.values()]
        for growth in traceable.growths.values():
            growth.begin()
        try:
            tested = attempted(functools.partial(_condition, traceable, leaves, test), policy, scope)
        except Again as again:
            if again.loop is not traceable or traceable.found_growths:
                raise
            continue
        finally:
            changes = scope.missing or traceable.found_growths or any(growth.items for growth in traceable.growths.values())
            traceable.found_growths = {}
            for growth, items in zip(traceable.growths.values(), held, strict=True):
                growth.restore()
                growth.items = items
            if changes:
                scope.undo()
                raise _ChangingTest("its test changes something")
        return leaves, traced, tested
    not_capturable("its test reads a list that grows in it, more of it each time")


def _exchanged(traceable: Traceable, exchange: Exchange) -> None:
    """After the loop: what is in the arrays that exchanged their names; nobody knows which of them a name has."""
    names, phase = traceable.names, traceable.names[PHASE]
    values = {name: names[name] for name in exchange.after}
    for name in exchange.after:
        content = values[name]
        for iterations in range(1, exchange.period):
            holder = next(one for one, array in exchange.names_after(iterations).items() if array == name)
            content = np.where(phase == iterations, values[holder], content)
        traceable.entry[name][...] = content
    for name, value in values.items():
        found = call(lambda value=value: fresh_array(value_of(value)))
        found._storage.layout = unknown("an array that exchanged its name in a loop")
        found._chain = (BroadcastView(found.shape),)
        names[name] = found


def _condition(traceable: Traceable, leaves: Sequence[Leaf], test: Callable[[], Any]) -> Traced:
    names, order, read_by_test = traceable.names, traceable.order(), traceable.read_by_test
    structure = tree.structure([traceable.entry[name] for name in order])

    def condition(given: Any) -> Any:
        names.restore(traceable.entry)
        traceable.bind(given)
        found = test()
        if is_bounded(found):
            found = HANDLERS["truth_of"](found)
        read_by_test.clear()
        read_by_test.update(open_region().shared)
        return found if isinstance(found, Tracer) else call(as_tracer, bool(found))

    found = trace_body(condition, "carry", "condition", structure, [leaf.argument() for leaf in leaves], [leaf.truth for leaf in leaves])
    outputs = found.result.outputs
    if found.result.assigned:
        raise _ChangingTest("its test assigns to an array")
    if len(outputs) != 1 or outputs[0].type.size != 1:
        raise TracerError("the test of a loop must give one number that is true or false")
    return found


def _emit(leaves: Sequence[Leaf], traced: Traced, tested: Traced) -> list[Value]:
    """The while_loop op: values of what it carries, then of what is only made in it."""
    results = [traced.result, tested.result]
    outer = Outer(results)
    count = len(leaves)
    made = traced.result.outputs[count:]
    graphs = []
    for result in results:
        carried, final, read = outer.inputs(result)
        held = [input_value(value.type) for value in made]
        with added() as record:
            if result is tested.result:
                truth = result.outputs[0]
                outputs = [as_truth(truth if not truth.shape else ops.reshape(truth, shape=()))]
            else:
                outputs = [*as_kind(result.outputs[:count], [leaf.kind for leaf in leaves]), *made, *final]
        graphs.append(region_graph(result, [*result.graph.inputs[:count], *held, *carried, *read], record, outputs))
    start = [*[leaf.value for leaf in leaves], *[zeros(value) for value in made], *outer.assigned_values()]
    looped = ops.while_loop(*start, *outer.read_values(), carried=len(start), condition=graphs[1], body=graphs[0])
    items = [ops.item(looped, index=k) for k in range(len(start))]
    outer.assign(items[count + len(made):])
    return items[:count + len(made)]
