"""Morphology of grey values: openings, closings, gradients and hats, made of erosions and dilations; and centres of mass."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.operands import real_value
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.scipy.ndimage.edges import Edges
from bwcompiler.scipy.ndimage.measurements import sum_labels
from bwcompiler.scipy.ndimage.ranks import grey_dilation, grey_erosion


def _require_no_output(name: str, output: Any) -> None:
    if output is not None:
        raise UnsupportedError(f"scipy.ndimage.{name} of traced values: output= is not supported\n"
                               "  hint: use what it returns, and .astype(dtype) of it")


def grey_opening(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None, mode: Edges = "reflect",
                 cval: Any = 0.0, origin: Any = 0, *, axes: Any = None) -> Any:
    """The dilation of the erosion: peaks that are narrower than the window are cut off.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.grey_opening(np.array([1.0, 5.0, 2.0, 2.0, 2.0]), 3).tolist()
    [1.0, 2.0, 2.0, 2.0, 2.0]
    """
    eroded = grey_erosion(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return grey_dilation(eroded, size, footprint, structure, output, mode, cval, origin, axes=axes)


def grey_closing(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None, mode: Edges = "reflect",
                 cval: Any = 0.0, origin: Any = 0, *, axes: Any = None) -> Any:
    """The erosion of the dilation: gaps that are narrower than the window are filled.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.grey_closing(np.array([1.0, 0.0, 2.0, 2.0, 2.0]), 3).tolist()
    [1.0, 1.0, 2.0, 2.0, 2.0]
    """
    dilated = grey_dilation(input, size, footprint, structure, None, mode, cval, origin, axes=axes)
    return grey_erosion(dilated, size, footprint, structure, output, mode, cval, origin, axes=axes)


def morphological_gradient(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                           mode: Edges = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None) -> Any:
    """The dilation less the erosion.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.morphological_gradient(np.array([1.0, 1.0, 4.0, 4.0]), 3).tolist()
    [0.0, 3.0, 3.0, 0.0]
    """
    _require_no_output("morphological_gradient", output)
    options = (size, footprint, structure, None, mode, cval, origin)
    return grey_dilation(input, *options, axes=axes) - grey_erosion(input, *options, axes=axes)


def morphological_laplace(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
                          mode: Edges = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None) -> Any:
    """The dilation and the erosion, less twice the input.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.morphological_laplace(np.array([1.0, 1.0, 4.0, 4.0]), 3).tolist()
    [0.0, 3.0, -3.0, 0.0]
    """
    _require_no_output("morphological_laplace", output)
    options = (size, footprint, structure, None, mode, cval, origin)
    return grey_dilation(input, *options, axes=axes) + grey_erosion(input, *options, axes=axes) - input - input


def white_tophat(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None, mode: Edges = "reflect",
                 cval: Any = 0.0, origin: Any = 0, *, axes: Any = None) -> Any:
    """The input less its opening: its narrow peaks.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.white_tophat(np.array([1.0, 5.0, 2.0, 2.0, 2.0]), 3).tolist()
    [0.0, 3.0, 0.0, 0.0, 0.0]
    """
    _require_no_output("white_tophat", output)
    return input - grey_opening(input, size, footprint, structure, None, mode, cval, origin, axes=axes)


def black_tophat(input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None, mode: Edges = "reflect",
                 cval: Any = 0.0, origin: Any = 0, *, axes: Any = None) -> Any:
    """The closing less the input: its narrow gaps.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.ndimage.black_tophat(np.array([1.0, 0.0, 2.0, 2.0, 2.0]), 3).tolist()
    [0.0, 1.0, 0.0, 0.0, 0.0]
    """
    _require_no_output("black_tophat", output)
    return grey_closing(input, size, footprint, structure, None, mode, cval, origin, axes=axes) - input


@graph_function
def center_of_mass(input: Any, labels: Any = None, index: Any = None) -> Any:
    """The mean of the places along each axis, weighted with the values; a tuple, for several labels a list of them.

    >>> import numpy as np, bwcompiler as bw
    >>> [float(place) for place in bw.scipy.ndimage.center_of_mass(np.array([[0.0, 1.0], [0.0, 3.0]]))]
    [0.75, 1.0]
    """
    values: Any = fresh(real_value(input))
    total = sum_labels(values, labels, index)
    grids = np.ogrid[tuple([slice(0, extent) for extent in values.shape])]
    places = [sum_labels(values * grid.astype(values.dtype), labels, index) / total for grid in grids]
    return tuple(places) if not np.ndim(total) else [tuple(place[k] for place in places) for k in range(np.shape(total)[0])]
