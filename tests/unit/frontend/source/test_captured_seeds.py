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
