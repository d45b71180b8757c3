"""Names that captured loops and branches bind anew: two names are one array exactly where they are in NumPy.

Each program binds a name so that it depends on data which array it is, and then writes to it, or to the array by its other name.
"""



import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import compare

X, Y = np.linspace(-1.0, 1.0, 4), np.linspace(2.0, 3.0, 4)


# ----- after branches
def chosen(a, b, s):
    c = a if a[0] * s > b[0] else b
    c[0] = 5.0
    return c * 1


def others_written(a, b, s):
    c = a if s > 0 else b
    a[1] = 5.0
    c[2:] += b[2:]
    b *= 2
    d = c[1:]
    d *= a[1]
    return c * 1, d


def reversed_views(a, b, s):
    c = a[::-1]
    e = c
    if s > 0:
        c = b[:]
    c += 1
    a *= 2
    b -= 3
    c[0] = a[1]
    return c, e


def chosen_twice(a, b, s):
    c = a if s > 0 else b
    d = c if s > 0.5 else a
    d[0], a[1], c[2], b[3] = 1, 2, 3, 4
    return c, d


def exchanged(a, b, s):
    lo, hi = a, b
    if s > 0:
        lo, hi = hi, lo
    for i in range(9):
        lo[i % 4] += hi[0]
    return a + b


def in_lists(a, b, s):
    kept = [a * 1, a * 2]
    first = kept[0]
    if s > 0.5:
        kept[0] = kept[0] * 0.5 + b
    kept[0][0] = 7.0
    return first, kept[0]


def rebound_argument(a, b, s):
    if s > 0:
        a = b
    a[0] = 3.0
    if s > 0.5:
        return a, b
    a *= 2
    return b, a


def one_of_three(a, b, s):
    c = a
    if s > 0.5:
        c = b
    elif s > 0:
        c = a * 3.0
    c[0] = 1.0
    a[1], b[2] = 2.0, 3.0
    return c * 1


def nested(a, b, s):
    c, d = a, b
    if s > 0:
        if a[0] > b[0]:
            c = b
        elif s > 0.5:
            c, d = d, c
        d = d if s > 0.4 else a * b
    c[0] = 1.0
    d[1] *= 2.0
    a += d
    return c * 1, d * 1


def one_of_two_or_a_third(a, b, s):
    """In one side `d` is `a` or what `c` is, which is from outside of that side."""
    c, d = b * 2, a
    if a[0] > b[0]:
        c, d = d, c
    elif s > 0.5:
        d = c
    a[1] *= 2.43
    return d * 1, c * 1


def concrete(a, b, s):
    c = np.zeros(4)
    d = c
    if s > 0.5:
        c = a * 2.0
    c[0] = 7.0
    d[1] = 8.0
    return c, d


def changed_in_loops(a, b, s):
    x = a * 1
    for i in range(9):
        if x[0] + s > i:
            x = x - 0.1
        elif x[1] > i:
            x = x + 0.1
        x[2] = s + i
    x[0] = 1.0
    return x


# ----- after loops that may have no iterations
def halved(a, b, s):
    while s >= 0.4:
        s = s - 0.2
        a = a * 0.5
    a += 1
    return a * 2


def halved_view(a, b, s):
    c = np.cos(a)
    d = c[::2]
    while s >= 0.4:
        s = s - 0.2
        d = d * 0.5
    d[0] = 7.0
    c[2] = 8.0
    return c, d


def halved_made(a, b, s):
    c = np.zeros(4)
    d = c
    while s >= 0.4:
        s = s - 0.2
        d = d * 0.5 + a
    d[0] = 7.0
    c[1] = 8.0
    return c, d


def inside_of_a_loop(a, b, s):
    x = a * 1
    for i in range(9):
        y = x
        k = 0
        while k < s * i:
            y = y * 0.9
            k += 1
        y[0] = 1.0
        x = x + y
    return x, y


# ----- after loops of branches
def sometimes(a, b, s):
    c = np.cos(a)
    d = c
    for i in range(9):
        if s + i >= 8.5:
            d = d * 0.5
    d[0] = 7.0
    return c, d


def until_found(a, b, s):
    c = np.cos(a)
    d = c
    for i in range(9):
        if a[i % 4] > s:
            d = d * 0.5
            break
    d[0] = 7.0
    return c, d


def best(a, b, s):
    x = a * 1
    found = x
    for _ in range(9):
        x = np.sin(x * 1.1)
        if np.sum(x) > np.sum(found) + s:
            found = x.copy()
    found[1] = 8.0
    return found, x


# ----- after loops that surely have iterations
def two_names(a, b, s):
    x, y = a * 1, a * 2
    for _ in range(9):
        s = s + y[0] * x[1]
        x = x * 0.5 + y
        y = x
        z = x[1:]
    x[0] = 7.0
    z[2] = 8.0
    return x, y, z, s


def part_of_another(a, b, s):
    x, y = a * 1, a[1:] * 1
    for _ in range(9):
        s = s + y[0]
        x = x * 0.5 + y[1]
        y = x[1:]
    y[0] = 7.0
    return x, y, s


def from_before(a, b, s):
    x, y = a * 1, a * 3
    for _ in range(9):
        s = s + x[0]
        x = y[::-1]
    x[0] = 7.0
    return x, y, s


def swapped(a, b, s):
    x, y = a, b
    first, second = x, y
    for _ in range(9):
        s = s + x[0]
        x, y = y, x
    x[0] = 7.0
    return x, y, first * 1, second * 1, s


def swapped_three(a, b, s):
    x, y, z = a, b, a * b
    for k in range(10):
        s = s + x[0] * k
        x, y, z = z, x, y
    x[0], y[1], z[2] = 7.0, 8.0, 9.0
    return x * 1, y * 1, z * 1, s


def one_before(a, b, s):
    x = a * 1
    first = before = x
    for _ in range(9):
        s = s + np.sum(x - before)
        before = x
        x = np.sin(x)
    before[0] = 7.0
    x[1] = 8.0
    return first, before, x, s


PROGRAMS = [chosen, others_written, reversed_views, chosen_twice, exchanged, in_lists, rebound_argument, one_of_three, one_of_two_or_a_third, nested,
            concrete, changed_in_loops, halved, halved_view, halved_made,
            inside_of_a_loop, sometimes, until_found, best, two_names, part_of_another, from_before, swapped, swapped_three, one_before]


@pytest.mark.parametrize("s", [-1.0, 0.3, 0.7])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program, s):
    compare(program, X, Y, s)


@pytest.mark.parametrize("program", [others_written, chosen_twice, one_of_three, nested, halved, halved_view, sometimes, best], ids=lambda program: program.__name__)
@pytest.mark.parametrize("s", [0.3, 0.7])
def test_derivatives(program, s):
    bw.check_grads(lambda a, b: program(a * 1.0, b * 1.0, s), (X, Y), order=1)


def test_a_loop_is_unrolled_where_it_cannot_be_known_which_array_is_written():
    def row(a, s):
        rows, x = np.outer(a, a), a * 1
        for i in range(len(a) * 3):
            s = s + x[0]
            x = rows[i // 3]
        x[0] = 7.0
        return rows, x, s

    for found, expected in zip(bw.jit(row)(X, 0.5), row(X, 0.5), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


# ----- functions and classes that are defined in loops
class Scaled:
    def __init__(self, v):
        self.v = v


def with_a_function(x):
    for t in range(12):
        dt = 0.1 * (t + 1)

        def flow(v, flux):
            return v - dt * flux
        x = flow(x, np.sin(x))
    return x


def with_defaults(x):
    for t in range(12):
        def flow(v, k=t, *, w=x[0]):
            return v + k * w * 0.01
        x = flow(x)
    return x


def with_recursion(x):
    for t in range(12):
        def factorial(n):
            return 1.0 if n == 0 else n * factorial(n - 1)
        x = x + 0.001 * factorial(3) * t
    return x


def with_a_decorator(x):
    for t in range(12):
        def twice(g):
            def inner(v):
                return g(g(v))
            return inner

        @twice
        def flow(v):
            return v * 0.9 + 0.01 * t
        x = flow(x)
    return x


def with_a_sum_outside(x):
    for _ in range(12):
        total = 0.0

        def add(v):
            nonlocal total
            total += v
        add(x[0])
        add(x[1])
        x = x * 0.9 + total * 0.01
    return x


def with_one_of_two(x):
    for t in range(12):
        if x[0] > 1.0:
            def flow(v):
                return v * 0.9
        else:
            def flow(v):
                return v + 0.1 * t
        x = flow(x)
    return x


def used_behind(x):
    for t in range(12):
        def flow(v):
            return v * t
        x = x + 1.0
    return flow(x)


def with_a_class(x):
    for t in range(12):
        class Step(Scaled):
            gain = 0.9

            def __init__(self, v):
                super().__init__(v)
                self.t = t

            def taken(self):
                return self.v * self.gain + self.t
        x = Step(x).taken()
    return x


def with_a_class_left_early(x):
    for t in range(12):
        class Step:
            def taken(self, v, t=t):
                return v * 0.9 + t
        x = Step().taken(x)
        if x[0] > 20.0:
            break
    return x


@pytest.mark.parametrize("function", [
    with_a_function, with_defaults, with_recursion, with_a_decorator, with_a_sum_outside, with_one_of_two, used_behind, with_a_class,
    with_a_class_left_early])
def test_functions_and_classes_defined_in_loops_do_not_unroll_them(function):
    x = np.array([1.2, 0.7, 2.0])
    traced = trace(function, (x,))
    assert not traced.notes and len(traced.loops) == 1
    np.testing.assert_allclose(bw.jit(function)(x), function(x), rtol=1e-14)


def test_why_loops_with_functions_that_outlive_iterations_are_unrolled():
    def mutual(x):
        for _ in range(12):
            def even(n):
                return 1.0 if n == 0 else odd(n - 1)

            def odd(n):
                return 0.0 if n == 0 else even(n - 1)
            x = x + even(4) * 0.1
        return x

    def kept(x):
        flow = np.sin
        for t in range(12):
            x = flow(x) * 0.9

            def flow(v, t=x[0]):
                return v + t
        return x

    x = np.array([1.2, 0.7, 2.0])
    for function, reason in ((mutual, "even is a function that is made anew in every iteration"), (kept, "used outside of the loop")):
        np.testing.assert_allclose(bw.jit(function)(x), function(x), rtol=1e-14)
        assert reason in bw.jit(function).explain(x)
