"""np.matmul, vecdot, matvec and vecmat with their keywords, as NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import compare

if np.lib.NumpyVersion(np.__version__) < "2.2.0":
    pytest.skip("np.matvec and np.vecmat are of NumPy 2.2", allow_module_level=True)
_rng = np.random.default_rng(53)
A, B, V = _rng.normal(size=(2, 3, 4)), _rng.normal(size=(2, 3, 4)), _rng.normal(size=3)
CALLS: dict[str, Callable[..., Any]] = {
    "vecdot": lambda a, b, v: (np.vecdot(a, b, keepdims=True), np.vecdot(a, b, axis=0, keepdims=True), np.vecdot(a, b, axis=1),
                               np.vecdot(a, b.mT, axes=[1, -1, ()]), np.vecdot(a, b.mT, axes=[1, -1]), np.vecdot(a * 1j, b, keepdims=True),
                               np.vecdot(a, b, axes=[1, 1, 0], keepdims=True), np.vecdot(a, b, axes=[0, 0], keepdims=True)),
    "matmul": lambda a, b, v: (np.matmul(a, b, axes=[(-2, -1), (-1, -2), (-1, -2)]), np.matmul(a, v, axes=[(-1, -2), 0, 0]),
                               np.matmul(a, b.T, axes=[(0, 1), (1, 2), (0, 1)]), np.matmul(v, v, axes=[0, 0, ()]),
                               np.matmul(a, b.mT, out=np.zeros((2, 3, 3)), order="F")),
    "matvec and vecmat": lambda a, b, v: (np.matvec(a, v, axes=[(-1, -2), -1, 0]), np.vecmat(v, a, axes=[0, (1, 2), 0]),
                                          np.vecmat(v * 1j, a), np.matvec(a.mT, v)),
    "dtypes": lambda a, b, v: (np.vecdot(a, b, dtype=np.complex128), np.matvec(a.mT, v, dtype=np.complex128),
                               np.matmul(a, b.mT, dtype=np.complex128)),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_numpy(name: str) -> None:
    compare(CALLS[name], A, B, V)
    for found, expected in zip(bw.jit(CALLS[name])(A, B, V), CALLS[name](A, B, V), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["vecdot", "matmul", "matvec and vecmat"])
def test_derivatives(name: str) -> None:
    check_derivatives(lambda *args: [part for one in CALLS[name](*args) for part in (one.real, one.imag)], A, B, V)


@pytest.mark.parametrize("call", [
    lambda a, v: np.matmul(v, v, axes=[0, 0]), lambda a, v: np.matmul(v, v, keepdims=True), lambda a, v: np.matmul(a, a.mT, axis=0),
    lambda a, v: np.vecmat(v, a, axes=[0, 1, 0]), lambda a, v: np.vecmat(v, a, axes=(0, 1)), lambda a, v: np.vecmat(v, a, axes=[0, (1, 2)]),
    lambda a, v: np.matvec(a.mT, v, dtype=np.int64)])
def test_errors_are_numpys(call: Callable[..., Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as expected:
        call(A, V)
    kind = TypeError if isinstance(expected.value, TypeError) else ValueError
    with pytest.raises(kind, match="test_generalised.py"):
        bw.jit(call)(A, V)
