"""`sorted()` and `list.sort()` by keys that are tuples, whose parts may be tuples, texts, or things that have no order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from tests.support.gradcheck import central_differences

A, B = np.array([3.0, 1.0, 2.0, 1.5]), np.array([0.5, 2.5, 1.0, 4.0])


class Point:
    def __init__(self, x: Any) -> None:
        self.x = x


def nested(x: Any) -> Any:
    total = 0.0
    for k, (time, (low, high)) in enumerate(sorted(zip(x, [(x[1], x[2]), (x[0], x[3]), (x[3], x[1]), (x[2], x[0])], strict=True))):
        total = total + (k + 1) * time * low - high * high
    return total


def ties_in_front(x: Any) -> Any:
    pairs = [(x[0] > 2.0, (x[1], x[2])), (x[1] > 2.0, (x[3], x[0])), (x[2] > 0.0, (x[2], x[1]))]
    pairs.sort(reverse=True)
    return pairs[0][1][0] + 2.0 * pairs[1][1][1] + 3.0 * pairs[2][1][0]


def texts(x: Any) -> Any:
    found = sorted([(x[0] > 2.0, "b", x[0]), (x[3] > 2.0, "a", x[2]), (x[2] > 5.0, "c", x[1])])
    return found[0][2] + 2.0 * found[1][2]


def lists(x: Any) -> Any:
    found = sorted([[x[0], [x[1], 1]], [x[1], [x[2], 2]], [x[2], [x[3], 3]]])
    return found[0][1][0] * found[0][1][1] + found[2][1][0] ** 2


def arrays(x: Any) -> Any:
    found = sorted([(x[0], np.ones(2) * x[1]), (x[1], x[:2]), (x[2], x[2:])])
    return found[0][1][0] + 2.0 * found[2][1][1]


def objects(x: Any) -> Any:
    found = sorted([(x[0], Point(x[1])), (x[1], Point(x[2])), (x[3], Point(x[0]))])
    return found[0][1].x + 3.0 * found[1][1].x


@pytest.mark.parametrize("fun", [nested, ties_in_front, texts, lists, arrays, objects])
def test_keys_of_several_parts(fun: Callable[[Any], Any]) -> None:
    program = bw.value_and_grad(fun)
    for x in (A, B, A):
        value, slope = program(x)
        np.testing.assert_allclose(value, fun(x), rtol=1e-12)
        np.testing.assert_allclose(slope, central_differences(fun, x), atol=1e-7)


@pytest.mark.parametrize(("fun", "kind"), [(arrays, ValueError), (objects, TypeError)])
def test_elements_that_are_alike_up_to_what_has_no_order(fun: Callable[[Any], Any], kind: type[Exception]) -> None:
    tied = np.array([1.0, 1.0, 2.0, 3.0])
    program = bw.grad(fun)
    program(A)
    with pytest.raises(kind):
        fun(tied)
    with pytest.raises(kind, match=r"alike up to items that have no order[^$]*hint: a key"):
        program(tied)
