"""The options that every transform has: compile-time arguments, by position and by name, and control flow as it runs."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import SignatureError

X = np.array([1.0, 2.0])
SHAPE = (2, 3)


def power(x: Any, shape: Any, scale: Any) -> Any:
    """Needs the numbers behind shape and scale; scale ((x0 + x1) + (x0² + x1²))."""
    total = 0.0
    for k in range(shape[0]):
        if scale > 1:
            total = total + scale * np.sum(x ** (k + 1))
    return total


def chain(x: Any) -> Any:
    for _ in range(20):
        x = np.sin(x)
    return np.sum(x)


# ----- every transform as a function of (fun, x, the other arguments, options)
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x, *rest, **options: bw.grad(f, **options)(x, *rest),
    "value_and_grad": lambda f, x, *rest, **options: bw.value_and_grad(f, **options)(x, *rest)[1],
    "jacobian": lambda f, x, *rest, **options: bw.jacobian(f, **options)(x, *rest),
    "jacfwd": lambda f, x, *rest, **options: bw.jacfwd(f, **options)(x, *rest),
    "jacrev": lambda f, x, *rest, **options: bw.jacrev(f, **options)(x, *rest),
    "hessian": lambda f, x, *rest, **options: bw.hessian(f, **options)(x, *rest) @ x,
    "hvp": lambda f, x, *rest, **options: bw.hvp(f, **options)(x, *rest, x),
    "vjp": lambda f, x, *rest, **options: bw.vjp(f, x, *rest, **options)[1](1.0)[0],
    "jvp": lambda f, x, *rest, **options: bw.jvp(f, (x, *rest), (x, *[None] * len(rest)), **options)[1],
    "linearize": lambda f, x, *rest, **options: bw.linearize(f, x, *rest, **options)[1](x, *[None] * len(rest)),
    "vmap": lambda f, x, *rest, **options: bw.vmap(f, (0, *[None] * len(rest)), **options)(x[None], *rest),
}
OUTSIDE = {
    **TRANSFORMS,
    "jit": lambda f, x, *rest, **options: bw.jit(f, **options)(x, *rest),
    "sparse_jacobian": lambda f, x, *rest, **options: bw.sparse_jacobian(lambda *args: np.reshape(f(*args), 1), **options)(x, *rest).toarray(),
    "sparse_hessian": lambda f, x, *rest, **options: bw.sparse_hessian(f, **options)(x, *rest).toarray() @ x,
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_static_arguments(name: str) -> None:
    apply = OUTSIDE[name]
    expected = apply(lambda x: power(x, SHAPE, 2.0), X)
    np.testing.assert_allclose(apply(power, X, SHAPE, 2.0, static_argnums=(1, 2), autoloop=False), expected)
    if not name.startswith("sparse_jacobian"):                     # whose function here has no names
        np.testing.assert_allclose(apply(power, X, SHAPE, 2.0, static_argnames=["shape", "scale"], autoloop=False), expected)
    with pytest.raises(SignatureError if name != "jit" else TypeError, match="static_argnum'"):
        apply(power, X, SHAPE, 2.0, static_argnum=1)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_static_arguments_inside_of_traces(name: str) -> None:
    apply = TRANSFORMS[name]
    expected = apply(lambda x: power(x, SHAPE, 2.0), X)
    found = bw.jit(lambda x: apply(power, x, SHAPE, 2.0, static_argnums=(1, 2), autoloop=False), autoloop=False)(X)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_loops_as_they_run(name: str) -> None:
    apply = TRANSFORMS[name]
    np.testing.assert_allclose(apply(chain, X, autoloop=False), apply(chain, X), rtol=1e-14)
    looped, unrolled = (bw.compile(lambda x, on=on: apply(chain, x, autoloop=on), X).as_text("forward") for on in (True, False))
    assert unrolled.count("sin ") >= 20 > looped.count("sin ")


def test_linear_functions_take_static_values_back() -> None:
    """Compile-time arguments have the cotangent None and the tangent None, and other values of them are other programs."""
    for scale in (2.0, 3.0, 2.0):
        out, pullback = bw.vjp(power, X, SHAPE, scale, static_argnums=(1, 2))
        assert (out, pullback(1.0)[1:]) == (scale * 8.0, (None, None))
        assert bw.jvp(power, (X, SHAPE, scale), (X, None, None), static_argnums=(1, 2))[0] == scale * 8.0
        assert bw.linearize(power, X, SHAPE, scale, static_argnums=(-2, -1))[0] == scale * 8.0
    with pytest.raises(SignatureError, match="hashable"):
        bw.vjp(power, X, [2, 3], 2.0, static_argnums=1)


def test_pickles_keep_options() -> None:
    for function in (bw.grad(power, static_argnums=(1, 2), autoloop=False), bw.hessian(power, static_argnames=("shape", "scale"))):
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(function))(X, SHAPE, 2.0), function(X, SHAPE, 2.0))
    assert pickle.loads(pickle.dumps(bw.grad(chain, autoloop=False))).autoloop is False
