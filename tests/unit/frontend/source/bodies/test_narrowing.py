"""Variables that have another type after the first iteration of a loop than before it: in each iteration that of NumPy, and its bits."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace

Z = np.linspace(0.1, 1.9, 12).astype(np.float32).reshape(3, 4)


def bound_anew(z):
    v = np.ones((3, 4))
    for _ in range(12):
        v = z.copy()
    return v * np.float32(0.7)


def read_before(z):
    v = np.ones((3, 4))
    for _ in range(12):
        z = np.sin(z) + np.float32(0.1) * v[0, 0].astype(np.float32)
        v = np.sin(z)
    return v, z


def one_behind(z):
    last, now = np.zeros(4), np.zeros(4)
    for k in range(12):
        last, now = now, z[k % 3] * np.float32(0.3)
    return last, now


def masks(z):
    m = np.zeros(4)
    for _ in range(12):
        m = z[0] > m
    return m


def positions(z):
    best = np.zeros(4)
    for k in range(12):
        best = np.argsort(z[k % 3] * z[0, best.astype(int)])
    return z[1][best]


def flags(z):
    found = 0
    for k in range(12):
        found = z[k % 3, 0] > found
    return found


@pytest.mark.parametrize("fun", [bound_anew, read_before, one_behind, masks, positions, flags])
def test_types_are_those_after_an_iteration(fun) -> None:
    found, expected = bw.jit(fun)(Z), fun(Z)
    for one, other in zip(*[x if type(x) is tuple else (x,) for x in (found, expected)], strict=True):
        assert np.asarray(one).dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=3e-7)


@pytest.mark.parametrize("fun", [read_before, masks, positions])
def test_the_other_iterations_are_a_loop(fun) -> None:
    [loop] = [value for value in trace(fun, (Z,)).graph.body if value.op is ops.loop]
    assert loop.attrs["hi"] - loop.attrs["lo"] == 10


def widening(z):
    total, count = np.zeros(4, np.float32), 0
    for k in range(12):
        total = total + z[k % 3].astype(np.float64)
        count = count + total[0]
    return total, count


def test_types_that_widen() -> None:
    """`count` is a number, and carried as the wider one; `total` is an array, narrower in the first iteration."""
    [loop] = [value for value in trace(widening, (Z,)).graph.body if value.op is ops.loop]
    assert loop.attrs["hi"] - loop.attrs["lo"] == 10
    for one, other in zip(bw.jit(widening)(Z), widening(Z), strict=True):
        assert np.asarray(one).dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-13)


def copied(z):
    u = z * 1.0
    for _ in range(12):
        v = u.copy()
        v[0] = v[0] * 0.5 + np.pi
        u = np.sin(v).astype(np.float64) * 0.9
    return u


def like_integers(z):
    u = np.arange(4)
    for k in range(12):
        v = np.zeros_like(u)
        v[:] = (u + 1.7 * z[0, 1] + k).astype(v.dtype)
        u = v * 0.7
    return u * z[0]


@pytest.mark.parametrize("fun", [copied, like_integers])
def test_what_is_made_like_it_has_the_type_that_it_has_then(fun) -> None:
    found, expected = bw.jit(fun)(Z), fun(Z)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=3e-7)
