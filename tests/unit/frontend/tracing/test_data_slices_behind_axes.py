"""`x[:, :k]` where k is data: slices behind other axes; as NumPy's, and views as there."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

SIDES = np.arange(5.0)
X = np.cos(np.arange(30.0) ** 2).reshape(5, 6) + 0.05
PLACES = (-X, np.roll(X, 7), X[::-1] * 1.3)                # 1 to 4 of the first columns' numbers are positive, in different rows


def count(x):
    return np.sum(x[:, 0] > 0)


def truncated(x):
    k = count(x)
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    return np.sum(((u[:, :k] * s[:k]) @ vt[:k]) ** 2 * np.arange(6.0)) + np.sum(s[k:])


def read(x):
    k, v = count(x), (x ** 2)[:, :count(x)]
    return (np.sum(x[:, :k] ** 2) + np.sum((x[:, k:] @ x[:, k:].T)[0]) + np.sum(x[:, 1:k].mean(axis=1) * SIDES) + v[0].sum() + v[:, 0].sum()
            + v[:, -1].sum() + v.shape[1] + np.sum(v[1:3]) + np.sum(x[::-1, :k][0]) + np.sum(v.T[0] * SIDES))


def reduced(x):
    k = count(x)
    return (np.sum(np.cumsum(x[:, :k], axis=1)[:, -1]) + np.sum(np.sort(x[:, :k], axis=1)[:, 0]) + np.max(x[:, :k])
            + np.sum(x[:, :k].max(axis=1) * SIDES) + np.sum(np.linalg.norm(x[:, :k], axis=1)) + np.sum(np.linalg.norm(x[:, :k], axis=0))
            + np.einsum("ij,ij->", x[:, :k], x[:, :k]))


def parts_of_parts(x):
    k = count(x)
    return np.sum(x[:, :k][:, 1:]) + np.sum(x[:, :k][:2, :2]) + np.sum(x[:, :k][:, None, :] * 2) + x[:, :k][1][0] + x[:, k:].T[0, 2]


def three_axes(x):
    k, z = count(x), x[None] * np.arange(1.0, 4.0)[:, None, None]
    return (np.sum(z[:, :, :k] ** 2) + np.sum(z[1:, :k].sum(axis=1) * 2) + np.sum(z[1, :k, ::2]) + np.sum(z[..., :k]) + np.sum(z[:, 1, :k])
            + np.sum(z[..., :k, 1]))


def written(x):
    k, y = count(x), x * 1.0
    y[:, :k] = 2 * x[:, :k]
    y[:, k:] += 1
    y[1:, :k] *= 3.0
    y[:, None, :k] -= x[0, 0]
    return np.sum(y ** 2)


def views(x):
    y = x * 1.0
    k = count(x)
    v = y[:, :k]
    row, turned = v[1], v.T
    y[0, 0] = 5.0
    v *= 2
    v[0] = x[0, 0]
    row[0] = x[1, 1]
    return np.sum(y ** 2) + np.sum(v) + np.sum(row * 3) + np.sum(turned ** 2) + np.sum(turned[:, 1])


def gone_over(x):
    total = 0.0
    for column in x[:, :count(x)].T:
        total = total * 0.5 + column[0] * column[1]
    for k, row in enumerate(x[:, :count(x)]):
        total += k * row.sum()
    return total


def joined(x):
    k = count(x)
    whole = np.concatenate([x[:, k:], x[:, :k] * 2], axis=1)
    tall = np.concatenate([x[:, :k], x[:, :k] ** 2])
    return np.sum(whole[:, 0]) + np.sum(whole[:, -1] * 3) + np.sum(whole ** 2) + np.sum(tall[5:] * 2) + tall[7, 0]


def chosen_in_a_loop(x):
    best, kept = np.inf, 1
    for k in range(1, 5):
        error = np.sum((x[:, :k].mean(axis=1) - x[:, 0]) ** 2) + 0.3 * np.abs(k - 2.5 * x[0, 0])
        if error < best:
            best, kept = error, k
    return best + np.sum(x[:, :kept] ** 2) + x[:, kept:].sum()


@pytest.mark.parametrize("program", [
    truncated, read, reduced, parts_of_parts, three_axes, written, views, gone_over, joined, chosen_in_a_loop],
    ids=lambda program: program.__name__)
def test_as_numpy(program):
    as_python(program, X, *PLACES, X)


def test_nothing_between_the_bounds():
    x = X - 5.0
    for program in (lambda x: np.sum(x[:, :count(x)]) + np.sum(x[:, count(x):]), lambda x: (x[:, :count(x)] @ x[:count(x)]).sum()):
        assert bw.jit(program)(x) == pytest.approx(program(x), rel=1e-13)
        np.testing.assert_allclose(bw.grad(program)(x), 1.0 if program(x) else 0.0)
    with pytest.raises(IndexError):
        bw.jit(lambda x: x[:, :count(x)][0, 0])(x)
