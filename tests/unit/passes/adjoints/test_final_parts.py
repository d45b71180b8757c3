"""What a loop reads of arrays that it does not write there again is read, on the way back, where it lies when the loop has ended."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend import trace
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from tests.support.derivatives import check_derivatives
from tests.support.loop_programs import check_gradients

N = 9


def recurrence(bw, x):
    """Rows that the next iteration reads: nothing is kept."""
    y = np.zeros((N, 3))
    y[0] = x[0]

    def step(i, _):
        y[i] = y[i - 1] * (2.0 - y[i - 1]) * x[i]
    bw.fori_loop(1, N, step, None)
    return y


def backwards(bw, x):
    """The same from the last row to the first."""
    y = np.zeros((N, 3))
    y[N - 1] = x[0]

    def step(i, _):
        y[N - 2 - i] = y[N - 1 - i] * x[i] / (2.0 + np.sin(y[N - 1 - i]))
    bw.fori_loop(0, N - 1, step, None)
    return y


def orthogonal(bw, x):
    """Columns that all later iterations read, Gram-Schmidt's, and norms that are written as numbers."""
    q, r = np.zeros((N, 3)), np.zeros((3, 3))

    def step(k, _):
        r[:k, k] = q[:, :k].T @ x[:, k]
        v = x[:, k] - q[:, :k] @ r[:k, k]
        r[k, k] = np.sqrt(np.sum(v * v))
        q[:, k] = v / r[k, k]
    bw.fori_loop(0, 3, step, None)
    return q, r


def inner_loop(bw, x):
    """Rows that a loop inside reads, one after the other: Arnoldi's."""
    q = np.zeros((4, 3))
    q[0] = x[0]

    def step(k, _):
        def project(j, v):
            return v - np.sum(q[j] * v) * q[j] * 0.3
        q[k + 1] = np.sin(bw.fori_loop(0, k + 1, project, q[k] * x[k]))
    bw.fori_loop(0, 3, step, None)
    return q


def written_again(bw, x):
    """The row that an iteration reads is written once more, by the same iteration."""
    y = np.zeros((N, 3))
    y[0] = x[0]

    def step(i, _):
        y[i] = y[i - 1] * (2.0 - y[i - 1]) * x[i]
        y[i - 1] = y[i] * y[i - 1] * 0.5
    bw.fori_loop(1, N, step, None)
    return y


def written_later(bw, x):
    """Half of what an iteration reads is written by the next one."""
    y = x * 1.0

    def step(i, _):
        y[i] = np.sin(y[i - 1] * y[i + 1]) * y[i]
    bw.fori_loop(1, N - 1, step, None)
    return y


def written_inside(bw, x):
    """A loop inside writes what an iteration has read, and what it has written."""
    y = x * 1.0

    def step(i, _):
        y[i] = np.sin(y[i]) * y[i - 1]

        def change(j, _):
            y[j] = y[j] * np.cos(y[i])
        bw.fori_loop(0, i, change, None)
    bw.fori_loop(1, N, step, None)
    return y


def updated_behind(bw, x):
    """The array is updated after the loop: what the loop read is what it was."""
    y = recurrence(bw, x)

    def step(i, _):
        y[i] = np.cos(y[i]) * x[i]
    bw.fori_loop(0, N, step, None)
    y[2:5] = y[3:6] * y[2:5]
    return y


PROGRAMS = [recurrence, backwards, orthogonal, inner_loop, written_again, written_later, written_inside, updated_behind]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients(program, rng):
    check_gradients(program, rng.uniform(0.5, 1.5, (N, 3)))


def stacked(program, x):
    """The elements per iteration of what the loop keeps beside what it computes."""
    def total(given):
        found = program(bw, given)
        return sum(np.sum(np.sin(one)) for one in (found if isinstance(found, tuple) else (found,)))

    joint = derive(trace(total, (x,)).graph, (0,), [INPUT_SEED]).graph
    loop = next(value for value in joint.body if value.op is ops.loop)
    return sum(operand.type.size // N for operand in loop.operands[:loop.attrs["carried"]] if operand.op is ops.unset and operand.rank > 2)


def test_what_is_kept(rng):
    x = rng.uniform(0.5, 1.5, (N, 3))
    assert stacked(recurrence, x) == 0
    assert stacked(orthogonal, x) == 3                    # the column before it is divided by its norm, but none of the matrix
    assert stacked(written_again, x) > 0


def test_versions_that_are_computed_again_are_what_they_were(rng):
    """Of what the second derivative reads after an update, later iterations write again."""
    def triangular(y, b):
        y = y.copy()
        for j in range(N):
            y[j] += b[j, :j + 1] @ y[:j + 1]
        return y

    check_derivatives(triangular, rng.uniform(-1, 1, N), 0.3 * rng.uniform(-1, 1, (N, N)))
