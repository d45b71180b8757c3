"""`index` and `count` of lists and tuples, where data decide which elements are equal to what is looked for."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import compare

PATH = [0.0, 0.5, 1.25, 2.0, 2.5, 1.25]


def nearest(x):
    distances = [(x - place) ** 2 for place in PATH]
    return distances.index(min(distances))


def followed(x):
    total = 0.0
    for _ in range(12):
        distances = [abs(x - place) for place in PATH]
        number = distances.index(max(distances))
        total = total + distances[number]
        x = x + 0.2 * (PATH[number] - x)
    return total, x


def known_list(x):
    return PATH.index(1.25 if x > 0 else 2.5), PATH.count(1.25 if x > 0 else 2.5)


def from_a_place_on(x):
    values = [x, 2 * x, x, 3.0, x]
    return values.index(x * 1.0, 1), values.index(x * 1.0, -2), values.index(x * 1.0, 1, 4), values.count(x * 1.0)


def of_a_tuple(x):
    values = (x, x + 1, 2.0 * x)
    return values.index(max(values)), values.count(min(values))


def integers_and_numbers(x):
    values = [1, 2.0, np.float64(3.0), x > 0, x]
    return values.index(x * 1.0), values.count(1.0 * (x > 0))


def words(x):
    gear = "high" if x > 1 else "low"
    return ["low", "middle", "high"].index(gear), ["low", gear, "low"].count("low")


def pairs(x):
    steps = [(0, x), (1, 2 * x), (0, 3 * x)]
    return steps.index((0, x * 3.0)), steps.count((0, x * 1.0))


def known_of_all(x):
    names = ["a", "b"]
    return names.index("b") * x, [x, "b", None].index("b"), [x, x].index(x)


PROGRAMS = [nearest, followed, known_list, from_a_place_on, of_a_tuple, integers_and_numbers, words, pairs, known_of_all]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("x", [0.3, 1.9, 2.2])
def test_as_python(program, x) -> None:
    compare(program, x)


@pytest.mark.parametrize("x", [-2.5, 2.5])
def test_what_is_not_there_raises(x) -> None:
    program = bw.jit(lambda x: [1.0, 2.5].index(x))
    if x > 0:
        assert program(x) == 1
    else:
        with pytest.raises(ValueError, match="x not in list"):
            program(x)


def test_the_place_has_a_bound() -> None:
    def spread(x):
        distances = [(x - place) ** 2 for place in PATH]
        return np.sum(np.ones(distances.index(min(distances)) + 1))

    compare(spread, 1.9)


def test_gradient_of_what_is_found() -> None:
    def loss(x):
        return followed(x)[0]

    value, slope = bw.value_and_grad(loss)(0.3)
    np.testing.assert_allclose(value, loss(0.3))
    np.testing.assert_allclose(slope, (loss(0.3 + 1e-6) - loss(0.3 - 1e-6)) / 2e-6, rtol=1e-7)
    assert "unrolled" not in bw.jit(loss).explain(0.3)
