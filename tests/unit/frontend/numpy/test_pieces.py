"""np.piecewise: functions see the elements for which their condition holds, and no others."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerIndexError
from tests.support.derivatives import check_derivatives

X = np.array([-1.0, 2.0, 3.2, -4.0, 5.0, -3.0, 2.7])


def centred(x):
    return np.piecewise(x, [x < 0, x >= 0], [lambda t: t - t.mean(), lambda t: t * 2])


def scaled_and_summed(x):
    return np.piecewise(x, [x < 0], [lambda t: t / np.max(np.abs(t)), np.cumsum])


def sorted_and_largest(x):
    return np.piecewise(x, [x < -2, x > 2.5], [lambda t: np.sort(t) * 2, lambda t: 0 * t + t.max(), 7.0])


def series(t):
    total, term = 0 * t, 1.0
    for k in range(12):
        total = total + term * t ** k
        term = term / (k + 1)
    return total


def of_elements(x):
    return np.piecewise(x, [x < 0], [series, lambda t: np.where(t > 2.5, t, 0.5 * t ** 2)])


def numbers(x):
    return np.piecewise(x, [x > 0, x > 3], [1.5, 2])


@pytest.mark.parametrize("program", [centred, scaled_and_summed, sorted_and_largest, of_elements, numbers], ids=lambda f: f.__name__)
def test_as_numpy(program) -> None:
    compiled = bw.jit(program)
    for x in (X, -X, np.abs(X) + 0.1, X[:3]):
        np.testing.assert_allclose(compiled(x), program(x), rtol=1e-12)
    check_derivatives(program, X, order=1)


@pytest.mark.parametrize("x", [0.3, -0.3, np.array(0.7), X.reshape(7, 1) * np.ones(3)])
def test_numbers_and_matrices(x) -> None:
    np.testing.assert_allclose(bw.jit(of_elements)(x), of_elements(x), rtol=1e-12)


def test_rows_chosen_by_a_condition_over_the_first_axis() -> None:
    def program(x):
        return np.piecewise(x, [x[:, 0] > 0], [lambda t: t * 2, lambda t: t ** 2])

    x = np.stack([X, X + 1.0], axis=1)
    np.testing.assert_allclose(bw.jit(program)(x), program(x))


def test_the_number_of_elements_is_not_that_of_all() -> None:
    with pytest.raises(TracerIndexError, match="not known while tracing"):
        bw.jit(lambda x: np.piecewise(x, [x < 0], [lambda t: np.ones(t.shape) * t.max()]))(X)
