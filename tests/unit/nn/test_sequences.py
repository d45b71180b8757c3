"""`bw.nn` on sequences: the CTC loss against all ways written out, bags of embeddings, attention of several heads."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import bwcompiler as bw
from bwcompiler import nn
from bwcompiler.errors import DTypeError, ShapeError, UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

rng = np.random.default_rng(9)
LOGS = np.log(sp.softmax(rng.normal(size=(4, 3, 3)), -1))
LABELS, TIMES, LENGTHS = np.array([[1, 1], [2, 1], [1, 2]]), np.array([4, 3, 4]), np.array([2, 1, 0])


def traced(fun: Any, *args: Any) -> Any:
    return run_traced(fun, *args)[0]


def written(path: tuple[int, ...]) -> list[int]:
    """Without repetitions and blanks."""
    return [label for label, _ in itertools.groupby(path) if label]


def by_all_ways(logs: Any, labels: Any, times: Any, lengths: Any) -> Any:
    losses = []
    for n, (count, length) in enumerate(zip(times, lengths, strict=True)):
        ways = [sum(logs[t, n, k] for t, k in enumerate(path)) for path in itertools.product(range(3), repeat=count)
                if written(path) == list(labels[n, :length])]
        losses.append(-sp.logsumexp(ways) if ways else np.inf)
    return np.array(losses)


def test_ctc_loss() -> None:
    expected = by_all_ways(LOGS, LABELS, TIMES, LENGTHS)
    for options, value in (({"reduction": "none"}, expected), ({"reduction": "sum"}, expected.sum()),
                           ({}, (expected / np.maximum(LENGTHS, 1)).mean())):
        found = bw.jit(lambda x, o=options: nn.ctc_loss(x, LABELS, TIMES, LENGTHS, **o))(LOGS)
        np.testing.assert_allclose(found, value, rtol=1e-12)
    joined = np.concatenate([row[:k] for row, k in zip(LABELS, LENGTHS, strict=True)])
    np.testing.assert_allclose(nn.ctc_loss(LOGS, joined, TIMES, LENGTHS, reduction="none"), expected, rtol=1e-12)
    np.testing.assert_allclose(nn.ctc_loss(LOGS[:, 0], LABELS[0], np.array(4), np.array(2), reduction="none"), expected[0], rtol=1e-12)
    check_derivatives(lambda x: nn.ctc_loss(x, LABELS, TIMES, LENGTHS, reduction="none"), LOGS, order=1)


def test_ctc_loss_without_a_way() -> None:
    short = np.array([2, 3, 4])                                        # two equal labels need three times
    assert np.isinf(nn.ctc_loss(LOGS, LABELS, short, LENGTHS, reduction="none")[0])
    assert nn.ctc_loss(LOGS, LABELS, short, LENGTHS, reduction="none", zero_infinity=True)[0] == 0
    gradient = bw.grad(lambda x: nn.ctc_loss(x, LABELS, short, LENGTHS, zero_infinity=True))(LOGS)
    assert np.isfinite(gradient).all() and not gradient[:, 0].any()
    with pytest.raises(ShapeError, match="do not fit"):
        nn.ctc_loss(LOGS, LABELS, TIMES[:2], LENGTHS)
    with pytest.raises(DTypeError, match="integers"):
        nn.ctc_loss(LOGS, LABELS * 1.0, TIMES, LENGTHS)


TABLE, INDICES, OFFSETS = rng.normal(size=(6, 2)), np.array([1, 2, 4, 5, 4, 3, 2]), np.array([0, 3, 3, 5])
BAGS = [slice(0, 3), slice(3, 3), slice(3, 5), slice(5, 7)]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 4, -2])
def test_bags(mode: str, padding: int | None) -> None:
    left_out = None if padding is None else padding % 6
    function = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]

    def bag(indices: Any) -> Any:
        kept = [k for k in indices if k != left_out]
        return function(TABLE[kept], 0) if kept else np.zeros(2)

    expected = np.stack([bag(INDICES[part]) for part in BAGS])
    np.testing.assert_allclose(traced(lambda w: nn.embedding_bag(INDICES, w, OFFSETS, mode=mode, padding_idx=padding), TABLE), expected, atol=1e-14)
    ends = np.append(OFFSETS, 7)
    found = traced(lambda w: nn.embedding_bag(INDICES, w, ends, mode=mode, padding_idx=padding, include_last_offset=True), TABLE)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    rows = INDICES[:6].reshape(2, 3)
    np.testing.assert_allclose(traced(lambda w: nn.embedding_bag(rows, w, mode=mode, padding_idx=padding), TABLE), np.stack([bag(row) for row in rows]))
    check_derivatives(lambda w: nn.embedding_bag(INDICES, w, OFFSETS, mode=mode, padding_idx=padding), TABLE)


def test_weighted_bags(rng: np.random.Generator) -> None:
    weights = rng.normal(size=7)
    expected = np.stack([(TABLE[INDICES[part]] * weights[part, None]).sum(0) for part in BAGS])
    np.testing.assert_allclose(traced(lambda w, s: nn.embedding_bag(INDICES, w, OFFSETS, mode="sum", per_sample_weights=s), TABLE, weights), expected)
    check_derivatives(lambda w, s: nn.embedding_bag(INDICES, w, OFFSETS, mode="sum", per_sample_weights=s), TABLE, weights)
    with pytest.raises(UnsupportedError, match="max_norm"):
        nn.embedding_bag(INDICES, TABLE, OFFSETS, max_norm=1.0)
    with pytest.raises(ShapeError, match="offsets"):
        nn.embedding_bag(INDICES, TABLE)


def test_several_heads(rng: np.random.Generator) -> None:
    q, k, v = rng.normal(size=(3, 2, 4)), rng.normal(size=(5, 2, 4)), rng.normal(size=(5, 2, 4))
    w, b, out, bias = rng.normal(size=(12, 4)), rng.normal(size=12), rng.normal(size=(4, 4)), rng.normal(size=4)
    hidden = np.array([[False, True, False, False, False], [False, False, False, True, True]])

    def ours(q: Any, k: Any, v: Any, w: Any, b: Any, out: Any) -> Any:
        return nn.multi_head_attention_forward(q, k, v, 4, 2, w, b, None, None, False, 0.0, out, bias, key_padding_mask=hidden)

    parts = [x @ w[4 * j:4 * j + 4].T + b[4 * j:4 * j + 4] for j, x in enumerate((q, k, v))]
    results, shares = np.empty((3, 2, 4)), np.zeros((2, 3, 5))
    for n, head in itertools.product(range(2), range(2)):
        cut = slice(2 * head, 2 * head + 2)
        scores = np.where(hidden[n], -np.inf, parts[0][:, n, cut] @ parts[1][:, n, cut].T / np.sqrt(2))
        share = sp.softmax(scores, -1)
        shares[n] += share / 2
        results[:, n, cut] = share @ parts[2][:, n, cut]
    found, weights = traced(ours, q, k, v, w, b, out)
    np.testing.assert_allclose(found, results @ out.T + bias, rtol=1e-11)
    np.testing.assert_allclose(weights, shares, rtol=1e-11, atol=1e-14)
    check_derivatives(lambda *args: ours(*args)[0], q, k, v, w, b, out, order=1)
    single = nn.multi_head_attention_forward(q[:, 0], k[:, 0], v[:, 0], 4, 2, w, b, None, None, False, 0.0, out, bias, need_weights=False)
    assert single[0].shape == (3, 4) and single[1] is None
    with pytest.raises(UnsupportedError, match="dropout"):
        nn.multi_head_attention_forward(q, k, v, 4, 2, w, b, None, None, False, 0.5, out, bias)
