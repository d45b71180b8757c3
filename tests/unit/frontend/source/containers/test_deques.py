"""Deques in captured loops: delay lines, moving windows and queues, whose items the loop takes along."""

import collections

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, 0.4])


def delay_line(x):
    pipe, h, cost = collections.deque([0.0] * 3, maxlen=3), 0.2, 0.0
    for k in range(50):
        u, arriving = x[0] * (1 - h), pipe[0]
        pipe.append(u)
        h = h + 0.1 * (arriving - x[1] * np.sqrt(max(h, 1e-6)))
        cost += (h - 0.5) ** 2 * k
    return cost + sum(pipe) + pipe[-1] * len(pipe)


def filling_window(x):
    last, y, total = collections.deque(maxlen=4), x[0], 0.0
    for k in range(40):
        y = np.sin(y * x[1] + k)
        last.append(y)
        total += sum(last) / len(last) * np.mean(last)
    return total


def queue(x):
    waiting, total = collections.deque(x), 0.0
    for k in range(40):
        first = waiting.popleft()
        total = total + first * k
        waiting.append(np.cos(first) + waiting[0] * 0.1)
    return total + waiting[1]


def rotated(x):
    items, total = collections.deque([x[0], x[1], 2.0]), 0.0
    for _ in range(40):
        items.rotate(1)
        total = total * 0.5 + items[0] * np.sin(items[1])
        items[2] = items[2] * 0.9
        items[1] *= 0.99
    return total


def of_arrays(x):
    """What is appended is changed in place afterwards."""
    kept, u, total = collections.deque([x * 1.0, x * 2.0], maxlen=2), x * 0.5, 0.0
    for _ in range(20):
        u = u + 0.1 * kept[0]
        kept.append(u)
        u += 1.0
        total = total + np.sin(np.sum(kept[1] * kept[0]))
    return total


def as_data_decides(x):
    kept, s = collections.deque([0.0, 0.0], maxlen=2), x[0]
    for k in range(20):
        s = np.sin(s + k)
        if s > 0:
            kept.append(s)
        s = s + kept[0] + kept[1] * x[1]
    return s


class Filter:
    def __init__(self, taps):
        self.taps = taps
        self.line = collections.deque([0.0] * len(taps), maxlen=len(taps))

    def step(self, u):
        self.line.appendleft(u)
        return sum(tap * value for tap, value in zip(self.taps, self.line, strict=True))


def in_an_object(x):
    found, total = Filter([x[0], x[1], 0.3, x[0] * x[1]]), 0.0
    for k in range(60):
        total += found.step(np.sin(0.3 * k)) ** 2
    return total


PROGRAMS = [delay_line, filling_window, queue, rotated, of_arrays, as_data_decides, in_an_object]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X, 1.3 - X)
    assert "is unrolled" not in bw.jit(program).explain(X)


def test_one_that_gets_longer_is_unrolled_or_refused() -> None:
    def longer(x):
        kept = collections.deque([0.0])
        for k in range(12):
            kept.append(np.sin(x[0] * k) + kept[-1])
        return kept[5] + len(kept)

    def ends_by_data(x):
        kept, s = collections.deque([0.0]), x[0]
        while s < 10:
            kept.append(s)
            s = s + kept[0] + 0.5
        return s

    assert bw.jit(longer)(X) == pytest.approx(longer(X), rel=1e-12)
    assert bw.jit(ends_by_data)(X) == pytest.approx(ends_by_data(X), rel=1e-12)

    def of_several_kinds(x, first, more):
        kept, s = collections.deque([first]), x[0]
        while s < 10:
            kept.append(more)
            s = s + 0.5
        return s
    assert bw.jit(of_several_kinds, static_argnums=(1, 2))(X, "start", "next") == of_several_kinds(X, "start", "next")
    with pytest.raises(bw.errors.TracerBoolError, match="deque does not keep its structure"):
        bw.jit(lambda x: of_several_kinds(x, (1.0, 2.0), 3.0))(X)


def test_branches_that_change_the_length_say_so() -> None:
    """Of elements that are not alike; deques of others have room (`test_memories.py`)."""
    def filled_by_data(x, element):
        kept, total = collections.deque(maxlen=4), 0.0
        for k in range(12):
            if np.sin(k * x[0]) > 0:
                kept.append(element(k))
            total += len(kept)
        return total

    def texts(x):
        return filled_by_data(x, lambda k: "positive")

    def lists(x):
        return filled_by_data(x, lambda k: [1.0] * k)

    assert bw.jit(texts)(X) == texts(X)
    with pytest.raises(bw.errors.TracerBoolError, match=r"a deque has 1 items after one side of it, and 0 after the other\n  hint: as many items"):
        bw.jit(lists)(X)
