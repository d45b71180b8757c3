"""z.view(float) and x.view(complex): the same memory as numbers or as their parts, read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import compare

_rng = np.random.default_rng(61)
X = _rng.normal(size=(3, 4))
Z = X[:, ::-1] + 1j * _rng.normal(size=(3, 4))


def _read_parts(z: Any) -> Any:
    return (z.view(np.float64), z.view(float)[:, ::2], z[1].view("f8"), z[:, :2].view(float), z.view(float).view(complex) * 1j,
            z[:, :1].view(float), np.ravel(np.sin(z).view(float)))


def _read_numbers(x: Any) -> Any:
    return (x.view(complex), x.view(np.complex128)[0], x[:, :2].view(complex), x[::-1].view(complex) * 2, (x.view(complex) ** 2).view(float),
            x.reshape(-1).view(complex).reshape(3, 2))


def _written_parts(z: Any) -> Any:
    y = z.copy()
    parts = y.view(float)
    parts[:, 1::2] = 3.0
    parts[0] += 1
    y[1] *= 2
    for k in range(3):
        row = y[k].view(float)
        row[0] -= k
    return y, parts, parts.view(complex)


def _written_numbers(x: Any) -> Any:
    y = x.copy()
    numbers = y.view(complex)
    numbers *= 1j
    y[0] = 5.0
    numbers[1, 0] = 2 + 3j
    return y, numbers


PROGRAMS: dict[Callable[..., Any], Any] = {_read_parts: Z, _read_numbers: X, _written_parts: Z, _written_numbers: X}


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_numpy(program: Callable[..., Any]) -> None:
    compare(program, PROGRAMS[program])
    for found, expected in zip(bw.jit(program)(PROGRAMS[program]), program(PROGRAMS[program]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        assert found.dtype == expected.dtype


@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives(program: Callable[..., Any]) -> None:
    def real(a: Any, b: Any) -> Any:
        found = program(a + 1j * b if PROGRAMS[program] is Z else a * b)
        return [part for one in found for part in ((one.real, one.imag) if np.iscomplexobj(one) else (one,))]
    check_derivatives(real, Z.real.copy(), Z.imag.copy())


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1,)])
def test_nothing_and_one(shape: tuple[int, ...]) -> None:
    compare(lambda z: z.view(np.float32), np.zeros(shape, np.complex64))
    compare(lambda x: x.view(np.complex64), np.zeros((*shape[:-1], 2 * shape[-1]), np.float32))


def test_batches() -> None:
    np.testing.assert_array_equal(bw.vmap(lambda z: z.view(float))(Z), Z.view(float))


@pytest.mark.parametrize("call", [lambda z, x: z.T.view(float), lambda z, x: x[:, :3].view(complex), lambda z, x: x[:, ::2].view(complex),
                                  lambda z, x: x[0, 0].view(complex), lambda z, x: np.asfortranarray(z).view(float)])
def test_what_does_not_lie_so_is_numpys_error(call: Callable[..., Any]) -> None:
    with pytest.raises(ValueError) as expected:
        call(Z, X)
    with pytest.raises(ValueError) as found:
        bw.jit(call)(Z, X)
    assert str(expected.value).split(",")[0][:40] in str(found.value)


def test_other_bits_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="reads the bits of float64"):
        bw.jit(lambda x: x.view(np.int64))(X)
