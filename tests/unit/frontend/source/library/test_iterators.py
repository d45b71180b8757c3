"""np.broadcast, np.nditer and np.isfortran of traced arrays: the elements in the order in which they lie in memory, as NumPy has them."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.support.derivatives import check_derivatives

X = np.arange(1.0, 7.0).reshape(2, 3)


def places(x):
    total, elements = 0.0, np.nditer(x, flags=["multi_index", "c_index"])
    for value in elements:
        if value * elements.multi_index[1] > 11.0:
            break
        total = 2 * total + value * elements.multi_index[0] + elements.index
    return total


def written(x):
    y = x * 2
    with np.nditer(y, op_flags=["readwrite"]) as elements:
        for value in elements:
            value[...] = value**2 + 1
    return y


def together(x):
    total, products = 0.0, np.zeros_like(x)
    for a, b, c in np.nditer([x, x[0], products], op_flags=[["readonly"], ["readonly"], ["writeonly"]]):
        c[...] = a * b
        total = 2 * total + a
    return products, total


def shapes(x):
    met = np.broadcast(x, x[0], 1.0)
    return np.zeros(met.shape) + x, met.size, met.ndim, met.nd, met.numiter, [a * b for a, b in np.broadcast(x, x[:, :1])]


FUNCTIONS = {
    "places": places, "written": written, "together": together, "shapes": shapes,
    "reversed": lambda x: [value * 1 for value in np.nditer(x[:, ::-1])],
    "in C order": lambda x: [value * 1 for value in np.nditer(x.T[::-1], order="C")],
    "none": lambda x: [x, *np.nditer(x[:0], flags=["zerosize_ok"])],
    "isfortran": lambda x: (np.isfortran(x), np.isfortran(x.T), np.isfortran(x[0]), np.isfortran(np.ones((2, 2)))),
    "require": lambda x: (np.require(x, np.float32, ["F"]) * 1, np.require(x.T, None, ["C", "O"]), np.require(x, requirements="W")),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, order: str) -> None:
    fun = FUNCTIONS[name]
    found, expected = bw.jit(fun)(X.copy(order)), fun(X.copy(order))
    for one, other in zip(bw.tree.leaves(found), bw.tree.leaves(expected), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["places", "written", "together"])
def test_derivatives(name: str) -> None:
    check_derivatives(FUNCTIONS[name], X)


@pytest.mark.parametrize(("fun", "message"), [
    (lambda x: list(np.nditer(x, flags=["external_loop"])), "c_index and f_index, op_flags and order=, not external_loop"),
    (lambda x: np.nditer(x).finished, "has no finished: write a `for` over it"),
    (lambda x: np.nditer(x)[0], "has no elements: write a `for` over it"),
])
def test_refusals(fun, message) -> None:
    with pytest.raises(UnsupportedError, match="hint: for element in x.ravel") as raised:
        bw.jit(fun)(X)
    assert message in str(raised.value)
