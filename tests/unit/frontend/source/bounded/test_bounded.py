"""Dictionaries whose keys data say: counts, sums per group, memos, `defaultdict` and `Counter`."""

import heapq
from collections import Counter, defaultdict, deque

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from tests.unit.frontend.comparing import as_python

X = np.array([0.53, 2.11, -1.23, 1.57, 3.04, -0.21, 1.13, 2.71, 0.37, -2.3, 1.91, 3.35])
PLACES = (X, -X, np.roll(X, 5) * 1.3, X * 2.1 - 1.07)


def sums(x):
    d = {}
    for v in x:
        k = int(abs(v)) % 4
        d[k] = d.get(k, 0.0) + v
    return sum((i + 1) * v ** 2 for i, v in enumerate(d.values())) + len(d) * x[0]


def sums_by_tests(x):
    d = {}
    for v in x:
        k = int(np.floor(v))
        if k in d:
            d[k] += v
        else:
            d[k] = v
    total = sum(k * v ** 2 for k, v in d.items()) + (x[1] if 2 in d else x[2])
    return total + max(d.values()) * d[int(np.floor(x[0]))] + (5.0 if -7 not in d else 7.0)


def with_default(x):
    d = defaultdict(float)
    for v in x:
        d[int(v)] += v * v
    best = max(d, key=d.get)
    return sum(k * v for k, v in sorted(d.items())) + best * x[0] + d[1000] * x[1] + len(d)


def counted(x):
    of_all = Counter(int(v) for v in x)
    one_by_one = Counter()
    for v in x:
        one_by_one[int(abs(v))] += 1
    shares = [n / len(x) for n in one_by_one.values()]
    common, number = one_by_one.most_common(1)[0]
    return of_all[1] * x[0] + of_all[77] + sum(p * np.log(p) for p in shares) * x[1] + common * x[2] * number + one_by_one.total()


def pairs_as_keys(x):
    d = defaultdict(float)
    for i in range(0, 12, 2):
        d[int(x[i]), int(x[i + 1])] += x[i] * x[i + 1]
    total = 0.0
    for (i, j), v in d.items():
        total += v ** 2 * (i + 2 * j)
    return total


def remembered(x):
    """Of a loop that data end."""
    memo, t, total = {}, abs(x[0]) + 0.1, 0.0
    while t < 30:
        k = int(t)
        if k not in memo:
            memo[k] = np.sin(t)
        total += memo[k]
        t = t * 1.1 + 0.2
    return total + len(memo)


def made_in_a_loop(x):
    total = 0.0
    for i in range(12):
        d = {}
        for j in range(i + 1):
            k = int(x[j])
            d[k] = d.get(k, 0) + x[j] * x[i]
        total += max(d.values())
    return total


def of_nested_loops(x):
    d = {}
    for i in range(12):
        for j in range(12):
            k = int(x[i] + x[j])
            d[k] = d.get(k, 0.0) + x[i] * x[j]
    return sum(v ** 2 for v in d.values()) + d.get(1000, 3.0) + len(d)


def taken_out(x):
    d = {}
    for v in x:
        k = int(v)
        if k in d:
            d.pop(k)
        else:
            d[k] = v
    d.pop(1, None)
    return sum(i * v for i, v in enumerate(d.values())) + len(d)


def set_by_default(x):
    d, total = {}, 0.0
    for v in x:
        total += d.setdefault(int(v), v) * v
    return total + (x[0] if d else x[1])


def histogram(x, width):
    bins = {}
    for v in x:
        b = int(v // width)
        bins[b] = bins.get(b, 0) + 1
    return bins


def of_a_function(x):
    bins = histogram(x, 0.7)
    n = sum(bins.values())
    return -sum(c / n * np.log(c / n) for c in bins.values()) * x[0] + max(bins.values())


class Cells:
    def __init__(self):
        self.sums = {}

    def add(self, v):
        k = int(v)
        self.sums[k] = self.sums.get(k, 0.0) + v


def of_an_object(x):
    cells = Cells()
    for v in x:
        cells.add(v)
    return sum(v * v for v in cells.sums.values())


def in_branches(x):
    d = {}
    if x[0] > 0:
        d[int(x[1])] = x[2]
    else:
        d[int(x[3])] = x[4] * 2
    d[int(x[5])] = 3 * x[5]
    return sum(d.values()) + len(d)


def floats_as_keys(x):
    d = {}
    for v in x:
        d[np.round(v)] = v
    return sum(k * v for k, v in d.items())


PROGRAMS = [sums, sums_by_tests, with_default, counted, pairs_as_keys, remembered, made_in_a_loop, of_nested_loops, taken_out, set_by_default,
            of_a_function, of_an_object, in_branches, floats_as_keys]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES[:2])
    as_python(program, *PLACES[2:])


@pytest.mark.parametrize("program", [sums, remembered, taken_out], ids=lambda program: program.__name__)
def test_second_derivatives_and_batches(program):
    v, h = np.cos(np.arange(12.0)), 1e-5
    for x in PLACES[:2]:
        _, tangent = bw.jvp(bw.grad(program), (x,), (v,))
        np.testing.assert_allclose(tangent, (bw.grad(program)(x + h * v) - bw.grad(program)(x - h * v)) / (2 * h), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(bw.jvp(program, (x,), (v,))[1], bw.grad(program)(x) @ v, rtol=1e-9)
    np.testing.assert_allclose(bw.vmap(program)(np.stack(PLACES)), [program(x) for x in PLACES], rtol=1e-12)


def test_loops_stay_loops():
    for program in (sums, sums_by_tests, of_nested_loops):
        assert "unrolled" not in bw.jit(program).explain(X)


def test_a_key_that_is_not_there():
    compiled = bw.jit(lambda x: with_a_key(x))
    assert compiled(X) == with_a_key(X)
    with pytest.raises(KeyError):
        compiled(X + 20)


def with_a_key(x):
    d = {}
    for v in x:
        d[int(v)] = v
    return d[2]


def test_texts_by_keys_that_data_decide():
    def program(x):
        d = {}
        for v in x:
            d[int(v)] = "many" if v > 1.0 else "few"
        return x[0] if d[int(x[2])] == "few" else x[1]
    as_python(program, X, 0.5 * X, X[::-1].copy())


def test_what_is_refused():
    def sets(x):
        d = defaultdict(set)
        for v in x:
            d[int(v)].add(int(v * 2))
        return sum(max(v) for v in d.values())

    def objects(x):
        d = {}
        for v in x:
            d[int(v)] = {"many": v > 1.0}
        return x[0] if d[0]["many"] else x[1]

    def too_many(x):
        d = {}
        t = x[0]
        while t < 1e5:
            d[int(t)] = t
            t = t + 1.0
        return sum(d.values())
    with pytest.raises(TracerError, match="(?s)test_bounded.py:.*a dictionary of sets: data say which.*hint: masks"):
        bw.jit(sets)(X)
    with pytest.raises(TracerError, match="(?s)test_bounded.py:.*is a new key of a dictionary"):
        bw.jit(objects)(X)
    with pytest.raises(TracerError, match="gets more than .* elements: compiled code has room for"):
        bw.jit(too_many)(X)
    with pytest.raises(bw.errors.BwError):
        bw.compile(lambda x: histogram(x, 0.7), X)


# ----- what was wrong once
def views_are_live(x):
    d = {}
    values, keys = d.values(), d.keys()
    for v in x:
        d[int(v)] = v
    n = len(keys)
    d[77] = x[0]
    total = sum(values) + (1.0 if 77 in keys else 2.0) + (1.0 if x[1] in values else 2.0)
    return total + n + 10 * len(keys) + max(values) + sum(k * v for k, v in d.items()) + (x[2] if keys else x[3])


def keys_of_a_counter_that_are_not_there_are_deleted(x):
    c = Counter()
    for v in x:
        c[int(v)] += 1
        del c[int(np.floor(v)) + 1]
    return sum(k * n for k, n in c.items()) * x[0] + len(c)


def views_are_taken_apart(x):
    d = {}
    for v in x:
        d[int(v)] = v
    keys, values = zip(*d.items(), strict=True)
    first, *rest = d.keys()
    together = [*d.values(), 2.0]
    return sum(keys) * x[0] + max(values) + first * x[1] + len(rest) + together[0] + len(together) + len(d.items())


def a_defaultdict_without_a_factory(x):
    d = defaultdict()
    for v in x:
        d[int(v)] = v
    return d[int(x[0])] ** 2


@pytest.mark.parametrize("program", [views_are_live, views_are_taken_apart, keys_of_a_counter_that_are_not_there_are_deleted,
                                     a_defaultdict_without_a_factory], ids=lambda program: program.__name__)
def test_what_was_wrong(program):
    as_python(program, *PLACES)


@pytest.mark.parametrize("make", [lambda: {}, defaultdict], ids=["dict", "defaultdict"])
def test_a_key_that_is_not_there_is_named(make):
    def program(x):
        d = make()
        for v in x:
            d[int(v)] = v
        return d[int(x[0]) + 40]
    with pytest.raises(KeyError, match=r"\b40"):
        bw.jit(program)(X)


def test_what_is_no_heap_is_given_to_no_function_of_heaps():
    def program(x):
        h = []
        for v in x:
            if v > 0:
                h.append(v)
            elif h:
                h.pop()
        heapq.heappush(h, x[0])
        return heapq.heappop(h)
    with pytest.raises(TracerError, match="may be no heap"):
        bw.jit(program)(X)


# ----- as results
def keys_and_values(x):
    d, c, f, pairs = {}, Counter(), defaultdict(float), {}
    for v in x:
        d[int(v)] = v
        c[int(v)] += 1
        f[int(v)] += v * v
        pairs[int(v), int(2 * v)] = v
    return d, {"counts": c, "squares": f}, pairs


def what_is_left(x):
    stack, queue = [], deque()
    for v in x:
        if v > 0:
            stack.append((v, 2.0 * v))
            queue.append(v)
        elif stack:
            stack.pop()
            queue.popleft()
    return stack, queue


def as_plain(x):
    if isinstance(x, dict):
        return type(x), [(key, type(key), as_plain(value)) for key, value in x.items()]
    return (type(x), list(map(as_plain, x))) if isinstance(x, (list, tuple, deque)) else float(x)


@pytest.mark.parametrize("program", [keys_and_values, what_is_left, lambda x: histogram(x, 0.7)], ids=lambda program: program.__name__)
def test_results(program):
    compiled = bw.jit(program)
    for x in PLACES:
        assert as_plain(compiled(x)) == as_plain(program(x))
    found = compiled(X)
    if program is keys_and_values:
        assert found[1]["squares"][1000] == 0.0
    with pytest.raises(bw.errors.BwError):
        bw.value_and_grad(lambda x: (x[0], program(x)), has_aux=True)(X)


@pytest.mark.parametrize("make", [lambda d: {id(x): 2 for x in d.values()}, lambda d: {k: v * 0.5 for k, v in d.items()},
                                  lambda d: {type(x): 2 for x in d}], ids=["values", "items", "keys"])
def test_dictionaries_made_of_dictionaries_are_refused(make):
    def program(x):
        d = {}
        for v in x:
            d[int(v)] = v
        return x[0] * len(make(d))
    with pytest.raises(bw.errors.BwError):
        bw.jit(program)(X)


def key_of_the_least(x):
    """`path.get` may give None, which everybody has: that an object is one of several says nothing about it."""
    path = {}
    for k in range(6):
        path[int(np.sum(x > k))] = x[k] ** 2
    best = min(path, key=path.get)
    return path[best] * 2 + np.sum(x) * int(np.sum(x > 1))


def test_the_key_of_the_least_value():
    as_python(key_of_the_least, np.array([0.3, 1.7, 2.2, 3.9, 4.1, 0.2]), np.array([2.3, 1.7, 0.2, 3.9, 0.4, 5.2]))
