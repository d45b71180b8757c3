"""Derivative transforms: nesting, argument selections, containers, auxiliary results, dtypes."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import GradientError, SeedError

FUNCTIONS = {
    "tanh": lambda x: np.sum(np.tanh(x) * x),
    "softmax": lambda x: np.sum(np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x))) * np.arange(4.0)),
    "norm": lambda x: np.sqrt(np.sum(x**2) + 1.0),
    "product": lambda x: np.prod(x),
    "quadratic": lambda x: x @ np.diag([1.0, 2.0, 3.0, 4.0]) @ x + x[0] * x[3],
    "slices": lambda x: np.sum(x[1:] * x[:-1] ** 2) + np.sum(x[::-1] * np.arange(4.0)),
    "where": lambda x: np.sum(np.where(x > 0, np.sqrt(np.abs(x) + 0.1), x**3)),
    "loop": lambda x: np.sum([np.sin(k * x) for k in range(3)][2] * x),
    "maximum": lambda x: np.sum(np.maximum(x, 0.3) ** 2),
    "logsumexp": lambda x: np.log(np.sum(np.exp(x))),
}
X = np.array([0.5, -1.25, 0.8, 2.0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_and_hessian_against_differences(name: str, numeric: Any) -> None:
    function = FUNCTIONS[name]
    gradient = bw.grad(function)
    np.testing.assert_allclose(gradient(X), numeric(function, X), rtol=1e-6, atol=1e-8)
    hessian = bw.hessian(function)(X)
    assert hessian.shape == (4, 4)
    np.testing.assert_allclose(hessian, numeric(gradient, X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_of_gradient(name: str) -> None:
    """The gradient of <grad f, v> is the Hessian times v."""
    v = np.array([1.0, 0.5, -2.0, 0.25])
    product = bw.grad(lambda x: np.sum(bw.grad(FUNCTIONS[name])(x) * v))(X)
    np.testing.assert_allclose(product, bw.hessian(FUNCTIONS[name])(X) @ v, rtol=1e-10, atol=1e-12)


def test_value_and_grad_returns_both() -> None:
    value, gradient = bw.value_and_grad(lambda x: np.sum(x**2))(X)
    assert value == np.sum(X**2)
    assert np.array_equal(gradient, 2 * X)


@pytest.mark.parametrize("argnums", [0, 1, 2, -1, (0,), (0, 1), (2, 0), (0, 1, 2), (-1, 0)], ids=str)
def test_argnums(argnums: Any) -> None:
    arguments = (np.full(2, 3.0), np.full(2, 5.0), np.float64(7.0))
    value, gradient = bw.value_and_grad(lambda a, b, c: np.sum(a * b) * c, argnums=argnums)(*arguments)
    all_ = (np.full(2, 35.0), np.full(2, 21.0), 30.0)
    assert value == 210.0
    if isinstance(argnums, int):
        np.testing.assert_array_equal(gradient, all_[argnums])
        return
    assert isinstance(gradient, tuple) and len(gradient) == len(argnums)
    for number, one in zip(argnums, gradient, strict=True):
        np.testing.assert_array_equal(one, all_[number])


@pytest.mark.parametrize("argnums", [1, (0, 1), -2, True, "x", (0, "x"), None], ids=str)
def test_what_is_no_position_of_an_argument(argnums: Any) -> None:
    with pytest.raises(GradientError, match="argnums=.*the call has 1 positional argument"):
        bw.grad(lambda x: np.sum(x), argnums=argnums)(X)
    if argnums is not None:                                                          # as wrt, everything
        with pytest.raises(GradientError, match="wrt=.*the call has 1 positional argument"):
            bw.compile(lambda x: np.sum(x), X).backward(X, wrt=argnums)


def test_argnums_from_the_end_count_positional_arguments() -> None:
    function = lambda x, y, scale=1.0: np.sum(x * y) * scale
    x, y = np.full(2, 3.0), np.full(2, 5.0)
    for transform in (bw.grad, bw.jacrev, bw.jacfwd, lambda f, k: lambda *a, **b: bw.value_and_grad(f, k)(*a, **b)[1]):
        assert transform(function, -1)(x, y, scale=2.0).tolist() == [6.0, 6.0]
        assert transform(function, -2)(x, y, scale=2.0).tolist() == [10.0, 10.0]
        assert transform(function, -1)(x, y, 2.0) == 30.0
        assert transform(function, (-1, 0))(x, y, scale=2.0)[0].tolist() == [6.0, 6.0]
        assert transform(function, 1)(x, scale=2.0, y=y).tolist() == [6.0, 6.0]
    assert bw.grad(lambda x, n: np.sum(x**n), -2, static_argnames="n")(x, 2).tolist() == [6.0, 6.0]
    assert bw.hvp(function, -1)(x, y, y, scale=2.0).tolist() == [0.0, 0.0]


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any


def test_dictionary_and_list() -> None:
    tree = {"w": [np.full(2, 2.0), np.full(2, 3.0)], "b": np.float64(4.0)}
    gradient = bw.grad(lambda t: np.sum(t["w"][0] * t["w"][1]) * t["b"])(tree)
    assert set(gradient) == {"w", "b"} and isinstance(gradient["w"], list)
    assert gradient["w"][0].tolist() == [12.0, 12.0]
    assert gradient["w"][1].tolist() == [8.0, 8.0]
    assert gradient["b"] == 12.0


def test_named_tuple() -> None:
    gradient = bw.grad(lambda p: np.sum(p.first * p.second))(Pair(np.full(2, 2.0), np.full(2, 3.0)))
    assert isinstance(gradient, Pair)
    assert gradient.first.tolist() == [3.0, 3.0]
    assert gradient.second.tolist() == [2.0, 2.0]


def test_dataclass() -> None:
    layer = Layer(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(2))
    gradient = bw.grad(lambda layer: np.sum(np.array([1.0, 10.0]) @ layer.weight + layer.bias))(layer)
    assert isinstance(gradient, Layer)
    assert gradient.weight.tolist() == [[1.0, 1.0], [10.0, 10.0]]
    assert gradient.bias.tolist() == [1.0, 1.0]


def test_tuples_none_empty_and_ordered_dictionaries() -> None:
    tree = (np.ones(2), None, (), OrderedDict(z=np.full(2, 2.0), a=np.full(2, 3.0)))
    gradient = bw.grad(lambda t: np.sum(t[0] * t[3]["z"] * t[3]["a"]))(tree)
    assert gradient[1] is None and gradient[2] == ()
    assert list(gradient[3]) == ["z", "a"]
    assert gradient[3]["z"].tolist() == [3.0, 3.0]


def test_results_keep_their_structure() -> None:
    result = bw.jit(lambda x: {"twice": 2 * x, "pair": Pair(x, [x + 1]), "none": None})(np.ones(2))
    assert set(result) == {"twice", "pair", "none"} and result["none"] is None
    assert isinstance(result["pair"], Pair)
    assert result["pair"].second[0].tolist() == [2.0, 2.0]


def test_has_aux() -> None:
    def function(x):
        return np.sum(x**2), {"norm": np.sqrt(np.sum(x**2)), "doubled": 2 * x}

    (value, aux), gradient = bw.value_and_grad(function, has_aux=True)(X)
    assert value == np.sum(X**2) and np.array_equal(gradient, 2 * X)
    np.testing.assert_allclose(aux["norm"], np.sqrt(np.sum(X**2)))
    gradient, aux = bw.grad(function, has_aux=True)(X)
    assert np.array_equal(gradient, 2 * X) and np.array_equal(aux["doubled"], 2 * X)
    jacobian, aux = bw.jacobian(lambda x: (x**2, x + 1), has_aux=True)(X)
    assert np.array_equal(jacobian, np.diag(2 * X)) and np.array_equal(aux, X + 1)
    out, pullback, aux = bw.vjp(lambda x: (x**2, x + 1), X, has_aux=True)
    assert np.array_equal(out, X**2) and np.array_equal(aux, X + 1)
    assert np.array_equal(pullback(np.ones(4))[0], 2 * X)


def test_has_aux_needs_a_pair() -> None:
    with pytest.raises(GradientError, match="pair"):
        bw.grad(lambda x: np.sum(x), has_aux=True)(X)


def test_jit_of_grad_and_grad_of_jit() -> None:
    function = lambda x: np.sum(np.sin(x) ** 2)
    expected = np.sin(2 * X)
    for transformed in (bw.grad(function), bw.jit(bw.grad(function)), bw.grad(bw.jit(function)), bw.jit(bw.grad(bw.jit(function)))):
        np.testing.assert_allclose(transformed(X), expected, rtol=1e-14)


def test_grad_inside_jit() -> None:
    step = bw.jit(lambda x, rate: x - rate * bw.grad(lambda x: np.sum(x**2))(x))
    np.testing.assert_allclose(step(X, 0.25), X / 2)


def test_closures_over_traced_values() -> None:
    """Perturbations of different levels must not be confused."""
    inner = lambda x: x * bw.grad(lambda y: x + y)(1.0)
    assert bw.grad(inner)(1.0) == 1.0
    outer = lambda x: bw.grad(lambda y: x**2 * y**3)(2.0)
    assert bw.grad(outer)(3.0) == 72.0
    assert bw.jit(bw.grad(outer))(3.0) == 72.0


def test_vjp_takes_seeds_shaped_as_the_output() -> None:
    out, pullback = bw.vjp(lambda x, y: (x * y, np.sum(x)), X, 2 * X)
    assert np.array_equal(out[0], 2 * X * X)
    gx, gy = pullback((np.ones(4), np.float64(10.0)))
    np.testing.assert_allclose(gx, 2 * X + 10)
    np.testing.assert_allclose(gy, X)
    gx, gy = pullback((None, 1.0))
    assert gx.tolist() == [1.0] * 4 and gy.tolist() == [0.0] * 4
    with pytest.raises(SeedError, match=r"  seed\[0\] has shape \(3,\)"):
        pullback((np.ones(3), 1.0))
    with pytest.raises(SeedError, match="2 outputs"):
        pullback(np.ones(4))


def test_vjp_inside_jit() -> None:
    def product(x, v):
        _, pullback = bw.vjp(np.tanh, x)
        return pullback(v)[0]

    np.testing.assert_allclose(bw.jit(product)(X, X), X * (1 - np.tanh(X) ** 2), rtol=1e-13)


def test_jacobian_shapes_and_values(rng: np.random.Generator) -> None:
    m, x = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    jacobian = bw.jacobian(lambda m, x: m @ x, argnums=(0, 1))(m, x)
    assert jacobian[0].shape == (3, 2, 3, 4) and jacobian[1].shape == (3, 2, 4, 2)
    np.testing.assert_allclose(jacobian[0], np.einsum("ik,lj->ijkl", np.eye(3), x))
    np.testing.assert_allclose(jacobian[1], np.einsum("ik,jl->ijkl", m, np.eye(2)))


def test_jacobian_of_containers() -> None:
    jacobian = bw.jacobian(lambda t: {"square": t["a"] ** 2, "sum": np.sum(t["a"]) * t["b"]})({"a": X, "b": np.float64(2.0)})
    assert np.array_equal(jacobian["square"]["a"], np.diag(2 * X))
    assert jacobian["square"]["b"].tolist() == [0.0] * 4
    assert jacobian["sum"]["a"].tolist() == [2.0] * 4
    assert jacobian["sum"]["b"] == np.sum(X)


def test_stop_gradient() -> None:
    np.testing.assert_array_equal(bw.grad(lambda x: np.sum(x * bw.stop_gradient(x)))(X), X)
    assert bw.grad(lambda x: np.sum(bw.stop_gradient({"x": x})["x"]))(X).tolist() == [0.0] * 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_are_kept(dtype: type) -> None:
    value, gradient = bw.value_and_grad(lambda x: np.mean(np.exp(2.0 * x) + 1))(X.astype(dtype))
    assert value.dtype == dtype and gradient.dtype == dtype
    assert type(gradient) is np.ndarray and gradient.flags.writeable


def test_mixed_precision_gives_each_argument_its_own_dtype() -> None:
    gradients = bw.grad(lambda a, b: np.sum(a * b), argnums=(0, 1))(X.astype(np.float32), X)
    assert [g.dtype for g in gradients] == [np.float32, np.float64]


def test_python_numbers_differentiate_as_float64() -> None:
    for x in (3.0, 3):
        gradient = bw.grad(lambda x: x**2 + 1)(x)
        assert gradient == 6.0 and np.asarray(gradient).dtype == np.float64


def test_independent_argument_has_zero_gradient() -> None:
    gradients = bw.grad(lambda x, y: np.sum(x), argnums=(0, 1))(X, np.ones((2, 3), np.float32))
    assert gradients[1].shape == (2, 3) and gradients[1].dtype == np.float32 and not gradients[1].any()


def test_the_result_is_not_shared_with_the_argument_or_other_calls() -> None:
    identity = bw.jit(lambda x: x)
    x = np.ones(3)
    y = identity(x)
    y[:] = 5
    assert x.tolist() == [1.0, 1.0, 1.0]
    first, second = bw.jit(lambda x: (x, x))(x)
    first[:] = 7
    assert second.tolist() == [1.0, 1.0, 1.0]


def test_static_arguments() -> None:
    power = bw.jit(lambda x, n: x**n if n > 1 else x, static_argnums=1)
    assert power(X, 1).tolist() == X.tolist()
    assert power(X, 2).tolist() == (X**2).tolist()
    named = bw.jit(lambda x, *, axis: np.sum(x, axis=axis), static_argnames="axis")
    assert named(np.ones((2, 3)), axis=0).tolist() == [2.0] * 3


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @bw.jit(static_argnums=0)
    def forward(self, x: Any) -> Any:
        return x * self.factor


def test_methods_with_a_static_object() -> None:
    two, three = Scaled(2.0), Scaled(3.0)
    assert two.forward(X).tolist() == (2 * X).tolist()
    assert three.forward(X).tolist() == (3 * X).tolist()
    assert two.forward(X).tolist() == (2 * X).tolist()


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1), (1,), (1, 4, 1)], ids=str)
@pytest.mark.parametrize("function", [np.sum, np.max, np.prod, np.mean, np.std], ids=lambda f: f.__name__)
def test_reductions_over_axes_of_length_one(shape: tuple[int, ...], function: Any, rng: np.random.Generator) -> None:
    x = rng.standard_normal(shape)
    for axis in range(len(shape)):
        reduced = lambda x, axis=axis: function(np.sin(x), axis=axis)
        np.testing.assert_allclose(bw.jit(reduced)(x), reduced(x), atol=1e-15)
    assert bw.grad(lambda x: np.sum(np.sum(x, axis=0) ** 2))(x).shape == shape


# ----- results and static values
@pytest.mark.parametrize("function", [np.copy, np.positive, lambda x: np.where(x > 0, x, 1.0), lambda x: x, lambda x: x[...],
                                      lambda x: (x * 2, np.copy(x), x.copy()), lambda x: {"a": np.select([x > 0], [x])}])
def test_results_without_axes_are_arrays_where_numpy_gives_arrays(function: Any) -> None:
    for x in (np.array(2.0), np.float64(2.0)):
        for found, expected in zip(bw.tree.leaves(bw.jit(function)(x)), bw.tree.leaves(function(x)), strict=True):
            assert type(found) is type(expected) and found == expected


def test_static_zeros_of_both_signs() -> None:
    function = bw.jit(lambda x, zero: np.copysign(x, zero), static_argnums=1)
    assert [function(2.0, 0.0), function(2.0, -0.0), function(2.0, 0.0)] == [2.0, -2.0, 2.0]
    pair = bw.jit(lambda x, pair: x * pair[0], static_argnums=1)                      # equal tuples, of other types
    assert [pair(np.ones(1, int), one).dtype for one in ((2, 0.0), (2.0, 0.0))] == [np.int64, np.float64]


@pytest.mark.parametrize("fun", [lambda x: x == 1.0, np.argmax, lambda x: {"a": x > 0}, lambda x: (x > 0, x.astype(int))])
def test_a_pullback_without_outputs_that_have_a_derivative(fun: Any) -> None:
    """No seed is the only one there is, and means zero; compiled, inside of a trace and of a program's own pullback."""
    x = np.array([1.0, -2.0, 3.0])
    out, pullback = bw.vjp(fun, x)
    assert bw.tree.leaves(out)[0].dtype.kind in "bi"
    for found in (pullback(None), bw.jit(lambda x: bw.vjp(fun, x)[1](None))(x), bw.compile(fun, x).vjp(x)[1]()):
        np.testing.assert_array_equal(found[0], np.zeros(3))


def test_pullbacks_of_functions_that_need_integers() -> None:
    def repeated(x, n):
        for _ in range(n):
            x = x * 1.5
        return np.sum(x) * n

    for n in (3, 4, 3):
        out, pullback = bw.vjp(repeated, np.ones(3), n)
        assert out == 3 * n * 1.5 ** n
        found, none = pullback(1.0)
        assert found.tolist() == [n * 1.5 ** n] * 3 and none is None
    assert bw.vjp(lambda x, n: x ** n, 2.0, 3)[1](1.0) == (12.0, pytest.approx(8 * np.log(2)))
    with pytest.raises(TypeError, match="must be real number|nothing of the kind"):
        bw.vjp(lambda x, n: x * unknown_kind(n), 2.0, 3)


def unknown_kind(n):
    raise TypeError("nothing of the kind")
