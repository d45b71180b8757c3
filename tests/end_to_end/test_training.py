"""Small models trained with compiled steps reach what they must reach; steps agree with the same step in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import nn


def test_least_squares_reaches_the_exact_solution(rng: np.random.Generator) -> None:
    x, true = rng.standard_normal((64, 3)), np.array([1.0, -2.0, 0.5])
    y = x @ true

    @bw.jit
    def step(w):
        return w - 0.3 * bw.grad(lambda w: np.mean((x @ w - y) ** 2))(w)

    w = np.zeros(3)
    for _ in range(200):
        w = step(w)
    np.testing.assert_allclose(w, true, atol=1e-10)


def test_perceptron_learns_xor(rng: np.random.Generator) -> None:
    x = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    y = np.array([0.0, 1, 1, 0])
    parameters = {"w1": rng.standard_normal((2, 8)), "b1": np.zeros(8), "w2": rng.standard_normal(8), "b2": np.zeros(())}

    def loss(p):
        h = np.tanh(x @ p["w1"] + p["b1"])
        z = h @ p["w2"] + p["b2"]
        return np.mean(np.logaddexp(0.0, z) - y * z)

    @bw.jit
    def step(p):
        value, gradient = bw.value_and_grad(loss)(p)
        return value, {name: p[name] - 0.5 * gradient[name] for name in p}

    for _ in range(500):
        value, parameters = step(parameters)
    assert value < 0.02


def test_momentum_step_agrees_with_plain_numpy(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((16, 4)), rng.standard_normal(16)

    def plain(w, v):
        h = np.tanh(x @ w)
        gradient = x.T @ (2 / 16 * (h - y) * (1 - h * h))
        v = 0.9 * v + gradient
        return w - 0.1 * v, v

    @bw.jit
    def compiled(w, v):
        gradient = bw.grad(lambda w: np.mean((np.tanh(x @ w) - y) ** 2))(w)
        v = 0.9 * v + gradient
        return w - 0.1 * v, v

    a = b = (np.zeros(4), np.zeros(4))
    for _ in range(20):
        a, b = plain(*a), compiled(*b)
    np.testing.assert_allclose(b[0], a[0], rtol=1e-12)
    np.testing.assert_allclose(b[1], a[1], rtol=1e-12)


def test_update_in_place_reaches_the_arrays_of_the_caller(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((8, 3)), rng.standard_normal(8)

    @bw.jit
    def step(w, velocity):
        gradient = bw.grad(lambda w: np.mean((x @ w - y) ** 2))(w)
        velocity *= 0.5
        velocity += gradient
        w -= 0.1 * velocity

    w, velocity = np.zeros(3), np.zeros(3)
    assert step(w, velocity) is None
    expected = 2 / 8 * x.T @ -y
    np.testing.assert_allclose(velocity, expected)
    np.testing.assert_allclose(w, -0.1 * expected)


def test_recurrent_network_through_time(rng: np.random.Generator, numeric: Any) -> None:
    w, u, x = rng.standard_normal((3, 3)) * 0.5, rng.standard_normal((2, 3)), rng.standard_normal((6, 4, 2))

    def loss(w):
        h = np.zeros((4, 3))
        for frame in x:
            h = np.tanh(h @ w + frame @ u)
        return np.mean(h**2)

    np.testing.assert_allclose(bw.grad(loss)(w), numeric(loss, w), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_convolutional_net_overfits_a_batch(rng: np.random.Generator, dtype: type) -> None:
    x, labels = rng.standard_normal((6, 1, 8, 8)).astype(dtype), np.array([0, 1, 2, 0, 1, 2])
    parameters = [(rng.standard_normal(shape) * 0.3).astype(dtype) for shape in ((4, 1, 3, 3), (4,), (3, 36), (3,))]

    def loss(parameters):
        w1, b1, w2, b2 = parameters
        h = nn.max_pool2d(nn.relu(nn.conv2d(x, w1, b1)), 2)
        return nn.cross_entropy(nn.linear(h.reshape(6, -1), w2, b2), labels)

    @bw.jit
    def step(parameters):
        value, gradients = bw.value_and_grad(loss)(parameters)
        return value, [p - 0.2 * g for p, g in zip(parameters, gradients, strict=True)]

    for _ in range(60):
        value, parameters = step(parameters)
    assert value < 0.05
    assert all(p.dtype == dtype for p in parameters)
