"""bw.random: JAX's bits, the same in every way of running; distributions; derivatives in parameters; errors.

The numbers expected are those of jax.random 0.10.2 with jax_enable_x64 and the key 42.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import bwcompiler as bw
from bwcompiler import random
from bwcompiler.errors import DTypeError, ShapeError
from bwcompiler.frontend import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret

KEY = random.key(42)
P = np.array([0.1, 0.2, 0.3, 0.4])

# name -> (function of the key, what jax.random gives)
KNOWN: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "split": (lambda k: random.split(k, 3), [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]]),
    "fold_in": (lambda k: random.fold_in(k, 7), [2547012911, 1371500959]),
    "bits": (lambda k: random.bits(k, (5,)), [2098992034, 2919706841, 2646866425, 2409546199, 1935504149]),
    "bits of 64": (lambda k: random.bits(k, (2,), np.uint64), [7871734211187709741, 276886910877598708]),
    "bits of 8": (lambda k: random.bits(k, (2, 2), np.uint8), [[162, 217], [249, 215]]),
    "uniform": (lambda k: random.uniform(k, (3,)), [0.4267275666499091, 0.015010069515314584, 0.5741444178995352]),
    "uniform, f32": (lambda k: random.uniform(k, (3,), np.float32, -1, 2), [0.46612870693206787, 1.0393915176391602, 0.8488144874572754]),
    "normal": (lambda k: random.normal(k, (3,)), [-0.18471174528191162, -2.169824560397754, 0.18693555179382582]),
    "normal, f32": (lambda k: random.normal(k, (3,), np.float32), [-0.02830461598932743, 0.4671318531036377, 0.2957029640674591]),
    "randint": (lambda k: random.randint(k, (6,), -3, 10), [4, 3, 5, 6, -3, 5]),
    "randint, i32": (lambda k: random.randint(k, (4,), 0, 1000, np.int32), [644, 914, 71, 369]),
    "permutation": (lambda k: random.permutation(k, 10), [7, 4, 2, 5, 3, 6, 8, 9, 0, 1]),
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, (8,)), [False, True, False, False, False, False, False, False]),
    "categorical": (lambda k: random.categorical(k, np.log([0.1, 0.2, 0.7]), shape=(8,)), [2, 2, 2, 2, 2, 2, 1, 2]),
    "gumbel": (lambda k: random.gumbel(k, (3,)), [0.16062720630382138, -1.4348544993307841, 0.5890136500161952]),
    "exponential": (lambda k: random.exponential(k, (3,)), [0.5563942243855916, 0.015123860720489336, 0.8536549993431988]),
    "laplace": (lambda k: random.laplace(k, (3,)), [0.15846230602649014, 3.5058868215207473, -0.16050781878325354]),
    "logistic": (lambda k: random.logistic(k, (3,)), [-0.29521526220084393, -4.183910141360207, 0.29878068416298553]),
    "cauchy": (lambda k: random.cauchy(k, (3,)), [-0.23434604341667786, -21.19070234669309, 0.23723777098183235]),
    "truncated_normal": (lambda k: random.truncated_normal(k, -1.0, 2.0, (3,)), [0.01998452592513169, -0.9504476695340623, 0.32827144083703297]),
    "choice": (lambda k: random.choice(k, 10, (5,)), [5, 8, 3, 1, 5]),
    "choice, each once": (lambda k: random.choice(k, 10, (5,), replace=False), [7, 4, 2, 5, 3]),
    "choice, p": (lambda k: random.choice(k, 4, (5,), p=P), [2, 3, 2, 1, 2]),
    "choice, each once, p": (lambda k: random.choice(k, 4, (3,), replace=False, p=P), [3, 2, 0]),
    "rademacher": (lambda k: random.rademacher(k, (6,)), [1, 1, -1, -1, -1, -1]),
    "multivariate_normal": (lambda k: random.multivariate_normal(k, np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])),
                            [0.738778144692716, -0.09499048743076521]),
    "pareto": (lambda k: random.pareto(k, 2.0, (3,)), [1.3207465067932376, 1.0075905939607959, 1.532388301438321]),
    "weibull_min": (lambda k: random.weibull_min(k, 2.0, 3.0, (3,)), [1.644968300998198, 0.49459632533297715, 1.8972480932167475]),
    "rayleigh": (lambda k: random.rayleigh(k, 2.0, (3,)), [2.6101486342144358, 5.795884058247333, 2.1068921475580344]),
    "lognormal": (lambda k: random.lognormal(k, 0.5, (3,)), [0.9117806140267735, 0.33793142787224595, 1.0979752215045038]),
    "geometric": (lambda k: random.geometric(k, 0.3, (5,)), [3, 12, 2, 1, 2]),
    "poisson": (lambda k: random.poisson(k, 3.0, (5,)), [6, 2, 2, 1, 5]),
    "poisson of means": (lambda k: random.poisson(k, np.array([0.0, 0.5, 20.0, 1e4])), [0, 1, 15, 9928]),
    "gamma": (lambda k: random.gamma(k, 2.5, (4,)), [2.8769331987267917, 1.8851142907505218, 5.75709708230657, 2.764149407028277]),
    "loggamma": (lambda k: random.loggamma(k, 0.001), -1075.138230732641),
    "beta": (lambda k: random.beta(k, 2.0, 3.0, (2,)), [0.35249272, 0.40800005]),
    "dirichlet": (lambda k: random.dirichlet(k, np.array([1.0, 2.0, 3.0])), [0.12087605, 0.15736892, 0.72175503]),
    "chisquare": (lambda k: random.chisquare(k, 5.0, (2,)), [5.7538664, 3.77022858]),
    "t": (lambda k: random.t(k, 5.0, (2,)), [-0.68467345, -0.44588448]),
    "f": (lambda k: random.f(k, 5.0, 7.0, (2,)), [1.1513580272647008, 0.6285193808654049]),
    "generalized_normal": (lambda k: random.generalized_normal(k, 3.0, (2,)), [-0.3238928432167583, -0.10285721735653405]),
    "ball": (lambda k: random.ball(k, 3, 3.0), [-0.04969349492282331, -0.28873778549219575, -0.5074932719034]),
    "orthogonal": (lambda k: random.orthogonal(k, 2, m=3), [[-0.3323982541017758, 0.3364001079140078, 0.8811051969348128],
                                                            [-0.9177473674466865, 0.09995078745710298, -0.3843821140888083]]),
    "triangular": (lambda k: random.triangular(k, np.arange(3.0), 2.5, 4.0), [2.065738528105406, 1.2598948110657764, 2.8697050180145918]),
    "wald": (lambda k: random.wald(k, np.array([0.5, 2.0])), [0.8276472208773589, 1.3862836856025678]),
    "maxwell": (lambda k: random.maxwell(k, (3,)), [2.1856811186160847, 0.866467331447922, 0.8407561365101462]),
    "double_sided_maxwell": (lambda k: random.double_sided_maxwell(k, 0.5, 2.0, (3,)),
                             [-3.1956351413757687, -4.1877952518604795, 4.2138077011187836]),
    "multivariate_normal, svd": (lambda k: random.multivariate_normal(k, np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]]), method="svd"),
                                 [1.9929121293217675, 0.3199762780101978]),
    "multivariate_normal, eigh": (lambda k: random.multivariate_normal(k, np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]]), method="eigh"),
                                  [3.9152426326030754, 3.385560300132019]),
    "randint, i8": (lambda k: random.randint(k, (6,), -3, 100, np.int8), [21, 25, 89, 97, 42, 30]),
    "randint, u8": (lambda k: random.randint(k, (4,), 250, 256, np.uint8), [250, 250, 253, 251]),
    "categorical, each once": (lambda k: random.categorical(k, np.log([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), shape=(3, 2), replace=False),
                               [[2, 2], [0, 0], [1, 1]]),
    "truncated_normal of arrays": (lambda k: random.truncated_normal(k, np.array([-3.0, 1.0]), np.array([-2.0, 1.5])),
                                   [-2.3086333523669706, 1.0057138963429149]),
}
MADE_OF_GAMMA = ("beta", "dirichlet", "chisquare", "t", "f", "generalized_normal", "ball")


@pytest.mark.parametrize("name", KNOWN)
def test_numbers_of_jax(name: str) -> None:
    function, expected = KNOWN[name]
    expected = np.asarray(expected)
    found = bw.jit(function)(KEY)
    if expected.dtype.kind in "biu":
        assert found.dtype.kind in "biu" and found.tolist() == expected.tolist()
    else:
        tolerance = 1e-6 if "f32" in name else 2e-8 if expected.dtype == float and name in MADE_OF_GAMMA else 1e-13
        np.testing.assert_allclose(found, expected, rtol=tolerance)
    result = trace(function, (KEY,))
    interpreted = interpret(result.graph, [KEY, *result.captured])[0]
    if found.dtype.kind == "f":
        np.testing.assert_allclose(interpreted, found, rtol=1e-6 if found.dtype == np.float32 else 1e-13)
    else:
        assert np.array_equal(interpreted, found)
    if name == "loggamma" or name in MADE_OF_GAMMA:
        return
    mapped = bw.vmap(function)(random.split(KEY, 3))
    alone = [bw.jit(function)(one) for one in random.split(KEY, 3)]
    np.testing.assert_allclose(mapped, np.stack(alone), rtol=1e-6 if found.dtype == np.float32 else 1e-13)


def test_outside_of_any_trace() -> None:
    assert random.key(42).tolist() == [0, 42] and random.key(42).dtype == np.uint32
    assert random.key(2**40 + 7).tolist() == [256, 7] and random.key(-1).tolist() == [0xFFFFFFFF] * 2
    assert bw.jit(random.key)(np.int64(2**40 + 7)).tolist() == [256, 7]
    assert random.PRNGKey(1).tolist() == [0, 1]
    assert random.normal(KEY, (3,)).tolist() == bw.jit(lambda k: random.normal(k, (3,)))(KEY).tolist()
    assert random.split(KEY, (2, 3)).shape == (2, 3, 2)
    assert random.uniform(KEY, 3).shape == (3,) and random.uniform(KEY).shape == () and random.uniform(KEY, (0, 2)).shape == (0, 2)
    assert random.normal(KEY, dtype=np.float32).dtype == np.float32


def test_extents_that_are_arguments_are_compiled_in() -> None:
    for shape in (lambda n: (n,), lambda n: n, lambda n: [n]):
        assert bw.jit(lambda k, n, shape=shape: random.normal(k, shape(n)))(KEY, 3).tolist() == random.normal(KEY, 3).tolist()


SPECIAL: dict[str, Any] = {                        # parameters for which a formula may be another operation: a square, a square root
    "weibull_min": [(1.0, 0.5), (1.0, 1.0), (2.0, 2.0)],
    "pareto": [(0.5,), (1.0,)],
    "lognormal": [(1.0,), (2.0,)],
    "rayleigh": [(1.0,), (2.0,)],
    "truncated_normal": [(-1.0, 1.0)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_known_parameters_have_the_bits_of_those_that_are_given(name: str) -> None:
    function = getattr(random, name)
    for parameters in SPECIAL[name]:
        known = lambda k, parameters=parameters: function(k, *parameters, shape=(50,))
        expected = bw.jit(lambda k, *parameters: function(k, *parameters, shape=(50,)))(KEY, *parameters)
        for found in (known(KEY), bw.jit(known)(KEY), bw.vmap(known)(KEY[None])[0]):
            assert np.array_equal(found, expected)


def test_elements_are_those_of_their_numbers() -> None:
    """An array of another shape begins with the same numbers."""
    assert np.array_equal(random.uniform(KEY, (7,))[:3], random.uniform(KEY, (3,)))
    assert np.array_equal(random.bits(KEY, (2, 3)).ravel(), random.bits(KEY, (6,)))


# ----- distributions
SAMPLES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "normal": (lambda k: random.normal(k, (4000,)), scipy.stats.norm()),
    "truncated_normal": (lambda k: random.truncated_normal(k, -0.5, 2.0, (4000,)), scipy.stats.truncnorm(-0.5, 2.0)),
    "gamma, small": (lambda k: random.gamma(k, 0.3, (4000,)), scipy.stats.gamma(0.3)),
    "gamma, large": (lambda k: random.gamma(k, 30.0, (4000,)), scipy.stats.gamma(30.0)),
    "beta": (lambda k: random.beta(k, 0.5, 2.0, (4000,)), scipy.stats.beta(0.5, 2.0)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_distributions(name: str) -> None:
    function, distribution = SAMPLES[name]
    assert scipy.stats.kstest(function(random.key(7)), distribution.cdf).pvalue > 1e-3


def test_discrete_distributions() -> None:
    key = random.key(3)
    drawn = random.choice(key, np.array([10.0, 20.0, 30.0, 40.0]), (4000,), p=P)
    np.testing.assert_allclose([np.mean(drawn == value) for value in (10, 20, 30, 40)], P, atol=0.03)
    drawn = random.randint(key, (4000,), 250, 256, np.uint8)
    assert drawn.dtype == np.uint8 and set(drawn.tolist()) == set(range(250, 256))
    assert random.randint(key, (1000,), 0, 256, np.uint8).max() > 250
    assert random.randint(key, (5,), 7, 7).tolist() == [7] * 5
    every = random.randint(key, (3,), -2**63, 2**63)
    assert len(set(every.tolist())) == 3 and np.abs(every).max() > 2**60
    bounded = bw.jit(lambda low, high: random.randint(key, (50,), low, high))              # bounds that are traced
    for low, high in ((-3, 10), (5, 5)):
        assert np.array_equal(bounded(np.int64(low), np.array(high)), random.randint(key, (50,), low, high))
    logits = np.log(np.array([[0.2, 0.8], [0.5, 0.5]]))
    assert random.categorical(key, logits, axis=0).shape == (2,) and random.categorical(key, logits, shape=(5, 2)).shape == (5, 2)
    x = np.arange(12.0).reshape(3, 4)
    for axis in (0, 1):
        moved = random.permutation(key, x, axis)
        assert {tuple(lane) for lane in np.moveaxis(moved, axis, 0)} == {tuple(lane) for lane in np.moveaxis(x, axis, 0)}
        assert np.array_equal(np.sort(random.permutation(key, x, axis, independent=True), axis), x)
    assert sorted(random.permutation(key, 50).tolist()) == list(range(50))


# ----- derivatives
@pytest.mark.parametrize("a", [0.01, 0.3, 0.99, 1.0, 2.5, 30.0, 1e4])
def test_the_implicit_derivative_of_gamma(a: float) -> None:
    """At many ranks, that of the inverse distribution function; and the one of the logarithm."""
    ranks = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999999])
    x = scipy.special.gammaincinv(a, ranks)
    x, ranks = x[x > 1e-290], ranks[x > 1e-290]
    h = 1e-4 * a
    inverse = lambda a: np.log(scipy.special.gammaincinv(a, ranks))
    expected = (8 * (inverse(a + h) - inverse(a - h)) - (inverse(a + 2 * h) - inverse(a - 2 * h))) / (12 * h)
    found = bw.jit(lambda a, x: random.positive.slope_of_log(a, np.log(x)))(np.full_like(x, a), x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_derivatives_in_parameters() -> None:
    gamma = lambda a: random.gamma(KEY, a)
    for a, slope in ((2.5, 1.1456414862339959), (0.1, 0.002639112988909411), (50.0, 1.0310751344484292)):      # JAX's
        np.testing.assert_allclose(bw.grad(gamma)(a), slope, rtol=1e-12)
        np.testing.assert_allclose(bw.jvp(gamma, (a,), (2.0,))[1], 2 * slope, rtol=1e-12)
    np.testing.assert_allclose(bw.grad(lambda s: np.sum(random.lognormal(KEY, s, (3,))))(0.5),
                               np.sum(random.normal(KEY, (3,)) * random.lognormal(KEY, 0.5, (3,))))
    weibull = lambda b: random.weibull_min(KEY, 2.0, b, (3,))
    np.testing.assert_allclose(bw.jvp(weibull, (3.0,), (1.0,))[1], (weibull(3.0 + 1e-6) - weibull(3.0 - 1e-6)) / 2e-6, rtol=1e-7)
    assert bw.grad(gamma)(np.float32(2.5)).dtype == np.float32


MOVED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "triangular": (lambda p: random.triangular(KEY, p[0], p[1], p[2], (4,)), np.array([0.2, 1.0, 3.0])),
    "wald": (lambda p: random.wald(KEY, p), np.array([0.5, 1.5, 4.0])),
    "double_sided_maxwell": (lambda p: random.double_sided_maxwell(KEY, p[0], p[1], (3,)), np.array([0.5, 2.0])),
    "truncated_normal": (lambda p: random.truncated_normal(KEY, np.array([-3.0, -0.2, 0.5]), p), np.array([-1.0, 0.5, 2.0])),
    "multivariate_normal, svd": (lambda c: random.multivariate_normal(KEY, np.zeros(2), c @ c.T, method="svd"), np.array([[1.0, 0.2], [0.1, 2.0]])),
}


@pytest.mark.parametrize("name", MOVED)
def test_derivatives_of_samples(name: str) -> None:
    """Those of the samples as functions of the parameters, the key being fixed."""
    function, p = MOVED[name]
    slopes = bw.jacobian(function)(p)
    for place in np.ndindex(p.shape):
        step = np.zeros_like(p)
        step[place] = 1e-6
        numbers = (function(p + step) - function(p - step)) / 2e-6
        if "svd" in name:                                          # vectors are unique up to signs
            np.testing.assert_allclose(np.abs(slopes[(..., *place)]), np.abs(numbers), rtol=1e-5, atol=1e-7)
        else:
            np.testing.assert_allclose(slopes[(..., *place)], numbers, rtol=1e-5, atol=1e-7)


def test_complex_normal_numbers() -> None:
    z = random.normal(KEY, (2,), complex)
    np.testing.assert_allclose(z, [-0.5093295292642132 + 0.45954304860759587j, -0.18428781404443714 + 0.08377702715980621j], rtol=1e-13)
    assert random.normal(KEY, (2,), np.complex64).dtype == np.complex64


# ----- errors
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no key": (lambda: random.normal(np.zeros(2), (3,)), ShapeError, "a key is an array of two uint32 numbers.*got float64"),
    "keys": (lambda: random.normal(random.split(KEY, 3), (3,)), ShapeError, r"of shape \(3, 2\)\n.*bw.vmap"),
    "half": (lambda: random.normal(KEY, (3,), np.float16), DTypeError, "random.normal gives float32 or float64; got dtype float16"),
    "dtype": (lambda: random.normal(KEY, (3,), int), DTypeError, "random.normal gives floating-point numbers; got dtype int64"),
    "bits": (lambda: random.bits(KEY, (3,), np.int32), DTypeError, "the dtype is unsigned"),
    "randint": (lambda: random.randint(KEY, (3,), 0, 5, float), DTypeError, "random.randint gives integers"),
    "shape": (lambda: random.uniform(KEY, (-1,)), ShapeError, "numbers that are not negative"),
    "parameters": (lambda: random.gamma(KEY, np.ones(3), (2,)), ShapeError, r"parameters of shape \(3,\) cannot be broadcast to the shape \(2,\)"),
    "seed": (lambda: random.key(1.5), DTypeError, "the seed is an integer"),
    "choice": (lambda: random.choice(KEY, 3, (5,), replace=False), ShapeError, "5 of 3 elements without replacement"),
    "choice of nothing": (lambda: random.choice(KEY, 0, (5,)), ShapeError, "nothing to choose from"),
    "p": (lambda: random.choice(KEY, 3, (5,), p=P), ShapeError, r"p has shape \(4,\), but there are 3 elements"),
    "axis": (lambda: random.permutation(KEY, np.ones(3), 1), ShapeError, "axis 1"),
    "dirichlet": (lambda: random.dirichlet(KEY, 1.0), ShapeError, "one number for each component"),
    "categorical": (lambda: random.categorical(KEY, np.ones((2, 3)), shape=(3,)), ShapeError, "does not end in"),
    "method": (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(2), method="qr"), ValueError, "method is 'cholesky', 'eigh' or 'svd'"),
    "categorical, each once": (lambda: random.categorical(KEY, np.ones(3), shape=(4,), replace=False), ShapeError, "4 of 3 positions"),
    "covariances": (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(3)), ShapeError, "cov .*n, n"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        call()


def test_parameters_of_half_precision():
    p = np.array([0.0, 1.0, 0.0], np.float16)
    assert random.bernoulli(KEY, p, (2, 3)).tolist() == [[False, True, False]] * 2
    with np.errstate(divide="ignore"):
        assert random.categorical(KEY, np.log(p), shape=(4,)).tolist() == [1] * 4
