"""np.fft on traced arrays and bw.scipy.fft: values as NumPy's and SciPy's, natively; derivatives of all orders, batches, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.fftpack

import bwcompiler as bw
from bwcompiler.errors import DTypeError
from bwcompiler.runtime.addresses import gufuncs
from tests.support.gradcheck import directional, inner

rng = np.random.default_rng(17)
X = rng.normal(size=(2, 6, 5))
Z = X + 1j * rng.normal(size=X.shape)

NUMPY: dict[str, Any] = {
    "fft": (lambda f, z, x: (f.fft(z), f.fft(x, axis=1), f.fft(z, n=12, axis=1, norm="forward"), f.fft(z, n=3), f.fft(x.astype(int)))),
    "ifft": (lambda f, z, x: (f.ifft(z, axis=0, norm="ortho"), f.ifft(x), f.ifft(z, 4, 1))),
    "rfft": (lambda f, z, x: (f.rfft(x), f.rfft(x, axis=1), f.rfft(x, n=9, axis=0), f.rfft(x, n=2), f.rfft(x, norm="ortho"))),
    "irfft": (lambda f, z, x: (f.irfft(z), f.irfft(z, n=7, axis=1), f.irfft(z, n=2, axis=0), f.irfft(x, axis=1, norm="forward"))),
    "hermitian": (lambda f, z, x: (f.hfft(z), f.ihfft(x, axis=1), f.hfft(z, norm="ortho", n=9), f.ihfft(x, 8, 0, norm="forward"))),
    "two axes": (lambda f, z, x: (f.fft2(z), f.ifft2(x, (4, 4)), f.rfft2(x, norm="ortho"), f.irfft2(z, (6, 6)))),
    "all axes": (lambda f, z, x: (f.fftn(z), f.ifftn(z, axes=(0, 2)), f.rfftn(x), f.irfftn(z), f.rfftn(x, (4, -1), (1, 0)))),
    "views": (lambda f, z, x: (f.fft(z.T, axis=0), f.fft(z[::2, ::-1], axis=1), f.fft(z[0, 0]), f.fft(np.broadcast_to(z[0], (2, 6, 5)), axis=0))),
    "shifts": (lambda f, z, x: (f.fftshift(f.fft(z)), f.ifftshift(z, 1), f.fftshift(x, (0, 2)))),
}


def each(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def require_close(found: Any, expected: Any, single: bool = False, what: str = "") -> None:
    for ours, theirs in zip(each(found), each(expected), strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), what
        np.testing.assert_allclose(ours, theirs, rtol=1e-3 if single else 1e-10, atol=1e-4 if single else 1e-11, err_msg=what)


@pytest.mark.parametrize("name", NUMPY)
def test_values_of_numpy(name):
    function = NUMPY[name]
    require_close(bw.jit(lambda z, x: function(np.fft, z, x))(Z, X), function(np.fft, Z, X))
    z, x = Z.astype(np.complex64), X.astype(np.float32)
    require_close(bw.jit(lambda z, x: function(np.fft, z, x))(z, x), function(np.fft, z, x), single=True)


@pytest.mark.skipif(gufuncs.fft_loop("fft", "Dd->D") is None, reason="this NumPy has no loops of transforms")
def test_transforms_run_natively():
    program = bw.compile(lambda z, x: np.abs(np.fft.irfft(np.fft.rfft(x) * np.fft.fft(z)[..., :3])).sum(), Z, X)
    text = program.explain()
    assert text.count("by NumPy's FFT") >= 3 and "callback" not in program.as_text("llvm")


@pytest.mark.parametrize("name", NUMPY)
def test_derivatives(name, rng):
    """The pullback is the transpose (real and complex operands, Re of the pairing), and the derivative of the gradient is right."""
    def outputs(z, x):
        return [one for one in NUMPY[name](np.fft, z, x) if one.dtype != object]

    weights = [rng.normal(size=one.shape) + 1j * rng.normal(size=one.shape) for one in outputs(Z, X)]

    def total(z, x):
        return sum(np.sum(np.real(one * weight) + np.abs(one) ** 2) for one, weight in zip(outputs(z, x), weights, strict=True))

    t = rng.normal(size=Z.shape) + 1j * rng.normal(size=Z.shape)
    both = bw.grad(total, (0, 1))(Z, X)
    expected = directional(lambda h: total(Z + h * t, X + h * t.real))
    np.testing.assert_allclose(np.real(inner(both[0], t)) + inner(both[1], t.real), expected, rtol=1e-8)
    first = bw.grad(total)
    second = bw.grad(lambda z, x: np.sum(np.real(first(z, x) * t)))(Z, X)
    change = directional(lambda h: np.sum(np.real(first(Z + h * t.conj(), X) * t)))
    np.testing.assert_allclose(np.real(inner(second, t.conj())), change, rtol=1e-7, atol=1e-7)
    _, tangent = bw.jvp(total, (Z, X), (t, t.real))
    np.testing.assert_allclose(tangent, expected, rtol=1e-8)


def test_batches():
    require_close(bw.vmap(lambda z: np.fft.fft(z, axis=0))(Z), np.fft.fft(Z, axis=1))
    require_close(bw.vmap(np.fft.rfft, in_axes=1, out_axes=1)(X), np.fft.rfft(X))
    jacobian = bw.jacobian(np.fft.fft, holomorphic=True)(Z[0, 0])
    np.testing.assert_allclose(jacobian, np.fft.fft(np.eye(5)), atol=1e-12)


def test_a_convolution_by_transforms(rng):
    """A filter is learnt: the gradient of a loss through fft and ifft, natively."""
    signal, kernel = rng.normal(size=64), np.exp(-np.arange(64.0))
    wanted = np.real(np.fft.ifft(np.fft.fft(signal) * np.fft.fft(kernel)))

    def loss(guess):
        return np.mean((np.fft.irfft(np.fft.rfft(signal) * np.fft.rfft(guess)) - wanted) ** 2)

    guess, gradient = np.zeros(64), bw.grad(loss)
    for _ in range(3000):
        guess = guess - 0.1 * gradient(guess)
    assert loss(guess) < 1e-3 * loss(np.zeros(64))


# ----- SciPy's names
def test_names():
    left_out = {"fht", "ifht", "fhtoffset", "set_backend", "skip_backend", "set_global_backend", "register_backend", "get_workers", "set_workers"}
    assert set(scipy.fft.__all__) - set(bw.scipy.fft.__all__) == left_out


@pytest.mark.parametrize("kind", ["dct", "dst"])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_cosine_and_sine_transforms(kind, size, rng):
    x = rng.normal(size=(2, size))
    for type_ in (1, 2, 3, 4):
        if (kind, type_, size) == ("dct", 1, 1):
            continue
        for options in ({}, {"norm": "ortho"}, {"norm": "forward"}, {"norm": "ortho", "orthogonalize": False}, {"orthogonalize": True}):
            def both(x, library, type_=type_, options=options):
                return tuple([getattr(library, name)(x, type_, **options) for name in (kind, f"i{kind}")])
            require_close(bw.jit(lambda x: both(x, bw.scipy.fft))(x), both(x, scipy.fft), what=f"{kind} {type_} {options}")


def test_other_functions_of_scipy():
    ours, theirs = bw.scipy.fft, scipy.fft
    calls: list[Any] = [
        lambda f: (f.fft(Z, 4, 1, "ortho"), f.ifft(X), f.rfft(X, axis=0), f.irfft(Z, 8), f.hfft(Z), f.ihfft(X)),
        lambda f: (f.fftn(Z), f.fftn(Z, (3, 4)), f.ifftn(Z, axes=1), f.rfftn(X, (3, 4), (1, 2)), f.irfftn(Z, norm="forward")),
        lambda f: (f.fft2(Z), f.ifft2(Z), f.rfft2(X), f.irfft2(Z), f.hfft2(Z), f.ihfft2(X), f.hfftn(Z), f.ihfftn(X, axes=(0, 1))),
        lambda f: (f.dct(Z), f.dst(X.astype(np.float32), 3), f.dct(X, 2, 4, 1), f.idct(X.astype(int)), f.dctn(X), f.idctn(X, 3, (3, 4), (1, 2))),
        lambda f: (f.dstn(X, axes=(0, 2), norm="ortho"), f.idstn(X, 4), f.fftshift(X), f.ifftshift(X, 1), f.fftfreq(5, 0.1), f.rfftfreq(6)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bw.errors.RecompileWarning)
        for call in calls:
            for a, b in zip(call(ours), call(theirs), strict=True):
                require_close(a, b, single=b.dtype == np.float32)
    for size in (1, 17, 97, 199, 1021):
        for real in (False, True):
            assert ours.next_fast_len(size, real) == theirs.next_fast_len(size, real)
            assert ours.prev_fast_len(size, real) == theirs.prev_fast_len(size, real)


PACKED: list[Any] = [
    lambda f, x: (f.fft(x), f.fft(x, 4, 0), f.ifft(x), f.fftn(x), f.ifftn(x, (2, 3)), f.fft2(x), f.ifft2(x), f.fftshift(x), f.idctn(x, 2, (2, 2))),
    lambda f, x: (f.rfft(x), f.rfft(x, 4), f.rfft(x, 9, axis=0), f.irfft(x), f.irfft(x, axis=0), f.irfft(x, 4), f.irfft(x, 9)),
    lambda f, x: tuple([g(x, t, norm=norm) for g in (f.dct, f.idct, f.idst, f.idstn) for t in (1, 2, 3) for norm in (None, "ortho")]),
]


@pytest.mark.parametrize("call", PACKED)
def test_fftpack(call):
    """Its inverses are not normalised, and its rfft gives real numbers."""
    for x in (X[0], X[0].astype(np.float32)):
        expected = call(scipy.fftpack, x)
        for found in (bw.jit(lambda x: call(bw.scipy.fftpack, x))(x), bw.jit(lambda x: call(scipy.fftpack, x))(x)):
            for a, b in zip(found, expected, strict=True):
                assert a.dtype == b.dtype
                require_close(a, b, single=x.dtype == np.float32)


@pytest.mark.parametrize("name", ["dct", "dst"])
def test_derivatives_of_cosine_and_sine_transforms(name, rng):
    """Linear functions: the Jacobian is the transform of the unit vectors."""
    function = getattr(bw.scipy.fft, name)
    for type_ in (1, 2, 3, 4):
        jacobian = bw.jacobian(lambda x, t=type_: function(x, t, norm="ortho"))(rng.normal(size=5))
        np.testing.assert_allclose(jacobian, getattr(scipy.fft, name)(np.eye(5), type_, axis=0, norm="ortho"), atol=1e-12)


def test_captured_functions_call_scipy_itself():
    np.testing.assert_allclose(bw.jit(lambda z: scipy.fft.fft(z))(Z), scipy.fft.fft(Z), rtol=1e-12, atol=1e-12)


def test_errors():
    with pytest.raises(TypeError, match=r"hint: bwcompiler\.scipy\.fft\.fft"):
        bw.jit(lambda z: scipy.fft.fft(z), autoloop=False)(Z)
    with pytest.raises(DTypeError, match=r"the transform of real numbers, got complex128\n.*np\.fft\.fft"):
        bw.jit(np.fft.rfft)(Z)
    with pytest.raises(ValueError, match=r"Invalid number of FFT data points \(0\)"):
        bw.jit(lambda z: np.fft.fft(z, 0))(Z)
    with pytest.raises(ValueError, match="Invalid norm value up"):
        bw.jit(lambda z: np.fft.fft(z, norm="up"))(Z)
    with pytest.raises(np.exceptions.AxisError):
        bw.jit(lambda z: np.fft.fft(z, axis=3))(Z)
    with pytest.raises(ValueError, match="Invalid type"):
        bw.scipy.fft.dct(X, 5)
    with pytest.raises(ValueError, match="size < 2"):
        bw.scipy.fft.dct(X[..., :1], 1)


@pytest.mark.parametrize("name", ["fftn", "irfft2", "rfftn", "hfftn"])
@pytest.mark.parametrize("axes", [(0, 0), (1, -1)])
def test_axes_of_several_are_different(name: str, axes: tuple[int, int]) -> None:
    for module in (scipy.fft, bw.scipy.fft):
        with pytest.raises(ValueError, match="all axes must be unique"):
            getattr(module, name)(np.ones((3, 4)), axes=axes)
