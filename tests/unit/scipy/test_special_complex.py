"""Functions of scipy.special of complex numbers: values are SciPy's, derivatives are right, others are refused."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import bwcompiler as bw
from bwcompiler.errors import DTypeError, GradientError, UnsupportedError
from bwcompiler.ops.special.loops import COMPLEX_DERIVATIVES
from tests.support.derivatives import check_derivatives, interpreted

Z = np.array([0.3 + 0.4j, 1.2 - 0.7j, -0.8 + 0.2j])
RIGHT = np.array([0.6 + 0.4j, 1.2 - 0.7j, 2.8 + 1.2j])
V, N = np.array([0.5, 1.0, 2.5]), np.array([0.0, 2.0, 3.0])
POINTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("erf", "erfc", "erfcx", "erfi", "dawsn", "wofz", "ndtr", "log_ndtr", "fresnel", "psi", "gamma", "loggamma", "rgamma", "expi", "exp1", "sici",
                     "shichi", "wrightomega", "spence", "airy"), (Z,)),
    **dict.fromkeys(("jv", "yv", "hankel1", "hankel2", "hankel1e", "hankel2e", "iv", "kv", "kve"), (V, Z)),
    "hyp0f1": (V, Z), "hyp1f1": (V, V + 0.7, Z), "hyp2f1": (V, V - 0.3, V + 0.7, Z / 3), "elliprc": (RIGHT, RIGHT[::-1]),
    **dict.fromkeys(("elliprf", "elliprg"), (RIGHT, RIGHT[::-1], RIGHT + 0.5)),
    **dict.fromkeys(("eval_chebyt", "eval_chebyu", "eval_legendre", "eval_laguerre"), (N, Z)),
    **dict.fromkeys(("eval_gegenbauer", "eval_genlaguerre"), (N, V, Z)), "eval_jacobi": (N, V, V + 0.5, Z),
}
FIRST_ONLY = ("elliprc", "elliprf", "elliprg")
UNKNOWN: dict[str, tuple[Any, ...]] = {"ive": (V, Z), "jve": (V, Z), "yve": (V, Z), "airye": (Z,), "elliprd": (RIGHT, RIGHT, RIGHT[::-1])}


def test_all_known_derivatives_are_tested() -> None:
    assert set(COMPLEX_DERIVATIVES) == set(POINTS)


@pytest.mark.parametrize("name", [*POINTS, *UNKNOWN])
def test_values(name: str) -> None:
    """Native ones: the bits of SciPy's loops, in double and single precision, of strided arrays and of ones that broadcast."""
    ufunc, args = getattr(scipy.special, name), {**POINTS, **UNKNOWN}[name]
    compiled = bw.jit(lambda *xs: ufunc(*xs))
    single = tuple([arg.astype(np.complex64 if np.iscomplexobj(arg) else np.float32) for arg in args])
    for given in (args, tuple([np.repeat(arg, 2)[::2] for arg in args]), (args[0][:, None], *args[1:]) if len(args) > 1 else (args[0][None, :1],), single):
        found, expected = compiled(*given), ufunc(*given)
        for one, other in zip(found, expected, strict=True) if isinstance(expected, tuple) else ((found, expected),):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", POINTS)
def test_derivatives(name: str) -> None:
    """By all complex operands: of the real and imaginary part, along the real and the imaginary direction."""
    args = POINTS[name]
    ufunc = getattr(scipy.special, name)
    parts = [part for arg in args if np.iscomplexobj(arg) for part in (arg.real.copy(), arg.imag.copy())]

    def real(*parts: Any) -> Any:
        numbers = iter(parts)
        given = [next(numbers) + 1j * next(numbers) if np.iscomplexobj(arg) else arg for arg in args]
        found = ufunc(*given)
        return [side for one in (found if isinstance(found, tuple) else (found,)) for side in (one.real, one.imag)]

    check_derivatives(real, *parts, order=1 if name in FIRST_ONLY else 2, tolerance=1e-5)


def test_forward_mode() -> None:
    """The derivative of a holomorphic function, by forward mode."""
    for name in ("wofz", "gamma", "expi"):
        found = bw.jvp(getattr(bw.scipy.special, name), (Z,), (np.ones_like(Z),))[1]
        expected = [complex(mp.diff({"wofz": lambda z: mp.exp(-z * z) * mp.erfc(-1j * z), "gamma": mp.gamma, "expi": mp.ei}[name], complex(z))) for z in Z]
        np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("z", [0.1 + 0.2j, -3.4 + 0.1j, 8 - 20j, 2.0 + 0j, -20.3 - 5j])
def test_trigamma(z: complex) -> None:
    """ψ' and its derivatives, which are formulas of ours."""
    for order in (1, 2, 3):
        fun: Any = scipy.special.psi
        for _ in range(order):
            fun = bw.grad(fun, holomorphic=True)
        with mp.workdps(30):
            expected = complex(mp.psi(order, z))
        np.testing.assert_allclose(complex(interpreted(fun, (z,))(z)[0]), expected, rtol=1e-10)


def test_spherical_functions() -> None:
    for name in ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"):
        for n in (0, 2):
            found = bw.jit(lambda z, n=n, name=name: getattr(scipy.special, name)(n, z))(Z)
            np.testing.assert_allclose(found, getattr(scipy.special, name)(n, Z), rtol=1e-12)
    found = bw.jit(lambda z: bw.scipy.special.spherical_jn(2, z, derivative=True))(Z)
    np.testing.assert_allclose(found, scipy.special.spherical_jn(2, Z, derivative=True), rtol=1e-10)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (1, 0), (2, 1), (3, -2), (5, 5), (2, 3), (40, -17)])
def test_spherical_harmonics(n: int, m: int) -> None:
    theta, phi = np.array([[0.3], [1.4], [2.9]]), np.array([0.2, 4.0])
    fun = lambda theta, phi: bw.scipy.special.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(bw.jit(fun)(theta, phi), scipy.special.sph_harm_y(n, m, theta, phi), rtol=1e-11, atol=1e-14)
    check_derivatives(lambda theta, phi: (fun(theta, phi).real, fun(theta, phi).imag), theta, phi, tolerance=1e-4 if n > 9 else 1e-6)


def test_kelvin() -> None:
    x = np.array([0.3, 1.0, 4.0])
    for one, other in zip(bw.scipy.special.kelvin(x), scipy.special.kelvin(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    check_derivatives(lambda x: [side for one in bw.scipy.special.kelvin(x) for side in (one.real, one.imag)], x)


def test_refusals() -> None:
    for name, args in UNKNOWN.items():
        with pytest.raises(GradientError, match="of complex numbers by its argument"):
            bw.grad(lambda z, name=name, args=args: np.sum(abs(np.stack([np.asarray(getattr(scipy.special, name)(*args[:-1], z))]))))(args[-1])
    with pytest.raises(GradientError, match="by its argument 0 is not known; it is known by argument 1"):
        bw.grad(lambda v: np.sum(abs(scipy.special.jv(v, Z))))(V)
    with pytest.raises(DTypeError, match="not defined for complex"):
        bw.jit(lambda z: scipy.special.jv(z, Z))(Z)
    with pytest.raises(DTypeError, match="not defined for complex"):
        bw.jit(lambda z: scipy.special.erfinv(z))(Z)
    with pytest.raises(UnsupportedError, match="known while tracing"):
        bw.jit(lambda n: bw.scipy.special.sph_harm_y(n, 0, 0.1, 0.2))(np.array([1, 2]))


@pytest.mark.parametrize("m", [0.0, 1e-15, 1e-9, -1e-5, 0.049, 0.051, -3.0, 0.999])
def test_elliptic_integrals_near_zero(m: float) -> None:
    """Derivatives have their digits where those of E and K are equal."""
    for ours, theirs in ((bw.scipy.special.ellipk, mp.ellipk), (bw.scipy.special.ellipe, mp.ellipe), (lambda m: bw.scipy.special.ellipkm1(1 - m), mp.ellipk)):
        for order in (1, 2):
            fun = bw.grad(ours) if order == 1 else bw.grad(bw.grad(ours))
            with mp.workdps(40):
                expected = float(mp.diff(theirs, mp.mpf(m), order))
            np.testing.assert_allclose(interpreted(fun, (m,))(m)[0], expected, rtol=1e-10)


def test_agm_of_equal_numbers() -> None:
    np.testing.assert_allclose(bw.grad(lambda x, y: bw.scipy.special.agm(x, y), (0, 1))(2.0, 2.0), (0.5, 0.5), rtol=1e-14)
    np.testing.assert_allclose(bw.hessian(lambda v: bw.scipy.special.agm(v[0], v[1]))(np.array([2.0, 2.0])), [[-0.0625, 0.0625], [0.0625, -0.0625]], rtol=1e-12)
