"""Gamma distributed numbers, and what is made of them: beta, chi-square, Dirichlet, Student's t, F, the generalized normal one.

Samples are drawn by rejection (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000), in a native loop that
runs until the last element is accepted, with the bits of `jax.random`.  A sample x of the distribution function P(a, x) moves with a so
that its rank stays: dx/da = -(∂P/∂a) / (∂P/∂x) (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.inside.loops import while_loop
from bwcompiler.api.transforms.reverse import custom_jvp
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.tracing.calls import call_back
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import Value, constant
from bwcompiler.ir.types import DType, dtype_of
from bwcompiler.random.continuous import as_float, between, common_shape, float_dtype, random_signs, standard_normal
from bwcompiler.random.keys import Shape, Words, key_words, random_words, shape_of, split_words, threefry

NODES = 96                     # of the quadrature


# ----- samples
def _words(one: Any, two: Any) -> Words:
    return value_of(one), value_of(two)


def _drawn(key: Words) -> Words:
    """The words of a scalar drawn with each key."""
    zero = constant(0, key[0].type)
    return threefry(key, (zero, zero))


def _handles(key: Words) -> tuple[Any, Any]:
    return fresh(key[0]), fresh(key[1])


def _normal_above(key: Words, c: Any, pending: Any, dtype: DType) -> tuple[Any, Any]:
    """For elements that are pending, normal x with v = 1 + c x > 0, and v."""
    def more(state: Any) -> Any:
        return np.any(state[3] <= 0.0)

    def step(state: Any) -> Any:
        one, two, x, v = state
        following, subkey = split_words(_words(one, two), 2)
        drawn = standard_normal(_drawn(subkey), dtype)
        again = v <= 0.0
        return *_handles(following), np.where(again, drawn, x), np.where(again, 1.0 + drawn * c, v)

    start = (*_handles(key), np.zeros_like(c), np.where(pending, as_float(-1.0, dtype), as_float(1.0, dtype)))
    _, _, x, v = while_loop(more, step, start)
    return x, v


def _sample(one: Any, two: Any, a: Any, log_space: bool) -> Any:
    """One number, or its logarithm, per element of a, with a key for each."""
    dtype = dtype_of(a.dtype)
    large = a >= 1.0
    raised = np.where(large, a, a + 1.0)           # Gamma(a) is Gamma(a + 1) U^(1/a)
    d = raised - as_float(1.0 / 3.0, dtype)
    c = as_float(1.0 / 3.0, dtype) / np.sqrt(d)

    def pending(x: Any, v: Any, u: Any) -> Any:
        squeezed = u >= 1.0 - as_float(0.0331, dtype) * (x * x)
        return np.logical_and(squeezed, np.log(u) >= x * 0.5 + d * (1.0 - v + np.log(v)))

    def step(state: Any) -> Any:
        one, two, x, v, u = state
        again = pending(x, v, u)
        following, x_key, u_key = split_words(_words(one, two), 3)
        drawn, root = _normal_above(x_key, c, again, dtype)
        kept = [np.where(again, new, old) for new, old in (
            (drawn * drawn, x), (root * root * root, v), (between(_drawn(u_key), dtype), u))]
        return *_handles(following), *kept

    key, subkey = split_words(_words(one, two), 2)
    ones = np.ones_like(a)
    _, _, _, v, _ = while_loop(lambda state: np.any(pending(*state[2:])), step, (*_handles(key), 0.0 * ones, ones, 2.0 * ones))
    drawn = _drawn(subkey)
    if not log_space:
        return d * v * np.where(large, as_float(1.0, dtype), np.power(1.0 - between(drawn, dtype), 1.0 / a))
    logs = np.log1p(-between(drawn, dtype))
    return np.log(d) + np.log(v) + np.where(np.logical_or(large, logs == 0.0), as_float(0.0, dtype), logs * (1.0 / a))


# ----- how they move with a
def _nodes() -> tuple[Any, Any]:
    """Points and weights for ∫₀^∞ f(s) ds of functions that decay exponentially or faster: trapezoids in u, s = exp(u - exp(-u))."""
    u = np.linspace(-4.0, 4.2, NODES)
    s = np.exp(u - np.exp(-u))
    return s, (u[1] - u[0]) * s * (1.0 + np.exp(-u))


def slope_of_log(a: Any, log_x: Any) -> Any:
    """d log x / da at constant P(a, x), of float64 handles.

    ∂P/∂a = ∫₀^x (log t - ψ(a)) t^(a-1) e^-t dt / Γ(a), where t = x e^-s for x below a; above, the integral from x on with the other sign
    and t = x e^s.  Divided by x ∂P/∂x.
    """
    points, weights = _nodes()
    x = np.exp(log_x)
    offset = log_x - fresh(ops.digamma(value_of(a)))
    below = x <= a
    inner = np.where(below, np.where(a < 1.0, 1.0 / a, 1.0 / np.sqrt(a)), 1.0 / np.sqrt(np.maximum(x, 0.25)))
    s = inner[..., None] * points
    a, x, offset, below = a[..., None], x[..., None], offset[..., None], below[..., None]
    down = (offset - s) * np.exp(-(a - x) * s - x * (s + np.expm1(-s)))
    rising = np.where(below, 0.0, s)                   # e^s only where it is used
    up = (offset + rising) * np.exp(-(x - a) * rising - x * (np.expm1(np.minimum(rising, 700.0)) - rising))
    return np.sum(np.where(below, -down, up) * weights, axis=-1) * inner


def _implicit(log_space: bool, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    one, two, a = primals
    out = _differentiable(one, two, a, log_space)
    wide = out.astype(np.float64)
    slope = slope_of_log(a.astype(np.float64), wide if log_space else np.log(np.maximum(wide, np.finfo(np.float64).tiny)))
    return out, (slope if log_space else slope * wide).astype(a.dtype) * tangents[2]


_differentiable: Any = custom_jvp(_sample, nondiff_argnums=(3,))
_differentiable.defjvp(_implicit)


def _gammas(key: Words, a: Any, shape: tuple[int, ...], dtype: DType, log_space: bool) -> Any:
    """Samples, or their logarithms, of parameters that can be broadcast to the shape."""
    size = math.prod(shape)
    words = random_words(key, (size,))                 # a key for each
    flat = np.broadcast_to(as_float(a, dtype), shape).reshape(size) if isinstance(a, Tracer) else _full(a, shape, dtype, words[0])
    found = call_back(_differentiable, *_handles(words), flat, log_space)
    return np.reshape(found, shape)


def _full(a: Any, shape: tuple[int, ...], dtype: DType, like: Value) -> Any:
    zeros = fresh(ops.cast(like, dtype=dtype)) * 0.0
    return zeros + np.broadcast_to(np.asarray(a, dtype.numpy), shape).reshape(-1)


# ----- distributions
@graph_function
def gamma(key: Any, a: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Gamma distributed numbers of shape parameter a and scale 1, differentiable in a.

    >>> import bwcompiler as bw
    >>> bw.random.gamma(bw.random.key(42), 2.5, (3,)).round(6).tolist()
    [2.876933, 1.885114, 5.757097]
    >>> round(float(bw.grad(lambda a: bw.random.gamma(bw.random.key(42), a))(2.5)), 6)
    1.145641
    """
    return _gammas(key_words(key, "gamma"), a, common_shape(shape, "gamma", a), float_dtype(dtype, "gamma"), False)


@graph_function
def loggamma(key: Any, a: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Logarithms of gamma distributed numbers, which do not vanish for small a.

    >>> import bwcompiler as bw
    >>> bw.random.loggamma(bw.random.key(42), 0.001).round(3).item()
    -1075.138
    """
    return _gammas(key_words(key, "loggamma"), a, common_shape(shape, "loggamma", a), float_dtype(dtype, "loggamma"), True)


@graph_function
def beta(key: Any, a: Any, b: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Beta distributed numbers in (0, 1), differentiable in a and b.

    >>> import bwcompiler as bw
    >>> bw.random.beta(bw.random.key(42), 2.0, 3.0, (2,)).round(6).tolist()
    [0.352493, 0.408]
    """
    kind, found = float_dtype(dtype, "beta"), common_shape(shape, "beta", a, b)
    one, two = split_words(key_words(key, "beta"), 2)
    x, y = _gammas(one, a, found, kind, True), _gammas(two, b, found, kind, True)
    most = np.maximum(x, y)
    x, y = np.exp(x - most), np.exp(y - most)
    return x / (x + y)


@graph_function
def dirichlet(key: Any, alpha: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Vectors of positive numbers whose sum is 1; alpha has their shape, `shape` that of the result without the last axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.random.dirichlet(bw.random.key(42), np.array([1.0, 2.0, 3.0])).round(6).tolist()
    [0.120876, 0.157369, 0.721755]
    """
    if np.ndim(alpha) < 1:
        raise ShapeError("random.dirichlet: alpha has one number for each component, in its last axis; got a number")
    kind = float_dtype(dtype, "dirichlet")
    batch = np.shape(alpha)[:-1] if shape is None else common_shape(shape, "dirichlet", np.empty(np.shape(alpha)[:-1]))
    logs = _gammas(key_words(key, "dirichlet"), alpha, (*batch, np.shape(alpha)[-1]), kind, True)
    parts = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return parts / np.sum(parts, axis=-1, keepdims=True)


@graph_function
def chisquare(key: Any, df: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Sums of the squares of df normal numbers; df need not be whole.

    >>> import bwcompiler as bw
    >>> bw.random.chisquare(bw.random.key(42), 5.0, (2,)).round(6).tolist()
    [5.753866, 3.770229]
    """
    kind, found = float_dtype(dtype, "chisquare"), common_shape(shape, "chisquare", df)
    return 2.0 * np.exp(_gammas(key_words(key, "chisquare"), as_float(df, kind) / 2, found, kind, True))


@graph_function
def t(key: Any, df: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Student's t distribution with df degrees of freedom.

    >>> import bwcompiler as bw
    >>> bw.random.t(bw.random.key(42), 5.0, (2,)).round(4).tolist()
    [-0.6847, -0.4459]
    """
    kind, found = float_dtype(dtype, "t"), common_shape(shape, "t", df)
    one, two = split_words(key_words(key, "t"), 2)
    half = as_float(df, kind) / 2
    return standard_normal(random_words(one, found), kind) * np.sqrt(half / _gammas(two, half, found, kind, False))


@graph_function
def f(key: Any, dfnum: Any, dfden: Any, shape: Shape | None = None, dtype: type = float) -> Any:
    """Quotients of chi-square distributed numbers, each divided by its degrees of freedom.

    >>> import bwcompiler as bw
    >>> bw.random.f(bw.random.key(42), 5.0, 7.0, (2,)).round(4).tolist()
    [1.1514, 0.6285]
    """
    kind, found = float_dtype(dtype, "f"), common_shape(shape, "f", dfnum, dfden)
    below, above = split_words(key_words(key, "f"), 2)
    dfnum, dfden = as_float(dfnum, kind), as_float(dfden, kind)
    numerator = 2.0 * np.exp(_gammas(above, dfnum / 2, found, kind, True)) / dfnum
    return numerator / (2.0 * np.exp(_gammas(below, dfden / 2, found, kind, True)) / dfden)


@graph_function
def generalized_normal(key: Any, p: Any, shape: Shape = (), dtype: type = float) -> Any:
    """Numbers of density proportional to exp(-|x|^p).

    >>> import bwcompiler as bw
    >>> bw.random.generalized_normal(bw.random.key(42), 3.0, (2,)).round(4).tolist()
    [-0.3239, -0.1029]
    """
    return signed_powers(key_words(key, "generalized_normal"), p, shape_of(shape), float_dtype(dtype, "generalized_normal"))


def signed_powers(key: Words, p: Any, shape: tuple[int, ...], dtype: DType) -> Any:
    """± g^(1/p) of gamma distributed g of parameter 1/p: a handle."""
    one, two = split_words(key, 2)
    p = as_float(p, dtype)
    return random_signs(two, shape, dtype) * _gammas(one, 1 / p, shape, dtype, False) ** (1 / p)
