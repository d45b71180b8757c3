"""What a traced function changes or uses up outside: compiled calls warn that they do not repeat it, or do."""

import itertools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import StaleValueWarning

X = np.array([1.0, 2.0])
table, shown, seen = np.zeros(3), np.arange(3.0), []
numbers, counter = iter(range(100)), itertools.count()


def generated():
    yield from range(100)


source = generated()


def of_default(x, calls=[]):                      # noqa: B006
    calls.append(1)
    return x * len(calls)


def of_keyword_default(x, *, calls={}):           # noqa: B006
    calls["n"] = calls.get("n", 0) + 1
    return x * calls["n"]


def of_array(x):
    table[:] += 1
    return x * table.sum()


def of_view(x):
    part = table[1:]
    part[0] = part[0] + 1
    return x * table.sum()


@pytest.mark.parametrize(("program", "message"), [
    (of_default, "calls is assigned to while"), (of_keyword_default, "calls"), (lambda x: x * next(numbers), "numbers is gone over while"),
    (lambda x: x * next(counter), "counter is gone over"), (lambda x: x * next(source), "source is gone over")])
def test_warns(program, message):
    with pytest.warns(StaleValueWarning, match=message):
        bw.jit(program)(X)


@pytest.mark.filterwarnings("ignore::bwcompiler.errors.RecompileWarning")
@pytest.mark.parametrize("program", [of_array, of_view])
def test_arrays_that_change_in_each_call_are_read_in_each_call(program):
    compiled = bw.jit(program)
    for number in range(5):
        table[:] = 0.5 * number
        expected, after = program(X), table.copy()
        for _ in range(2):
            expected, after = program(X), table.copy()
        table[:] = 0.5 * number
        for _ in range(3):
            found = compiled(X)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(table, after)


def test_defaults_that_change_are_seen():
    scales = [2.0]

    def scaled(x, scales=scales, *, options={"power": 2}):   # noqa: B006
        return scales[0] * x ** options["power"]
    compiled = bw.jit(scaled)
    for number in range(4):
        scales[0] = number + 1.0
        scaled.__kwdefaults__["options"]["power"] = number + 1
        np.testing.assert_allclose(compiled(X), scaled(X))


def test_what_is_read_or_made_inside_does_not_warn():
    def program(x):
        made = np.zeros(3)
        made[0] = 2.0
        part = shown[1:].copy()
        part += 1
        both = np.sort(shown)
        both[0] = 1
        return x * made.sum() * part.sum() * both.sum() * shown.sum()
    np.testing.assert_allclose(bw.jit(program)(X), program(X))


def test_round_gives_integers():
    program = lambda x, n: (round(x[1] * 1.3), round(n / 3), round(n), x[round(n / 4)], round(x[0], 1), round(n / 3, 2))
    for found, expected in zip(bw.jit(program)(X, 5), program(X, 5), strict=True):
        assert found == expected
        assert np.asarray(found).dtype == np.asarray(expected).dtype
