"""Linear algebra of complex matrices: values as NumPy's, natively; derivatives of what does not depend on the phases of vectors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.signal

import bwcompiler as bw

rng = np.random.default_rng(23)
L = np.linalg


def noise(rng: np.random.Generator, *shape: int) -> Any:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


A, TALL, WIDE, B = noise(rng, 3, 3) + 2 * np.eye(3), noise(rng, 4, 2), noise(rng, 2, 4), noise(rng, 3, 2)
SPIRAL = np.array([[1.0, -2.0, 0.3], [2.0, 1.0, 0.1], [0.2, -0.4, 3.0]])          # real, with complex eigenvalues


def hermitian(a: Any) -> Any:
    return (a + a.conj().T) / 2


def positive(a: Any) -> Any:
    return a @ a.conj().T + np.eye(len(a))


def of_eigh(a: Any) -> Any:
    w, v = L.eigh(hermitian(a))
    return w, np.abs(v), v @ np.diag(w**3).astype(complex) @ v.conj().T


def of_svd(a: Any) -> Any:
    u, s, vh = L.svd(a, full_matrices=False)
    return s, u @ vh, np.abs(u), np.abs(vh), u @ np.diag(s**2).astype(complex) @ vh


def of_eig(a: Any) -> Any:
    w, v = L.eig(a)
    return w, np.abs(v), v @ np.diag(w * w) @ L.inv(v)


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "det": (L.det, A), "slogdet": (lambda a: tuple(L.slogdet(a)), A), "inv": (L.inv, A), "solve": (lambda a: L.solve(a, B), A),
    "solve for vectors": (lambda a: L.solve(a, B[:, 0]), A), "right-hand sides": (lambda b: L.solve(A, b), B),
    "triangles": (lambda a: (L.solve(np.tril(a), B), L.solve(np.triu(a).T, B[:, 0]), L.inv(np.triu(a))), A),
    "cholesky": (lambda a: L.cholesky(positive(a)), A), "solve with a factor": (lambda a: L.solve(L.cholesky(positive(a)), B), A),
    "eigh": (of_eigh, A), "eigvalsh": (lambda a: (L.eigvalsh(a), L.eigvalsh(a, "U")), A),
    "svd": (of_svd, A), "svd of tall matrices": (of_svd, TALL), "svd of wide matrices": (of_svd, WIDE), "svdvals": (L.svdvals, TALL),
    "whole svd": (lambda a: (lambda u, s, vh: (s, np.abs(u[:, 2:] @ u[:, 2:].conj().T), u @ u.conj().T))(*L.svd(a)), TALL),
    "svd of Hermitian matrices": (lambda a: (lambda u, s, vh: (s, u @ vh))(*L.svd(hermitian(a), hermitian=True)), A),
    "pinv of Hermitian matrices": (lambda a: L.pinv(hermitian(a), hermitian=True), A), "whole qr": (lambda a: tuple(L.qr(a, "complete")), TALL),
    "qr": (lambda a: tuple(L.qr(a)), TALL), "qr of wide matrices": (lambda a: tuple(L.qr(a)), WIDE), "r": (lambda a: L.qr(a, "r"), A),
    "pinv": (L.pinv, TALL), "pinv of wide matrices": (L.pinv, WIDE), "lstsq": (lambda a: L.lstsq(a, noise_of(4), rcond=None)[:2], TALL),
    "eigvals": (L.eigvals, A), "eig": (of_eig, A), "eigvals of real matrices": (L.eigvals, SPIRAL), "eig of real matrices": (of_eig, SPIRAL),
    "norms": (lambda a: (L.norm(a), L.norm(a, 2), L.norm(a, "nuc"), L.norm(a, 1), L.norm(a, np.inf), L.cond(a)), A),
    "powers": (lambda a: (L.matrix_power(a, 3), L.matrix_power(a, -2), L.multi_dot([a, a, a])), A),
    "exponential": (bw.scipy.linalg.expm, A), "square root": (lambda a: bw.scipy.linalg.sqrtm(positive(a)), A),
    "factors": (lambda a: (bw.scipy.linalg.cho_solve(bw.scipy.linalg.cho_factor(positive(a)), B), bw.scipy.linalg.cholesky(positive(a)),
                           bw.scipy.linalg.lu_solve(bw.scipy.linalg.lu_factor(a), B), bw.scipy.linalg.solve_triangular(a, B, 2)), A),
    "equations": (lambda a: (bw.scipy.linalg.solve_sylvester(a, a, a), bw.scipy.linalg.solve_continuous_lyapunov(a, a),
                             bw.scipy.linalg.solve_discrete_lyapunov(a / 4, a)), A),
    "stacks": (lambda a: (L.det(np.stack([a, a.T])), L.inv(np.stack([a, a @ a])), L.eigvals(np.stack([a, 2 * a]))), A),
}


SINGLE = frozenset(("det", "slogdet", "inv", "triangles", "cholesky", "eigh", "eigvalsh", "svd", "svdvals", "qr", "eig", "norms"))
# Second derivatives of what these are made of are tested by others.
DEAR = frozenset(("whole svd", "exponential", "factors", "equations", "powers", "stacks", "norms"))


def noise_of(size: int) -> Any:
    return np.cos(np.arange(2 * size)).reshape(size, 2) + 1j * np.sin(3.0 * np.arange(2 * size)).reshape(size, 2)


def outputs(found: Any) -> list[Any]:
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


def scalar(function: Any, argument: Any) -> Any:
    """Re(Σ weight · output)."""
    generator = np.random.default_rng(6)
    given = [generator.normal(size=one.shape) + (1j * generator.normal(size=one.shape) if np.iscomplexobj(one) else 0)
             for one in outputs(function(argument))]

    def total(a: Any) -> Any:
        found = function(a)
        return sum(np.sum(np.real(one * weight)) for one, weight in zip(found if isinstance(found, tuple) else (found,), given, strict=True))
    return total


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    function, argument = FUNCTIONS[name]
    single = argument.astype(np.complex64 if np.iscomplexobj(argument) else np.float32)
    for given, tolerance in ((argument, 1e-10), (single, 2e-3)) if name in SINGLE else ((argument, 1e-10),):
        for ours, numpys in zip(outputs(bw.jit(function)(given)), outputs(function(given)), strict=True):
            assert ours.shape == numpys.shape
            assert ours.dtype == numpys.dtype or tolerance > 1e-5          # NumPy's own functions above mix in doubles
            np.testing.assert_allclose(ours, numpys, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name, rng):
    """Gradient by differences of both parts; the forward derivative; the second derivative."""
    function, argument = FUNCTIONS[name]
    total = scalar(function, argument)
    first = bw.grad(total)
    gradient, step = first(argument), 1e-6
    expected = np.zeros_like(argument)
    for place in itertools.product(*map(range, argument.shape)):
        for direction, factor in ((1, 1), (1j, -1j)) if np.iscomplexobj(argument) else ((1, 1),):
            up, down = (argument.copy() for _ in range(2))
            up[place] += step * direction
            down[place] -= step * direction
            expected[place] += factor * (total(up) - total(down)) / (2 * step)
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6 * scale)
    t = noise(rng, *argument.shape) if np.iscomplexobj(argument) else rng.normal(size=argument.shape)
    _, tangent = bw.jvp(total, (argument,), (t,))
    np.testing.assert_allclose(tangent, np.sum(np.real(expected * t)), rtol=0, atol=1e-5 * scale)
    if name in DEAR:
        return
    second = bw.hvp(total)(argument, t)
    change = (first(argument + step * t) - first(argument - step * t)) / (2 * step)
    np.testing.assert_allclose(second, change, rtol=0, atol=2e-5 * max(1.0, float(np.abs(change).max())))


def test_factorizations_are_native():
    """None of them calls back into Python, but those that the text says."""
    def everything(a):
        u, s, vh = L.svd(a)
        return (np.abs(L.det(a)) + np.abs(L.inv(a)).sum() + np.abs(L.solve(a, B)).sum() + np.abs(L.cholesky(positive(a))).sum() + s.sum()
                + np.abs(u).sum() + np.abs(vh).sum() + L.eigvalsh(a).sum() + np.abs(L.eigvals(a)).sum() + np.abs(L.qr(a)[0]).sum()
                + np.abs(L.pinv(a)).sum() + L.slogdet(a)[1] + np.abs(L.solve(np.tril(a), B)).sum())

    program = bw.compile(everything, A)
    text = program.as_text("llvm")
    assert "@bw_callback" not in text, [line for line in text.splitlines() if "bw_callback" in line][:3]
    np.testing.assert_allclose(program(A), everything(A))


def test_failures():
    singular = np.zeros((2, 2), complex)
    for function in (L.inv, lambda a: L.solve(a, a), lambda a: L.solve(np.tril(a), a), lambda a: L.cholesky(a - np.eye(2))):
        with pytest.raises(np.linalg.LinAlgError, match=r"test_complex_linalg\.py"):
            bw.jit(lambda a, f=function: f(a))(singular)
    assert bw.jit(L.det)(singular).item() == 0
    sign, logarithm = bw.jit(L.slogdet)(singular)
    assert (sign.item(), logarithm.item()) == (0, -np.inf)


# ----- eigenvalues of real matrices
SYMMETRIC = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])


def principal(x: Any) -> Any:
    """The sum of the fourth powers of the first two principal components; real, if the eigenvalues are."""
    w, v = L.eig(np.cov(x, rowvar=False))
    order = w.argsort()[::-1]
    return np.sum(x.dot(v[:, order][:, :2]) ** 4) + w[order][0]


def radius(a: Any) -> Any:
    return np.max(np.abs(L.eigvals(a)))


def radii(a: Any) -> Any:
    total = 0.0
    for k in range(1, 10):
        total = total + radius(a * k + np.eye(3)) ** 2
    return total


def handled(a: Any) -> Any:
    try:
        w = L.eigvals(a)
    except Exception:
        return -1.0
    return np.sum(w.real)


def test_eigenvalues_are_real_where_numpys_are(rng):
    x, step = rng.normal(size=(9, 3)), 1e-6
    t = rng.normal(size=x.shape)
    value, gradient = bw.value_and_grad(principal)(x)
    assert value == pytest.approx(principal(x), rel=1e-12)
    assert np.sum(gradient * t) == pytest.approx((principal(x + step * t) - principal(x - step * t)) / (2 * step), rel=1e-6)
    for function in (L.eigvals, L.eig, lambda a: L.eig(a)[1], lambda a: np.roots(a[1])):
        for ours, numpys in zip(outputs(tuple(bw.jit(lambda a, f=function: f(a))(SYMMETRIC))), outputs(tuple(function(SYMMETRIC))), strict=True):
            assert ours.dtype == numpys.dtype
            np.testing.assert_allclose(ours, numpys, rtol=1e-12)


@pytest.mark.parametrize("function", [radius, radii, handled])
def test_they_may_become_complex(function, rng):
    """The function is compiled again, and real matrices have complex numbers from then on."""
    compiled, step = bw.value_and_grad(function), 1e-6
    for a in (SYMMETRIC, SPIRAL, SYMMETRIC):
        t = rng.normal(size=(3, 3))
        value, gradient = compiled(a)
        assert value == pytest.approx(function(a), rel=1e-12)
        assert np.sum(gradient * t) == pytest.approx((function(a + step * t) - function(a - step * t)) / (2 * step), rel=1e-5)
    np.testing.assert_allclose(bw.vmap(function)(np.stack([SYMMETRIC, SPIRAL])), [function(SYMMETRIC), function(SPIRAL)])


def test_they_are_complex_where_nothing_compiles_again():
    program = bw.compile(L.eigvals, SYMMETRIC)
    assert program(SYMMETRIC).dtype == program(SPIRAL).dtype == np.complex128

    def changed(a):
        a[0, 0] = 5.0
        return L.eigvals(a)

    for a in (SYMMETRIC, SPIRAL):
        found = bw.jit(changed)(a.copy())
        assert found.dtype == np.complex128
        np.testing.assert_allclose(found, changed(a.copy()))


def test_names_of_scipy():
    """bw.scipy.linalg and bw.scipy.signal give what SciPy gives for complex operands."""
    s, b = positive(A), B[:, 0]
    bands = np.array([[0, 1 + 1j, 0.5], [5, 6j, 7], [1, 2j, 0]])
    calls: list[Any] = [
        lambda m: (m.solve(A, b), m.solve(s, b, assume_a="pos"), m.solve(s, b, assume_a="her"), m.inv(A), m.det(A), m.norm(A), m.pinv(TALL)),
        lambda m: (m.solve_triangular(A, B, 1), m.solve_triangular(A, B, 2, lower=True), m.cholesky(s), m.cho_solve(m.cho_factor(s), b)),
        lambda m: (m.lu_solve(m.lu_factor(A), b), *m.lu(A), m.eigvalsh(s), m.eigvalsh(s, positive(A.T)), m.svdvals(TALL)),
        lambda m: (m.expm(A), m.sqrtm(s), m.solve_sylvester(A, s, A), m.solve_continuous_lyapunov(A, s), m.solve_discrete_lyapunov(A / 5, s)),
        lambda m: (m.toeplitz(b), m.toeplitz(b, B[:, 1]), m.hankel(b), m.circulant(b), m.companion(b), m.solve_banded((1, 1), bands, b),
                   m.solve_toeplitz(b, b), m.block_diag(A, B)),
    ]
    for call in calls:
        for ours, theirs in zip(call(bw.scipy.linalg), call(scipy.linalg), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    def signals(m):
        return (m.convolve(b, B[:, 1]), m.correlate(b, B[:2, 1]), m.correlate2d(A, B), m.convolve2d(A, B), m.fftconvolve(A, B),
                m.lfilter(b, [1, 0.5j], B[:, 1]), m.detrend(b))

    for ours, theirs in zip(signals(bw.scipy.signal), signals(scipy.signal), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def test_convention_of_gradients():
    """The gradient of log |det a| is a⁻ᵀ, not conjugated, as JAX gives it."""
    np.testing.assert_allclose(bw.grad(lambda a: L.slogdet(a)[1])(A), L.inv(A).T)
    np.testing.assert_allclose(bw.grad(L.det, holomorphic=True)(A), L.det(A) * L.inv(A).T)
