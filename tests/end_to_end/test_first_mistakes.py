"""What newcomers get wrong first: the message says what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import DTypeError, GradientError, TracerError

X = np.array([1.0, 2.0, 3.0])


def _forgets(x: Any) -> None:
    np.sum(x)


async def _waits(x: Any) -> Any:
    return x


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: bw.grad(_forgets)(X), GradientError, "it returned nothing that is a number\n  hint: is a `return` missing?"),
    (lambda: bw.grad(lambda x: (np.sum(x), x))(X), GradientError, "it returned shape (), (3,)\n  hint: return one number; has_aux=True for a pair"),
    (lambda: bw.grad(np.sum, X), GradientError, "grad: argnums= is an array; it says which arguments are differentiated, by their positions\n"
                                                "  hint: bw.grad(f)(x), not bw.grad(f, x)"),
    (lambda: bw.jit(classmethod(lambda cls, x: x)), TypeError, "of type classmethod\n  hint: @classmethod goes above"),
    (lambda: bw.jit(_waits)(X), TracerError, "result is of type coroutine"),                  # and no warning that nobody waited for it
]


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES)
def test_mistake(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value)


@pytest.mark.parametrize(("array", "hint"), [
    (np.array([1, None]), "x.astype(float)"), (np.array(["a"]), "np.unique(x, return_inverse=True)"),
    (np.array(["2020"], "M8[D]"), "(t - t[0]) / np.timedelta64(1, 's')"), (np.zeros(2, [("u", "f8")]), "for name in x.dtype.names"),
    (np.ones(2, np.longdouble), "x.astype(np.float64)"), (np.ones(2, np.clongdouble), "x.astype(np.complex128)")])
def test_dtype(array: Any, hint: str) -> None:
    with pytest.raises(DTypeError, match="x: dtype .* is not supported") as raised:
        bw.jit(lambda x: x)(array)
    assert hint in str(raised.value)
