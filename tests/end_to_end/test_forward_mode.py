"""jvp, linearize, jacfwd, hvp: arguments, trees, dtypes, errors, costs; and calls inside of traces."""

from __future__ import annotations

import copy
import dataclasses
import functools
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import GradientError, SignatureError, TangentError

X = np.array([0.5, -1.25, 0.8, 2.0])
V = np.array([1.0, 0.5, -2.0, 0.25])


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any
    activation: str = "tanh"


class Pair(NamedTuple):
    first: Any
    second: Any


def dense(layer: Layer, x: Any) -> dict[str, Any]:
    assert layer.activation == "tanh"
    return {"out": np.tanh(x @ layer.weight + layer.bias), "sum": np.sum(x)}


def module_function(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


# ----- jvp
def test_values_and_types() -> None:
    out, tangent = bw.jvp(lambda x: np.tanh(x) * 2, (X,), (V,))
    np.testing.assert_allclose(out, np.tanh(X) * 2)
    np.testing.assert_allclose(tangent, 2 * (1 - np.tanh(X) ** 2) * V)
    assert type(tangent) is np.ndarray and tangent.flags.writeable
    out, tangent = bw.jvp(np.sin, (0.3,), (2.0,))
    assert isinstance(out, np.float64) and abs(tangent - 2 * np.cos(0.3)) < 1e-15
    assert bw.jvp(lambda x: x**2, (3,), (1,)) == (9.0, 6.0)                       # Python ints, as in grad


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_are_kept(dtype: type) -> None:
    out, tangent = bw.jvp(lambda x: np.mean(np.exp(2.0 * x) + 1), (X.astype(dtype),), (V.astype(dtype),))
    assert out.dtype == tangent.dtype == dtype
    assert bw.jvp(lambda x: 2 * x, (np.float32(1.5),), (1.0,))[1].dtype == np.float32      # a Python number has the dtype of its primal
    out, tangents = bw.jvp(lambda a, b: (a, a * b), (X.astype(np.float32), X), (V.astype(np.float32), V))
    assert [t.dtype for t in tangents] == [np.float32, np.float64]


def test_trees() -> None:
    rng = np.random.default_rng(0)
    layer = Layer(rng.standard_normal((4, 3)), rng.standard_normal(3))
    change = Layer(rng.standard_normal((4, 3)), rng.standard_normal(3))
    out, tangent = bw.jvp(dense, (layer, X), (change, V))
    slope = 1 - out["out"] ** 2
    np.testing.assert_allclose(tangent["out"], slope * (V @ layer.weight + X @ change.weight + change.bias))
    np.testing.assert_allclose(tangent["sum"], np.sum(V))
    out, tangent = bw.jvp(lambda p: Pair(p["a"] * p["b"][0], [p["b"][1], None]), ({"a": X, "b": (X, 2.0)},), ({"a": V, "b": (None, 3.0)},))
    assert isinstance(tangent, Pair) and tangent.second == [3.0, None]
    np.testing.assert_allclose(tangent.first, V * X)


def test_none_is_zero_anywhere() -> None:
    function = lambda x, tree: (x * tree["a"], tree["b"] + 1.0)
    _, tangent = bw.jvp(function, (X, {"a": X, "b": 2.0}), (V, None))
    np.testing.assert_allclose(tangent[0], V * X)
    assert tangent[1] == 0.0
    assert not bw.jvp(np.sin, (X,), (None,))[1].any()


@pytest.mark.parametrize("zero", [None, np.zeros(4, [("float0", np.void, 0)])], ids=["None", "float0"])
def test_integer_primals_and_outputs(zero: Any) -> None:
    out, tangent = bw.jvp(lambda x, k: (x[k] * k, k + 1, x > 0), (X, np.array([3, 1, 1, 0])), (V, zero))
    np.testing.assert_allclose(tangent[0], V[[3, 1, 1, 0]] * [3, 1, 1, 0])
    assert tangent[1] is None and tangent[2] is None
    assert out[1].tolist() == [4, 2, 2, 1]


ERRORS = {
    "shape": (lambda: bw.jvp(np.sin, (X,), (V[:3],)), r"tangents\[0\] has shape \(3,\), but the primal (x|arg_0).* has shape \(4,\)"),
    "dtype": (lambda: bw.jvp(np.sin, (X,), (V.astype(np.float32),)), r"has dtype float32, but the primal .* has dtype float64\n.*astype"),
    "integer": (lambda: bw.jvp(lambda k: 1.0 * k, (np.arange(3),), (np.arange(3),)), "integers have no tangent\n.*None"),
    "count": (lambda: bw.jvp(np.sin, (X,), (V, V)), "1 primals, but 2 tangents"),
    "no tuples": (lambda: bw.jvp(np.sin, X, V), "must be tuples or lists, got ndarray"),
    "structure": (lambda: bw.jvp(lambda t: t["a"], ({"a": X},), ({"b": V},)), r"tangents\[0\] .*structure of its primal"),
    "leaf for a tree": (lambda: bw.jvp(lambda t: t["a"], ({"a": X},), (V,)), r"tangents\[0\] is one array"),
    "tree for a leaf": (lambda: bw.jvp(lambda x: x, (X,), ([V],)), r"tangents\[0\] .*a leaf is expected"),
    "derivative, shape": (lambda: bw.linearize(np.sin, X)[1](V[:3]), r"tangents\[0\] has shape \(3,\)"),
    "derivative, count": (lambda: bw.linearize(np.sin, X)[1](V, V), "one tangent per primal, 1; got 2"),
    "hvp": (lambda: bw.hvp(lambda x: np.sum(x))(X, V[:3]), r"v has shape \(3,\)"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, message = ERRORS[case]
    with pytest.raises(TangentError, match=message) as found:
        call()
    assert isinstance(found.value, TypeError) and isinstance(found.value, ValueError)


def test_inside_jit_the_error_has_the_same_text() -> None:
    with pytest.raises(TangentError, match=r"tangents\[0\] has shape \(3,\)"):
        bw.jit(lambda x, v: bw.jvp(np.sin, (x,), (v[:3],)))(X, V)


def test_has_aux() -> None:
    function = lambda x: (x**2, {"k": np.argmax(x), "x": x + 1})
    out, tangent, aux = bw.jvp(function, (X,), (V,), has_aux=True)
    np.testing.assert_allclose(out, X**2)
    np.testing.assert_allclose(tangent, 2 * X * V)
    assert aux["k"] == 3 and np.array_equal(aux["x"], X + 1)
    out, derivative, aux = bw.linearize(function, X, has_aux=True)
    assert np.array_equal(out, X**2) and np.array_equal(derivative(V), 2 * X * V) and aux["k"] == 3
    jacobian, aux = bw.jacfwd(function, has_aux=True)(X)
    assert np.array_equal(jacobian, np.diag(2 * X)) and aux["k"] == 3
    with pytest.raises(GradientError, match="pair"):
        bw.jvp(lambda x: x, (X,), (V,), has_aux=True)


def test_masked_branches_are_exact() -> None:
    """The tangent of the branch that is not taken may be nan."""
    x = np.array([-1.0, 0.0, 4.0])
    _, tangent = bw.jvp(lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0.0), (x,), (np.ones(3),))
    assert tangent.tolist() == [0.0, 0.0, 0.25]
    assert np.isfinite(bw.hessian(lambda x: np.sum(np.where(x > 0, np.log(np.abs(x)), 0.0)))(x)).all()


def test_stop_gradient_stops_tangents() -> None:
    assert bw.jvp(lambda x: x * bw.stop_gradient(x), (3.0,), (1.0,))[1] == 3.0


def test_perturbations_of_levels_are_not_confused() -> None:
    assert bw.jvp(lambda x: x * bw.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,))[1] == 1.0
    assert bw.grad(lambda x: bw.jvp(lambda y: x**2 * y**3, (2.0,), (1.0,))[1])(3.0) == 72.0


def test_arrays_from_outside_are_read_at_each_call() -> None:
    scale = np.array([1.0, 2.0, 3.0, 4.0])
    function = lambda x: x * scale
    assert bw.jvp(function, (X,), (V,))[1].tolist() == (V * scale).tolist()
    scale[0] = 10.0
    assert bw.jvp(function, (X,), (V,))[1][0] == 10.0


class Model:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return self.factor * x**2

    def method(self, x: Any) -> Any:
        return self.factor * x


@pytest.mark.parametrize("make", [lambda model: model, lambda model: model.method, lambda model: functools.partial(Model.method, model),
                                  lambda model: bw.jit(model.method)])
def test_other_callables(make: Any) -> None:
    two, three = Model(2.0), Model(3.0)
    for _ in range(2):
        for model in (two, three):
            expected = model.factor * (2 * X if make(model) is model else 1.0) * V
            np.testing.assert_allclose(bw.jvp(make(model), (X,), (V,))[1], expected)
    two.factor = 5.0
    assert bw.jvp(make(two), (X,), (V,))[1][0] in (5.0, 10.0 * X[0])


def test_what_was_compiled_goes_with_the_function() -> None:
    import gc
    import weakref

    def made() -> Any:
        function = lambda x: x * 2
        bw.jvp(function, (X,), (V,))
        bw.vjp(function, X)
        bw.linearize(function, X)
        return weakref.ref(function)

    alive = made()
    gc.collect()
    assert alive() is None


def test_wrapped_functions_have_their_own_derivative() -> None:
    """functools.wraps copies the attributes of a function."""
    inner = lambda x: x * 2
    bw.jvp(inner, (X,), (V,))
    outer = functools.wraps(inner)(lambda x: x * 3)
    assert np.array_equal(bw.jvp(outer, (X,), (V,))[1], 3 * V)


# ----- linearize
def test_linearize() -> None:
    out, derivative = bw.linearize(lambda x, y: {"p": np.tanh(x) * y, "k": np.argmax(x), "c": np.ones(2)}, X, 2.0)
    assert out["k"] == 3
    for v, w in ((V, 1.0), (2 * V, 0.0)):
        tangent = derivative(v, w)
        np.testing.assert_allclose(tangent["p"], (1 - np.tanh(X) ** 2) * v * 2.0 + np.tanh(X) * w)
        assert tangent["k"] is None and tangent["c"].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(derivative(None, 1.0)["p"], np.tanh(X))
    np.testing.assert_allclose(bw.vmap(derivative, in_axes=(0, None))(np.eye(4), 0.0)["p"], np.diag((1 - np.tanh(X) ** 2) * 2.0))


def test_the_derivative_is_at_the_primal_as_it_was() -> None:
    x = X.copy()
    _, derivative = bw.linearize(np.sin, x)
    x[:] = 0.0
    np.testing.assert_allclose(derivative(V), np.cos(X) * V)
    np.testing.assert_allclose(bw.jit(lambda v: derivative(v) * 2)(V), 2 * np.cos(X) * V)


def test_pullbacks_inside_of_traces() -> None:
    _, pullback = bw.vjp(lambda x, k: (np.tanh(x) * 2, k), X, 3)
    rows = bw.vmap(lambda seed: pullback((seed, None))[0])(np.eye(4))
    np.testing.assert_allclose(rows, np.diag(2 * (1 - np.tanh(X) ** 2)))
    np.testing.assert_allclose(bw.grad(lambda s: np.sum(pullback((s * V, 0.0))[0] ** 2))(1.0), np.sum(2 * (2 * (1 - np.tanh(X) ** 2) * V) ** 2))
    with pytest.raises(SignatureError, match="into= and scale="):
        bw.jit(lambda seed: pullback((seed, None), scale=2.0))(V)


# ----- jacobians, hvp
@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1,), -1])
def test_jacobians_agree(argnums: Any) -> None:
    rng = np.random.default_rng(1)
    m, x = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    function = lambda m, x, scale=1.0: {"p": scale * (m @ x), "s": np.sum(x), "c": np.ones(2)}
    for kwargs in ({}, {"scale": 2.0}):
        expected = bw.jacrev(function, argnums)(m, x, **kwargs)
        for other in (bw.jacfwd, bw.jacobian):
            found = other(function, argnums)(m, x, **kwargs)
            assert bw.tree.structure(found) == bw.tree.structure(expected)
            for one, two in zip(bw.tree.leaves(found), bw.tree.leaves(expected), strict=True):
                assert one.dtype == two.dtype
                np.testing.assert_allclose(one, two, atol=1e-15)


def test_jacobian_goes_the_cheaper_way() -> None:
    tall = lambda x: np.concatenate([x, x**2, np.sin(x)])
    wide = lambda x: tall(x)[:2]
    types = lambda transform, f: [value.type for value in transform(f).lower(X).graph.body]
    assert types(bw.jacobian, tall) == types(bw.jacfwd, tall) != types(bw.jacrev, tall)
    assert types(bw.jacobian, wide) == types(bw.jacrev, wide) != types(bw.jacfwd, wide)
    square = lambda x: np.tanh(x[::-1]) * np.sum(x)
    assert types(bw.jacobian, square) == types(bw.jacfwd, square) != types(bw.jacrev, square)


def test_rules_in_loops_are_seen() -> None:
    """A custom_vjp in the body of a loop, whose rule is not linear: its Jacobian and Hessian go backwards."""
    clipped = bw.custom_vjp(lambda x: x * 1.0)
    clipped.defvjp(lambda x: (clipped(x), None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    function = lambda x: bw.fori_loop(0, 2, lambda k, c: clipped(c) * 0.5, x) * np.ones(3)
    assert bw.jacobian(function)(1.0).tolist() == [0.25] * 3
    assert bw.hessian(lambda x: np.sum(function(x)))(1.0) == 0.0


def test_jacobians_refuse_integers() -> None:
    with pytest.raises(GradientError, match="floating-point output; it returned int64"):
        bw.jacfwd(lambda x: np.argsort(x))(X)
    with pytest.raises(GradientError, match="integers have no gradient"):
        bw.jacfwd(lambda k: k * 2.0)(np.arange(3))


def test_empty_and_zero_dimensional() -> None:
    assert bw.jacfwd(np.sin)(np.zeros((0, 2))).shape == (0, 2, 0, 2)
    assert bw.jacfwd(lambda x: np.sum(x))(np.zeros((0,))).shape == (0,)
    assert bw.jvp(np.sum, (np.zeros(0),), (np.zeros(0),))[1] == 0.0
    assert bw.jacfwd(np.sin)(0.5).shape == ()


@pytest.mark.parametrize("argnums", [0, (0, 1), (1,)])
def test_hvp(argnums: Any) -> None:
    function = lambda p, x, k: np.sum(np.sin(p["w"] * x) * x**2) * p["b"] ** k
    p, x = {"w": X, "b": np.float64(1.5)}, X + 1
    v = ({"w": V, "b": np.float64(2.0)}, V * 2)
    chosen = v[0] if argnums == 0 else tuple(v[k] for k in argnums)
    found = bw.hvp(function, argnums)(p, x, 3, chosen)
    gradient = bw.grad(function, argnums)
    numbers = (0,) if argnums == 0 else argnums
    args = lambda h: [bw.tree.map(lambda a, b: a + h * b, one, v[k]) if k in numbers else one for k, one in enumerate((p, x))]
    differences = bw.tree.map(lambda a, b: (a - b) / 2e-6, gradient(*args(1e-6), 3), gradient(*args(-1e-6), 3))
    assert bw.tree.structure(found) == bw.tree.structure(differences)
    for one, two in zip(bw.tree.leaves(found), bw.tree.leaves(differences), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-7)


def test_hvp_takes_static_and_keyword_arguments() -> None:
    function = lambda x, n, *, shift=0.0: sum(np.sum((x + shift) ** k) for k in range(n))
    expected = (2 + 6 * (X + 1.0)) * V
    np.testing.assert_allclose(bw.hvp(function, static_argnums=1)(X, 4, V, shift=1.0), expected)
    np.testing.assert_allclose(bw.hvp(function, static_argnums=-1)(X, 4, V, shift=1.0), expected)
    np.testing.assert_allclose(bw.hvp(function, static_argnames="n")(X, 4, V, shift=1.0), expected)
    np.testing.assert_allclose(bw.hvp(function)(X, 4, V, shift=1.0), expected)
    again = pickle.loads(pickle.dumps(bw.hvp(module_function)))
    np.testing.assert_allclose(again(X, V), (2 * np.cos(X) - X * np.sin(X)) * V)
    np.testing.assert_allclose(copy.deepcopy(bw.hvp(module_function))(X, V), again(X, V))


def test_hvp_needs_a_scalar() -> None:
    with pytest.raises(GradientError, match="hvp needs a function with one scalar output"):
        bw.hvp(lambda x: x)(X, V)
    with pytest.raises(SignatureError, match="v, the vector"):
        bw.hvp(lambda x: x)()


def test_hvp_equals_the_hessian_times_v() -> None:
    np.testing.assert_allclose(bw.hvp(module_function)(X, V), bw.hessian(module_function)(X) @ V, rtol=1e-14)
    np.testing.assert_allclose(bw.jit(bw.vmap(bw.hvp(module_function), in_axes=(None, 0)))(X, np.eye(4)), bw.hessian(module_function)(X), rtol=1e-14)


# ----- costs
def operations(function: Any, *args: Any) -> float:
    """Arithmetic of the compiled graph."""
    return float(sum(value.type.size for value in function.lower(*args).runners.forward().compiled.lowered.simplified.body
                     if value.op.kind in ("elementwise", "reduction") or value.op.name == "matmul"))


def test_costs() -> None:
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((8, 8)), rng.standard_normal((5, 8))
    products = lambda function, *args: sum(
        value.op.name == "matmul" for value in function.lower(*args).runners.forward().compiled.lowered.simplified.body)
    loss = lambda w, x: np.sum(np.tanh(np.tanh(x @ w) @ w) ** 2)
    forward = products(bw.jit(loss), w, x)
    gradient = products(bw.grad(loss), w, x)
    assert forward == 2
    assert products(bw.jit(lambda w, x, v: bw.jvp(lambda w: loss(w, x), (w,), (v,))), w, x, w) <= 2 * forward + 1      # w is in two places
    assert products(bw.hvp(loss), w, x, w) <= 4 * gradient
    assert operations(bw.hvp(loss), w, x, w) <= 4 * operations(bw.grad(loss), w, x)


def test_later_calls_are_native() -> None:
    """A call that is not the first one of its kind does not get to Python."""
    function = lambda x: np.sin(x) * x
    made = bw.api.programs.kept.made_of
    bw.jvp(function, (X,), (V,))
    pushed = made(function, ("jvp", False), lambda: None)
    assert pushed._forms
    _, derivative = bw.linearize(function, X)
    assert isinstance(derivative, type(len))
