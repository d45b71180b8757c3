"""Functions that exported NumPy modules bring along where they need them; their source is copied, without annotations.

Each uses NumPy, `math` and other functions of this file only.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from bwcompiler.ops.factorization import orthonormal_columns, packed_householder
from bwcompiler.ops.linalg import adjoint_of_cholesky, half_lower_of, packed_lu, solve_triangle, solve_with_lu


def windows(x: Any, sizes: Any, strides: Any, low: Any, high: Any, dilations: Any) -> Any:
    """Sliding windows over the last axes of the zero-padded x: axes (..., positions, inside the window)."""
    lead = x.ndim - len(sizes)
    padded = np.pad(x, [(0, 0)] * lead + list(zip(low, high, strict=True)))
    spans = tuple(dilation * (size - 1) + 1 for size, dilation in zip(sizes, dilations, strict=True))
    counts = tuple((n - span) // stride + 1 for n, span, stride in zip(padded.shape[lead:], spans, strides, strict=True))
    if 0 in counts:
        return np.zeros((*x.shape[:lead], *counts, *sizes), x.dtype)
    view = np.lib.stride_tricks.sliding_window_view(padded, spans, tuple(range(lead, x.ndim)))
    place: Any = (..., *[slice(None, None, step) for step in (*strides, *dilations)])
    return view[place]


def windows_add(ct: Any, shape: Any, sizes: Any, strides: Any, low: Any, high: Any, dilations: Any) -> Any:
    """The adjoint of windows: every element is added to the place it was read from."""
    lead = len(shape) - len(sizes)
    padded = np.zeros((*shape[:lead], *[a + n + b for a, n, b in zip(low, shape[lead:], high, strict=True)]), ct.dtype)
    counts = ct.shape[lead:len(shape)]
    for inside in itertools.product(*map(range, sizes)):
        place: Any = (..., *[slice(k * d, k * d + stride * (count - 1) + 1 if count else k * d, stride)
                             for k, d, stride, count in zip(inside, dilations, strides, counts, strict=True)])
        padded[place] += ct[(..., *inside)]
    middle: Any = (..., *[slice(a, a + n) for a, n in zip(low, shape[lead:], strict=True)])
    return padded[middle]


def normalize_index(index: Any, extent: Any) -> Any:
    """Negative indices counted from the end; IndexError for those out of range."""
    wrong = np.extract((index < -extent) | (index >= extent), index)
    if wrong.size:
        raise IndexError(f"index {wrong[0]} is out of bounds for axis with size {extent}")
    return np.where(index < 0, index + extent, index)


def triangular_solve(a: Any, b: Any, lower: Any, transpose: Any) -> Any:
    """x with t x = b, where t is the lower (else upper) triangle of a, or its transpose."""
    t = np.tril(a) if lower else np.triu(a)
    return np.linalg.solve(np.swapaxes(t, -1, -2) if transpose else t, b)


def packed_eigh(a: Any, lower: Any) -> Any:
    """Eigenvalues over eigenvectors, of the lower or upper triangle."""
    values, vectors = np.linalg.eigh(a, "L" if lower else "U")
    return np.concatenate([values[..., None, :], vectors], -2)


def packed_svd(a: Any) -> Any:
    """U over the singular values over V."""
    left, values, right = np.linalg.svd(a, full_matrices=False)
    return np.concatenate([left, values[..., None, :], np.swapaxes(right, -1, -2)], -2)


def packed_qr(a: Any) -> Any:
    """Q over R."""
    return np.concatenate(np.linalg.qr(a), -2)


def packed_slogdet(a: Any) -> Any:
    """The sign and the logarithm of |det a|, in the last axis."""
    return np.stack(np.linalg.slogdet(a), -1)


def each(function: Any, x: Any) -> Any:
    """A function of one float applied to all elements, in double precision."""
    return np.frompyfunc(function, 1, 1)(np.asarray(x, np.float64)).astype(np.float64)


def erf(x: Any) -> Any:
    """The error function."""
    return np.asarray(each(math.erf, np.atleast_1d(x)).reshape(x.shape), x.dtype)


def erfc(x: Any) -> Any:
    """1 - erf(x)."""
    return np.asarray(each(math.erfc, np.atleast_1d(x)).reshape(x.shape), x.dtype)


def erfinv(y: Any) -> Any:
    """The inverse of erf: Halley's method from Winitzki's approximation."""
    size = np.atleast_1d(np.abs(y)).astype(np.float64)
    log = np.log1p(-size * size) / 2
    half = 2 / (math.pi * 0.147) + log
    x = np.sqrt(np.maximum(np.sqrt(half * half - 2 * log / 0.147) - half, 0.0))
    for _ in range(5):
        error = np.where(size < 0.5, each(math.erf, x) - size, (1 - size) - each(math.erfc, x))
        step = error / (2 / math.sqrt(math.pi) * np.exp(-x * x))
        x = x - np.where(np.isfinite(step), step / (1 + x * step), 0.0)
    x = np.where(size < 1e-150, size * math.sqrt(math.pi) / 2, x)
    x = np.where(size < 1, x, np.where(size == 1, np.inf, np.nan))
    return np.copysign(x.reshape(y.shape), y).astype(y.dtype)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(x))
    return (np.where(x >= 0, 1.0, small) / (1.0 + small)).astype(x.dtype)


def lgamma_of_float(x: Any) -> Any:
    """log |gamma(x)|, infinite at poles."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def lgamma(x: Any) -> Any:
    """The logarithm of |gamma(x)|."""
    return np.asarray(each(lgamma_of_float, np.atleast_1d(x)).reshape(x.shape), x.dtype)


def digamma(x: Any) -> Any:
    """The derivative of lgamma: shifted to large arguments, where its asymptotic series is exact."""
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    y = np.asarray(x, np.float64)
    z = np.where(y < 0, 1.0 - y, y)
    large = np.where(z < 10, z + 10, z)
    found = np.log(large) - 0.5 / large - sum(b / (2 * k * large ** (2 * k)) for k, b in enumerate(bernoulli, 1))
    found = found - np.where(z < 10, sum(1.0 / (z + k) for k in range(10)), 0.0)
    found = found - np.where(y < 0, math.pi / np.tan(math.pi * (y - np.rint(y))), 0.0)
    pole = (y < 0) & (y == np.rint(y))
    return np.where(y == 0, np.copysign(np.inf, -y), np.where(pole, np.nan, found)).astype(x.dtype)


def trigamma(x: Any) -> Any:
    """The derivative of digamma, by the same shift and reflection."""
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    y = np.asarray(x, np.float64)
    z = np.where(y < 0, 1.0 - y, y)
    large = z + 10
    found = sum(1.0 / (z + k) ** 2 for k in range(10)) + 1 / large + 0.5 / large ** 2
    found = found + sum(b / large ** (2 * k + 1) for k, b in enumerate(bernoulli, 1))
    reflected = math.pi / np.sin(math.pi * (y - np.rint(y)))
    return np.where(y < 0, reflected * reflected - found, found).astype(x.dtype)


def polygamma(x: Any, n: Any) -> Any:
    """The derivative of order n of digamma: a sum, an asymptotic series, and for negative x the derivative of the cotangent."""
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
    y = np.asarray(x, np.float64)
    z = np.where(y < 0, 1.0 - y, y)
    large = z + (10 + n)
    found = math.factorial(n) * sum(1.0 / (z + k) ** (n + 1) for k in range(10 + n))
    found = found + math.factorial(n - 1) / large ** n + math.factorial(n) / (2 * large ** (n + 1))
    found = found + sum(b * math.factorial(2 * k + n - 1) / math.factorial(2 * k) / large ** (2 * k + n)
                        for k, b in enumerate(bernoulli, 1))
    found = found * (-1.0) ** (n + 1)
    slope = np.polynomial.Polynomial([0.0, 1.0])                # dⁿ/dxⁿ cot(πx) as a polynomial in the cotangent
    for _ in range(n):
        slope = slope.deriv() * np.polynomial.Polynomial([-1.0, 0.0, -1.0])
    cotangent = 1.0 / np.tan(math.pi * (y - np.rint(y)))
    return np.where(y < 0, (-1.0) ** n * found - math.pi ** (n + 1) * slope(cotangent), found).astype(x.dtype)


# References of ops that are made of NumPy's functions alone stand for themselves.
HELPERS = {function.__name__: function for function in (
    windows, windows_add, normalize_index, triangular_solve, packed_eigh,
    packed_svd, packed_qr, packed_slogdet, solve_triangle, half_lower_of, adjoint_of_cholesky, packed_lu, solve_with_lu,
    packed_householder, orthonormal_columns, each, erf, erfc, erfinv, sigmoid, lgamma_of_float, lgamma, digamma,
    trigamma, polygamma)}


def helper_source(names: Iterable[str]) -> tuple[list[str], str]:
    """(modules to import, source) of these helpers and of those they call, in the order of this file."""
    needed: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending += [used for used in _names_in(name) if used in HELPERS]
    chosen = [name for name in HELPERS if name in needed]
    used = {name for chosen_name in chosen for name in _names_in(chosen_name)}
    return [module for module in ("itertools", "math") if module in used], "\n\n\n".join(map(_plain_source, chosen))


def _tree_of(name: str) -> ast.FunctionDef:
    parsed = ast.parse(inspect.getsource(HELPERS[name])).body[0]
    assert isinstance(parsed, ast.FunctionDef)
    return parsed


def _names_in(name: str) -> set[str]:
    return {node.id for node in ast.walk(_tree_of(name)) if isinstance(node, ast.Name)}


class _WithoutAnnotations(ast.NodeTransformer):
    """Drops the annotations of a function and of its variables."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None
        return ast.Assign([node.target], self.visit(node.value), lineno=node.lineno)


def _plain_source(name: str) -> str:
    return ast.unparse(_WithoutAnnotations().visit(_tree_of(name)))
