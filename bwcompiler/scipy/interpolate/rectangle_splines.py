"""Of `bw.scipy.interpolate`: splines over a rectangle, products of B-splines along two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import cast, is_traced, real_value
from bwcompiler.frontend.tracing.stand_ins import StandIn
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.types import F64
from bwcompiler.scipy.interpolate.b_splines import basis, differentiated, make_interp_spline


def _inside(t: Any, k: int, at: Any) -> Any:
    """Points, moved to the border where they are outside, as FITPACK does."""
    return np.clip(at, t[k], t[t.shape[0] - k - 1])


@graph_function
def _at_points(tx: Any, ty: Any, c: Any, x: Any, y: Any, kx: int, ky: int, dx: int, dy: int) -> Any:
    """Σ c[i, j] B_i(x) B_j(y) of points x and y of one shape, or of what is differentiated so often along each axis."""
    tx, ty, c = fresh(real_value(tx)), fresh(real_value(ty)), fresh(real_value(c))
    x, y = (fresh(cast(real_value(one), F64)) for one in (x, y))
    x, y = np.broadcast_arrays(_inside(tx, kx, x), _inside(ty, ky, y))
    for _ in range(dx):
        tx, c, kx = differentiated(tx, c, kx)
    for _ in range(dy):
        ty, turned, ky = differentiated(ty, c.T, ky)
        c = turned.T
    (row, rows), (column, columns) = basis(tx, kx, tx.shape[0] - kx - 1, x), basis(ty, ky, ty.shape[0] - ky - 1, y)
    total: Any = 0.0
    for i, left in enumerate(rows):
        for j, right in enumerate(columns):
            total = total + left * right * c[row + (i - kx), column + (j - ky)]
    return total


class BivariateSpline(StandIn):
    """Σ c[i, j] B_i(x) B_j(y), with the methods of scipy.interpolate.BivariateSpline; outside of the rectangle it is as at the border."""

    def __init__(self, tx: Any, ty: Any, c: Any, kx: int, ky: int) -> None:
        super().__init__()
        self.tck, self.degrees = (tx, ty, c), (kx, ky)

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        """Values at all pairs of x and y, or at points; of derivatives of orders dx and dy."""
        if not grid:
            return self.ev(x, y, dx, dy)
        x, y = (one if is_traced(one) else np.asarray(one, np.float64) for one in (x, y))
        return self.ev(np.atleast_1d(x)[:, None], np.atleast_1d(y), dx, dy)

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """Values at points.

        >>> import numpy as np, bwcompiler as bw
        >>> plane = bw.scipy.interpolate.RectBivariateSpline(np.arange(4.0), np.arange(4.0), np.arange(16.0).reshape(4, 4))
        >>> float(plane.ev(0.5, 1.0, dx=1).round(9))
        4.0
        """
        return _at_points(*self.tck, xi, yi, *self.degrees, dx, dy)


class RectBivariateSpline(BivariateSpline):
    """The product of splines of degrees kx and ky through values z on a grid, as scipy.interpolate.RectBivariateSpline; all may be traced.

    bbox= and smoothing (s=) are refused (UnsupportedError).

    >>> import numpy as np, bwcompiler as bw
    >>> x, y = np.arange(4.0), np.arange(5.0)
    >>> float(bw.scipy.interpolate.RectBivariateSpline(x, y, x[:, None] ** 2 * y).ev(1.5, 2.0).round(9))
    4.5
    """

    def __init__(self, x: Any, y: Any, z: Any, bbox: Any = (None, None, None, None), kx: int = 3, ky: int = 3, s: Any = 0,
                 maxit: int = 20) -> None:
        if any(end is not None for end in bbox):
            raise UnsupportedError("RectBivariateSpline of traced values: bbox= is not supported\n"
                                   "  hint: make_interp_spline along each axis, with knots t")
        if is_traced(s) or s != 0:
            raise UnsupportedError("RectBivariateSpline of traced values: how many knots a smoothing spline has depends on the data\n"
                                   "  hint: s=0, for a spline through all points")
        if np.shape(z) != (np.shape(x)[0], np.shape(y)[0]):
            raise ValueError(f"z must have shape {(np.shape(x)[0], np.shape(y)[0])}, one number per point of the grid, got {np.shape(z)}")
        along_x = make_interp_spline(x, z, kx)
        along_y = make_interp_spline(y, along_x.c, ky, axis=1)
        super().__init__(along_x.t, along_y.t, np.moveaxis(along_y.c, 0, 1), kx, ky)
