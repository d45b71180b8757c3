"""Generators of random numbers that a function makes of an integer argument: the numbers that Python gives, for every seed."""

import random

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import StaleValueWarning, TracerError

X = np.ones(3)


def weighted(x, seed):
    return np.sum(x * np.random.default_rng(seed).normal(size=3))


def by_bits(x, seed):
    return np.sum(x * np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).normal(size=3))


def by_list(x, seed):
    return np.sum(x * np.random.default_rng([seed, 1]).normal(size=3))


def by_state(x, seed):
    return np.sum(x * np.random.RandomState(seed).normal(size=3))


def by_python(x, seed):
    return np.sum(x) * random.Random(seed).random()


@pytest.mark.parametrize("program", [weighted, by_bits, by_list, by_state, by_python])
def test_seed_is_an_argument(program):
    compiled = bw.value_and_grad(program)
    for seed in (0, 7, 3, 0):
        found, gradient = compiled(X, seed)
        np.testing.assert_allclose(found, program(X, seed), rtol=1e-14)
        np.testing.assert_allclose(gradient[0], program(np.array([1.0, 0.0, 0.0]), seed), rtol=1e-14)


def test_seed_of_pythons_module():
    def drawn(x, seed):
        random.seed(seed)
        return x * random.random()

    with pytest.warns(StaleValueWarning, match="random numbers"):
        found = bw.jit(drawn)(2.0, 4)
    assert found == drawn(2.0, 4)


def test_seeds_of_a_loop():
    def summed(x):
        total = 0.0
        for k in range(20):
            total = total + np.sum(x * np.random.default_rng(k).normal(size=3))
        return total

    np.testing.assert_allclose(bw.jit(summed)(X), summed(X), rtol=1e-13)


def test_seed_that_is_computed_is_refused():
    with pytest.raises(TracerError, match=r"np.random.default_rng\(x\[0\]\) takes no traced values\n  hint: a seed is a number that is known") as raised:
        bw.jit(lambda x: x * np.random.default_rng(x[0]).normal(size=3))(X)
    assert str(raised.value).startswith(f"{__file__}:") and ".pyx" not in str(raised.value)


# ----- what is drawn with traced parameters
DRAWN = {
    "normal": lambda r, x: (r.normal(x, 2.0), r.normal(x[0], x[1] ** 2), r.normal(0.5, x ** 2, (2, 3)), r.normal(scale=x[0] ** 2, size=4), r.normal(0, 1, 2)),
    "uniform": lambda r, x: (r.uniform(x, x + 1), r.uniform(high=x[2], size=2), r.uniform(x[0], 3.0), r.uniform(-1, 1)),
    "exponential": lambda r, x: (r.exponential(x ** 2), r.exponential(x[2] ** 2, 3), r.exponential(2.0)),
    "choice": lambda r, x: (r.choice(x), r.choice(x, 2), r.choice(x, (2, 2)), r.choice(x, 2, replace=False), r.choice(x, 2, p=[0.1, 0.2, 0.7]), r.choice(4, 2)),
    "permutation": lambda r, x: (r.permutation(x), r.permutation(np.outer(x, x)), r.permutation(4)),
}


@pytest.mark.filterwarnings("ignore::bwcompiler.errors.StaleValueWarning")       # of generators that a function is given
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize("name", DRAWN)
def test_draws_with_traced_parameters(name, make):
    def program(x):
        generator = make(5)
        return (*DRAWN[name](generator, x), generator.normal())

    x = np.array([0.5, -1.5, 2.5])
    for found, expected in zip(bw.jit(program)(x), program(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
    loss = lambda x: sum(np.sum(np.sin(part)) for part in program(x))
    differences = [(loss(x + step) - loss(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(bw.grad(loss)(x), differences, rtol=1e-6, atol=1e-8)


def test_draws_with_traced_parameters_in_a_branch():
    def program(x):
        generator = np.random.default_rng(5)
        return generator.normal(x, 1.0) if x > 0 else x

    for x in (1.0, -1.0):
        found = bw.value_and_grad(program)(x)
        np.testing.assert_allclose(found, (program(x), 1.0))
