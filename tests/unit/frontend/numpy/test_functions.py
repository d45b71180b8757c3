"""A table of NumPy expressions: the graph gives NumPy's value, dtype and shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.frontend.comparing import compare

rng = np.random.default_rng(7)
X = rng.normal(size=(3, 4))  # any sign
Y = rng.normal(size=(3, 4))
P = rng.uniform(0.2, 0.9, size=(3, 4))  # in (0, 1)
V = rng.normal(size=4)
W = rng.normal(size=(4, 5))
C = rng.normal(size=(2, 3, 4))
S = rng.normal(size=(3, 3)) + 4 * np.eye(3)
F = X.astype(np.float32)
N = rng.integers(1, 6, size=(3, 4)).astype(np.int32)
B = X > 0
H = np.array([[1.0, np.nan, -np.inf], [np.inf, 0.0, -0.0]])

EXPRESSIONS: dict[str, tuple[Callable[..., Any], ...] | tuple[Any, ...]] = {
    # reductions
    "sum": (lambda x: (x.sum(), x.sum(0), x.sum(axis=-1), x.sum((0, 1)), x.sum(1, keepdims=True), np.sum(x, axis=None)), X),
    "sum dtype": (
        lambda b, n, f: (b.sum(), n.sum(), f.sum(), f.sum(dtype=np.float64), n.sum(dtype=float), n.prod(), b.sum(0)),
        B,
        N,
        F,
    ),
    "sum where": (lambda x: (x.sum(where=x > 0), np.sum(x, initial=3.0), np.sum(x, 0, where=B, initial=1)), X),
    "mean": (
        lambda x, n, f: (x.mean(), x.mean(0), n.mean(1), f.mean(), x.mean(where=x > 0), x.mean((0, 1), keepdims=True)),
        X,
        N,
        F,
    ),
    "prod": (lambda x: (x.prod(), np.prod(x, 1), np.prod(x, where=x > 0)), X),
    "max": (lambda x, n, b: (x.max(), x.max(0), np.amax(x, 1, keepdims=True), n.max(), b.max(), x.max(initial=9.0)), X, N, B),
    "min": (lambda x, n, b: (x.min(), x.min(0), np.min(n), b.min(1), x.min(where=x > 0, initial=9.0)), X, N, B),
    "max with nan": (lambda x: (x.max(), x.min(1), np.nanmax(x[0]), np.nanmin(x), np.nansum(x[:, 1:]), np.nanmean(x[0, :2])), H),
    "arg": (lambda x: (x.argmax(), x.argmax(0), np.argmin(x, 1), np.argmin(x, 1, keepdims=True), np.argmax(x > 0)), X),
    "any all": (lambda x: ((x > 0).any(), np.any(x, 1), (x > -9).all(0), np.all(x), np.any(x > 1, keepdims=True)), X),
    "var": (
        lambda x, n: (x.var(), x.std(0), np.var(x, 1, ddof=1), np.std(n), np.var(x, keepdims=True), np.var(x, where=x > 0)),
        X,
        N,
    ),
    "ptp": (lambda x: (np.ptp(x), np.ptp(x, axis=1)), X),
    "average": (lambda x, p: (np.average(x), np.average(x, 0), np.average(x, weights=p), np.average(x, 1, weights=p[0])), X, P),
    "count_nonzero": (lambda x: (np.count_nonzero(x > 0), np.count_nonzero(x, axis=0)), X),
    "cumsum": (lambda x, n: (x.cumsum(), np.cumsum(x, 0), x.cumsum(axis=-1), n.cumsum(), np.cumprod(x, 1)), X, N),
    "vector norm": (lambda v: [np.linalg.norm(v, o) for o in (None, 1, 2, 3, 0.5, np.inf, -np.inf, 0)], V),
    "matrix norm": (
        lambda x: (
            [np.linalg.norm(x, o) for o in (None, "fro", 1, -1, np.inf, -np.inf)],
            np.linalg.norm(x, axis=0),
            np.linalg.norm(x, axis=1, keepdims=True),
        ),
        X,
    ),
    "norm over axes": (
        lambda c: (np.linalg.norm(c), np.linalg.norm(c, 1, axis=(2, 0)), np.linalg.norm(c, np.inf, axis=(1, 2))),
        C,
    ),
    # layout
    "transpose": (
        lambda c: (
            c.T,
            c.transpose(2, 0, 1),
            c.transpose((1, 0, 2)),
            np.transpose(c, (-1, 0, 1)),
            c.mT,
            np.transpose(c, None),
            c.swapaxes(0, 2),
            np.moveaxis(c, 0, -1),
            np.rollaxis(c, 2),
            np.moveaxis(c, (0, 1), (-1, 0)),
        ),
        C,
    ),
    "reshape": (
        lambda c: (
            c.reshape(6, 4),
            c.reshape((4, -1)),
            np.reshape(c, 24),
            c.reshape(3, 8, order="F"),
            c.T.reshape(8, 3),
            c.ravel(),
            c.T.ravel(),
            c.flatten("F"),
            np.ravel(c, order="F"),
            c.reshape(2, 3, 4, 1),
        ),
        C,
    ),
    "squeeze": (
        lambda x: (np.squeeze(x[None, :, None]), np.expand_dims(x, (0, 2)), np.expand_dims(x, -1), x[None].squeeze(0)),
        X,
    ),
    "broadcast": (
        lambda v: (np.broadcast_to(v, (3, 4)), np.broadcast_arrays(v, v[:, None]), np.broadcast_to(v[:, None], (4, 2))),
        V,
    ),
    "flip": (
        lambda c: (
            np.flip(c),
            np.flip(c, 1),
            np.flip(c, (0, 2)),
            np.fliplr(c),
            np.flipud(c),
            np.rot90(c),
            np.rot90(c, 2),
            np.rot90(c, 3, (1, 2)),
            np.rot90(c, -1),
        ),
        C,
    ),
    "roll": (lambda x: (np.roll(x, 1), np.roll(x, -2, 1), np.roll(x, (1, 2), (0, 1)), np.roll(x, 7, 0), np.roll(x, (1, 2), 1),
                        np.roll(x, np.array([1, 2]), (1, 0)), np.roll(x, (), ())), X),
    "roll by data": (lambda x, k: (np.roll(x, k[0]), np.roll(x, k[1], 1), np.roll(x, k[:2], (0, 1)), np.roll(x, (k[2], 1), (1, 0)), np.roll(x, k, 0),
                                   np.roll(x[:0], k[0], 0), np.roll(k, k[0]), np.roll(x, k.astype(np.int32)[0]), np.roll(x[0], int(np.argmax(x)))),
                     X, np.array([1, -2, 9])),
    "concatenate": (
        lambda x, v: (
            np.concatenate([x, x]),
            np.concatenate((x, x), axis=-1),
            np.concatenate([x, Y], None),
            np.append(x, v),
            np.stack([v, v]),
            np.stack([v, v], -1),
            np.vstack([v, x]),
            np.hstack([v, v]),
            np.hstack([x, x]),
            np.dstack([v, v]),
            np.column_stack([v, v]),
            np.concatenate(x),
            np.stack([x[0, 0], 1.0]),
        ),
        X,
        V,
    ),
    "concatenate dtypes": (
        lambda f, n: (np.concatenate([f, n]), np.stack([f, n]), np.concatenate([f, f], dtype=np.float64)),
        F,
        N,
    ),
    "block": (lambda x: np.block([[x, x], [x, x]]), X),
    "split": (
        lambda x: (np.split(x, 2, axis=1), np.array_split(x, 2), np.hsplit(x, [1, 3]), np.vsplit(x, 3), np.split(x, [1, 2])),
        X,
    ),
    "tile": (
        lambda x, v: (
            np.tile(v, 2),
            np.tile(v, (2, 2)),
            np.tile(x, (1, 2)),
            np.tile(x, 2),
            np.repeat(x, 2),
            np.repeat(x, 2, 0),
            np.repeat(x, [1, 0, 2], axis=0),
            v.repeat(3),
        ),
        X,
        V,
    ),
    "pad": (
        lambda x: [
            np.pad(x, 1),
            np.pad(x, ((1, 0), (0, 2))),
            np.pad(x, (1, 2), constant_values=3.0),
            np.pad(x, 1, constant_values=((1, 2), (3, 4))),
        ],
        X,
    ),
    "pad modes": (
        lambda x: [np.pad(x, w, mode=m) for m in ("edge", "reflect", "symmetric", "wrap") for w in (1, (2, 1), ((0, 3), (1, 0)))],
        X,
    ),
    "pad far": (lambda v: [np.pad(v, 6, mode=m) for m in ("edge", "reflect", "symmetric", "wrap")], V),
    "atleast": (
        lambda x: (np.atleast_1d(x[0, 0]), np.atleast_2d(x[0]), np.atleast_3d(x), np.atleast_3d(x[0]), np.atleast_1d(x, x)),
        X,
    ),
    "like": (
        lambda x: (
            np.zeros_like(x),
            np.ones_like(x, dtype=int),
            np.full_like(x, 2),
            np.full_like(x, x[0]),
            np.zeros(2, like=x),
            np.zeros_like(x, shape=(2,)),
            np.eye(2, like=x),
            np.full(3, x[0, 0], like=x),
            np.arange(3, like=x),
        ),
        X,
    ),
    "copies": (lambda x: (x.copy(), np.copy(x), x.astype(np.float32), x.astype(int), (x > 0).astype(float), x.real, x.imag), X),
    "triangles": (lambda x, c: (np.tril(x), np.triu(x, 1), np.tril(x, -1), np.triu(c), np.tril(x[0])), X, C),
    "diagonals": (
        lambda x, c, v: (
            np.diagonal(x),
            np.diagonal(x, 1),
            np.diagonal(x, -1),
            x.trace(),
            np.trace(c),
            c.diagonal(0, 1, 2),
            np.diag(v),
            np.diag(v, 2),
            np.diag(v, -1),
            np.diag(x),
            np.diag(x, 1),
            np.trace(x, 1),
            np.diagonal(x, 9),
        ),
        X,
        C,
        V,
    ),
    # products
    "matmul": (
        lambda x, w, v: (x @ w, v @ w, x @ v, v @ v, np.matmul(x, w), np.dot(x, v), v.dot(v), np.dot(2.0, v), w.T @ v),
        X,
        W,
        V,
    ),
    "batched matmul": (lambda c, w, x: (c @ w, c @ w[:, 0], x @ c.mT, c[0, 0] @ c.mT, np.matmul(c, c[:1].mT)), C, W, X),
    "integer matmul": (lambda n: (n @ n.T, n @ n[0], n @ X.T), N),
    "products": (
        lambda v, x, c, w: (
            np.outer(v, v),
            np.inner(v, v),
            np.inner(x, x),
            np.vdot(x, x),
            np.tensordot(c, w, 1),
            np.kron(x, v),
            np.tensordot(c, x, ((1, 2), (0, 1))),
            np.tensordot(x, w, 0),
            np.dot(c, w),
            np.kron(x, x),
            np.linalg.vecdot(x, v),
            np.tensordot(c, x, axes=[[2, 1], [1, 0]]),
        ),
        V,
        X,
        C,
        W,
    ),
    "einsum one": (
        lambda s, c: (
            np.einsum("ii", s),
            np.einsum("ii->i", s),
            np.einsum("ij->ji", s),
            np.einsum("ijk->k", c),
            np.einsum("...j->...", c),
            np.einsum("ba", s),
            np.einsum("ij->", s),
        ),
        S,
        C,
    ),
    "einsum two": (
        lambda x, w, c: (
            np.einsum("ij,jk->ik", x, w),
            np.einsum("ij,jk", x, w),
            np.einsum("bij,jk->bik", c, w),
            np.einsum("ij,ij->i", x, x),
            np.einsum("ij,ij", x, x),
            np.einsum("i,j->ij", x[0], x[1]),
            np.einsum("...ij,jk->...ik", c, w),
            np.einsum("bij,bkj->bik", c, c),
            np.einsum("ij,kl->", x, w),
            np.einsum(x, [0, 1], w, [1, 2], [0, 2]),
            np.einsum("ij,j->ji", x, x[0]),
            np.einsum("ij,kj->ij", x, x),
            np.einsum("bij,...ij->b...", c, x),
        ),
        X,
        W,
        C,
    ),
    "einsum more": (
        lambda x, w, c, s: (
            np.einsum("ij,jk,lk->il", x, w, w, optimize=True),
            np.einsum("bij,jk,bil->bkl", c, w, c),
            np.einsum("i,i,i->i", s[0], s[1], s[2]),
            np.einsum("ii,ij->j", s, x),
            np.einsum("ij,ij->ij", x, x[:1]),
            np.linalg.multi_dot([x, w, w.T]),
        ),
        X,
        W,
        C,
        S,
    ),
    "linalg": (
        lambda s, x: (
            np.linalg.inv(s),
            np.linalg.solve(s, x),
            np.linalg.solve(s, x[:, 0]),
            np.linalg.cholesky(s @ s.T),
            np.linalg.matrix_power(s, 3),
        ),
        S,
        X,
    ),
    "cross": (lambda s: (np.cross(s, s[0]), np.cross(s[0], s[1]), np.cross(s, s.T, axis=0)), S),
    # formulas
    "clip": (
        lambda x, f: (
            np.clip(x, -0.5, 0.5),
            x.clip(0),
            np.clip(x, None, 0.1),
            x.clip(max=0.3),
            np.clip(f, 0, 1),
            np.clip(x, x[0], 1),
            x.clip(min=0, max=1),
        ),
        X,
        F,
    ),
    "round": (lambda x, n: (np.round(x), x.round(2), np.around(x * 100, -1), n.round(), np.fix(x)), X, N),
    "where": (
        lambda x, n: (
            np.where(x > 0, x, 0),
            np.where(x > 0, n, 1.5),
            np.where(n, x, -x),
            np.where(B, x, x[0]),
            np.where(True, x, 1),
        ),
        X,
        N,
    ),
    "where weak": (lambda f: (np.where(f > 0, f, 0), np.where(f > 0, 1, 2.0), np.where(f > 0, f, 1.5)), F),
    "select": (lambda x: np.select([x > 1, x > 0], [x * 2, x], 7.0), X),
    "options that are traced": (
        lambda x, h, p: (
            np.nan_to_num(h, nan=p[0, 0], posinf=p[0, 1], neginf=p[0, :3]), np.nan_to_num(h, nan=np.array([1.0, 2.0, 3.0])),
            np.quantile(x, [p[0, 0], 1 - p[0, 0]]), np.percentile(x, (100 * p[0, 0], 50), axis=1), np.quantile(x, ((p[0, 0],), (p[0, 1],)), 0),
            np.nanquantile(x, [p[0, 0], 0.5], axis=1), np.nanpercentile(x, [100 * p[0, 0]], keepdims=True),
            np.pad(x, 1, constant_values=(p[0, 0], 2)), np.pad(x, ((1, 2), (0, 1)), constant_values=((1, p[0, 0]), (p[0, 1], 4))),
            np.pad(x, 2, constant_values=[p[0, 0]]), np.pad(x, 1, constant_values=p[:2, :2])),
        X, H, P),
    "nan_to_num": (lambda x: (np.nan_to_num(x), np.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0)), H),
    "isclose": (
        lambda x, y: (np.isclose(x, y), np.isclose(x, x), np.allclose(x, x), np.array_equal(x, x), np.isclose(x, 0.1, 0.5)),
        X,
        Y,
    ),
    "diff": (
        lambda x: (
            np.diff(x),
            np.diff(x, 2, 0),
            np.diff(x, prepend=0),
            np.gradient(x[0]),
            np.gradient(x, 0.5),
            np.gradient(x, axis=0),
        ),
        X,
    ),
    "integrals": (
        lambda x: (np.trapezoid(x), np.trapezoid(x, dx=0.1), np.trapezoid(x, np.arange(4.0) ** 2), np.trapezoid(x, axis=0)),
        X,
    ),
    "polynomials": (
        lambda v, x: (np.polyval(v, x), np.vander(v, 3), np.vander(v, increasing=True), np.polyval([1.0, 2.0], x)),
        V,
        X,
    ),
    "convolve": (
        lambda v: [np.convolve(v, k, m) for k in (np.array([1.0, 2, 4]), np.arange(6.0)) for m in ("full", "same", "valid")],
        V,
    ),
    "correlate": (lambda v: [np.correlate(v, np.array([1.0, 2, 4]), m) for m in ("full", "same", "valid")], V),
    "grids": (
        lambda v, x: (np.meshgrid(v, x[:, 0]), np.meshgrid(v, x[:, 0], indexing="ij"), np.meshgrid(v, v[:2], sparse=True)),
        V,
        X,
    ),
    "linspace": (lambda v: (np.linspace(v[0], v[1], 5), np.linspace(0, v[0], 4, endpoint=False), np.linspace(v, 1.0, 3)), V),
    "cov": (lambda x: (np.cov(x), np.cov(x, ddof=0), np.cov(x.T, rowvar=False)), X),
    "sinc": (lambda x: (np.sinc(x), np.sinc(np.zeros_like(x))), X),
    "static facts": (
        lambda x: (
            np.shape(x),
            np.ndim(x),
            np.size(x),
            np.size(x, 0),
            len(x),
            x.itemsize,
            x.nbytes,
            float(np.result_type(x, np.float32) == np.float64),
            np.iscomplexobj(x),
        ),
        X,
    ),
    "take": (
        lambda x: (
            np.take(x, [0, 2], 0),
            x.take([1, -1]),
            np.take(x, np.array([[0, 1], [2, 3]]), axis=1),
            np.take(x, 1, 1),
            np.take(x, [5, -7], mode="wrap"),
            np.take(x, [50, -7], 1, mode="clip"),
            np.compress([True, False, True], x, 0),
        ),
        X,
    ),
    "take_along_axis": (
        lambda x: (
            np.take_along_axis(x, np.argmax(x, 1, keepdims=True), 1),
            np.take_along_axis(x, np.array([[0], [1], [2]]), 1),
            np.take_along_axis(x, np.zeros((1, 4), int), axis=0),
        ),
        X,
    ),
    # scalars and object arrays
    "object arrays": (
        lambda v: (
            np.array([v[1], -v[0]]) * v[:2],
            np.array([[v[0], 1.0], [v[1], 2]]) @ v[:2],
            np.array([v[0], v[1]]),
            np.sin(np.array([v[0], v[1]])) + v[:2],
            np.dot(v[:2], np.array([v[1], 2.0])),
        ),
        V,
    ),
    "scalars": (
        lambda v, s: (v[0] * s + 1, s**2, np.sin(s), s / 2, s // 2, -s, s > 1, v * s, abs(s), np.maximum(v[0], s)),
        V,
        1.5,
    ),
    "weak scalars": (
        lambda f, s, k: (f * s, f + k, s * k, k // 2, k / 2, np.sin(s), s + 1, np.float32(1) * s, f * np.sin(s), k**2),
        F,
        1.5,
        3,
    ),
    "zero-d": (lambda a: (a + 1, a[()], a[None], a * X, a.reshape(1), a.sum(), np.sin(a)), np.array(2.0)),
    "iteration": (lambda x: (sum(row.sum() for row in x), [row[0] for row in x], tuple(x[0])), X),
    "lists as operands": (
        lambda x: (
            x[0] + [1, 2, 3, 4],
            np.add([1.0, 2, 3, 4], x),
            np.dot(x, [1, 2, 3, 4]),
            x * np.array(2),
            [x[0], x[1]] + x[:2],
        ),
        X,
    ),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")        # from NumPy 2.5 on
def test_expression(name: str) -> None:
    fun, *args = EXPRESSIONS[name]
    compare(fun, *args)
