"""Rotations against SciPy's: made of and as every form, their products, and derivatives where formulas divide by zero."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.spatial.transform

import bwcompiler as bw
from bwcompiler.errors import ShapeError, UnsupportedError

OURS, THEIRS = bw.scipy.spatial.transform, scipy.spatial.transform
RNG = np.random.default_rng(31)
Q, V = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 3))
M = THEIRS.Rotation.from_quat(Q).as_matrix()
SEQUENCES = ["".join(one) for p in itertools.permutations("xyz", 3) for one in (p, (p[0], p[1], p[0]))]


def assert_same(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    """The same rotations: the sign of a quaternion does not matter."""
    ours, theirs = np.asarray(found.as_quat()), expected.as_quat()
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours * np.sign((ours * theirs).sum(-1, keepdims=True)), theirs, atol=tolerance)


@pytest.mark.parametrize("name", ["as_quat", "as_matrix", "as_rotvec", "as_mrp", "magnitude"])
def test_forms(name: str) -> None:
    fun = lambda q: getattr(OURS.Rotation.from_quat(q), name)()
    expected = getattr(THEIRS.Rotation.from_quat(Q), name)()
    np.testing.assert_allclose(bw.jit(fun)(Q), expected, atol=1e-13)
    np.testing.assert_allclose(bw.jit(fun)(Q[0]), expected[0], atol=1e-13)
    bw.check_grads(fun, (Q,), order=1)


@pytest.mark.parametrize(("name", "given"), [("from_matrix", M), ("from_matrix", M + 0.02 * M**2), ("from_rotvec", V), ("from_rotvec", V * 1e-4),
                                             ("from_rotvec", np.zeros(3)), ("from_mrp", V), ("from_quat", Q)])
def test_made_of(name: str, given: Any) -> None:
    assert_same(getattr(OURS.Rotation, name)(given), getattr(THEIRS.Rotation, name)(given), 1e-9)
    bw.check_grads(lambda x: getattr(OURS.Rotation, name)(x).as_matrix(), (given,), order=1)


@pytest.mark.parametrize("axes", SEQUENCES)
def test_euler_angles(axes: str, rng: np.random.Generator) -> None:
    """About fixed axes and those of the body; where the middle angle locks two of them, with SciPy's choice."""
    angles = rng.uniform(-3, 3, size=(5, 3))
    locked = [0.0, np.pi] if axes[0] == axes[2] else [np.pi / 2, -np.pi / 2]
    for seq in (axes, axes.upper()):
        taken_apart = bw.jit(lambda q, seq=seq: OURS.Rotation.from_quat(q).as_euler(seq, degrees=True))
        assert_same(OURS.Rotation.from_euler(seq, angles), THEIRS.Rotation.from_euler(seq, angles))
        np.testing.assert_allclose(taken_apart(Q), THEIRS.Rotation.from_quat(Q).as_euler(seq, degrees=True), atol=1e-11)
        for middle in locked:
            made = THEIRS.Rotation.from_euler(seq, np.tile([0.3, middle, 0.5], (5, 1)))
            with pytest.warns(UserWarning, match="Gimbal lock"):
                expected = made.as_euler(seq, degrees=True)
            np.testing.assert_allclose(taken_apart(made.as_quat()), expected, atol=1e-5)


def test_shapes_of_angles() -> None:
    for seq, angles in (("z", 0.3), ("z", [0.3]), ("z", np.array([[0.3], [0.4]])), ("xy", [0.1, 0.2]), ("ZYX", np.ones((2, 3)))):
        assert_same(OURS.Rotation.from_euler(seq, angles, degrees=True), THEIRS.Rotation.from_euler(seq, angles, degrees=True))
    bw.check_grads(lambda a: OURS.Rotation.from_euler("ZYX", a).apply(V), (V,), order=1)


PRODUCTS: dict[str, Callable[[Any], Any]] = {
    "product": lambda r: r * r[::-1], "by one": lambda r: r * r[1], "inverse": lambda r: r.inv() * r[0], "power": lambda r: r**2.5,
    "mean": lambda r: r.mean(), "weighed": lambda r: r.mean(np.arange(1, 6.0)), "some": lambda r: r[1:3],
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    found = bw.jit(lambda q: PRODUCTS[name](OURS.Rotation.from_quat(q)))(Q)
    assert isinstance(found, OURS.Rotation)
    assert_same(found, PRODUCTS[name](THEIRS.Rotation.from_quat(Q)))


def test_vectors() -> None:
    ours, theirs = OURS.Rotation.from_quat(Q), THEIRS.Rotation.from_quat(Q)
    for vectors, inverse in ((V, False), (V, True), (V[0], False)):
        np.testing.assert_allclose(bw.jit(lambda q, v, k=inverse: OURS.Rotation.from_quat(q).apply(v, k))(Q, vectors),
                                   theirs.apply(vectors, inverse=inverse), atol=1e-13)
    np.testing.assert_allclose(bw.vmap(lambda r, v: r.apply(v))(ours, V), theirs.apply(V), atol=1e-13)
    assert_same(OURS.Rotation.concatenate([ours, ours[0]]), THEIRS.Rotation.concatenate([theirs, theirs[0]]))
    assert len(ours) == 5
    assert OURS.Rotation.identity().single
    assert bool(ours[0].approx_equal(ours[0]))


def test_derivatives_at_the_identity() -> None:
    zero = np.zeros(3)
    bw.check_grads(lambda v: OURS.Rotation.from_rotvec(v).as_matrix(), (zero,), order=2)
    np.testing.assert_allclose(bw.jacobian(lambda v: OURS.Rotation.from_rotvec(v).as_rotvec())(zero), np.eye(3))
    np.testing.assert_array_equal(bw.hessian(lambda v: OURS.Rotation.from_rotvec(v).as_rotvec().sum())(zero), np.zeros((3, 3)))


def test_rotations_of_scipys_in_captured_code() -> None:
    known = THEIRS.Rotation.from_euler("z", 30, degrees=True)

    def fun(v: Any) -> Any:
        turned = THEIRS.Rotation.from_rotvec(v)
        return (known * turned * known).apply(known.apply(v)) + (turned * known).as_rotvec()
    np.testing.assert_allclose(bw.jit(fun)(V), fun(V), atol=1e-14)
    bw.check_grads(fun, (V[0],), order=1)


def test_slerp() -> None:
    times, at = np.array([0.0, 1.0, 2.0, 3.0, 5.0]), np.array([0.0, 0.5, 2.0, 2.2, 5.0])
    between = lambda q, at: OURS.Slerp(times, OURS.Rotation.from_quat(q))(at)
    assert_same(bw.jit(between)(Q, at), THEIRS.Slerp(times, THEIRS.Rotation.from_quat(Q))(at))
    bw.check_grads(lambda q, at: between(q, at).as_matrix(), (Q, at[[1, 3]]), order=1)


def test_errors() -> None:
    for call, kind in ((lambda: OURS.Rotation.from_rotvec(np.ones(4)), ShapeError), (lambda: OURS.Rotation.from_euler("xxy", V), ValueError),
                       (lambda: OURS.Rotation.from_euler("xY", V), ValueError), (lambda: OURS.Rotation.from_euler("xy", V), ShapeError),
                       (lambda: OURS.Rotation.identity()[0], TypeError), (lambda: len(OURS.Rotation.identity()), TypeError),
                       (OURS.Rotation.random, UnsupportedError), (lambda: OURS.Slerp(np.ones(3), OURS.Rotation.from_quat(Q)), ValueError)):
        with pytest.raises(kind):
            call()
