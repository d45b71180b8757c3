"""Complex numbers: compiled functions give what NumPy gives, and gradients are those of JAX's convention.

The gradient of a real function f of z = x + iy is df/dx - i df/dy, compared here with central differences along both parts.
"""

from __future__ import annotations

import itertools
import pickle
import re
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import DTypeError, GradientError, SeedError, UnsupportedError
from bwcompiler.export.numpy_source import program_source

rng = np.random.default_rng(11)


def noise(rng: np.random.Generator, *shape: int) -> Any:
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


Z, W, V, A = noise(rng, 3, 4), noise(rng, 3, 4), noise(rng, 4), noise(rng, 3, 3)
X = rng.normal(size=(3, 4))
SMALL = Z / 4

# name: (function, arguments); differentiated with respect to all of them
SMOOTH: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "arithmetic": (lambda z, w: z * w - 2 * z / w + 1j * z - w / 3 + 1.5, (Z, W)),
    "powers": (lambda z, w: z**2 + w**3 - z**-1 + z**0.5 + z**w + 2j**z, (Z, W)),
    "parts": (lambda z: z.real * 2 - z.imag**2 + np.abs(z) + np.angle(z), (Z,)),
    "parts of functions": (lambda z: np.real(z) + np.imag(np.exp(z)) + z.conj().imag, (Z,)),
    "conjugates": (lambda z, w: np.conj(z) * w + np.conjugate(w) / z, (Z, W)),
    "sign": (lambda z: np.sign(z), (Z,)),
    "exponentials": (lambda z: np.exp(z) + np.expm1(z) + np.exp2(z), (Z,)),
    "logarithms": (lambda z: np.log(z) + np.log2(z) * np.log10(z) + np.log1p(z) + np.sqrt(z), (Z,)),
    "trigonometry": (lambda z: np.sin(z) * np.cos(z) + np.tan(z), (Z,)),
    "hyperbolic": (lambda z: np.sinh(z) + np.cosh(z) * np.tanh(z), (Z,)),
    "inverses": (lambda z: np.arcsin(z) + np.arccos(z) * np.arctan(z), (Z,)),
    "hyperbolic inverses": (lambda z: np.arcsinh(z) + np.arccosh(z) * np.arctanh(z), (Z,)),
    "reciprocal, square": (lambda z: np.reciprocal(z) + np.square(z) + np.positive(z) + np.negative(z), (Z,)),
    "real and complex": (lambda x, z: x * z + x + np.exp(1j * x), (X, Z)),
    "where": (lambda z, w: np.where(z.real > 0, z * w, np.sqrt(w)), (Z, W)),
    "extrema": (lambda z, w: np.maximum(z, w) + np.minimum(z, 2 * w), (Z, W)),
    "sums": (lambda z: (z.sum() * z.sum(0), z.sum(1, keepdims=True) + z.mean(), z.mean(0)), (Z,)),
    "products": (lambda z: (z.prod(), z.prod(0), z.prod(1)), (SMALL + 1,)),
    "moments": (lambda z: (z.var(), z.var(0), z.std(1), z.std(ddof=1)), (Z,)),
    "running": (lambda z: (np.cumsum(z, 0), np.cumsum(z, 1), np.cumprod(z, 0), np.cumprod(z, 1)), (SMALL,)),
    "largest": (lambda z: (z.max(), z.max(0), z.min(1)), (Z,)),
    "matmul": (lambda z, w, v: (z @ w.T, z.conj().T @ w, z @ v, v @ z.T, v @ v), (Z, W, V)),
    "matmul with a real matrix": (lambda x, z: (x @ z.T, z.T @ x), (X, Z)),
    "contractions": (lambda z, w: (np.vdot(z, w), np.inner(z, w), np.outer(z, w), np.tensordot(z, w, 2), np.linalg.vecdot(z, w)), (Z, W)),
    "einsum": (lambda z, w: (np.einsum("ij,kj->ik", z, w), np.einsum("ij,ij->i", z, np.conj(w)), np.einsum("ij->j", z)), (Z, W)),
    "indexing": (lambda z: (z[1], z[:, ::2], z[[0, 2, 0]], z[np.array([1, 0]), np.array([3, 3])]), (Z,)),
    "moves": (lambda z: (z.T, z.reshape(4, 3), np.flip(z, 1), np.roll(z, 1, 0), np.pad(z, 1), np.concatenate([z, z[:1]])), (Z,)),
    "sorting": (lambda z: (np.sort(z), np.sort(z, 0), np.sort_complex(z[0]), np.median(z, 1)), (Z,)),
    "round about": (lambda z: (np.diff(z), np.gradient(z, axis=1), np.trapezoid(z), np.cross(z[:, :3], z[:, 1:])), (Z,)),
    "convolutions": (lambda v, w: (np.convolve(v, w), np.correlate(v, w, "full"), np.correlate(w, v, "same"), np.polyval(v, w)), (V, V[:3])),
    "covariance": (lambda z: (np.cov(z), np.corrcoef(z)), (Z,)),
    "solves": (lambda a, b: (np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.solve(np.tril(a), b), np.linalg.solve(np.triu(a).T, b[:, :1])),
               (A + 2 * np.eye(3), W[:, :2])),
    "norms": (lambda z: (np.linalg.norm(z), np.linalg.norm(z, axis=1), np.linalg.norm(z, 1, axis=0), np.linalg.norm(z, 3, axis=0),
                         np.linalg.norm(z, np.inf)), (Z,)),
    "grids": (lambda z: (np.linspace(z[0], z[1], 5), np.geomspace(z[0], z[1], 4)), (Z[0, :2],)),
    "interpolation": (lambda v: np.interp([0.2, 1.7, 2.9], [0.0, 1.0, 2.0, 3.0], v), (V,)),
    "sinc, round": (lambda z: np.sinc(z), (Z,)),
    "numbers": (lambda a, x: a * x + x.sum() * a**2, (1.5 - 0.5j, X)),
}


SINGLE = frozenset(("arithmetic", "powers", "parts", "sums", "products", "moments", "matmul", "einsum", "sorting", "numbers"))    # in complex64 too
TWICE = ("arithmetic", "powers", "parts", "conjugates", "sign", "inverses", "real and complex", "where", "products", "moments", "running",
         "matmul", "indexing", "norms", "solves")


def outputs(found: Any) -> list[Any]:
    return [np.asarray(one) for one in (found if isinstance(found, tuple) else (found,))]


def weights(found: Any) -> list[Any]:
    generator = np.random.default_rng(5)
    return [generator.normal(size=one.shape) + (1j * generator.normal(size=one.shape) if np.iscomplexobj(one) else 0) for one in outputs(found)]


def scalar(function: Any, given: list[Any]) -> Any:
    """Re(Σ weight · output)."""
    def total(*arguments: Any) -> Any:
        found = function(*arguments)
        found = found if isinstance(found, tuple) else (found,)
        return sum(np.sum(np.real(one * weight)) for one, weight in zip(found, given, strict=True))
    return total


def moved(arguments: tuple[Any, ...], number: int, place: tuple[int, ...], step: complex) -> list[Any]:
    changed = [np.array(one) for one in arguments]
    changed[number][place] += step
    return changed


def difference_gradient(function: Any, arguments: tuple[Any, ...], number: int) -> Any:
    """df/dx - i df/dy of a real function, element by element."""
    argument = np.asarray(arguments[number])
    found = np.zeros(argument.shape, argument.dtype)
    step = 1e-5
    for place in itertools.product(*map(range, argument.shape)):
        for direction, factor in ((1, 1), (1j, -1j)) if np.iscomplexobj(argument) else ((1, 1),):
            up, down = (function(*moved(arguments, number, place, sign * step * direction)) for sign in (1, -1))
            found[place] += factor * (up - down) / (2 * step)
    return found


@pytest.mark.parametrize("name", SMOOTH)
def test_values(name):
    function, arguments = SMOOTH[name]
    for dtype in (np.complex128, np.complex64) if name in SINGLE else (np.complex128,):
        given = [np.asarray(one).astype(dtype if np.iscomplexobj(one) else dtype(0).real.dtype) if np.shape(one) else one for one in arguments]
        found, expected = bw.jit(function)(*given), function(*given)
        assert isinstance(found, tuple) == isinstance(expected, tuple)
        for ours, numpys in zip(outputs(found), outputs(expected), strict=True):
            assert (ours.dtype, ours.shape) == (numpys.dtype, numpys.shape)
            np.testing.assert_allclose(ours, numpys, rtol=1e-11 if dtype is np.complex128 else 2e-4, atol=1e-13 if dtype is np.complex128 else 1e-4)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name):
    function, arguments = SMOOTH[name]
    real = scalar(function, weights(function(*arguments)))
    gradients = bw.grad(real, tuple(range(len(arguments))))(*arguments)
    for number, gradient in enumerate(gradients):
        assert gradient.dtype == np.asarray(arguments[number]).dtype
        expected = difference_gradient(real, arguments, number)
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives(name):
    """The gradient of Re(Σ direction · gradient), which is Σ of differences of the gradient."""
    function, arguments = SMOOTH[name]
    real = scalar(function, weights(function(*arguments)))
    first = bw.grad(real)
    direction = weights(np.asarray(arguments[0]))[0]
    found = bw.grad(lambda *arguments: np.sum(np.real(first(*arguments) * direction)))(*arguments)
    step = 1e-5
    generator = np.random.default_rng(2)
    along = np.asarray(generator.normal(size=np.shape(arguments[0])) + 1j * generator.normal(size=np.shape(arguments[0])))
    along = along if np.iscomplexobj(arguments[0]) else along.real
    up, down = (first(arguments[0] + sign * step * along, *arguments[1:]) for sign in (1, -1))
    expected = np.sum(np.real(direction * (up - down))) / (2 * step)
    np.testing.assert_allclose(np.sum(np.real(found * along)), expected, rtol=1e-5, atol=1e-5 * max(1, np.abs(found).max()))


@pytest.mark.parametrize("name", ["arithmetic", "parts", "conjugates", "matmul", "products", "real and complex", "moments"])
def test_pullback_is_the_transpose(name):
    """Re(ct · J t) = Re(J^T ct · t), with J t by differences."""
    function, arguments = SMOOTH[name]
    out, pullback = bw.vjp(function, *arguments)
    seeds = weights(out)
    cotangents = pullback(tuple(seeds) if isinstance(out, tuple) else seeds[0])
    tangents = [weights(np.asarray(one))[0] for one in arguments]
    step = 1e-6
    up, down = (outputs(function(*[one + sign * step * t for one, t in zip(arguments, tangents, strict=True)])) for sign in (1, -1))
    forward = sum(np.sum(np.real(ct * (a - b))) / (2 * step) for ct, a, b in zip(seeds, up, down, strict=True))
    backward = sum(np.sum(np.real(ct * t)) for ct, t in zip(cotangents, tangents, strict=True))
    np.testing.assert_allclose(backward, forward, rtol=1e-6)


PIECEWISE = {
    "comparisons": lambda z, w: (z < w, z <= w, z > w, z >= w, z == w, z != w, z == z),
    "predicates": lambda z, w: (np.isnan(z), np.isfinite(z), np.isinf(z), np.iscomplex(z), np.isreal(z), np.isclose(z, w), np.allclose(z, z)),
    "positions": lambda z, w: (z.argmax(), z.argmin(0), z.argmax(1), np.argsort(z), np.argsort(z, 0, "stable"), np.count_nonzero(z)),
    "rounding": lambda z, w: (np.rint(z), np.round(z, 1), np.nan_to_num(z), z.astype(np.complex64), z.real.astype(int)),
    "truth": lambda z, w: (z.any(), z.all(0), np.logical_and(z, w), np.logical_not(z), z.astype(bool)),
    "nan": lambda z, w: (np.nansum(z), np.nanmax(z), np.nanmean(z, 0), np.nanvar(z)),
    "types": lambda z, w: (np.zeros_like(z), np.ones_like(z), np.full_like(z, 2 - 1j), np.eye(3, dtype=complex) @ z, z.real.dtype == float),
}


@pytest.mark.parametrize("name", PIECEWISE)
def test_values_without_derivative(name):
    w = Z.copy()
    w[0, 0], w[1, 1], w[2] = Z[0, 0].real + 9j, W[1, 1], Z[2].real
    for ours, numpys in zip(outputs(bw.jit(PIECEWISE[name])(Z, w)), outputs(PIECEWISE[name](Z, w)), strict=True):
        assert (ours.dtype, ours.shape) == (numpys.dtype, numpys.shape)
        np.testing.assert_allclose(ours, numpys, rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0), (1, 1), (40,), (33, 65)])
def test_shapes(shape, rng):
    z = np.asarray(noise(rng, *shape))
    def function(z):
        return z * z + 1j, np.abs(z), z.sum(), z.conj(), z.prod(), z.sum(-1) if z.ndim else z
    for ours, numpys in zip(outputs(bw.jit(function)(z)), outputs(function(z)), strict=True):
        assert (ours.dtype, ours.shape) == (numpys.dtype, numpys.shape)
        np.testing.assert_allclose(ours, numpys, rtol=1e-11)


def test_long_sums_are_accurate(rng):
    z = noise(rng, 100_001)
    found = bw.jit(lambda z: z.sum())(z.astype(np.complex64))
    np.testing.assert_allclose(found, z.astype(np.complex64).astype(complex).sum(), rtol=1e-5)
    np.testing.assert_allclose(bw.jit(lambda z: z.sum(0))(z.reshape(-1, 1)), [z.sum()], rtol=1e-12)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda z: z[::2], lambda z: z.T, lambda z: z[:, ::-1]])
def test_memory_orders(layout, rng):
    z = layout(noise(rng, 6, 8))
    function = lambda z: (z * z, z.sum(0), z.real.copy(), z @ z.T)
    for ours, numpys in zip(outputs(bw.jit(function)(z)), outputs(function(z)), strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-12)
    gradient = bw.grad(lambda z: np.sum(np.abs(z * z)))(z)
    np.testing.assert_allclose(gradient, 2 * z.conj(), rtol=1e-12)


@pytest.mark.parametrize("shapes", [((40, 50), (50, 60)), ((3, 40, 50), (3, 50, 20)), ((40, 50), (50,)), ((50,), (50, 40)), ((2, 3), (3, 2)),
                                    ((40, 1), (1, 40)), ((5, 0), (0, 4)), ((3, 1, 60), (3, 60, 1))])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_products_of_all_sizes(shapes, dtype, rng):
    x, y = (noise(rng, *shape).astype(dtype) for shape in shapes)
    tolerance = 1e-12 if dtype is np.complex128 else 1e-4
    np.testing.assert_allclose(bw.jit(lambda x, y: x @ y)(x, y), x @ y, rtol=tolerance, atol=tolerance)
    turned = bw.jit(lambda x, y: (x.conj() @ y, np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2) @ y) if x.ndim > 1 else x @ y)
    for found in outputs(turned(x, y))[1:]:
        np.testing.assert_allclose(found, x @ y, rtol=tolerance, atol=tolerance)


def test_writes_through_parts():
    """x.real and x.imag are views."""
    def function(z, x):
        z = z.copy()
        z.real[0] = 5.0
        z.imag += 2 * x
        part = z[1:].imag
        part[:, ::2] *= -1
        z.T.real[1] = x[:, 0]
        z.real = np.abs(z.real)
        np.imag(z)[2] = 7
        return z, part, z.real

    for ours, numpys in zip(outputs(bw.jit(function)(Z, X)), outputs(function(Z, X)), strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-13)
    real = scalar(function, weights(function(Z, X)))
    for number, gradient in enumerate(bw.grad(real, (0, 1))(Z, X)):
        np.testing.assert_allclose(gradient, difference_gradient(real, (Z, X), number), rtol=1e-6, atol=1e-6)


def test_arguments_are_written_back():
    def function(z):
        z.real[:] = 1.0
        z[0] *= 1j

    ours, numpys = Z.copy(), Z.copy()
    bw.jit(function)(ours)
    function(numpys)
    np.testing.assert_allclose(ours, numpys)


def test_python_numbers(rng):
    function = bw.jit(lambda a, x: a * x + 1)
    np.testing.assert_allclose(function(2j, X), 2j * X + 1)
    assert function(2j, X.astype(np.float32)).dtype == np.complex64
    assert function(2j, 3).item() == 1 + 6j
    assert bw.jit(lambda a: a.real * 2 + abs(a))(3 + 4j).item() == 11.0
    assert bw.grad(lambda a: (a * a).real)(1 + 2j).item() == 2 + 4j
    captured = noise(rng, 3, 4)
    np.testing.assert_allclose(bw.jit(lambda x: x * captured + 1j)(X), X * captured + 1j)


def test_conversions():
    with pytest.warns(np.exceptions.ComplexWarning, match=r"(?s)test_complex\.py:\d+: .*Casting complex values to real"):
        assert bw.jit(lambda z: z.astype(float))(Z).tolist() == Z.real.tolist()

    def tried(z):
        try:
            return np.real_if_close(np.linalg.inv(z[:, :3])).sum()
        except np.linalg.LinAlgError:
            return 0.0

    def store(z):
        x = bw.numpy.zeros(4)
        x[:] = z[0]
        return x
    with pytest.warns(np.exceptions.ComplexWarning):
        assert bw.jit(store)(Z).tolist() == Z[0].real.tolist()
    with pytest.raises(DTypeError, match="cannot cast"):
        bw.jit(lambda x, z: np.multiply(z, 2, out=x))(X.copy(), Z)
    with pytest.raises(DTypeError, match=r"take x\.real"):
        bw.jit(lambda z: np.bincount(np.arange(4), z))(V)
    with pytest.raises(DTypeError, match="floor"):
        bw.jit(lambda z: np.floor(z))(Z)
    with pytest.raises(UnsupportedError, match=r"take x\.real"):
        bw.jit(tried)(Z)
    with pytest.raises(TypeError, match="imaginary part"):
        bw.jit(lambda x: setattr(x, "imag", 1.0))(X)


def test_real_if_close():
    """Real numbers as NumPy's, until imaginary parts are not small: complex from then on."""
    def smooth(x):
        return np.real_if_close(np.fft.ifft(np.fft.fft(x) * np.exp(-np.arange(4.0))))

    def halves(x):
        return np.real_if_close(np.fft.ifft(np.fft.fft(x) * np.array([1.0, 0.5, 0.25, 0.5])))

    compiled = bw.jit(halves)
    assert compiled(X).dtype == float
    for x in (X, X + 1j, X):
        np.testing.assert_allclose(compiled(x), halves(x), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(bw.jit(smooth)(X), smooth(X), rtol=1e-14)
    assert bw.jit(smooth)(X).dtype == complex
    found = bw.grad(lambda x: np.sum(halves(x) ** 2))(X)
    np.testing.assert_allclose(found, bw.grad(lambda x: np.sum(np.fft.ifft(np.fft.fft(x) * np.array([1.0, 0.5, 0.25, 0.5])).real ** 2))(X))
    almost = bw.jit(lambda z: np.real_if_close(z, tol=1e-3))
    assert almost(X + 1e-4j).tolist() == X.tolist()
    assert almost(X + 1e-2j).tolist() == (X + 1e-2j).tolist()


# ----- derivatives
def test_convention():
    """grad of a real function of z = x + iy is df/dx - i df/dy: that of JAX."""
    z = 1.0 + 2.0j
    assert bw.grad(lambda z: np.abs(z) ** 2)(z).item() == pytest.approx(2 * np.conj(z))
    assert bw.grad(lambda z: z.real)(z).item() == 1
    assert bw.grad(lambda z: z.imag)(z).item() == -1j
    assert bw.grad(lambda z: (z * z).real)(z).item() == 2 * z
    assert bw.grad(lambda z: np.conj(z).imag)(z).item() == 1j
    assert bw.grad(lambda z: np.abs(z))(0j).item() == 0


def test_descent_goes_along_the_conjugate(rng):
    z = noise(rng, 5)
    for _ in range(200):
        z = z - 0.1 * np.conj(bw.grad(lambda z: np.sum(np.abs(z - (1 + 2j)) ** 2))(z))
    np.testing.assert_allclose(z, 1 + 2j)


def test_holomorphic():
    z = 0.3 - 0.4j
    derivatives = [(np.exp, np.exp), (np.sin, np.cos), (np.log, np.reciprocal), (lambda z: z**3, lambda z: 3 * z**2)]
    for function, derivative in derivatives:
        assert bw.grad(function, holomorphic=True)(z).item() == pytest.approx(derivative(z))
    value, gradient = bw.value_and_grad(lambda z: z * z, holomorphic=True)(z)
    assert (value.item(), gradient.item()) == (pytest.approx(z * z), pytest.approx(2 * z))
    np.testing.assert_allclose(bw.jacobian(lambda z: A @ z, holomorphic=True)(V[:3]), A)
    np.testing.assert_allclose(bw.hessian(lambda z: (z**3).sum(), holomorphic=True)(V), np.diag(6 * V), atol=1e-12)
    np.testing.assert_allclose(bw.jacobian(lambda z: np.abs(z) ** 2)(V), np.diag(2 * V.conj()), atol=1e-12)
    np.testing.assert_allclose(bw.jacobian(lambda x: np.abs(np.exp(1j * x) + x))(X[0]), np.diag(
        [difference_gradient(lambda x: np.abs(np.exp(1j * x) + x), (np.array(x),), 0).item() for x in X[0]]), atol=1e-8)


def test_errors_of_derivatives():
    with pytest.raises(GradientError, match=r"test_complex\.py:\d+.*\n.*\n?.*a gradient needs a real output; it returned complex128\n.*holomorphic=True"):
        bw.grad(lambda z: z * z)(1 + 2j)
    with pytest.raises(GradientError, match="a Jacobian needs a real output"):
        bw.jacobian(lambda z: z * z)(V)
    with pytest.raises(GradientError, match="a Jacobian needs a real output"):
        bw.hessian(lambda z: np.sum(np.abs(z)))(V)
    with pytest.raises(GradientError, match="needs a complex output; it returned float64"):
        bw.grad(lambda z: np.abs(z), holomorphic=True)(1 + 2j)
    with pytest.raises(GradientError, match="needs complex arguments; x has dtype float64"):
        bw.grad(lambda x: x * 1j, holomorphic=True)(1.0)
    program = bw.compile(lambda z: z.sum(), V)
    with pytest.raises(SeedError, match="only for a real output"):
        program.backward(V)
    with pytest.raises(SeedError, match="has dtype float64, but the output has dtype complex128"):
        program.backward(V, grad_outputs=np.float64(1))


# ----- other transforms
def test_forward_mode(rng):
    """The tangent of a function of complex numbers is linear over the real numbers; of a holomorphic one over the complex ones."""
    t = noise(rng, 3, 4)
    function = lambda z: np.abs(z) ** 2 + (z * np.conj(z) * 1j).imag + np.exp(z).real
    out, tangent = bw.jvp(function, (Z,), (t,))
    np.testing.assert_allclose(out, function(Z))
    np.testing.assert_allclose(tangent, 4 * (Z.conj() * t).real + (np.exp(Z) * t).real)
    for name in ("arithmetic", "parts", "conjugates", "sign", "where", "extrema", "products", "moments", "matmul", "inverses", "solves"):
        function, arguments = SMOOTH[name]
        tangents = tuple(weights(np.asarray(one))[0] for one in arguments)
        _, found = bw.jvp(function, arguments, tangents)
        step = 1e-6
        up, down = (outputs(function(*[one + sign * step * t for one, t in zip(arguments, tangents, strict=True)])) for sign in (1, -1))
        for ours, a, b in zip(outputs(found), up, down, strict=True):
            np.testing.assert_allclose(ours, (a - b) / (2 * step), rtol=1e-6, atol=1e-7 * max(1, np.abs(a).max()), err_msg=name)


def test_whole_derivatives_forwards(rng):
    np.testing.assert_allclose(bw.jacfwd(lambda z: A @ z, holomorphic=True)(V[:3]), A)
    np.testing.assert_allclose(bw.jacfwd(lambda x: np.exp(1j * x))(X[0]), np.diag(1j * np.exp(1j * X[0])))
    np.testing.assert_allclose(bw.jacrev(lambda z: A @ z, holomorphic=True)(V[:3]), A)
    with pytest.raises(GradientError, match="jacfwd: z has dtype complex128, along which there are two derivatives"):
        bw.jacfwd(lambda z: np.abs(z))(V)
    found = bw.jacobian(lambda z: np.abs(z[0] * np.ones(5)))(V[:1])            # more outputs than arguments, and still two derivatives
    np.testing.assert_allclose(found, np.full((5, 1), (V[0].conj() / abs(V[0]))))
    v = noise(rng, 4)
    function = lambda z: np.sum(np.abs(z) ** 4)
    step = 1e-5
    expected = (bw.grad(function)(V + step * v) - bw.grad(function)(V - step * v)) / (2 * step)
    np.testing.assert_allclose(bw.hvp(function)(V, v), expected, rtol=1e-6)
    np.testing.assert_allclose(bw.hessian(lambda x: np.sum(np.abs(np.exp(1j * x) + x) ** 2))(X[0]), np.diag(
        2 - 4 * np.sin(X[0]) - 2 * X[0] * np.cos(X[0])))


def test_checks_of_derivatives():
    bw.check_grads(lambda z, x: np.abs(z) ** 2 + (z * np.conj(z) * x).imag + np.exp(z).real, (Z, X), order=2)
    bw.check_grads(lambda z: np.sin(z) * z, (V,), order=2)
    wrong = bw.custom_vjp(lambda z: z * z)
    wrong.defvjp(lambda z: (z * z, z), lambda z, ct: (np.conj(2 * z) * ct,))
    with pytest.raises(bw.errors.DerivativeError):
        bw.check_grads(wrong, (V,), order=1, modes=("rev",))
    with pytest.raises(GradientError, match="only real ones are supported"):
        bw.sparse_jacobian(lambda z: np.abs(z))(V)


def test_vmap():
    np.testing.assert_allclose(bw.vmap(lambda z, w: np.vdot(z, w))(Z, W), [np.vdot(z, w) for z, w in zip(Z, W, strict=True)])
    np.testing.assert_allclose(bw.vmap(bw.grad(lambda z: np.abs(z.prod())))(Z), [bw.grad(lambda z: np.abs(z.prod()))(z) for z in Z])


def test_loops():
    """Complex numbers are carried by loops."""
    def rotate(z, x):
        def body(carry, step):
            carry = carry * np.exp(1j * step) + 0.5
            return carry, np.abs(carry)
        return bw.scan(body, z, x)

    def by_hand(z, x):
        sizes = []
        for step in x:
            z = z * np.exp(1j * step) + 0.5
            sizes.append(np.abs(z))
        return z, np.stack(sizes)

    for ours, expected in zip(bw.jit(rotate)(Z[0], X[:, 0]), by_hand(Z[0], X[:, 0]), strict=True):
        np.testing.assert_allclose(ours, expected)
    real = lambda z, x: np.sum(np.abs(by_hand(z, x)[0]))
    found = bw.grad(lambda z, x: np.sum(np.abs(rotate(z, x)[0])), (0, 1))(Z[0], X[:, 0])
    for number, gradient in enumerate(found):
        np.testing.assert_allclose(gradient, difference_gradient(real, (Z[0], X[:, 0]), number), rtol=1e-6, atol=1e-7)
    square = bw.jit(lambda z: bw.while_loop(lambda z: np.abs(z) < 100, lambda z: z * z + 0.3j, z))
    expected = 1.5 + 0.1j
    while abs(expected) < 100:
        expected = expected * expected + 0.3j
    np.testing.assert_allclose(square(1.5 + 0.1j), expected)
    np.testing.assert_allclose(bw.jit(lambda p, z: bw.cond(p, lambda z: z * 1j, lambda z: z.conj(), z))(np.bool_(True), Z), Z * 1j)


def test_masked_gradients_are_zeros():
    z = np.array([0j, 1 + 1j, -2j])
    gradient = bw.grad(lambda z: np.sum(np.where(z == 0, 0, np.log(z)).real))(z)
    np.testing.assert_allclose(gradient, [0, 1 / z[1], 1 / z[2]])
    gradient = bw.grad(lambda z: np.sum(np.where(np.abs(z) > 0, 1 / np.abs(z), 0)))(z)
    assert np.isfinite(gradient).all() and gradient[0] == 0


def test_backward_programs(rng):
    program = bw.compile(lambda z, x: z * x + np.conj(z), Z, X)
    seed = noise(rng, 3, 4)
    by_hand = (seed * X + seed.conj(), (seed * Z).real)
    for ours, expected in zip(program.backward(Z, X, grad_outputs=seed), by_hand, strict=True):
        np.testing.assert_allclose(ours, expected)
    buffers = (noise(rng, 3, 4), rng.normal(size=(3, 4)))
    expected = [buffer + 0.5 * gradient for buffer, gradient in zip(buffers, by_hand, strict=True)]
    program.backward(Z, X, grad_outputs=seed, into=buffers, scale=0.5)
    for ours, wanted in zip(buffers, expected, strict=True):
        np.testing.assert_allclose(ours, wanted)
    assert program.backward(Z, X, grad_outputs=seed, wrt=(1,))[0] is None
    out, pullback = program.vjp(Z, X)
    np.testing.assert_allclose(out, Z * X + Z.conj())
    np.testing.assert_allclose(pullback(seed)[0], by_hand[0])


def test_texts_and_copies():
    function = bw.jit(lambda z: np.abs(np.exp(z) * (2 - 1j)).sum())
    for stage in ("forward", "adjoint", "simplified", "fused", "plan", "loops", "llvm", "source"):
        assert function.as_text(stage, Z)
    loops = function.as_text("loops", Z)
    assert re.search(r"%z\w*: in f64\[3,4,2\]", loops) and "c128" not in loops
    again = pickle.loads(pickle.dumps(bw.grad(np_abs_sum)))
    np.testing.assert_allclose(again(Z), Z.conj() / np.abs(Z))


def test_numpy_source():
    """The exported module computes the same."""
    def function(z, w, x):
        y = np.exp(z) * w + x
        y.real[0] = 2.0
        return np.abs(y).sum() + np.maximum(z, w).imag.sum() + np.linalg.norm(z @ w.T) + (z**3 / w).prod().real * (1 - 2j).imag

    program = bw.compile(function, Z, W, X)
    scope: dict[str, Any] = {}
    exec(program_source(program), scope)
    value, gradients = scope["value_and_grad"](Z, W, X)
    expected = program.value_and_backward(Z, W, X)
    np.testing.assert_allclose(value, expected[0])
    for ours, wanted in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-10, atol=1e-12)


def np_abs_sum(z: Any) -> Any:
    return np.sum(np.abs(z))
