"""What data select in another shape: reshape to rows of a known length, and to an extent that is data; as NumPy's."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.317, -0.923, 1.811, 0.731, -0.419, 1.263, 0.547, 1.629, -0.753, 0.159, 1.137, 0.941])


def pairs(x):
    v = x[x > 0]
    v = v[:len(v) // 2 * 2]
    return np.sum(v.reshape(-1, 2).max(axis=1)) + v.reshape(-1, 2).shape[0]


def halves(x):
    v = x[x > 0]
    v = v[:len(v) // 2 * 2]
    first, second = v.reshape(2, -1)
    return np.sum(first ** 2) + np.sum(second * 3) + np.reshape(v, (2, -1, 1))[1, 0, 0]


def as_many_rows_as_data_say(x):
    v = x[x > 0]
    n = len(v) // 3
    v = v[:3 * n]
    return np.sum(v.reshape(n, 3) @ np.arange(3.0)) + v.reshape((3, n)).T.shape[0] + v.reshape(3, n)[2, 0]


def rows_in_parts(x):
    v = np.outer(x, x[:4])[x > 0]
    return np.sum(v.reshape(-1, 2)[:, 1] ** 2) + v.reshape(-1, 2, 2)[:, 1, 0].sum() + v.reshape(-1).sum() + v.reshape(-1, 4)[0, 2]


def selected_columns(x):
    v = np.outer(x, x[:4])[:, x[:4] > -5]
    return np.sum(v.reshape(-1, 2)[:, 1] ** 2) + v.reshape(-1, 8)[:, 3].sum()


def a_known_number(x):
    return np.sum(np.sort(x)[np.argsort(x) >= 6].reshape(2, 3)[1]) + x[np.argsort(x) < 4].reshape((4, 1))[2, 0]


def axes_of_one(x):
    v = x[x > 0][None, :]
    return v.reshape(-1, 1).sum() + v.reshape(1, -1, 1).sum() + v.T.reshape(1, -1)[0, 0]


@pytest.mark.parametrize("program", [pairs, halves, as_many_rows_as_data_say, rows_in_parts, selected_columns, a_known_number, axes_of_one],
                         ids=lambda program: program.__name__)
def test_as_numpy(program):
    as_python(program, X, np.roll(X, 5) + 0.01, X[::-1] * 1.1, X)


@pytest.mark.parametrize("shape", [(-1, 2), (2, -1), (3, 2), (2, 2)])
def test_another_number_of_elements(shape):
    with pytest.raises(ValueError, match="cannot reshape"):
        bw.jit(lambda x: np.sum(x[x > 0].reshape(shape)))(np.array([1.0, 2.0, -1.0, 3.0, -1.0, -2.0, 4.0, 5.0]))
    with pytest.raises(ValueError, match="cannot reshape"):
        bw.jit(lambda x: np.sum(x[x > 0].reshape(-1, 0)))(np.ones(3))
