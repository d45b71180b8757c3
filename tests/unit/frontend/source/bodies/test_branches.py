"""Branches, data-dependent loops and jumps of plain Python programs, captured from source: results as Python's on every path."""

import math

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError


def halve(x):
    while x > 1:
        x = x / 2
    return x


def newton(a):
    x = a
    for k in range(50):                 # noqa: B007
        step = (x * x - a) / (2 * x)
        x = x - step
        if abs(step) < 1e-12:
            break
    return x, k


def piecewise(x):
    if x > 0:
        return x * 2
    elif x < -1:
        y = x + 1
    else:
        y = 3.0
    return y * y


def first_above(x, value):
    for i in range(20):
        if x[i] > value:
            return i
    return -1


def clipped(x, lo, hi):
    return lo if x < lo else hi if x > hi else x


def chained(x):
    return 1.0 if (0 < x < 1 and not abs(x - 0.5) < 0.1) or x > 10 else 0.0


def chained_calls(x):
    """What stands between comparisons is evaluated once, behind what is to its left, and what is to its right only if it is reached."""
    seen = []

    def noted(name, value):
        seen.append(name)
        return value

    inside = [1.0 if noted("low", -1) < np.sum(noted("sum", x)) <= max(x[1], 0.5) < noted("high", 2) else 0.0, *seen]
    counted = 0
    while 0 <= x[int(np.argmax(x))] - counted != 0.25 and counted < 5:
        counted += 1
    both = 0 < np.mean(x) < 1
    return len(inside), inside[0], counted, both * x, sum([v for v in x if 0.1 < abs(v) < 0.8])


def bubble_sort(a):
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def roots_until(x):
    s = 0.0
    for v in x:
        if v < 0:
            continue
        s += math.sqrt(v)
        if s > 3:
            break
    return s


def adaptive(y, end):
    t = 0.0
    h = 0.1
    steps = 0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = -y
        k2 = -(y + h * k1)
        error = abs(h * (k2 - k1) / 2)
        if error < 1e-3:
            y = y + h * (k1 + k2) / 2
            t = t + h
            steps += 1
        h = h * min(2.0, max(0.3, 0.9 * (1e-3 / max(error, 1e-12)) ** 0.5))
    return y, steps


def bisect(a, b):
    while b - a > 1e-10:
        middle = (a + b) / 2
        if middle ** 3 > 2.0:
            b = middle
        else:
            a = middle
    return (a + b) / 2


def nested(x):
    total = 0.0
    for i in range(10):
        j = 0
        while True:
            if j >= 3 or x[i] > j:
                total = total + x[i] * j
                break
            j += 1
    return total


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def best_pair(x):
    best = -1.0
    at = (0, 0)
    for i in range(len(x)):
        for j in range(i):
            d = abs(x[i] - x[j])
            if d > best:
                best = d
                at = (i, j)
    return best, at[0], at[1]


def masked(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        if x[i] > 0 and (i == 0 or x[i - 1] > 0):
            y[i] = x[i]
        elif x[i] < -1:
            y[i] = -x[i]
    return y


def rows(a):
    if a.sum() > 0:
        b = a * 2
    else:
        b = a
    return b + 1


def known_outside(x, s):
    """known is a traced array, because of its last line; its first number is known where the branch inside of the branch asks."""
    known = np.ones_like(x)
    y = x * 1.0
    if s >= 0.1:
        y = x * 2.0
    elif known[0] > 0.0:
        y = x * 3.0
    known[0] = s
    return known, y


def known_at_first(x, s):
    known, y = np.ones_like(x), x * 1.0
    for i in range(10):
        if known[0] > 0.5:                  # not only what it is before the first iteration
            y = y + i
        known[0] = known[0] * 0.9 + 0.0 * s
    return known, y


def known_scalar(x, s):
    known, y = np.full_like(x, 3.0), x * 1.0
    twice = known[0] * 2.0
    for i in range(10):
        if twice > 5.0:
            y = y + i
        if twice + known[1] > 100.0:
            y = y * 7.0
    known[1] = s
    return known, y


def returned_from_the_second(x, s):
    """The loop inside is left in the second of two unrolled iterations: in the first one there is nothing to return."""
    for i in range(2):
        for _ in range(9):
            if i == 1:
                return x * i, s * 2.0
    return x, s


CASES = [(halve, (37.0,)), (halve, (0.5,)), (newton, (7.0,)), (piecewise, (2.0,)), (piecewise, (-2.0,)), (piecewise, (-0.5,)),
         (first_above, (np.linspace(0, 1, 20), 0.42)), (first_above, (np.linspace(0, 1, 20), 2.0)),
         (clipped, (3.0, 0.0, 1.0)), (clipped, (-3.0, 0.0, 1.0)), (clipped, (0.3, 0.0, 1.0)), (chained, (0.5,)), (chained, (0.25,)),
         (chained, (11.0,)), *[(chained_calls, (np.array(x),)) for x in ([0.2, 0.5], [3.25, -1.0, 0.3], [-4.0, -0.4])],
         (bubble_sort, (np.array([3.0, 1, 2, 9, 4, 0, 5, 5, 7, 6]),)), (roots_until, (np.linspace(-1, 2, 20),)),
         (adaptive, (1.0, 2.0)), (bisect, (0.0, 2.0)), (nested, (np.linspace(-1, 4, 10),)), (collatz, (np.array(27)[()],)),
         (best_pair, (np.array([3.0, 1, 2, 9, 4, 0, 5, 5, 7, 6]),)), (masked, (np.array([1.0, 2, -3, 4, 5, -0.5, -1.5, 2, 3]),)),
         (returned_from_the_second, (np.ones(3), 0.5)), (known_outside, (np.ones(3), 0.05)), (known_outside, (np.ones(3), 2.0)), (known_at_first, (np.ones(3), 0.5)),
         (known_scalar, (np.ones(3), 0.5)), (rows, (np.ones((2, 3)),)), (rows, (-np.ones((2, 3)),))]


def parts(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda x: x.__name__ if callable(x) else "")
def test_as_python(function, args):
    expected = function(*[arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args])
    found = bw.jit(function)(*[arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args])
    for one, other in zip(parts(expected), parts(found), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13)


@pytest.mark.parametrize(("function", "x"), [(halve, 37.0), (piecewise, 2.0), (piecewise, -2.0), (piecewise, -0.5), (roots_until, None)])
def test_derivatives(function, x):
    x = np.linspace(0.5, 2, 20) if x is None else x
    found = bw.grad(function)(x)
    h = 1e-6
    if isinstance(x, float):
        assert found == pytest.approx((function(x + h) - function(x - h)) / (2 * h), rel=1e-6, abs=1e-9)
    else:
        direction = np.cos(np.arange(20))
        assert found @ direction == pytest.approx((function(x + h * direction) - function(x - h * direction)) / (2 * h), rel=1e-6)


def test_texts_that_a_loop_returns():
    def first(x):
        for k in range(len(x)):
            if x[k] > 2:
                return k, "found"
        return 0, "none"

    def read(x):
        place, text = first(x)
        return place + (10 if text == "found" else 20)

    for x in (np.array([1.0, 3.0]), np.array([1.0, 1.0])):
        assert bw.jit(read)(x) == read(x)


def test_sides_that_cannot_be_recorded_say_why():
    def numbers(x):
        kept = [x, 2 * x]
        if x > 0:
            kept.pop()
        return x * len(kept)

    def mixed(x):
        kept = [x, (1.0, 2.0)]
        if x > 0:
            kept.pop()
        return x * len(kept)

    assert bw.jit(numbers)(1.0) == 1.0 and bw.jit(numbers)(-1.0) == -2.0
    with pytest.raises(TracerBoolError, match=r"a list has 1 items after one side of it, and 2 after the other\n  hint: as many"):
        bw.jit(mixed)(1.0)


def test_an_array_of_which_nobody_knows_which_one_it_is_is_read_only():
    def shared(a, b):
        c = d = a * 2.0
        if b[0] > 0:
            c = a * 0.9
            d = c
        c[0] = 5.0
        return c, d

    with pytest.raises(ValueError, match=r"test_branches.py:\d+: .*\n.*read-only: after the branch c is one of two arrays"):
        bw.jit(shared)(np.ones(3), np.zeros(3))


def test_arrays_of_one_element_decide():
    def settled(x):
        b, n = np.ones((1, 1)) * x, 0
        difference = b[0] - 3.0
        while np.abs(difference) > 1e-3 and n < 50:
            b[0] = b[0] - 0.5 * difference
            difference = b[0] - 3.0
            n += 1
            if not (difference > 0 or n > 5):
                b[0] += 1e-4
        return b[0, 0] + n

    for x in (1.0, 2.999999, 17.0):
        assert bw.jit(settled)(x) == settled(x)
        assert bw.grad(settled)(x) == pytest.approx((settled(x + 1e-7) - settled(x - 1e-7)) / 2e-7, rel=1e-6, abs=1e-8)


# ----- dicts, whose keys have an order
def made_on_both_sides(x):
    return {"a": x[1], "b": x[2]} if x[0] > 0.3 else {"b": x[1], "a": x[2]}


def rebound_on_one(x):
    table = {"a": x[1], "b": x[2]}
    if x[0] > 0.3:
        table = {"b": table["b"], "a": table["a"]}
    return next(iter(table.values()))


def one_of_a_list(x):
    tables = [{"a": x[1], "b": x[2]}, {"b": x[1], "a": x[2]}]
    return next(iter(tables[int(x[0] > 0.3)].values()))


@pytest.mark.parametrize("program", [lambda x: sum((k + 1) * v for k, v in enumerate(made_on_both_sides(x).values())), made_on_both_sides,
                                     rebound_on_one, one_of_a_list], ids=["summed", "returned", "rebound", "element"])
def test_keys_in_another_order_on_one_side_are_refused(program):
    """What is made of both sides would have the order of one of them."""
    with pytest.raises(TracerBoolError, match="is a dict with its keys in another order on one side than on the other"):
        bw.jit(program)(np.array([0.2, 1.0, 2.0]))


def test_keys_in_one_order_on_both_sides():
    def program(x):
        table = {"b": x[1], "a": x[2]} if x[0] > 0.3 else {"b": x[2], "a": x[1] ** 2}
        return sum((k + 1) * v for k, v in enumerate(table.values()))

    for x in (np.array([0.2, 1.0, 2.0]), np.array([0.4, 1.5, 2.0])):
        np.testing.assert_allclose(bw.jit(program)(x), program(x))


# ----- True itself
FLAGS = {
    "is True": lambda x, flag: x * (5 if flag is True else 9), "is False": lambda x, flag: x * (5 if flag is False else 9),
    "is not True": lambda x, flag: x * (5 if flag is not True else 9), "np.True_": lambda x, flag: x * (5 if flag is np.True_ else 9),
    "not": lambda x, flag: x * (5 if flag is not False else 9), "type": lambda x, flag: x * (5 if type(flag) is bool else 9),
    "isinstance": lambda x, flag: x * (5 if isinstance(flag, int) else 9),
    "isinstance of NumPy": lambda x, flag: x * (5 if isinstance(flag, np.bool_ | np.integer) else 9),
    "computed": lambda x, flag: x * (5 if type(flag) is float or (flag == 1) is True else 9),
    "in a loop": lambda x, flag: sum(x * (k + (2.0 if flag is True else 1.0)) for k in range(12))}


@pytest.mark.parametrize("asked", FLAGS)
def test_truth_of_arguments_is_pythons_or_numpys(asked):
    compiled = bw.jit(FLAGS[asked])
    for flag in (True, False, 1, 0, 1.0, None, np.True_, True):
        assert compiled(2.0, flag) == FLAGS[asked](2.0, flag), flag


def test_truth_of_numpy_that_data_decide_is_not_told_from_true():
    def found(x):
        negative = False
        for k in range(len(x)):
            if x[k] < 0:
                negative = True
        return 2 * x if negative is True else x

    def last(x):
        total = 0.0
        for k in range(len(x)):
            is_last = k == len(x) - 1
            total = total + x[k] * (2 if is_last is True else 1)
        return total

    x = np.linspace(-1.0, 2.0, 20)
    with pytest.raises(TracerBoolError, match="whether a traced value is True itself\n  hint: if x:"):
        bw.jit(lambda x: x if (x[0] > 0) is True else 2 * x)(x)
    for program in (found, last):
        compiled = bw.jit(program)
        for given in (x, x + 1.5, x):
            np.testing.assert_allclose(compiled(given), program(given))


def set_in_a_branch(x):
    large = False
    if x > 1.0:
        large = True
    if large is False:
        return x
    return x * x


def set_in_branches_of_iterations(x):
    total = x
    for k in range(20):
        above = False
        if x > k:
            above = True
        if above is True:
            total = total * 1.1
        if above is not True:
            total = total + x
    return total


def none_or_a_truth(x):
    flag = None
    if x > 1.0:
        flag = True
    if x > 2.0:
        flag = False
    if flag is True:
        return x * x
    if flag is False:
        return x ** 3
    return x if flag is None else 0.0


def of_a_comparison(x):
    is_large = x > 1.0
    return x ** 3 if is_large is True else x * x


def of_whole_arrays(x):
    y = np.array([x, 1.0])
    return x if np.allclose(y, 1.0) is False else x * (3.0 if np.array_equal(y, [1.0, 1.0]) is True else 2.0)


@pytest.mark.parametrize("program", [set_in_a_branch, set_in_branches_of_iterations, none_or_a_truth, of_a_comparison, of_whole_arrays],
                         ids=lambda program: program.__name__)
def test_pythons_truth_values_that_data_decide_are_told_from_true(program):
    compiled = bw.value_and_grad(program)
    for x in (0.5, 3.25, 1.5, 0.75):
        value, slope = compiled(x)
        assert value == pytest.approx(program(x), rel=1e-12), x
        assert slope == pytest.approx((program(x + 1e-6) - program(x - 1e-6)) / 2e-6, rel=1e-6)
    assert bw.jit(program)(1.0) == program(1.0)


def test_numpys_truth_values_of_branches_are_not_told_from_true():
    def either(x):
        flag = True
        if x > 1.0:
            flag = np.sin(x) > 0.5
        return x * x if flag is True else x

    with pytest.raises(TracerBoolError, match="whether a traced value is True itself\n  hint: if x:"):
        bw.jit(either)(3.0)


def imports_on_one_side(x):
    if x < 0.0:
        return x
    from numpy import sin
    return sin(x) * x


def imports_on_both_sides(x):
    if x < 0.0:
        import math
        y = math.exp(x)
    else:
        from math import sin as function
        y = function(x)
    return y


def imports_a_name_for_either(x):
    if x > 0.0:
        from numpy import exp as function
    else:
        from numpy import cos as function
    return function(x)


def imports_in_a_loop(x):
    total = 0.0
    for k in range(30):
        from math import cos

        import numpy.linalg as algebra
        total = total + cos(x * k) * algebra.norm(np.array([3.0, 4.0]))
    return total


@pytest.mark.parametrize("program", [imports_on_one_side, imports_on_both_sides, imports_a_name_for_either, imports_in_a_loop],
                         ids=lambda program: program.__name__)
def test_imports_in_branches_and_loops(program):
    compiled = bw.value_and_grad(program)
    for x in (0.7, -0.4, 1.3):
        value, slope = compiled(x)
        assert value == pytest.approx(program(x), rel=1e-12)
        assert slope == pytest.approx((program(x + 1e-6) - program(x - 1e-6)) / 2e-6, rel=1e-6)
