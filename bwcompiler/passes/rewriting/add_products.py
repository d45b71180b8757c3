"""Matrix products that are added to other results: `add_products`, c + x @ y -> matmul_add(x, y, c).

The product is accumulated in the memory of c, if nothing else reads c, and not stored first: the sums of an unrolled recurrence
(x @ w + h @ u), of the taps of a convolution, of heads, of tangents (dx @ w + x @ dw) and of the gradients of a matrix that is used again.

c must be the result of another call, which is stored anyway: a loop that computes c can add the product to it without storing c.  A sum of
at most BLOCK terms has the same bits: it starts as 0, and is added to c once.  With more terms each block would be added separately, and
the product takes so long that nothing would be gained.
"""

from __future__ import annotations

from collections.abc import Collection

from bwcompiler import ops
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value, is_constant
from bwcompiler.ir.products import BLOCK, is_written_out
from bwcompiler.ir.types import F32, F64
from bwcompiler.passes.rewriting.legal.window_rules import reshaped
from bwcompiler.passes.rewriting.rewriter import Replacement, with_replaced
from bwcompiler.passes.rewriting.simplify_rules import RULES

_CALLS = ("library", "push")


def add_products(graph: Graph) -> Graph:
    """The graph with such products; the same graph where there is none."""
    if not any(value.op is ops.matmul for value in graph.body):
        return graph
    once = graph.read_once()
    place = {value: number for number, value in enumerate(graph.body)}
    made: dict[Value, Replacement] = {}
    for value in graph.body:
        if value.op is not ops.add:
            continue
        terms = [_without_zero(operand, once) for operand in value.operands]
        bases = [_unshaped(term, once) for term in terms]
        if not all(base in once and (base.op.kind in _CALLS or base in made) for base in bases):
            continue
        added = [base for base in bases if _may_be_added(base)]
        if added:
            last = max(added, key=place.__getitem__)
            made[value] = Replacement((*last.operands, terms[1 - bases.index(last)]), _sum)
    return with_replaced(graph, {ops.reshape: RULES[ops.reshape]}, made) if made else graph


def _unshaped(value: Value, once: Collection[Value]) -> Value:
    """What a value has the elements of, where nothing else reads them."""
    while value.op is ops.reshape and value in once:
        value = value.operands[0]
    return value


def _without_zero(value: Value, once: Collection[Value]) -> Value:
    """x where the value is x + 0, of a product, with which `sum(products)` begins: no tile gives -0, which that would change."""
    if value.op is ops.add and value in once and is_constant(value.operands[1]) and value.operands[1].attrs["value"] == 0:
        product = _unshaped(value.operands[0], once)
        if product in once and _is_of_tiles(product):
            return value.operands[0]
    return value


def _may_be_added(value: Value) -> bool:
    """Whether a value is a product that can be added where something else lies."""
    return _is_of_tiles(value) and bool(value.operands[0].shape[-1] <= BLOCK)


def _is_of_tiles(value: Value) -> bool:
    """Whether tiles compute a value: a product of matrices, not of vectors, which have their own sums."""
    if value.op is not ops.matmul or value.dtype not in (F32, F64) or is_written_out(value):
        return False
    extents = (*value.shape, value.operands[0].shape[-1])
    return all(isinstance(extent, int) and extent > 0 for extent in extents) and min(value.shape[-2:]) > 1


def _sum(x: Value, y: Value, start: Value) -> Value:
    shape = (*x.shape[:-1], y.shape[-1])
    return reshaped(ops.matmul_add(x, y, reshaped(start, shape)), start.shape)
