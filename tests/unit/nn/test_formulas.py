"""`bw.nn` and `bw.scipy.special` against loops, SciPy and PyTorch's documented formulas; on plain and on traced arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import bwcompiler.scipy.special as special
from bwcompiler import nn
from bwcompiler.errors import DTypeError, ShapeError, UnsupportedError
from bwcompiler.frontend import trace
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import assert_same, run_traced

rng = np.random.default_rng(5)
X = rng.normal(size=(4, 6)) * 2
LABELS = np.array([1, 0, 5, 2])


def both(fun: Callable[..., Any], *args: Any) -> Any:
    """The result on plain arrays, checked to be the traced one too."""
    eager = fun(*args)
    traced, _, _ = run_traced(fun, *args)
    assert_same(traced, eager)
    return eager


def softmax(x: Any, axis: int = -1) -> Any:
    return scipy.special.softmax(x, axis)


ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "relu": (nn.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (nn.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    "elu": (lambda x: nn.elu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * (np.exp(x) - 1))),
    "gelu": (nn.gelu, lambda x: x * 0.5 * (1 + scipy.special.erf(x / np.sqrt(2)))),
    "gelu tanh": (lambda x: nn.gelu(x, approximate="tanh"),
                  lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    "silu": (nn.silu, lambda x: x * scipy.special.expit(x)),
    "sigmoid": (nn.sigmoid, scipy.special.expit),
    "softplus": (nn.softplus, lambda x: np.log1p(np.exp(x))),
    "softplus beta": (lambda x: nn.softplus(x, 2.0), lambda x: np.log1p(np.exp(2 * x)) / 2),
    "tanh": (nn.tanh, np.tanh),
    "softmax": (nn.softmax, softmax),
    "softmax axis": (lambda x: nn.softmax(x, axis=0), lambda x: softmax(x, 0)),
    "log_softmax": (nn.log_softmax, lambda x: np.log(softmax(x))),
    "logsumexp": (nn.logsumexp, lambda x: scipy.special.logsumexp(x, -1)),
    "logsumexp keepdims": (lambda x: nn.logsumexp(x, 0, keepdims=True), lambda x: scipy.special.logsumexp(x, 0, keepdims=True)),
    "layer_norm": (lambda x: nn.layer_norm(x, 6), lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name: str) -> None:
    fun, expected = ACTIVATIONS[name]
    assert_same(both(fun, X), expected(X))
    single = both(fun, X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected(X), rtol=2e-5, atol=2e-6)
    assert both(fun, np.ones((2, 6), int)).dtype == (np.int64 if name == "relu" else np.float64)


def test_large_arguments_do_not_overflow() -> None:
    x = np.array([[-1e4, 0.0, 1e4], [-np.inf, 0.0, 1.0]])
    assert_same(both(nn.softmax, x), softmax(x))
    assert_same(both(nn.log_softmax, x), scipy.special.log_softmax(x, axis=-1))
    assert_same(both(nn.logsumexp, np.full((1, 2), -np.inf)), np.array([-np.inf]))
    assert_same(both(nn.softplus, x), np.array([[0, np.log(2), 1e4], [0, np.log(2), np.log1p(np.e)]]))
    assert np.isnan(nn.relu(np.array([np.nan]))).all()


def test_layers(rng: np.random.Generator) -> None:
    w, b = rng.normal(size=(3, 6)), rng.normal(size=3)
    assert_same(both(nn.linear, X, w, b), X @ w.T + b)
    assert_same(both(nn.linear, X[0], w), w @ X[0])
    assert_same(both(nn.linear, X.reshape(2, 2, 6), w, b), X.reshape(2, 2, 6) @ w.T + b)
    gain, shift = rng.normal(size=6), rng.normal(size=6)
    expected = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-3) * gain + shift
    assert_same(both(lambda x, g, s: nn.layer_norm(x, (6,), g, s, eps=1e-3), X, gain, shift), expected)
    assert_same(both(nn.embedding, LABELS, rng.normal(size=(7, 2))).shape, np.array([4, 2]) * 1 + 0)
    assert_same(both(nn.embedding, np.array([[1, 3]]), X), X[[[1, 3]]])
    assert_same(both(lambda i: nn.one_hot(i, 6), LABELS), np.eye(6, dtype=int)[LABELS])
    assert_same(both(lambda i: nn.one_hot(i, 6, np.float32), LABELS[None]), np.eye(6, dtype=np.float32)[LABELS[None]])


def test_dropout() -> None:
    mask = X > 0
    assert_same(both(lambda x, m: nn.dropout(x, 0.25, mask=m), X, mask), np.where(mask, X / 0.75, 0))
    assert_same(both(lambda x: nn.dropout(x, training=False), X), X)
    with pytest.raises(UnsupportedError, match="mask=rng.random"):
        trace(nn.dropout, (X,))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_losses_with_weights(name: str, rng: np.random.Generator) -> None:
    """As PyTorch's: a mean is divided by the sum of the weights, that of huber_loss by the number of elements."""
    y, weights = rng.normal(size=X.shape), rng.uniform(0.1, 2.0, X.shape)
    loss = getattr(nn, name)
    each = np.asarray(loss(X, y, reduction="none")) * weights
    assert_same(both(lambda x, y, w: loss(x, y, reduction="none", weight=w), X, y, weights), each)
    assert_same(both(lambda x, y, w: loss(x, y, reduction="sum", weight=w), X, y, weights), each.sum())
    assert_same(both(lambda x, y, w: loss(x, y, weight=w), X, y, weights), each.mean() if name == "huber_loss" else each.sum() / weights.sum())
    check_derivatives(lambda x, y, w: loss(x, y, weight=w), X, y, weights)
    with pytest.raises(ValueError, match="same size"):
        loss(X, y, weight=weights[:1])


def test_losses(rng: np.random.Generator) -> None:
    y = rng.normal(size=X.shape)
    d = X - y
    assert_same(both(nn.mse_loss, X, y), (d**2).mean())
    assert_same(both(lambda x, y: nn.mse_loss(x, y, reduction="sum"), X, y), (d**2).sum())
    assert_same(both(lambda x, y: nn.mse_loss(x, y, "none"), X, y), d**2)
    assert_same(both(nn.l1_loss, X, y), np.abs(d).mean())
    assert_same(both(nn.huber_loss, X, y), np.where(np.abs(d) <= 1, 0.5 * d**2, np.abs(d) - 0.5).mean())
    p, t = scipy.special.expit(X), (y > 0).astype(float)
    assert_same(both(nn.binary_cross_entropy_with_logits, X, t), -(t * np.log(p) + (1 - t) * np.log(1 - p)).mean())


def test_class_losses(rng: np.random.Generator) -> None:
    logs = np.log(softmax(X))
    picked = -logs[np.arange(4), LABELS]
    weight = rng.uniform(1, 2, size=6)
    assert_same(both(nn.cross_entropy, X, LABELS), picked.mean())
    assert_same(both(nn.nll_loss, logs, LABELS), picked.mean())
    assert_same(both(lambda x, t: nn.cross_entropy(x, t, reduction="none"), X, LABELS), picked)
    assert_same(both(lambda x, t, w: nn.cross_entropy(x, t, w), X, LABELS, weight),
                (picked * weight[LABELS]).sum() / weight[LABELS].sum())
    ignored = np.array([1, -100, 5, -100])
    assert_same(both(nn.cross_entropy, X, ignored), picked[[0, 2]].mean())
    assert_same(both(lambda x, t: nn.cross_entropy(x, t, ignore_index=5), X, LABELS), picked[[0, 1, 3]].mean())
    probabilities = softmax(rng.normal(size=X.shape))
    assert_same(both(nn.cross_entropy, X, probabilities), -(probabilities * logs).sum(1).mean())
    smooth = np.eye(6)[LABELS] * 0.9 + 0.1 / 6
    assert_same(both(lambda x, t: nn.cross_entropy(x, t, label_smoothing=0.1), X, LABELS), -(smooth * logs).sum(1).mean())
    assert_same(both(nn.cross_entropy, X[0], np.int64(3)), -logs[0, 3])
    for reduction, factor in (("mean", 1.0), ("sum", weight[3]), ("none", weight[3])):          # one sample: its weight cancels out
        loss = both(lambda x, t, w, r=reduction: nn.nll_loss(x, t, w, reduction=r), logs[0], np.int64(3), weight)
        assert_same(loss, -logs[0, 3] * factor)
    assert np.isnan(both(lambda x, t: nn.nll_loss(x, t), logs[0], np.int64(-100)))
    images = rng.normal(size=(2, 3, 2, 2))
    target = rng.integers(0, 3, size=(2, 2, 2))
    chosen = np.take_along_axis(np.log(softmax(images, 1)), target[:, None], 1)
    assert_same(both(nn.cross_entropy, images, target), -chosen.mean())
    with pytest.raises(ShapeError, match="must be integers of shape"):
        nn.nll_loss(X, np.array([0, 1]))


def test_embedding_takes_the_indices_first(rng: np.random.Generator) -> None:
    table, indices = rng.normal(size=(7, 2)), np.array([3, 0])
    with pytest.raises(DTypeError, match=r"indices x must be integers, got float64 of shape \(7, 2\).*swapped"):
        nn.embedding(table, indices)
    with pytest.raises(DTypeError, match="must be integers"):
        nn.embedding(table, table)


def test_logsumexp_of_a_number() -> None:
    for x in (np.array(1.5), np.array(-np.inf)):
        assert_same(both(nn.logsumexp, x), x)
        assert_same(both(special.logsumexp, x), x)
        assert_same(both(lambda x: nn.logsumexp(x, None), x), x)


# ----- convolutions
def reference_convolution(x: Any, w: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * rank)
    kernel = w.shape[2:]
    places = [(n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(x.shape[2:], kernel, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *places))
    per_group_out, per_group_in = w.shape[0] // groups, x.shape[1] // groups
    for o in range(w.shape[0]):
        first = (o // per_group_out) * per_group_in
        for place in itertools.product(*map(range, places)):
            cut = tuple(slice(p * stride, p * stride + dilation * (k - 1) + 1, dilation) for p, k in zip(place, kernel, strict=True))
            out[(slice(None), o, *place)] = (x[(slice(None), slice(first, first + per_group_in), *cut)] * w[o]).reshape(len(x), -1).sum(1)
    return out


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (2, 1, 1, 2)])
def test_convolution(rank: int, stride: int, padding: int, dilation: int, groups: int, rng: np.random.Generator) -> None:
    conv = getattr(nn, f"conv{rank}d")
    sizes = (7, 6, 5)[:rank]
    x, w, b = rng.normal(size=(2, 4, *sizes)), rng.normal(size=(6, 4 // groups, *(3, 2, 2)[:rank])), rng.normal(size=6)
    found = both(lambda x, w, b: conv(x, w, b, stride, padding, dilation, groups), x, w, b)
    expected = reference_convolution(x, w, stride, padding, dilation, groups) + b.reshape(-1, *[1] * rank)
    assert_same(found, expected)
    np.testing.assert_allclose(conv(x[0], w, b, stride, padding, dilation, groups), expected[0], atol=1e-12)


def test_convolution_padding_same(rng: np.random.Generator) -> None:
    x, w = rng.normal(size=(1, 2, 5, 6)), rng.normal(size=(3, 2, 3, 3))
    assert_same(both(lambda x, w: nn.conv2d(x, w, padding="same"), x, w), reference_convolution(x, w, 1, 1, 1, 1))
    assert_same(both(lambda x, w: nn.conv2d(x, w, padding="valid"), x, w), reference_convolution(x, w, 1, 0, 1, 1))


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize(("stride", "padding", "extra", "dilation", "groups"),
                         [(1, 0, 0, 1, 1), (2, 1, 1, 1, 1), (3, 2, 0, 1, 1), (2, 0, 1, 2, 2)])
def test_transposed_convolution_is_the_adjoint(rank: int, stride: int, padding: int, extra: int, dilation: int, groups: int, rng: np.random.Generator) -> None:
    """<conv(x), y> = <x, conv_transpose(y)>."""
    sizes = (9, 8)[:rank]
    w = rng.normal(size=(4, 6 // groups, *(3, 2)[:rank]))
    transposed, conv = getattr(nn, f"conv_transpose{rank}d"), getattr(nn, f"conv{rank}d")
    y = rng.normal(size=(2, 4, *sizes))
    back = both(lambda y, w: transposed(y, w, None, stride, padding, extra, groups, dilation), y, w)
    x = rng.normal(size=back.shape)
    forward = conv(x, w, None, stride, padding, dilation, groups)
    assert forward.shape == y.shape
    np.testing.assert_allclose((forward * y).sum(), (x * back).sum())


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, None, 0), (3, 2, 1), (2, 1, 0)])
def test_pooling(rank: int, kernel: int, stride: int | None, padding: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, *(6, 5, 4)[:rank]))
    step = kernel if stride is None else stride

    def pooled(fill: float, function: Any) -> Any:
        padded = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * rank, constant_values=fill)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel,) * rank, tuple(range(2, 2 + rank)))
        windows = windows[(slice(None), slice(None), *[slice(None, None, step)] * rank)]
        return function(windows, axis=tuple(range(-rank, 0)))

    maximum, average = getattr(nn, f"max_pool{rank}d"), getattr(nn, f"avg_pool{rank}d")
    assert_same(both(lambda x: maximum(x, kernel, stride, padding), x), pooled(-np.inf, np.max))
    assert_same(both(lambda x: average(x, kernel, stride, padding), x), pooled(0.0, np.mean))
    assert_same(both(lambda x: average(x, kernel, stride, padding, count_include_pad=False), x), pooled(np.nan, np.nanmean))
    assert maximum(x[0], kernel, stride, padding).shape == pooled(0.0, np.max).shape[1:]


def test_max_pooling_of_integers(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, size=(1, 1, 4, 4))
    assert_same(both(lambda x: nn.max_pool2d(x, 2), x), x.reshape(1, 1, 2, 2, 2, 2).max((3, 5)))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: nn.conv2d(np.ones((1, 2, 4, 4)), np.ones((3, 3, 2, 2))), "groups=1"),
    (lambda: nn.conv2d(np.ones((1, 2, 4)), np.ones((3, 2, 2))), "w must have 4 axes"),
    (lambda: nn.conv2d(np.ones((1, 2, 2, 2)), np.ones((3, 2, 5, 5))), "does not fit"),
    (lambda: nn.linear(np.ones((2, 3)), np.ones((3, 2))), r"w is \(out, in\)"),
    (lambda: nn.max_pool2d(np.ones(3), 2), "max_pool2d: x must have 4 axes"),
])
def test_shapes_that_do_not_fit(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        call()


# ----- scipy.special
P = rng.uniform(0.05, 0.95, size=5)
GAMMA = np.array([-3.3, -2.5, -0.7, 0.3, 1.0, 4.5, 20.0, 0.0, -1.0, -2.0, np.inf, np.nan])
SPECIAL = {"erf": X, "erfc": X, "erfinv": P, "expit": X, "logit": P, "log_expit": X, "gammaln": P * 9, "psi": P * 9, "digamma": P * 9,
           "ndtr": X, "entr": np.array([0.0, 0.5, 2.0, -1.0]), "gamma": GAMMA, "rgamma": GAMMA, "gammasgn": GAMMA}


@pytest.mark.parametrize("name", SPECIAL)
def test_special(name: str) -> None:
    x = SPECIAL[name]
    expected = getattr(scipy.special, name)(x)
    np.testing.assert_allclose(both(getattr(special, name), x), expected, rtol=1e-10, atol=1e-14)
    found, _, _ = run_traced(getattr(scipy.special, name), x)          # scipy's ufunc on a handle
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr"])
def test_special_of_two(name: str) -> None:
    x, y = np.array([0.0, 0.0, 1.5, 2.0, 0.0]), np.array([0.0, 2.0, 3.0, 0.5, np.nan])
    expected = getattr(scipy.special, name)(x, y)
    assert_same(both(getattr(special, name), x, y), expected)
    found, _, _ = run_traced(getattr(scipy.special, name), x, y)
    assert_same(found, expected)


def test_gamma_family_of_two(rng: np.random.Generator) -> None:
    x, y = rng.uniform(0.1, 9, 6), rng.uniform(0.1, 9, 6)
    for name in ("beta", "betaln"):
        np.testing.assert_allclose(both(getattr(special, name), x, y), getattr(scipy.special, name)(x, y), rtol=1e-11, atol=1e-13)
    for n in (0, 1, 2, 5):
        np.testing.assert_allclose(both(lambda x, n=n: special.polygamma(n, x), x), scipy.special.polygamma(n, x), rtol=1e-11)
    np.testing.assert_allclose(both(lambda x: special.multigammaln(x + 1, 3), x), scipy.special.multigammaln(x + 1, 3), rtol=1e-12)


def test_special_reductions(rng: np.random.Generator) -> None:
    weights = rng.uniform(size=X.shape)
    for axis in (None, 0, (0, 1)):
        assert_same(both(lambda x, axis=axis: special.logsumexp(x, axis), X), scipy.special.logsumexp(X, axis))
    assert_same(both(lambda x, b: special.logsumexp(x, 1, b), X, weights), scipy.special.logsumexp(X, 1, weights))
    assert_same(both(special.softmax, X), scipy.special.softmax(X))
    assert_same(both(special.log_softmax, X), scipy.special.log_softmax(X))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64", "bool"])
def test_special_promotes_as_scipy(dtype: str) -> None:
    x = np.ones(2, dtype)
    assert trace(scipy.special.expit, (x,)).outputs[0].dtype.numpy == scipy.special.expit(x).dtype
    assert trace(scipy.special.xlogy, (x, x)).outputs[0].dtype.numpy == scipy.special.xlogy(x, x).dtype
    assert trace(special.xlogy, (x, 2.5)).outputs[0].dtype.numpy == (np.float32 if dtype == "float32" else np.float64)


def test_ceil_mode_keeps_the_last_window() -> None:
    x = np.array([[[1.0, 2.0, 3.0, 4.0, 5.0]]])
    np.testing.assert_array_equal(nn.max_pool1d(x, 2, ceil_mode=True), [[[2.0, 4.0, 5.0]]])
    np.testing.assert_array_equal(nn.avg_pool1d(x, 2, ceil_mode=True), [[[1.5, 3.5, 5.0]]])
    np.testing.assert_array_equal(nn.max_pool1d(x[..., :4], 3, 2, 1, ceil_mode=True), [[[2.0, 4.0, 4.0]]])
    # the last window covers an element, one place of padding, which counts, and one beyond it, which does not
    np.testing.assert_array_equal(nn.avg_pool1d(x[..., :4], 3, 2, 1, ceil_mode=True), [[[1.0, 3.0, 2.0]]])
    np.testing.assert_array_equal(nn.avg_pool1d(x[..., :4], 3, 2, 1, True, False), [[[1.5, 3.0, 4.0]]])
    np.testing.assert_array_equal(nn.max_pool1d(x[..., :3], 2, 3, ceil_mode=True), [[[2.0]]])      # none begins in the overhang


@pytest.mark.parametrize("weighted", [False, True])
def test_label_smoothing_with_ignored_targets_and_weights(weighted: bool) -> None:
    x, target = np.sin(np.arange(12.0)).reshape(4, 3), np.array([0, 2, 1, 2])
    weight = np.array([0.5, 2.0, 1.5]) if weighted else np.ones(3)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    kept = target != 2
    loss = -np.where(kept, 0.8 * weight[target] * logs[np.arange(4), target] + 0.2 / 3 * (logs * weight).sum(1), 0.0)
    options = {"ignore_index": 2, "label_smoothing": 0.2, "weight": weight if weighted else None}
    np.testing.assert_allclose(nn.cross_entropy(x, target, reduction="none", **options), loss, rtol=1e-14)
    np.testing.assert_allclose(nn.cross_entropy(x, target, **options), loss.sum() / (weight[target] * kept).sum(), rtol=1e-14)
    goal = np.abs(np.cos(np.arange(12.0))).reshape(4, 3)
    smooth = 0.8 * goal + 0.2 / 3
    options.pop("ignore_index")
    np.testing.assert_allclose(nn.cross_entropy(x, goal, **options), -(smooth * weight * logs).sum(1).mean(), rtol=1e-14)
