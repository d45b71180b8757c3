"""Matrix products with so few terms that reading and writing the matrices takes most of the time: they join the surrounding loops.

    columns and rows            x[i, 0] y[0, j]                    multiply
    vectors                     sum over k of x[k] y[k]            a call takes longer than their sum, and gathers reversed vectors
    a matrix and a vector       sum over k of x[i, k] y[k]         and of x[k] y[k, j]
    a batch with vectors        sum over k of x[b, i, k] y[b, k]   and of x[b, k] y[b, k, j]
    tall, and few terms         x[i, 0] y[0, j] + x[i, 1] y[1, j] + ...
    a batch of tiny ones        x[b, i, 0] y[b, 0, j] + ...        of complex numbers (of floats they are instructions of a sweep)

The form of tall products is for more than TALL rows: layers of few neurons over many points consist of these.  What a call would write
and another loop read again (a bias, an activation function, a difference) is then computed in the same loop, by all threads.
"""

from __future__ import annotations

from bwcompiler import ops
from bwcompiler.ir.extent import upper
from bwcompiler.ir.op import Value
from bwcompiler.ir.semantics.reduction_tree import SHORT
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.linalg.contraction import is_matrix_transpose
from bwcompiler.passes.rewriting.legal.window_rules import reshaped

TALL = 1024                    # rows
MOST_TERMS = 8                 # that are written out,
MOST_PRODUCTS = 64             # and multiplications per row: more of them take longer than reading and writing
MOST_COLUMNS = 32              # sums of a matrix with a vector, of any number of terms,
MOST_BESIDE = 1 << 13          # or multiplications, where sums lie side by side: a call is faster for more of them;
LONGEST_SUM = 48               # terms, of any number of sums,
MOST_ALONG = 1536              # or multiplications, where terms do
TINY = 4                       # most rows, terms and columns of complex matrices for which a call takes longer than their product


def narrow_product(type_: TensorType, x: Value, y: Value) -> Value | None:
    """The same product without a matmul; None where a call is as good."""
    if not type_.dtype.is_differentiable:
        return None
    for rule in (_outer_product, _dot, _batch_with_vectors, _matrix_with_vector, _tall_product, _batch_of_tiny_ones):
        found = rule(type_, x, y)
        if found is not None:
            return found
    return None


def _outer_product(type_: TensorType, x: Value, y: Value) -> Value | None:
    *batch, rows, inner = x.shape
    if inner != 1:
        return None
    columns, rank = y.shape[-1], x.rank
    shape, lead = (*batch, rows, columns), tuple(range(rank - 2))
    left, right = reshaped(x, (*batch, rows)), reshaped(y, (*batch, columns))
    return ops.multiply(ops.broadcast(left, shape=shape, axes=(*lead, rank - 2)),
                        ops.broadcast(right, shape=shape, axes=(*lead, rank - 1)))


def _dot(type_: TensorType, x: Value, y: Value) -> Value | None:
    if x.rank != 2 or x.shape[0] != 1 or y.shape[1] != 1 or not type_.dtype.is_float:
        return None
    terms = x.shape[1]
    return reshaped(ops.sum(ops.multiply(reshaped(x, (terms,)), reshaped(y, (terms,))), axes=(0,)), type_.shape)


def _batch_with_vectors(type_: TensorType, x: Value, y: Value) -> Value | None:
    *batch, rows, inner = x.shape
    columns, lead = y.shape[-1], tuple(range(len(batch)))
    if not batch or 1 not in (rows, columns):
        return None
    limits = (MOST_COLUMNS, SHORT if columns == 1 else MOST_COLUMNS, MOST_COLUMNS)
    if rows != columns and not all(isinstance(n, int) and n <= most for n, most in zip((rows, inner, columns), limits, strict=True)):
        return None
    axis = len(batch) + (columns == 1)                        # of the matrix; the vectors lie along it
    matrix, vectors = (x, y) if columns == 1 else (y, x)
    vectors = ops.broadcast(reshaped(vectors, (*batch, inner)), shape=matrix.shape, axes=(*lead, axis))
    return reshaped(ops.sum(ops.multiply(matrix, vectors), axes=(axis,)), type_.shape)


def _matrix_with_vector(type_: TensorType, x: Value, y: Value) -> Value | None:
    """rows[i, k] vector[k] = columns[k, i] vector[k]: the sum over the one of these that lies in memory, but for rows of few terms.

    Those are summed side by side, as columns are, though their elements lie apart: each addition would wait for the one before it.
    """
    if x.rank != 2 or not type_.dtype.is_float or not all(upper(extent) for extent in (*x.shape, *y.shape)):
        return None
    rows: Value | None
    columns: Value | None
    if y.shape[1] == 1:
        vector, rows, columns = y, x, is_matrix_transpose(x)
        beside = columns is not None
    elif x.shape[0] == 1:
        vector, rows, columns = x, is_matrix_transpose(y), y
        beside = rows is None
    else:
        return None
    axis = _summed_axis(upper(y.shape[0]), max([upper(extent) for extent in type_.shape]), beside)
    if axis is None:
        return None
    return _sum_with((rows if axis else columns) or ops.transpose(x, axes=(1, 0)), vector, axis, type_)


def _summed_axis(terms: int, sums: int, beside: bool) -> int | None:
    """0 for columns, 1 for rows, None for a call, as measured.  beside: whether elements of one term lie side by side in memory."""
    few = sums <= MOST_COLUMNS
    if beside:
        return 0 if few or terms <= SHORT or terms * sums <= MOST_BESIDE else None
    if terms < SHORT:
        return 0 if sums < TALL else 1
    if few and terms >= TALL:
        return 0
    return 1 if terms <= LONGEST_SUM or terms * sums <= MOST_ALONG else None


def _tall_product(type_: TensorType, x: Value, y: Value) -> Value | None:
    """Of two matrices."""
    extents = (*x.shape, *y.shape)
    if x.rank != 2 or not type_.dtype.is_float or not all(isinstance(extent, int) and extent for extent in extents):
        return None
    rows, inner, columns = x.shape[0], x.shape[1], y.shape[1]
    if rows >= TALL and inner <= MOST_TERMS and inner * columns <= MOST_PRODUCTS:
        return _term_by_term(type_, x, y)
    return None


def _batch_of_tiny_ones(type_: TensorType, x: Value, y: Value) -> Value | None:
    """Of complex matrices: a call takes some 300 ns for 2 x 2, their product 10 in a loop over the batch."""
    sides = (*x.shape[-2:], y.shape[-1])
    if x.rank < 3 or not type_.dtype.is_complex or not all(isinstance(side, int) and 0 < side <= TINY for side in sides):
        return None
    return _term_by_term(type_, x, y)


def _sum_with(matrix: Value, vector: Value, axis: int, type_: TensorType) -> Value:
    """sum over an axis of a matrix times a vector that lies along that axis."""
    along = reshaped(vector, (matrix.shape[axis],))
    return reshaped(ops.sum(ops.multiply(matrix, ops.broadcast(along, shape=matrix.shape, axes=(axis,))), axes=(axis,)), type_.shape)


def _term_by_term(type_: TensorType, x: Value, y: Value) -> Value:
    *batch, rows, columns = type_.shape
    lead, ones = (0,) * len(batch), (1,) * type_.rank
    total: Value | None = None
    for k in range(y.shape[-2]):
        left = reshaped(ops.slice(x, starts=(*lead, 0, k), sizes=(*batch, rows, 1), steps=ones), (*batch, rows))
        right = reshaped(ops.slice(y, starts=(*lead, k, 0), sizes=(*batch, 1, columns), steps=ones), (*batch, columns))
        term = ops.multiply(*[ops.broadcast(one, shape=type_.shape, axes=(*range(len(batch)), len(batch) + axis))
                              for axis, one in enumerate((left, right))])
        total = term if total is None else ops.add(total, term)
    assert total is not None
    return total
