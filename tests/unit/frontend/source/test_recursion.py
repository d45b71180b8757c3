"""Functions that call themselves until data say that it ends: loops, where that is their last deed; others are refused, with their lines."""

import re

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerError


def halved(x, n):
    if x < 1e-3:
        return x * n
    return halved(x / 2, n)


def steps(x, total=0.0, count=0):
    """Of a series: arguments that exchange, by keywords, with others that stay."""
    y = np.sin(x)
    if abs(y) < 0.3:
        total = total + y
        return total * (1 + count)
    elif y < 0:
        return steps(total=total - y, count=count + 1, x=x + 1.0)
    return steps(x * 0.7, total + y * x, count)


def mean(a, b):
    return a if abs(a - b) < 1e-11 else mean((a + b) / 2, np.sqrt(a * b))


def bisected(f, low, high):
    middle = 0.5 * (low + high)
    if high - low < 1e-9:
        return middle
    return bisected(f, low, middle) if f(low) * f(middle) <= 0 else bisected(f, middle, high)


def of_a_closure(x):
    def follow(state, k):
        if np.sum(state) < 0.1:
            return state * k
        return follow(np.roll(state, 1) * np.array([0.5, 0.8, 0.7]), k + 1)
    return np.sum(follow(np.array([x, x * x, 1.0]), 0) ** 2)


def rooted(x):
    """The root of another equation, as sqrt: its derivative by the loop is that of the last step."""
    def newton(guess, left):
        better = guess - (guess * guess - x) / (2 * guess)
        if abs(better - guess) < 1e-12 or left == 0:
            return better
        return newton(better, left - 1)
    return newton(x, 50)


class Newton:
    """A method that calls itself, with a parameter that it leaves out."""

    def __init__(self, x, tolerance):
        self.x, self.tolerance, self.calls = x, tolerance, 0

    def residual(self, guess):
        return guess * guess - self.x

    def solve(self, guess, depth=0, scale=2):
        self.calls += 1
        better = guess - self.residual(guess) / (scale * guess)
        if depth > 60 or abs(better - guess) < self.tolerance:
            return better
        return self.solve(better, depth + 1)

    @staticmethod
    def descended(x, n):
        return x * n if x < 1 else Newton.descended(x / 2, n + 1)

    @classmethod
    def climbed(cls, x, limit):
        if x > limit:
            return cls.descended(x, 1)
        return cls.climbed(x=1.3 * x, limit=limit)


class Doubling(Newton):
    """Whose method another class's is called by."""

    def solve(self, guess, depth=0, scale=2):
        return 2 * super().solve(guess, depth + 55, scale) if depth < 2 else super().solve(guess, depth, scale)


def by_a_method(x):
    newton = Newton(x, 1e-12)
    return newton.solve(x + 1) * newton.calls


def by_methods_of_classes(x):
    return Newton.descended(x, 1) * Newton.climbed(x, 40.3)


def by_an_overridden_method(x):
    return Doubling(x, 1e-12).solve(x + 1)


PROGRAMS = [lambda x: halved(x, 3.0), steps, lambda x: mean(x + 2.0, 1.3 * x), of_a_closure, rooted, by_a_method, by_methods_of_classes,
            by_an_overridden_method]


@pytest.mark.parametrize("program", PROGRAMS, ids=["halved", "steps", "mean", "of_a_closure", "rooted", "by_a_method", "by_methods_of_classes", "by_an_overridden_method"])
def test_as_python(program):
    h, compiled = 1e-6, bw.value_and_grad(program)
    for x in (4.03, 0.57, 1.91, 17.3):
        found, slope = compiled(x)
        difference = (program(x + h) - program(x - h)) / (2 * h)
        assert found == pytest.approx(program(x), rel=1e-12)
        assert slope == pytest.approx(difference, rel=1e-5, abs=1e-8)
        assert bw.jvp(program, (x,), (2.0,))[1] == pytest.approx(2 * slope, rel=1e-12)
        second = bw.grad(bw.grad(program))(x)
        assert second == pytest.approx((bw.grad(program)(x + 1e-5) - bw.grad(program)(x - 1e-5)) / 2e-5, rel=1e-4, abs=1e-7)


def test_functions_as_arguments():
    def program(x):
        return bisected(lambda t: np.cos(t) - x * t, 0.0, 2.0)
    for x in (0.5, 1.0, 3.0):
        assert bw.jit(program)(x) == pytest.approx(program(x), rel=1e-12)


def test_more_calls_than_python_has_room_for():
    def far(x, left):
        if x < 1e-3 or left <= 0:
            return x
        return far(x * 0.9999, left - 1)
    assert bw.jit(far)(1.0, 5000.0) == pytest.approx(0.9999 ** 5000, rel=1e-9)


def test_known_ends_are_as_before():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    def simpson(f, a, b, depth):
        middle = (a + b) / 2
        coarse = (f(a) + f(b)) * (b - a) / 2
        fine = (f(a) + 2 * f(middle) + f(b)) * (b - a) / 4
        if depth == 0 or abs(fine - coarse) < 1e-3:
            return fine
        return simpson(f, a, middle, depth - 1) + simpson(f, middle, b, depth - 1)
    assert bw.grad(power)(1.1, 60) == pytest.approx(60 * 1.1 ** 59, rel=1e-12)

    def program(x):
        return simpson(lambda t: np.sin(t * x), 0.0, 2.0, 4)
    assert bw.jit(program)(1.5) == pytest.approx(program(1.5), rel=1e-12)


def waiting(x):
    if x < 0.1:
        return x
    return x * x + waiting(x * 0.5)


def even(x):
    return x if x < 0.1 else odd(x * 0.9)


def odd(x):
    return 2 * x if x < 0.1 else even(x * 0.8)


def spreading(x, depth):
    if depth == 0 or x < 1e-30:
        return x
    return spreading(x * 0.5, depth - 1) + spreading(x * 0.4, depth - 1)


def test_variables_of_the_call_before_are_none_of_this_one():
    def program(x, k):
        if x > 1:
            y = x
        if x < 0.3:
            return y * k
        return program(x / 2, k + 1)
    with pytest.raises(UnboundLocalError):
        program(4.0, 0)
    with pytest.raises((UnboundLocalError, RecursionError, TracerError)):
        bw.jit(program)(4.0, 0)


class Tree:
    def __init__(self, depth):
        self.below = [Tree(depth - 1), Tree(depth - 1)] if depth else []

    def total(self, x):
        return x if not self.below else self.below[0].total(0.5 * x) + (self.below[1].total(x) if x > 0 else x)


def test_trees_of_objects_have_an_end():
    tree = Tree(5)
    for x in (0.7, -0.3):
        assert bw.jit(tree.total)(x) == pytest.approx(tree.total(x), rel=1e-12)


def test_others_are_refused():
    with pytest.raises(RecursionError) as caught:
        bw.jit(even)(4.0)
    assert re.search("test_recursion.py:\\d+: .*even|odd.*\n.*has no end while it is traced\n  hint: ", "".join(caught.value.__notes__))


def test_sums():
    assert bw.jit(waiting)(4.0) == pytest.approx(waiting(4.0), rel=1e-12)
    assert bw.jit(spreading)(1.0, 8) == pytest.approx(spreading(1.0, 8), rel=1e-12)


def test_many_calls_beside_one_another():
    def part(y):
        return y * 0.5 if y > 0.5 else y

    def program(x):
        total = part(x[0])
        for k in range(40):
            for j in range(80):
                if total > x[0] + 0.01 * k * j:
                    total = total + 0.1 * part(x[1])
        return total
    x = np.array([0.7, 0.9])
    assert bw.jit(program, autoloop=True)(x) == pytest.approx(program(x), rel=1e-12)


def nested_lists(text, scale):
    """A parser by recursive descent: what it reads is known, so its loops are not those of the program."""
    place = 0

    def item():
        nonlocal place
        if text[place] != "(":
            start = place
            while text[place] not in ",)":
                place += 1
            return scale * float(text[start:place])
        total = 0.0
        while True:
            place += 1
            total = total + 0.5 * item()
            if text[place] == ")":
                place += 1
                break
        return total

    return np.sin(item())


def test_loops_that_call_the_function_around_them_run_as_they_are() -> None:
    text = "((1,2,3),(4,(5,6),7),((8,9),10),(1,(2,(3,4))))"
    compiled = bw.value_and_grad(nested_lists, 1)
    value, slope = compiled(text, 0.3)
    assert value == pytest.approx(nested_lists(text, 0.3), rel=1e-14)
    assert slope == pytest.approx((nested_lists(text, 0.3 + 1e-6) - nested_lists(text, 0.3 - 1e-6)) / 2e-6, rel=1e-8)


def test_a_recursion_in_loops_that_end_as_data_say_is_told_once():
    def sorted_between(a, low, high):
        i, j = low, high
        while i < high:
            pivot = a[(low + high) // 2]
            while i <= j:
                if a[i] < pivot:
                    i += 1
                else:
                    j -= 1
            if low < j:
                sorted_between(a, low, j)
            low, j = i, high
        return a

    with pytest.raises(TracerError, match="has no end while it is traced\n  hint: ") as caught:
        bw.jit(lambda x: sorted_between(x.copy(), 0, 8))(np.arange(9.0))
    assert str(caught.value).count("cannot be recorded") < 3
