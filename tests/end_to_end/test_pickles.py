"""Compiled functions as values: pickles, copies, other processes, what they show of themselves."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import cloudpickle
import numpy as np
import pytest
from scipy.optimize import differential_evolution

import bwcompiler as bw

X = np.arange(1.0, 4.0)


def loss(x: Any, w: Any = 2.0) -> Any:
    return np.sum(np.tanh(x) * w)


@bw.jit
def decorated(x: Any) -> Any:
    return np.sum(x ** 2)


class Model:
    def __init__(self) -> None:
        self.w = np.ones(3)
        self.gradient = bw.grad(self.loss)

    def loss(self, x: Any) -> Any:
        return np.sum(self.w * x ** 2)


FUNCTIONS = {
    "jit": bw.jit(loss),
    "decorated": decorated,
    "statics": bw.jit(loss, static_argnames=("w",)),
    "grad": bw.grad(loss),
    "value_and_grad": bw.value_and_grad(loss),
    "argnums": bw.grad(loss, argnums=(0,)),
    "jacobian": bw.jacobian(loss),
    "hessian": bw.hessian(loss),
    "program": bw.compile(loss, X),
}


def same(one: Any, two: Any) -> None:
    for mine, other in zip(bw.tree.leaves(one), bw.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("copier", [lambda f: pickle.loads(pickle.dumps(f)), lambda f: cloudpickle.loads(cloudpickle.dumps(f)),
                                    copy.deepcopy, copy.copy], ids=["pickle", "cloudpickle", "deepcopy", "copy"])
def test_copies_compute_the_same(name: str, copier: Any) -> None:
    function = FUNCTIONS[name]
    other = copier(function)
    same(other(X), function(X))
    same(other(X), function(X))
    assert (other is function) == (name == "decorated" and copier is not cloudpickle.loads)


def test_cloudpickle_of_a_lambda() -> None:
    scale = 3.0
    other = cloudpickle.loads(cloudpickle.dumps(bw.grad(lambda x: np.sum(x * scale))))
    assert other(X).tolist() == [3.0] * 3


def test_a_model_that_holds_one_is_copied_with_it() -> None:
    model = Model()
    np.testing.assert_allclose(model.gradient(X), 2 * X)
    other = copy.deepcopy(model)
    other.w *= 10
    np.testing.assert_allclose(other.gradient(X), 20 * X)
    np.testing.assert_allclose(model.gradient(X), 2 * X)


def test_programs_keep_their_backward() -> None:
    program = bw.compile(loss, X, wrt=(0,))
    other = pickle.loads(pickle.dumps(program))
    same(other.backward(X), program.backward(X))


def test_other_processes() -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map(FUNCTIONS["value_and_grad"], [X, 2 * X, 3 * X])
    for k, result in enumerate(found, 1):
        same(result, FUNCTIONS["value_and_grad"](k * X))


def test_workers_of_scipy() -> None:
    found = differential_evolution(FUNCTIONS["decorated"], [(-1.0, 1.0)] * 2, workers=2, updating="deferred", maxiter=3, popsize=4,
                                   seed=0, polish=False)
    assert found.fun < 1.0


# ----- looking
def test_what_it_shows_of_itself() -> None:
    gradient = bw.grad(loss)
    assert repr(gradient) == "<Transformed loss.grad, compiled for 0 kinds of arguments>"
    gradient(X)
    assert repr(gradient) == "<Transformed loss.grad, compiled for 1 kind of arguments>"
    assert [repr(make(loss)) for make in (bw.custom_vjp, bw.custom_jvp, bw.primitive, bw.sparse_jacobian)] == [
        "<custom_vjp loss>", "<custom_jvp loss>", "<primitive loss>", "<SparseDerivative loss.sparse_jacobian>"]
    assert dir(gradient) == ["as_text", "clear_cache", "dump", "explain", "lower"]
    assert dir(bw.compile(loss, X)) == ["adjoint", "as_text", "backward", "cost_analysis", "dump", "explain", "graph",
                                        "memory_analysis", "value_and_backward", "vjp"]
    assert repr(bw.compile(loss, X, 1.0)) == "<compiled loss(x: f64[3], w: weak f64[])>"


def test_stages_of_functions(tmp_path: Any) -> None:
    text = bw.grad(loss).as_text("adjoint", X)
    assert text.startswith("graph loss.vjp(") and "tanh" in text
    assert bw.jit(loss).as_text("forward", X).startswith("graph loss(")
    assert "def backward" in bw.value_and_grad(loss).as_text("py", X, 1.0)
    assert bw.jit(loss).lower(X)(X) == loss(X)
    same(bw.grad(loss).lower(X)(X), bw.grad(loss)(X))
    (path,) = bw.grad(loss).dump(tmp_path / "loss.py", X)
    assert "import numpy" in path.read_text()


def test_explanation_names_what_is_compiled_in() -> None:
    rate, model = 0.5, Model()

    def march(x: Any, n: int, mode: str) -> Any:
        for _ in range(n):
            x = x * rate
        return np.sum(x * model.w) if mode == "sum" else np.mean(x)

    text = bw.grad(march).explain(X, 3, mode="sum")
    assert "n = 3 is compiled in: its value is needed while tracing" in text and "mode = 'sum' is compiled in" in text
    assert "rate is read at every call" in text and "model.w is read at every call" in text
