"""Parts of complex numbers, whose derivatives are linear over the real numbers only; casts between real and complex numbers."""

from __future__ import annotations

import numpy as np

from bwcompiler.ir.types import C64, C128, F32, F64
from tests.support.opcases import case, op_tests

Z = np.array([[0.3 + 0.4j, -0.6 + 1.1j, 1.2 - 0.7j], [-0.2 - 0.9j, 2.1 + 0.1j, -1.4 + 0.3j]])
X = np.array([[-1.7, -0.6, 0.3], [0.8, 1.4, 2.6]])
Y = np.array([[0.7, -1.1, 1.9], [2.3, 0.4, -0.9]])
ODD = np.array([complex(x, y) for x in (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0) for y in (np.nan, np.inf, -0.0, 0.0, -2.0)])
EMPTY = np.zeros((2, 0), complex)


def _parts():
    for name in ("real", "imag", "conjugate", "modulus", "reciprocal"):
        yield case(name, Z).but(holomorphic=name == "reciprocal")
        yield case(name, ODD).but(smooth=False)
        yield case(name, np.array(0.4 - 0.3j)).but(holomorphic=False)
        yield case(name, EMPTY).but(holomorphic=False)
        yield case(name, Z.astype(np.complex64)).but(smooth=False)


CASES = [
    *_parts(),
    case("real", Z).but(holomorphic=False).gives(Z.real),
    case("imag", Z).but(holomorphic=False).gives(Z.imag),
    case("make_complex", X, Y).but(holomorphic=False).gives(X + 1j * Y),
    case("make_complex", np.array(1.5), np.array(-0.5)).but(holomorphic=False),
    case("make_complex", ODD.real, ODD.imag).but(smooth=False),
    case("make_complex", X.astype(np.float32), Y.astype(np.float32)).but(smooth=False),
    case("cast", X, dtype=C128).but(holomorphic=False).gives(X.astype(complex)),
    case("cast", Z, dtype=F64).but(holomorphic=False).gives(Z.real),
    case("cast", Z, dtype=C64).but(smooth=False),
    case("cast", Z, dtype=F32).but(smooth=False),
    *[case(name, Z, axes=axes).but(holomorphic=False) for name in ("max", "min") for axes in ((0,), (1,), (0, 1))],
    *[case(name, Z, axes=(1,)) for name in ("argmax", "argmin")],
    *[case(name, Z, axis=1, reverse=reverse).but(holomorphic=False) for name in ("cummax", "cummin") for reverse in (False, True)],
]
test_op = op_tests(CASES)
