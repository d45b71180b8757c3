"""Random numbers that each iteration of a loop draws alike: they are known, and read from tables."""

import random

import numpy as np
import pytest

import bwcompiler as bw


def slope_of(fun, x, step=1e-6):
    return (fun(x + step) - fun(x - step)) / (2 * step)


def walk(theta, n=200):
    rng = np.random.default_rng(1)
    x, total = 1.0, 0.0
    for _ in range(n):
        x = x + theta * (0.5 - x) * 0.01 + 0.1 * theta * rng.normal()
        total += x
    return total / n + rng.random()                # behind those of the loop


def paths(s):
    rng = np.random.RandomState(3)
    price = np.full(5, 100.0)
    for t in range(40):
        z = rng.standard_normal(5)
        u = rng.uniform(0.0, s, size=5)            # scaled by what is traced
        price = price * np.exp(-0.5 * s * s * 0.01 + s * 0.1 * z) + u * 0.01 * rng.randint(1, 4) + 0.01 * t
    return np.mean(np.maximum(price - 100.0, 0.0))


def of_python(a):
    generator, x = random.Random(4), 0.0
    for _ in range(60):
        x = x * 0.9 + a * generator.gauss(0.0, 1.0) * generator.randint(1, 5)
    return x


def one_after_the_other(a):
    rng, s = np.random.default_rng(7), 0.0
    for _ in range(30):
        s = s + a * rng.normal()
    for k in range(29, -1, -1):
        s = s + a * a * rng.integers(0, 10) * k
    return s + rng.normal()


def two_generators(a):
    one, other, s = np.random.default_rng(1), np.random.default_rng(2), 0.0
    for _ in range(25):
        s = np.sin(s + a * one.normal()) + other.normal()
    return s + one.normal() * other.normal()


def made_in_a_loop(a):
    s = 0.0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        for _ in range(20):
            s = np.sin(s + a * rng.normal())
    return s


def counted_while(a):
    rng, t, s = np.random.default_rng(8), 0.0, 0.0
    while t < 1.0:
        s, t = s + a * rng.normal(), t + 0.02
    return s + rng.random()


def resampled(a):
    rng = np.random.default_rng(9)
    x = np.linspace(0.0, 1.0, 12) * a
    total = 0.0
    for _ in range(15):
        total = total + np.mean(x[rng.choice(12, 6, replace=False)]) ** 2 + x[rng.permutation(12)[0]]
    return total


def drawn_inside(a):
    rng, s = np.random.default_rng(5), 0.0
    for _ in range(12):
        z = rng.normal()
        for _ in range(15):
            s = s + np.sin(a * rng.normal() + z)
    return s + rng.normal()


TABLED = [walk, drawn_inside, paths, of_python, one_after_the_other, two_generators, made_in_a_loop, counted_while, resampled]


@pytest.mark.parametrize("program", TABLED, ids=lambda program: program.__name__)
def test_numbers_that_all_iterations_draw_are_tables(program) -> None:
    compiled = bw.value_and_grad(program)
    value, slope = compiled(0.3)
    assert value == pytest.approx(program(0.3), rel=1e-12, abs=1e-12)
    assert slope == pytest.approx(slope_of(program, 0.3), rel=1e-6, abs=1e-7)
    assert " callback " not in compiled.as_text("simplified", 0.3)


def drawn_by_some(a):
    """What the first draw gives decides whether there is another one."""
    rng, s = np.random.default_rng(6), 0.0
    for _ in range(40):
        s = s + rng.normal() * a if rng.random() * a < s + 0.3 else s - 0.1
    return s


def drawn_until(a):
    rng, s = np.random.default_rng(5), 0.0
    for _ in range(20):
        u = rng.random()
        while u * a < 0.2:
            u = u + rng.random()
        s = s + u * a
    return s


def shuffled(a):
    rng, x = np.random.default_rng(5), np.arange(6.0) * a
    for _ in range(9):
        u = rng.random()
        rng.shuffle(x)
        x[0] = x[0] + u
    return x @ np.arange(6.0)


@pytest.mark.parametrize("program", [drawn_by_some, drawn_until, shuffled], ids=lambda program: program.__name__)
def test_others_are_drawn_in_numpys_order(program) -> None:
    compiled = bw.value_and_grad(program)
    value, slope = compiled(0.3)
    assert " callback " in compiled.as_text("simplified", 0.3)
    assert value == pytest.approx(program(0.3), rel=1e-12)
    assert slope == pytest.approx(slope_of(program, 0.3), rel=1e-6, abs=1e-7)


def test_tables_that_are_too_large_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bwcompiler.frontend.source.drawn.tables.MOST_DRAWS", 100)
    value, slope = bw.value_and_grad(walk)(0.4)
    assert value == pytest.approx(walk(0.4), rel=1e-12)
    assert slope == pytest.approx(slope_of(walk, 0.4), rel=1e-6)
