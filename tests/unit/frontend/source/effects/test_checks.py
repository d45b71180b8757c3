"""Exceptions that depend on traced values are raised by the compiled program, with the texts that Python gives; messages are left out."""

import gc
import logging
import math
import re
import sys
import warnings
import weakref

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import DTypeError, LeftOutWarning, TracerBoolError, TracerError
from tests.support.source import from_text
from tests.unit.frontend.comparing import as_python

ASSERTED = """\
import numpy as np

def asserted(x):
    assert x > 0, f"not positive: {x}"
    assert np.isfinite(x), "not finite"
    return x * x

def escaping(x):
    for k in range(9):
        x = x * 1.5
        assert x < 1000, "escaped"
        if x > 20:
            return x + k
    return x
"""
asserted, escaping = from_text(ASSERTED, "asserted"), from_text(ASSERTED, "escaping")      # as they are: pytest rewrites `assert`


def square_root(x):
    if x < 0:
        raise ValueError(f"negative: {x:.3f}, {2 * x} and {'text'}")
    return math.sqrt(x)


def by_kind(x):
    if x > 10:
        raise OverflowError("large")
    elif x > 5:
        y = x
    elif x < 0:
        raise ValueError("small")
    else:
        y = 2 * x
    return y


class Diverged(RuntimeError):
    def __init__(self, count, x):
        super().__init__("after " + str(count) + f" iterations x is {x:.6g}")
        self.x = x


def newton(a):
    x, n = a, 0
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
        n += 1
        if n > 20:
            raise Diverged(n, x)
    return x


def nothing_but_checks(a):
    for i in range(len(a)):
        if a[i] == 0:
            raise ZeroDivisionError(f"row {i}")
    return np.sum(1 / a)


def positive(y, limit=3.0):
    if np.max(y) > limit:
        raise ValueError("above the limit of " + str(limit))
    return y * 2


def in_a_branch_of_a_loop(x):
    total = 0.0
    for k in range(12):
        if x[k] > 0:
            total += positive(x)[k]
    return total


def in_a_method(x):
    return Domain(1.0).of(x)


class Domain:
    def __init__(self, lower):
        self.lower = lower

    def of(self, x):
        if not x > self.lower:
            raise ValueError(f"x = {x} is not above {self.lower}")
        return np.log(x - self.lower)


CASES = [(square_root, 4.0, -4.0), (asserted, 2.0, -2.0), (asserted, 2.0, np.inf), (by_kind, 6.0, 11.0), (by_kind, 3.0, -1.0),
         (newton, 2.0, -2.0), (nothing_but_checks, np.arange(1.0, 12), np.arange(-3.0, 9)),
         (in_a_branch_of_a_loop, np.ones(12), 4 * np.ones(12)), (in_a_branch_of_a_loop, -4 * np.ones(12), 4 * np.ones(12)),
         (escaping, 1.0, 900.0), (escaping, 0.001, 999.0), (in_a_method, 2.0, 0.5)]


@pytest.mark.parametrize(("function", "good", "bad"), CASES, ids=lambda x: x.__name__ if callable(x) else "")
def test_raised_at_run_time(function, good, bad):
    with pytest.raises(Exception) as expected:
        function(bad)
    for compiled, value in ((bw.jit(function), lambda found: found), (bw.value_and_grad(function), lambda found: found[0]),
                            (bw.grad(function), lambda _: function(good))):
        np.testing.assert_allclose(value(compiled(good)), function(good), rtol=1e-13)
        with pytest.raises(type(expected.value), match=re.escape(str(expected.value))) as caught:
            compiled(bad)
        assert type(caught.value) is type(expected.value)
        assert ".py:" in str(caught.value).partition("\n")[0]
        np.testing.assert_allclose(value(compiled(good)), function(good), rtol=1e-13)
    h = 1e-6 * np.ones_like(good)
    difference = (function(good + h) - function(good - h)) / 2e-6
    assert np.sum(bw.grad(function)(good)) == pytest.approx(difference, rel=1e-6)


def test_attributes_of_what_is_raised_are_numbers():
    with pytest.raises(Diverged) as expected:
        newton(-2.0)
    with pytest.raises(Diverged) as caught:
        bw.jit(newton)(-2.0)
    assert caught.value.x == pytest.approx(expected.value.x, rel=1e-9)


def test_mapped():
    mapped = bw.vmap(square_root)
    np.testing.assert_allclose(mapped(np.array([1.0, 4.0])), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"negative: -4\.000, -8\.0 and text"):
        mapped(np.array([1.0, -4.0]))


def test_what_a_try_that_is_left_may_catch_is_refused():
    unused = 0

    def guarded(x):
        y = 0.0
        for k in (1.0, 2.0):
            try:
                if x < k:
                    raise ValueError
                y += x
                nonlocal unused
            except Exception:
                y -= x
        return y

    with pytest.raises(TracerBoolError, match=r"(?s)raise ValueError.*inside of a `try`"):
        bw.jit(guarded)(1.0)


def ratio(x, y):
    return x // y


@pytest.mark.parametrize("loops", [False, True])
def test_divisions_in_a_try_that_catches_what_python_raises(loops):
    def guarded(x, y):
        try:
            if loops:
                for _ in range(20):
                    x = x / y
            else:
                x = ratio(x, y)
        except (ValueError, ZeroDivisionError):
            x = 0.0
        return x

    for y in (0.0, 0.75):
        assert bw.jit(guarded)(2.0, y) == guarded(2.0, y)


@pytest.mark.parametrize("divide", [lambda x: x / 0, lambda x: x // 0.0, lambda x: x % 0, lambda x: int(x) // 0], ids="/ // % int".split())
def test_divisions_by_a_known_zero_in_a_try(divide):
    def guarded(x, y):
        try:
            if y > 1.0:
                x = divide(x)
            x = x + 2.0
        except ZeroDivisionError:
            x = 7.0 * x
        return x

    for y in (0.5, 1.5):
        assert bw.jit(guarded)(2.0, y) == guarded(2.0, y)


def test_divisions_in_a_try_that_is_not_taken_apart_are_refused():
    unused = 0

    def guarded(x, y):
        while True:
            try:
                x = ratio(x, y)
                nonlocal unused
                return x
            except ZeroDivisionError:
                y = 1.0

    with pytest.raises(TracerError, match=r"(?s)x // y.*a number is divided by a traced one, inside of a `try`.*hint: test the divisor"):
        bw.jit(guarded)(1.0, 0.0)


def test_divisions_in_a_try_that_raise_nothing():
    def guarded(x, y):
        try:
            mean = np.sum(x / y) / x.size + np.sum(x) % 2.0        # arrays, and divisors that are known
            half = float(mean) / 2
        except ZeroDivisionError:
            half = 0.0
        try:
            half = half / y[0]
        except ValueError:
            half = 1.0
        try:
            known = 1 / (x.size - 3)
        except ZeroDivisionError:
            known = 7.0
        return half + known

    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 8.0])
    assert bw.jit(guarded)(x, y) == guarded(x, y)


def test_known_conditions_raise_while_tracing():
    def checked(x, mode):
        if mode not in ("a", "b"):
            raise ValueError(f"mode {mode!r}")
        try:
            if x.ndim > 1:
                raise TypeError
            scale = 1.0
        except TypeError:
            scale = 2.0
        assert x.shape[0] == 3, f"shape {x.shape}"
        return np.sum(x) * scale

    compiled = bw.jit(checked)
    assert compiled(np.ones(3), "a") == 3.0
    assert compiled(np.ones((3, 2)), "b") == 12.0
    with pytest.raises(ValueError, match="mode 'c'"):
        compiled(np.ones(3), "c")
    with pytest.raises(AssertionError, match=r"shape \(2,\)"):
        compiled(np.ones(2), "a")


def test_a_function_that_returns_nothing_for_some_data_raises_for_them():
    def maybe(x):
        if x > 0:
            return x

    compiled = bw.value_and_grad(maybe)
    assert compiled(1.5)[0] == 1.5
    with pytest.raises(TypeError, match="the function returns None for these arguments"):
        compiled(-1.0)
    assert bw.jit(maybe)(1.5) == 1.5
    assert bw.jit(maybe)(-1.5) is None


def validated(x):
    if np.sum(x) > 3:
        raise ValueError("too large")


def validated_one_by_one(x):
    for k in range(len(x)):
        if x[k] > 3:
            raise ValueError("too large")


def validated_text(x):
    validated(x)
    return "valid", (), None


CHECKING = {
    "called": bw.jit(validated), "loop": bw.jit(validated_one_by_one), "text": bw.jit(validated_text),
    "compiled ahead": lambda x: bw.compile(validated, x)(x), "mapped": lambda x: bw.vmap(validated)(np.stack([np.zeros(2), x])),
    "tangents": lambda x: bw.jvp(validated, (x,), (x,))[0], "inside": bw.jit(lambda x: [bw.jit(validated)(x), x]),
    "mapped inside": bw.jit(lambda x: [bw.vmap(validated)(np.stack([x, x])), x]), "again": bw.jit(lambda x: [bw.checkpoint(validated)(x), x]),
    "a side": bw.jit(lambda x: bw.cond(x[0] > 1, validated, lambda x: None, x))}


@pytest.mark.parametrize("way", CHECKING)
def test_functions_that_return_nothing_raise(way):
    checking = CHECKING[way]
    with pytest.raises(ValueError, match="too large"):
        checking(np.array([4.0, 1.0]))
    found = checking(np.array([2.0, 1.0]))
    assert (found[0] if isinstance(found, list) else found) == (("valid", (), None) if way == "text" else None)


def test_a_check_is_no_result_to_differentiate():
    with pytest.raises(bw.errors.GradientError, match="returned nothing that is a number"):
        bw.grad(validated)(np.ones(2))


def test_messages_in_bodies_are_left_out(capsys):
    def verbose(x):
        for _ in range(12):
            x = x * 1.5
            if x > 10:
                print("large", x)
                sys.stdout.write("large")
                logging.getLogger("captured").info("x %s", x)
        while x > 2:
            x = x / 3
            warnings.warn("shrinking", stacklevel=1)
        return x

    with pytest.warns(LeftOutWarning) as caught:
        found = bw.jit(verbose)(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        capsys.readouterr()
        assert found == verbose(1.0)
    assert [str(one.message).splitlines()[1].strip().partition("()")[0] for one in caught] == ["print", "write", "info", "warn"]


def sum_of_checked(x, k):
    """In this file, where pytest rewrites `assert`."""
    total = 0.0
    for j in range(len(x)):
        assert x[j] < 9.0, f"element {j} is {x[j]:.1f}"
        if j <= k:
            total = total + x[j] ** 2
    assert x.shape == (10,) and total >= 0
    return total


def test_assert_statements_that_pytest_rewrites():
    x = np.arange(10.0) * 0.9
    compiled = bw.jit(sum_of_checked)
    assert compiled(x, 3) == sum_of_checked(x, 3)
    assert "one of 10 iterations" in compiled.explain(x, 3)
    with pytest.raises(AssertionError, match="element 9 is 9.9"):
        compiled(x * 1.1 / 0.9, np.array(3))


SQUARE = np.ones((3, 3))


def of_shapes(x, n):
    y = np.sum(x)
    if n > 3:
        y = y + np.sum(SQUARE @ x)
    return y


def of_both_sides(x, n):
    if n > 3:
        y = x[:4] + np.ones(3)
    else:
        y = x[:3] * n
    return y.sum()


def of_an_index(x, n):
    return x[9] * 2.0 if n > 3 else x[2] * n


def in_a_loop(x, n):
    y = 0.0
    for i in range(20):
        if n + i > 23:
            y = y + np.sum(np.reshape(x, (4, 4)))
        y = y + x[i % 6] * n
    return y


def of_a_name(x, n):
    return undefined_here + x[0] if n > 3 else x[2] * n        # noqa: F821


def of_a_variable(x, n):
    y = 0.0
    for k in range(6):
        if n + y > 4.5 + x[0] * k:
            y = y + z                              # noqa: F821
        y = y + x[k] * 0.1
    z = y
    return z


@pytest.mark.parametrize("function", [of_shapes, of_both_sides, of_an_index, in_a_loop, of_a_name, of_a_variable],
                         ids=lambda function: function.__name__)
def test_what_numpy_raises_in_a_branch_is_raised_where_it_is_taken(function):
    compiled, x = bw.value_and_grad(function), np.linspace(0.5, 2.0, 6)
    value, gradient = compiled(x, 1.0)
    assert value == pytest.approx(function(x, 1.0), rel=1e-12)
    differences = [(function(x + 1e-6 * one, 1.0) - function(x - 1e-6 * one, 1.0)) / 2e-6 for one in np.eye(6)]
    assert gradient == pytest.approx(differences, rel=1e-6, abs=1e-8)
    with pytest.raises((ValueError, IndexError, NameError)) as python:
        function(x, 5.0)
    with pytest.raises(NameError if isinstance(python.value, NameError) else type(python.value)) as ours:
        compiled(x, 5.0)
    assert "test_checks.py:" in str(ours.value)
    assert bw.jit(function)(x, 1.0) == pytest.approx(value, rel=1e-12)


def test_what_numpy_raises_on_the_only_side_is_raised_at_once_and_in_a_try_caught():
    def on_both(x, n):
        return np.sum(SQUARE @ x) if n > 3 else np.sum(np.ones(5) * x)

    def caught(x, n):
        try:
            y = np.sum(SQUARE @ x) if n > 3 else np.sum(x)
        except ValueError:
            y = 0.0
        return y

    x = np.ones(6)
    with pytest.raises(ValueError, match="could not be broadcast"):
        bw.jit(on_both)(x, 1.0)
    assert [bw.jit(caught)(x, n) for n in (1.0, 5.0)] == [6.0, 0.0]


def test_what_may_raise_keeps_nothing_that_was_there():
    class Workspace:
        """What a function has while it is traced."""

    kept = []

    def workspace():
        made = Workspace()
        kept.append(weakref.ref(made))
        return made

    def checked(x, space):
        if x < 0:
            raise ValueError(f"negative: {x}")
        return 2 * x

    compiled = bw.jit(lambda x: checked(x, workspace()))
    assert compiled(2.0) == 4.0
    gc.collect()
    assert kept[0]() is None
    with pytest.raises(ValueError, match="negative: -1.0"):
        compiled(-1.0)


# ----- None where a number is needed, in a side that may not be taken
def added(x, scale=None):
    total = np.sum(x * x)
    if total > 9:
        total = total * scale
    return total


def in_a_loop(x, limit=None):
    total = 0.0
    for v in x:
        if v > 3:
            total += limit
        total += v * v
    return total


def of_an_attribute(x, weights=None):
    if x[0] > 3:
        return weights.sum() * x[1]
    return x[0] * x[1]


def compared(x, best=None):
    if x[0] > 3 and best < x[0]:
        return x[1]
    return x[0] ** 2


def of_an_item(x, table=None):
    return table[0] * x[0] if x[0] > 3 else x[0] * x[1]


def multiplied(x, matrix=None):
    if x[0] > 3:
        x = matrix @ x + x @ matrix
    return np.sum(x * x)


@pytest.mark.parametrize("program", [added, in_a_loop, of_an_attribute, compared, of_an_item, multiplied], ids=lambda program: program.__name__)
def test_none_in_a_side_raises_where_that_is_taken(program):
    x = np.array([0.5, 1.0, -0.3])
    as_python(program, x, -x)
    compiled = bw.jit(program)
    assert compiled(x) == pytest.approx(program(x), rel=1e-13)
    for _ in range(2):
        with pytest.raises((TypeError, AttributeError), match="None"):
            compiled(x + 4.0)
    assert compiled(-x) == pytest.approx(program(-x), rel=1e-13)


def test_none_in_a_try():
    def program(x, scale=None):
        try:
            if x[0] > 3:
                y = x[0] * scale
            else:
                y = x[1]
        except TypeError:
            y = x[2] ** 2
        return y
    as_python(program, np.array([0.5, 1.0, -0.3]), np.array([4.5, 1.0, -0.3]))


def test_none_in_a_side_that_is_always_taken_is_told_while_tracing():
    with pytest.raises(DTypeError, match="(?s)scale takes no traced values.*None is an argument that was not given"):
        bw.jit(lambda x, scale=None: x * scale)(np.ones(3))
