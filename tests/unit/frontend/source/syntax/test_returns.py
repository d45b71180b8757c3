"""Loops that end as data say, and return objects, texts, tuples with None and lists that grew."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError

Status = namedtuple("Status", "x status")


@dataclass
class Result:
    x: float
    steps: int
    success: bool = False
    message: str = ""


class Found:
    def __init__(self, x, k, **options):
        self.x, self.k = x, k
        self.__dict__.update(options)


def dataclass_of_newton(a):
    def newton(x):
        for k in range(20):
            f = x * x - a
            if abs(f) < 1e-10:
                return Result(x, k, True, "converged")
            if x < 0:
                return Result(x, k, message="negative")
            x = x - f / (2 * x)
        return Result(x, 20, False, "no convergence")

    found = newton(1.0)
    return found.x + (0.5 if found.success else 0.0) + found.steps + (1.0 if found.message == "converged" else 0.0)


def tuple_with_a_list(a):
    def newton(x):
        history = []
        while True:
            f = x * x - a
            history.append(x)
            if abs(f) < 1e-10:
                return x, "converged", history
            if len(history) > 50:
                return x, "failed", history
            x = x - f / (2 * x)

    x, status, history = newton(1.0)
    if status != "converged":
        return 0.0
    return x + sum(history) + len(history)


def tuple_or_none(a):
    def first(xs):
        for k, x in enumerate(xs):
            if x * x > a:
                return k, x
        return None

    found = first(np.arange(12.0) * 0.3)
    return 0.0 if found is None else a * found[1] + found[0]


def object_of_an_inner_loop(a):
    def grown(x):
        for k in range(12):
            for j in range(10):
                x = x * 0.9 + a * 0.1 * j
                if x > 3:
                    return Found(x, k, why="large", j=j)
        return Found(x, -1, why="none", j=0)

    found = grown(1.0)
    return found.x * found.j + (2.0 if found.why == "large" else 1.0)


def named_tuple(a):
    def iterated(x):
        k = 0
        while k < 30:
            x = np.cos(x) * a
            k += 1
            if abs(x - 0.5) < 0.2:
                return Status(x, "near")
        return Status(x, "far")

    found = iterated(1.0)
    return found.x * {"near": 2.0, "far": 3.0}[found.status]


@pytest.mark.parametrize("fun", [dataclass_of_newton, tuple_with_a_list, tuple_or_none, object_of_an_inner_loop, named_tuple])
def test_what_a_loop_returns(fun):
    compiled = bw.value_and_grad(fun)
    for a in (0.37, 1.9):
        value, slope = compiled(a)
        np.testing.assert_allclose(value, fun(a), rtol=1e-12)
        np.testing.assert_allclose(slope, (fun(a + 1e-7) - fun(a - 1e-7)) / 2e-7, rtol=1e-5, atol=1e-7)


class Cell:
    def __init__(self, value):
        self.value = value


def lists_that_exchange_their_names(a):
    before, now = [a, 0.5], [0.0, 1.0]
    total = 0.0
    for i in range(2, 5):
        for k in range(2):
            now[k] = before[k] * i * a + now[1 - k]
            if now[k] > 4.0:
                return now[k] + total
            before, now = now, before
        total += before[0]
    return before[0] - 2 * now[0] + before[1]


def objects_that_exchange_their_names(a):
    one, other = Cell(a), Cell(0.5)
    for i in range(2, 6):
        other.value = one.value * i * 0.3 + other.value
        if other.value > 1.5:
            return other.value * 2 + one.value
        one, other = other, one
    return one.value - other.value


def read_after_the_return(a):
    before, now = [a], [0.5]

    def step(i):
        nonlocal before, now
        for k in range(3):
            now[0] = before[0] * i * a + 0.1 * k
            if now[0] > 1.0:
                return now[0]
            before, now = now, before
        return 0.0

    total = step(2) + step(3)
    return total + before[0] - 2 * now[0]


@pytest.mark.parametrize("fun", [lists_that_exchange_their_names, objects_that_exchange_their_names])
def test_names_exchanged_before_a_return(fun):
    compiled = bw.value_and_grad(fun)
    for a in (0.2, 0.37, 0.9, 1.9):
        value, slope = compiled(a)
        np.testing.assert_allclose(value, fun(a), rtol=1e-12)
        np.testing.assert_allclose(slope, (fun(a + 1e-7) - fun(a - 1e-7)) / 2e-7, rtol=1e-5, atol=1e-7)


def test_names_exchanged_that_others_read_after_the_return():
    with pytest.raises(TracerBoolError, match="another name"):
        bw.grad(read_after_the_return)(0.37)
