"""Legalisation: rewrite ops into the subset that lowering accepts.

    windows(x, low, high)      -> windows(pad(x))             so that reading a window is a plain index map
    windows_add(ct, low, high) -> slice(windows_add(ct))      into the padded array
    matmul of columns and rows -> multiply                   which fuses with what uses it
    sum(matmul) over the batch -> matmul                     so that the batch of products is never stored
    concatenate of many pieces -> slice updates               each of which touches its own slice only
    custom_call, custom_link   -> their bodies
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler import ops
from bwcompiler.ir.extent import element_count
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value
from bwcompiler.ops.contraction import is_matrix_transpose
from bwcompiler.passes.expand_custom_rules import inline_calls

MOST_PIECES = 8                # of a concatenation that is read element by element


def legalize(graph: Graph) -> Graph:
    """The same computation in ops that lowering accepts."""
    graph = inline_calls(graph)
    mapping: dict[Value, Value] = {}
    record = Record()
    with record:
        for value in graph.body:
            operands = tuple([mapping.get(operand, operand) for operand in value.operands]) if mapping else value.operands
            rewrite = _REWRITES.get(value.op.name)
            if rewrite is not None:
                record.source, record.forward = value.source, value.forward
                made = rewrite(value, operands)
                if made is not None:
                    mapping[value] = made
                    continue
            if operands != value.operands:
                mapping[value] = value = Value(value.op, operands, value.attrs, value.type, value.name, value.source, value.forward)
            record.values.append(value)
    if not mapping:
        return graph
    outputs = [mapping.get(output, output) for output in graph.outputs]
    return graph.replace(body=live_values(record.values, outputs), outputs=outputs)


def _outer_product(value: Value, operands: tuple[Value, ...]) -> Value | None:
    """x @ y of columns and rows, out[i, j] = x[i, 0] y[0, j]: nothing is summed, so it joins the loops around it."""
    x, y = operands
    *batch, rows, inner = x.shape
    if inner != 1 or value.dtype.kind != "f":
        return None
    columns, rank = y.shape[-1], x.rank
    shape, lead = (*batch, rows, columns), tuple(range(rank - 2))
    left, right = _reshape(x, (*batch, rows)), _reshape(y, (*batch, columns))
    return ops.multiply(ops.broadcast(left, shape=shape, axes=(*lead, rank - 2)),
                                ops.broadcast(right, shape=shape, axes=(*lead, rank - 1)))


def _sum_of_products(value: Value, operands: tuple[Value, ...]) -> Value | None:
    """sum_b x[b] @ y[b], the gradient of a matrix used for a whole batch: one product over the axes (b, k) together."""
    product = operands[0]
    if product.op.name != "matmul" or value.attrs["axes"] != tuple(range(product.rank - 2)) or value.dtype.kind != "f":
        return None
    x, y = product.operands
    rank = x.rank
    rows, columns = value.shape
    inner = element_count(y.shape[:-1])
    right = _reshape(y, (inner, columns))
    turned = is_matrix_transpose(x)
    if turned is not None:                                     # its memory has (b, k) side by side already
        left = ops.transpose(_reshape(turned, (inner, rows)), axes=(1, 0))
    else:
        left = _reshape(ops.transpose(x, axes=(rank - 2, *range(rank - 2), rank - 1)), (rows, inner))
    return ops.matmul(left, right)


def _pieces_in_place(value: Value, operands: tuple[Value, ...]) -> Value | None:
    """Many pieces side by side: each is written into its place, where an element of the whole would choose among all of them."""
    if len(operands) <= MOST_PIECES or not all(isinstance(extent, int) for extent in value.shape):
        return None
    axis, rank = value.attrs["axis"], value.rank
    zero = False if value.dtype.kind == "b" else 0.0 if value.dtype.is_differentiable else 0
    whole = ops.full(value=zero, shape=value.shape, dtype=value.dtype)
    start = 0
    for piece in operands:
        starts = tuple([start if k == axis else 0 for k in range(rank)])
        if piece.type.size:
            whole = ops.slice_update(whole, piece, starts=starts, steps=(1,) * rank)
        start += piece.shape[axis]
    return whole


def _reshape(x: Value, shape: tuple[Any, ...]) -> Value:
    return x if x.shape == shape else ops.reshape(x, shape=shape)


def _unpadded(value: Value, operands: tuple[Value, ...]) -> Value | None:
    """Windows of a padded array, and their adjoint, without padding of their own."""
    low, high, attrs = value.attrs["low"], value.attrs["high"], dict(value.attrs)
    if not any((*low, *high)):
        return None
    x, none = operands[0], (0,) * len(low)
    attrs.update(low=none, high=none)
    if value.op.name == "windows":
        lead = x.rank - len(low)
        zero = False if x.dtype.kind == "b" else 0.0 if x.dtype.is_differentiable else 0
        padded = ops.pad(x, low=(0,) * lead + low, high=(0,) * lead + high, value=zero)
        return ops.windows(padded, **attrs)
    lead, shape = value.rank - len(low), value.shape
    attrs["shape"] = (*shape[:lead], *[extent + a + b for extent, a, b in zip(shape[lead:], low, high, strict=True)])
    added = ops.windows_add(x, **attrs)
    return ops.slice(added, starts=(0,) * lead + low, sizes=shape, steps=(1,) * len(shape))


_REWRITES: dict[str, Callable[[Value, tuple[Value, ...]], Value | None]] = {
    "windows": _unpadded, "windows_add": _unpadded, "matmul": _outer_product, "sum": _sum_of_products,
    "concatenate": _pieces_in_place,
}
