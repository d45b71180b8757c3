"""Convolutions of `bw.nn`, in PyTorch's layout: x (batch, channels, ...), w (out, channels / groups, ...).

A convolution is `windows`, a transpose and a matmul.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bwcompiler import ops
from bwcompiler.api.inside.eager import network_function
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.numpy.elementwise.ufunc_calls import operator
from bwcompiler.frontend.numpy.linalg.linear import pair, permuted
from bwcompiler.frontend.tracing.operands import filled, reshape, value_as
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value

Sizes = tuple[int, ...]
Option = int | Sequence[Any] | None                 # a number per axis, or one for all


def sizes_of(option: Any, rank: int, name: str) -> Sizes:
    """One integer per spatial axis, from an integer or a sequence (of which one element counts for all axes)."""
    found = (int(option),) * rank if isinstance(option, int | np.integer) else tuple(int(one) for one in option)
    found = found * rank if len(found) == 1 else found
    if len(found) != rank:
        raise ShapeError(f"{name}={option!r} must be an integer or {rank} of them")
    return found


def _padding(padding: Any, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[Sizes, Sizes]:
    """Padding before and after every axis."""
    rank = len(kernel)
    if padding == "valid":
        return (0,) * rank, (0,) * rank
    if padding == "same":
        if set(stride) != {1}:
            raise ShapeError("padding='same' needs stride 1")
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple(one // 2 for one in total), tuple(one - one // 2 for one in total)
    both = sizes_of(padding, rank, "padding")
    return both, both


def windows_of(x: Value, kernel: Sizes, stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes) -> Value:
    """`ops.windows` over the last axes; ShapeError if the kernel does not fit."""
    for axis, (extent, k, a, b, d) in enumerate(zip(x.shape[x.rank - len(kernel):], kernel, low, high, dilation, strict=True)):
        if extent + a + b < d * (k - 1) + 1:
            raise ShapeError(f"the kernel {kernel} does not fit x of shape {x.shape} along spatial axis {axis}")
    return ops.windows(x, sizes=kernel, strides=stride, low=low, high=high, dilations=dilation)


def convolve(x: Value, w: Value, stride: Sizes, low: Sizes, high: Sizes, dilation: Sizes, groups: int) -> Value:
    """The cross-correlation of x (batch, channels, ...) with w."""
    rank = w.rank - 2
    kernel: Sizes = w.shape[2:]
    batch, channels = x.shape[:2]
    outs, inner = w.shape[:2]
    if channels != inner * groups or outs % groups:
        raise ShapeError(f"convolution: x of shape {x.shape} and w of shape {w.shape} do not fit with groups={groups}: w is "
                         "(out channels, in channels / groups, kernel...)")
    found = windows_of(x, kernel, stride, low, high, dilation)
    places = found.shape[2:2 + rank]
    rows, depth = batch * math.prod(places), inner * math.prod(kernel)
    if groups == 1:
        # (batch, channels, places, kernel) -> (batch places, channels kernel) @ (channels kernel, outs)
        order = (0, *range(2, 2 + rank), 1, *range(2 + rank, 2 + 2 * rank))
        product = ops.matmul(reshape(permuted(found, order), (rows, depth)), permuted(reshape(w, (outs, depth)), (1, 0)))
        return permuted(reshape(product, (batch, *places, outs)), (0, 1 + rank, *range(1, 1 + rank)))
    grouped = reshape(found, (batch, groups, inner, *places, *kernel))
    order = (1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
    left = reshape(permuted(grouped, order), (groups, rows, depth))
    right = permuted(reshape(w, (groups, outs // groups, depth)), (0, 2, 1))
    product = reshape(ops.matmul(left, right), (groups, batch, *places, outs // groups))
    back = permuted(product, (1, 0, 2 + rank, *range(2, 2 + rank)))
    return reshape(back, (batch, outs, *places))


def _with_bias(result: Value, b: Any, rank: int, batched: bool) -> Any:
    made = fresh(result if batched else reshape(result, result.shape[1:]))
    if b is None:
        return made
    bias = value_as(b)
    return operator("add", made, fresh(reshape(bias, (*bias.shape, *[1] * rank))))


def with_batch(x: Value, rank: int, name: str) -> tuple[Value, bool]:
    """x with an axis of samples, and whether it had one."""
    if x.rank not in (rank + 1, rank + 2):
        raise ShapeError(f"{name}: x must have {rank + 2} axes (batch, channels, ...) or {rank + 1}, got shape {x.shape}")
    return (x, True) if x.rank == rank + 2 else (reshape(x, (1, *x.shape)), False)


def axes_text(rank: int, letter: str = "") -> str:
    """How docstrings write the last axes: `height, width`."""
    names = ("depth", "height", "width")[3 - rank:] if rank > 1 else ("length",)
    return ", ".join([f"{letter}{name[0]}" if letter else name for name in names])


def _convolution(rank: int) -> Callable[..., Any]:
    name = f"conv{rank}d"

    def conv(x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
        left, right = pair(x, w)
        if right.rank != rank + 2:
            raise ShapeError(f"{name}: w must have {rank + 2} axes (out, in / groups, kernel...), got shape {right.shape}")
        value, batched = with_batch(left, rank, name)
        strides, dilations = sizes_of(stride, rank, "stride"), sizes_of(dilation, rank, "dilation")
        low, high = _padding(padding, right.shape[2:], strides, dilations)
        return _with_bias(convolve(value, right, strides, low, high, dilations, groups), b, rank, batched)

    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""{rank}-dimensional cross-correlation, as torch.nn.functional.{name}.

    x is (batch, in, {axes_text(rank)}) or without batch, w (out, in / groups, {axes_text(rank, "k")}), b (out,).
    stride, padding and dilation are integers or one per axis; padding may be "valid" or "same".  Raises ShapeError where these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 8" * rank})), np.ones((4, 3{", 3" * rank})), padding=1).shape
    (2, 4{", 8" * rank})
    """
    return network_function(conv)


def _transposed_convolution(rank: int) -> Callable[..., Any]:
    name = f"conv_transpose{rank}d"

    def conv(x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
             dilation: Any = 1) -> Any:
        left, right = pair(x, w)
        value, batched = with_batch(left, rank, name)
        if right.rank != rank + 2 or value.shape[1] != right.shape[0]:
            raise ShapeError(f"{name}: x of shape {left.shape} and w of shape {right.shape} do not fit; w is "
                             "(in, out / groups, kernel...)")
        strides, dilations = sizes_of(stride, rank, "stride"), sizes_of(dilation, rank, "dilation")
        paddings, extra = sizes_of(padding, rank, "padding"), sizes_of(output_padding, rank, "output_padding")
        if any(e and e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
            raise ShapeError(f"{name}: output_padding={output_padding!r} must be smaller than stride or dilation")
        kernel = right.shape[2:]
        low = [d * (k - 1) - p for d, k, p in zip(dilations, kernel, paddings, strict=True)]
        spread = _dilated(value, strides)
        high = [a + e for a, e in zip(low, extra, strict=True)]
        spread = _crop(spread, low, high)
        turned = ops.flip(_swapped(right, groups), axes=tuple(range(2, rank + 2)))
        kept_low, kept_high = tuple(max(a, 0) for a in low), tuple(max(a, 0) for a in high)
        return _with_bias(convolve(spread, turned, (1,) * rank, kept_low, kept_high, dilations, groups), b, rank, batched)

    conv.__name__ = conv.__qualname__ = name
    conv.__doc__ = f"""The adjoint of conv{rank}d, as torch.nn.functional.{name}.

    x is (batch, in, {axes_text(rank)}) or without batch, w (in, out / groups, {axes_text(rank, "k")}), b (out,).
    stride, padding, output_padding and dilation are integers or one per axis.  Raises ShapeError where these do not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.nn.{name}(np.ones((2, 3{", 4" * rank})), np.ones((3, 5{", 2" * rank})), stride=2).shape
    (2, 5{", 8" * rank})
    """
    return network_function(conv)


def _swapped(w: Value, groups: int) -> Value:
    """(in, out / groups, ...) as (out, in / groups, ...)."""
    ins, outs = w.shape[:2]
    tail = w.shape[2:]
    parts = reshape(w, (groups, ins // groups, outs, *tail))
    return reshape(permuted(parts, (0, 2, 1, *range(3, parts.rank))), (groups * outs, ins // groups, *tail))


def _dilated(x: Value, strides: Sizes) -> Value:
    """x with stride - 1 zeros between neighbours."""
    if set(strides) == {1}:
        return x
    shape = (*x.shape[:2], *[(n - 1) * s + 1 for n, s in zip(x.shape[2:], strides, strict=True)])
    zeros = filled(0, x.dtype, shape)
    return ops.slice_update(zeros, x, starts=(0,) * x.rank, steps=(1, 1, *strides))


def _crop(x: Value, low: list[int], high: list[int]) -> Value:
    """Negative padding: elements cut off."""
    starts = (0, 0, *[max(-a, 0) for a in low])
    sizes = (*x.shape[:2], *[n - max(-a, 0) - max(-b, 0) for n, a, b in zip(x.shape[2:], low, high, strict=True)])
    return x if sizes == x.shape else ops.slice(x, starts=starts, sizes=sizes, steps=(1,) * x.rank)


conv1d, conv2d, conv3d = (_convolution(_rank) for _rank in (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = (_transposed_convolution(_rank) for _rank in (1, 2, 3))
