"""What fails in a loop, a branch or a function inside of a `try`: the handler is taken, for values and derivatives."""

import contextlib
import math

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError
from tests.unit.frontend.comparing import as_python

X = np.array([0.31, 1.22, 0.83, 0.41, 1.52, 2.03, 0.12, 0.91, 0.73, 0.62, 0.21, 0.45])
PLACES = (X, -X, np.where(np.arange(12) == 7, -0.35, X), np.where(np.arange(12) == 0, -0.6, X), 3.0 * X)


def of_a_loop(x):
    try:
        total = 0.0
        for v in x:
            if v < 0:
                raise ValueError("negative")
            total += np.sqrt(v)
    except ValueError:
        total = -x[1] ** 2
    return total


def depth(x, limit):
    """Ends with an error of its own, in a function, a loop and a branch."""
    total = 1.0
    for k in range(x.size):
        total = total + np.sin(x[k]) * total
        if total > limit:
            if x[k] > 1.0:
                raise RuntimeError(f"{total} is too much")
            total = total - limit
    return total


def of_a_function(x):
    try:
        return depth(x, 6.0)
    except RuntimeError:
        return x[0] * x[2]


def of_nested_loops(x):
    try:
        total = 0.0
        for k in range(12):
            for j in range(k):
                if x[j] + x[k] < -0.1:
                    raise ValueError
                total += x[j] * x[k]
    except ValueError:
        total = x[2] ** 3
    else:
        total *= 2
    return total


def factors(x):
    a = np.eye(2)
    try:
        for v in x:
            a = a + 0.1 * v * np.ones((2, 2))
            factor = np.linalg.cholesky(a)
            a = factor @ factor.T + 0.01 * v
        found = np.sum(a)
    except np.linalg.LinAlgError:
        found = np.sum(x)
    return found


def only_tried(x):
    """Nobody reads the factors."""
    try:
        for v in x:
            np.linalg.cholesky(np.eye(2) * (v + 0.5))
    except np.linalg.LinAlgError:
        return x[0]
    return x[1] ** 2


def in_a_side(x):
    try:
        if x[0] > 0.4:
            y = np.linalg.cholesky(np.eye(2) * x[1])[0, 0]
        else:
            y = x[2] * np.linalg.inv(np.eye(2) * x[7])[0, 0]
    except np.linalg.LinAlgError:
        y = 3 * x[0]
    return y


def until_it_ends(x):
    y, count = x[0], 0
    try:
        while True:
            y = 1.3 * y - 0.25
            count += 1
            if abs(y) > 10:
                break
            if count > 12:
                raise RuntimeError("it does not end")
    except RuntimeError:
        y = x[1] * 5
    return y


def several(x):
    """The first one that fails counts."""
    try:
        total = 0.0
        for k in range(12):
            if x[k] > 1.4:
                raise ValueError("large")
            total += np.linalg.cholesky(np.eye(2) * (x[k] + 0.2))[1, 1]
    except np.linalg.LinAlgError:
        return x[0]
    except ValueError:
        return x[1] * 2
    return total


def out_of_range(x):
    place = (np.abs(x[0]) * 10).astype(int)
    try:
        total = 0.0
        for j in range(9):
            total += x[place + j] ** 2
    except IndexError:
        total = x[3]
    return total


def in_an_outer_loop(x):
    total = 0.0
    for k in range(12):
        try:
            part = 0.0
            for j in range(9):
                if x[k] * (j - 4) > 5.3:
                    raise ArithmeticError
                part += np.cos(x[k] * j)
        except ArithmeticError:
            part = x[k]
        total += part
    return total


def divisions(x):
    total = 0.0
    for v in x:
        try:
            total += 1.0 / float(np.floor(v)) + float(v)
        except ZeroDivisionError:
            total += 7.0 * v
    try:
        for v in x:
            total = total % float(np.ceil(v) + 3.0) + float(v)
    except ZeroDivisionError:
        total = x[0]
    return total


PROGRAMS = [of_a_loop, of_a_function, of_nested_loops, factors, only_tried, in_a_side, until_it_ends, several, out_of_range,
            in_an_outer_loop, divisions]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES[:2])
    as_python(program, *PLACES[2:4])
    as_python(program, PLACES[4], PLACES[0])


@pytest.mark.parametrize("program", [of_a_loop, factors, until_it_ends], ids=lambda program: program.__name__)
def test_second_derivatives_and_batches(program):
    v, h = np.cos(np.arange(12.0)), 1e-5
    for x in PLACES[:3]:
        _, tangent = bw.jvp(bw.grad(program), (x,), (v,))
        np.testing.assert_allclose(tangent, (bw.grad(program)(x + h * v) - bw.grad(program)(x - h * v)) / (2 * h), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(bw.jvp(program, (x,), (v,))[1], bw.grad(program)(x) @ v, rtol=1e-9)
    np.testing.assert_allclose(bw.vmap(program)(np.stack(PLACES)), [program(x) for x in PLACES], rtol=1e-12)


def test_loops_stay_loops():
    for program in (of_a_loop, factors, several):
        assert "unrolled" not in bw.jit(program).explain(X)


def test_what_no_handler_is_for_is_raised():
    def program(x):
        try:
            total = 0.0
            for v in x:
                if v < 0:
                    raise ValueError(f"{v:.2f} is negative")
                if v > 1.9:
                    raise KeyError("large")
                total += v
        except KeyError:
            total = -1.0
        return total
    compiled = bw.jit(program)
    assert compiled(X) == -1.0
    assert compiled(X / 2) == pytest.approx(program(X / 2))
    with pytest.raises(ValueError, match=r"-0.35 is negative"):
        compiled(np.where(np.arange(12) == 3, -0.35, X))
    assert compiled(np.where(np.arange(12) == 7, -0.35, X)) == -1.0     # behind the large one


def test_what_was_done_before_it_failed_is_refused():
    def program(x):
        y = x[0]
        try:
            for v in x:
                if v < 0:
                    raise ValueError
                y = y + v
        except ValueError:
            y = y * 2
        return y
    with pytest.raises(TracerBoolError, match="(?s)the `except` reads y, which has changed by then.*hint: write the test as `if`"):
        bw.jit(program)(X)

    def written(x):
        y = np.zeros(12)
        try:
            for k in range(12):
                if x[k] < 0:
                    raise ValueError
                y[k] = x[k]
        except ValueError:
            return -1.0
        return np.sum(y)
    with pytest.raises(TracerBoolError, match="(?s)it may have changed an array, list or object before.*hint: write the test as `if`"):
        bw.jit(written)(X)


# ----- what Python's functions of numbers raise, where NumPy's give nan or inf
def roots(x):
    total = 0.0
    for v in x:
        try:
            total += math.sqrt(v) + math.log(v - 0.5)
        except ValueError:
            total -= 0.5 * v
    return total


def any_error(x):
    try:
        return math.acos(x[0]) + x[1]
    except Exception:
        return 3.0 * x[1]


def too_large(x):
    total = x[0]
    for v in x:
        try:
            total += math.exp(600 * v) * 1e-300
        except OverflowError:
            total += v
    return total


def where_it_overflows_and_where_not(x):
    try:
        return math.gamma(200 * x[0] + 0.3) * 1e-300 + math.pow(float(x[1]), -1)
    except OverflowError:
        return x[1]
    except ValueError:
        return 2.0 * x[0]


def integers(x):
    total = 0.0
    for v in x:
        try:
            total += int(v / (np.abs(v) > 0.5)) * v
        except (OverflowError, ValueError):
            total += v
    return total


def of_a_helper(x):
    def safe(v):
        try:
            return math.log(v)
        except ValueError:
            return -1.0
    return sum(safe(v) * x[0] for v in x)


def powers(x):
    total = 0.0
    for v in x:
        try:
            total += float(np.floor(v)) ** -2 + v
        except ZeroDivisionError:
            total += 2 * v
    return total


def any_division(x):
    try:
        return float(x[0]) / float(np.floor(x[1]))
    except Exception:
        return x[0]


OF_NUMBERS = [roots, any_error, too_large, where_it_overflows_and_where_not, integers, of_a_helper, powers, any_division]


@pytest.mark.parametrize("program", OF_NUMBERS, ids=lambda program: program.__name__)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_errors_of_numbers_are_caught(program):
    as_python(program, *PLACES[:2])
    as_python(program, *PLACES[2:4])


def test_where_nothing_catches_it_numbers_are_numpys():
    def program(x):
        try:
            return math.sqrt(x[0])
        except KeyError:
            return x[1]
    assert np.isnan(bw.jit(program)(np.array([-1.0, 2.0])))


def test_an_error_of_numbers_in_a_try_that_is_not_taken_apart_is_refused():
    def program(x):
        y = x[1]
        with contextlib.suppress(ValueError):
            y = math.sqrt(x[0])
        return y
    with pytest.raises(TracerBoolError, match="whether ValueError is raised"):
        bw.jit(program)(X)
