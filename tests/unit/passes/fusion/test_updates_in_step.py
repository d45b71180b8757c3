"""Updates of what the same loop reads, element by element: one loop, and no array beside; where the order of elements counts, two."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import lower
from bwcompiler.frontend import trace

A = np.sin(np.arange(1.0, 401.0)).reshape(20, 20)
X = np.linspace(0.5, 1.5, 20)


def scaled(a, x):
    for i in range(20):
        a[i, :i + 1] *= x[i]
    return a


def ranks(a, x):
    for k in range(20):
        for i in range(20):
            a[i, :i + 1] += x[k] * a[i, k] * x[:i + 1] * 1e-2
    return a


def columns(a, x):
    for i in range(1, 20):
        a[:i, i] = a[:i, i] * x[:i] - x[i]
    return a


def kept_beside(a, x):
    b = np.zeros((20, 20))
    for i in range(1, 20):
        found = a[i, :i] * x[:i]
        a[i, :i] = found + 1.0
        b[i, :i] = found - x[i]
    return a + b


def both(a, x):
    """What is read before and what is written then go into two arrays."""
    b = np.zeros((20, 20))
    for i in range(1, 20):
        old = a[i, :i] + 0.0
        a[i, :i] = x[:i] * 3.0
        b[i, :i] = old - a[i, :i]
    return a + b


def from_the_left(a, x):
    for i in range(1, 19):
        a[i, 1:i + 1] = a[i, :i] * x[:i]
    return a


def backwards(a, x):
    for i in range(2, 19):
        a[i, :i] = a[i, :i][::-1] * x[:i]
    return a


def transposed(a, x):
    for i in range(2, 10):
        a[i:2 * i, i:2 * i] = a[i:2 * i, i:2 * i].T * x[i]
    return a


def normalised(a, x):
    """The row is read twice."""
    for i in range(1, 20):
        a[i, :i] = a[i, :i] / np.sqrt(np.sum(a[i, :i] * a[i, :i]))
    return a


def eliminated(a, x):
    """A number of the row, which is read before the row is written, and written with it."""
    for k in range(19):
        a[k + 1:, k:] -= np.outer(a[k + 1:, k] * x[k] * 0.1, a[k, k:])
    return a


def reflected(a, x):
    """Sums over the rows and over the columns of what is written."""
    for k in range(18):
        b = a[:, k + 1:] @ x[k + 1:]
        a[:, k + 1:] -= np.outer(b, x[k + 1:]) * 0.1
    return a


def weighed(a, x):
    """What is made of the row before it is written is multiplied with its sum, which is known after a pass over it."""
    b = np.zeros((20, 20))
    for i in range(1, 20):
        v = a[i, :i] * 2.0
        a[i, :i] = v + 0.1 * a[i - 1, 0]
        b[i, :i] = v * np.sum(v) + b[i - 1, 0]
    return a + b


def exchanged(a, x):
    """Two arrays, each of which is written to what is read of the other."""
    b = a + 1.0
    for i in range(1, 20):
        u, v = a[i, :i] * x[:i] + b[i - 1, 0], b[i, :i] * 2.0 + u_of(a, i)
        a[i, :i] = v
        b[i, :i] = u
    return a + x * b


def u_of(a, i):
    return np.sum(a[i, :i]) * 0.1


IN_STEP = [scaled, columns, kept_beside, normalised, eliminated]
OTHERS = [both, ranks, from_the_left, backwards, transposed, reflected, weighed, exchanged]


def copied(fun):
    return lambda a, x: fun(a.copy(), x)


@pytest.mark.parametrize("fun", [*IN_STEP, *OTHERS], ids=lambda fun: fun.__name__)
def test_values(fun):
    np.testing.assert_allclose(bw.jit(copied(fun))(A, X), fun(A.copy(), X), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("fun", [kept_beside, both, normalised, eliminated, reflected, weighed, exchanged], ids=lambda fun: fun.__name__)
def test_gradients(fun):
    bw.check_grads(copied(fun), (A, X), order=1)


def stored_in_bodies(steps):
    """Arrays that kernels in bodies of loops write beside what is carried."""
    for step in steps:
        for body in step.bodies or ():
            for inner in body.steps:
                if inner.kernel is not None:
                    yield from [buffer for buffer in inner.kernel.buffers if buffer.role == "out"]
            yield from stored_in_bodies(body.steps)


@pytest.mark.parametrize("fun", IN_STEP, ids=lambda fun: fun.__name__)
def test_one_loop_reads_and_writes(fun):
    low = lower(trace(copied(fun), (A, X)).graph)
    assert not list(stored_in_bodies(low.steps))
