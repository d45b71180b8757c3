"""Lists, dictionaries and objects that are appended as data decides: `if y < 0: rows.append([t, y])`, and what is read of them later."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import tree
from bwcompiler.errors import TracerBoolError, UnsupportedError
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.3, -1.2, 0.8, -0.4, 1.5, -2.0, 0.1, 0.9, -0.7, 0.6, -0.2, 0.45])
PLACES = (X, -X, np.roll(X, 5), 0.9 * X - 0.05)


class Event:
    def __init__(self, t, value):
        self.t, self.value = t, value


def crossings(x, start=()):
    rows, t = [*start], 0.0
    for y in x:
        t += 0.1
        if y < 0:
            rows.append([t, y * y])
    return rows


def as_an_array(x):
    table = np.array(crossings(x, [[0.0, x[0]]]))
    return table[:, 1].sum() * table[:, 0].max() + table[-1, 1] + len(table)


def its_columns(x):
    t, v = np.array(crossings(x)).T
    return np.dot(t, v) + v[-1] - t[0]


def columns_by_zip(x):
    t, v = zip(*crossings(x), strict=False)
    return sum(v) * t[-1] + max(v)


def its_ends(x):
    rows = crossings(x)
    return rows[-1][0] * rows[-1][1] + rows[0][1] + len(rows) + rows[-2][1]


def gone_over(x):
    total = 0.0
    for t, v in crossings(x):
        total += t * v
    for k, row in enumerate(crossings(x)):
        total += k * row[1]
    return total


def comprehensions_over(x):
    rows = crossings(x)
    values = [row[1] for row in rows]
    late = [v for t, v in rows if t > 0.35]
    return sum(values) + np.mean(values) + len(late) + sum(row[0] * row[1] for row in rows) + sum(late)


def on_both_sides(x):
    below, above = [], []
    for k, y in enumerate(x):
        if y < 0:
            below.append([k, y])
        else:
            above.append([k, 2 * y])
    return sum(v for _, v in below) - sum(k * v for k, v in above) * len(below)


def the_same_list_on_both_sides(x):
    rows = []
    for k, y in enumerate(x):
        if y < 0:
            rows.append([k, -y])
        else:
            rows.append([k, 2 * y])
    rows[3][1] = rows[3][1] * 5
    return sum(k * v for k, v in rows)


def made_before_the_branch(x):
    rows = []
    for k, y in enumerate(x):
        row = [k, y]
        if y < 0:
            row[1] = 2 * y
            rows.append(row)
            row[0] = k + 1
    return sum(k * v for k, v in rows)


def under_two_names(x):
    rows = []
    others = rows
    for y in x:
        if y < 0:
            rows.append([1.0, y])
    return sum(row[1] for row in others) + len(others)


def as_it_grows(x):
    rows, t = [[0.0, x[0]]], 0.0
    for y in x[:6]:
        t += 0.1
        if y < 0:
            rows.append([t, y + 0.5 * rows[-1][1]])
    return sum(row[0] * row[1] for row in rows)


def outside_of_loops(x):
    rows = [[0.0, 1.0]]
    if x[0] < 0.2:
        rows.append([1.0, x[0]])
    if x[1] < 0.2:
        rows.append([2.0, x[1]])
    return np.array(rows)[:, 1].sum() + rows[-1][0] * x[2] + rows[0][1]


def in_nested_loops(x):
    rows = []
    for i in range(len(x)):
        for j in range(i):
            if x[i] * x[j] < -0.2137:
                rows.append([i, j, x[i] * x[j]])
    return sum(i * v + j for i, j, v in rows) + len(rows)


def of_dictionaries(x):
    events = []
    for k, y in enumerate(x):
        if y < 0:
            events.append({"t": 0.1 * k, "inner": [y, {"square": y * y}]})
    return sum(one["t"] * one["inner"][1]["square"] for one in events) + np.array([one["inner"][0] for one in events]).sum()


def of_objects(x):
    events = []
    for k, y in enumerate(x):
        if y < 0:
            events.append(Event(0.1 * k, y))
    return sum(one.t * one.value for one in events) + events[-1].value


def of_arrays(x):
    rows = []
    for y in x:
        if y < 0:
            rows.append([x * y, y])
    return sum(row[0].sum() * row[1] for row in rows)


def left_early(x):
    rows, y = [], np.abs(x[0]) + 1.0
    for k in range(60):
        if y > 5:
            break
        rows.append([k, y])
        y = y * (1.1 + 0.05 * np.abs(x[1]))
    return sum(k * y for k, y in rows) + rows[-1][0] + np.array(rows)[:, 1].max()


def in_a_while(x):
    rows, k = [], 0
    while k < 12:
        if x[k] < 0:
            rows.append([k, x[k]])
        k += 1
    return sum(a * b for a, b in rows)


def with_texts(x):
    events, names = [], []
    for k, y in enumerate(x):
        if y < 0:
            events.append({"kind": "down", "value": y})
            names.append("down")
        elif y > 0.75:
            events.append({"kind": "high", "value": y * k})
    pairs = [(one["kind"], one["value"]) for one in events]
    total = sum(v for kind, v in pairs if kind == "high") + len([one for one in events if one["kind"] != "high"]) * x[0]
    return total + sum(one["value"] * (2 if one["kind"] == "down" else 5) for one in events) + len(names) + (x[1] if "down" in names else x[2])


def of_lists_with_gaps(x):
    rows = []
    for i in range(9):
        cells = []
        for j in range(10):
            if x[i] * x[j] < 0.3137:
                cells.append([j, x[i] * x[j]])
        rows.append(cells)
        if x[i] > 0.05:
            rows.append(cells)
    return sum(len(cells) * sum(v for _, v in cells) for cells in rows)


def kept_places(x, count=12):
    kept = []
    for k in range(count):
        if x[k % 12] > 0:
            kept.append(k % 12)
    return kept


def as_positions(x):
    kept, table = kept_places(x), np.outer(x, np.arange(1.0, 4.0))
    table[kept, 1] *= 2.0
    table[kept] += x[kept][:, None]
    table[kept_places(-x), 2] = 7.0
    return (table ** 2).sum() + x[kept].max() * len(kept) + (table[kept, 0] * x[kept]).sum() + (TABLE[kept] @ np.ones(2)) @ x[kept]


TABLE = np.arange(24.0).reshape(12, 2)


def as_positions_of_longer_loops(x):
    places, squares = [], []
    for k in range(40):
        if x[k % 12] > 0.237:
            places.append(k % 12)
            squares.append(x[k % 12] ** 2)
    return np.sum(x[places] * np.array(squares)) + np.sum(x[kept_places(x, 30)])


def clusters(x):
    """Points go to the nearer centre, and centres to the mean of their points."""
    points = x.reshape(6, 2)
    centres = points[:2] * 1.0
    for _ in range(3):
        members = [[] for _ in range(2)]
        for k in range(6):
            nearest, least = 0, np.inf
            for c, centre in enumerate(centres):
                distance = np.sum((points[k] - centre) ** 2)
                if distance < least:
                    nearest, least = c, distance
            members[nearest].append(k)
        centres = np.zeros((2, 2))
        for c, member in enumerate(members):
            centres[c] = np.mean(points[member], axis=0)
    return np.sum(centres ** 2) + centres[0, 1]


PROGRAMS = [as_positions, as_positions_of_longer_loops, clusters, with_texts, of_lists_with_gaps, as_an_array, its_columns, columns_by_zip, its_ends, gone_over, comprehensions_over, on_both_sides, the_same_list_on_both_sides,
            made_before_the_branch, under_two_names, as_it_grows, outside_of_loops, in_nested_loops, of_dictionaries, of_objects, of_arrays,
            left_early, in_a_while]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES[:2])
    as_python(program, *PLACES[2:])


def test_recorded_as_loops():
    def size(n):
        return len(trace(lambda x: comprehensions_over(x) + as_an_array(x), (np.linspace(-1.0, 1.0, n),)).graph.body)
    assert size(60) < 1.1 * size(30)


def test_returned():
    compiled = bw.jit(crossings)
    for x in (*PLACES, np.abs(X)):
        for one, other in zip(tree.leaves(compiled(x)), tree.leaves(crossings(x)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert tree.structure(compiled(x)) == tree.structure(crossings(x))


@pytest.mark.parametrize("use", [lambda rows: rows[-1][0], lambda rows: np.array(rows)[:, 1].sum(), lambda rows: max(v for _, v in rows)])
def test_of_no_rows_as_python(use):
    def program(x):
        return use(crossings(x))
    compiled = bw.jit(program)
    assert compiled(X) == pytest.approx(program(X), rel=1e-12)
    with pytest.raises((IndexError, ValueError)) as expected:
        program(np.abs(X))
    with pytest.raises(expected.type):
        compiled(np.abs(X))


def test_columns_of_no_rows_cannot_be_unpacked():
    for program in (its_columns, columns_by_zip):
        with pytest.raises(ValueError, match="not enough values to unpack"):
            bw.jit(program)(np.abs(X))
    assert bw.jit(lambda x: np.array(crossings(x)).sum() + len(crossings(x)))(np.abs(X)) == 0


def known(x):
    rows = []
    for k in range(20):
        x = 0.9 * x
        if k % 5 == 0:
            rows.append({"k": k, "sum": x.sum()})
    return rows


def changed_where_all_is_known(x):
    rows = known(x)
    rows[1]["sum"] *= 2
    rows[-1]["new"] = x[0]
    return sum(one["sum"] for one in rows) + rows[-1]["new"]


def test_in_known_iterations():
    for program in (changed_where_all_is_known, lambda x: sum(one["k"] * one["sum"] for one in known(x)) + known(x)[1]["sum"]):
        value, gradient = bw.value_and_grad(program)(X)
        assert value == pytest.approx(program(X), rel=1e-12)
        assert gradient[0] == pytest.approx((program(X + 1e-6 * np.eye(12)[0]) - program(X - 1e-6 * np.eye(12)[0])) / 2e-6, rel=1e-6)


def _changed_after(x):
    rows = crossings(x)
    rows[0][1] = 0.0
    return rows[0][1]


def _changed_in_a_loop(x):
    rows = crossings(x)
    for row in rows:
        row[1] *= 2
    return sum(v for _, v in rows)


def _appended_and_changed(x):
    rows, row = [], [0.0, x[0]]
    for y in x:
        if y < 0:
            rows.append(row)
        row[1] = row[1] + y
    return sum(v for _, v in rows)


def _changed_and_appended(x):
    rows, row = [], [0.0, 0.0]
    for y in x:
        row[1] = y
        if y < 0:
            rows.append(row)
    return sum(v for _, v in rows)


def _changed_by_another_name(x):
    rows, first = [], [0.0, x[0]]
    if x[1] < 0:
        rows.append(first)
    first[1] = 5.0
    return sum(v for _, v in rows)


def _changed_in_the_first_place(x):
    first = [0.0, x[0]]
    rows = crossings(x, [first])
    last = rows[-1]
    first[1] = 5.0
    return last[1]


def _asked_for_identity(x):
    rows, row = [], [1.0, x[0]]
    for y in x[:3]:
        if y < 0:
            rows.append(row)
    return 1.0 if rows[0] is row else 0.0


@pytest.mark.parametrize("program", [_changed_after, _changed_in_a_loop, _appended_and_changed, _changed_and_appended,
                                     _changed_by_another_name, _changed_in_the_first_place, _asked_for_identity],
                         ids=lambda program: program.__name__)
def test_what_others_may_hold_is_not_changed(program):
    """A list that is appended as data decides is copied: changing it, or what stands for it, is refused."""
    with pytest.raises((UnsupportedError, TracerBoolError), match=r"test_gaps_of_lists.py:\d+"):
        bw.jit(program)(X)


def as_parts_of_tests(x):
    kept, total = [v for v in x if v > 1.0], 0.0
    if kept and x[0] > 0:
        total += 1.0 * x[1]
    if x[0] > 0 and kept:
        total += 2.0 * x[2]
    if not kept or x[1] > 0:
        total += 4.0 * x[3]
    while kept and total < 10.0:
        total += 3.0
    return total


def taken_in_a_side(x):
    kept = sorted([v for v in x if v > 0.3])
    total = 0.0
    if x[1] > 0:
        for v in kept:
            total += v
            if total > 2.0:
                break
    elif x[0] < 1:
        total = max(kept, default=2.0)
    for v in kept:
        total += v * v
    return total


@pytest.mark.parametrize("program", [as_parts_of_tests, taken_in_a_side], ids=lambda program: program.__name__)
def test_tests_and_sides(program):
    x = np.array([0.53, 2.11, -1.23, 1.57, 3.04, -0.21, 1.13, 2.71, 0.37, -2.3, 1.91, 0.35])
    as_python(program, x, -x, 0.3 * x, -0.2 * x)
