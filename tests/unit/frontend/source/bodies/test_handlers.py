"""`try` with `except` in functions that are traced: handlers are for what the program raises, never for what tracing refuses."""

import contextlib
import warnings

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])


def until_it_settles(x):
    y = x[0]
    for _ in range(50):
        if y == 0:
            return 0.0
        try:
            z = y / x[1]
        except FloatingPointError:
            z = 0.0
        before = y
        y = 0.5 * (y + np.cos(z))
        if abs(y - before) < 1e-9:
            break
    else:
        return float("nan")
    return y * x[1]


def left_inside(x):
    y = x[0]
    for k in range(12):
        try:
            if x[k] > 0.5:
                continue
            for j in range(12):
                if x[j] > y + 1.03:
                    break
            else:
                y *= 0.9
            y += x[k] / (2 + y * y)
        except np.linalg.LinAlgError:
            continue
        else:
            y += 0.1
        y *= 1.01
    return y


def solved(x):
    y = x[0]
    for _ in range(12):
        try:
            y = y + np.linalg.solve(np.eye(2) * (2 + y * y), x[:2])[0]
        except np.linalg.LinAlgError:
            return np.inf
        if y > 2:
            return y
    return y


def in_a_branch(x):
    total = 0.0
    if x[0] > 0:
        try:
            total += {"a": x[1]}["b"]
        except KeyError:
            total += x[2]
    return total


def last_index(x):
    total = 0.0
    for k in range(12):
        try:
            total += x[k + 1] * x[k]
        except IndexError:
            total += 5.0
    return total


def by_the_index(x):
    total = 0.0
    for k in range(12):
        try:
            total += 2.0 / k * x[k]
        except ZeroDivisionError:
            total += 5.0 * x[k]
    return total


def shapes(x):
    total = 0.0
    for k in range(12):
        try:
            total += x[:k] @ x[:5]
        except (ValueError, TypeError):
            total += 5.0 * x[k]
    return total


LOOPS = [until_it_settles, left_inside, solved]


@pytest.mark.parametrize("program", [*LOOPS, in_a_branch, last_index, by_the_index, shapes], ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X)


@pytest.mark.parametrize("program", LOOPS, ids=lambda program: program.__name__)
def test_stays_a_loop(program) -> None:
    assert "unrolled" not in bw.jit(program).explain(X)


def any_exception(x):
    try:
        return np.ones(int(x.sum())).sum()
    except Exception:
        return x[0]


def a_type_error(x):
    try:
        return np.ones(int(x.sum())).sum()
    except TypeError:
        return x[0]


def anything(x):
    try:
        return np.ones(int(x.sum())).sum()
    except:  # noqa: E722
        return x[0]


def in_a_loop(x):
    total = 0.0
    for _ in range(20):
        try:
            total += np.ones(int(x[0])).sum()
        except (TypeError, ValueError):
            total += x[1]
    return total


def nested(x):
    try:
        try:
            return np.ones(int(x.sum())).sum()
        except ValueError:
            return x[0]
    except BaseException:
        return x[1]


@pytest.mark.parametrize("program", [any_exception, a_type_error, anything, in_a_loop, nested], ids=lambda program: program.__name__)
def test_handlers_are_not_for_refusals(program) -> None:
    with pytest.raises(bw.errors.BwError, match="a traced value as a size|the number of elements is data"):
        bw.compile(program, X + 2)


def test_errors_of_numpys_are_caught() -> None:
    def added(x):
        try:
            return np.sum(x + np.ones(5))
        except ValueError:
            return np.sum(x + np.ones(12))

    as_python(added, X)


# ----- contextlib.suppress, which is a `try` whose handlers do nothing
def test_suppress_is_for_what_the_program_raises() -> None:
    def program(x):
        y = 1.0
        with contextlib.suppress(KeyError, ValueError):
            y = {1: 2.0}[5]
        for k in range(12):
            with contextlib.suppress(FloatingPointError):
                y = y + np.sin(x[k] * y)
        return y

    assert bw.jit(program)(X) == pytest.approx(program(X), rel=1e-12)


@pytest.mark.parametrize("kinds", [(Exception,), (TypeError, ValueError), (BaseException,)], ids=str)
def test_suppress_does_not_swallow_what_tracing_refuses(kinds) -> None:
    def program(x):
        y = 1.0
        with contextlib.suppress(*kinds):
            y = float(str(x[0]))
        return y * np.sum(x)

    def in_a_loop(x):
        y = 1.0
        for k in range(12):
            with contextlib.suppress(*kinds):
                y = float(str(x[k]))
        return y

    for function in (program, in_a_loop):
        with pytest.raises(bw.errors.BwError, match="float.str.x"):
            bw.jit(function)(X)


def test_suppress_of_divisions_by_zero() -> None:
    def program(x):
        y = x[0]
        with contextlib.suppress(ZeroDivisionError):
            y = 1 / x[1]
        return y

    assert bw.jit(program)(X) == program(X)                 # a number of NumPy's, which raises nothing
    with pytest.raises(TracerError, match="catches ZeroDivisionError"):
        bw.jit(program)([2.0, 4.0])


def vincenty(latitude, longitude, sine):
    """Where the geodesic is the equator cos2_alpha is 0: NumPy's numbers give nan, Python's raise."""
    f = 1 / 298.257223563
    u1, u2 = np.arctan((1 - f) * np.tan(latitude)), np.arctan((1 - f) * np.tan(0.3))
    angle = longitude
    for _ in range(100):
        sin_sigma = np.hypot(np.cos(u2) * sine(angle), np.cos(u1) * np.sin(u2) - np.sin(u1) * np.cos(u2) * np.cos(angle))
        cos_sigma = np.sin(u1) * np.sin(u2) + np.cos(u1) * np.cos(u2) * np.cos(angle)
        sin_alpha = np.cos(u1) * np.cos(u2) * sine(angle) / sin_sigma
        cos2_alpha = 1 - sin_alpha ** 2
        try:
            cos2 = cos_sigma - 2 * np.sin(u1) * np.sin(u2) / cos2_alpha
        except ZeroDivisionError:
            cos2 = 0.0
        before, angle = angle, longitude + 0.9 * f * sin_alpha * (np.arctan2(sin_sigma, cos_sigma) + f * sin_sigma * cos2)
        if abs(angle - before) < 1e-13:
            break
    return angle * sin_sigma


def test_divisions_of_numbers_of_numpy_raise_nothing() -> None:
    compiled, h = bw.value_and_grad(lambda x: vincenty(x, 0.7, np.sin)), 1e-6
    for x in (0.4, np.float64(1.1)):
        value, slope = compiled(x)
        assert value == pytest.approx(vincenty(x, 0.7, np.sin), rel=1e-12)
        assert slope == pytest.approx((vincenty(x + h, 0.7, np.sin) - vincenty(x - h, 0.7, np.sin)) / (2 * h), rel=1e-6)

    def of_both(x, y):
        """A number of Python's in the first iteration, one of NumPy's afterwards."""
        total = 0.0
        for _ in range(20):
            try:
                total += 1.0 / y
            except ZeroDivisionError:
                total += 5.0
            y = np.sin(x)
        return total

    assert bw.jit(of_both)(0.3, 0.0) == pytest.approx(of_both(0.3, 0.0), rel=1e-12)
    assert bw.jit(of_both)(0.3, np.float64(2.0)) == pytest.approx(of_both(0.3, np.float64(2.0)), rel=1e-12)


def warnings_are_errors(x, y):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = np.divide(x, y)
    except RuntimeWarning:
        found = 0.0
    return found


def errors_in_a_body(x, y):
    try:
        with np.errstate(divide="raise"):
            return np.divide(x, y)
    except Exception:
        return 0.0


def errors_around(x, y):
    with np.errstate(all="raise"):
        for _ in range(9):
            try:
                x = np.log(x) + y
            except FloatingPointError:
                x = y
    return x


def suppressed_errors(x, y):
    found = x
    with np.errstate(invalid="raise"), contextlib.suppress(FloatingPointError):
        found = x - y
    return found


@pytest.mark.parametrize("program", [warnings_are_errors, errors_in_a_body, errors_around, suppressed_errors])
def test_what_numpy_raises_is_caught(program) -> None:
    """Compiled code would go on with inf."""
    for one in (0.0, np.zeros(1)):
        with pytest.raises(TracerError, match="compiled code gives what NumPy gives otherwise, and raises nothing"):
            bw.jit(program)(one + 1.0, one)


def test_recorded_warnings() -> None:
    def halved(x, is_read):
        while np.sum(x) > 0.3:
            with warnings.catch_warnings(record=True) as found:
                warnings.filterwarnings("ignore", message="divide")
                x = 0.5 * np.log1p(x)
            if is_read and found:
                x = x - 1.0
        return x

    np.testing.assert_allclose(bw.jit(halved, static_argnums=1)(X ** 2, False), halved(X ** 2, False), rtol=1e-12)
    with pytest.raises(bw.errors.BwError, match="the warnings that were recorded are read"):
        bw.jit(halved, static_argnums=1)(X ** 2, True)
