"""Every pair of transforms over every family of ops: second derivatives along two directions, against differences.

Each way of taking a derivative is written as (g, v) -> the derivative of g along v, a function of x, so that any two can be nested.
All pairs of one function are traced into one graph, which the interpreter evaluates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.support.gradcheck import directional

Function = Callable[[Any], Any]


# ----- ways of taking a derivative
def by_rows(g: Function, v: Any) -> Function:
    """The pullback of every unit seed, by vmap."""
    def derivative(x: Any) -> Any:
        out, pullback = bw.vjp(g, x)
        rows = bw.vmap(lambda seed: pullback(np.reshape(seed, out.shape))[0])(np.eye(out.size))
        return np.reshape(np.reshape(rows, (out.size, -1)) @ np.ravel(v), out.shape)
    return derivative


DERIVATIVES: dict[str, Callable[[Function, Any], Function]] = {
    "jvp": lambda g, v: lambda x: bw.jvp(g, (x,), (v,))[1],
    "linearize": lambda g, v: lambda x: bw.linearize(g, x)[1](v),
    "jacfwd": lambda g, v: lambda x: np.tensordot(bw.jacfwd(g)(x), v, v.ndim),
    "jacrev": lambda g, v: lambda x: np.tensordot(bw.jacrev(g)(x), v, v.ndim),
    "vjp": by_rows,
    "vmap of jvp": lambda g, v: lambda x: bw.vmap(lambda t: bw.jvp(g, (x,), (t,))[1])(np.stack([v, 2 * v]))[0],
    "jvp of vmap": lambda g, v: lambda x: bw.jvp(bw.vmap(g), (np.stack([2 * x, x]),), (np.stack([0 * v, v]),))[1][1],
    "jacrev of vmap": lambda g, v: lambda x: np.tensordot(bw.jacrev(bw.vmap(g, -1, -1))(x[..., None])[..., 0, :, :, 0], v, v.ndim),
    "jit": lambda g, v: bw.jit(lambda x: bw.jvp(bw.jit(g), (x,), (v,))[1]),
}


# ----- functions, one or more for each family of ops
@bw.custom_vjp
def sine(x):
    return np.sin(x)


sine.defvjp(lambda x: (sine(x), (np.cos(x), sine(x))), lambda residuals, ct: (ct * residuals[0],))


@bw.custom_jvp
def cosine(x):
    return np.cos(x)


cosine.defjvp(lambda primals, tangents: (cosine(*primals), -sine(primals[0]) * tangents[0]))


HOST, SLOPE = bw.primitive(np.sin, lambda x: x), bw.primitive(np.cos, lambda x: x)       # host functions, each the other's derivative
HOST.defvjp(lambda x: (HOST(x), x), lambda x, ct: (ct * SLOPE(x),), traced=True)
SLOPE.defvjp(lambda x: (SLOPE(x), x), lambda x, ct: (-ct * HOST(x),), traced=True)


def updated(x):
    y = np.zeros((4, 3)) * x[0]
    y[1:3] = x[0] * x[1]
    y[:, 1] += np.sin(x[1])[0]
    x = x.copy()
    x[0] *= y[1]
    return y * np.sum(x)


INDEX = np.array([2, 0, 1, 2])
POSITIVE = lambda m: m @ np.swapaxes(m, -1, -2) + 2 * np.eye(m.shape[-1])
SQUARE = lambda x: np.reshape(x, (2, 3))[:, :2] + 0.3 * np.reshape(x, (3, 2))[1:]
FUNCTIONS: dict[str, Function] = {
    "elementwise": lambda x: np.tanh(x) * x / (1.0 + x**2) - np.exp(-x) * np.sqrt(x**2 + 1.0) + np.arctan2(x, 2.0),
    "powers": lambda x: np.abs(x + 2.0) ** (0.5 * x) + np.hypot(x, 1.5) + np.log1p(x * x),
    "special": lambda x: bw.scipy.special.erf(x) * bw.scipy.special.gammaln(x + 3.0) + bw.scipy.special.expit(x),
    "where": lambda x: np.where(x > 0.5, np.log(np.abs(x)) * x, np.maximum(x, -1.0) ** 2) + np.clip(x, -0.7, 1.0) ** 2,
    "sums": lambda x: np.sum(x * x, axis=0) * np.mean(x, axis=-1, keepdims=True) + np.var(x),
    "products": lambda x: np.prod(x, axis=0) + np.max(x * x, axis=-1, keepdims=True) * np.min(x),
    "scans": lambda x: np.cumsum(x * x, axis=1) + np.cumprod(x + 1.5, axis=0) + np.maximum.accumulate(x**3, axis=1),
    "matmul": lambda x: (x @ x.T) @ x + np.einsum("ij,ij->i", x, x)[:, None],
    "layout": lambda x: np.pad(np.concatenate([x.T, x.T[::-1] ** 2]), ((1, 0), (0, 2)))[::2] * np.sum(x.reshape(-1)[1:4]),
    "gathers": lambda x: x.T[INDEX] * np.take(x**2, [1, 1, 0], axis=0)[0, 1] + np.take_along_axis(x, np.array([[0], [2]]), 1)[0],
    "updates": updated,
    "sorts": lambda x: np.sort(x**3, axis=-1) * np.median(x),
    "windows": lambda x: bw.nn.conv1d(x[None], (x * x)[None, :, :2], padding=1),
    "pools": lambda x: bw.nn.avg_pool1d(x[None] ** 3, 2) * bw.nn.max_pool1d(x[None], 2),
    "solve": lambda x: np.linalg.solve(SQUARE(x) + 2 * np.eye(2), x) * np.linalg.inv(SQUARE(x))[0, 0],
    "cholesky": lambda x: np.linalg.cholesky(POSITIVE(SQUARE(x))) * np.linalg.det(POSITIVE(SQUARE(x))),
    "slogdet": lambda x: x * np.linalg.slogdet(POSITIVE(SQUARE(x)))[1],
    "eigh": lambda x: np.linalg.eigh(POSITIVE(SQUARE(x)) + np.diag([0.0, 3.0]))[0] * np.linalg.eigvalsh(POSITIVE(SQUARE(x)))[0],
    "svd": lambda x: np.linalg.svd(x, compute_uv=False) ** 3,
    "qr": lambda x: np.linalg.qr(SQUARE(x) + np.eye(2))[1] ** 2,
    "pinv": lambda x: np.linalg.pinv(x) @ x**2,
    "custom_vjp": lambda x: sine(x * x) * np.sum(sine(x)),
    "custom_jvp": lambda x: cosine(x * x) * np.sum(cosine(x)) + sine(x[0]),
    "scan": lambda x: bw.scan(lambda c, e: (np.sin(c) * e, c * c), x[:, 0], x.T)[1] * x[0, 0],
    "cond": lambda x: bw.cond(x[0, 0] > 0, np.sin, np.cos, x) * x + bw.switch(1, [np.tan, np.tanh, np.exp], x),
    "checkpoint": lambda x: bw.checkpoint(lambda x: np.sin(x) * np.exp(x))(x) ** 2,
    "callback": lambda x: HOST(x * x) * x,
    "roots": lambda x: bw.custom_root(lambda y: y + y**3 - x, x, lambda f, y: bw.fori_loop(0, 40, lambda k, y: y - f(y) / (1 + 3 * y * y), y),
                                      lambda g, t: t / g(np.ones((2, 3)))),
    "random": lambda x: bw.random.weibull_min(bw.random.key(1), 2.0, np.exp(x)) * bw.random.normal(bw.random.key(2), (2, 3)),
    "fori_loop": lambda x: bw.fori_loop(0, 3, lambda k, c: np.tanh(c) * x + np.sum(x) * k, x),
    "while_loop": lambda x: bw.while_loop(lambda c: np.sum(c) < 20.0, lambda c: c * c + x + 1.0, x),
    "softmax": lambda x: bw.nn.softmax(x, axis=-1) * bw.scipy.special.logsumexp(x, axis=0),
}
X = np.array([[0.9, -0.4, 1.3], [0.25, 1.7, -0.8]])
V = np.array([[0.3, -1.0, 0.7], [1.1, 0.2, -0.5]])
W = np.array([[-0.6, 0.4, 0.8], [0.5, -0.9, 1.0]])


SOME = ("jvp", "jacrev", "vmap of jvp", "jacrev of vmap")      # what the others are made of: each mode, alone and in a batch
ALL_PAIRS = ("elementwise", "updates", "custom_vjp", "custom_jvp")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_pairs(name: str) -> None:
    g = FUNCTIONS[name]
    ways = tuple(DERIVATIVES) if name in ALL_PAIRS else SOME
    pairs = [(outer, inner) for outer in ways for inner in ways]

    def all_pairs(x: Any) -> Any:
        return [DERIVATIVES[outer](DERIVATIVES[inner](g, V), W)(x) for outer, inner in pairs]

    first = trace(DERIVATIVES["jvp"](g, V), (X,))
    expected = directional(lambda h: interpret(first.graph, [X + h * W, *first.captured])[0])
    np.testing.assert_allclose(interpret(first.graph, [X, *first.captured])[0], directional(lambda h: g(X + h * V)), rtol=1e-8, atol=1e-8)
    assert bool(np.any(expected))
    result = trace(all_pairs, (X,))
    for pair, found in zip(pairs, interpret(result.graph, [X, *result.captured]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7, err_msg=" of ".join(pair))


@pytest.mark.parametrize("name", ["elementwise", "updates", "cholesky", "custom_vjp"])
def test_compiled_equals_interpreted(name: str) -> None:
    g = FUNCTIONS[name]
    for outer, inner in (("jvp", "jacrev"), ("jacrev", "vmap of jvp"), ("vmap of jvp", "vjp")):
        function = DERIVATIVES[outer](DERIVATIVES[inner](g, V), W)
        result = trace(function, (X,))
        np.testing.assert_allclose(bw.jit(function)(X), interpret(result.graph, [X, *result.captured])[0], rtol=1e-12, atol=1e-12)


def test_three_deep() -> None:
    third = lambda x: bw.vmap(lambda v: bw.jvp(lambda y: bw.jvp(bw.grad(lambda z: np.sum(np.sin(z))), (y,), (v,))[1], (x,), (v,))[1])(np.eye(2))
    np.testing.assert_allclose(bw.jit(third)(np.array([0.5, 2.0])), np.diag(-np.cos([0.5, 2.0])), atol=1e-14)
    assert abs(bw.jvp(bw.grad(bw.grad(bw.grad(np.sin))), (0.3,), (1.0,))[1] - np.sin(0.3)) < 1e-15
