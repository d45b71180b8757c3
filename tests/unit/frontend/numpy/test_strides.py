"""`as_strided` and `x.strides`: views by steps in memory, read, written through, and differentiated."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.unit.frontend.comparing import as_python

X = np.arange(1.0, 25.0) * 0.37


def windows(x):
    return np.sum(as_strided(x, (21, 4), (8, 8)).mean(1) ** 2)


def windows_with_a_step(x):
    return np.sum(as_strided(x, shape=(10, 5), strides=(x.strides[0] * 2, x.itemsize)).max(1) ** 2)


def rows(x):
    return np.sum(as_strided(x, (6, 4), (32, 8)) ** 2 @ np.arange(4))


def patches(x):
    A = x.reshape(4, 6)
    s0, s1 = A.strides
    return np.sum(as_strided(A, (3, 5, 2, 2), (s0, s1, s0, s1)).mean((2, 3)) ** 2 * np.arange(5))


def patches_with_a_step(x):
    A = x.reshape(4, 6)
    return np.sum(as_strided(A, (2, 3, 2, 2), (A.strides[0] * 2, A.strides[1] * 2, *A.strides)).mean((2, 3)) ** 2 * np.arange(3))


def patches_of_a_transpose(x):
    A = x.reshape(4, 6).T
    return np.sum(as_strided(A, (5, 3, 2, 2), A.strides * 2).mean((2, 3)) ** 2 * np.arange(3))


def diagonal(x):
    return np.sum(as_strided(x.reshape(4, 6), (4,), (x.itemsize * 7,)) ** 3)


def repeated(x):
    return np.sum(as_strided(x, (3, 24), (0, 8)) ** 2 * np.arange(3)[:, None])


def last_axis(x):
    A = x.reshape(2, 3, 4)
    return np.sum(as_strided(A, (2, 3, 3, 2), (*A.strides, A.strides[2])).prod(-1))


def toeplitz(x):
    values = np.concatenate([x[:4], x[7:10]])
    step = values.strides[0]
    return np.sum(as_strided(values[3:], (4, 4), (-step, step)) @ x[:4] ** 2)


def behind_a_slice(x):
    return np.sum(as_strided(x[2:10], (6, 4), (8, 8)) ** 2 @ np.arange(4))


def of_a_part(x):
    A = x.reshape(4, 6).copy()
    return np.sum(as_strided(A[1:, 2:], (2, 3), (A.strides[0], 8)) ** 2 * np.arange(3))


def backwards(x):
    y = x[::-1]
    return np.sum(as_strided(y, (5,), y.strides) ** 2 * np.arange(5))


def of_every_other(x):
    y = x[::2]
    return np.sum(as_strided(y, (5, 3), (y.strides[0] * 2, 8)) ** 2 * np.arange(3))


def written_through(x):
    y = x * 1.0
    every = as_strided(y, (4,), (48,))
    every += x[1]
    return np.sum(y ** 2)


def seen_when_written_before(x):
    y = x * 1.0
    view = as_strided(y, (21, 4), (8, 8))
    y[3] = x[0]
    return np.sum(view ** 2)


def in_a_loop(x):
    total = 0.0
    for i in range(20):
        view = as_strided(x, (21, 4), (8, 8), writeable=False)
        total = total * 0.5 + view[i] @ view[i]
    return total


def of_nothing(x):
    return np.sum(as_strided(x * 1.0, (0, 4), (8, 8))) + x[0] + as_strided(x, (), ())


PROGRAMS = [windows, windows_with_a_step, rows, patches, patches_with_a_step, patches_of_a_transpose, diagonal, repeated, last_axis, toeplitz,
            behind_a_slice, of_a_part, backwards, of_every_other, written_through, seen_when_written_before, in_a_loop, of_nothing]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_numpy(program):
    as_python(program, X, np.sin(X * 7.0))


def test_second_derivatives():
    v, h = np.cos(X), 1e-5
    for program in (patches, toeplitz):
        _, tangent = bw.jvp(bw.grad(program), (X,), (v,))
        np.testing.assert_allclose(tangent, (bw.grad(program)(X + h * v) - bw.grad(program)(X - h * v)) / (2 * h), rtol=1e-6)


def test_arguments_in_other_orders():
    """A program is of the memory order that it asks for."""
    def program(A):
        return np.sum(as_strided(A, (3, 2), A.strides) * np.arange(6).reshape(3, 2)) + A.strides[0]
    compiled = bw.jit(program)
    for A in (X.reshape(4, 6), np.asfortranarray(X.reshape(4, 6)), X.reshape(6, 4).T, X.reshape(4, 6)):
        assert compiled(A) == pytest.approx(program(A), rel=1e-12)


def test_integers_and_smaller_numbers():
    def program(x):
        return as_strided(x, (5, 3), (x.itemsize, x.itemsize)) // 2, x.reshape(4, 6).T.strides, x[::3].strides
    for x in (np.arange(24, dtype=np.int32), np.arange(24.0, dtype=np.float32)):
        found, expected = bw.jit(program)(x), program(x)
        np.testing.assert_array_equal(found[0], expected[0])
        assert found[0].dtype == expected[0].dtype and found[1:] == expected[1:]


@pytest.mark.parametrize("program, why", [
    (lambda x: as_strided(x, (25,), (8,)), "reads memory outside of it"),
    (lambda x: as_strided(x, (3,), (-8,)), "reads memory outside of it"),
    (lambda x: as_strided(x, (5,), (4,)), "parts of numbers"),
], ids=["behind", "before", "parts"])
def test_what_is_refused(program, why):
    with pytest.raises(UnsupportedError, match=rf"(?s)test_strides.py.*{why}.*hint: "):
        bw.jit(program)(X)


def test_gaps_and_writes_to_windows_are_refused():
    def written(x):
        y = x * 1.0
        as_strided(y, (21, 4), (8, 8))[0] = 1.0
        return y
    with pytest.raises(UnsupportedError, match="gaps in memory"):
        bw.jit(windows)(np.arange(48.0)[::2])
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        bw.jit(written)(X)
    with pytest.raises(ValueError, match="mismatch in length"):
        bw.jit(lambda x: as_strided(x, (2, 2), (8,)))(X)
