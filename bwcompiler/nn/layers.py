"""`bw.nn`: linear maps, normalisation, embeddings, dropout, with PyTorch's layouts and defaults."""

from __future__ import annotations

from typing import Any

from bwcompiler import ops
from bwcompiler.api.eager import graph_function
from bwcompiler.errors import DTypeError, ShapeError, UnsupportedError
from bwcompiler.frontend.numpy.elementwise import operator
from bwcompiler.frontend.numpy.indexing import gather, index_value
from bwcompiler.frontend.numpy.linear import contract, pair
from bwcompiler.frontend.numpy.reductions import keep_axes, mean_value, variance
from bwcompiler.frontend.tracing.operands import as_tracer, cast, constant, value_as
from bwcompiler.frontend.tracing.promotion import requested
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.frontend.tracing.views import broadcast_value
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import BOOL, I64
from bwcompiler.nn.activations import real_value


@graph_function
def linear(x: Any, w: Any, b: Any = None) -> Any:
    """x @ w.T + b: x is (..., in), w is (out, in), b is (out,), the result (..., out).

    Raises ShapeError where these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.linear(np.ones((5, 3)), np.ones((2, 3)), np.zeros(2)).shape
    (5, 2)
    """
    left, right = pair(x, w)
    if right.rank != 2 or left.rank < 1 or left.shape[-1] != right.shape[-1]:
        raise ShapeError(f"linear: x of shape {left.shape} and w of shape {right.shape} do not fit; w is (out, in)")
    product = fresh(contract(left, right, (left.rank - 1,), (1,)))
    return product if b is None else operator("add", product, b)


@graph_function
def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(var + eps) over the last axes, times weight, plus bias.

    normalized_shape is the shape of these axes (or the extent of the last); weight and bias have that shape.  Raises ShapeError
    where x does not end in it.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.layer_norm(np.array([[1.0, 3.0], [5.0, 5.0]]), 2).round(4).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    value = real_value(x)
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if value.shape[value.rank - len(shape):] != shape:
        raise ShapeError(f"layer_norm: x of shape {value.shape} does not end in {shape}")
    axes = tuple(range(value.rank - len(shape), value.rank))
    centred = ops.subtract(value, broadcast_value(keep_axes(mean_value(value, axes), value, axes), value.shape))
    spread = variance(value, axes, 0)
    scale = ops.sqrt(ops.add(spread, constant(eps, spread)))
    result = fresh(ops.divide(centred, broadcast_value(keep_axes(scale, value, axes), value.shape)))
    result = result if weight is None else operator("multiply", result, weight)
    return result if bias is None else operator("add", result, bias)


@graph_function
def embedding(x: Any, weight: Any) -> Any:
    """The rows of weight (count, ...) at the integer indices x: shape x.shape + weight.shape[1:].

    Raises DTypeError for indices that are no integers (the table comes second), IndexError for an index out of range.
    The gradient of weight adds up rows that were used more than once.

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
    return fresh(gather(table, [index_value(index, table.shape[0])], (0,)))


@graph_function
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


@graph_function
def dropout(x: Any, p: float = 0.5, training: bool = True, mask: Any = None) -> Any:
    """x with zeros where mask is false, the others times 1 / (1 - p); x itself if not training.

    Raises UnsupportedError without a mask: random numbers drawn while tracing would be the same in every call.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.dropout(np.array([1.0, 2.0]), 0.5, mask=np.array([True, False])).tolist()
    [2.0, 0.0]
    """
    if not training or p == 0.0:
        return fresh(value_as(x))
    if mask is None:
        raise UnsupportedError("dropout: random numbers cannot be drawn while tracing (they would be frozen)\n"
                               "  hint: pass the mask as an argument: dropout(x, p, mask=rng.random(x.shape) >= p)")
    value = real_value(x)
    keep = broadcast_value(value_as(mask, BOOL), value.shape)
    return fresh(ops.select(keep, ops.multiply(value, constant(1.0 / (1.0 - p), value)), constant(0, value)))


# ----- losses
