"""Stacks, queues and heaps of which data decide what they hold: adaptive quadrature, trees, events, shortest paths."""

import heapq
import itertools
from collections import deque

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError, TracerBoolError, TracerError
from tests.unit.frontend.comparing import as_python

X = np.array([0.53, 2.11, -1.23, 1.57, 3.04, -0.21, 1.13, 2.71, 0.37, -2.3, 1.91, 3.35])
PLACES = (X, -X, np.roll(X, 5) * 1.3, X * 2.1 - 1.07)
LEFT, RIGHT = np.array([1, 3, 5, -1, -1, -1]), np.array([2, 4, -1, -1, -1, -1])


def quadrature(x):
    def f(t):
        return np.sin(t * x[0]) * t + x[1]
    stack, total = [(0.0, 2.0)], 0.0
    while stack:
        a, b = stack.pop()
        m = 0.5 * (a + b)
        whole = (f(a) + f(b)) * (b - a) / 2
        parts = (f(a) + f(m)) * (m - a) / 2 + (f(m) + f(b)) * (b - m) / 2
        if abs(whole - parts) < 1e-3:
            total += parts
        else:
            stack.append((a, m))
            stack.append((m, b))
    return total


def tree(x):
    stack, total = [0], 0.0
    while len(stack) > 0:
        k = stack.pop()
        if x[k] > 2.0:
            total += x[k] ** 2
            continue
        total += x[k]
        if LEFT[k] >= 0:
            stack.append(LEFT[k])
        if RIGHT[k] >= 0:
            stack.append(RIGHT[k])
    return total


def monotone(x):
    """Python's loop over all numbers, with one inside that data end."""
    stack, total = [], 0.0
    for v in x:
        while stack and stack[-1] < v:
            total += stack.pop() * v
        stack.append(v)
    return total + sum(stack) + len(stack) * x[0] + stack[-1] * max(stack)


def places(x):
    """Of what is larger next: integers on the stack."""
    waits, stack = np.zeros(12), []
    for k in range(12):
        while stack and x[stack[-1]] < x[k]:
            j = stack.pop()
            waits[j] = x[k] - x[j]
        stack.append(k)
    return np.sum(waits ** 2)


def queue(x):
    waiting, total, count = deque([x[0]]), 0.0, 0
    while waiting and count < 30:
        v = waiting.popleft()
        count += 1
        total += np.sin(v)
        if abs(v) > 0.5:
            waiting.append(v * 0.5)
            waiting.append(v * 0.25)
    return total


def list_as_queue(x):
    waiting, total, count = [(x[0], 0)], 0.0, 0
    while len(waiting) > 0 and count < 30:
        v, depth = waiting.pop(0)
        count += 1
        total += v * (depth + 1)
        if abs(v) > 0.5:
            waiting += [(v * 0.5, depth + 1)]
            waiting.extend([(v * 0.25, depth + 1)])
    return total


def sorted_by_a_heap(x):
    heap = []
    for v in x:
        heapq.heappush(heap, v)
    total, k = heap[0] * x[0], 1
    while heap:
        total += k * heapq.heappop(heap)
        k += 1
    return total


def shortest_path(x):
    weights = np.vstack([np.abs(x).reshape(3, 4), 0.5 * np.abs(x[:4])])
    distance = np.full(4, np.inf)
    distance[0] = 0.0
    heap = [(0.0, 0)]
    while heap:
        d, node = heapq.heappop(heap)
        if d > distance[node]:
            continue
        for other in range(4):
            new = d + weights[node, other]
            if new < distance[other]:
                distance[other] = new
                heapq.heappush(heap, (new, other))
    return np.sum(distance ** 2)


def events(x):
    heap = []
    for k in range(4):
        heapq.heappush(heap, (abs(x[k]), k))
    t, total = 0.0, 0.0
    while t < 5.0:
        t, k = heapq.heappop(heap)
        total += np.sin(t) * (k + 1)
        heapq.heappush(heap, (t + abs(x[k]) + 0.3, k))
    return total + heapq.heapreplace(heap, (7.0, 3))[0] + heapq.heappushpop(heap, (x[0], 9))[0]


def largest_by_a_heap(x):
    heap = [abs(v) for v in x[:3]]
    heapq.heapify(heap)
    for v in x[3:]:
        if abs(v) > heap[0]:
            heapq.heapreplace(heap, abs(v))
    return sum(k * v for k, v in enumerate(sorted(heap)))


def flooded(x):
    """From all places where something holds, and noting where it was."""
    table = np.cos(np.outer(x[:6], x[6:]))
    reached, where, total = table > 0.6, [], 0.0
    stack = [(i, j) for i, j in zip(*np.nonzero(reached), strict=True)]
    while stack:
        i, j = stack.pop()
        where.append((i, j))
        for k in (1, 5):
            n, m = (i + k) % 6, (j + k) % 6
            if table[n, m] > -0.2 and not reached[n, m]:
                reached[n, m] = True
                stack.append((n, m))
    for number, (i, j) in enumerate(where):
        total += table[i, j] * (1 + 0.1 * number)
    return total + np.sum(table[reached])


def split_in_pairs(x):
    """Two elements more in one iteration of a loop that is left then."""
    stack, kept = [(0, len(x) - 1)], []
    while stack:
        i, j = stack.pop()
        if i >= j:
            continue
        if x[i] > x[j]:
            kept.append((i, j))
            stack.append((i + 1, j))
        else:
            for k in range(i + 1, j):
                if x[k] > x[i]:
                    stack.append((i, k))
                    stack.append((k + 1, j))
                    break
    return sum(x[i] * x[j] + i for i, j in kept)


PROGRAMS = [flooded, split_in_pairs, quadrature, tree, monotone, places, queue, list_as_queue, sorted_by_a_heap, shortest_path, events, largest_by_a_heap]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES[:2])
    as_python(program, *PLACES[2:])


@pytest.mark.parametrize("program", [quadrature, monotone, events], ids=lambda program: program.__name__)
def test_second_derivatives_and_batches(program):
    v, h = np.cos(np.arange(12.0)), 1e-5
    for x in PLACES[:2]:
        _, tangent = bw.jvp(bw.grad(program), (x,), (v,))
        np.testing.assert_allclose(tangent, (bw.grad(program)(x + h * v) - bw.grad(program)(x - h * v)) / (2 * h), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(bw.jvp(program, (x,), (v,))[1], bw.grad(program)(x) @ v, rtol=1e-9)
    np.testing.assert_allclose(bw.vmap(program)(np.stack(PLACES)), [program(x) for x in PLACES], rtol=1e-12)


def test_lists_that_are_known_stay_lists():
    def program(x):
        order, stack = [], [0]
        while stack:
            k = stack.pop()
            order.append(k)
            stack.extend([j for j in (LEFT[k], RIGHT[k]) if j >= 0])
        heap = [3, 1, 2]
        heapq.heapify(heap)
        return np.sum(x[order] * np.arange(len(order))) * heap[1]
    as_python(program, X)


def test_none_is_left():
    def program(x):
        stack, total = [x[0]], 0.0
        for v in x:
            if v > 0:
                total += stack.pop()
            else:
                stack.append(v)
                stack.append(2 * v)
        return total
    compiled = bw.jit(program)
    x = np.where(np.arange(12) % 3 == 0, -X ** 2, X ** 2)
    assert compiled(x) == pytest.approx(program(x), rel=1e-12)
    with pytest.raises(IndexError, match="pop"):
        compiled(X ** 2)


def test_what_is_refused():
    def endless(x):
        stack, t = [x[0]], x[0]
        while stack and t < 1e5:
            v = stack.pop()
            stack.append(v * 0.5)
            if t > 0.3:
                stack.append(v + 1.0)
            t = t + 1.0
        return sum(stack)

    def of_texts(x):
        stack = [(x[0], "root")]
        while stack:
            v, name = stack.pop()
            if v > 0.1:
                stack.append((v * 0.5, name + "."))
        return x[0]

    def arrays_of_a_heap(x):
        heap = []
        for i in range(12):
            heapq.heappush(heap, (abs(x[i]), x * i))
        return heapq.heappop(heap)[1].sum()

    def compared(x):
        stack = [x[0], x[1]]
        while stack:
            if stack.pop() < 0.3:
                stack.append(1.0)
        return stack == [1.0]

    def order_of_a_heap(x):
        heap = []
        for v in x:
            heapq.heappush(heap, v)
        return heap[3]
    with pytest.raises(TracerError, match="gets more than .* elements: compiled code has room for"):
        bw.jit(endless)(X)
    for program in (of_texts, arrays_of_a_heap, compared):
        with pytest.raises(BwError, match="test_stacks.py"):
            bw.jit(program)(X)
    with pytest.raises(TracerError, match="(?s)test_stacks.py:.*another element of a heap.*hint: sorted"):
        bw.jit(order_of_a_heap)(X)


class Pooled:
    def __init__(self, value, weight):
        self.value = value
        self.weight = weight


def pooled_lists(x):
    """Isotonic regression: what an iteration appends needs no room where it has taken more before."""
    blocks = []
    for v in x:
        blocks.append([v, 1.0 + v * v, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            v2, w2, c2 = blocks.pop()
            v1, w1, c1 = blocks.pop()
            blocks.append([(v1 * w1 + v2 * w2) / (w1 + w2), w1 + w2, c1 + c2])
    fit = []
    for v, _, count in blocks:
        fit.extend([v] * count)
    return np.sum(np.array(fit) * np.arange(len(x))) + sum(v * w for v, w, _ in blocks)


def pooled_objects(x):
    blocks = []
    for v in x:
        blocks.append(Pooled(v, 1.0))
        while len(blocks) > 1 and blocks[-2].value > blocks[-1].value:
            last, before = blocks.pop(), blocks.pop()
            weight = last.weight + before.weight
            blocks.append(Pooled((last.value * last.weight + before.value * before.weight) / weight, weight))
    return sum(b.value ** 2 * b.weight for b in blocks) + blocks[0].value


@pytest.mark.parametrize("program", [pooled_lists, pooled_objects])
def test_lists_and_objects_in_a_stack(program):
    as_python(program, np.array([1.0, 3.0, 2.0, 5.0, 4.0, 2.5]), np.array([6.0, 5.0, 4.5, 4.0, 1.0, 0.5]))


def test_a_list_taken_from_a_stack_is_not_changed():
    def changed(x):
        blocks = []
        for v in x:
            blocks.append([v, 1.0])
            while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
                blocks[-1][1] += blocks.pop()[1]
        return sum(w for _, w in blocks)

    with pytest.raises(TracerBoolError, match="a list is changed, which may be another name"):
        bw.jit(changed)(np.array([1.0, 3.0, 2.0]))


def repeated(x):
    kept = [x[0]]
    for v in x:
        kept.extend([v, 2 * v] * int(np.sum(x > v)))
    for _ in range(int(np.sum(x > 0))):
        kept.append(x[1])
    return sum(kept) + len([1.0] * int(np.sum(x > 0)))


def test_lists_repeated_as_data_say():
    as_python(repeated, np.array([1.0, -2.0, 0.5, 1.5]), np.array([1.0, 2.0, 3.0, 4.0]))
    with pytest.raises(TracerError, match="more than 1000 elements"):
        bw.jit(lambda n: len([0.0] * n))(np.array(1500))


def intervals_merged(x):
    iv = sorted([(a, a + 0.5 + 0.1 * abs(b)) for a, b in zip(x[:4], x[4:], strict=True)])
    merged = [iv[0]]
    for a, b in iv[1:]:
        la, lb = merged[-1]
        if a <= lb:
            merged[-1] = (la, max(lb, b))
        else:
            merged.append((a, b))
    return sum(b - a for a, b in merged) * len(merged)


def pooled(x):
    blocks = []
    for v in x:
        blocks.append((v, 1.0))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            b, n = blocks.pop()
            a, m = blocks[-1]
            blocks[-1] = ((a * m + b * n) / (m + n), m + n)
    return sum(a * a * n + n for a, n in blocks)


def near_ones_merged(x):
    kept = [x[0]]
    for v in x[1:]:
        if abs(v - kept[-1]) < 0.5:
            kept[-1] = 0.5 * (kept[-1] + v)
        else:
            kept.append(v)
    return sum(k * (i + 1) for i, k in enumerate(kept)) / len(kept)


def added_to_the_last(x):
    sums = [0.0]
    for v in x:
        if v > 0.8:
            sums.append(0.0)
        sums[-1] += v
    return sum(s * s for s in sums)


def assigned_behind_a_branch(x):
    sums = [0.0]
    if x[0] > 0:
        sums.append(x[1])
    sums[-1] = 3.0 * x[2]
    sums[0] += x[3]
    return sum(s * s * (i + 1) for i, s in enumerate(sums))


def assigned_by_another_name(x):
    sums = [0.0]
    other = sums
    if x[0] > 0:
        sums.append(x[1])
    sums[-1] = 3.0 * x[2]
    return sum(s * s * (i + 1) for i, s in enumerate(other))


def the_first_changed(x):
    rows = [[1.0]]
    if x[0] > 0:
        rows.append([x[1]])
    rows[0].append(x[2])
    return sum(sum(row) * len(row) for row in rows)


@pytest.mark.parametrize("program", [intervals_merged, pooled, near_ones_merged, added_to_the_last, assigned_behind_a_branch, assigned_by_another_name, the_first_changed], ids=lambda program: program.__name__)
def test_elements_assigned_to_of_nobody_knows_how_many(program):
    x = np.array([0.63, -1.21, 0.84, -0.43, 1.52, 0.27, -0.91, 0.35])
    as_python(program, x, -x, np.roll(x, 3))


def test_what_to_write_in_the_place_of_lists_in_lists():
    def bursts(x):
        found = [[x[0]]]
        for one, other in itertools.pairwise(x):
            if other - one > 0.4:
                found.append([other])
            else:
                found[-1].append(other)
        return sum(sum(burst) ** 2 for burst in found)

    with pytest.raises(TracerError, match=r"a list is changed that is in a list(?s:.)*runs.append\(run\)"):
        bw.jit(bursts)(np.array([1.0, 3.0, 2.0]))
