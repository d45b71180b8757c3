"""Loops of plain NumPy programs, captured from source: values as NumPy's, bit for bit, and gradients as finite differences."""

import copy

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError
from bwcompiler.frontend.tracing.trace import trace

SCALE = 0.5


def heat(u, n):
    for _ in range(n):
        u[1:-1] += 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return u


def jacobi(a, b):
    for _ in range(1, 30):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return a * b


def seidel(a):
    n = a.shape[0]
    for _ in range(9):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (a[i - 1, j] + a[i, j - 1] + a[i, j] + a[i, j + 1] + a[i + 1, j]) / 5.0
    return a


def forward_substitution(lower, b):
    x = np.zeros_like(b)
    for i in range(lower.shape[0]):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x


def back_substitution(upper, b):
    x = np.zeros(b.shape)
    n = len(b)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - np.dot(upper[i, i + 1:], x[i + 1:])) / upper[i, i]
    return x


def lu(a):
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def cholesky(a):
    n = a.shape[0]
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, n):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])
    return np.tril(a)


def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def gram_schmidt(a):
    q = np.zeros_like(a)
    r = np.zeros((a.shape[1], a.shape[1]))
    for k in range(a.shape[1]):
        nrm = np.dot(a[:, k], a[:, k])
        r[k, k] = np.sqrt(nrm)
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q + 0 * r.sum()


def triangular_product(a, b):
    n = b.shape[0]
    for i in range(n):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1:, i], b[i + 1:, j])
    return b


def symmetric_update(c, a):
    for i in range(a.shape[0]):
        c[i, :i + 1] *= 0.5
        for k in range(a.shape[1]):
            c[i, :i + 1] += a[i, k] * a[:i + 1, k]
    return c


def recursive_filter(x):
    y = np.zeros(len(x))
    y1 = y2 = 0
    for i in range(len(x)):
        y[i] = 0.3 * x[i] + 0.5 * y1 - 0.2 * y2
        y2 = y1
        y1 = y[i]
    for i in range(len(x) - 1, -1, -1):
        y[i] += 0.25 * y1
        y1 = y[i]
    return y


def exponential_average(xs):
    mean = 0
    total = 0.0
    for i, x in enumerate(xs):
        mean = 0.9 * mean + 0.1 * x
        total += mean * i
    return total, mean, i


def step(position, velocity, dt):
    force = -SCALE * position * np.sum(position ** 2)
    return position + dt * velocity, velocity + dt * force


class Body:
    def __init__(self, mass):
        self.mass = mass

    def kick(self, x, v):
        return v - 0.01 * x / self.mass


def orbit(x, v):
    body = Body(2.0)
    for _ in range(20):
        v = body.kick(x, v)
        x, v = step(x, v, 0.01)
    return x, v


def rk4(y):
    def rate(y):
        return np.array([y[1], -np.sin(y[0])])
    h = 0.05
    path = np.zeros((21, 2))
    path[0] = y
    for n in range(20):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        k4 = rate(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path[n + 1] = y
    return path


def rows_and_columns(a):
    total = 0.0
    for row, column in zip(a, a.T, strict=True):
        row *= 2
        total += row @ column
    return total, a


def strided(x):
    y = np.zeros(len(x))
    for i in range(1, 20, 2):
        y[i] = x[i - 1]
    for i in range(18, -1, -2):
        y[i] = x[i + 1] - y[i + 1]
    return y


def distance_table(a, b):
    d = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1.0, d[i, j - 1] + 1.0, d[i - 1, j - 1] + abs(a[i - 1] - b[j - 1]))
    return d[len(a), len(b)]


def swapped(u):
    v = np.sin(u)
    for _ in range(12):
        u, v = v, 0.5 * (u + v)
    return u - v


def positive(rng, n):
    a = rng.standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


def over_arange(x):
    small, total = np.zeros(1, np.float32), np.zeros(1)
    for i in np.arange(1, 12):
        for j in np.arange(i):
            total = total + x[j] * x[i]
    for k in np.arange(11, 0, -2):
        total = total + (small + 1) / 3 * k * x[k] * x[k - 1]   # k is one of NumPy's 64-bit integers: the quotient is of 32 bits
    return total, small + i, small + (k + 1), small + (3 - 2 * k)


def over_map(x, y):
    total = 0.0
    for one in map(np.sin, x):
        total = total * 0.9 + one
    for k, product in enumerate(map(lambda a, b: a * b, x, y[1:])):
        total = total + product * k
    for one, (a, b) in zip(map(abs, x), zip(x, y, strict=True), strict=True):
        total = total + one * a * b
    return total


PROGRAMS = {
    heat: lambda rng: (rng.random(12), 20),
    jacobi: lambda rng: (rng.random(10), rng.random(10)),
    seidel: lambda rng: (rng.random((10, 10)),),
    forward_substitution: lambda rng: (rng.random((9, 9)) + 3 * np.eye(9), rng.random(9)),
    back_substitution: lambda rng: (rng.random((9, 9)) + 3 * np.eye(9), rng.random(9)),
    lu: lambda rng: (rng.random((9, 9)) + 9 * np.eye(9),),
    cholesky: lambda rng: (positive(rng, 9),),
    durbin: lambda rng: (rng.random(10) * 0.1,),
    gram_schmidt: lambda rng: (rng.random((11, 9)) + np.eye(11, 9),),
    triangular_product: lambda rng: (rng.random((9, 9)), rng.random((9, 8))),
    symmetric_update: lambda rng: (rng.random((9, 9)), rng.random((9, 8))),
    recursive_filter: lambda rng: (rng.random(12),),
    exponential_average: lambda rng: (rng.random(12),),
    orbit: lambda rng: (rng.random(3), rng.random(3)),
    rk4: lambda rng: (rng.random(2),),
    rows_and_columns: lambda rng: (rng.random((9, 9)),),
    strided: lambda rng: (rng.random(20),),
    distance_table: lambda rng: (rng.random(9), rng.random(8)),
    swapped: lambda rng: (rng.random(5),),
    over_arange: lambda rng: (rng.random(12),),
    over_map: lambda rng: (rng.random(12), rng.random(12)),
}


def parts(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values_and_what_is_assigned_are_numpys(program, rng):
    args = PROGRAMS[program](rng)
    expected_args, found_args = copy.deepcopy(args), copy.deepcopy(args)
    expected, found = program(*expected_args), bw.jit(program)(*found_args)
    for one, other in zip((*parts(expected), *expected_args), (*parts(found), *found_args), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-14)
        assert np.asarray(other).dtype == np.asarray(one).dtype


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_loops_are_captured(program, rng):
    found = trace(program, PROGRAMS[program](rng), static_argnums=1 if program is heat else ())
    assert not found.notes
    assert any(value.op.name == "loop" for value in found.graph.body)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_are_finite_differences(program, rng):
    args = PROGRAMS[program](rng)
    wrt = tuple(k for k, arg in enumerate(args) if isinstance(arg, np.ndarray))
    weights = [rng.standard_normal(np.shape(part)) for part in parts(program(*copy.deepcopy(args)))]

    def loss(*arrays):
        found = parts(program(*[array.copy() if isinstance(array, np.ndarray) else array for array in arrays]))
        return sum(np.sum(weight * part) for weight, part in zip(weights, found, strict=True))

    found = bw.grad(loss, argnums=wrt)(*args)
    direction = [rng.standard_normal(args[k].shape) for k in wrt]
    h = 1e-6

    def moved(sign):
        shifted = list(copy.deepcopy(args))
        for k, d in zip(wrt, direction, strict=True):
            shifted[k] = shifted[k] + sign * h * d
        return loss(*shifted)

    numeric = (moved(1) - moved(-1)) / (2 * h)
    assert sum(np.sum(g * d) for g, d in zip(found, direction, strict=True)) == pytest.approx(numeric, rel=2e-6, abs=1e-7)


def test_a_loop_with_continue_alone_runs_every_iteration():
    """Over what cannot be recorded too: it is then run as it is."""
    def skips(xs):
        total = 0.0
        for x in xs:
            if x.ndim == 0:
                continue
            total = total + np.sum(x * x)
        return total

    xs = [np.arange(3.0), np.array(5.0), np.ones(2)]
    assert bw.jit(skips)(xs) == skips(xs)


# ----- loops that are left, and whose bodies define something
def defines_a_function(a, b):
    for i in range(len(a)):
        def fun(x):
            return x * 0.5
        if b[i] >= 0.0:
            break
        a[i] = fun(a[i])
    return a


def returns_behind_a_function(a, b):
    for i in range(len(a)):
        def fun(x):
            for k in range(3):
                if k == 1:
                    break
            return x * k
        if fun(b[i]) >= 0.0:
            return a * 2
        a[i] = fun(a[i]) + 1
    return a


def defines_one_in_a_while(a, b):
    i = 0
    while i < 9:
        def fun(x):
            return x * 0.5
        if b[i] >= 0.0:
            break
        a[i] = fun(a[i])
        i += 1
    else:
        a[0] = 3.0
    return a


def keeps_its_form(a, b):
    for i in range(len(a)):
        class Scaled:
            by = 0.5
        if i == 4:
            break
        a[i] *= Scaled.by
    for i in range(len(a)):
        import math
        if i > 3:
            return a * 2
        x = math.sin(i)
        a[i] += x
        del x
    return a


@pytest.mark.parametrize("program", [defines_a_function, returns_behind_a_function, defines_one_in_a_while, keeps_its_form],
                         ids=lambda program: program.__name__)
def test_loops_are_left_whatever_their_bodies_define(program):
    for place in (5, 0, 8, None):
        a, b = np.ones(9), np.full(9, -0.5)
        if place is not None:
            b[place] = 0.5
        np.testing.assert_array_equal(bw.jit(program)(a.copy(), b), program(a.copy(), b))


def test_a_loop_that_keeps_its_form_is_not_left_by_data():
    unused = 0

    def left(a):
        for i in range(len(a)):
            nonlocal unused
            if a[i] > 0:
                break
            a[i] *= 0.5
        return a

    with pytest.raises(TracerBoolError, match="whether a loop goes on, which cannot be recorded: it has `nonlocal`"):
        bw.jit(left)(np.ones(9))
