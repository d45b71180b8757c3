"""Lists that variables give away, or give another name, as data say: segments, runs, the best that was seen (`analysis/private.py`)."""

import itertools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError, UnsupportedError
from tests.unit.frontend.comparing import as_python

X = np.array([0.63, -1.21, 0.84, -0.43, 1.52, 0.27, 0.91, -0.72, 0.58, -0.24, 0.33, 1.07])
PLACES = (X, -X, np.roll(X, 5), 0.4 * X + 0.3)


def segments(x):
    groups = []
    cur = []
    for v in x:
        if cur and v * cur[-1] < 0:
            groups.append(cur)
            cur = []
        cur.append(v)
    groups.append(cur)
    return sum(np.mean(g) ** 2 * len(g) for g in groups)


def longest_rising(x):
    best = []
    cur = [x[0]]
    for v in x[1:]:
        if v > cur[-1]:
            cur.append(v)
        else:
            if len(cur) > len(best):
                best = cur
            cur = [v]
    if len(cur) > len(best):
        best = cur
    return sum(v ** 2 for v in best)


def best_alias(x):
    best_cost = np.inf
    best = []
    for k in range(4):
        trial = [x[k] * x[k + 1], x[k + 2] - x[k]]
        cost = (trial[0] - 1) ** 2 + trial[1] ** 2
        if cost < best_cost:
            best_cost = cost
            best = trial
    return best[0] * 2 + best[1] ** 2


def swap_buffers(x):
    front = [x[0]]
    back = []
    for v in x[1:]:
        if v > 0:
            front, back = back, front
        front.append(v)
    return sum(front) ** 2 + 2 * sum(back)


def alias_unchanged(x):
    best = [0.0]
    cur = [x[0]]
    for v in x:
        if v > 0.3:
            best = cur
        if v > 0:
            cur = [v, *cur[:2]]
        else:
            cur = [cur[0] + v]
    return sum(best) * len(best) + 3 * sum(cur) * len(cur)


def chain_of_names(x):
    a = [x[0]]
    b = [1.0]
    c = [2.0]
    for v in x[1:]:
        if v > 0:
            c = b
            b = a
            a = [v]
        else:
            a.append(v)
    return sum(a) + 10 * sum(b) * len(b) + 100 * sum(c) * len(c)


def rotate(x):
    a = [x[0]]
    b = [1.0]
    c = [2.0]
    for v in x[1:]:
        if v > 0:
            a, b, c = b, c, a
        a.append(v)
    return sum(a) + 10 * sum(b) * len(b) + 100 * sum(c) * len(c)


def in_tuple(x):
    groups = []
    cur = []
    total = 0.0
    for k, v in enumerate(x):
        if total > 1:
            groups.append((k, total, cur))
            cur, total = [], 0.0
        cur.append(v)
        total += abs(v)
    return sum(k * t * sum(c) for k, t, c in groups) + len(cur)


def returned_by_helper(x):
    def split(v):
        out, cur = [], [v[0]]
        for a, b in itertools.pairwise(v):
            if b < a:
                out.append(cur)
                cur = [b]
            else:
                cur.append(b)
        out.append(cur)
        return out
    parts = split(x)
    return sum((p[-1] - p[0]) ** 2 * (k + 1) + len(p) for k, p in enumerate(parts)) + max(len(p) for p in parts)


def best_window(x):
    best, best_sum = [], -1e9
    for start in range(len(x)):
        run, s = [], 0.0
        for v in x[start:]:
            if v < -0.8:
                break
            run.append(v)
            s += v
        if s > best_sum:
            best, best_sum = run, s
    return sum(b * (i + 1) for i, b in enumerate(best))


def while_batches(x):
    batches = []
    i = 0
    batch = []
    load = 0.0
    while i < len(x):
        w = abs(x[i])
        if load + w > 2.0 and batch:
            batches.append(batch)
            batch = []
            load = 0.0
        batch.append(w)
        load += w
        i += 1
    batches.append(batch)
    return sum(max(b) * len(b) for b in batches)


def with_points(x):
    lines, line = [], []
    for k in range(len(x) - 1):
        p = (x[k], x[k + 1])
        if p[0] * p[1] < 0:
            if len(line) > 1:
                lines.append(line)
            line = [p]
        else:
            line.append(p)
    lines.append(line)
    return sum(np.hypot(a[0] - b[0], a[1] - b[1]) for one in lines for a, b in itertools.pairwise(one))


def dict_groups(x):
    groups = {}
    cur = []
    k = 0
    for v in x:
        cur.append(v)
        if len(cur) == 3:
            groups[k] = cur
            cur = []
            k += 1
    return sum(sum(g) ** 2 for g in groups.values()) + len(cur)


def function_taking(x):
    def score(values):
        return sum(values) ** 2 / len(values)
    total, cur = 0.0, []
    for v in x:
        cur.append(v)
        if v < 0:
            total += score(cur)
            cur = []
    return total


def try_finally(x):
    groups, cur = [], []
    for v in x:
        try:
            cur.append(v)
            if v < 0:
                groups.append(cur)
                cur = []
        finally:
            pass
    return sum(sum(g) ** 2 for g in groups)


def copied_best(x):
    best, path = [], [1.0]
    for v in x:
        path.append(v)
        if v > 0.5:
            best = path.copy()
        if len(path) > 4:
            path = path[2:]
    return sum(best) * len(best) + sum(path)


def concatenated(x):
    done, cur = [], []
    for v in x:
        if v > 0:
            cur = cur + [v]
        else:
            done = done + cur
            cur = [v]
    return sum(d * (k + 1) for k, d in enumerate(done)) + sum(cur)


def continue_with(x):
    groups, cur = [], []
    for v in x:
        if v > 0:
            cur.append(v)
            continue
        if not cur:
            continue
        groups.append(cur)
        cur = []
    return sum(g[0] * g[-1] * len(g) for g in groups)


def none_best(x):
    best = None
    cur = []
    for v in x:
        cur.append(v)
        if v < 0:
            if best is None or sum(cur) > sum(best):
                best = cur
            cur = []
    return 0.0 if best is None else sum(best) * len(best)


def hill_lists(x):
    point = [x[0], x[1], x[2]]
    best = point
    fbest = sum(p * p for p in best)
    for k in range(10):
        trial = [p + 0.3 * x[(k + i) % 8] for i, p in enumerate(point)]
        f = sum((p - 0.2) ** 2 for p in trial)
        if f < fbest:
            best, fbest = trial, f
        if f < 2 * fbest:
            point = trial
    return best[0] * best[1] + best[2] + point[0]


def long_segments(x):
    groups = []
    cur = []
    for v in x:
        if cur and v * cur[-1] < 0:
            groups.append(cur)
            cur = []
        cur.append(v)
    if cur:
        groups.append(cur)
    means = [np.mean(g) for g in groups]
    return sum(m * m for m in means) + max(len(g) for g in groups) + groups[-1][0] + groups[0][-1]


def full(x):
    kept = [1.0]
    if x[0] > 0:
        kept.append(x[0])
    else:
        kept = [v * v for v in (x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])]
    if x[1] > 0:
        kept.append(x[1])
    else:
        kept = [x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]]
    kept.append(x[3])
    kept.append(x[4])
    return sum(v * (k + 1) for k, v in enumerate(kept)) * len(kept)


def fuller(x):
    kept = [1.0]
    if x[1] > 0:
        kept.append(x[1])
    else:
        kept = [x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]]
    kept.append(x[3])
    kept.append(x[4])
    return sum(v * (k + 1) for k, v in enumerate(kept)) * len(kept)


def fullest(x):
    kept = [1.0]
    if x[1] > 0:
        kept.append(x[1])
    else:
        kept = [x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]]
    kept.append(x[3])
    kept.append(x[4])
    kept.append(x[4])
    return kept[-1] * kept[-2] + sum(kept) * len(kept)


PROGRAMS = [segments, longest_rising, best_alias, swap_buffers, alias_unchanged, chain_of_names, rotate, in_tuple, returned_by_helper, best_window, while_batches, with_points, dict_groups, function_taking, try_finally, copied_best, concatenated, continue_with, none_best, hill_lists, long_segments, full, fuller, fullest]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES[:2])
    as_python(program, *PLACES[2:])


def then_changed_by_holder(x):
    groups = []
    cur = []
    for v in x:
        cur.append(v)
        if v < 0:
            groups.append(cur)
            cur = []
    groups[-1].append(5.0)
    return sum(sum(g) ** 2 for g in groups)


def still_read(x):
    groups = []
    cur = []
    for v in x:
        cur.append(v)
        if v < 0:
            groups.append(cur)
    return sum(sum(g) ** 2 for g in groups)


def still_read_then_anew(x):
    groups = []
    cur = []
    for v in x:
        if v < 0:
            groups.append(cur)
            cur.append(2 * v)
            cur = []
        cur.append(v)
    return sum(sum(g) ** 2 for g in groups)


def alias_changed(x):
    best = []
    cur = []
    for v in x:
        if v > 0.3:
            best = cur
        cur.append(v)
    return sum(best) + 3 * sum(cur)


def two_holders(x):
    groups, last, cur = [], [], []
    for v in x:
        cur.append(v)
        if v < 0:
            groups.append(cur)
            last = cur
            cur = []
    last.append(1.0)
    return sum(sum(g) * len(g) for g in groups)


def break_with(x):
    cur, found = [], []
    for v in x:
        cur.append(v)
        if sum(cur) > 1.0:
            found = cur
            break
    cur.append(3.0)
    return sum(found) * len(found) + sum(cur)


@pytest.mark.parametrize("program", [then_changed_by_holder, still_read, still_read_then_anew, alias_changed, two_holders, break_with], ids=lambda program: program.__name__)
def test_what_has_two_names_is_not_changed(program):
    """A list that is changed by one of its names, as data decide which it has, is refused."""
    with pytest.raises((UnsupportedError, TracerBoolError), match=r"test_handed_over.py:\d+"):
        bw.jit(program)(X)


def indices(x):
    run, best = [], []
    for k, v in enumerate(x):
        if v > 0:
            run = run + [k]
        else:
            if len(run) > len(best):
                best = run
            run = [k, k + 1]
    return sum(x[k % 9] * (k + 1) for k in best) + len(run)


def of_pairs(x):
    rows = [[0.0, 1.0]]
    for v in x:
        if v > 0:
            rows = [[v, 2.0], *rows[:1]]
        else:
            rows.append([v, 3.0])
    return sum(a * b * (k + 1) for k, (a, b) in enumerate(rows))


def sliding(x):
    window, total = [x[0]], 0.0
    for v in x[1:]:
        if abs(v) > 0.3:
            window = window[1:] + [v]
        else:
            window.append(v)
        total += sum(window) * len(window)
    return total


def the_largest(x):
    top = []
    for v in x:
        top.append(v)
        if len(top) > 3:
            top = sorted(top)[1:]
        elif v < -1:
            top = []
    return sum(t * (k + 1) for k, t in enumerate(top))


def those_that_survive(x):
    alive, total = list(x[:4]), 0.0
    for v in x:
        if v > 0:
            alive = [0.9 * a for a in alive if a > v - 1.0]
        else:
            alive.append(v)
        total += sum(alive) * len(alive)
    return total


@pytest.mark.parametrize("program", [indices, of_pairs, sliding, the_largest, those_that_survive], ids=lambda program: program.__name__)
def test_lists_made_of_themselves(program):
    as_python(program, *PLACES)


def as_many_as_names(x):
    pairs, pair, run = [], [], []
    for v in x:
        run.append(v)
        if v < 0:
            pair.append(sum(run))
            run = []
        if len(pair) == 2:
            pairs.append(pair)
            pair = []
    total = 0.0
    for a, b in pairs:
        total += a - b
    return total + sum(a * b for a, b in pairs) + x[0] * len(pair) + len(run)


def test_long_ones_are_refused():
    """At once: each element would be a result of the branch."""
    with pytest.raises(TracerBoolError, match="test_handed_over"):
        bw.jit(segments)(np.cos(np.arange(600.0)))


def test_lists_taken_apart():
    as_python(as_many_as_names, *PLACES)
