"""Discrete Fourier transforms along one axis: fft of complex numbers, rfft of real ones, and irfft, which gives real ones.

With w = exp(-2πi / n) they are y_k = s Σ_j x_j w^(jk), or with 1 / w where `inverse`; s is the attribute `scale`.  The matrix of
fft is symmetric, so it is its own transpose: the VJP is the same transform.  The VJPs of rfft and irfft are each other, up to
conjugates and a factor 2 for frequencies with a mirror image.  All other transforms are composed of these three.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.declaration import LINEAR
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import Op, Value, define_op
from bwcompiler.ir.routine import Fourier
from bwcompiler.ir.types import I64, TensorType, complex_of, component_of
from bwcompiler.ops.complex_parts import imag, make_complex, real
from bwcompiler.ops.creation import iota
from bwcompiler.ops.elementwise import bitwise_or, equal, full_like, select
from bwcompiler.ops.rules import require, require_axes


def _points(name: str, x: TensorType, axis: int, kind: str) -> int:
    """The extent of the axis of a transform."""
    require_axes(name, (axis,), x.rank)
    if x.dtype.kind != kind:
        raise DTypeError(f"{name} does not take {x.dtype.numpy}")
    extent = x.shape[axis]
    require(isinstance(extent, int) and extent > 0, f"{name}: the axis of a transform must have a fixed extent, not 0", x)
    return int(extent)  # type: ignore[arg-type]


def _with_extent(x: TensorType, axis: int, extent: int) -> tuple[Extent, ...]:
    return tuple([extent if k == axis else other for k, other in enumerate(x.shape)])


def fourier_transform(x: Any, *, axis: int, inverse: bool, scale: float) -> Any:
    """s Σ_j x_j w^(jk)."""
    found = np.fft.ifft(x, axis=axis, norm="forward") if inverse else np.fft.fft(x, axis=axis)
    return (found * scale).astype(x.dtype)


def real_fourier_transform(x: Any, *, axis: int, scale: float) -> Any:
    """The first half of the transform of real numbers, of which the other half is the mirrored conjugate."""
    return (np.fft.rfft(x, axis=axis) * scale).astype(np.result_type(x, np.complex64))


def inverse_real_fourier_transform(x: Any, *, axis: int, points: int, scale: float) -> Any:
    """The real numbers whose transform has this first half."""
    return (np.fft.irfft(x, points, axis=axis, norm="forward") * scale).astype(x.real.dtype)


def _fft_shape(x: TensorType, *, axis: int, inverse: bool, scale: float) -> TensorType:
    _points("fft", x, axis, "c")
    return x


def _rfft_shape(x: TensorType, *, axis: int, scale: float) -> TensorType:
    points = _points("rfft", x, axis, "f")
    return x.with_shape(_with_extent(x, axis, points // 2 + 1)).with_dtype(complex_of(x.dtype))


def _irfft_shape(x: TensorType, *, axis: int, points: int, scale: float) -> TensorType:
    frequencies = _points("irfft", x, axis, "c")
    require(points > 0 and frequencies == points // 2 + 1, f"irfft: {points} real numbers have {points // 2 + 1} frequencies", x)
    return x.with_shape(_with_extent(x, axis, points)).with_dtype(component_of(x.dtype))


def _shifted_axis(op: Callable[..., Value]) -> Callable[..., Value]:
    def batch(operands: Sequence[Value], batched: Any, size: Extent, *, axis: int, **attrs: Any) -> Value:
        return op(operands[0], axis=axis + 1, **attrs)
    return batch


def _mirrored(x: Value, axis: int, points: int, once: float, twice: float) -> Value:
    """conj(x), times `once` for a frequency that is its own mirror image (0, and points / 2), else times `twice`."""
    place = iota(shape=x.shape, axis=axis, dtype=I64)
    alone = equal(place, full_like(place, 0))
    if points % 2 == 0:
        alone = bitwise_or(alone, equal(place, full_like(place, points // 2)))
    re, im = real(x), imag(x)
    factor = select(alone, full_like(re, once), full_like(re, twice))
    return make_complex(re * factor, -(im * factor))


fft: Op = define_op(
    "fft", "library", doc="The discrete Fourier transform along an axis, times scale; with the sign of the exponent turned if inverse.",
    attributes=("axis", "inverse", "scale"), shape=_fft_shape, kinds="c", cheap=False,
    vjp=(lambda ct, out, x, *, axis, inverse, scale: fft(ct, axis=axis, inverse=inverse, scale=scale),), jvp=LINEAR,
    batch=_shifted_axis(lambda x, **attrs: fft(x, **attrs)), reference=fourier_transform, keeps_zero=True, library=Fourier(),
)
rfft: Op = define_op(
    "rfft", "library", doc="The first n // 2 + 1 frequencies of n real numbers along an axis, times scale.", attributes=("axis", "scale"),
    shape=_rfft_shape, kinds="f", cheap=False, vjp=(lambda ct, out, x, *, axis, scale: irfft(
        _mirrored(ct, axis, x.shape[axis], 1.0, 0.5), axis=axis, points=x.shape[axis], scale=scale),), jvp=LINEAR,
    batch=_shifted_axis(lambda x, **attrs: rfft(x, **attrs)), reference=real_fourier_transform, keeps_zero=True, library=Fourier(),
)
irfft: Op = define_op(
    "irfft", "library", doc="The n real numbers along an axis that have these n // 2 + 1 frequencies, times n and scale.",
    attributes=("axis", "points", "scale"), shape=_irfft_shape, kinds="c", cheap=False,
    vjp=(lambda ct, out, x, *, axis, points, scale: _mirrored(rfft(ct, axis=axis, scale=scale), axis, points, 1.0, 2.0),), jvp=LINEAR,
    batch=_shifted_axis(lambda x, **attrs: irfft(x, **attrs)), reference=inverse_real_fourier_transform, keeps_zero=True, library=Fourier(),
)
