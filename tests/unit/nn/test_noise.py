"""Dropout and noise of `bw.nn`: by mask and by key, in expectation, derivatives, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import bwcompiler as bw
from bwcompiler import nn
from bwcompiler.errors import UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

rng = np.random.default_rng(10)
X = rng.normal(size=(3, 4, 5))
KEY = bw.random.key(7)


def traced(fun: Any, *args: Any) -> Any:
    return run_traced(fun, *args)[0]


@pytest.mark.parametrize(("name", "x", "lead"), [("dropout", X, 3), ("dropout1d", X, 2), ("dropout1d", X[0], 1), ("dropout2d", X[..., None], 2),
                                                 ("dropout2d", X, 2), ("dropout3d", X[..., None, None], 2), ("dropout3d", X[..., None], 1)])
def test_a_key_is_a_mask(name: str, x: Any, lead: int) -> None:
    function = getattr(nn, name)
    found = traced(lambda x, key: function(x, 0.25, key=key), x, KEY)
    mask = bw.random.bernoulli(KEY, 0.75, x.shape[:lead])
    spread = mask.reshape(*mask.shape, *[1] * (x.ndim - lead))
    np.testing.assert_allclose(found, np.where(spread, x / 0.75, 0.0), rtol=1e-14)
    np.testing.assert_array_equal(traced(lambda x: function(x, 0.25, mask=mask), x), found)
    np.testing.assert_array_equal(traced(lambda x: function(x, 0.25, training=False), x), x)
    np.testing.assert_array_equal(traced(lambda x: function(x, 1.0), x), np.zeros_like(x))
    check_derivatives(lambda x: function(x, 0.25, mask=mask), x)


def test_noise_keeps_mean_and_variance(rng: np.random.Generator) -> None:
    x = np.ones(20000)
    assert abs(nn.dropout(x, 0.3, key=KEY).mean() - 1) < 0.02
    for function, values in ((nn.alpha_dropout, rng.normal(size=20000)), (nn.feature_alpha_dropout, rng.normal(size=(100, 200)))):
        found = function(values, 0.3, True, key=KEY)
        assert abs(found.mean()) < 0.03 and abs(found.var() - 1) < 0.05
    np.testing.assert_array_equal(nn.alpha_dropout(x, 0.3), x)
    mask = X > 0
    lowest = -1.7580993408473766
    a = 1 / np.sqrt(0.75 * (1 + 0.25 * lowest**2))
    np.testing.assert_allclose(traced(lambda x: nn.alpha_dropout(x, 0.25, True, mask=mask), X), a * np.where(mask, X, lowest) - a * lowest * 0.25)
    check_derivatives(lambda x: nn.alpha_dropout(x, 0.25, True, mask=mask), X)


def test_random_slopes() -> None:
    found = traced(lambda x: nn.rrelu(x, 0.1, 0.4, True, KEY), X)
    ratio = found[X < 0] / X[X < 0]
    assert (ratio >= 0.1).all() and (ratio <= 0.4).all() and np.ptp(ratio) > 0.1
    np.testing.assert_array_equal(found[X >= 0], X[X >= 0])
    assert traced(lambda x: nn.rrelu(x, 0.1, 0.4, True, KEY), X.astype(np.float32)).dtype == np.float32
    check_derivatives(lambda x: nn.rrelu(x, 0.1, 0.4, True, KEY), X)


def test_gumbel_softmax(rng: np.random.Generator) -> None:
    noise = bw.random.gumbel(KEY, X.shape)
    soft = traced(lambda x: nn.gumbel_softmax(x, 0.7, axis=1, key=KEY), X)
    np.testing.assert_allclose(soft, sp.softmax((X + noise) / 0.7, 1), rtol=1e-12)
    hard = traced(lambda x: nn.gumbel_softmax(x, 0.7, True, 1, KEY), X)
    np.testing.assert_allclose(hard, np.moveaxis(np.eye(4)[soft.argmax(1)], -1, 1), atol=1e-15)
    weights = rng.normal(size=X.shape)
    gradients = [traced(bw.grad(lambda x, h=h: (weights * nn.gumbel_softmax(x, 0.7, h, 1, KEY)).sum()), X) for h in (False, True)]
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-12)
    check_derivatives(lambda x: nn.gumbel_softmax(x, 0.7, key=KEY), X)


def test_dropout_of_attention(rng: np.random.Generator) -> None:
    q, k, v = X, rng.normal(size=(3, 6, 5)), rng.normal(size=(3, 6, 2))
    found = traced(lambda q: nn.scaled_dot_product_attention(q, k, v, dropout_p=0.5, key_of_dropout=KEY), q)
    weights = sp.softmax(q @ np.swapaxes(k, 1, 2) / np.sqrt(5), -1)
    np.testing.assert_allclose(found, np.where(bw.random.bernoulli(KEY, 0.5, weights.shape), 2 * weights, 0) @ v, rtol=1e-12)


def test_without_a_key() -> None:
    for call in (lambda: nn.dropout(X), lambda: nn.dropout2d(X), lambda: nn.alpha_dropout(X, 0.5, True), lambda: nn.rrelu(X, training=True),
                 lambda: nn.gumbel_softmax(X), lambda: nn.scaled_dot_product_attention(X, X, X, dropout_p=0.1)):
        with pytest.raises(UnsupportedError, match="key=key"):
            call()
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.dropout(X, 1.5)
