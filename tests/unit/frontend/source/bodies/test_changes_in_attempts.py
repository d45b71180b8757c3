"""A `try` whose body changes lists, objects and arrays: where all that may raise comes first, the handler is a side of a branch."""

import collections

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError
from tests.unit.frontend.comparing import as_python

X = np.array([0.31, 1.22, -0.83, 0.41, 1.52, -2.03])
PLACES = (X, -X, np.abs(X), 3.0 * X)


class Account:
    def __init__(self, balance):
        self.balance = balance
        self.log = []

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError(f"{amount} is too much")
        if amount < -2.5:
            raise OverflowError("too little")
        self.balance -= amount
        self.log.append(amount * self.balance)
        return amount


def checked(v):
    if v < 0:
        raise ValueError("negative")
    return np.sqrt(v)


def appended(x):
    good, bad = [], []
    for v in x:
        try:
            good.append(checked(v))
        except ValueError:
            bad.append(v)
        else:
            bad.append(0.5)
    return np.sum(good) - 3 * np.sum(bad) + len(good) * x[0]


def of_an_object(x):
    account, total = Account(x[0]), 0.0
    for v in x[1:]:
        try:
            total += account.withdraw(v)
        except ValueError:
            total -= 1
        except OverflowError:
            total -= 10 * v
    return total + 3 * account.balance + sum(account.log)


def of_two_objects(x):
    def transfer(v):
        one.withdraw(v)
        other.balance += v
    one, other, refused = Account(x[0]), Account(0.0), 0
    for v in x[1:]:
        try:
            transfer(v)
        except (ValueError, OverflowError):
            refused += 1
    return one.balance + 3 * other.balance * x[1] + refused


def items(x):
    places, found, failed = [0.0] * 3, {0: 1.0, 1: 0.2}, 0
    for k, v in enumerate(x):
        try:
            places[k % 3] += checked(v)
            found[k % 2] = checked(v + 0.5)
        except ValueError:
            failed += 1
    return sum(places) * 2 + failed + found[0] * found[1]


def indices(x):
    counts, failed = np.zeros(3), 0
    for v in x:
        try:
            counts[int(v)] += v
        except IndexError:
            failed += 1
    return np.sum(counts * np.arange(1, 4)) + failed


def arrays(x):
    out, failed = x * 1.0, 0

    def write(k, v):
        for j in range(3):
            if v * j < -1.5:
                raise ValueError("small")
        out[k] = v * out[k - 1]
        out[k] *= 2
    for k, v in enumerate(x):
        try:
            write(k, v)
        except ValueError:
            failed += 1
    return np.sum(out) + failed


def deques(x):
    last, failed = collections.deque([0.0, 0.0], maxlen=2), 0
    for v in x:
        try:
            last.append(checked(v))
        except ValueError:
            failed += 1
    return last[0] + 2 * last[1] + failed


def factors(x):
    account = Account(0.0)

    def add(v):
        factor = np.linalg.cholesky(np.eye(2) * v)
        account.balance += np.sum(np.log(np.diag(factor)))
    for v in x:
        try:
            add(v)
        except np.linalg.LinAlgError:
            account.balance -= v
    return account.balance


def outside_of_loops(x):
    y, failed = x.copy(), 0
    try:
        y[1] = checked(x[0]) * y[2]
        y[2] += checked(x[1])
    except ValueError:
        failed = 1
    return np.sum(y) + failed


PROGRAMS = [appended, of_an_object, of_two_objects, items, indices, arrays, deques, factors, outside_of_loops]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES[:2])
    as_python(program, *PLACES[2:])


def test_loops_stay_loops():
    assert "unrolled" not in bw.jit(factors).explain(np.tile(X, 10))


def raised_last(x):
    log = []

    def check(v):
        if v < 0:
            if v < -1:
                log.append(v)
            raise ValueError("negative")
        return v
    try:
        total = check(x[2])
    except ValueError:
        total = 10.0
    return total + sum(log)


def of_both(x):
    def both(v):
        one.withdraw(v)
        other.withdraw(v)
    one, other, refused = Account(x[0]), Account(x[1]), 0
    for v in x[2:]:
        try:
            both(v)
        except ValueError:
            refused += 1
    return one.balance + other.balance + refused


def in_a_loop(x):
    kept, failed = [], 0

    def keep(v):
        for j in range(3):
            kept.append(v * j)
            if v * j < -1:
                raise ValueError("small")
    try:
        keep(x[2])
    except ValueError:
        failed = 1
    return sum(kept) + failed


def an_array(x):
    out = np.zeros(2)

    def write(v):
        out[0] = 1.0
        out[1] = checked(v)
    try:
        write(x[2])
    except ValueError:
        out[1] = 5.0
    return np.sum(out)


def an_item(x):
    found = {"count": 0}

    def count(v):
        found["count"] += 1
        return checked(v)
    try:
        total = count(x[2])
    except ValueError:
        total = 5.0
    return total + found["count"]


def a_variable(x):
    count = 0

    def step(v):
        nonlocal count
        count += 1
        return checked(v)
    try:
        total = step(x[2])
    except ValueError:
        total = 5.0
    return total + count


@pytest.mark.parametrize("program", [raised_last, of_both, in_a_loop, an_array, an_item, a_variable], ids=lambda program: program.__name__)
def test_what_may_have_been_changed_before_is_refused(program):
    """Also where the side that raises changes it: it would be as if nothing had been raised."""
    with pytest.raises(TracerBoolError, match="(?s)it may have changed an array, list or object before.*hint: write the test as `if`"):
        bw.jit(program)(X)


def test_names_that_an_expression_binds():
    def program(x):
        count = 0
        try:
            y = checked(x[(count := count + 1)])
        except ValueError:
            y = 0.5
        return y * 100 + count

    def unread(x):
        try:
            y = checked(x[(k := 2)]) * k
        except ValueError:
            y = 0.5
        return y
    with pytest.raises(TracerBoolError, match="the `except` reads .*count.*which has changed by then"):
        bw.jit(program)(X)
    as_python(unread, *PLACES[:2])


def test_a_side_that_changes_a_list_raises_what_it_says():
    def program(x):
        log = []
        if x[0] > 1:
            if x[1] > 0:
                log.append(x[0])
            raise ValueError(f"{x[0]:.2f} is too much")
        return x[0] * 2 + len(log)
    assert bw.jit(program)(X) == program(X)
    with pytest.raises(ValueError, match=r"4\.00 is too much"):
        bw.jit(program)(X + 3.69)
