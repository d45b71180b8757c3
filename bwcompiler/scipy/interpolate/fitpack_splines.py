"""Of `bw.scipy.interpolate`: splines with FITPACK's methods, through given points or from its coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.scipy.interpolate.b_splines import BSpline, make_interp_spline, splev

_EXT = {0: 0, 1: 1, 2: 2, 3: 3, "extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}


class FitpackSpline:
    """Knots, coefficients and a degree, with the methods of scipy.interpolate.UnivariateSpline."""

    def __init__(self, spline: BSpline, ext: int | str = 0) -> None:
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
        if any(end is not None for end in bbox):
            raise UnsupportedError("InterpolatedUnivariateSpline of traced values: bbox= is not supported\n"
                                   "  hint: make_interp_spline(x, y, k, t=knots)")
        if not 1 <= k <= 5:
            raise ValueError("k should be 1 <= k <= 5")
        super().__init__(make_interp_spline(x, y, k), ext)
