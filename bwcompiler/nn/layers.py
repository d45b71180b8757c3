"""`bw.nn`: linear maps and embeddings, with PyTorch's layouts and defaults."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import DTypeError, ShapeError, UnsupportedError
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import operator
from bwcompiler.frontend.numpy.linalg.linear import contract, pair
from bwcompiler.frontend.numpy.manipulation.indexing import gather, index_value
from bwcompiler.frontend.tracing.operands import as_tracer, cast, filled, real_value, value_as
from bwcompiler.frontend.tracing.promotion import requested
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import I64


@network_function
def linear(x: Any, w: Any, b: Any = None) -> Any:
    """x @ w.T + b: x is (..., in), w is (out, in), b is (out,), the result (..., out); or w (in,), b a number and the result (...).

    Raises ShapeError if these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.linear(np.ones((5, 3)), np.ones((2, 3)), np.zeros(2)).shape
    (5, 2)
    """
    left, right = pair(x, w)
    if right.rank not in (1, 2) or left.rank < 1 or left.shape[-1] != right.shape[-1]:
        raise ShapeError(f"linear: x of shape {left.shape} and w of shape {right.shape} do not fit; w is (out, in)")
    product = fresh(contract(left, right, (left.rank - 1,), (right.rank - 1,)))
    return product if b is None else operator("add", product, b)


@network_function
def bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None) -> Any:
    """Σ x1[..., i] weight[o, i, j] x2[..., j] + bias[o], of shape (..., o).

    Raises ShapeError if these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.bilinear(np.ones((5, 2)), np.ones((5, 3)), np.ones((4, 2, 3))).shape
    (5, 4)
    """
    left, right, w = (fresh(real_value(one)) for one in (x1, x2, weight))
    if w.ndim != 3 or left.shape[-1:] != w.shape[1:2] or right.shape[-1:] != w.shape[2:] or left.shape[:-1] != right.shape[:-1]:
        raise ShapeError(f"bilinear: x1, x2 and weight of shapes {left.shape}, {right.shape}, {w.shape} do not fit; "
                         "weight is (out, in1, in2)")
    product = np.einsum("...i,oij,...j->...o", left, w, right)
    return product if bias is None else operator("add", product, bias)


@network_function
def embedding(x: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    """The rows of weight (count, ...) at the integer indices x: shape x.shape + weight.shape[1:].

    The gradient of weight adds up rows that were used more than once; the row padding_idx gets none.  With scale_grad_by_freq each row's is
    divided by how often it was used.  sparse changes nothing.  Raises DTypeError for indices that are no integers (the table comes second),
    IndexError for an index out of range, UnsupportedError for max_norm, which PyTorch writes into the table.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.embedding(np.array([2, 0]), np.array([[1.0], [2.0], [3.0]])).tolist()
    [[3.0], [1.0]]
    """
    table, index = value_as(weight), as_tracer(x)
    if not index._type.dtype.is_integer:
        swapped = "; are the arguments swapped?" if table.dtype.is_integer else ""
        raise DTypeError(f"embedding(x, weight): the indices x must be integers, got {index.dtype} of shape {index.shape}, with a "
                         f"weight of {table.dtype.numpy} and shape {table.shape}{swapped}\n"
                         "  hint: embedding(indices, table), as torch.nn.functional.embedding")
    if not table.rank:
        raise ShapeError("embedding(x, weight): weight must have at least 1 axis, got shape ()")
    if max_norm is not None:
        raise UnsupportedError("embedding: max_norm, which writes to the table, is not supported\n"
                               "  hint: weight * np.minimum(1, max_norm / np.linalg.norm(weight, axis=1, keepdims=True))")
    count = table.shape[0]
    places = index_value(index, count)
    if padding_idx is not None:
        padding = filled(padding_idx % count if count else 0, I64, table.shape)
        table = ops.select(ops.equal(ops.iota(shape=table.shape, axis=0, dtype=I64), padding), ops.stop_gradient(table), table)
    rows = gather(table, [places], (0,))
    return fresh(_scaled_by_frequency(rows, places, count) if scale_grad_by_freq else rows)


def _scaled_by_frequency(rows: Value, places: Value, count: int) -> Value:
    """The rows, whose derivative is divided by how often their place occurs."""
    ones, zeros = filled(1, rows.dtype, places.shape), filled(0, rows.dtype, (count,))
    often = gather(ops.scatter_add(zeros, ones, places, axes=(0,)), [places], (0,))
    share = ops.divide(rows, ops.broadcast(often, shape=rows.shape, axes=tuple(range(often.rank))))
    return ops.add(share, ops.stop_gradient(ops.subtract(rows, share)))


@network_function
def one_hot(x: Any, num_classes: int, dtype: Any = None) -> Any:
    """1 at the class, 0 elsewhere, along a new last axis of num_classes; int64 unless a dtype is given.

    Raises DTypeError for classes that are no integers.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.one_hot(np.array([1, 0]), 3).tolist()
    [[0, 1, 0], [1, 0, 0]]
    """
    index = value_as(x)
    if not index.dtype.is_integer:
        raise DTypeError(f"one_hot: classes must be integers, got {index.dtype.numpy}")
    hot = _hot(cast(index, I64), index.rank, num_classes)
    return fresh(cast(hot, requested(dtype) or I64))


def _hot(index: Value, axis: int, count: int) -> Value:
    shape = (*index.shape[:axis], count, *index.shape[axis:])
    spread = ops.broadcast(index, shape=shape, axes=tuple([k for k in range(len(shape)) if k != axis]))
    return ops.equal(ops.iota(shape=shape, axis=axis, dtype=I64), spread)
