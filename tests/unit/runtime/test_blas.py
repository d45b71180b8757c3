"""BLAS and NumPy's inner loops by address, called through ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from bwcompiler.runtime.addresses import blas, gufuncs

Array = np.ndarray[Any, Any]


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def test_blas_multiplies(rng: np.random.Generator) -> None:
    found = blas.find()
    if found is None:
        pytest.skip("this NumPy has no BLAS to be found")
    integer: Any = ctypes.c_int64 if found.integers_64 else ctypes.c_int32
    pointer = ctypes.c_void_p
    cases: tuple[tuple[Any, int, Any], ...] = ((np.float64, found.routines["dgemm"], ctypes.c_double), (np.float32, found.routines["sgemm"], ctypes.c_float))
    for dtype, place, real in cases:
        left, right = rng.normal(size=(17, 33)).astype(dtype), rng.normal(size=(33, 9)).astype(dtype)
        product = np.empty((17, 9), dtype)
        kinds = [ctypes.c_int32] * 3 + [integer] * 3 + [real, pointer, integer, pointer, integer, real, pointer, integer]
        gemm = ctypes.CFUNCTYPE(None, *kinds)(place)
        gemm(101, 111, 111, 17, 9, 33, 1.0, address(left), 33, address(right), 9, 0.0, address(product), 9)
        np.testing.assert_allclose(product, left @ right, rtol=1e-4 if dtype is np.float32 else 1e-12)


def test_blas_of_numpy_comes_first() -> None:
    import scipy.linalg  # noqa: F401  # maps an OpenBLAS of its own

    blas.find.cache_clear()
    found = blas.find()
    assert found is None or "scipy.libs" not in found.path


def test_number_of_threads() -> None:
    found = blas.find()
    if found is None or not found.set_num_threads:
        pytest.skip("not OpenBLAS")
    get = ctypes.CFUNCTYPE(ctypes.c_int)(found.get_num_threads)
    set_ = ctypes.CFUNCTYPE(None, ctypes.c_int)(found.set_num_threads)
    before = get()
    set_(1)
    assert get() == 1
    set_(before)
    assert get() == before


def run(loop: gufuncs.InnerLoop, arrays: list[Array], dimensions: list[int], steps: list[int]) -> None:
    arguments = (ctypes.c_void_p * len(arrays))(*map(address, arrays))
    sizes, strides = (ctypes.c_ssize_t * len(dimensions))(*dimensions), (ctypes.c_ssize_t * len(steps))(*steps)
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
    prototype(loop.function)(arguments, sizes, strides, loop.data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_batched_cholesky(rng: np.random.Generator, dtype: Any) -> None:
    character = np.dtype(dtype).char
    loop = gufuncs.loop_of_module("numpy.linalg._umath_linalg", "cholesky_lo", f"{character}->{character}")
    assert loop is not None and loop.signature == "(m,m)->(m,m)"
    root = rng.normal(size=(3, 4, 4)).astype(dtype)
    matrices = np.ascontiguousarray(root @ np.conj(root.transpose(0, 2, 1)) + 4 * np.eye(4, dtype=dtype))
    factors = np.empty_like(matrices)
    size = matrices.itemsize
    run(loop, [matrices, factors], [3, 4], [16 * size, 16 * size, 4 * size, size, 4 * size, size])
    np.testing.assert_allclose(factors, np.linalg.cholesky(matrices), rtol=1e-5)


def test_failure_is_nan() -> None:
    loop = gufuncs.loop_of_module("numpy.linalg._umath_linalg", "cholesky_lo", "d->d")
    assert loop is not None
    factor = np.zeros((2, 2))
    with np.errstate(invalid="ignore"):
        run(loop, [-np.eye(2), factor], [1, 2], [32, 32, 16, 8, 16, 8])
    assert np.isnan(factor).all()


def test_fft(rng: np.random.Generator) -> None:
    loop = gufuncs.fft_loop("fft", "Dd->D")
    if loop is None:
        pytest.skip("this NumPy has no FFT loops")
    signal, spectrum = rng.normal(size=8) + 1j * rng.normal(size=8), np.empty(8, np.complex128)
    run(loop, [signal, np.ones(()), spectrum], [1, 8, 8], [0, 0, 0, 16, 16])
    np.testing.assert_allclose(spectrum, np.fft.fft(signal))


def test_elementwise_loop() -> None:
    loop = gufuncs.inner_loop(np.add, "dd->d")
    assert loop is not None and loop.signature == ""
    out = np.empty(3)
    run(loop, [np.arange(3.0), np.ones(3), out], [3], [8, 8, 8])
    np.testing.assert_array_equal(out, [1.0, 2.0, 3.0])


def test_what_does_not_exist_is_none() -> None:
    assert gufuncs.loop_of_module("numpy.linalg._umath_linalg", "no_such_function", "d->d") is None
    assert gufuncs.loop_of_module("numpy.linalg._umath_linalg", "cholesky_lo", "i->i") is None
    assert gufuncs.loop_of_module("numpy.no_such_module", "fft", "D->D") is None
