"""Statistics of samples, correlations and tests of `bw.scipy.stats` against SciPy, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import bwcompiler as bw
from bwcompiler import tree
from bwcompiler.errors import UnsupportedError
from tests.support.derivatives import check_derivatives
from tests.unit.frontend.comparing import run_traced

rng = np.random.default_rng(8)
X, Y, P = rng.standard_normal(9), rng.standard_normal(9), rng.uniform(0.2, 3.0, 9)
XX, PP = rng.standard_normal((3, 4, 5)), rng.uniform(0.2, 3.0, (3, 4, 5))
TIES = np.array([1.0, 2.0, 2.0, 0.5, 2.0, 1.0])
AXES: dict[str, tuple[dict[str, Any], ...]] = {"axes": ({}, {"axis": -1}, {"axis": None}, {"axis": (0, 2)}, {"axis": 1, "keepdims": True})}


def over(*options: dict[str, Any]) -> Callable[[str], Callable[..., Any]]:
    """The function of a name, with each of the options."""
    return lambda name: lambda s, *args: [getattr(s, name)(*args, **one) for one in options]


AXIS = over(*AXES["axes"])
ONE = over({}, {"axis": 1}, {"axis": None})
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{name: (AXIS(name), (PP,)) for name in ("gmean", "hmean", "skew", "kurtosis", "variation", "sem", "iqr", "median_abs_deviation", "gstd",
                                              "circmean", "circvar", "circstd", "entropy", "moment")},
    **{name: (ONE(name), (PP,)) for name in ("zscore", "gzscore")},
    "pmean": (lambda s, x: [s.pmean(x, p, axis=a) for p in (-1.5, 0, 2) for a in (0, None)], (PP,)),
    "means with weights": (lambda s, x, w: (s.gmean(x, weights=w), s.hmean(x, 1, weights=w), s.pmean(x, 2, weights=w)), (PP, PP[::-1])),
    "trim_mean": (lambda s, x: (s.trim_mean(x, 0.2, 2), s.trim_mean(x[:, 0, 0], 0.1), s.trim_mean(x, 0.3, None)), (XX,)),
    "moments": (lambda s, x: (s.moment(x, 3), s.moment(x, 0, -1), s.moment(x, 1), s.moment(x, [1, 2, 3], 1), s.moment(x, 2, center=0.5)), (XX,)),
    "of populations": (lambda s, x: (s.skew(x, 2, bias=False), s.kurtosis(x, 2, bias=False), s.kurtosis(x, 2, fisher=False)), (XX,)),
    "describe": (lambda s, x: (tuple(s.describe(x))[1:], s.describe(x, None, 0, False).variance), (XX,)),
    "zmap": (lambda s, x, y: (s.zmap(x, y), s.zmap(x, y, ddof=1), s.zscore(x, ddof=1)), (X, Y)),
    "spreads": (lambda s, x: (s.iqr(x, 0, (10, 70), "normal"), s.iqr(x, interpolation="midpoint"), s.median_abs_deviation(x, 1, scale="normal"),
                              s.median_abs_deviation(x, None, np.mean)), (XX,)),
    "circle": (lambda s, x: (s.circmean(x, 1.0, -1.0), s.circstd(x, 1.0, -1.0, axis=0), s.circstd(x, normalize=True), s.circvar(x, 2, 1, 0)), (XX / 4,)),
    "relative entropy": (lambda s, p, q: (s.entropy(p, q), s.entropy(p, q[:, :1], 2.0, 0), s.entropy(p, base=10)), (PP, PP[::-1])),
    "boxcox": (lambda s, x, p: (s.boxcox(x, 0.3), s.boxcox(x, 0.0), s.boxcox_llf(p, x), s.yeojohnson_llf(p, x - 1), s.boxcox_llf(0.0, x[:, None])),
               (P, 0.7)),
    "yeojohnson": (lambda s, x: [s.yeojohnson(x, p) for p in (-0.5, 0.0, 0.7, 2.0, 2.5)], (X,)),
    "rankdata": (lambda s, x, t: [s.rankdata(x, axis=1)] + [s.rankdata(t, m) for m in ("average", "min", "max", "dense", "ordinal")], (XX, TIES)),
    "wasserstein_distance": (lambda s, x, y, p: (s.wasserstein_distance(x, y[:5]), s.wasserstein_distance(x, y, p, p[::-1])), (X, Y, P)),
    "energy_distance": (lambda s, x, y, p: (s.energy_distance(x, y[:5]), s.energy_distance(x, y, v_weights=p)), (X, Y, P)),
    "pearsonr": (lambda s, x, y: [tuple(s.pearsonr(x, y, alternative=a)) for a in ("two-sided", "less", "greater")], (X, Y)),
    "pearsonr of rows": (lambda s, x, y: [tuple(s.pearsonr(x, y, axis=a)) for a in (0, -1, None)] + [tuple(s.pearsonr(x[:2, 0, 0], y[:2, 0, 0]))],
                         (XX, PP)),
    "spearmanr": (lambda s, x, y: [tuple(s.spearmanr(x, y, alternative=a)) for a in ("two-sided", "less")], (X, np.round(Y))),
    "linregress": (lambda s, x, y: [(*s.linregress(x, y, a), s.linregress(x, y, a).intercept_stderr) for a in ("two-sided", "less", "greater")], (X, Y)),
    "linregress of two": (lambda s, x, y: tuple(s.linregress(x[:2], y[:2])), (X, Y)),
    "ttest_1samp": (lambda s, x: [tuple(r) + (r.df,) for r in (s.ttest_1samp(x, 0.3), s.ttest_1samp(x, 0.0, 1, alternative="less"),
                                                               s.ttest_1samp(x, 0.0, None, alternative="greater"))], (XX,)),
    "ttest_rel": (lambda s, x, y: [tuple(r) + (r.df,) for r in (s.ttest_rel(x, y), s.ttest_rel(x, y, 2, keepdims=True))], (XX, PP)),
    "ttest_ind": (lambda s, x, y: [tuple(r) + (r.df,) for r in (s.ttest_ind(x, y), s.ttest_ind(x, y[:6], equal_var=False),
                                                                s.ttest_ind(x, y, alternative="greater"))], (X, Y)),
    "f_oneway": (lambda s, x, y: (tuple(s.f_oneway(x, y[:6], x + y)), tuple(s.f_oneway(x.reshape(3, 3), y.reshape(3, 3), axis=1))), (X, Y)),
    "normality": (lambda s, x, y: [tuple(r) for r in (
        s.skewtest(x), s.skewtest(y, 1, alternative="less"), s.kurtosistest(x, alternative="greater"), s.kurtosistest(y), s.normaltest(x),
        s.normaltest(y, axis=None), s.jarque_bera(x), s.jarque_bera(x, axis=0, keepdims=True))], (rng.normal(size=(9, 2)), rng.normal(size=(5, 9)))),
    "chisquare": (lambda s, p, q: (tuple(s.chisquare(p)), tuple(s.chisquare(p, q * p.sum() / q.sum(), 1)), tuple(s.chisquare(p, ddof=[0, 1])),
                                          tuple(s.chisquare(p, np.stack([q, np.roll(q, 1)]) * (p.sum() / q.sum()), axis=1))), (P, P[::-1])),
    "power_divergence": (lambda s, p: [tuple(s.power_divergence(p, lambda_=name)) for name in (
        None, "log-likelihood", "freeman-tukey", "mod-log-likelihood", "neyman", "cressie-read", 2.0)], (P,)),
}
STEPS = ("rankdata", "spearmanr")                          # whose derivatives are 0


@pytest.mark.parametrize("name", CASES)
def test_as_scipy(name: str) -> None:
    fun, args = CASES[name]
    with np.errstate(all="ignore"):
        expected, found = fun(scipy.stats, *args), run_traced(lambda *args: fun(bw.scipy.stats, *args), *args)[0]
    for one, other in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in CASES if name not in STEPS])
def test_derivatives(name: str) -> None:
    fun, args = CASES[name]
    check_derivatives(lambda *args: [one for one in tree.leaves(fun(bw.scipy.stats, *args)) if hasattr(one, "ndim")], *args, tolerance=3e-6)


@pytest.mark.parametrize("name", STEPS)
def test_ranks_have_no_derivative(name: str) -> None:
    fun, args = CASES[name]
    found = run_traced(bw.grad(lambda *args: sum(leaf.sum() for leaf in tree.leaves(fun(bw.scipy.stats, *args)))), *args)[0]
    np.testing.assert_array_equal(found, np.zeros_like(found))


def test_samples_of_one_number() -> None:
    """Where all are equal there is no spread: nan, as in SciPy."""
    flat = np.full((4, 2), 0.1)
    flat[:, 1] = [1.0, 2.0, 3.0, 5.0]
    for fun in (lambda s, x: s.zscore(x), lambda s, x: s.skew(x), lambda s, x: s.kurtosis(x), lambda s, x: s.pearsonr(x[:, 0], x[:, 1])[0]):
        with np.errstate(all="ignore"), pytest.warns() as _:
            np.testing.assert_allclose(run_traced(lambda x, f=fun: f(bw.scipy.stats, x), flat)[0], fun(scipy.stats, flat), rtol=1e-9)
            scipy.stats.pearsonr(flat[:, 0], flat[:, 1])   # warns always


@pytest.mark.parametrize("name", ["gmean", "zscore", "skew", "sem", "iqr", "entropy", "circmean"])
def test_single_precision(name: str) -> None:
    x = P.astype(np.float32)
    found, expected = run_traced(getattr(bw.scipy.stats, name), x)[0], getattr(scipy.stats, name)(x)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_scipys_own_functions_in_compiled_programs() -> None:
    def loss(x: Any) -> Any:
        fit = scipy.stats.linregress(x, Y)
        return fit.slope + fit.intercept_stderr + scipy.stats.ttest_ind(x, Y).df + scipy.stats.zscore(x)[0] + scipy.stats.pearsonr(x, Y).pvalue

    value, slope = bw.value_and_grad(loss)(X)
    assert value == pytest.approx(loss(X), rel=1e-12)
    h = 1e-6 * np.cos(np.arange(9))
    assert slope @ h == pytest.approx((loss(X + h) - loss(X - h)) / 2, rel=1e-6)


def test_refusals() -> None:
    s = bw.scipy.stats
    for call, match in ((lambda x: s.zscore(x, nan_policy="omit"), "nan_policy"), (lambda x: s.boxcox(x), "lmbda"), (lambda x: s.yeojohnson(x), "lmbda"),
                        (lambda x: s.spearmanr(x.reshape(3, 3)), "corrcoef"), (lambda x: s.ttest_ind(x, x, trim=0.1), "trim")):
        with pytest.raises(UnsupportedError, match=match):
            run_traced(call, P)
    for wrong in (lambda s: s.pearsonr(X, Y[:5]), lambda s: s.trim_mean(X, 0.6), lambda s: s.rankdata(X, "none"), lambda s: s.iqr(X, scale="other"),
                  lambda s: s.linregress(X, Y[:5]), lambda s: s.power_divergence(P, lambda_="none"), lambda s: s.ttest_1samp(X, 0.0, alternative="both"),
                  lambda s: s.moment(X, 1.5), lambda s: s.skew(X, nan_policy="none")):
        for module in (s, scipy.stats):
            with pytest.raises(ValueError):
                wrong(module)
