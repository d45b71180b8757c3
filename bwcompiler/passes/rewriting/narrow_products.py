"""Matrix products of which so little is summed that reading and writing matrices takes the time: they join the loops around them.

    columns and rows            x[i, 0] y[0, j]                    multiply
    vectors, some backwards     sum over k of x[k] y[n - k]        a call would gather the elements first
    a batch with vectors        sum over k of x[b, i, k] y[b, k]   and of x[b, k] y[b, k, j]
    tall, and few terms         x[i, 0] y[0, j] + x[i, 1] y[1, j] + ...
    tall, and a vector          sum over k of x[i, k] y[k]
    a vector, and tall          sum over i of x[i] y[i, j]

The last three are of more than TALL rows: those are what layers of few neurons over many points are made of.  What a call would write
and another loop read again (a bias, an activation function, a difference) is computed in the same loop then, by all threads.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.contraction import is_matrix_transpose
from bwcompiler.passes.rewriting.window_rules import reshaped

TALL = 1024                    # rows
MOST_TERMS = 8                 # that are written out,
MOST_PRODUCTS = 64             # and multiplications per row: more of them take longer than reading and writing
SHORT_SUM = 12                 # terms: of a row that is multiplied with a vector; longer ones are summed faster by a call
MOST_COLUMNS = 32              # of what a vector is multiplied with


def narrow_product(type_: TensorType, x: Value, y: Value) -> Value | None:
    """The same product without a matmul; None where a call is as good."""
    if not type_.dtype.is_differentiable:
        return None
    return _outer_product(x, y) or _dot_of_steps(type_, x, y) or _batch_with_vectors(type_, x, y) or _tall_product(type_, x, y)


def _outer_product(x: Value, y: Value) -> Value | None:
    *batch, rows, inner = x.shape
    if inner != 1:
        return None
    columns, rank = y.shape[-1], x.rank
    shape, lead = (*batch, rows, columns), tuple(range(rank - 2))
    left, right = reshaped(x, (*batch, rows)), reshaped(y, (*batch, columns))
    return ops.multiply(ops.broadcast(left, shape=shape, axes=(*lead, rank - 2)),
                        ops.broadcast(right, shape=shape, axes=(*lead, rank - 1)))


def _dot_of_steps(type_: TensorType, x: Value, y: Value) -> Value | None:
    """Of two vectors of which one goes through memory backwards, or in steps."""
    if x.rank != 2 or x.shape[0] != 1 or y.shape[1] != 1 or not type_.dtype.is_float or not (_has_steps(x) or _has_steps(y)):
        return None
    terms = x.shape[1]
    return reshaped(ops.sum(ops.multiply(reshaped(x, (terms,)), reshaped(y, (terms,))), axes=(0,)), type_.shape)


def _has_steps(vector: Value) -> bool:
    while vector.op is ops.reshape or vector.op is ops.transpose:
        vector = vector.operands[0]
    if vector.op is ops.flip:
        return True
    if vector.op is not ops.slice:
        return False
    return any(extent != 1 and step != 1 for extent, step in zip(vector.shape, vector.attrs["steps"], strict=True))


def _batch_with_vectors(type_: TensorType, x: Value, y: Value) -> Value | None:
    *batch, rows, inner = x.shape
    columns, lead = y.shape[-1], tuple(range(len(batch)))
    if not batch or 1 not in (rows, columns):
        return None
    limits = (MOST_COLUMNS, SHORT_SUM if columns == 1 else MOST_COLUMNS, MOST_COLUMNS)
    if rows != columns and not all(isinstance(n, int) and n <= most for n, most in zip((rows, inner, columns), limits, strict=True)):
        return None
    axis = len(batch) + (columns == 1)                        # of the matrix; the vectors lie along it
    matrix, vectors = (x, y) if columns == 1 else (y, x)
    vectors = ops.broadcast(reshaped(vectors, (*batch, inner)), shape=matrix.shape, axes=(*lead, axis))
    return reshaped(ops.sum(ops.multiply(matrix, vectors), axes=(axis,)), type_.shape)


def _tall_product(type_: TensorType, x: Value, y: Value) -> Value | None:
    """Of two matrices."""
    extents = (*x.shape, *y.shape)
    if x.rank != 2 or not type_.dtype.is_float or not all(isinstance(extent, int) and extent for extent in extents):
        return None
    rows, inner, columns = x.shape[0], x.shape[1], y.shape[1]
    if rows >= TALL and columns == 1 and inner <= SHORT_SUM:
        return _with_vector(x, reshaped(y, (inner,)), 1, type_)
    if inner >= TALL and 1 in (rows, columns) and max(rows, columns) <= MOST_COLUMNS:
        vector, tall = (x, y) if rows == 1 else (y, is_matrix_transpose(x) or ops.transpose(x, axes=(1, 0)))
        return _with_vector(tall, reshaped(vector, (inner,)), 0, type_)
    if rows >= TALL and inner <= MOST_TERMS and inner * columns <= MOST_PRODUCTS:
        return _term_by_term(type_, x, y)
    return None


def _with_vector(tall: Value, vector: Value, axis: int, type_: TensorType) -> Value:
    """sum over an axis of tall * vector, which lies along that axis."""
    products = ops.multiply(tall, ops.broadcast(vector, shape=tall.shape, axes=(axis,)))
    return reshaped(ops.sum(products, axes=(axis,)), type_.shape)


def _term_by_term(type_: TensorType, x: Value, y: Value) -> Value:
    rows, columns = type_.shape
    total: Value | None = None
    for k in range(y.shape[0]):
        left = reshaped(ops.slice(x, starts=(0, k), sizes=(rows, 1), steps=(1, 1)), (rows,))
        right = reshaped(ops.slice(y, starts=(k, 0), sizes=(1, columns), steps=(1, 1)), (columns,))
        term = ops.multiply(*[ops.broadcast(one, shape=type_.shape, axes=(axis,)) for axis, one in enumerate((left, right))])
        total = term if total is None else ops.add(total, term)
    assert total is not None
    return total
