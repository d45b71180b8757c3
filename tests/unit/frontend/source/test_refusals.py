"""Loops that only Python knows are unrolled, and it is told why; what is carried all the same."""

import copy

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace


def taylor(x):
    total, factorial = 0.0, 1
    for k in range(1, 30):
        factorial *= k
        total += x ** k / factorial
    return total


def fibonacci(x):
    a, b = 0, 1
    for _ in range(100):
        a, b = b, a + b
    return x * a


def powers_of_two(x):
    total = 0.0
    for k in range(80):
        total += x / 2 ** k
    return total


def collected(x):
    kept = []
    for _ in range(10):
        x = x * 0.5
        kept.append(x)
    return np.stack(kept)


def last_view(a):
    for i in range(9):
        row = a[i]
    row += 1.0
    return a


def consumed(x):
    numbers = iter(range(100))
    total = 0.0
    for _ in range(9):
        for k in numbers:
            if k % 3 == 2:
                break
            total += x * k
    return total


class Counter:
    def __init__(self):
        self.count = 0


def counting(x):
    counter = Counter()
    for _ in range(12):
        counter.count += 2
        x = x * 1.5
    return x + counter.count


def handled(x):
    total = 0.0
    for k in range(9):
        try:
            total += [x, x * 2, x * 3][k % 4]
        except IndexError:
            total -= 1.0
    return total


def growing(x):
    for _ in range(9):
        x = np.concatenate([x, x[:1]])
    return x


def aliased(a):
    b = a
    for i in range(9):
        b[i] = a[i] + 1.0
        b = b[::-1]
    return a + b


UNROLLED = {
    taylor: 0.7, fibonacci: 0.3, powers_of_two: 0.7, collected: 0.7, last_view: np.ones((9, 3)), consumed: 0.3, counting: 0.3,
    handled: 0.7, growing: np.arange(3.0), aliased: np.arange(9.0),
}


@pytest.mark.parametrize("program", UNROLLED, ids=lambda program: program.__name__)
def test_loops_that_only_python_knows_are_unrolled(program):
    expected, found = program(copy.deepcopy(UNROLLED[program])), bw.jit(program)(copy.deepcopy(UNROLLED[program]))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_integers_that_count_are_carried():
    def counted(x):
        n, k = 0, 0
        for i in range(10):
            if x[i] > 0:
                n += 1
            k += 3
            h = (n * 31 + k) % 7
        return n, k, h

    x = np.cos(np.arange(10.0))
    assert tuple(bw.jit(counted)(x)) == counted(x)
    assert not trace(counted, (x,)).notes


def test_integers_that_branches_compute_with_are_carried():
    def gaps(x):
        last, total = None, 0.0
        for k in range(len(x)):
            if x[k] > 0.5:
                total += 1.0 if last is None else (k - last) * x[k]
                last = k
        return total

    x = np.cos(np.arange(30.0))
    np.testing.assert_allclose(bw.jit(gaps)(x), gaps(x), rtol=1e-14)
    assert not trace(gaps, (x,)).notes


def doubled(x):
    n = 1
    for i in range(20):
        if x[i % 3] > 0:
            n = n * 2
    return n * x[0]


def summed(x):
    a, b = 1, 1
    for i in range(50):
        if x[i % 3] > 0:
            a, b = b, a + b
    return a * x[0]


@pytest.mark.parametrize("program", [doubled, summed], ids=lambda program: program.__name__)
def test_integers_that_branches_multiply_or_add_up_are_not_carried(program):
    x = np.array([0.5, -1.0, -1.0])
    assert bw.jit(program)(x) == program(x)
    assert any("64 bits" in str(note) for note in trace(program, (x,)).notes)


def test_reasons_are_told():
    assert "is unrolled: it takes elements from an iterator" in bw.jit(consumed).explain(0.3)
    assert not trace(taylor, (0.7,), autoloop=False).notes


def test_a_body_without_native_code_is_unrolled():
    def batches(a, b):
        total = np.zeros((9, 2, 2))
        for i in range(9):
            total[:i] += a[:i] @ b[:i]
        return total

    rng = np.random.default_rng(3)
    a, b = rng.random((9, 2, 3)), rng.random((9, 3, 2))
    np.testing.assert_allclose(bw.jit(batches)(a, b), batches(a, b), rtol=1e-13)
    np.testing.assert_allclose(bw.compile(batches, a, b)(a, b), batches(a, b), rtol=1e-13)
    gradients = bw.compile(batches, a, b).backward(a, b, grad_outputs=np.ones((9, 2, 2)))
    np.testing.assert_allclose(gradients[0], bw.grad(lambda a, b: np.sum(batches(a, b)))(a, b), rtol=1e-13)
    assert "all loops are unrolled: " in bw.jit(batches).explain(a, b)


def test_a_selection_on_a_side_inside_of_a_side() -> None:
    def program(x, is_by_masks, has_more=False):
        mask = x > -1.0
        keep, found = mask, x[mask]
        if np.sum(found) > 1.0:
            x = 2.0 * x
            found = found if is_by_masks else 2.0 * found
            if np.sum(x) > -0.5:
                keep = mask & (x > 0)
                found = found if is_by_masks else np.append(found[found > 0], x[0]) if has_more else found[found > 0]
        return np.sum((x[keep] if is_by_masks else found) ** 2)

    x = np.array([0.5, 0.7, -0.3, 1.2, -2.0])
    for is_by_masks in (True, False):
        assert bw.jit(program, static_argnums=1)(x, is_by_masks) == pytest.approx(program(x, False), rel=1e-14)
        assert bw.jit(program, static_argnums=1)(-x, is_by_masks) == pytest.approx(program(-x, False), rel=1e-14)
    with pytest.raises(bw.errors.TracerBoolError, match=r"found is x\[mask\] on one side(.|\n)*keep = mask & \(x > 0\)"):
        bw.jit(program, static_argnums=(1, 2))(x, False, True)


def test_an_array_that_grows_until_data_say() -> None:
    def program(x, is_list):
        kept = [] if is_list else np.zeros(0)
        for _ in range(9):
            x = 0.5 * x
            if is_list:
                kept.append(np.sum(x))
            else:
                kept = np.hstack((kept, np.sum(x)))
            if np.max(x) < 0.2:
                break
        kept = np.array(kept)
        return kept[-1] + np.sum(kept ** 2)

    x = np.array([0.5, -1.0, 2.0, 0.1])
    assert bw.jit(program, static_argnums=1)(x, True) == pytest.approx(program(x, False), rel=1e-14)
    with pytest.raises(bw.errors.TracerBoolError, match=r"kept has shape \(2,\) on one side and \(1,\) on the other\n  hint: append to a list"):
        bw.jit(program, static_argnums=1)(x, False)
