"""Slices of a known number of elements at places that are data: views as NumPy's, and IndexError where NumPy would cut them."""

from dataclasses import dataclass

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerIndexError
from bwcompiler.frontend.tracing.trace import trace

PLACES = np.array([3, 0, 17, 11])
BONDS = [(k, (k + 5) % 12) for k in range(12)]
WINDOW = np.hanning(7)[1:-1]


def blocks_of_a_matrix(x, places):
    i, j = places[0], places[1]
    grid = x[:20].reshape(4, 5)
    grid = np.tile(grid, (5, 4))
    block = grid[i:i + 3, j:j + 2]
    made = np.zeros((20, 20))
    made[i:i + 3, j:j + 2] += 2 * block
    made[i:i + 3, 1:3] = block
    return np.sum(made ** 2) + np.sum(block @ block.T)


def negative_places(x, places):
    k = places[0] - 9                              # -6
    return x[k:k + 4] @ WINDOW[:4]


def overlap_and_add(x, places):
    y = np.zeros(len(x))
    for place in places:
        y[place:place + 5] += x[:5] * WINDOW
    return np.sum(y ** 2)


def in_steps(x, places):
    k = places[2]
    return x[k:k + 6:2] @ WINDOW[:3] + x[k - 1:k + 3:3] @ WINDOW[:2]


def at_the_peak(x, places):
    k = np.argmax(x[2:-2]) + 2
    before, peak, after = x[k - 1:k + 2]
    return (before - after) / (before - 2 * peak + after) + x[k - 2:k + 3] @ WINDOW


def views_of_views(x, places):
    y = x.copy()
    for k in range(8):
        part = y[places[k % 4]:places[k % 4] + 3]
        part *= 1.5
        part[1] += x[k]
        y[places[k % 4]:places[k % 4] + 3] = part[::-1]
    return np.sum(y ** 2)


def beside_arrays(x, places):
    y, i, j = x.copy(), places[0], places[1] % 2
    y[np.array([4, 0])] = y[i:i + 2]
    y[places[:2]] = y[i:i + 2]
    grid = y.reshape(4, 6)
    grid[0:2, i:i + 2] += 1
    grid[j, i:i + 2] *= 2
    grid[j:j + 1, i] += 3
    grid[j:j + 1][:, j] += grid[0, 0]
    return np.sum(y * np.arange(24))


PROGRAMS = [blocks_of_a_matrix, negative_places, overlap_and_add, in_steps, at_the_peak, views_of_views, beside_arrays]


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients(program, rng):
    x = rng.standard_normal(24)
    compiled = bw.jit(program)
    for places in (PLACES, np.array([3, 7, 4, 1])):
        assert compiled(x, places) == pytest.approx(program(x, places), rel=1e-12)
    bw.check_grads(lambda x: program(x, PLACES), (x,))


@dataclass
class Bond:
    i: int
    j: int
    stiffness: np.ndarray


def assembled(stiffness, load):
    bonds = [Bond(i, j, stiffness[k]) for k, (i, j) in enumerate(BONDS)]
    matrix = 9 * np.eye(24)
    for bond in bonds:
        first, second = slice(2 * bond.i, 2 * bond.i + 2), slice(2 * bond.j, 2 * bond.j + 2)
        matrix[first, first] += bond.stiffness
        matrix[second, second] += bond.stiffness
        matrix[first, second] -= bond.stiffness.T
        matrix[second, first] -= bond.stiffness
    return load @ np.linalg.solve(matrix, load) + sum(np.sum(bond.stiffness[0]) for bond in bonds)


def test_blocks_at_places_of_a_table_keep_the_loop(rng):
    stiffness, load = rng.standard_normal((12, 2, 2)) * 0.3, rng.standard_normal(24)
    found = trace(assembled, (stiffness, load))
    assert not found.notes and len(found.loops) >= 1
    assert bw.jit(assembled)(stiffness, load) == pytest.approx(assembled(stiffness, load), rel=1e-12)
    bw.check_grads(assembled, (stiffness, load))


@pytest.mark.parametrize("place", [18, -2, -30])
def test_what_numpy_would_cut_is_refused_by_the_run(place, rng):
    def block(x, places):
        k = places[0]
        return x.reshape(4, 6)[1:3, k:k + 5] @ WINDOW

    x = rng.standard_normal(24)
    with pytest.raises(IndexError, match=r"test_data_windows.py:\d+: return x.reshape(.|\n)*out of bounds"):
        bw.jit(block)(x, np.array([place]))
    np.testing.assert_allclose(bw.jit(block)(x, np.array([1])), block(x, np.array([1])))


def cut(x, places):
    k = places[0]
    return np.sum(x[k:k + 9] ** 2) + 3 * np.sum(x[k - 4:k + 2])


@pytest.mark.parametrize("transform", [bw.jit, lambda f: lambda *args: bw.compile(f, *args)(*args)], ids=["jit", "compile"])
def test_what_numpy_cuts_is_cut_where_a_selection_can_have_it(transform, rng):
    x, compiled = rng.standard_normal(24), transform(cut)
    for place in (6, 20, 2, 7):
        assert compiled(x, np.array([place])) == pytest.approx(cut(x, np.array([place])), rel=1e-12)


def test_gradients_of_what_numpy_cuts(rng):
    x, d, h = rng.standard_normal(24), rng.standard_normal(24), 1e-6
    gradient, pairs = bw.grad(cut), bw.value_and_grad(cut)
    for place in (6, 20, 2, 7):
        places = np.array([place])
        numeric = (cut(x + h * d, places) - cut(x - h * d, places)) / (2 * h)
        assert gradient(x, places) @ d == pytest.approx(numeric, rel=1e-6)
        np.testing.assert_array_equal(pairs(x, places)[1], gradient(x, places))


def test_a_window_costs_no_more_than_its_elements(rng):
    def largest(x, places):
        total = 0.0
        for place in places:
            total += np.max(x[place:place + 7])
        return total

    x, places = rng.standard_normal(2400), np.arange(0, 2300, 100)
    compiled = bw.jit(largest)
    assert compiled(x, places) == largest(x, places)
    assert "bool[2400]" not in compiled.as_text("forward", x, places)
    places[3] = 2396                               # NumPy cuts it
    assert compiled(x, places) == largest(x, places)
    assert "bool[2400]" in compiled.as_text("forward", x, places)


def test_what_assigns_to_its_arguments_runs_once(rng):
    def clear(x, places):
        x += 1.0
        k = places[0]
        x[0] = np.sum(x[k:k + 9])
        return x[0]

    for place in (20, 6):
        x = rng.standard_normal(24)
        expected = x.copy()
        value, places = clear(expected, np.array([place])), np.array([place])
        assert bw.jit(clear)(x, places) == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(x, expected, rtol=1e-12)


def test_bounds_of_few_bits_and_windows_longer_than_their_axis(rng):
    """A sum that does not fit its integers is not the one that it says."""
    def few(x, places):
        k = places.astype(np.int8)[0]
        return np.sum(x[k:k + np.int8(100)]) + np.sum(x[places[1]:places[1] + 30])

    x = rng.standard_normal(24)
    for place in (3, 100):
        places = np.array([place, 0])
        with np.errstate(over="ignore"):
            assert bw.jit(few)(x, places) == pytest.approx(few(x, places), rel=1e-12)
    with pytest.raises(TracerIndexError, match="number of elements is not known"):
        bw.jit(lambda x, places: x.reshape(4, 6)[:, places[0]:places[0] + 9] @ np.ones(9))(x, places)


def test_the_sizes_of_others_are_data(rng):
    def refused(x, places):
        return x[places[0]:places[2]] @ np.arange(14.0)

    with pytest.raises(TracerIndexError, match="number of elements is not known"):
        bw.compile(refused, bw.ShapeDtypeStruct((24,), float), bw.ShapeDtypeStruct(PLACES.shape, PLACES.dtype))
