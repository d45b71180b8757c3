"""Rows of one array that are put together again are a part of that array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw

STEPS = 60


def pendulum(x: Any, v: Any) -> Any:
    return x + 0.01 * v, v - 0.01 * np.sin(x)


def states(x: Any, v: Any) -> Any:
    kept = [(x, v)]
    for _ in range(STEPS):
        x, v = pendulum(x, v)
        kept.append((x, v))
    return kept


def positions(x: Any, v: Any) -> Any:
    return [x for x, _ in states(x, v)[1:]]


def vectors(x: Any, v: Any) -> Any:
    u, kept = np.array([x, v, x * v]), []
    for _ in range(STEPS):
        u = 0.9 * u + 0.1 * np.roll(u, 1)
        kept.append(u)
    return kept


def parts(x: Any, v: Any) -> Any:
    u, kept = np.array([[x, v, x * v], [v, v, x]]), []
    for _ in range(STEPS):
        u = 0.9 * u + 0.1 * np.roll(u, 1)
        kept.append(u[1, ::-2])
    return kept


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda x, v: np.array(positions(x, v)),
    "asarray of pairs": lambda x, v: np.asarray(states(x, v)),
    "float32": lambda x, v: np.array(positions(x, v), dtype=np.float32),
    "mean": lambda x, v: np.mean(positions(x, v)),
    "sum": lambda x, v: sum(positions(x, v)) + sum(vectors(x, v), v),
    "backwards": lambda x, v: np.array(positions(x, v)[::-2]),
    "two of them": lambda x, v: np.array([*positions(x, v)[:7], v, *positions(v, x)[3::4]]),
    "pairs with numbers": lambda x, v: np.array([(k * 0.5, x) for k, x in enumerate(positions(x, v))]),
    "stack": lambda x, v: np.stack(vectors(x, v)),
    "stack last": lambda x, v: np.stack(vectors(x, v), axis=-1),
    "vstack": lambda x, v: np.vstack(vectors(x, v)),
    "concatenate": lambda x, v: np.concatenate(vectors(x, v)),
    "concatenate last": lambda x, v: np.concatenate(parts(x, v), axis=-1),
    "with one before": lambda x, v: np.stack([np.full(3, x), *vectors(x, v)]),
    "parts of arrays": lambda x, v: np.stack(parts(x, v), axis=1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_no_operation_each(name: str) -> None:
    fun = PROGRAMS[name]
    program = bw.compile(fun, 0.5, 0.25)
    expected, found = fun(0.5, 0.25), program(0.5, 0.25)
    assert len(program.graph.body) < STEPS / 2, program.as_text("forward")
    assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if name == "float32" else 1e-13)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "float32"])
def test_gradients(name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "STEPS", 12)        # each is some operations of its own
    weights = rng.standard_normal(np.shape(PROGRAMS[name](0.5, 0.25)))
    bw.check_grads(lambda x, v: np.sum(weights * PROGRAMS[name](x, v)), (0.5, 0.25), order=2)


def test_arrays_that_are_assigned_to_keep_their_rows_apart() -> None:
    def fun(x: Any) -> Any:
        rows = [x[0], x[1], x[2]]
        before = np.stack(rows)
        x[1] = 7.0
        whole = np.stack(rows)
        whole[0] = 5.0
        return before, whole, np.stack([rows[2], rows[0]]), x

    x = np.arange(6.0).reshape(3, 2)
    for expected, found in zip(fun(x.copy()), bw.jit(fun)(x.copy()), strict=True):
        assert np.array_equal(expected, found)


def test_rows_at_other_distances_are_others() -> None:
    x = np.arange(12.0).reshape(6, 2)
    for places in ([0, 2, 4, 5], [3, 3, 3], [0, 1, 0, 1], [5, 3, 1], [1], [0, 1, 2, 2, 1, 0]):
        def fun(x: Any, places: Any = tuple(places)) -> Any:
            return np.array([x[k] for k in places]), np.concatenate([x[k] for k in places])

        for expected, found in zip(fun(x), bw.jit(fun)(x), strict=True):
            assert np.array_equal(expected, found)


def test_rows_of_unlike_arrays_are_refused() -> None:
    with pytest.raises(bw.errors.ShapeError, match="different shapes"):
        bw.jit(lambda x, y: np.array([x[0], x[1], y[0], y[1]]))(np.ones((3, 2)), np.ones((3, 4)))
