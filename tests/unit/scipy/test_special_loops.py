"""Functions of scipy.special by SciPy's loops: native values are SciPy's bits, known derivatives are right, others are refused."""

from __future__ import annotations

import warnings
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import bwcompiler as bw
from bwcompiler.errors import GradientError, UnsupportedError
from bwcompiler.ops.special.loops import PARTIAL_DERIVATIVES
from tests.support.derivatives import check_derivatives, interpreted

special = bw.scipy.special
rng = np.random.default_rng(3)
X = np.array([0.3, 0.9, 1.7, 4.2])
P = np.array([0.1, 0.35, 0.6, 0.85])
BOTH = np.array([-2.3, -0.4, 0.7, 3.1])
V = np.array([0.5, 1.0, 2.5, 3.0])
N = np.array([0.0, 1.0, 2.0, 5.0])

# arguments, one array per operand; those whose derivative is not known count as constants
POINTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("j0", "j1", "i0", "i1", "i0e", "i1e", "itstruve0", "itmodstruve0", "airy", "itj0y0", "iti0k0", "erfi", "dawsn", "log_ndtr",
                     "ndtr_exp", "fresnel", "shichi", "exprel", "cosm1", "sindg", "cosdg", "tandg", "wrightomega"), (BOTH,)),
    **dict.fromkeys(("y0", "y1", "k0", "k1", "k0e", "k1e", "it2j0y0", "it2i0k0", "it2struve0", "ber", "bei", "ker", "kei", "expi", "exp1",
                     "spence", "loggamma", "cotdg", "itj0y0", "iti0k0", "shichi", "sici"), (X,)),
    **dict.fromkeys(("erfcinv", "ndtri", "ellipk", "ellipkm1", "ellipe"), (P,)),
    **dict.fromkeys(("jv", "jve", "yv", "yve", "iv", "ive", "kv", "kve", "struve", "modstruve"), (V, X)),
    **dict.fromkeys(("yn", "kn", "expn"), (N, X)),
    **dict.fromkeys(("gammainc", "gammaincc"), (V, X)), **dict.fromkeys(("gammaincinv", "gammainccinv"), (V, P)),
    **dict.fromkeys(("betainc", "betaincc", "betaincinv", "betainccinv"), (V, V[::-1] + 0.2, P)),
    **dict.fromkeys(("chdtr", "chdtrc"), (V, X)), "chdtri": (V, P),
    **dict.fromkeys(("gdtr", "gdtrc"), (X, V, P)), **dict.fromkeys(("fdtr", "fdtrc"), (V, V + 1, X)), "fdtri": (V, V + 1, P),
    "stdtr": (V, BOTH), "stdtrit": (V, P), **dict.fromkeys(("pdtr", "pdtrc"), (N, X)),
    "poch": (X, V), "binom": (X + 5, V), "_zeta": (V + 1, X), "owens_t": (BOTH, X), "ndtri_exp": (-X,), "betaln": (V, X),
    "boxcox": (X, np.array([-0.7, 0.0, 0.5, 2.0])), "boxcox1p": (X, np.array([-0.7, 0.0, 0.5, 2.0])),
    "inv_boxcox": (P, np.array([-0.7, 0.0, 0.5, 2.0])), "inv_boxcox1p": (P, np.array([-0.7, 0.0, 0.5, 2.0])),
    "wright_bessel": (V, V, X),
    **dict.fromkeys(("eval_chebyt", "eval_chebyu", "eval_chebyc", "eval_chebys", "eval_legendre", "eval_laguerre"), (N, BOTH / 4)),
    **dict.fromkeys(("eval_hermite", "eval_hermitenorm"), (N.astype(int), BOTH / 4)),
    **dict.fromkeys(("eval_gegenbauer", "eval_genlaguerre"), (N, V, BOTH / 4)), "eval_jacobi": (N, V, V + 0.5, BOTH / 4),
    "ellipkinc": (X / 4, P), "ellipeinc": (X / 4, P), "ellipj": (BOTH, P),
    "hyp0f1": (V, BOTH), "hyp1f1": (V, V + 0.7, BOTH), "hyp2f1": (V, V - 0.3, V + 0.7, BOTH / 5), "hyperu": (V, V + 0.7, X),
    **dict.fromkeys(("pbdv", "pbvv", "pbwa"), (V, X / 2)), "lpmv": (np.array([0.0, 1.0, 1.0, 2.0]), V + 1, BOTH / 4),
    "kolmogorov": (X / 2 + 0.3,), "kolmogi": (P,), **dict.fromkeys(("smirnov", "smirnovi"), (N + 1, P)), "powm1": (X, V),
    **dict.fromkeys(("chndtr", "_ncx2_pdf"), (X, V + 1, X + 0.1)), "nctdtr": (V + 1, V, BOTH), "ncfdtr": (V + 1, V + 2, V, X), "elliprc": (X, V),
    **dict.fromkeys(("elliprf", "elliprg", "elliprd"), (X, V, X + V)), "elliprj": (X, V, X + V, V + 0.4),
}
POINTS.pop("ndtr_exp")
POINTS |= {**dict.fromkeys(("berp", "beip", "kerp", "keip", "airye"), (X,)), "itairy": (BOTH,), **dict.fromkeys(("zetac", "_riemann_zeta"), (X + 1,)), "agm": (X, V), "voigt_profile": (BOTH, X, V),
           **dict.fromkeys(("eval_sh_legendre", "eval_sh_chebyt", "eval_sh_chebyu"), (N, P)), "eval_sh_jacobi": (N, V + 2, V + 0.5, P)}
POINTS |= {"mathieu_a": (N, X), "mathieu_b": (N + 1, X), "mathieu_cem": (N, X, BOTH * 20), "mathieu_sem": (N + 1, X, BOTH * 20),
           **dict.fromkeys(("mathieu_modcem1", "mathieu_modcem2"), (N, X, P)),
           **dict.fromkeys(("mathieu_modsem1", "mathieu_modsem2"), (N + 1, X, P))}
FIRST_ONLY = {"mathieu_a", "mathieu_b", "eval_jacobi", "hyperu", "kolmogorov", "kolmogi", "smirnov", "smirnovi",
              "chndtr", "nctdtr", "ncfdtr"}      # those of their derivatives are not known, or are limits


def ufunc(name: str) -> Any:
    return getattr(scipy.special, name, None) or getattr(scipy.special._ufuncs, name)


@pytest.mark.parametrize(("a", "x"), [(1e-3, 0.1), (0.05, 0.05), (0.3, 2.0), (1.0, 1.0), (2.5, 1e-6), (37.5, 20.0), (37.5, 60.0), (3000.0, 2900.0),
                                      (3000.0, 3200.0)])
def test_incomplete_gamma_functions_by_their_shape(a: float, x: float) -> None:
    with mp.workdps(40):
        def tail(shape: Any) -> Any:
            return mp.gammainc(shape, 0, mp.mpf(x), regularized=True) if x < a else -mp.gammainc(shape, mp.mpf(x), mp.inf, regularized=True)
        expected = float(mp.diff(tail, mp.mpf(a), h=mp.mpf(a) * mp.mpf(10) ** -12))
    np.testing.assert_allclose(slopes("gammainc", 0, a, x), expected, rtol=1e-9)
    np.testing.assert_allclose(slopes("gammaincc", 0, a, x), -expected, rtol=1e-9)


@pytest.mark.parametrize("s", [-1.5, 0.5, 0.999, 1.001, 2.0, 7.5, 40.0])
def test_zeta_by_its_order(s: float) -> None:
    """First and second derivatives, of Riemann's function and of Hurwitz's."""
    for q in (1.0,) if s < 1 else (1e-3, 0.3, 1.0, 5.0, 40.0):
        zeta = (lambda s: bw.scipy.special.zeta(s)) if q == 1 else (lambda s, q=q: bw.scipy.special.zeta(s, q))
        for order in (1, 2):
            fun = bw.grad(zeta) if order == 1 else bw.grad(bw.grad(zeta))
            with mp.workdps(30):
                expected = float(mp.zeta(s, q, order))
            np.testing.assert_allclose(interpreted(fun, (s,))(s)[0], expected, rtol=1e-11)


@pytest.mark.parametrize(("a", "b", "x"), [(0.01, 3.0, 0.001), (0.3, 0.02, 0.9), (1.0, 1.0, 0.25), (2.5, 3.0, 1e-5), (30.0, 40.0, 0.4),
                                           (30.0, 40.0, 0.6), (400.0, 0.5, 0.9995), (2.5, 1000.0, 0.004)])
def test_incomplete_beta_functions_by_their_shapes(a: float, b: float, x: float) -> None:
    for operand in (0, 1):
        with mp.workdps(40):
            def tail(shape: Any, operand: int = operand) -> Any:
                first, second = (shape, mp.mpf(b)) if operand == 0 else (mp.mpf(a), shape)
                return mp.betainc(first, second, 0, mp.mpf(x), regularized=True)
            base = mp.mpf((a, b)[operand])
            expected = float(mp.diff(tail, base, h=base * mp.mpf(10) ** -12))
        np.testing.assert_allclose(slopes("betainc", operand, a, b, x), expected, rtol=1e-7, atol=1e-15)


def slopes(name: str, operand: int, *point: float) -> Any:
    """A derivative, through the interpreter."""
    return interpreted(bw.grad(ufunc(name), operand), point)(*point)[0]


@pytest.mark.parametrize("s", [-20.0, -7.3, -3.0, -2.0, -0.3, 0.4])
def test_zeta_to_the_left(s: float) -> None:
    for order, found in enumerate((bw.grad(special.zeta)(s), bw.grad(bw.grad(special.zetac))(s)), 1):
        np.testing.assert_allclose(found, float(mp.diff(mp.zeta, s, order)), rtol=1e-12)


@pytest.mark.parametrize(("a", "b", "x"), [(0.5, 1.2, -2.3), (2.5, 0.7, 30.0), (2.5, 3.7, -40.0), (-2.0, 1.3, 1.5), (1.5, 0.7, 90.0),
                                           (-0.5, -1.5, 2.0), (3.0, 3.0, -1.0), (-2.0, 1.3, -5.0)])
def test_confluent_functions_by_their_parameters(a: float, b: float, x: float) -> None:
    found = bw.grad(lambda a, b: special.hyp1f1(a, b, x), (0, 1))(a, b)
    expected = mp.diff(lambda t: mp.hyp1f1(t, b, x), a), mp.diff(lambda t: mp.hyp1f1(a, t, x), b)
    np.testing.assert_allclose(found, [float(one) for one in expected], rtol=1e-12)
    twice = bw.grad(lambda a: bw.grad(lambda a: special.hyp1f1(a, b, x))(a))(a)
    np.testing.assert_allclose(twice, float(mp.diff(lambda t: mp.hyp1f1(t, b, x), a, 2)), rtol=1e-9)


@pytest.mark.parametrize(("a", "b", "c", "z"), [(0.5, 1.2, 0.7, 0.3), (0.5, 1.2, 0.7, -3.3), (2.5, 0.7, 1.3, 0.9), (-2.0, 0.7, 1.3, 0.5),
                                                (1.0, -3.0, 1.3, -0.8), (1.0, 1.0, 2.0, 0.5)])
def test_hypergeometric_functions_by_their_parameters(a: float, b: float, c: float, z: float) -> None:
    found = bw.grad(lambda a, b, c: special.hyp2f1(a, b, c, z), (0, 1, 2))(a, b, c)
    expected = (mp.diff(lambda t: mp.hyp2f1(t, b, c, z), a), mp.diff(lambda t: mp.hyp2f1(a, t, c, z), b),
                mp.diff(lambda t: mp.hyp2f1(a, b, t, z), c))
    np.testing.assert_allclose(found, [float(one) for one in expected], rtol=1e-11)
    same = bw.grad(lambda a: special.hyp2f1(a, a, c, z))(a)                      # one value twice
    np.testing.assert_allclose(same, float(mp.diff(lambda t: mp.hyp2f1(t, t, c, z), a)), rtol=1e-9)


def test_where_the_series_is_too_long() -> None:
    assert np.isnan(bw.grad(lambda a: special.hyp2f1(a, 1.0, 1.5, 0.999))(0.5)) and np.isnan(bw.grad(lambda a: special.hyp1f1(a, 1.0, 300.0))(0.5))


def test_derivatives_where_gamma_is_infinite() -> None:
    np.testing.assert_allclose(bw.grad(special.poch)(-2.0, 5.0), 4.0, rtol=1e-8)
    np.testing.assert_allclose(bw.grad(special.poch)(0.0, 2.0), 1.0, rtol=1e-8)
    for n, k in ((5.0, 7.0), (2.0, 3.0), (-3.0, 2.0)):
        np.testing.assert_allclose(bw.grad(special.binom)(n, k), float(mp.diff(lambda t: mp.binomial(t, k), n)), rtol=1e-7)
    np.testing.assert_allclose(bw.grad(special.binom, 1)(5.0, 7.0), float(mp.diff(lambda t: mp.binomial(5, t), 7)), rtol=1e-7)


def test_shapes_at_the_ends() -> None:
    for point, expected in (((2.0, 0.0), 0.0), ((2.0, np.inf), 0.0), ((-1.0, 2.0), np.nan), ((2.0, np.nan), np.nan)):
        np.testing.assert_array_equal(slopes("gammainc", 0, *point), expected)
    for point, expected in (((2.0, 3.0, 0.0), 0.0), ((2.0, 3.0, 1.0), 0.0), ((0.0, 3.0, 0.5), np.nan), ((2.0, 3.0, 1.5), np.nan)):
        np.testing.assert_array_equal(slopes("betainc", 1, *point), expected)


LIMITS = [                     # function, point, argument, first and second derivative
    ("it2struve0", (0.0,), 0, -2 / np.pi, 0.0), ("it2struve0", (1e-300,), 0, -2 / np.pi, 0.0), ("berp", (0.0,), 0, 0.0, 0.0),
    ("beip", (-0.0,), 0, 0.5, 0.0), ("ber", (0.0,), 0, 0.0, 0.0), ("bei", (0.0,), 0, 0.0, 0.5),
    *[(name, (x, p), 1, np.log(2.5) ** 2 / 2, np.log(2.5) ** 3 / 3) for name, x in (("boxcox", 2.5), ("boxcox1p", 1.5)) for p in (0.0, 1e-300)],
    ("inv_boxcox", (1.5, 0.0), 1, -1.125 * np.exp(1.5), (1.125**2 + 2.25) * np.exp(1.5)), ("boxcox", (0.0, 2.0), 1, 0.25, -0.25),
    ("elliprc", (0.0, 2.0), 1, -np.pi / 8 / np.sqrt(2), 3 * np.pi / 32 / np.sqrt(2)), ("elliprc", (0.0, -2.0), 1, 0.0, 0.0),
    ("agm", (0.0, 2.0), 1, 0.0, 0.0), ("agm", (2.0, 0.0), 0, 0.0, 0.0), ("agm", (1.0, 1.0), 0, 0.5, -0.125),
    ("agm", (1e-300, 2.0), 0, 6.544330143654449e294, None), ("agm", (2.0, 0.0), 1, np.inf, None)]


@pytest.mark.parametrize(("name", "point", "argument", "first", "second"), LIMITS)
def test_derivatives_that_are_limits(name: str, point: tuple[float, ...], argument: int, first: float, second: float | None) -> None:
    slope = bw.grad(lambda *xs: getattr(special, name)(*xs), argument)
    np.testing.assert_allclose(slope(*point), first, rtol=1e-12)
    if second is not None:
        np.testing.assert_allclose(bw.grad(slope, argument)(*point), second, rtol=1e-12, atol=1e-290)


def test_derivatives_of_integrals_at_0() -> None:
    for name in ("it2j0y0", "it2i0k0"):
        slope = bw.grad(lambda x, name=name: getattr(special, name)(x)[0])
        assert (slope(0.0), bw.grad(slope)(0.0)) == (0.0, 0.25)


FAMILIES: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("chebyt", "chebyu", "chebyc", "chebys", "legendre", "laguerre", "sh_chebyt", "sh_chebyu", "sh_legendre"), ()),
    **dict.fromkeys(("gegenbauer", "genlaguerre"), (0.7,)), **dict.fromkeys(("jacobi", "sh_jacobi"), (2.3, 0.4))}


@pytest.mark.parametrize("name", FAMILIES)
def test_polynomials_of_any_degree(name: str) -> None:
    """Degrees that are no whole numbers, and negative ones, where SciPy has values."""
    function = ufunc(f"eval_{name}")
    degree, x = [a.ravel() for a in np.meshgrid([-3.0, -2.0, -1.0, -0.4, 0.2, 0.5, 0.9, 1.5, 7.3], [-0.7, 0.3, 0.8])]
    if "laguerre" in name:
        degree = np.abs(degree)
    at = lambda x: function(degree, *FAMILIES[name], x)
    with np.errstate(all="ignore"):
        differences = (at(x + 1e-5) - at(x - 1e-5)) / 2e-5
    known = np.isfinite(differences)
    found = bw.grad(lambda x: at(x).sum())(x)
    assert known.sum() >= 12
    np.testing.assert_allclose(found[known], differences[known], rtol=1e-5, atol=1e-7)


def test_principal_values_and_ratios_of_carlsons_integrals() -> None:
    for x, y in ((0.2, -7.3), (3.0, -0.4), (1.0, 2.0)):
        for operand in (0, 1):
            near = [(scipy.special.elliprc(x + h * (operand == 0), y + h * (operand == 1))) for h in (1e-6, -1e-6)]
            np.testing.assert_allclose(slopes("elliprc", operand, x, y), (near[0] - near[1]) / 2e-6, rtol=1e-7)
    with mp.workdps(30):
        expected = float(mp.diff(lambda z: mp.elliprd(7, 500, z), mp.mpf("1e-6"), h=mp.mpf(10) ** -15))
    np.testing.assert_allclose(slopes("elliprd", 2, 7.0, 500.0, 1e-6), expected, rtol=1e-9)


def test_results_that_are_not_used_do_not_spoil_the_derivatives_of_others() -> None:
    """Y₀ and Ai times exp(ξ) are nan for negative numbers."""
    np.testing.assert_allclose(bw.grad(lambda x: scipy.special.itj0y0(x)[0])(-2.0), scipy.special.j0(-2.0), rtol=1e-12)
    np.testing.assert_allclose(bw.grad(lambda x: scipy.special.airye(x)[2])(-2.0), scipy.special.airye(-2.0)[3], rtol=1e-12)
    curved = bw.grad(bw.grad(lambda x: scipy.special.itj0y0(x)[0]))(-2.0)
    np.testing.assert_allclose(curved, -scipy.special.j1(-2.0), rtol=1e-12)


def test_what_where_masks_has_no_derivative() -> None:
    def fun(x: Any) -> Any:
        return sum(np.where(x > 0, scipy.special.y0(x) + scipy.special.spence(x) + scipy.special.kv(1.0, x) + scipy.special.erfcinv(x), 0.0))
    x = np.array([-2.0, 0.5])
    slopes_, curved = bw.grad(fun)(x), bw.grad(lambda x: bw.grad(fun)(x).sum())(x)
    assert slopes_[0] == curved[0] == 0.0
    assert np.isfinite(slopes_[1])
    assert np.isfinite(curved[1])


def test_orders_for_which_gamma_is_negative() -> None:
    for name in ("struve", "modstruve"):
        value = lambda x, name=name: bw.grad(lambda x: ufunc(name)(-7.3, x))(x)
        np.testing.assert_allclose(bw.grad(value)(0.2), (value(0.20001) - value(0.19999)) / 2e-5, rtol=1e-5)


def test_every_derivative_is_tested() -> None:
    assert sorted(POINTS) == sorted(PARTIAL_DERIVATIVES)


@pytest.mark.parametrize("name", POINTS)
def test_derivatives(name: str) -> None:
    points, function = POINTS[name], ufunc(name)
    known = [k for k, rule in enumerate(PARTIAL_DERIVATIVES[name]) if rule is not None]

    def fun(*moving: Any) -> Any:
        operands = list(points)
        for k, one in zip(known, moving, strict=True):
            operands[k] = one
        return function(*operands)

    check_derivatives(fun, *[points[k] for k in known], order=1 if name in FIRST_ONLY else 2, tolerance=3e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_are_those_of_scipy() -> None:
    """One native program with all of them, in both precisions, on arrays that are not contiguous."""
    for dtype in (np.float64, np.float32):
        columns = [np.repeat(np.asarray(one, None if np.asarray(one).dtype.kind == "i" else dtype), 2)[::2]
                   for name in POINTS for one in POINTS[name]]

        def all_of_them(*columns: Any) -> Any:
            rest = iter(columns)
            return [ufunc(name)(*[next(rest) for _ in POINTS[name]]) for name in POINTS]

        for name, ours, theirs in zip(POINTS, bw.jit(all_of_them)(*columns), all_of_them(*columns), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0 if name != "betaln" else 1e-5, err_msg=name)       # which is a formula of ours
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype, name


def test_nothing_calls_python() -> None:
    def fun(x: Any) -> Any:
        return scipy.special.jv(1.5, x) + scipy.special.fresnel(x)[1]
    text = bw.jit(fun).explain(X)
    assert "SciPy's inner loop jv" in text and "callback" not in text


def test_functions_without_a_known_derivative_run() -> None:
    def fun(x: Any) -> Any:
        return scipy.special.voigt_profile(x, 1.0, 2.0) + scipy.special.kolmogorov(x) + scipy.special.besselpoly(x, 2.0, 3.0)
    np.testing.assert_allclose(bw.jit(fun)(X), fun(X), rtol=1e-15)
    with pytest.raises(GradientError, match=r"scipy.special.\w+ by its argument 0 is not known"):
        bw.grad(lambda x: fun(x).sum())(X)
    with pytest.raises(GradientError, match="known by argument 1 only"):
        bw.grad(lambda v: scipy.special.jv(v, 2.0).sum())(V)


def test_integer_orders_and_numbers() -> None:
    for fun in (lambda x: scipy.special.jn(2, x), lambda x: scipy.special.yn(np.arange(4), x), lambda x: scipy.special.expn(3, x),
                lambda x: scipy.special.kn(np.int32(1), x), lambda x: scipy.special.eval_legendre(3, x), lambda x: scipy.special.zeta(x + 1, 2.0)):
        np.testing.assert_allclose(bw.jit(fun)(X), fun(X), rtol=1e-14)
    assert bw.jit(lambda x: scipy.special.j0(x))(1.5) == scipy.special.j0(1.5)
    assert bw.jit(lambda x: scipy.special.j0(x))(np.zeros((2, 0))).shape == (2, 0)
    np.testing.assert_array_equal(bw.jit(lambda x: scipy.special.sici(x.T)[0])(X.reshape(2, 2)), scipy.special.sici(X.reshape(2, 2).T)[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint8", "int16", "bool", "int32"])
def test_dtypes_are_those_of_scipy(dtype: str) -> None:
    composed = {"hankel1", "hankel2", "kelvin", "wofz"}                   # of others, whose dtypes they have
    for name in sorted(set(dir(bw.scipy.special)) - composed):
        theirs = getattr(scipy.special, name, None)
        if not isinstance(theirs, np.ufunc):
            continue
        given = np.ones(1, dtype)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = theirs(*[given] * theirs.nin)
            except TypeError:
                continue
        function = getattr(bw.scipy.special, name)
        found = bw.eval_shape(lambda *xs, f=function: f(*xs), *[bw.ShapeDtypeStruct((1,), given.dtype)] * theirs.nin)
        pair = [[np.dtype(one.dtype) for one in (part if isinstance(part, tuple) else (part,))] for part in (found, expected)]
        assert pair[0] == pair[1], name


def test_fractions_of_orders_are_cut_off_without_a_warning() -> None:
    np.testing.assert_array_equal(bw.jit(lambda n, x: scipy.special.kn(n, x))(N + 0.5, X), scipy.special.kn(N.astype(int), X))
    np.testing.assert_array_equal(bw.jit(lambda p: scipy.special.bdtr(1, 3, p))(P), scipy.special.bdtr(1, 3, P))
    with pytest.raises(UnsupportedError, match="integers as its second argument"):
        bw.jit(lambda p: scipy.special.bdtr(1, 3.5, p))(P)


OF_INTEGERS = sorted([name for name in dir(scipy.special) if isinstance(getattr(scipy.special, name), np.ufunc)
                      and any(types.startswith("l") for types in getattr(scipy.special, name).types)])


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_degrees_that_are_integers(name: str) -> None:
    """SciPy has loops of their own for these, with other values at degrees below 0 and at the ends."""
    function = getattr(scipy.special, name)
    x = np.array([-1.0, -0.7, 0.0, 0.5, 1.0, 2.0, np.inf, np.nan])
    between = [2] * (function.nin - 2) if name.startswith("nb") else [0.5] * (function.nin - 2)
    for n in (np.arange(-3, 6)[:, None], 3, np.array([1, 4], np.uint8)[:, None]):
        for at in (x, x.astype(np.float32)):
            expected = function(n, *between, at)
            for found in (bw.jit(lambda n, x: function(n, *between, x))(n, at), bw.jit(lambda x, n=n: function(n, *between, x))(at)):
                np.testing.assert_allclose(found, expected, rtol=1e-14, strict=True)
    if name in bw.scipy.special.BY_LOOP and name not in ("smirnov", "smirnovi"):
        check_derivatives(lambda x: function(np.arange(5)[:, None], *between, x), P)


def test_keywords_of_ufuncs() -> None:
    def fun(x: Any) -> Any:
        y = np.zeros_like(x)
        scipy.special.j0(x, out=y, where=x > 1)
        return y
    np.testing.assert_array_equal(bw.jit(fun)(X), fun(X))


def test_the_namespace_finds_them() -> None:
    special = bw.scipy.special
    np.testing.assert_array_equal(special.jv(1.5, X), scipy.special.jv(1.5, X))
    np.testing.assert_array_equal(bw.jit(lambda x: special.sici(x)[1])(X), scipy.special.sici(X)[1])
    np.testing.assert_array_equal(special.voigt_profile(X, 1.0, 2.0), scipy.special.voigt_profile(X, 1.0, 2.0))
    for ours, theirs in zip(special.fresnel(X), scipy.special.fresnel(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert {"jv", "j0", "erf"} <= set(dir(special))
    with pytest.raises(AttributeError, match="nearest supported: gamma"):
        special.gama  # noqa: B018
    with pytest.raises(UnsupportedError, match="no loop for real numbers alone"):
        bw.jit(lambda x: scipy.special.modfresnelp(x))(X)
    np.testing.assert_array_equal(bw.jit(lambda x: scipy.special.wofz(x))(X), scipy.special.wofz(X))


def test_what_has_no_loop_is_no_attribute() -> None:
    """`hasattr` must not raise."""
    for name in ("modfresnelm", "nonsense"):
        assert not hasattr(bw.scipy.special, name)
    with pytest.raises(AttributeError, match="no loop for real numbers alone"):
        _ = bw.scipy.special.modfresnelm


def test_counting_functions() -> None:
    special, theirs = bw.scipy.special, scipy.special
    n, k = np.array([5.0, 3.5, 2.0, -1.0, 4.0, 0.0]), np.array([2.0, 1.0, 3.0, 1.0, -1.0, 0.0])
    np.testing.assert_allclose(special.comb(n, k), theirs.comb(n, k), rtol=1e-14)
    np.testing.assert_allclose(special.comb(n[:3], k[:3], repetition=True), theirs.comb(n[:3], k[:3], repetition=True), rtol=1e-14)
    np.testing.assert_allclose(special.factorial(n, exact=False), theirs.factorial(n, exact=False), rtol=1e-14)
    np.testing.assert_allclose(special.zeta(X + 1), theirs.zeta(X + 1), rtol=1e-15)
    np.testing.assert_allclose(special.zeta(X + 1, X), theirs.zeta(X + 1, X), rtol=1e-15)
    check_derivatives(lambda n, k: special.comb(n, k), n[:2], k[:2])
    check_derivatives(special.factorial, X)
    assert bw.jit(scipy.special.factorial)(np.ones(2, np.float32)).dtype == float
    with pytest.raises(UnsupportedError, match="exact"):
        special.comb(5.0, 2.0, exact=True)
    with pytest.raises(UnsupportedError, match="exact"):
        special.factorial(5.0, exact=True)


@pytest.mark.parametrize("p", [-0.4, -1.0, -20.0])
def test_principal_values_of_the_third_integral(p: float) -> None:
    """R_J for p < 0: its derivatives by differences of SciPy's."""
    place = np.array([0.3, 1.2, 2.0, p])
    check_derivatives(lambda x: scipy.special.elliprj(x[0], x[1], x[2], x[3]), place, tolerance=1e-5)
