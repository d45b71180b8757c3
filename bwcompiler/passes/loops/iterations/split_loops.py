"""A loop with a choice made by its index becomes several loops without it: one for each range of the index in which the answer is the same.

    for i in 0..n: b = x[i - 1] if i > 0 else 0.0          ->          for i in 0..0: b = 0.0;   for i in 1..n: b = x[i - 1]

Borders of grids and first steps are written so.  In each part it is known that the elements read exist, and no choices are left: iterations
may be independent (`vectorize_loops`), and positions are affine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, known_le, scale_extent, span, substitute
from bwcompiler.ir.graph import Graph, all_values, live_values
from bwcompiler.ir.op import Op, Record, Value, current_record, input_value
from bwcompiler.ir.types import BOOL, TupleType
from bwcompiler.passes.loops.iterations.count_whiles import as_counted
from bwcompiler.passes.loops.iterations.known_extents import Known, extent_of, known_in
from bwcompiler.passes.loops.replaced_regions import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewriter, Rewritten
from bwcompiler.passes.rewriting.simplify_rules import RULES

MOST_PARTS = 4                 # of one loop
MOST_VALUES = 400              # in the bodies of all parts together

# Per comparison of a difference with 0 its answers: below 0, at 0, above.
_ASKED: dict[Op, tuple[bool, bool, bool]] = {
    ops.less: (True, False, False), ops.less_equal: (True, True, False), ops.greater: (False, False, True),
    ops.greater_equal: (False, True, True), ops.equal: (False, True, False), ops.not_equal: (True, False, True)}


def split_loops(graph: Graph) -> Rewritten:
    """The graph with loops split where their index decides a choice; the same graph where there are none."""
    return with_regions_replaced(graph, split_loops, _replacement)


def _replacement(value: Value) -> list[Value] | None:
    """What a loop becomes; a while loop that counts between numbers made of indices is one."""
    if value.op is ops.loop:
        return _split(value)
    counted = as_counted(value) if value.op is ops.while_loop else None
    if counted is None:
        return None
    index = counted.body.index
    assert index is not None
    if known_le(add_extents(index.hi, 1), index.lo):                   # no iterations: nothing is known of the index then
        return counted.results(counted.operands[:counted.carried])
    body = split_loops(_Copy({}).graph(counted.body, index, {})).graph       # without choices that the bounds of the index decide
    with Record():
        loop = ops.loop(*counted.operands, lo=index.lo, hi=index.hi, step=1, carried=counted.carried, body=body)
    return counted.results(_split(loop) or _results(ops.loop(*counted.operands, **loop.attrs)))


def _split(loop: Value) -> list[Value] | None:
    """The results of the loops that one becomes, in the current record; None where it stays."""
    attrs, carried = loop.attrs, loop.attrs["carried"]
    body, lo, hi, step = attrs["body"], attrs["lo"], attrs["hi"], attrs["step"]
    if abs(step) != 1:
        return None
    known = known_in(loop, "body", {})
    ends = _ends(body, lo, hi, known, False)
    if not ends and _has(body, ops.while_loop):
        ends = _ends(body, lo, hi, known, True)
    if not ends or len(ends) >= MOST_PARTS or (len(ends) + 1) * _size(body) > MOST_VALUES:
        return None
    parts = list(zip([lo, *[add_extents(end, 1) for end in ends]], [*ends, hi], strict=True))
    states, fixed = list(loop.operands[:carried]), loop.operands[carried:]
    for first, last in parts if step > 0 else reversed(parts):
        index = Index(first, last, body.index.name)
        made = _Copy({body.index: index.extent()}).graph(body, index, known)
        if _has(made, ops.while_loop) or _has_choice(made):        # that may be a loop now, or loops inside may be split at this index
            made = split_loops(made).graph
        how = {"lo": first, "hi": last, "step": step, "carried": carried, "body": made}
        states = _again([*states, *fixed], how) or _results(ops.loop(*states, *fixed, **how))
    return states


def _again(operands: Sequence[Value], how: Mapping[str, Any]) -> list[Value] | None:
    """The results of the loops that a part becomes, whose bounds inside are chosen by indices that are known only now."""
    if not _has(how["body"], ops.while_loop):
        return None
    with Record():
        loop = ops.loop(*operands, **how)
    return _split(loop)


def _results(loop: Value) -> list[Value]:
    return [ops.item(loop, index=k) for k in range(loop.attrs["carried"])]


def _size(graph: Graph) -> int:
    return sum(1 for _ in all_values(graph))


def _ends(body: Graph, lo: Extent, hi: Extent, known: Known, around: bool) -> list[Extent]:
    """Where the loop is to be split, in order: the last index of each part but the last one.  Nowhere, where their order is not known.

    around: also where choices by indices of loops inside begin or cease to be the same for all that these may be.
    """
    index = body.index
    if index is None or not _has_choice(body):
        return []
    found: list[Extent] = []
    inside = set(_indices(body))
    for question in _questions(body, known):
        for end in _ends_of(question, index, inside, around):
            known_inside = known_le(add_extents(lo, -1), end) and known_le(end, hi)
            if end not in found and known_inside and not known_le(end, add_extents(lo, -1)) and not known_le(hi, end):
                found.append(end)
    ordered: list[Extent] = []
    for end in found:
        place = next((k for k, other in enumerate(ordered) if known_le(end, other)), len(ordered))
        if not all(known_le(other, end) for other in ordered[:place]):
            return []
        ordered.insert(place, end)
    return ordered


def _indices(graph: Graph) -> Iterator[Index]:
    """Those of loops inside."""
    for value in all_values(graph):
        for region in value.op.regions:
            inner: Graph = value.attrs[region]
            if inner.index is not None:
                yield inner.index


def _has_choice(graph: Graph) -> bool:
    """Whether there is a branch, or a number that is chosen, perhaps as the bound of a loop."""
    return _has(graph, ops.cond) or (_has(graph, ops.while_loop) and _has(graph, ops.select))


def _has(graph: Graph, op: Op) -> bool:
    return any(value.op is op for value in all_values(graph))


# ----- what is asked of indices
class _Question(NamedTuple):
    """A comparison of a difference with 0."""

    op: Op
    difference: Extent


def _questions(graph: Graph, known: Known) -> Iterator[_Question]:
    """The comparisons of indices in a body and in the regions in it."""
    for value in graph.body:
        for region in value.op.regions:
            yield from _questions(value.attrs[region], known_in(value, region, known))
        question = _question(value, known)
        if question is not None:
            yield question


def _question(value: Value, known: Known) -> _Question | None:
    """What a value asks of indices, if it does."""
    if value.op not in _ASKED:
        return None
    first, second = [extent_of(operand, known) for operand in value.operands]
    if first is None or second is None:
        return None
    return _Question(value.op, add_extents(first, scale_extent(second, -1)))


def _ends_of(question: _Question, index: Index, inside: Set[Index], around: bool) -> list[Extent]:
    """The indices behind which the answer may change.  Indices of loops inside are in no place for a split."""
    differences = [question.difference]
    if _mentions(question.difference, inside):
        differences = list(span(question.difference, inside)) if around else []
    below, at, above = _ASKED[question.op]
    found = []
    for difference in differences:
        factor = dict(difference.terms).get(index) if isinstance(difference, Affine) else None
        if factor not in (1, -1) or _mentions(difference, inside):
            continue
        rest = add_extents(difference, scale_extent(index.extent(), -factor))
        zero = scale_extent(rest, -factor)                                   # the index at which the difference is 0
        first, last = (below, above) if factor == 1 else (above, below)
        found += [*([add_extents(zero, -1)] if first != at else []), *([zero] if at != last else [])]
    return found


def _mentions(extent: Extent, indices: Set[Index]) -> bool:
    return isinstance(extent, Affine) and any(term in indices for term, _ in extent.terms)


def _answer(question: _Question, extents: Mapping[Index, Extent]) -> bool | None:
    """Whether a comparison holds, where that is the same for all that the indices may be."""
    difference = substitute(question.difference, extents)
    below, at, above = _ASKED[question.op]
    possible = [(below, known_le(0, difference)), (above, known_le(difference, 0)),
                (at, known_le(difference, -1) or known_le(1, difference))]
    answers = {answer for answer, excluded in possible if not excluded}
    return answers.pop() if len(answers) == 1 else None


# ----- the parts
def copy_of(body: Graph, index: Index) -> Graph:
    """A loop's body for an index of another range."""
    return body if body.index is None else _Copy({body.index: index.extent()}).graph(body, index, {})


class _Copy:
    """Copies of graphs with other extents in the places of indices, and without the choices that these decide."""

    def __init__(self, extents: Mapping[Index, Extent]) -> None:
        self.extents = dict(extents)

    def graph(self, graph: Graph, index: Index | None, known: Known) -> Graph:
        inputs = [input_value(self._type(value.type), value.name, value.source) for value in graph.inputs]
        record = Rewriter(RULES)
        with record:
            outputs = self.values(graph, dict(zip(graph.inputs, inputs, strict=True)), known)
        return Graph(graph.name, inputs, live_values(record.values, outputs), outputs, index, graph.captured)

    def values(self, graph: Graph, mapping: dict[Value, Value], known: Known) -> list[Value]:
        """The outputs of a graph over other values, in the current record."""
        record: Record | None = current_record()
        assert record is not None
        chosen: dict[Value, list[Value]] = {}
        for value in graph.body:
            record.source, record.forward = value.source, None if value.forward is None else mapping.get(value.forward, value.forward)
            if value.op is ops.item and value.operands[0] in chosen:
                mapping[value] = chosen[value.operands[0]][value.attrs["index"]]
                continue
            operands = [mapping[operand] for operand in value.operands]
            question = _question(value, known)
            answer = None if question is None else _answer(question, self.extents)
            if answer is not None:
                mapping[value] = ops.full(value=answer, shape=self._type(value.type).shape, dtype=BOOL)
                continue
            if value.op is ops.cond and operands[0].op is ops.full:
                name = "then_branch" if operands[0].attrs["value"] else "else_branch"
                branch = value.attrs[name]
                chosen[value] = self.values(branch, dict(zip(branch.inputs, operands[1:], strict=True)), known_in(value, name, known))
                continue
            if value.op is ops.loop and self._never_runs(value):
                chosen[value] = operands[:value.attrs["carried"]]
                continue
            attrs = {name: self._region(value, name, known) if name in value.op.regions else self._attribute(one)
                     for name, one in value.attrs.items()}
            made = record.emit(value.op, tuple(operands), attrs, self._type(value.type))
            if made.name is None:
                made.name = value.name
            mapping[value] = made
        return [mapping[output] for output in graph.outputs]

    def _never_runs(self, loop: Value) -> bool:
        """Whether a loop inside has no iterations in this part: nothing is known of its index then."""
        lo, hi = [substitute(loop.attrs[name], self.extents) for name in ("lo", "hi")]
        return bool(known_le(add_extents(hi, 1), lo))

    def _attribute(self, attribute: Any) -> Any:
        if isinstance(attribute, Affine):
            return substitute(attribute, self.extents)
        return tuple([self._attribute(part) for part in attribute]) if type(attribute) is tuple else attribute

    def _region(self, value: Value, name: str, known: Known) -> Graph:
        graph: Graph = value.attrs[name]
        inside, index = known_in(value, name, known), graph.index
        if index is None:
            return self.graph(graph, None, inside)
        made = Index(substitute(index.lo, self.extents), substitute(index.hi, self.extents), index.name)
        return _Copy({**self.extents, index: made.extent()}).graph(graph, made, inside)

    def _type(self, type_: Any) -> Any:
        if isinstance(type_, TupleType):
            return TupleType(tuple([self._type(one) for one in type_.items]))
        shape: Sequence[Extent] = type_.shape
        return type_ if all(isinstance(extent, int) for extent in shape) else type_.with_shape(
            tuple([substitute(extent, self.extents) for extent in shape]))
