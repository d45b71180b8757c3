"""Arrays of which data say how long several axes are: x[np.ix_(rows, columns)], np.zeros((n, n)), v[:, None] - v[None, :]; as NumPy's."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.unit.frontend.comparing import as_python

SIX = np.arange(6.0)
X = np.cos(np.arange(36.0) ** 2 * 0.7).reshape(6, 6) * 1.4 + 3 * np.eye(6)
PLACES = (X[::-1, ::-1], np.roll(X, (1, 1), (0, 1)) - 0.11, X.T + 0.07)


def mask(x):
    return x[0] + x[1] > 0.1


def places(x):
    return np.flatnonzero(mask(x))


def block(x):
    return x[np.ix_(places(x), places(x))]


def count(x):
    return np.sum(x[:, 0] > -0.3)


def read(x):
    m, i, j = mask(x), places(x), np.flatnonzero(x[2] > 0.3)
    return (np.sum(x[np.ix_(i, i)] ** 2) + np.sum(x[m][:, m] * 2) + np.sum(x[np.ix_(m, m)]) + np.sum(x[:, m][m]) + np.sum(x[m][:, [0, 2]])
            + np.sum(x[np.ix_(m, [0, 2])]) + np.sum(x[np.ix_([0, 3], m)][1]) + np.sum(x[i[:, None], j] ** 2 * SIX[j]) + np.sum(x[i][:, j]))


def shapes(x):
    g = block(x)
    return len(g) * g.shape[0] * g.shape[1] + np.sum(sum(g) ** 2) + g.size + np.size(g) + np.sum(g) + np.ndim(g) + np.size(g, 1) + g.ravel()[0] + np.sum(g.reshape(-1) ** 2)


def reductions(x):
    g = block(x)
    return (g.sum(axis=0) @ SIX[places(x)] + g.mean() + np.sum(g.max(axis=1)) + g.min() + np.sum(g.std(axis=0)) + np.linalg.norm(g)
            + np.sum(g.sum(axis=1, keepdims=True) * g) + np.sum(np.any(g > 1, axis=1)) + np.sum(np.linalg.norm(g, axis=1)) + np.trace(g)
            + np.sum(np.diag(g) ** 2) + np.add.reduce(g).sum() + g.var() + np.sum(np.prod(g, axis=0)) + np.all(g > -9))


def elementwise(x):
    g, v = block(x), x[2][places(x)]
    return (np.sum(np.exp(-g ** 2) * v) + np.sum(g * v[:, None]) + np.sum(np.where(g > 0, g, -1.0) * 2) + np.sum(np.maximum(g, 0.5))
            + np.sum(g / (1 + v ** 2)) + np.sum((g + g.T) ** 2) + np.sum(abs(-g)) + np.sum(np.clip(g, 0, 1)) + np.sum(2 - np.ones_like(g)))


def items(x):
    g = block(x)
    return (g[0, 1] + g[-1, -1] + np.sum(g[0] ** 2) + np.sum(g[:, 1]) + np.sum(g[1:, :-1] ** 2) + np.sum(g[:1]) + np.sum(g[::2, 0])
            + np.sum(g[:, None, 0]) + np.sum(g.T[0]) + np.sum(g[[0, 1]]) + np.sum(g[0, :2]) + np.sum(g[::-1][0]))


def assigned(x):
    g, i = block(x), places(x)
    g[0] = 1.0
    g[:, 1] = x[3, i]
    g[1:, 1:] *= 2
    g[0, 0] = x[0, 0]
    g[:2, :1] = x[:2, :1]
    g += x[1, i]
    g[:] = g ** 2
    g[:, 0] += g[:, 1]
    g[-1] = g[0] * 2
    return np.sum(g * SIX[i])


def into_arrays(x):
    i, k, y = places(x), count(x), x * 1.0
    y[np.ix_(i, i)] = x[np.ix_(i, i)] ** 2
    y[np.ix_(i, [0, 1])] += x[0, 0]
    y[i[:, None], i] *= 0.5
    y[:k, :k] += 1.0
    y[k:, k:] -= x[0, 0]
    y[:k, k:] = y[:k, k:] * 2
    return np.sum(y * y * SIX)


def products(x):
    g, b, v = block(x), x[:, places(x)], x[2][places(x)]
    return (np.sum((g @ g) ** 2) + np.sum(b.T @ b) + np.sum(b @ g) + v @ g @ v + np.sum(g @ v) + np.sum(np.outer(v, v) * g)
            + np.einsum("ij,jk,k->i", b, g, v).sum() + np.einsum("ij->", g) + np.sum(np.dot(g, v)) + np.sum(g @ b.T)
            + np.sum(x[np.ix_(places(x), np.flatnonzero(x[2] > 0.3))].T @ v))


def solutions(x):
    g, v = block(x), x[2][places(x)]
    return (np.sum(np.linalg.solve(g, v) * v) + np.sum(np.linalg.solve(g, x[places(x)])) + np.sum(np.linalg.solve(g, g.T))
            + np.sum(np.linalg.inv(g) ** 2))


def solutions_by_other_masks(x):
    i, m, few = places(x), mask(x), np.argsort(np.argsort(x[0])) < 3
    g, n = x[np.ix_(i, i)], len(i)
    return (np.sum(np.linalg.solve(g, np.sort(x[2])[:n]) * np.arange(n)) + np.sum(np.linalg.solve(g, np.append(x[2, i][1:], x[0, 0])))
            + np.sum(np.linalg.solve(g, np.concatenate([x[i][1:], x[:1]])) ** 2) + np.sum(np.linalg.solve(x[:n, :n], x[2][m]))
            + np.sum(np.linalg.solve(x[np.ix_(m, m)], x[:n, :n])) + np.sum(np.linalg.solve(x[:3][:, few], x[0, :3]))
            + np.sum(np.linalg.solve(x[np.ix_(few, few)], x[0, :3])) + np.sum(np.linalg.solve(x[:3, :3], x[0][few]))
            + np.sum(np.linalg.solve(x[:3, :3], x[:3][:, m])))


def factors(x):
    g = block(x)
    s = g @ g.T + np.eye(len(places(x)))
    return np.linalg.det(g) + np.linalg.slogdet(s)[1] + np.sum(np.linalg.cholesky(s) * SIX[places(x)])


def made_as_long_as_data_say(x):
    k = count(x)
    a, identity, d = np.zeros((k, k + 2)), np.eye(k), np.ones((2, k, k))
    a[:, :2] = x[:k, :2]
    a[:k, 2:] = x[:k, :k]
    a[0, k] = 7.0
    a[k - 1, k + 1] = x[0, 0]
    d[1] = identity * x[0, 0]
    return np.sum(a ** 2) + np.sum(identity * x[:k, :k]) + np.sum(d[1] @ x[:k]) + d.sum() + a.shape[1] + np.sum(np.eye(k, 3) @ x[:3])


def bordered(x):
    i = places(x)
    m = len(i)
    a = np.zeros((m + 1, m + 1))
    a[:m, :m] = x[np.ix_(i, i)]
    a[:m, m] = -1.0
    a[m, :m] = 0.5
    found, full = np.linalg.solve(a, np.append(-x[0][i], 2.0)), np.zeros(6)
    full[i] = found[:-1]
    return np.sum(full ** 2) + found[-1]


def views_of_arrays(x):
    k, y = count(x), x * 1.0
    g = y[:k, :k]
    y[0, 0] = 9.0
    g *= 2.0
    g[0, 1] = x[1, 1]
    turned = g.T
    y[1, 0] = 3.0
    return np.sum(y ** 2) + np.sum(g) * 3 + np.sum(turned ** 2 * turned[0, 0])


def pairwise(x):
    v, w, p = x[0][x[0] > 0], x[1][x[1] > 0], x[x[:, 0] > 0]
    d, apart = v[:, None] - v[None, :], p[:, None, :] - p[None, :, :]
    r = np.sqrt((apart ** 2).sum(-1) + 1e-2)
    return (np.sum(np.exp(-d ** 2)) + np.sum(np.minimum(v[:, None], w)) + np.sum(np.abs(d).max(axis=1)) + np.sum((v[:, None] + w[None])[0])
            + r.sum() + np.sum(r.min(axis=1)))


def an_active_set(x):
    active = mask(x)
    for _ in range(12):
        i, full = np.flatnonzero(active), np.zeros(6)
        full[i] = np.linalg.solve(x[np.ix_(i, i)], x[2][i])
        negative = active & (full < 0.0)
        if not negative.any():
            break
        active = active & ~negative
    return full @ x[3] + active.sum()


@pytest.mark.parametrize("program", [
    read, shapes, reductions, elementwise, items, assigned, into_arrays, products, solutions, solutions_by_other_masks, factors, made_as_long_as_data_say, bordered,
    views_of_arrays, pairwise, an_active_set], ids=lambda program: program.__name__)
def test_as_numpy(program):
    as_python(program, X, *PLACES, X)


def test_nothing_is_selected():
    x = X - 20.0
    for program in (lambda x: block(x).sum() + block(x).size, lambda x: np.linalg.det(block(x)), lambda x: np.sum(np.linalg.inv(block(x))),
                    lambda x: np.sum(np.linalg.solve(block(x), x[0, places(x)])), lambda x: np.sum(block(x) @ block(x))):
        assert bw.jit(program)(x) == program(x)
    with pytest.raises(ValueError, match="no elements"):
        bw.jit(lambda x: block(x).max())(x)
    with pytest.raises(IndexError):
        bw.jit(lambda x: block(x)[0, 0])(x)


def test_results():
    for program in (block, lambda x: np.eye(count(x)), lambda x: x[:count(x), count(x):]):
        np.testing.assert_array_equal(bw.jit(program)(X), program(X))
    with pytest.raises(BwError, match="number of elements is not known"):
        bw.compile(block, X)


@pytest.mark.parametrize("program", [
    lambda x: np.linalg.inv(x[np.ix_(places(x), places(-x))]).sum(), lambda x: np.linalg.solve(block(x), x[0]).sum(),
    lambda x: (block(x) + x).sum(), lambda x: (block(x) @ x[0, places(-x)]).sum()])
def test_numbers_of_elements_that_differ(program):
    with pytest.raises(ValueError):
        program(X)
    with pytest.raises(ValueError):
        bw.jit(program)(X)


def _changed_with_a_view(x):
    g = block(x)
    row = g[0]
    g += 1
    return np.sum(row) + np.sum(g)


def _its_view_is_changed(x):
    g = block(x)
    row = g[0]
    row += 1
    return np.sum(row) + np.sum(g)


def _its_transpose_is_changed(x):
    g = block(x)
    g.T[0] = 1
    return np.sum(g)


def _a_row_of_a_view(x):
    k, y = count(x), x * 1.0
    row = y[:k, :k][0]
    y[0, 0] = 5.0
    return np.sum(row)


def _chosen_by_data(x):
    g = block(x)
    if x[0, 0] > 0:
        g = np.eye(count(x))
    g += 1
    return np.sum(g)


@pytest.mark.parametrize("program", [
    _changed_with_a_view, _its_view_is_changed, _its_transpose_is_changed, _a_row_of_a_view, lambda x: np.linalg.eigvalsh(block(x)).sum(),
    lambda x: np.sum([np.sum(row) for row in block(x)]), lambda x: np.sum(block(x)[block(x) > 0])], ids=range(7))
def test_refused(program):
    with pytest.raises(BwError, match="test_grids.py") as caught:
        bw.jit(program)(X)
    assert "hint" in str(caught.value)


def test_a_choice_is_right_or_refused():
    try:
        found = bw.jit(_chosen_by_data)(X)
    except BwError as refused:
        assert "hint" in str(refused)
    else:
        assert found == pytest.approx(_chosen_by_data(X), rel=1e-12)
