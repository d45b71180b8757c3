"""`bw.scipy.spatial.distance`: distances of vectors, of all pairs of rows (`cdist`, `pdist`), on traced and on plain arrays.

A metric is a formula of two arrays whose last axes are the vectors (`METRICS`); pairs are broadcasting.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import is_traced, real_value, value_as
from bwcompiler.frontend.tracing.tracer import fresh


# ----- formulas
def _weighted(terms: Any, w: Any) -> Any:
    return terms if w is None else terms * w


def _quotient(above: Any, below: Any, empty: float = 0.0) -> Any:
    """above / below, `empty` where both are 0."""
    zero = (below == 0) & (above == 0)
    return np.where(zero, empty, above / np.where(zero, 1.0, below))


def _root(x: Any) -> Any:
    """√x, whose derivative at 0 counts as 0."""
    zero = x == 0
    return np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, x)))


def _sqeuclidean(x: Any, y: Any, w: Any = None) -> Any:
    return _weighted((x - y) ** 2, w).sum(-1)


def _minkowski(x: Any, y: Any, p: float = 2.0, w: Any = None) -> Any:
    if p <= 0:
        raise ValueError("p must be greater than 0")
    size = np.abs(x - y)
    if math.isinf(p):
        return _chebyshev(x, y, w)
    if p == 1:
        return _weighted(size, w).sum(-1)
    if p == 2:
        return _root(_weighted(size * size, w).sum(-1))
    zero = size == 0
    total = _weighted(np.where(zero, 0.0, np.where(zero, 1.0, size) ** p), w).sum(-1)
    none = total == 0
    return np.where(none, 0.0, np.where(none, 1.0, total) ** (1.0 / p))


def _chebyshev(x: Any, y: Any, w: Any = None) -> Any:
    size = np.abs(x - y)
    return (size if w is None else np.where(w > 0, size, 0.0)).max(-1, initial=0.0)


def _seuclidean(x: Any, y: Any, V: Any) -> Any:
    return _root(((x - y) ** 2 / V).sum(-1))


def _mahalanobis(x: Any, y: Any, VI: Any) -> Any:
    difference = x - y
    return _root(((difference @ VI) * difference).sum(-1))


def _cosine(x: Any, y: Any, w: Any = None) -> Any:
    inner, one, two = (_weighted(terms, w).sum(-1) for terms in (x * y, x * x, y * y))
    return 1.0 - inner / np.sqrt(one * two)


def _correlation(x: Any, y: Any, w: Any = None) -> Any:
    share = None if w is None else w / np.sum(w)
    centred = [one - (one.mean(-1) if share is None else (one * share).sum(-1))[..., None] for one in (x, y)]
    return _cosine(centred[0], centred[1], w)


def _canberra(x: Any, y: Any, w: Any = None) -> Any:
    return _weighted(_quotient(np.abs(x - y), np.abs(x) + np.abs(y)), w).sum(-1)


def _braycurtis(x: Any, y: Any, w: Any = None) -> Any:
    return _weighted(np.abs(x - y), w).sum(-1) / _weighted(np.abs(x + y), w).sum(-1)


def _jensenshannon(x: Any, y: Any, base: float | None = None) -> Any:
    p, q = (one / one.sum(-1)[..., None] for one in (x, y))
    middle = (p + q) / 2.0

    def entropy(one: Any) -> Any:
        positive = (one > 0) & (middle > 0)
        quotient = np.where(positive, one, 1.0) / np.where(positive, middle, 1.0)
        return np.where(positive, one * np.log(quotient), np.where((one == 0) & (middle >= 0), one, math.inf))

    total = (entropy(p) + entropy(q)).sum(-1) / 2.0
    total = total if base is None else total / math.log(base)
    return _root(np.where(total < 0, 0.0, total))


def _hamming(x: Any, y: Any, w: Any = None) -> Any:
    differs = (x != y) * 1.0
    return differs.mean(-1) if w is None else (differs * w).sum(-1) / np.sum(w)


def _counts(x: Any, y: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    """How many elements are (1, 1), (1, 0), (0, 1), (0, 0); of other numbers than 0 and 1 parts of them, as in SciPy."""
    pairs = [_weighted(both, w).sum(-1) for both in (x * y, x * (1.0 - y), (1.0 - x) * y, (1.0 - x) * (1.0 - y))]
    return pairs[0], pairs[1], pairs[2], pairs[3]


def _dice(x: Any, y: Any, w: Any = None) -> Any:
    tt, tf, ft, _ = _counts(x, y, w)
    return (tf + ft) / (2.0 * tt + tf + ft)


def _jaccard(x: Any, y: Any, w: Any = None) -> Any:
    tt, tf, ft, _ = _counts((x != 0) * 1.0, (y != 0) * 1.0, w)
    return _quotient(tf + ft, tt + tf + ft)


def _rogerstanimoto(x: Any, y: Any, w: Any = None) -> Any:
    tt, tf, ft, ff = _counts(x, y, w)
    return 2.0 * (tf + ft) / (tt + ff + 2.0 * (tf + ft))


def _russellrao(x: Any, y: Any, w: Any = None) -> Any:
    tt, tf, ft, ff = _counts(x, y, w)
    return (tf + ft + ff) / (tt + tf + ft + ff)


def _sokalsneath(x: Any, y: Any, w: Any = None) -> Any:
    tt, tf, ft, _ = _counts(x, y, w)
    return 2.0 * (tf + ft) / (tt + 2.0 * (tf + ft))


def _yule(x: Any, y: Any, w: Any = None) -> Any:
    tt, tf, ft, ff = _counts(x, y, w)
    half = tf * ft
    none = half == 0
    return np.where(none, 0.0, 2.0 * half / np.where(none, 1.0, tt * ff + half))


METRICS: dict[str, Callable[..., Any]] = {
    "braycurtis": _braycurtis, "canberra": _canberra, "chebyshev": _chebyshev, "cityblock": lambda x, y, w=None: _minkowski(x, y, 1.0, w),
    "correlation": _correlation, "cosine": _cosine, "dice": _dice, "euclidean": lambda x, y, w=None: _minkowski(x, y, 2.0, w),
    "hamming": _hamming, "jaccard": _jaccard, "jensenshannon": _jensenshannon, "mahalanobis": _mahalanobis, "minkowski": _minkowski,
    "rogerstanimoto": _rogerstanimoto, "russellrao": _russellrao, "seuclidean": _seuclidean, "sokalsneath": _sokalsneath,
    "sqeuclidean": _sqeuclidean, "yule": _yule}
_OF_TRUTH_VALUES = ("rogerstanimoto", "russellrao", "sokalsneath", "yule")            # in matrices of distances
_WIDE = ("braycurtis", "canberra", "euclidean", "minkowski", "seuclidean", "mahalanobis", "dice", *_OF_TRUTH_VALUES)   # float64 always
_ALIASES = {
    "manhattan": "cityblock", "l1": "cityblock", "l2": "euclidean", "sqe": "sqeuclidean", "se": "seuclidean", "mahal":
    "mahalanobis", "js": "jensenshannon", "cos": "cosine", "co": "correlation", "euclid": "euclidean", "eu": "euclidean",
    "e": "euclidean", "cblock": "cityblock", "cb": "cityblock", "c": "cityblock", "chebychev": "chebyshev", "cheb":
    "chebyshev", "ch": "chebyshev", "cheby": "chebyshev", "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski", "ham":
    "hamming", "ja": "jaccard"}


def _formula(metric: Any) -> tuple[str, Callable[..., Any]]:
    if callable(metric):
        name = str(getattr(metric, "__name__", ""))
        if name not in METRICS:
            raise UnsupportedError(f"distances of traced vectors by the function {name or metric!r} are not supported\n"
                                   "  hint: bw.vmap(bw.vmap(metric, (None, 0)), (0, None))(XA, XB)")
        metric = name
    name = _ALIASES.get(str(metric).lower(), str(metric).lower())
    if name not in METRICS:
        raise ValueError(f"Unknown Distance Metric: {metric}")
    return name, METRICS[name]


def _vectors(given: Any, rank: int | None = None) -> Any:
    found: Any = fresh(real_value(given))
    if rank is not None and found.ndim != rank:
        raise ValueError(f"{'a 2-dimensional array' if rank == 2 else 'Input vector should be 1-D'} is expected, got shape {found.shape}")
    return found


@graph_function
def _pairs(x: Any, y: Any, first: Any, metric: str, number: float | None, one_set: bool) -> Any:
    """Distances of all rows of x from all of y; first: the array that the metric takes, number: the number (p, base)."""
    a = _vectors(x, 2)
    b = a if one_set else _vectors(y, 2)
    if a.shape[1] != b.shape[1]:
        raise ValueError("XA and XB must have the same number of columns (i.e. feature dimension.)")
    formula = METRICS[metric]
    a, b = (one.astype(np.float64) for one in (a, b))                       # SciPy's C code computes with doubles
    if metric in _OF_TRUTH_VALUES:
        a, b = ((one != 0) * 1.0 for one in (a, b))
    options: dict[str, Any] = {}
    if metric == "seuclidean":
        joint = a if one_set else np.concatenate([a, b])
        options["V"] = joint.var(0, ddof=1) if first is None else _vectors(first)
    elif metric == "mahalanobis":
        joint = a if one_set else np.concatenate([a, b])
        options["VI"] = np.linalg.inv(np.cov(joint.T).reshape(a.shape[1], a.shape[1])).T if first is None else _vectors(first)
    elif first is not None:
        options["w"] = _vectors(first)
    if number is not None:
        options["p" if metric == "minkowski" else "base"] = number
    if one_set:
        low, high = np.triu_indices(a.shape[0], 1)
        return formula(a[low], a[high], **options)
    return formula(a[:, None, :], b[None, :, :], **options)


def _distances(x: Any, y: Any, metric: Any, options: dict[str, Any], one_set: bool) -> Any:
    name, _ = _formula(metric)
    given = dict(options)
    if given.pop("out", None) is not None:
        raise UnsupportedError("distances of traced vectors: out= is not supported")
    array = given.pop({"seuclidean": "V", "mahalanobis": "VI"}.get(name, "w"), None)
    number = given.pop({"minkowski": "p", "jensenshannon": "base"}.get(name, ""), None)
    if given:
        raise TypeError(f"{name} got an unexpected keyword argument {next(iter(given))!r}")
    points = [one if is_traced(one) else np.asarray(one) for one in (x, x if one_set else y)]
    return _pairs(points[0], points[1], array if array is None or is_traced(array) else np.asarray(array), name,
                  None if number is None else float(number), one_set)


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distance of each row of XA from each of XB, as scipy.spatial.distance.cdist; metrics are names, or SciPy's functions.

    p= of minkowski, w= weights, V= of seuclidean, VI= of mahalanobis (from the data by default), base= of jensenshannon.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.spatial.distance.cdist(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    return _distances(XA, XB, metric, {**kwargs, "out": out}, False)


def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """The distances of all pairs of rows, in the order of `squareform`, as scipy.spatial.distance.pdist; see `cdist`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.spatial.distance.pdist(np.array([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]
    """
    return _distances(X, None, metric, {**kwargs, "out": out}, True)


@graph_function
def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """The symmetric matrix of the distances that `pdist` gives, or these of the matrix.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.spatial.distance.squareform(np.array([1.0, 3.0, 2.0])).tolist()
    [[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]]
    """
    given: Any = fresh(value_as(X))
    if given.ndim == 2 and force != "tomatrix":
        if given.shape[0] != given.shape[1]:
            raise ValueError("The matrix argument must be square.")
        return given[np.triu_indices(given.shape[0], 1)]
    if given.ndim != 1 or force == "tovector":
        raise ValueError(f"squareform: a vector or a square matrix is expected, got shape {given.shape}")
    n = round((1 + math.sqrt(1 + 8 * given.shape[0])) / 2)
    if n * (n - 1) // 2 != given.shape[0]:
        raise ValueError("Incompatible vector size. It must be a binomial coefficient n choose 2 for some integer n >= 2.")
    row, column = np.triu_indices(n, 1)
    places = np.full((n, n), given.shape[0])
    places[row, column] = places[column, row] = np.arange(given.shape[0])
    return np.concatenate([given, np.zeros(1, given.dtype)])[places]


# ----- of `bw.scipy.spatial`
@graph_function
def minkowski_distance_p(x: Any, y: Any, p: float = 2.0) -> Any:
    """Σ |x - y|**p over the last axis, arrays broadcast against each other; for p = inf the largest of |x - y|.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.spatial.minkowski_distance_p(np.array([0.0, 0.0]), np.array([3.0, 4.0])))
    25.0
    """
    size = np.abs(_vectors(x).astype(np.float64) - _vectors(y).astype(np.float64))
    if math.isinf(p):
        return size.max(-1)
    return size.sum(-1) if p == 1 else (size**p).sum(-1)


@graph_function
def minkowski_distance(x: Any, y: Any, p: float = 2.0) -> Any:
    """The root of order p of `minkowski_distance_p`.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.spatial.minkowski_distance(np.array([0.0, 0.0]), np.array([3.0, 4.0])))
    5.0
    """
    a, b = (_vectors(one).astype(np.float64) for one in (x, y))
    return _minkowski(a, b, p)


def distance_matrix(x: Any, y: Any, p: float = 2.0, threshold: int = 1000000) -> Any:
    """The distances of order p of all rows of x from all of y; threshold is of no use here.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.spatial.distance_matrix(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    if np.ndim(x) != 2 or np.ndim(y) != 2 or np.shape(x)[1] != np.shape(y)[1]:
        raise ValueError(f"x of shape {np.shape(x)} and y of shape {np.shape(y)} must be matrices with as many columns")
    return minkowski_distance(x[:, None, :], y[None, :, :], p)


# ----- of two vectors
def _of_vectors(name: str) -> Any:
    formula = METRICS[name]
    names = list(inspect.signature(formula).parameters)[2:]

    def function(u: Any, v: Any, first: Any, number: float | None) -> Any:
        options = {} if first is None else {names[-1] if name != "minkowski" else "w": _vectors(first)}
        if number is not None:
            options[names[0]] = number
        vectors = [_vectors(one, 1) for one in (u, v)]
        vectors = [one.astype(np.float64) for one in vectors] if name in _WIDE else vectors
        found = formula(*vectors, **options)
        whole = name in ("cityblock", "chebyshev") and not options and value_as(u).dtype.is_integer and value_as(v).dtype.is_integer
        return found.astype(np.promote_types(value_as(u).dtype.numpy, value_as(v).dtype.numpy)) if whole else found

    compiled = graph_function(function)
    scalar = names[0] if names and names[0] in ("p", "base") else None

    def distance(u: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > len(names):
            raise TypeError(f"{name} takes {2 + len(names)} positional arguments but {2 + len(args)} were given")
        given = dict(zip(names, args, strict=False)) | kwargs
        number = given.pop(scalar, None) if scalar else None
        arrays = [given.pop(one, None) for one in names if one != scalar]
        if given:
            raise TypeError(f"{name} got an unexpected keyword argument {next(iter(given))!r}")
        points = [one if is_traced(one) else np.asarray(one) for one in (u, v)]
        array = arrays[0] if arrays else None
        return compiled(points[0], points[1], array if array is None or is_traced(array) else np.asarray(array),
                        None if number is None else float(number))

    distance.__name__ = distance.__qualname__ = name
    distance.__doc__ = _documentation(name, formula)
    return distance


def _documentation(name: str, formula: Callable[..., Any]) -> str:
    """With an example, whose result the formula gives for plain arrays."""
    u, v = np.array([1.0, 0.0, 3.0]), np.array([2.0, 1.0, 1.0])
    needed = {"seuclidean": (", np.ones(3)", np.ones(3)), "mahalanobis": (", np.eye(3)", np.eye(3))}.get(name)
    found = formula(u, v, *(needed[1:] if needed else ()))
    return f"""The distance of two vectors, as scipy.spatial.distance.{name}.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.spatial.distance.{name}(np.array([1.0, 0.0, 3.0]), np.array([2.0, 1.0, 1.0]){needed[0] if needed else ""}).round(4))
    {float(np.round(found, 4))}
    """


_DISTANCES = {name: _of_vectors(name) for name in METRICS}
globals().update(_DISTANCES)


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """1 less the correlation of two vectors, or without centered less the cosine between them.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.spatial.distance.correlation(np.array([1.0, 0.0, 3.0]), np.array([2.0, 1.0, 1.0])).round(4))
    1.189
    """
    return _DISTANCES["correlation" if centered else "cosine"](u, v, w)


@graph_function
def jensenshannon(p: Any, q: Any, base: float | None = None, *, axis: int = 0, keepdims: bool = False) -> Any:
    """The distance of distributions along an axis, as scipy.spatial.distance.jensenshannon.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.spatial.distance.jensenshannon(np.array([1.0, 0.0, 3.0]), np.array([2.0, 1.0, 1.0])).round(4))
    0.4163
    """
    x, y = np.broadcast_arrays(*[np.moveaxis(_vectors(one).astype(np.float64), axis, -1) for one in (p, q)])
    found = _jensenshannon(x, y, base)
    return np.expand_dims(found, axis) if keepdims else found


__all__ = sorted([*METRICS, "cdist", "pdist", "squareform"])
