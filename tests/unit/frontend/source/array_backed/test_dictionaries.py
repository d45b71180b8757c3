"""Dictionaries that loops fill and read by keys made of their indices, `d[i, j] = d[i - 1, j] + ...`: arrays while the loop is traced."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.3137, -1.2, 0.81, -0.43, 1.53, -2.07, 0.19, 0.94, -0.77, 0.62])


def of_a_grid(x):
    d = {}
    for i in range(12):
        for j in range(12):
            if i == 0 or j == 0:
                d[i, j] = x[(i + j) % 10]
            else:
                d[i, j] = np.tanh(d[i - 1, j]) + 0.5 * d[i, j - 1] * x[i % 10]
    return d[11, 11] + d[3, 7] * len(d)


def with_defaults(x):
    d = {}
    for i in range(10):
        for j in range(i, 14):
            d[i, j] = 0.3 * d.get((i - 1, j), 0.0) + 0.5 * d.get((i, j - 1), x[0]) + x[(i + j) % 10]
    return d[9, 13]


def asked_for_keys(x):
    d = {}
    for i in range(10):
        for j in range(10):
            v = x[(i * j) % 10]
            if (i - 1, j) in d:
                v += 0.3 * d[i - 1, j]
            if (i, j - 1) not in d:
                v *= 2
            d[i, j] = v
    return sum(d.values())


def warped(x):
    n, d = 12, {}
    d[0, 0] = 0.0
    for i in range(1, n):
        d[i, 0] = np.inf
    for j in range(1, n):
        d[0, j] = np.inf
    for i in range(1, n):
        for j in range(1, n):
            d[i, j] = (x[i % 10] - x[(3 * j + 1) % 10] ** 2) ** 2 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[n - 1, n - 1]


def as_data_decides(x):
    d = {}
    for i in range(10):
        for j in range(10):
            if i == 0 or j == 0:
                d[i, j] = 0.0
            elif x[i] * x[j] > 0.3:
                d[i, j] = d[i - 1, j - 1] + x[i]
            elif x[i] > 0:
                d[i, j] = max(d[i - 1, j], d[i, j - 1])
            else:
                d[i, j] = d[i, j - 1] * 0.9
    return d[9, 9] + d[5, 4]


def changed_as_data_decides(x):
    d = {0: x[0]}
    for i in range(1, 20):
        d[i] = d[i - 1] * 0.5 + x[i % 10]
        if d[i] > 0.2:
            d[i] -= 0.1 * d[i - 1]
    return sum(k * v for k, v in d.items())


def in_order(x):
    d = {5: x[0], 40: x[1], 60: 1}
    for i in range(10):
        d[19 - i] = x[i]
        for j in range(i, 10):
            d[30 + j - i] = d.get(30 + j - i, 1.0) * 0.9 + x[j]
        if i % 3 == 0:
            d[50 + i] = x[i] * 2
    assert type(d[60]) is int
    return sum(n * k * v for n, (k, v) in enumerate(d.items())) + list(d)[3] * x[2]


def filled_before(x):
    d = dict.fromkeys(range(50), 0.0)
    for i in range(49):
        d[i + 1] += d[i] * 0.5 + x[i % 10]
    return d[49] + max(d.values())


def under_two_names(x):
    d = {}
    e = d
    for i in range(20):
        d["t", i] = x[i % 10] * i
    return e["t", 3] + len(e) + sum(e.values())


def products(x):
    table = {0: x[0]}
    for k in range(1, 10):
        table[k] = table[k - 1] * x[k]
    return sum(table.values())


TABLE = {0: 0.5, 1: 1.5, 2: -1.0, 30: 4.0}


def beside_one_that_is_read(x):
    d = {0: x[0]}
    for i in range(1, 20):
        d[i] = d[i - 1] * TABLE[i % 3] * 0.5 + TABLE.get(i, 0.1) * x[i % 10] + (0.3 if i in TABLE else x[1])
    return sum(k * v for k, v in d.items())


def anew_in_each_iteration(x):
    total = 0.0
    for s in range(12):
        d = {0: x[s % 10]}
        for i in range(1, 12):
            d[i] = d[i - 1] * 0.5 + x[i % 10] * s
        total += d[11]
    return total


RECORDED = [of_a_grid, with_defaults, asked_for_keys, warped, as_data_decides, changed_as_data_decides, in_order, filled_before, under_two_names,
            products, beside_one_that_is_read, anew_in_each_iteration]


def looked_at_as_a_whole(x):
    d, total = {}, 0.0
    for i in range(12):
        d[i] = x[i % 10] * 0.5
        total += sum(d.values()) + len(d) * d[i]
    return total


def taken_out(x):
    d = {}
    for i in range(20):
        d[i] = x[i % 10]
        if i > 2:
            d.pop(i - 3)
        if i == 19:
            del d[18]
    return sum(k * v for k, v in d.items())


def of_several_forms(x):
    d = {"a": 1.0}
    for i in range(20):
        d[i] = x[i % 10] * i
        d[i, i] = d["a"] * x[0]
    return d["a"] + d[4] * d[2, 2]


def of_arrays(x):
    d = {}
    for i in range(12):
        d[i] = x * i
    d[3][0] = 5.0
    return sum(v.sum() for v in d.values())


def of_known_numbers(x):
    d, p = {}, {0: 1.0, 1: 0.5}
    for n in range(12):
        for k in range(n + 1):
            d[n, k] = 1 if k in (0, n) else d[n - 1, k - 1] + d[n - 1, k]
    for k in range(1, 30):
        p[k + 1] = ((2 * k + 1) * 0.5 * p[k] - k * p[k - 1]) / (k + 1)
    return np.ones(d[4, 2]).sum() * x[0] + d[11, 5] * x[1] + float(f"{p[30]:.12f}") * x[2]


def of_large_integers(x):
    d = {0: 0, 1: 1}
    for i in range(2, 120):
        d[i] = d[i - 1] + d[i - 2]
    return x[0] * float(d[119]) / 1e20


def where_they_are_not_yet(x):
    d = {}
    for i in range(9):
        for j in range(9):
            if (i, j) not in d:
                d[i, j] = x[i] * j
            if (j, i) not in d:
                d[j, i] = x[j] * i * 2
    return sum((a - b) * v for (a, b), v in d.items())


UNROLLED = [looked_at_as_a_whole, taken_out, of_several_forms, of_arrays, of_known_numbers, of_large_integers, where_they_are_not_yet]


@pytest.mark.parametrize("program", [*RECORDED, *UNROLLED], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X)


@pytest.mark.parametrize("program", RECORDED, ids=lambda program: program.__name__)
def test_recorded_as_loops(program):
    result = trace(program, (X,))
    assert any(value.op.name == "loop" for value in result.graph.body) and not result.notes


@pytest.mark.parametrize("start", [{}, {0: 1.0}], ids=["none", "another"])
def test_keys_that_are_not_there(start):
    def program(x):
        d = dict(start)
        for i in range(3, 20):
            d[i] = d[i - 1] + x[i % 10]
        return d[19]
    with pytest.raises(KeyError, match="2"):
        program(X)
    with pytest.raises(KeyError, match="2"):
        bw.jit(program)(X)


def test_keys_that_data_decides():
    def program(x):
        d = {}
        for i in range(20):
            if x[i % 10] > 0:
                d[i] = x[i % 10]
        return d.get(3, 0.1) + 2 * d.get(12, 0.2) + sum(k * v for k, v in d.items())
    as_python(program, X, -X, abs(X), X)


ONE, OTHER = "GATTACAGAT", "GCATGCTAGAA"


def alignment(x):
    """A dictionary asked by two texts at places that move."""
    score = {(a, b): x[0] if a == b else -x[1] if {a, b} == {"A", "G"} else -0.5 for a in "ACGT" for b in "ACGT"}
    found = np.zeros((len(ONE) + 1, len(OTHER) + 1))
    for i in range(1, len(ONE) + 1):
        for j in range(1, len(OTHER) + 1):
            found[i, j] = max(0.0, found[i - 1, j - 1] + score[ONE[i - 1], OTHER[j - 1]], found[i - 1, j] - x[2], found[i, j - 1] - x[2])
    return found.max()


def pairs_that_may_not_be_there(x):
    score = {("A", "A"): x[0], ("A", "G"): x[1]}
    total = 0.0
    for i in range(len(ONE)):
        total += score.get((ONE[i], OTHER[i]), x[2]) * i
        if (ONE[i], OTHER[i]) in score:
            total += x[0]
        if ("A", OTHER[i]) in score:
            total += score["A", OTHER[i]]
    return total


def states_and_places(x):
    """A dictionary filled by keys of which one part is a text."""
    delta, eps, mu = x
    f = {(k, 0, 0): 0.0 for k in "MXY"}
    f["M", 0, 0] = 1.0

    def get(k, a, b):
        return f.get((k, a, b), 0.0)
    for i in range(len(ONE) + 1):
        for j in range(len(OTHER) + 1):
            if i == j == 0:
                continue
            same = ONE[i - 1] == OTHER[j - 1]
            f["M", i, j] = (1 - 3 * mu if same else mu) * (get("M", i - 1, j - 1) + (1 - eps) * get("X", i - 1, j - 1)) if i and j else 0.0
            f["X", i, j] = 0.25 * (delta * get("M", i - 1, j) + eps * get("X", i - 1, j)) if i else 0.0
            f["Y", i, j] = 0.25 * (delta * get("M", i, j - 1) + eps * get("Y", i, j - 1)) if j else 0.0
    return np.log(f["M", len(ONE), len(OTHER)] + f["X", len(ONE), len(OTHER)] + f["Y", len(ONE), len(OTHER)])


def order_of_keys_with_texts(x):
    states, best = ("sun", "rain"), {}
    for k in states:
        best[k, 0] = x[0]
    for i in range(1, 20):
        for k in states:
            best[k, i] = max(best[q, i - 1] * (x[1] if q == k else x[2]) for q in states) + 0.01 * i
    names = [name for name, _ in best]
    return best["sun", 19] + 2 * best["rain", 18] + len(best) + names[2:5].count("sun")


@pytest.mark.parametrize("program", [alignment, pairs_that_may_not_be_there, states_and_places, order_of_keys_with_texts])
def test_keys_with_texts(program):
    as_python(program, np.array([0.11, 0.31, 0.052]), np.array([0.83, 0.21, 0.33]))
    assert "unrolled" not in bw.jit(program).explain(np.array([0.11, 0.31, 0.052]))


def mixed(v):
    return np.sin(v) * np.sum(v) / (1 + v * v) + np.cos(v) * np.mean(v * v) / (2 + np.exp(v) + np.tanh(v))


def of_long_iterations(x):
    """Short loops that are recorded, as their iterations are long: but then the keys are data, under which there may be numbers alone."""
    found = {}
    for k in range(2):
        for f in np.arange(0.1, 1.0, 0.3):
            v = mixed(mixed(mixed(mixed(mixed(mixed(mixed(x * f + k)))))))
            found[k, round(f, 1)] = (np.sum(mixed(mixed(mixed(mixed(mixed(mixed(v))))))), v[0])
    best = max(found, key=lambda key: found[key][0])
    return found[best][0] * 2 + found[best][1] + sum(first for (k, _), (_, first) in found.items() if k == 1)


def test_short_loops_are_unrolled_where_their_keys_must_be_known():
    x = np.linspace(0.2, 1.4, 5)
    np.testing.assert_allclose(bw.jit(of_long_iterations)(x), of_long_iterations(x), rtol=1e-9)
