"""A loop with a choice that its index decides becomes loops without it: one for each range of the index in which the answer is the same.

    for i in 0..n: b = x[i - 1] if i > 0 else 0.0          ->          for i in 0..0: b = 0.0;   for i in 1..n: b = x[i - 1]

Borders of grids and first steps are written so.  What the sides read is then known to be there, and what is left has no choices: iterations
may be independent (`vectorize_loops`), and places are affine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, known_le, scale_extent, substitute
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Op, Record, Value, current_record, input_value
from bwcompiler.ir.types import BOOL, TupleType
from bwcompiler.passes.loops.vectorize_loops import with_regions_replaced
from bwcompiler.passes.rewriting.rewriter import Rewriter, Rewritten
from bwcompiler.passes.rewriting.simplify_rules import RULES

Known = Mapping[Value, Extent]                     # inputs of regions that are numbers made of indices
MOST_PARTS = 4                 # of one loop
MOST_VALUES = 400              # in the bodies of all parts together

# Per comparison of a difference with 0 its answers: below 0, at 0, above.
_ASKED: dict[Op, tuple[bool, bool, bool]] = {
    ops.less: (True, False, False), ops.less_equal: (True, True, False), ops.greater: (False, False, True),
    ops.greater_equal: (False, True, True), ops.equal: (False, True, False), ops.not_equal: (True, False, True)}


def split_loops(graph: Graph) -> Rewritten:
    """The graph with loops split where their index decides a choice; the same graph where there are none."""
    return with_regions_replaced(graph, split_loops, lambda value: _split(value) if value.op is ops.loop else None)


def _split(loop: Value) -> list[Value] | None:
    """The results of the loops that one becomes, in the current record; None where it stays."""
    attrs, carried = loop.attrs, loop.attrs["carried"]
    body, lo, hi, step = attrs["body"], attrs["lo"], attrs["hi"], attrs["step"]
    if abs(step) != 1:
        return None
    known = _known_in(loop, "body", {})
    ends = _ends(body, lo, hi, known)
    if not ends or len(ends) >= MOST_PARTS or (len(ends) + 1) * _size(body) > MOST_VALUES:
        return None
    parts = list(zip([lo, *[add_extents(end, 1) for end in ends]], [*ends, hi], strict=True))
    states, fixed = list(loop.operands[:carried]), loop.operands[carried:]
    for first, last in parts if step > 0 else reversed(parts):
        index = Index(first, last, body.index.name)
        made = _Copy({body.index: index.extent()}).graph(body, index, known)
        looped = ops.loop(*states, *fixed, lo=first, hi=last, step=step, carried=carried, body=made)
        states = [ops.item(looped, index=k) for k in range(carried)]
    return states


def _size(graph: Graph) -> int:
    return sum([1 + sum([_size(value.attrs[region]) for region in value.op.regions]) for value in graph.body])


def _ends(body: Graph, lo: Extent, hi: Extent, known: Known) -> list[Extent]:
    """Where the loop is to be split, in order: the last index of each part but the last one.  Nowhere, where their order is not known."""
    index = body.index
    if index is None or not _has_choice(body):
        return []
    found: list[Extent] = []
    inside = set(_indices(body))
    for question in _questions(body, known):
        for end in _ends_of(question, index, inside):
            if end not in found and known_le(lo, end) and known_le(add_extents(end, 1), hi):
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
    for value in graph.body:
        for region in value.op.regions:
            inner: Graph = value.attrs[region]
            if inner.index is not None:
                yield inner.index
            yield from _indices(inner)


def _has_choice(graph: Graph) -> bool:
    return any(value.op is ops.cond or any(_has_choice(value.attrs[region]) for region in value.op.regions) for value in graph.body)


# ----- what is asked of indices
class _Question(NamedTuple):
    """A comparison of a difference with 0."""

    op: Op
    difference: Extent


def _questions(graph: Graph, known: Known) -> Iterator[_Question]:
    """The comparisons of indices in a body and in the regions in it."""
    for value in graph.body:
        for region in value.op.regions:
            yield from _questions(value.attrs[region], _known_in(value, region, known))
        question = _question(value, known)
        if question is not None:
            yield question


def _question(value: Value, known: Known) -> _Question | None:
    """What a value asks of indices, if it does."""
    if value.op not in _ASKED:
        return None
    first, second = [_extent(operand, known) for operand in value.operands]
    if first is None or second is None:
        return None
    return _Question(value.op, add_extents(first, scale_extent(second, -1)))


def _extent(value: Value, known: Known) -> Extent | None:
    """The number that a value is, where it is made of indices or constant."""
    while value.op is ops.reshape or value.op is ops.broadcast:
        value = value.operands[0]
    if value.op is ops.index_value:
        extent: Extent = value.attrs["extent"]
        return extent
    number = value.attrs["value"] if value.op is ops.full else known.get(value)
    return number if isinstance(number, int | Affine) and not isinstance(number, bool) else None


def _known_in(value: Value, region: str, known: Known) -> Known:
    """The inputs of a region that are such numbers."""
    graph: Graph = value.attrs[region]
    operands: Sequence[Value] = value.operands[1:] if value.op is ops.cond else value.operands
    first = value.attrs["carried"] if value.op in (ops.loop, ops.while_loop) else 0
    if value.op not in (ops.loop, ops.while_loop, ops.cond):
        return {}
    pairs = list(zip(graph.inputs, operands, strict=False))[first:]
    return {mine: extent for mine, operand in pairs if (extent := _extent(operand, known)) is not None}


def _ends_of(question: _Question, index: Index, inside: Set[Index]) -> list[Extent]:
    """The indices behind which the answer may change.  Indices of loops inside are in no place for a split."""
    terms = dict(question.difference.terms) if isinstance(question.difference, Affine) else {}
    factor = terms.get(index)
    if factor not in (1, -1) or any(term in inside for term in terms):
        return []
    rest = add_extents(question.difference, scale_extent(index.extent(), -factor))
    zero = scale_extent(rest, -factor)                                       # the index at which the difference is 0
    below, at, above = _ASKED[question.op][::factor]
    before = add_extents(zero, -1)
    return [*([before] if below != at else []), *([zero] if at != above else [])]


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
                chosen[value] = self.values(branch, dict(zip(branch.inputs, operands[1:], strict=True)), _known_in(value, name, known))
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
        inside, index = _known_in(value, name, known), graph.index
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
