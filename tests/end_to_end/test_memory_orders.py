"""One compiled function called with arguments in several memory orders: traced again where the order decides something, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import SignatureError

X = np.arange(6.0).reshape(2, 3)
ORDERS = (X, np.asfortranarray(X), X[::-1, ::-1], np.arange(24.0).reshape(4, 6)[::2, ::2], X, np.asfortranarray(X))


def test_a_written_reshape() -> None:
    def written(x: Any) -> Any:
        v = x.reshape(-1)
        v[0] = 99.0
        return x * 1

    compiled = bw.jit(written)
    for x in ORDERS:
        one, other = x.copy(order="K"), x.copy(order="K")
        np.testing.assert_array_equal(compiled(one), written(other))
        np.testing.assert_array_equal(one, other)


def test_the_order_of_memory() -> None:
    weights = np.arange(6.0)
    for function in (bw.jit(lambda x: np.sum(x.ravel("K") * weights)), bw.jit(lambda x: np.sum(bw.grad(lambda y: np.sum(y.ravel("K") * weights))(x) * x))):
        for x in ORDERS:
            assert function(x) == np.sum(x.ravel("K") * weights)


def test_one_trace_serves_all_orders() -> None:
    traces = []
    note = traces.append           # which nobody follows: a list is put back where a trace is given up

    def function(x: Any) -> Any:
        note(1)
        return np.concatenate([x.T, x.T]).reshape(-1).sum() + x.ravel()[1]

    compiled = bw.jit(function)
    for x in ORDERS:
        assert compiled(x) == 2 * x.sum() + x.ravel()[1]
    assert len(traces) == 1


def test_a_program_is_for_the_order_it_depends_on() -> None:
    program = bw.compile(lambda x: np.sum(x.ravel("K") * np.arange(6)), X)
    assert program(X) == 55.0
    with pytest.raises(SignatureError, match="memory layout"):
        program(np.asfortranarray(X))
    assert bw.compile(lambda x: np.sum(x.ravel()), X)(np.asfortranarray(X)) == 15.0
