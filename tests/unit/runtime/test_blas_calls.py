"""BLAS as programs call it: calls that are cut give what whole ones give, and the library's number of threads is as before afterwards."""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import bwcompiler as bw
from bwcompiler.runtime import blas_calls, threads
from bwcompiler.runtime.addresses import blas

_FOUND = blas.find()
pytestmark = pytest.mark.skipif(_FOUND is None or not _FOUND.set_num_threads, reason="needs NumPy's OpenBLAS")
TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
ROW_MAJOR, PLAIN, TRANSPOSED, UPPER, LOWER, NON_UNIT, LEFT, RIGHT = 101, 111, 112, 121, 122, 131, 141, 142
TOLERANCE = {"s": 2e-3, "c": 2e-3, "d": 1e-10, "z": 1e-10}


@pytest.fixture(autouse=True, params=[1, 3])
def count(request: pytest.FixtureRequest) -> Iterator[int]:
    before = bw.get_num_threads()
    bw.set_num_threads(1)                      # NumPy's own products, which give the values expected
    threads.pool().set_threads(request.param)
    threads.pool().wake_up()
    yield request.param
    bw.set_num_threads(before)


def outside() -> int:
    assert _FOUND is not None
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(_FOUND.get_num_threads)())


def call(name: str, *arguments: Any) -> None:
    """Call `bw_<name>`: arrays by pointer, floats as scalars of the type."""
    types, values, kept = [], [], []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            types.append(ctypes.c_void_p)
            values.append(argument.ctypes.data)
        elif isinstance(argument, float) and name[0] in "cz":
            kept.append(np.array([argument], TYPES[name[0]]))
            types.append(ctypes.c_void_p)
            values.append(kept[-1].ctypes.data)
        elif isinstance(argument, float):
            types.append(ctypes.c_float if name[0] == "s" else ctypes.c_double)
            values.append(argument)
        else:                                # an enumeration, or an extent (`_word`)
            types.append(ctypes.c_int32 if isinstance(argument, int) else type(argument))
            values.append(argument)
    ctypes.CFUNCTYPE(None, *types)(blas_calls.symbols()[f"bw_{name}"])(*values)


@pytest.fixture
def draw(rng: np.random.Generator) -> Callable[..., Any]:
    def draw(letter: str, *shape: int) -> Any:
        real = rng.standard_normal(shape)
        return (real + 1j * rng.standard_normal(shape) if letter in "cz" else real).astype(TYPES[letter])
    return draw


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(3, 5, 7), (261, 190, 171), (190, 261, 171), (600, 70, 201), (70, 601, 201)])
@pytest.mark.parametrize("flips", [(False, False), (True, False), (False, True), (True, True)])
def test_gemm(letter: str, m: int, n: int, k: int, flips: tuple[bool, bool], draw: Callable[..., Any]) -> None:
    """C = 2 A B - C, in a matrix whose rows are longer than C's."""
    a = draw(letter, *((k, m + 3) if flips[0] else (m, k + 3)))
    b = draw(letter, *((n, k + 2) if flips[1] else (k, n + 2)))
    c = draw(letter, m, n + 4)
    left, right = a[:, :m].T if flips[0] else a[:, :k], b[:, :k].T if flips[1] else b[:, :n]
    expected = c.copy()
    expected[:, :n] = 2 * (left @ right) - c[:, :n]
    flags = [TRANSPOSED if flip else PLAIN for flip in flips]
    before = outside()
    call(f"{letter}gemm", ROW_MAJOR, *flags, *_plain(m, n, k), 2.0, a, _word(a.shape[1]), b, _word(b.shape[1]), -1.0, c, _word(n + 4))
    np.testing.assert_allclose(c, expected, rtol=TOLERANCE[letter], atol=30 * TOLERANCE[letter])
    assert outside() == before


def _word(value: int) -> Any:
    assert _FOUND is not None
    return (ctypes.c_int64 if _FOUND.integers_64 else ctypes.c_int32)(value)


def _plain(*values: int) -> list[Any]:
    return [_word(value) for value in values]


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("side", [LEFT, RIGHT])
@pytest.mark.parametrize(("m", "n"), [(5, 3), (260, 205), (130, 500), (500, 130)])
def test_trsm(letter: str, side: int, m: int, n: int, draw: Callable[..., Any]) -> None:
    order = m if side == LEFT else n
    a = draw(letter, order, order) / (4 * order) + np.eye(order, dtype=TYPES[letter])
    b = draw(letter, m, n + 1)
    lower = np.tril(a)
    expected = b.copy()
    if side == LEFT:
        expected[:, :n] = scipy.linalg.solve_triangular(lower, 2 * b[:, :n], lower=True)
    else:
        expected[:, :n] = scipy.linalg.solve_triangular(lower.T, 2 * b[:, :n].T, lower=False).T
    call(f"{letter}trsm", ROW_MAJOR, side, LOWER, PLAIN, NON_UNIT, *_plain(m, n), 2.0, a, _word(order), b, _word(n + 1))
    np.testing.assert_allclose(b, expected, rtol=TOLERANCE[letter], atol=TOLERANCE[letter])


@pytest.mark.parametrize("letter", "sd")
def test_trsv(letter: str, draw: Callable[..., Any]) -> None:
    a, x = draw(letter, 200, 200) / 800 + np.eye(200, dtype=TYPES[letter]), draw(letter, 200)
    expected = scipy.linalg.solve_triangular(np.triu(a), x)
    call(f"{letter}trsv", ROW_MAJOR, UPPER, PLAIN, NON_UNIT, _word(200), a, _word(200), x, _word(1))
    np.testing.assert_allclose(x, expected, rtol=TOLERANCE[letter], atol=TOLERANCE[letter])


@pytest.mark.parametrize("letter", "sd")
@pytest.mark.parametrize("n", [40, 250, 660])
def test_getrf(letter: str, n: int, count: int, draw: Callable[..., Any]) -> None:
    if n > 500 and count > 1:
        n = 500                                # from 645 on the library's own threads work, which may wait long for a CPU
    a = draw(letter, n, n)
    columns = np.asfortranarray(a)
    size, pivots, status = np.array([n], np.int64), np.zeros(n, np.int64), np.zeros(1, np.int64)
    if not (_FOUND and _FOUND.integers_64):
        size, pivots, status = (array.astype(np.int32) for array in (size, pivots, status))
    call(f"{letter}getrf", size, size, columns, size, pivots, status)
    lower, upper = np.tril(columns, -1) + np.eye(n, dtype=TYPES[letter]), np.triu(columns)
    rows = a.copy()                            # rounding, which is other on several threads, may choose between pivots that are as large
    for k, pivot in enumerate(pivots - 1):
        rows[[k, pivot]] = rows[[pivot, k]]
    assert status[0] == 0 and (pivots > np.arange(n)).all() and np.abs(lower).max() <= 1
    np.testing.assert_allclose(lower @ upper, rows, rtol=0, atol=30 * TOLERANCE[letter] * np.abs(upper).max())


def test_the_number_outside_survives_calls_at_once(count: int, draw: Callable[..., Any]) -> None:
    bw.set_num_threads(count)
    a, b = draw("d", 300, 300), draw("d", 300, 300)
    products = [np.zeros((300, 300)) for _ in range(4)]

    def work(c: Any) -> None:
        for _ in range(15):
            call("dgemm", ROW_MAJOR, PLAIN, PLAIN, *_plain(300, 300, 300), 1.0, a, _word(300), b, _word(300), 0.0, c, _word(300))

    callers = [threading.Thread(target=work, args=(c,)) for c in products]
    for caller in callers:
        caller.start()
    for number in (2, 1, 3, count):
        bw.set_num_threads(number)            # while calls are on: holds after them
    for caller in callers:
        caller.join()
    assert outside() == count == bw.get_num_threads()
    for c in products:
        np.testing.assert_allclose(c, a @ b, rtol=1e-10, atol=1e-10)


FACTORISATIONS: dict[str, Callable[[Any], Any]] = {
    "eigh": np.linalg.eigh, "eigvalsh": np.linalg.eigvalsh, "eigvals": np.linalg.eigvals, "svd": np.linalg.svd, "qr": np.linalg.qr,
    "cholesky": np.linalg.cholesky, "inverse": np.linalg.inv,
}


@pytest.mark.parametrize("name", FACTORISATIONS)
@pytest.mark.parametrize("batch", [(), (12,)])
def test_factorisations_have_one_thread_of_the_library(name: str, batch: tuple[int, ...], count: int, draw: Callable[..., Any]) -> None:
    """Those of NumPy's loops too: where other processes have the CPUs, the library's threads take a thousand times as long."""
    bw.set_num_threads(count)
    a = draw("d", *batch, 40, 40)
    a = a @ a.swapaxes(-1, -2) + 40 * np.eye(40)
    program = bw.compile(FACTORISATIONS[name], a)
    calls = re.findall(r"call \w+ @bw_(blas_enter|blas_leave|loop|dgetrf)", program.lowered().program.text)
    assert re.fullmatch("((blas_enter loop blas_leave|dgetrf) )+", " ".join([*calls, ""]))
    found, expected = program(a), FACTORISATIONS[name](a)
    for one, other in zip(found if isinstance(found, tuple) else [found], expected if isinstance(expected, tuple) else [expected], strict=True):
        np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=1e-8, atol=1e-8)
    assert outside() == count


def test_bits_do_not_depend_on_who_computes(draw: Callable[..., Any]) -> None:
    """A pool that is taken or rests calls for the same parts."""
    a, b = draw("s", 1000, 300), draw("s", 300, 500)
    found = []
    for rest in (0, 2**62, 0):
        c = np.zeros((1000, 500), np.float32)
        threads.pool().wake_up()
        threads.pool().rest_until(rest)
        call("sgemm", ROW_MAJOR, PLAIN, PLAIN, *_plain(1000, 500, 300), 1.0, a, _word(300), b, _word(500), 0.0, c, _word(500))
        found.append(c.tobytes())
    threads.pool().wake_up()
    assert len(set(found)) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_children_multiply(count: int, draw: Callable[..., Any]) -> None:
    """Also one of a process in the middle of a product."""
    bw.set_num_threads(count)
    a = draw("d", 400, 400)
    product, c = a @ a, np.zeros((400, 400))

    def multiply() -> None:
        call("dgemm", ROW_MAJOR, PLAIN, PLAIN, *_plain(400, 400, 400), 1.0, a, _word(400), a, _word(400), 0.0, c, _word(400))

    multiply()
    child = os.fork()
    if child == 0:
        try:
            c[...] = 0
            multiply()
            os._exit(0 if np.allclose(c, product) and outside() == count else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
