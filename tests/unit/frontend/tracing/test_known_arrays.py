"""Arrays of integers among the arguments whose numbers say what is traced: they are compiled in, and looked at in each call."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import bwcompiler as bw
from bwcompiler.errors import RecompileWarning, SignatureError, TracerError


def free_determinant(matrix: Any, fixed: Any, shown: Any) -> Any:
    free = np.setdiff1d(np.arange(len(matrix)), fixed)
    return np.linalg.det(matrix[free][:, free]) + matrix[shown, shown].sum()


@pytest.fixture
def matrix(rng):
    return rng.random((6, 6)) + 6 * np.eye(6)


def test_which_rows_there_are(matrix):
    compiled, gradient = bw.jit(free_determinant), bw.grad(free_determinant)
    shown = np.arange(3)
    for fixed in (np.array([0, 1]), np.array([0, 4]), np.array([2]), np.array([0, 1], np.int32), np.array([0, 4])[::-1]):
        expected = free_determinant(matrix, fixed, shown)
        np.testing.assert_allclose(compiled(matrix, fixed, shown), expected, rtol=1e-12)
        np.testing.assert_allclose(compiled(matrix, fixed.copy(), shown), expected, rtol=1e-12)
        step = np.zeros_like(matrix)
        step[3, 5] = 1e-4
        difference = free_determinant(matrix + step, fixed, shown) - free_determinant(matrix - step, fixed, shown)
        np.testing.assert_allclose(gradient(matrix, fixed, shown)[3, 5], difference / 2e-4, rtol=1e-6)
    assert "5 kinds" in repr(compiled)


def test_what_is_written_to_them_is_seen(matrix):
    compiled = bw.jit(free_determinant)
    fixed, shown = np.array([0, 1]), np.arange(3)
    compiled(matrix, fixed, shown)
    for other in (5, 1, 3, 5):                     # also once the native entry takes such calls
        fixed[1] = other
        np.testing.assert_allclose(compiled(matrix, fixed, shown), free_determinant(matrix, fixed, shown), rtol=1e-12)


def test_the_native_entry_takes_calls_with_them(matrix):
    compiled = bw.jit(free_determinant)
    fixed, shown = np.array([0, 1]), np.arange(3)
    compiled(matrix, fixed, shown)
    compiled.fun = compiled._arguments = None      # what a call that goes by way of Python would need
    np.testing.assert_allclose(compiled(matrix, fixed, shown), free_determinant(matrix, fixed, shown), rtol=1e-12)


def test_arrays_that_only_the_program_reads_stay_arguments(matrix):
    compiled = bw.jit(free_determinant)
    for shown in (np.array([1, 2]), np.array([3, 3])):
        np.testing.assert_allclose(compiled(matrix, np.array([0]), shown), free_determinant(matrix, np.array([0]), shown), rtol=1e-12)
    assert "1 kind " in repr(compiled)
    text = compiled.explain(matrix, np.array([0]), np.array([1, 2]))
    assert "the contents of fixed are compiled in" in text and "contents of shown" not in text


def test_programs_and_pullbacks(matrix):
    fixed, shown = np.array([0, 4]), np.arange(2)
    program = bw.compile(free_determinant, matrix, fixed, shown)
    np.testing.assert_allclose(program(matrix, fixed.copy(), shown), free_determinant(matrix, fixed, shown), rtol=1e-12)
    with pytest.raises(SignatureError, match="fixed holds other numbers"):
        program(matrix, np.array([0, 3]), shown)
    _, pullback = bw.vjp(free_determinant, matrix, fixed, shown)
    found, *others = pullback(1.0)
    np.testing.assert_allclose(found, bw.grad(free_determinant)(matrix, fixed, shown), rtol=1e-12)
    assert others == [None, None]


def test_the_structure_of_a_sparse_matrix(rng):
    def residual(data: Any, rows: Any, columns: Any, x: Any) -> Any:
        a = scipy.sparse.coo_matrix((data, (rows, columns)), shape=(len(x), len(x))).tocsr()
        return np.sum((a @ x) ** 2)

    data, rows, columns, x = rng.random(4), np.array([0, 1, 2, 2]), np.array([1, 1, 0, 2]), rng.random(3)
    np.testing.assert_allclose(bw.jit(residual)(data, rows, columns, x), residual(data, rows, columns, x), rtol=1e-12)


def test_what_is_refused_all_the_same():
    def decided(x: Any, k: Any) -> Any:
        return np.zeros(int(x[0])) + k[0]

    with pytest.raises(TracerError, match="x\\[0\\]"):
        bw.compile(decided, np.ones(3), np.array([1, 2]))

    def changed(x: Any, k: Any) -> Any:
        k[0] += 1
        return x[::k[0]]

    k = np.array([1, 2])
    with pytest.raises(TracerError, match="a slice with a traced step"):
        bw.jit(changed)(np.ones(3), k)
    assert k.tolist() == [1, 2]


def test_other_numbers_in_each_call_are_warned_of(matrix):
    compiled = bw.jit(lambda x, k: x[::k[0]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(1, 17):
            assert len(compiled(matrix, np.array([step]))) == len(matrix[::step])
    assert [found.category for found in caught] == [RecompileWarning] and "the numbers in k" in str(caught[0].message)


def test_a_recursion_that_ends_by_their_numbers(rng):
    def soft(x: Any, threshold: Any, value: Any, left: Any, node: int = 0) -> Any:
        if left[node] < 0:
            return value[node]
        p = 1 / (1 + np.exp(x - threshold[node]))
        return p * soft(x, threshold, value, left, left[node]) + (1 - p) * soft(x, threshold, value, left, left[node] + 1)

    left, given = np.array([1, -1, 3, -1, -1]), (rng.standard_normal(4), rng.standard_normal(5), rng.standard_normal(5))
    np.testing.assert_allclose(bw.jit(soft)(*given, left), soft(*given, left), rtol=1e-13)
    with pytest.raises(RecursionError):
        bw.compile(soft, *given, bw.ShapeDtypeStruct(left.shape, left.dtype))


# ----- numbers that loops compute of arrays that are no arguments
FIXED = np.array([0, 1, 1, 0, 0, 0, 1, 0, 0, 0])


def numbered(fixed: Any) -> tuple[Any, Any]:
    """How many unknowns there are, and the number of each."""
    numbers, count = fixed.copy(), 0
    for k in range(len(fixed)):
        if numbers[k] == 0:
            numbers[k] = count
            count += 1
        else:
            numbers[k] = -1
    return count, numbers


def stretched(stiffness: Any, fixed: Any) -> Any:
    """Springs in a row, some ends of which are held."""
    count, numbers = numbered(fixed)
    matrix, load = np.zeros((count, count)), np.zeros(count)
    for k in range(len(fixed) - 1):
        i, j = numbers[k], numbers[k + 1]
        for a in (i, j):
            if a >= 0:
                matrix[a, a] += stiffness[k]
        if i >= 0 and j >= 0:
            matrix[i, j] -= stiffness[k]
            matrix[j, i] -= stiffness[k]
    load += np.linspace(0.0, 1.0, count) + np.arange(count)
    return np.sum(np.linalg.solve(matrix, load) * load)


def of_an_array_outside(stiffness: Any) -> Any:
    return stretched(stiffness, FIXED)


def of_an_array_made_inside(stiffness: Any) -> Any:
    fixed = np.zeros(10, int)
    fixed[::4] = 1
    return stretched(stiffness, fixed)


@pytest.mark.parametrize("function", [of_an_array_outside, of_an_array_made_inside, lambda s: stretched(s, s[:, None].shape[1] * FIXED)])
def test_sizes_that_loops_compute(function):
    stiffness, step = np.linspace(1.0, 2.0, 9), 1e-6 * np.cos(np.arange(9.0))
    np.testing.assert_allclose(bw.jit(function)(stiffness), function(stiffness), rtol=1e-12)
    difference = (function(stiffness + step) - function(stiffness - step)) / 2
    assert bw.grad(function)(stiffness) @ step == pytest.approx(difference, rel=1e-6)


def test_changes_of_such_an_array_are_seen(monkeypatch):
    monkeypatch.setitem(globals(), "FIXED", FIXED.copy())
    compiled, by_argument = bw.jit(of_an_array_outside), bw.jit(stretched)
    stiffness = np.linspace(1.0, 2.0, 9)
    for place in (None, 0, 4):
        if place is not None:
            FIXED[place] = 1 - FIXED[place]
        np.testing.assert_allclose(compiled(stiffness), of_an_array_outside(stiffness), rtol=1e-12)
        np.testing.assert_allclose(by_argument(stiffness, FIXED), stretched(stiffness, FIXED), rtol=1e-12)


def test_sizes_of_other_numbers_are_refused():
    for function in (lambda x: np.zeros((int(x), int(x))), lambda x: np.zeros((numbered(x[None].astype(int))[0], 2)).sum() + x):
        with pytest.raises(TracerError):
            bw.compile(lambda x, f=function: f(x).sum(), np.array(2.0))
