"""Functions of `bw.scipy.special` that SciPy writes in Python, or has for integers and complex numbers only, of traced arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.inside.loops import while_loop
from bwcompiler.api.transforms.reverse import custom_jvp
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import cast, number_value, real_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import F64, complex_of
from bwcompiler.scipy.special.functions import by_loop

MOST_STEPS = 100
OMEGA = 0.5671432904097838                                  # Lambert's W of 1


# ----- Lambert's function
def _start(z: Any, k: Any) -> Any:
    """Where SciPy's iteration starts: near the branch point, near 0, else the asymptotic series."""
    logarithm = np.log(np.where(z == 0, 1.0, z)) + _turns(z, k)
    far = logarithm - np.log(np.where(logarithm == 0, 1.0, logarithm))
    root = np.sqrt(2.0 * (math.e * z + 1.0))
    branch_point = -1.0 + root * (1.0 - root / 3.0)
    rational = z * ((12.851063829787234 * z + 12.340425531914894) * z + 1.0) / ((32.53191489361702 * z + 14.340425531914894) * z + 1.0)
    size = np.abs(z.imag)
    small = (z.real > -1.0) & (z.real < 1.5) & (size < 1.0) & (-2.5 * size - 0.2 < z.real)
    principal = np.where(np.abs(z + math.exp(-1)) < 0.3, branch_point, np.where(small, rational, far))
    real = (np.abs(z) <= math.exp(-1)) & (z.imag == 0) & (z.real < 0)
    below = np.where(real, np.log(np.where(real, -z.real, 1.0)) + 0j, far)
    return np.where(k == 0, principal, np.where(k == -1, below, far))


def _turns(z: Any, k: Any) -> Any:
    return 2j * math.pi * k.astype(z.real.dtype)


@custom_jvp
def _lambert(z: Any, k: Any) -> Any:
    """By Halley's method (R. Corless et al., "On the Lambert W function", 1996)."""
    tolerance = 4 * float(np.finfo(z.dtype).eps)

    def go_on(state: Any) -> Any:
        _, change, count = state
        return (count < MOST_STEPS) & np.any(change)

    def step(state: Any) -> Any:
        w, _, count = state
        right = w.real >= 0
        e = np.exp(np.where(right, -w, w))                               # whichever does not overflow
        rest = np.where(right, w - z * e, w * e - z)
        slope = np.where(right, w + 1.0, w * e + e)
        new = w - rest / (slope - (w + 2.0) * rest / (2.0 * w + 2.0))
        good = np.isfinite(new)
        moved = good & (np.abs(new - w) > tolerance * np.abs(new))
        return np.where(good, new, w), moved, count + 1

    w = while_loop(go_on, step, (_start(z, k), np.ones(z.shape, bool) | (z != z), 0))[0]
    turns = _turns(z, k)
    w = np.where(np.isinf(z.real), np.where(z.real > 0, z + turns, -z + (turns + 1j * math.pi)), w)
    w = np.where(z == 0, np.where(k == 0, z, complex(-math.inf, 0.0)), np.where((z == 1) & (k == 0), OMEGA, w))
    return np.where(np.isnan(z), z, w)


def _lambert_jvp(primals: Any, tangents: Any) -> Any:
    (z, k), (change, _) = primals, tangents
    w = _lambert(z, k)
    return w, change * np.exp(-w) / (1.0 + w)


_lambert.defjvp(_lambert_jvp)


@graph_function
def lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Any:
    """w with w exp(w) = z, of branch k, complex always; as scipy.special.lambertw, to rounding (tol is not needed).

    The derivative is exp(-w) / (1 + w), infinite at the branch point -1/e.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.lambertw(np.array([0.0, np.e])).real.tolist()
    [0.0, 1.0]
    """
    value = number_value(z)
    at: Any = fresh(value if value.dtype.is_complex else cast(value, complex_of(value.dtype)))
    at, branch = np.broadcast_arrays(at, np.asarray(k))
    return _lambert(at, branch)


# ----- Bessel functions
def _order(name: str, n: Any) -> int:
    if not isinstance(n, int | np.integer) or n < 0:
        raise UnsupportedError(f"{name}: the order must be an integer that is known while tracing, not negative")
    return int(n)


def _regular(name: str, n: int, x: Any, sign: float) -> Any:
    """√(π / 2x) J(n + 1/2, x), by its series near 0."""
    near = np.abs(x) < 1e-3
    safe = np.where(near, 1.0, x if np.iscomplexobj(x) else np.abs(x))
    far = np.sqrt(math.pi / 2 / safe) * by_loop(name, n + 0.5, safe)
    far = far if np.iscomplexobj(x) else np.where(x < 0, far * (-1.0) ** n, far)
    close = np.where(near, x, 0.0)
    first = 1.0 / math.prod(range(1, 2 * n + 2, 2))
    return np.where(near, first * close**n * (1.0 + sign * close * close / (2 * (2 * n + 3))), far)


def _singular(name: str, n: int, x: Any) -> Any:
    if np.iscomplexobj(x):
        return np.sqrt(math.pi / 2 / x) * by_loop(name, n + 0.5, x)
    size = np.abs(x)
    found = np.sqrt(math.pi / 2 / size) * by_loop(name, n + 0.5, size)
    return np.where(x < 0, found * (-1.0) ** (n + 1), found) if name == "yv" else np.where(x < 0, math.nan, found)


_SPHERICAL: dict[str, tuple[Any, float, float]] = {                   # function of order and place; signs in n f(n-1) ± (n+1) f(n+1)
    "spherical_jn": (lambda n, x: _regular("jv", n, x, -1.0), 1.0, -1.0), "spherical_yn": (lambda n, x: _singular("yv", n, x), 1.0, -1.0),
    "spherical_in": (lambda n, x: _regular("iv", n, x, 1.0), 1.0, 1.0), "spherical_kn": (lambda n, x: _singular("kv", n, x), -1.0, -1.0)}


def _spherical(name: str) -> Any:
    formula, low, high = _SPHERICAL[name]

    def function(n: int, z: Any, derivative: bool = False) -> Any:
        order, x = _order(name, n), fresh(number_value(z))
        if name != "spherical_kn" and not np.iscomplexobj(x):                  # SciPy has no loops of narrower numbers
            x = x.astype(np.float64)
        if not derivative:
            return formula(order, x)
        above = high * (order + 1) * formula(order + 1, x)
        return (above + low * order * formula(order - 1, x) if order else above) / (2 * order + 1)

    function.__name__ = function.__qualname__ = name
    example = {"spherical_jn": 0.8415, "spherical_yn": -0.5403, "spherical_in": 1.1752, "spherical_kn": 0.5779}[name]
    function.__doc__ = f"""As scipy.special.{name}, the order n is an integer.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.{name}(0, np.array([1.0])).round(4).tolist()
    [{example}]
    """
    return graph_function(function)


@graph_function
def hankel1(v: Any, z: Any) -> Any:
    """J + iY of order v, as scipy.special.hankel1; of real numbers at z >= 0.

    >>> import numpy as np, bwcompiler as bw
    >>> complex(bw.scipy.special.hankel1(0.0, np.array(1.0)).round(4))
    (0.7652+0.0883j)
    """
    return _both_kinds("hankel1", v, z, 1j)


@graph_function
def hankel2(v: Any, z: Any) -> Any:
    """J - iY of order v, as scipy.special.hankel2; of real numbers at z >= 0.

    >>> import numpy as np, bwcompiler as bw
    >>> complex(bw.scipy.special.hankel2(0.0, np.array(1.0)).round(4))
    (0.7652-0.0883j)
    """
    return _both_kinds("hankel2", v, z, -1j)


def _both_kinds(name: str, v: Any, z: Any, factor: complex) -> Any:
    at = fresh(number_value(z))
    return by_loop(name, v, at) if np.iscomplexobj(at) else by_loop("jv", v, at) + factor * by_loop("yv", v, at)


@graph_function
def wofz(z: Any) -> Any:
    """exp(-z²) erfc(-iz), the function of Faddeeva, as scipy.special.wofz.

    >>> import numpy as np, bwcompiler as bw
    >>> complex(bw.scipy.special.wofz(np.array(1.0)).round(4))
    (0.3679+0.6072j)
    """
    x = fresh(number_value(z))
    if np.iscomplexobj(x):
        return by_loop("wofz", x)
    return np.exp(-x * x) + (2j / math.sqrt(math.pi)) * by_loop("dawsn", x)


# ----- others
def _hermite(name: str, n: Any, x: Any, scale: float) -> Any:
    """By its recurrence where the degree is known while tracing; float64, as SciPy gives it."""
    if not isinstance(n, int | np.integer) or n < 0:
        return by_loop(name, n, x)
    at = fresh(cast(real_value(x), F64))
    before, found = np.zeros_like(at), np.ones_like(at)
    for k in range(n):
        before, found = found, scale * (at * found - k * before)
    return found


@graph_function
def eval_hermite(n: Any, x: Any) -> Any:
    """The physicists' Hermite polynomial of degree n, as scipy.special.eval_hermite; n is an integer.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.eval_hermite(2, np.array([1.0])).tolist()
    [2.0]
    """
    return _hermite("eval_hermite", n, x, 2.0)


@graph_function
def eval_hermitenorm(n: Any, x: Any) -> Any:
    """The probabilists' Hermite polynomial of degree n, as scipy.special.eval_hermitenorm; n is an integer.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.eval_hermitenorm(2, np.array([2.0])).tolist()
    [3.0]
    """
    return _hermite("eval_hermitenorm", n, x, 1.0)


@graph_function
def diric(x: Any, n: int) -> Any:
    """sin(nx / 2) / (n sin(x / 2)), the periodic sinc function, as scipy.special.diric; n is an integer.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.diric(np.array([0.0, np.pi]), 3).round(4).tolist()
    [1.0, -0.3333]
    """
    at = fresh(real_value(x))
    if not isinstance(n, int | np.integer) or n <= 0:
        return np.full_like(at, math.nan)
    half = at / 2
    below = np.sin(half)
    flat = np.abs(below) < (1e-7 if at.dtype.itemsize == 8 else 1e-3)
    sign = np.where(np.remainder(np.round(half / math.pi) * (n - 1), 2) == 0, 1.0, -1.0)
    return np.where(flat, sign.astype(at.dtype), np.sin(n * half) / (n * np.where(flat, 1.0, below)))


@graph_function
def perm(N: Any, k: Any, exact: bool = False) -> Any:
    """N! / (N - k)!, 0 for k > N and negative arguments, as scipy.special.perm with exact=False.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.special.perm(np.array([5.0]), 2.0).tolist()
    [20.0]
    """
    if exact:
        raise UnsupportedError("perm: exact=True gives Python integers of any size, which traced arrays do not have\n  hint: exact=False")
    n, few = fresh(real_value(N)), fresh(real_value(k))
    inside = (few <= n) & (n >= 0) & (few >= 0)
    return np.where(inside, by_loop("poch", np.where(inside, n - few + 1.0, 1.0), np.where(inside, few, 0.0)), 0.0)


@graph_function
def kelvin(x: Any) -> Any:
    """(ber + i bei, ker + i kei, ber' + i bei', ker' + i kei'), as scipy.special.kelvin.

    >>> import numpy as np, bwcompiler as bw
    >>> complex(bw.scipy.special.kelvin(np.array(1.0))[0].round(4))
    (0.9844+0.2496j)
    """
    at = fresh(real_value(x))
    pairs = (("ber", "bei"), ("ker", "kei"), ("berp", "beip"), ("kerp", "keip"))
    return tuple([by_loop(first, at) + 1j * by_loop(second, at) for first, second in pairs])


# ----- spherical harmonics
def _normalised(n: int, m: int, cosine: Any, sine: Any) -> Any:
    """The associated Legendre function of which Y is made, m >= 0, by recurrence in n (Holmes and Featherstone, 2002)."""
    found = np.ones_like(cosine) * (1.0 / math.sqrt(4 * math.pi))
    for k in range(1, m + 1):
        found = found * sine * -math.sqrt((2 * k + 1) / (2 * k))
    before = np.zeros_like(cosine)
    for k in range(m + 1, n + 1):
        scale = math.sqrt((4 * k * k - 1) / (k * k - m * m))
        last = math.sqrt(((k - 1) ** 2 - m * m) / (4 * (k - 1) ** 2 - 1))
        before, found = found, scale * (cosine * found - last * before)
    return found


@graph_function
def sph_harm_y(n: int, m: int, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """The spherical harmonic of degree n and order m at the polar angle theta and the azimuth phi, as scipy.special.sph_harm_y.

    n, m     integers that are known while tracing; else UnsupportedError, as with diff_n, which the transforms of this package replace.

    >>> import numpy as np, bwcompiler as bw
    >>> complex(bw.scipy.special.sph_harm_y(1, 0, np.array(0.0), np.array(0.0)).round(4))
    (0.4886+0j)
    """
    if diff_n or not all(isinstance(one, int | np.integer) for one in (n, m)):
        raise UnsupportedError("sph_harm_y: degree and order are integers that are known while tracing, and diff_n is 0\n"
                               "  hint: a Python loop over the degrees; bw.grad or bw.jvp for derivatives")
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    polar, azimuth = np.broadcast_arrays(fresh(real_value(theta)), fresh(real_value(phi)))
    size = abs(int(m))
    if size > n:
        return np.zeros_like(polar) + 0j * azimuth
    height = _normalised(int(n), size, np.cos(polar), np.sin(polar))
    height = height * (-1.0) ** size if m < 0 else height
    return height * np.cos(m * azimuth) + 1j * (height * np.sin(m * azimuth))


COMPOSITIONS = {function.__name__: function for function in (
    lambertw, *[_spherical(name) for name in _SPHERICAL], hankel1, hankel2, kelvin, wofz, eval_hermite,
    eval_hermitenorm, diric, perm, sph_harm_y)}
