"""Lists and deques of arrays from which data decide what is removed: the last steps of an optimiser, moving windows, stacks of states."""

from collections import deque

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError
from tests.unit.frontend.comparing import as_python

X = np.array([1.1, 2.2, -3.3])
PLACES = (X, np.array([-0.4, 0.3, 5.0]), np.array([30.0, -2.01, 1.0]))


def window(x):
    kept = []
    for i in range(20):
        x = np.sin(x) + 0.1 * i
        if x[0] > 0.5:
            kept.append(x)
            if len(kept) > 3:
                kept.pop(0)
    return sum((k + 1) * np.sum(a * a) for k, a in enumerate(kept)) + len(kept)


def several_at_once(x):
    """Of three lists, which are found to need room one after the other; gone over together."""
    s_list, y_list, rho_list = [], [], []
    for i in range(12):
        q = x + i
        for s, y, rho in zip(reversed(s_list), reversed(y_list), reversed(rho_list), strict=True):
            q = q - 0.01 * rho * np.dot(s, q) * y
        for s, (y, rho) in zip(s_list, zip(y_list, rho_list, strict=True), strict=False):
            q = q + 0.02 * rho * s * y
        if q[0] + i > 3:
            s_list.append(q - x)
            y_list.append(np.tanh(q))
            rho_list.append(1.0 / (1.0 + q @ q))
            if len(s_list) > 3:
                s_list.pop(0), y_list.pop(0), rho_list.pop(0)
        x = np.tanh(q)
    return x.sum() + len(s_list)


def tuples(x):
    waiting = []
    for i in range(15):
        waiting.append((i, x * i, x[0] * i))
        if x[1] + i > 5:
            j, a, b = waiting.pop(0)
            x = x + 0.1 * j * a / (1 + a @ a) + b * 0.01
    return x.sum() + len(waiting)


def stack(x):
    states, total = [x * 1.0], 0.0
    while states:
        q = states.pop()
        total += q @ q * 0.5
        if total < 200:
            states.append(q * 1.5)
            if q[0] > 3:
                states.append(q * 0.5)
    return total


def left_early(x):
    kept = []
    for i in range(25):
        kept.append(x * i)
        if len(kept) > 3:
            del kept[0]
        if x[1] * i > 20:
            break
        if x[0] > 3:
            continue
        x = x + kept[0] * 0.01
    return sum((k + 1) * np.sum(s * s) for k, s in enumerate(kept))


def carried(x):
    kept, q = [x * 1.0, x * 2.0], x * 0
    for i in range(12):
        if x[0] + i > 3 and len(kept) > 1:
            q = kept.pop(0)
        kept.append(q + x)
        x = x * 0.9
    return np.sum(q * q) + sum(np.sum(s) for s in kept)


def of_both(x):
    waiting, done, total = [x * 1.0, x * 2], [], 0.0
    for i in range(12):
        if x[1] + i > 3 and len(waiting) > 0:
            q = waiting.pop()
            done.append(q)
        else:
            waiting.append(x + i)
        if len(done) > 3:
            total += done.pop(0) @ x
    return total + len(waiting) + len(done)


def nothing_comes(x):
    kept = []
    for i in range(10):
        if x[0] > 1e9:
            kept.append(x * i)
            if len(kept) > 2:
                kept.pop(0)
    total = 0.0
    for s in reversed(kept):
        total = total + np.sum(s)
    return total + len(kept) + x[0]


def matrices(x):
    kept = []
    for i in range(10):
        y = np.zeros((3, 3))
        y[1:] += np.outer(x, x)[:2] + i
        kept.append(y)
        if x[1] + i > 3.7 and len(kept) > 2:
            kept.pop(0)
    return sum(np.sum(s @ x) for s in kept)


def made_in_a_loop(x):
    total = 0.0
    for j in range(9):
        kept = []
        for i in range(10):
            kept.append(x * i + j)
            if x[1] + i > 3.7 and len(kept) > 2:
                kept.pop(0)
        total = total + sum(np.sum(s * s) for s in kept)
    return total


def deque_of_some(x):
    memory = deque(maxlen=3)
    for i in range(20):
        q = x + i
        for s, r in reversed(memory):
            q = q - 0.01 * r * (s @ q) * s
        if q[0] > 3:
            memory.append((q - x, 1.0 / (1.0 + q @ q)))
        x = np.tanh(q)
    return x.sum() + len(memory) + sum((k + 1) * r for k, (_, r) in enumerate(memory))


def deque_with_elements(x):
    memory = deque([x * 1.0], maxlen=2)
    for i in range(12):
        if x[1] + i > 3:
            memory.extend([x * i, x + 1])
        if x[1] + i > 12:
            memory.popleft()
    return sum((k + 1) * np.sum(s * s) for k, s in enumerate(memory)) + memory[0][0] + memory[-1][1]


def deque_of_numbers(x):
    last, k, v = deque(maxlen=4), 0, x[0]
    while k < 30 and abs(v) < 50:
        v = v + last[0] * 0.1 - last[-1] * 0.05 if len(last) > 2 else v * 1.1 + 0.1
        if v > 1:
            last.append(v)
        k += 1
    return v + sum(last)


PROGRAMS = [window, several_at_once, tuples, stack, left_early, carried, of_both, nothing_comes, matrices, made_in_a_loop, deque_of_some,
            deque_with_elements, deque_of_numbers]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, *PLACES)


@pytest.mark.parametrize("program", [window, several_at_once, deque_of_some], ids=lambda program: program.__name__)
def test_second_derivatives_and_batches(program):
    v, h, starts = np.array([0.3, -0.7, 0.5]), 1e-5, (X, np.array([1.7, 0.2, -1.1]))
    for x in starts:
        _, tangent = bw.jvp(bw.grad(program), (x,), (v,))
        np.testing.assert_allclose(tangent, (bw.grad(program)(x + h * v) - bw.grad(program)(x - h * v)) / (2 * h), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(bw.vmap(program)(np.stack(starts)), [program(x) for x in starts], rtol=1e-12)


def test_results():
    def program(x):
        kept, last = [], deque(maxlen=2)
        for i in range(10):
            kept.append((x * i).astype(np.int32))
            if x[1] + i > 3 and len(kept) > 2:
                kept.pop(0)
                last.append(x[0] * i)
        return np.array(kept), kept[0] // 2, last
    found, expected = bw.jit(program)(X), program(X)
    for one, other in zip(found[:2], expected[:2], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert found[2] == expected[2] and found[2].maxlen == 2


def written_by_another_name(x):
    kept, y = [], x * 1.0
    for i in range(10):
        y += 1
        kept.append(y)
        if x[1] + i > 3 and len(kept) > 2:
            kept.pop(0)
    return sum(np.sum(s * s) for s in kept)


def written_in_the_next_iteration(x):
    kept, before = [], x * 0
    for i in range(12):
        before[1] += 2
        y = x * i
        kept.append(y)
        if x[1] + i > 3 and len(kept) > 2:
            kept.pop(0)
        before = y
    return sum(np.sum(s * s) for s in kept)


def written_as_a_view(x):
    kept, rows = [], np.outer(x, x)
    for i in range(12):
        kept.append(rows[i % 3])
        if x[0] * i > 2 and len(kept) > 2:
            kept.pop(0)
        rows[1] = 0.5
    return sum(np.sum(s * s) for s in kept)


def written_after_the_loop(x):
    kept = []
    for i in range(12):
        y = x * i
        kept.append(y)
        if x[1] + i > 3 and len(kept) > 2:
            kept.pop(0)
    y[0] = 3
    return sum(np.sum(s * s) for s in kept)


def written_to_an_element(x):
    kept = []
    for i in range(10):
        kept.append(x * i)
        if x[1] + i > 3 and len(kept) > 2:
            kept.pop(0)
        kept[-1][0] = 5.0
    return sum(np.sum(s * s) for s in kept)


def of_two_shapes(x):
    kept = []
    for i in range(10):
        kept.append(x * i if i % 2 else x[:2] * i)
        if x[1] + i > 3 and len(kept) > 2:
            kept.pop(0)
    return sum(np.sum(s * s) for s in kept)


@pytest.mark.parametrize("program", [written_by_another_name, written_in_the_next_iteration, written_as_a_view, written_after_the_loop,
                                     written_to_an_element, of_two_shapes], ids=lambda program: program.__name__)
def test_what_is_refused(program):
    """Never a number that is not Python's."""
    with pytest.raises((BwError, ValueError), match=r"(?s)test_memories.py.*hint: "):
        bw.jit(program)(X)
