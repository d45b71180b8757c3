"""Arguments that are floats, of which a number has to be known while tracing: `np.zeros(int(end / step))`."""

import pickle
import warnings

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerIndexError, UnsupportedError


def decay(rate, end, step):
    n = int(end / step + 0.5)
    x = np.zeros(n + 1)
    x[0] = 1.0
    for k in range(n):
        x[k + 1] = x[k] - step * rate * x[k]
    return x[-1] + 0.1 * end


def sampled(rate, end, step):
    t = np.arange(0, end, step)
    return np.sum(np.exp(-rate * t)) * step


ARGUMENTS = [(0.5, 1.0, 0.1), (0.5, 2.0, 0.1), (0.7, 2.0, 0.25), (0.7, np.float64(1.5), np.float64(0.1))]


@pytest.mark.parametrize("function", [decay, sampled], ids=["decay", "sampled"])
def test_values(function):
    compiled, gradient = bw.jit(function), bw.value_and_grad(function)
    for args in ARGUMENTS:
        rate, *rest = args
        differences = (function(rate + 1e-6, *rest) - function(rate - 1e-6, *rest)) / 2e-6
        assert compiled(*args) == pytest.approx(function(*args), rel=1e-14)
        assert gradient(*args) == (pytest.approx(function(*args), rel=1e-14), pytest.approx(differences, rel=1e-8))


def test_derivatives_with_respect_to_it():
    """The size is constant nearby; the number itself stays an operand of what is differentiated, in all orders."""
    for order, derivative in enumerate((bw.grad(decay, argnums=(0, 1, 2)), bw.hessian(decay, argnums=(0, 1, 2)))):
        found = np.array(derivative(0.5, 1.0, 0.1))
        whole = bw.jacobian(lambda x, n=10: (1 - x[2] * x[0]) ** n + 0.1 * x[1])
        expected = (whole if order == 0 else bw.jacobian(whole))(np.array([0.5, 1.0, 0.1]))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_in_other_transforms():
    rates = np.array([0.5, 0.6])
    found = bw.jit(bw.vmap(bw.grad(decay), in_axes=(0, None, None)))(rates, 1.0, 0.1)
    np.testing.assert_allclose(found, [bw.grad(decay)(rate, 1.0, 0.1) for rate in rates], rtol=1e-14)
    value, slope = bw.jit(lambda rate, end: bw.jvp(lambda r: decay(r, end, 0.1), (rate,), (1.0,)))(0.5, 1.0)
    assert (value, slope) == (pytest.approx(decay(0.5, 1.0, 0.1)), pytest.approx(bw.grad(decay)(0.5, 1.0, 0.1)))
    with pytest.raises(TracerIndexError, match="as a size"):
        bw.vmap(decay, in_axes=(None, 0, None))(0.5, rates, 0.1)


def test_of_objects():
    found = bw.grad(lambda rate, options: decay(rate, options["end"], options["step"]) * options["scale"])
    for scale in (2.0, 3.0):
        assert found(0.5, {"end": 1.0, "step": 0.1, "scale": scale}) == pytest.approx(scale * bw.grad(decay)(0.5, 1.0, 0.1))


def test_only_where_it_is_refused_otherwise():
    """A loop over a range that floats decide takes all of them in one program."""
    traced = []
    note = traced.append           # which nobody follows: a list is put back where a trace is given up

    def loop(rate, end, step):
        note(None)
        x = 1.0
        for _ in range(int(end / step + 0.5)):
            x = x - step * rate * x
        return x

    compiled = bw.jit(loop)
    assert compiled(0.5, 1.0, 0.1) == pytest.approx(loop(0.5, 1.0, 0.1))
    count = len(traced)
    assert compiled(0.5, 2.0, 0.1) != compiled(0.5, 1.0, 0.1) and len(traced) == count


def test_zeros_of_both_signs():
    """They are equal, but not the same number."""
    def signed(x):
        return np.ones(int(abs(x)) + 1) / x
    with np.errstate(divide="ignore"):
        assert [bw.jit(signed)(x)[0] for x in (0.0, -0.0)] == [np.inf, -np.inf]


def test_programs():
    assert "end = 1.0 is compiled in: its value is needed while tracing" in bw.jit(decay).explain(0.5, 1.0, 0.1)
    program = bw.compile(decay, 0.5, 1.0, 0.1, wrt=(0,))
    assert program.backward(0.5, 1.0, 0.1)[0] == pytest.approx(bw.grad(decay)(0.5, 1.0, 0.1))
    for made in (lambda: bw.compile(decay, 0.5, 1.0, 0.1), lambda: bw.vjp(decay, 0.5, 1.0, 0.1)):
        with pytest.raises(TracerIndexError, match="as a size"):           # all arguments are differentiated
            made()
    with pytest.raises(bw.errors.GradientError, match="end"):
        bw.compile(decay, 0.5, 1.0, 0.1, wrt=(0, 1))


def test_explanations_and_pickles():
    for argnums in ((0,), (0, 1)):
        assert "end = 1.0 is compiled in" in bw.grad(decay, argnums=argnums).explain(0.5, 1.0, 0.1)
    program = pickle.loads(pickle.dumps(bw.jit(decay).lower(0.5, 1.0, 0.1)))
    assert program(0.7, 1.0, 0.1) == pytest.approx(decay(0.7, 1.0, 0.1))
    with pytest.raises(bw.errors.SignatureError, match=r"end is 2.0, but the program was compiled for 1.0"):
        program(0.7, 2.0, 0.1)


def test_sizes_of_computed_numbers():
    with pytest.raises(TracerIndexError, match="as a size"):
        bw.compile(lambda x: np.zeros(int(np.sum(x))), np.ones(3))


SIZED = {
    "arange": lambda x, times: np.sum(np.sin(np.arange(0, np.sum(times), 0.1) * x)),
    "arange from a number": lambda x, times: np.sum(np.sin(np.arange(times[1], times[0], 0.1) * x)),
    "linspace": lambda x, times: np.sum(np.sin(np.linspace(0.0, x, int(times.sum() / 0.1)))),
    "a loop": lambda x, times: sum(np.exp(-t * x) for t in np.arange(0.0, np.max(times) + 0.05, 0.1)),
    "scaled": lambda x, times: np.sum(np.sin(np.arange(0, np.sum(2.0 * times), 0.1) * x)) * np.sum(times),
}


@pytest.mark.parametrize("function", SIZED.values(), ids=SIZED)
def test_sizes_that_floats_in_an_array_decide(function):
    compiled, derived, h = bw.jit(function), bw.value_and_grad(function, argnums=(0, 1)), 1e-6
    for scale in (1.0, 1.7, 1.0):
        times = np.array([0.73, 0.31, 1.23]) * scale
        assert compiled(1.3, times) == pytest.approx(function(1.3, times), rel=1e-12)
        value, slopes = derived(1.3, times)
        assert value == pytest.approx(function(1.3, times), rel=1e-12)
        for slope, one, other in ((slopes[0], (1.3 + h, times), (1.3 - h, times)), (slopes[1].sum(), (1.3, times + h), (1.3, times - h))):
            assert slope == pytest.approx((function(*one) - function(*other)) / (2 * h), rel=1e-6, abs=1e-8)


def test_other_arrays_stay_data_beside_them():
    def function(x, times):
        return np.sum(np.sin(np.arange(0, np.sum(times), 0.1)[:len(x)] * x))

    compiled, times = bw.jit(function), np.array([0.72, 0.3])
    compiled(np.ones(3), times)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(20):
            assert compiled(np.ones(3) * step, times) == pytest.approx(function(np.ones(3) * step, times))
    assert len(compiled._variants) == 1


def test_sizes_under_transforms():
    def function(x, times):
        return np.sum(np.sin(np.arange(0, np.sum(times), 0.1) * x))

    times = np.array([0.72, 0.3])
    places = np.arange(0, 1.02, 0.1)
    assert bw.hessian(function)(1.3, times) == pytest.approx(-np.sum(places ** 2 * np.sin(1.3 * places)))
    assert bw.grad(lambda x: bw.grad(function)(x, 1.0 * times))(1.3) == pytest.approx(-np.sum(places ** 2 * np.sin(1.3 * places)))
    with pytest.raises(UnsupportedError, match=r"np.arange of traced bounds.*\n.*while x < stop"):
        bw.vmap(function, in_axes=(None, 0))(1.3, np.stack([times, 2 * times]))


# ----- what has as many elements as its number says, and is made of the number as well
STEPS = {
    "from it": lambda x: np.sum(np.arange(x, 1.05, 0.1) ** 2),
    "up to it": lambda x: np.sum(np.exp(np.arange(x * 4))) + x,
    "in steps of it": lambda x: np.sum(np.exp(-np.arange(0.0, 1.0 + x / 2, x))),
    "downwards": lambda x: np.sum(np.arange(2.0, x / 3, -x) ** 3),
    "none": lambda x: np.sum(np.arange(1.0, x, x)) + 2 * x,
    "gone over": lambda x: sum(k * t ** 2 for k, t in enumerate(np.arange(x, 2.05, 0.25))),
    "in a list": lambda x: np.sum(np.array(list(np.arange(x, 2.05, x)))),
    "interpolated": lambda x: np.interp(x, np.arange(0, 1.2, x / 2), np.arange(0, 1.2, x / 2) ** 2),
    "r_": lambda x: np.sum(np.r_[x:1.05:0.1, 3.0] ** 2),
    "mgrid": lambda x: np.sum(np.mgrid[x:1.05:0.1] ** 2),
    "mgrid of two": lambda x: np.sum(np.mgrid[x:1.05:0.1, 0:3] ** 2),
    "ogrid": lambda x: np.sum(np.ogrid[0:1:x / 2, 0:x:3j][0] * np.ogrid[0:1:x / 2, 0:x:3j][1]),
    "a window": lambda x: np.sum(np.kaiser(int(20 * x), x) ** 2),
}


@pytest.mark.parametrize("function", STEPS.values(), ids=STEPS)
def test_the_numbers_in_it_have_derivatives(function):
    """They were taken for known ones once: derivatives of np.arange(x, ...) were 0."""
    x, h = 0.437, 1e-6
    assert bw.jit(function)(x) == pytest.approx(function(x), rel=1e-13)
    value, slope = bw.value_and_grad(function)(x)
    assert value == pytest.approx(function(x), rel=1e-13)
    assert slope == pytest.approx((function(x + h) - function(x - h)) / (2 * h), rel=1e-6)
    assert bw.jvp(function, (x,), (1.0,))[1] == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("dtype", [None, np.float32, np.int64])
def test_elements_are_numpys_to_the_bit(dtype, rng):
    def elements(x, y):
        found = np.arange(x, x + 7.3 * y, y, dtype=dtype)
        return np.sum(found) * x, found

    for start, step in rng.uniform(0.01, 3.0, (8, 2)):
        (_, found), _ = bw.value_and_grad(elements, has_aux=True)(start, step)
        expected = np.arange(start, start + 7.3 * step, step, dtype=dtype)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_what_takes_its_number_alone_is_refused_in_derivatives():
    def drawn(x):
        return np.sum(np.zeros(int(10 * x))) + np.random.default_rng(0).gamma(x, 1.0)

    with pytest.raises(bw.errors.TracerError, match="asks for a number"):
        bw.grad(drawn)(0.437)
