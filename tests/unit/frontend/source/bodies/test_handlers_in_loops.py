"""Loops that have `try` are recorded where all that may be caught depends on data; where an iteration raises while tracing, Python runs it."""

import math

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerIndexError
from tests.unit.frontend.comparing import as_python

X = np.array([1.133, 1.648, 2.266, 3.399, 1.751, 2.678])
PLACES = (X, np.array([0.202, 2.121, 2.323, 2.929, 3.838, 0.404]))


def raised_in_the_body(x):
    total = 0.0
    for i in range(400):
        try:
            if x[i % 6] * i * 0.01 > 5:
                raise ValueError("large")
            total += x[i % 6] * i * 0.01
        except ValueError:
            total -= 1.0
    return total


def raised_by_a_function(x):
    def square(v):
        if v > 5:
            raise ValueError("large")
        return v * v
    total, failures, y = 0.0, 0, x[0]
    for _ in range(400):
        y = y * 1.01
        try:
            total += square(y)
        except ValueError:
            failures += 1
            y = x[1]
    return total + failures


def in_a_while(x):
    k, total = 0, 0.0
    while k < 100:
        k += 1
        try:
            v = x[k % 6] * k * 0.1
            if v > 13:
                raise ValueError
        except ValueError:
            total = total * 0.5
            continue
        total += v
    return total


def goes_on(x):
    total = 0.0
    for i in range(300):
        try:
            v = x[i % 6] - i * 0.01
            if v < 0:
                raise ValueError
        except ValueError:
            continue
        total += v * np.sqrt(v)
    return total


def is_left(x):
    total = 0.0
    for i in range(300):
        try:
            v = x[0] * 10 - i * 0.1
            if v < 0:
                raise ValueError
            total += v
        except ValueError:
            break
    return total


def of_the_rest(x):
    total, count = 0.0, 0
    for i in range(60):
        try:
            if x[i % 6] * i > 50:
                raise ValueError(f"step {i}")
            total += x[i % 6]
        except ValueError as error:
            count += len(error.args)
        else:
            count += 2
        finally:
            total += 0.5
    return total * count


def of_two_kinds(x):
    total = 0.0
    for i in range(60):
        try:
            if x[i % 6] * i > 50:
                raise ValueError
            if x[i % 6] * i > 20:
                raise KeyError
            total += x[i % 6]
        except ValueError:
            total -= 3
        except KeyError:
            total *= 1.1
    return total


class Failure(Exception):
    pass


def a_step(y, h, x):
    slope = np.sin(x * y) / (1.0 + h * h)
    if np.max(np.abs(h * slope)) ** 2 / (1.0 + h) > 0.02:         # divisions of NumPy's numbers, which no handler is for
        raise Failure
    return y + h * slope


def of_his_own(x):
    """The step, a number of Python's in the beginning, is one of NumPy's afterwards."""
    y, t, h, failed = 0.3 * x, 0.0, 0.9, 0
    while t < 2.999:
        h = min(h, 3.0 - t)
        try:
            half = a_step(y, 0.5 * h, x)
            y = a_step(half, 0.5 * h, x)
        except Failure:
            h *= 0.5
            failed += 1
            continue
        t += h
        h = min(1.0, 1.5 * h) * np.sqrt(0.9)
    return np.sum(y * y) + failed


def in_nested_loops(x):
    total = 0.0
    for i in range(30):
        for j in range(10):
            try:
                if x[j % 6] * i > 50:
                    raise ValueError
                total += x[j % 6] * j
            except ValueError:
                total = total * 0.9
    return total


def in_each_of_two(x):
    def inner(v):
        total = 0.0
        for j in range(10):
            try:
                if v * j > 20:
                    raise ValueError
                total += v * j
            except ValueError:
                total -= 1
                if total < -2:
                    raise KeyError("deep") from None
        return total
    found = 0.0
    for i in range(12):
        try:
            found += inner(x[i % 6] + i * 0.3)
        except KeyError:
            found *= 0.5
    return found


def writes(x):
    x, count = x.copy(), 0.0
    for i in range(60):
        try:
            if x[i % 6] * i > 50:
                raise ValueError
            x[i % 6] += 0.5
        except ValueError:
            x[i % 6] = 0.25
            count += 1
    return count + x @ x


def appends(x):
    good, bad = [], 0
    for i in range(60):
        try:
            v = x[i % 6] * i
            if v > 50:
                raise ValueError
            good.append(v)
        except ValueError:
            bad += 1
    return sum(good) * bad + len(good)


def two_that_change(x):
    """Two calls in one `try` that append to lists, of which the second may fail where the first has appended."""
    def push(items, v):
        if v < 1.5:
            raise ValueError("small")
        items.append(v)
    first, second = [], []
    for i in range(60):
        try:
            push(first, x[i % 6])
            push(second, x[i % 6] * 1.2 - 1.0)
        except ValueError:
            first.append(0.5)
    return sum(first) + 2 * sum(second) + len(second)


class Simulation:
    def __init__(self):
        self.y, self.failures, self.log = 1.0, 0, []

    def step(self, v):
        if v * self.y > 6:
            raise OverflowError
        self.y = self.y * v * 0.5
        self.log.append(self.y)


def of_an_object(x):
    one = Simulation()
    for i in range(40):
        try:
            one.step(x[i % 6])
        except OverflowError:
            one.failures += 1
            one.y = 1.0
    return one.y + one.failures + sum(one.log)


RECORDED = [raised_in_the_body, raised_by_a_function, goes_on, is_left, of_the_rest, of_two_kinds, of_his_own, in_nested_loops, in_each_of_two,
            writes, appends, two_that_change, of_an_object]


@pytest.mark.parametrize("program", [*RECORDED, in_a_while], ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES)


@pytest.mark.parametrize("program", RECORDED, ids=lambda program: program.__name__)
def test_recorded(program):
    """A `while` whose test is known is Python's anyhow."""
    text = bw.compile(program, X).as_text("forward")
    assert "loop" in text and text.count(" = cond ") < 20


def of_indices(x):
    total = 0.0
    for i in range(40):
        try:
            total += x[i - 7] * i
        except IndexError:
            total += 100.0
    return total


def of_keys(x):
    table, total = {0: 1.0, 5: 2.0, 9: 3.0}, 0.0
    for i in range(40):
        try:
            total += x[0] * table[i]
        except KeyError:
            total += 100.0
    return total


def of_texts(x):
    total = 0.0
    for text in ["1", "2", "a", "4"] * 10:
        try:
            total += x[0] * int(text)
        except ValueError:
            total += 100.0
    return total


def of_functions(x):
    total = 0.0
    for i in range(40):
        try:
            total += x[0] * math.sqrt(i - 9) + math.log(i)
        except ValueError:
            total += 100.0
    return total


def of_shapes(x):
    total = 0.0
    for i in range(40):
        try:
            total += np.sum(np.ones(i - 3)) * x[0] + np.min(x[i - 3:]) + np.sum(x[:i] + x[:3])
        except ValueError:
            total += 100.0
    return total


def of_elements(x):
    items, pairs, total = [3, 5, 7], [(1, 2), (3,)] * 20, x[0]
    for i in range(40):
        try:
            items.remove(i)
            total += items.index(5) * x[1]
            a, b = pairs[i]
            total += a * b * x[2]
        except ValueError:
            total += 100.0
    return total + len(items)


def of_attributes(x):
    class Known:
        rate = 2.0

    class Unknown:
        pass
    total = 0.0
    for one in [Known(), Unknown()] * 20:
        try:
            total += x[0] * one.rate
        except AttributeError:
            total += 100.0
    return total


def of_iterators(x):
    numbers, total = iter([1.0, 2.0, 3.0]), 0.0
    for _ in range(40):
        try:
            total += x[0] * next(numbers)
        except StopIteration:
            total += 100.0
    return total


def of_divisors(x):
    """Python's numbers: those of NumPy raise nothing."""
    total = 0.0
    for i in range(20):
        try:
            total += float(x[i % 6]) / (i - 5) + float(x[0]) // (1 if x[1] > i * 0.2 else 2) + int(x[1]) % [1, 0][i % 2]
        except ZeroDivisionError:
            total += 7.0
    return total


def of_a_count(x):
    """Recorded, the loop would not give a number that a shape can be made of."""
    count, total = 0, 0.0
    for i in range(40):
        try:
            total += [x[0], x[1]][i]
            count += 1
        except IndexError:
            break
    return np.sum(np.zeros(count) + total)


def of_a_count_by_a_test(x):
    count, total = 0, 0.0
    for i in range(40):
        try:
            if i >= 3:
                raise ValueError
            count += 1
            total += x[i % 6]
        except ValueError:
            total -= 1
    return np.sum(np.zeros(count) + total)


@pytest.mark.parametrize("program", [of_indices, of_keys, of_texts, of_functions, of_shapes, of_elements, of_attributes, of_iterators,
                                     of_divisors, of_a_count, of_a_count_by_a_test], ids=lambda program: program.__name__)
def test_what_only_some_iterations_raise(program):
    as_python(program, *PLACES)


def test_a_count_that_data_decide_is_refused_as_without_try():
    def program(x):
        count = 0
        for i in range(12):
            try:
                if x[i % 6] * i > 10:
                    raise ValueError
                count += 1
            except ValueError:
                pass
        return np.zeros(count)
    with pytest.raises(TracerIndexError, match="a traced value as a size"):
        bw.compile(program, X)
