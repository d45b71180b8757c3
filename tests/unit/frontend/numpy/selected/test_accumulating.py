"""Adding up where a mask is true, and at positions that a mask selects: ufunc.at and np.bincount, as NumPy's."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerIndexError, UnsupportedError
from tests.support.derivatives import check_derivatives

LABELS = np.array([0, 1, 0, 2, 0, 1])


def by_mask(x):
    m, rows, columns, flat, picked = x > 0, np.stack([x, 2 * x], 1), np.stack([x, x]), x.copy(), x.copy()
    np.add.at(flat, m, x[m] * 2)
    np.subtract.at(flat, x > 1, 2.5)
    np.multiply.at(rows, m, np.array([3.0, 2.0]))
    np.maximum.at(rows, (m, 0), 0.7)
    np.add.at(columns, (slice(None), m), x[m])
    np.negative.at(picked, np.flatnonzero(m))
    np.add.at(picked, np.nonzero(m), x[m] ** 2)
    return flat, rows, columns, picked


def by_labels(x):
    m, sums, largest, rows, table = x > 0, np.zeros(4), np.full(3, 0.1), np.zeros((3, 2)), np.zeros((3, 4))
    np.add.at(sums, LABELS[m], x[m])
    np.subtract.at(sums, -LABELS[m] - 1, 0.5)
    np.maximum.at(largest, LABELS[m], x[m] ** 2)
    np.add.at(rows, LABELS[m], np.stack([x, x ** 2], 1)[m])
    np.multiply.at(rows, LABELS[m], 1.5)
    np.add.at(table, (LABELS[m], np.floor(x[m]).astype(int) % 4), x[m])
    return sums, largest, rows, table


def assigned(x):
    m, table = x > 0, np.zeros((3, 4))
    table[LABELS[m], np.floor(x[m]).astype(int) % 4] = 2.0
    return table,


def counted(x):
    m = x > 0
    return np.bincount(LABELS[m], x[m], minlength=3), np.bincount(LABELS[m], weights=x[m] ** 2, minlength=5)


def numbers(x):
    m, i = x > 0, LABELS.copy()
    np.add.at(i, LABELS[m], 300)
    np.left_shift.at(i, m, 1)
    return np.bincount(LABELS[m], minlength=4), i


@pytest.mark.parametrize("program", [by_mask, by_labels, assigned, counted, numbers])
def test_as_numpy(program, rng):
    compiled = bw.jit(program)
    for x in (*rng.normal(size=(3, 6)), -np.ones(6), np.ones(6)):
        for found, expected in zip(compiled(x), program(x.copy()), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            assert found.dtype == expected.dtype or not (x > 0).any()          # NumPy sums weights of nothing as integers


@pytest.mark.parametrize("program", [by_mask, by_labels, counted])
def test_derivatives(program):
    check_derivatives(program, np.array([0.9, -1.2, 2.3, 1.6, -0.4, 0.3]))


def test_what_is_not_selected_may_lie_outside():
    def program(x, places):
        found = np.zeros(3)
        np.add.at(found, places[places < 3], x[places < 3])
        return found
    x, places = np.array([1.0, np.nan, 2.0, np.inf]), np.array([0, 7, 2, 99])
    np.testing.assert_array_equal(bw.jit(program)(x, places), program(x, places))


def added(y, index, values):
    np.add.at(y, index, values)
    return y


@pytest.mark.parametrize(("program", "kind", "hint"), [
    (lambda x: added(np.zeros_like(x)[:1], LABELS[x > 0], 1.0), IndexError, "out of bounds for axis 0 with size 1"),
    (lambda x: added(np.zeros_like(x), LABELS, x[x > 0]), TracerIndexError, "np.add.at"),
    (lambda x: np.bincount(LABELS[x > 0], minlength=1), ValueError, "a larger minlength"),
    (lambda x: np.bincount(LABELS[x > 0], x[x > 0]), UnsupportedError, "minlength=n"),
    (lambda x: np.bincount(LABELS[x > 0], x, minlength=3), TracerIndexError, "not selected"),
    (lambda x: added(np.outer(x, x), ([0, 1], x > 0), 1.0), TracerIndexError, "one traced mask")])
def test_refused(program, kind, hint):
    with pytest.raises(kind) as caught:
        bw.jit(program)(np.array([1.0, 2.0, -3.0, 4.0, 5.0, -6.0]))
    assert hint in str(caught.value)
