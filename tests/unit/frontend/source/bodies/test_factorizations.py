"""Algorithms that take slices which move with the index: their loops are native, with NumPy's values and derivatives."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace


def householder(a):
    a = a.copy()
    for k in range(a.shape[1]):
        x = a[k:, k]
        v = x.copy()
        v[0] += np.sign(x[0]) * np.sqrt(np.sum(x * x))
        v = v / np.sqrt(np.sum(v * v))
        a[k:, k:] -= 2 * np.outer(v, v @ a[k:, k:])
    return a


def householder_with_norms(a):
    a = a.copy()
    for k in range(a.shape[1] - 1):
        x = a[k:, k].copy()
        x[0] -= (-1.0 if x[0] > 0 else 1.0) * np.linalg.norm(x)
        x /= np.linalg.norm(x)
        a[k:, k:] -= 2 * np.outer(x, np.dot(x, a[k:, k:]))
    return a


def householder_with_q(a):
    r = a.copy()
    q = np.eye(len(a))
    for k in range(a.shape[1]):
        x = r[k:, k]
        e = np.zeros_like(x)
        e[0] = np.linalg.norm(x) * (1 if x[0] >= 0 else -1)
        u = x + e
        v = u / np.linalg.norm(u)
        r[k:, :] = r[k:, :] - 2 * np.outer(v, v @ r[k:, :])
        q[:, k:] = q[:, k:] - 2 * np.outer(q[:, k:] @ v, v)
    return q @ np.sin(r)


def givens(a):
    r = a.copy()
    m, n = r.shape
    for j in range(n):
        for i in range(m - 1, j, -1):
            h = np.hypot(r[i - 1, j], r[i, j])
            c, s = r[i - 1, j] / h, r[i, j] / h
            top = c * r[i - 1, j:] + s * r[i, j:]
            r[i, j:] = -s * r[i - 1, j:] + c * r[i, j:]
            r[i - 1, j:] = top
    return r


def modified_gram_schmidt(a):
    q = a.copy()
    n = a.shape[1]
    r = np.zeros((n, n))
    for k in range(n):
        r[k, k] = np.linalg.norm(q[:, k])
        q[:, k] /= r[k, k]
        r[k, k + 1:] = q[:, k] @ q[:, k + 1:]
        q[:, k + 1:] -= np.outer(q[:, k], r[k, k + 1:])
    return q + r


def classical_gram_schmidt(a):
    q, r = np.zeros_like(a), np.zeros_like(a)
    for j in range(a.shape[1]):
        v = a[:, j].copy()
        if j > 0:
            r[:j, j] = q[:, :j].T @ a[:, j]
            v = v - q[:, :j] @ r[:j, j]
        r[j, j] = np.linalg.norm(v)
        q[:, j] = v / r[j, j]
    return q + r


def hessenberg(a):
    h = a.copy()
    for k in range(h.shape[0] - 2):
        x = h[k + 1:, k].copy()
        x[0] += np.copysign(np.linalg.norm(x), x[0])
        v = x / np.linalg.norm(x)
        h[k + 1:, k:] -= 2.0 * np.outer(v, v @ h[k + 1:, k:])
        h[:, k + 1:] -= 2.0 * np.outer(h[:, k + 1:] @ v, v)
    return h


def arnoldi(a):
    n = a.shape[0]
    m = n - 3
    v, h = np.zeros((n, m + 1)), np.zeros((m + 1, m))
    v[0, 0] = 1.0
    for j in range(m):
        w = a @ v[:, j]
        for _ in range(2):
            c = np.tensordot(v[:, :j + 1], w, ([0], [0]))
            w = w - v[:, :j + 1] @ c
            h[:j + 1, j] += c
        h[j + 1, j] = np.linalg.norm(w)
        v[:, j + 1] = w / h[j + 1, j]
    return v @ h


def lanczos(a):
    a = a + a.T
    n = a.shape[0]
    m = n - 4
    basis, alpha, beta = np.zeros((n, m)), np.zeros(m), np.zeros(m)
    q = np.ones(n) / np.sqrt(n)
    for j in range(m):
        basis[:, j] = q
        w = a @ q
        alpha[j] = np.inner(q, w)
        w = w - basis[:, :j + 1] @ np.einsum("ij,i->j", basis[:, :j + 1], w)
        beta[j] = np.linalg.norm(w)
        q = w / beta[j]
    return np.outer(alpha, beta)


def lu_with_pivots(a):
    a = a.copy()
    for k in range(a.shape[0] - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        a[[k, p]] = a[[p, k]]
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])
    return a


def lu_with_permuted_factors(a):
    u = a.copy()
    n = a.shape[0]
    lower = np.eye(n)
    for k in range(n - 1):
        p = np.argmax(abs(u[k:, k])) + k
        if p != k:
            u[[k, p], k:] = u[[p, k], k:]
            lower[[k, p], :k] = lower[[p, k], :k]
        factors = u[k + 1:, k] / u[k, k]
        lower[k + 1:, k] = factors
        u[k + 1:, k:] -= factors[:, None] * u[k, k:]
    return lower @ np.sin(u)


def cholesky_by_outer_products(a):
    s = a @ a.T + len(a) * np.eye(len(a))
    factor = np.zeros(s.shape)
    for k in range(len(s)):
        factor[k, k] = np.sqrt(s[k, k])
        factor[k + 1:, k] = s[k + 1:, k] / factor[k, k]
        s[k + 1:, k + 1:] -= np.outer(factor[k + 1:, k], factor[k + 1:, k])
    return factor


def levinson(a):
    r = np.concatenate([np.array([3.0]), 0.1 * a[0]])
    y = np.zeros(len(r))
    y[0], error = 1.0, r[0]
    for k in range(1, len(r)):
        reflection = -np.vdot(y[:k], r[k:0:-1]) / error
        y[:k + 1] += reflection * y[:k + 1][::-1].copy()
        error *= 1 - reflection * reflection
    return y * error


def aitken(a):
    s = np.cumsum(a[0] * 0.5 ** np.arange(len(a)))
    table = np.zeros((len(s), len(s)))
    table[:, 0] = s
    for k in range(1, len(s)):
        table[k:, k] = table[k:, k - 1] + np.diff(table[k - 1:, k - 1]) / (2.0 ** k - 1)
    return table


def expanding_statistics(a):
    x = a[:, 0]
    z = np.zeros((len(x), 5))
    for t in range(2, len(x)):
        seen = x[:t]
        mean, deviation = np.mean(seen), np.std(seen, ddof=1)
        z[t] = [(x[t] - mean) / deviation, np.max(seen) - np.min(seen), np.sum((seen - mean) ** 3) / len(seen), np.var(x[t:]), seen.prod()]
    return z


def autocovariances(a):
    x = a[0] - a[0].mean()
    n = len(x)
    found = np.zeros(n - 2)
    for k in range(n - 2):
        found[k] = np.sum(x[:n - k] * x[k:]) / (n - k) + np.vdot(x[k:], x[:n - k]) / x[k:].size
    return found


def back_substitution(a):
    upper = np.triu(a) + 6 * np.eye(len(a))
    x = np.zeros(len(a))
    for i in range(len(a) - 1, -1, -1):
        x[i] = (a[i, 0] - np.inner(upper[i, i + 1:], x[i + 1:])) / upper[i, i]
    return x


def bareiss(a):
    m = a * 0.5 + 2 * np.eye(len(a))
    previous = 1.0
    for k in range(len(m) - 1):
        m[k + 1:, k + 1:] = (m[k, k] * m[k + 1:, k + 1:] - np.outer(m[k + 1:, k], m[k, k + 1:])) / previous
        previous = m[k, k]
    return m[-1, -1]


PROGRAMS = [householder, householder_with_norms, householder_with_q, givens, modified_gram_schmidt, classical_gram_schmidt, hessenberg, arnoldi,
            lanczos, lu_with_pivots, lu_with_permuted_factors, cholesky_by_outer_products, levinson, aitken, expanding_statistics,
            autocovariances, back_substitution, bareiss]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_loops_are_native_with_numpys_values_and_derivatives(program, rng):
    a, direction = rng.standard_normal((12, 12)), rng.standard_normal((12, 12))

    def weighted(a):
        found = program(a)
        return np.sum(found * np.cos(np.arange(np.size(found))).reshape(np.shape(found)))

    assert not trace(program, (a,)).notes
    np.testing.assert_allclose(bw.jit(program)(a), program(a), rtol=1e-10, atol=1e-11)
    slope = np.sum(bw.grad(weighted)(a) * direction)
    h = 1e-7
    assert slope == pytest.approx((weighted(a + h * direction) - weighted(a - h * direction)) / (2 * h), rel=1e-5)
    assert bw.jvp(weighted, (a,), (direction,))[1] == pytest.approx(slope, rel=1e-9)
