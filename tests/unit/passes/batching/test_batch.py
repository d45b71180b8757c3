"""Batching: graphs against a loop over the batch, and custom rules under nested Jacobians."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ops.calls.custom import custom_call
from bwcompiler.passes.batching.batch import batch_graph


# ----- rules that differ from the derivative of the function, so that it shows which one is used
@bw.custom_vjp
def itself(x):                                             # f' = f by rule
    return x * x


itself.defvjp(lambda x: (itself(x), itself(x)), lambda out, ct: (ct * out,))


@bw.custom_vjp
def two(x, y):                                             # by rule: df/dx = 3 y, df/dy = sum of 5 x
    return x * y


two.defvjp(lambda x, y: (two(x, y), (x, y)), lambda residuals, ct: (3.0 * ct * residuals[1], 5.0 * np.sum(ct * residuals[0])))

SCALE = np.array([2.0, 3.0])


@bw.custom_vjp
def captures(x):                                           # by rule: f' = SCALE * f, and a constant residual
    return np.sin(x)


captures.defvjp(lambda x: (captures(x), (captures(x), SCALE)), lambda residuals, ct: (ct * residuals[0] * residuals[1] * SCALE / SCALE,))


@bw.custom_vjp
def pair(x):                                               # two outputs; the second has no influence on the gradient
    return np.sum(x), x * 2.0


pair.defvjp(lambda x: (pair(x), None), lambda residuals, cts: (cts[0] * np.full(2, 7.0) + 0.0 * cts[1],))

X = np.array([1.5, 0.5])


def test_the_reported_case():
    assert bw.jacrev(bw.jacrev(itself))(np.array([1.5])).item() == 2.25


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("outer", ["jacobian", "sum of jacobian", "grad"])
def test_f_is_its_own_derivative_at_any_depth(depth, outer):
    derivative = itself
    for _ in range(depth):
        if outer == "jacobian":
            derivative = bw.jacrev(derivative)
        elif outer == "sum of jacobian":
            derivative = (lambda inner: lambda x: np.sum(bw.jacrev(inner)(x), axis=-1))(derivative)
        else:
            derivative = (lambda inner: bw.grad(lambda x: np.sum(inner(x))))(derivative)
    found = derivative(X)
    expected = X * X
    if outer == "jacobian":
        for number in itertools.product(range(2), repeat=depth + 1):
            assert found[number] == (expected[number[0]] if len(set(number)) == 1 else 0.0)
    else:
        np.testing.assert_array_equal(found, expected)


def test_hessian_uses_the_rule():
    hessian = bw.hessian(lambda x: np.sum(itself(x) * x))(X)
    np.testing.assert_allclose(hessian, np.diag(X ** 3 + 2 * X ** 2), rtol=1e-15)        # f'' x + 2 f', all f


def test_a_primal_that_is_not_batched_gets_the_sum():
    def function(x, y):
        return two(x, y)
    dx, dy = bw.jacrev(function, argnums=(0, 1))(X, 4.0)
    np.testing.assert_array_equal(dx, np.diag([12.0, 12.0]))
    np.testing.assert_array_equal(dy, 5.0 * X)
    # d/dx of (the derivative by y, which the rule says is 5 x): mapped over x's unit seeds
    np.testing.assert_array_equal(bw.jacrev(bw.jacrev(function, 1), 0)(X, 4.0), np.diag([5.0, 5.0]))
    np.testing.assert_array_equal(bw.jacrev(bw.jacrev(function, 0), 1)(X, 4.0), np.diag([3.0, 3.0]))
    np.testing.assert_array_equal(bw.jacrev(lambda x: two(np.ones(2), np.sum(x)))(X), np.full((2, 2), 5.0 * 1.0))


def test_rules_that_capture_and_constant_residuals():
    value = np.sin(X)
    np.testing.assert_allclose(np.diag(bw.jacrev(captures)(X)), SCALE * value, rtol=1e-15)
    second = bw.jacrev(bw.jacrev(captures))(X)
    np.testing.assert_allclose([second[k, k, k] for k in range(2)], SCALE ** 2 * value, rtol=1e-15)


def test_several_outputs():
    first, second = bw.jacrev(pair)(X)
    np.testing.assert_array_equal(first, [7.0, 7.0])
    np.testing.assert_array_equal(second, np.zeros((2, 2)))
    np.testing.assert_array_equal(bw.jacrev(lambda x: bw.grad(lambda x: pair(x)[0] ** 2)(x))(X), np.full((2, 2), 98.0))


def test_the_call_is_still_a_call():
    graph = trace(lambda x, y: two(itself(x), y), (X, np.float64(2.0))).graph
    mapped, flags = batch_graph(graph, [True, False], 3)
    verify(mapped)
    assert flags == [True] and sum(value.op is custom_call for value in mapped.body) == 2
    x = np.arange(6.0).reshape(3, 2)
    [found] = interpret(mapped, [x, np.float64(2.0)])
    np.testing.assert_array_equal(found, np.stack([interpret(graph, [row, np.float64(2.0)])[0] for row in x]))


def test_what_does_not_depend_on_the_batch_is_computed_once():
    graph = trace(lambda x, y: np.exp(y) * x, (X, X)).graph
    mapped, _ = batch_graph(graph, [True, False], 5)
    assert [value.shape for value in mapped.body if value.op.name == "exp"] == [(2,)]
    unmapped, flags = batch_graph(graph, [False, False], 5)
    assert flags == [False] and unmapped.body == graph.body


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_the_jacobian_of_or_by_one_number_maps_nothing(shape):
    """It is a gradient, or a tangent; products stay products of matrices, also where it is differentiated again."""
    w, x = np.linspace(-1.0, 1.0, 6).reshape(2, 3), np.linspace(0.0, 1.0, 6).reshape(3, 2)

    def function(w):
        return np.sum(np.tanh(w @ x) ** 2).reshape(shape)

    def path(t):
        return np.tanh(np.sum(t) * w) @ x
    both = bw.jacrev(bw.jacrev(function))
    graph = trace(both, [w]).graph
    assert {value.rank for value in trace(bw.jacrev(function), [w]).graph.body if value.op.name == "matmul"} == {2}
    assert graph.outputs[0].shape == (*shape, 2, 3, 2, 3)
    np.testing.assert_allclose(bw.jacrev(function)(w), bw.grad(lambda w: np.sum(function(w)))(w).reshape(*shape, 2, 3), rtol=1e-14)
    np.testing.assert_allclose(both(w), bw.hessian(lambda w: np.sum(function(w)))(w).reshape(*shape, 2, 3, 2, 3), rtol=1e-12, atol=1e-14)
    t = np.full(shape, 0.3)
    found = bw.jacfwd(path)(t)
    assert found.shape == (2, 2, *shape)
    np.testing.assert_allclose(found.reshape(2, 2), bw.jvp(path, (t,), (np.ones(shape),))[1], rtol=1e-14)
    np.testing.assert_allclose(found, bw.jacrev(path)(t), rtol=1e-13)


A, B = np.linspace(-1.0, 1.0, 20).reshape(4, 5), np.linspace(0.5, 2.0, 20).reshape(5, 4)
PRODUCTS = {
    "left": lambda w: w @ B, "right": lambda w: B @ w, "transposed left": lambda w: w.T @ A, "transposed right": lambda w: A @ w.T,
    "both": lambda w: w @ B @ w, "reshaped": lambda w: w.reshape(2, 10) @ B.reshape(10, 2), "vector": lambda w: B @ w[:, 1] + w[2] @ B[:, :1],
    "squares": lambda w: np.sum((B @ np.tanh(w)) ** 2, axis=0), "loop": lambda w: bw.fori_loop(0, 3, lambda t, s: np.tanh(s @ B @ A), w),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("at", [A, A[:, :3] @ np.ones((3, 5))], ids=["distinct", "equal columns"])
def test_columns_of_jacobians_of_products(name, at):
    """With the unit vectors along the last axis, as `jacfwd` has them, and along the first."""
    fun = PRODUCTS[name]
    found = bw.jacfwd(fun)(at)
    np.testing.assert_allclose(found, bw.jacrev(fun)(at), rtol=1e-12, atol=1e-14)
    v = np.cos(np.arange(20.0)).reshape(4, 5)
    np.testing.assert_allclose(np.tensordot(found, v, 2), bw.jvp(fun, (at,), (v,))[1], rtol=1e-12, atol=1e-13)
    second = bw.hessian(lambda w: np.sum(fun(w) ** 2))(at)
    assert second.shape == (4, 5, 4, 5)
    np.testing.assert_allclose(second, np.transpose(second, (2, 3, 0, 1)), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["left", "right", "transposed left", "transposed right"])
def test_elements_of_a_matrix_that_is_not_finite_stay_where_they_are(name):
    wide = np.where(B > 1.9, np.inf, B)
    fun = {"left": lambda w: w @ wide, "right": lambda w: wide @ w, "transposed left": lambda w: w.T @ wide.T,
           "transposed right": lambda w: wide.T @ w.T}[name]
    np.testing.assert_array_equal(bw.jacfwd(fun)(A), bw.jacrev(fun)(A))
    assert not np.isnan(bw.jacfwd(fun)(A)).any()


def test_columns_of_long_jacobians_are_not_transposed():
    graph = trace(bw.hessian(lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)), [np.ones(20)]).graph
    assert not [value for value in graph.body if value.op.name == "transpose"]
