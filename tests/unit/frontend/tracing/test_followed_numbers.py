"""Sizes that loops compute from arrays outside alone: followed so far, and once for all attempts to trace the function."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerIndexError
from bwcompiler.frontend.tracing.refusals import demands

TABLE = np.arange(10)
X = np.array([1.0, 2.0, 3.0])


def sized(x):
    n = 0
    for i in range(200):
        n = n + TABLE[i % 10] % 3
    kept = np.zeros(int(n) // 60)
    for i in range(3):
        kept[i] = x[i] ** 2                        # for which the function is traced again
    return np.sum(np.reshape(kept, (int(n) // 60, 1)) @ np.ones((1, 2)))


def test_once_for_all_attempts(monkeypatch):
    runs = []
    plain = demands.known_outputs
    monkeypatch.setattr(demands, "known_outputs", lambda graph, arrays, most: runs.append(most) or plain(graph, arrays, most))
    assert bw.jit(sized)(X) == sized(X)
    assert runs.count(demands.MANY) == 1
    np.testing.assert_allclose(bw.grad(sized)(X), 4 * X)


def test_so_far(monkeypatch):
    """The loop is unrolled, as its number is not followed to the end."""
    monkeypatch.setattr(demands, "MANY", 100)
    compiled = bw.jit(sized)
    assert compiled(X) == sized(X)
    assert "while_loop" not in compiled.lower(X).as_text("forward")


def test_a_part_of_a_number_without_a_bound():
    with pytest.raises(TracerIndexError, match="a traced value as a size"):
        bw.compile(lambda x: np.sum(np.ones(np.sum(x.astype(int)) // 7)), X)
