"""`bw.grad(f)(x)` in the body of a loop: the transform is made once, as long as the function is the same."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.target import Target, compiling_for
from tests.support.targets import narrowest

X = np.arange(1.0, 4.0)


def square(x):
    return np.sum(x ** 2)


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def loss(self, x):
        return self.scale * np.sum(x ** 2)


TRANSFORMS: dict[str, Any] = {
    "jit": bw.jit, "grad": bw.grad, "value_and_grad": bw.value_and_grad, "hessian": bw.hessian, "jacobian": bw.jacobian,
    "jacfwd": bw.jacfwd, "jacrev": bw.jacrev, "hvp": bw.hvp, "vmap": bw.vmap, "argnums": functools.partial(bw.grad, argnums=(0,)),
    "static": functools.partial(bw.grad, static_argnums=(-1,)), "nested": lambda f: bw.grad(bw.jit(f)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_same_function_is_transformed_once(name: str) -> None:
    transform = TRANSFORMS[name]
    assert transform(square) is transform(square)
    made = [transform(lambda x: np.sum(x ** 3)) for _ in range(3)]             # one text, which runs three times
    assert made[0] is made[1] is made[2]
    assert made[0] is not transform(square)
    model = Model(2.0)
    assert transform(model.loss) is transform(model.loss) is not transform(Model(2.0).loss)


def test_variables_around_it_are_those_of_the_moment() -> None:
    w = np.ones(3)

    def fun(x):
        return np.sum(w * x ** 2)

    for k in range(4):
        w = np.full(3, 1.0 + k)
        np.testing.assert_allclose(bw.grad(fun)(X), 2 * (1.0 + k) * X)
        np.testing.assert_allclose(bw.grad(lambda x: np.sum(w * x ** 2))(X), 2 * (1.0 + k) * X)
    assert bw.grad(fun)._traces == 2


def test_other_closures_and_defaults_are_other_functions() -> None:
    def make(w):
        return lambda x: np.sum(w * x ** 2)

    def made(w, c=None):
        return lambda x, w=w, *, c=c: np.sum(c * w * x ** 2)

    for k in (1.0, 2.0, 3.0, 1.0, 2.0):
        np.testing.assert_allclose(bw.grad(make(k * np.ones(3)))(X), 2 * k * X)
        np.testing.assert_allclose(bw.grad(made(k * np.ones(3), 2.0))(X), 4 * k * X)
        np.testing.assert_allclose(bw.grad(made(np.ones(3), k))(X), 2 * k * X)


def test_a_function_whose_code_was_replaced_is_traced_anew() -> None:
    def one(x):
        return np.sum(x ** 2)

    def other(x):
        return np.sum(x ** 3)

    def first(x, n=1.0):
        return n * np.sum(x)

    model = Model(1.0)
    loss = Model.loss
    v = np.ones(3)
    try:
        for transform in (lambda f: bw.grad(f)(X), lambda f: bw.jvp(f, (X,), (v,))[1], lambda f: bw.vjp(f, X)[1](1.0)[0],
                          lambda f: bw.linearize(f, X)[1](v)):
            code = one.__code__
            np.testing.assert_allclose(np.sum(transform(one)), np.sum(2 * X))
            one.__code__ = other.__code__
            np.testing.assert_allclose(np.sum(transform(one)), np.sum(3 * X ** 2))
            one.__code__ = code
            np.testing.assert_allclose(np.sum(transform(one)), np.sum(2 * X))
            np.testing.assert_allclose(np.sum(transform(first)), 3.0)
            first.__defaults__ = (2.0,)
            np.testing.assert_allclose(np.sum(transform(first)), 6.0)
            first.__defaults__ = (1.0,)
            np.testing.assert_allclose(np.sum(transform(model.loss)), np.sum(2 * X))
            Model.loss = lambda self, x: np.sum(x)             # type: ignore[method-assign]
            np.testing.assert_allclose(np.sum(transform(model.loss)), 3.0)
            Model.loss = loss                                  # type: ignore[method-assign]
    finally:
        Model.loss = loss                                      # type: ignore[method-assign]


def test_options_that_cannot_be_compared_are_no_obstacle() -> None:
    f = lambda x, n: np.sum(x ** n)
    assert bw.grad(f, argnums=[0])(X, 2)[0].tolist() == (2 * X).tolist()
    assert bw.jit(f, static_argnums=[1]) is not bw.jit(f, static_argnums=[1])
    assert bw.grad(f, 0) is bw.grad(f, 0) is not bw.grad(f, False)
    assert bw.jit(f, mutates=False) is not bw.jit(f, mutates=True)


def test_environment_and_target_count(monkeypatch: pytest.MonkeyPatch) -> None:
    f = lambda x: np.sum(np.log(x))
    plain = bw.jit(f)
    with compiling_for(narrowest()):
        assert (bw.jit(f) is plain) == (narrowest() == Target.host())
    monkeypatch.setenv("BW_CHECK", "nan")
    with pytest.raises(FloatingPointError):
        bw.jit(f)(-X)
    monkeypatch.delenv("BW_CHECK")
    assert bw.jit(f) is plain and np.isnan(bw.jit(f)(-X))


def test_what_is_kept_is_bounded_and_goes_with_the_function() -> None:
    kept = bw.api.programs.kept
    for k in range(2 * kept.TEXTS):
        bw.jit(eval(f"lambda x: x + {k}"))
    assert len(kept._by_text) == kept.TEXTS
    models = [Model(float(k)) for k in range(2 * kept.METHODS)]
    for model in models:
        bw.jit(model.loss)
    assert len(kept._of_methods) == kept.METHODS

    data = np.ones(3)
    big = weakref.ref(data)
    closure = (lambda w: lambda x: x * w)(data)
    assert bw.jit(closure) is bw.jit(closure)
    bw.jit(closure)(X)
    del data, closure
    gc.collect()
    assert big() is None


def test_attributes_of_a_function_are_its_own() -> None:
    def make():
        def f(x):
            return x * f.scale
        return f

    one = make()
    one.scale = 2.0
    assert bw.jit(one)(3.0) == 6.0
    one.scale = 3.0
    assert bw.jit(one)(3.0) == 9.0 and bw.jit(one) is bw.jit(one)
