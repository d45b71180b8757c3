"""LeNet and its parts against PyTorch.  Run with `-m peer` where torch is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import nn

pytestmark = pytest.mark.peer

SHAPES = [(6, 1, 5, 5), (6,), (16, 6, 5, 5), (16,), (120, 400), (120,), (84, 120), (84,), (10, 84), (10,)]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def lenet(parameters: Any, x: Any, conv2d: Callable[..., Any], pool: Callable[..., Any], relu: Callable[..., Any],
          linear: Callable[..., Any]) -> Any:
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = parameters
    x = pool(relu(conv2d(x, w1, b1)), 2)
    x = pool(relu(conv2d(x, w2, b2)), 2)
    x = relu(linear(x.reshape(x.shape[0], -1), w3, b3))
    return linear(relu(linear(x, w4, b4)), w5, b5)


def close(ours: np.ndarray, theirs: Any, tolerance: float) -> None:
    """Equal to `tolerance` of the largest entry."""
    theirs = theirs.detach().numpy()
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert np.abs(ours - theirs).max(initial=0.0) <= tolerance * np.abs(theirs).max(initial=1e-30)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_lenet_gradients(torch: Any, rng: np.random.Generator, batch: int, dtype: type, tolerance: float) -> None:
    bounds = [1 / np.sqrt(np.prod(SHAPES[k - k % 2][1:])) for k in range(10)]
    parameters = [rng.uniform(-b, b, shape).astype(dtype) for b, shape in zip(bounds, SHAPES, strict=True)]
    x, labels = rng.standard_normal((batch, 1, 32, 32)).astype(dtype), rng.integers(0, 10, batch)

    def loss(parameters, x):
        return nn.cross_entropy(lenet(parameters, x, nn.conv2d, nn.max_pool2d, nn.relu, nn.linear), labels)

    value, (gradients, gx) = bw.value_and_grad(loss, argnums=(0, 1))(parameters, x)

    functional = torch.nn.functional
    theirs = [torch.tensor(p, requires_grad=True) for p in parameters]
    tx = torch.tensor(x, requires_grad=True)
    expected = functional.cross_entropy(
        lenet(theirs, tx, functional.conv2d, functional.max_pool2d, functional.relu, functional.linear), torch.tensor(labels))
    expected.backward()
    np.testing.assert_allclose(value, expected.item(), rtol=tolerance)
    for ours, parameter in zip(gradients, theirs, strict=True):
        close(ours, parameter.grad, tolerance)
    close(gx, tx.grad, tolerance)


UNARY = ["relu", "gelu", "silu", "softplus", "sigmoid", "tanh", "elu", "leaky_relu"]


@pytest.mark.parametrize("name", UNARY)
def test_activation(torch: Any, rng: np.random.Generator, name: str) -> None:
    x, seed = 3 * rng.standard_normal((5, 7)), rng.standard_normal((5, 7))
    out, pullback = bw.vjp(getattr(nn, name), x)
    tx = torch.tensor(x, requires_grad=True)
    expected = getattr(torch.nn.functional, name)(tx)
    expected.backward(torch.tensor(seed))
    close(out, expected, 1e-12)
    close(pullback(seed)[0], tx.grad, 1e-12)


CONVOLUTIONS = [("conv1d", (2, 4, 11), (6, 4, 3), {}), ("conv1d", (2, 4, 11), (6, 2, 3), {"groups": 2, "stride": 2}),
                ("conv2d", (2, 3, 9, 8), (4, 3, 3, 2), {"stride": 2, "padding": 1}),
                ("conv2d", (1, 4, 9, 9), (4, 1, 3, 3), {"groups": 4, "padding": 2, "dilation": 2}),
                ("conv3d", (1, 2, 5, 6, 5), (3, 2, 3, 3, 2), {"padding": 1}),
                ("conv_transpose2d", (2, 3, 5, 4), (3, 4, 3, 3), {"stride": 2, "padding": 1})]


@pytest.mark.parametrize(("name", "shape", "weight", "options"), CONVOLUTIONS, ids=str)
def test_convolution(torch: Any, rng: np.random.Generator, name: str, shape: Any, weight: Any, options: dict[str, Any]) -> None:
    x, w = rng.standard_normal(shape), rng.standard_normal(weight)
    b = rng.standard_normal(weight[1] if "transpose" in name else weight[0])
    out, pullback = bw.vjp(lambda x, w, b: getattr(nn, name)(x, w, b, **options), x, w, b)
    seed = rng.standard_normal(out.shape)
    theirs = [torch.tensor(array, requires_grad=True) for array in (x, w, b)]
    expected = getattr(torch.nn.functional, name)(*theirs, **options)
    expected.backward(torch.tensor(seed))
    close(out, expected, 1e-12)
    for ours, array in zip(pullback(seed), theirs, strict=True):
        close(ours, array.grad, 1e-12)


@pytest.mark.parametrize("options", [{}, {"stride": 1}, {"stride": 3, "padding": 1}], ids=str)
@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_pooling(torch: Any, rng: np.random.Generator, name: str, options: dict[str, Any]) -> None:
    x = rng.standard_normal((2, 3, 9, 8))
    out, pullback = bw.vjp(lambda x: getattr(nn, name)(x, 3, **options), x)
    seed = rng.standard_normal(out.shape)
    tx = torch.tensor(x, requires_grad=True)
    expected = getattr(torch.nn.functional, name)(tx, 3, **options)
    expected.backward(torch.tensor(seed))
    close(out, expected, 1e-13)
    close(pullback(seed)[0], tx.grad, 1e-13)


def test_second_order(torch: Any, rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((4, 3)), rng.standard_normal((3, 2))
    ours = bw.grad(lambda w: np.sum(bw.grad(lambda x: np.sum(np.tanh(x @ w)))(x) ** 2))(w)
    tx, tw = torch.tensor(x, requires_grad=True), torch.tensor(w, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.tanh(tx @ tw).sum(), tx, create_graph=True)
    (slope**2).sum().backward()
    close(ours, tw.grad, 1e-12)
