"""Of `bw.scipy.interpolate`: splines with FITPACK's methods, through given points or from its coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import is_traced
from bwcompiler.frontend.tracing.stand_ins import StandIn
from bwcompiler.scipy.interpolate.b_splines import BSpline, make_interp_spline, make_lsq_spline, splev

_CHOSEN = ("how many knots it chooses depends on the data\n"
           "  hint: s=0, for a spline through all points; or make_lsq_spline, whose knots are given")
_EXT = {0: 0, 1: 1, 2: 2, 3: 3, "extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


class FitpackSpline(StandIn):
    """Knots, coefficients and a degree, with the methods of scipy.interpolate.UnivariateSpline."""

    def __init__(self, spline: BSpline, ext: int | str = 0) -> None:
        super().__init__()
        if ext not in _EXT:
            raise ValueError(f"Unknown extrapolation mode {ext}.")
        self._spline = spline
        self.ext = _EXT[ext]

    def __call__(self, x: Any, nu: int = 0, ext: int | str | None = None) -> Any:
        """Values at x, or those of the derivative nu."""
        return splev(x, self._spline, nu, self.ext if ext is None else _EXT[ext])

    def derivative(self, n: int = 1) -> FitpackSpline:
        """The spline that is the derivative n.

        >>> import numpy as np, bwcompiler as bw
        >>> spline = bw.scipy.interpolate.InterpolatedUnivariateSpline(np.arange(5.0), np.arange(5.0) ** 2)
        >>> float(spline.derivative()(1.5).round(4))
        3.0
        """
        return FitpackSpline(self._spline.derivative(n), 1 if self.ext == 3 else self.ext)

    def antiderivative(self, n: int = 1) -> FitpackSpline:
        """The spline whose derivative n this is, 0 if it begins.

        >>> import numpy as np, bwcompiler as bw
        >>> spline = bw.scipy.interpolate.InterpolatedUnivariateSpline(np.arange(5.0), np.arange(5.0) ** 2)
        >>> float(spline.antiderivative()(3.0).round(4))
        9.0
        """
        return FitpackSpline(self._spline.antiderivative(n), self.ext)

    def integral(self, a: Any, b: Any) -> Any:
        """The integral from a to b of what lies between the first and the last knot.

        >>> import numpy as np, bwcompiler as bw
        >>> spline = bw.scipy.interpolate.InterpolatedUnivariateSpline(np.arange(5.0), np.arange(5.0) ** 2)
        >>> float(spline.integral(-1.0, 3.0).round(4))
        9.0
        """
        return self._spline.integrate(a, b, False)

    def derivatives(self, x: Any) -> Any:
        """The value and all derivatives at a point.

        >>> import numpy as np, bwcompiler as bw
        >>> spline = bw.scipy.interpolate.InterpolatedUnivariateSpline(np.arange(5.0), np.arange(5.0) ** 2)
        >>> spline.derivatives(1.0).round(4).tolist()[:3]
        [1.0, 2.0, 2.0]
        """
        return np.stack([self._spline(x, nu) for nu in range(self._spline.k + 1)])

    def get_coeffs(self) -> Any:
        """The coefficients.

        >>> import numpy as np, bwcompiler as bw
        >>> bw.scipy.interpolate.InterpolatedUnivariateSpline(np.arange(3.0), np.arange(3.0), k=1).get_coeffs().tolist()
        [0.0, 1.0, 2.0]
        """
        return self._spline.c

    def get_knots(self) -> Any:
        """The knots, those at the ends once.

        >>> import numpy as np, bwcompiler as bw
        >>> bw.scipy.interpolate.InterpolatedUnivariateSpline(np.arange(5.0), np.arange(5.0)).get_knots().tolist()
        [0.0, 2.0, 4.0]
        """
        k = self._spline.k
        return self._spline.t[k:np.shape(self._spline.t)[0] - k]


class InterpolatedUnivariateSpline(FitpackSpline):
    """The spline of degree k through points, as scipy.interpolate.InterpolatedUnivariateSpline; x and y may be traced.

    ext  outside of the points: 0 as it goes on, 1 zero, 3 as at the border.  bbox= is refused.

    >>> import numpy as np, bwcompiler as bw
    >>> spline = bw.scipy.interpolate.InterpolatedUnivariateSpline(np.arange(5.0), np.arange(5.0) ** 2)
    >>> float(spline(2.5).round(9))
    6.25
    """

    def __init__(self, x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: int | str = 0,
                 check_finite: bool = False) -> None:
        _require_ends_of_the_points("InterpolatedUnivariateSpline", bbox)
        super().__init__(make_interp_spline(x, y, _degree(k)), ext)


class LSQUnivariateSpline(FitpackSpline):
    """The spline of degree k with inner knots t that is nearest to points in the sense of least squares, as
    scipy.interpolate.LSQUnivariateSpline; all may be traced.

    w  a factor of each distance.  bbox= is refused.

    >>> import numpy as np, bwcompiler as bw
    >>> spline = bw.scipy.interpolate.LSQUnivariateSpline(np.arange(9.0), np.arange(9.0) ** 2, [4.0], k=2)
    >>> float(spline(2.5).round(9))
    6.25
    """

    def __init__(self, x: Any, y: Any, t: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, ext: int | str = 0,
                 check_finite: bool = False) -> None:
        _require_ends_of_the_points("LSQUnivariateSpline", bbox)
        super().__init__(_nearest(x, y, t, w, _degree(k)), ext)


def UnivariateSpline(x: Any, y: Any, w: Any = None, bbox: Any = (None, None), k: int = 3, s: Any = None, ext: int | str = 0,
                     check_finite: bool = False) -> InterpolatedUnivariateSpline:
    """For s=0 the spline through all points; others are refused (UnsupportedError), as data decide how many knots they have.

    >>> import numpy as np, bwcompiler as bw
    >>> float(bw.scipy.interpolate.UnivariateSpline(np.arange(5.0), np.arange(5.0) ** 2, s=0)(2.5).round(9))
    6.25
    """
    if is_traced(s) or s != 0:
        raise UnsupportedError(f"scipy.interpolate.UnivariateSpline of traced values: {_CHOSEN}")
    return InterpolatedUnivariateSpline(x, y, w, bbox, k, ext)


def splrep(x: Any, y: Any, w: Any = None, xb: Any = None, xe: Any = None, k: int = 3, task: int = 0, s: Any = None, t: Any = None,
           full_output: int = 0, per: int = 0, quiet: int = 1) -> tuple[Any, Any, int]:
    """Knots, coefficients and degree of the spline through all points, or with inner knots t of the nearest, for `splev`.

    Smoothing (s that is not 0, and w without s) is refused, as data decide how many knots there are; so are xb, xe, per and full_output.

    >>> import numpy as np, bwcompiler as bw
    >>> tck = bw.scipy.interpolate.splrep(np.arange(5.0), np.arange(5.0) ** 2)
    >>> float(bw.scipy.interpolate.splev(2.5, tck).round(9))
    6.25
    """
    if task == 1 or per or full_output or xb is not None or xe is not None:
        raise UnsupportedError("scipy.interpolate.splrep of traced values: xb=, xe=, task=1, per= and full_output= are not supported\n"
                               "  hint: CubicSpline(x, y, bc_type='periodic') for periodic ones")
    if t is not None:
        found = _nearest(x, y, t, w, _degree(k))
    elif is_traced(s) or (w is not None if s is None else s != 0):
        raise UnsupportedError(f"scipy.interpolate.splrep of traced values: {_CHOSEN}")
    else:
        found = make_interp_spline(x, y, _degree(k))
    return found.t, np.concatenate([found.c, np.zeros(k + 1)]), k           # FITPACK's coefficients are as many as knots


def _nearest(x: Any, y: Any, t: Any, w: Any, k: int) -> BSpline:
    points, inner = (one if is_traced(one) else np.asarray(one, np.float64) for one in (x, t))
    return make_lsq_spline(points, y, np.concatenate([points[:1]] * (k + 1) + [inner] + [points[-1:]] * (k + 1)), k, w)


def _degree(k: int) -> int:
    if not 1 <= k <= 5:
        raise ValueError("k should be 1 <= k <= 5")
    return k


def _require_ends_of_the_points(name: str, bbox: Any) -> None:
    if any(end is not None for end in bbox):
        raise UnsupportedError(f"{name} of traced values: bbox= is not supported\n  hint: make_interp_spline(x, y, k, t=knots)")
