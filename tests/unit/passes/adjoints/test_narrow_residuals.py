"""What an adjoint reads in parts alone is kept in a section; what it reads whole, or in most of its elements, as it is."""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend import trace
from bwcompiler.ir.extent import Affine
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED

N = 12


def recursion(r):
    """Durbin's: an iteration reads what there is so far of y, forwards and backwards."""
    y = np.zeros(N)
    alpha = y[0] = -0.5 * r[0]
    for k in range(1, N):
        alpha = -(0.1 * r[k] + np.dot(r[:k][::-1], y[:k]) * alpha) * 0.5
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return y


def middle(r):
    """A section that stays where it is, and is small."""
    y = r.copy()
    for _ in range(40):
        y = np.sin(y) * 0.9
        y = y + np.sum(y[4:6] * y[5:7]) * 0.01
    return y


def most(r):
    """All but an element: the array is kept."""
    y = r.copy()
    for _ in range(40):
        y = y * 0.9 + np.sum(y[1:] * y[:-1]) * 1e-3 + np.sum(y[1:-1] ** 3) * 1e-3
    return y


def kept(program, r):
    """The shapes of what is stacked in each iteration."""
    joint = derive(trace(program, (r,)).graph, (0,), [INPUT_SEED]).graph
    loop = next(value for value in joint.body if value.op is ops.loop)
    updates = [value for value in loop.attrs["body"].outputs if value.op is ops.slice_update and len(value.operands[1].shape) == 2]
    return [update.operands[1].shape[1] for update in updates]


def test_growing_parts_are_kept_in_one_that_grows(rng):
    sections = [size for size in kept(recursion, rng.standard_normal(N)) if size != 1]
    assert len(sections) == 1 and isinstance(sections[0], Affine)


def test_others_are_kept_whole(rng):
    assert N in kept(most, rng.standard_normal(N))


@pytest.mark.parametrize("program", [recursion, middle, most])
def test_gradients_are_right(program, rng):
    r = rng.uniform(0.2, 1.0, N)
    bw.check_grads(program, (r,), order=1)
    traced = trace(program, (r,))
    joint = derive(traced.graph, (0,), [INPUT_SEED])
    found = interpret(joint.graph, [r, np.ones(N), *traced.captured, *joint.captured])[-1]
    np.testing.assert_allclose(found, bw.grad(lambda r: np.sum(program(r)))(r), rtol=1e-12)
