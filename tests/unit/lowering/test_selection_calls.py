"""Selections in native code equal their references, whatever the elements: ties, nan, infinities, sorted, of any dtype, for any target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend.tracing.operands import value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.lowering.libraries import selection_calls
from bwcompiler.ops.ordering.order_statistics import argpartition_reference, order_positions_reference, order_statistics_reference
from tests.support.targets import TARGETS, on_each

SIZES = (1, 5, 513, 3000)              # below and above what is sorted
ELEMENTS: dict[str, Callable[[Any, np.random.Generator], Any]] = {
    "distinct": lambda x, rng: x,
    "few values": lambda x, rng: np.round(x / 50),
    "one value": lambda x, rng: np.zeros_like(x),
    "sorted": lambda x, rng: np.sort(x, -1),
    "many of one value": lambda x, rng: np.where(rng.random(x.shape) < 0.4, 7.0, x),
    "two values": lambda x, rng: np.where(rng.random(x.shape) < 0.01, 1.0, 2.0),
}
FLOATS: dict[str, Callable[[Any, np.random.Generator], Any]] = {
    "some nan": lambda x, rng: np.where(rng.random(x.shape) < 0.3, np.nan, x),
    "one nan": lambda x, rng: np.where(np.arange(x.shape[-1]) == x.shape[-1] // 3, np.nan, x),
    "only nan": lambda x, rng: np.full_like(x, np.nan),
    "infinite": lambda x, rng: np.where(rng.random(x.shape) < 0.3, np.inf, np.where(rng.random(x.shape) < 0.3, -np.inf, x)),
    "infinite and nan": lambda x, rng: np.where(rng.random(x.shape) < 0.3, np.inf, np.where(rng.random(x.shape) < 0.6, np.nan, x)),
    "zeros of both signs": lambda x, rng: np.where(rng.random(x.shape) < 0.5, 0.0, -0.0),
}


def statistics(x: Any, places: Any) -> Any:
    return fresh(ops.order_statistics(value_as(x), value_as(places)))


def positions(x: Any, elements: Any, places: Any) -> Any:
    return fresh(ops.order_positions(value_as(x), value_as(elements), value_as(places)))


def partition(x: Any, elements: Any) -> Any:
    return fresh(ops.argpartition(value_as(x), value_as(elements)))


def check(x: Any, rng: np.random.Generator) -> None:
    n = x.shape[-1]
    places = rng.integers(0, n, size=(len(x), 6))
    places[:, 0], places[:, 1], places[:, 2], places[:, -1] = n // 2, min(n // 2 + 1, n - 1), 0, n - 1
    found = bw.jit(statistics)(x, places)
    np.testing.assert_array_equal(found, order_statistics_reference(x, places))
    np.testing.assert_array_equal(bw.jit(positions)(x, found, places), order_positions_reference(x, found, places))
    for elements in (found[:, :1], found[:, :2], found):               # written out, and as a loop; in any order
        elements = np.ascontiguousarray(elements)
        np.testing.assert_array_equal(bw.jit(partition)(x, elements), argpartition_reference(x, elements))


@pytest.mark.parametrize("name", [*ELEMENTS, *FLOATS])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_floats(dtype: str, name: str, rng: np.random.Generator) -> None:
    for size in SIZES:
        check({**ELEMENTS, **FLOATS}[name](100 * rng.standard_normal((3, size)), rng).astype(dtype), rng)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u4", "u8"])
def test_integers(dtype: str, rng: np.random.Generator) -> None:
    for size in SIZES:
        for name in ("distinct", "few values", "many of one value"):
            x = ELEMENTS[name](40 * rng.standard_normal((2, size)), rng)
            check((np.abs(x) if dtype[0] == "u" else x).astype(dtype), rng)
        ends = np.iinfo(dtype)
        check(np.array([ends.min, ends.max, 3], dtype)[rng.integers(0, 3, (2, size))], rng)


def test_large(rng: np.random.Generator) -> None:
    """Memory that is taken for a while, several sweeps."""
    x = rng.standard_normal((1, 200_000))
    check(x, rng)
    check(np.sort(x, -1), rng)
    check(np.where(x > 2, np.nan, x), rng)


@pytest.mark.parametrize("name, number", [("_ROUNDS", 0), ("_DEVIATIONS", 0.0), ("_ROUNDS", 1)])
def test_if_nothing_is_found_all_is_sorted(name: str, number: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection_calls, name, number)
    for dtype in ("f8", "i4"):
        check((100 * rng.standard_normal((2, 3000))).astype(dtype), rng)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
def test_targets(dtype: str, rng: np.random.Generator) -> None:
    x = (100 * rng.standard_normal((2, 5001))).astype(dtype)
    places = np.array([[0, 2500, 2501, 4990], [1, 7, 4000, 5000]])
    expected = [order_statistics_reference(x, places)]
    expected += [order_positions_reference(x, expected[0], places), argpartition_reference(x, expected[0])]
    found = on_each(lambda: [bw.jit(statistics)(x, places), bw.jit(positions)(x, expected[0], places), bw.jit(partition)(x, expected[0])])
    assert len(found) == len(TARGETS)
    for arrays in found.values():
        for one, other in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(one, other)
