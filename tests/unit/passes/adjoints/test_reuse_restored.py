"""Loops that update one array one after the other: each goes back from what the next one has restored."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.compiler.pipeline import derive, split
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED

SIZE = 12
X = np.random.default_rng(3).uniform(0.5, 1.5, (SIZE, SIZE))


def sweep(a, first, last):
    for i in range(first, last):
        for j in range(1, SIZE):
            a[i, j] = 0.5 * np.sin(a[i, j]) * a[i - 1, j] + 0.3 * a[i, j - 1] * a[i - 1, j - 1]


def three_loops(x):
    a = x.copy()
    sweep(a, 1, 5)
    sweep(a, 5, 9)
    sweep(a, 3, SIZE)
    return a


def updates_between(x):
    a = x.copy()
    sweep(a, 1, 9)
    a[2] = np.sin(a[2])
    a[:, 3] *= a[1, 2]
    a[2, 2:5] += 0.5
    sweep(a, 1, 9)
    return a


def read_between(x):
    """The version between the loops is read by others too, also backwards."""
    a = x.copy()
    sweep(a, 1, 9)
    between = np.sum(np.sin(a) ** 2)
    sweep(a, 1, 9)
    return a * between


def two_arrays(x):
    a, b = x.copy(), x * 0.5
    sweep(a, 1, 9)
    sweep(b, 1, 9)
    a, b = b, a
    sweep(a, 1, 9)
    sweep(b, 2, 9)
    return a + b * 0.3


def parted(x):
    """As loops come whose index decides the bounds of those inside."""
    a = x.copy()
    for j in range(SIZE):
        for i in range(j, min(SIZE, j + 4)):
            for k in range(max(0, i - 3), j):
                a[i, j] -= 0.1 * a[i, k] * a[j, k]
            a[i, j] *= np.sin(a[j, j])
    return a


def kept(program):
    """How many arrays of the size of X the forward program hands to the adjoint one, and the bytes of all that it does."""
    joint = derive(trace(lambda x: np.sum(program(x)), (X,)).graph, [0], [INPUT_SEED])
    verify(joint.graph)
    parts = split(joint.graph, [place for place in joint.seeds if place is not None], 1)
    residuals = [value for value in parts.residuals if value.op.kind != "input"]
    return sum(value.shape == X.shape for value in residuals), sum(value.type.nbytes for value in residuals)


@pytest.mark.parametrize("program, arrays", [(three_loops, 1), (updates_between, 1), (two_arrays, 2), (parted, 1)],
                         ids=lambda one: getattr(one, "__name__", ""))
def test_versions_between_are_not_kept(program, arrays):
    assert kept(program)[0] == arrays


@pytest.mark.parametrize("program", [three_loops, updates_between, two_arrays, parted, read_between], ids=lambda program: program.__name__)
def test_gradients(program):
    np.testing.assert_allclose(bw.jit(program)(X), program(X), rtol=1e-12)
    bw.check_grads(program, (X,), order=1)


def test_second_derivatives():
    small = X[:6, :6]

    def program(x):
        a = x.copy()
        for first in (1, 2):
            for i in range(first, 6):
                for j in range(1, 6):
                    a[i, j] = np.sin(a[i, j]) * a[i - 1, j] + a[i, j - 1]
            a[first] *= a[2, 3]
        return a
    bw.check_grads(program, (small,), order=2, modes=("rev",))
