"""Lists as queues, stacks and moving windows in captured loops: what is taken out of them as well as put in."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, 0.4])


def queue(x):
    waiting, total = [x[0], 2 * x[1], 3.0], 0.0
    for k in range(40):
        first = waiting.pop(0)
        waiting.append(0.9 * first + 0.1 * waiting[0] * np.sin(k))
        total += waiting[-1]
    return total + waiting[1]


def pushed_in_front(x):
    kept, total = [x[0], x[1], 1.0], 0.0
    for k in range(40):
        kept.insert(0, np.cos(kept[-1]) + 0.01 * k)
        kept.pop()
        total += kept[1] * kept[0]
    return total


def filling_window(x):
    """Appended to before it is known that something is taken out; of several iterations until it is full."""
    window, y, total = [], x[0], 0.0
    for k in range(60):
        y = np.sin(y * x[1] + k)
        window.append(y)
        if len(window) > 5:
            window.pop(0)
        total += sum(window) / len(window) + window[-1]
    return total * len(window)


def deleted(x):
    window, total = [x[0]] * 4, 0.0
    for k in range(40):
        window += [np.sin(x[1] * k)]
        del window[0]
        window[2] = window[2] * 0.5
        window[1] *= 0.9
        total += max(window)
    del window[1:3]
    return total + sum(window)


def read_before(x):
    """Read at a place that moves, and assigned to, before it is known that something is taken out."""
    items, total = [x[0], x[1], 0.5, 0.25, 1.0, x[0] * x[1], 0.1, 0.2, 0.3], 0.0
    for k in range(9):
        total += items[k] * k
        items[0] = items[0] * 1.1
        items.append(items.pop(0) * 0.9)
        items.reverse()
    return total + items[0]


def in_branches(x):
    items, s = [0.1, 0.2, 0.3], x[0]
    for k in range(20):
        s = np.sin(s + k)
        if s > 0:
            items.append(s)
            items.pop(0)
        s = s + items[0] * x[1]
    return s + sum(items)


def of_arrays(x):
    kept, total = [x, 2 * x, 0.5 * x], 0.0
    for _ in range(20):
        oldest = kept.pop(0)
        kept.append(np.tanh(oldest + kept[-1] * 0.1))
        total = total + np.sum(kept[0] * kept[-1])
    return total


def in_loops_inside(x):
    waiting, total = [x[0], x[1], 0.3], 0.0
    for i in range(10):
        for k in range(12):
            waiting.append(np.sin(waiting.pop(0) + 0.1 * k))
        total += waiting[0] * i
    return total


class Memory:
    """Steps and slopes of the last iterations, as quasi-Newton methods keep them."""

    def __init__(self, most):
        self.most, self.pairs = most, []

    def add(self, s, y):
        self.pairs.append((s, y))
        if len(self.pairs) > self.most:
            self.pairs.pop(0)


def in_an_object(x):
    memory, total = Memory(3), 0.0
    for k in range(30):
        memory.add(np.sin(x * k), x[0] * k)
        total += sum([np.sum(s) * y for s, y in memory.pairs])
    return total


PROGRAMS = [queue, pushed_in_front, filling_window, deleted, read_before, in_branches, of_arrays, in_loops_inside, in_an_object]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X, 1.3 - X)
    assert "is unrolled" not in bw.jit(program).explain(X)


def test_one_that_gets_longer_is_unrolled_or_refused() -> None:
    def longer(x):
        kept = [x[0]]
        for k in range(24):
            kept.append(np.sin(kept[0] * k))
            if k % 3 == 0:
                kept.pop(0)
        return sum(kept) + len(kept)

    def emptied(x):
        kept = [x[0]] * 10
        for _ in range(12):
            kept.pop()
        return kept

    def stack(x):
        todo, total = [(0.0, x[0])], 0.0
        while todo:
            a, b = todo.pop()
            if b - a < x[1]:
                total += np.sin(b) * (b - a)
            else:
                todo.append((a, (a + b) / 2))
                todo.append(((a + b) / 2, b))
        return total

    assert bw.jit(longer)(X) == pytest.approx(longer(X), rel=1e-12)
    with pytest.raises(IndexError, match="pop from empty list"):
        bw.jit(emptied)(X)
    assert bw.jit(stack)(X) == pytest.approx(stack(X), rel=1e-12)


def appended_and_taken(x):
    """Both in one side of a branch; what it had appended before was there on both ways."""
    stack = [x[0], x[1]]
    if x[0] > 0.3:
        stack.append(0.5)
        if x[1] > 0.1:
            stack.append(0.7)
            stack.pop()
        total = stack.pop() * 3
    else:
        total = 0.0
    return sum(stack) + len(stack) + total


def appended_and_assigned(x):
    stack = [x[0]]
    for i in range(3):
        if x[1] > 0.2 * i:
            stack.append(x[0] * i)
            if x[0] > 0.3:
                stack[-1] = stack[-1] * 2
                stack.append(1.0)
                stack.pop()
    return sum(stack) + len(stack)


@pytest.mark.parametrize("program", [appended_and_taken, appended_and_assigned])
def test_a_side_appends_first_and_then_changes_the_list_otherwise(program):
    as_python(program, np.array([0.8, 0.65]), np.array([0.2, 0.65]), np.array([0.8, 0.05]))


def assigned_and_taken(x):
    """One side assigns to the last element, the other one takes it."""
    todo, n = [1.0, 2.0], 0
    while todo and n < 8:
        n += 1
        v = todo[-1]
        if x[0] * v > 0.4:
            todo[-1] = v * 0.5
            if x[1] > 0.5:
                todo.append(v * 0.4)
        else:
            todo.pop()
    return n + sum(todo)


def test_an_element_is_assigned_to_on_one_side_and_taken_on_the_other():
    as_python(assigned_and_taken, np.array([0.83, 0.65]), np.array([0.3, 0.65]), np.array([1.3, 0.05]))
