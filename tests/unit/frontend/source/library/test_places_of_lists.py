"""`items.pop(place)`, `items.insert(place, x)` and `items.remove(x)` where data decide the place; heaps and orders of objects that their
methods compare.
"""

import collections
import dataclasses
import heapq

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from tests.unit.frontend.comparing import as_python

X = np.array([1.25, 2.1, 0.55, -0.3])
PLACES = (X, np.array([-1.1, 0.3, 2.2, 0.7]), np.array([3.1, -2.2, 1.3, 1.15]))


def taken_in_order(x):
    items, total, k = list(x), 0.0, 1.0
    while items:
        total = total + items.pop(int(np.argmin(items))) * k
        k += 1
    return total


def taken_by_key(x):
    items, total, k = list(x), 0.0, 1.0
    while items:
        place = min(range(len(items)), key=lambda i: items[i])
        total = total + items.pop(place) * k
        k += 1
    return total


def removed(x):
    items, total, k = list(x), 0.0, 1.0
    while items:
        least = min(items)
        items.remove(least)
        total = total + least * k
        k += 1
    return total


def inserted(x):
    found = []
    for v in x:
        i = 0
        while i < len(found) and found[i] < v:
            i += 1
        found.insert(i, v)
    found.insert(int(np.floor(x[0])), x[1])
    return sum(v * (k + 1) for k, v in enumerate(found))


def of_pairs(x):
    items, total = [(v, float(i)) for i, v in enumerate(x)], 0.0
    while len(items) > 1:
        a, b = items.pop(int(np.argmax([a for a, b in items])))
        total = total * 0.5 + a * b
    return total + items[0][0]


def shortest_tour(x):
    left, here, total = [1, 2, 3], 0, 0.0
    while left:
        place = min(range(len(left)), key=lambda j: abs(x[left[j]] - x[here]))
        there = left.pop(place)
        total = total + abs(x[there] - x[here]) * (1 + 0.1 * len(left))
        here = there
    return total


def in_a_loop(x):
    items, total = collections.UserList(x).data, 0.0
    items = list(items)
    for t in range(3):
        v = items.pop(int(np.argmin(items)))
        total = total + v * (t + 1)
        items.append(v + 1.5)
    return total


def of_an_attribute(x):
    class Queue:
        def __init__(self, items):
            self.items = list(items)

        def largest(self):
            return self.items.pop(int(np.argmax(self.items)))
    queue = Queue(x)
    if x[0] > 1:
        queue.items[0] = x[1] * 0.5
    return queue.largest() * 3 + queue.largest()


def with_gaps(x):
    items, others = [v for v in x if v > -0.5], [v for v in x if v > 0]
    found = items.pop(int(x[0] > 1))
    others.insert(int(x[0] > 1), x[1] * 2)
    others.insert(-1, x[2])
    return found * 3 + sum(items) + sum(v * (k + 1) for k, v in enumerate(others))


@pytest.mark.parametrize("program", [taken_in_order, taken_by_key, removed, inserted, of_pairs, shortest_tour, in_a_loop, of_an_attribute,
                                     with_gaps], ids=lambda one: one.__name__)
def test_lists(program):
    as_python(program, *PLACES)


def test_errors_are_pythons():
    def popped(x):
        return list(x).pop(int(np.sum(x > 0) + 2))
    with pytest.raises(IndexError, match="pop index out of range"):
        bw.jit(popped)(X)
    def taken(x):
        items = list(x)
        items.remove(x[0] * 2)
        return sum(items)
    with pytest.raises(ValueError, match="x not in list"):
        bw.jit(taken)(X)


def test_places_that_are_known_are():
    order = np.array([2, 0])
    def program(x):
        items = [str(k) for k in range(3)]
        return x[int(items.pop(order[0]))]
    assert bw.jit(program)(X) == X[2]


class Job:
    def __init__(self, t, weight):
        self.t, self.weight = t, weight

    def __lt__(self, other):
        return self.t < other.t


@dataclasses.dataclass(order=True)
class Event:
    time: float
    kind: int = dataclasses.field(compare=False)
    value: float = dataclasses.field(compare=False, default=0.0)


@dataclasses.dataclass
class Plain:
    x: float


def heap_of_objects(x):
    heap, total, k = [], 0.0, 1.0
    for i, v in enumerate(x):
        heapq.heappush(heap, Job(v, i + 1.0))
    while heap:
        job = heapq.heappop(heap)
        total = total + job.t * k * job.weight
        k += 1
    return total


def heap_of_events(x):
    heap, found, n = [Event(x[0], 0, 1.0)], 0.0, 0
    while heap and n < 12:
        event = heapq.heappop(heap)
        n += 1
        found = found + event.value * event.time if event.kind == 0 else found * 0.9 + event.value
        if event.time < 4:
            heapq.heappush(heap, Event(event.time + abs(x[1]), 1, event.value * 0.5))
    return found


def replaced(x):
    heap, total = [Job(v, 1.0) for v in x], 0.0
    heapq.heapify(heap)
    for _ in range(5):
        job = heap[0]
        total = total + job.t * job.weight
        heapq.heapreplace(heap, Job(job.t + 0.613, job.weight * 0.9))
    return total


def heap_behind_numbers(x):
    heap, total = [], 0.0
    for i, v in enumerate(x):
        heapq.heappush(heap, (v, i, Plain(v * i)))
    for k in range(3):
        t, _, plain = heapq.heappop(heap)
        total = total + (t + plain.x) * (k + 1)
    return total


def alike(x):
    """Which of events at one time comes first is as in Python's heaps."""
    heap, found = [], 0.0
    for i, v in enumerate(np.floor(x)):
        heapq.heappush(heap, Event(v, i, x[i]))
    while heap:
        event = heapq.heappop(heap)
        found = found * 0.7 + event.value
    return found


def sorted_objects(x):
    jobs = [Job(v, i + 1.0) for i, v in enumerate(x)]
    up, down = sorted(jobs), sorted(jobs, reverse=True)
    events = sorted(Event(np.floor(v), i, v) for i, v in enumerate(x))
    return sum((a.weight * a.t + b.t**2 + c.value) * (k + 1) for k, (a, b, c) in enumerate(zip(up, down, events, strict=True)))


def of_classes_made_inside(x):
    """Each time the function is traced they are other ones."""
    class Machine:
        def __init__(self, load, k):
            self.load, self.k = load, k

        def __lt__(self, other):
            return self.load < other.load
    pair = collections.namedtuple("pair", "time number")
    heap, pairs, stack, total, n = [Machine(0.1 * k, k + 1) for k in range(2)], [], [pair(x[0], x[1])], 0.0, 0
    heapq.heapify(heap)
    for i, v in enumerate(x):
        first = heapq.heappop(heap)
        heapq.heappush(heap, Machine(first.load + abs(v) * first.k, first.k))
        heapq.heappush(pairs, pair(v, i))
    while stack and n < 30:
        one = stack.pop()
        n += 1
        if abs(one.time) < 0.213:
            total = total + one.number
        else:
            stack.append(pair(one.time * 0.4, one.number * 0.5))
            stack.append(pair(one.time * 0.5, one.number * 0.6))
    return heapq.heappop(heap).load * 2 + heapq.heappop(heap).load + heapq.heappop(pairs).time + total


@pytest.mark.parametrize("program", [of_classes_made_inside, heap_of_objects, heap_of_events, replaced, heap_behind_numbers, alike, sorted_objects],
                         ids=lambda one: one.__name__)
def test_objects_that_are_compared(program):
    as_python(program, *PLACES)


def test_two_classes_of_one_name_are_two():
    def program(x):
        def made(factor):
            class One:
                def __init__(self, x):
                    self.x = x

                def value(self):
                    return self.x * factor
            return One
        stack, first, other = [], made(2.0), made(3.0)
        if x[0] > 0:
            stack.append(first(x[0]))
        if x[1] > 0:
            stack.append(other(x[1]))
        return stack[0].value() + stack.pop().value()
    with pytest.raises(TracerError, match="elements of different (kinds|structures)"):
        bw.jit(program)(X)


def test_objects_without_an_order_behind_equal_numbers():
    def program(x):
        heap = []
        for v in x:
            heapq.heappush(heap, (v, Plain(v)))
        return heapq.heappop(heap)[1].x
    assert bw.jit(program)(X) == program(X)
    with pytest.raises(TypeError, match=r"have no order \(Plain\)"):
        bw.jit(program)(np.array([0.0, 0.0, 1.0, 2.0]))
