"""Heaps with known keys are as in Python; with traced ones they are refused, with what to write, which runs."""

import heapq

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (2, 4)]
W = np.array([1.1, 0.4, 0.5, 1.7, 2.5, 0.3, 3.6])


def lengths(w):
    found = np.full((5, 5), np.inf)
    for (i, j), value in zip(EDGES, w, strict=True):
        found[i, j] = found[j, i] = value
    return found


def by_heap(w):
    matrix = lengths(w)
    distance = np.full(5, np.inf)
    distance[0] = 0.0
    heap = [(0.0, 0)]
    while heap:
        d, k = heapq.heappop(heap)
        if d > distance[k]:
            continue
        for j in range(5):
            if d + matrix[k, j] < distance[j]:
                distance[j] = d + matrix[k, j]
                heapq.heappush(heap, (distance[j], j))
    return distance[4]


def by_array(w):
    matrix, done = lengths(w), np.zeros(5, bool)
    distance = np.full(5, np.inf)
    distance[0] = 0.0
    for _ in range(5):
        k = np.argmin(np.where(done, np.inf, distance))
        done[k] = True
        for j in range(5):
            distance[j] = min(distance[j], distance[k] + matrix[k, j])
    return distance[4]


def of_known_times(x):
    """Events in the order of times that are known."""
    waiting, total = [], 0.0
    for k in range(7):
        heapq.heappush(waiting, (7 * k % 5 + 0.01 * k, x[k]))
    while waiting:
        _, value = heapq.heappop(waiting)
        total = 0.5 * total + value
    return total


def test_traced_keys_are_as_in_python_and_so_is_an_array_of_them() -> None:
    assert bw.jit(by_heap)(W) == pytest.approx(by_heap(W), rel=1e-12)
    with pytest.raises(bw.errors.TracerError, match="(?s)may be no heap.*hint: heapq.heapify"):
        bw.jit(lambda w: heapq.heappushpop([w[0], w[1]], w[2]))(W)
    assert by_array(W) == by_heap(W)
    as_python(by_array, W, W[::-1].copy())


def test_known_keys() -> None:
    as_python(of_known_times, W)
