"""Running kernels without native code."""

from __future__ import annotations

import numpy as np
import pytest

from bwcompiler import ops  # noqa: F401  (registers the ops: special functions)
from bwcompiler.errors import InternalError
from bwcompiler.ir.loop import OUTPUT, UPDATED, Accumulate, Accumulator, Fill, Let, Reduce, Store
from bwcompiler.ir.scalar import Scalar, cast, const, guard, in_range, index_value, operation, select
from bwcompiler.ir.semantics.loop_interpreter import run_kernel
from bwcompiler.ir.types import F32, F64, I64
from tests.unit.ir.loop_kernels import at, buffer, element, index, kernel, loop, row_sums


def lane_sum(x):
    """The documented tree: 32 lanes, flushed after 64 strips, both arrays of lanes combined pairwise."""
    lanes = [x.dtype.type(0)] * 64
    for k, value in enumerate(x):
        lanes[k % 32] = lanes[k % 32] + value
        if (k + 1) % 2048 == 0:
            lanes = [x.dtype.type(0)] * 32 + [high + low for low, high in zip(lanes[:32], lanes[32:], strict=True)]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [a + b for a, b in zip(lanes[:half], lanes[half:], strict=True)]
    return lanes[0]


@pytest.mark.parametrize("columns", [1, 11, 12, 31, 32, 33, 100, 2048, 2049, 4200])
def test_sums_have_the_documented_tree(columns, rng):
    x, y = rng.standard_normal((2, columns)), np.full(2, np.nan)
    run_kernel(row_sums(2, columns), [x, y])
    expected = [np.cumsum(row)[-1] if columns < 12 else lane_sum(row) for row in 2.0 * x]
    assert y.tolist() == expected


def test_two_loops_feed_one_accumulator_once():
    x, y = buffer("x", 40), buffer("y", role=OUTPUT)
    i, j = index(40), index(40)
    total = Accumulator("total", "add", F64)
    loops = [loop(k, Accumulate(total, "add", element(x, k)), kind="vector") for k in (i, j)]
    out = np.zeros(())
    run_kernel(kernel([x, y], Reduce(total), *loops, Store(y, at(y), total.total())), [np.arange(40.0), out])
    assert out == 2 * 780


def test_running_total_in_a_serial_loop():
    x, y = buffer("x", 50), buffer("y", 50, role=OUTPUT)
    i = index(50)
    total = Accumulator("total", "add", F64)
    out = np.zeros(50)
    run_kernel(kernel([x, y], Reduce(total), loop(i, Accumulate(total, "add", element(x, i)), Store(y, at(y, i), total.total()))),
               [np.arange(50.0), out])
    assert np.array_equal(out, np.cumsum(np.arange(50.0)))


@pytest.mark.parametrize("combine", ["argmax", "argmin"])
@pytest.mark.parametrize("x", [[1.0, 3.0, 3.0, -1.0, -1.0], [1.0, np.nan, 5.0, np.nan], [-np.inf, -np.inf], [np.inf, np.inf]], ids=str)
def test_searches_find_what_numpy_finds(combine, x):
    source, y = buffer("x", len(x)), buffer("y", role=OUTPUT, dtype=I64)
    i = index(len(x))
    best = Accumulator("best", combine, F64)
    out = np.zeros((), np.int64)
    run_kernel(kernel([source, y], Reduce(best), loop(i, Accumulate(best, combine, element(source, i), index_value(i.extent()))),
                      Store(y, at(y), Scalar("found", (), I64, best))), [np.array(x), out])
    assert out == getattr(np, combine)(x)


def test_fill_and_accumulation_in_memory():
    v, y, z = buffer("v", 3, dtype=I64), buffer("y", 4, role=UPDATED), buffer("z", 2, role=OUTPUT, dtype=F32)
    i = index(3)
    push = Accumulate((y, at(y, element(v, i))), "add", const(1.5, F64))
    y_array, z_array = np.arange(4.0), np.empty(2, np.float32)
    run_kernel(kernel([v, y, z], Fill(z, const(0.1, F32)), loop(i, push)), [np.array([3, 0, 3]), y_array, z_array])
    assert y_array.tolist() == [1.5, 1.0, 2.0, 6.0]
    assert z_array.tolist() == [np.float32(0.1)] * 2


X = np.array([-1.5, -0.25, 0.0, 0.75, 2.0])
x = buffer("x", 5)
i = index(5)
e = element(x, i)


@pytest.mark.parametrize("scalar, expected", [
    (e * 2.0 + 1.0, X * 2 + 1),
    (e / 0.0, np.array([-np.inf, -np.inf, np.nan, np.inf, np.inf])),
    (select(e < 0.0, -e, e), np.abs(X)),
    (guard(in_range(i.extent() - 1, 0, 4), element(x, i.extent() - 1), const(9.0, F64)), np.array([9.0, *X[:-1]])),
    (cast(cast(e, I64), F64), np.trunc(X)),
    (cast(index_value(i.extent() * 3 + 1), F64), np.arange(5) * 3.0 + 1),
    (operation("tanh", e), np.tanh(X)),
    (operation("sigmoid", e), 1 / (1 + np.exp(-X))),
    (cast(cast(e, F32) * 0.1, F64), (X.astype(np.float32) * np.float32(0.1)).astype(float)),
], ids=lambda value: repr(value)[:40])
def test_scalars(scalar, expected):
    y = buffer("y", 5, role=OUTPUT)
    out = np.zeros(5)
    let = Let("s", scalar)
    run_kernel(kernel([x, y], loop(i, let, Store(y, at(y, i), let.ref()), kind="vector")), [X, out])
    np.testing.assert_allclose(out, expected, rtol=1e-15)


def test_positions_outside_are_found():
    y = buffer("y", 5, role=OUTPUT)
    bad = kernel([x, y], loop(i, Store(y, at(y, i), element(x, i.extent() + 1))))
    with pytest.raises(InternalError, match="offset 5 is outside of x, which has 5 elements"):
        run_kernel(bad, [X, np.zeros(5)])


def test_arrays_must_fit():
    with pytest.raises(InternalError, match="has 2 buffers, got 1"):
        run_kernel(row_sums(), [np.zeros((3, 40))])
    with pytest.raises(InternalError, match=r"buffer y is f64\[3\], got float32"):
        run_kernel(row_sums(), [np.zeros((3, 40)), np.zeros(3, np.float32)])
    with pytest.raises(InternalError, match="strides"):
        run_kernel(row_sums(), [np.zeros((40, 3)).T, np.zeros(3)])
