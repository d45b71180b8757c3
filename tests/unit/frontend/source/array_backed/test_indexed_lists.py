"""Lists to whose elements loops assign at places that move: as Python does it, whatever else has or changes the elements."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

X = np.array([0.3, 0.5, 0.7])
N = 12


def backward_recursion(x):
    values, gains = [None] * (N + 1), [None] * N
    values[N] = np.outer(x, x)
    for t in reversed(range(N)):
        gains[t] = np.tanh(values[t + 1] @ x)
        values[t] = values[t + 1] * 0.9 + np.outer(gains[t], x)
    total = x
    for t in range(N):
        total = total + 0.1 * gains[t] * t
    return np.sum(values[0]) + np.sum(total)


def numbers(x):
    found = [None] * (N + 1)
    found[0] = x[0]
    for i in range(N):
        found[i + 1] = found[i] * 0.5 + x[1]
    return sum(v**2 for v in found)


def in_the_place_of_zeros(x):
    found = [np.zeros(3) for _ in range(N)]
    for t in range(N):
        found[t] = np.sin(x * t)
    total = 0.0
    for t in range(N - 1):
        total += found[t] @ found[t + 1]
    return total


def arrays_in_the_place_of_numbers(x):
    found = [0] * N
    for t in range(N):
        found[t] = x * t
    return sum(v @ v for v in found)


def tuples(x):
    found, y = [None] * N, x
    for t in range(N):
        y = np.sin(y)
        found[t] = (y, y[0] * t)
    total = 0.0
    for array, number in found:
        total += np.sum(array) * number
    return total


def some_that_stay_none(x):
    found = [None] * (2 * N)
    for t in range(0, 2 * N, 2):
        found[t] = x * t
    return sum(np.sum(v) for v in found if v is not None)


def as_data_decide(x):
    found = [None] * N
    for t in range(N):
        if x[0] * t > 0.5:
            found[t] = x * t
        else:
            found[t] = x
    return sum(np.sum(v * v) for v in found)


RECORDED = (backward_recursion, numbers, in_the_place_of_zeros, arrays_in_the_place_of_numbers, tuples, some_that_stay_none, as_data_decide)


def written_after_the_loop(x):
    found, y = [None] * N, x.copy()
    for t in range(N):
        found[t] = y
        y = y * 1.1
    y += 1
    found[3][0] = 7.0
    return sum(np.sum(v**2) for v in found) + np.sum(y)


def written_in_the_loop(x):
    found, y = [None] * N, x.copy()
    for t in range(N):
        y *= 1.1
        found[t] = y
    return sum(np.sum(v**2) for v in found) + np.sum(y)


def first_one_written_after_the_loop(x):
    found, y = [None] * N, x.copy()
    first = y
    for t in range(N):
        found[t] = y
        y = y * 1.1
    first[0] = 100.0
    return sum(np.sum(v**2) for v in found)


def one_from_outside_written_after_the_loop(x):
    found, y, z = [None] * N, x.copy(), x * 2
    for t in range(N):
        if t % 2 == 0:
            found[t] = y
        else:
            found[t] = np.sin(z * t)
    y[0] = 3.0
    return sum(np.sum(v**2) for v in found)


def elements_changed_in_place(x):
    found = [np.zeros(3) for _ in range(N)]
    first = found[0]
    for t in range(N):
        found[t] += np.sin(x * (t + 1))
    return sum(v @ v for v in found) + np.sum(first)


def one_that_a_variable_has(x):
    found = [None] * N
    for t in range(N):
        last = x * t
        found[t] = last
    found[N - 1][1] = 5.0
    return np.sum(last) + sum(np.sum(v) for v in found)


def compared_with_none(x):
    found = [None] * N
    for t in range(N):
        k = (5 * t) % 7
        if found[k] is None:
            found[k] = np.sum(x) * t
    return sum(v for v in found if v is not None)


def an_array_assigned_to_after_it_was_put_before_the_loop(x):
    y = x * 1.0
    found = [y] * N
    for t in range(1, N):
        found[t] = found[t - 1] * 1.1
        y[0] += 0.1
    return sum(np.sum(v) for v in found) + np.sum(y)


def elements_read_before_what_they_are_is_written(x):
    y, kept, found = x * 1.0, [x * 1.0] * 9, [0.0] * 9
    for k in range(9):
        kept[k] = y
    for j in range(9):
        found[j] = kept[8 - j]
    y[0] *= 0.1
    return sum(np.sum(v) for v in found)


def one_element_read_before_what_it_is_is_written(x):
    y, z = x * 1.0, np.cos(x)
    found, kept = [z] * 10, [y] * 9
    for j in range(0, 9, 2):
        for i in range(j + 1):
            found[8 - j] = kept[8 - i]
        y[0] *= 0.1
    return sum(np.sum(v) for v in found)


def an_element_written_in_the_first_iteration(x):
    y, kept = x * 1.0, [x * k for k in range(12)]
    total = 0.0
    kept[2] = y
    for k in reversed(range(11)):
        y[1:] += 1.01
        y = np.sin(kept[k]) * 1.1
        total += np.sum(y)
    return total + sum(np.sum(v) for v in kept)


def a_variable_that_is_another_array_from_the_second_iteration_on(x):
    y, z, kept = x * 1.0, np.sin(x), [np.zeros(3) for _ in range(9)]
    for k in reversed(range(8)):
        kept[k] = y
        y = z
    y[0] = 2.0 * x[1]
    return sum(np.sum(v) for v in kept) + np.sum(z * z)


def written_while_a_variable_is_it(x):
    y, z, w, kept = x * 1.0, np.sin(x), np.cos(x), [np.zeros(3) for _ in range(9)]
    for k in range(8):
        kept[k] = y
        y, z = z, w
        w[1] += x[0]
    return sum(np.sum(v) for v in kept) + np.sum(w * w)


def an_element_that_an_inner_loop_takes_from_others(x):
    kept, total = [0.0] * 13, 0.0
    for _ in range(9):
        kept[-1] += 1.01
        kept[2] = x[1]
    for i in range(12):
        total = total + x[i % 3]
        for k in range(i + 1):
            kept[-1] = 0.5 * kept[k] + total
        kept[i] = kept[-1] * x[i % 3]
    return total + sum(kept)


RECORDED += (an_element_that_an_inner_loop_takes_from_others,)


@pytest.mark.parametrize("program", [*RECORDED, elements_read_before_what_they_are_is_written,
                                     one_element_read_before_what_it_is_is_written, an_element_written_in_the_first_iteration,
                                     written_after_the_loop, written_in_the_loop, first_one_written_after_the_loop,
                                     one_from_outside_written_after_the_loop, elements_changed_in_place, one_that_a_variable_has,
                                     compared_with_none, an_array_assigned_to_after_it_was_put_before_the_loop,
                                     a_variable_that_is_another_array_from_the_second_iteration_on, written_while_a_variable_is_it],
                         ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, X * 1.3)


@pytest.mark.parametrize("program", RECORDED, ids=lambda program: program.__name__)
def test_is_recorded(program):
    assert "unrolled" not in bw.jit(program).explain(X)


def test_numbers_of_single_precision_stay_what_they_are():
    def program(x):
        kept = [x[0]] * 12
        for k in range(1, 12):
            kept[k] = kept[k - 1] * x[k]
        return kept[-1] + kept[3]

    x = np.linspace(0.3, 1.0, 12).astype(np.float32)
    found = bw.jit(program)(x)
    assert found.dtype == np.float32 and found == pytest.approx(program(x), rel=1e-6)
    assert "unrolled" not in bw.jit(program).explain(x)
