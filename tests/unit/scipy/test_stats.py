"""`bw.scipy.stats` against SciPy: values inside, at the ends and outside of supports, wrong parameters, derivatives, promotion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import bwcompiler as bw
from bwcompiler.errors import ShapeError
from bwcompiler.frontend import trace
from bwcompiler.scipy.stats.continuous import log_one_minus_exp
from bwcompiler.scipy.stats.distributions import Continuous, Discrete
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

stats = bw.scipy.stats
NAMES = [name for name in stats.__all__ if isinstance(getattr(stats, name), Continuous | Discrete)]
SHAPES: dict[str, tuple[float, ...]] = {
    "t": (3.3,), "gamma": (2.2,), "invgamma": (2.2,), "beta": (2.1, 1.3), "chi2": (3.1,), "f": (3.0, 5.0), "lognorm": (0.7,), "pareto": (2.5,),
    "weibull_min": (1.7,), "gennorm": (1.5,), "vonmises": (1.2,), "truncnorm": (-1.0, 2.0), "bernoulli": (0.3,), "binom": (5, 0.3),
    "poisson": (2.5,), "geom": (0.3,), "nbinom": (4, 0.3), "betabinom": (5, 1.2, 2.3),
    "chi": (2.5,), "nakagami": (1.3,), "erlang": (2.0,), "betaprime": (2.1, 1.3), "rice": (0.8,), "invgauss": (0.7,), "gompertz": (0.6,),
    "exponweib": (1.8, 1.3), "genpareto": (0.4,), "lomax": (1.7,), "fisk": (2.2,), "burr12": (1.7, 2.1), "invweibull": (1.9,),
    "loguniform": (0.2, 4.0), "reciprocal": (0.2, 4.0), "powerlaw": (1.7,), "truncexpon": (2.5,), "triang": (0.4,), "johnsonsb": (0.3, 1.4),
    "genextreme": (-0.3,), "weibull_max": (1.6,), "loggamma": (1.4,), "skewnorm": (1.7,), "exponnorm": (0.9,), "johnsonsu": (0.3, 1.4),
    "genlogistic": (1.6,), "hypergeom": (9, 4, 5), "randint": (-1, 4), "zipf": (2.3,), "logser": (0.4,), "planck": (0.6,), "dlaplace": (0.7,),
    "foldnorm": (0.8,), "foldcauchy": (0.8,), "fatiguelife": (0.7,), "recipinvgauss": (0.7,), "alpha": (1.3,), "powerlognorm": (1.6, 0.7),
    "gengamma": (1.7, 1.3), "halfgennorm": (1.6,), "exponpow": (1.4,), "genhalflogistic": (0.3,), "loglaplace": (1.8,), "burr": (1.7, 2.1),
    "mielke": (1.7, 2.1), "kappa3": (1.8,), "truncpareto": (1.4, 5.0), "truncweibull_min": (1.4, 0.3, 4.0), "dgamma": (1.7,), "dweibull": (1.7,),
    "laplace_asymmetric": (1.4,), "skewcauchy": (0.3,), "powernorm": (1.6,), "norminvgauss": (1.4, 0.5), "crystalball": (1.2, 2.5),
    "yulesimon": (1.6,), "betanbinom": (3, 1.7, 2.2), "skellam": (1.3, 2.1),
    "wrapcauchy": (0.4,), "bradford": (1.6,), "rdist": (3.3,), "argus": (1.4,)}
X = np.array([-3.0, -1, -0.5, 0, 0.3, 0.5, 0.9, 1, 1.5, 2, 3, 5, 6, 50, np.nan, np.inf, -np.inf])
Q = np.array([0, 0.1, 0.5, 0.77, 1, -0.1, 1.1, np.nan])
INSIDE = {"beta": np.array([0.2, 0.5, 0.9]), "pareto": np.array([1.3, 2.2, 4.0]), "uniform": np.array([0.2, 0.5, 0.9]), "truncnorm": np.array([-0.7, 0.3, 1.8]),
          **{name: np.array([0.2, 0.5, 0.9]) for name in ("powerlaw", "triang", "arcsine", "johnsonsb")}, "semicircular": np.array([-0.5, 0.1, 0.7]),
          "truncexpon": np.array([0.2, 0.9, 1.7]), "weibull_max": np.array([-2.0, -1.1, -0.3]), "loguniform": np.array([0.4, 1.1, 2.9]),
          "reciprocal": np.array([0.4, 1.1, 2.9]), "anglit": np.array([-0.5, 0.1, 0.6]), "rdist": np.array([-0.5, 0.1, 0.7]),
          **{name: np.array([0.2, 0.5, 0.9]) for name in ("bradford", "argus")}, "cosine": np.array([-2.5, 0.1, 1.7]),
          "truncpareto": np.array([1.3, 2.2, 4.0]), "genhalflogistic": np.array([0.4, 1.7, 2.6])}
AWAY = {(name, method) for name in ("dlaplace", "gompertz", "planck", "rice", "exponnorm", "exponpow", "foldnorm", "mielke", "recipinvgauss",
                                    "crystalball")                              # where SciPy's far away are 0 or nan, or have no digits
        for method in ("pdf", "logpdf", "logcdf", "logsf")}
WHOLE = np.array([1.0, 1.0, 1.0])                # of which a derivative by k is not asked


def arguments(method: str) -> tuple[Any, ...]:
    if method in ("entropy", "mean", "var", "std"):
        return ()
    return (Q,) if method in ("ppf", "isf") else (X,)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str) -> None:
    ours, theirs, shapes = getattr(stats, name), getattr(scipy.stats, name), SHAPES.get(name, ())
    for options in ({}, {"loc": 0.5, "scale": 2.0}) if isinstance(ours, Continuous) else ({}, {"loc": 1}):
        for method in ours._methods():
            args = arguments(method)
            with np.errstate(all="ignore"):
                expected = getattr(theirs, method)(*args, *shapes, **options)
                found = run_traced(lambda *args, m=method, o=options: getattr(ours, m)(*args, *shapes, **o), *args)[0]
            if (name, method) in AWAY:
                near = np.abs(X) < (4 if name in ("exponpow", "crystalball") else 10)
                expected, found = expected[near], found[near]
            logarithm = method in ("logcdf", "logsf")                           # of which SciPy may have few digits near 0
            np.testing.assert_allclose(found, expected, rtol=1e-8 if logarithm else 1e-11, atol=1e-40 if logarithm else 1e-15, err_msg=f"{method} {options}")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("hypergeom", "randint")])         # of whole numbers only
def test_derivatives(name: str) -> None:
    distribution, shapes = getattr(stats, name), SHAPES.get(name, ())
    continuous = isinstance(distribution, Continuous)
    x = INSIDE.get(name, np.array([0.4, 1.7, 3.2])) if continuous else WHOLE
    parameters = [np.full(3, shape) + np.arange(3) / 30 for shape in shapes]
    counts = {"binom": 1, "betabinom": 1, "betanbinom": 1}.get(name, 0)                      # the number of trials is a whole number
    fixed = [np.full(3, float(shape)) for shape in shapes[:counts]]
    log_density = distribution.logpdf if continuous else distribution.logpmf
    ends = [np.array([0.05]), np.array([1.1])] if continuous else []
    moving = [*([x] if continuous else []), *parameters[counts:], *ends]

    def density(*args: Any) -> Any:
        return log_density(*args[:continuous], *([] if continuous else [x]), *fixed, *args[continuous:])
    check_derivatives(density, *moving, tolerance=3e-6)
    for method in ("cdf", "sf", "logsf", "ppf"):
        if hasattr(distribution, method) and continuous:
            at = np.array([0.2, 0.45, 0.9]) if method == "ppf" else x
            check_derivatives(lambda x, loc, scale, m=method: getattr(distribution, m)(x, *shapes, loc, scale), at, *ends, order=1, tolerance=3e-6)


@pytest.mark.parametrize("name", ["gamma", "beta", "truncnorm", "uniform", "poisson", "binom"])
def test_outside_of_the_support_nothing_depends_on_anything(name: str) -> None:
    distribution, shapes = getattr(stats, name), SHAPES.get(name, ())
    method = "pdf" if isinstance(distribution, Continuous) else "pmf"
    x = np.array([-7.0, 70.0 if name != "poisson" and name != "gamma" else -9.5])
    gradients = run_traced(lambda *args: bw.grad(lambda *args: getattr(distribution, method)(*args).sum(), argnums=tuple(range(len(args))))(*args),
                           x, *[float(one) for one in shapes])[0]
    for gradient in gradients:
        np.testing.assert_array_equal(gradient, np.zeros_like(gradient))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_parameters_give_nan() -> None:
    for call in (lambda x: stats.norm.pdf(x, 0.0, -1.0), lambda x: stats.gamma.cdf(x, -1.0), lambda x: stats.beta.logpdf(x, 0.5, 0.0),
                 lambda x: stats.poisson.pmf(x, -1.0), lambda x: stats.binom.cdf(x, 2.5, 0.5), lambda x: stats.geom.pmf(x, 0.0),
                 lambda x: stats.norm.ppf(x, 0.0, -1.0), lambda x: stats.truncnorm.pdf(x, 2.0, 1.0)):
        assert np.isnan(run_traced(call, np.array([0.5, 1.0]))[0]).all()


def test_parameters_broadcast_and_promote() -> None:
    x, loc, scale = np.ones((4, 1)), np.zeros(3), np.full((2, 1, 1), 2.0)
    found = run_traced(lambda x, loc, scale: stats.norm.logpdf(x, loc, scale), x, loc, scale)[0]
    np.testing.assert_allclose(found, scipy.stats.norm.logpdf(x, loc, scale), rtol=1e-13)
    for dtype in ("float32", "float64", "int64"):
        kind = trace(lambda x: stats.gamma.cdf(x, 2.0, scale=3), (np.ones(2, dtype),)).outputs[0].dtype.numpy
        assert kind == (np.float32 if dtype == "float32" else np.float64)
    assert stats.norm.pdf(0.0, loc=0.0, scale=1.0) == pytest.approx(scipy.stats.norm.pdf(0.0), rel=1e-15)
    with pytest.raises(AttributeError, match="gamma has no rvs; it has pdf, logpdf, cdf"):
        stats.gamma.rvs(2.0)


def test_distributions_with_parameters() -> None:
    """As in norm(loc, scale).logpdf(x): ours, and SciPy's own in compiled functions."""
    x, mean = np.array([0.3, 0.9, 2.0]), np.array([0.1, 0.2])

    def total(norm: Any, gamma: Any, binom: Any, vectors: Any, x: Any) -> Any:
        return (norm(x[0], scale=x[1]).logpdf(x).sum() + gamma(x[1], scale=2.0).cdf(x).sum() + gamma(a=2.0).sf(x[0]) + norm(0.5).mean() * x[0]
                + binom(3, x[0]).pmf(np.array([1, 2])).sum() + vectors(mean, np.eye(2)).logpdf(x[:2]) + vectors(x[:2], 2.0).pdf(mean)
                + gamma(x[2]).interval(0.9)[1] + gamma(x[2]).median() + norm(x[0], x[1]).std())

    theirs = lambda x: total(scipy.stats.norm, scipy.stats.gamma, scipy.stats.binom, scipy.stats.multivariate_normal, x)
    ours = lambda x: total(stats.norm, stats.gamma, stats.binom, stats.multivariate_normal, x)
    for fun in (theirs, ours):
        assert bw.jit(fun)(x) == pytest.approx(theirs(x), rel=1e-12)
    check_derivatives(ours, x, tolerance=1e-5)
    known = scipy.stats.norm(0.5, 2.0)
    np.testing.assert_allclose(bw.jit(lambda x: known.cdf(x))(x), known.cdf(x), rtol=1e-14)
    frozen = scipy.stats.multivariate_normal(np.zeros(3), np.eye(3))
    np.testing.assert_allclose(bw.jit(lambda x: frozen.logpdf(x))(x), frozen.logpdf(x), rtol=1e-14)
    np.testing.assert_allclose(stats.gamma.stats(2.0, scale=3.0), scipy.stats.gamma.stats(2.0, scale=3.0))
    np.testing.assert_allclose(stats.norm.nnlf((0.5, 2.0), x), scipy.stats.norm.nnlf((0.5, 2.0), x), rtol=1e-14)


@pytest.mark.parametrize("name", ["genpareto", "genextreme"])
def test_shapes_around_zero(name: str) -> None:
    """Where the formula is a limit: values and derivatives by the shape, against those of shapes nearby."""
    ours, theirs, x = getattr(stats, name), getattr(scipy.stats, name), np.array([0.1, 0.8, 2.0])
    for c in (0.0, 1e-12, -1e-7, 1e-4, -0.3):
        for method in ("logpdf", "cdf", "sf", "logsf", "ppf"):
            at = x / 3 if method == "ppf" else x
            found = run_traced(lambda x, c, m=method: getattr(ours, m)(x, c), at, c)[0]
            np.testing.assert_allclose(found, getattr(theirs, method)(at, c), rtol=1e-9)
        slope = run_traced(bw.jacobian(lambda c: ours.logpdf(x, c)), c)[0]
        h = 1e-3
        ends = [theirs.logpdf(x, c + k * h) for k in (-2, -1, 1, 2)]
        np.testing.assert_allclose(slope, (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["logistic", "hypsecant", "genlogistic", "laplace"])
def test_densities_are_smooth_in_the_middle(name: str) -> None:
    """Formulas of |x|: the slope of a distribution function, and the curvature of a density, at 0."""
    shapes = (1.4,) if name == "genlogistic" else ()
    ours, theirs, h = getattr(stats, name), getattr(scipy.stats, name), 1e-4
    slopes = [bw.grad(lambda x, m=m: getattr(ours, m)(x, *shapes))(0.0) for m in ("cdf", "sf")]
    np.testing.assert_allclose(slopes, theirs.pdf(0.0, *shapes) * np.array([1.0, -1.0]), rtol=1e-12)
    if name != "laplace":
        curved = bw.hessian(lambda x: ours.logpdf(x, *shapes))(0.0)
        low, middle, high = theirs.logpdf(np.array([-h, 0.0, h]), *shapes)
        np.testing.assert_allclose(curved, (low - 2 * middle + high) / h**2, rtol=1e-6)


def test_vectors_of_student() -> None:
    for x, loc, shape in ((POINTS, MEAN, COV), (POINTS[0], MEAN, COV), (POINTS, np.zeros(3), np.diag([1.0, 2.0, 3.0])), (POINTS[:, 0], None, 2.0)):
        found = run_traced(lambda x, loc=loc, shape=shape: stats.multivariate_t.logpdf(x, loc, shape, 3.5), x)[0]
        np.testing.assert_allclose(found, scipy.stats.multivariate_t.logpdf(x, loc, shape, 3.5), rtol=1e-11)
    check_derivatives(lambda x, loc, a, df: stats.multivariate_t.pdf(x, loc, a @ a.T + np.eye(3), df), POINTS, MEAN, A, 3.5)


def test_log_one_minus_exp_keeps_the_digits() -> None:
    x = np.array([-1e-20, -1e-5, -0.5, -0.7, -40.0])
    found = run_traced(log_one_minus_exp, x)[0]
    expected = [np.log(1e-20), np.log(-np.expm1(-1e-5)), np.log(-np.expm1(-0.5)), np.log1p(-np.exp(-0.7)), np.log1p(-np.exp(-40.0))]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


# ----- multivariate
rng = np.random.default_rng(4)
A = rng.normal(size=(3, 3))
COV, MEAN, POINTS = A @ A.T + np.eye(3), rng.normal(size=3), rng.normal(size=(5, 3))


def test_normal_vectors() -> None:
    ours, theirs = stats.multivariate_normal, scipy.stats.multivariate_normal
    for x, mean, cov in ((POINTS, MEAN, COV), (POINTS[0], MEAN, COV), (POINTS, np.zeros(3), np.array([1.0, 2.0, 3.0])), (POINTS, MEAN, 2.0),
                         (POINTS[:, 0], None, 2.0), (POINTS.reshape(5, 1, 3), MEAN, COV)):
        found = run_traced(lambda x, mean=mean, cov=cov: ours.logpdf(x, mean, cov), x)[0]
        np.testing.assert_allclose(found, theirs.logpdf(x, mean, cov), rtol=1e-12)
    np.testing.assert_allclose(run_traced(ours.entropy, MEAN, COV)[0], theirs.entropy(MEAN, COV), rtol=1e-12)
    check_derivatives(lambda x, mean, a: ours.pdf(x, mean, a @ a.T + np.eye(3)), POINTS, MEAN, A)
    check_derivatives(lambda x, mean, a: ours.logpdf(x, mean, a @ a.T + np.eye(3)), POINTS, MEAN, A)
    check_derivatives(lambda a: ours.entropy(None, a @ a.T + np.eye(3)), A)
    with pytest.raises(ShapeError, match="must end in the order 3"):
        ours.logpdf(POINTS[:, :2], None, COV)


def test_normal_vectors_without_a_density() -> None:
    cov = np.diag([1.0, 2.0, 0.0])
    x = POINTS * [1, 1, 0]
    found = run_traced(lambda x: stats.multivariate_normal.logpdf(x, np.zeros(3), cov, allow_singular=True), x)[0]
    np.testing.assert_allclose(found, scipy.stats.multivariate_normal.logpdf(x, np.zeros(3), cov, allow_singular=True), rtol=1e-12)
    check_derivatives(lambda y: stats.multivariate_normal.pdf(np.concatenate([y, np.zeros(1)]), np.zeros(3), cov, allow_singular=True), POINTS[0, :2])


def test_dirichlet_and_multinomial() -> None:
    alpha, x = np.array([1.3, 2.0, 4.1]), np.array([0.2, 0.5, 0.3])
    for method, args in (("logpdf", (x, alpha)), ("pdf", (x[:2], alpha)), ("logpdf", (np.stack([x, x[::-1]], 1), alpha)), ("mean", (alpha,)),
                         ("var", (alpha,)), ("entropy", (alpha,))):
        found = run_traced(getattr(stats.dirichlet, method), *args)[0]
        np.testing.assert_allclose(found, getattr(scipy.stats.dirichlet, method)(*args), rtol=1e-12)
    check_derivatives(stats.dirichlet.pdf, x[:2], alpha)
    check_derivatives(lambda x, a: stats.dirichlet.logpdf(x / x.sum(), a), x, alpha)
    counts = np.array([[1, 2, 3], [0, 0, 6], [6, 1, 0], [1, 1, 1]])
    found = run_traced(lambda c, p: stats.multinomial.logpmf(c, 6, p), counts, x)[0]
    np.testing.assert_allclose(found, scipy.stats.multinomial.logpmf(counts, 6, x), rtol=1e-12)
    check_derivatives(lambda p: stats.multinomial.pmf(counts[:2], 6, p), x)


@pytest.mark.parametrize(("d", "keywords"), [(1, {}), (2, {"bw_method": "silverman"}), (2, {"weights": rng.random(9)}), (1, {"bw_method": 0.4}),
                                             (1, {"bw_method": lambda k: 0.3 + 0.0 * k.neff})])
def test_densities_of_samples(d: int, keywords: dict[str, Any], rng: np.random.Generator) -> None:
    samples = rng.normal(size=(d, 9)) if d > 1 else rng.normal(size=9)
    points, theirs, ours = rng.normal(size=(d, 4)), scipy.stats.gaussian_kde(samples, **keywords), stats.gaussian_kde(samples, **keywords)
    for found in (bw.jit(lambda s, p: stats.gaussian_kde(s, **keywords)(p))(samples, points), ours.pdf(points), bw.jit(lambda p: theirs(p))(points)):
        np.testing.assert_allclose(found, theirs(points), rtol=1e-10)
    np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points), rtol=1e-10)
    np.testing.assert_allclose(ours.integrate_gaussian(np.zeros(d), np.eye(d)), theirs.integrate_gaussian(np.zeros(d), np.eye(d)), rtol=1e-10)
    np.testing.assert_allclose(ours.integrate_kde(theirs), theirs.integrate_kde(theirs), rtol=1e-10)
    if d == 1:
        np.testing.assert_allclose(bw.jit(lambda a: ours.integrate_box_1d(a, 1.0))(-0.3), theirs.integrate_box_1d(-0.3, 1.0), rtol=1e-10)
    else:
        np.testing.assert_allclose(ours([0.1, 0.2]), theirs([0.1, 0.2]), rtol=1e-10)


def test_derivatives_of_densities_of_samples(rng: np.random.Generator) -> None:
    fun = lambda s, p, w, h: stats.gaussian_kde(s, h, w).logpdf(p)
    bw.check_grads(fun, (rng.normal(size=(2, 7)), rng.normal(size=(2, 3)), rng.random(7), 0.5), order=1)
    for given, keywords in (([1.0], {}), (np.ones((3, 2)), {}), (np.ones(4), {"weights": np.ones(3)}), (np.arange(4.0), {"bw_method": "other"})):
        with pytest.raises(ValueError):
            stats.gaussian_kde(given, **keywords)


def test_densities_far_out() -> None:
    y = np.array([1e300, -1e200, 1e11, 1e9, 3.0, 1e-9])
    np.testing.assert_allclose(bw.jit(lambda y: scipy.stats.cauchy.logpdf(y))(y), scipy.stats.cauchy.logpdf(y), rtol=1e-14)
    np.testing.assert_allclose(bw.grad(lambda y: np.sum(scipy.stats.cauchy.logpdf(y)))(y), -2 / (1 / y + y), rtol=1e-12)


@pytest.mark.parametrize(("name", "shapes"), [("burr", (2.0, 1.5)), ("fisk", (2.2,))])
def test_densities_of_positive_numbers_far_out(name: str, shapes: tuple[float, ...]) -> None:
    y = np.array([1e300, 1e200, 1e11, 3.0, 0.2, 1e-9])
    np.testing.assert_allclose(bw.jit(lambda y: getattr(stats, name).logpdf(y, *shapes))(y), getattr(scipy.stats, name).logpdf(y, *shapes), rtol=1e-12)


@pytest.mark.parametrize("c", [-0.2, 0.5, 1.0, 2.0])
def test_densities_at_the_end_of_the_support(c: float) -> None:
    y = np.array([1.0 / c, 0.0, 0.3])
    np.testing.assert_allclose(bw.jit(lambda y: scipy.stats.genextreme.logpdf(y, c))(y), scipy.stats.genextreme.logpdf(y, c), rtol=1e-13)


@pytest.mark.parametrize("name", ["t", "pareto", "lomax", "invgamma", "f", "weibull_min", "weibull_max", "gennorm"])
def test_moments_that_need_not_exist(name: str) -> None:
    ours, shape = getattr(stats, name), np.array([0.6, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0])
    shapes = (np.float64(2.5), shape) if name == "f" else (shape,)
    for method in ("mean", "var", "std"):
        np.testing.assert_allclose(bw.jit(lambda *shapes, m=method: getattr(ours, m)(*shapes, loc=0.5, scale=2.0))(*shapes),
                                   getattr(getattr(scipy.stats, name), method)(*shapes, loc=0.5, scale=2.0), rtol=1e-11)
    check_derivatives(lambda *shapes: ours.var(*shapes), *shapes[:-1], shape[-2:])


def test_tails_of_the_cosine_distribution() -> None:
    ends = np.array([-np.pi, -np.pi + 1e-9, -np.pi + 1e-3, -np.pi + 0.499, -np.pi + 0.501, -1e-9, 0.0, 1.0, 3.0, np.pi])
    tails = np.array([0.0, 2.6525823848649222e-29, 2.652582252194e-11])                     # t³ / 12 π (1 - t² / 20)
    cosine = bw.scipy.stats.cosine
    for found in (cosine.cdf(ends), cosine.sf(-ends)):
        np.testing.assert_allclose(found, scipy.stats.cosine.cdf(ends), rtol=1e-6)
        np.testing.assert_allclose(found[:3], tails, rtol=3e-7)
    assert cosine.logcdf(-np.pi) == cosine.logsf(np.pi) == -np.inf
    check_derivatives(cosine.logcdf, ends[3:-1], order=2)


# ----- matrices
def matrices(m: Any, s: Any, x: Any) -> tuple[Any, ...]:
    both = np.stack([s, x], -1)
    return (m.wishart.logpdf(x, 5, s), m.wishart.pdf(both, 4.5, s), m.wishart(5, s).logpdf(x), m.invwishart.logpdf(x, 5, s),
            m.invwishart.logpdf(both, 3.5, s), m.invwishart.pdf(x, 4, s), m.wishart.logpdf(np.array([2.0, 3.0]), 3, s[:1, :1]),
            m.wishart.logpdf(2.0, 3.5, 1.5) * s[0, 0], m.matrix_normal.logpdf(x[:2], s[:2], x[:2, :2], s),
            m.matrix_normal.logpdf(np.stack([x[:2], s[:2]]), None, 2.0 * np.eye(2), s), m.matrix_normal.pdf(x[:2], s[1:], 0.7, 2.0),
            m.dirichlet_multinomial.logpmf(np.array([[1, 2, 1], [4, 0, 0]]), np.diagonal(s), 4),
            m.dirichlet_multinomial.pmf(np.array([1, 2, 0]), np.diagonal(x), 3))


def test_distributions_of_matrices() -> None:
    point = COV.T @ COV / 7 + np.eye(3)
    expected = matrices(scipy.stats, COV, point)
    for module in (stats, scipy.stats):
        found = bw.jit(lambda s, x, m=module: matrices(m, s, x))(COV, point)
        for one, other in zip(found, expected, strict=True):
            assert np.shape(one) == np.shape(other)
            np.testing.assert_allclose(one, other, rtol=1e-11)
    for which in range(len(expected)):
        check_derivatives(lambda a, b, which=which: matrices(stats, a @ a.T + np.eye(3), b @ b.T + np.eye(3))[which], A, A[::-1] / 2)
    for one, other in zip(matrices(stats, COV, point), expected, strict=True):                # on plain arrays
        np.testing.assert_allclose(one, other, rtol=1e-11)
    known = scipy.stats.invwishart(5, COV)
    np.testing.assert_allclose(bw.jit(lambda x: known.logpdf(x))(point), known.logpdf(point), rtol=1e-11)
    assert np.isnan(bw.jit(lambda df: scipy.stats.wishart.logpdf(COV, df, COV))(1.5))
    with pytest.raises(ShapeError, match="do not fit"):
        stats.wishart.logpdf(np.eye(2), 4, COV)
    with pytest.raises(ShapeError, match="rows and columns"):
        stats.matrix_normal.logpdf(np.ones(3))


def test_distribution_functions_with_two_derivatives() -> None:
    x, shape = np.array([0.4, 1.1, 2.9]), np.array([0.8, 1.7, 0.3])
    for name in ("rice", "exponnorm"):
        for method in ("cdf", "sf", "logcdf"):
            check_derivatives(lambda x, b, n=name, m=method: getattr(getattr(stats, n), m)(x, b), x, shape)
