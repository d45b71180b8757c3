"""Derivatives, compiled functions and methods of ufuncs that loops call."""

import functools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace


def banana(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def noisy(x):
    NOISES.pop()                                   # taking elements out of a list has to happen in every iteration
    return np.sum(x ** 2)


NOISES = []
doubled = bw.custom_vjp(lambda x: 2 * x)
doubled.defvjp(lambda x: (2 * x, None), lambda kept, ct: (2 * ct,))
CALLED = {
    "grad": bw.grad(banana), "jit": bw.jit(np.sin), "vmap": bw.vmap(lambda x: 0.5 * x), "hvp": lambda x: bw.hvp(banana)(x, x),
    "grad of jit": bw.grad(bw.jit(banana)), "jit of grad": bw.jit(bw.grad(banana)), "custom_vjp": doubled,
    "partial": functools.partial(bw.grad(lambda a, x: a * banana(x), 1), 0.5), "grad made there": lambda x: bw.grad(banana)(x),
    "reduce": lambda x: x * np.logaddexp.reduce(x), "accumulate": np.maximum.accumulate, "outer": lambda x: np.multiply.outer(x, x)[0],
}


@pytest.mark.parametrize("name", CALLED)
def test_derivatives_and_compiled_functions_are_called_in_loops(name):
    called = CALLED[name]

    def steps(x):
        for _ in range(12):
            x = x - 1e-3 * called(x)
        return x

    def until(x):
        while np.max(np.abs(called(x))) > 0.5 and np.max(np.abs(x)) < 9:
            x = x - 1e-3 * called(x)
            if x[0] < 0.3:
                break
        return x

    x = np.array([0.5, 0.4, 0.7])
    assert "loop" in {value.op.name for value in trace(steps, (x,)).graph.body}
    for fun in (steps, until):
        np.testing.assert_allclose(bw.jit(fun)(x), fun(x), rtol=1e-12)
    bw.check_grads(lambda x: np.sum(steps(x) ** 2), (x,), order=1)


def test_compiled_functions_that_do_more_than_compute_are_called_in_every_iteration():
    for called in (bw.jit(noisy), bw.grad(noisy)):
        def steps(x, called=called):
            for _ in range(12):
                x = x - 1e-3 * called(x)
            return x

        NOISES[:] = range(100)
        with pytest.warns(bw.errors.StaleValueWarning, match="NOISES.pop"):
            traced = {value.op.name for value in trace(steps, (np.ones(3),)).graph.body}
        assert "loop" not in traced and len(NOISES) <= 88
def test_methods_of_ufuncs_only_compute():
    def shortest(path):
        for k in range(len(path)):
            path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))
        return np.maximum.reduce(path, axis=0)

    path = np.random.default_rng(4).random((9, 9))
    np.testing.assert_array_equal(bw.jit(shortest)(path.copy()), shortest(path.copy()))
    assert not trace(shortest, (path,)).notes


def test_deep_nests_of_short_loops_are_not_traced_once_per_iteration():
    def contraction(a, b):
        total = np.zeros(2)
        for i in range(2):
            for j in range(3):
                for k in range(2):
                    for m in range(3):
                        for n in range(2):
                            total[i] += a[i, j, k] * b[k, m, n] * np.sum(a[i, j, :] * b[:, m, n])
        return total

    def stencil(x):
        total = np.zeros((3, 3))
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    total[i, j] += x[i, j] * x[j, k]
        return total

    rng = np.random.default_rng(5)
    a, b, x = rng.random((2, 3, 2)), rng.random((2, 3, 2)), rng.random((3, 3))
    np.testing.assert_allclose(bw.jit(contraction)(a, b), contraction(a, b), rtol=1e-13)
    np.testing.assert_allclose(bw.jit(stencil)(x), stencil(x), rtol=1e-13)
    assert len(trace(contraction, (a, b)).graph.body) < 20
    assert not any(value.op.regions for value in trace(stencil, (x,)).graph.body)
