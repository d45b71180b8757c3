"""`bwcompiler.numpy`: creation functions that are traced inside a trace, everything else forwarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import bwcompiler.numpy as np
from bwcompiler.frontend import trace
from tests.unit.frontend.comparing import compare, run_traced


def _assignments(x: Any) -> Any:
    y = np.zeros(4)
    y[:3] = x
    y[3] = x[0] * 2
    z = np.zeros((2, 3), numpy.float32)
    z[1] = x
    k = np.empty(3)
    k[...] = 1
    return y, z, k


FORTRAN = numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))


def _like_concrete_arrays(x: Any) -> Any:
    a, b, c, d = np.zeros_like(FORTRAN), np.ones_like(FORTRAN, dtype=numpy.float32), np.empty_like(FORTRAN), np.full_like(FORTRAN, 3)
    a[0] = x
    b += x
    c[:] = x
    c.ravel("K")[1] = 5          # the memory order is that of the array it is like
    d[:, 1] = x[0]
    return a, b, c, d


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "assignment": _assignments, "like": _like_concrete_arrays,
    "array": lambda x: (np.array([x[0], x[1] * 2, 3]), np.array([[x[0], 1], [2, x[1]]], dtype=numpy.float32), np.array([x, x]),
                        np.array([1.0, 2.0]), np.array(x), np.array([x, [1, 2, 3]]), np.array(x[0], ndmin=2)),
    "asarray": lambda x: (np.asarray(x), np.asarray([x[0], x[1]]), np.asarray(x, dtype=numpy.float32)),
    "full": lambda x: (np.full(3, x), np.full((2, 3), x), np.full(2, x[0]), np.full(2, 7), np.full(2, 7, float), np.ones(2, int)),
    "eye": lambda x: (np.eye(3) * x, np.identity(2), np.eye(2, 3, 1, dtype=int)),
    "linspace": lambda x: (np.linspace(0, 1, 4), np.linspace(0, x[1], 4), np.linspace(x[0], x[1], 3, endpoint=False)),
    "arange": lambda x: (np.arange(3) * x, x[np.arange(2)], np.arange(0, 1, 0.25)),
    "forwarded": lambda x: (np.sin(x), np.sum(x), np.stack([x, x]), np.where(x > 0, x, 0), np.linalg.norm(x), np.float32(2) * x,
                            np.pi * x, np.concatenate([x, np.zeros(2)])),
    "object rows": lambda x: np.array([[x[0], -x[1]], [x[1], x[0]]]) @ np.array([x[0], 1.0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_numpy(name: str) -> None:
    """Run on plain arrays by NumPy itself, and traced."""
    compare(FUNCTIONS[name], numpy.array([0.5, -1.5, 2.0]))


def test_outside_of_a_trace_everything_is_an_ndarray() -> None:
    for made in (np.zeros(2), np.ones(2), np.full(2, 3.0), np.array([1]), np.eye(2), np.arange(3), np.linspace(0, 1, 3)):
        assert type(made) is numpy.ndarray
    assert np.zeros(2, int).dtype == numpy.zeros(2, int).dtype


def test_arrays_made_in_a_trace_are_fresh() -> None:
    def fun(x: Any) -> Any:
        y = np.array(x)
        y[0] = 9
        z = np.asarray(x)
        z[1] = 8
        return y

    result = trace(fun, (numpy.ones(3),))
    assert list(result.mutated) == [0]
    actual, mutated, _ = run_traced(fun, numpy.ones(3))
    assert actual.tolist() == [9.0, 1.0, 1.0] and mutated[0].tolist() == [1.0, 8.0, 1.0]


def test_array_namespace() -> None:
    seen: list[Any] = []
    trace(lambda x: seen.append(x.__array_namespace__()) or x, (numpy.ones(2),))
    assert seen == [np]
