"""numpy.fft: transforms of one and of several axes, and the shifts of their results.

`transform`, `real_transform` and `inverse_real_transform` work on values, along one axis; all others are composed of these.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import DTypeError
from bwcompiler.frontend.numpy.axes import normalize_axes, normalize_axis
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import delivered
from bwcompiler.frontend.numpy.manipulation.indexing import roll
from bwcompiler.frontend.tracing.operands import as_tracer, cast, value_as
from bwcompiler.frontend.tracing.promotion import common_dtype
from bwcompiler.frontend.tracing.registry import implements
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import F16, F32, F64, complex_of, component_of
from bwcompiler.ops.rules import zero_of

_TURNED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def turned(norm: str | None) -> str:
    """The norm= of the transform in the other direction; raises ValueError for an unknown one."""
    if norm not in _TURNED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return _TURNED[norm]


def _factor(x: Value, n: int, norm: str | None, inverse: bool) -> float:
    """The factor of a transform of n points, in the precision of x."""
    norm = turned(norm) if inverse else turned(turned(norm))
    kind = component_of(x.dtype).numpy.type
    if norm == "backward":
        return 1.0
    return float(kind(1) / (np.sqrt(kind(n)) if norm == "ortho" else kind(n)))


def point_count(n: Any) -> int:
    """A number of points; raises ValueError for one below 1."""
    count = operator.index(n)
    if count < 1:
        raise ValueError(f"Invalid number of FFT data points ({count}) specified.")
    return count


def with_count(x: Value, axis: int, count: int) -> Value:
    """x truncated, or padded with zeros at the end, to `count` elements along an axis."""
    extent = x.shape[axis]
    if extent >= count:
        return x if extent == count else ops.slice_axis(x, axis, 0, count)
    more = tuple([count - extent if k == axis else 0 for k in range(x.rank)])
    return ops.pad(x, low=(0,) * x.rank, high=more, value=zero_of(x.dtype))


def _as_complex(x: Value) -> Value:
    if x.dtype.is_complex:
        return x
    return cast(x, complex_of(x.dtype if x.dtype.is_float else F64))


def _axis(x: Value, axis: Any) -> int:
    if not x.rank:
        raise IndexError("tuple index out of range")
    return normalize_axis(axis, x.rank)


def transform(x: Value, n: Any, axis: Any, norm: str | None, inverse: bool) -> Value:
    """fft, or ifft if inverse."""
    place = _axis(x, axis)
    count = point_count(x.shape[place] if n is None else n)
    x = with_count(_as_complex(x), place, count)
    return ops.fft(x, axis=place, inverse=inverse, scale=_factor(x, count, norm, inverse))


def real_transform(x: Value, n: Any, axis: Any, norm: str | None) -> Value:
    """rfft."""
    place = _axis(x, axis)
    if x.dtype.is_complex:
        raise DTypeError(f"np.fft.rfft: the transform of real numbers, got {x.dtype.numpy}\n  hint: np.fft.fft")
    x = x if x.dtype.is_float else cast(x, common_dtype((x.dtype, F64)))
    count = point_count(x.shape[place] if n is None else n)
    return ops.rfft(with_count(x, place, count), axis=place, scale=_factor(x, count, norm, False))


def inverse_real_transform(x: Value, n: Any, axis: Any, norm: str | None) -> Value:
    """irfft."""
    place = _axis(x, axis)
    count = point_count(2 * (x.shape[place] - 1) if n is None else n)
    x = with_count(_as_complex(x), place, count // 2 + 1)
    return ops.irfft(x, axis=place, points=count, scale=_factor(x, count, norm, True))


def conjugated(x: Value) -> Value:
    return ops.conjugate(x) if x.dtype.is_complex else x


def hermitian_transform(x: Value, n: Any, axis: Any, norm: str | None) -> Value:
    """hfft."""
    return inverse_real_transform(conjugated(x), n, axis, turned(norm))


def inverse_hermitian_transform(x: Value, n: Any, axis: Any, norm: str | None) -> Value:
    """ihfft."""
    return conjugated(real_transform(x, n, axis, turned(norm)))


# ----- along several axes
def places_and_counts(x: Value, s: Any, axes: Any, mirrored: bool = False) -> tuple[list[int], list[int]]:
    """Axes and numbers of points; mirrored: the last axis has only the first half of the frequencies."""
    if axes is None:
        axes = range(x.rank) if s is None else range(-len(s), 0)
    places = [normalize_axis(axis, x.rank) for axis in axes]
    if s is None:
        counts = [int(x.shape[place]) for place in places]
        if mirrored and counts:
            counts[-1] = 2 * (counts[-1] - 1)
    else:
        counts = [int(x.shape[place]) if count == -1 else operator.index(count) for count, place in zip(s, places, strict=False)]
    if len(counts) != len(places):
        raise ValueError("Shape and axes have different lengths.")
    return places, counts


def transforms(x: Value, s: Any, axes: Any, norm: str | None, inverse: bool) -> Value:
    """fftn, ifftn; without axes x itself, with its dtype."""
    places, counts = places_and_counts(x, s, axes)
    for place, count in zip(reversed(places), reversed(counts), strict=True):
        x = transform(x, count, place, norm, inverse)
    return x


def real_transforms(x: Value, s: Any, axes: Any, norm: str | None) -> Value:
    """rfftn."""
    places, counts = places_and_counts(x, s, axes)
    if not places:
        raise IndexError("list index out of range")
    x = real_transform(x, counts[-1], places[-1], norm)
    for place, count in zip(places[-2::-1], counts[-2::-1], strict=True):
        x = transform(x, count, place, norm, False)
    return x


def inverse_real_transforms(x: Value, s: Any, axes: Any, norm: str | None) -> Value:
    """irfftn."""
    places, counts = places_and_counts(x, s, axes, mirrored=True)
    if not places:
        raise IndexError("list index out of range")
    for place, count in zip(places[:-1], counts[:-1], strict=True):
        x = transform(x, count, place, norm, True)
    return inverse_real_transform(x, counts[-1], places[-1], norm)


# ----- NumPy's functions
def _as_small_as(x: Value, found: Value) -> Value:
    """Real results of float16 along one axis are float16, though computed as float32."""
    return cast(found, F16) if x.dtype is F16 and found.dtype is F32 else found


def _of_one_axis(name: str, rule: Callable[..., Value]) -> None:
    def function(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
        value = value_as(a)
        return delivered(f"fft.{name}", _as_small_as(value, rule(value, n, axis, norm)), out)

    implements(getattr(np.fft, name))(function)


def _of_axes(name: str, rule: Callable[..., Value], default: Sequence[int] | None) -> None:
    def function(a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None) -> Any:
        value, unstated = value_as(a), s is None and axes is None
        found = rule(value, s, axes, norm)
        one = value.rank == 1 if unstated else len(axes if axes is not None else s) == 1
        return delivered(f"fft.{name}", _as_small_as(value, found) if one else found, out)

    implements(getattr(np.fft, name))(function)


def fft_rule(x: Value, n: Any, axis: Any, norm: Any) -> Value:
    return transform(x, n, axis, norm, False)


def ifft_rule(x: Value, n: Any, axis: Any, norm: Any) -> Value:
    return transform(x, n, axis, norm, True)


def fftn_rule(x: Value, s: Any, axes: Any, norm: Any) -> Value:
    return transforms(x, s, axes, norm, False)


def ifftn_rule(x: Value, s: Any, axes: Any, norm: Any) -> Value:
    return transforms(x, s, axes, norm, True)


ONE_AXIS: dict[str, Callable[..., Value]] = {
    "fft": fft_rule, "ifft": ifft_rule, "rfft": real_transform, "irfft": inverse_real_transform, "hfft": hermitian_transform,
    "ihfft": inverse_hermitian_transform}
SEVERAL_AXES: dict[str, Callable[..., Value]] = {
    "fftn": fftn_rule, "ifftn": ifftn_rule, "rfftn": real_transforms, "irfftn": inverse_real_transforms}
for _name, _rule in ONE_AXIS.items():
    _of_one_axis(_name, _rule)
for _name, _rule in SEVERAL_AXES.items():
    _of_axes(_name, _rule, None)
    _of_axes(f"{_name[:-1]}2", _rule, (-2, -1))


def _shifted_half(sign: int) -> Any:
    """np.fft.fftshift and ifftshift: the middle moved to the front, or back."""
    def function(x: Any, axes: Any = None) -> Any:
        array = as_tracer(x)
        places = normalize_axes(axes, array.ndim)
        shifts = [(array.shape[k] // 2) * sign for k in places]
        return roll(array, shifts, places)
    return function


implements(np.fft.fftshift)(_shifted_half(1))
implements(np.fft.ifftshift)(_shifted_half(-1))
