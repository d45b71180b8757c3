"""What a call costs in every form, for 8 elements: a table, and a budget of 1 µs (`pytest -m slow tests/performance/test_calls.py -s`)."""

from __future__ import annotations

import functools
import itertools
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

pytestmark = pytest.mark.slow

BUDGET = 1e-6
X, W, SEED = np.linspace(0.1, 0.8, 8), np.linspace(1.0, 2.0, 8), np.ones(8)
rate = 0.5


def loss(x: Any, w: Any = 2.0, *, mode: str = "sum") -> Any:
    return np.sum(x * w)


def outer(x: Any, w: Any) -> Any:
    return x * w


def step(x: Any, w: Any) -> Any:
    x -= 0.1 * w
    return np.sum(x)


class Model:
    def __init__(self) -> None:
        self.w, self.l2 = W, 0.1

    @bw.jit
    def loss(self, x: Any) -> Any:
        return np.sum(self.w * x) * self.l2


def forms() -> dict[str, Callable[[], Any]]:
    """Form of call -> a function that makes one."""
    gradient, value, assigns = bw.grad(loss), bw.value_and_grad(loss), bw.jit(step)
    program, matrix = bw.compile(loss, X, W), bw.compile(outer, X, W)
    pullback, model, buffers, target = matrix.vjp(X, W)[1], Model(), (np.zeros(8), np.zeros(8)), X.copy()
    shapes = itertools.cycle([X, X[:4], np.ones((2, 4))])
    dtypes = itertools.cycle([X, X.astype(np.float32)])
    layouts = itertools.cycle([X, np.repeat(X, 2)[::2], X[::-1]])
    trees = bw.jit(lambda p: sum(np.sum(leaf) for leaf in bw.tree.leaves(p)))
    containers = itertools.cycle([{"a": X}, [X, W], (X,)])
    outside, bound = bw.grad(lambda x: np.sum(x) * rate), functools.partial(value, w=W)
    vjp_pullback = bw.vjp(outer, X, W)[1]
    return {
        "value_and_grad(x)": lambda: value(X), "grad(x, w)": lambda: gradient(X, W), "grad(x, w=w)": lambda: gradient(X, w=W),
        "grad(x, 1.5)": lambda: gradient(X, 1.5), "grad(x, w, mode='sum')": lambda: gradient(X, W, mode="sum"),
        "shapes alternate": lambda: value(next(shapes)), "dtypes alternate": lambda: value(next(dtypes)),
        "layouts alternate": lambda: value(next(layouts)), "trees alternate": lambda: trees(next(containers)),
        "strided": lambda: value(W[::-1]), "mutated argument": lambda: assigns(target, W), "partial": lambda: bound(X),
        "method": lambda: model.loss(X), "reads a global number": lambda: outside(X),
        "program(x, w)": lambda: program(X, W), "program.backward": lambda: program.backward(X, W),
        "backward(grad_outputs=)": lambda: matrix.backward(X, W, grad_outputs=SEED),
        "backward(wrt=)": lambda: program.backward(X, W, wrt=(0,)),
        "backward(into=, scale=)": lambda: program.backward(X, W, into=buffers, scale=0.5),
        "value_and_backward": lambda: program.value_and_backward(X, W), "pullback(seed)": lambda: pullback(SEED),
        "bw.vjp's pullback": lambda: vjp_pullback(SEED),
    }


def test_every_form_of_call() -> None:
    costs = {}
    for name, call in forms().items():
        for _ in range(12):
            call()
        costs[name] = min(timeit.repeat(call, number=2000, repeat=7)) / 2000
    empty = min(timeit.repeat(lambda: None, number=2000, repeat=7)) / 2000
    print("\n" + "\n".join(f"{name:26} {(cost - empty) * 1e9:6.0f} ns" for name, cost in costs.items()))
    assert {name: cost for name, cost in costs.items() if cost - empty > BUDGET} == {}
