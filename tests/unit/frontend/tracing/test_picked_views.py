"""x[k] with an integer that only the run knows is a view, as in NumPy: what is written through it is seen, and what it shows changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.support.gradcheck import directional, inner

Function = Callable[[Any, Any], Any]


def updated(m, k):
    row = m[k]
    row *= 0.9
    return m


def assigned(m, k):
    row = m[k]
    row[1:] = 0.5
    row[0] += 1.0
    return m


def second_half(m, k):
    m[k] += m[0]
    m[k, 1:3] *= 2.0
    m[:, k] -= 0.5
    return m


def seen_by_the_view(m, k):
    row, column = m[k], m[:, k]
    m[0] = 3.0
    m *= 2.0
    return row * 1.0, column + row


def of_views(m, k):
    left, right, back = m.T[k], m[::-1, ::-1][k], m[k][::-1]
    left += 1.0
    right *= 2.0
    back[0] = 7.0
    return m


def as_matrices(m, k):
    square = m[k].reshape(2, 2)
    square[0, 1] = 5.0
    square.T[1] += 1.0
    return m


def between_axes(m, k):
    cube = m.reshape(2, 2, 4)
    part = cube[0, k % 2, 1:]
    part += 10.0
    other = cube[:, k % 2, k]
    other *= 2.0
    column = cube[k % 2, :, k]
    column -= 1.0
    return m


def of_two_integers(m, k):
    cube = m.reshape(2, 2, 4)
    line = cube[k % 2, k // 2]
    line *= np.arange(4.0)
    return cube, line.sum()


def with_new_axes(m, k):
    row = m[k, None]
    row += 2.0
    return m, row


def in_a_loop(m, k):
    for i in range(11):
        row = m[(i + k) % 4]
        row *= 0.9
        m[i % 4] += 0.1 * row
    return m


def in_a_while(m, k):
    i = 0
    while i < 9 and np.sum(m) > -1e3:
        row = m[i % 4]
        for j in range(9):
            row[j % 4] += 0.01 * m[j % 4, i % 4]
        i += 1
    return m


def in_a_branch(m, k):
    row = m[k]
    if m[0, 0] > 0:
        row += 1.0
        m[k] *= 2.0
    else:
        row -= 1.0
    return m, row * 1.0


def rebound_in_a_loop(m, k):
    row = m[k]
    for i in range(9):
        m[0] += 0.1 * row
        row = m[(i * 3) % 4]
    return m, row * 1.0


FUNCTIONS: tuple[Function, ...] = (updated, assigned, second_half, seen_by_the_view, of_views, as_matrices, between_axes, of_two_integers, with_new_axes,
                                   in_a_loop, in_a_while, in_a_branch, rebound_in_a_loop)


def matrix(rows: int = 4) -> np.ndarray[Any, Any]:
    return np.random.default_rng(rows).uniform(-1, 1, (rows, 4))


def on_a_copy(fun: Function, autoloop: bool = True) -> Function:
    """The results as arrays that share nothing."""
    def run(m, k):
        found = fun(m.copy(), k)
        return tuple([part * 1.0 for part in (found if isinstance(found, tuple) else (found,))])
    return bw.jit(run, autoloop=autoloop)


@pytest.mark.parametrize("autoloop", [True, False])
@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda fun: fun.__name__)
def test_values(fun: Function, autoloop: bool) -> None:
    if not autoloop and fun in (in_a_while, in_a_branch):
        return                                                               # these decide by traced values
    compiled, plain = on_a_copy(fun, autoloop), on_a_copy(fun).fun
    for m, k in ((matrix(), 1), (matrix(), 3), (-abs(matrix()), np.int64(2))):
        for x, y in zip(compiled(m, k), plain(m, k), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda fun: fun.__name__)
def test_gradients(fun: Function) -> None:
    run = on_a_copy(fun).fun
    weights = np.random.default_rng(1).uniform(-1, 1, 100)

    def total(m, k):
        return sum(np.sum(np.sin(part).ravel() * weights[:part.size]) for part in run(m, k))

    m, t = matrix(), np.random.default_rng(2).uniform(-1, 1, (4, 4))
    product = inner(bw.grad(total)(m, 2), t)
    difference = directional(lambda h: total(m + h * t, 2))
    assert abs(product - difference) <= 1e-7 * max(1.0, abs(difference))
    assert abs(product - bw.jvp(lambda m: total(m, 2), (m,), (t,))[1]) <= 1e-12 * max(1.0, abs(product))


def test_arguments_are_written_through_views() -> None:
    m, expected = matrix(), matrix()
    bw.jit(updated)(m, 2)
    updated(expected, 2)
    np.testing.assert_array_equal(m, expected)


def test_an_array_without_axes_as_an_index_gives_a_copy() -> None:
    index = np.array(2)
    for x, y in zip(on_a_copy(seen_by_the_view)(matrix(), index), on_a_copy(seen_by_the_view).fun(matrix(), index), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("k", [4, -5])
def test_positions_are_checked(k: int) -> None:
    with pytest.raises(IndexError, match=rf"test_picked_views.py:\d+: .*\n.*index {k} is out of bounds for axis with size 4"):
        on_a_copy(updated)(matrix(), k)
    np.testing.assert_array_equal(on_a_copy(updated)(matrix(), -1)[0], on_a_copy(updated).fun(matrix(), -1)[0])


def test_what_cannot_be_known() -> None:
    with pytest.raises(UnsupportedError, match="depends on a traced index"):
        bw.jit(lambda m: m if np.shares_memory(m[np.argmax(m[0])], m[0]) else -m)(matrix())
    for k in (1, 0):                               # an integer argument is compiled in
        found = bw.jit(lambda m, k: m if np.shares_memory(m[k], m[0]) else -m)(matrix(), k)
        np.testing.assert_array_equal(found, -matrix() if k else matrix())
