"""Lists of different lengths on the sides of a branch: afterwards lists with gaps (`bounded/padded.py`)."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.unit.frontend.comparing import as_python

X = np.array([0.63, -1.21, 0.84, -0.43, 1.52, 0.27, 0.91, -0.72, 0.58, -0.24, 0.33, 1.07])
PLACES = (X, -X, np.roll(X, 5), 0.4 * X + 0.3)


def inside_of_another(x):
    p, inside = [x[0], [x[1]]], [x[2]]
    other = p[1]
    if x[2] > 0:
        p = [x[1], inside]
    other[0] = 3.0
    return p[1][0] * x[4]


def grows_in_another(x):
    kept = [1.0]
    pair = [kept]
    if x[0] > 0:
        kept.append(x[0])
        pair = [kept, [2.0, 1.0]]
    return sum(sum(one) for one in pair) + len(pair) * x[1]


def of_different_lengths(x):
    total = 0.0
    for v in x:
        knots = knots_of(v)
        total += sum((k + 1.0) ** 2 for k in knots) * len(knots) + np.max(np.array(knots))
    return total


def knots_of(v):
    if v > 1:
        return [0.0, v, 2 * v]
    elif v > 0:
        return [0.0, v]
    return [v]


def changed_where_it_is_new(x):
    knots = knots_of(x[0])
    knots.append(x[1])
    return sum(k * (i + 1) for i, k in enumerate(knots)) * len(knots)


def with_none_at_all(x):
    if x[0] > 0.2:
        c = [x[1], x[2], x[3]]
    elif x[0] > -0.5:
        c = [x[1]]
    else:
        c = []
    return sum(a * 2.0 ** k for k, a in enumerate(c)) + np.sum(c) * len(c)


def longer_each_time(x):
    best, lowest = None, np.inf
    path = [0.0]
    for k in range(5):
        path = [0.9 * p + x[k] for p in path] + [x[k + 1]]
        cost = sum(p ** 2 for p in path) / len(path)
        if cost < lowest:
            lowest = cost
            best = list(path)
    return sum(b * (i + 1) for i, b in enumerate(best))


class Track:
    def __init__(self):
        self.best = [0.0]


def of_an_object(x):
    track, run = Track(), []
    for v in x:
        run.append(v)
        if v < -0.5:
            track.best = run
            run = []
    return sum(track.best) * len(track.best) + len(run)


def of_arrays(x):
    parts = [2 * x[:3], x[3:6]] if x[0] > 0 else [x[2:5]]
    return sum(np.sum(p ** 2) for p in parts) + parts[-1][0] * len(parts)


def of_an_array_that_is_changed(x):
    first = x[:3].copy()
    parts = [first, x[3:6]] if x[1] > 0 else [x[2:5]]
    first[0] = 7.0
    return sum(np.sum(p ** 2) for p in parts)


@pytest.mark.parametrize("program", [
    inside_of_another, grows_in_another, of_different_lengths, changed_where_it_is_new, with_none_at_all, longer_each_time, of_an_object,
    of_arrays, of_an_array_that_is_changed], ids=lambda program: program.__name__)
def test_lists_of_different_lengths(program):
    as_python(program, *PLACES, np.sqrt(np.abs(X)))


def _changed_in_one(x):
    kept = [1.0]
    pair = [kept, [2.0]] if x[0] > 0 else [kept]
    kept.append(x[2])
    return sum(sum(one) for one in pair)


def _returned_or_not(x, kept):
    if x[0] > 0:
        return kept
    return [x[2]]


def _changed_after_it_was_given(x):
    kept = [x[0], x[1]]
    best = _returned_or_not(x, kept)
    kept.append(x[3])
    return sum(best)


def _what_was_given_is_changed(x):
    kept = [x[0], x[1]]
    best = _returned_or_not(x, kept)
    best.append(x[3])
    return sum(best) + sum(kept)


@pytest.mark.parametrize("program", [_changed_in_one, _changed_after_it_was_given, _what_was_given_is_changed], ids=lambda one: one.__name__)
def test_the_same_list_on_one_side_is_not_changed(program):
    with pytest.raises(UnsupportedError, match=r"test_lengths.py:\d+(?s:.)*another name"):
        bw.jit(program)(X)


def sizes_of_arrays(x):
    if x[0] > 0:
        places = [0, 1, 2]
    else:
        places = [1, 3]
    table = np.zeros((len(places), 2))
    for row, place in enumerate(places):
        table[row] = x[place], x[place + 1]
    return np.sum(table ** 2) + np.linalg.det(table @ table.T + np.eye(len(places)))


def test_where_the_length_has_to_be_known():
    """Each side goes on by itself."""
    as_python(sizes_of_arrays, *PLACES)
