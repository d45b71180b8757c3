"""Which selections, grids and rows are one array, where one of them is changed: as in NumPy, or refused; and parts of selections along their
other axes, by bounds and places that are data."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.unit.frontend.comparing import as_python

X = np.cos(np.arange(49.0) ** 2 * 0.7).reshape(7, 7) * 1.4 + 0.1
PLACES = (X[::-1, ::-1].copy(), X.T + 0.07)


def chosen(x):
    return x[:, 0] > -0.5


def count(x):
    return np.sum(x[:, 1] > -0.4)


def block(x):
    i = np.flatnonzero(x[0] > -0.9)
    return x[np.ix_(i, i)]


def selected(x):
    return x[chosen(x)]


def columns(x):
    return x[:, chosen(x)]


def leading(x):
    return (x * 1.0)[:count(x)]


CHANGES = {                                        # of s, and of what was read of it before
    "row": lambda s, v: s.__setitem__(0, 9.0), "rows": lambda s, v: s.__imul__(2.0), "part": lambda s, v: v.__setitem__(0, 7.0),
    "parts": lambda s, v: v.__imul__(3.0), "all": lambda s, v: v.__setitem__(Ellipsis, 2.5), "last": lambda s, v: s.__setitem__(-1, s[-1] + 1),
}
READ = {
    "a row": lambda s: s[0], "a row of rows": lambda s: s[1:][0], "the last": lambda s: s[-1], "a part of a row": lambda s: s[0][1:],
    "a column": lambda s: s[:, 0], "chosen": lambda s: s[s[:, 0] > 0.0], "in a row": lambda s: s.ravel(), "turned": lambda s: s.T,
    "a row of columns": lambda s: s.T[0], "copied": lambda s: s.copy(), "by places": lambda s: s[[0, 1]], "at a place": lambda s: s[np.argmax(s[:, 0])],
    "a row of a column": lambda s: s[0, 1:],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("make", [selected, columns, block, leading], ids=lambda make: make.__name__)
def test_what_is_read_of_it_before_it_changes(make, change):
    """NumPy says which of them are views; compiled code has either these numbers, or refuses."""
    for name, read in READ.items():
        def program(x, read=read):
            s = make(x)
            v = read(s)
            CHANGES[change](s, v)
            return np.sum(s ** 2) + 3 * np.sum(v ** 3)
        compiled = bw.jit(program)
        for x in (X, *PLACES):
            try:
                found = compiled(x)
            except (BwError, ValueError) as refused:
                assert "hint" in str(refused), name
                break
            assert found == pytest.approx(program(x), rel=1e-12), name


LINES = {
    "in a matrix": lambda s: s[:4].reshape(2, 2), "in a row": lambda s: s[:3].reshape(3), "an element": lambda s: s[..., 0], "turned": lambda s: s[::-1],
    "a column": lambda s: s[:, None], "chosen": lambda s: s[s > 0.0], "a part": lambda s: s[1:3],
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("make", [lambda x: x[0][x[1] > -0.9], lambda x: (x[0] * 1.0)[:4 + np.sum(x[0] > 0.5)]], ids=["mask", "slice"])
def test_what_is_read_of_one_axis_before_it_changes(make, name):
    for change in ("row", "rows", "all"):
        def program(x, change=change):
            s = make(x)
            v = LINES[name](s)
            CHANGES[change](s, v)
            return np.sum(s ** 2) + 3 * np.sum(v ** 3)
        compiled = bw.jit(program)
        for x in (X, *PLACES):
            try:
                found = compiled(x)
            except (BwError, ValueError) as refused:
                assert "hint" in str(refused)
                break
            assert found == pytest.approx(program(x), rel=1e-12), change


def rows_are_changed(x):
    s = selected(x)
    first, last = s[0], s[-1]
    first *= 2.0
    s[-1] = x[1]
    last[1:] += first[1:]
    for row in [s[0], s[1]]:
        row -= x[0, 0]
    return np.sum(s ** 2) + np.sum(first) * np.sum(last)


def rows_where_logarithms_are_finite(x):
    s = np.log(x)[x[:, 0] > 0.0]
    row = s[0]
    row[x[0] < 0] = 0.0
    return np.sum(np.where(np.isnan(row), 0.0, row) ** 2)


def chosen_twice(x):
    s = x[0][x[0] > -0.5]
    t = s[s > 0.0]
    t *= 2.0
    g = block(x)
    h = g[g[:, 0] > 0.0]
    h[0] = 2.0
    return np.sum(s) + np.sum(t ** 2) + np.sum(g) * np.sum(h)


def chosen_of_a_slice(x):
    y = x * 1.0
    t = y[:count(x)][y[:count(x), 0] > 0.0]
    y *= 3.0
    t *= 2.0
    return np.sum(y) + np.sum(t ** 2)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("program", [rows_are_changed, rows_where_logarithms_are_finite, chosen_twice, chosen_of_a_slice],
                         ids=lambda program: program.__name__)
def test_as_numpy(program):
    as_python(program, X, *PLACES, X)


def read_across(x):
    s, c, k = selected(x), columns(x), count(x)
    return (np.sum(np.sin(c[:k])) + np.sum(s[:, :k] ** 2) + np.sum(s[:, k:] ** 3) + np.sum(s[1:, :k]) * np.sum(c[:k, 0]) + np.sum(c[k - 1] ** 2)
            + np.sum(s[:, k - 1] ** 3) + s[0, k - 1] ** 2 + len(s[:, :k]) * c[:k].shape[0] + np.sum(s[:, None, :k]) + np.sum(s[..., :k] ** 3)
            + np.sum(x[:k, chosen(x)] ** 2) + np.sum(x[chosen(x), 1:k] ** 3) + np.sum(x[None, chosen(x), k - 1:]))


def read_across_slices(x):
    y, k = x * 1.0, count(x)
    s = y[:k]
    t, u, v = s[:, :k - 1], s[:, chosen(x)], s[1:, k - 2]
    y[0] = 5.0
    return np.sum(t ** 2) + np.sum(u ** 3) + np.sum(v) * np.sum(s[0, 1:k])


def written_across(x):
    s, t, k = selected(x), selected(x), count(x)
    s[:, :k] = 2.0
    s[1:, k - 2:] *= x[0, 0]
    s[:, k - 1] = x[1, 1]
    s[0, k - 2] += x[2, 2]
    t[1:, :k - 1] += t[:-1, 1:k]
    return np.sum(s ** 2) + np.sum(t ** 3) + np.sum(x)


def written_across_slices(x):
    y, k = x * 1.0, count(x)
    s = y[:k]
    s[:, :k - 1] = 3.0
    s[1:, k - 2:] *= x[1, 1]
    s[:, k - 1] += 4.0
    return np.sum(y ** 2)


@pytest.mark.parametrize("program", [read_across, read_across_slices, written_across, written_across_slices], ids=lambda program: program.__name__)
def test_along_other_axes(program):
    as_python(program, X, *PLACES, X)
