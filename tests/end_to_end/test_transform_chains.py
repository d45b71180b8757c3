"""Deep chains of transforms over loops, branches and custom rules: the same as of the function written out, without any of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.end_to_end.test_transform_pairs import cosine, sine

Function = Callable[[Any], Any]
X = np.array([0.7, -0.4, 1.2])
V = np.array([0.3, -1.0, 0.6])
BATCH = np.stack([X, 0.5 * X + 0.1, -X])


def steps(x: Any, count: Any) -> Any:
    for k in range(count):
        x = 0.8 * np.sin(x) * np.cos(0.3 * k + x[::-1])
    return x


def halved(x: Any) -> Any:
    """While the square is large: as often as the numbers need; rows of a batch end at different times."""
    while np.sum(x * x) > 0.2:
        x = 0.5 * np.sin(x) * (1.0 + x[::-1])
    return x


def written_out(x: Any) -> Any:
    """`halved` by predicates, with more steps than any row takes."""
    for _ in range(8):
        x = np.where(np.sum(x * x) > 0.2, 0.5 * np.sin(x) * (1.0 + x[::-1]), x)
    return x


def carried(wrap: Function) -> Function:
    def function(x: Any) -> Any:
        def body(c: Any, e: Any) -> tuple[Any, Any]:
            return 0.5 * c * np.tanh(e) + x, np.sum(c * e)

        c, ys = bw.scan(wrap(body), x, np.stack([x, x * x, -x]))
        return c * ys
    return function


def carried_written_out(x: Any) -> Any:
    c, ys = x, []
    for e in (x, x * x, -x):
        ys.append(np.sum(c * e))
        c = 0.5 * c * np.tanh(e) + x
    return c * np.stack(ys)


# name: (with loops, branches and rules; written out)
FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "fori_loop": (lambda x: bw.fori_loop(0, 4, lambda k, x: 0.8 * np.sin(x) * np.cos(0.3 * k + x[::-1]), x), lambda x: steps(x, 4)),
    "a captured loop": (lambda x: steps(x, 9), lambda x: bw.jit(steps, autoloop=False)(x, 9)),
    "while": (halved, written_out),
    "while in scan": (lambda x: bw.scan(lambda c, e: (halved(c + e), c), x, np.stack([x, 0.5 * x]))[0],
                      lambda x: written_out(written_out(2 * x) + 0.5 * x)),
    "checkpointed scan": (carried(bw.checkpoint), carried_written_out),
    "scan": (carried(lambda body: body), carried_written_out),
    "cond": (lambda x: bw.cond(np.sum(x) > 0.0, lambda x: np.sin(x) * x[::-1], np.exp, x),
             lambda x: np.where(np.sum(x) > 0.0, np.sin(x) * x[::-1], np.exp(x))),
    "custom_vjp in scan": (lambda x: bw.scan(lambda c, e: (sine(c * e) + e, sine(c)), x, np.stack([x, x * x]))[1].sum(0),
                           lambda x: np.sin(x) + np.sin(np.sin(x * x) + x)),
    "custom_jvp in while": (lambda x: bw.while_loop(lambda s: s[1] < 3, lambda s: (cosine(s[0]) * x, s[1] + 1), (x, 0))[0],
                            lambda x: np.cos(np.cos(np.cos(x) * x) * x) * x),
    "jit in vmap in scan": (lambda x: bw.scan(lambda c, _: (bw.vmap(bw.jit(lambda a: np.sin(a) * a))(c) * x, None), x, None, length=2)[0],
                            lambda x: (lambda c: np.sin(c) * c * x)(np.sin(x) * x * x)),
}
scalar = lambda g: lambda x: np.sum(np.sin(g(x)))
# name: g -> a function of x that takes chains of transforms of it
CHAINS: dict[str, Callable[[Function], Function]] = {
    "itself": lambda g: g,
    "jit of vmap of grad of jit": lambda g: bw.jit(lambda x: bw.vmap(bw.grad(bw.jit(scalar(g))))(BATCH * x)),
    "jacfwd of jacrev of vmap": lambda g: bw.jacfwd(bw.jacrev(lambda x: np.sum(bw.vmap(g)(BATCH * x), axis=0))),
    "vmap of hvp": lambda g: lambda x: bw.vmap(bw.hvp(scalar(g)), (None, 0))(x, np.stack([V, 2 * V])),
    "hessian of vmap of checkpoint": lambda g: bw.hessian(lambda x: np.sum(bw.vmap(bw.checkpoint(g))(BATCH * x) ** 2)),
    "vmap of linearize of vmap": lambda g: lambda x: bw.vmap(bw.linearize(bw.vmap(g), BATCH * x)[1])(np.stack([BATCH, BATCH + 1.0])),
    "vmap of pullback of vmap, mapped along the last axis": lambda g: lambda x: bw.vmap(
        lambda seed: bw.vjp(bw.vmap(g, -1, -1), (BATCH * x).T)[1](seed)[0], -1, -1)(np.stack([BATCH.T, BATCH.T + 1.0], axis=-1)),
    "grad in scan": lambda g: lambda x: bw.scan(lambda c, e: (0.5 * c + 0.1 * bw.grad(scalar(g))(e), None), x, BATCH * x)[0],
    "third derivative along a line": lambda g: bw.grad(lambda x: np.sum(bw.jvp(bw.grad(scalar(g)), (x,), (V,))[1] ** 2)),
}


def evaluated(g: Function) -> dict[str, Any]:
    """All chains of g, traced into one graph, by the interpreter."""
    result = trace(lambda x: [CHAINS[chain](g)(x) for chain in CHAINS], (X,))
    return dict(zip(CHAINS, interpret(result.graph, [X, *result.captured]), strict=True))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_chains(name: str) -> None:
    with_loops, plain = FUNCTIONS[name]
    found, expected = evaluated(with_loops), evaluated(plain)
    for chain in CHAINS:
        np.testing.assert_allclose(found[chain], expected[chain], rtol=1e-9, atol=1e-11, err_msg=chain)
        assert np.any(expected[chain])


@pytest.mark.parametrize("name", ["while in scan", "checkpointed scan", "custom_jvp in while"])
def test_compiled_equals_interpreted(name: str) -> None:
    g, chain = FUNCTIONS[name][0], CHAINS["hessian of vmap of checkpoint"]
    np.testing.assert_allclose(bw.jit(chain(g))(X), evaluated(g)["hessian of vmap of checkpoint"], rtol=1e-11, atol=1e-13)
