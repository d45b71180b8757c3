"""Numbers that data decide, and that a function is compiled for where it is refused otherwise: sizes, ranges, the side of a branch.

Values and gradients are NumPy's for arguments that decide otherwise, one program is compiled for each set of numbers, and none again.
"""

import warnings

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import RecompileWarning, TracerError, TracerIndexError
from tests.unit.frontend.comparing import as_python

pytestmark = pytest.mark.usefixtures("assuming")

X = np.array([0.3, -1.1, 2.2, 0.7, -0.4, 1.4, -0.2, 1.9])
FEWER = np.array([0.3, 1.1, -2.2, 0.7, 1.4, -1.2, -1.9, -0.6])
PLACES = (X, FEWER, X[::-1].copy(), 1.1 * X, 1.2 * FEWER)


def transformed(x):
    s = x[x > 0]
    return np.sum(np.abs(np.fft.fft(s)) ** 2 * np.arange(len(s)))


def of_two_axes(x):
    s = x[x > 0]
    pairs = np.outer(s, s)[np.triu_indices(len(s), 1)]
    return np.sum(np.kron(s, s)) + np.linalg.det(np.eye(len(s)) + 0.1 * np.outer(s, s)) + pairs.sum()


def as_lists(x):
    s = x[x > 0]
    numbers, joined = list(s), s.tolist() + [1.0]
    return sum(numbers) + sum(joined[k] * joined[k + 1] for k in range(len(joined) - 1)) + len(numbers)


def with_room(x):
    n = int(x[2] * 3) + 12
    out = np.zeros(n)
    for i in range(n):
        out[i] = x.sum() * i
    return np.sum(out**2) + n


def a_range(x):
    t = np.arange(0.1, 3.0 + np.sum(x[:2]), 0.15 + 0.01 * x[3])
    return np.sum(np.sin(t))


def a_window(x):
    k = np.argmax(x)
    part = x[max(k - 2, 0):k + 1]
    return np.sum(np.kron(part, np.arange(1.0, 3.0)))


def results_of_other_shapes(x):
    def inner(y):
        return {"all": y} if y[0] + y[1] > 0.5 else {"sum": y.sum(), "many": 2.0}
    found = inner(x)
    return sum(np.sum(one) for one in found.values()) * len(found)


def until_it_is_large(x):
    steps = {}
    while np.sum(np.abs(x)) < 40:
        x = x * 1.5
        steps[f"step {len(steps)}"] = x
    return sum(one.sum() for one in steps.values()) + len(steps)


def caught(x):
    s = x[x > 0]
    try:
        root = np.linalg.cholesky(np.kron(np.eye(2), np.outer(s, s) + (len(s) - 4.5) * np.eye(len(s))))
    except np.linalg.LinAlgError:
        return x.sum() * 2
    return np.sum(root)


def views(x):
    y, k = x * 1.0, np.sum(x > 0)
    part, table, own = y[:k], y[:2 * (k // 2)].reshape(k // 2, 2), y[y > 0]
    part[1:][0], table[0], own[0] = 9.0, 0.5 * x[3], 100.0
    y[:k] *= 2.0
    square = (x * 1.0).reshape(2, 4)
    rows = square[:k - 3, :k - 2]
    rows[0, 0] = np.kron(own, x).sum()
    rows.T[1] += 1.0
    return y.sum() + own.sum() + np.sum(square * np.arange(8.0).reshape(2, 4)) + part.sum()


class Node:
    """A search tree of numbers, built of objects as data say."""

    def __init__(self, value):
        self.value, self.left, self.right, self.count = value, None, None, 1

    def insert(self, value):
        self.count += 1
        if value < self.value:
            if self.left is None:
                self.left = Node(value)
            else:
                self.left.insert(value)
        elif self.right is None:
            self.right = Node(value)
        else:
            self.right.insert(value)

    def weighted(self, depth=1.0):
        below = [one.weighted(depth * 0.5) for one in (self.left, self.right) if one is not None]
        return self.value * depth * self.count + sum(below)


def in_a_tree(x):
    root = Node(x[0])
    for value in x[1:6]:
        root.insert(value)
    return root.weighted() ** 2 + x[6:].sum()


def quicksorted(x):
    def sort(items):
        if len(items) < 2:
            return items
        head, rest = items[0], items[1:]
        return sort([one for one in rest if one < head]) + [head] + sort([one for one in rest if one >= head])
    return sum(k * one for k, one in enumerate(sort(list(x[:4]))))


PROGRAMS = [in_a_tree, quicksorted, transformed, of_two_axes, as_lists, with_room, a_range, a_window, results_of_other_shapes, until_it_is_large, caught,
            views]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_as_python(program):
    as_python(program, *PLACES)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_gradients(program):
    compiled = bw.value_and_grad(program)
    for x in (*PLACES, X):
        value, gradient = compiled(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        ends = [[program(x + sign * 1e-6 * one) for sign in (1, -1)] for one in np.eye(x.size)]
        np.testing.assert_allclose(gradient, [(high - low) / 2e-6 for high, low in ends], rtol=1e-5, atol=1e-6)


def test_one_program_for_each_set_of_numbers():
    def program(x):
        return np.sum(np.kron(x[x > 0], x[x > 0]))
    compiled = bw.grad(program)
    for x in (X, FEWER):
        compiled(x)
    before = compiled._traces
    for x in (X, 3.0 * X, np.roll(X, 3), FEWER, 0.3 * FEWER, X):
        np.testing.assert_allclose(compiled(x), np.where(x > 0, 2 * x[x > 0].sum(), 0.0))
    assert compiled._traces == before


def test_what_the_function_raises():
    def program(x):
        s = x[x > 0]
        if len(np.kron(s, s)) > 16:
            raise ValueError(f"{len(s)} are too many")
        if s.sum() > 100:
            raise KeyError("large")
        return s.sum()
    compiled = bw.jit(program)
    for _ in range(2):
        with pytest.raises(ValueError, match="5 are too many"):
            compiled(X)
        assert compiled(FEWER) == program(FEWER)
        with pytest.raises(KeyError, match="large"):
            compiled(100 * FEWER)


def test_no_handler_of_the_function_hears_of_it():
    def program(x):
        s = x[x > 0]
        try:
            found = np.sum(np.kron(s, s))
        except BaseException:
            found = -1.0
        return found
    as_python(program, *PLACES)


def test_arguments_that_are_assigned_to_are_as_before():
    def program(x):
        s = x[x > 0]
        x[0] = np.kron(s, s).sum()
        return x.sum()
    x = X.copy()
    with pytest.raises(TracerIndexError, match="np.kron needs it"):
        bw.jit(program)(x)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(bw.grad(program)(X), bw.grad(lambda x: x[1:].sum() + np.kron(x[x > 0], x[x > 0]).sum())(X))


def test_numbers_outside_and_transforms():
    scale = np.array([1.0, 2.0])
    def program(x):
        return np.kron(x[x > 0], scale).sum()
    compiled = bw.jit(program)
    np.testing.assert_allclose(compiled(X), program(X))
    scale[0] = 5.0
    np.testing.assert_allclose(compiled(X), program(X))
    np.testing.assert_allclose(bw.hessian(lambda x: np.kron(x[x > 0], x[x > 0]).sum())(X)[0], np.where(X > 0, 2.0, 0.0))
    np.testing.assert_allclose(bw.jacobian(lambda x: np.kron(x[x > 0], x[x > 0])[:2])(X)[0], np.eye(8)[0] * 0.6)


def test_programs_for_all_arguments_are_refused():
    with pytest.raises(TracerIndexError, match="np.kron needs it"):
        bw.compile(lambda x: np.kron(x[x > 0], x).sum(), X)
    with pytest.raises(TracerIndexError, match="np.kron needs it"):
        bw.vmap(lambda x: np.kron(x[x > 0], x).sum())(np.stack([X, FEWER]))
    with pytest.raises(TracerError, match="KDTree|cKDTree|converts"):
        bw.jit(lambda x: __import__("scipy.spatial").spatial.cKDTree(x[:, None]).n * x.sum())(X)


def test_what_explain_and_the_warning_say():
    compiled = bw.grad(transformed)
    assert "it is compiled for 5, which data decide (test_assumed_numbers.py:" in compiled.explain(X)
    tree = bw.grad(in_a_tree).explain(X)
    assert "it is compiled for True, False, False and " in tree and len([line for line in tree.splitlines() if "data decide" in line]) < 5
    program = bw.jit(lambda x: np.kron(x[x > 0], x).sum())
    with warnings.catch_warnings(record=True) as caught_ones:
        warnings.simplefilter("always")
        for count in range(17):
            program(np.append(-np.ones(20 - count), np.ones(count)))
    texts = [str(one.message) for one in caught_ones if one.category is RecompileWarning]
    assert len(texts) == 1
    assert "what it was compiled for is data, and other numbers now" in texts[0]
