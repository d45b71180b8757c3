"""Random numbers drawn in loops and branches: as many as data say, and those that NumPy draws."""

import copy
import random
import time

import numpy as np
import pytest
from scipy import stats

import bwcompiler as bw
from bwcompiler.errors import TracerError


def slope_of(fun, x, step=1e-6):
    return (fun(x + step) - fun(x - step)) / (2 * step)


def ising(beta):
    rng = np.random.default_rng(1)
    n = 4
    s = np.where(rng.random((n, n)) < 0.5, 1, -1)
    total = 0.0
    for _ in range(60):
        i, j = rng.integers(n, size=2)
        change = 2 * s[i, j] * (s[(i + 1) % n, j] + s[i - 1, j] + s[i, (j + 1) % n] + s[i, j - 1])
        if change <= 0 or rng.random() < np.exp(-beta * change):
            s[i, j] *= -1
        total += beta * s.mean()
    return total


def metropolis(x):
    rng = np.random.default_rng(2)
    total = 0.0
    for _ in range(100):
        y = x + rng.normal()
        if y * y < x * x or rng.uniform() < np.exp((x * x - y * y) / 2):
            x = y
        total += x
    return total / 100


def rejected(a):
    rng = np.random.default_rng(3)
    total = 0.0
    for _ in range(20):
        while True:
            x = rng.uniform(0.0, 2.0)
            if rng.uniform() < np.exp(-a * x):
                break
        total += x * a
    return total


def gillespie(birth):
    rng = np.random.default_rng(4)
    t, n, total = 0.0, 20, 0.0
    while t < 2.0 and n > 0:
        wait = rng.exponential(1 / ((birth + 0.9) * n))
        total += n * wait * birth
        t += wait
        n += 1 if rng.random() < birth / (birth + 0.9) else -1
    return total


def annealed(x):
    np.random.seed(5)
    heat = 1.0
    while heat > 0.01:
        y = x + 0.3 * np.random.randn()
        worse = (y * y + np.sin(5 * y)) - (x * x + np.sin(5 * x))
        if worse < 0 or np.random.rand() < np.exp(-worse / heat):
            x = y
        heat *= 0.9
    return x


def of_python(x):
    random.seed(6)
    source = random.Random(7)
    for _ in range(30):
        x = x * 0.9 + 0.1 * random.gauss(0.0, 1.0)
        if x > 0:
            x = x - 0.1 * source.random() * source.randint(1, 3)
    return x


def resampled(sigma):
    rng = np.random.default_rng(8)
    x, w = rng.normal(size=30), np.full(30, 1 / 30)
    total = 0.0
    for _ in range(10):
        x = 0.9 * x + sigma * rng.normal(size=30)
        w = w * np.exp(-0.5 * (x - 0.3) ** 2)
        w /= w.sum()
        total += w @ x
        if 1 / np.sum(w ** 2) < 20:
            x = x[rng.choice(30, size=30, p=w)]
            w = np.full(30, 1 / 30)
    return total


def shuffled(x):
    rng = np.random.default_rng(9)
    values = x * np.arange(6.0)
    total = 0.0
    for k in range(12):
        if values[0] < 2 * x:
            rng.shuffle(values)
        order = rng.permutation(6)
        total += k * values[order[0]] + values[rng.choice(order)]
    return total


def counted(rate):
    rng = np.random.default_rng(10)
    total = 0.0
    for k in range(15):
        total += rate * rng.poisson(10 * rate) + rng.binomial(5, rate / 4) * rate ** k + rng.lognormal(rate, 0.1)
    return total


def known_test(x):
    rng, state = np.random.default_rng(0), np.random.RandomState(3)
    n, total = 0, 0.0
    while rng.random() < 0.9 and n < 40:
        total = total + x * n
        n += 1
    for _ in range(10):
        total += np.sum(x * rng.standard_normal(12)) + state.rand()
    return total + n * rng.random()


@pytest.mark.filterwarnings("ignore::bwcompiler.errors.StaleValueWarning")
@pytest.mark.parametrize("fun, x", [
    (ising, 0.4), (metropolis, 0.5), (rejected, 1.5), (gillespie, 1.0), (annealed, 2.0), (of_python, 1.3), (resampled, 0.4), (shuffled, 1.2),
    (counted, 0.7), (known_test, 0.3)])
def test_draws_as_data_decide(fun, x):
    compiled = bw.value_and_grad(fun)
    for at in x, x * 1.1:
        value, slope = compiled(at)
        np.testing.assert_allclose(value, fun(at), rtol=1e-10)
        np.testing.assert_allclose(slope, slope_of(fun, at), rtol=1e-4, atol=1e-6)


def test_draws_before_and_after_a_loop():
    def walk(x):
        rng = np.random.default_rng(0)
        x = x * rng.normal()
        for _ in range(20):
            x = np.sin(x) + rng.normal()
        return x + rng.normal(size=3).sum() * x

    np.testing.assert_allclose(bw.jit(walk)(0.5), walk(0.5))


def test_a_long_loop_is_not_unrolled():
    def walk(x):
        rng = np.random.default_rng(0)
        for _ in range(3000):
            x = x + 0.01 * (1 - x) + 0.1 * np.sqrt(np.abs(x)) * rng.normal()
        return x

    begin = time.perf_counter()
    np.testing.assert_allclose(bw.grad(walk)(0.5), slope_of(walk, 0.5), rtol=1e-4, atol=1e-6)
    assert time.perf_counter() - begin < 10


def test_what_has_to_be_known_is_drawn_while_tracing():
    def chosen(x):
        rng = np.random.default_rng(0)
        kinds = []
        for _ in range(10):
            kinds.append(rng.choice(["sin", "cos", "tanh"]))
            x = getattr(np, kinds[-1])(x)
        return x

    assert bw.jit(chosen)(0.5) == pytest.approx(chosen(0.5))


def test_a_generator_of_scipys_distributions():
    def walk(x):
        rng = np.random.default_rng(0)
        for _ in range(20):
            x = 0.9 * x + stats.norm.rvs(random_state=rng)
        return x * rng.normal()

    assert bw.jit(walk)(0.5) == pytest.approx(walk(0.5))


def test_what_was_drawn_is_remembered_by_the_state():
    def walk(x, seed):
        rng = np.random.default_rng(seed)
        position, count = x, 0
        while abs(position) < 3.0:
            position = position + rng.standard_normal() * 0.7 + 0.1 * rng.integers(0, 3)
            count += 1
        return position * count

    compiled = bw.jit(walk)
    for seed in (3, 4, 3, 5, 4, 3):
        assert compiled(0.2, seed) == pytest.approx(walk(0.2, seed), rel=1e-12)
    assert compiled(0.3, 3) == pytest.approx(walk(0.3, 3), rel=1e-12)


def drawn_as_data_say(rng, x):
    return sum(rng.normal() if one > 0.5 else 0.0 for one in x)


def of_the_same_bits(x):
    bits = np.random.PCG64(3)
    first, second = np.random.Generator(bits), np.random.Generator(bits)
    return drawn_as_data_say(first, x) + x[0] * second.normal()


def of_the_same_bits_in_a_loop(x):
    first = np.random.default_rng(3)
    second, total = np.random.Generator(first.bit_generator), 0.0
    for one in x:
        total = 0.9 * total + one * first.normal() * second.normal()
    return total + x[0] * first.normal()


def of_two_kinds(x):
    bits = np.random.MT19937(3)
    first, second = np.random.RandomState(bits), np.random.Generator(bits)
    return drawn_as_data_say(first, x) + x[0] * second.normal()


def put_back(x):
    rng = np.random.default_rng(3)
    state = rng.bit_generator.state
    total = drawn_as_data_say(rng, x)
    rng.bit_generator.state = state
    return total + x[0] * rng.normal()


def put_back_by_its_bits(x):
    bits = np.random.PCG64(3)
    rng, state = np.random.Generator(bits), bits.state
    total = drawn_as_data_say(rng, x)
    bits.state = state
    return total + x[0] * rng.normal()


def moved_on(x):
    bits = np.random.PCG64(3)
    rng = np.random.Generator(bits)
    total = drawn_as_data_say(rng, x)
    bits.advance(5)
    return total + x[0] * rng.normal()


def state_taken(x):
    rng, other = np.random.default_rng(3), np.random.default_rng(5)
    total = drawn_as_data_say(rng, x)
    other.bit_generator.state = rng.bit_generator.state
    return total + x[0] * other.normal()


def copied(x):
    rng = np.random.default_rng(3)
    total = drawn_as_data_say(rng, x)
    return total + x[0] * copy.deepcopy(rng).normal()


class Walk:
    def __init__(self, rng):
        self.rng, self.place = rng, [0.0]

    def step(self):
        return self.rng.normal()


def copied_with_its_owner(x):
    walk = Walk(np.random.default_rng(3))
    total = drawn_as_data_say(walk.rng, x)
    return total + x[0] * copy.deepcopy([walk])[0].step()


def handed_through(x):
    rng = np.random.default_rng(3)
    total = drawn_as_data_say(rng, x)
    return total + x[0] * np.random.default_rng(rng).normal()


@pytest.mark.parametrize("program", [of_the_same_bits, of_the_same_bits_in_a_loop, of_two_kinds, put_back, put_back_by_its_bits, moved_on,
                                     state_taken, copied, copied_with_its_owner, handed_through], ids=lambda program: program.__name__)
@pytest.mark.usefixtures("assuming")
def test_bits_that_others_use(program):
    """What the program draws, the generator itself does not know of, nor others that have its bits."""
    compiled = bw.value_and_grad(program)
    for x in (np.linspace(0.0, 1.0, 12), np.linspace(1.1, 0.3, 12), np.zeros(12)):
        value, gradient = compiled(x)
        assert value == pytest.approx(program(x))
        slope = (program(x + 1e-6 * np.eye(12)[0]) - program(x - 1e-6 * np.eye(12)[0])) / 2e-6
        assert gradient[0] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("program", [of_the_same_bits, put_back, moved_on, copied, copied_with_its_owner], ids=lambda program: program.__name__)
def test_bits_that_others_use_are_refused(program):
    """Unless the function may be compiled for the sides that its branches take."""
    with pytest.raises(TracerError, match=r"test_streams\.py:\d+"):
        bw.jit(program)(np.linspace(0.0, 1.0, 12))
