"""Legalisation of sliding windows: windows are read directly from their array, and never stored (see `legalize`)."""

from __future__ import annotations

from typing import Any

from bwcompiler import ops
from bwcompiler.ir.extent import element_count
from bwcompiler.ir.op import Op, Value
from bwcompiler.ir.types import TensorType
from bwcompiler.ops.linalg.contraction import is_matrix_transpose
from bwcompiler.ops.rules import zero_of
from bwcompiler.passes.rewriting.rewriter import Rule


def _unpadded_windows(type_: TensorType, x: Value, *, low: tuple[int, ...], high: tuple[int, ...], **attrs: Any) -> Value | None:
    """Windows of a padded array."""
    if not any((*low, *high)):
        return None
    outside, none = (0,) * (x.rank - len(low)), (0,) * len(low)
    padded = ops.pad(x, low=outside + low, high=outside + high, value=zero_of(x.dtype))
    return ops.windows(padded, low=none, high=none, **attrs)


def _unpadded_windows_add(type_: TensorType, x: Value, *, low: tuple[int, ...], high: tuple[int, ...], shape: tuple[Any, ...],
                          **attrs: Any) -> Value | None:
    """The adjoint of windows of a padded array, without what was added to the padding."""
    if not any((*low, *high)):
        return None
    lead, none = type_.rank - len(low), (0,) * len(low)
    whole = (*shape[:lead], *[extent + a + b for extent, a, b in zip(shape[lead:], low, high, strict=True)])
    added = ops.windows_add(x, low=none, high=none, shape=whole, **attrs)
    return ops.slice(added, starts=(0,) * lead + low, sizes=type_.shape, steps=(1,) * type_.rank)


def windows_by_column(type_: TensorType, x: Value, y: Value) -> Value | None:
    """windows(x)[i, k] @ y[k, 0], or of turned windows: as a product, every window would have to be stored.

    i and k may be several axes each, merged.
    """
    turned = is_matrix_transpose(x)
    windows = _unmerged(turned or x)
    if windows.op is not ops.windows or y.shape[-1] != 1 or y.rank != 2 or not type_.dtype.is_differentiable:
        return None
    count = len(windows.attrs["sizes"])
    places, inside = tuple(range(count)), tuple(range(count, windows.rank))
    if windows.rank != 2 * count or (turned or x).shape != tuple(map(element_count, (windows.shape[:count], windows.shape[count:]))):
        return None
    summed = inside if turned is None else places
    factors = ops.broadcast(reshaped(y, tuple([windows.shape[axis] for axis in summed])), shape=windows.shape, axes=summed)
    return reshaped(ops.sum(ops.multiply(windows, factors), axes=summed), type_.shape)


def _windows_add(type_: TensorType, x: Value, **attrs: Any) -> Value | None:
    return _sums_of_windows(type_, x, **attrs) or _unpadded_windows_add(type_, x, **attrs)


def _sums_of_windows(type_: TensorType, x: Value, *, shape: tuple[Any, ...], sizes: tuple[int, ...], strides: tuple[int, ...],
                     low: tuple[int, ...], high: tuple[int, ...], dilations: tuple[int, ...]) -> Value | None:
    """windows_add of a[i] b[k]: element j gets the sum of a[j - k] b[k], the products of b backwards with the windows of a."""
    count = len(sizes)
    ones, none, places, inside = (1,) * count, (0,) * count, tuple(range(count)), tuple(range(count, 2 * count))
    product = _unmerged(x)
    if product.op is not ops.multiply or strides != ones or dilations != ones or not all(isinstance(n, int) for n in x.shape):
        return None
    if any(n >= size for n, size in zip((*low, *high), (*sizes, *sizes), strict=True)):        # windows of zeros alone
        return None
    down, across = (places, inside) if product is x else ((0,), (1,))
    column, row = sorted(product.operands, key=lambda operand: _along(operand) == across)
    if x.rank != 2 * count or (_along(column), _along(row)) != (down, across):
        return None
    a, b = reshaped(column.operands[0], x.shape[:count]), reshaped(row.operands[0], sizes)
    padded = ops.pad(a, low=tuple([size - 1 - n for size, n in zip(sizes, low, strict=True)]),
                     high=tuple([size - 1 - n for size, n in zip(sizes, high, strict=True)]), value=zero_of(x.dtype))
    windows = ops.windows(padded, sizes=sizes, strides=ones, low=none, high=none, dilations=ones)
    return ops.sum(ops.multiply(windows, ops.broadcast(ops.flip(b, axes=places), shape=windows.shape, axes=inside)), axes=inside)


def _along(value: Value) -> tuple[int, ...] | None:
    """The axes that a broadcast array runs along."""
    return value.attrs["axes"] if value.op is ops.broadcast else None


def _unmerged(value: Value) -> Value:
    return value.operands[0] if value.op is ops.reshape else value


def reshaped(x: Value, shape: tuple[Any, ...]) -> Value:
    """x in another shape, if it is one."""
    return x if x.shape == shape else ops.reshape(x, shape=shape)


WINDOW_RULES: dict[Op, Rule] = {ops.windows: _unpadded_windows, ops.windows_add: _windows_add}
