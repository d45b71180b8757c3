"""How often the body of a loop is traced: first calls take as long."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend.source import unrolling
from bwcompiler.frontend.source.bodies import capture
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.trace import trace


def arrays_until_a_time(x):
    t, y = 0, x
    while t < 5.0:
        y = y + 0.1 * np.sin(y)
        t += 0.1
    return np.sum(y)


def tuples_until_a_time(x):
    t, state = 0.0, (x, 0)
    while t < 5.0:
        state = (state[0] * 0.9, state[1] + 1)
        t += 0.1
    return np.sum(state[0]) * state[1]


class Clock:
    def __init__(self, y):
        self.t, self.y = 0, y


def places_until_a_time(x):
    clock = Clock(x)
    while clock.t < 5.0:
        clock.y = clock.y + 0.1 * np.sin(clock.y)
        clock.t += 0.1
    return np.sum(clock.y)


def counted(x):
    y, total = x, 0
    for _ in range(50):
        y = y + 0.1 * np.sin(y)
        total += y[0]
    return np.sum(y) + total


def until_data_says_so(x):
    y, t = x, 0
    while y[0] < 5.0:
        y = y + 0.1
        t += 0.1
    return np.sum(y) + t


def steps_that_may_be_refused(x):
    y, t, h = x + 1.0, 0.0, 0.1
    while t < 5.0:
        moved = y + h * np.sin(y)
        error = np.max(np.abs(moved - y))
        if error <= 0.2:
            y = moved
            t = t + h
        h = h * min(2.0, 0.2 / error)
    return np.sum(y)


def steps_from_an_array_that_a_loop_gave(x):
    y, t = x, 0.0
    while y[0] < 2.0:
        y = y + 0.1
    while t < y[0]:
        if y[1] > t:
            y = y * 0.9
        t = t + 0.1
    return np.sum(y)


@pytest.mark.parametrize("program, most", [(arrays_until_a_time, 3), (tuples_until_a_time, 4), (places_until_a_time, 4), (counted, 2),
                                           (until_data_says_so, 2), (steps_that_may_be_refused, 5),
                                           (steps_from_an_array_that_a_loop_gave, 4)], ids=lambda one: getattr(one, "__name__", ""))
def test_bodies_are_traced_a_few_times(program, most, monkeypatch) -> None:
    bodies = traced_bodies(monkeypatch)
    assert not trace(program, (np.ones(3),)).notes
    assert len(bodies) <= most


def traced_bodies(monkeypatch):
    """The bodies of loops that are traced from now on."""
    def counting(fun, *args, **kwargs):
        if getattr(fun, "__name__", "") == "_iteration":
            bodies.append(fun)
        return traced(fun, *args, **kwargs)

    bodies, traced = [], capture.trace_body
    monkeypatch.setattr(capture, "trace_body", counting)
    return bodies


def relaxed(y, target):
    """y moves, and the test makes it depend on data which array it is afterwards."""
    error, count = np.max(np.abs(target - y)) + 1.0, 0
    while error > 1e-3 and count < 50:
        y = y + 0.3 * (target - y)
        error = np.max(np.abs(target - y))
        count += 1
    return y, error


def loops_inside_of_a_loop(x):
    total, y = 0.0, x
    for k in range(20):
        y, error = relaxed(y, x * k)
        length = 0.0
        for j in range(10):
            length += y[0] ** j
        total += error + length
    return np.sum(y) * 1e-3 + total * 1e-9


def test_what_loops_inside_of_others_carry_is_remembered(monkeypatch) -> None:
    """The outer one is traced twice; of the inner ones the first once in each of these, and the second twice in the first."""
    bodies = traced_bodies(monkeypatch)
    x = np.array([0.7, -0.2, 0.4])
    assert not trace(loops_inside_of_a_loop, (x,)).notes
    assert len(bodies) == 2 + (1 + 1) + (2 + 1)
    np.testing.assert_allclose(bw.jit(loops_inside_of_a_loop)(x), loops_inside_of_a_loop(x), rtol=1e-12)


def sums_of_two_types(x, y):
    """The same loop, over numbers of another type each time: nothing of the first time holds for the second."""
    def total(values, first):
        found = first
        for k in range(20):
            found = found * 0.5 + values[k]
        return found

    by_twos, by_threes = [], []
    for _ in range(10):
        by_twos = [total(y, 0.0), total(x, 0.0), total(y, 1), total(x, np.float32(0))]
        by_threes = [total(x, 0.0), total(x, 1), total(x, np.float64(0))]
    return (*by_twos, *by_threes)


def test_another_type_is_another_loop() -> None:
    x, y = np.linspace(0, 1, 20, dtype=np.float32), np.linspace(1, 3, 20)
    found, expected = bw.jit(sums_of_two_types)(x, y), sums_of_two_types(x, y)
    assert [one.dtype for one in found] == [one.dtype for one in expected]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def filtered(x):
    """Arrays that each iteration computes anew, by an assignment or two at a time."""
    state, weights, total = x, np.ones(3), x * 0
    for k in range(20):
        state = 0.9 * state + np.sin(weights)
        weights, total = weights * 0.5, total + state * k
    return np.sum(state * weights + total)


def kept_by_a_function(x):
    """What is assigned is the array that there was, which is seen by its other name."""
    def added(y):
        y += 1.0
        return y

    found = x * 2
    other = found
    for _ in range(20):
        found = added(found)
    return np.sum(other) + np.sum(found * x)


def kept_as_it_is(x):
    def same(y):
        return y

    found = x * 2
    other = found
    for _ in range(20):
        found = same(found)
    found[0] = 7.0
    return np.sum(other * x)


@pytest.mark.parametrize("program, most", [(filtered, 1), (kept_by_a_function, 2), (kept_as_it_is, 2)],
                         ids=lambda one: getattr(one, "__name__", ""))
def test_arrays_that_are_surely_bound_anew_are_carried_at_once(program, most, monkeypatch) -> None:
    x = np.array([0.7, -0.2, 0.4])
    np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-12)
    bodies = traced_bodies(monkeypatch)
    assert not trace(program, (x,)).notes
    assert len(bodies) <= most


class Mover:
    """Of objects with slots, nobody looks into these."""

    __slots__ = ("moves",)

    def __init__(self, moves):
        self.moves = moves

    def moved(self, y):
        return y * 0.9 if self.moves else y


def test_a_loop_that_is_not_what_it_was_is_found_anew(monkeypatch) -> None:
    """Two loops that look alike: in the second the variable keeps its array, which it is afterwards, too."""
    def several(mover, y):
        for _ in range(20):
            y = mover.moved(y)
        return y

    def program(x):
        first = several(Mover(True), x)
        kept = x * 2
        second = several(Mover(False), kept)
        second[0] = 7.0
        return first, kept

    x = np.array([0.7, -0.2, 0.4])
    for found, expected in zip(bw.jit(program)(x), program(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def four_tables(x):
    place, speed, force, energy = np.zeros(41), np.zeros(41), np.zeros(41), np.zeros((41, 2))
    for k in range(40):
        force[k] = x[0] - place[k]
        speed[k + 1] = speed[k] + 0.1 * force[k]
        place[k + 1] = place[k] + 0.1 * speed[k + 1]
        energy[k + 1][0] = speed[k + 1] ** 2
        if place[k] > 0.2:
            energy[k, 1] += place[k]
    return np.sum(energy) + place[-1] * np.max(force)


def tables_behind_a_test_that_is_known(x, writes=False):
    """What is not reached is not written to: the mask stays known."""
    mask, found = np.arange(40) > 20, np.zeros(40)
    for k in range(40):
        found[k] = x[0] * k
        if writes:
            mask[k] = True
    return np.sum(found[mask])


def number_of_traces(program, *args):
    """How often a program is run to trace it, which gives what Python does."""
    calls = []
    note = calls.append           # which nobody follows: a list is put back where a trace is given up

    def counting(*given):
        note(1)
        return program(*given)

    np.testing.assert_allclose(bw.jit(counting)(*args), program(*args), rtol=1e-13)
    return len(calls)


@pytest.mark.parametrize("program", [four_tables, tables_behind_a_test_that_is_known], ids=lambda one: one.__name__)
def test_all_arrays_that_a_body_changes_are_foreseen(program) -> None:
    assert number_of_traces(program, np.array([0.7])) == 1


def three_matrices(x, n):
    """Each is assigned to in a place of its own; `length` is known, and says how long the loop is."""
    overlap, kinetic = np.zeros((n, n)), np.zeros((n, n))
    length = np.ones(1)
    length[0] = len(x) - 1
    for i in range(n):
        for j in range(i + 1):
            overlap[i, j] = overlap[j, i] = np.exp(-(x[i] - x[j]) ** 2)
            kinetic[i, j] = kinetic[j, i] = distances(x)[i, j]
    both = np.zeros((n, n, 2))
    for i, xi in enumerate(x):
        both[i, :, 0], both[i, :, 1] = overlap[i] * xi, kinetic[i]
    return sum(np.sum(both[k]) * (k + 1) for k in range(int(length[0])))


def distances(x):
    found = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        found[i] = x[i] - x
    return found


def test_arrays_that_a_function_fills_are_foreseen_when_it_begins() -> None:
    """By its text, from what is traced of its parameters; those of functions that it calls, too."""
    assert number_of_traces(lambda x: three_matrices(x, 3), np.array([0.7, -0.2, 0.4])) == 1


class Well:
    def __init__(self, depth, places):
        self.depth = depth
        self.places = places

    def levels(self, n):
        found, count = np.zeros(n), np.zeros(3)
        for k in range(n):
            found[k] = self.depth * (k + 1)
        for k in range(3):
            count[k] = self.places[k]
        return found[: int(np.sum(count))]


def functions_that_fill_arrays(x, n=20):
    """Those of an object, of a function defined here, and places, which stay known."""
    def cumulated(y):
        total = np.zeros(len(y) + 1)
        for k in range(len(y)):
            total[k + 1] = total[k] + scale * y[k]
        return total

    def multiples():
        found = np.zeros(n)
        for k in range(n):
            found[k] = scale * k
        return found

    scale = x[2]
    first = np.zeros(n)
    for k in range(n):
        first[k] = x[0] * k
    places = np.zeros(3, dtype=int)
    for k in range(3):
        places[k] = 2 * k + len(x)
    levels = Well(x[1], [1, 2, 0]).levels(n)
    return np.sum(cumulated(levels)[1:] * (first + multiples())[: len(levels)]) + sum(x[place % 3] for place in places)


def test_arrays_of_methods_and_closures_are_foreseen_and_counts_stay_known() -> None:
    assert number_of_traces(functions_that_fill_arrays, np.array([0.7, -0.2, 0.4])) == 1


def test_arrays_filled_with_items_of_a_dictionary_are_foreseen_and_others_stay_known() -> None:
    def program(given):
        weights, sizes = np.zeros(3), np.zeros(3)
        for k in range(3):
            weights[k] = given["weights"][k] ** 2
            sizes[k] = given["sizes"][k]
        total = 0.0
        for k in range(3):
            total = total + weights[k] * sum([1.0] * int(sizes[k]))
        return total

    sizes = (1, 2, 3)
    assert number_of_traces(lambda weights: program({"weights": weights, "sizes": sizes}), np.array([0.7, -0.2, 0.4])) == 1


def test_several_arrays_in_one_assignment_are_foreseen() -> None:
    def both(y):
        return y * 2, y ** 2

    def program(x):
        first, second = np.zeros(20), np.zeros(20)
        for k in range(20):
            first[k], second[k] = both(x[k % 3])
        return np.sum(first * second)

    assert number_of_traces(program, np.array([0.7, -0.2, 0.4])) == 1


def test_an_array_filled_with_an_integer_that_will_be_known_stays_known() -> None:
    """The integer is an operand until its number is asked for: one more trace, in which the array has a known number."""
    def program(x, n):
        ones, sizes = np.ones(abs(n)), np.zeros(4)
        sizes[0] = n - 1
        return np.sum(x[: int(sizes[0])]) + sum([1.0] * int(sizes[0])) + np.sum(ones)

    assert number_of_traces(program, np.array([0.7, -0.2, 0.4]), 3) == 2


class Branch:
    """A tree whose leaves hold matrices: its nodes are unlike each other, so that loops over them cannot be recorded."""

    def __init__(self, depth, number=1):
        self.number = number
        self.children = () if depth == 0 else (Branch(depth - 1, 2 * number), Branch(depth - 1, 2 * number + 1))
        self.table = None if depth else np.eye(3) + number

    def product(self, x):
        if not self.children:
            return self.table
        y = 1.0
        for child in self.children:
            y = y * (child.product(x) @ rotation(x[child.number % 3]))
        return y / np.max(y)


def products_of_trees(x):
    tree, total = Branch(4), 0.0
    for k in range(4):
        total = total + np.sum(tree.product(x * (k + 1.0)))
    return total


def test_an_iteration_that_is_too_long_is_left_at_once(monkeypatch) -> None:
    """That of a short loop: as soon as it has recorded so much that the loop is to be recorded, and not at its end."""
    lengths = []

    class Noting(unrolling.Reconsidered):
        def __init__(self, *args):
            super().__init__(*args)
            lengths.append(len(open_region().record.values))

    monkeypatch.setattr(unrolling, "Reconsidered", Noting)
    x = np.arange(3.0)
    traced = trace(products_of_trees, (x,))
    assert sum(value.op is ops.loop for value in traced.graph.body) == 1
    assert len(lengths) == 2                                   # of the loop over two children, and of the other
    assert lengths[1] < unrolling.HEAVY                        # an iteration has about a thousand
    np.testing.assert_allclose(bw.jit(products_of_trees)(x), products_of_trees(x), rtol=1e-13)


def test_an_array_that_is_known_after_all() -> None:
    """What its text takes for traced need not be: where the program is refused so, it stays known."""
    def steps(x):
        return x.shape[0] + 2

    def program(x):
        count, y = np.zeros(2), np.zeros(3)
        y[0] = x[0]
        for k in range(2):
            count[k] = steps(x) - k
        total = int(count[0] + count[1])
        for _ in range(total):
            y[1] += y[0] * x[1]
        return np.sum(y), [0.0] * total

    x = np.array([0.7, -0.2, 0.4])
    found, expected = bw.jit(program)(x), program(x)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
    assert found[1] == expected[1]


def rotation(angle):
    return np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.1 * angle], [0.0, 0.2 * angle, 1.0]])


def heavy_inside(x):
    for _ in range(3):
        total = np.zeros(3)
        for k in range(3):
            turned = rotation(x[k]) @ rotation(x[k - 1]) @ rotation(x[k - 2]) @ rotation(total[k]) @ rotation(x[k] * x[k - 1])
            turned = turned @ rotation(turned[0, 0]) @ rotation(turned[1, 1]) @ rotation(turned[0, 1]) @ rotation(turned[2, 1])
            turned = turned @ rotation(turned[0, 0]) @ rotation(turned[1, 1]) @ rotation(turned[0, 1]) @ rotation(turned[2, 1])
            total = total + np.linalg.solve(turned + 3 * np.eye(3), x) + turned @ x
        x = x + 0.01 * total
    return np.sum(x)


def test_loops_around_a_heavy_one_are_found_with_it() -> None:
    calls = []
    note = calls.append           # which nobody follows: a list is put back where a trace is given up

    def counting(x):
        note(1)
        return heavy_inside(x)

    x = np.array([0.7, -0.2, 0.4])
    np.testing.assert_allclose(bw.jit(counting)(x), heavy_inside(x), rtol=1e-12)
    assert len(calls) == 2


def a_few_long_iterations(x):
    t, y, steps = 1.0, x, 0
    while 6 / t > 1e-3:
        for k in range(3):
            turned = rotation(t * y[k]) @ rotation(y[k - 1]) @ rotation(y[k - 2]) @ rotation(x[k] * y[k - 1])
            y = y + 0.1 * turned @ y / t
        t *= 10.0
        steps += 1
    return np.sum(y) * t * steps


def test_a_while_loop_of_a_few_long_iterations_that_can_be_counted_is_recorded() -> None:
    x = np.array([0.7, -0.2, 0.4])
    traced = trace(a_few_long_iterations, (x,))
    assert [value.op for value in traced.graph.body if value.op in ops.LOOPS] == [ops.loop]
    np.testing.assert_allclose(bw.jit(a_few_long_iterations)(x), a_few_long_iterations(x), rtol=1e-13)
