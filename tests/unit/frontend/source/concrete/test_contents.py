"""Concrete arrays from outside whose numbers are in the program: their memory is compared at every call, that of others is not."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace

X = np.array([1.0, 2.0, 3.0])
w, v = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.5, 2.5])
k = np.array([2, 0, 1])
mask = np.array([True, False, True])
matrix, edges = np.eye(3) + 1.0, np.array([[0, 1], [1, 2], [2, 0]])
steps = np.array([0, 1, 2, 0, 1, 2, 1, 0, 2])


class Model:
    def __init__(self) -> None:
        self.weights = np.array([1.0, 2.0, 3.0])

    def __getitem__(self, place: int) -> Any:
        return self.weights[place]

    def __call__(self, x: Any) -> Any:
        return x * self.weights.mean()

    @property
    def norm(self) -> Any:
        return np.linalg.norm(self.weights)


model, config = Model(), SimpleNamespace(layers=[np.ones(3)], table={"w": np.ones(3)})


def generated() -> Any:
    for one in w:
        yield one * 2.0


def loop_over_numbers(x: Any) -> Any:
    total = 0.0
    for one in w:
        total = total + one * x[0]
    return total


def pairs(x: Any) -> Any:
    return sum((x[i] - x[j]) ** 2 for i, j in edges)


def numbered_pairs(x: Any) -> Any:
    total = 0.0
    for number, (i, j) in enumerate(edges):
        total = total + number * (x[i] - x[j]) ** 2
    return total


def unpacked(x: Any) -> Any:
    a, b, c = w
    return a * x[0] + b * x[1] + c


def assigned(x: Any) -> Any:
    y = np.zeros(3)
    y[:] = w
    y += v
    return x * y


def scattered(x: Any) -> Any:
    y = x * 1.0
    y[mask] = 0.0
    return y


def counted(x: Any) -> Any:
    for _ in range(k[0]):
        x = x * 2.0
    return x


def branched(x: Any) -> Any:
    if w[0] > v[0]:
        return x * 2.0
    return x


READ: list[tuple[Callable[[Any], Any], set[str]]] = [
    (lambda x: x[k[1]], {"k"}), (lambda x: x * w[1], {"w"}), (lambda x: x * w[k].sum(), {"w", "k"}),
    (lambda x: x * (w + 1), {"w"}), (lambda x: x * -w, {"w"}), (lambda x: x * (w > v), {"w", "v"}), (lambda x: x * np.exp(w), {"w"}),
    (lambda x: x * np.sum(w), {"w"}), (lambda x: x * w.max(), {"w"}), (lambda x: x * float(w[0]), {"w"}),
    (lambda x: x * math.exp(w[2]), {"w"}), (lambda x: x * max(*w), {"w"}), (lambda x: x * sum(w), {"w"}),
    (lambda x: np.linalg.inv(matrix) @ x, {"matrix"}), (lambda x: matrix @ matrix @ x, {"matrix"}), (lambda x: x * w.copy(), {"w"}),
    (lambda x: x * np.array(w), {"w"}), (lambda x: np.stack([w[0] * x[0], x[1]]), {"w"}), (lambda x: x[mask], {"mask"}),
    (lambda x: np.repeat(x, k), {"k"}), (lambda x: np.bincount(k, weights=x), {"k"}), (lambda x: np.digitize(x, v) * x, {"v"}),
    (lambda x: x * sum(map(lambda i: w[i], range(3))), {"w"}),  # noqa: C417
    (lambda x: x[sorted(range(3), key=lambda i: v[i])[0]], {"v"}),
    (lambda x: functools.reduce(lambda a, b: a + b * x, w, 0), {"w"}), (lambda x: x * sum(generated()), {"w"}),
    (lambda x: x * model[1], {"self.weights"}), (lambda x: model(x) * model.norm, {"self.weights"}),
    (lambda x: x * config.layers[0][1], {"config.layers[0]"}), (lambda x: x * config.table["w"][1], {"config.table['w']"}),
    (lambda x: x if 2.0 in w else -x, {"w"}), (lambda x: x * float(f"{w[0]}"), {"w"}), (lambda x: np.pad(x, k[:2]), {"k"}),
    (loop_over_numbers, {"w"}), (pairs, {"edges"}), (numbered_pairs, {"edges"}),
    (lambda x: sum(n * x[i] * x[j] for n, (i, j) in enumerate(edges)), {"edges"}),
    (lambda x: [a * b[0] for a, b in zip(x, edges, strict=True)], {"edges"}), (unpacked, {"w"}), (assigned, {"w", "v"}), (scattered, {"mask"}), (counted, {"k"}),
    (branched, {"w", "v"}),
]


def compared(function: Callable[[Any], Any]) -> set[str]:
    return {one.path for one in trace(function, (X,)).outside.fixed if one.read.kind == "bytes"}


@pytest.mark.parametrize(("function", "names"), READ, ids=lambda part: part.__name__ if callable(part) else ",".join(sorted(part)))
def test_what_is_read_while_tracing_is_compared(function: Callable[[Any], Any], names: set[str]) -> None:
    assert compared(function) == names


def long_loop(x: Any) -> Any:
    total = 0.0
    for step in steps:
        total = total + x[step] * w[step]
    return total


def rows(x: Any) -> Any:
    return [row @ x for row in matrix]


@pytest.mark.parametrize("function", [
    lambda x: x * w, lambda x: x * w[..., 0], lambda x: x[k], lambda x: matrix.T @ x, lambda x: np.where(mask, x, v), lambda x: np.dot(w, x), lambda x: x - w[1:2],
    lambda x: np.interp(x, w, v), lambda x: np.take(x, k), lambda x: x * w.reshape(3), lambda x: x * np.asarray(w), lambda x: x + len(w),
    lambda x: x * np.zeros_like(w), lambda x: x * w.shape[0], lambda x: np.concatenate([x, w]), lambda x: matrix[:, 1] * x, long_loop, rows,
    lambda x: [row @ x * n for n, row in enumerate(matrix)], lambda x: [row @ x * a for row, a in zip(matrix, x, strict=True)],
    lambda x: sum(a * b for a, b in zip(x, np.arange(3.0), strict=True)),
])
def test_what_the_program_itself_reads_is_not(function: Callable[[Any], Any]) -> None:
    assert not compared(function)


@pytest.mark.parametrize("function", [
    lambda x: w.dot(x), lambda x: matrix.dot(b=x), lambda x: matrix.T.dot(x[:, None]), lambda x: w.take(x.argsort()),
    lambda x: matrix.take(indices=x.argsort(), axis=1), lambda x: matrix.compress(x > x[0], axis=0).sum(), lambda x: w.searchsorted(x),
    lambda x: k.choose([x, 2 * x, x ** 2]), lambda x: w.max(initial=x[0]), lambda x: w.min(where=x > 0, initial=5.0), lambda x: w.sum(where=x > 0),
    lambda x: w.mean(where=x < 99), lambda x: matrix.std(axis=1, where=x < 99), lambda x: matrix.var(where=x[:, None] < 99, axis=0),
    lambda x: w.all(where=x > 0), lambda x: w.any(where=x > 0), lambda x: w.prod(where=x > 0)])
def test_methods_take_traced_arguments(function: Callable[[Any], Any]) -> None:
    """weights.dot(x) of an array from outside, or one that is made inside."""
    found, expected = bw.jit(function)(X), np.asarray(function(X))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert found.dtype == expected.dtype
    assert not compared(function)


def test_methods_that_write_into_traced_arrays() -> None:
    def written(x: Any) -> Any:
        total, room = np.zeros((3, 1)), np.zeros(3)
        for k in range(10):
            matrix.dot(x * k, out=room)
            total = total + matrix.dot(room[:, None])
        return total

    np.testing.assert_allclose(bw.jit(written)(X), written(X), rtol=1e-14)


@pytest.mark.parametrize("make", [
    lambda: np.arange(12.0)[3:9:2], lambda: np.arange(12.0)[::-1][:3], lambda: np.asfortranarray(np.arange(9.0).reshape(3, 3))[1],
    lambda: np.arange(24.0).reshape(2, 3, 4)[:, ::-1, ::2][0, :, 0]])
def test_changes_are_seen_in_any_memory(make: Callable[[], Any]) -> None:
    array = make()
    function = bw.jit(lambda x: x * array[1])
    before = array[1]
    np.testing.assert_array_equal(function(X), X * before)
    array[1] = 7.0
    np.testing.assert_array_equal(function(X), X * 7.0)
    array[1] = before                              # the first program again
    np.testing.assert_array_equal(function(X), X * before)


def test_derivatives_and_programs_see_changes() -> None:
    table = np.array([2.0, 3.0])
    gradient = bw.grad(lambda x: np.sum(x * table[0]))
    np.testing.assert_array_equal(gradient(X), np.full(3, 2.0))
    _, pullback = bw.vjp(lambda x: x * table[0], X)
    np.testing.assert_array_equal(pullback(X)[0], X * 2.0)
    table[0] = 5.0
    np.testing.assert_array_equal(gradient(X), np.full(3, 5.0))
    np.testing.assert_array_equal(bw.vjp(lambda x: x * table[0], X)[1](X)[0], X * 5.0)


def test_arrays_that_nobody_can_write_to_are_not_compared() -> None:
    frozen = np.array([1.0, 2.0])
    frozen.flags.writeable = False
    assert not compared(lambda x: x * frozen[0])


def test_operators_and_items_of_the_users_own_classes_are_captured() -> None:
    class Scaled:
        def __init__(self, value: Any) -> None:
            self.value = value

        def __mul__(self, other: Any) -> Any:
            factor = 1.0
            if self.value > 2.0:
                factor = 3.0
            return Scaled(self.value * (other.value if isinstance(other, Scaled) else other) * factor)

        __rmul__ = __mul__

        def __neg__(self) -> Any:
            return Scaled(-self.value if self.value > 0 else self.value)

        def __lt__(self, other: Any) -> Any:
            return self.value < other.value

        def __getitem__(self, index: int) -> Any:
            return self.value if self.value > index else index

    def function(x: Any) -> Any:
        a, b = Scaled(x[0]), Scaled(x[2])
        c = 2.0 * (a * b) * b
        return (-c).value + c[2] + (1.0 if a < c else 2.0)

    for x in (X, -X, X * 2):
        assert bw.jit(function)(x) == function(x)
