"""What data selects: x[mask] with traced masks, positions that a mask gives, as indices, in assignments and loops; as NumPy's."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerIndexError, UnsupportedError


def reductions(x):
    v, w = x[x > 0], x[x > 50]
    return (v.sum(), v.mean(), v.max(), v.min(), v.prod(), v.std(), v.var(ddof=1), len(v), v.size, v.shape[0], np.ptp(v), np.linalg.norm(v),
            np.any(v > 1), np.all(v > 0), np.count_nonzero(v > 1), v.argmax(), v.argmin(), np.sum(x[x > 0] ** 2), np.average(v, weights=v ** 2),
            np.linalg.norm(v, 1), w.sum(), w.size, w.prod(), np.sort(w).sum(), w[1:].sum(), w @ w, np.diff(w).sum(), np.cumsum(w).sum())


def order(x):
    v = x[x > 0]
    return (np.median(v), np.percentile(v, [10, 50, 90]), np.quantile(v, 0.37), np.argsort(v)[0], v[np.lexsort((v, np.floor(2 * x[x > 0])))][1:3].sum(), v[np.argsort(-v)][:2].sum(), np.sort(v)[1],
            np.cumsum(v)[-1], np.cumprod(v)[0], np.diff(v).sum(), sorted(v)[0], max(v), min(v), sum(v))


def slices(x):
    v = x[x > 0]
    return ((v[1:] - v[:-1]).sum(), v[::2].sum(), v[::-1][0], v[-2:].sum(), v[:2].sum(), v[1:-1].sum(), v[np.array([0, 1, 0])], v[[0, -1]].sum(),
            v[v.argmax()], v[v > 1].sum(), (v[:, None] * np.arange(3.0)).sum(0), v.reshape(-1, 1).sum(0), v[None, :].sum(1), np.flip(v)[0])


def elementwise(x):
    v, k = x[x > 0], np.floor(x * 3).astype(int)
    return (np.polyval([1.0, 2.0], v).sum(), np.where(v > 1, v, 0).sum(), np.clip(v, 0.5, 1).sum(), np.round(v, 1).sum(), v.astype(int).sum(),
            abs(-v).sum(), np.isclose(v, 1).sum(), k[k > 0] // 2 @ k[k > 0], k[k > 0].max(), np.median(k[k > 0]), (k[k > 0] % 2 == 0).sum(),
            (x > 1)[x > 0].mean(), (~(x > 1)[x > 0]).sum(), (x[x > 0][:1] * x[x < 0][:1]).sum(), (v - x[:1]).sum(), *chosen(x, v))


def chosen(x, v):
    columns = np.abs(v[:, None] - np.array([0.5, 1.5, 2.5]))
    return (np.select([v < 0.5, v < 1], [v ** 2, 3 * v]).sum(), np.select([v > 1, v > x[0]], [v, x[0]], default=-1.0) @ v,
            np.select([columns < 1, columns < 2], [2 / 3 - columns ** 2, (2 - columns) ** 3]).sum(axis=0))


def joined(x):
    v = np.concatenate([x[x > 0], -x[x < 0], [1.0, 2.0]])
    a = np.stack([x[x > 0], x[x > 0] ** 2])
    b, w = np.array([x[x > 0], 2 * x[x > 0], 1 - x[x > 0]]), x[x > 0][:, None]
    c = np.array((x[x > 0].astype(int), x[x > 0].astype(int)), dtype=float)
    return (np.amin(b, axis=0).sum(), np.amax(b, axis=1), np.amax(v), c.sum(), np.repeat(w, 3, axis=1).cumsum(axis=1).sum(axis=0),
            np.repeat(x[x > 0], 2)[:3], np.repeat(w, 2, axis=0).sum(), len(np.repeat(b, 2)), np.repeat(b, 2, axis=-1)[1, 1], *joined_by_names(x, v, a))


def joined_by_names(x, v, a):
    return v.sum(), len(v), np.sort(v)[1], v[0], a.sum(axis=1), a @ a.T, np.append(x[x > 0], 1.0)[-1], np.hstack([x, x[x > 0]]).max(), np.maximum(x[:1], v).sum()


def rows(x):
    a, m = np.outer(x, np.arange(1.0, 4)), x > 0
    b = a[m]
    return (b.mean(axis=0), b.sum(1).sum(), (b - b.mean(axis=0)).std(), b.T @ b, b @ np.ones(3) @ x[m], b[:, 0].max(), b[0], b[-1, 1], b.shape[0],
            b.shape[1], (b * x[m][:, None]).sum(0), b.max(axis=0), np.median(b, axis=0), b.argmax(axis=1).sum(), np.einsum("ij,i->j", b, x[m]),
            np.outer(x[m], np.arange(2.0)).sum(0), np.dot(x[m], b), b.ravel().sum(), len(b.ravel()), (b / x[m, None]).sum(0),
            (x[None, m] * x[m]).sum(), a[m, None, 1:].sum(axis=0))


def columns(x):
    a, m = np.outer(np.arange(1.0, 4), x), x > 0
    b = a[:, m]
    return (b.mean(axis=1), b.sum(0).sum(), b @ b.T, b[1].sum(), b[:, 0], b[0, -1], b.shape[1], (b * x[m]).sum(1), b.T.sum(axis=0), b.max(), len(b),
            b.cumsum(axis=1)[:, -1], np.sort(b, axis=1)[:, 0], np.ravel(b)[1], np.compress(m, a, axis=1).sum())


def masks_of_two_axes(x):
    a = np.outer(x, x[:3])
    r, c = np.where(a > 0)
    return (a[a > 0].sum(), a[a > 0].mean(), np.sort(a[a > 0])[0], a[r, c].sum(), (r * c).sum(), a[r].sum(), a[r, 1].sum(), a[:, c].sum(),
            np.argwhere(a > 0)[0], a[a > 0][1:].sum(), len(np.argwhere(x[0])), np.argwhere(x[0] > 1).shape[1])


def positions(x):
    i = np.where(x[1:] > x[:-1])[0]
    j, nested = np.nonzero(np.diff(np.sign(x)))[0], np.flatnonzero(x > 0)
    return (x[i + 1].sum() - x[i].sum(), (j - x[j] / (x[j + 1] - x[j])).sum(), len(i), np.diff(i).sum(), i[0], i[-1], i.mean(),
            x[nested[x[nested] > 1]].sum(), np.delete(x, np.where(x < 0)[0]).sum(), np.extract(x > 0, x).mean(), x[(x > 0).nonzero()].mean())


def different_numbers(x):
    k, total = np.floor(x), 0.0
    for group in np.unique(k):
        total = total + x[k == group].mean() * group
    return total, len(np.unique(k)), np.unique(k).sum(), np.unique(k[k > 0]).size


def loops(x):
    total = 0.0
    for i, v in enumerate(x[x > 0]):
        total = total + (i + 1) * v
    for i in np.where(x > 0)[0]:
        total = total + x[i] ** 2 * i
    return total, sum([v ** 2 for v in x[x > 0] if v > 1])


def chains(x):
    good = x
    for _ in range(3):
        good = good[np.abs(good - good.mean()) < 1.5 * good.std()]
    return good.mean(), good.size


def assigned(x):
    y, z, a, m = x.copy(), np.zeros_like(x), np.outer(x, x), x > 0
    y[np.argsort(x) < 3] = np.array([1.0, 2.0, 3.0])
    y[m] = x[m][::-1]
    y[np.argsort(np.argsort(x)) < 2] = x[np.argsort(np.argsort(x)) >= len(x) - 2]
    i = np.where(x[:-1] > 0)[0] + 1
    z[i] = x[i - 1]
    z[np.where(x < -1)] = 5.0
    a[m] *= 2
    a[:, m] -= 1
    a[~m, 0] = 3.0
    a[0, m] = x[m]
    a[np.where(a > 2)] = 0
    return y, z, a


def assigned_beside_other_indices(x):
    a, b, c = np.outer(x, x[:3]), np.outer(x[:3], x), np.outer(x, x[:6]).reshape(9, 2, 3)
    i, (r, k), last = np.where(x > 0)[0], np.where(c[:, :, 0] > 0), np.argmax(x) % 3
    a[i, 0] *= -1                                  # reflected at a wall
    a[i, 1:] += x[i, None]
    a[..., 2][i] = 7.0
    b[1, i] = x[i] ** 2
    b[1:, i] *= 0.5
    b[0][i] -= 1.0
    c[i, :, 1] = np.outer(x, x[:2])[x > 0]
    c[i, 1, 0] += x[i]
    c[..., i % 3] *= 1.5                           # the same places several times
    c[0, :, i % 3] = 3.0
    c[r, k, 2] = x[r] * x[k]
    c[r, k] *= 0.9
    a[i, last] += 2.0
    a[i - 9, 1] *= 1.1
    np.add.at(a, (i, 2), x[i])
    np.add.at(a, (np.where(x < 0)[0] % 4, 1), x[x < 0])
    return a, b, c


def assigned_at_rows_of_positions(x):
    a, y, where = np.outer(x, x[:3]), x.copy(), np.where(x > 0)
    a[where, 0] *= -1                              # a tuple of positions among other indices is an array with one row
    a[where, 1] = 3.0 - (a[where, 1] - 3.0)
    a[where[0][None], 2] = x[None, where[0]]
    a[[where[0]], 1:] += x[where[0]][:, None]
    a[where, 0] -= np.array([[1.0]])
    y[where[0][None]] *= 2.0
    return a, y, a[where, 1].sum(), a[where, :2].sum(axis=(0, 1)), a[where, 0].shape[0], (y[[where[0]]] * x[x > 0]).sum(axis=1)


def changed_in_place(x):
    v = x[x > -1]
    same = v
    same += 1
    v[v < 0.5] = 0
    v[0] = 5
    w = x[x > -1]
    w[:] = w ** 2
    w.sort()
    return v.sum(), w[0], w.sum()


def changed_in_place_by_other_masks(x):
    v, m, i = x[x > 0], np.outer(x, x[:3]) > 0, (np.arange(27) % 11).reshape(9, 3)
    v -= x[np.argsort(np.argsort(-x)) < (x > 0).sum()][::-1]
    w, a = x[x > 0], np.outer(x, x[:3])
    w *= x[x < 0][:1]
    y = x.copy()
    y[np.argsort(np.argsort(x)) < 3] -= x[np.argsort(np.argsort(x)) >= len(x) - 3]
    a[m] += np.append(x, x)[i[m]] * a[m]                # one axis where a[m] has those of its mask
    b = a[m]
    b += np.append(x, x)[i[m]]
    a[a < 0] /= np.append(x, x)[i][a < 0]
    return (v * np.cumsum(np.ones_like(v))).sum(), (w * np.cumsum(np.ones_like(w))).sum(), y, a, b.sum()


def complex_numbers(x):
    v = (x + 1j * x ** 2)[x > 0]
    return v.sum(), abs(v).max(), v.real.sum(), v.imag.mean(), np.angle(v).sum(), v.conj().sum()


def integrals(x):
    m, t = x > -0.5, np.arange(len(x)) * 1.0
    a, least = np.outer(x, np.arange(1.0, 4)), np.argsort(np.argsort(x)) < 3
    return (np.trapezoid(a[m], t[m], axis=0), np.trapezoid(a[m]).sum(), np.trapezoid(a.T[:, m], t[m]), np.trapezoid(a[m] ** 2, a[m], axis=0),
            np.trapezoid(np.arange(3.0), x[least]), np.trapezoid(a[least], np.arange(3.0), axis=0), np.trapezoid(a[m], dx=0.5, axis=-2),
            np.trapezoid(x[m], t[m]), np.interp(1.7, t[m], x[m]), np.average(x[m], weights=t[m]), np.histogram(x[m], [0, 1, 2, 3])[0])


def kept(x):
    k = [v ** 2 for v in x if v > 0]
    a = np.array(k)
    return a.max(), np.median(a), a.argmax(), np.cumsum(k)[-1], np.std(k), max(k), sum(k), len(k), np.diff(k).sum()


def least_squares(x):
    m = np.concatenate([x, [0.3, 0.9, 1.7, 2.2]]) > 0
    v, y = np.concatenate([x, [0.3, 0.9, 1.7, 2.2]])[m], np.concatenate([x ** 3, [0.1, 0.8, 2.0, 2.1]])[m]
    matrix = np.vstack([v, np.ones_like(v)]).T
    return (np.polyfit(v, y, 2), np.polyfit(v, y, 1, w=v), np.polyfit(v, np.stack([y, v * y], 1), 1), *np.linalg.lstsq(matrix, y, rcond=None)[:3],
            np.linalg.lstsq(np.vander(v, 3), y)[0], np.linalg.lstsq(matrix, y)[3][0], np.linalg.lstsq(matrix, np.stack([y, v], 1))[1])


def as_many_as_unknowns(x):
    v = np.sort(x)[:5][np.array([True, False, True, False, False]) & (x[:5] < 9)]
    found, rest, rank, values = np.linalg.lstsq(np.vander(v, 2), v ** 2)
    return found, rest.sum(), rank, values


def covariances(x):
    m, a, t = x > -0.5, np.outer([1.0, -2.0, 0.3], x) + np.cos(np.outer(np.arange(3.0), x)), np.arange(len(x)) * 1.0
    nothing = np.where(m, x, np.nan)
    return (np.cov(x[m]), np.cov(x[m], t[m] ** 2), np.cov(a[:, m]), np.cov(a[:, m].T, rowvar=False, bias=True), np.cov(x[m], t[m], ddof=2),
            np.cov(x[m], aweights=t[m] + 1), np.cov(a[:, m], ddof=0, fweights=(t[m] % 3 + 1).astype(int)), np.corrcoef(x[m], t[m])[0, 1],
            np.corrcoef(a[:, m]), np.corrcoef(nothing[~np.isnan(nothing)], t[~np.isnan(nothing)]), np.cov((a[0] + 1j * a[1])[m], x[m]),
            np.cov(np.arange(len(x))[m]), np.cov(x[x >= x.max()], ddof=0))


def side_by_side(x):
    rows, columns = np.nonzero(np.outer(x, x[:4]) > 0.1)
    total = 0.0
    for r, c in zip(rows, columns, strict=False):
        total += (r + 1) * x[c] * x[r]
    for v, w, k in zip(x[x > 0], x[x < 0], range(3), strict=False):
        total += v * w * k
    return total


PROGRAMS = [covariances, least_squares, as_many_as_unknowns, side_by_side, reductions, order, slices, elementwise, joined, rows, columns, masks_of_two_axes, positions, different_numbers, loops, chains, assigned,
            assigned_beside_other_indices, assigned_at_rows_of_positions,
            changed_in_place, changed_in_place_by_other_masks, complex_numbers, integrals, kept]


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_numpy(program, rng):
    compiled = bw.jit(program)
    for _ in range(3):
        x = rng.standard_normal(9) * 1.3
        x[:4] = 0.9, 2.1, -0.3, -1.4
        for found, expected in zip(as_tuple(compiled(x.copy())), as_tuple(program(x.copy())), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
            assert np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients(program, rng):
    def loss(x):
        return sum([np.sum(np.real(part)) for part in as_tuple(program(x)) if np.result_type(part).kind in "fc"], 0.0)
    x = rng.standard_normal(9) * 1.3
    x[:4] = 0.9, 2.1, -0.3, -1.4
    direction = rng.standard_normal(9)
    numeric = (loss(x + 1e-6 * direction) - loss(x - 1e-6 * direction)) / 2e-6
    assert bw.grad(loss)(x) @ direction == pytest.approx(numeric, rel=1e-5, abs=1e-6)


def test_single_elements_are_broadcast():
    x = np.array([1.0, 2.0, 3.0, -1.0])
    def assigned(x):
        x[x > 0] = x[x < 0] * 2
        return x
    for program in (lambda x: (x[x > 0] * x[x < 0]).sum(), lambda x: (x[x < 0] - x[x > 0]).sum(), lambda x: (x[x < 0] - x[x > 5]).size, assigned):
        np.testing.assert_array_equal(bw.jit(program)(x.copy()), program(x.copy()))


def test_nan_among_the_selected():
    x = np.array([1.0, np.nan, -2.0, 3.0, 0.5])
    for program in (lambda x: np.median(x[x != 3]), lambda x: np.sort(x[x != 3]).sum(), lambda x: np.sort(x[x != 3])[1],
                    lambda x: np.unique(x).size, lambda x: x[~(x < 1)].max(), lambda x: x[~np.isnan(x)].mean(), lambda x: x[x != 3].argmax()):
        np.testing.assert_array_equal(bw.jit(program)(x), program(x))


def test_covariances_in_another_precision():
    x = np.array([1.0, np.nan, -2.0, 3.0, 0.5])
    found = bw.jit(lambda x: np.cov(x[x > -9], 2 * x[x > -9], dtype=np.float32))(x)
    np.testing.assert_allclose(found, np.cov(x[x > -9], 2 * x[x > -9], dtype=np.float32), rtol=1e-6)
    assert found.dtype == np.float32


@pytest.mark.parametrize("program", [
    lambda x: (x[x > 0] + x[x < 0]).sum(), lambda x: (x[x > 0] * np.ones(2)).sum(), lambda x: x[x > 0][3], lambda x: x[x > 5].max(),
    lambda x: x[x > 5].argmin() * 1.0, lambda x: x[x > 0][np.where(x > -2)[0]].sum(), lambda x: x.__setitem__(x > 0, np.ones(2)),
    lambda x: x.__setitem__(x > 0, x[x < 0]), lambda x: x[x > 2].__iadd__(x[x < 0]).sum(), lambda x: x[x > 0].__iadd__(x[x < 0]).sum()])
def test_wrong_numbers_of_elements_raise_when_they_are_known(program):
    x = np.array([1.0, 2.0, 3.0, -1.0, -2.0])
    with pytest.raises((ValueError, IndexError)) as expected:
        program(x.copy())
    with pytest.raises((ValueError, IndexError)) as found:
        bw.jit(program)(x)
    assert type(found.value) is type(expected.value)


def changed_under_a_view(x):
    v = x[x > 0]
    w = v[1:]
    v += 1
    return w.sum()


def a_view_changed(x):
    v = x[x > 0]
    w = v[1:]
    w += 1
    return v.sum()


@pytest.mark.parametrize(("program", "kind", "hint"), [
    (changed_under_a_view, UnsupportedError, "y = y + 1"), (a_view_changed, UnsupportedError, "y = y + 1"),
    (lambda x: np.kron(x[x > 0], x), TracerIndexError, "np.kron needs it"), (lambda x: np.linalg.eigvalsh(np.eye(len(x[x > 0]))), TracerIndexError, "np.linalg.eigvalsh needs it"),
    (lambda x: list(zip(x[x > 0], x, strict=False)), TracerIndexError, "unrolled"),
    (lambda x: np.cov(np.outer(x, x)[x > 0]), TracerIndexError, "np.cov of variables that are selected"),
    (lambda x: np.corrcoef(x[x > 0], np.ones(2)), TracerIndexError, "some of which have not been selected")])
def test_refused(program, kind, hint):
    with pytest.raises(kind, match="test_selected.py") as caught:
        bw.jit(program)(np.array([1.0, -2.0, 3.0]))
    assert hint in str(caught.value)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_as_many_values_as_are_selected(count):
    def written(x, mask, v):
        y, z, w = x.copy(), np.stack([x, 2 * x]), x.copy()
        y[mask] = v
        z[:, mask] = v
        w[mask] *= v
        kept = x[mask]
        kept -= v
        other = kept
        other += 1.0
        return y, z, w, kept.sum()

    x, v = np.arange(1.0, 5.0), 10.0 + np.arange(count)
    for selected in range(5):
        mask = np.arange(4) >= 4 - selected
        if count in (1, selected):
            for found, expected in zip(bw.jit(written)(x, mask, v), written(x, mask, v), strict=True):
                np.testing.assert_array_equal(found, expected)
        else:
            with pytest.raises(ValueError, match="selected|broadcast"):
                bw.jit(written)(x, mask, v)
    if count == 2:
        by_values = lambda x, v: np.sum(written(x, np.array([False, True, False, True]) & (x > 0), v)[2] ** 2)
        for found, expected in zip(bw.grad(by_values, (0, 1))(x, v), ([2.0, 400.0, 6.0, 968.0], [80.0, 352.0]), strict=True):
            np.testing.assert_allclose(found, expected)
