"""`out=`: what fits is written, broadcast where ufuncs do that; what does not fit is an error where NumPy raises one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

X = np.array([[1.0, 2.5, -3.0], [0.5, 4.0, 2.0]])

TAKEN: dict[str, Callable[[Any], Any]] = {
    "broadcast": lambda x: np.add(x, 1, out=np.ones((4, 2, 3))),
    "broadcast of one": lambda x: np.multiply(x[:1, :1], 2, out=np.ones((2, 3))),
    "a narrower float": lambda x: np.exp(x, out=np.zeros((2, 3), np.float32)),
    "positions": lambda x: np.argmax(x, axis=1, out=np.zeros(2, np.int8)),
    "a product": lambda x: np.dot(x, x.T, out=np.zeros((2, 2))),
    "einsum into a narrower float": lambda x: np.einsum("ij->i", x, out=np.zeros(2, np.float32), casting="same_kind"),
    "sums of floats as integers": lambda x: np.sum(x, axis=0, out=np.zeros(3, int)),
    "means, medians and extrema as integers": lambda x: sum(
        fun(x, axis=0, out=np.zeros(3, np.int16)) for fun in (np.mean, np.median, np.max, np.nanmin, np.var, np.nansum)),
    "running sums as integers": lambda x: np.cumsum(x, axis=1, out=np.zeros((2, 3), int)),
    "integers folded in the dtype of out": lambda x: np.floor_divide.reduce(x.astype(int) - 1, axis=0, out=np.zeros(3)),
    "integers accumulated in the dtype of out": lambda x: np.power.accumulate(x[:, :2].astype(np.int8), axis=1, out=np.zeros((2, 2))),
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "fewer elements": lambda x: np.add(x, 1, out=np.zeros((1, 3))),
    "fewer axes": lambda x: np.add(x, 1, out=np.zeros(3)),
    "integers": lambda x: np.add(x, 1, out=np.zeros((2, 3), int)),
    "positions as floats": lambda x: np.argmin(x, axis=1, out=np.zeros(2)),
    "a product in another dtype": lambda x: np.dot(x, x.T, out=np.zeros((2, 2), np.float32)),
    "a chain of products in another dtype": lambda x: np.linalg.multi_dot([x, x.T, x], out=np.zeros((2, 3), np.float32)),
    "einsum into a narrower float": lambda x: np.einsum("ij->i", x, out=np.zeros(2, np.float32)),
    "deviations as integers": lambda x: np.std(x, axis=0, out=np.zeros(3, int)),
    "means without nan as integers": lambda x: np.nanmean(x, axis=0, out=np.zeros(3, int)),
    "a reduction of another shape": lambda x: np.sum(x, axis=0, out=np.zeros((2, 3))),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_fits_is_written(name: str) -> None:
    expected, found = TAKEN[name](X), bw.jit(TAKEN[name])(X)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_an_error(name: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        REFUSED[name](X)
    with pytest.raises((ValueError, TypeError)) as caught:
        bw.jit(REFUSED[name])(X)
    assert str(caught.value).startswith(f"{__file__}:") and "out=" in str(caught.value)


def test_the_gradient_of_what_is_broadcast() -> None:
    def total(x: Any) -> Any:
        y = np.zeros((4, 3))
        np.exp(x, out=y)
        return np.sum(y * np.arange(4.0)[:, None])
    np.testing.assert_allclose(bw.grad(total)(X[0]), 6 * np.exp(X[0]), rtol=1e-14)


@pytest.mark.parametrize("fun", [
    lambda x: x.astype(">f8"), lambda x: np.zeros_like(x, dtype=">f8"), lambda x: np.asarray(x, dtype=">f8"), lambda x: x.view(">f8"),
    lambda x: x.astype(">i4"), lambda x: x + np.full(3, x[0, 0], dtype=">f8"),
])
def test_another_byte_order_is_not_asked_for(fun: Callable[[Any], Any]) -> None:
    with pytest.raises(NotImplementedError, match="has another byte order than this machine") as caught:
        bw.jit(fun)(X)
    assert str(caught.value).startswith(f"{__file__}:")


def test_arguments_of_another_byte_order_are_converted() -> None:
    np.testing.assert_array_equal(bw.jit(lambda x: x * 2)(X.astype(">f8")), 2 * X)
    np.testing.assert_array_equal(bw.jit(lambda x: x.astype("<f8") * 2)(X), 2 * X)


@pytest.mark.parametrize("otypes, x", [("B", X * 200), ("B", X - 3.5), ("b", X.astype(int) * 100), ("H", -X.astype(np.int8)), ("l", X * 1e19)])
def test_elements_of_vectorize_that_are_no_integers_of_its_type(otypes: str, x: Any) -> None:
    def each(x: Any) -> Any:
        return np.vectorize(lambda v: v, otypes=otypes)(x)
    with pytest.raises(OverflowError):
        each(x)
    with pytest.raises(OverflowError, match=f"(?s){__file__}:.*no integer of otypes"):
        bw.jit(each)(x)
    near = np.clip(x, np.iinfo(otypes).min / 2, np.iinfo(otypes).max / 2)
    np.testing.assert_array_equal(bw.jit(each)(near), each(near))
