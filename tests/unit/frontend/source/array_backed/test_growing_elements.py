"""Lists that grow in a loop, of which the loop assigns to elements: those that the iteration has appended itself."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


def costs(x):
    wealth = [1.0]
    for k in range(12):
        wealth.append(wealth[-1] * (1 + 0.1 * x[k]))
        if abs(x[k]) > 0.5:
            wealth[-1] *= 0.99
    return np.max(np.array(wealth)) + wealth[-1]


def always(x):
    kept = [x[0]]
    for k in range(12):
        kept.append(kept[-1] * x[k] + 1)
        kept[-1] -= 0.5 * kept[-2]
        kept[-1] = np.sin(kept[-1])
    return sum(kept)


def by_index(x):
    kept = []
    for k in range(12):
        kept.append(x[k] ** 2)
        kept[k] = kept[k] + 1
    return np.sum(np.array(kept) ** 2)


def in_a_loop_inside(x):
    kept = [1.0]
    for k in range(12):
        kept.append(x[k])
        for j in range(12):
            kept[-1] = 0.9 * kept[-1] + 0.1 * x[j]
    return sum(kept)


def arrays(x):
    kept = [x]
    for k in range(12):
        kept.append(0.5 * kept[-1] + x)
        kept[-1][k] = 3.0 * x[k]
        if x[k] > 0:
            kept[-1] = kept[-1] * 2
    return np.sum(np.array(kept) ** 2)


def of_another_iteration(x):
    kept = [x[0]]
    for k in range(12):
        kept[-1] += 1.0                            # is unrolled: it was appended before
        kept.append(kept[-1] * x[k])
    return sum(kept)


RECORDED = [costs, always, by_index, in_a_loop_inside, arrays]


@pytest.mark.parametrize("program", [*RECORDED, of_another_iteration], ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X)


@pytest.mark.parametrize("program", RECORDED, ids=lambda program: program.__name__)
def test_stays_a_loop(program) -> None:
    assert "unrolled" not in bw.jit(program).explain(X)


# ----- tests of `while` that read them
def until_small(x):
    norms = [x[0]]
    while norms[-1] > 1e-3 * norms[0]:
        norms.append(norms[-1] * 0.5)
    return norms[-1] + len(norms)


def until_small_or_long(x):
    norms, u = [x[0]], x[0]
    while norms[-1] > 1e-3 * norms[0]:
        u = u * 0.5
        norms.append(u)
        if len(norms) > 5:
            break
    return sum(norms)


def with_a_bound(x):
    norms, u = [x[0]], x[0]
    while norms[-1] / norms[0] > 1e-3 and len(norms) < 40:
        u = u * 0.6
        norms.append(u)
    return np.sum(np.array(norms)) + (norms[-1] / norms[0]) ** (1 / (len(norms) - 1))


def in_a_dictionary(x):
    history, u = {"r": [x[0], x[2]], "count": 0}, x[0]
    while abs(history["r"][-1] - history["r"][-2]) > 1e-3 * history["r"][0]:
        u = u * 0.6
        history["r"].append(u)
        history["count"] += 1
        if history["count"] >= 30:
            break
    return sum(history["r"])


@pytest.mark.parametrize("program", [until_small, until_small_or_long, with_a_bound, in_a_dictionary],
                         ids=lambda program: program.__name__)
def test_tests_of_loops(program) -> None:
    as_python(program, X)


def test_tests_of_loops_that_append() -> None:
    def program(x):
        kept = [x]

        def halved():
            kept.append(kept[-1] / 2)
            return kept[-1]
        while halved() > 0.1:
            x = x + 1
        return x + len(kept) + kept[-1]

    assert bw.jit(program)(3.0) == program(3.0)


def test_tests_that_ask_for_a_length_that_data_decide() -> None:
    """They were taken for tests of what the list held before the loop: it went on beyond them."""
    def program(x):
        t, times = 0.0, [0.0]
        while t < 100.0 and len(times) < 60:
            if np.sin(20 * t) > -0.5:
                times.append(t)
            t += 0.1 * x
        return np.sum(np.array(times)) * x + len(times)

    as_python(program, np.array(0.7), np.array(1.9))


class _History:
    """What a delay differential equation was at earlier times."""

    def __init__(self, dt, initial):
        self.dt, self.initial, self.values = dt, initial, [initial]

    def __call__(self, t):
        if t <= 0:
            return self.initial
        k = int(t / self.dt)
        if k >= len(self.values) - 1:
            return self.values[-1]
        part = t / self.dt - k
        return (1 - part) * self.values[k] + part * self.values[k + 1]


def delayed(x):
    """Elements of a list that grows, read at places that data decide."""
    past, y = _History(0.1, x), x
    for n in range(60):
        y = y + 0.1 * (np.array([y[0], -y[1]]) - past(n * 0.1 - 0.537 * x[1]) * y)
        past.values.append(y)
    kept = np.array(past.values)
    return kept[-1, 0] + kept[:, 1].max() + np.sum(past.values[7])


def of_tuples_from_the_end(x):
    kept, y = [(0.5, x)], x
    for n in range(30):
        number, array = kept[-int(1 + 0.9 * abs(np.sin(n)) * min(n, 4))]
        y = y * 0.9 + array * number
        kept.append((y[0] * 0.1 + 0.3, y))
    return sum(number * np.sum(array) for number, array in kept)


def of_elements_assigned_after_they_were_appended(x):
    kept = [x[0], x[1]]
    for n in range(20):
        kept.append(0.9 * kept[n] + 0.01 * n)
        kept[-1] = np.sin(kept[-1]) + 0.1 * kept[n + 1] + 0.1 * kept[int(abs(np.sin(n)) * n)]
    return sum(kept)


def of_arrays_changed_after_they_were_appended(x):
    kept, y = [x * 1.0], x * 1.0
    for n in range(20):
        y *= 1.01
        y[0] += kept[int(abs(np.sin(n) * x[0]) * n)][1] * 0.01
        kept.append(y)
    return sum(np.sum(one) for one in kept)


@pytest.mark.parametrize("program", [delayed, of_tuples_from_the_end, of_elements_assigned_after_they_were_appended,
                                     of_arrays_changed_after_they_were_appended])
def test_elements_read_at_places_that_data_decide(program):
    as_python(program, np.array([0.7, 0.6]), np.array([0.3, 0.51]))


def test_lists_that_grow_have_no_elements_behind_their_end():
    def program(x):
        kept = [x]
        for n in range(20):
            kept.append(kept[int(x[0] * n)] * 0.9)
        return np.sum(kept[-1])

    x = np.array([0.7, 0.6])
    np.testing.assert_allclose(bw.jit(program)(x), program(x))
    with pytest.raises(IndexError, match="list index out of range"):
        bw.jit(program)(2 * x)


def delayed(x):
    """A history of states, asked for times that are data."""
    states = [x[:2]]
    y = x[:2]
    for n in range(60):
        back = n * 0.1 - 0.537 * x[2]
        k = int(back / 0.1) if back > 0 else 0
        past = (1 - back) * states[k] + back * states[max(k - 1, -len(states))] if back > 0 else states[0]
        y = y + 0.1 * (x[3] * past[::-1] * 0.1 - y * 0.3)
        states.append(y)
    return np.sum(np.array(states)[:, 0] * np.cos(np.arange(61.0))) + y[1]


def delayed_numbers(x):
    """From the end, too."""
    values = [x[0], x[1]]
    for n in range(60):
        values.append(0.9 * values[-1 - int(abs(np.sin(n * x[2])) * n)] + 0.1 * values[int(0.5 + np.sin(n * 1.0) ** 2 * n)])
    return sum(values)


@pytest.mark.parametrize("program", [delayed, delayed_numbers])
def test_elements_at_places_that_are_data(program):
    assert not trace(program, (np.array([1.3, 0.7, 1.01, 0.4]),)).notes
    x = np.array([1.3, 0.7, 1.01, 0.4])
    compiled = bw.value_and_grad(program)
    for start in (x, np.array([0.4, 1.2, 0.83, -0.2])):
        found, gradient = compiled(start)
        assert found == pytest.approx(program(start), rel=1e-12)
        for place in (0, 1, 3):                    # x[2] only decides where
            h = 1e-6 * np.eye(4)[place]
            assert gradient[place] == pytest.approx((program(start + h) - program(start - h)) / 2e-6, rel=1e-5, abs=1e-7)


def test_a_place_that_is_data_may_be_none():
    def outside(x):
        values = [x[0]]
        for n in range(60):
            values.append(0.9 * values[int(x[1] * n)])
        return sum(values)

    assert bw.jit(outside)(np.array([1.0, 0.5])) == pytest.approx(outside(np.array([1.0, 0.5])))
    with pytest.raises(IndexError, match="list index out of range"):
        bw.jit(outside)(np.array([1.0, 1.5]))


def written_after_it_was_appended(x):
    states, y = [x[:2].copy()], x[:2].copy()
    for n in range(20):
        states.append(y)
        y += 0.1 * states[int(abs(np.sin(n * x[2])) * n)]
    return np.sum(y)


def test_what_is_written_later_is_seen():
    x = np.array([1.3, 0.7, 0.37])
    assert bw.jit(written_after_it_was_appended)(x) == pytest.approx(written_after_it_was_appended(x), rel=1e-12)


# ----- elements that are one thing or another
def names_of_signs(x):
    kinds, total = [], 0.0
    for v in x:
        kinds.append("up" if v > 0 else "down")
    for kind, v in zip(kinds, x, strict=True):
        if kind == "up":
            total = total + v * v
    return total + kinds.count("down")


def numbers_or_none(x):
    kept, total = [], 0.0
    for k, v in enumerate(x):
        kept.append((k, None if v < 0 else np.exp(v)))
    for k, value in kept:
        if value is not None:
            total = total + k * value
    return total


def names_in_some_iterations(x):
    kept, total = [], 0.0
    for k in range(12):
        if np.sin(9 * x[k]) > 0:
            kept.append(("up" if x[k] > 0.3 else None, x[k] * k))
    for kind, value in kept:
        if kind == "up":
            total = total + value
        elif kind is None:
            total = total - 2 * value
    return total + len(kept)


@pytest.mark.parametrize("program", [names_of_signs, numbers_or_none, names_in_some_iterations])
def test_choices_are_appended(program):
    as_python(program, X, X * 0.9)
    assert "unrolled" not in bw.jit(program).explain(X)


def test_choices_of_objects_and_functions_are_known_in_each_iteration():
    class Side:
        def __init__(self, v):
            self.v = v

    def objects(x):
        kept, one, other = [], Side(x[0]), Side(2 * x[1])
        for v in x:
            kept.append(one if v > 0 else other)
        return sum(side.v for side in kept)

    def functions(x):
        kept = []
        for v in x:
            kept.append(np.sin if v > 0 else np.cos)
        return sum(f(x[0]) for f in kept)
    for program in (objects, functions):
        as_python(program, X)


# ----- elements that are parts of an array from outside, at places that move
class Station:
    def __init__(self, place, number):
        self.place, self.number = place, number


def objects_of_rows(x):
    stations, rows = [], x.reshape(6, 2) * 2
    for k in range(5):
        stations.append(Station(rows[k], 2 * k))
    for place in (rows[5], np.array([0.5, -0.3])):
        stations.append(Station(place, 3))
    total = 0.0
    for _ in range(30):
        for station in stations:
            total = 0.8 * total + 0.1 * np.sum(np.sin(station.place + total)) * station.number + station.place[0]
    return total


def rows_that_are_written_later(x):
    kept, y = [], x.reshape(6, 2) * 1.0
    for k in range(6):
        kept.append(y[5 - k])
        y[k] *= 2.0
    y[3] = 7.0
    kept[1][0] = x[2] * 3
    return sum(np.sum(row * row) for row in kept) + np.sum(y ** 3)


def rows_that_data_choose(x):
    kept, y = [], x.reshape(6, 2)
    for k in range(6):
        if y[k, 0] > 0:
            kept.append((k, y[k]))
    return sum(k * np.sum(row * row) for k, row in kept) + len(kept)


def windows_in_a_loop_inside(x):
    kept = []
    for k in range(10):
        for j in range(2):
            kept.append(x[k + j:k + j + 2])
    return np.sum(np.array(kept) ** 2)


def rows_that_the_next_iteration_changes(x):
    y = x.reshape(6, 2) * 1.0
    kept = [y[0]]
    for k in range(1, 6):
        kept[-1][0] = 3.0 * x[k]
        kept.append(y[k])
    return np.sum(y ** 2)


@pytest.mark.parametrize("program", [objects_of_rows, rows_that_are_written_later, rows_that_data_choose, windows_in_a_loop_inside,
                                     rows_that_the_next_iteration_changes])
def test_parts_of_an_array_are_appended(program):
    as_python(program, X, X * 0.9)
    if program is objects_of_rows:
        assert "unrolled" not in bw.jit(program).explain(X)


def test_loops_that_append_until_data_end_them_are_told_by_their_lines():
    def halvings(x):
        kept, y = [], x[0]
        while y > 1e-2:
            kept.append(y)
            y = 0.5 * y * (1 + 0.1 * x[1])
        return np.sum(np.array(kept))

    x, line = np.array([1.3, 0.7]), halvings.__code__.co_firstlineno + 2
    assert bw.jit(halvings)(x) == pytest.approx(halvings(x), rel=1e-12)
    told = bw.jit(halvings).explain(x).splitlines()[0]
    assert told == f"the loop in test_growing_elements.py:{line} is one that ends when its test says so: it carries y, appends to 1 list"


def patience(x):
    weight, curve = x[0], []
    for k in range(40):
        weight = weight - 0.2 * (weight - x[1]) * x[2] + 0.05 * np.sin(3.0 * k)
        curve.append((weight - x[1]) ** 2)
        if k > 4 and curve[-1] > curve[-5]:
            break
    return curve[-1] + 0.1 * np.mean(curve)


def multistep(x):
    y, slopes = x[0], []
    for k in range(20):
        slopes.append(-x[1] * y + x[2])
        if k < 5:
            y = y + 0.1 * slopes[-1]
        else:
            y = y + 0.1 * (1.9 * slopes[-1] - 1.2 * slopes[-3] + 0.3 * slopes[-6])
    return y


def too_far(x):
    made = [x[0]]
    for k in range(20):
        made.append(made[-1] * x[1] + (made[-5] if k > 2 else 0.0))
    return sum(made)


@pytest.mark.parametrize("program", [patience, multistep])
def test_elements_far_from_the_end(program):
    """Which there are not in the first iterations."""
    x = np.array([1.3, 0.4, 0.7])
    as_python(program, x, x * 0.3, x[::-1].copy())
    assert trace(program, (x,)).loops


def test_elements_that_are_not_there():
    with pytest.raises(IndexError, match="list index out of range"):
        bw.jit(too_far)(np.array([1.3, 0.4, 0.7]))


def last_few(x):
    curve, total = [x[0]], 0.0
    for _ in range(20):
        curve.append(curve[-1] * 0.9 + x[1])
        total = total + np.mean(curve[-6:]) + sum(curve[-3:]) * len(curve[-4:])
    return total * x[2]


def last_few_left_early(x):
    curve = []
    for k in range(12):
        curve.append(np.sin(k + x[0]) * x[1])
        if np.mean(curve[-6:]) < x[2] * 0.1:
            break
    return sum(curve) * len(curve)


def last_few_as_data_say(x):
    curve, total = [], 0.0
    for k in range(12):
        curve.append(total * 0.1 + x[k % 3])
        if x[k % 3] > 0.5:
            total = total + np.mean(curve[-6:])
    return total


def window_of_losses(x):
    weight, curve = x[0], []
    for _ in range(40):
        weight = weight - 0.2 * (weight - x[1]) * x[2]
        curve.append((weight - x[1]) ** 2 + 0.1)
        if len(curve) > 7 and min(curve[-7:]) > curve[-8] * 0.98:
            break
    return curve[-1] * len(curve)


@pytest.mark.parametrize("program", [last_few, last_few_left_early, last_few_as_data_say, window_of_losses])
def test_slices_that_are_longer_than_the_list_at_first(program):
    """Then they are as long as the list."""
    x = np.array([1.3, 0.4, 0.7])
    as_python(program, x, x * 0.3, x[::-1].copy())
    if program is window_of_losses:                # which asks first
        assert trace(program, (x,)).loops


def backwards_from_the_end(x):
    kept, total = [x[k:k + 2] * 1.0 for k in range(12 - 1)], 0.0
    for k in range(10):
        for j in range(11):
            total = total + kept[-1 - j][0] * (j + 1) * 0.01
        kept.append(np.array([total * 0.3, x[k % 4]]))
    return total


def test_places_from_an_end_that_moves():
    as_python(backwards_from_the_end, X)
