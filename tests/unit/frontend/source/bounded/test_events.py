"""Texts, None, truth values and members of enumerations in heaps, stacks and queues of which data decide what they hold: events."""

import enum
import heapq
import itertools
from collections import deque
from typing import NamedTuple

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, 0.61, 1.3, 0.41])
PLACES = (X, X[::-1].copy(), np.array([1.21, 0.37, 0.9, 1.7]))


def one_server(x):
    heap, t, waiting, area, is_busy = [], 0.0, 0, 0.0, False
    heapq.heappush(heap, (0.3 * x[0], "arrive", 0))
    while heap and t < 6.0:
        now, kind, k = heapq.heappop(heap)
        area += waiting * (now - t)
        t = now
        if kind == "arrive":
            if k < 9:
                heapq.heappush(heap, (t + x[0] * (0.6 + 0.4 * np.cos(3 * k)), "arrive", k + 1))
            if is_busy:
                waiting += 1
            else:
                is_busy = True
                heapq.heappush(heap, (t + x[1], "depart", k))
        elif kind == "depart":
            if waiting > 0:
                waiting -= 1
                heapq.heappush(heap, (t + x[1] * (1 + 0.1 * k), "depart", k))
            else:
                is_busy = False
    return area + t


def two_servers(x):
    heap, queue, busy, wait = [], [], 0, 0.0
    for k in range(5):
        heapq.heappush(heap, (x[0] * (0.4 * k + 0.1 * np.sin(k)), "arrival", k))
    while heap:
        t, kind, k = heapq.heappop(heap)
        if kind == "arrival":
            queue.append((t, k))
        else:
            busy -= 1
        while queue and busy < 2:
            came, j = queue.pop(0)
            wait += t - came
            busy += 1
            heapq.heappush(heap, (t + x[1] * (1.0 + 0.5 * np.cos(j)), "departure", j))
    return wait


def machine(x):
    stack, work = [], [("eval", x[0], 3)]
    while work:
        op, value, depth = work.pop()
        if op == "eval":
            if depth == 0 or abs(value) < 0.3:
                stack.append(np.sin(value))
            else:
                work += [("add", None, 0), ("eval", value * x[1], depth - 1)]
                work.append(("eval", value * 0.5, depth - 1))
        elif op == "add":
            b = stack.pop()
            a = stack.pop()
            stack.append(a + 2 * b)
    return stack[0]


def depth_first(x):
    stack, depth, total = [("enter", 0)], 0, 0.0
    while stack:
        what, node = stack.pop()
        if what == "enter":
            depth += 1
            total += x[node] * depth
            stack.append(("leave", node))
            for child in (2 * node + 1, 2 * node + 2):
                if child < 4 and x[child] > 0.5:
                    stack.append(("enter", child))
        else:
            depth -= 1
            total -= 0.1 * x[node] ** 2
    return total


def logged(x):
    heap, log = [(x[0], "a", None)], []
    heapq.heapify(heap)
    while heap and len(log) < 9:
        t, kind, before = heapq.heappop(heap)
        log.append((t, kind))
        if kind == "a":
            heapq.heappush(heap, (t + x[0], "b", t))
            heapq.heappush(heap, (t + x[1], "a", None))
        elif before is not None:
            log.append((before, "before"))
    count = sum(1 for _, kind in log if kind == "b")
    return sum(t for t, kind in log if kind != "a") + 10 * count + log[-1][0] + sum(t for t, kind, _ in sorted(heap) if kind == "b")


class Kind(enum.Enum):
    UP = 1
    DOWN = 2


def of_members(x):
    queue, total = deque([(Kind.UP, x[0], True)]), 0.0
    while queue and total < 9:
        kind, v, is_first = queue.popleft()
        if kind is Kind.UP:
            total += v
            queue.append((Kind.DOWN, v * x[1], is_first))
            if v > 0.2:
                queue.append((Kind.UP, v * 0.8, False))
        else:
            total += 0.5 * v if is_first else 0.3 * v
    return total


class Event(NamedTuple):
    time: float
    kind: str
    who: int


def named(x):
    heap = [Event(x[0] * (k + 1), "arrive", k) for k in range(4)]
    heapq.heapify(heap)
    left = []
    while heap:
        event = heapq.heappop(heap)
        if event.kind == "arrive":
            heapq.heappush(heap, Event(event.time + x[1] * (1 + event.who), "leave", event.who))
        else:
            left.append(event.time)
    return np.mean(left) + max(left)


def numbered(x):
    numbers, heap, counts, total = itertools.count(2), [], {"start": 0, "tick": 0}, 0.0
    heapq.heappush(heap, (x[0], next(numbers), "start", None))
    while heap:
        t, number, kind, data = heapq.heappop(heap)
        counts[kind] += 1
        if t > 3.0:
            break
        if kind == "start":
            heapq.heappush(heap, (t + x[1], next(numbers), "tick", 2.0 * t))
            heapq.heappush(heap, (t + 2 * x[1], next(numbers), kind, None))
        else:
            total += data * t * number
    return total + next(numbers) + 3 * counts["start"] * x[0] + counts["tick"]


def with_parents(x):
    queue, log = deque(), []
    queue.append((x[0], None))
    while queue:
        v, parent = queue.popleft()
        log.append((v, parent))
        if v > 0.3:
            queue.append((v * x[1] * 0.6, v))
            if parent is not None:
                queue.append((v * 0.4, None))
    return sum(p for _, p in log if p is not None) + len(log) + sum(v for v, p in log if p is None)


@pytest.mark.parametrize("program", [one_server, two_servers, machine, depth_first, logged, of_members, named, numbered,
                                     with_parents], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES)


def in_turn(kinds, x):
    """Elements of which several are alike up to their kinds."""
    heap, total = [], 0.0
    for k in range(4):
        heapq.heappush(heap, (np.floor(x[k]), kinds[k % 2], k))
    while heap:
        _, kind, k = heapq.heappop(heap)
        total = 3 * total + (k + 1 if kind == kinds[0] else -k)
    return total


class Order(enum.IntEnum):
    LATE = 2
    EARLY = 1


@pytest.mark.parametrize("kinds", [("b", "a"), ("a", "b"), ("b", "B"), (Order.EARLY, Order.LATE), (Order.LATE, Order.EARLY)], ids=str)
def test_what_comes_at_the_same_time_is_in_the_order_of_texts(kinds):
    for x in PLACES:
        assert bw.jit(lambda x: in_turn(kinds, x))(x) == in_turn(kinds, x)


@pytest.mark.parametrize("kinds", [(Kind.UP, Kind.DOWN), (None, "a"), (np.sin, np.cos)], ids=str)
def test_what_has_no_order_is_an_error_where_it_decides(kinds):
    compiled = bw.jit(lambda x: in_turn(kinds, x))
    x = np.array([3.2, 1.1, 7.7, 5.1])
    assert compiled(x) == in_turn(kinds, x)
    with pytest.raises(TypeError, match="not supported"):
        in_turn(kinds, X)
    with pytest.raises(TypeError, match="(?s)test_events.py.*'<' not supported.*hint: a number before"):
        compiled(X)


def kinds_in_order(x):
    log = []
    for k in range(5):
        if x[k % 2] > 0.1 * k:
            log.append((np.floor(x[0] * k), "b" if x[1] > 0.2 * k + 0.05 else "a", k))
    total = x[0]
    for _, kind, k in sorted(log):
        total = 3 * total + (k + 1 if kind == "b" else -k)
    return total + min(log)[2] + 10 * max(log, key=lambda one: one[1])[2]


def test_lists_with_gaps_are_in_the_order_of_texts():
    as_python(kinds_in_order, *PLACES)


def thermostat(x):
    log, t, is_on, temperature = [], 0.0, False, 18.0
    while t < 20.0:
        temperature += 0.5 * (x[0] * 3 if is_on else -x[1] * 2)
        t += 0.5
        if temperature < 17 and not is_on:
            is_on = True
            log.append((t, "on", temperature))
        elif temperature > 19 and is_on:
            is_on = False
            log.append((t, "off", temperature))
    on = [t for t, kind, _ in log if kind == "on"]
    off = [t for t, kind, _ in log if kind == "off"]
    last = log[-1] if log else (0.0, "none", 0.0)
    return sum(b - a for a, b in zip(on, off, strict=False)) + len(on) + last[2] * (1 if last[1] == "off" else 2) + temperature


def test_a_list_of_what_several_places_append_is_one_array():
    as_python(thermostat, *[np.array([0.8, 0.65]), np.array([0.5, 0.9])])
    assert len(trace(thermostat, (X,)).graph.body) < 500
