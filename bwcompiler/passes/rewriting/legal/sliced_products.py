"""Products of many rows that are not contiguous: `split_sliced_products`.

    matmul(reshape(slice(p), [16 * 1024, 64]), w)    ->    reshape(matmul(slice(p), broadcast(w, [16, 64, 64])))

The left side would first be stored as one matrix; the right side reads each matrix of the batch without a copy.  The taps of a convolution
are such products, `p[:, k:k + n] @ w[k]`.  If another value needs the matrix, it is stored anyway, and one product is best.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.access import is_alias, is_virtual, view_of
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.passes.rewriting.rewriter import Replacement, with_replaced
from bwcompiler.passes.rewriting.simplify_rules import RULES

LEAST_ROWS = 8                 # of each matrix,
LEAST_COLUMNS = 8              # of the result,
LEAST_ELEMENTS = 512           # and elements of each matrix: to copy fewer takes no longer than one more product


def split_sliced_products(graph: Graph) -> Graph:
    """The graph with such products as batches; the same graph where there is none."""
    products = [value for value in graph.body if value.op is ops.matmul and _is_sliced(value)]
    if not products:
        return graph
    split, users = set(products), graph.users()
    made = {value: Replacement((value.operands[0].operands[0], value.operands[1]), _batch)
            for value in products if split.issuperset(users[value.operands[0]]) and value.operands[0] not in graph.outputs}
    return with_replaced(graph, {ops.reshape: RULES[ops.reshape]}, made) if made else graph


def _is_sliced(value: Value) -> bool:
    rows, columns = value.operands
    if value.rank != 2 or rows.op is not ops.reshape or rows is columns or not is_alias(rows) or not value.dtype.is_float:
        return False
    batch = rows.operands[0]
    if batch.rank < 3 or not is_virtual(batch) or not all(isinstance(extent, int) for extent in (*batch.shape, *columns.shape)):
        return False
    height, terms = batch.shape[-2:]
    if terms != columns.shape[0] or height < LEAST_ROWS or columns.shape[1] < LEAST_COLUMNS or height * terms < LEAST_ELEMENTS:
        return False
    view = view_of(batch)
    return view is not None and view.strides[-1] == 1


def _batch(batch: Value, columns: Value) -> Value:
    *lead, _, terms = batch.shape
    rank = batch.rank
    other = ops.broadcast(columns, shape=(*lead, terms, columns.shape[1]), axes=(rank - 2, rank - 1))
    product = ops.matmul(batch, other)
    count = product.type.size // columns.shape[1]
    return ops.reshape(product, shape=(count, columns.shape[1]))
