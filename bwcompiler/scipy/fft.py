"""Functions of scipy.fft that work on traced and on plain arrays: Fourier, cosine and sine transforms, and their helpers.

Names, defaults and results are SciPy's; `overwrite_x`, `workers` and `plan` are accepted and change nothing.  The cosine and sine
transforms are written with complex transforms of twice the length (Wikipedia's definitions, SciPy's normalisation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import graph_function
from bwcompiler.frontend.numpy import fourier
from bwcompiler.frontend.numpy.axes import normalize_axis
from bwcompiler.frontend.tracing.operands import cast, constant, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import F64, component_of
from bwcompiler.scipy.missing import says_instead

Axes = int | Sequence[int] | None

# ----- Fourier transforms
@graph_function
def fft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
        plan: None = None) -> Any:
    """The discrete Fourier transform along an axis.

    x, n, axis, norm   as for np.fft.fft; the result is complex64 for single precision, else complex128.  Raises ValueError for n < 1.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.fft(np.array([1.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return fresh(fourier.transform(value_as(x), n, axis, norm, False))


@graph_function
def ifft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
         plan: None = None) -> Any:
    """The inverse of `fft`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.ifft(np.array([4.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return fresh(fourier.transform(value_as(x), n, axis, norm, True))


@graph_function
def rfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
         plan: None = None) -> Any:
    """The first n // 2 + 1 frequencies of real numbers.  Raises DTypeError for complex ones.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.rfft(np.array([1.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j)]
    """
    return fresh(fourier.real_transform(value_as(x), n, axis, norm))


@graph_function
def irfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
          plan: None = None) -> Any:
    """The inverse of `rfft`: n real numbers, 2 (m - 1) of m frequencies by default.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.irfft(np.array([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return fresh(fourier.inverse_real_transform(value_as(x), n, axis, norm))


@graph_function
def hfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
         plan: None = None) -> Any:
    """The transform, which is real, of an array that equals its mirrored conjugate, given by its first half.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.hfft(np.array([1.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return fresh(fourier.hermitian_transform(value_as(x), n, axis, norm))


@graph_function
def ihfft(x: Any, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False, workers: int | None = None, *,
          plan: None = None) -> Any:
    """The inverse of `hfft`: the first half of an array that equals its mirrored conjugate.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.ihfft(np.array([1.0, 1.0, 1.0, 1.0])).real.tolist()
    [1.0, 0.0, 0.0]
    """
    return fresh(fourier.inverse_hermitian_transform(value_as(x), n, axis, norm))


def _hermitian_transforms(x: Value, s: Any, axes: Any, norm: Any) -> Value:
    return fourier.inverse_real_transforms(fourier.conjugated(x), s, axes, fourier.turned(norm))


def _inverse_hermitian_transforms(x: Value, s: Any, axes: Any, norm: Any) -> Value:
    return fourier.conjugated(fourier.real_transforms(x, s, axes, fourier.turned(norm)))


def _several(name: str, rule: Callable[..., Value], default: Axes, of: str) -> Any:
    def function(x: Any, s: Axes = None, axes: Axes = default, norm: str | None = None, overwrite_x: bool = False,
                 workers: int | None = None, *, plan: None = None) -> Any:
        places = (axes,) if isinstance(axes, int) else axes
        counts, value = (s,) if isinstance(s, int) else s, value_as(x)
        if places is not None and len({normalize_axis(axis, value.rank) for axis in places}) < len(places):        # np.fft takes them
            raise ValueError("all axes must be unique")
        return fresh(rule(value, counts, places, norm))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""`{of}` along several axes: `axes`, all (or the last ones, as many as s has) if None; s: points along each.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.{name}(np.ones((4, 4))).shape
    {getattr(np.fft, name)(np.ones((4, 4))).shape if hasattr(np.fft, name) else (4, 6) if name.startswith("h") else (4, 3)}
    """
    return graph_function(function)


fftn, fft2 = (_several(name, fourier.fftn_rule, axes, "fft") for name, axes in (("fftn", None), ("fft2", (-2, -1))))
ifftn, ifft2 = (_several(name, fourier.ifftn_rule, axes, "ifft") for name, axes in (("ifftn", None), ("ifft2", (-2, -1))))
rfftn, rfft2 = (_several(name, fourier.real_transforms, axes, "rfft") for name, axes in (("rfftn", None), ("rfft2", (-2, -1))))
irfftn, irfft2 = (_several(name, fourier.inverse_real_transforms, axes, "irfft") for name, axes in (("irfftn", None), ("irfft2", (-2, -1))))
hfftn, hfft2 = (_several(name, _hermitian_transforms, axes, "hfft") for name, axes in (("hfftn", None), ("hfft2", (-2, -1))))
ihfftn, ihfft2 = (_several(name, _inverse_hermitian_transforms, axes, "ihfft") for name, axes in (("ihfftn", None), ("ihfft2", (-2, -1))))


@graph_function
def fftshift(x: Any, axes: Axes = None) -> Any:
    """The zero frequency moved to the middle.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.fftshift(np.arange(4.0)).tolist()
    [2.0, 3.0, 0.0, 1.0]
    """
    return np.fft.fftshift(x, axes)


@graph_function
def ifftshift(x: Any, axes: Axes = None) -> Any:
    """The inverse of `fftshift`.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.ifftshift(np.arange(3.0)).tolist()
    [1.0, 2.0, 0.0]
    """
    return np.fft.ifftshift(x, axes)


def fftfreq(n: int, d: Any = 1.0, *, xp: None = None, device: None = None) -> Any:
    """The frequencies of a transform of n samples that are d apart; d may be traced.

    >>> import bwcompiler as bw
    >>> bw.scipy.fft.fftfreq(4, 0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    """
    return np.fft.fftfreq(n, 1.0) / d


def rfftfreq(n: int, d: Any = 1.0, *, xp: None = None, device: None = None) -> Any:
    """The frequencies, from 0 on, of a transform of n real samples that are d apart; d may be traced.

    >>> import bwcompiler as bw
    >>> bw.scipy.fft.rfftfreq(4, 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.fft.rfftfreq(n, 1.0) / d


# ----- cosine and sine transforms
_INVERSE_TYPE = {1: 1, 2: 3, 3: 2, 4: 4}


@graph_function
def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False,
        workers: int | None = None, orthogonalize: bool | None = None) -> Any:
    """The discrete cosine transform of type 1 to 4 along an axis, of real or complex numbers.

    norm, orthogonalize   as in SciPy.  Raises ValueError for another type, n < 1, and n < 2 with type 1.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.dct(np.array([1.0, 1.0])).round(6).tolist()
    [4.0, 0.0]
    """
    return fresh(_trigonometric(value_as(x), "cosine", type, n, axis, norm, orthogonalize, False))


@graph_function
def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False,
         workers: int | None = None, orthogonalize: bool | None = None) -> Any:
    """The inverse of `dct` of the same type.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.idct(np.array([4.0, 0.0])).round(6).tolist()
    [1.0, 1.0]
    """
    return fresh(_trigonometric(value_as(x), "cosine", type, n, axis, norm, orthogonalize, True))


@graph_function
def dst(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False,
        workers: int | None = None, orthogonalize: bool | None = None) -> Any:
    """The discrete sine transform of type 1 to 4 along an axis; arguments and errors as for `dct`.

    >>> import numpy as np, bwcompiler as bw
    >>> abs(bw.scipy.fft.dst(np.array([1.0, -1.0])).round(6)).tolist()
    [0.0, 4.0]
    """
    return fresh(_trigonometric(value_as(x), "sine", type, n, axis, norm, orthogonalize, False))


@graph_function
def idst(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None, overwrite_x: bool = False,
         workers: int | None = None, orthogonalize: bool | None = None) -> Any:
    """The inverse of `dst` of the same type.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.idst(np.array([0.0, 4.0])).round(6).tolist()
    [1.0, -1.0]
    """
    return fresh(_trigonometric(value_as(x), "sine", type, n, axis, norm, orthogonalize, True))


def _several_trigonometric(name: str, kind: str, inverse: bool) -> Any:
    def function(x: Any, type: int = 2, s: Axes = None, axes: Axes = None, norm: str | None = None, overwrite_x: bool = False,
                 workers: int | None = None, *, orthogonalize: bool | None = None) -> Any:
        value = value_as(x)
        places, counts = fourier.places_and_counts(value, (s,) if isinstance(s, int) else s, (axes,) if isinstance(axes, int) else axes)
        for place, count in zip(places, counts, strict=True):
            value = _trigonometric(value, kind, type, count, place, norm, orthogonalize, inverse)
        return fresh(value)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""`{name[:-1]}` along several axes: `axes`, all (or the last ones, as many as s has) if None; s: points along each.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.scipy.fft.{name}(np.ones((2, 3))).shape
    (2, 3)
    """
    return graph_function(function)


dctn, idctn = (_several_trigonometric(name, "cosine", inverse) for name, inverse in (("dctn", False), ("idctn", True)))
dstn, idstn = (_several_trigonometric(name, "sine", inverse) for name, inverse in (("dstn", False), ("idstn", True)))


def _trigonometric(x: Value, kind: str, type: int, n: int | None, axis: int, norm: str | None, orthogonalize: bool | None,
                   inverse: bool) -> Value:
    if type not in _INVERSE_TYPE:
        raise ValueError(f"Invalid type ({type}); must be 1, 2, 3 or 4")
    x = x if x.dtype.is_differentiable else cast(x, F64)
    place = normalize_axis(axis, x.rank)
    x = fourier.with_count(x, place, fourier.point_count(x.shape[place] if n is None else n))
    count = int(x.shape[place])
    if kind == "cosine" and type == 1 and count < 2:
        raise ValueError("DCT-I is not defined for size < 2")
    orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    type = _INVERSE_TYPE[type] if inverse else type
    points = 2 * (count + (0 if type != 1 else -1 if kind == "cosine" else 1))           # of the periodic sequence behind it
    direction = fourier.turned(norm) if inverse else fourier.turned(fourier.turned(norm))
    scale = {"backward": 1.0, "ortho": 1.0 / math.sqrt(points), "forward": 1.0 / points}[direction]
    if x.dtype.is_complex:
        parts = [_of_real(part, kind, type, place, scale, orthogonal) for part in (ops.real(x), ops.imag(x))]
        return ops.make_complex(*parts)
    return _of_real(x, kind, type, place, scale, orthogonal)


_ROOT = math.sqrt(2.0)


def _of_real(x: Value, kind: str, type: int, axis: int, scale: float, orthogonal: bool) -> Value:
    """The transform; an orthogonal one weights the elements that have no mirror image."""
    count = int(x.shape[axis])
    ends = {("cosine", 1): (0, count - 1), ("cosine", 2): (0,), ("cosine", 3): (0,), ("sine", 2): (count - 1,),
            ("sine", 3): (count - 1,)}.get((kind, type), ()) if orthogonal else ()
    if type in (1, 3):
        x = _weighted(x, axis, ends, _ROOT)
    y = _TRANSFORMS[kind, type](x, axis, count, scale)
    return _weighted(y, axis, ends, 1.0 / _ROOT) if type in (1, 2) else y


def _weighted(x: Value, axis: int, places: Sequence[int], weight: float) -> Value:
    """x with the elements at these places of an axis multiplied by a weight."""
    if not places:
        return x
    factors = np.ones(x.shape[axis], x.dtype.numpy)
    factors[list(places)] = weight
    return ops.multiply(x, _along(factors, x, axis))


def _along(line: Any, like: Value, axis: int) -> Value:
    """The numbers along an axis of an array shaped like another one but for that axis."""
    shape = tuple([len(line) if k == axis else extent for k, extent in enumerate(like.shape)])
    return ops.broadcast(value_as(line), shape=shape, axes=(axis,))


def _turned_by(angles: Any, x: Value, axis: int) -> Value:
    """x exp(i angles) along an axis."""
    real = component_of(x.dtype).numpy
    cosines, sines = (_along(function(angles).astype(real), x, axis) for function in (np.cos, np.sin))
    if x.dtype.is_complex:
        return ops.multiply(x, ops.make_complex(cosines, sines))
    return ops.make_complex(ops.multiply(x, cosines), ops.multiply(x, sines))


def _even_extension(x: Value, axis: int, count: int, scale: float) -> Value:
    """DCT-I: the spectrum of x_0 ... x_(N-1) x_(N-2) ... x_1, which is real."""
    inner = ops.flip(ops.slice_axis(x, axis, 1, count - 2), axes=(axis,)) if count > 2 else None
    whole = x if inner is None else ops.concatenate(x, inner, axis=axis)
    return ops.real(ops.rfft(whole, axis=axis, scale=scale))


def _odd_extension(x: Value, axis: int, count: int, scale: float) -> Value:
    """DST-I: the spectrum of 0 x_0 ... x_(N-1) 0 -x_(N-1) ... -x_0, which is imaginary."""
    zero = constant(0.0, ops.slice_axis(x, axis, 0, 1))
    whole = ops.concatenate(zero, x, zero, ops.negative(ops.flip(x, axes=(axis,))), axis=axis)
    return ops.negative(ops.imag(ops.slice_axis(ops.rfft(whole, axis=axis, scale=scale), axis, 1, count)))


def _second(sine: bool) -> Callable[..., Value]:
    """Types II: 2 Σ x_n cos(π k (2n + 1) / 2N) is 2 Re of exp(-iπk / 2N) times the spectrum of x with N zeros behind it."""
    def transform(x: Value, axis: int, count: int, scale: float) -> Value:
        spectrum = ops.rfft(fourier.with_count(x, axis, 2 * count), axis=axis, scale=2.0 * scale)
        first = 1 if sine else 0
        places = np.arange(first, first + count)
        found = _turned_by(-math.pi * places / (2 * count), ops.slice_axis(spectrum, axis, first, count), axis)
        return ops.negative(ops.imag(found)) if sine else ops.real(found)
    return transform


def _third(sine: bool) -> Callable[..., Value]:
    """Types III: x_0 + 2 Σ x_n cos(π n (2k + 1) / 2N), the real numbers whose spectrum is x_n exp(iπn / 2N)."""
    def transform(x: Value, axis: int, count: int, scale: float) -> Value:
        first = 1 if sine else 0
        angles = math.pi * np.arange(first, first + count) / (2 * count) - (math.pi / 2 if sine else 0.0)
        spectrum = _turned_by(angles, x, axis)
        low = tuple([first if k == axis else 0 for k in range(x.rank)])
        high = tuple([1 - first if k == axis else 0 for k in range(x.rank)])
        whole = ops.pad(spectrum, low=low, high=high, value=0.0)
        return ops.slice_axis(ops.irfft(whole, axis=axis, points=2 * count, scale=scale), axis, 0, count)
    return transform


def _fourth(sine: bool) -> Callable[..., Value]:
    """Types IV: 2 Σ x_n cos(π (2k + 1) (2n + 1) / 4N), by a spectrum of x_n exp(-iπ (2n + 1) / 4N)."""
    def transform(x: Value, axis: int, count: int, scale: float) -> Value:
        places = np.arange(count)
        modulated = fourier.with_count(_turned_by(-math.pi * (2 * places + 1) / (4 * count), x, axis), axis, 2 * count)
        spectrum = ops.slice_axis(ops.fft(modulated, axis=axis, inverse=False, scale=2.0 * scale), axis, 0, count)
        found = _turned_by(-math.pi * places / (2 * count), spectrum, axis)
        return ops.negative(ops.imag(found)) if sine else ops.real(found)
    return transform


_TRANSFORMS: dict[tuple[str, int], Callable[..., Value]] = {
    ("cosine", 1): _even_extension, ("cosine", 2): _second(False), ("cosine", 3): _third(False), ("cosine", 4): _fourth(False),
    ("sine", 1): _odd_extension, ("sine", 2): _second(True), ("sine", 3): _third(True), ("sine", 4): _fourth(True)}


# ----- sizes
def next_fast_len(target: int, real: bool = False) -> int:
    """The smallest number from target on whose transform is fast: a product of 2, 3, 5 (and, of complex numbers, 7 and 11).

    >>> import bwcompiler as bw
    >>> bw.scipy.fft.next_fast_len(97), bw.scipy.fft.next_fast_len(97, real=True)
    (98, 100)
    """
    if target < 0:
        raise ValueError("Target cannot be negative")
    while not _is_fast(target, real):
        target += 1
    return target


def prev_fast_len(target: int, real: bool = False) -> int:
    """The largest number up to target whose transform is fast.

    >>> import bwcompiler as bw
    >>> bw.scipy.fft.prev_fast_len(97)
    96
    """
    if target <= 0:
        raise ValueError("Target must be positive")
    while not _is_fast(target, real):
        target -= 1
    return target


def _is_fast(number: int, real: bool) -> bool:
    if number < 2:
        return True
    for factor in (2, 3, 5) if real else (2, 3, 5, 7, 11):
        while number % factor == 0:
            number //= factor
    return number == 1


__all__ = """dct dctn dst dstn fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn idct idctn idst idstn ifft ifft2 ifftn ifftshift ihfft ihfft2
    ihfftn irfft irfft2 irfftn next_fast_len prev_fast_len rfft rfft2 rfftfreq rfftn""".split()

if not TYPE_CHECKING:
    __getattr__ = says_instead("fft", __all__)
