"""vmap: axes of arguments and results, containers, sizes, errors; against a Python loop."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import ShapeError, SignatureError, TracerError, UnsupportedError

X = np.arange(24.0).reshape(2, 3, 4) / 7 - 1.3
SIZE = {0: 2, 1: 3, 2: 4, -1: 4, -2: 3, -3: 2}


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any


class Pair(NamedTuple):
    first: Any
    second: Any


def module_function(x: Any) -> Any:
    return np.sin(x) * np.sum(x)


# ----- axes
@pytest.mark.parametrize("out_axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("in_axis", SIZE)
def test_axes(in_axis: int, out_axis: int) -> None:
    function = lambda x: np.cumsum(np.sin(x), axis=0) @ np.ones((x.shape[1], 2))
    expected = np.stack([function(np.take(X, k, in_axis)) for k in range(SIZE[in_axis])], out_axis)
    for mapped in (bw.vmap(function, in_axis, out_axis), bw.jit(bw.vmap(function, in_axes=(in_axis,), out_axes=out_axis))):
        np.testing.assert_allclose(mapped(X), expected, rtol=1e-14)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 1), [1, 0], (-1, -2)], ids=str)
def test_two_arguments(axes: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 3)), rng.standard_normal((3, 3))
    pick = lambda a, axis, k: a if axis is None else np.take(a, k, axis)
    function = lambda x, y: np.tanh(x) @ y
    expected = np.stack([function(pick(x, axes[0], k), pick(y, axes[1], k)) for k in range(3)])
    np.testing.assert_allclose(bw.vmap(function, in_axes=axes)(x, y), expected, rtol=1e-14)


def test_containers() -> None:
    rng = np.random.default_rng(0)
    layer = Layer(rng.standard_normal((4, 3, 2)), rng.standard_normal(2))
    tree = {"a": (rng.standard_normal((5, 4)), 2.0), "b": None, "c": [np.arange(4)]}
    function = lambda layer, tree: Pair(tree["a"][0] @ np.ones(5) * layer.weight.sum(0) + layer.bias, {"c": tree["c"][0] * tree["a"][1], "k": 7})
    mapped = bw.vmap(function, in_axes=(Layer(0, None), {"a": (1, None), "b": None, "c": [0]}), out_axes=Pair(1, {"c": 0, "k": None}))
    found = mapped(layer, tree)
    rows = [function(Layer(layer.weight[k], layer.bias), {"a": (tree["a"][0][:, k], 2.0), "b": None, "c": [k]}) for k in range(4)]
    np.testing.assert_allclose(found.first, np.stack([row.first for row in rows], 1), rtol=1e-14)
    assert found.second["c"].tolist() == [0.0, 2.0, 4.0, 6.0] and found.second["k"] == 7
    one_axis = bw.vmap(lambda t: t["a"] * t["b"][0], in_axes=({"a": 0, "b": 1},))         # a prefix
    assert one_axis({"a": np.arange(2.0), "b": (np.ones((3, 2)), np.ones((1, 2)))}).shape == (2, 3)


def test_results_that_are_the_same_for_all() -> None:
    mapped = bw.vmap(lambda x: (x, np.ones(3), 2.0))
    found = mapped(np.arange(2.0))
    assert found[1].shape == (2, 3) and found[2].tolist() == [2.0, 2.0]
    assert bw.vmap(lambda x: (x, np.ones(3)), out_axes=(0, None))(np.arange(2.0))[1].shape == (3,)
    assert bw.vmap(lambda x: x, in_axes=None, axis_size=3)(2.0).tolist() == [2.0] * 3


def test_keyword_arguments_are_mapped_over_axis_0() -> None:
    mapped = bw.vmap(lambda x, *, scale, shift=0.0: x * scale + shift, in_axes=(None,))
    assert mapped(3.0, scale=np.arange(2.0)).tolist() == [0.0, 3.0]
    assert bw.vmap(lambda x, scale: x * scale, in_axes=1)(np.ones((3, 2)), scale=np.arange(2.0)).tolist() == [[0.0] * 3, [1.0] * 3]


def test_static_arguments() -> None:
    assert bw.vmap(lambda x, n: x**n, static_argnums=1)(np.arange(3.0), 2).tolist() == [0.0, 1.0, 4.0]
    assert bw.vmap(lambda x, mode: x + 1 if mode == "up" else x, in_axes=(0, None))(np.arange(2.0), "up").tolist() == [1.0, 2.0]
    assert bw.vmap(lambda x, n: sum(x[k] for k in range(n)), in_axes=(0, None))(np.ones((2, 5)), 3).tolist() == [3.0, 3.0]    # asked for its number


def test_branches_on_elements() -> None:
    assert bw.vmap(lambda x: x if x > 0 else -2 * x)(np.array([1.0, -3.0])).tolist() == [1.0, 6.0]


def test_empty_batch() -> None:
    assert bw.vmap(lambda x: np.sum(x * 2))(np.zeros((0, 3))).shape == (0,)
    assert bw.vmap(lambda x: x @ np.ones((3, 2)), out_axes=1)(np.zeros((0, 5, 3))).shape == (5, 0, 2)


def test_arrays_from_outside_and_dtypes() -> None:
    table = np.arange(6.0).reshape(3, 2)
    look = lambda k: bw.numpy.take(table, k, axis=0) * 2
    found = bw.vmap(look)(np.array([2, 0], np.int32))
    assert found.tolist() == [[8.0, 10.0], [0.0, 2.0]]
    table[:] = 1.0
    assert bw.vmap(look)(np.array([2, 0], np.int32)).tolist() == [[2.0, 2.0]] * 2
    assert bw.vmap(lambda x: x + 1)(np.zeros(2, np.float32)).dtype == np.float32
    assert bw.vmap(lambda x: x > 0)(np.zeros(2)).dtype == bool
    assert bw.vmap(np.sum)(np.ones((2, 3), order="F")).tolist() == [3.0, 3.0]


def test_index_out_of_range_names_the_line() -> None:
    with pytest.raises(IndexError, match=r"test_vmap.py:\d+: .*x\[k\]"):
        bw.vmap(lambda x, k: x[k], in_axes=(None, 0))(np.arange(3.0), np.array([0, 3]))


# ----- composition
def test_nested_maps() -> None:
    product = bw.vmap(bw.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_array_equal(product(np.arange(3.0), np.arange(2.0)), np.outer(np.arange(3.0), np.arange(2.0)))
    deep: Callable[..., Any] = np.sin
    for _ in range(3):
        deep = bw.vmap(deep)
    np.testing.assert_allclose(deep(X), np.sin(X), rtol=1e-15)


def test_gradients_per_example() -> None:
    rng = np.random.default_rng(0)
    w, x, y = rng.standard_normal(4), rng.standard_normal((6, 4)), rng.standard_normal(6)
    loss = lambda w, x, y: (np.tanh(x @ w) - y) ** 2
    values, gradients = bw.vmap(bw.value_and_grad(loss), in_axes=(None, 0, 0))(w, x, y)
    for k in range(6):
        value, gradient = bw.value_and_grad(loss)(w, x[k], y[k])
        np.testing.assert_allclose(values[k], value)
        np.testing.assert_allclose(gradients[k], gradient)
    summed = bw.grad(lambda w: np.sum(bw.vmap(loss, in_axes=(None, 0, 0))(w, x, y)))(w)
    np.testing.assert_allclose(summed, gradients.sum(0))


def test_closures_over_traced_values() -> None:
    inner = lambda x: bw.vmap(lambda y: x * y)(np.arange(3.0))
    assert bw.jit(inner)(2.0).tolist() == [0.0, 2.0, 4.0]
    assert bw.jacobian(inner)(2.0).tolist() == [0.0, 1.0, 2.0]


def test_mutation_stays_inside() -> None:
    def function(x: Any) -> Any:
        x[0] = 10.0
        return np.sum(x)

    x = np.ones((2, 3))
    assert bw.vmap(function)(x).tolist() == [12.0, 12.0]
    assert np.all(x == 1.0)


def test_pickle_and_names() -> None:
    mapped = pickle.loads(pickle.dumps(bw.vmap(module_function, in_axes=1, out_axes=-1)))
    np.testing.assert_allclose(mapped(X), np.stack([module_function(X[:, k]) for k in range(3)], -1))
    made = bw.vmap(module_function)
    assert made.__name__ == "module_function.vmap"
    assert "gradient of" in made.explain(X) and "sin" in made.as_text("forward", X) and made.lower(X)(X).shape == X.shape


def test_later_calls_are_native() -> None:
    mapped = bw.vmap(module_function)
    mapped(X)
    assert mapped._forms and mapped(X).shape == X.shape


# ----- errors
def rejects() -> dict[str, tuple[Callable[[], Any], type[Exception], str]]:
    pair = lambda x, y: x * y

    def assigns() -> Any:
        def outer(total: Any, x: Any) -> Any:
            def add(y: Any) -> Any:
                total[0] += y
                return y
            return bw.vmap(add)(x)
        return bw.jit(outer)(np.zeros(1), np.ones(3))

    return {
        "sizes": (lambda: bw.vmap(pair)(np.ones(3), np.ones(4)), ShapeError, r"axis 0 of x\[3\] has 3, axis 0 of y\[4\] has 4"),
        "axis size": (lambda: bw.vmap(pair, (0, None), axis_size=5)(np.ones(3), 1.0), ShapeError, r"axis_size has 5, axis 0 of x\[3\] has 3"),
        "no such axis": (lambda: bw.vmap(pair, (1, None))(np.ones(3), 1.0), ShapeError, r"x is mapped over axis 1, but it has shape \(3,\)"),
        "negative": (lambda: bw.vmap(pair, (-2, None))(np.ones(3), 1.0), ShapeError, r"x is mapped over axis -2"),
        "number": (lambda: bw.vmap(pair)(np.ones(3), 1.0), ShapeError, "y is mapped over axis 0, but it is a number.*\n.*None in in_axes"),
        "nothing": (lambda: bw.vmap(pair, None)(np.ones(3), 1.0), ShapeError, "nothing is mapped over"),
        "count": (lambda: bw.vmap(pair, (0,))(np.ones(3), 1.0), SignatureError, "in_axes has 1 entries, but <lambda> was called with 2"),
        "container": (lambda: bw.vmap(lambda t: t["a"], ({"b": 0},))({"a": np.ones(3)}), SignatureError, r"in_axes\[0\] .*the entry for t"),
        "deeper": (lambda: bw.vmap(pair, ((0, 0), None))(np.ones(3), 1.0), SignatureError, r"in_axes\[0\] .*a leaf is expected"),
        "no axis": (lambda: bw.vmap(pair, ("rows", None)), SignatureError, "takes integers and None.*'rows'"),
        "float": (lambda: bw.vmap(pair, out_axes=0.0), SignatureError, "out_axes takes integers and None.*0.0"),
        "bool": (lambda: bw.vmap(pair, True), SignatureError, "in_axes takes integers and None.*True"),
        "mapped result": (lambda: bw.vmap(pair, out_axes=None)(np.ones(3), np.ones(3)), ShapeError, "out_axes is None, but that result differs"),
        "result's axis": (lambda: bw.vmap(pair, out_axes=1)(np.ones(3), np.ones(3)), ShapeError, "out_axes is 1, but that result has 1 axes"),
        "result's tree": (lambda: bw.vmap(pair, out_axes=(0, 0))(np.ones(3), np.ones(3)), SignatureError, "out_axes must be like the result"),
        "assigns": (assigns, UnsupportedError, "assigns to an array from outside"),
        "number asked": (lambda: bw.vmap(lambda n: np.ones(n))(np.arange(3)), TracerError, "np.ones"),
    }


@pytest.mark.parametrize("case", rejects())
def test_errors(case: str) -> None:
    call, kind, message = rejects()[case]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("mapped", [
    lambda a, b: bw.vmap(np.linalg.solve, (None, 0))(a, b),
    lambda a, b: bw.vmap(bw.vmap(lambda b: np.linalg.solve(a.T, b)))(b[:, None] * np.ones((2, 1))).sum(1),
    lambda a, b: bw.jacfwd(lambda x: np.linalg.solve(a + np.diag(x * x), x))(b[0]),
    lambda a, b: bw.jacrev(lambda x: np.linalg.solve(a + np.diag(x * x), np.sin(x)))(b[0]),
    lambda a, b: bw.hessian(lambda x: x @ np.linalg.solve(a, x * x))(b[0]),
], ids=["vmap", "vmap of vmap", "jacfwd", "jacrev", "hessian"])
def test_a_matrix_that_all_share_is_factored_once(mapped: Any, rng: Any) -> None:
    """Right-hand sides that are mapped over become columns."""
    a, b = rng.standard_normal((4, 4)) + 4 * np.eye(4), rng.standard_normal((5, 4))
    lowered = bw.jit(mapped).lower(a, b)
    text = lowered.as_text("fused")
    sizes = {line.split("f64")[1] for line in text.splitlines() if "call lu -> " in line}
    assert sizes == {"[5,4]"}
