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


def substitution(a, b):
    """The derivative makes one number per column first, and adds these to all rows before then."""
    x = np.zeros_like(b)
    for i in range(len(a)):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return np.sum(x * x)


def test_what_is_added_to_rows_goes_along_them(rng):
    """The matrix is read along its rows, which the other array is not written along."""
    a, b = rng.standard_normal((80, 80)) + 9.0 * np.eye(80), rng.standard_normal((80, 24))
    text = bw.value_and_grad(substitution, (0, 1)).as_text("loops", a, b)
    assert "for i0 in 0..i\n      for l in 0..24 vector\n" in text
    difference = (substitution(a, b + 1e-6) - substitution(a, b - 1e-6)) / 2e-6
    assert np.isclose(np.sum(bw.grad(substitution, 1)(a, b)), difference, rtol=1e-6)
