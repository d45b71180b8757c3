"""NumPy's ufuncs and operators on arrays: the graph gives NumPy's value, dtype and shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import UnsupportedError
from tests.unit.frontend.comparing import compare

rng = np.random.default_rng(7)
X = rng.normal(size=(3, 4))  # any sign
Y = rng.normal(size=(3, 4))
P = rng.uniform(0.2, 0.9, size=(3, 4))  # in (0, 1)
V = rng.normal(size=4)
F = X.astype(np.float32)
I = rng.integers(-5, 6, size=(3, 4))  # noqa: E741
N = rng.integers(1, 6, size=(3, 4)).astype(np.int32)
B = X > 0
H = np.array([[1.0, np.nan, -np.inf], [np.inf, 0.0, -0.0]])

UNARY = """sin cos tan arctan sinh cosh tanh arcsinh exp exp2 expm1 cbrt square reciprocal negative positive absolute fabs sign floor
    ceil trunc rint deg2rad rad2deg radians degrees isnan isinf isfinite signbit logical_not conjugate""".split()
UNARY_POSITIVE = "arcsin arccos arctanh log log2 log10 log1p sqrt".split()
BINARY = """add subtract multiply divide true_divide floor_divide remainder mod fmod maximum minimum fmax fmin arctan2 hypot copysign
    logaddexp logaddexp2 equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
    heaviside""".split()
INTEGER = (
    "bitwise_and bitwise_or bitwise_xor add multiply floor_divide remainder power maximum divide true_divide float_power".split()
)


@pytest.mark.parametrize("name", UNARY)
def test_unary_ufunc(name: str) -> None:
    for x in (X, F, H):
        compare(getattr(np, name), x)


@pytest.mark.parametrize("name", UNARY_POSITIVE)
def test_unary_ufunc_on_positive_numbers(name: str) -> None:
    for x in (P, P.astype(np.float32)):
        compare(getattr(np, name), x)


@pytest.mark.parametrize("name", BINARY)
def test_binary_ufunc(name: str) -> None:
    compare(getattr(np, name), X, Y)
    compare(getattr(np, name), X, V)
    compare(getattr(np, name), F, np.float32(0.5))
    compare(lambda x: getattr(np, name)(x, 1.5), F)
    compare(lambda x: getattr(np, name)(2, x), X)


@pytest.mark.parametrize("name", INTEGER)
def test_integer_ufunc(name: str) -> None:
    compare(getattr(np, name), N, np.abs(I) + 1)
    compare(lambda x: getattr(np, name)(x, 3), N)


EXPRESSIONS: dict[str, tuple[Callable[..., Any], ...] | tuple[Any, ...]] = {
    "arithmetic": (lambda x, y: (x + y - 2 * x / 3, -x, +x, abs(x), x // 0.3, x % 0.7, divmod(x, 0.4)), X, Y),
    "reflected": (lambda x: (1 + x, 1 - x, 2 * x, 1 / x, 2.0**x, 3 // x, 3 % x, divmod(2, x)), P),
    "powers": (lambda x: (x**2, x**3, x**4, x**0.5, x**-1, x**0, x**1, x**1.7, x**P), P),
    "integer powers": (lambda x: (x**2, x**3, x**0.5, np.power(x, 2), 2**x, np.float_power(x, 2)), N),
    "comparisons": (lambda x, y: (x < y, x <= 0, x > y, x >= 1, x == y, x != y), X, Y),
    "boolean": (lambda b: (b & ~b, b | True, b ^ b, b + b, b * 2, b + 1.5, np.square(b), b.sum(), abs(b)), B),
    "powers of booleans": (lambda b: (b**2, b**3, b**0, b[0, 0] ** 2, np.power(b, 2), 2**b, b**b), B),
    "bits": (lambda i: (i & 3, i | 8, i ^ i, ~i, abs(i) << 2, i >> 1, -i), I),
    "ndarray left": (lambda x: (Y + x, Y * x, Y @ x.T, Y / x, x > Y, Y**2 + x, np.float64(2) * x, np.float32(2) - x), X),
    "in place": (lambda x: _in_place(x), X),
    "ufunc keywords": (lambda x, y: (np.add(x, y, dtype=np.float32, casting="same_kind"), np.multiply(x, 2, where=True)), X, Y),
    "ufunc out": (lambda x, y: _ufunc_out(x, y), X, Y),
    "ufunc where": (lambda x, y: np.multiply(x, y, out=np.zeros_like(x), where=x > 0), X, Y),
    "ufunc order": (lambda x, y: [np.ravel(made, "K") for order in ("C", "F", "A", "K", "f", None)
                                  for made in (np.add(x, y, order=order), np.add(x.T, y.T, order=order), np.sin(x.T, order=order),
                                               np.add(x.T, y[:, 0], order=order), *np.modf(x, order=order))], X, Y),
    "ufunc methods": (
        lambda x: (
            np.add.reduce(x),
            np.multiply.reduce(x, axis=1),
            np.add.accumulate(x, axis=1),
            np.maximum.reduce(x),
            np.add.outer(x[0], x[1]),
            np.multiply.outer(x, x[0]),
            np.logical_or.reduce(x > 0),
        ),
        X,
    ),
    "modf": (lambda x: np.modf(x), X),
    "divmod": (lambda x, y: np.divmod(x, y), X, Y),
    "integer rounding": (lambda i: (np.floor(i), np.rint(i), np.sqrt(abs(i)), np.exp(i), np.isfinite(i), np.sin(i)), I),
}


def _in_place(x: Any) -> Any:
    y = x.copy()
    y += 1
    y *= x
    y -= y[0]
    y /= 2
    y **= 2
    y[1:] += 5
    y[0, 0] += 7
    y //= 0.5
    y %= 3
    n = np.zeros_like(y, dtype=np.int32)
    n += 3
    n <<= 1
    s = x.sum()
    t = s
    s += 1
    return y, n, s, t


def _ufunc_out(x: Any, y: Any) -> Any:
    z = np.empty_like(x)
    np.add(x, y, out=z)
    np.multiply(z, 2, z)
    w = np.zeros_like(x)
    np.exp(x[0], out=w[1])
    np.sum(x, axis=0, out=w[2])
    return z, w, np.matmul(x, y.T, out=np.zeros_like(x, shape=(3, 3)))


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expression(name: str) -> None:
    fun, *args = EXPRESSIONS[name]
    compare(fun, *args)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")      # NumPy's own, as it reads the old numbers
@pytest.mark.parametrize("dtype", [np.complex128, np.float32])
def test_out_of_another_dtype_where_it_is_written(dtype: Any) -> None:
    compare(lambda x, y: np.multiply(x, y, out=np.full(x.shape, 2, dtype), where=x > 0), X, Y)


def test_orders_of_ufuncs_are_asked_as_by_numpy() -> None:
    with pytest.raises(ValueError, match="order must be one of"):
        bw.jit(lambda x: np.sin(x, order="X"))(X)
    with pytest.raises(TypeError, match="order must be str"):
        bw.jit(lambda x: np.sin(x, order=1))(X)


class Vectorized:
    """A ufunc of another library, such as numba.vectorize makes, that has the name of one of NumPy's."""

    signature, nin, nout, identity = None, 1, 1, None

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, x: Any) -> Any:
        return x.__array_ufunc__(self, "__call__", x) if hasattr(x, "__array_ufunc__") else 2 * x

    def reduce(self, x: Any) -> Any:
        return x.__array_ufunc__(self, "reduce", x)


@pytest.mark.parametrize("name", ["tanh", "add", "mine"])
def test_ufuncs_of_other_libraries_are_not_numpys(name: str) -> None:
    theirs = Vectorized(name)
    for function in (lambda x: theirs(x), lambda x: theirs.reduce(x), lambda x: theirs(x[x > 0]).sum()):
        with pytest.raises(UnsupportedError, match=f"{name}, a ufunc that is neither NumPy's nor SciPy's"):
            bw.jit(function)(np.ones(3))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int16, np.int64, np.float16, np.float32, complex])
def test_ufuncs_of_scipy_that_numpy_has_too(dtype: Any) -> None:
    """They are of SciPy's dtypes: float64 of what NumPy's gives in half precision."""
    special = pytest.importorskip("scipy.special")
    x = np.array([0, 1, 1]).astype(dtype)
    for name in ("expm1", "log1p", "cbrt", "exp2"):
        if dtype is not complex or name in ("expm1", "log1p"):
            function = getattr(special, name)
            ours, theirs = bw.jit(lambda x, f=function: f(x))(x), function(x)
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-7)
