"""Loops that would keep much are differentiated in segments, which run again on the way back: the same numbers from less memory."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend import trace
from bwcompiler.passes.adjoints import segment_loops
from bwcompiler.passes.adjoints.loop_adjoint import trips_of
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from tests.support.loop_programs import PROGRAMS, check_gradients, results


def recursion(r):
    """Durbin's: an iteration reads what there is so far of y, and writes all of it."""
    y = np.zeros_like(r)
    alpha = y[0] = -0.5 * r[0]
    for k in range(1, len(r)):
        alpha = -(0.1 * r[k] + np.dot(r[:k][::-1], y[:k]) * alpha) * 0.5
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y


def backwards(r):
    """An index that goes down, a state of two arrays, and one that is only written."""
    y, total, seen = r.copy(), np.zeros_like(r), np.zeros((len(r), len(r)))
    for k in range(len(r) - 1, -1, -1):
        y = np.sin(y) * r[k]
        total += y * y
        seen[k] = total
    return seen


def sweeps(r):
    """A loop inside whose iterations wait for each other."""
    y = r.copy()
    for _ in range(len(r)):
        for k in range(1, len(r)):
            y[k] = np.sin(y[k - 1]) * y[k] + r[k]
    return y


def matrix_is_fixed(r):
    """The cotangent of the matrix is a product over all iterations of a segment."""
    w = np.outer(r, r[::-1]) * 0.1
    y = r.copy()
    for k in range(len(r)):
        y = np.tanh(w @ y + r[k])
    return y


def hidden_logarithm(r):
    """Cotangents that a choice hides are zeros, not nans."""
    y = r.copy()
    for _ in range(len(r)):
        y = np.where(r > 0.5, np.log(np.where(r > 0.5, r, 0.0) + 0.0 * y), np.sin(y))
    return np.where(np.isfinite(y), y, 0.0)


PROGRAMS_HERE = (recursion, backwards, sweeps, matrix_is_fixed, hidden_logarithm)


def in_segments_of(size, monkeypatch):
    """All loops that can be cut are, into segments of so many iterations."""
    def chosen(loop, parts):
        ends = loop.attrs["lo"], loop.attrs["hi"]
        return size if all(isinstance(end, int) for end in ends) and 2 * size <= trips_of(loop.attrs["body"].index) else None
    monkeypatch.setattr(segment_loops, "_size", chosen)


def gradient(program):
    return lambda *args: bw.grad(lambda *xs: np.sum(np.cos(program(*xs))), argnums=tuple(range(len(args))))(*args)


def loops_of(program, *args):
    """The loops of a gradient that have loops inside with bounds that move with them."""
    joint = derive(trace(lambda *xs: np.sum(np.cos(program(*xs))), args).graph, tuple(range(len(args))), [INPUT_SEED]).graph
    return [value for value in joint.body if value.op is ops.loop
            and any(one.op is ops.loop and not isinstance(one.attrs["lo"], int) for one in value.attrs["body"].body)]


def copied(graph):
    """The shapes of what stands behind barriers, in loops too."""
    inside = [body for value in graph.body for body in (value.attrs[name] for name in value.op.regions)]
    return {value.shape for value in graph.body if value.op is ops.barrier}.union(*map(copied, inside))


def test_what_iterations_only_read_is_not_copied_for_each_segment(monkeypatch):
    """Monte Carlo's: the random numbers of all steps are many times as large as a state."""
    def walk(y, steps):
        for step in steps:
            y = np.sin(y) * step
        return np.sum(y)

    in_segments_of(2, monkeypatch)
    joint = derive(trace(walk, (np.ones(3), np.ones((10, 3)))).graph, (0, 1), [INPUT_SEED]).graph
    assert copied(joint) == {(3,)}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("program", PROGRAMS_HERE, ids=lambda program: program.__name__)
def test_the_same_gradient(program, size, monkeypatch):
    """Of ten iterations: five segments of two, three of three and one that is left, two of four and two that are left."""
    r = np.linspace(0.9, 0.3, 10)
    [whole] = results(gradient(program), r, modes=("interpreted",))
    in_segments_of(size, monkeypatch)
    assert len(loops_of(program, r)) == 2                    # forwards and backwards
    [found] = results(gradient(program), r, modes=("interpreted", "compiled") if size == 3 else ("interpreted",))
    np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["recurrent_net", "reversed_scan", "scan_over_a_tree", "nested_scans", "seidel", "triangular_sums",
                                  "carry_and_closure", "rows_from_the_end", "newton_in_a_scan", "branches_in_a_scan", "switch_by_index",
                                  "checkpoints_in_loops_and_branches"])
def test_differences_and_second_order(name, monkeypatch):
    in_segments_of(2, monkeypatch)
    program, args = PROGRAMS[name]
    check_gradients(program, *args)


def test_forward_over_reverse(monkeypatch, rng):
    r, direction = np.linspace(0.9, 0.3, 10), rng.standard_normal(10)
    slope = lambda x: bw.jvp(gradient(recursion), (x,), (direction,))[1]
    [whole] = results(slope, r, modes=("interpreted",))
    in_segments_of(3, monkeypatch)
    [found] = results(slope, r)
    np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-14)


def test_what_fits_into_a_cache_is_kept():
    assert not loops_of(recursion, np.zeros(400))


def test_what_does_not_is_computed_again():
    """Otherwise 2000 numbers of 2000 iterations, 32 MB."""
    program = bw.compile(lambda r: np.sum(recursion(r)), np.zeros(2000), wrt=0)
    assert program.memory_analysis()["residual_bytes"] < 1 << 22
    assert len(loops_of(recursion, np.zeros(2000))) == 2


def dear(y, w):
    """Functions take longer than memory."""
    return np.sin(np.exp(-np.tanh(y) ** 2)) * w[0, 0]


def product(y, w):
    return np.tanh(y.reshape(-1, 256) @ w).reshape(-1)


def large(y, w):
    """A state that no cache holds."""
    return y[::-1] * y * w[0, 0]


@pytest.mark.parametrize("step, length", [(dear, 256 * 64), (product, 256 * 64), (large, 1 << 21)], ids=lambda one: getattr(one, "__name__", ""))
def test_what_takes_long_is_not(step, length):
    def program(y, w):
        for _ in range(200):
            y = step(y, w)
        return y
    assert not loops_of(program, np.zeros(length), np.zeros((256, 256)))
