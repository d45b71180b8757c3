"""Functions of a square root that are smooth where it is 0 have a derivative there."""

import numpy as np
import pytest

import bwcompiler as bw


def kernel(x, h):
    """A spline in the distance over a length, as in particle methods, with its gradient."""
    q = np.sqrt(np.sum(x * x, axis=-1)) / h
    inside = 1.0 - 1.5 * q ** 2 + 0.75 * q ** 3
    return np.where(q < 1.0, inside, np.where(q < 2.0, 0.25 * (2.0 - q) ** 3, 0.0)) / h ** 3


FUNCTIONS = {                      # of the radius, and the same without it
    "square": (lambda r: r ** 2, lambda s: s),
    "product": (lambda r: r * r, lambda s: s),
    "power": (lambda r: np.power(r, 4.0), lambda s: s ** 2),
    "gaussian": (lambda r: np.exp(-(r / 1.5) ** 2) / 3.0, lambda s: np.exp(-s / 1.5 ** 2) / 3.0),
    "several terms": (lambda r: np.cos(2 * r ** 2) - r * np.sum(r * r) * r, lambda s: np.cos(2 * s) - s * np.sum(s)),
    "chosen": (lambda r: np.where(r < 2.0, 1 - r ** 2, -r ** 4), lambda s: np.where(s < 4.0, 1 - s, -s ** 2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_zero(name, rng):
    of_radius, of_square = FUNCTIONS[name]
    x = rng.standard_normal((4, 3))
    x[1] = 0.0

    def loss(x):
        return np.sum(of_radius(np.sqrt(np.sum(x * x, axis=1))) * (1 + x[:, 0]))

    def expected(x):
        return np.sum(of_square(np.sum(x * x, axis=1)) * (1 + x[:, 0]))

    np.testing.assert_allclose(bw.grad(loss)(x), bw.grad(expected)(x), rtol=1e-12, atol=1e-14)
    direction = rng.standard_normal(x.shape)
    np.testing.assert_allclose(bw.jvp(loss, (x,), (direction,))[1], bw.jvp(expected, (x,), (direction,))[1], rtol=1e-12)
    for second in (bw.hessian, lambda f: bw.jacrev(bw.grad(f))):
        np.testing.assert_allclose(second(loss)(x), second(expected)(x), rtol=1e-11, atol=1e-13)


def test_of_scaled_roots(rng):
    """Other factors may be differentiated, too."""
    x = rng.standard_normal((5, 3)) * 0.7
    x[2] = 0.0
    found = bw.grad(lambda x, h: np.sum(kernel(x[:, None] - x[None], h)), argnums=(0, 1))(x, 0.9)
    assert np.all(np.isfinite(found[0]))
    for gradient, place in ((found[0][0, 1], (0, 1)), (found[0][2, 0], (2, 0))):
        step = np.zeros_like(x)
        step[place] = 1e-6
        near = [np.sum(kernel((x + sign * step)[:, None] - (x + sign * step)[None], 0.9)) for sign in (1, -1)]
        np.testing.assert_allclose(gradient, (near[0] - near[1]) / 2e-6, rtol=1e-6, atol=1e-7)
    lengths = [np.sum(kernel(x[:, None] - x[None], 0.9 + sign * 1e-6)) for sign in (1, -1)]
    np.testing.assert_allclose(found[1], (lengths[0] - lengths[1]) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("function", [lambda r: np.exp(-r), lambda r: r ** 1.5 + r, lambda r: r ** 0.5], ids=["exp", "sum", "root"])
def test_where_there_is_no_derivative(function):
    with np.errstate(all="ignore"):
        assert not np.isfinite(bw.grad(lambda x: function(np.sqrt(x)))(0.0))
