"""`bw.nn`: scaled dot-product attention, with PyTorch's layout: (..., heads, length, features)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.eager import graph_function
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.nn.activations import real_value, softmax


@graph_function
def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
                                 scale: float | None = None, enable_gqa: bool = False) -> Any:
    """softmax(query keyᵀ scale + mask) value along the last two axes; scale is 1 / sqrt(features) by default.

    attn_mask broadcasts to (..., queries, keys): booleans say what takes part, numbers are added.  is_causal lets query i see keys up to i.
    A query that sees no key gives zeros.  With enable_gqa groups of query heads share a head of key and value.  Raises ShapeError where
    these do not fit, UnsupportedError for dropout_p other than 0.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.scaled_dot_product_attention(np.ones((2, 3, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 6))).shape
    (2, 3, 6)
    """
    if dropout_p:
        raise UnsupportedError("scaled_dot_product_attention: dropout_p is not supported\n"
                               "  hint: bw.nn.dropout of the weights, with a mask")
    found: list[Any] = [fresh(real_value(one)) for one in (query, key, value)]
    q, k, v = found
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"scaled_dot_product_attention: query, key and value of shapes {q.shape}, {k.shape}, {v.shape} do not fit; "
                         "they are (..., queries, features), (..., keys, features), (..., keys, results)")
    if enable_gqa:
        k, v = (np.repeat(one, q.shape[-3] // one.shape[-3], axis=-3) for one in (k, v))
    factor = (1.0 / math.sqrt(q.shape[-1]) if q.shape[-1] else 1.0) if scale is None else scale
    scores: Any = np.matmul(q * factor, np.swapaxes(k, -1, -2))
    seen: Any = None
    if is_causal:
        if attn_mask is not None:
            raise ValueError("scaled_dot_product_attention: is_causal and attn_mask exclude each other")
        seen = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
    elif attn_mask is not None:
        mask: Any = as_tracer(attn_mask)
        if mask.dtype == bool:
            seen = mask
        else:
            scores = scores + mask
    if seen is None:
        return np.matmul(softmax(scores), v)
    weights = softmax(np.where(seen, scores, np.finfo(scores.dtype).min))
    return np.matmul(np.where(seen, weights, 0.0), v)
