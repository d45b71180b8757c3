"""Arrays of which a list holds copies, as data decide what is in it: writes to these arrays are never lost."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.unit.frontend.comparing import as_python

X = np.array([1.1, 2.2, 3.3])
PLACES = (X, X[::-1].copy(), np.array([-30.5, 2.0, 0.7]))


def written_in_the_loop(x):
    x, kept = x.copy(), []
    for _ in range(12):
        if x[0] > 3:
            kept.append(x)
        x += 1
    return sum(np.sum(k * k) for k in kept)


def written_before_in_the_loop(x):
    x, kept = x.copy(), []
    for i in range(12):
        x[1] = x[0] * i
        if x[0] < 3:
            kept.append((i, x))
    return sum(i * np.sum(k * k) for i, k in kept)


def written_after_the_loop(x):
    z, kept = x * 2, []
    for i in range(12):
        if x[0] + i > 3:
            kept.append(z)
    z[0] = x[1]
    return sum(np.sum(k * k) for k in kept)


def the_last_one_written_after_the_loop(x):
    kept = []
    for _ in range(12):
        x = x + 1
        if x[0] > 3:
            kept.append(x)
    x[0] = 7.0
    return sum(np.sum(k * k) for k in kept)


def written_between_inner_loops(x):
    z, t, kept = x * 2, x[0], []
    for _ in range(9):
        z[1] += x[2]
        for _ in range(9):
            if t > 3:
                kept.append(z)
            t = t + 0.13
    return sum(np.sum(k * k) for k in kept) + t


def of_the_next_iteration(x):
    kept = []
    for _ in range(12):
        x[0] += 1
        x = x * 1.2
        if x[1] < 12:
            kept.append(x)
    return sum(np.sum(k * k) for k in kept)


def one_of_two(x):
    z, kept = x * 3, []
    for i in range(12):
        y = x * i
        if x[0] + i > 4:
            y = z
        kept.append(y)
        z[2] = x[1] * i
    return sum((i + 1) * np.sum(k * k) for i, k in enumerate(kept))


def nothing_is_written(x):
    kept = []
    for i in range(12):
        y = x * i
        y[1] += 3
        if y[0] > 3:
            kept.append(y)
        x = x + 0.5
    x[1] = 4.0
    return sum(np.sum(k * k) for k in kept) + x.sum()


def in_a_while(x):
    x, kept, k = x.copy(), [], 0
    while k < 12 and x[2] < 100:
        if x[0] > 3:
            kept.append(x)
        x += 1
        k += 1
    return sum(np.sum(k * k) for k in kept)


class Recorder:
    def __init__(self, x):
        self.x = x * 1.5
        self.history = []

    def step(self):
        if self.x[0] > 2:
            self.history.append(self.x)
        self.x *= 1.1


def of_an_object(x):
    one = Recorder(x)
    for _ in range(12):
        one.step()
    return sum(np.sum(k * k) for k in one.history) + one.x.sum()


PROGRAMS = [written_in_the_loop, written_before_in_the_loop, written_after_the_loop, the_last_one_written_after_the_loop,
            written_between_inner_loops, of_the_next_iteration, one_of_two, nothing_is_written, in_a_while, of_an_object]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(lambda x: program(x.copy()), *PLACES)


def test_what_is_only_bound_anew_is_recorded():
    def program(x):
        kept = []
        for _ in range(300):
            x = x * 1.01
            if x[0] > 3:
                kept.append(x)
        return sum(np.sum(k) for k in kept)
    assert "loop" in bw.compile(program, X).as_text("forward")
    np.testing.assert_allclose(bw.jit(program)(X), program(X))


# ----- parts of arrays at places that move
class Edge:
    def __init__(self, i, z):
        self.i, self.z = i, z


def frames(x):
    return sum(np.sum(f * f) * (k + 1) for k, f in enumerate([x[2 * i:2 * i + 4] for i in range(12)]))


def rows_in_objects(x):
    y, edges, total = x.reshape(-1, 2), [], 0.0
    for i in range(len(y)):
        edges.append(Edge(i, y[i]))
    for e in edges:
        total = np.sin(total) + e.i * np.sum(e.z)
    return total


def of_what_the_iteration_makes(x):
    kept = []
    for i in range(12):
        z = np.roll(x, i) * x[0]
        kept.append((z[i:i + 3], i))
    return sum(k * np.sum(f * f) for f, k in kept)


def in_some_iterations(x):
    kept = []
    for i in range(12):
        if x[i] > 0.3:
            kept.append(x[2 * i:2 * i + 4])
    return sum(np.sum(f * f) for f in kept)


MOVING = [frames, rows_in_objects, of_what_the_iteration_makes, in_some_iterations]


def windows(y):
    return [y[2 * i:2 * i + 4] for i in range(12)]


def array_written_later(x):
    y = x.copy()
    kept = windows(y)
    y[5] = x[0]
    return sum(np.sum(f * f) for f in kept)


def part_written_later(x):
    y = x.copy()
    kept = windows(y)
    kept[3][2] = x[0]
    return sum(np.sum(f * f) for f in kept) + np.sum(y**3)


def parts_written_in_a_later_loop(x):
    y, total = x.copy(), 0.0
    kept = windows(y)
    for i in range(12):
        kept[i][1] *= x[0]
        total += np.sum(y[i:i + 5])
    return total + sum(np.sum(f * f) for f in kept)


def array_written_meanwhile(x):
    y, kept = x.copy(), []
    for i in range(12):
        kept.append(y[2 * i:2 * i + 4])
        y[2 * i + 3] *= x[0]
    return sum(np.sum(f * f) for f in kept) + np.sum(y**3)


def last_part_written_meanwhile(x):
    y = x.copy()
    kept = [y[:4]]
    for i in range(12):
        kept[-1][0] *= x[0]
        kept.append(y[2 * i:2 * i + 4])
    return sum(np.sum(f * f) for f in kept) + np.sum(y**3)


def written_by_its_other_name(x):
    y, kept, last = x.copy(), [], x
    for i in range(12):
        last = y[2 * i:2 * i + 4]
        kept.append(last)
    last[3] = x[0]
    return sum(np.sum(f * f) for f in kept) + np.sum(y**3)


@pytest.mark.parametrize("program", [*MOVING, array_written_later, part_written_later, parts_written_in_a_later_loop, array_written_meanwhile,
                                     last_part_written_meanwhile, written_by_its_other_name], ids=lambda program: program.__name__)
def test_parts_that_move(program):
    as_python(program, np.linspace(0.9, -0.4, 26) ** 2)


@pytest.mark.parametrize("program", MOVING, ids=lambda program: program.__name__)
def test_parts_to_which_nobody_writes_are_collected_by_a_loop(program):
    assert "unrolled" not in bw.jit(program).explain(np.linspace(0.9, -0.4, 26))


# ----- never a number that is not Python's
def a_row_that_data_choose(x):
    rows, y = np.zeros((5, 3)), x * 0
    rows[np.argmax(x)] = x
    if x[0] > 0:
        y = rows[np.argmax(x)]
    rows[np.argmax(x)] = x * 5
    return y.sum()


def a_row_of_a_list(x):
    rows, kept = np.zeros((5, 3)), []
    for i in range(12):
        rows[i % 5] = x * i
        if x[0] + i > 4:
            kept.append(rows[i % 5])
    return sum((k + 1) * np.sum(d) for k, d in enumerate(kept))


def the_last_one_of_a_loop_that_is_left(x):
    kept = []
    for i in range(20):
        y = x * i
        kept.append(y)
        if y[1] > 5:
            break
    y[0] = 77.0
    return sum(np.sum(d) for d in kept)


def two_of_one_side(x):
    y, best = x * 0, x * 0
    if x[0] > 0:
        y = x * 2
        if x[1] > 1:
            best = y
    y[0] = 5.0
    return best.sum() * x[0] + y.sum()


def two_by_a_third_name(x):
    """`y` and `best` may both be what `x * 2` made, which has no name any more."""
    y, best = x * 0, x * 0
    if x[0] > 0:
        made = x * 2
        if x[1] > 1:
            best = made
            made = x
        if x[2] > 0:
            y = best
    y[0] = 5.0
    return best.sum() * x[0] + y.sum()


@pytest.mark.parametrize("program", [
    a_row_that_data_choose, a_row_of_a_list, the_last_one_of_a_loop_that_is_left, two_of_one_side, two_by_a_third_name],
                         ids=lambda program: program.__name__)
def test_what_is_refused(program):
    with pytest.raises((BwError, ValueError), match=r"(?s)test_kept.py.*hint: "):
        bw.jit(program)(X)
