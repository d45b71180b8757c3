"""`bw.nn`: sequences of different lengths: the loss of connectionist temporal classification, bags of embeddings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import network_function
from bwcompiler.api.inside.loops import scan
from bwcompiler.errors import DTypeError, ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.operands import as_tracer, real_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.nn.losses import reduce_loss


def _integers(x: Any, name: str) -> Any:
    handle = as_tracer(x)
    if handle.dtype.kind not in "iu":
        raise DTypeError(f"{name} must be integers, got {handle.dtype}")
    return handle.astype(np.int64)


def _labels(targets: Any, lengths: Any) -> Any:
    """(samples, labels), from padded rows or from all labels one after the other."""
    if targets.ndim == 2:
        return targets
    starts = np.cumsum(lengths) - lengths
    longest = targets.shape[0]
    places = np.minimum(starts[:, None] + np.arange(longest), max(longest - 1, 0))
    return np.take(targets, places) if longest else np.zeros((lengths.shape[0], 0), np.int64)


def _with_blanks(labels: Any, lengths: Any, blank: int) -> tuple[Any, Any]:
    """blank l₁ blank l₂ ... blank per sample, blanks behind its labels too; and which of these count."""
    samples = labels.shape[0]
    pairs = np.reshape(np.stack([np.full_like(labels, blank), labels], -1), (samples, -1))
    extended = np.concatenate([pairs, np.full((samples, 1), blank)], 1)
    counted = np.arange(extended.shape[1]) < 2 * lengths[:, None] + 1
    return np.where(counted, extended, blank), counted


@network_function
def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Any:
    """-log of the probability of all ways to write the labels with repetitions and blanks between them (Graves et al., 2006).

    log_probs is (times, samples, classes) or (times, classes), targets (samples, labels), padded, or all labels of all samples one after
    the other; input_lengths and target_lengths say how many times and labels count.  reduction: "none", "sum", or "mean", of losses that
    are divided by their numbers of labels.  zero_infinity gives 0 if there is no way.  The derivative is that by log_probs as they
    are; PyTorch's is that by the scores whose log_softmax they are.  Raises ShapeError if these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> log_probs = np.log(np.full((2, 1, 2), 0.5))
    >>> float(bw.nn.ctc_loss(log_probs, np.array([[1]]), np.array([2]), np.array([1])).round(4))
    0.2877
    """
    logs: Any = fresh(real_value(log_probs))
    single = logs.ndim == 2
    logs = logs[:, None] if single else logs
    if logs.ndim != 3:
        raise ShapeError(f"ctc_loss: log_probs must be (times, samples, classes), got shape {logs.shape}")
    samples = logs.shape[1]
    times, lengths = (np.reshape(_integers(one, "lengths"), (-1,)) for one in (input_lengths, target_lengths))
    given = _integers(targets, "targets")
    labels = _labels(given[None] if single and given.ndim == 1 else given, lengths)
    if times.shape != (samples,) or lengths.shape != (samples,) or labels.shape[0] != samples:
        raise ShapeError(f"ctc_loss: targets of shape {given.shape} and lengths of shapes {times.shape} and {lengths.shape} do not fit "
                         f"{samples} samples")
    safe, counted = _with_blanks(labels, lengths, blank)
    width = safe.shape[1]
    before = np.concatenate([np.full((samples, min(2, width)), blank), safe[:, :-2]], 1)[:, :width]
    jumps = (safe != blank) & (safe != before)

    def scores(now: Any) -> Any:
        return np.where(counted, np.take_along_axis(now, safe, 1), -math.inf)

    def moved(alpha: Any, by: int) -> Any:
        return np.concatenate([np.full((samples, min(by, width)), -math.inf, alpha.dtype), alpha[:, :-by]], 1)[:, :width]

    def step(carry: Any, row: Any) -> Any:
        alpha, time = carry
        found = np.logaddexp(alpha, moved(alpha, 1))
        found = np.logaddexp(found, np.where(jumps, moved(alpha, 2), -math.inf)) + scores(row)
        return (np.where(time < times[:, None], found, alpha), time + 1), None

    first = np.where(np.arange(width) < 2, scores(logs[0]), -math.inf)
    (alpha, _), _ = scan(step, (first, 1), logs[1:])
    last = np.take_along_axis(alpha, 2 * lengths[:, None], 1)[:, 0]
    other = np.take_along_axis(alpha, np.maximum(2 * lengths[:, None] - 1, 0), 1)[:, 0]
    loss: Any = -np.logaddexp(last, np.where(lengths > 0, other, -math.inf))
    if zero_infinity:
        loss = np.where(np.isinf(loss), 0.0, loss)
    if reduction == "mean":
        loss = loss / np.maximum(lengths, 1).astype(loss.dtype)
    return reduce_loss(value_of(loss[0] if single else loss), reduction)


@network_function
def embedding_bag(x: Any, weight: Any, offsets: Any = None, max_norm: float | None = None, norm_type: float = 2.0,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Any:
    """The sum, mean or maximum of the rows of weight (count, features) in every bag of indices: (bags, features).

    Bags are the rows of x, or the parts of x (one axis) that begin at offsets (and end at the last one with include_last_offset).
    per_sample_weights, for mode "sum", multiply the rows; those at padding_idx do not count.  An empty bag gives zeros.  Raises ShapeError
    or DTypeError if these do not fit, UnsupportedError for max_norm and scale_grad_by_freq, IndexError for an index out of range.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.embedding_bag(np.array([[2, 0]]), np.array([[1.0], [2.0], [3.0]])).tolist()
    [[2.0]]
    """
    table, indices = fresh(real_value(weight)), _integers(x, "embedding_bag: the indices x")
    if max_norm is not None or scale_grad_by_freq:
        raise UnsupportedError("embedding_bag: max_norm and scale_grad_by_freq are not supported\n  hint: bw.nn.embedding and a reduction")
    if mode not in ("sum", "mean", "max") or (per_sample_weights is not None and mode != "sum"):
        raise ValueError(f"embedding_bag: mode must be 'sum', 'mean' or 'max', and 'sum' with per_sample_weights, got {mode!r}")
    if table.ndim != 2 or indices.ndim not in (1, 2) or (indices.ndim == 1) != (offsets is not None):
        raise ShapeError(f"embedding_bag: x of shape {indices.shape} must have 2 axes, or 1 axis and offsets, and weight of shape "
                         f"{table.shape} 2")
    flat = np.reshape(indices, (-1,))
    if indices.ndim == 2:
        bags, bag = indices.shape[0], np.repeat(np.arange(indices.shape[0]), indices.shape[1])
    else:
        starts = _integers(offsets, "embedding_bag: offsets")
        bags = starts.shape[0] - (1 if include_last_offset else 0)
        bag = np.searchsorted(starts[:bags], np.arange(flat.shape[0]), side="right") - 1
    rows: Any = table[flat]
    counted: Any = np.ones(flat.shape, bool) if padding_idx is None else flat != padding_idx % table.shape[0]
    if mode == "max":
        member = (np.arange(bags)[:, None] == bag) & counted
        found = np.max(np.where(member[..., None], rows, -math.inf), axis=1, initial=-math.inf)
        return np.where(np.any(member, 1)[:, None], found, 0.0)
    scale = np.where(counted, 1.0, 0.0).astype(rows.dtype)
    if per_sample_weights is not None:
        scale = scale * np.reshape(fresh(real_value(per_sample_weights)), (-1,))
    total: Any = np.zeros_like(rows, shape=(bags, table.shape[1]))
    np.add.at(total, bag, rows * scale[:, None])
    if mode == "sum":
        return total
    often: Any = np.zeros_like(rows, shape=(bags,))
    np.add.at(often, bag, scale)
    return total / np.maximum(often, 1.0)[:, None]
