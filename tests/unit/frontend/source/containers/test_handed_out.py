"""Objects and containers that a list hands out at places that move, by loops over it or by index: they have other names, and may change."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.random.default_rng(0).normal(size=20)


class Part:
    def __init__(self, length, weight):
        self.length, self.weight, self.count = length, weight, 0.0

    def moment(self, y):
        return np.tanh(self.length * y + self.weight)


class Holder:
    pass


def parts_of(x):
    return [Part(x[i], 0.1 * x[0] * i) for i in range(20)]


# ----- nothing is changed while a loop reads them: it is recorded
def objects_by_index(x):
    parts, total = parts_of(x), 0.0
    for i in range(20):
        total = np.sin(total + parts[i].length * parts[i].weight) + parts[i].moment(total)
    return total


def pairs_of_objects(x):
    parts, total = parts_of(x), 0.0
    for i in range(20):
        for j in range(20):
            if i != j:
                total += np.sin(parts[i].length - parts[j].length) * parts[j].weight
    return total


def dictionaries_by_index(x):
    pipes, total = [], 0.0
    for i, length in enumerate([3.0, 2.0, 5.0, 1.0] * 5):
        pipes.append({"L": length, "D": x[i] * x[0], "minor": 1.5 if i % 2 else 0.4})
    for i in range(20):
        pipe = pipes[i]
        total = np.sin(total + pipe["L"]) * pipe["D"] + pipe["minor"] * np.cos(total)
    return total


def lists_by_index(x):
    rows, total = [[x[i] * x[0], x[1], float(i)] for i in range(20)], 0.0
    for i in range(20):
        total = np.sin(total + rows[i][0]) * rows[i][1] + 0.1 * rows[i][2]
    return total


def changed_behind_the_loop(x):
    parts, total = parts_of(x), 0.0
    for i in range(20):
        total = np.sin(total + parts[i].length * parts[i].weight)
    parts[4].length = total
    return total + sum(part.length * part.weight for part in parts)


def their_arrays_are_written_to(x):
    shared = x[:3].copy()
    holders, total = [{"v": shared, "k": float(i)} for i in range(20)], 0.0
    for i in range(20):
        v = holders[i]["v"]
        v[0] += x[0] * holders[i]["k"]
        total += np.sum(v)
    return total + shared[0]


READ = [objects_by_index, pairs_of_objects, dictionaries_by_index, lists_by_index, changed_behind_the_loop, their_arrays_are_written_to]


# ----- the one that is found is changed
def the_best_of_a_loop_over_them(x):
    parts = parts_of(x)
    best = parts[0]
    for part in parts:
        if part.length < best.length:
            best = part
    best.count += x[0]
    return sum(part.count * part.length for part in parts)


def the_best_by_index(x):
    parts = parts_of(x)
    best = parts[0]
    for i in range(20):
        if parts[i].length < best.length:
            best = parts[i]
    best.count += x[0]
    return sum(part.count * part.length for part in parts)


def the_last_one(x):
    parts, total = parts_of(x), 0.0
    for i in range(20):
        part = parts[i]
        total += part.length * part.weight
    part.count = total
    return sum(part.count * part.length for part in parts)


# ----- they are changed, and are read by their other names
def changed_after_one_was_found(x):
    parts, total = parts_of(x), 0.0
    best = parts[0]
    for part in parts:
        total = np.sin(total + part.length * part.weight)
        if part.length < best.length:
            best = part
    for k in range(20):
        parts[k].length = 5 * x[0] * k
    return total + best.length


def changed_after_one_was_put_in_a_tuple(x):
    parts, total = parts_of(x), 0.0
    best = (parts[0].length, parts[0])
    for part in parts:
        total = np.sin(total + part.length * part.weight)
        if part.length < best[0]:
            best = (part.length, part)
    for part in parts:
        part.length = 5 * x[0] * part.weight
    return total + best[1].length


def changed_after_one_became_an_attribute(x):
    parts, holder = parts_of(x), Holder()
    holder.best = parts[0]
    for i in range(20):
        if parts[i].length < holder.best.length:
            holder.best = parts[i]
    for part in parts:
        part.length = 5 * x[0] * part.weight
    return holder.best.length


def changed_after_the_last_one_was_kept(x):
    rows, total = [[x[i], x[0] * i] for i in range(20)], 0.0
    last = rows[0]
    for row in rows:
        total = np.sin(total + row[0] * row[1] + last[0])
        last = row
    for row in rows:
        row[0] = 5 * x[0] * row[1]
    return total + last[0]


def changed_meanwhile(x):
    parts, total = parts_of(x), 0.0
    third = parts[3]
    for i in range(20):
        part = parts[i]
        third.length += 0.1 * x[0]
        total += part.length * part.weight
    return total + parts[3].length


def changed_in_an_iteration_around(x):
    parts, total = parts_of(x), 0.1
    for _ in range(5):
        for i in range(20):
            total = np.tanh(parts[i].length * total + parts[i].count)
        for i in range(20):
            parts[i].count = 0.5 * parts[i].count + total * i
    return total


def asked_whether_they_are_the_same(x):
    parts, total = parts_of(x), 0.0
    fifth = parts[5]
    for i in range(20):
        for j in range(20):
            if parts[i] is not parts[j]:
                total += parts[i].length * parts[j].weight
        if parts[i] is fifth:
            total += 10 * x[0]
    return total


def some_are_kept_and_changed(x):
    parts, kept = parts_of(x), []
    for i in range(0, 20, 2):
        kept.append(parts[i])
    for part in kept:
        part.count = x[0] * part.length
    return sum(part.count * part.length for part in parts)


CHANGED = [the_best_of_a_loop_over_them, the_best_by_index, the_last_one, changed_after_one_was_found, changed_after_one_was_put_in_a_tuple,
           changed_after_one_became_an_attribute, changed_after_the_last_one_was_kept, changed_meanwhile, changed_in_an_iteration_around,
           asked_whether_they_are_the_same, some_are_kept_and_changed]


@pytest.mark.parametrize("program", [*READ, *CHANGED], ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X)


@pytest.mark.parametrize("program", READ, ids=lambda program: program.__name__)
def test_loops_that_only_read_are_recorded(program) -> None:
    assert "unrolled" not in bw.jit(program).explain(X)


def test_the_reason_is_that_they_change() -> None:
    assert "unrolled: it reads a list at places that move, whose elements are not alike, or change meanwhile" in bw.jit(changed_meanwhile).explain(X)
    found = "unrolled: an object of Part is changed, which may be another name of one that a loop or branch before it has bound anew"
    assert found in bw.jit(the_best_of_a_loop_over_them).explain(X)
