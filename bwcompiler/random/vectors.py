"""Random vectors and matrices; names, arguments and algorithms of `jax.random`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import ShapeError
from bwcompiler.random.continuous import as_float, between, float_dtype, standard_normal
from bwcompiler.random.keys import Shape, key_words, random_words, shape_of, split_words, words_of
from bwcompiler.random.positive import signed_powers


def _of_eigenvalues(cov: Any) -> Any:
    values, vectors = np.linalg.eigh(cov)
    return vectors * np.sqrt(values[..., None, :])


def _of_singular_values(cov: Any) -> Any:
    vectors, values, _ = np.linalg.svd(cov)
    return vectors * np.sqrt(values[..., None, :])


_ROOTS: dict[str, Callable[[Any], Any]] = {"cholesky": np.linalg.cholesky, "eigh": _of_eigenvalues, "svd": _of_singular_values}


@graph_function
def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Shape | None = None, dtype: type = float,
                        method: str = "cholesky") -> Any:
    """Vectors of normal numbers with this mean and this matrix of covariances; `shape` without the last axis.

    method  which root of the matrix is taken: "cholesky" of a positive definite one, "eigh" or "svd" of a semidefinite one.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.random.multivariate_normal(bw.random.key(42), np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])).round(6).tolist()
    [0.738778, -0.09499]
    """
    kind = float_dtype(dtype, "multivariate_normal")
    mean, cov = as_float(mean, kind), as_float(cov, kind)
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1], mean.shape[-1]):
        raise ShapeError(f"random.multivariate_normal: mean has shape (..., n) and cov (..., n, n); got {mean.shape} and {cov.shape}")
    batch = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if shape is None else shape_of(shape)
    if method not in _ROOTS:
        raise ValueError(f"random.multivariate_normal: method is 'cholesky', 'eigh' or 'svd', got {method!r}")
    draws = standard_normal(words_of(key, "multivariate_normal", (*batch, mean.shape[-1])), kind)
    return mean + np.squeeze(_ROOTS[method](cov) @ draws[..., None], -1)


@graph_function
def ball(key: Any, d: int, p: Any = 2.0, shape: Shape = (), dtype: type = float) -> Any:
    """Vectors of d numbers, uniform in the ball of radius 1 of the norm sum(|x|^p)^(1/p); `shape` without the last axis.

    >>> import bwcompiler as bw
    >>> bw.random.ball(bw.random.key(42), 3).round(6).tolist()
    [-0.044223, -0.26116, -0.497685]
    """
    kind, found = float_dtype(dtype, "ball"), shape_of(shape)
    one, two = split_words(key_words(key, "ball"), 2)
    drawn = signed_powers(one, p, (*found, d), kind)
    p = as_float(p, kind)
    rest = -np.log1p(-between(random_words(two, found), kind))
    return drawn / ((np.sum(np.abs(drawn) ** p, axis=-1) + rest) ** (1 / p))[..., None]


@graph_function
def orthogonal(key: Any, n: int, shape: Shape = (), dtype: type = float, m: int | None = None) -> Any:
    """n x m matrices (m is n if it is not given) with orthonormal rows or columns, uniform among these.

    >>> import bwcompiler as bw
    >>> q = bw.random.orthogonal(bw.random.key(42), 2)
    >>> (q @ q.T).round(9).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    kind, columns = float_dtype(dtype, "orthogonal"), n if m is None else m
    if n < 0 or columns < 0:
        raise ShapeError(f"random.orthogonal: a matrix of {n} rows and {columns} columns")
    size = (*shape_of(shape), max(n, columns), min(n, columns))
    q, r = np.linalg.qr(standard_normal(words_of(key, "orthogonal", size), kind))
    found = q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return np.swapaxes(found, -1, -2) if n < columns else found
