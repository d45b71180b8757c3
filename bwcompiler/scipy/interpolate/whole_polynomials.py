"""Of `bw.scipy.interpolate`: one polynomial through all points, by Krogh's divided differences and by barycentric weights.

J.-P. Berrut and L. N. Trefethen, "Barycentric Lagrange interpolation", 2004.  At a point itself its formula is 0 / 0: what stands there is
the polynomial's expansion, so that first and second derivatives are right there, too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.transforms.reverse import stop_gradient
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import cast, is_traced, number_value, real_value
from bwcompiler.frontend.tracing.stand_ins import StandIn
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import F64
from bwcompiler.scipy.interpolate.piecewise import placed, prepared


def _checked(xi: Any, yi: Any, axis: int) -> tuple[Any, Any, int]:
    place = normalize_axis(axis, np.ndim(yi))
    if np.ndim(xi) != 1 or np.shape(xi)[0] != np.shape(yi)[place]:
        raise ValueError("x and y arrays must be equal in length along interpolation axis.")
    return (*prepared(xi, yi, place), place)


def _flat(values: Any) -> Any:
    rows: Any = fresh(number_value(values))
    return rows.reshape(rows.shape[0], -1)


def _of_orders(curve: Any, x: Any, der: Any) -> Any:
    """The derivative of an order, or of several, stacked."""
    return curve.derivative(x, int(der)) if np.ndim(der) == 0 else curve.derivatives(x, max(der) + 1)[np.asarray(der)]


# ----- Krogh's
@graph_function
def _divided_differences(xi: Any, yi: Any, repeated: tuple[int, ...]) -> Any:
    """Newton's coefficients; repeated: how often the point stood before each one already (then yi has a derivative there)."""
    x: Any = fresh(real_value(xi))
    y = _flat(yi)
    if not any(repeated):
        tops = [y[:1]]
        for k in range(1, y.shape[0]):
            y = (y[1:] - y[:-1]) / (x[k:] - x[:-k])[:, None]
            tops.append(y[:1])
        return np.concatenate(tops)
    found = [y[0]]
    column: list[Any] = []
    for k in range(1, y.shape[0]):
        s = repeated[k]
        kept, column = column, [y[k] / math.factorial(s)]
        for i in range(k - s):
            before = found[i] if s == 0 else kept[i + 1]
            column.append((before - column[i]) / (x[i] - x[k]))
        found.append(column[k - s])
    return np.stack(found)


@graph_function
def _newton(xi: Any, c: Any, points: Any, der: int) -> Any:
    """Derivatives 0 to der, stacked: the polynomial expanded at the points, by repeated Horner schemes."""
    x, at = fresh(real_value(xi)), fresh(cast(real_value(points), F64))
    rows: Any = fresh(number_value(c))
    flat = at.reshape(-1, 1)
    parts: Any = [rows[k] + 0 * flat for k in range(rows.shape[0])]
    found = []
    for m in range(der + 1):
        for j in range(len(parts) - 2, m - 1, -1):
            parts[j] = parts[j] + (flat - x[j - m]) * parts[j + 1]
        found.append(parts[m] * float(math.factorial(m)) if m < len(parts) else 0 * parts[0])
    return np.stack(found)


class KroghInterpolator(StandIn):
    """The polynomial through points, as scipy.interpolate.KroghInterpolator; where a point is repeated, yi are derivatives there.

    xi, yi and the points of a call may be traced; traced xi differ.  Raises ValueError for what does not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> cube = bw.scipy.interpolate.KroghInterpolator(np.array([0.0, 0.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0, 8.0]))
    >>> cube(np.array([0.5, 3.0])).tolist(), cube.derivative(2.0).tolist()
    ([0.125, 27.0], 12.0)
    """

    def __init__(self, xi: Any, yi: Any, axis: int = 0) -> None:
        super().__init__()
        self.xi, self.yi, self._axis = _checked(xi, yi, axis)
        count = np.shape(self.xi)[0]
        known = None if is_traced(xi) else np.asarray(xi)
        repeated = [0] * count
        for k in range(1, count):
            if known is not None and known[k] == known[k - 1]:
                repeated[k] = repeated[k - 1] + 1
        self.c = _divided_differences(self.xi, self.yi, repeated=tuple(repeated))

    def _all(self, x: Any, der: int) -> Any:
        found = _newton(self.xi, self.c, x, der=der)
        shape = (*np.shape(x), *self.yi.shape[1:])
        return [placed(found[m].reshape(shape), np.ndim(x), self._axis) for m in range(der + 1)]

    def __call__(self, x: Any) -> Any:
        return self._all(x, 0)[0]

    def derivative(self, x: Any, der: int = 1) -> Any:
        """The derivative of that order at x.

        >>> import numpy as np, bwcompiler as bw
        >>> curve = bw.scipy.interpolate.KroghInterpolator(np.arange(3.0), np.arange(3.0) ** 2)
        >>> float(curve.derivative(2.0).round(4))
        4.0
        """
        return self._all(x, der)[der]

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """The first `der` derivatives from the value on, stacked; None: as many as there are points.

        >>> import numpy as np, bwcompiler as bw
        >>> curve = bw.scipy.interpolate.KroghInterpolator(np.arange(3.0), np.arange(3.0) ** 2)
        >>> curve.derivatives(2.0).round(4).tolist()
        [4.0, 4.0, 2.0]
        """
        return np.stack(self._all(x, (np.shape(self.xi)[0] if der is None else der) - 1))


def krogh_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """The polynomial through points, or its derivative of order der, at x; a list of orders gives these, stacked.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.interpolate.krogh_interpolate(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]), 3.0).round(6).tolist()
    9.0
    """
    return _of_orders(KroghInterpolator(xi, yi, axis), x, der)


# ----- barycentric
@graph_function
def _weights(xi: Any) -> Any:
    x: Any = fresh(real_value(xi))
    scale = 4.0 / stop_gradient(np.max(x) - np.min(x)) if x.shape[0] > 1 else 1.0       # against overflow; it cancels
    gaps = (x[:, None] - x) * scale
    return 1.0 / np.prod(np.where(np.eye(x.shape[0], dtype=bool), 1.0, gaps), axis=1)


@graph_function
def _slopes(xi: Any, wi: Any, rows: Any) -> Any:
    """The derivative at the points, of the polynomial with these values there."""
    x, w, y = fresh(real_value(xi)), fresh(real_value(wi)), _flat(rows)
    diagonal = np.eye(x.shape[0], dtype=bool)
    matrix = np.where(diagonal, 0.0, w / w[:, None] / np.where(diagonal, 1.0, x[:, None] - x))
    return matrix @ y - np.sum(matrix, axis=1)[:, None] * y


@graph_function
def _barycentric(xi: Any, wi: Any, rows: Any, points: Any) -> Any:
    x, w, y = fresh(real_value(xi)), fresh(real_value(wi)), _flat(rows)
    at = fresh(cast(real_value(points), F64)).reshape(-1, 1)
    gaps = at - x
    hit = gaps == 0
    near = np.any(hit, axis=1, keepdims=True)
    shares = w / np.where(hit, 1.0, gaps)
    between = shares @ y / np.where(near, 1.0, np.sum(shares, axis=1, keepdims=True))
    first = _slopes(x, w, y)
    place = np.argmax(hit, axis=1)
    step = at - x[place][:, None]
    there = y[place] + step * (first[place] + step * 0.5 * _slopes(x, w, first)[place])
    return np.where(near, there, between)


class BarycentricInterpolator:
    """The polynomial through points, as scipy.interpolate.BarycentricInterpolator; stable also for many points that are well placed.

    xi, yi and the points of a call may be traced.  wi: the weights, if they are known.  Raises ValueError for what does not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> square = bw.scipy.interpolate.BarycentricInterpolator(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]))
    >>> square(np.array([1.0, 3.0])).round(6).tolist(), square.derivative(1.0).round(6).tolist()
    ([1.0, 9.0], 2.0)
    """

    def __init__(self, xi: Any, yi: Any = None, axis: int = 0, *, wi: Any = None, rng: Any = None, random_state: Any = None) -> None:
        self.xi, self._axis = xi, 0
        self.yi: Any = None
        self.wi = _weights(xi) if wi is None else wi
        if yi is not None:
            self.set_yi(yi, axis)

    def set_yi(self, yi: Any, axis: int | None = None) -> None:
        """Other values at the same points.  Raises ValueError for another number of them.

        >>> import numpy as np, bwcompiler as bw
        >>> curve = bw.scipy.interpolate.BarycentricInterpolator(np.arange(3.0), np.arange(3.0) ** 2)
        >>> curve.set_yi(np.ones(3))
        >>> float(curve(0.5).round(4))
        1.0
        """
        self.xi, self.yi, self._axis = _checked(self.xi, yi, 0 if axis is None else axis)

    def add_xi(self, xi: Any, yi: Any = None) -> None:
        """More points, with their values (none where there are no values yet).

        >>> import numpy as np, bwcompiler as bw
        >>> curve = bw.scipy.interpolate.BarycentricInterpolator(np.arange(3.0), np.arange(3.0) ** 2)
        >>> curve.add_xi(np.array([3.0]), np.array([0.0]))
        >>> float(curve(3.0))
        0.0
        """
        before = np.shape(self.xi)[0]
        self.xi = np.concatenate([self.xi, xi])
        self.wi = _weights(self.xi)
        if yi is None:
            self.yi = None
            return
        if self.yi is None or np.shape(self.yi)[0] != before:
            raise ValueError("No previous yi value to update!")
        self.yi = np.concatenate([self.yi, prepared(xi, yi, self._axis)[1]])

    def _at(self, x: Any, rows: Any) -> Any:
        if self.yi is None:
            raise ValueError("There are no values yet: set_yi")
        found = _barycentric(self.xi, self.wi, rows, x)
        return placed(found.reshape((*np.shape(x), *self.yi.shape[1:])), np.ndim(x), self._axis)

    def __call__(self, x: Any) -> Any:
        return self._at(x, self.yi)

    def derivative(self, x: Any, der: int = 1) -> Any:
        """The derivative of that order at x.

        >>> import numpy as np, bwcompiler as bw
        >>> curve = bw.scipy.interpolate.BarycentricInterpolator(np.arange(3.0), np.arange(3.0) ** 2)
        >>> float(curve.derivative(2.0).round(4))
        4.0
        """
        rows = self.yi
        for _ in range(der):
            rows = _slopes(self.xi, self.wi, rows)
        return self._at(x, rows)

    def derivatives(self, x: Any, der: int | None = None) -> Any:
        """The first `der` derivatives from the value on, stacked; None: as many as there are points.

        >>> import numpy as np, bwcompiler as bw
        >>> curve = bw.scipy.interpolate.BarycentricInterpolator(np.arange(3.0), np.arange(3.0) ** 2)
        >>> curve.derivatives(2.0).round(4).tolist()
        [4.0, 4.0, 2.0]
        """
        return np.stack([self.derivative(x, m) for m in range(np.shape(self.xi)[0] if der is None else der)])


def barycentric_interpolate(xi: Any, yi: Any, x: Any, axis: int = 0, *, der: Any = 0, rng: Any = None) -> Any:
    """The polynomial through points, or its derivative of order der, at x; a list of orders gives these, stacked.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.interpolate.barycentric_interpolate(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]), 3.0).round(6).tolist()
    9.0
    """
    return _of_orders(BarycentricInterpolator(xi, yi, axis), x, der)
