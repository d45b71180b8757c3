"""Forward mode: a graph -> the graph that also computes tangents of its outputs, from tangents of its inputs.

One walk in the order of the graph; the tangent of a value is made directly after it, so that its operands are still near.  Only values
on a path from an input to an output have a tangent; zero tangents are None.  New values are simplified and merged with the
forward values, as in the reverse sweep.  The result is ordinary graph IR: any derivative of it is a pass applied again.

The JVP rule of an op gives its tangent (`tangent_of`).  An op whose rule is TRANSPOSED has none of its own: its VJP rule is
linear in the cotangent, so the derivative of the VJP with respect to the cotangent is the JVP, transposed twice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.errors import GradientError, InternalError, UnsupportedError, at
from bwcompiler.ir.declaration import ELEMENTWISE, LINEAR, MULTILINEAR, TRANSPOSED, ZERO, Absent, Into, Joint, NotDifferentiable
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.types import TensorType, TupleType
from bwcompiler.ops.calls.custom import custom_link, inline_with_captured
from bwcompiler.passes.derivatives.activity import active_values
from bwcompiler.passes.derivatives.expand_custom_rules import expand_custom_rules
from bwcompiler.passes.derivatives.push_regions import PUSHED, push_region, use_results
from bwcompiler.passes.derivatives.roots import tangent_of_terms
from bwcompiler.passes.derivatives.transposed_rule import Regions, transposed
from bwcompiler.passes.pass_manager import PassRun
from bwcompiler.passes.rewriting.rewriter import Rewriter
from bwcompiler.passes.rewriting.simplify_rules import RULES

Tangent = Value | None                             # None: zero
Tangents = Tangent | Sequence[Tangent]             # of a value with several results: one for each


class TangentGraph(NamedTuple):
    """What `push_forward` gives.  Outputs of the graph: those of the graph given, then the tangents that are not zero.

    tangents   per output of the given graph the position of its tangent among the outputs, or None where it is zero.
    seeds      per entry of wrt the input position of its tangent: behind the arguments, before what is captured.
    captured   arrays that custom rules brought in: the last of the graph's captured inputs.
    passes     what the passes that led here did.
    """

    graph: Graph
    tangents: tuple[int | None, ...]
    seeds: tuple[int, ...]
    captured: tuple[Any, ...] = ()
    passes: Sequence[PassRun] = ()


def push_forward(graph: Graph, wrt: Sequence[int], wanted: Sequence[bool] | None = None, apart: bool = False,
                 regions: Regions | None = None) -> TangentGraph:
    """The graph with the tangents of its outputs, for tangents of its inputs `wrt`, which are new inputs.

    wanted   per output whether its tangent is; default: of all.
    apart    what is computed of no tangent stays so: the outputs of the graph given do not come out of loops that carry tangents, which
             run again what those compute.
    regions  how loops are differentiated in rules for cotangents, which are transposed.
    """
    explicit = len(graph.inputs) - graph.captured
    targets = [graph.inputs[k] for k in wrt]
    chosen = [output for k, output in enumerate(graph.outputs) if wanted is None or wanted[k]]
    reached = _reached(graph, active_values(graph, targets), chosen)
    record = Rewriter(RULES)
    tangents: dict[Value, Tangents] = {}
    replaced: dict[Value, Value] = {}                  # loops and branches -> those that give their results and tangents
    for target in targets:
        tangents[target] = input_value(target.type, f"{target.label}.tangent", target.source)
    with record:
        for value in graph.body:
            record.values.append(value)
            record.learn([value])
            if value in reached:
                record.source, record.forward = value.source, value.forward
                given = [tangents.get(operand) for operand in value.operands]
                if value.op in PUSHED and any(tangent is not None for tangent in given):
                    replaced[value], tangents[value] = push_region(value, given, functools.partial(_push_body, regions=regions))
                    continue
                tangents[value] = _of_value(value, given, regions)
                _name(tangents[value], value)
    found = [tangents.get(output) if wanted is None or wanted[k] else None for k, output in enumerate(graph.outputs)]
    present = [tangent for tangent in found if isinstance(tangent, Value)]
    numbers = iter(range(len(graph.outputs), len(graph.outputs) + len(present)))
    captured = list(record.captured.values())
    seeds = [tangents[target] for target in targets]
    inputs: list[Any] = [*graph.inputs[:explicit], *seeds, *graph.inputs[explicit:], *[value for _, value in captured]]
    outputs = [*graph.outputs, *present]
    made = Graph(graph.name, inputs, record.values, outputs, graph.index, graph.captured + len(captured))
    made = made if apart else use_results(made, replaced)
    made = made.replace(body=live_values(made.body, made.outputs))
    return TangentGraph(made, tuple([None if tangent is None else next(numbers) for tangent in found]),
                        tuple(range(explicit, explicit + len(targets))), tuple([array for array, _ in captured]))


def _push_body(body: Graph, wrt: Sequence[int], regions: Regions | None) -> tuple[TangentGraph, list[Any]]:
    """The body of a loop or branch with tangents, custom rules expanded, which capture the arrays."""
    expanded = expand_custom_rules(body, wrt, regions)
    return push_forward(expanded.graph.replace(captured=0), wrt, regions=regions), list(expanded.arrays)


def _reached(graph: Graph, active: set[Value], outputs: Sequence[Value]) -> set[Value]:
    """Those of the active values whose tangents the tangents of outputs are made of."""
    needed = set(outputs)
    for value in reversed(graph.body):
        if value in needed and value in active:
            needed.update(_carriers(value))
    return needed & active


def _carriers(value: Value) -> Sequence[Value]:
    """The operands through which tangents come: of a link, the primals."""
    return value.operands[:value.attrs["primals"]] if value.op is custom_link else value.operands


def _name(tangent: Tangents, value: Value) -> None:
    if isinstance(tangent, Value) and tangent.name is None and tangent is not value:
        tangent.name = f"{value.label}.tangent"


def _of_value(value: Value, tangents: Sequence[Tangents], regions: Regions | None) -> Tangents:
    if all(tangent is None for tangent in tangents):
        return None
    if value.op is ops.item:
        of_all = tangents[0]
        assert isinstance(of_all, Sequence)
        return of_all[value.attrs["index"]]
    single = [tangent if isinstance(tangent, Value) else None for tangent in tangents]
    found = tangent_of(value, single, regions)
    _check(value, found)
    return found


def _check(value: Value, found: Tangents) -> None:
    types = value.type.items if isinstance(value.type, TupleType) else (value.type,)
    parts = (found,) if found is None or isinstance(found, Value) else found
    for part, type_ in zip(parts, types, strict=found is not None):
        if part is not None and part.type != type_:
            raise InternalError(at(value.source, f"the tangent of {value!r} is {part.type}"))


# ----- one op
def tangent_of(value: Value, tangents: Sequence[Tangent], regions: Regions | None = None) -> Tangents:
    """The tangent of one value, made in the current record from those of its operands, of which one is not zero."""
    op, rule = value.op, value.op.jvp
    if rule is ZERO:
        return None
    if value.op is custom_link:
        return _of_link(value, tangents, regions)
    if isinstance(rule, Absent):
        raise UnsupportedError(at(value.source, rule.reason))
    if rule is LINEAR:
        return op(*_filled(value.operands, tangents), **value.attrs)
    if rule is MULTILINEAR:
        terms = [op(*[tangent if k == position else x for k, x in enumerate(value.operands)], **value.attrs)
                 for position, tangent in enumerate(tangents) if tangent is not None]
        return _sum(list(map(tangent_of_terms, terms)) if op is ops.multiply else terms)
    if rule is ELEMENTWISE:
        partials = [_cotangent(partial, tangent, value, operand) for tangent, partial, operand in zip(
            tangents, op.vjp_rules(len(tangents)), value.operands, strict=True) if tangent is not None]
        return _sum([None if one is None else tangent_of_terms(one) for one in partials])
    if rule is TRANSPOSED:
        return _transposed_twice(value, tangents)
    assert callable(rule)
    found: Tangents = rule(tangents, value, *value.operands, **value.attrs)
    return found


def _filled(operands: Sequence[Value], tangents: Sequence[Tangent]) -> list[Value]:
    """Zeros in the place of None; operands that have no derivative (indices) are themselves."""
    return [x if not x.dtype.is_differentiable else constant(0.0, x.type) if tangent is None else tangent
            for x, tangent in zip(operands, tangents, strict=True)]


def _sum(terms: Sequence[Tangent]) -> Tangent:
    total: Tangent = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


# ----- from the rule for cotangents
Pullback = Callable[[list[Value]], Sequence[Value | None]]    # cotangents of the results -> one per tangent given


def _transposed_twice(value: Value, tangents: Sequence[Tangent]) -> Tangents:
    """By the VJP rule of the op."""
    op, operands = value.op, value.operands
    needs = tuple(tangent is not None for tangent in tangents)

    def pullback(cts: list[Value]) -> Sequence[Value | None]:
        if isinstance(op.vjp, Joint):
            ct: Any = cts if isinstance(value.type, TupleType) else cts[0]
            return op.vjp.rule(ct, value, operands, needs, **value.attrs)  # type: ignore[no-any-return]
        return [_cotangent(rule, cts[0], value, operand) if need else None
                for need, rule, operand in zip(needs, op.vjp_rules(len(operands)), operands, strict=True)]

    return _transpose(value, pullback, tangents)


def _cotangent(rule: Any, ct: Value, value: Value, operand: Value) -> Value | None:
    if isinstance(rule, NotDifferentiable):
        return None
    if isinstance(rule, Into):
        return rule.rule(constant(0.0, operand.type), ct, value, *value.operands, **value.attrs)  # type: ignore[no-any-return]
    return rule(ct, value, *value.operands, **value.attrs)  # type: ignore[no-any-return]


def _of_link(value: Value, tangents: Sequence[Tangent], regions: Regions | None) -> Tangents:
    """A custom rule: by the user's rule for tangents if that is what there is, else by the one for cotangents."""
    rule, primals = value.attrs["rule"], value.operands[:value.attrs["primals"]]
    given = tangents[:len(primals)]
    if rule.has_tangents:
        graph, arrays, present = rule.push([primal.type for primal in primals], [tangent is not None for tangent in given])
        found = iter(inline_with_captured(graph, [*primals, *[tangent for tangent in given if tangent is not None]], arrays))
        return [next(found) if there else None for there in present]

    def pullback(cts: list[Value]) -> Sequence[Value | None]:
        assert isinstance(value.op.vjp, Joint)
        needs = tuple(tangent is not None for tangent in tangents)
        return value.op.vjp.rule(cts, value, value.operands, needs, **value.attrs)  # type: ignore[no-any-return]

    return _transpose(value, pullback, [*given, *[None] * (len(value.operands) - len(primals))], regions)


def _transpose(value: Value, pullback: Pullback, tangents: Sequence[Tangent], regions: Regions | None = None) -> Tangents:
    """What the pullback, a linear function of cotangents of `value`, makes of tangents when it is transposed."""
    types: Sequence[TensorType] = value.type.items if isinstance(value.type, TupleType) else [value.type]
    cts = [input_value(type_, "ct", value.source) for type_ in types]
    record = Record()
    record.source = value.source
    with record:
        found = pullback(cts)
    pairs = [(ct, tangent) for ct, tangent in zip(found, tangents, strict=False) if ct is not None and tangent is not None]
    if not pairs:
        return [None] * len(types) if isinstance(value.type, TupleType) else None
    outside = list(dict.fromkeys(operand for made in record.values for operand in made.operands))
    inside = {*record.values, *cts}
    outside = [operand for operand in outside if operand not in inside]
    captured = list(record.captured.values())
    outputs = [ct for ct, _ in pairs]
    wrt = [k for k, ct in enumerate(cts) if ct.dtype.is_differentiable]
    expanded = expand_custom_rules(Graph("pullback", [*cts, *outside], live_values(record.values, outputs), outputs), wrt, regions)
    joint = transposed(expanded.graph, wrt, regions)
    if joint is None:
        raise _not_linear(value)
    given = iter([tangent for _, tangent in pairs])
    seeds = {position: next(given) for position in joint.seeds if position is not None}
    rebound = {held: _recaptured(array, held) for array, held in captured}
    arrays = [*expanded.arrays, *joint.captured]
    operands = [seeds[k] if k in seeds else rebound.get(one, one)
                for k, one in enumerate(joint.graph.inputs[:len(joint.graph.inputs) - len(arrays)])]
    results = inline_with_captured(joint.graph, operands, arrays)
    per_result: list[Tangent] = [None] * len(types)
    for k, number in zip(wrt, joint.cotangents, strict=True):
        per_result[k] = None if number is None else results[number]
    return per_result if isinstance(value.type, TupleType) else per_result[0]


def _recaptured(array: Any, held: Value) -> Value:
    """The input of the current record for an array that a rule captured in a record of its own."""
    from_rule = Graph("captured", [held], [], [held])
    return inline_with_captured(from_rule, [], [array])[0]


def _not_linear(value: Value) -> GradientError:
    name = value.attrs["rule"] if value.op is custom_link else value.op.name
    return GradientError(at(value.source, (
        f"forward mode through {name}: its rule for cotangents is not a linear function of them (it clips them, say, or carries them in a "
        "while loop), so that there "
        "is no rule for tangents that fits it\n  hint: use reverse mode (bw.vjp, bw.grad, bw.jacrev), or give the function its rule "
        "for tangents with bw.custom_jvp")))
