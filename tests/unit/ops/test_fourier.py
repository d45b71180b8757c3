"""Discrete Fourier transforms along an axis: values against the sums that define them, derivatives, batches."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import lower
from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.frontend import trace
from bwcompiler.ir.op import REGISTRY
from bwcompiler.ir.types import C128, F64, tensor
from tests.support.opcases import case, op_tests

rng = np.random.default_rng(3)


def noise(rng, *shape: int):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def by_sums(x, axis, inverse=False, scale=1.0):
    n = x.shape[axis]
    matrix = np.exp((2j if inverse else -2j) * np.pi * np.outer(np.arange(n), np.arange(n)) / n) * scale
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


Z, X = noise(rng, 2, 5, 4), rng.normal(size=(3, 6, 5))
LINES = [noise(rng, size) for size in (1, 2, 3, 8, 13)]

CASES = [
    *[case("fft", Z, axis=axis, inverse=inverse, scale=0.5).gives(by_sums(Z, axis, inverse, 0.5)) for axis in range(3) for inverse in (False, True)],
    *[case("fft", z, axis=0, inverse=False, scale=1.0).gives(by_sums(z, 0)) for z in LINES],
    case("fft", Z.astype(np.complex64), axis=1, inverse=False, scale=1.0).but(smooth=False),
    case("fft", np.zeros((0, 3), complex), axis=1, inverse=False, scale=1.0),
    *[case("rfft", X, axis=axis, scale=2.0).but(holomorphic=False).gives(
        np.take(by_sums(X, axis, False, 2.0), range(X.shape[axis] // 2 + 1), axis)) for axis in range(3)],
    *[case("rfft", z.real, axis=0, scale=1.0).but(holomorphic=False).gives(by_sums(z.real, 0)[:len(z) // 2 + 1]) for z in LINES],
    case("rfft", X.astype(np.float32), axis=2, scale=1.0).but(smooth=False),
    *[case("irfft", Z, axis=axis, points=size, scale=0.25).but(holomorphic=False) for axis, size in ((0, 2), (0, 3), (1, 8), (1, 9), (2, 6), (2, 7))],
    case("irfft", noise(rng, 1), axis=0, points=1, scale=1.0).but(holomorphic=False),
    case("irfft", Z.astype(np.complex64), axis=2, points=6, scale=1.0).but(smooth=False),
]
test_op = op_tests(CASES)


@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_irfft_is_the_inverse(size, rng):
    x = rng.normal(size=(3, size))
    found = REGISTRY["irfft"].reference(REGISTRY["rfft"].reference(x, axis=1, scale=1.0), axis=1, points=size, scale=1.0 / size)
    np.testing.assert_allclose(found, x)


@pytest.mark.parametrize(("name", "type_", "attrs", "error"), [
    ("fft", tensor(F64, (3,)), {"axis": 0, "inverse": False, "scale": 1.0}, DTypeError),
    ("rfft", tensor(C128, (3,)), {"axis": 0, "scale": 1.0}, DTypeError),
    ("irfft", tensor(C128, (3,)), {"axis": 0, "points": 6, "scale": 1.0}, ShapeError),
    ("fft", tensor(C128, (0,)), {"axis": 0, "inverse": False, "scale": 1.0}, ShapeError),
    ("fft", tensor(C128, (3,)), {"axis": 1, "inverse": False, "scale": 1.0}, ShapeError),
])
def test_refused(name, type_, attrs, error):
    with pytest.raises(error):
        REGISTRY[name].shape(type_, **attrs)


@pytest.mark.parametrize("function", [np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft])
@pytest.mark.parametrize("shape, axis", [((131, 300), 1), ((300, 131), 0), ((3, 200, 50), 1), ((2, 90, 128), -1)])
def test_lanes_are_shared_by_threads(function, shape, axis, rng):
    """Any number of threads computes the same bits, and every lane."""
    x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if function in (np.fft.fft, np.fft.ifft, np.fft.irfft) else 0)
    before = bw.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            bw.set_num_threads(threads)
            compiled = bw.jit(lambda x: function(x, axis=axis))
            found += [compiled(x), compiled(x)]
    finally:
        bw.set_num_threads(before)
    np.testing.assert_allclose(found[0], function(x, axis=axis), rtol=1e-12, atol=1e-12)
    assert len({array.tobytes() for array in found}) == 1
    assert "bw_parallel" in lower(trace(lambda x: function(x, axis=axis), (x,)).graph).program.text
