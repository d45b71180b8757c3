"""Loops and branches of which a reverse derivative is taken: each is replaced by one that also returns what its adjoint needs.

Every region op on a path from the differentiated inputs to an output is replaced by an op that also returns residuals, and a
`region_link` that links its results to its operands and knows the adjoint (`loop_adjoint`, `while_adjoint`, `cond_adjoint`).  The
links exist only while the derivative is taken: `unlink_regions` replaces them by the results.  Bodies are prepared like graphs:
custom rules are expanded, the body is simplified, and its inner loops are expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Op, Value
from bwcompiler.passes.adjoints.bodies.cut_body import CutBody
from bwcompiler.passes.adjoints.checkpoint_adjoint import expand_checkpoint
from bwcompiler.passes.adjoints.cond_adjoint import Choice, expand_cond
from bwcompiler.passes.adjoints.loop_adjoint import cut_loop, expand_loop, trips_of
from bwcompiler.passes.adjoints.segment_loops import Segments, segments
from bwcompiler.passes.adjoints.unlink_regions import unlink_regions
from bwcompiler.passes.adjoints.while_adjoint import cut_while, expand_while
from bwcompiler.passes.derivatives.activity import (
    active_inputs,
    active_results,
    active_values,
    is_differentiable,
    seeded_results,
    seeded_values,
)
from bwcompiler.passes.derivatives.expand_custom_rules import expand_custom_rules
from bwcompiler.passes.derivatives.expansion import Expanded, expanded
from bwcompiler.passes.derivatives.masks import masked_outputs, masked_values
from bwcompiler.passes.derivatives.transposed_rule import Regions
from bwcompiler.passes.loops.branch_states import branch_states, changed_versions
from bwcompiler.passes.loops.prune_regions import prune_regions
from bwcompiler.passes.rewriting.simplify import simplify

Known = dict[tuple[Any, ...], Any]         # what the bodies of one graph are cut into
EXPANDED = (ops.loop, ops.while_loop, ops.cond, ops.checkpoint)
LEAST_WHOLE = 4096                         # bytes of whole arrays that a loop keeps, for which it is cut once more


def expand_regions(graph: Graph, wrt: Sequence[int], carried: int | None = None, restoring: bool = False,
                   masked: Iterable[int] = (), seeded: Iterable[int] | None = None, changed: Iterable[int] = ()) -> Expanded:
    """Replace every loop and branch through which an output depends on the inputs `wrt`.

    carried    of the body of another region op: how many of its inputs it carries.
    restoring  whether loops restore the arrays that they pass on, even where that keeps more.
    masked     the outputs of whose cotangents a choice may mask parts.
    seeded     the outputs that get cotangents; None: all of them.
    changed    the inputs that are written over where no undo log restores them: of branches.
    """
    if not any(value.op in EXPANDED for value in graph.body):
        return Expanded(graph)
    graph = prune_regions(graph)
    active = active_values(graph, [graph.inputs[k] for k in wrt])
    passed_on = _passed_on(graph, carried or 0)
    lost = changed_versions(graph, carried or 0, changed)
    chosen = masked_values(graph, masked, carried is not None)
    pulled = seeded_values(graph, range(len(graph.outputs)) if seeded is None else seeded)
    hidden, wanted = _results_among(graph, chosen), _results_among(graph, pulled)

    known: Known = {}

    def replace(value: Value, operands: tuple[Value, ...]) -> Value | None:
        if value.op not in EXPANDED or value not in active or value not in wanted:
            return None
        place = Place(carried is not None, frozenset(passed_on.get(value, ())), restoring, frozenset(hidden.get(value, ())),
                      frozenset(wanted[value]), frozenset([k for k, operand in enumerate(value.operands) if operand in lost]))
        given = [operand in active for operand in value.operands]
        link = _EXPAND[value.op](value, operands, given, place, known)
        if link.op is ops.region_link and value.op is not ops.checkpoint:
            link.attrs["rule"].reached = active_results(value, given)
        return link

    return expanded(graph, replace)


def _results_among(graph: Graph, found: Set[Value]) -> dict[Value, list[int]]:
    """The numbers of the results of ops that are among some values."""
    results: dict[Value, list[int]] = {}
    for value in graph.body:
        if value.op is ops.item and value in found:
            results.setdefault(value.operands[0], []).append(value.attrs["index"])
    return results


class Place(NamedTuple):
    """Where a region op is.

    inside     of the body of another one.
    passed_on  the numbers of what it carries that the loop around it carries too.
    restoring  whether that is restored, so that the loop around can restore it.
    masked     the numbers of the results of whose cotangents a choice may mask parts.
    seeded     the numbers of the results that get cotangents.
    changed    the numbers of the operands that are written over where no undo log restores them.
    """

    inside: bool
    passed_on: Set[int]
    restoring: bool
    masked: Set[int]
    seeded: Set[int]
    changed: Set[int]


def _passed_on(body: Graph, carried: int) -> dict[Value, list[int]]:
    """Loops that pass on what the body carries, updated in place, and which of their operands these are."""
    found: dict[Value, list[int]] = {}
    for number in range(carried):
        value, passed = body.outputs[number], []
        while value.op in ops.UPDATES or (value.op is ops.item and value.operands[0].op is ops.loop):
            if value.op is ops.item:
                passed.append((value.operands[0], value.attrs["index"]))
                value = value.operands[0].operands[value.attrs["index"]]
            else:
                value = value.operands[0]
        if value is body.inputs[number]:
            for loop, place in passed:
                found.setdefault(loop, []).append(place)
    return found


# ----- bodies
def _prepared(body: Graph, wrt: Sequence[int], masked: Set[int], seeded: Set[int], carried: int = 0,
              restoring: bool = False, changed: Iterable[int] = ()) -> tuple[Graph, list[Any]]:
    """A body with custom rules and regions expanded and simplified, and the arrays that it captured, its last inputs."""
    custom = expand_custom_rules(body, wrt, REGIONS)
    expanded = expand_regions(simplify(custom.graph).graph, wrt, carried, restoring, masked, seeded, changed)
    return expanded.graph.replace(captured=0), [*custom.arrays, *expanded.arrays]


def _loop(value: Value, operands: Sequence[Value], given: Sequence[bool], place: Place, known: Known) -> Value:
    """The loop cut in two; or its segments, if it would keep much."""
    key = _key(value, given, place)
    if key not in known:
        known[key] = _cut(value, given, place)
    body, arrays, parts = known[key]
    found = None if place.inside else segments(value, parts)
    return expand_loop(value, operands, body, arrays, parts) if found is None else _segments(value, found, operands, given, place)


def _segments(value: Value, found: Segments, operands: Sequence[Value], given: Sequence[bool], place: Place) -> Value:
    """The loop over segments cut in two, and that over the iterations that are left, which is given the results of the first."""
    if not found.left:
        return expand_loop(found.loop, operands, *_cut(found.loop, given, place))
    body, carried = value.attrs["body"], value.attrs["carried"]
    before = place._replace(masked=masked_outputs(body, carried, place.masked), seeded=frozenset(seeded_results(value, place.seeded)[0]))
    over = expand_loop(found.loop, operands, *_cut(found.loop, given, before))
    states = [ops.item(over, index=k) for k in range(carried)]
    rest = found.rest(value, states, operands[carried:])
    behind = [*active_inputs(body, carried, given)[:carried], *given[carried:]]
    return expand_loop(rest, rest.operands, *_cut(rest, behind, place))


def _cut(value: Value, given: Sequence[bool], place: Place) -> tuple[Graph, list[Any], CutBody]:
    """The body of a loop, prepared, the arrays that it captured, and the body cut in two.  Where it would keep whole arrays that it could
    restore, if only the loops inside did, they do; but not for the few bytes that a short loop keeps in all."""
    masked = masked_outputs(value.attrs["body"], value.attrs["carried"], place.masked)
    body, arrays, flags = _loop_body(value, given, masked, place.seeded, place.restoring)
    parts = cut_loop(value, body, flags, masked, place.passed_on, place.restoring)
    assert body.index is not None
    if parts.whole and not place.restoring and (place.inside or parts.whole * trips_of(body.index) >= LEAST_WHOLE):
        other, more, others = _loop_body(value, given, masked, place.seeded, True)
        undone = cut_loop(value, other, others, masked, place.passed_on, False)
        if undone.kept_bytes() < parts.kept_bytes():
            body, arrays, parts = other, more, undone
    return body, arrays, parts


def _while(value: Value, operands: Sequence[Value], given: Sequence[bool], place: Place, known: Known) -> Value:
    key = _key(value, given, place)
    if key not in known:
        masked = masked_outputs(value.attrs["body"], value.attrs["carried"], place.masked)
        body, arrays, flags = _loop_body(value, given, masked, place.seeded)
        known[key] = cut_while(value, body, arrays, flags, masked, not place.inside)
    return expand_while(value, operands, known[key])


def _key(value: Value, given: Sequence[bool], place: Place) -> tuple[Any, ...]:
    """What the cut of a loop's body depends on: loops may have one body (`share_bodies`)."""
    return value.op, value.attrs["body"], *[value.attrs.get(name) for name in ("carried", "lo", "hi", "step")], tuple(given), place


def _loop_body(value: Value, given: Sequence[bool], masked: Set[int], results: Set[int],
               restoring: bool = False) -> tuple[Graph, list[Any], list[bool]]:
    """The body of a loop, prepared, the arrays that are its last inputs, and which inputs are active: those on which results that get
    cotangents depend."""
    body, carried = value.attrs["body"], value.attrs["carried"]
    seeded, values = seeded_results(value, results)
    flags = active_inputs(body, carried, given)
    flags = [flag and (k in seeded if k < carried else body.inputs[k] in values) for k, flag in enumerate(flags)]
    body, arrays = _prepared(body, [k for k, flag in enumerate(flags) if flag], masked, seeded, carried, restoring)
    return body, arrays, [*flags, *[False] * len(arrays)]


def _cond(value: Value, operands: Sequence[Value], given: Sequence[bool], place: Place, known: Known) -> Value:
    branches = value.attrs["then_branch"], value.attrs["else_branch"]
    flags = [flag and is_differentiable(operand) for flag, operand in zip(given[1:], value.operands[1:], strict=True)]
    wrt = [k for k, flag in enumerate(flags) if flag]
    states = set(branch_states(value).values())
    changed = {*states, *[k - 1 for k in place.changed]}
    prepared = [_prepared(branch, wrt, place.masked, place.seeded, changed=changed) for branch in branches]
    return expand_cond(value, operands, prepared, flags, Choice(states, changed, place.masked, place.seeded))


def _checkpoint(value: Value, operands: Sequence[Value], given: Sequence[bool], place: Place, known: Known) -> Value:
    flags = [flag and is_differentiable(operand) for flag, operand in zip(given, value.operands, strict=True)]
    body, arrays = _prepared(value.attrs["body"], [k for k, flag in enumerate(flags) if flag], place.masked, place.seeded)
    return expand_checkpoint(value, operands, body, arrays, flags, place.masked)


REGIONS = Regions(expand_regions, unlink_regions, prune_regions)
_EXPAND: dict[Op, Callable[..., Value]] = {ops.loop: _loop, ops.while_loop: _while, ops.cond: _cond, ops.checkpoint: _checkpoint}
