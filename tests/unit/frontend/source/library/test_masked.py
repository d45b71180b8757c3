"""Masked arrays, `np.ma`, of traced values: what NumPy gives, for elements, reductions, masks, and what lies behind these."""

import numpy as np
import numpy.ma as ma
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError, UnsupportedError
from tests.unit.frontend.comparing import as_python

X = np.array([1.25, 2.1, 0.55, -0.3, 0.8, 3.2])
PLACES = (X, np.array([-1.1, 0.35, 2.2, 0.7, 1.9, -0.2]), np.array([3.1, -2.2, 1.35, 1.15, 0.45, 0.9]))


def reductions(x):
    m = np.ma.masked_where(x < 0.4, x)
    return m.sum() + 2 * m.mean() + m.var() * m.std(ddof=1) + m.max() * m.min() + m.prod() + m.count() * x[0]


def of_invalid(x):
    logs = np.where(x > 0, np.log(np.abs(x)), np.nan)
    return np.ma.masked_invalid(logs).sum() + ma.masked_invalid(np.sqrt(np.where(x > 0, x, -1.0))).mean()


def averages(x):
    m = np.ma.masked_less(x, 0.4)
    weighted, total = np.ma.average(m, weights=np.arange(1.0, 7.0), returned=True)
    return weighted * total + np.ma.average(m) + np.ma.median(m) + np.ma.average(x.reshape(2, 3), axis=1, weights=[1.0, 2.0, 3.0]).sum()


def arithmetic(x):
    a, b = np.ma.masked_less(x, 0.4), np.ma.masked_greater(x, 1.5)
    found = (a * 2 + 1) ** 2 - a / (b + 3) + np.exp(b) * abs(a) - 2.0 ** (-b)
    return found.sum() + np.sum(np.sqrt(a)) + np.mean(-a)


def along_axes(x):
    m = np.ma.masked_less(x.reshape(2, 3), -1.0)
    rows, columns = m.mean(axis=1), m.max(axis=0)
    return (rows**2).sum() + columns.filled(0.5).sum() + (m - m.mean(axis=1, keepdims=True)).sum() + m.T.reshape(6).cumsum().filled(0)[-1]


def filled(x):
    m = np.ma.masked_outside(x, 0.0, 2.0)
    return np.sum(m.filled(0) ** 2) + np.sum(np.ma.filled(m, -1.0) * x) + np.sum(m.compressed() ** 3) + len(m.compressed())


def made(x):
    one, other = np.ma.array(x, mask=x < 0.4), np.ma.masked_array(x, mask=[False, True, False, False, True, False])
    third = np.ma.masked_inside(np.ma.masked_equal(np.round(x), 1.0), 2.5, 4.5)
    return one.mean() + (other**2).mean() + third.count() * x[0] + np.ma.masked_not_equal(np.sign(x), 1.0).sum() + np.ma.count(one)


def of_functions(x):
    return (np.ma.log(x).sum() + np.ma.sqrt(x).mean() + np.ma.divide(1.0, x - x[0]).sum() + np.ma.sum(np.ma.masked_less(x, 0.3)) +
            np.ma.dot(np.ma.masked_less(x, 0.4), x) + np.ma.where(x > 1, np.ma.masked_greater(x, 2), 0.5).sum() + np.ma.std(x))


def behind_the_mask(x):
    m = np.ma.masked_less(x, 0.4) * 3 + np.ma.masked_greater(x, 2.5)
    return np.sum(m.data * np.arange(6.0)) + np.sum(np.where(np.ma.getmaskarray(m), 0.0, np.ma.getdata(m))) + np.sum(~m.mask)


def assigned(x):
    m = np.ma.array(x.copy())
    m[x < 0.4] = np.ma.masked
    m[0] = x[1] * x[2]
    return m.sum() + m[0]


def in_loops_and_branches(x):
    total = 0.0
    for limit in (0.1, 0.6):
        total = total + np.ma.masked_less(x, limit).mean()
    for k in range(20):
        total = total + np.ma.masked_less(x, 0.01 * k).sum() * 0.1
    if x[0] > 1:
        total = total * np.ma.masked_greater(x, 3).max()
    return total


def moved_and_joined(x):
    m = np.ma.masked_less(x.reshape(2, 3), 0.4)
    rows = np.ma.vstack([m, np.ma.concatenate([m, m], axis=1)[:, :3], np.ma.stack([m[0], m[1]])])
    turned = np.transpose(m).swapaxes(0, 1).take([1, 0], axis=0).repeat(2, axis=1).squeeze().flatten()
    lost = np.concatenate([m, m])                  # NumPy's own function forgets the mask
    return (rows * np.arange(18.0).reshape(6, 3)).sum() + (turned * np.arange(12.0)).sum() + lost.sum() + lost.count() + m.diagonal().sum()


def ordered(x):
    m = np.ma.masked_less(x, 0.4)
    n = np.ma.sort(m)
    m.sort()
    table = np.ma.masked_less(x.reshape(3, 2), 0.4)
    return (m[:2] * np.array([1.0, 2.0])).sum() + n.filled(0.0)[-1] + np.ma.median(table, axis=0).filled(0.5).sum() + m.ptp() + m.argsort()[0]


def summed_in_other_ways(x):
    m = np.ma.masked_less(x.reshape(2, 3), 0.4)
    return (m.anom() ** 2).sum() + m.cumprod(axis=1).filled(0).sum() + np.ma.dot(m, m.T).filled(0.1).sum() + m.dot(m.T).sum() + np.ma.std(
        m, axis=0).filled(0.2).sum() + np.any(m > 1.0) + m.all() + np.ma.diff(m).sum() + np.average(m) + np.ma.outer(m[0], m[1]).sum() + m.trace()


def data_behind_functions(x):
    """NumPy's own functions compute of masked elements, too; those of np.ma leave them as they are."""
    m = np.ma.masked_less(x, 0.4)
    with np.errstate(all="ignore"):
        found = np.exp(m).data + np.ma.exp(m).data + np.sqrt(m).data + np.ma.sqrt(m).data + np.maximum(m, 1.0).data + np.copy(m)
    return np.sum(found * np.arange(6.0)) + np.sum(np.asarray(m)) + np.sum(np.where(m.mask, 0.0, m)) + np.sum(np.dot(m, m))


def into_an_array(x):
    y = x * 1.0
    y[:] = np.ma.masked_less(x, 0.4) * 2.0
    return np.sum(y * np.arange(6.0))


def changed_in_place(x):
    m = np.ma.masked_less(x, 0.4)
    same, m.mask = m, x > 2.5
    m += x[0]
    m *= 2.0
    m /= 3.0
    m[m > 2.0] = 0.5
    return same.sum() + same.count() + np.sum(same.data)


def told_apart(x):
    m = np.ma.masked_less(x, 0.4)
    kinds = 1.0 * isinstance(m, np.ma.MaskedArray) + 2.0 * isinstance(m, np.ndarray) + 4.0 * np.ma.isMaskedArray(m) + 8.0 * np.ma.is_masked(m)
    return m.sum() * kinds + m.fill_value * 1e-20 + np.ma.allclose(m, m) + np.ma.masked_values(np.round(x), 1.0).sum()


def seen_by_views(x):
    """What is assigned to a part, or to the array that it was made of."""
    m = np.ma.masked_less(x, 0.4)
    part, table = m[1:4], m.reshape(2, 3)
    part[0], table[1, 1] = 7.0 * x[0], x[2] ** 2
    part[2] = np.ma.masked
    return m.sum() + 2 * part.sum() + 3 * table.sum() + m.count()


def seen_by_arrays(x):
    y = x * 1.0
    m = np.ma.array(y, mask=x < 0.4)
    before, mask, data = np.ma.array(y).filled(0), m.mask, m.data
    np.ma.masked_greater(y, 3.0, copy=False)[2] = 0.5 * x[3]
    np.ma.masked_invalid(y)[3] = 100.0
    m[0], m[1] = 5.0 * x[1], np.ma.masked
    return y.sum() + 2 * before.sum() + 3 * data.sum() + mask.sum() * x[0] + m.sum()


def lists_as_masks(x):
    m = np.ma.array([x[0], x[1] * 2, 3.0], mask=[False, True, False])
    m[1], m[2] = x[2], np.ma.masked
    return m.sum() + m.count()


def seen_by_some_functions(x):
    where = x < 0.4
    m = np.ma.masked_where(where, x)
    n, grown, added = m + 1.0, np.exp(m), m.cumsum()
    n[0], m[2], grown[4], added[5] = np.ma.masked, x[0], np.ma.masked, 2.0 * x[1]
    return m.sum() + n.sum() * 2 + where.sum() * x[1] + x.sum() + grown.sum() + added.sum()


@pytest.mark.parametrize("program", [
    reductions, of_invalid, averages, arithmetic, along_axes, filled, made, of_functions, behind_the_mask, assigned, in_loops_and_branches,
    moved_and_joined, ordered, summed_in_other_ways, data_behind_functions, into_an_array, changed_in_place, told_apart, seen_by_views, seen_by_arrays,
    lists_as_masks, seen_by_some_functions], ids=lambda one: one.__name__)
def test_programs(program):
    with np.errstate(all="ignore"):
        as_python(program, *PLACES)


def test_results_are_arrays():
    def program(x):
        m = np.ma.masked_less(x.reshape(2, 3), 0.4) + 1
        return m.data, m.mask, m.sum(axis=0).filled(7.0), m.count(axis=1), m.shape[0]
    for x in PLACES:
        for one, other in zip(bw.jit(program)(x), program(x), strict=True):
            np.testing.assert_array_equal(one, other)


def test_of_known_values_nothing_changes():
    known = np.ma.masked_less(X, 0.4)
    def program(x):
        return x * np.ma.masked_less(X, 0.4).mean() + np.sum(known)
    np.testing.assert_allclose(bw.jit(program)(X), program(X))


def test_with_masked_arrays_from_outside():
    known = np.ma.masked_less(np.arange(6.0), 2.0)
    def program(x):
        return (x * known).sum() + (known - x).mean() + (np.ma.masked_less(x, 0.4) * known).filled(0)[3] + (known > x).sum()
    as_python(program, *PLACES)
    compiled = bw.jit(program)
    for place in range(3):
        np.testing.assert_allclose(compiled(X), program(X))
        known[place + 2] = np.ma.masked if place else -1.0


def test_what_is_refused():
    with pytest.raises(TracerError, match=r"all elements of a masked array are masked.*\n.*x.filled\(0\)"):
        bw.jit(lambda x: np.ma.masked_less(x, 100.0).mean())(X)
    with pytest.raises(UnsupportedError, match=r"np.ma.polyfit\(\) of a masked array of traced values.*\n  hint: np.where\(mask, value, x\)"):
        bw.jit(lambda x: np.ma.polyfit(x, x, 1)[0])(X)
    def kept_outside(x):
        mask = np.zeros(6, bool)
        m = np.ma.array(x, mask=mask)
        m[0] = np.ma.masked
        return m.sum() + mask.sum()
    with pytest.raises(UnsupportedError, match=r"test_masked.py:\d+: m\[0\] = (?s:.*)an assignment to elements \(its data or mask"):
        bw.jit(kept_outside)(X)
    known = np.arange(6.0)
    def of_outside(x):
        m = np.ma.array(known, mask=x < 0.4)
        m[0] = x[1]
        return m.sum()
    with pytest.raises(UnsupportedError, match=r"m\[0\] = x\[1\](?s:.*)an assignment to elements \(its data or mask"):
        bw.jit(of_outside)(X)
    with pytest.raises(UnsupportedError, match="x.tobytes of a masked array"):
        bw.jit(lambda x: np.ma.masked_less(x, 0.4).tobytes())(X)
