"""Functions of scipy.fftpack, the predecessor of scipy.fft, that work on traced and on plain arrays.

Names, defaults and results are SciPy's: `idct` and `idst` without norm are not divided by the number of points, and `rfft` gives real
numbers.  `overwrite_x` changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.scipy import fft as _fft
from bwcompiler.scipy.missing import says_instead

Axes = int | Sequence[int] | None
_INVERSE_TYPE = {1: 1, 2: 3, 3: 2, 4: 4}


# ----- Fourier transforms
def fft(x: Any, n: int | None = None, axis: int = -1, overwrite_x: bool = False) -> Any:
    """The discrete Fourier transform along an axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fftpack.fft(np.array([1.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _fft.fft(x, n, axis)


def ifft(x: Any, n: int | None = None, axis: int = -1, overwrite_x: bool = False) -> Any:
    """The inverse of `fft`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fftpack.ifft(np.array([4.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _fft.ifft(x, n, axis)


def _several(name: str, default: Axes) -> Any:
    transform = getattr(_fft, name)

    def function(x: Any, shape: Axes = None, axes: Axes = default, overwrite_x: bool = False) -> Any:
        return transform(x, shape, axes)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""As scipy.fft.{name}; shape: points along each axis.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fftpack.{name}(np.ones((4, 4))).shape
    (4, 4)
    """
    return function


fftn, ifftn = (_several(name, None) for name in ("fftn", "ifftn"))
fft2, ifft2 = (_several(name, (-2, -1)) for name in ("fft2", "ifft2"))


@graph_function
def rfft(x: Any, n: int | None = None, axis: int = -1, overwrite_x: bool = False) -> Any:
    """The transform of real numbers, in as many: y0, Re y1, Im y1, Re y2 ...

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fftpack.rfft(np.array([0.0, 1.0, 0.0, 0.0])).tolist()
    [1.0, 0.0, -1.0, -1.0]
    """
    count = x.shape[axis] if n is None else n
    spectrum = np.moveaxis(np.fft.rfft(x, n, axis), axis, -1)
    parts = np.stack([np.real(spectrum), np.imag(spectrum)], -1)
    flat = np.reshape(parts, (*spectrum.shape[:-1], 2 * spectrum.shape[-1]))
    return np.moveaxis(np.concatenate([flat[..., :1], flat[..., 2:count + 1]], -1), -1, axis)


@graph_function
def irfft(x: Any, n: int | None = None, axis: int = -1, overwrite_x: bool = False) -> Any:
    """The inverse of `rfft`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fftpack.irfft(np.array([1.0, 0.0, -1.0, -1.0])).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    x = np.moveaxis(x, axis, -1)
    count = x.shape[-1] if n is None else n
    x = np.concatenate([x[..., :count], np.zeros((*x.shape[:-1], max(count - x.shape[-1], 0)), x.dtype)], -1)
    real, imaginary = np.concatenate([x[..., :1], x[..., 1::2]], -1), x[..., 2::2]
    zeros = np.zeros((*x.shape[:-1], 1), x.dtype)
    imaginary = np.concatenate([zeros, imaginary, zeros], -1)[..., :count // 2 + 1]
    return np.moveaxis(np.fft.irfft(real + 1j * imaginary, count, -1), -1, axis)


fftfreq, fftshift, ifftshift = _fft.fftfreq, _fft.fftshift, _fft.ifftshift


# ----- cosine and sine transforms
def _trigonometric(name: str, inverse: bool) -> Any:
    transform = getattr(_fft, name)

    def function(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False) -> Any:
        return transform(x, _INVERSE_TYPE.get(type, type) if inverse else type, n, axis, norm)

    return _named(function, f"i{name}" if inverse else name, name, inverse)


def _trigonometrics(name: str, inverse: bool) -> Any:
    transform = getattr(_fft, name)

    def function(x: Any, type: int = 2, shape: Axes = None, axes: Axes = None, norm: str | None = None, overwrite_x: bool = False) -> Any:
        return transform(x, _INVERSE_TYPE.get(type, type) if inverse else type, shape, axes, norm)

    return _named(function, f"i{name}" if inverse else name, name, inverse)


def _named(function: Callable[..., Any], name: str, forward: str, inverse: bool) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    times = f"The inverse of `{forward}`, times the number of points along each axis, and 2; with norm=\"ortho\" the inverse."
    function.__doc__ = f"""{times if inverse else f"As scipy.fft.{name}."}

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fftpack.{name}(np.ones((2, 3))).shape
    (2, 3)
    """
    return function


dct, idct, dst, idst = (_trigonometric(name, inverse) for name in ("dct", "dst") for inverse in (False, True))
dctn, idctn, dstn, idstn = (_trigonometrics(name, inverse) for name in ("dctn", "dstn") for inverse in (False, True))

__all__ = """dct dctn dst dstn fft fft2 fftfreq fftn fftshift idct idctn idst idstn ifft ifft2 ifftn ifftshift irfft rfft""".split()

if not TYPE_CHECKING:
    __getattr__ = says_instead("fftpack", __all__)
