"""Functions named as in scipy.ndimage that work on traced and on plain arrays: filters, and interpolation of grids by splines.

A filter is a sum of shifted arrays (`filters.py`), or a reduction over windows (`ranks.py`, `morphology.py`; by a function of the user's:
`generic.py`), of the array extended beyond its edges (`edges.py`).  Interpolation is a sum over the neighbours of a position, with
B-spline weights (`places.py`).  Computations are in double precision; results have the input's dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bwcompiler.scipy.missing import says_instead
from bwcompiler.scipy.ndimage.binary import (
    binary_closing,
    binary_dilation,
    binary_erosion,
    binary_fill_holes,
    binary_opening,
    binary_propagation,
    label,
)
from bwcompiler.scipy.ndimage.filters import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from bwcompiler.scipy.ndimage.generic import generic_filter, generic_gradient_magnitude, generic_laplace
from bwcompiler.scipy.ndimage.measurements import (
    fourier_gaussian,
    fourier_shift,
    fourier_uniform,
    maximum,
    mean,
    minimum,
    standard_deviation,
    sum,
    sum_labels,
    variance,
)
from bwcompiler.scipy.ndimage.morphology import (
    black_tophat,
    center_of_mass,
    grey_closing,
    grey_opening,
    morphological_gradient,
    morphological_laplace,
    white_tophat,
)
from bwcompiler.scipy.ndimage.places import (
    affine_transform,
    map_coordinates,
    rotate,
    shift,
    spline_filter,
    spline_filter1d,
    zoom,
)
from bwcompiler.scipy.ndimage.ranks import (
    grey_dilation,
    grey_erosion,
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)

__all__ = [
    "affine_transform", "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes", "binary_opening",
    "binary_propagation", "black_tophat", "center_of_mass", "convolve", "convolve1d", "correlate", "correlate1d", "fourier_gaussian",
    "fourier_shift", "fourier_uniform", "gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace",
    "generic_filter", "generic_gradient_magnitude", "generic_laplace", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening",
    "label", "laplace", "map_coordinates", "maximum", "maximum_filter", "maximum_filter1d", "mean", "median_filter", "minimum",
    "minimum_filter", "minimum_filter1d", "morphological_gradient", "morphological_laplace", "percentile_filter", "prewitt",
    "rank_filter", "rotate", "shift", "sobel", "spline_filter", "spline_filter1d", "standard_deviation", "sum", "sum_labels",
    "uniform_filter", "uniform_filter1d", "variance", "white_tophat", "zoom",
]

if not TYPE_CHECKING:
    __getattr__ = says_instead("ndimage", __all__)
