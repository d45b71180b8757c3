"""Dictionaries of which data decide whether they have a key: `totals["left"] += v` on one side of a branch."""

from collections import Counter, defaultdict

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.source.bounded import sites, store
from bwcompiler.frontend.tracing.policy import Policy
from tests.unit.frontend.comparing import as_python

MIXED, LOW, HIGH, LAST = (np.array(x) for x in (
    [0.513, -1.017, 2.031], [-0.527, -1.113, -2.071], [0.531, 1.157, 2.213], [0.21, 0.33, -0.43]))


def totals_by_sign(x):
    totals = defaultdict(float)
    for v in x:
        if v > 0:
            totals["right"] += v ** 2
        else:
            totals["left"] += 3 * v
    return totals


def number_of_totals(x):
    """Only asking a defaultdict puts a key into it, but on the side that does."""
    totals = defaultdict(float)
    if x[0] > 0:
        totals["left"] += x[0]
    if x[1] > 0:
        totals["right"] += x[1] ** 2
    if x[2] > 0:
        totals["asked"]
    return sum(totals.values()) + 0.5 * len(totals)


def largest_total(x):
    totals = totals_by_sign(x)
    best = max(totals, key=totals.get)
    return totals[best] if best == "right" else 5 * totals[best]


def defaults_where_there_is_no_total(x):
    totals = totals_by_sign(x)
    return totals.get("left", 1.0) + totals.get("right", x[0])


def both_totals(x):
    totals = totals_by_sign(x)
    return totals["left"] * 2 + totals["right"] + len(totals)


def with_another_default(x):
    w = defaultdict(lambda: 1.0)
    if x[0] > 0:
        w["a"] *= x[1]
    if x[1] > 0:
        w["b"] *= x[2]
    return w["a"] + 2 * w["b"] + len(w)


def one_of_two_keys(x):
    totals = {}
    for v in x:
        key = "positive" if v > 0 else "negative"
        totals[key] = totals.get(key, 0.0) + v ** 2
    s = 0.0
    for _, v in sorted(totals.items()):
        s = 2 * s + v
    return s + len(totals)


def in_order_of_insertion(x):
    d = {}
    for v in x:
        k = "high" if v > 0.5 else "low" if v < -0.5 else "middle"
        if k not in d:
            d[k] = 0.0
        d[k] += v ** 2
    return sum(i * v for i, v in enumerate(d.values(), 1)) + len(d)


def another_key_on_each_side(x):
    out = {}
    if x[0] > 0:
        out["gain"] = x[0] * 2
    else:
        out["loss"] = x[0] * 3
    if "gain" in out:
        return out["gain"] + x[1]
    return out["loss"] * x[2]


def beside_one_that_is_there(x):
    d = {"base": x[0]}
    if x[1] > 0:
        d["extra"] = x[1]
    return sum(v ** 2 if k == "base" else 3 * v for k, v in d.items())


def flags_beside_numbers(x):
    state = {"x": x[0]}
    if x[1] > 0:
        state["hit"] = True
        state["x"] += x[1]
    return state["x"] ** 2 if state.get("hit") else state["x"] * 3


def texts_beside_numbers(x):
    out = {"status": "fine", "value": x[0]}
    if x[1] > 0:
        out["note"] = "high"
    return out["value"] * 3 if out.get("note") == "high" else out["value"]


def lists_by_key(x):
    groups = defaultdict(list)
    for v in x:
        groups["big" if abs(v) > 0.7 else "small"].append(v)
    return sum(groups["big"]) * 2 + sum(groups["small"]) ** 2


def lists_by_default(x):
    d = {}
    for v in x:
        if v > 0:
            d.setdefault("positive", []).append(v)
        else:
            d.setdefault("negative", []).append(v)
    return sum(sum(d[k]) / len(d[k]) for k in sorted(d))


def first_of_each(x):
    d = {}
    for k, v in (("a", x[0]), ("b", x[1]), ("a", x[2])):
        if v > 0:
            d.setdefault(k, v)
    return sum(d.values()) + 10 * len(d)


def counted(x):
    counts = Counter()
    s = 0.0
    for v in x:
        if v > 1:
            counts["high"] += 1
        elif v < -1:
            counts["low"] += 1
        s += v * counts["high"]
    return s + counts["low"] * x[0] + len(counts)


def updated(x):
    d = {}
    if x[0] > 0:
        d.update(a=x[0], b=x[1])
    else:
        d.update({"b": x[0] * 2, "c": x[2]})
    s = 0.0
    for k in sorted(d):
        s = 2 * s + d[k]
    return s


def updated_in_a_loop(x):
    state = {"x": x[0], "v": x[1]}
    for _ in range(20):
        state.update(x=state["x"] + 0.1 * state["v"], v=state["v"] - 0.1 * state["x"])
    return state["x"] * state["v"]


def taken_out(x):
    d = {"a": x[0], "b": x[1]}
    if x[1] > 0:
        v = d.pop("a")
    else:
        v = d.pop("b") * 3
    if x[2] > 0 and "a" in d:
        del d["a"]
    return v + sum(d.values()) * 2 + len(d)


class Ledger:
    def __init__(self):
        self.totals = {}

    def add(self, name, v):
        self.totals[name] = self.totals.get(name, 0.0) + v


def of_an_object(x):
    ledger = Ledger()
    for v in x:
        if v > 0:
            ledger.add("gain", v)
        elif v < -0.5:
            ledger.add("loss", v * v)
    return sum(v * (2 if k == "gain" else 3) for k, v in ledger.totals.items()) + len(ledger.totals)


def until_data_say(x):
    d, y = {}, x[0]
    while abs(y) > 0.11:
        key = "up" if y > 0 else "down"
        d[key] = d.get(key, 0) + 1
        y = -0.5 * y
    return d.get("up", 0) * x[0] + d.get("down", 0) * x[1] + len(d)


def computed_once(x):
    cache = {}

    def squared(k):
        if k not in cache:
            cache[k] = x[k] ** 2
        return cache[k]
    s = squared(0)
    if x[1] > 0:
        s = s + squared(1)
    if x[2] > 0:
        s = s + squared(1) * squared(2)
    return s + len(cache)


def of_arrays(x):
    d = {"x": x}
    if x[0] > 0:
        d["y"] = 2 * x
    s = 0.0
    for v in d.values():
        s = s + np.sum(v ** 2)
    return s + np.sum(d.get("y", x))


def one_of_two_that_are_there(x):
    totals = defaultdict(float, left=0.5, right=x[0])
    for k in range(12):
        v = x[k % 3] * k
        totals["left" if v > 0 else "right"] += v
    return totals["left"] * totals["right"]


BASE = {"a": 1.0}


def of_copies(x):
    d, e, f = BASE.copy(), dict.fromkeys("ab", 0.5), {**BASE, "k": x[0]}
    if x[0] > 0:
        d["b"] = x[1]
        e["c"] = x[2]
        f["l"] = x[1] * x[2]
    for k in f:
        f[k] = f[k] * 2
    return sum(d.values()) + len(e) * sum(e.values()) + sum(f.values())


def in_order_of_assignments(x):
    d = {}
    e = d
    if x[0] > 0:
        d["z"] = x[0]
    e["y"] = x[1]
    if x[2] > 0:
        d["x"] = x[2]
    return sum((i + 1) * d[k] for i, k in enumerate(d)) + d[sorted(e)[0]]


def by_texts_that_are_made(x):
    d, k = {}, 0
    while k < 3:
        if x[k] > 0:
            d[f"k{k}"] = x[k]
        k += 1
    return sum(d.values()) + len(d)


PROGRAMS = [number_of_totals, largest_total, defaults_where_there_is_no_total, both_totals, with_another_default, one_of_two_keys,
            in_order_of_insertion, another_key_on_each_side, beside_one_that_is_there, flags_beside_numbers, texts_beside_numbers, lists_by_key,
            lists_by_default, first_of_each, counted, updated, updated_in_a_loop, taken_out, of_an_object, until_data_say, computed_once,
            of_arrays, one_of_two_that_are_there, of_copies, in_order_of_assignments, by_texts_that_are_made]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, MIXED, LOW, HIGH, LAST, MIXED)


@pytest.mark.parametrize("program", [both_totals, one_of_two_keys, in_order_of_insertion, counted])
def test_recorded_in_loops(program, rng):
    x = rng.normal(size=30)
    as_python(program, x, -abs(x), x[::-1].copy())
    assert "unrolled" not in bw.jit(program).explain(x)


def test_results_in_order_of_insertion():
    compiled = bw.jit(totals_by_sign)
    for x in (MIXED, LOW, HIGH, -MIXED, MIXED):
        found, expected = compiled(x), totals_by_sign(x)
        assert type(found) is defaultdict and list(found) == list(expected)
        np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-12)


def test_keys_that_this_path_has_not_set():
    def program(x):
        d = {}
        if x[0] > 0:
            d["a"] = x[1]
        return d["a"] * 2
    compiled = bw.value_and_grad(program)
    assert compiled(MIXED)[0] == pytest.approx(2 * MIXED[1])
    with pytest.raises(KeyError, match=r"test_new_keys.py:\d+.*'a"):
        compiled(LOW)
    assert compiled(MIXED)[0] == pytest.approx(2 * MIXED[1])

    def twice(x):
        d = {"a": x[0], "b": x[1]}
        if x[1] < 0:
            del d["a"]
        return d.pop("a")
    with pytest.raises(KeyError, match=r"test_new_keys.py:\d+.*'a"):
        bw.jit(twice)(MIXED)
    assert bw.jit(twice)(HIGH) == HIGH[0]


def test_one_of_several_keys_that_is_not_there():
    def program(x):
        d = {"low": x[0]}
        return d["low" if x[1] > 0 else "high"]
    assert bw.jit(program)(HIGH) == HIGH[0]
    with pytest.raises(KeyError, match="high"):
        bw.jit(program)(LOW)


def test_dictionaries_that_make_what_they_are_asked_for_in_another_way_are_refused():
    class Zeros(dict):
        def __missing__(self, key):
            self[key] = 0.0
            return self[key]

    def program(x):
        d = Zeros()
        if x[0] > 0:
            d["a"] += x[0]
        return x[0] * len(d)
    with pytest.raises(bw.errors.TracerError, match=r"test_new_keys.py:\d+.*(?s:.*)changes Zeros"):
        bw.jit(program)(MIXED)


def first_crossings(x, times=300):
    """Data decide when a name gets a value; how many names there can be is known."""
    found = {}
    y = x
    for i in range(times):
        y = 0.99 * y + 0.001 * np.sin(y)
        for name, limit in (("half", 0.5), ("tenth", 0.1)):
            if name not in found and abs(y[0]) < limit * abs(x[0]):
                found[name] = (float(i), y * x)
        if "tenth" in found and "half" in found and y[1] > 0:
            break
    return sum(at * np.sum(what) for at, what in found.values())


def test_room_for_as_many_keys_as_there_can_be():
    made = []

    class Seen(store.Store):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self.room)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bwcompiler.frontend.source.bounded.dictionaries.Store", Seen)
        for x in (MIXED, LOW, HIGH):
            value, gradient = bw.value_and_grad(first_crossings)(x)
            np.testing.assert_allclose(value, first_crossings(x), rtol=1e-12)
            h = 1e-6 * np.ones(3)
            np.testing.assert_allclose(gradient.sum(), (first_crossings(x + h) - first_crossings(x - h)) / 2e-6, rtol=1e-6)
    assert made and max(made) == sites.LEAST


def test_lists_of_which_data_decide_how_long_they_are_get_room_together():
    def program(x):
        seen, weights, last = [], [], []
        for i in range(20):
            if x[i % 3] * np.cos(i) > 0:
                seen.append(x * i)
                weights.append(x[0])
                last.append(float(i))
                if len(seen) > 2:
                    seen.pop(0)
                    weights.pop(0)
                    last.pop(0)
        return sum(np.sum(a) * b * c for a, b, c in zip(seen, weights, last, strict=True))
    attempts = []
    with pytest.MonkeyPatch.context() as patch:
        before = Policy.restart
        patch.setattr(Policy, "restart", lambda self: (attempts.append(0), before(self))[1])
        for x in (MIXED, LOW, HIGH):
            np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-12)
    assert len(attempts) == 1 + 3              # one is `Policy.__init__`; there were seven attempts with one list after the other
