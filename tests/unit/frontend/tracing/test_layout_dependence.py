"""Which arguments' memory order a trace depends on, and what NumPy's order decides inside transforms and custom rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend import trace
from bwcompiler.frontend.tracing.boundary.arguments import ArgumentType
from tests.unit.frontend.comparing import compare

X = np.arange(6.0).reshape(2, 3)
F = np.asfortranarray(X)
C = np.arange(24.0).reshape(2, 3, 4)
ORDERS = {"C": X, "F": F, "reversed": X[::-1, ::-1], "sliced": np.arange(24.0).reshape(4, 6)[::2, ::2]}


def _written(x: Any) -> Any:
    v = x.reshape(-1)
    v[0] = 99.0
    return x * 1


def _base_written(x: Any) -> Any:
    v = x.ravel()
    x[0, 0] = 99.0
    return v * 1


def _one_of_two(x: Any, y: Any) -> Any:
    z = x * 2
    v = z.reshape(-1)
    v[0] = 9.0
    return z + y.reshape(x.shape)


def _view_of_a_copy(x: Any) -> Any:
    y = x.copy(order="C")
    v = y.reshape(-1)
    v[0] = 9.0
    return y


def _dead_view(x: Any) -> Any:
    total = np.sum(x.reshape(-1)[1:])
    x[0, 0] = 9.0
    return total + x


def _flat(x: Any) -> Any:
    x.flat[1] = 9.0
    np.put(x, [2], 7.0)
    return x.flat[2]


def _split(x: Any) -> Any:
    v = x.reshape(2, 1, 3)
    v[0] = 9.0
    return x * 1


def _moved_to_a_copy(x: Any) -> Any:
    y = x.T.reshape(-1)
    z = y[1:3]
    y[1] = 9.0
    return x * 1, y, z


def _maybe_contiguous(x: Any) -> Any:
    y = bw.numpy.asarray(x, order="F") if not isinstance(x, np.ndarray) else np.asarray(x, order="F")
    y[0] = 9.0
    return x * 1


# a function of arrays, and the arguments whose memory order decides something in it
DEPENDENT: dict[str, tuple[Callable[..., Any], set[int]]] = {
    "write to a reshape": (_written, {0}),
    "write to the base of a ravel": (_base_written, {0}),
    "result of an operation": (lambda x: _one_of_two(x, x + 1), {0}),
    "concatenation": (lambda x: _written(np.concatenate([x.T, x.T])), {0}),
    "order of memory": (lambda x: np.sum(x.ravel("K") * np.arange(6)), {0}),
    "order of memory, if Fortran": (lambda x: x.ravel("A") * np.arange(6), {0}),
    "flatten": (lambda x: (x + 1).flatten("K"), {0}),
    "transposed": (_moved_to_a_copy, {0}),
    "in a callback": (lambda x: np.apply_along_axis(lambda row: _written(np.concatenate([np.stack([row, row]).T] * 2)), 1, x), {0}),
    "asarray": (_maybe_contiguous, {0}),
    "astype": (lambda x: _written(x.astype(float, order="C", copy=False)), {0}),
    # what depends on no order
    "reshape that is read": (lambda x: x.reshape(-1) * np.arange(6), set()),
    "read after a write": (_dead_view, set()),
    "axes split": (_split, set()),
    "copy in C order": (_view_of_a_copy, set()),
    "flat": (_flat, set()),
    "slices": (lambda x: x[:, 1:].T.__setitem__(0, 1.0), set()),
    "computation": (lambda x: np.linalg.norm(np.sort(x.T @ x, axis=0).ravel()) + np.cumsum(x), set()),
    "one line": (lambda x: x[0].ravel("K") * 2, set()),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", DEPENDENT)
def test_arguments_that_decide(name: str, order: str) -> None:
    function, expected = DEPENDENT[name]
    result = compare(function, ORDERS[order])
    assert result.layout_dependent == expected


def test_only_the_argument_that_is_asked() -> None:
    assert compare(_one_of_two, F, X).layout_dependent == {0}
    assert compare(lambda x, y: _one_of_two(y, x), F, X).layout_dependent == {1}
    assert compare(lambda d: _written(d["b"]) + d["a"], {"a": X, "b": F}).layout_dependent == {1}


def lies_like(argument: ArgumentType, array: Any) -> bool:
    """Whether an array of this type has the same strides, where they mean something."""
    strides = argument.layout.strides()
    if strides is None or array.size < 2:
        return array.size < 2 or array.flags.c_contiguous
    return all(step == stride * array.itemsize for step, stride, extent in zip(array.strides, strides, array.shape, strict=True)
               if extent != 1)


def test_arguments_that_lie_alike() -> None:
    for order, x in ORDERS.items():
        (argument,) = trace(_written, (x,)).argument_types
        assert [other for other, y in ORDERS.items() if lies_like(argument, y)] == [order]
    (argument,) = trace(_written, (X[:1],)).argument_types
    assert lies_like(argument, np.asfortranarray(X[:1])) and lies_like(argument, np.zeros((1, 9))[:, 2:5])
    assert not lies_like(argument, X[:1, ::-1])


def test_no_order_to_depend_on() -> None:
    for x in (np.array([[3.0]]), np.zeros((0, 3))):
        assert compare(lambda x: x.ravel("K") * 2, x).layout_dependent == set()


def test_arguments_without_strides_are_in_c_order() -> None:
    result = trace(_written, (bw.ShapeDtypeStruct((2, 3), np.float64),))
    assert result.layout_dependent == {0} and 0 in result.mutated


@pytest.mark.parametrize("order", ORDERS)
def test_inside_transforms(order: str) -> None:
    weights = np.arange(6.0)
    x = ORDERS[order].copy(order="K") if order != "sliced" else ORDERS[order]
    places = np.arange(6).reshape(2, 3)
    expected = np.empty(6)
    expected[np.ascontiguousarray(places).ravel()] = 0
    order_of_memory = (np.lib.stride_tricks.as_strided(places.copy(), (2, 3)) if x.flags.c_contiguous else places.copy())
    order_of_memory = np.copy(places, order="F") if x.flags.f_contiguous else order_of_memory
    expected[order_of_memory.ravel("K")] = weights

    def loss(y: Any) -> Any:
        return np.sum(y.ravel("K") * weights)

    def loss_of_a_written_view(y: Any) -> Any:
        z = y * 1
        v = z.reshape(-1)
        v[:3] = 0.0
        return np.sum(z * places)

    kept = places.astype(float)
    if not x.flags.f_contiguous:
        kept.reshape(-1)[:3] = 0.0
    np.testing.assert_array_equal(bw.jit(lambda y: bw.grad(loss)(y))(x), expected.reshape(2, 3))
    np.testing.assert_array_equal(bw.jit(lambda y: bw.vjp(loss, y)[1](2.0)[0])(x), 2 * expected.reshape(2, 3))
    np.testing.assert_array_equal(bw.grad(loss_of_a_written_view)(x), kept)
    np.testing.assert_array_equal(bw.jit(lambda y: bw.jacobian(lambda z: z.ravel("K"))(y).sum(0))(x), np.ones((2, 3)))
    inner = trace(lambda y: bw.grad(loss)(y * 2), (x,))
    assert inner.layout_dependent == {0}
    assert trace(lambda y: bw.grad(lambda z: np.sum(z.reshape(-1) ** 2))(y), (x,)).layout_dependent == set()


def test_custom_rules() -> None:
    @bw.custom_vjp
    def line(x: Any) -> Any:
        return x.ravel("K") * 1.0

    line.defvjp(lambda x: (x.ravel("K") * 1.0, None), lambda _, ct: (ct.reshape(3, 2).T,))
    assert bw.grad(lambda x: np.sum(line(x) * np.arange(6)))(F).tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]

    @bw.custom_vjp
    def other(x: Any) -> Any:
        return x * 1.0

    other.defvjp(lambda x: (x.ravel("K").reshape(x.shape), None), lambda _, ct: (ct,))
    with pytest.raises(UnsupportedError, match="memory order of x of other"):
        bw.grad(lambda x: np.sum(other(x)))(F)


def test_unknown_order_names_the_lines() -> None:
    records = np.zeros(6, np.dtype([("a", np.float32), ("b", np.float64)]))["b"].reshape(2, 3)
    assert bw.jit(lambda x: x.reshape(-1) * 2)(records).tolist() == [0.0] * 6
    with pytest.raises(UnsupportedError, match=r"(?s)test_layout_dependence.*written to.*test_layout_dependence.*part of larger records.*hint"):
        trace(_written, (records,))
    with pytest.raises(UnsupportedError, match=r"part of larger records"):
        trace(lambda x: x.ravel("K"), (records,))


def test_long_chains_are_asked_without_recursion() -> None:
    def function(x: Any) -> Any:
        for _ in range(3_000):
            x = x + x[:, :1]
        return x.ravel("K")
    assert trace(function, (F,)).layout_dependent == {0}
