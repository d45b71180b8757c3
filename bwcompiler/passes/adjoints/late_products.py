"""Products that a reverse loop adds up, computed as one product after the loop.

The cotangent of a matrix that every iteration multiplies by is `w̄ += x_tᵀ ȳ_t`: each step would read and write all of w̄ for a product of
a column and a row.  Instead the loop stores ȳ_t (x_t is in a stack of residuals already, or is stored too), and afterwards

    w̄ = Σ_t x_tᵀ ȳ_t

is one product over the axes of iterations and of the row together.  If a step adds to a part of w̄ that moves with the loop (`A[:, i:]`),
its factors are stored padded with zeros.  The pass applies only if the factors are much smaller than the product, and the stored
values are not much more than what the loop keeps anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.ir.extent import Extent, element_count, upper
from bwcompiler.ir.graph import Graph, inline, live_values
from bwcompiler.ir.op import Record, Value
from bwcompiler.ops.rules import zero_of
from bwcompiler.passes.batching.batch import batch_graph

FEWEST = 4                     # iterations
SMALLEST = 2048                # elements of the product
ROOM = 1 << 24                 # bytes that may be stored in any case


class Term(NamedTuple):
    """A product that is added to an array, or to the part of it that begins at `starts`."""

    product: Value
    starts: tuple[Extent, ...]
    shape: tuple[Extent, ...]


class Factor(NamedTuple):
    """One factor of all iterations: a move of the elements of residual number `residual`, or the loop's extra result number `extra`."""

    residual: int | None
    extra: int | None
    moves: Graph | None


class LateProduct(NamedTuple):
    """A term of the cotangent of the fixed input that is result `place` of the adjoint."""

    place: int
    left: Factor
    right: Factor


class Late(NamedTuple):
    """An adjoint without its late products.

    graph      what is left to add stays an output; then, behind all outputs, the extra results.
    products   the terms; extras: the factors that the loop has to store.
    untouched  the places to which the loop adds nothing any more: their outputs are inputs.
    """

    graph: Graph
    products: tuple[LateProduct, ...] = ()
    extras: tuple[Value, ...] = ()
    untouched: tuple[int, ...] = ()


def take_products(adjoint: Graph, places: Sequence[int], residuals: Sequence[Value], trips: int) -> Late:
    """The adjoint of a loop's body without what can be added up afterwards.

    places      of the cotangents of fixed inputs, which is where their values so far are among the inputs and the totals among the outputs.
    residuals   the inputs that hold what is read from stacks.
    """
    users: dict[Value, int] = {}
    for value in adjoint.body:
        for operand in value.operands:
            users[operand] = users.get(operand, 0) + 1
    taken: list[tuple[int, Term]] = []
    outputs = list(adjoint.outputs)
    with Record() as record:
        for place in places:
            terms: list[Term] = []
            outputs[place] = _peeled(adjoint.outputs[place], terms, users)
            taken += [(place, term) for term in terms]
        factors = [(place, *_factors(term)) for place, term in taken]
    stored = {value: k for k, value in enumerate(residuals)}
    graph = adjoint.replace(body=[*adjoint.body, *record.values])
    sources = {value: _source(value, stored) for _, *pair in factors for value in pair}
    extras = [value for value, source in sources.items() if source is None]
    kept = sum([value.type.nbytes for value in residuals])
    room = max(ROOM, trips * kept, 4 * sum([adjoint.outputs[place].type.nbytes for place in {place for place, _ in taken}]))
    if not factors or trips < FEWEST or trips * sum([value.type.nbytes for value in extras]) > room:
        return Late(adjoint)
    numbers = {value: k for k, value in enumerate(extras)}

    def factor(value: Value) -> Factor:
        source = sources[value]
        if source is None:
            return Factor(None, numbers[value], None)
        return Factor(stored[source], None, Graph("moves", [source], live_values(graph.body, [value]), [value]))

    products = tuple([LateProduct(place, factor(left), factor(right)) for place, left, right in factors])
    outputs += extras
    made = graph.replace(body=live_values(graph.body, outputs), outputs=outputs)
    read = {operand for value in made.body for operand in value.operands}
    untouched = tuple([place for place in places if outputs[place] is adjoint.inputs[place] and outputs[place] not in read])
    return Late(made, products, tuple(extras), untouched)


def _peeled(total: Value, terms: list[Term], users: dict[Value, int]) -> Value:
    """What is left of a sum without its late products, which are added to the terms; in the current record."""
    stays: list[Value] = []                    # additions to parts that have a late product below them, the last first
    passed: list[Value] = []                   # likewise, where none has been found yet
    base = left = total
    while users.get(base, 0) <= (0 if base is total else 1):
        term, rest = _added(base)
        if term is not None:
            terms.append(term)
            stays, passed, left = [*stays, *passed], [], rest
        elif base.op is ops.slice_add:
            passed.append(base)
        else:
            break
        base = rest
    for value in reversed(stays):
        left = ops.slice_add(left, value.operands[1], **value.attrs)
    return left


def _added(total: Value) -> tuple[Term | None, Value]:
    """The late product that a sum adds, and what it is added to; None where what is added is none."""
    if total.op is ops.slice_add:
        base, part = total.operands
        term = Term(part, total.attrs["starts"], base.shape)
        return (term if all(step == 1 for step in total.attrs["steps"]) and _is_late(term) else None), base
    if total.op is ops.add:
        for base, part in (total.operands, total.operands[::-1]):
            term = Term(part, (0,) * part.rank, part.shape)
            if _is_late(term):
                return term, base
    return None, total


def _is_late(term: Term) -> bool:
    value = term.product
    product = value.operands[0] if value.op is ops.transpose else value
    if product.op is not ops.matmul or product.rank != 2 or not all(isinstance(extent, int) for extent in term.shape):
        return False
    inner = product.operands[0].shape[1]
    rows, columns = [upper(extent) for extent in product.shape]
    if not isinstance(inner, int) or 2 * rows * columns < upper(element_count(term.shape)):
        return False
    return bool(rows * columns >= max(SMALLEST, 2 * inner * (rows + columns)))


def _factors(term: Term) -> tuple[Value, Value]:
    """The factors, in the current record where the product is transposed, or does not reach all rows or columns."""
    turned = term.product.op is ops.transpose
    left, right = term.product.operands[0].operands if turned else term.product.operands
    if turned:
        left, right = ops.transpose(right, axes=(1, 0)), ops.transpose(left, axes=(1, 0))
    return _in_zeros(left, 0, term), _in_zeros(right, 1, term)


def _in_zeros(factor: Value, axis: int, term: Term) -> Value:
    """A factor with zeros for the rows or columns that the term does not reach."""
    if factor.shape[axis] == term.shape[axis]:
        return factor
    shape = tuple([term.shape[k] if k == axis else extent for k, extent in enumerate(factor.shape)])
    zeros = ops.full(value=zero_of(factor.dtype), shape=shape, dtype=factor.dtype)
    return ops.slice_update(zeros, factor, starts=tuple([term.starts[k] if k == axis else 0 for k in range(2)]), steps=(1, 1))


def _source(value: Value, stored: dict[Value, int]) -> Value | None:
    """The residual of which a value is a move of all elements, where it fills the rows of its stack."""
    while value not in stored:
        if value.op not in (ops.reshape, ops.transpose):
            return None
        value = value.operands[0]
    return value if all(isinstance(extent, int) for extent in value.shape) else None


def sum_of_products(product: LateProduct, stacks: Sequence[Value], extras: Sequence[Value]) -> Value:
    """The term, in the current record: from the stacks of residuals and of extra results."""
    left, right = [_over_all(factor, stacks, extras) for factor in (product.left, product.right)]
    trips, rows, inner = left.shape
    columns = right.shape[2]
    if inner != 1:
        left = ops.transpose(left, axes=(0, 2, 1))
    tall = ops.reshape(left, shape=(trips * inner, rows))                 # both factors: iterations and their rows, one below the other
    return ops.matmul(ops.transpose(tall, axes=(1, 0)), ops.reshape(right, shape=(trips * inner, columns)))


def _over_all(factor: Factor, stacks: Sequence[Value], extras: Sequence[Value]) -> Value:
    """The factors of all iterations, along a new first axis."""
    if factor.extra is not None:
        return extras[factor.extra]
    assert factor.residual is not None and factor.moves is not None
    stack = stacks[factor.residual]
    moved, _ = batch_graph(factor.moves, [True], stack.shape[0])
    return inline(moved, [stack])[0]
