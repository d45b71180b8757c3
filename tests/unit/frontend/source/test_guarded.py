"""Loops that end when data say so, with slices whose bounds move: recorded as loops of all iterations that there may be."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.8, 0.3, 0.55, -0.2, 1.05, 0.65])
N = len(X)
A = np.diag(np.linspace(1.0, 20.0, N))


def arnoldi_step(x, basis, h, k):
    v = A @ basis[:, k] + 0.1 * x * np.sum(x * basis[:, k])
    coefficients = basis[:, :k + 1].T @ v
    v = v - basis[:, :k + 1] @ coefficients
    h[:k + 1, k] = coefficients
    h[k + 1, k] = np.linalg.norm(v)
    return v


def arnoldi(x):
    basis, h = np.zeros((N, 12)), np.zeros((12, 11))
    basis[:, 0] = x / np.linalg.norm(x)
    k = 0
    while k < 10:
        v = arnoldi_step(x, basis, h, k)
        if h[k + 1, k] < 4.0 + x[2]:
            break
        basis[:, k + 1] = v / h[k + 1, k]
        k += 1
    return np.sum(h ** 2) + np.sum(basis) * k


def arnoldi_for(x):
    basis, h = np.zeros((N, 12)), np.zeros((12, 11))
    basis[:, 0] = x / np.linalg.norm(x)
    for k in range(10):
        v = arnoldi_step(x, basis, h, k)
        if h[k + 1, k] < 4.0 + x[2]:
            break
        basis[:, k + 1] = v / h[k + 1, k]
    return np.sum(h ** 2) + np.sum(basis) * k


def in_the_test(x):
    """No jump: the test asks for data and for the number of iterations."""
    m, k, rest = np.outer(x, x) + 3 * np.eye(N), 0, 10.0
    while rest > 0.5 + 0.1 * x[0] and k < 12:
        m[k + 1:, k:] -= np.outer(m[k + 1:, k] / m[k, k], m[k, k:])
        rest = rest - m[k, k] * 0.4
        k += 1
    return np.sum(m) + k * rest


def downwards(x):
    m, k, total = np.outer(x, x) + 3 * np.eye(N), N - 1, 0.0
    while k > 2:
        total = total + np.linalg.norm(m[:k, :k] @ x[:k])
        if total > 40.0 + x[1]:
            break
        k -= 1
    return total * k


def returns(x):
    m, k = np.outer(x, x) + 3 * np.eye(N), 2
    while k < N:
        y = m[:k, :k] @ x[:k]
        if y.max() > 4.0 + 0.1 * x[3]:
            return np.sum(y ** 2) * k
        k += 1
    return x[0]


def by_two(x):
    """The number of steps is not one that can be known: the break depends on it."""
    m, k, total = np.outer(x, x) + 3 * np.eye(N), 1, 0.0
    while k < N:
        total = total + np.sum(m[:k, :k] @ x[:k])
        if total > 60.0:
            break
        k = k + 1
        if total > 9.0:
            total = total * 0.9
    return total + k


def last_ones(x):
    """Bound anew in each iteration, and read after the last one that there is."""
    m, k, last, size = np.outer(x, x) + 3 * np.eye(N), 1, x[0], 0
    while k < N:
        last = np.linalg.norm(m[:k, :k] @ x[:k]) * x[k]
        size = k * 2
        if last > 4.0:
            break
        k += 1
    for j in range(1, N):
        product = m[:j, :j] @ x[:j]
        least, place = product.min(), j
        if least < -1.0 + 0.1 * x[2]:
            break
    return last + size * k + least * place * j


PROGRAMS = [arnoldi, arnoldi_for, in_the_test, downwards, returns, by_two, last_ones]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X, 1.1 - X)
    for factor in (0.1, 0.5, 2.0, 5.0):            # ends after other numbers of iterations
        assert bw.jit(program)(factor * X) == pytest.approx(program(factor * X), rel=1e-11)


def skipping(x, size):
    k, total = 1, 0.0
    while k < N:
        total = total + size(x[:k])
        if total > 50.0:
            break
        k += 2 if total > 3.0 else 1
    return total


def test_steps_that_data_choose() -> None:
    def of_matrices(x):
        return skipping(x, lambda part: np.linalg.norm(np.outer(part, part) @ part))
    as_python(of_matrices, X, 1.1 - X)
    for factor in (0.1, 0.5, 2.0, 5.0):
        assert bw.jit(of_matrices)(factor * X) == pytest.approx(of_matrices(factor * X), rel=1e-11)


def test_steps_that_data_choose_are_refused() -> None:
    with pytest.raises(bw.errors.TracerBoolError, match="cannot be recorded"):
        bw.jit(lambda x: skipping(x, lambda part: np.linalg.norm(np.outer(part, part), 2)))(X)


def until_one_is_found(x):
    k, found, sizes = 0, None, 0.0
    while k < 10 and found is None and x[0] < 9.0:
        size = np.linalg.norm(np.outer(x[:k + 1], x[:k + 1]) @ x[:k + 1])
        if size > 4.0:
            found = size
        sizes += size
        k += 1
    return sizes * k + (x[0] if found is None else found)


def is_nothing_on_entry(x):
    m, found = 0, None
    while m < 9 and found is None and x[0] < 5:
        m += 1
        found = max((u for u in x[:4] if u < 1.3), default=None)
    return m + found


def test_tests_whether_there_is_something() -> None:
    for factor in (1.0, 0.5, -1.5, 2.0):
        assert bw.jit(until_one_is_found)(factor * X) == pytest.approx(until_one_is_found(factor * X), rel=1e-11)


def test_a_test_whether_there_is_nothing_ends_a_loop() -> None:
    compiled = bw.jit(is_nothing_on_entry)
    for x in (X, np.array([1.1, 1.25, 0.3, 4.0, 5.0])):
        assert compiled(x) == is_nothing_on_entry(x)
    for x in (X + 2.0, X + 5.0):
        with pytest.raises(TypeError):
            compiled(x)
