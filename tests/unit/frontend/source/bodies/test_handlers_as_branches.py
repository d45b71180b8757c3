"""`try` whose handlers are for what data decide: the handler and the rest are sides of a branch, for values and derivatives."""

import numpy as np
import pytest
import scipy.linalg

import bwcompiler as bw

GOOD = np.array([[2.0, 0.5], [0.5, 1.0]])
INDEFINITE = np.array([[1.0, 1.7], [1.7, 1.0]])
SINGULAR = np.array([[1.0, 2.0], [1.0, 2.0]])


def logarithm(a):
    factor = np.linalg.cholesky(a)
    return np.sum(np.log(np.diag(factor)))


def returned(a):
    try:
        factor = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return np.inf
    return np.sum(np.log(np.diag(factor)))


def in_a_function(a):
    try:
        return logarithm(a)
    except np.linalg.LinAlgError:
        return 10.0 + a[0, 1] ** 2


def another_way(a):
    try:
        x = np.linalg.solve(a, a[0])
    except np.linalg.LinAlgError:
        x = a[0] * 3.0
    return np.sum(x * x)


def inverse(a):
    y = a[0, 0]
    try:
        y = y * 2
        x = np.linalg.inv(a)
        y = y * x[0, 1]
    except Exception:
        return y
    return y + x[1, 1]


def with_else_and_finally(a):
    count = 0.0
    try:
        factor = np.linalg.cholesky(a)
    except (ZeroDivisionError, np.linalg.LinAlgError):
        count += a[1, 0]
    else:
        a = a + factor
    finally:
        a = a * 2
    return np.sum(a) + count


def two_factors(a):
    try:
        first = np.linalg.cholesky(a)
        second = np.linalg.cholesky(first @ first.T + np.eye(2) * (a[0, 1] - 0.4))
    except np.linalg.LinAlgError:
        return a[0, 0]
    return np.sum(first * second)


def several_handlers(a):
    try:
        if a[0, 0] < 0:
            raise ValueError("negative")
        x = np.linalg.solve(a, np.ones(2))
    except np.linalg.LinAlgError:
        return a[0, 1]
    except ValueError:
        return a[1, 0] ** 2
    return np.sum(x)


def until_it_is_definite(a):
    jitter = 0.0
    while True:
        try:
            factor = np.linalg.cholesky(a + jitter * np.eye(2))
            break
        except np.linalg.LinAlgError:
            jitter = max(2 * jitter, 1e-2)
    return np.sum(np.log(np.diag(factor)))


def a_few_times(a):
    jitter = 1e-2
    for _ in range(10):
        try:
            factor = np.linalg.cholesky(a + jitter * np.eye(2))
            break
        except np.linalg.LinAlgError:
            jitter *= 10
    else:
        raise ValueError("it is not definite")
    return np.sum(factor)


def with_jitter(a, most=5):
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        jitter = abs(np.diag(a).mean()) * 0.1
        tries = 1
        while tries <= most and np.isfinite(jitter):
            try:
                return np.linalg.cholesky(a + np.eye(a.shape[0]) * jitter)
            except np.linalg.LinAlgError:
                jitter *= 10
            finally:
                tries += 1
        raise np.linalg.LinAlgError("not positive definite, even with jitter")  # noqa: B904


def of_a_process(a):
    return np.sum(np.log(np.diag(with_jitter(a))))


def descent(a):
    """Newton's method, with another step where the matrix is singular."""
    x = a[0]
    for _ in range(20):
        try:
            step = np.linalg.solve(a, (x - 1.0) / (1 + x @ x))
        except np.linalg.LinAlgError:
            step = 0.1 * (x - 1.0)
        x = x - 0.5 * step
    return np.sum(x)


def triangle(a):
    try:
        x = scipy.linalg.solve_triangular(a, np.ones(2))
    except np.linalg.LinAlgError:
        x = np.zeros(2)
    return np.sum(x)


def raised_again(a):
    try:
        factor = np.linalg.cholesky(a)
    except np.linalg.LinAlgError as error:
        if a[0, 1] > 1.0:
            raise ValueError("not definite") from error
        raise
    return np.sum(factor)


PROGRAMS = [returned, in_a_function, another_way, inverse, with_else_and_finally, two_factors, several_handlers, until_it_is_definite,
            a_few_times, of_a_process, descent]


def slopes(program, a, step=1e-6):
    found = np.zeros_like(a)
    for place in np.ndindex(a.shape):
        ends = []
        for sign in (1, -1):
            moved = a.copy()
            moved[place] += sign * step
            ends.append(program(moved))
        found[place] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("a", [GOOD, INDEFINITE, SINGULAR, -GOOD, np.diag([1.0, -2.0]), np.ones((2, 2))], ids=lambda a: str(a.tolist()))
def test_as_python(program, a):
    expected = program(a)
    found = bw.jit(program)(a)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    value, slope = bw.value_and_grad(program)(a)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    assert np.all(np.isfinite(slope))


@pytest.mark.parametrize("program", [in_a_function, with_else_and_finally, until_it_is_definite, a_few_times, of_a_process],
                         ids=lambda program: program.__name__)
@pytest.mark.parametrize("a", [GOOD, INDEFINITE, -GOOD], ids=lambda a: str(a.tolist()))
def test_derivatives(program, a):
    def symmetric(x):                              # Cholesky reads one triangle
        return program((x + x.T) / 2)
    np.testing.assert_allclose(bw.grad(symmetric)(a), slopes(symmetric, a), rtol=2e-5, atol=1e-7)
    check = bw.jvp(symmetric, (a,), (GOOD,))[1]
    np.testing.assert_allclose(check, np.sum(bw.grad(symmetric)(a) * GOOD), rtol=1e-9)


@pytest.mark.parametrize("program", [another_way, inverse, descent], ids=lambda program: program.__name__)
def test_derivatives_of_solves(program):
    for a in (GOOD, INDEFINITE):
        np.testing.assert_allclose(bw.grad(program)(a), slopes(program, a), rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(bw.grad(another_way)(SINGULAR), [[18.0, 36.0], [0.0, 0.0]])


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_batches(program):
    batch = np.stack([GOOD, INDEFINITE, -GOOD, SINGULAR])
    np.testing.assert_allclose(bw.vmap(program)(batch), [program(a) for a in batch], rtol=1e-12)


def test_batched_factors():
    def program(a):
        try:
            factor = np.linalg.cholesky(a)
        except np.linalg.LinAlgError:
            return -1.0
        return np.sum(factor)
    for a in (np.stack([GOOD, GOOD]), np.stack([GOOD, INDEFINITE]), np.zeros((0, 2, 2)), np.zeros((2, 0, 0)), np.ones((1, 1)),
              -np.ones((1, 1)), np.array([[np.nan]])):
        np.testing.assert_allclose(bw.jit(program)(a), program(a))


def test_handlers_that_raise():
    compiled = bw.jit(raised_again)
    np.testing.assert_allclose(compiled(GOOD), raised_again(GOOD))
    for a, kind in ((INDEFINITE, ValueError), (-GOOD, np.linalg.LinAlgError)):
        with pytest.raises(kind, match="not.* definite"):
            compiled(a)
    with pytest.raises(np.linalg.LinAlgError, match="even with jitter"):
        bw.jit(of_a_process)(np.array([[1.0, 1e30], [1e30, 1.0]]))


def test_zeros_on_the_diagonal():
    for a in (np.triu(GOOD), np.array([[1.0, 2.0], [0.0, 0.0]])):
        np.testing.assert_allclose(bw.jit(triangle)(a), triangle(a))


def test_indices_out_of_range():
    def program(x, k):
        try:
            found = x[k] * 2
        except IndexError:
            found = x[0]
        return found
    x = np.arange(5.0)
    for k in (0, 4, -5, 5, -6, 100):
        np.testing.assert_allclose(bw.jit(program)(x, np.int64(k)), program(x, k))
        np.testing.assert_allclose(bw.grad(program)(x, np.int64(k)), 2.0 * (np.arange(5) == k % 5) if -6 < k < 5 else [1, 0, 0, 0, 0])


def test_raises_of_the_program():
    def root(x):
        if x < 0:
            raise ValueError(f"{x} is negative")
        return np.sqrt(x)

    def program(x):
        try:
            y = root(x)
        except ValueError:
            y = -x
        return y * 3

    def others(x):
        try:
            y = root(x)
        except KeyError:
            y = x
        return y
    for x in (4.0, -4.0):
        assert bw.jit(program)(x) == program(x)
    assert bw.grad(program)(4.0) == 0.75
    assert bw.grad(program)(-4.0) == -3.0
    assert bw.jit(others)(4.0) == 2.0
    with pytest.raises(ValueError, match=r"-4.0 is negative"):
        bw.jit(others)(-4.0)


def test_a_loop_before_stays_one():
    def program(a):
        total = a[0, 0]
        try:
            for k in range(50):
                total += np.sin(total * k)
            total += np.linalg.inv(a)[0, 1]
        except np.linalg.LinAlgError:
            total = -total
        return total
    for a in (GOOD, SINGULAR):
        np.testing.assert_allclose(bw.jit(program)(a), program(a), rtol=1e-12)
    assert "unrolled" not in bw.jit(program).explain(GOOD)


def test_what_was_done_before_is_there_in_the_handler():
    def program(a):
        x, done = np.zeros(3), 0
        try:
            x[0] = a[0, 0]
            done = 1
            x[1] = np.linalg.inv(a)[0, 1]
            done = 2
        except np.linalg.LinAlgError:
            x[2] = done
        return x * 2 + done

    def by_a_function(a):
        """Nobody knows what the function has written before it fails."""
        x = a[0] * 1.0

        def changed():
            x[0] = 5.0
            return np.linalg.inv(a)[0, 1]
        try:
            y = changed()
        except np.linalg.LinAlgError:
            y = x[0]
        return y + x[1]
    for a in (GOOD, SINGULAR):
        np.testing.assert_allclose(bw.jit(program)(a), program(a))
    assert bw.jit(by_a_function)(GOOD) == pytest.approx(by_a_function(GOOD))
    with pytest.raises(np.linalg.LinAlgError, match="takes no part"):
        bw.jit(by_a_function)(SINGULAR)


def test_results_of_other_kinds():
    def program(a):
        try:
            return np.sum(np.linalg.cholesky(a))
        except np.linalg.LinAlgError:
            return "not definite"
    assert bw.jit(program)(GOOD) == pytest.approx(program(GOOD))
    assert bw.jit(program)(INDEFINITE) == "not definite"

    def another_shape(a):
        try:
            return np.linalg.cholesky(a)
        except np.linalg.LinAlgError:
            return a[0]
    np.testing.assert_allclose(bw.jit(another_shape)(GOOD), another_shape(GOOD))
    with pytest.raises(np.linalg.LinAlgError, match="takes no part"):
        bw.jit(another_shape)(INDEFINITE)


def test_variables_that_only_a_break_leaves_behind():
    def endless(x):
        while True:
            y = np.sin(x)
            if y > 0.5:
                found = y * 2
                break
            x = x + 0.1
        return found * y

    def with_otherwise(x):
        for k in range(30):
            if x > 0.6:
                found, last = x * 2, k
                break
            x = x + 0.1
        else:
            raise ValueError("not found")
        return found + last
    for x in (0.1, 0.7):
        assert bw.jit(endless)(x) == pytest.approx(endless(x), rel=1e-13)
        assert bw.grad(endless)(x) == pytest.approx((endless(x + 1e-6) - endless(x - 1e-6)) / 2e-6, rel=1e-6)
        assert bw.jit(with_otherwise)(x) == pytest.approx(with_otherwise(x), rel=1e-13)
        assert bw.grad(with_otherwise)(x) == 2.0
    with pytest.raises(ValueError, match="not found"):
        bw.jit(with_otherwise)(-10.0)


def checked(a):
    if a[0, 0] > 9:
        raise OverflowError("too large")
    if a[0, 1] > a[0, 0]:
        raise ZeroDivisionError("too steep")
    return logarithm(a)


def one_for_all(a):
    """A handler to which it makes no difference what was raised, and one to which it does."""
    try:
        value = checked(a)
    except (OverflowError, ZeroDivisionError):
        value = np.arctan(a[0, 1]) * 3
    except np.linalg.LinAlgError as error:
        value = np.sinh(a[0, 1]) + len(str(error))
    return value * a[0, 0]


def each_its_own(a):
    try:
        value = checked(a)
    except (OverflowError, ZeroDivisionError) as error:
        value = np.arctan(a[0, 1]) * (3 if isinstance(error, OverflowError) else 5)
    return value * a[0, 0]


@pytest.mark.parametrize("program, copies", [(one_for_all, 1), (each_its_own, 2)])
def test_what_a_handler_does_is_recorded_once_unless_it_looks_at_the_exception(program, copies):
    for a in (GOOD, GOOD * 10, INDEFINITE, np.array([[1.0, 0.9], [0.9, 0.5]]))[:3 + (program is one_for_all)]:
        value, gradient = bw.value_and_grad(program)(a)
        np.testing.assert_allclose(value, program(a), rtol=1e-13)
        step = np.array([[1e-6, 2e-6], [2e-6, 0.0]])
        np.testing.assert_allclose(np.sum(gradient * step), (program(a + step) - program(a - step)) / 2, rtol=1e-6)
    assert bw.jit(program).as_text("forward", GOOD).count("= arctan") == copies
