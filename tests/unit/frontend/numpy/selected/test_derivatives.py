"""Derivatives of what is computed of some elements of `1 / x[x > 0]`: those of the others, which are inf, do not count."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.gradcheck import central_differences

X = np.array([0.0, 2.1, 1.5, 0.0, 3.2, 0.7, 0.0])
PLACES = np.array([0, 1, 0, 2, 1, 1, 0])


def inverse(x):
    return 1 / x[x > 0]


def interpolated(x):
    v = np.log(x[x > 0])
    return np.interp(0.3, np.arange(len(v)) * 1.0, v)


def added(x):
    sums = np.zeros(3)
    np.add.at(sums, PLACES[x > 0], inverse(x))
    np.multiply.at(sums, PLACES[x > 0], np.log(x[x > 0]))
    return np.sum(sums ** 2)


def assigned(x):
    found = np.ones(7)
    found[np.where(x > 0)] = inverse(x)
    found[np.arange(7)[x > 0]] *= np.log(x[x > 0])
    return np.sum(found ** 2)


def assigned_elsewhere(x):
    found = np.ones(7)
    found[np.arange(7) % 2 == 0] = inverse(x)
    return np.sum(found ** 3)


def in_loop(x):
    v, s = inverse(x), 0.0
    for k in range(len(v)):
        s = s * 0.5 + v[k]
    return s


def at_places_of_data(x):
    v, s, k = inverse(x), 0.0, 0
    while x[k] < 2.5:
        s, k = s * 0.5 + v[int(x[k])], k + 1
    return s


def enumerated(x):
    return sum(k * t ** 2 for k, t in enumerate(inverse(x)))


def appended(x):
    found = []
    for t in inverse(x):
        found.append(t ** 2)
    return np.array(found)[1] * found[-1]


def zipped(x):
    s = 0.0
    for t, v in zip(x[x > 0], inverse(x), strict=False):
        s += t * v ** 2
    return s


def joined(x):
    return np.concatenate([inverse(x), x + 1])[2] * np.append(inverse(x), 2.0)[3]


@pytest.mark.parametrize("program", [
    lambda x: inverse(x)[0], lambda x: inverse(x)[-1], lambda x: inverse(x)[::-1][1], lambda x: np.sum(inverse(x)[1:3] ** 2),
    lambda x: np.sum(inverse(x)[np.array([0, 2])]), lambda x: np.sum(np.exp(inverse(x)[np.argsort(x[x > 0])])[1:]),
    lambda x: inverse(x)[np.argmax(np.log(x[x > 0]))],
    lambda x: np.array([1 / t for t in x if t > 0])[1], lambda x: [1 / t for t in x[x > 0]][2],
    interpolated, added, assigned, assigned_elsewhere, in_loop, at_places_of_data, enumerated, appended, zipped, joined])
def test_is_finite(program):
    value, gradient = bw.value_and_grad(program)(X)
    free = np.flatnonzero(X)

    def of_free(part):
        x = X.copy()
        x[free] = part
        return program(x)
    np.testing.assert_allclose(value, program(X), rtol=1e-14)
    np.testing.assert_allclose(gradient[free], central_differences(of_free, X[free]), rtol=1e-6, atol=1e-8)
    assert np.all(gradient[X == 0] == 0)


# ----- products, which mix elements: 0 times what is nan is nan
A = np.abs(np.cos(np.arange(36.0) ** 2 * 0.7)).reshape(6, 6) + 0.2
A[0], A[:, 3], A[3, 0], A[0, 3] = -A[0], -A[:, 3], 0.5, -0.3                    # logarithms of rows and columns 1, 2, 4, 5 alone are finite


def chosen(x):
    return np.diagonal(x) > 0


def block(x):
    i = np.flatnonzero(chosen(x))
    return np.log(x)[np.ix_(i, i)]


def row(x, k):
    return np.log(x)[k, chosen(x)]


def factor(x):
    g = block(x)
    return np.linalg.cholesky(g @ g.T + np.eye(len(g)))


PRODUCTS = [
    lambda x: np.sum(np.log(x[:, 1:3])[chosen(x)] @ x[4, 1:3]), lambda x: np.sum(x[4, 1:3] @ np.log(x[1:3])[:, chosen(x)]),
    lambda x: np.sum(np.log(x[:, 1:3])[chosen(x)] @ np.log(x[1:3])[:, chosen(x)]),
    lambda x: np.einsum("ij,jk,k->i", np.log(x[:, 1:3])[chosen(x)], x[1:3], x[2]).sum(), lambda x: np.sum(np.outer(row(x, 1), x[2])),
    lambda x: np.sum((block(x) @ x[2][chosen(x)]) ** 2), lambda x: np.sum(x[2][chosen(x)] @ block(x)),
    lambda x: np.sum(block(x) @ block(x)), lambda x: np.einsum("ij,kj->ik", block(x), np.log(x[1:3])[:, chosen(x)]).sum(),
    lambda x: np.sum(np.linalg.solve(x[np.ix_(chosen(x), chosen(x))], block(x))), lambda x: np.sum(np.linalg.inv(block(x)) ** 2),
    lambda x: np.sum(np.linalg.solve(x[1:3, 1:3], np.log(x[1:3])[:, chosen(x)])), lambda x: np.sum(factor(x) ** 3),
    lambda x: np.sum(np.linalg.solve(np.exp(x)[np.ix_(chosen(x), chosen(x))], np.log(x[:, 1:3])[chosen(x)])),
]


@pytest.mark.parametrize("program", PRODUCTS, ids=range(len(PRODUCTS)))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_products_are_finite(program, rng):
    gradient, product = bw.value_and_grad(program), bw.hvp(program)
    for x in (A, A[[0, 2, 1, 3, 5, 4]][:, [0, 2, 1, 3, 5, 4]] * 1.1):
        v, h = rng.standard_normal(x.shape), 1e-6
        value, found = gradient(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        np.testing.assert_allclose(np.sum(found * v), (program(x + h * v) - program(x - h * v)) / (2 * h), rtol=1e-5, atol=1e-6)
        second = (gradient(x + h * v)[1] - gradient(x - h * v)[1]) / (2 * h)
        np.testing.assert_allclose(product(x, v), second, rtol=1e-4, atol=1e-4 * np.max(np.abs(second)))


def test_rows_that_are_missing(rng):
    """Data that are nan where they are not selected, and a model that is linear in what is sought."""
    data, parameters = rng.standard_normal((9, 3)), rng.standard_normal(3)
    data[[2, 5], [0, 1]] = np.nan

    def loss(p, x):
        return np.sum((x[~np.isnan(x).any(axis=1)] @ p - 1.0) ** 2)
    known = data[[0, 1, 3, 4, 6, 7, 8]]
    np.testing.assert_allclose(bw.grad(loss)(parameters, data), 2 * known.T @ (known @ parameters - 1.0), rtol=1e-12)
