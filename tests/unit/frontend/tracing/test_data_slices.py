"""Slices with bounds that are data, and selections behind numbers: as NumPy's where they can be had, refused where not."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from bwcompiler.frontend.tracing.trace import trace

POINTERS = np.array([0, 2, 3, 3, 6, 7, 9, 10, 12, 13, 14])
COLUMNS = np.array([0, 3, 1, 2, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4])


def sparse_product(x, values, pointers, columns):
    y = np.zeros(len(pointers) - 1)
    for i in range(len(pointers) - 1):
        y[i] = values[pointers[i]:pointers[i + 1]] @ x[columns[pointers[i]:pointers[i + 1]]]
    return np.sum(y ** 2)


def rows_of_a_matrix(x, values, pointers, columns):
    found, total = np.zeros(14), 0.0
    for i in range(len(pointers) - 1):
        a, b = pointers[i], pointers[i + 1]
        found[a:b] = x[i] * values[a:b]
        found[a:b] = found[a:b] + 1
        total += np.dot(values[a:b], x[columns[a:b]]) + np.sum(x[columns[a:b]] ** 2)
        for value in values[a:b]:
            total = total * 0.5 + value
    return total + np.sum(found ** 2)


@pytest.mark.parametrize("program", [sparse_product, rows_of_a_matrix])
def test_between_pointers(program, rng):
    x, values = rng.random(10) + 0.3, rng.random(14)
    assert not trace(program, (x, values, POINTERS, COLUMNS)).notes
    for pointers in (POINTERS, np.sort(rng.integers(0, 15, 11))):
        assert bw.jit(program)(x, values, pointers, COLUMNS) == pytest.approx(program(x, values, pointers, COLUMNS), rel=1e-12)
    bw.check_grads(lambda x, values: program(x, values, POINTERS, COLUMNS), (x, values))
    gradient, h, d = bw.grad(program)(x, values, POINTERS, COLUMNS), 1e-6, rng.standard_normal(10)
    numeric = (program(x + h * d, values, POINTERS, COLUMNS) - program(x - h * d, values, POINTERS, COLUMNS)) / (2 * h)
    assert gradient @ d == pytest.approx(numeric, rel=1e-6)


def test_loops_with_known_pointers_are_unrolled(rng):
    def known(x):
        return sparse_product(x, np.arange(14.0), POINTERS, COLUMNS)

    x = rng.random(10)
    assert "slice with a traced bound" in trace(known, (x,)).notes[0][1]
    assert bw.jit(known)(x) == pytest.approx(known(x), rel=1e-13)


def bounds_of_all_kinds(x):
    k = np.argmin(x)
    return np.sum(x[:k + 1]) + 2 * np.mean(x[k:]) + np.sum(x[-k:]) + np.prod(x[k - 20:]) + np.sum(x[100 + k:]) + np.std(x[: k + 2])


def extremes(x):
    k = np.argmin(np.abs(x[1:-1])) + 1
    hidden = np.where(np.arange(12) >= k, -np.inf, x)
    spoiled = x * 1.0
    spoiled[k] = np.nan
    return (np.argmax(x[:k]) + 10 * np.argmin(x[k:]) + x[k:].max() + np.min(x[:k + 1]) + np.argmax(hidden[k:])
            + np.argmax(spoiled[k - 1:]) + x[x > 0].max() + (x * 10).astype(int)[:k].min())


def a_view_sees_what_is_written_later(x):
    a, k = x * 1.0, np.argmax(x)
    view, copy, kept = a[:k + 1], a[:k + 1].copy(), a[:k + 1] * 2
    a[0] = 5.0
    return np.sum(view ** 2) + np.sum(copy) + np.sum(kept)


def bounds_are_read_once(x):
    bound = np.zeros(2, int)
    bound[0] = np.argmax(x)
    before = x[:bound[0]]
    bound[0] += 1
    return np.sum(before * 2) + np.sum(x[:bound[0]])


def used_in_a_loop(x):
    a, total = x * 1.0, 0.0
    view = a[:np.argmax(x)]
    for i in range(12):
        total += np.sum(view) * i
        a[0] = total * 0.1
    return total


def windows_in_a_while(x):
    total, k, n = 0.0, 0, np.sum(x > 0)
    while k < n:
        total += np.sum(x[k:k + 3])
        k += 1
    return total


def behind_numbers(x):
    a, k = np.outer(x, x), np.argmax(x)
    mask = x > 0
    y = x * 1.0
    for i in range(12):
        y[mask] += 0.1 * a[i, mask]
    a[3, mask] *= 2
    a[4, :k] = 1.0
    return np.sum(a[1, :k] ** 2) + np.sum(a[k, k:]) + a[:k].sum() + np.sum(a) + np.sum(y) + a[2, mask].mean()


def lengths(x):
    k = np.argmax(x)
    return len(x[:k]) * np.sum(x) + x[k:].size


def into_a_known_array(x):
    k, y = np.argmax(x), np.zeros(12)
    y[:k] = 3.0
    y[k:] = x[k:]
    return np.sum(y * y)


PROGRAMS = [bounds_of_all_kinds, extremes, a_view_sees_what_is_written_later, bounds_are_read_once, used_in_a_loop, windows_in_a_while,
            behind_numbers, lengths, into_a_known_array]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_numpy(program, rng):
    compiled = bw.value_and_grad(program)
    for _ in range(3):
        x = rng.standard_normal(12)
        with np.errstate(all="ignore"):
            expected = program(x.copy())
            found, gradient = compiled(x.copy())
            assert found == pytest.approx(expected, rel=1e-12)
            d, h = rng.standard_normal(12), 1e-6
            numeric = (program(x + h * d) - program(x - h * d)) / (2 * h)
        assert gradient @ d == pytest.approx(numeric, rel=2e-5, abs=1e-6)


def test_nothing_has_no_extreme():
    for program in (lambda x: np.max(x[:np.argmax(x)]), lambda x: np.argmin(x[:np.argmax(x)]) * 1.0, lambda x: x[x > 10].min()):
        with pytest.raises(ValueError, match="of no elements"):
            bw.jit(program)(np.array([3.0, 1.0, 2.0]))


def changed_in_place(x):
    y, k = x * 1.0, np.argmax(x)
    y[:k] += x[0]
    y[k:] /= np.arange(1.0, 5.0)[k:]
    view = y[1:k]
    view *= 2.0                                    # a view: y changes with it
    view[0] = x[3] ** 2
    view[:-1] -= y[0]
    view[:] = view ** 2
    return np.sum(y * np.arange(4.0)) + np.sum(view)


def rows_changed_in_place(x):
    y, k = np.outer(x, x + 1.0), np.argmax(x)
    y[:k] += x * y[0]
    y[1, :k] *= y[2, :k]
    y[:k, 2] -= x[1]
    rows = y[k - 1:]
    rows[:, 1] = 3.0 * x[0]
    rows[0] -= y[:, 2]
    return np.sum(y ** 2) + np.sum(y[:k, 1:3])


@pytest.mark.parametrize("program", [changed_in_place, rows_changed_in_place])
def test_a_slice_changed_in_place_changes_the_array(program):
    compiled = bw.jit(program)
    for x in (np.array([0.1, 0.7, 1.5, 1.0]), np.array([0.5, 0.7, 1.1, 1.9])):
        assert compiled(x) == pytest.approx(program(x), rel=1e-12)
        bw.check_grads(program, (x,))


@pytest.mark.parametrize("index", [0, 1, -1, -2])
def test_elements_counted_from_either_end(index):
    x = np.array([0.1, 0.5, 1.0, 3.0, 2.0])
    np.testing.assert_array_equal(bw.jit(lambda x: x[1:np.argmax(x)][index])(x), x[1:3][index])
    np.testing.assert_array_equal(bw.grad(lambda x: x[1:np.argmax(x)][index])(x), np.arange(5) == 1 + index % 2)
    with pytest.raises(IndexError):
        bw.jit(lambda x: x[1:np.argmax(x)][index])(-x)


@pytest.mark.parametrize("program", [
    lambda x: np.sum(x[:np.argmax(x):2]), lambda x: np.sum(np.outer(x, x)[:, :np.argmax(x):2]),
    lambda x: x[:np.argmax(x)] @ x, lambda x: np.sum(x[:np.argmax(x)][::-1])])
def test_what_needs_the_number_of_elements_is_refused(program):
    with pytest.raises(BwError, match="test_data_slices.py") as caught:
        bw.jit(program)(np.array([0.1, 3.0, 1.0, 2.0]))
    assert "hint" in str(caught.value)
