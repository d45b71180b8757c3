"""Integer arguments of the traced function in the places of sizes, axes, bounds and counts: the function is traced again with the number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError, TracerIndexError
from tests.unit.frontend.comparing import compare

X = np.arange(24.0).reshape(4, 6) + 0.5
KNOTS = np.arange(6.0) * 1.3

CASES: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "stop": (2, lambda x, n: x[1:n + 1]),
    "stop from the end": (-1, lambda x, n: x[:n]),
    "start": (1, lambda x, n: x[n:, n]),
    "step": (2, lambda x, n: x[::n]),
    "bounds that are computed": (2, lambda x, n: x[n // 2:n * 2:n - 1]),
    "power as a bound": (2, lambda x, n: x[:, :n ** n]),
    "negative power": (-2, lambda x, n: x * 2 ** n),
    "assigned slice": (2, lambda x, n: x.__setitem__(slice(0, n), 0.0)),
    "zeros": (3, lambda x, n: np.zeros((n, 2)) + x[0, 0]),
    "ndarray": (3, lambda x, n: x * np.ndarray((n, 2)).shape[0]),
    "eye": (3, lambda x, n: np.eye(n, k=n - 2) * x[0, 0]),
    "identity": (3, lambda x, n: np.identity(n) * x[0, 0]),
    "arange": (3, lambda x, n: np.arange(n) * x[0, 0]),
    "linspace": (3, lambda x, n: np.linspace(0, x[0, 1], n)),
    "tri": (3, lambda x, n: np.tri(n) * x[0, 0]),
    "tril": (1, lambda x, n: np.tril(x, n)),
    "diag": (1, lambda x, n: np.diag(x, n)),
    "trace": (1, lambda x, n: np.trace(x, n)),
    "vander": (3, lambda x, n: np.vander(x[0], n)),
    "axis of a sum": (1, lambda x, n: np.sum(x, n)),
    "axis of a method": (1, lambda x, n: x.mean(n)),
    "ddof": (1, lambda x, n: np.var(x, ddof=n)),
    "reshape": (3, lambda x, n: x.reshape(n, -1)),
    "transpose": (1, lambda x, n: np.transpose(x, (n, 0))),
    "roll": (1, lambda x, n: np.roll(x, n)),
    "rot90": (1, lambda x, n: np.rot90(x, n)),
    "repeat": (2, lambda x, n: np.repeat(x, n)),
    "tile": (2, lambda x, n: np.tile(x, (n, 1))),
    "split": (2, lambda x, n: np.split(x, n)[0]),
    "array_split": (3, lambda x, n: np.array_split(x, n)[0]),
    "delete": (1, lambda x, n: np.delete(x, n, axis=0)),
    "insert": (1, lambda x, n: np.insert(x, n, 0.0, axis=0)),
    "pad": (1, lambda x, n: np.pad(x, n)),
    "pad of each axis": (1, lambda x, n: np.pad(x, ((n, 0), (0, n)))),
    "diff": (2, lambda x, n: np.diff(x, n)),
    "histogram": (3, lambda x, n: np.histogram(x, n)[0]),
    "histogram_bin_edges": (3, lambda x, n: np.histogram_bin_edges(x, n)),
    "histogram2d": (3, lambda x, n: np.histogram2d(x[0], x[1], n)[0]),
    "histogramdd": (3, lambda x, n: np.histogramdd(x[:, :2], n)[0]),
    "bincount": (7, lambda x, n: np.bincount(np.array([0, 2, 1, 1]), x[:, 0], n)),
    "partition": (1, lambda x, n: np.partition(x, n)[..., n]),
    "fft": (4, lambda x, n: np.fft.fft(x, n)),
    "matrix_power": (3, lambda x, n: np.linalg.matrix_power(x[:4, :4], n)),
    "tensordot": (1, lambda x, n: np.tensordot(x, x.T, n)),
    "polyfit": (2, lambda x, n: np.polyfit(KNOTS, x[0], n)),
    "r_": (3, lambda x, n: np.r_[x[0], 0:n]),
}
# What NumPy itself does with its arguments is reached through the source of the function only.
CAPTURED: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "mgrid": (3, lambda x, n: np.mgrid[0:n, 0:n ** 2][0] * x[0, 0]),
    "ogrid": (3, lambda x, n: np.ogrid[0:n, 0:2][1] * x[0, 0]),
    "fftfreq": (4, lambda x, n: np.fft.fftfreq(n) * x[0, 0]),
}


@pytest.mark.parametrize("name", [*CASES, *CAPTURED])
def test_integer_arguments_are_sizes(name: str) -> None:
    number, fun = (CASES | CAPTURED)[name]
    compare(fun, X, number)


@pytest.mark.parametrize("made", [lambda x, n: [x] * n, lambda x, n: n * [x], lambda x, n: (x, 1.0) * n])
def test_an_integer_argument_repeats_a_sequence(made: Callable[[Any, Any], Any]) -> None:
    found, expected = bw.jit(made)(2.0, 3), made(2.0, 3)
    assert type(found) is type(expected) and [float(one) for one in found] == [float(one) for one in expected]


@pytest.mark.parametrize("power", [3, 0, -2])
def test_a_power_of_integer_arguments_is_what_python_makes_of_it(power: int) -> None:
    fun = lambda n, k: (n ** k, 2 ** k)
    assert bw.jit(fun)(4, power) == fun(4, power)
    assert [type(one.item()) for one in bw.jit(fun)(4, power)] == [type(one) for one in fun(4, power)]


def test_numbers_that_are_data_are_still_refused_as_bounds() -> None:
    with pytest.raises(TracerError, match="a slice with a traced bound"):
        bw.compile(lambda x, k: x[:k[0]], X, bw.ShapeDtypeStruct((2,), np.int64))
    np.testing.assert_array_equal(bw.jit(lambda x, k: x[:k[0]])(X, np.array([1, 2])), X[:1])
    with pytest.raises(TracerIndexError, match="a slice with a traced step"):
        bw.compile(lambda x, k: x[::k[0]], X, bw.ShapeDtypeStruct((2,), np.int64))


def test_bounds_in_a_captured_loop_of_a_gradient() -> None:
    def sweep(steps: int, n: int, x: Any) -> Any:
        work = np.ndarray(x.shape, dtype=x.dtype)
        work[:] = x
        for _ in range(steps):
            work[0, 1:n - 1] = 1.0
            work[1:n - 1, 0] = work[0, 1:n - 1] * x[0, 0:n - 2]
        return np.sum(work)

    x = np.linspace(0.5, 1.0, 36).reshape(6, 6)
    value, gradient = bw.value_and_grad(sweep, argnums=2)(5, 6, x)
    expected = np.ones((6, 6))
    expected[0, 1:5], expected[1:5, 0] = 0.0, 0.0
    expected[0, 0:4] += 1.0
    np.testing.assert_allclose(value, sweep(5, 6, x))
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")            # by NumPy 2.5
def test_attributes_of_known_arrays_may_be_assigned() -> None:
    def places(x: Any, n: int) -> Any:
        rows, columns = np.mgrid[0:n, 0:n]
        rows.shape = columns.shape = n * n
        return x[rows, columns]

    np.testing.assert_array_equal(bw.jit(places)(X, 3), places(X, 3))


def test_elements_of_an_ndarray_are_assigned_two_at_a_time() -> None:
    def pairs(x: Any, n: int) -> Any:
        first, second = np.ndarray(n), np.ndarray(n)
        for k in range(n):
            first[k], second[k] = x[k], x[k] ** 2
        return first + second

    x = np.linspace(1.0, 2.0, 12)
    np.testing.assert_allclose(bw.jit(pairs)(x, 12), x + x**2)


def test_a_gradient_asks_for_each_number_once() -> None:
    runs: list[int] = []
    note = runs.append                             # of a name that nobody follows: a list would be as it was after an attempt

    def fun(x: Any, n: int, m: int, k: int, flag: bool) -> Any:
        note(1)
        return np.sum(x[:n]) + np.sum(x[m:] ** 2) + np.sum(x.reshape(k, -1)[0]) + (x[0] if range(flag) else 0.0)

    bw.grad(fun)(X.ravel(), 3, 20, 4, True)
    assert len(runs) == 2                          # its text says that it asks for the others; one for k


def supported(stiffness: Any, load: Any, fixed: list[int]) -> Any:
    """The displacements of what is not fixed."""
    free, found = np.setdiff1d(np.arange(len(load)), fixed), np.zeros(len(load))
    for _ in range(20):
        rest = load - stiffness @ found
        if np.linalg.norm(rest[free]) < 1e-10:
            break
        found[free] += np.linalg.solve(stiffness[np.ix_(free, free)], rest[free])
    return found @ load


def test_how_many_are_left_of_integers_in_a_list() -> None:
    stiffness, load = np.diag(np.arange(4.0) + 3) + 0.5, np.array([1.0, -2.0, 0.5, 1.5])
    function = bw.value_and_grad(supported, argnums=1)
    for fixed in ([0, 1], [3], [0, 1], [0, 2, 3]):
        value, gradient = function(stiffness, load, fixed)
        free = np.setdiff1d(np.arange(4), fixed)
        expected = np.zeros(4)
        expected[free] = 2 * np.linalg.solve(stiffness[np.ix_(free, free)], load[free])
        np.testing.assert_allclose(value, supported(stiffness, load, fixed), rtol=1e-12)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)


def bond(rate: Any, end: Any, frequency: int) -> Any:
    """The yield at which a bond is worth 1: the number of payments is asked for in a loop that ends as data decide."""
    z, last = rate, end[0]
    for _ in range(30):
        times = np.arange(1, round(last * frequency) + 1) / frequency
        discount = np.exp(-z * times)
        error = rate / frequency * discount.sum() + discount[-1] - 1.0
        if abs(error) < 1e-13:
            break
        z = z + error / (rate / frequency * (times * discount).sum() + times[-1] * discount[-1])
    return z


def test_a_size_of_a_float_in_an_array_and_of_an_integer() -> None:
    function = bw.value_and_grad(bond)
    for end, frequency in ((3.0, 2), (5.0, 1), (3.0, 2), (3.0, 4)):
        value, slope = function(0.03, np.array([end, 1.0]), frequency)
        np.testing.assert_allclose(value, bond(0.03, np.array([end, 1.0]), frequency), rtol=1e-12)
        near = [bond(rate, np.array([end]), frequency) for rate in (0.03 - 1e-6, 0.03 + 1e-6)]
        assert slope == pytest.approx((near[1] - near[0]) / 2e-6, rel=1e-6)
