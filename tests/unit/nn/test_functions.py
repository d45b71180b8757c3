"""`bw.nn` against PyTorch's documented formulas written with NumPy: values, dtypes, first and second derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import bwcompiler as bw
from bwcompiler import nn
from bwcompiler.errors import ShapeError, StaleValueWarning, UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

rng = np.random.default_rng(8)
X = rng.normal(size=(4, 6)) * 2
Y = rng.normal(size=(4, 6))
P, Q = sp.expit(X), sp.expit(Y)
IMAGES = rng.normal(size=(2, 4, 5, 6))
LABELS = np.array([1, 0, 5, 2])
SIGNS = np.where(Y > 0, 1.0, -1.0)


def traced(fun: Callable[..., Any], *args: Any) -> Any:
    return run_traced(fun, *args)[0]


def channels(w: Any, rank: int) -> Any:
    return w.reshape(-1, *[1] * (rank - 2))


def standardised(x: Any, axes: Any, eps: float = 1e-5) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def group_norm(x: Any, groups: int, w: Any, b: Any) -> Any:
    split = x.reshape(x.shape[0], groups, -1)
    return standardised(split, 2).reshape(x.shape) * channels(w, x.ndim) + channels(b, x.ndim)


def local_response(x: Any, size: int) -> Any:
    padded = np.pad(x**2, [(0, 0), (size // 2, (size - 1) // 2), (0, 0), (0, 0)])
    mean = sum(padded[:, k:k + x.shape[1]] for k in range(size)) / size
    return x / (2.0 + 0.3 * mean) ** 0.75


def attention(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    return sp.softmax(scores, -1) @ v


def cosine(x: Any, y: Any, axis: int) -> Any:
    return (x * y).sum(axis) / np.linalg.norm(x, axis=axis) / np.linalg.norm(y, axis=axis)


def triplet(a: Any, p: Any, n: Any) -> Any:
    near, far, between = (np.linalg.norm(x - y + 1e-6, axis=-1) for x, y in ((a, p), (a, n), (p, n)))
    return np.maximum(near - np.minimum(far, between) + 1.5, 0).mean()


def multi_margin(x: Any, y: Any, p: int) -> Any:
    losses = [sum(max(0, 0.7 - row[k] + row[i]) ** p for i in range(6) if i != k) / 6 for row, k in zip(x, y, strict=True)]
    return np.array(losses)


def multilabel_margin(x: Any, y: Any) -> Any:
    found = []
    for row, target in zip(x, y, strict=True):
        labels = list(itertools.takewhile(lambda k: k >= 0, target))
        others = [i for i in range(len(row)) if i not in labels]
        found.append(sum(max(0, 1 - row[j] + row[i]) for j in labels for i in others) / len(row))
    return np.array(found)


MULTILABEL = np.array([[3, 0, -1, 1, 2, -1], [-1, 0, 1, 2, 3, 4], [1, 2, 3, 4, 5, 0], [2, -1, -1, 5, 5, 5]])
MASK = rng.random((3, 5)) > 0.4
MASK[:, 0] = True
QKV = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 5, 4)), rng.normal(size=(2, 5, 2))
W, B = rng.normal(size=4), rng.normal(size=4)

# name: (ours, the formula, arguments); derivatives are checked at these arguments
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "relu6": (nn.relu6, lambda x: np.clip(x, 0, 6), (X * 4,)),
    "hardtanh": (lambda x: nn.hardtanh(x, -0.5, 0.75), lambda x: np.clip(x, -0.5, 0.75), (X,)),
    "hardsigmoid": (nn.hardsigmoid, lambda x: np.clip(x + 3, 0, 6) / 6, (X * 3,)),
    "hardswish": (nn.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6, (X * 3,)),
    "hardshrink": (nn.hardshrink, lambda x: np.where(np.abs(x) > 0.5, x, 0), (X,)),
    "softshrink": (nn.softshrink, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0), (X,)),
    "threshold": (lambda x: nn.threshold(x, 0.3, 7.0), lambda x: np.where(x > 0.3, x, 7.0), (X,)),
    "prelu": (nn.prelu, lambda x, w: np.where(x > 0, x, w * x), (X, rng.normal(size=6))),
    "prelu of one weight": (nn.prelu, lambda x, w: np.where(x > 0, x, w * x), (X, rng.normal(size=1))),
    "rrelu": (nn.rrelu, lambda x: np.where(x > 0, x, x * (1 / 8 + 1 / 3) / 2), (X,)),
    "selu": (nn.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))), (X,)),
    "celu": (lambda x: nn.celu(x, 0.6), lambda x: np.maximum(x, 0) + np.minimum(0.6 * np.expm1(x / 0.6), 0), (X,)),
    "logsigmoid": (nn.logsigmoid, lambda x: np.log(sp.expit(x)), (X,)),
    "mish": (nn.mish, lambda x: x * np.tanh(np.log1p(np.exp(x))), (X,)),
    "softsign": (nn.softsign, lambda x: x / (1 + np.abs(x)), (X,)),
    "tanhshrink": (nn.tanhshrink, lambda x: x - np.tanh(x), (X,)),
    "glu": (lambda x: nn.glu(x, 1), lambda x: x[:, :3] * sp.expit(x[:, 3:]), (X,)),
    "softmin": (nn.softmin, lambda x: sp.softmax(-x, -1), (X,)),
    "softplus threshold": (lambda x: nn.softplus(x, 2.0, 1.0), lambda x: np.where(2 * x > 1, x, np.log1p(np.exp(2 * x)) / 2), (X,)),
    "smooth_l1_loss": (lambda x, y: nn.smooth_l1_loss(x, y, beta=0.5),
                       lambda x, y: np.where(np.abs(x - y) < 0.5, (x - y) ** 2, np.abs(x - y) - 0.25).mean(), (X, Y)),
    "binary_cross_entropy": (nn.binary_cross_entropy, lambda p, t, w: -(w * (t * np.log(p) + (1 - t) * np.log1p(-p))).mean(),
                             (P, Q, rng.uniform(1, 2, size=6))),
    "binary_cross_entropy_with_logits": (
        lambda x, t, w, p: nn.binary_cross_entropy_with_logits(x, t, w, "sum", p),
        lambda x, t, w, p: -(w * (p * t * np.log(sp.expit(x)) + (1 - t) * np.log(sp.expit(-x)))).sum(),
        (X, Q, rng.uniform(1, 2, size=6), rng.uniform(1, 2, size=6))),
    "kl_div": (lambda x, t: nn.kl_div(x, t, "batchmean"), lambda x, t: (t * (np.log(t) - x)).sum() / 4, (np.log(P), Q)),
    "kl_div of logarithms": (lambda x, t: nn.kl_div(x, t, log_target=True), lambda x, t: (np.exp(t) * (t - x)).mean(), (np.log(P), np.log(Q))),
    "poisson_nll_loss": (lambda x, t: nn.poisson_nll_loss(x, t, full=True), lambda x, t: (
        np.exp(x) - t * x + np.where(t > 1, t * np.log(t) - t + 0.5 * np.log(2 * np.pi * t), 0)).mean(), (X, np.abs(Y) * 3 + 1e-3)),
    "poisson_nll_loss of rates": (lambda x, t: nn.poisson_nll_loss(x, t, log_input=False),
                                  lambda x, t: (x - t * np.log(x + 1e-8)).mean(), (P, np.abs(Y))),
    "gaussian_nll_loss": (lambda x, t, v: nn.gaussian_nll_loss(x, t, v, full=True),
                          lambda x, t, v: 0.5 * (np.log(2 * np.pi * v[:, None]) + (x - t) ** 2 / v[:, None]).mean(), (X, Y, rng.uniform(1, 2, 4))),
    "soft_margin_loss": (nn.soft_margin_loss, lambda x, t: np.log1p(np.exp(-x * t)).mean(), (X, SIGNS)),
    "multilabel_soft_margin_loss": (nn.multilabel_soft_margin_loss,
                                    lambda x, t, w: -(w * (t * np.log(sp.expit(x)) + (1 - t) * np.log(sp.expit(-x)))).mean(),
                                    (X, Q, rng.uniform(1, 2, 6))),
    "hinge_embedding_loss": (lambda x: nn.hinge_embedding_loss(x, SIGNS, 1.25),
                             lambda x: np.where(SIGNS == 1, x, np.maximum(1.25 - x, 0)).mean(), (X,)),
    "margin_ranking_loss": (lambda x, y: nn.margin_ranking_loss(x, y, SIGNS, 0.3),
                            lambda x, y: np.maximum(0.3 - SIGNS * (x - y), 0).mean(), (X, Y)),
    "cosine_similarity": (lambda x, y: nn.cosine_similarity(x, y, 0), lambda x, y: cosine(x, y, 0), (X, Y)),
    "cosine_embedding_loss": (lambda x, y: nn.cosine_embedding_loss(x, y, SIGNS[:, 0], 0.1, "sum"), lambda x, y: np.where(
        SIGNS[:, 0] == 1, 1 - cosine(x, y, 1), np.maximum(cosine(x, y, 1) - 0.1, 0)).sum(), (X, Y)),
    "pairwise_distance": (lambda x, y: nn.pairwise_distance(x, y, 3.0, keepdims=True),
                          lambda x, y: (np.abs(x - y + 1e-6) ** 3).sum(-1, keepdims=True) ** (1 / 3), (X, Y)),
    "normalize": (lambda x: nn.normalize(x, 3.0, 0), lambda x: x / (np.abs(x) ** 3).sum(0) ** (1 / 3), (X,)),
    "pdist": (nn.pdist, lambda x: np.array([np.linalg.norm(x[i] - x[j]) for i in range(4) for j in range(i + 1, 4)]), (X,)),
    "triplet_margin_loss": (lambda a, p, n: nn.triplet_margin_loss(a, p, n, 1.5, swap=True), triplet, (X, Y, P)),
    "multi_margin_loss": (lambda x: nn.multi_margin_loss(x, LABELS, 2, 0.7, reduction="none"), lambda x: multi_margin(x, LABELS, 2), (X,)),
    "multilabel_margin_loss": (lambda x: nn.multilabel_margin_loss(x, MULTILABEL, "none"), lambda x: multilabel_margin(x, MULTILABEL), (X,)),
    "bilinear": (nn.bilinear, lambda x, y, w, b: np.einsum("ni,oij,nj->no", x, w, y) + b,
                 (X, Y[:, :3], rng.normal(size=(2, 6, 3)), rng.normal(size=2))),
    "linear to a number": (nn.linear, lambda x, w: x @ w, (X, Y[0])),
    "rms_norm": (lambda x, w: nn.rms_norm(x, 6, w, 1e-3), lambda x, w: x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-3) * w, (X, Y[0])),
    "group_norm": (lambda x, w, b: nn.group_norm(x, 2, w, b), lambda x, w, b: group_norm(x, 2, w, b), (IMAGES, W, B)),
    "instance_norm": (lambda x, w, b: nn.instance_norm(x, None, None, w, b),
                      lambda x, w, b: standardised(x, (2, 3)) * channels(w, 4) + channels(b, 4), (IMAGES, W, B)),
    "batch_norm": (nn.batch_norm, lambda x, m, v, w, b: (x - channels(m, 4)) / np.sqrt(channels(v, 4) + 1e-5) * channels(w, 4) + channels(b, 4),
                   (IMAGES, rng.normal(size=4), rng.uniform(1, 2, 4), W, B)),
    "batch_norm while training": (lambda x, w, b: nn.batch_norm(x, None, None, w, b, training=True),
                                  lambda x, w, b: standardised(x, (0, 2, 3)) * channels(w, 4) + channels(b, 4), (IMAGES, W, B)),
    "local_response_norm": (lambda x: nn.local_response_norm(x, 3, 0.3, 0.75, 2.0), lambda x: local_response(x, 3), (IMAGES,)),
    "attention": (nn.scaled_dot_product_attention, attention, QKV),
    "attention with a mask": (lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, MASK), lambda q, k, v: attention(q, k, v, MASK), QKV),
    "causal attention": (lambda q, k, v: nn.scaled_dot_product_attention(q, k, v, is_causal=True),
                         lambda q, k, v: attention(q, k, v, np.tri(3, 5, dtype=bool)), QKV),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    ours, formula, args = CASES[name]
    found = traced(ours, *args)
    expected = np.asarray(formula(*args))
    assert np.shape(found) == expected.shape and np.asarray(found).dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    single = [np.asarray(arg).astype(np.float32) for arg in args]
    found = traced(ours, *single)
    assert np.asarray(found).dtype == np.float32
    np.testing.assert_allclose(found, formula(*single), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    ours, _, args = CASES[name]
    check_derivatives(ours, *args, tolerance=2e-6)


def test_the_side_of_a_kink_is_the_flat_one() -> None:
    for fun, points in ((nn.relu6, [0.0, 6.0]), (nn.hardtanh, [-1.0, 1.0]), (nn.hardsigmoid, [-3.0, 3.0]), (nn.hardshrink, [-0.5, 0.5]),
                        (nn.softshrink, [-0.5, 0.5])):
        assert traced(bw.grad(lambda x, fun=fun: fun(x).sum()), np.array(points)).tolist() == [0.0, 0.0]


def test_nan_passes_through() -> None:
    for fun in (nn.relu6, nn.hardtanh, nn.hardsigmoid, nn.hardswish, nn.hardshrink, nn.softshrink, nn.selu, nn.celu, nn.mish, nn.softsign):
        assert np.isnan(traced(fun, np.array([np.nan]))).all(), fun.__name__


def test_large_arguments() -> None:
    x = np.array([-1e3, 1e3])
    assert traced(nn.logsigmoid, x).tolist() == [-1e3, -0.0]
    assert traced(nn.mish, x).tolist() == [-0.0, 1e3]
    assert traced(bw.grad(lambda x: nn.selu(x).sum()), x).tolist() == [0.0, 1.0507009873554805]


# ----- running statistics
def test_batch_norm_updates_the_running_statistics() -> None:
    x, mean, var = IMAGES, np.full(4, 0.5), np.full(4, 2.0)
    for call in (lambda: nn.batch_norm(x, mean, var, training=True, momentum=0.25),
                 lambda: bw.jit(lambda x, m, v: nn.batch_norm(x, m, v, training=True, momentum=0.25))(x, mean, var)):
        expected = 0.75 * mean + 0.25 * x.mean((0, 2, 3)), 0.75 * var + 0.25 * x.var((0, 2, 3), ddof=1)
        call()
        np.testing.assert_allclose((mean, var), expected, rtol=1e-12)
    expected = 0.9 * mean + 0.1 * x.mean((0, 2, 3))
    nn.instance_norm(x, mean, var)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)


def test_batch_norm_says_that_captured_statistics_are_not_updated() -> None:
    mean, var = np.zeros(4), np.ones(4)
    with pytest.warns(StaleValueWarning, match="not updated"):
        traced(lambda x: nn.batch_norm(x, mean, var, training=True), IMAGES)
    assert mean.tolist() == [0.0] * 4


# ----- pooling
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_pooling(rank: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, *(7, 5, 4)[:rank]))
    sizes = (3, 4, 2)[:rank]
    windows = [[slice(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip(x.shape[2:], sizes, strict=True)]
    mean, largest, place = (np.empty((2, 3, *sizes)) for _ in range(3))
    flat = np.arange(np.prod(x.shape[2:])).reshape(x.shape[2:])
    for where in itertools.product(*map(range, sizes)):
        cut = tuple(windows[k][i] for k, i in enumerate(where))
        part = x[(..., *cut)].reshape(2, 3, -1)
        mean[(..., *where)], largest[(..., *where)] = part.mean(-1), part.max(-1)
        place[(..., *where)] = flat[cut].ravel()[part.argmax(-1)]
    average, maximum = getattr(nn, f"adaptive_avg_pool{rank}d"), getattr(nn, f"adaptive_max_pool{rank}d")
    np.testing.assert_allclose(traced(lambda x: average(x, sizes), x), mean, rtol=1e-12)
    found, places = traced(lambda x: maximum(x, sizes, return_indices=True), x)
    np.testing.assert_array_equal(found, largest)
    np.testing.assert_array_equal(places, place)
    assert places.dtype == np.int64
    check_derivatives(lambda x: average(x, sizes), x)
    check_derivatives(lambda x: maximum(x, sizes), x)
    assert traced(lambda x: average(x, (None,) * rank), x[0]).shape == x.shape[1:]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpooling_puts_maxima_back(rank: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, *(6, 5, 4)[:rank]))
    pool, unpool = getattr(nn, f"max_pool{rank}d"), getattr(nn, f"max_unpool{rank}d")
    maxima, places = traced(lambda x: pool(x, 2, 2, 0, return_indices=True), x)
    back = traced(lambda y, p: unpool(y, p, 2, output_size=x.shape), maxima, places)
    kept = np.isin(x, maxima)
    np.testing.assert_array_equal(back, np.where(kept, x, 0))
    _, padded = traced(lambda x: pool(x, 3, 2, 1, 2 if rank == 1 else 1, return_indices=True), x)
    values = traced(lambda x: pool(x, 3, 2, 1, 2 if rank == 1 else 1), x)
    np.testing.assert_array_equal(np.take_along_axis(x.reshape(2, 3, -1), padded.reshape(2, 3, -1), -1), values.reshape(2, 3, -1))
    check_derivatives(lambda y: unpool(y, places, 2, output_size=x.shape), maxima)


def test_power_pooling_and_divisors() -> None:
    x = np.abs(IMAGES)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))[:, :, ::2, ::3]
    np.testing.assert_allclose(traced(lambda x: nn.lp_pool2d(x, 3.0, (2, 3)), x), (windows**3).sum((-2, -1)) ** (1 / 3), rtol=1e-12)
    np.testing.assert_allclose(traced(lambda x: nn.avg_pool2d(x, (2, 3), divisor_override=5), x), windows.sum((-2, -1)) / 5, rtol=1e-12)
    check_derivatives(lambda x: nn.lp_pool2d(x, 3.0, 2), x)


# ----- resampling
def test_padding() -> None:
    x = IMAGES
    np.testing.assert_array_equal(traced(lambda x: nn.pad(x, (1, 2, 0, 3)), x), np.pad(x, [(0, 0), (0, 0), (0, 3), (1, 2)]))
    np.testing.assert_array_equal(traced(lambda x: nn.pad(x, (-1, 2), "constant", 7.0), x),
                                  np.pad(x[..., 1:], [(0, 0)] * 3 + [(0, 2)], constant_values=7.0))
    for mode, numpy in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        expected = np.pad(x, [(0, 0), (0, 0), (1, 3), (4, 2)], mode=numpy)
        np.testing.assert_array_equal(traced(lambda x, mode=mode: nn.pad(x, (4, 2, 1, 3), mode), x), expected)
    np.testing.assert_array_equal(traced(lambda x: nn.pad(x, (-2, 1), "circular"), x), np.pad(x[..., 2:], [(0, 0)] * 3 + [(0, 1)], mode="wrap"))
    check_derivatives(lambda x: nn.pad(x, (4, -1, 1, 3), "reflect"), x)
    with pytest.raises(ShapeError, match="do not fit mode 'reflect'"):
        traced(lambda x: nn.pad(x, (6, 0), "reflect"), x)


def linear_map(x: Any, size: int, aligned: bool) -> Any:
    n = x.shape[-1]
    place = np.arange(size) * (n - 1) / (size - 1) if aligned else (np.arange(size) + 0.5) * n / size - 0.5
    return np.stack([np.interp(place, np.arange(n), row) for row in x.reshape(-1, n)]).reshape(*x.shape[:-1], size)


@pytest.mark.parametrize("aligned", [False, True])
def test_linear_interpolation(aligned: bool) -> None:
    x = IMAGES
    rows = linear_map(x, 9, aligned)
    expected = np.swapaxes(linear_map(np.swapaxes(rows, -1, -2), 4, aligned), -1, -2)
    np.testing.assert_allclose(traced(lambda x: nn.interpolate(x, (4, 9), mode="bilinear", align_corners=aligned), x), expected, atol=1e-12)
    found = traced(lambda x: nn.interpolate(x, 9, mode="linear", align_corners=aligned), x[:, :, 0])
    np.testing.assert_allclose(found, linear_map(x[:, :, 0], 9, aligned), atol=1e-12)
    check_derivatives(lambda x: nn.interpolate(x, (4, 9), mode="bicubic", align_corners=aligned), x)


def test_other_interpolation() -> None:
    x = IMAGES
    np.testing.assert_array_equal(traced(lambda x: nn.interpolate(x, scale_factor=2), x), x.repeat(2, 2).repeat(2, 3))
    np.testing.assert_array_equal(traced(lambda x: nn.interpolate(x, (5, 3), mode="nearest-exact"), x), x[..., [1, 3, 5]])
    np.testing.assert_array_equal(traced(lambda x: nn.interpolate(x, (5, 3)), x), x[..., [0, 2, 4]])
    np.testing.assert_allclose(traced(lambda x: nn.interpolate(x, (5, 3), mode="area"), x), (x[..., ::2] + x[..., 1::2]) / 2, rtol=1e-13)
    line = np.arange(12.0).reshape(1, 1, 1, 12) ** 2                              # bicubic convolution is exact for quadratics only inside
    middle = traced(lambda x: nn.interpolate(x, (1, 24), mode="bicubic"), line)[0, 0, 0, 8:16]
    a, t = -0.75, np.array([0.75, 0.25] * 4)
    base = np.floor((np.arange(8, 16) + 0.5) / 2 - 0.5).astype(int)
    weights = [a * (t + 1) ** 3 - 5 * a * (t + 1) ** 2 + 8 * a * (t + 1) - 4 * a, (a + 2) * t**3 - (a + 3) * t**2 + 1,
               (a + 2) * (1 - t) ** 3 - (a + 3) * (1 - t) ** 2 + 1, a * (2 - t) ** 3 - 5 * a * (2 - t) ** 2 + 8 * a * (2 - t) - 4 * a]
    np.testing.assert_allclose(middle, sum(w * line[0, 0, 0, base + k] for k, w in zip((-1, 0, 1, 2), weights, strict=True)), rtol=1e-12)
    with pytest.raises(UnsupportedError, match="antialias"):
        nn.interpolate(x, 3, antialias=True)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_sampling_at_the_elements_themselves(mode: str, padding: str) -> None:
    theta = np.eye(2, 3)[None].repeat(2, 0)
    grid = traced(lambda t: nn.affine_grid(t, IMAGES.shape), theta)
    np.testing.assert_allclose(traced(lambda x, g: nn.grid_sample(x, g, mode, padding), IMAGES, grid), IMAGES, atol=1e-12)
    shifted = traced(lambda t: nn.affine_grid(t, IMAGES.shape, True), theta)
    moved = shifted * 1.3 + 0.07                                                   # some points lie outside
    order = 1 if mode == "nearest" else 2
    check_derivatives(lambda x, g: nn.grid_sample(x, g, mode, padding, True), IMAGES, moved, order=order, tolerance=1e-5)


def test_sampling_outside() -> None:
    x, grid = np.arange(4.0).reshape(1, 1, 1, 4), np.array([-2.0, 2.0]).reshape(1, 1, 2, 1).repeat(2, -1) * [1, 0]
    for padding, expected in (("zeros", [0.0, 0.0]), ("border", [0.0, 3.0]), ("reflection", [1.5, 1.5])):
        np.testing.assert_allclose(traced(lambda x, g, p=padding: nn.grid_sample(x, g, padding_mode=p), x, grid).ravel(), expected)


# ----- rearrangement
def test_patches_and_their_adjoint(rng: np.random.Generator) -> None:
    options = {"dilation": (2, 1), "padding": (1, 0), "stride": (1, 2)}
    patches = traced(lambda x: nn.unfold(x, (2, 3), **options), IMAGES)
    padded = np.pad(IMAGES, [(0, 0), (0, 0), (1, 1), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, :, ::2, ::2, :]
    np.testing.assert_array_equal(patches, windows.transpose(0, 1, 4, 5, 2, 3).reshape(2, 24, -1))
    y = rng.normal(size=patches.shape)
    back = traced(lambda y: nn.fold(y, (5, 6), (2, 3), **options), y)
    np.testing.assert_allclose((back * IMAGES).sum(), (patches * y).sum())
    with pytest.raises(ShapeError, match="must be"):
        nn.fold(y, (5, 7), (2, 3), 1)


def test_shuffles() -> None:
    x = IMAGES
    found = traced(lambda x: nn.pixel_shuffle(x, 2), x)
    np.testing.assert_array_equal(found, x.reshape(2, 1, 2, 2, 5, 6).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 10, 12))
    np.testing.assert_array_equal(traced(lambda x: nn.pixel_unshuffle(x, 2), found), x)
    np.testing.assert_array_equal(traced(lambda x: nn.channel_shuffle(x, 2), x), x[:, [0, 2, 1, 3]])


def test_embedding_options(rng: np.random.Generator) -> None:
    table, index = rng.normal(size=(5, 2)), np.array([[1, 2], [1, -1]])
    gradient = traced(bw.grad(lambda w: nn.embedding(index, w, padding_idx=2).sum()), table)
    assert gradient[:, 0].tolist() == [0, 2, 0, 0, 1]
    scaled = traced(bw.grad(lambda w: nn.embedding(index, w, scale_grad_by_freq=True).sum()), table)
    assert scaled[:, 0].tolist() == [0, 1, 1, 0, 1]
    with pytest.raises(UnsupportedError, match="max_norm"):
        nn.embedding(index, table, max_norm=1.0)


def test_dropout_of_channels() -> None:
    mask = np.array([[True, False, True, True], [False, True, True, False]])
    expected = np.where(mask[:, :, None, None], IMAGES / 0.75, 0)
    np.testing.assert_allclose(traced(lambda x: nn.dropout2d(x, 0.25, mask=mask), IMAGES), expected, rtol=1e-14)
    np.testing.assert_array_equal(traced(lambda x: nn.dropout(x, 1.0), X), np.zeros_like(X))
    with pytest.raises(UnsupportedError, match=r"x.shape\[:2\]"):
        traced(lambda x: nn.dropout2d(x), IMAGES)


def test_a_distance_of_ones_own() -> None:
    found = traced(lambda a, p, n: nn.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: abs(x - y).sum(-1)), X, Y, P)
    np.testing.assert_allclose(found, np.maximum(np.abs(X - Y).sum(1) - np.abs(X - P).sum(1) + 1, 0).mean(), rtol=1e-12)


@pytest.mark.parametrize("call", [
    lambda: nn.glu(X[:, :3]), lambda: nn.prelu(X, np.ones(3)), lambda: nn.group_norm(IMAGES, 3), lambda: nn.batch_norm(X[0], None, None),
    lambda: nn.pixel_shuffle(IMAGES, 3), lambda: nn.pixel_unshuffle(IMAGES, 2), lambda: nn.channel_shuffle(IMAGES, 3),
    lambda: nn.interpolate(IMAGES, 3, mode="trilinear"), lambda: nn.grid_sample(IMAGES, np.zeros((2, 3, 3, 3))),
    lambda: nn.scaled_dot_product_attention(QKV[0], QKV[1][..., :2], QKV[2]), lambda: nn.adaptive_avg_pool2d(IMAGES, (1, 2, 3)),
    lambda: nn.max_unpool2d(IMAGES, np.zeros((2, 4, 5, 5), int), 2), lambda: nn.pdist(IMAGES), lambda: nn.bilinear(X, Y, np.ones((2, 3, 6))),
    lambda: nn.gaussian_nll_loss(X, Y, np.ones((2, 6))), lambda: nn.multilabel_margin_loss(X, LABELS),
    lambda: nn.instance_norm(IMAGES[..., :1, :1]), lambda: nn.batch_norm(X[:1], None, None, training=True),
    lambda: nn.conv_transpose1d(X[None], np.ones((4, 2, 3)), output_padding=1, stride=1),
])
def test_shapes_that_do_not_fit(call: Callable[[], Any]) -> None:
    with pytest.raises(ShapeError):
        call()


C = X + 1j * Y
COMPLEX: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "silu": (nn.silu, lambda z: z / (1 + np.exp(-z))), "softsign": (nn.softsign, lambda z: z / (1 + np.abs(z))),
    "tanhshrink": (nn.tanhshrink, lambda z: z - np.tanh(z)), "l1_loss": (lambda z: nn.l1_loss(z, Y), lambda z: np.abs(z - Y).mean()),
    "normalize": (nn.normalize, lambda z: z / np.linalg.norm(z, axis=1, keepdims=True)),
    "pairwise_distance": (lambda z: nn.pairwise_distance(z, Y, p=3.0, eps=0.0), lambda z: (np.abs(z - Y) ** 3).sum(-1) ** (1 / 3)),
    "rms_norm": (lambda z: nn.rms_norm(z, 6, eps=0.0), lambda z: z / np.sqrt((z * z).mean(-1, keepdims=True))),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name: str) -> None:
    ours, formula = COMPLEX[name]
    found = traced(ours, C)
    np.testing.assert_allclose(found, formula(C), rtol=1e-12)
    assert found.dtype == formula(C).dtype
    check_derivatives(lambda x, y: np.abs(ours(x + 1j * y)), X, Y, order=2, tolerance=3e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax_of_nothing(name: str) -> None:
    for shape, axis in (((0,), -1), ((2, 0), 1), ((2, 0), None), ((0, 3), 0)):
        assert getattr(nn, name)(np.zeros(shape, np.float32), axis).shape == shape
        assert bw.grad(lambda x, axis=axis: getattr(nn, name)(x, axis).sum())(np.zeros(shape)).shape == shape
    assert nn.logsumexp(np.zeros((2, 0))).tolist() == [-np.inf, -np.inf]
    assert nn.batch_norm(np.zeros((0, 4, 1)), None, None, training=True).shape == (0, 4, 1)


KEYWORDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {          # PyTorch's, and ours
    "linear": (lambda: nn.linear(X, weight=Y, bias=Y[:, 0]), lambda: nn.linear(X, Y, Y[:, 0])),
    "conv2d": (lambda: nn.conv2d(input=IMAGES, weight=IMAGES[..., :2, :3], bias=X[0, :2]), lambda: nn.conv2d(IMAGES, IMAGES[..., :2, :3], X[0, :2])),
    "mse_loss": (lambda: nn.mse_loss(X, target=Y), lambda: nn.mse_loss(x=X, y=Y)),
    "softmax": (lambda: nn.softmax(input=X, dim=0), lambda: nn.softmax(X, axis=0)),
    "pairwise_distance": (lambda: nn.pairwise_distance(X, Y, keepdim=True), lambda: nn.pairwise_distance(X, Y, keepdims=True)),
    "bilinear": (lambda: nn.bilinear(input1=X, input2=Y, weight=np.ones((1, 6, 6))), lambda: nn.bilinear(X, Y, np.ones((1, 6, 6)))),
    "batch_norm": (lambda: nn.batch_norm(input=X, running_mean=None, running_var=None, training=True), lambda: nn.batch_norm(X, None, None, training=True)),
    "one_hot": (lambda: nn.one_hot(tensor=LABELS, num_classes=6), lambda: nn.one_hot(LABELS, 6)),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords_of_pytorch(name: str) -> None:
    theirs, ours = KEYWORDS[name]
    np.testing.assert_array_equal(theirs(), ours())
    np.testing.assert_allclose(bw.jit(theirs)(), ours(), rtol=1e-12)


def test_two_keywords_for_one_argument() -> None:
    with pytest.raises(TypeError, match="softmax.. got axis= and dim=, which are the same"):
        nn.softmax(X, axis=0, dim=0)


NUMBERS = {
    "leaky_relu": lambda a: nn.leaky_relu(X, a), "elu": lambda a: nn.elu(X, a), "celu": lambda a: nn.celu(X, a),
    "softplus": lambda a: nn.softplus(X, beta=a), "threshold": lambda a: nn.threshold(X, 0.1, a), "softshrink": lambda a: nn.softshrink(X, a),
    "hardtanh": lambda a: nn.hardtanh(X, -a, a), "huber_loss": lambda a: nn.huber_loss(X, Y, delta=a),
    "smooth_l1_loss": lambda a: nn.smooth_l1_loss(X, Y, beta=a), "margin_ranking_loss": lambda a: nn.margin_ranking_loss(X, Y, SIGNS, margin=a),
    "cross_entropy": lambda a: nn.cross_entropy(X, LABELS, label_smoothing=a),
    "cross_entropy of probabilities": lambda a: nn.cross_entropy(X, P, label_smoothing=a), "pad": lambda a: nn.pad(X, (1, 2), value=a),
    "layer_norm": lambda a: nn.layer_norm(X, 6, eps=a), "normalize": lambda a: nn.normalize(X * a), "float32": lambda a: nn.elu(X.astype(np.float32), a),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_a_function_may_be_traced(name: str) -> None:
    """Slopes, widths, margins: what is a Python number may be learnt."""
    fun = NUMBERS[name]
    found, expected = bw.jit(fun)(0.4), fun(0.4)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if name == "float32" else 1e-13)
    if name != "float32":
        check_derivatives(lambda a: np.sum(np.sin(fun(a))), np.array(0.4))
