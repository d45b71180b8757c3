"""`bw.nn`: attention, with PyTorch's layouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.operands import as_tracer, real_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.nn.activations import softmax
from bwcompiler.nn.layers import linear
from bwcompiler.nn.noise import dropped


@network_function
def scaled_dot_product_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
                                 scale: float | None = None, enable_gqa: bool = False, key_of_dropout: Any = None) -> Any:
    """softmax(query keyᵀ scale + mask) value along the last two axes; scale is 1 / sqrt(features) by default.

    attn_mask broadcasts to (..., queries, keys): booleans say what takes part, numbers are added.  is_causal lets query i see keys up to i.
    A query that sees no key gives zeros.  With enable_gqa groups of query heads share a head of key and value.  Raises ShapeError where
    these do not fit, UnsupportedError for dropout_p without key_of_dropout, a key of bw.random.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.scaled_dot_product_attention(np.ones((2, 3, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 6))).shape
    (2, 3, 6)
    """
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
        weights = softmax(scores)
    else:
        weights = np.where(seen, softmax(np.where(seen, scores, np.finfo(scores.dtype).min)), 0.0)
    return np.matmul(dropped(weights, dropout_p, True, None, key_of_dropout, "scaled_dot_product_attention", None), v)


def _masked(scores: Any, attn_mask: Any, padding: Any, more: int) -> Any:
    """Scores (batch, heads, queries, keys) under masks of pairs and of keys (batch, keys), which leave out none of the last `more` keys."""
    batch, heads = scores.shape[:2]
    masks: list[Any] = []
    if attn_mask is not None:
        pairs: Any = as_tracer(attn_mask)
        masks.append(np.reshape(pairs, (batch, heads, *pairs.shape[1:])) if pairs.ndim == 3 else pairs)
    if padding is not None:
        masks.append(padding[:, None, None, :])
    for one in masks:
        mask = np.pad(one, [*[(0, 0)] * (one.ndim - 1), (0, more)]) if more else one
        scores = np.where(mask, np.finfo(scores.dtype).min, scores) if mask.dtype == bool else scores + mask
    return scores


@network_function
def multi_head_attention_forward(query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any,
                                 in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool, dropout_p: float, out_proj_weight: Any,
                                 out_proj_bias: Any, training: bool = True, key_padding_mask: Any = None, need_weights: bool = True,
                                 attn_mask: Any = None, use_separate_proj_weight: bool = False, q_proj_weight: Any = None,
                                 k_proj_weight: Any = None, v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
                                 average_attn_weights: bool = True, is_causal: bool = False) -> Any:
    """torch.nn.functional.multi_head_attention_forward: (result, weights or None).

    query is (queries, batch, features) or without batch, key and value (keys, batch, features).  Masks are boolean (true: left out) or
    added.  Raises UnsupportedError for dropout while training and for static_k and static_v, ShapeError if these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> x, w = np.ones((3, 2, 4)), np.ones((12, 4))
    >>> bw.nn.multi_head_attention_forward(x, x, x, 4, 2, w, None, None, None, False, 0.0, w[:4], None)[0].shape
    (3, 2, 4)
    """
    if (dropout_p and training) or static_k is not None or static_v is not None:
        raise UnsupportedError("multi_head_attention_forward: dropout while training, static_k and static_v are not supported")
    found: list[Any] = [fresh(real_value(one)) for one in (query, key, value)]
    batched = found[0].ndim == 3
    q, k, v = found if batched else [one[:, None] for one in found]
    features, heads = embed_dim_to_check, num_heads
    if q.shape[-1] != features or features % heads:
        raise ShapeError(f"multi_head_attention_forward: query of shape {q.shape} must end in {features}, a multiple of {heads} heads")
    weights = [q_proj_weight, k_proj_weight, v_proj_weight] if use_separate_proj_weight else np.split(as_tracer(in_proj_weight), 3)
    biases = [None] * 3 if in_proj_bias is None else np.split(as_tracer(in_proj_bias), 3)
    q, k, v = (linear(one, weight, bias) for one, weight, bias in zip((q, k, v), weights, biases, strict=True))
    batch, size = q.shape[1], features // heads
    extra = [] if bias_k is None else [(bias_k, bias_v)]
    for more_k, more_v in extra:
        k, v = (np.concatenate([one, np.broadcast_to(more, (1, batch, features))]) for one, more in ((k, more_k), (v, more_v)))
    q, k, v = (np.transpose(np.reshape(one, (one.shape[0], batch, heads, size)), (1, 2, 0, 3)) for one in (q, k, v))
    if add_zero_attn:
        k, v = (np.concatenate([one, np.zeros((batch, heads, 1, size), one.dtype)], 2) for one in (k, v))
    scores: Any = np.matmul(q * (1.0 / math.sqrt(size)), np.swapaxes(k, -1, -2))
    padding: Any = None if key_padding_mask is None else as_tracer(key_padding_mask)
    padding = padding if batched or padding is None else padding[None]
    scores = _masked(scores, attn_mask, padding, scores.shape[-1] - found[1].shape[0])
    shares: Any = softmax(scores)
    joined = np.reshape(np.transpose(np.matmul(shares, v), (2, 0, 1, 3)), (-1, batch, features))
    result = linear(joined, out_proj_weight, out_proj_bias)
    shares = shares.mean(1) if average_attn_weights else shares
    result, shares = (result, shares) if batched else (result[:, 0], shares[0])
    return result, (shares if need_weights else None)
