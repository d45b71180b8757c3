"""Lambert's function, spherical Bessel functions and others of `bw.scipy.special` that SciPy has in Python, against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

special = bw.scipy.special
rng = np.random.default_rng(15)
PLANE = rng.normal(size=60) * np.exp(3 * rng.normal(size=60)) + 1j * rng.normal(size=60) * np.exp(3 * rng.normal(size=60))
EDGES = np.array([0, 1, np.inf, -np.inf, np.nan, 1e300, -1e-300, 1e-300, -0.2, -5, 2.0], complex)
LINE = np.array([-2.0, -1e-4, 0.0, 1e-4, 0.5, 3.0, 20.0])


def traced(fun: Callable[..., Any], *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return run_traced(fun, *args)[0]


@pytest.mark.parametrize("k", [0, -1, 1, -3])
def test_lambert(k: int) -> None:
    for z in (PLANE, EDGES, np.linspace(-1 / np.e + 1e-4, 3, 20) + 0j):
        np.testing.assert_allclose(traced(lambda z: special.lambertw(z, k), z), scipy.special.lambertw(z, k, 1e-15), rtol=1e-12)
    w = bw.jit(lambda z: special.lambertw(z, k))(PLANE)
    np.testing.assert_allclose(w * np.exp(w), PLANE, rtol=1e-11)
    np.testing.assert_allclose(bw.jvp(lambda z: special.lambertw(z, k), (PLANE,), (PLANE,))[1], w / (1 + w), rtol=1e-11)


def test_lambert_of_real_numbers() -> None:
    x = np.array([-0.3, 0.1, 0.0, 2.0])
    found = traced(lambda x: special.lambertw(x), x)
    np.testing.assert_allclose(found, scipy.special.lambertw(x), rtol=1e-12, atol=1e-15)
    assert found.dtype == np.complex128 and traced(lambda x: special.lambertw(x), x.astype(np.float32)).dtype == np.complex64
    check_derivatives(lambda x: special.lambertw(x).real, x)
    np.testing.assert_allclose(special.lambertw(np.array([-1 / np.e])), [-1.0], rtol=1e-7)           # the branch point

    def captured(x):
        return scipy.special.lambertw(x, [0, -1, 0, 1]).real.sum()

    assert bw.jit(captured)(x - 0.05) == pytest.approx(captured(x - 0.05), rel=1e-12)


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_spherical_bessel_functions(name: str, n: int) -> None:
    x = {"spherical_yn": LINE[LINE != 0], "spherical_kn": LINE[LINE > 0]}.get(name, LINE)
    for derivative in (False, True):
        ours = lambda x, d=derivative: getattr(special, name)(n, x, d)
        np.testing.assert_allclose(traced(ours, x), getattr(scipy.special, name)(n, x, derivative), rtol=1e-10, atol=1e-300)
    places = np.array([0.7, 2.5]) if name in ("spherical_yn", "spherical_kn") else np.array([0.0, 0.7, -2.5])
    check_derivatives(lambda x: getattr(special, name)(n, x), places)
    np.testing.assert_allclose(bw.grad(lambda x: getattr(special, name)(n, x).sum())(places), getattr(scipy.special, name)(n, places, True), rtol=1e-9)
    with pytest.raises(UnsupportedError, match="integer"):
        getattr(special, name)(0.5, x)


OTHERS: dict[str, tuple[Callable[..., Any], Any]] = {
    "hankel1": (lambda m, x: m.hankel1(1.5, x), LINE[LINE > 0]), "hankel2": (lambda m, x: m.hankel2(1.5, x), LINE[LINE > 0]),
    "wofz": (lambda m, x: m.wofz(x), LINE), "eval_hermite": (lambda m, x: m.eval_hermite(4, x), LINE),
    "eval_hermitenorm": (lambda m, x: m.eval_hermitenorm(5, x), LINE), "perm": (lambda m, x: m.perm(x, 2.5), LINE),
    "diric": (lambda m, x: m.diric(x, 4), np.array([0.3, 2.0, -1.0, 4.0])), "diric at its poles": (lambda m, x: m.diric(x, 3), np.pi * np.arange(-4, 5.0))}


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    function, x = OTHERS[name]
    np.testing.assert_allclose(traced(lambda x: function(special, x), x), function(scipy.special, x), rtol=1e-10, atol=1e-12)
    if "poles" not in name:
        check_derivatives(lambda x: function(special, x).real, x[(x != 0) & (np.abs(x) < 10)] + 0.01, order=1)


def test_refused() -> None:
    with pytest.raises(UnsupportedError, match="exact=False"):
        special.perm(LINE, 2, exact=True)
