"""Functions and classes named as in scipy.interpolate that work on traced and on plain arrays.

Begin with `piecewise.py` (polynomials between points); `grids.py` has several dimensions, `b_splines.py` sums of B-splines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bwcompiler.scipy.interpolate.b_splines import BSpline, make_interp_spline, make_lsq_spline, splev
from bwcompiler.scipy.interpolate.fitpack_splines import (
    FitpackSpline,
    InterpolatedUnivariateSpline,
    LSQUnivariateSpline,
    UnivariateSpline,
    splrep,
)
from bwcompiler.scipy.interpolate.grids import (  # noqa: F401  (the refused ones, which say what to write instead, are not offered)
    CloughTocher2DInterpolator,
    LinearNDInterpolator,
    NearestNDInterpolator,
    RegularGridInterpolator,
    griddata,
    interp1d,
    interpn,
    make_smoothing_spline,
)
from bwcompiler.scipy.interpolate.piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
    pchip_interpolate,
)
from bwcompiler.scipy.interpolate.radial_basis_functions import RBFInterpolator
from bwcompiler.scipy.interpolate.rectangle_splines import BivariateSpline, RectBivariateSpline
from bwcompiler.scipy.interpolate.whole_polynomials import (
    BarycentricInterpolator,
    KroghInterpolator,
    barycentric_interpolate,
    krogh_interpolate,
)
from bwcompiler.scipy.missing import says_instead

__all__ = [
    "Akima1DInterpolator", "BSpline", "BarycentricInterpolator", "CubicHermiteSpline", "CubicSpline",
    "InterpolatedUnivariateSpline", "KroghInterpolator", "LSQUnivariateSpline", "PPoly", "PchipInterpolator", "RBFInterpolator",
    "RectBivariateSpline", "RegularGridInterpolator", "UnivariateSpline", "barycentric_interpolate", "interp1d", "interpn",
    "krogh_interpolate", "make_interp_spline", "make_lsq_spline", "pchip_interpolate", "splev", "splrep",
]


def converted(of: Any) -> Any:
    """An object of scipy.interpolate's as one of ours, which takes traced points; None if there is none."""
    kinds = {kind.__name__ for kind in type(of).__mro__}
    if "PPoly" in kinds:
        return PPoly(of.c, of.x, of.extrapolate, of.axis)
    if "BSpline" in kinds:
        found = BSpline(of.t, of.c, of.k, of.extrapolate)
        found.axis = of.axis
        return found
    if "UnivariateSpline" in kinds:
        return FitpackSpline(BSpline(*of._eval_args), of.ext)
    if "BivariateSpline" in kinds:
        (tx, ty, c), (kx, ky) = of.tck, of.degrees
        return BivariateSpline(tx, ty, c.reshape(tx.size - kx - 1, ty.size - ky - 1), kx, ky)
    if "RegularGridInterpolator" in kinds:
        return RegularGridInterpolator(of.grid, of.values, of.method, of.bounds_error, of.fill_value)
    if "RBFInterpolator" in kinds and of.neighbors is None:
        values = np.asarray(of.d).view(of.d_dtype).reshape(-1, *of.d_shape)
        return RBFInterpolator(of.y, values, None, of.smoothing, of.kernel, of.epsilon, int(of.powers.sum(1).max(initial=-1)))
    if "KroghInterpolator" in kinds:
        return KroghInterpolator(of.xi, _data(of), of._y_axis)
    if "BarycentricInterpolator" in kinds and of.yi is not None:
        return BarycentricInterpolator(of.xi, _data(of), of._y_axis, wi=of.wi)
    if "interp1d" in kinds:
        return _line(of)
    return None


def _data(of: Any) -> Any:
    """The values at the points as they were given."""
    rows = np.asarray(of.yi)
    return np.moveaxis(rows.reshape(rows.shape[0], *of._y_extra_shape), 0, of._y_axis)


def _line(of: Any) -> interp1d:
    kind = of._spline.k if of._kind == "spline" else of._kind
    fill = of.fill_value
    return interp1d(of.x, of.y, kind, of.axis, bounds_error=of.bounds_error, fill_value=fill, assume_sorted=True)

if not TYPE_CHECKING:
    __getattr__ = says_instead("interpolate", __all__)
