"""Values that are the same in all iterations of a loop are computed once, before the loop.

    loop(y; A): y' = exp(A) @ y          ->          E = exp(A);  loop(y; E): y' = E @ y

This runs before differentiation, so that cotangents of such values are also summed before being propagated once, after the loop.  It runs
again on legal graphs, since legalisation turns solves, inverses and determinants into LU factors: a matrix that a loop does not change is
factored once, for the loop and its reverse loop (`passes/rewriting/legal/factorization_rules.py`).  Ops that may fail are hoisted only if
the body certainly runs.  Values that are as cheap to compute as to read stay (`_stays`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bwcompiler import ops
from bwcompiler.ir.extent import known_le
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, current_record, input_value
from bwcompiler.passes.loops.region_bodies import Hoisted, emit_values, hoist
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewritten

MOST_INPUTS = 8                # of what a body computes again


def hoist_invariants(graph: Graph) -> Rewritten:
    """The graph with such values before its loops; the same graph where there are none.

    Values that are equal now are one: two loops factor a matrix once.
    """
    return with_regions_replaced(graph, hoist_invariants, _hoisted, merges=True)


def _hoisted(value: Value) -> list[Value] | None:
    """The results of a loop from which something was hoisted, in the current record."""
    return _HOIST[value.op](value) if value.op in _HOIST else None


def _from_loop(loop: Value) -> list[Value] | None:
    """The results of a counted loop, in the current record."""
    body, carried = loop.attrs["body"], loop.attrs["carried"]
    runs = known_le(loop.attrs["lo"], loop.attrs["hi"]) is True
    found = _hoist(body, carried, runs)
    return _emitted(loop, [found], {"body": found.graph}) if found.hoisted else None


def _from_while(loop: Value) -> list[Value] | None:
    """The results of a loop that data ends.  Its condition is evaluated once at least."""
    carried = loop.attrs["carried"]
    tested = _hoist(loop.attrs["condition"], carried, True)
    run = _hoist(loop.attrs["body"], carried, False)
    if not tested.hoisted and not run.hoisted:
        return None
    first = len(loop.operands)
    of_condition, of_body = tested.graph.inputs[first:], run.graph.inputs[first:]
    condition = tested.graph.replace(inputs=[*tested.graph.inputs, *_unread(of_body)])
    body = run.graph.replace(inputs=[*run.graph.inputs[:first], *_unread(of_condition), *of_body])
    return _emitted(loop, [tested, run], {"condition": condition, "body": body})


_HOIST = {ops.loop: _from_loop, ops.while_loop: _from_while}


def _hoist(region: Graph, carried: int, runs: bool) -> Hoisted:
    return hoist(region, region.inputs[carried:], runs, _stays(region))


def _unread(inputs: Sequence[Value]) -> list[Value]:
    """Inputs of a region that another region of the loop reads."""
    return [input_value(value.type, value.label, value.source) for value in inputs]


def _emitted(loop: Value, parts: Sequence[Hoisted], regions: Mapping[str, Graph]) -> list[Value]:
    """The loop with other regions, whose last inputs are what was hoisted, and that before it."""
    record = current_record()
    assert record is not None
    operands = list(loop.operands)
    for part in parts:
        given = part.graph.inputs[:len(loop.operands)]
        mapping = dict(zip(given, loop.operands, strict=True))
        emit_values(part.values, mapping, record)
        operands += [mapping[value] for value in part.hoisted]
    made = loop.op(*operands, **{**loop.attrs, **regions})
    made.name = loop.name
    return [ops.item(made, index=k) for k in range(len(loop.type.items))]


def _stays(region: Graph) -> Callable[[Value], bool]:
    """Which values stay in a body because reading them would cost as much as computing them: those that cheap operations on elements make
    of less memory than they take themselves (`x[:, None] < y`)."""
    made_of: dict[Value, frozenset[Value]] = {value: frozenset((value,)) for value in region.inputs}
    for value in region.body:
        cheap = value.op.cheap and value.op.kind in ("elementwise", "layout", "constant")
        if cheap and all(operand in made_of for operand in value.operands):
            found = frozenset().union(*[made_of[operand] for operand in value.operands])
            if len(found) <= MOST_INPUTS:
                made_of[value] = found

    def stays(value: Value) -> bool:
        found = made_of.get(value)
        return found is not None and sum([one.type.nbytes for one in found]) < value.type.nbytes

    return stays
