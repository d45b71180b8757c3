"""Kernels over columns whose number moves with a loop around go through memory along rows, as those of a fixed number do."""

from __future__ import annotations

import numpy as np

import bwcompiler as bw


def projections(x):
    """The derivative adds up products with growing numbers of columns, in a kernel that makes one number per column first."""
    n, m = x.shape
    q, r = np.zeros((n, m)), np.zeros((m, m))
    for k in range(m):
        r[:k, k] = q[:, :k].T @ x[:, k]
        v = x[:, k] - q[:, :k] @ r[:k, k]
        r[k, k] = np.sqrt(np.sum(v * v))
        q[:, k] = v / r[k, k]
    return np.sum(np.sin(q)) + np.sum(r * r)


def test_lanes_are_columns(rng):
    x = rng.standard_normal((40, 24))
    text = bw.value_and_grad(projections).as_text("loops", x)
    kernel = next(part for part in text.split("kernel ") if "in 0..40\n    for l in 0..k vector" in part)
    assert "for l in 0..k vector" in kernel and "scratch f64[23]" in kernel


def test_values(rng):
    for shape in ((40, 24), (5, 5), (3, 1), (70, 33)):
        x = rng.standard_normal(shape)
        value, gradient = bw.value_and_grad(projections)(x)
        assert np.allclose(value, projections(x), rtol=1e-12)
        direction = rng.standard_normal(shape)
        difference = (projections(x + 1e-6 * direction) - projections(x - 1e-6 * direction)) / 2e-6
        assert np.isclose(np.sum(gradient * direction), difference, rtol=1e-5, atol=1e-6)
